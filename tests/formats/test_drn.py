"""Storm's DRN: what Storm writes, what we write, and what is wrong in between."""

import gzip
import io
import lzma
import tarfile
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given

import tailpath as tp
from tailpath.errors import FormatError, TailpathWarning
from tests.formats.models import awkward, differences, outcomes, samples
from tests.reference import to_ssp
from tests.strategies import any_models

EXAMPLE = """// Exported by storm
// Original model type: MDP
@type: MDP
@value_type: double
@parameters

@reward_models
time energy 
@nr_states
4
@nr_choices
5
@model
state 0 [1, 0.1] init
//a remark
\taction 0 [0.5, 0.2]
\t\t1 : 0.25
\t\t2 : 3/4
\taction right [0, 1]
\t\t3 : 1
state 1 [2,0] "two words" trap
\taction __NOLABEL__
\t\t1 : 1
state 2
\taction go [7, 0]
\t\t0 : .5
\t\t3 : 5E-1
state 3 [9, 9] goal
\taction 0 [9, 9]
\t\t0 : 1
"""  # noqa: W291 (Storm leaves a blank after the names)


@pytest.fixture
def drn(tmp_path):
    def write(text=EXAMPLE, name="m.drn"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


def test_a_file_of_storm(drn):
    ssp = tp.read(drn(), cost="time")
    assert ssp.states == range(4) and ssp.start == 0 and ssp.goals == (3,)
    assert outcomes(ssp) == {
        (0, 0): [("1", 0.25, 1.5), ("2", 0.75, 1.5)],
        (0, "right"): [("3", 1.0, 1.0)],
        (1, 0): [("1", 1.0, 2.0)],
        (2, "go"): [("0", 0.5, 7.0), ("3", 0.5, 7.0)],
    }
    assert any("transitions out of goals are left out" in note for note in ssp.notes)


def test_rewards_of_state_and_action_add_up_as_decimals(drn):
    ssp = tp.read(drn(), cost="energy")
    assert ssp.outcome_cost[0] == 0.3 and ssp.cost_unit == Fraction(1, 10)


def test_goal_and_cost_are_chosen_among_what_is_there(drn):
    with pytest.raises(
        FormatError, match=r"choose the cost with --cost NAME .* among: time, energy"
    ):
        tp.read(drn())
    with pytest.raises(FormatError, match=r"no reward structure 'money'; .* among: time, energy"):
        tp.read(drn(), cost="money")
    with pytest.raises(
        FormatError,
        match=(
            r"no label 'end'; choose the goal with --goal LABEL .* among: init, two words, trap,"
            r" goal"
        ),
    ):
        tp.read(drn(), cost="time", goal="end")
    assert tp.read(drn(), cost="time", goal="two words").goals == (1,)
    assert set(tp.read(drn(), step_cost=3).outcome_cost.tolist()) == {3.0}
    assert sorted(set(tp.read(drn(), cost="time", cost_of={7: 0}).outcome_cost.tolist())) == [
        0,
        1,
        1.5,
        2,
    ]
    with pytest.raises(FormatError, match="no reward structures"):
        tp.read(drn("@type: DTMC\n@nr_states\n1\n@model\nstate 0 init goal\n"))
    with pytest.raises(FormatError, match="no label 'goal'"):
        tp.read(drn(EXAMPLE.replace(" goal", "")), cost="time")


def test_costs_have_the_sign_they_are_given(drn):
    text = EXAMPLE.replace("[7, 0]", "[-7, 0]")
    assert tp.read(drn(text), cost="time").outcome_cost.min() == -7
    negated = (
        EXAMPLE.replace("[1, 0.1]", "[0,0]")
        .replace("[0.5, 0.2]", "[-5,0]")
        .replace("[0, 1]", "")
        .replace("[2,0]", "")
        .replace("[7", "[-7")
    )
    assert sorted(
        set(tp.read(drn(negated), cost="time", negate_reward=True).outcome_cost.tolist())
    ) == [0, 5, 7]


def test_a_chain_without_action_lines_and_with_unnamed_rewards(drn):
    text = (
        "@type: DTMC\n@nr_states\n2\n@model\nstate 0 [2] init\n0 : 0.5\n1 : 0.5\nstate 1 goal\n1"
        " : 1\n"
    )
    ssp = tp.read(drn(text), cost="rew0")
    assert ssp.outcome_cost.tolist() == [2, 2] and ssp.actions == range(1)


def test_dead_ends_get_a_loop(drn):
    text = (
        "@type: MDP\n@reward_models\nc\n@nr_states\n3\n@model\nstate 0 init\naction a [4]\n1 :"
        " 0.5\n2 : 0.5\nstate 1\nstate 2 goal\n"
    )
    ssp = tp.read(drn(text))
    assert outcomes(ssp)[1, "a"] == [("1", 1.0, 4.0)] and ssp.cost_unit == 4
    assert any("a loop: 1, the first is state 1" in note for note in ssp.notes)


def test_actions_that_a_state_repeats_are_counted(drn):
    text = (
        "@type: MDP\n@reward_models\nc\n@nr_states\n2\n@model\nstate 0 init\naction a [1]\n1 :"
        " 1\naction a [2]\n1 : 1\naction b [3]\n1 : 1\n"
    )
    ssp = tp.read(drn(text + "state 1 goal\n"))
    assert ssp.actions == ("a", "a#2", "b") and ssp.outcome_cost.tolist() == [1, 2, 3]


def test_rounded_probabilities_are_scaled_with_a_warning(drn):
    text = EXAMPLE.replace("1 : 0.25", "1 : 0.3333333333").replace("2 : 3/4", "2 : 0.6666666666")
    with pytest.warns(TailpathWarning, match="scaled to sum to 1"):
        ssp = tp.read(drn(text), cost="time")
    assert ssp.outcome_probability[:2].sum() == pytest.approx(1, abs=1e-15)
    with pytest.raises(FormatError, match=r"state 0, action 0 sum to 0\.99"):
        tp.read(drn(EXAMPLE.replace("2 : 3/4", "2 : 0.74")), cost="time")


def test_equal_outcomes_are_merged_and_impossible_ones_left_out(drn):
    text = EXAMPLE.replace("1 : 0.25", "1 : 0.125\n1 : 1/8\n3 : 0")
    assert differences(tp.read(drn(text), cost="time"), tp.read(drn(), cost="time")) == []


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("@type: MDP\n", "", ":12: the section @type is missing"),
        ("@type: MDP", "@type: CTMC", ":3: the type 'CTMC' is neither MDP nor DTMC"),
        ("@type: MDP", "@type: MDP\n@type: MDP", ":4: .*@type .* twice"),
        (
            "@value_type: double",
            "@value_type: parametric",
            "'parametric' is not one of double, rational, double-interval, rational-interval",
        ),
        ("@parameters\n\n", "@parameters\np q\n", ":5: parametric models are not supported"),
        ("@nr_states\n4\n", "", "the section @nr_states is missing"),
        ("@nr_states\n4", "@nr_states\n5", ":9: @nr_states says 5, the file has 4"),
        ("@nr_states\n4", "@nr_states\n99999999999999999999", "is not a whole number"),
        ("@nr_states\n4", "@nr_states\n999999999999", "says 999999999999, the file has 4"),
        ("@nr_choices\n5", "@nr_choices\n6", ":11: @nr_choices says 6, the file has 5"),
        ("@nr_choices\n5", "@nr_choices\n5\n@nr_choices\n5", "@nr_choices .* twice"),
        ("@model", "@strange", "unknown header line '@strange'"),
        ("@model\n", "", "unknown header line 'state 0"),
        ("time energy", "time time", ":7: a reward model is named twice"),
        ("state 1 ", "state 2 ", ":21: expected state 1, not 2"),
        ("state 1 ", "state x ", ":21: 'x' is not a whole number"),
        ("state 2\n", "state 2 [1\n", ":24: the rewards have no closing bracket"),
        ('"two words"', '"two words', ":21: cannot read the labels"),
        ("action go", "action", ":25: expected 'action <name>"),
        ("action go", "action go there", ":25: expected 'action <name>"),
        ("3 : 1\n", "3 1\n", ":20: expected 'target : probability'"),
        ("3 : 1\n", "7 : 1\n", ":20: state 7 lies outside 0..3"),
        ("3 : 1\n", "-1 : 1\n", ":20: expected a state, an action or a transition"),
        ("3 : 1\n", "1_0 : 1\n", "'1_0' is not a whole number"),
        ("3 : 1\n", "\u0663 : 1\n", ":20: expected a state"),
        ("3 : 1\n", "3 : nan\n", ":20: 'nan' is not a finite number"),
        ("3 : 1\n", "3 : 1e999\n", ":20: '1e999' is not a finite number"),
        ("3 : 1\n", "3 : 0x1\n", ":20: '0x1' is not a finite number"),
        ("3 : 1\n", "3 : 1_0\n", ":20: '1_0' is not a finite number"),
        ("3 : 1\n", "3 : 1/0\n", ":20: '1/0' is not a finite number"),
        ("3 : 1\n", "3 : -1\n3 : 2\n", "state 0, choice 1 -> 3 has probability -1"),
        ("3 : 1\n", "3 :\n", ":20: '' is not a finite number"),
        ("[7, 0]", "[7, x]", ":25: 'x' is not a finite number"),
        (
            "state 0 [1, 0.1] init",
            "3 : 1\nstate 0 [1, 0.1] init",
            ":14: .* before the first state",
        ),
        (" init", "", "no state is initial"),
        ("@type: MDP", "@type: DTMC", ":19: state .* DTMC"),
        (
            "// Exported",
            '//tailpath {"states": 7}\n// Exported',
            "states is 7, but the arrays have 4",
        ),
        (
            "// Exported",
            '//tailpath {"stats": 7}\n// Exported',
            ":1: the tailpath line: unknown member 'stats'; known are states, actions",
        ),
        ("// Exported", "//tailpath {\n// Exported", ":1:1: Expecting"),
        (
            "// Exported",
            '//tailpath {"actions": ["x"]}\n// Exported',
            "is not among those of the tailpath line|without a name",
        ),
        (
            "// Exported",
            '//tailpath {"auxiliary": 2}\n// Exported',
            "2 auxiliary states, which the file does not have",
        ),
        (
            "// Exported",
            '//tailpath {"auxiliary": 99}\n// Exported',
            "99 auxiliary states, which the file does not have",
        ),
    ],
)
def test_what_is_wrong_is_said_with_its_line(old, new, message, drn):
    assert old in EXAMPLE
    path = drn(EXAMPLE.replace(old, new, 1))
    with pytest.raises(FormatError, match=message) as caught:
        tp.read(path, cost="time")
    assert str(caught.value).startswith(str(path))


def test_line_ends_and_marks_of_other_systems(drn):
    plain = tp.read(drn(), cost="time")
    for text in (
        EXAMPLE.replace("\n", "\r\n").encode(),
        b"\xef\xbb\xbf" + EXAMPLE.encode(),
        EXAMPLE.rstrip().encode(),
    ):
        assert differences(tp.read(drn(text), cost="time"), plain) == []


def packed(text):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        entry = tarfile.TarInfo("m.drn")
        entry.size = len(text)
        archive.addfile(entry, io.BytesIO(text))
    return buffer.getvalue()


@pytest.mark.parametrize(
    "pack",
    [
        gzip.compress,
        lzma.compress,
        lambda t: gzip.compress(packed(t)),
        lambda t: lzma.compress(packed(t)),
    ],
)
def test_packed_files(pack, drn):
    assert (
        differences(
            tp.read(drn(pack(EXAMPLE.encode()), "m.drn.gz"), cost="time"),
            tp.read(drn(), cost="time"),
        )
        == []
    )


def test_bombs_and_broken_packing(drn):
    for data, message in (
        (gzip.compress(bytes(40 * 2**20)), "unpacks to more than"),
        (lzma.compress(bytes(20 * 2**20), preset=0), "unpacks to more than"),
        (gzip.compress(EXAMPLE.encode())[:-9], "broken gzip data"),
        (lzma.compress(EXAMPLE.encode())[:-9], "broken xz data"),
        (lzma.compress(EXAMPLE.encode())[:20] + b"xxxxxxxxxxxxxxxx", "broken xz data"),
        (b"\x1f\x8b garbage", "broken gzip data"),
    ):
        with pytest.raises(FormatError, match=message):
            tp.read(drn(data, "m.drn.gz"))


# ---------------------------------------------------------------------- writing


@pytest.mark.parametrize("suffix", ["drn", "drn.gz", "drn.xz"])
@pytest.mark.parametrize("name", samples())
def test_a_model_survives_the_trip(name, suffix, tmp_path):
    model = samples()[name]
    tp.write(model, tmp_path / f"m.{suffix}")
    assert differences(model, tp.read(tmp_path / f"m.{suffix}")) == []


@given(model=any_models())
def test_any_model_survives_the_trip(model, tmp_path_factory):
    path = tmp_path_factory.mktemp("trip") / "m.drn"
    ssp = to_ssp(model)
    tp.write(ssp, path)
    assert differences(ssp, tp.read(path)) == []


def test_files_are_the_same_every_time(tmp_path):
    for suffix in ("drn", "drn.gz", "umb", "json"):
        tp.write(awkward(), tmp_path / f"a.{suffix}")
        tp.write(awkward(), tmp_path / f"b.{suffix}")
        assert (tmp_path / f"a.{suffix}").read_bytes() == (tmp_path / f"b.{suffix}").read_bytes()


def test_without_our_line_the_auxiliary_states_carry_the_costs(tmp_path):
    """Another reader sees a larger model whose total cost has the same distribution; the mean is
    checked here, the rest with Storm.
    """
    model = tp.read("textbook:counter-example")
    tp.write(model, tmp_path / "m.drn")
    text = (tmp_path / "m.drn").read_text()
    (tmp_path / "n.drn").write_text(
        "\n".join(line for line in text.split("\n") if not line.startswith("//tailpath"))
    )
    plain = tp.read(tmp_path / "n.drn")
    assert plain.n_states > model.n_states
    assert np.diff(plain.choice_outcomes).max() == np.diff(model.choice_outcomes).max()
    assert tp.solve_expected(plain).cost() == tp.solve_expected(model).cost()


def test_rewards_that_are_thirds_have_a_unit(tmp_path):
    """As a double a third has no usable unit; as the fraction it was it has."""
    text = "@type: DTMC\n@reward_models\nr\n@nr_states\n3\n@model\n"
    text += (
        "state 0 [{}] init\naction 0\n0 : 0.5\n1 : 0.5\nstate 1 [1]\naction 0\n2 : 1\nstate 2 [0]"
        " goal\naction 0\n2 : 1\n"
    )
    (tmp_path / "m.drn").write_text(text.format(repr(1 / 3)))
    ssp = tp.read(tmp_path / "m.drn")
    assert (
        ssp.cost_unit == Fraction(1, 3)
        and "costs are taken as whole multiples of 1/3, which decimals cannot express" in ssp.notes
    )
    (tmp_path / "m.drn").write_text(text.format("0.333333333333"))
    assert tp.read(tmp_path / "m.drn").exact_unit is None
