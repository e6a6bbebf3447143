"""Bounds that a row contradicts are named by state, action and number, and so is every other fault
of what a user gives.
"""

import dataclasses
import math

import pytest

import tailpath as tp
from tailpath.errors import GoalUnreachableError, ModelError, OptionError, PolicyError
from tests.lazy.models import Rows, model_of, truth

LADDER = Rows(
    "low",
    {
        "low": {"up": [(0.5, "high", 2), (0.5, "low", 2)], "jump": [(1, "goal", 10)]},
        "high": {"up": [(1, "goal", 2)]},
    },
)


def solved(model=LADDER, alpha=0.1, **given):
    return tp.solve_cvar_lazy(model, alpha, gap=0, **given)


@pytest.mark.parametrize(
    ("name", "bound", "said"),
    [
        ("heuristic", {"low": 7, "high": 2}, r"heuristic\('low'\) is 7, but action 'up' .* 6.5"),
        (
            "heuristic",
            {"low": 6, "high": 2.1},
            r"heuristic\('high'\) is 2.1, but action 'up' .* 2 ",
        ),
        ("least", {"low": 5, "high": 2}, r"least\('low'\) is 5, but action 'up' .* more than 4"),
        ("upper", {"low": 5, "high": 2}, r"upper\('low'\) is 5, .* its best action needs 5.5"),
        ("surely", {"low": 9, "high": 2}, r"surely\('low'\) is 9, .* its best action needs 10"),
        ("heuristic", {"low": -1}, r"heuristic\('low'\) is -1, not a number of 0 or more"),
        ("upper", {"low": math.nan}, r"upper\('low'\) is nan, not a number"),
        ("surely", {"low": "x"}, r"surely\('low'\) is 'x', not a number"),
    ],
)
def test_a_wrong_bound_is_named(name, bound, said):
    with pytest.raises(ModelError, match=said):
        solved(alpha=1, **{name: bound.get})


@pytest.mark.parametrize("seed", range(28))
def test_a_perfect_bound_that_is_moved_is_named(seed):
    """Too much of one that is below, and too little of one that is above, at the start."""
    model, _ = model_of(seed)
    ssp = tp.SSP.from_functions(model)
    for name, perfect in truth(model, ssp).items():
        low = name in ("heuristic", "least")
        if not 0 < perfect[model.start] < math.inf:
            continue
        moved = {**perfect, model.start: perfect[model.start] * (1.1 if low else 0.9)}
        with pytest.raises(ModelError, match=rf"{name}\("):
            tp.solve_cvar_lazy(model, 0.1, gap=0, **{name: moved.get})


def test_a_bound_on_the_mean_says_nothing_of_every_run():
    """Behind the corridor half of the runs cost 0, so that a mean of 10 proves no less than 5 over
    a budget of 10; the rows that were expanded could not tell.
    """
    model = Rows(0, {0: {"on": [(1, 1, 0)]}, 1: {"draw": [(0.5, "goal", 0), (0.5, "goal", 20)]}})
    found = tp.solve_cvar_lazy(
        model, 1 / 2, max_states=1, heuristic=lambda s: 10, upper=lambda s: 10
    )
    assert found.bounds()[0] <= 20 <= found.bounds()[1]


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([(0.5, "goal", 1)], "action 'go' sum to 0.5, not 1"),
        ([(1.5, "goal", 1)], "-> 'goal' has probability 1.5"),
        ([(1, "goal", -1)], "costs -1; costs below 0"),
        ([(1, "goal", "x")], "costs 'x', not a finite number"),
        ([(1, "goal", math.inf)], "not a finite number"),
        ([(0.5, "goal", 1), (0.5, "goal", 1e-9)], "no common unit .* round them to a grid"),
        ([(1, "goal")], "expected"),
        ([], "sum to 0, not 1"),
    ],
)
def test_a_wrong_row_is_named(rows, said):
    with pytest.raises(ModelError, match=said):
        solved(Rows("s", {"s": {"go": rows}}))


def test_functions_that_are_none_are_refused():
    with pytest.raises(OptionError, match="heuristic must be a function"):
        solved(heuristic=3)
    with pytest.raises(OptionError, match="outcomes must be a function"):
        tp.ImplicitSSP(0, list, None, bool)
    with pytest.raises(OptionError, match="has no start"):
        tp.solve_cvar_lazy(object(), 0.1)


def test_an_action_twice_and_a_state_without_any_are_named():
    with pytest.raises(ModelError, match=r"actions\(0\) has 'go' twice"):
        tp.solve_cvar_lazy(
            tp.ImplicitSSP(0, lambda s: ["go", "go"], lambda s, a: [(1, 1, 1)], bool), 0.1
        )
    with pytest.raises(ModelError, match="is empty"):
        tp.solve_cvar_lazy(tp.ImplicitSSP(0, lambda s: [], lambda s, a: [], bool), 0.1)


def test_a_start_that_cannot_arrive_is_named():
    stuck = Rows("s", {"s": {"wait": [(1, "t", 1)]}, "t": {"wait": [(1, "s", 1)]}})
    with pytest.raises(GoalUnreachableError, match="'s'"):
        solved(stuck)


def test_a_start_that_is_a_goal_costs_nothing():
    found = solved(Rows("goal", {}))
    assert found.bounds() == (0, 0)
    assert "goal" in repr(found)


def test_without_a_bound_above_there_is_no_policy_until_one_arrives():
    found = tp.solve_cvar_lazy(LADDER, 0.1, max_states=1)
    assert found.bounds() == (10.0, 10.0) or found.bounds()[1] >= 10
    chain = Rows(0, {k: {"on": [(1, k + 1 if k < 9 else "goal", 1)]} for k in range(10)})
    found = tp.solve_cvar_lazy(chain, 0.1, max_states=3)
    assert found.bounds()[1] == math.inf
    with pytest.raises(OptionError, match="no policy is known"):
        found.policy()
    assert found.refine().bounds()[1] == pytest.approx(10)


def test_states_of_which_nothing_is_known_are_named_by_the_policy():
    """The policy keeps to what is known; put elsewhere, it says so."""
    model = Rows(
        0, {0: {"sure": [(1, "goal", 5)], "far": [(1, 1, 9)]}, 1: {"on": [(1, "goal", 1)]}}
    )
    policy = tp.solve_cvar_lazy(model, 0.1, max_states=1).policy()
    assert policy.start_run().action(0) == "sure"
    with pytest.raises(PolicyError, match="the state 1 was not expanded"):
        policy.action(1, 3)


def test_only_what_the_alphas_ask_for_is_answered():
    with pytest.raises(OptionError, match=r"solve with alpha=0\.01"):
        solved(alpha=0.1).bounds(0.01)


def test_ctrl_c_keeps_the_bracket():
    """At any moment: between rounds, and while states are expanded."""
    model, _ = model_of(9)
    exact = tp.solve_cvar_exact(tp.SSP.from_functions(model), 0.1)

    def interrupting(after):
        calls = iter(range(after))

        def outcomes(state, action):
            if next(calls, None) is None:
                raise KeyboardInterrupt
            return model.outcomes(state, action)

        return tp.ImplicitSSP(model.start, model.actions, outcomes, model.is_goal)

    with pytest.raises(KeyboardInterrupt):
        tp.solve_cvar_lazy(interrupting(2), 0.1)
    for after in (5, 6, 9, 14):
        found = tp.solve_cvar_lazy(interrupting(after), 0.1, gap=0, give_up=10**4)
        assert found.stopped == "interrupted"
        assert found.bounds()[0] <= exact.bounds(0.1)[1] <= found.bounds()[1] * (1 + 1e-9)
        found.search.expansion.model = giving_up_as(model, found)
        low, high = found.refine(1e-6).bounds()
        assert low <= exact.bounds(0.1)[1]
        assert high - low < 1e-5


def giving_up_as(model, found):
    """The model without interrupts, with the same way of giving up."""
    before = found.search.expansion.model

    def outcomes(state, action):
        if action in model.choices[state]:
            return model.outcomes(state, action)
        return before.outcomes(state, action)

    return dataclasses.replace(before, outcomes=outcomes)


def test_probabilities_that_miss_1_by_rounding_are_scaled_with_a_warning():
    third = round(1 / 3, 10)
    model = Rows("s", {"s": {"go": [(third, "goal", 1), (third, "goal", 2), (third, "goal", 3)]}})
    with pytest.warns(tp.TailpathWarning, match="scaled to sum to 1; state 's', action 'go'"):
        assert solved(model, 1).cvar() == pytest.approx(2)


def test_an_interrupt_behind_the_last_row_of_a_state_does_no_harm():
    """The state counts as expanded, and gets its number before anything else is done."""
    expansion = tp.solve_cvar_lazy(LADDER, 1.0, max_states=1).search.expansion
    expansion.rank[expansion.found["low"]] = -1
    rows = expansion.snapshot()
    assert rows.rank[expansion.found["low"]] == 0
