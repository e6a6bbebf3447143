"""Runners: as the policy says where the model was right, and something told where it was not."""

from fractions import Fraction

import numpy as np
import pytest

import tailpath as tp
from tailpath import SSP, HistoryPolicy, MarkovPolicy, MemoryPolicy
from tailpath.errors import OptionError, PolicyError
from tailpath.policies.running import Runner

# Home to work: the highway is fast or jammed, the back road is slow and sure; in between one may
# change.
ROADS = SSP.from_outcomes(
    [
        ("home", "highway", "mid", 0.75, 10),
        ("home", "highway", "mid", 0.25, 30),
        ("home", "road", "mid", 1, 20),
        ("mid", "highway", "work", 0.75, 10),
        ("mid", "highway", "work", 0.25, 40),
        ("mid", "road", "work", 1, 20),
        ("ferry", "sail", "work", 1, 5),
    ],
    "home",
    ["work"],
)
BEST = tp.solve_cvar_exact(ROADS, 0.1)


def budget(left):
    """The policy with a budget of so many minutes (units of 5)."""
    policy = BEST.policy(0.1)
    assert policy.unit == 5
    return policy.with_budget(left // 5)


@pytest.mark.parametrize(
    "policy",
    [
        BEST.policy(0.1),
        tp.solve_cvar_quantile(ROADS, [0.1, 0.3, 1]).policy(0.1),
        tp.solve_expected(ROADS).policy,
    ],
)
def test_where_the_model_is_right_a_runner_does_what_the_policy_says(policy):
    for outcome in range(8):
        runner, state, memory = policy.start_run(), "home", policy.start("home")
        while state != "work":
            action = runner.action(state)
            assert action == runner.action(state) == policy.action(state, memory)
            choice = ROADS.choice_index(ROADS.state_index(state), action)
            span = range(ROADS.choice_outcomes[choice], ROADS.choice_outcomes[choice + 1])
            taken = span[outcome % len(span)]
            cost, after = (
                float(ROADS.outcome_cost[taken]),
                ROADS.states[ROADS.outcome_target[taken]],
            )
            memory = policy.remember(memory, state, action, cost, after)
            assert runner.observe(cost, after) is None
            assert runner.memory == memory
            state = after
        assert runner.surprises == []


def test_any_cost_is_charged_exactly():
    runner = budget(40).start_run()
    assert runner.memory is None
    runner.action("home")
    assert runner.memory == 8
    surprise = runner.observe(21, "mid")
    assert (surprise.step, surprise.kind) == (1, "cost")
    assert (
        surprise.text
        == "'road' in 'home' led to 'mid' at a cost of 21, where the model says 20; it counts as"
        " observed"
    )
    assert runner.memory == 8 - Fraction(21, 5), "19 minutes are left"
    assert runner.action("mid") == budget(15).action("mid", 3), (
        "and count as 15: spending is rounded up to the unit"
    )
    runner.observe(0.1, "mid")
    assert runner.memory == Fraction(189, 50), "a broken unit is not rounded twice"
    assert runner.cost == Fraction(211, 10) and runner.steps == 2
    runner.action("mid")
    runner.observe(1000, "work")
    assert runner.memory == 0


def test_what_the_model_does_not_know_is_told_apart():
    runner = budget(40).start_run()
    runner.action("home")
    assert runner.observe(20, "ferry").kind == "forbidden"
    assert "'road' in 'home' does not lead to 'ferry'" in runner.surprises[-1].text
    assert runner.memory == 4 and runner.action("ferry") == "sail"
    assert runner.observe(5, "harbour").kind == "unknown"
    with pytest.raises(
        PolicyError, match=r"^the model has no state 'harbour', so the policy has no action there$"
    ):
        runner.action("harbour")
    assert runner.action("mid") in ("road", "highway"), "a known state, and the run goes on"
    assert [surprise.kind for surprise in runner.surprises] == ["forbidden", "unknown", "moved"]
    runner.observe(20, "work")
    with pytest.raises(PolicyError, match=r"^the run has arrived in 'work'"):
        runner.action("work")
    assert repr(runner) == "<Runner in 'work' after 3 steps and a cost of 45, 3 surprises>"


def test_an_atom_moves_as_for_the_nearest_cost():
    policy = tp.solve_cvar_quantile(ROADS, tp.log_atoms(0.01, 5)).policy(0.3)
    runner = policy.start_run()
    action = runner.action("home")
    costs = sorted(
        float(c)
        for c in ROADS.outcome_cost[ROADS.choice_outcomes[ROADS.choice_index(0, action)] :][
            : 2 if action == "highway" else 1
        ]
    )
    for near in costs:
        again = policy.start_run()
        again.action("home")
        again.observe(near + 0.25, "mid")
        assert again.memory == policy.remember(policy.start("home"), "home", action, near, "mid")
    runner.observe(3, "ferry")
    assert runner.memory == policy.start("home"), "no outcome leads there: the atom stays"


def test_own_atoms_in_a_state_that_the_model_lacks():
    """The nearest atom of a state needs the state; elsewhere the atom stays."""
    own = {"home": [0.1, 1.0], "mid": [0.3, 1.0], "ferry": [1.0]}
    policy = tp.solve_cvar_quantile(ROADS, own).policy(0.1)
    runner = policy.start_run()
    runner.action("home")
    before = runner.memory
    assert runner.observe(20, "harbour").kind == "unknown" and runner.memory == before
    assert runner.action("ferry") == "sail", "its only atom is 1"


def test_a_function_that_does_not_know_a_step_forgets_nothing():
    def remember(memory, state, action, cost, next_state):
        if next_state == "ferry":
            raise PolicyError("no way to the ferry")
        return memory + 1

    runner = MemoryPolicy(0, lambda state, memory: "road", remember).start_run()
    runner.action("home")
    assert runner.observe(20, "ferry").kind == "cost" and runner.memory == 0
    assert runner.action("mid") == "road" and runner.memory == 0, "moved by something else"


def test_policies_without_a_model():
    runner = MarkovPolicy({"home": "road", "mid": {"road": 1.0}}).start_run()
    assert (
        runner.action("home") == "road"
        and runner.observe(99, "mid") is None
        and runner.action("mid") == "road"
    )
    table = MemoryPolicy(
        "m", {("a", "m"): "go", ("a", "n"): "stop"}, {("m", "a", "go", 2.0, "a"): "n"}
    )
    runner = table.start_run()
    runner.action("a")
    assert runner.observe(3, "a").kind == "cost"
    assert runner.action("a") == "stop", "the nearest step the table knows"
    seen = HistoryPolicy(lambda history: len(history)).start_run()
    assert seen.action("a") == 1
    seen.observe(7, "b")
    assert seen.action("b") == 4
    assert Runner(MarkovPolicy({1: 2})).action(np.int64(1)) == 2


def test_mixed_decisions_are_drawn_by_seed():
    policy = MarkovPolicy({0: {"a": 0.5, "b": 0.5}})

    def actions(seed):
        runner, found = policy.start_run(seed=seed), []
        for _ in range(40):
            found.append(runner.action(0))
            runner.observe(1, 0)
        return found

    assert actions(1) == actions(1) != actions(2)
    assert set(actions(1)) == {"a", "b"}


def test_what_is_refused():
    runner = budget(40).start_run()
    with pytest.raises(PolicyError, match=r"action.* first$"):
        runner.observe(1, "mid")
    runner.action("home")
    for cost in ("dear", float("nan"), float("inf"), None):
        with pytest.raises(OptionError, match=r"^a cost must be a number, not "):
            runner.observe(cost, "mid")
    with pytest.raises(PolicyError, match=r"^the model has no state 'nowhere'"):
        budget(40).start_run().action("nowhere")
