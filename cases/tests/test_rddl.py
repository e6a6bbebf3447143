"""RDDL: problems by hand, closed forms of the competitions' small ones, and pyRDDLGym's runs."""

import math
import os
import re
import subprocess
import sys
import textwrap
from fractions import Fraction as F

import numpy as np
import pytest
from tests.fuzz import programs
from tests.fuzz.__main__ import batch

import tailpath as tp
from tailpath.cli import main
from tailpath.errors import FormatError
from tailpath_cases import rddl

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

NAVIGATION = "rddl:Navigation_MDP_ippc2011/1"
TRAFFIC = "rddl:CrossingTraffic_MDP_ippc2011/1"
TIRES = "rddl:TriangleTireworld_MDP_ippc2014/1"

LIFT = """
domain lift {
    types { height : {@low, @mid, @high}; floor : object; };
    pvariables {
        P(floor) : { non-fluent, real, default = 0.25 };
        at : { state-fluent, height, default = @low };
        tries : { state-fluent, int, default = 0 };
        luck(floor) : { interm-fluent, bool, level = 1 };
        go : { action-fluent, bool, default = false };
        leap : { action-fluent, bool, default = false };
    };
    cpfs {
        luck(?f) = Bernoulli(P(?f));
        at' = if (at == @low ^ go)
                  then Discrete(height, @low : 0.25, @mid : 0.5, @high : 0.25)
              else if (at == @mid ^ leap ^ exists_{?f : floor} luck(?f)) then @high
              else at;
        tries' = if (at == @low ^ ~(at' == @low)) then 7 else min[tries + 1, 7];
    };
    reward = -1 - 2 * leap;
    termination { at == @high; };
    action-preconditions { leap => (at == @mid); };
}
"""
FLOORS = """
non-fluents nf { domain = lift; objects { floor : {f1, f2}; }; non-fluents { P(f2) = 0.5; }; }
instance one { domain = lift; non-fluents = nf; init-state { tries = 7; };
    max-nondef-actions = 1; horizon = HORIZON; discount = DISCOUNT; }
"""


def written(folder, domain=LIFT, horizon=50, discount="1.0", instance=FLOORS):
    """The scheme of files with a domain and an instance."""
    (folder / "domain.rddl").write_text(textwrap.dedent(domain))
    text = instance.replace("HORIZON", str(horizon)).replace("DISCOUNT", discount)
    (folder / "instance.rddl").write_text(textwrap.dedent(text))
    return f"rddl:{folder / 'domain.rddl'},{folder / 'instance.rddl'}"


def outcomes(ssp, state, action):
    """Next state and cost to probability, of one choice."""
    choice = ssp.choice_index(ssp.state_index(state), action)
    span = range(ssp.choice_outcomes[choice], ssp.choice_outcomes[choice + 1])
    keys = [(ssp.states[ssp.outcome_target[o]], ssp.outcome_cost[o]) for o in span]
    return dict(zip(keys, (ssp.outcome_probability[o] for o in span), strict=True))


def test_a_problem_enumerated_by_hand(tmp_path):
    """Levels drawn by `Discrete`, luck on either floor, a next value that looks at another one."""
    ssp = tp.read(written(tmp_path), constants={"horizon": "none"})
    assert set(ssp.states) == {"at=low tries=7", "at=mid tries=7", "done"}
    assert outcomes(ssp, "at=low tries=7", "go") == {
        ("at=low tries=7", 1): 0.25,
        ("at=mid tries=7", 1): 0.5,
        ("done", 1): 0.25,
    }
    # One of two floors: 1 - 3/4 1/2.
    assert outcomes(ssp, "at=mid tries=7", "leap") == {
        ("done", 3): 0.625,
        ("at=mid tries=7", 3): 0.375,
    }
    assert outcomes(ssp, "at=mid tries=7", "noop") == {("at=mid tries=7", 1): 1.0}
    assert {ssp.choice_name(k) for k in range(ssp.n_choices) if ssp.choice_state[k] == 0} == {
        "noop",
        "go",
    }
    # low: L = 1 + L/4 + M/2, mid: M = 3 / (5/8).
    mid = F(3) / F(5, 8)
    assert tp.solve_expected(ssp).cost() == pytest.approx(float((1 + mid / 2) / F(3, 4)), rel=1e-12)


def test_what_may_follow_a_state_is_found_without_any_other(tmp_path):
    """For instances whose states cannot be listed: what follows the start, by hand as above."""
    location = written(tmp_path)
    model = rddl.checked(*rddl.files_of(location.removeprefix("rddl:"), location), location)
    problem = rddl.GroundProblem(model, location)
    assert problem.named(problem.start) == "at=low tries=7" and not problem.ended(problem.start)
    assert problem.actions(problem.start) == ["noop", "go"]
    found = dict.fromkeys(["at=low tries=7", "at=mid tries=7", "at=high tries=7"], 0)
    for target, probability, reward in problem.outcomes(problem.start, "go"):
        found[problem.named(target)] += probability
        assert reward == -1
    assert list(found.values()) == [F(1, 4), F(1, 2), F(1, 4)]


def test_the_horizon(tmp_path):
    """Two steps: best is to go, and where that led to the middle, one leap, or to wait: it costs 1
    where a leap costs 3, and nothing comes of either any more."""
    two = tp.read(written(tmp_path, horizon=2))
    assert two.start == ("at=low tries=7", 0)
    assert tp.solve_expected(two).cost() == pytest.approx(1 + 0.75)
    half = tp.read(written(tmp_path, horizon=2, discount="0.5"))
    assert tp.solve_expected(half).cost() == pytest.approx(1 + 0.75 / 2)
    assert tp.read(written(tmp_path), constants={"horizon": 2}) == two
    for text in ("0", "-1", "many"):
        with pytest.raises(FormatError, match="the horizon must be"):
            tp.read(written(tmp_path), constants={"horizon": text})
    with pytest.raises(FormatError, match="the only constant is horizon, not steps"):
        tp.read(written(tmp_path), constants={"steps": 3})


def test_navigation_in_closed_form():
    """West k columns, across one row that may swallow the robot, back east: 2 + 2 k steps. Who is
    swallowed pays all 40."""
    perils = [0.928158446525534, 0.6369951789577802, 0.34543713989357155, 0.04896671138703823]
    ways = [(2 + 2 * k) * (1 - p) + 40 * p for k, p in enumerate(perils)]
    ssp = tp.read(NAVIGATION)
    assert tp.solve_expected(ssp).cost() == pytest.approx(min(ways), rel=1e-14)
    # The worst 5 %: nearly all of them are swallowed.
    found = tp.solve_cvar_exact(ssp, 0.05).cvar(0.05)
    p = perils[3]
    assert found == pytest.approx((40 * p + 8 * (0.05 - p)) / 0.05, rel=1e-12)


def test_crossing_traffic_in_closed_form():
    """One step west, where one sees whether the next cell will be free: with 0.7 in each step no
    car has come in. Then twice north, and back east: 4 steps and the 3/7 that one waits.
    """
    ssp = tp.read(TRAFFIC)
    assert tp.solve_expected(ssp).cost() == pytest.approx(4 + 3 / 7, rel=1e-12)


#: What the competitions took for the least: the mean of 30 runs of random actions.
PUBLISHED = {NAVIGATION: -37.27, TRAFFIC: -32.73, TIRES: -32.27}
BONUS = {TIRES: 100}


def anything(ssp):
    """Every action alike."""
    actions = [action for action in ssp.actions if action != "pay"]
    return lambda state: (
        "pay" if state == "out of time" else dict.fromkeys(actions, 1 / len(actions))
    )


@pytest.mark.parametrize("source", PUBLISHED)
def test_random_actions_are_as_good_as_published(source):
    ssp = tp.read(source)
    costs = tp.evaluate(ssp, anything(ssp), 1.0)
    mean = BONUS.get(source, 0) - costs.mean
    assert abs(mean - PUBLISHED[source]) <= 3 * costs.std / math.sqrt(30)


def spelled(name):
    """pyRDDLGym writes robot-at___x1__y2."""
    plain, _, objects = name.partition("___")
    return f"{plain}({objects.replace('__', ',')})" if objects else plain


@pytest.mark.parametrize("source", [TRAFFIC, TIRES])
def test_what_pyrddlgym_does_is_in_the_model(source):
    """Runs of random actions in its own simulator: every step is an outcome of ours at that cost,
    and outcomes come as often as their probabilities say."""
    os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
    import pyRDDLGym

    ssp = tp.read(source, constants={"horizon": "none"})
    env = pyRDDLGym.make(*map(str, rddl.files_of(source.removeprefix("rddl:"), source)))
    rng = np.random.default_rng(0)
    env.seed(0)
    fluents = {spelled(name): name for name in env.action_space}
    tried, seen = {}, {}
    for _ in range(200):
        state = named(env.reset()[0])
        assert state == ssp.start
        for _ in range(12):
            action = rng.choice(moves(ssp, state))
            chosen = {} if action == "noop" else {fluents[action]: 1}
            after, reward, *_ = env.step(chosen)
            target = named(after) if named(after) in ssp.states else "done"
            cost = -float(reward) + (BONUS.get(source, 0) if target == "done" else 0)
            assert (target, cost) in outcomes(ssp, state, action)
            tried[state, action] = tried.get((state, action), 0) + 1
            seen[state, action, target, cost] = seen.get((state, action, target, cost), 0) + 1
            state = target
            if state == "done":
                break
    score = [
        (seen.get((*choice, *way), 0) - n * p) / math.sqrt(n * p * (1 - p))
        for choice, n in tried.items()
        for way, p in outcomes(ssp, *choice).items()
        if n >= 5 and p < 1
    ]
    # Squares of standard scores have a mean of 1 and, rarely seen ones aside, a deviation of about
    # 2; both outcomes of a choice have the same.
    assert len(score) >= 10
    assert abs(float(np.mean(np.square(score))) - 1) < 4 * 2 / math.sqrt(len(score) / 2)


def moves(ssp, state):
    """The actions that may change something, and as many others."""
    leads = {action: {to for to, _ in outcomes(ssp, state, action)} for action in ssp.actions}
    some = [action for action in ssp.actions if leads[action] != {state}]
    return [*some, *ssp.actions[: len(some) + 1]]


def named(observed):
    return " ".join(spelled(name) for name, value in observed.items() if value) or "nothing"


def test_tires_and_the_bonus():
    """Z is 100 less than minus the total reward, whether one arrives or not."""
    ssp = tp.read(TIRES)
    waits = tp.evaluate(ssp, lambda state: "pay" if state == "out of time" else "noop", 1.0)
    assert waits.mean == 140  # 40 steps at 1, and no bonus
    assert any("the total reward is 100 minus the cost" in note for note in ssp.notes)
    best = tp.solve_expected(ssp)
    assert 0 < best.cost() < 100


SWITCHES = """
domain switches {
    types { lamp : object; };
    pvariables {
        on(lamp) : { state-fluent, bool, default = false };
        press(lamp) : { action-fluent, bool, default = false };
    };
    cpfs { on'(?l) = if (press(?l)) then Bernoulli(0.5) else Bernoulli(0.9 * on(?l)); };
    reward = [sum_{?l : lamp} on(?l)] - 0.5 * [sum_{?l : lamp} press(?l)];
}
"""
LAMPS = """
non-fluents nf { domain = switches; objects { lamp : {a, b}; }; }
instance one { domain = switches; non-fluents = nf; max-nondef-actions = 2; horizon = HORIZON;
    discount = DISCOUNT; }
"""


def test_rewards_of_both_signs_are_shifted(tmp_path):
    """Costs are 2 minus the reward. Both lamps pressed while both are out: -1, and then -1, 1, 1 or
    2 alike."""
    ssp = tp.read(written(tmp_path, SWITCHES, 2, instance=LAMPS))
    assert "press(a) & press(b)" in ssp.actions
    assert (
        "costs are 2 minus the reward, in every step: the total reward is 4 minus the cost"
        in ssp.notes
    )
    both = {"nothing": "press(a) & press(b)"}
    costs = tp.evaluate(
        ssp, lambda state: both.get(state, "pay" if state == "out of time" else "noop"), 1.0
    )
    assert 4 - costs.mean == pytest.approx(-1 + 3 / 4)
    assert 4 - tp.solve_expected(ssp).cost() == pytest.approx(0)
    with pytest.raises(FormatError, match="rewards are positive, up to 2, and there is no horizon"):
        tp.read(written(tmp_path, SWITCHES, 2, instance=LAMPS), constants={"horizon": "none"})


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("Bernoulli(P(?f))", "Bernoulli(3 * P(?f))", r"luck\(f2\): 1.5 is not a probability"),
        (
            "Bernoulli(P(?f))",
            "Normal(0, 1) > 0",
            r"luck\(f1\): draws of Normal cannot be enumerated",
        ),
        ("@mid : 0.5", "@mid : 0.6", r"at': 0.25, 0.6, 0.25 are not probabilities"),
        ("-1 - 2 * leap", "0 * tries", "no action can ever earn a reward other than 0"),
        ("-1 - 2 * leap", "-1 - Bernoulli(0.5)", "the reward is drawn at random"),
        ("leap => (at == @mid)", "at == @mid", "no action is allowed in the state at=low tries=7"),
        (
            "go : { action-fluent, bool, default = false }",
            "go : { action-fluent, int, default = 0 }",
            "must be of type bool",
        ),
        ("cpfs {", "cpfs { ;", "Syntax error on line"),
        ("interm-fluent, bool, level = 1", "observ-fluent, bool", "POMDP"),
    ],
)
def test_what_is_refused(tmp_path, old, new, message):
    assert old in LIFT
    with pytest.raises(FormatError, match=message):
        tp.read(written(tmp_path, LIFT.replace(old, new)))


@pytest.mark.parametrize("number", range(len(programs.ODD)))
def test_odd_programs(tmp_path, monkeypatch, number):
    """Refused for the right reason, or a problem in which pyRDDLGym's runs are found again."""
    monkeypatch.setattr(rddl, "MAX_OUTCOMES", 100_000)
    changes, refusal = programs.ODD[number]
    for name, content in programs.changed(changes).items():
        (tmp_path / name).write_bytes(content)
    source = f"rddl:{tmp_path / 'domain.rddl'},{tmp_path / 'instance.rddl'}"
    if refusal is None:
        programs.check(source, tp.read(source))
        return
    with pytest.raises(FormatError) as refused:
        tp.read(source)
    said = str(refused.value)
    assert said.startswith((source, str(tmp_path))) and "\n" not in said
    assert re.search(refusal, said.removeprefix(source)), said


def test_the_search_of_odd_programs(tmp_path):
    """Rules drawn at random and damaged texts, in a child with little memory."""
    found = batch("rddl", 0, 40, 120.0, tmp_path)
    assert (found.made, found.faults) == (40, []) and 0 < found.accepted < 40


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("rddl:Navigation", "write a domain and an instance, e.g. rddl:Navigation_MDP_ippc2011/1"),
        ("rddl:Navigation_MDP_ipcc2011/1", "did you mean 'Navigation_MDP_ippc2011'?"),
        (
            "rddl:Navigation_MDP_ippc2011/11",
            "has no instance '11'; choose among: 1, 2, 3, 4, 5, 6, 7, 8, 9, 10",
        ),
        ("rddl:one.rddl", "write domain.rddl,instance.rddl"),
        ("rddl:one.rddl,two.rddl", "one.rddl: no such file"),
    ],
)
def test_what_is_not_there(source, message):
    with pytest.raises(FormatError) as refusal:
        tp.read(source)
    assert message in str(refusal.value)


def test_on_the_command_line(capsys):
    assert main(["info", NAVIGATION]) == 0
    said = capsys.readouterr()
    assert "454" in said.out and "costs are minus the rewards" in said.err
    assert main(["solve", NAVIGATION, "--const", "horizon=12", "--method", "expected"]) == 0
    assert "least expected cost" in capsys.readouterr().out


def test_nothing_is_said_and_nothing_written(tmp_path):
    """pygame greets, ply tells of tables, and both packages would write beside their own files."""
    code = f"import tailpath as tp; print(tp.read({NAVIGATION!r}).n_states)"
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=os.environ,
        check=True,
    )
    assert (done.stdout, done.stderr) == ("454\n", "")
    assert not list(tmp_path.iterdir())
