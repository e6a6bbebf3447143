"""The PRISM language and JANI, through Storm."""

import json
import os
import signal
import subprocess
import sys
import time
from fractions import Fraction

import pytest

import tailpath as tp
from tailpath.cli.application import main
from tailpath.errors import FormatError, OptionError, TailpathWarning
from tailpath.formats.registry import Reading
from tailpath.formats.storm_language import StormLimits, read
from tests.formats.models import outcomes

PROGRAM = """mdp
const int N;
const double p = 0.5;
module walk
  x : [0..N] init 0;
  [step] x<N -> p:(x'=x+1) + 1-p:(x'=x);
  [jump] x=0 -> (x'=N);
  [] x=1 -> (x'=0);
  [] x=1 -> (x'=1);
endmodule
rewards "time"
  [step] true : 1;
  [jump] true : 10;
endrewards
rewards "visits"
  x=1 : 3;
endrewards
label "done" = x=N;
"""

EDGES = [
    {
        "location": "l",
        "action": "go",
        "guard": {"exp": {"op": "=", "left": "s", "right": 0}},
        "destinations": [
            {
                "location": "l",
                "probability": {"exp": 0.5},
                "assignments": [{"ref": "s", "value": 1}, {"ref": "r", "value": 3}],
            },
            {
                "location": "l",
                "probability": {"exp": 0.5},
                "assignments": [{"ref": "s", "value": 2}, {"ref": "r", "value": "K"}],
            },
        ],
    },
    {
        "location": "l",
        "guard": {"exp": {"op": ">", "left": "s", "right": 0}},
        "destinations": [
            {"location": "l", "assignments": [{"ref": "s", "value": 2}, {"ref": "r", "value": 1}]}
        ],
    },
]
JANI = {
    "jani-version": 1,
    "name": "model",
    "type": "mdp",
    "actions": [{"name": "go"}],
    "constants": [{"name": "K", "type": "int"}],
    "variables": [
        {
            "name": "s",
            "type": {"kind": "bounded", "base": "int", "lower-bound": 0, "upper-bound": 2},
            "initial-value": 0,
        },
        {"name": "r", "type": "real", "transient": True, "initial-value": 0},
        {"name": "done", "type": "bool", "transient": True, "initial-value": False},
    ],
    "properties": [],
    "automata": [
        {
            "name": "A",
            "locations": [
                {
                    "name": "l",
                    "transient-values": [
                        {"ref": "done", "value": {"op": "=", "left": "s", "right": 2}}
                    ],
                }
            ],
            "initial-locations": ["l"],
            "edges": EDGES,
        }
    ],
    "system": {
        "elements": [{"automaton": "A"}],
        "syncs": [{"synchronise": ["go"], "result": "go"}],
    },
}


@pytest.fixture
def model(tmp_path):
    def write(text=PROGRAM, name="m.prism"):
        (tmp_path / name).write_text(text if isinstance(text, str) else json.dumps(text))
        return tmp_path / name

    return write


@pytest.fixture
def storm():
    return pytest.importorskip("stormpy", reason="the extra `storm` is not installed")


@pytest.mark.parametrize("suffix", ["prism", "nm", "pm"])
def test_a_program(suffix, model, storm):
    ssp = tp.read(model(name=f"m.{suffix}"), constants={"N": "2"}, goal="done", cost="time")
    assert ssp.states == ("x=0", "x=1", "x=2") and ssp.start == "x=0" and ssp.goals == ("x=2",)
    assert outcomes(ssp) == {
        ("x=0", "step"): [("'x=0'", 0.5, 1.0), ("'x=1'", 0.5, 1.0)],
        ("x=0", "jump"): [("'x=2'", 1.0, 10.0)],
        ("x=1", "step"): [("'x=1'", 0.5, 1.0), ("'x=2'", 0.5, 1.0)],
        ("x=1", 1): [("'x=0'", 1.0, 0.0)],
        ("x=1", 2): [("'x=1'", 1.0, 0.0)],
    }


def test_what_is_open_is_named(model, storm):
    with pytest.raises(
        FormatError, match=r"give the constants N a value with --const NAME=VALUE \(constants=\)"
    ):
        tp.read(model())
    with pytest.raises(
        FormatError,
        match=r"no label 'goal'; choose the goal with --goal LABEL \(goal=\) among: deadlock, done",
    ):
        tp.read(model(), constants={"N": 3})
    with pytest.raises(
        FormatError, match=r"choose the cost with --cost NAME \(cost=\) among: time, visits"
    ):
        tp.read(model(), constants={"N": 3}, goal="done")
    with pytest.raises(FormatError, match="already defined constant 'p'"):
        tp.read(model(), constants={"N": 3, "p": 0.1})
    with pytest.raises(FormatError, match=r"m\.prism: .*M"):
        tp.read(model(), constants={"N": 3, "M": 0.1})
    for constants in ({"N": "1;2"}, {"N,p": 1}, {"N": ""}):
        with pytest.raises(OptionError, match="is not a constant with a value"):
            tp.read(model(), constants=constants)


def test_truth_values_in_names(model, storm):
    text = (
        "dtmc\nmodule m\ny:bool;\nx:[0..1];\n[] !y -> 0.5:(y'=true) + 0.5:(x'=1-x);\n[] y ->"
        ' true;\nendmodule\nlabel "goal" = y;\n'
    )
    ssp = tp.read(model(text), step_cost=1)
    assert set(ssp.states) == {"y=false & x=0", "y=false & x=1", "y=true & x=0", "y=true & x=1"}
    assert set(ssp.goals) == {"y=true & x=0", "y=true & x=1"}


def test_jani(model, storm):
    same = tp.read(model(JANI, "m.jani"), constants={"K": 3}, goal="done", cost="r")
    assert sorted(rows for rows in outcomes(same).values()) == [
        [("'s=1'", 0.5, 3.0), ("'s=2'", 0.5, 3.0)],
        [("'s=2'", 1.0, 1.0)],
    ]


PROPERTIES = """
"quick": R{"time"}min=? [ F "done" ];
"late": Pmax=? [ F{"visits"}<=8 x=1 ];
"steps": Pmax=? [ F<=20 "done" ];
"mean": R{"time"}<=9.5 [ F x=N ];
"most": R{"time"}max=? [ F "done" ];
"both": multi(R{"time"}min=? [ F "done" ], Pmax=? [ F "done" ]);
"""


@pytest.mark.parametrize(
    ("name", "goals", "cost", "bound"),
    [
        ("quick", ("x=2",), "time", ""),
        ("late", ("x=1",), "visits", "; for its bound use --deadline 8"),
        ("steps", ("x=2",), None, "; for its bound use --within 20"),
        ("mean", ("x=2",), "time", "; for its bound use --subject-to 'mean <=19/2'"),
        ("most", ("x=2",), "time", "; for its largest value use --maximise (sense='max')"),
    ],
)
def test_a_property_says_what_is_goal_and_cost(name, goals, cost, bound, model, storm):
    path, more = model(), {"cost": "time"} if cost is None else {}
    path.with_suffix(".props").write_text(PROPERTIES)
    ssp = tp.read(path, constants={"N": 2}, property=name, **more)
    assert ssp.goals == goals and ssp.notes[-1].startswith("the property is ")
    assert ssp.notes[-1].endswith(f"]{bound}")
    condition = {"x=1": "x=1", "x=2": "done"}[goals[0]]
    plain = tp.read(path, constants={"N": 2}, goal=condition, cost=cost or "time")
    assert outcomes(ssp) == outcomes(plain)
    # What the user says wins.
    other = tp.read(path, constants={"N": 2}, property=name, goal="x=1", cost="visits")
    assert other.goals == ("x=1",)


def test_properties_that_say_no_goal_or_are_not_there(model, storm):
    path, options = model(), {"constants": {"N": 2}, "property": "both"}
    with pytest.raises(FormatError, match=r"m\.prism: .*next to the program, m\.props"):
        tp.read(path, **options)
    path.with_suffix(".props").write_text(PROPERTIES)
    with pytest.raises(FormatError, match=r"'both' is multi\(.*has no goal to reach"):
        tp.read(path, **options)
    with pytest.raises(FormatError, match="no property 'no'; choose among: quick, late, steps"):
        tp.read(path, **options | {"property": "no"})


def test_properties_are_offered_where_no_label_says_the_goal(model, storm):
    path = model()
    path.with_suffix(".props").write_text(PROPERTIES)
    with pytest.raises(FormatError) as refused:
        tp.read(path, constants={"N": 2})
    assert str(refused.value).endswith(
        "m.prism: no label 'goal'; choose goal and cost with --property NAME (property=) among:"
        " quick, late, steps, mean, most; or the goal with --goal LABEL (goal=) among: deadlock,"
        " done"
    )
    path.with_suffix(".props").write_text("no property")
    with pytest.raises(FormatError, match="no label 'goal'; choose the goal with --goal LABEL"):
        tp.read(path, constants={"N": 2})


def test_a_property_of_jani(model, storm):
    reach = {"op": "=", "left": "s", "right": 2}
    values = {"op": "Emin", "exp": "r", "accumulate": ["steps"], "reach": reach}
    filtered = {"op": "filter", "fun": "values", "states": {"op": "initial"}, "values": values}
    path = model(JANI | {"properties": [{"name": "E", "expression": filtered}]}, "m.jani")
    ssp = tp.read(path, constants={"K": 3}, property="E")
    assert outcomes(ssp) == outcomes(tp.read(path, constants={"K": 3}, goal="done", cost="r"))
    assert ssp.notes[-1] == 'the property is R{"r"}min=? [F (s = 2)]'


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("x<N ->", "x<N -", r"m\.prism:6: expected \"->\" at column \d+: \[step\] x<N"),
        ("p = 0.5", "p = q", r"m\.prism:3: .*q"),
        ("(x'=x)", "(y'=x)", r"m\.prism: Storm cannot read it and gives no reason"),
        ("init 0", "init 7", r"m\.prism: the model has no initial state"),
    ],
)
def test_what_storm_says_comes_in_our_words(old, new, message, model, storm):
    with pytest.raises(FormatError, match=message) as caught:
        tp.read(model(PROGRAM.replace(old, new)), constants={"N": 2}, goal="done", cost="time")
    assert "Exception" not in str(caught.value)
    with pytest.raises(FormatError, match=r"m\.prism: the model has no constant K without a value"):
        tp.read(model(), constants={"N": 2, "K": 1}, goal="done", cost="time")


def test_constants_with_commas_between(model, storm, capsys):
    path = str(model(PROGRAM.replace("p = 0.5", "p")))
    asked = ["info", path, "--goal", "done", "--cost", "time", "--json"]
    assert main([*asked, "--const", "N=4,p=0.25"]) == 0
    assert json.loads(capsys.readouterr().out)["states"] == 5
    assert main([*asked, "--const", "N=4,p"]) == 2
    assert "constants: N=4,p is not" in capsys.readouterr().err


def test_rewards_on_destinations_are_never_averaged(model, storm):
    """Storm would make 5 of 3 and 7: the same mean, and another risk."""
    with pytest.raises(
        FormatError,
        match="a reward depends on the destination; Storm can only average such rewards",
    ):
        tp.read(model(JANI, "m.jani"), constants={"K": 7}, goal="done")


@pytest.mark.parametrize("name", ["m.prism", "m.jani"])
@pytest.mark.parametrize(
    "text",
    [
        "",
        "mdp\nmodule",
        "{}",
        "[" * 500,
        "dtmc\nmodule m\nx:[0..1];\n[] true -> 2:(x'=1);\nendmodule",
        "\x01",
    ],
)
def test_broken_models_are_refused_quietly(text, name, model, storm, capfd):
    path = model(text, name)
    with pytest.raises(FormatError) as caught:
        tp.read(path)
    assert str(caught.value).startswith(str(path)) and "\n" not in str(caught.value)
    assert capfd.readouterr().out == "", "standard output belongs to results"


def test_other_kinds_of_models_are_refused(model, storm):
    with pytest.raises(FormatError, match="the model is a CTMC"):
        tp.read(
            model(
                PROGRAM.replace("mdp", "ctmc").replace(
                    "  [] x=1 -> (x'=0);\n  [] x=1 -> (x'=1);\n", ""
                )
            ),
            constants={"N": 2},
            goal="done",
        )
    with pytest.raises(FormatError, match="no such file"):
        tp.read("nowhere.prism")


def test_without_stormpy_the_extra_is_named(model, monkeypatch):
    monkeypatch.setitem(sys.modules, "stormpy", None)
    with pytest.raises(OptionError, match=r"stormpy is not installed: .*tailpath\[storm\]"):
        tp.read(model())


def test_without_gymnasium_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "gymnasium", None)
    with pytest.raises(OptionError, match=r"gymnasium is not installed: .*tailpath\[gym\]"):
        tp.read("gym:CliffWalking-v1")


# ---------------------------------------------------------------------- what Storm must not do to
# us


def test_an_update_out_of_range_is_an_error(model, storm):
    """With the upper bound 2^k - 1 the value wrapped around, and the model was solved."""
    text = (
        "mdp\nmodule m\nx:[0..3] init 1;\n[] x<4 -> 0.5:(x'=x+2) + 0.5:(x'=0);\nendmodule\nlabel"
        ' "goal" = x=0;\n'
    )
    with pytest.raises(FormatError, match=r"m\.prism: .*bound"):
        tp.read(model(text), step_cost=1)
    fifths = text.replace(
        "0.5:(x'=x+2) + 0.5:(x'=0)", "1/5:(x'=x+2) + " + " + ".join(["1/5:(x'=0)"] * 4)
    )
    with pytest.raises(FormatError, match=r"m\.prism: .*bound"):
        tp.read(model(fifths), step_cost=1)
    assert tp.read(model(fifths.replace("x'=x+2", "x'=x")), step_cost=1).n_states == 2


def test_a_crash_of_storm_is_one_line(model, storm):
    deep = (
        "mdp\nmodule m\nx:[0..1];\n[] "
        + "(" * 200_000
        + "x=0"
        + ")" * 200_000
        + " -> (x'=1);\nendmodule\n"
    )
    with pytest.raises(FormatError, match=r"m\.prism: (Storm crashed on this model|.*)") as caught:
        tp.read(model(deep), step_cost=1, goal="x=1")
    assert "\n" not in str(caught.value)
    with pytest.raises(FormatError, match=r"m\.jani: "):
        tp.read(model({**JANI, "constants": [{"name": "K", "type": 1}]}, "m.jani"))


ENDLESS = (
    'mdp\nmodule m\nx:[0..2000000000];\n[] true -> (x\'=x+1);\nendmodule\nlabel "goal" ='
    " x=2000000000;\n"
)


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        (StormLimits(seconds=3.0), "Storm did not finish this model within 3 s"),
        (
            StormLimits(bytes=200 * 2**20, seconds=300),
            "Storm (needs more than 0.195 GiB for this model|crashed on this model)",
        ),
    ],
)
def test_storm_has_limits(limits, message, model, storm):
    with pytest.raises(FormatError, match=message):
        read(str(model(ENDLESS)), Reading(step_cost=1), limits)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="nobody watches without fork")
@pytest.mark.parametrize("name", ["SIGTERM", "SIGKILL", "SIGINT"])
def test_storm_ends_with_the_process_that_asked(name, model, storm, tmp_path):
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    script = f"import tailpath as tp; tp.read({str(model(ENDLESS))!r}, step_cost=1)"
    asks = subprocess.Popen(
        [sys.executable, "-c", script],
        env={**os.environ, "TMPDIR": str(temporary)},
        stderr=subprocess.DEVNULL,
        process_group=0,
    )
    try:
        wait_for(lambda: len(ours(asks.pid)) == 2)
        both = ours(asks.pid)
        time.sleep(0.5)  # into the depth of Storm
        asks.send_signal(getattr(signal, name))
        asks.wait(20)
        wait_for(lambda: not any(os.path.exists(f"/proc/{process}/exe") for process in both))
        wait_for(lambda: not list(temporary.iterdir()))
    finally:
        asks.kill()


def ours(process):
    """The processes below one, by their numbers."""
    try:
        with open(f"/proc/{process}/task/{process}/children") as stream:
            below = [int(word) for word in stream.read().split()]
    except OSError:
        return []
    return [each for child in below for each in (child, *ours(child))]


def wait_for(true, seconds=20.0):
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "nothing happened"
        time.sleep(0.05)


def test_storm_has_a_limit_of_states(model, storm):
    with pytest.raises(FormatError, match="Storm found 101 states; the limit is 100"):
        read(
            str(model()),
            Reading(goal="done", cost="time", constants={"N": 100}),
            StormLimits(states=100),
        )


# ---------------------------------------------------------------------- as others write their
# models


def test_the_goal_may_be_a_condition(model, storm):
    ssp = tp.read(model(), constants={"N": 4}, goal="x>=2 & x!=3", cost="time")
    assert set(ssp.goals) == {"x=2", "x=4"}
    assert tp.read(model(JANI, "m.jani"), constants={"K": 3}, goal="s=2", cost="r").goals == (
        "s=2",
    )
    for goal in ("y=2", "x=2;", "x=", "dne", '"done"]; P=? [F "done"'):
        with pytest.raises(
            FormatError, match=r"m\.prism: (no label|.* is neither a label nor a condition)"
        ):
            tp.read(model(), constants={"N": 4}, goal=goal, cost="time")


def test_a_label_is_no_condition(model, storm):
    """A label and a variable may share a name."""
    text = (
        'mdp\nmodule m\ndone:bool init false;\n[a] !done -> (done\'=true);\nendmodule\nlabel "done"'
        " = !done;\n"
    )
    assert tp.read(model(text), goal="done", step_cost=1).goals == ("done=false",)


def test_several_initial_states(model, storm):
    text = (
        'mdp\nmodule m\nx:[0..3];\n[a] x<3 -> (x\'=x+1);\nendmodule\ninit x<3 endinit\nlabel "goal"'
        " = x=3;\n"
    )
    ssp = tp.read(model(text), step_cost=1)
    assert ssp.start == "start" and tp.solve_expected(ssp).cost() == pytest.approx(2)
    assert tp.read(model(text), step_cost=1, start="x=2").start == "x=2"


def test_a_program_without_a_type_is_an_mdp(model, storm):
    ssp = tp.read(
        model("// mdp?\n" + PROGRAM.replace("mdp\n", "", 1)),
        constants={"N": 2},
        goal="done",
        cost="time",
    )
    assert ssp.choice_index(ssp.start_index, "jump") >= 0


def test_thirds_have_a_unit(model, storm):
    ssp = tp.read(
        model(PROGRAM.replace("[step] true : 1;", "[step] true : 1/3;")),
        constants={"N": 2},
        goal="done",
        cost="time",
    )
    assert ssp.cost_unit == Fraction(1, 3)


def jani_of(shares, value=1, second=()):
    """A JANI model whose first edge has these probabilities; `second` is an automaton that moves
    with it.
    """
    moves = [
        {
            "location": "l",
            "probability": {"exp": share},
            "assignments": [{"ref": "s", "value": value if at == 0 else 0}],
        }
        for at, share in enumerate(shares)
    ]
    edges = [
        {
            "location": "l",
            "action": "go",
            "guard": {"exp": {"op": "<", "left": "s", "right": 2}},
            "destinations": moves,
        }
    ]
    automata = [
        {"name": "A", "locations": [{"name": "l"}], "initial-locations": ["l"], "edges": edges},
        *second,
    ]
    return {
        **JANI,
        "constants": [],
        "automata": automata,
        "variables": JANI["variables"][:1],
        "system": {
            "elements": [{"automaton": automaton["name"]} for automaton in automata],
            "syncs": [{"synchronise": ["go"] * len(automata), "result": "go"}],
        },
    }


def test_jani_probabilities_that_miss_one_by_rounding(model, storm):
    """As in any other file: what rounding explains is scaled, what it does not is refused; and the
    bounds of variables are looked at all the same.
    """
    options = {"goal": "s=1", "step_cost": 1}
    for shares in ([1 / 7] * 7, [0.1] * 10):
        assert tp.read(model(jani_of(shares), "m.jani"), **options).outcome_probability[
            0
        ] == pytest.approx(1 - shares[0], abs=1e-15)
    with pytest.warns(TailpathWarning, match="off by 1e-10"):
        tp.read(model(jani_of([0.3333333333] * 3), "m.jani"), **options)
    with pytest.raises(
        FormatError,
        match=r"m\.jani: the probabilities of state 's=0', action 'go' sum to 0\.999999, not 1",
    ):
        tp.read(model(jani_of([0.333333] * 3), "m.jani"), **options)
    for shares in ([1 / 7] * 7, [0.5, 0.5]):
        with pytest.raises(FormatError, match=r"m\.jani: .*bound"):
            tp.read(model(jani_of(shares, value=3), "m.jani"), goal="s=2", step_cost=1)


def test_jani_automata_that_write_one_variable_at_once(model, storm):
    """Unchecked, Storm would let one of them win."""
    edge = {
        "location": "l",
        "action": "go",
        "destinations": [{"location": "l", "assignments": [{"ref": "s", "value": 2}]}],
    }
    second = [
        {"name": "B", "locations": [{"name": "l"}], "initial-locations": ["l"], "edges": [edge]}
    ]
    for shares in ([0.5, 0.5], [1 / 7] * 7):
        with pytest.raises(FormatError, match=r"m\.jani: "):
            tp.read(model(jani_of(shares, second=second), "m.jani"), goal="s=1", step_cost=1)
