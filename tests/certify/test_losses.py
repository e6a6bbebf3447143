"""Bounds on expected losses against fractions, of distributions that are written down: whatever is
known of the tail, they enclose the truth, and where all is known they are close.
"""

from __future__ import annotations

import math
import random
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from tailpath.certify.losses import (
    dual_bounds,
    loss_bounds,
    loss_error,
    terminal_error,
    with_error,
)
from tailpath.certify.rounding import AFTERWARDS, ROUNDOFF
from tailpath.certify.totals import Enclosure
from tailpath.dp.totals import Totals
from tailpath.risk.curves import Curve, curve_of

Atoms = list[tuple[Fraction, Fraction]]
GRAIN = 256


def loss_at(curve: Curve, cost: Fraction) -> Fraction:
    """The loss in fractions."""
    x, at, after = curve.breakpoints, curve.at, curve.after
    if cost in x:
        return Fraction(at[x.index(cost)])
    if cost < x[0]:
        return Fraction(at[0])
    i = max(k for k, each in enumerate(x) if each < cost)
    if i == len(x) - 1:
        return Fraction(after[i]) + Fraction(curve.slope) * (cost - x[i])
    share = (cost - x[i]) / (x[i + 1] - x[i])
    return Fraction(after[i]) + share * (Fraction(at[i + 1]) - Fraction(after[i]))


def drawn_curve(draw: random.Random, grain: int = 4) -> Curve:
    points: list[Any] = []
    x = Fraction(draw.randint(0, 20), grain)
    for _ in range(draw.randint(1, 4)):
        points.append((x, draw.randint(-6, 9) / 4))
        if draw.random() < 0.4:
            points.append((x, draw.randint(-6, 9) / 4))
        x += Fraction(draw.randint(1, 20), grain)
    return curve_of(points, draw.choice([0, 0, 0.5, 1, 3]))


def drawn_atoms(draw: random.Random) -> Atoms:
    """Costs with masses that sum to 1, all of them floats."""
    costs = sorted(draw.sample(range(60), draw.randint(1, 7)))
    cuts = sorted(draw.sample(range(1, GRAIN), len(costs) - 1))
    masses = [b - a for a, b in zip([0, *cuts], [*cuts, GRAIN])]
    return [(Fraction(c, 4), Fraction(m, GRAIN)) for c, m in zip(costs, masses)]


def known_of(
    atoms: Atoms, last: Fraction, dead: Fraction, off: Fraction, **more: float
) -> Enclosure:
    """The head up to a cost, and what lies beyond it, with numbers off by a share at most."""

    def side(sign: int) -> Totals:
        scale = 1 + sign * off
        head = [(c, p) for c, p in atoms if c <= last]
        tail = [(c, p) for c, p in atoms if c > last]
        return Totals(
            np.array([float(c) for c, _ in head]),
            np.array([float(p * scale) for _, p in head]),
            float(last),
            float(sum((p for _, p in tail), Fraction(0)) * scale),
            float(dead * scale),
            math.inf if dead else float(sum((p * (c - last) for c, p in tail), ZERO) * scale),
            math.inf if dead else float(sum((p * c for c, p in atoms), ZERO) * scale),
            float(dead * scale),
        )

    return Enclosure(side(-1), side(1), **more)


ZERO = Fraction(0)


def encloses(found: tuple[float, float], truth: Fraction) -> bool:
    low, high = found
    return (low == -math.inf or Fraction(low) <= truth) and (
        high == math.inf or truth <= Fraction(high)
    )


@pytest.mark.parametrize("off", [ZERO, Fraction(1, 64)])
@pytest.mark.parametrize("dies", [False, True])
def test_an_expected_loss_is_enclosed(off: Fraction, dies: bool) -> None:
    draw = random.Random(f"{off} {dies}")
    finite = 0
    for _ in range(150):
        atoms, curve = drawn_atoms(draw), drawn_curve(draw)
        dead = ZERO
        if dies and len(atoms) > 1:
            dead = atoms.pop()[1]
        last = draw.choice([c for c, _ in atoms])
        known = known_of(atoms, last, dead, off)
        found = loss_bounds(known, curve)
        if dead and curve.slope > 0:
            assert found == (math.inf, math.inf)
            continue
        truth = sum((p * loss_at(curve, c) for c, p in atoms), ZERO)
        truth += dead * Fraction(curve.after[-1])
        assert encloses(found, truth)
        largest = max(map(abs, (*curve.at, *curve.after)))
        low, high = found
        beyond = last >= curve.breakpoints[-1] or last == atoms[-1][0]
        if beyond and (curve.slope == 0 or not dead):
            spread = largest + curve.slope * 60
            assert high - low <= float(off) * 4 * spread + 1e-12 * spread
            finite += 1
    assert finite > 20


def tail_at(last: int, *atoms: tuple[int, float]) -> Enclosure:
    """Half of the runs cost 1, and others as given, beyond `last`."""
    every = [(Fraction(1), Fraction(1, 2)), *((Fraction(c), Fraction(p)) for c, p in atoms)]
    return known_of(every, Fraction(last), ZERO, ZERO)


def test_lines_through_a_tail() -> None:
    """Mass 1/2 and excess 1/2 * 3/4 * (6 - 4) + 1/2 * 1/4 * (12 - 4) beyond 4."""
    known = tail_at(4, (6, 3 / 8), (12, 1 / 8))
    mass, excess = 0.5, 0.75 + 1.0
    cases = [
        # Markov: no more than excess / 16 can lie beyond 20; and all of it may beyond 5.
        (curve_of([(20, 0), (20, 1)], 0), 0.0, excess / 16),
        (curve_of([(5, 0), (5, 1)], 0), 0.0, mass),
        # What exceeds 5 or 10: no more than all the excess, and that less what lies between.
        (curve_of([(5, 0)], 1), excess - mass, excess),
        (curve_of([(10, 0)], 1), 0.0, excess),
        (curve_of([(5, 0)], 2), 2 * (excess - mass), 2 * excess),
        # Linear beyond 4.
        (curve_of([(1, 0)], 1), excess + 3 * mass, excess + 3 * mass),
        # A loss that falls, from 1 to 0 or from 0 to -2.
        (curve_of([(8, 1), (8, 0)], 0), 0.5 + mass - excess / 4, 0.5 + mass),
        (curve_of([(8, 0), (8, -2)], 0), -2 * excess / 4, 0.0),
    ]
    for curve, low, high in cases:
        found = loss_bounds(known, curve)
        assert found == pytest.approx((low, high), rel=1e-12, abs=1e-12)
        assert found[0] <= low and high <= found[1]


def test_what_is_astray_may_be_anywhere() -> None:
    curve = curve_of([(2, -3), (5, 2)], 0)
    sure = loss_bounds(known_of([(Fraction(1), Fraction(1))], Fraction(1), ZERO, ZERO), curve)
    known = known_of([(Fraction(1), Fraction(1))], Fraction(1), ZERO, ZERO, stray=0.125)
    found = loss_bounds(known, curve)
    assert found == pytest.approx((-3 - 0.375, -3 + 0.375), abs=1e-12)
    assert found[0] <= sure[0] - 0.375 and sure[1] + 0.375 <= found[1]


@pytest.mark.parametrize("source", ["costs", "head"])
def test_costs_that_are_off(source: str) -> None:
    """All costs a little larger, or smaller: bounds hold for either, and say little more."""
    draw, off = random.Random(source), Fraction(1, 1024)
    for _ in range(100):
        atoms, curve = drawn_atoms(draw), drawn_curve(draw)
        curve = Curve(curve.breakpoints, curve.at, curve.at, curve.slope)  # no jumps
        last = atoms[-1][0]
        if source == "costs":
            last = draw.choice([c for c, _ in atoms])
            known, error = known_of(atoms, last, ZERO, ZERO), float(off)
        else:
            known, error = known_of(atoms, last, ZERO, ZERO, cost_error=float(off)), 0.0
        found = loss_bounds(known, curve, cost_error=error)
        for side in (-1, 1):
            truth = sum((p * loss_at(curve, c * (1 + side * off)) for c, p in atoms), ZERO)
            assert encloses(found, truth)
        if last == atoms[-1][0]:
            steepest = float(np.max(curve.steepness))
            most = 2 * float(off) * steepest * sum(float(p * c) for c, p in atoms)
            assert found[1] - found[0] <= most * (1 + 1e-6) + 1e-11


def test_a_cost_next_to_a_jump_may_lie_behind_it() -> None:
    """A cost of 8, give or take a share of 2^-10, beside a jump from 1 to 4 at 8."""
    known = known_of([(Fraction(8), Fraction(1))], Fraction(8), ZERO, ZERO, cost_error=2.0**-10)
    curve = curve_of([(8, 1), (8, 4)], 0)
    exactly, either = loss_bounds(known, curve), loss_bounds(known, curve, jumps=True)
    assert exactly == pytest.approx((1, 1), abs=1e-12)
    assert either[1] == pytest.approx(4) and either[1] >= 4 and either[0] <= 1
    off = known_of([(Fraction(8), Fraction(1))], Fraction(8), ZERO, ZERO)
    assert loss_bounds(off, curve, cost_error=1e-3)[1] >= 4
    far = curve_of([(9, 1), (9, 4)], 0)
    assert loss_bounds(known, far, jumps=True) == pytest.approx((1, 1), abs=1e-12)


@pytest.mark.parametrize("exact", [False, True])
def test_values_of_a_loss_are_off_by_no_more(exact: bool) -> None:
    draw = random.Random(int(exact))
    for _ in range(200):
        grain = draw.choice([4, 10])
        curve = drawn_curve(draw, grain)
        costs = [Fraction(draw.randint(0, 30 * grain), grain) for _ in range(6)]
        if exact:
            costs = [Fraction(float(c)) for c in costs]
        floats = np.array([float(c) for c in costs])
        known = loss_error(curve, floats, exact)
        for cost, z, value, error in zip(costs, floats, curve.values(floats), known):
            if z in curve.x:  # a point that was given, however it was written
                assert error == 0
                continue
            assert abs(Fraction(float(value)) - loss_at(curve, cost)) <= Fraction(float(error))
            before = [x for x in curve.breakpoints if x < cost]
            of_floats = exact and all(Fraction(float(x)) == x for x in curve.breakpoints)
            here = len(before)
            slope = float(curve.steepness[here])
            if slope == 0:
                assert error == 0
                continue
            left = float(before[-1]) if before else float(curve.breakpoints[0])
            size = abs(z - left) if of_floats else max(abs(z), abs(left))
            expected = AFTERWARDS * (abs(value) + slope * size)
            assert error == pytest.approx(expected, rel=1e-12, abs=0)


def test_sums_of_losses_are_off_by_each() -> None:
    loss, error = np.array([[3.0, -5.0, 2.0]]), np.array([[0.25, 0.5, 1.0]])
    for weights in ([2.0, 0.0, 0.0], [2.0, -1.0, 0.0], [1.0, 2.0, 4.0]):
        found = terminal_error(loss, error, np.array(weights))[0]
        known = sum(abs(w) * e for w, e in zip(weights, error[0]))
        assert found >= known
        assert found == pytest.approx(known, rel=1e-12)
        # Of the sum itself 2 roundings for each term, and some more; of one term none.
        rounded = terminal_error(loss, 0 * error, np.array(weights))[0]
        size = sum(abs(w * y) for w, y in zip(weights, loss[0]))
        terms = np.count_nonzero(weights) > 1
        known = terms * (2 * 3 + 64) * ROUNDOFF * size
        assert rounded == pytest.approx(known, rel=1e-12, abs=0)


def test_what_a_loss_is_off_by() -> None:
    """A share of the value, what losses of 0 are off by, and no more than the worst of all."""
    draw = random.Random(3)
    cases = [([2.0, 0.0], [1.0, 10.0], 1.0), ([4.0], [1e-9], 7.0), ([0.0], [3.0], 5.0)]
    for _ in range(200):
        size = draw.randint(1, 4)
        loss = [draw.choice([0.0, 2.0**-40, 0.5, 1.0, 8.0]) for _ in range(size)]
        error = [draw.choice([0.0, 2.0**-30, 0.25, 10.0]) for _ in range(size)]
        cases.append((loss, error, draw.choice([0.0, 2.0**-20, 1.0, 37.5])))
    for loss, error, value in cases:
        pairs = [(Fraction(y), Fraction(e)) for y, e in zip(loss, error)]
        share = max((e / y for y, e in pairs if y > 0), default=ZERO)
        least = max((e for y, e in pairs if y == 0), default=ZERO)
        missed = min(share * Fraction(value) + least, Fraction(max(error)))
        room = 1e-12 * (value + float(missed))
        above = with_error(value, 1, np.array(loss), np.array(error))
        assert (
            Fraction(value) + missed <= Fraction(above) <= Fraction(value) + missed + Fraction(room)
        )
        below = with_error(value, -1, np.array(loss), np.array(error))
        exact = max(Fraction(value) - missed, -least)
        assert exact - Fraction(room) <= Fraction(below) <= exact
    assert with_error(math.inf, 1, np.ones(1), np.ones(1)) == math.inf
    assert with_error(math.inf, -1, np.ones(1), np.ones(1)) == math.inf


def test_no_mean_is_less_at_a_risk() -> None:
    """The best line at the value that a risk leaves, and none where the least value is more."""
    draw = random.Random(5)
    for _ in range(100):
        count = draw.randint(1, 4)
        prices = np.array([draw.choice([0.0, 0.3, 1.0, 7.0]) for _ in range(count)])
        budgets = np.array([float(w) for w in range(4)])
        lows = np.array([[draw.uniform(0, 20) for _ in budgets] for _ in prices])
        least = np.array([draw.uniform(0, 3) for _ in budgets])
        risk, factor = Fraction(draw.randint(30, 900), 100), Fraction(draw.randint(1, 9), 7)
        found = dual_bounds(least, lows, prices, budgets, risk, factor)
        for w in range(4):
            left = (risk - w) / factor
            if Fraction(least[w]) > left * (1 + Fraction(1, 10**12)):
                assert found[w] == math.inf
            elif Fraction(least[w]) < left:
                lines = [Fraction(lows[i, w]) - Fraction(prices[i]) * left for i in range(count)]
                exact = max(ZERO, *lines)
                size = 20 + 7 * float(left)
                assert exact - Fraction(1e-12 * size) <= Fraction(float(found[w])) <= exact
