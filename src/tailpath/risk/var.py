"""Value at risk."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tailpath.options import check_alpha
from tailpath.risk.measure import Measure


@dataclass(frozen=True)
class VaR(Measure):
    """The least cost that is exceeded with probability `alpha` at most.

    It is no expectation, so it cannot be scaled or added.

    Parameters
    ----------
    alpha : float in (0, 1]
        The mass of the worst tail.

    Examples
    --------
    >>> tp.VaR(0.1)(costs), tp.VaR(0.05)(costs)
    (20.0, 60.0)
    """

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
        """The same number twice: a VaR is one of the possible costs.

        They are told apart as `SAME_MASS` of `kernels/rounding.py` says.

        Parameters
        ----------
        costs : CostDistribution
            The distribution of the total cost.

        Returns
        -------
        tuple (low, high)
            Both are the VaR.
        """
        return self(costs), self(costs)
