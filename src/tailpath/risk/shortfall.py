"""The expected cost beyond a budget."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tailpath.options import check_amount
from tailpath.risk.curves import Curve, curve_of
from tailpath.risk.measure import Measure


@dataclass(frozen=True)
class Shortfall(Measure):
    """The expected cost beyond a budget, E[(Z - budget)+], over all runs.

    Parameters
    ----------
    budget : float, 0 or more
        What may be paid; finite.

    Examples
    --------
    >>> tp.Shortfall(30)(costs)
    3.0
    """

    budget: float
    word = "shortfall"

    def __post_init__(self) -> None:
        object.__setattr__(self, "budget", check_amount(self.budget, "a budget", finite=True))

    @property
    def curve(self) -> Curve:
        return curve_of([(self.budget, 0)], 1)

    @property
    def farthest_cost(self) -> float:
        return self.budget

    def bounds_of(self, costs: Any) -> tuple[float, float]:
        low, high = super().bounds_of(costs)
        return max(low, 0.0), high
