"""The distribution of a total cost of which parts may be negative: that of the reduced model
(`model/potential.py`), and so much more.

Heads, tails and excesses are the same but for the shift; whatever is claimed is claimed by the
distribution of the reduced costs, which are 0 or more, and moved.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from tailpath.evaluation.distribution import CostDistribution
from tailpath.kernels.rounding import UNIT
from tailpath.model.potential import shifted, shifted_bounds, shifted_costs
from tailpath.model.ssp import SSP
from tailpath.options import takes_alpha, vectorised
from tailpath.verify.distribution import Proof
from tailpath.verify.optimum import check_reduction, check_shifts


@takes_alpha
@dataclass(frozen=True, eq=False, repr=False)
class ShiftedDistribution(CostDistribution):
    """A `CostDistribution` of costs of any sign; every cost is `shift` more than one of `reduced`.

    Attributes
    ----------
    reduced : CostDistribution
        The distribution of the costs of the reduced model.
    shift : Fraction
        What every run costs more.
    exact : bool
        Whether the reduced costs are exact, or only the nearest floats.
    """

    reduced: CostDistribution = field(kw_only=True)
    shift: Fraction = field(kw_only=True)
    exact: bool = field(kw_only=True)

    @classmethod
    def of(cls, reduced: CostDistribution, ssp: SSP) -> ShiftedDistribution:
        """The distribution on a model, from that on its reduced model."""
        by, exact = ssp.shift, ssp.reduction.exact
        costs = shifted_costs(reduced.costs, ssp.reduced.cost_unit, by)
        moved = {
            "costs": costs,
            "mean": shifted(reduced.mean, by),
            "mean_bounds": shifted_bounds(reduced.mean_bounds, by, exact),
        }
        error = (
            0.0
            if exact and reduced.cost_error == 0 and np.array_equal(costs, np.rint(costs))
            else max(reduced.cost_error, 4 * UNIT)
        )
        own = {"cost_error": error, "ssp": ssp, "reduced": reduced, "shift": by, "exact": exact}
        return cls(
            **{name: getattr(reduced, name) for name in CostDistribution.__dataclass_fields__}
            | moved
            | own
        )

    @vectorised
    def cvar(self, alpha: float) -> float:
        return shifted(self.reduced.cvar(alpha), self.shift)

    @vectorised
    def bounds(self, alpha: Any) -> tuple[float, float]:
        if hasattr(alpha, "bounds_of"):
            low, high = alpha.bounds_of(self)
            return float(low), float(high)
        return shifted_bounds(self.reduced.bounds(alpha), self.shift, self.exact)

    def expected_loss(self, loss: Any) -> tuple[float, float, float]:
        moved = loss.moved(self.shift, self._unit)
        value, low, high = self.reduced.expected_loss(moved)
        error_bound = self._error_bound(moved)
        return value, low - error_bound, high + error_bound

    def loss_bounds(self, loss: Any) -> tuple[float, float]:
        moved = loss.moved(self.shift, self._unit)
        (low, high), error_bound = self.reduced.loss_bounds(moved), self._error_bound(moved)
        return low - error_bound, high + error_bound

    @property
    def _unit(self) -> Fraction | None:
        """The unit of the reduced costs."""
        return self.reduced.ssp.cost_unit if self.reduced.ssp is not None else None

    def _error_bound(self, loss: Any) -> float:
        """What a loss may be off by where reduced costs are the nearest floats: nobody knows which
        side of a jump they are on."""
        if self.exact:
            return 0.0
        found, error = self.reduced, 4 * UNIT
        slope, jump = loss.slope_and_jump(found.costs * (1 - error), found.costs * (1 + error))
        tail_cost = (
            found.tail_mass * found._last_cost + found.tail_excess
            if found.costs.size and found.tail_mass > 0
            else 0.0
        )
        return float(
            np.sum(found.probabilities * (jump + error * slope * found.costs))
            + error * loss.slope * tail_cost
        )

    @property
    def std(self) -> float:
        """The standard deviation, which no shift changes."""
        return self.reduced.std

    def verify(self) -> Proof:
        """Check every claim in exact arithmetic: on the reduced model, and that it is one."""
        assert self.ssp is not None
        proved = check_reduction(self.ssp, self.ssp.reduction)
        found, reduced = self.reduced.verify(), self.reduced
        alphas = sorted({self.alpha, *(a for a in (1e-3, 0.01, 0.1, 0.5, 1.0) if a > self.alpha)})
        claims = {f"CVaR at alpha {a:g}": (self.bounds(a), reduced.bounds(a)) for a in alphas}
        shifted_claims = check_shifts(
            {"the mean": (self.mean_bounds, reduced.mean_bounds), **claims}, self.shift
        )
        return Proof((proved, *found.proved, *shifted_claims), found.width)
