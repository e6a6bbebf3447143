"""Value at risk."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tailpath.options import check_alpha
from tailpath.risk.measure import Measure


@dataclass(frozen=True)
class VaR(Measure):
    """The least cost that is exceeded with probability `alpha` at most. It is no expectation, so it cannot be scaled or added."""

    alpha: float
    word = "var"

    def __post_init__(self) -> None:
        object.__setattr__(self, "alpha", check_alpha(self.alpha))

    @property
    def finest_alpha(self) -> float:
        return self.alpha

    def __call__(self, costs: Any) -> float:
        return float(costs.var(self.alpha))

    def bounds_of(self, costs: Any) -> tuple[float, float]:
        """The same number twice: a VaR is one of the possible costs, told apart as `SAME_MASS` of `kernels/rounding.py` says."""
        return self(costs), self(costs)
