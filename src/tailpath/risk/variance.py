"""The variance of the total cost, and the mean with a share of the standard deviation.

With numbers v close to the expected costs to go V, the surprise of a step is d = c + v' - v. With V
itself it has the mean 0, so that the variance is the expected sum of d^2, in which nothing cancels;
bounds allow for |v - V| at both ends of a step.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from tailpath.certify.rounding import AFTERWARDS, ROUNDOFF
from tailpath.options import check_amount
from tailpath.risk.measure import Measure

#: Of what a surprise is the sum of: costs as written, and two sums.
OF_SURPRISE = 8 * ROUNDOFF


@dataclass(frozen=True)
class Variance(Measure):
    """The variance of the total cost; it can be evaluated, not minimised.

    Examples
    --------
    >>> round(tp.Variance()(costs), 9)
    144.0
    """

    word = "variance"

    def moved(self, by: Fraction, unit: Fraction | None) -> tuple[Measure, Fraction]:
        return self, Fraction(0)

    def __call__(self, costs: Any) -> float:
        return float(costs.std) ** 2

    def bounds_of(self, costs: Any) -> tuple[float, float]:
        if not math.isfinite(costs.mean):
            return 0.0, math.inf
        low = high = 0.0
        mean = float(costs.mean)
        for weight, chain in costs.chains:
            least, most, lower, upper = _of_chain(chain)
            if len(costs.chains) == 1:
                return least * (1 - AFTERWARDS), most * (1 + AFTERWARDS)
            near = max(lower - mean, mean - upper, 0.0)
            far = max(upper - mean, mean - lower)
            low += weight * (least + near**2 * (1 - AFTERWARDS))
            high += weight * (most + far**2 * (1 + AFTERWARDS))
        # All this is about a number that is not quite the mean.
        below, above = costs.mean_bounds
        low -= max(above - mean, mean - below) ** 2 * (1 + AFTERWARDS)
        return max(low * (1 - AFTERWARDS), 0.0), high * (1 + AFTERWARDS)


def _of_chain(chain: Any) -> tuple[float, float, float, float]:
    """Bounds on the variance of one policy, and on its mean."""
    if chain.start == chain.n:
        return 0.0, 0.0, 0.0, 0.0
    known = chain.expected_cost
    here, ahead = known.value[chain.source], np.append(known.value, 0.0)[chain.target]
    off = np.append(np.maximum(known.upper - known.value, known.value - known.lower), 0.0)
    size = np.abs(chain.cost) + np.abs(here) + np.abs(ahead)
    surprise = np.abs(chain.cost + ahead - here)
    error = (off[chain.source] + off[chain.target]) * (1 + AFTERWARDS) + OF_SURPRISE * size
    least = chain.expected_sum(np.maximum(surprise - error, 0.0) ** 2 * (1 - AFTERWARDS))
    most = chain.expected_sum((surprise + error) ** 2 * (1 + AFTERWARDS))
    mean = float(known.lower[chain.start]), float(known.upper[chain.start])
    return float(least.lower[chain.start]), float(most.upper[chain.start]), *mean


@dataclass(frozen=True)
class MeanDeviation(Measure):
    """The mean and so many standard deviations; it can be evaluated, not minimised.

    Parameters
    ----------
    factor : float
        How many standard deviations are added; 0 or more.

    Examples
    --------
    >>> round(tp.MeanDeviation(0.5)(costs), 9)
    30.0
    """

    factor: float
    word = "meandeviation"
    moves_with_costs = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "factor", check_amount(self.factor, "a factor", finite=True))

    def __call__(self, costs: Any) -> float:
        return float(costs.mean) + (self.factor * float(costs.std) if self.factor else 0.0)

    def bounds_of(self, costs: Any) -> tuple[float, float]:
        low, high = costs.mean_bounds
        if self.factor == 0:
            return low, high
        less, more = (self.factor * math.sqrt(end) for end in Variance().bounds_of(costs))
        low, high = low + less * (1 - AFTERWARDS), high + more * (1 + AFTERWARDS)
        return low - AFTERWARDS * abs(low), high + AFTERWARDS * abs(high)
