"""Conditional value at risk."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tailpath.options import check_invertible_alpha
from tailpath.risk.measure import Measure


@dataclass(frozen=True)
class CVaR(Measure):
    """The mean of the worst `alpha` of all runs; at 1 the mean, towards 0 the worst cost.

    Parameters
    ----------
    alpha : float in (0, 1]
        The mass of the worst tail.

    Examples
    --------
    >>> tp.CVaR(0.1)(costs)
    60.0
    >>> print(0.5 * tp.Mean() + 0.5 * tp.CVaR(0.1), "and", tp.CVaR(0.1) <= 45)
    0.5 * mean + 0.5 * cvar(0.1) and cvar(0.1) <= 45
    """

    alpha: float
    word = "cvar"

    def __post_init__(self) -> None:
        object.__setattr__(self, "alpha", check_invertible_alpha(self.alpha))

    @property
    def tail(self) -> tuple[float, float]:
        return 1.0, self.alpha

    @property
    def finest_alpha(self) -> float:
        return self.alpha

    def __call__(self, costs: Any) -> float:
        return float(costs.cvar(self.alpha))

    def bounds_of(self, costs: Any) -> tuple[float, float]:
        low, high = costs.bounds(self.alpha)
        return float(low), float(high)
