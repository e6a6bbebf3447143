"""The search over real budgets for a policy that is fixed: U(w) is the greatest E[(Z - w)+] over a
few natures, so that the least of w + U(w) / alpha is known in fractions.
"""

from __future__ import annotations

import math
import random
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from tailpath.certify.real_budgets import Excess, RealBudgets, _between
from tailpath.dp.budget_model import NOTHING_HELD

Nature = dict[int, Fraction]
LEVELS = 12


def drawn(draw: random.Random) -> list[Nature]:
    """Distributions of a whole number of units."""
    found = []
    for _ in range(draw.randint(2, 3)):
        costs = draw.sample(range(1, LEVELS - 1), draw.randint(1, 4))
        cuts = sorted(draw.sample(range(1, 64), len(costs) - 1))
        found.append({c: Fraction(b - a, 64) for c, a, b in zip(costs, [0, *cuts], [*cuts, 64])})
    return found


def excess(nature: Nature, w: Fraction) -> Fraction:
    return sum((p * max(c - w, 0) for c, p in nature.items()), Fraction(0))


def tables(natures: list[Nature], asked: list[Any]) -> Any:
    def make(fractions: tuple[float, ...], limit: float) -> Excess:
        asked.append((fractions, limit))
        at = [[Fraction(i) - 1 + Fraction(f) for f in fractions] for i in range(LEVELS + 1)]
        worst = [max(natures, key=lambda each: excess(each, row[0])) for row in at]
        ends = [
            np.array([float(excess(nature, row[k])) for nature, row in zip(worst, at)])
            for k in range(len(fractions))
        ]
        return Excess(fractions[0], ends[0], tuple(ends), ends[0], NOTHING_HELD)

    return make


def least(natures: list[Nature], alpha: Fraction) -> Fraction:
    """Convex and piecewise linear: least at a cost, at 0, or where two natures are as bad."""
    places = {Fraction(w) for w in range(LEVELS)}
    for one, other in combinations(natures, 2):
        for k in range(LEVELS):
            a, b = (excess(one, Fraction(w)) - excess(other, Fraction(w)) for w in (k, k + 1))
            if a * b < 0:
                places.add(k + a / (a - b))
    return min(w + max(excess(each, w) for each in natures) / alpha for w in places)


@pytest.mark.parametrize("tolerance", [1e-9, 0.05])
def test_the_least_is_enclosed(tolerance: float) -> None:
    draw, between = random.Random(1), 0
    for _ in range(80):
        natures, alpha = drawn(draw), draw.choice([Fraction(1, 2), Fraction(1, 4), Fraction(1, 16)])
        asked: list[Any] = []
        search = RealBudgets(tables(natures, asked), False)
        found, truth = search.least(float(alpha), tolerance), least(natures, alpha)
        assert Fraction(found.low) <= truth <= Fraction(found.high)
        assert found.high - found.low <= (tolerance + 1e-11) * found.high
        budget = Fraction(found.table.budget(found.position))
        own = budget + max(excess(each, budget) for each in natures) / alpha
        assert found.value == pytest.approx(float(own), rel=1e-14)
        assert found.value <= found.high <= found.value * (1 + 1e-13)
        assert search.sweeps == len(asked) == len({fractions for fractions, _ in asked})
        assert asked[0] == ((1.0, 0.0), math.inf)
        between += found.table is not search.first
    assert between > (2 if tolerance < 1e-3 else -1)


def test_integer_budgets_alone() -> None:
    draw = random.Random(2)
    for _ in range(40):
        natures, alpha = drawn(draw), Fraction(1, 4)
        asked: list[Any] = []
        found = RealBudgets(tables(natures, asked), True).least(float(alpha), 0.0)
        truth = min(
            w + max(excess(each, Fraction(w)) for each in natures) / alpha for w in range(LEVELS)
        )
        assert Fraction(found.low) <= truth <= Fraction(found.high)
        assert found.high - found.low <= 1e-13 * found.high
        assert asked == [((1.0,), math.inf)]


def test_a_tangent_shows_that_an_integer_is_best() -> None:
    """Where one nature is worst throughout, the first two sweeps prove it."""
    asked: list[Any] = []
    search = RealBudgets(tables([{3: Fraction(1, 2), 7: Fraction(1, 2)}], asked), False)
    found = search.least(0.25, 1e-12)
    assert found.value == 7 and found.table is search.first and len(asked) == 1


def test_no_bound_on_the_mean_ends_the_search() -> None:
    def make(fractions: tuple[float, ...], limit: float) -> Excess:
        value, high = np.full(4, 2.0), np.full(4, math.inf)
        return Excess(fractions[0], value, tuple(value for _ in fractions), high, NOTHING_HELD)

    found = RealBudgets(make, False).least(0.5, 0.0)
    assert found.high == math.inf and found.low == 0


def test_tables_are_made_once_unless_they_end_too_soon() -> None:
    asked: list[Any] = []

    def make(fractions: tuple[float, ...], limit: float) -> Excess:
        asked.append(limit)
        size = int(min(limit, 2)) + 1
        return Excess(1.0, np.zeros(size), (np.zeros(size),), np.zeros(size), NOTHING_HELD)

    search = RealBudgets(make, True)
    first = search.table((1.0,), 2.0)
    assert search.table((1.0,), 2.0) is first and search.table((1.0,), math.inf) is first
    assert asked == [2.0]
    assert search.table((1.0,), 3.0) is not first and asked == [2.0, 3.0]


def test_a_line_that_is_cut_stays_below_itself() -> None:
    draw = random.Random(3)
    for _ in range(100):
        begin, end, share = draw.choice([0.0, draw.random()]), draw.random(), draw.random()
        for one, other in ((begin, end), (end, begin)):
            true = Fraction(one) + Fraction(share) * (Fraction(other) - Fraction(one))
            found = Fraction(_between((one, other), share))
            assert true - Fraction(1, 10**13) <= found <= true
