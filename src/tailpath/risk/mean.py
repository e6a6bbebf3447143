"""The expected cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tailpath.risk.curves import Curve, curve_of
from tailpath.risk.measure import Measure


@dataclass(frozen=True)
class Mean(Measure):
    """The expected total cost E[Z]; infinite if the goal may be missed.

    Examples
    --------
    >>> tp.Mean()(costs)
    24.0
    """

    word = "mean"

    @property
    def curve(self) -> Curve:
        return curve_of([(0, 0)], 1)

    def __call__(self, costs: Any) -> float:
        return float(costs.mean)

    def bounds_of(self, costs: Any) -> tuple[float, float]:
        low, high = costs.mean_bounds
        return float(low), float(high)
