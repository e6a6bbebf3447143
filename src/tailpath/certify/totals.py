"""The distribution of a policy's total cost, enclosed: the same search once more on probabilities
that are too small, with expected costs to go from below, and once on those that are too large
(`rounding.py`). What is asked of a distribution is bounded by both.

Let g(w) = w + E[(Z - w)+] / alpha, whose least value is the CVaR. Any w gives an upper bound. From
below, masses are a part of the true ones, so that g is at least the same with them, which is linear
between the costs of the head: its least value is at one of these, at 0, or beyond the
head, where it is no less than X + E[(Z - X)+] / max(P(Z > X), alpha).
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from tailpath.certify.rounding import AFTERWARDS, ROUNDOFF, VANISHED, sum_error
from tailpath.dp.totals import Totals, mixed
from tailpath.graph import FloatArray
from tailpath.kernels.rounding import SAME_MASS

Bracket = tuple[float, float]


@dataclass(frozen=True, eq=False)
class Enclosure:
    """A distribution between two others on the costs of the same head: every mass, tail and excess
    of `low` is at most the true one, and every one of `high` at least the true one.

    Costs are off by `cost_error` relatively at most. A mass of up to `stray`, which was too small
    to follow, may arrive at any cost, also before X; `low` has none of it, `high` counts it as
    open.
    """

    low: Totals
    high: Totals
    cost_error: float = 0.0
    stray: float = 0.0

    @property
    def costs(self) -> FloatArray:
        """The costs of the head."""
        return self.low.costs

    @property
    def tail_mass(self) -> Bracket:
        """Bounds on P(Z > X)."""
        return self.low.tail_mass, self.high.tail_mass

    @property
    def excess(self) -> Bracket:
        """Bounds on E[(Z - X)+]."""
        return self.low.excess, self.high.excess

    @property
    def mean(self) -> Bracket:
        """Bounds on the mean."""
        return self.low.mean, self.high.mean

    @property
    def missed(self) -> Bracket:
        """Bounds on the probability of never arriving."""
        return self.low.missed, self.high.missed

    @property
    def may_miss(self) -> bool:
        """Whether it is certain that the goal may be missed."""
        return self.low.missed > 0 or self.low.mean == math.inf

    @property
    def of_sums(self) -> float:
        """What sums over the head may round, relatively."""
        return sum_error(len(self.costs))

    def cvar(self, alpha: float) -> Bracket:
        """Bounds on the CVaR."""
        if self.may_miss:
            return math.inf, math.inf
        low, high = self.low, self.high
        with np.errstate(over="ignore", invalid="ignore"):  # sums beyond the floats are infinite
            down, up = (1 - self.of_sums) / alpha, (1 + self.of_sums) / alpha
            lowest = low.last + low.excess / max(high.tail_mass, alpha) * (1 - self.of_sums)
            highest = high.last + high.excess * up
            lowest = min(lowest, low.least(down))
            lowest = min(lowest, low.sum_of_means * down)  # at 0, below all costs
            highest = min(highest, high.least(up))
        around = self.cost_error + AFTERWARDS
        lowest = min(max(lowest * (1 - around), low.mean), sys.float_info.max)
        highest = highest * (1 + around)
        return lowest, min(highest, high.mean) if alpha == 1 else max(highest, lowest)

    def var(self, alpha: float) -> Bracket:
        """Bounds on the VaR, each the float nearest to a cost. A tail that floats cannot tell from
        alpha may lie on either side of it, so that one of two costs is the VaR; both are named.
        """
        costs, of_sums = self.costs, self.of_sums
        may = self.low.tails * (1 - of_sums) <= alpha * (1 + SAME_MASS)
        does = self.high.tails * (1 + of_sums) <= alpha
        around = 0.0 if self.cost_error <= 4 * ROUNDOFF else self.cost_error
        if may.any():
            low = float(costs[np.argmax(may)]) * (1 - around)
        else:
            low = math.inf if self.low.missed > alpha else self.low.last * (1 - around)
        if does.any():
            high = float(costs[np.argmax(does)]) * (1 + around)
        else:
            high = self.cvar(alpha)[1]
        return low, max(low, high)


def outwards(
    totals: Totals,
    side: int,
    *,
    dropped: float,
    dearest: float,
    paid: float,
    of_costs: float,
    proved: bool,
) -> Totals:
    """The totals of one side, moved outwards by what rounds after the search.

    A mass of `dropped` was not followed, and may still pay up to `dearest` beyond X. `paid` is the
    sum of mass * |cost - X| over the open nodes, and `of_costs` the relative error of costs.
    `proved`: the mean and the probability of never arriving have bounds already; otherwise they
    are sums of the same masses. `totals.masses` is changed in place.
    """
    away = VANISHED + dropped if side > 0 else -VANISHED
    most = math.inf if side > 0 else sys.float_info.max  # every sum is finite, and rounded

    def moved(number: float, by: float = 0.0, share: float = AFTERWARDS) -> float:
        return max(min(number * (1 + side * share), most) + by, 0.0)

    masses = totals.masses
    if side < 0 and masses.size:
        np.subtract(masses, VANISHED, out=masses)
        np.maximum(masses, 0.0, out=masses)
    open_mass, dead_mass = moved(totals.open_mass, away), moved(totals.dead_mass, min(away, 0.0))
    # Products of masses and costs vanish, too.
    unpaid = away * (1 + min(dearest, most)) if dearest > 0 else 0.0
    excess = moved(totals.excess, unpaid + side * of_costs * paid)
    certain = replace(
        totals, masses=masses, open_mass=open_mass, dead_mass=dead_mass, excess=excess
    )
    if proved:
        return certain
    mean, missed = totals.mean, totals.missed
    if mean < math.inf:
        mean = moved(certain.sum_of_means, 0.0, sum_error(len(masses)) + of_costs)
    return replace(certain, mean=mean, missed=moved(missed, away) if missed > 0 else 0.0)


def mixed_enclosure(
    weights: Sequence[float], parts: Sequence[Enclosure], costs: FloatArray, last: float
) -> Enclosure:
    """Of a mixture, for a head of these costs up to X."""
    around = sum_error(len(parts))

    def one_side(side: int) -> Totals:
        sides = [part.low if side < 0 else part.high for part in parts]
        found = mixed([w * (1 + side * around) for w in weights], sides, last, side)
        return found.onto(costs, last, side)

    return Enclosure(
        one_side(-1),
        one_side(1),
        max(part.cost_error for part in parts),
        sum(part.stray for part in parts),
    )
