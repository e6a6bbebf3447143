"""Expectiles: the number e at which tau E[(Z - e)+] = (1 - tau) E[(e - Z)+].

Since E[(e - Z)+] = e - E[Z] + E[(Z - e)+], it is the root of

    F(e) = e - E[Z] - k E[(Z - e)+],    k = (2 tau - 1) / (1 - tau) >= 0,

which rises by 1 or more with e: how far F is from 0 bounds how far e is from the root.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from tailpath.certify.rounding import AFTERWARDS
from tailpath.errors import OptionError
from tailpath.options import check_amount
from tailpath.risk.measure import Measure
from tailpath.risk.measures import Shortfall

#: The tail that is looked at, as a share of 1 - tau; and the most steps towards the root.
FINER, MAX_STEPS = 0.05, 200


@dataclass(frozen=True)
class Expectile(Measure):
    """The expectile of the total cost: at 0.5 the mean, towards 1 the worst cost.

    It can be evaluated, not minimised.

    Parameters
    ----------
    tau : float in [0.5, 1)
        How much a unit of cost beyond it weighs; one below it weighs 1 - tau.

    Examples
    --------
    >>> round(tp.Expectile(0.9)(costs), 9)
    40.0
    """

    tau: float
    word = "expectile"
    moves_with_costs = True

    def __post_init__(self) -> None:
        tau = check_amount(self.tau, "a tau", finite=True)
        if not 0.5 <= tau < 1:
            raise OptionError(f"the tau of an expectile must lie in [0.5, 1), not {tau:g}")
        object.__setattr__(self, "tau", tau)

    @property
    def finest_alpha(self) -> float:
        return FINER * (1 - self.tau)

    @property
    def weight(self) -> float:
        """k, by which what lies beyond e weighs more."""
        return (2 * self.tau - 1) / (1 - self.tau)

    def __call__(self, costs: Any) -> float:
        mean = float(costs.mean)
        if self.weight == 0 or not math.isfinite(mean):
            return mean
        # From below by Newton's method on a concave F, whose root is met after finitely many steps.
        found = mean
        for _ in range(MAX_STEPS):
            beyond = Shortfall(found)(costs)
            slope = 1 + self.weight * (1 - costs.cdf(found))
            step = (mean + self.weight * beyond - found) / slope
            found += step
            if abs(step) <= AFTERWARDS * abs(found):
                break
        return found

    def bounds_of(self, costs: Any) -> tuple[float, float]:
        low, high = costs.mean_bounds
        found = self(costs)
        if self.weight == 0 or not math.isfinite(found):
            return low, high
        least, most = Shortfall(found).bounds_of(costs)
        less, more = low + self.weight * least - found, high + self.weight * most - found
        # 1 - tau is what is written but for a rounding, and so is the weight.
        off = AFTERWARDS * (abs(found) + abs(high) + (self.weight + 1) / (1 - self.tau) * most)
        return found + min(less, 0.0) - off, found + max(more, 0.0) + off
