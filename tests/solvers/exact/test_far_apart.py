"""Costs of very different size: a long table of which few budgets can be met, against fractions."""

from __future__ import annotations

import random
from fractions import Fraction
from functools import cache
from typing import Any

import pytest

import tailpath as tp

ALPHAS = (0.01, 0.05, 0.3, 1.0)


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


@pytest.mark.parametrize("seed", range(4))
def test_costs_far_apart_agree_with_fractions(seed: int) -> None:
    ssp = layered(10, (1, 1_003, 9_999), seed)
    best = tp.solve_cvar_exact(ssp, 0.01)
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


def test_free_components_and_free_cycles_far_from_the_goal() -> None:
    """A hall of three rooms joined by free moves, one with a door that sticks, far from
    the goal.
    """
    far = 1_003
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
    best = tp.solve_cvar_exact(ssp, 0.01)
    assert best.cvar(0.01) == 41
    assert best.policy(0.01).action("room0", 41) == "to 1"
    assert tp.evaluate(ssp, best.policy(0.01), 0.01).cvar(0.01) == 41
