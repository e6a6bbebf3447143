"""Limits and the frontier against all policies of small models, mixed in rationals: at corners,
crossings, steps, and between them.
"""

from __future__ import annotations

import itertools
import random
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import tailpath as tp
from tailpath.solvers.objectives import solve as solve_module
from tailpath.solvers.objectives.chords import X0, X1, envelope_of, means_at
from tests.ledger.models import MODELS
from tests.reference import Model, to_ssp
from tests.solvers.objectives.lotteries import Curve, draw_model

ALPHAS = [0.05, 0.1, 0.2, 0.25, 0.5]
HAIR = Fraction(1, 10**12)


def problem(seed: int) -> tuple[Model, float, Curve]:
    model, alpha = draw_model(seed), random.Random(seed).choice(ALPHAS)
    return model, alpha, Curve(model, Fraction(str(alpha)))


def some(places: list[Fraction], count: int, seed: int) -> list[Fraction]:
    return (
        places
        if len(places) <= count
        else sorted([places[0], *random.Random(seed).sample(places, count), places[-1]])
    )


def check_bounds(bounds: tuple[float, float], curve: Curve, risk: float) -> None:
    """They hold the least mean, and are as narrow as the risk and the mean can be told."""
    exact = max(
        Fraction(risk), curve.least_risk
    )  # rounding may have taken the least risk below itself
    low, high = bounds
    assert low <= curve.at(exact) <= high
    assert low >= curve.at(exact * (1 + HAIR)) * (1 - HAIR)
    assert high <= curve.at(max(exact * (1 - HAIR), curve.least_risk)) * (1 + HAIR)


@pytest.mark.parametrize("seed", range(120))
def test_the_frontier_is_that_of_all_policies(seed: int) -> None:
    model, alpha, curve = problem(seed)
    ssp = to_ssp(model)
    found = tp.frontier(ssp, tp.CVaR(alpha))
    assert found.gap == 0
    assert (found.risk[0], found.mean[-1]) == pytest.approx(
        (float(curve.least_risk), float(curve.least_mean)), rel=1e-12
    )
    assert found.risk[-1] == pytest.approx(float(curve.most_risk), rel=1e-9)
    for place in some(curve.places(), 60, seed):
        check_bounds(found.bounds(float(place)), curve, float(place))
    assert curve.least_risk == 0 or found.bounds(float(curve.least_risk) * (1 - 1e-9)) == (
        np.inf,
        np.inf,
    )
    for corner in found:
        costs = tp.evaluate(ssp, corner.policy, alpha)
        assert (costs.mean, costs.cvar(alpha)) == pytest.approx(
            (corner.mean, corner.risk), rel=1e-12
        )
    # Every crossing and step is a corner: the witness is straight between two of them.
    for a, b in itertools.pairwise(found):
        for share in (Fraction(1, 3), Fraction(2, 3)):
            place = Fraction(a.risk) + share * (Fraction(b.risk) - Fraction(a.risk))
            assert a.mean + float(share) * (b.before - a.mean) == pytest.approx(
                float(curve.at(place)), rel=1e-9
            )


@pytest.mark.parametrize("seed", range(200, 280))
def test_limits_are_kept_at_the_least_mean_of_all_policies(seed: int) -> None:
    model, alpha, curve = problem(seed)
    ssp = to_ssp(model)
    for place in some(curve.places(), 6, seed):
        limit = tp.CVaR(alpha) <= float(place)
        found = tp.solve(ssp, tp.Mean(), [limit])
        check_bounds(found.bounds, curve, limit.bound)
        assert found.bounds[0] <= found.value <= found.bounds[1]
        assert found.risk("mean") == pytest.approx(found.value, rel=1e-12)
        assert found.risk(limit.measure) <= limit.bound * (1 + 1e-11)


#: Two lotteries; a curve is not convex where two budgets cross; a corner that is the risk-neutral
#: policy only at the wrong budget.
BY_HAND: list[Any] = [
    (
        [
            ("s", "safe", "g", 1, 22),
            ("s", "risky", "g", 0.6, 17),
            ("s", "risky", "g", 0.2, 24),
            ("s", "risky", "g", 0.2, 33),
        ],
        0.2,
        29.86,
    ),
    (
        [
            ("s", "safe", "g", 1, 19),
            ("s", "risky", "g", 0.1, 26),
            ("s", "risky", "g", 0.1, 38),
            ("s", "risky", "g", 0.8, 12),
        ],
        0.05,
        25,
    ),
]


@pytest.mark.parametrize(
    ("rows", "alpha", "bound", "mean"),
    [(*BY_HAND[0], 22 - 0.4 * 5.86 / 9), (*BY_HAND[1], 19 - 3 * 6 / 52)],
)
def test_by_hand(rows: Any, alpha: float, bound: float, mean: float) -> None:
    ssp = tp.SSP.from_outcomes(rows, "s", ["g"])
    for low, high in (
        tp.solve(ssp, "mean", [tp.CVaR(alpha) <= bound]).bounds,
        tp.frontier(ssp, tp.CVaR(alpha)).bounds(bound),
    ):
        assert low <= mean <= high and high - low <= 1e-9


def test_a_policy_that_another_budget_makes_safer() -> None:
    """Going fast, with a chance to try again, is best on average and nearly the safest: for most
    budgets it looks risky.
    """
    rows: list[Any] = [
        ("s", "go", "m", 0.64, 5),
        ("s", "go", "t", 0.36, 0.125),
        ("t", "go", "m", 1, 0.125),
        ("m", "slow", "g", 1, 5),
        ("m", "fast", "g", 0.994, 1),
        ("m", "fast", "m", 0.006, 1),
    ]
    ssp = tp.SSP.from_outcomes(rows, "s", ["g"])
    found = tp.frontier(ssp, tp.CVaR(0.05))
    fast = tp.evaluate(ssp, tp.solve_expected(ssp).policy, 0.05)
    assert (found[-1].risk, found[-1].mean) == pytest.approx(
        (fast.cvar(0.05), fast.mean), rel=1e-12
    )
    assert found.least_mean(11) == pytest.approx(4.296036217303823, rel=1e-12)


def test_a_limit_that_holds_of_itself_costs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """However loose it is: no table is made."""
    monkeypatch.setattr(solve_module, "least_means", None)
    ssp = tp.read("gridworld:8x9")
    for bound in ("100", "1e4", "1e9"):
        found = tp.solve(ssp, "mean", [f"cvar(0.05) <= {bound}"])
        assert found.bounds == tp.solve_expected(ssp).bounds and found.words == (
            f"cvar(0.05) <= {float(bound):.12g} holds anyway",
        )


def test_the_lowest_of_many_chords() -> None:
    """Against all chords at many places; ends shared by several, and chords that lie on one
    another, are drawn often.
    """
    draw = np.random.default_rng(7)
    for count in (1, 2, 3, 7, 40):
        for _ in range(20):
            chords = np.zeros((9, count))
            x = np.sort(draw.integers(0, 12, (2, count)), axis=0).astype(float)
            chords[X0], chords[X1] = x[0], x[1] + 1
            chords[1], chords[5] = np.sort(draw.integers(0, 9, (2, count)), axis=0)[::-1]
            found = envelope_of(chords, np.arange(count), 2.0, 10.0)
            half = count // 2
            again = envelope_of(chords, np.arange(half), 2.0, 10.0).with_more(
                chords, np.arange(half, count)
            )
            places = (
                np.linspace(2, 10, 641)[1:-1] + 1e-7
            )  # beside the ends, where a step has two values
            inside = (chords[X0][:, None] <= places) & (places <= chords[X1][:, None])
            all_heights = np.stack(
                [means_at(chords, np.full(len(places), k), places) for k in range(count)]
            )
            lowest = np.where(inside, all_heights, np.inf).min(axis=0)
            for each in (found, again):
                assert np.all(np.diff(each.start) > 0)
                assert each.at(chords, places) == pytest.approx(lowest, abs=1e-12)


def test_prices_near_the_largest_float_on_joint_blocks():
    """States joined by moves that cost nothing: the search for the safest asks prices of 1e300,
    which must not overflow.
    """
    ssp = MODELS["free 1"].build()
    found = tp.frontier(ssp, tp.Late(2))
    assert len(found) == 3
    for corner in found:
        costs = tp.evaluate(ssp, corner.policy, 1e-6)
        assert corner.mean == pytest.approx(costs.mean, rel=1e-12)
        assert corner.risk == pytest.approx(tp.Late(2)(costs), rel=1e-12, abs=1e-15)
    for share in (0.1, 0.35, 0.6, 0.9):
        limit = found[0].risk + share * (found[-1].risk - found[0].risk)
        low, high = found.bounds(limit)
        general = tp.solve(ssp, tp.Mean(), [tp.Late(2) <= limit, tp.Late(100) <= 1])
        assert low <= general.bounds[1] * (1 + 1e-9) and general.bounds[0] <= high * (1 + 1e-9)
