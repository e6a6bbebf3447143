"""Each charge of `certify/` against a model on which bounds without it exclude the truth."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import tailpath as tp
from tailpath.certify import rounding, totals
from tailpath.certify.rounding import ROUNDOFF, compounded
from tailpath.dp.forward import LEAST_MASS
from tailpath.evaluation import lattice
from tailpath.model.cost_units import as_fraction

#: Less than half a unit in the last place of 0.9: added to it, it vanishes. So many of them come
#: out of a tree of this depth.
SPECK, DEPTH = 5e-17, 12
CHARGED = pytest.mark.parametrize("charged", [True, False])


def evaluated(rows: list[Any], alpha: float, **options: Any) -> Any:
    ssp = tp.SSP.from_outcomes(rows, 0, ["g"])
    return tp.evaluate(ssp, dict.fromkeys(set(ssp.states) - {"g"}, "a"), alpha, **options)


def holds(bounds: Any, truth: Fraction) -> bool:
    low, high = map(float, bounds)
    return Fraction(low) <= truth <= (math.inf if high == math.inf else Fraction(high))


def with_specks(to: Any, cost: int, leaf: Any) -> tuple[list[Any], Fraction, Fraction]:
    """Rows in which 0.9 goes to a node at a cost and 4,096 specks get out of a tree, each as its
    `leaf(k)` says, by target and cost; all rows are short. And the probabilities of both.
    """
    share = as_fraction(SPECK * 2**DEPTH)
    rest = as_fraction(float(Fraction(1, 10) - share))
    rows: list[Any] = [(0, "a", to, 0.9, cost), (0, "a", (0, 0), float(share), 0)]
    rows.append((0, "a", "g", float(rest), 0))
    for depth in range(DEPTH):
        for k in range(2 ** (depth + 1)):
            rows.append(((depth, k // 2), "a", (depth + 1, k), 0.5, 0))
    rows += [((DEPTH, k), "a", *leaf(k)) for k in range(2**DEPTH)]
    total = Fraction(9, 10) + share + rest
    return rows, Fraction(9, 10) / total, share / 2**DEPTH / total


@CHARGED
def test_additions_into_a_cell(charged: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The specks enter the node that holds 0.9 already, and none of them moves it."""
    if not charged:
        plain = rounding.scaled
        once = lambda rows, side, _, *rest: plain(rows, side, 1, *rest)  # noqa: E731
        monkeypatch.setattr(lattice, "scaled", once)
    rows, most, speck = with_specks("t", 1, lambda k: ("t", 1.0, 1))
    known = evaluated([*rows, ("t", "a", "g", 1.0, 1)], 0.5).enclosure
    within = known.low.masses[-1], known.high.masses[-1]
    assert holds(within, most + 2**DEPTH * speck) == charged


@CHARGED
def test_sums_over_the_head(charged: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The specks arrive at 4,096 costs, all below the one that 0.9 pays."""
    if not charged:
        monkeypatch.setattr(totals, "sum_error", lambda terms: rounding.AFTERWARDS)
    share, dearest = as_fraction(SPECK * 2**DEPTH), 2**DEPTH + 1
    rest = as_fraction(float(Fraction(1, 10) - share))
    rows = [(0, "a", "g", 0.9, dearest), (0, "a", "g", float(rest), 0)]
    rows.append((0, "a", 1, float(share), 1))
    for bit in range(DEPTH):
        to = bit + 2 if bit < DEPTH - 1 else "g"
        rows += [(bit + 1, "a", to, 0.5, 0), (bit + 1, "a", to, 0.5, 2**bit)]
    found = evaluated(rows, 0.01)
    mean = Fraction(9, 10) * dearest + share * Fraction(2**DEPTH + 1, 2)
    mean /= Fraction(9, 10) + share + rest
    assert len(found.costs) == 2**DEPTH + 2
    assert holds(found.bounds(0.95), mean / Fraction(0.95)) == charged


@CHARGED
def test_masses_below_the_normal_doubles(charged: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two rare steps, one after the other, have digits for one in a thousand of their product."""
    if not charged:
        monkeypatch.setattr(totals, "VANISHED", 0.0)
    true = []
    for digit in range(1, 10):
        rare, rarer = Fraction(digit, 10**290), Fraction(3, 10**31)
        rows = [(0, "a", 1, float(rare), 1), (0, "a", "g", 1.0, 9)]
        rows += [(1, "a", "g", float(rarer), 1), (1, "a", "g", 1.0, 2)]
        found = evaluated(rows, 0.5, engine="lattice")
        truth = rare / (1 + rare) * rarer / (1 + rarer)
        true.append(Fraction(float(found.enclosure.low.masses[0])) <= truth)
    assert found.costs[0] == 2
    assert all(true) == charged


@CHARGED
def test_what_was_too_little_to_follow(charged: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """1e-301 of all runs pay 1e300, and all others nothing."""
    if not charged:
        searched = lattice.LatticeEngine.search

        def nothing_dropped(*arguments: Any) -> Any:
            return searched(*arguments)._replace(dropped=0.0)

        monkeypatch.setattr(lattice.LatticeEngine, "search", nothing_dropped)
    rows = [(0, "a", 1, 1e-301, 0), (0, "a", "g", 1.0, 0), (1, "a", "g", 1.0, 1e300)]
    found = evaluated(rows, 0.5, heuristic="zero")
    assert holds(found.bounds(0.5), Fraction(1, 5) / (1 + Fraction(1, 10**301))) == charged


def ruin(n: int, p: Fraction) -> tuple[list[Any], Fraction]:
    """A free walk on 0 .. n - 1, to the right with probability p: it ends on the left at a cost of
    1, or on the right at a cost of 2, with this probability.
    """
    rows: list[Any] = []
    for node in range(n):
        rows.append((node, "a", *((node - 1, float(1 - p), 0) if node else ("g", float(1 - p), 1))))
        rows.append((node, "a", *((node + 1, float(p), 0) if node < n - 1 else ("g", float(p), 2))))
    odds = as_fraction(float(1 - p)) / as_fraction(float(p))
    return rows, (odds - 1) / (odds ** (n + 1) - 1)


@CHARGED
def test_free_cycles_that_are_solved_beforehand(
    charged: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of 200 nodes adds to what the odds of ruin are off by, since 0.1 is no float."""
    if not charged:
        monkeypatch.setattr(rounding, "exit_error", lambda rows, *_: np.zeros(rows.n))
    rows, truth = ruin(200, Fraction(1, 10))
    known = evaluated(rows, 1e-250).enclosure
    assert holds((known.low.masses[-1], known.high.masses[-1]), truth) == charged


@CHARGED
def test_a_free_loop_doubles_what_probabilities_are_off_by(
    charged: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not charged:
        monkeypatch.setattr(rounding, "exit_error", lambda rows, *_: np.zeros(rows.n))
    rows = [(0, "a", 0, 0.5, 0), (0, "a", "g", 0.001, 1), (0, "a", "g", 0.499, 2)]
    ssp = tp.SSP.from_outcomes(rows, 0, ["g"])
    ssp = ssp.trusted(**ssp.__getstate__() | {"probability_error": 0.01})
    known = tp.evaluate(ssp, {0: "a"}, 0.5).enclosure
    more, less = Fraction(101, 100), Fraction(99, 100)
    one, two = Fraction(1, 1000), Fraction(499, 1000)
    within = known.low.masses[0], known.high.masses[0]
    assert holds(within, one * more / (one * more + two * less)) == charged
    assert holds(within, one * less / (one * less + two * more)) == charged


@pytest.mark.parametrize(("one", "two"), [(3.3e-320, 7e-318), (1.23456e-315, 5e-310)])
def test_probabilities_with_fewer_digits(one: float, two: float) -> None:
    """Where a free loop is left by these alone, they are all that counts."""
    rows = [("s", "a", "s", 1.0, 0), ("s", "a", "g", one, 1), ("s", "a", "g", two, 2)]
    ssp = tp.SSP.from_outcomes(rows, "s", ["g"])
    truth = as_fraction(one) / (as_fraction(one) + as_fraction(two))
    known = tp.evaluate(ssp, {"s": "a"}, 0.5).enclosure
    assert holds((known.low.masses[0], known.high.masses[0]), truth)
    assert holds(tp.solve_on_time(ssp, 1).bounds(1), truth)


@pytest.mark.parametrize("step_error", [20 * ROUNDOFF, 1e-6, 0.05, 0.5])
@pytest.mark.parametrize("steps", [1, 7, 300])
def test_steps_compound(step_error: float, steps: int) -> None:
    low, high = (Fraction(compounded(step_error, steps, side)) for side in (-1, 1))
    assert low <= (1 - Fraction(step_error)) ** steps
    assert high >= (1 + Fraction(step_error)) ** steps


def test_steps_that_may_lose_everything() -> None:
    assert compounded(2.0, 1, -1) == compounded(0.05, 10**6, -1) == 0
    assert compounded(0.05, 10**6, 1) >= 1 / LEAST_MASS
