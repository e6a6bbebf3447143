"""The risk-neutral optimum: known values, exact rationals on random models, and chains that break
ordinary solvers.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tailpath as tp
from tests import measured, reference, strategies, textbook


@pytest.mark.parametrize(("problem", "expected"), measured.EXPECTED.items())
def test_the_papers_problems(problem: str, expected: float) -> None:
    solution = tp.solve_expected(tp.read(problem))
    digits = len(str(expected).split(".")[1])
    assert round(solution.cost(), digits) == expected
    low, high = solution.bounds
    assert low <= solution.cost() <= high
    assert high - low <= 1e-11 * high


@settings(max_examples=200, deadline=None)
@given(model=strategies.solvable_models())
def test_agrees_with_rationals(model: reference.Model) -> None:
    exact = reference.expected_optimum(model)
    ssp = reference.to_ssp(model)
    solution = tp.solve_expected(ssp)
    for state, name in enumerate(ssp.states):
        if exact[name] == math.inf:
            assert solution.value[state] == math.inf
            continue
        assert solution.value[state] == pytest.approx(float(exact[name]), rel=1e-12, abs=1e-300)
        assert solution.lower[state] <= exact[name] <= solution.upper[state]
        assert solution.upper[state] - solution.lower[state] <= 1e-11 * float(
            max(exact.values(), key=_finite)
        )
    reached = reference.expected_cost(model, solution.policy)
    assert float(reached) == pytest.approx(float(exact[model.start]), rel=1e-12, abs=1e-300)


def _finite(value: Any) -> Any:
    return value if value != math.inf else -1


@settings(max_examples=100, deadline=None)
@given(model=strategies.any_models())
def test_refuses_exactly_the_starts_that_cannot_be_sure(model: reference.Model) -> None:
    exact = reference.expected_optimum(model)
    ssp = reference.to_ssp(model)
    if exact[model.start] == math.inf:
        with pytest.raises(tp.TailpathError, match=r"no policy .*reach.* a goal"):
            tp.solve_expected(ssp)
    else:
        assert tp.solve_expected(ssp).cost() == pytest.approx(
            float(exact[model.start]), rel=1e-12, abs=1e-300
        )


def test_the_refusal_names_the_traps() -> None:
    rows = [("s", "a", "g", 0.5, 1), ("s", "a", "pit", 0.5, 1), ("pit", "climb", "pit", 1, 1)]
    with pytest.raises(tp.TailpathError, match="'pit'"):
        tp.solve_expected(tp.SSP.from_outcomes(rows, "s", ["g"]))


@pytest.mark.parametrize("n", [5, 20])
def test_haddad_and_monmege(n: int) -> None:
    """The expected number of steps is 3 * 2^(n-1) - 2; value iteration stops early and sparse LU
    loses every digit.
    """
    ssp = textbook.PROBLEMS["haddad-monmege"](n).ssp
    exact = 3 * 2 ** (n - 1) - 2
    solution = tp.solve_expected(ssp)
    assert abs(solution.cost() / exact - 1) <= 1e-10
    low, high = solution.bounds
    assert low <= exact <= high
    assert high - low <= 1e-9 * exact


def test_what_doubles_cannot_prove_is_said() -> None:
    """2^100 steps: elimination finds the value, and no certificate in doubles can tell."""
    ssp = textbook.PROBLEMS["haddad-monmege"](100).ssp
    with pytest.warns(tp.TailpathWarning, match="no upper bound on an expected total"):
        solution = tp.solve_expected(ssp)
    exact = 3 * 2**99 - 2
    assert abs(solution.cost() / exact - 1) <= 1e-12
    low, high = solution.bounds
    assert low <= exact and high == math.inf


def test_haddad_and_monmege_with_a_choice() -> None:
    """A second action at the hub makes it a decision problem: it is cheaper by 7 in 10^6."""
    n = 20
    rows = []
    for x in range(1, 2 * n):
        for y in (n - 1, n + 1) if x == n else (x - 1 if x < n else x + 1, n):
            rows.append((x, "walk", y, 0.5, 1))
    better = 3 * 2 ** (n - 1) - 2 - 7
    rows.append((n, "pay", 0, 1, better))
    solution = tp.solve_expected(tp.SSP.from_outcomes(rows, n, [0, 2 * n]))
    low, high = solution.bounds
    assert low <= better <= high
    assert high - low <= 1e-9 * better
    assert solution.policy.decisions[n] == "pay"


def test_free_components_are_walked_to_their_best_exit() -> None:
    rows = [
        ("a", "over", "b", 1, 0),
        ("b", "back", "a", 0.5, 0),
        ("b", "back", "c", 0.5, 0),
        ("c", "home", "a", 1, 0),
        ("a", "leave", "g", 1, 5),
        ("c", "leave", "g", 1, 3),
    ]
    ssp = tp.SSP.from_outcomes(rows, "a", ["g"])
    solution = tp.solve_expected(ssp)
    assert solution.value.tolist() == [3, 3, 3, 0]
    assert solution.policy.decisions == {"a": "over", "b": "back", "c": "leave"}
    assert solution.bounds[0] <= 3 <= solution.bounds[1]


def test_values_are_read_only_and_named() -> None:
    solution = tp.solve_expected(tp.domains.gridworld("5x5"))
    with pytest.raises(ValueError, match="read-only"):
        solution.value[0] = 1
    assert solution.cost((4, 0)) == 0
    with pytest.raises(tp.TailpathError, match="no state 'nowhere'"):
        solution.cost("nowhere")


@settings(max_examples=50, deadline=None)
@given(data=st.data())
def test_renaming_states_changes_nothing(data: Any) -> None:
    model = data.draw(strategies.solvable_models())
    names = list(model.choices)
    swap = dict(zip(names, data.draw(st.permutations(names)), strict=True))
    renamed = [(swap.get(s, s), a, swap.get(t, t), p, c) for s, a, t, p, c in model.rows()]
    twin = tp.SSP.from_outcomes(data.draw(st.permutations(renamed)), swap[model.start], model.goals)
    first, second = tp.solve_expected(reference.to_ssp(model)), tp.solve_expected(twin)
    for name in names:
        assert np.isclose(
            first.cost(name), second.cost(swap[name]), rtol=1e-12, atol=0
        ) or first.cost(name) == second.cost(swap[name])


def arrays_model(target: Any, probability: Any, cost: Any) -> tp.SSP:
    """A model from arrays (states, choices, outcomes); the goal is one number beyond the states,
    the start state 0.
    """
    n, n_choices, n_outcomes = target.shape
    return tp.SSP(
        state_choices=np.append(np.arange(0, n * n_choices + 1, n_choices), n * n_choices),
        choice_outcomes=np.arange(0, target.size + 1, n_outcomes),
        outcome_target=target.reshape(-1),
        outcome_probability=np.broadcast_to(probability, target.shape).reshape(-1),
        outcome_cost=np.repeat(cost.reshape(-1), n_outcomes),
        choice_action=np.tile(np.arange(n_choices), n),
        is_goal=np.append(np.zeros(n, dtype=bool), True),
        start_index=0,
        states=range(n + 1),
        actions=range(n_choices),
    )


def test_a_long_way_does_not_widen_the_bounds() -> None:
    """A hundred thousand steps, each of which may fail: n / p in closed form."""
    n = 100_000
    target = np.stack([np.arange(n) + 1, np.arange(n)], axis=1).reshape(n, 1, 2)
    solution = tp.solve_expected(arrays_model(target, [0.25, 0.75], np.ones((n, 1))))
    assert solution.method == "value iteration"
    for state in (0, n // 2, n - 1):
        assert solution.lower[state] <= 4 * (n - state) <= solution.upper[state]
    low, high = solution.bounds
    assert high - low <= 1e-13 * high


def test_a_free_way_is_free_in_whatever_order_it_is_given() -> None:
    """Values are exactly 0 where nothing needs to be paid, also on a long row of leaking cycles
    that costs nothing.
    """
    n = 3_000
    place = np.random.default_rng(5).permutation(n)
    after, before = np.append(place, n)[1:], place[np.maximum(np.arange(n) - 1, 0)]
    target, cost = np.empty((n, 2, 2), dtype=np.int64), np.zeros((n, 2))
    target[place, 0], target[place, 1] = np.stack([after, before], axis=1), n
    cost[:, 1] = 7
    solution = tp.solve_expected(arrays_model(target, [0.75, 0.25], cost))
    assert not solution.value.any()
    assert not solution.lower.any()
    assert solution.upper.max() <= 1e-10


def walk(n: int, back: float, choices: int) -> tp.SSP:
    """One step on, or back with a probability; where there are more choices, each slips a little
    more than the one before.
    """
    slips = back + np.arange(choices) / 64
    rows = n * choices
    on = np.repeat(np.arange(1, n + 1), choices)
    return tp.SSP(
        state_choices=np.append(np.arange(n + 1) * choices, rows),
        choice_outcomes=np.arange(rows + 1) * 2,
        outcome_target=np.column_stack([on, np.maximum(on - 2, 0)]).reshape(-1),
        outcome_probability=np.column_stack([1 - np.tile(slips, n), np.tile(slips, n)]).reshape(-1),
        outcome_cost=np.ones(2 * rows),
        choice_action=np.tile(np.arange(choices, dtype=np.int32), n),
        is_goal=np.append(np.zeros(n, dtype=np.bool_), True),
        start_index=0,
        states=range(n + 1),
        actions=[str(k) for k in range(choices)],
    )


@pytest.mark.parametrize("choices", [1, 2])
def test_a_walk_that_slips_back_has_narrow_bounds(choices: int) -> None:
    """Closed forms: with 3/8 the start is 4 n - 6 (1 - (3/5)^n) from the goal, with 1/2 it is n (n
    + 1).
    """
    n = 20_000
    low, high = tp.solve_expected(walk(n, 0.375, choices)).bounds
    assert low <= 4 * n - 6 * (1 - Fraction(3, 5) ** n) <= high
    assert high - low <= 1e-12 * high
    low, high = tp.solve_expected(walk(n, 0.5, choices)).bounds
    assert low <= n * (n + 1) <= high
    assert high - low <= 1e-9 * high


@pytest.mark.parametrize("free", [False, True])
def test_a_rare_exit_is_found_by_leaps(free: bool) -> None:
    """Every state jumps anywhere and leaves once in 2^17 steps: plain sweeps would need millions.
    The dearer choice only waits.
    """
    n, leave = 3_000, 2.0**-17
    target = np.random.default_rng(1).integers(0, n, (n, 2, 3))
    target[:, 0, 0] = n
    probability = np.empty((n, 2, 3))
    probability[:, 0], probability[:, 1] = [leave, 0.5, 0.5 - leave], [0.5, 0.25, 0.25]
    cost = np.full((n, 2), 2.0)
    cost[:, 1] = 0.0 if free else 3.0
    # Waiting for nothing leads nowhere, so that it must cost something somewhere: at the start's
    # neighbours.
    if free:
        cost[::2, 1] = 3.0
        target[1::2, 1] = np.random.default_rng(2).integers(0, n // 2, (n // 2, 3)) * 2
    solution = tp.solve_expected(arrays_model(target, probability, cost))
    assert solution.method == "value iteration"
    # Waiting once for free saves a step but keeps the chance of leaving for later: no state gains
    # or loses more than one step.
    exact = 2 / leave
    if not free:
        assert np.all(solution.lower[:n] <= exact) and np.all(exact <= solution.upper[:n])
    assert np.all(np.abs(solution.value[:n] - exact) <= (3 if free else 1e-4))
    low, high = solution.bounds
    assert high - low <= 1e-9 * high


@pytest.mark.parametrize(
    "number", [3000141, 2001850, 3001571, 3002197, 3001212, 2002480, 2602000010]
)
def test_numbers_at_the_edges_of_the_floats(number):
    """Models that the search has found: lower bounds of infinity, values outside of their bounds,
    divisions by 0, sums that overflow; and a budget that ties with another but for 1e-13, so that
    what the search had moved was still true.
    """
    from tests.fuzz import models

    assert models.tried(number, models.attempt)[0] is None


@pytest.mark.filterwarnings("ignore::tailpath.TailpathWarning")
def test_a_cost_met_by_a_product_below_the_floats_counts():
    """t is met 1e90 times before the goal, and each time 1 is paid with 1e-200: no float holds the
    probability of paying within one attempt, 1e-400. Bounds hold, however wide.
    """
    rows = [("s", "a", "s", 1, 0), ("s", "a", "t", 1e-200, 0), ("s", "a", "g", 1e-290, 0)]
    rows += [("t", "a", "u", 1e-200, 1), ("t", "a", "s", 1, 0), ("u", "a", "s", 1, 0)]
    low, high = tp.solve_expected(tp.SSP.from_outcomes(rows, "s", ["g"])).bounds
    tiny = Fraction("1e-200")
    assert low <= 10**90 * tiny / (1 + tiny) <= high


@pytest.mark.filterwarnings("ignore::tailpath.TailpathWarning", "ignore::RuntimeWarning")
def test_expected_costs_beyond_the_floats_are_refused():
    """1e300 for each of 1e100 steps: one number that no float holds."""
    rows = [
        (0, 0, 0, 1.0, 1e300),
        (0, 0, 2, 1e-100, 7),
        (0, 0, 1, 1e-290, 1e300),
        (0, 1, 0, 0.4375, 7),
        (0, 1, 1, 0.5625, 7),
    ]
    rows += [
        (1, 0, 0, 0.339508606803691, 7),
        (1, 0, 1, 0.33878450602465515, 1),
        (1, 0, 1, 0.32170688717165374, 1e150),
    ]
    with pytest.raises(tp.TailpathError, match="the expected costs are too large to compute with"):
        tp.solve_expected(tp.SSP.from_outcomes(rows, 0, [2]))
