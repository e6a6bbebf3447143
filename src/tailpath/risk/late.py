"""The probability of being late."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from tailpath.options import check_amount
from tailpath.risk.curves import Curve, curve_of
from tailpath.risk.measure import Measure


@dataclass(frozen=True)
class Late(Measure):
    """The probability P(Z > deadline) of being late.

    A cost of exactly the deadline is on time. `Late(inf)` is not arriving at all.

    Parameters
    ----------
    deadline : float, 0 or more
        The largest cost that is on time; may be infinite.

    Examples
    --------
    >>> tp.Late(30)(costs), tp.Late(60)(costs)
    (0.1, 0.0)
    """

    deadline: float
    word = "late"

    def __post_init__(self) -> None:
        object.__setattr__(self, "deadline", check_amount(self.deadline, "a deadline"))

    @property
    def curve(self) -> Curve | None:
        return None if math.isinf(self.deadline) else curve_of([(self.deadline, 0), (self.deadline, 1)], 0)

    @property
    def farthest_cost(self) -> float:
        return 0.0 if math.isinf(self.deadline) else self.deadline

    def __call__(self, costs: Any) -> float:
        return float(costs.unreached) if math.isinf(self.deadline) else super().__call__(costs)

    def bounds_of(self, costs: Any) -> tuple[float, float]:
        if not math.isinf(self.deadline):
            low, high = super().bounds_of(costs)
            return max(low, 0.0), min(high, 1.0)
        return float(costs.unreached) * (1 - 1e-9), min(float(costs.unreached) * (1 + 1e-9), 1.0)
