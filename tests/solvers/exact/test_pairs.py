"""The table of pairs that the start can reach: models that are too long for the full table, and
agreement with it where both are possible.
"""

from __future__ import annotations

import random
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tailpath as tp
from tailpath.errors import LimitExceededError
from tailpath.model.border import prepare
from tailpath.solvers.exact.solver import solve_prepared
from tests.solvers.exact.behaviour import assert_behaves

ALPHAS = (0.01, 0.05, 0.3, 1.0)


def chain(steps: int) -> tp.SSP:
    return tp.SSP.from_outcomes([(i, "on", i + 1, 1.0, 1) for i in range(steps)], 0, [steps])


def layered(layers: int, costs: tuple[int, ...], seed: int) -> tp.SSP:
    """Two choices a layer, each with two outcomes, to either state of the next layer; dyadic
    probabilities.
    """
    draw = random.Random(seed)
    rows: list[Any] = []
    for layer in range(layers):
        for state in range(2 if layer else 1):
            for action in "ab":
                p = draw.randrange(1, 16) / 16
                for to, q in ((0, p), (1, 1 - p)):
                    rows.append(
                        (
                            (layer, state),
                            action,
                            (layer + 1, to) if layer + 1 < layers else "goal",
                            q,
                            draw.choice(costs),
                        )
                    )
    return tp.SSP.from_outcomes(rows, (0, 0), ["goal"])


def of_pairs(solution: Any) -> bool:
    """Whether the table is that of pairs: it has some budgets only, the full one has them all."""
    return not np.array_equal(solution.budgets, np.arange(len(solution.budgets)))


def least_cvar(ssp: tp.SSP, alpha: float) -> Fraction:
    """By fractions, on a model without cycles: all budgets at which some run arrives."""
    assert ssp.cost_unit is not None
    outcomes = [
        [
            [
                (
                    int(ssp.outcome_target[o]),
                    Fraction(float(ssp.outcome_probability[o])),
                    int(ssp.outcome_level[o]),
                )
                for o in range(ssp.choice_outcomes[k], ssp.choice_outcomes[k + 1])
            ]
            for k in range(ssp.state_choices[s], ssp.state_choices[s + 1])
        ]
        for s in range(ssp.n_states)
    ]

    @cache
    def totals(s: int) -> frozenset[int]:
        return (
            frozenset([0])
            if ssp.is_goal[s]
            else frozenset(c + z for of in outcomes[s] for t, _, c in of for z in totals(t))
        )

    @cache
    def excess(s: int, w: int) -> Fraction:
        if ssp.is_goal[s]:
            return Fraction(max(-w, 0))
        return min(sum((p * excess(t, w - c) for t, p, c in of), Fraction(0)) for of in outcomes[s])

    return (
        min(w + excess(ssp.start_index, w) / Fraction(alpha) for w in {0, *totals(ssp.start_index)})
        * ssp.cost_unit
    )


def test_a_long_chain_has_one_budget_and_no_step() -> None:
    best = tp.solve_cvar_exact(chain(100_000), 0.01)
    assert best.budgets.tolist() == [0, 100_000]
    assert len(best.largest.choice) == 0
    for alpha in ALPHAS:
        assert best.cvar(alpha) == best.var(alpha) == 100_000
        low, high = best.bounds(alpha)
        assert low <= 100_000 <= high <= low * (1 + 1e-9)
    assert tp.evaluate(chain(100_000), best.policy(0.01), 0.01).cvar(0.01) == 100_000


@pytest.mark.parametrize("seed", range(4))
def test_costs_far_apart_agree_with_fractions(seed: int) -> None:
    ssp = layered(10, (1, 1_000_003, 9_999_999), seed)
    best = tp.solve_cvar_exact(ssp, 0.01)
    assert of_pairs(best)
    for alpha in ALPHAS:
        truth = least_cvar(ssp, alpha)
        low, high = best.bounds(alpha)
        assert Fraction(low) <= truth <= Fraction(high)
        assert high - low <= 1e-10 * high
        assert best.cvar(alpha) == pytest.approx(float(truth), rel=1e-13)
        costs = tp.evaluate(ssp, best.policy(alpha), alpha)
        assert costs.cvar(alpha) == pytest.approx(float(truth), rel=1e-12)
        assert costs.var(alpha) == best.var(alpha)
        assert costs.mean == pytest.approx(best.mean(alpha), rel=1e-12)


@pytest.mark.parametrize("options", [{}, {"lexicographic": True}])
@pytest.mark.parametrize("problem", ["gridworld:8x9", "river:10x3"])
def test_both_tables_say_the_same(problem: str, options: dict[str, Any]) -> None:
    ssp = tp.read(problem)
    full, pairs = (
        solve_prepared(prepare(ssp), 0.01, pairs=which, skip=False, **options)
        for which in (False, True)
    )
    assert of_pairs(pairs) and not of_pairs(full)
    both = np.intersect1d(full.budgets, pairs.budgets)
    assert len(both) > 10
    mine, theirs = (
        solution.excess[np.searchsorted(solution.budgets, both)] for solution in (pairs, full)
    )
    assert np.array_equal(mine, theirs)
    for alpha in ALPHAS:
        # The full table also has budgets that tie with the best, and rounding may favour one.
        assert pairs.cvar(alpha) == pytest.approx(full.cvar(alpha), rel=1e-13)
        assert pairs.var(alpha) == full.var(alpha)
        mine, theirs = (
            tp.evaluate(ssp, pairs.policy(alpha), alpha),
            tp.evaluate(ssp, full.policy(alpha), alpha),
        )
        assert mine.cvar(alpha) == pytest.approx(theirs.cvar(alpha), rel=1e-12)
        assert mine.mean == pytest.approx(theirs.mean, rel=1e-12)
        met = tp.unroll(ssp, full.policy(alpha))
        assert np.array_equal(
            *(solution.largest.choices_at(met.state, met.memory) for solution in (pairs, full))
        )


def test_pairs_where_the_full_table_is_beyond_the_memory() -> None:
    ssp = layered(6, (1, 9973), 5)
    little, plenty = (
        tp.solve_cvar_exact(ssp, 0.05, max_bytes=200_000),
        tp.solve_cvar_exact(ssp, 0.05),
    )
    assert of_pairs(little) and not of_pairs(plenty)
    assert little.cvar(0.05) == plenty.cvar(0.05)
    with pytest.raises(LimitExceededError, match="GiB"):
        tp.solve_cvar_exact(tp.read("gridworld:14x16"), 0.001, max_bytes=1000)


def test_policies_of_pairs_are_policies(tmp_path: Path) -> None:
    ssp = layered(12, (1, 97), 7)
    best = solve_prepared(prepare(ssp), 0.05, pairs=True)
    policy = best.policy(0.05)
    assert of_pairs(best) and len(policy.choice) > 0
    assert_behaves(ssp, policy, tmp_path, 0.05)
    assert sum(row.visits for row in policy.table(ssp) if row.state == (0, 0)) == pytest.approx(1.0)


def test_policies_of_pairs_between_their_budgets() -> None:
    """A budget that no run has left counts as the next lower one, and with less than all of them
    the policy is risk-neutral.
    """
    ssp = layered(6, (1, 1_000_003), 3)
    policy = tp.solve_cvar_exact(ssp, 0.05).policy(0.05)
    for state in np.flatnonzero(np.diff(policy.first)).tolist():
        least = int(policy.from_budget[policy.first[state]])
        assert policy.choice_at(state, least - 0.5) == policy.risk_neutral[state]
        assert (
            policy.choice_at(state, least + 0.5)
            == policy.choice_at(state, least)
            != policy.risk_neutral[state]
        )
    assert len(policy.choice) > 0


def test_free_components_and_free_cycles_on_a_long_table() -> None:
    """A hall of three rooms joined by free moves, one with a door that sticks, far from
    the goal.
    """
    far = 1_000_003
    rows: list[Any] = [
        (f"room{i}", f"to {j}", f"room{j}", 1.0, 0) for i in range(3) for j in range(3) if i != j
    ]
    rows += [
        ("room1", "door", "room1", 0.5, 0),
        ("room1", "door", "yard", 0.5, 1),
        ("room2", "window", "yard", 1.0, 3),
    ]
    rows += [
        ("yard", "jump", "goal", 0.5, 1),
        ("yard", "jump", "goal", 0.5, far),
        ("yard", "walk", "goal", 1.0, 40),
    ]
    rows += [
        ("yard", "wait", "yard", 0.75, 0),
        ("yard", "wait", "porch", 0.25, 0),
        ("porch", "knock", "yard", 0.5, 0),
    ]
    rows += [("porch", "knock", "goal", 0.5, 50)]
    ssp = tp.SSP.from_outcomes(rows, "room0", ["goal"])
    best = solve_prepared(prepare(ssp), 0.01, pairs=True)
    assert of_pairs(best)
    assert best.cvar(0.01) == 41
    assert best.policy(0.01).action("room0", 41) == "to 1"
    assert tp.evaluate(ssp, best.policy(0.01), 0.01).cvar(0.01) == 41
