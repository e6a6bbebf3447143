"""Distributions of the total cost that are made of others.

*A mixture of policies*, by one coin at the start: P(Z = z) is the sum of weight * P_i(Z = z), and
so are the tails and excesses beyond a common cost X. The VaR of the mixture is at most the largest
VaR of its members, so that is X; members whose head ends before are evaluated with a finer tail
until it does not.

*Costs of any sign*: the distribution of the reduced model (`model/potential.py`), whose costs are 0
or more, and so much more. Whatever is claimed is claimed by that one, and moved.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from tailpath.certify.rounding import ROUNDOFF
from tailpath.certify.totals import Bracket, Enclosure, mixed_enclosure
from tailpath.dp.totals import mixed
from tailpath.evaluation.distribution import CostDistribution
from tailpath.evaluation.engine import Request
from tailpath.model.potential import shifted, shifted_bounds, shifted_costs
from tailpath.model.ssp import SSP
from tailpath.options import takes_alpha, vectorised
from tailpath.verify.distribution import Proof
from tailpath.verify.optimum import check_reduction, check_shifts

#: A tail this small is never cut finer.
LEAST_TAIL = 1e-250


def finer_tail(mass: float) -> float:
    """What to evaluate with where a tail mass does not lead far enough: 0.1, 1e-3, 1e-7, ..."""
    return max(mass**2 / 10, LEAST_TAIL)


def mixed_distribution(
    request: Request, weights: Sequence[float], evaluate: Callable[[int, float], CostDistribution]
) -> CostDistribution:
    """The distribution of a mixture; `evaluate(i, alpha)` gives that of member i."""
    alpha = request.alpha
    members = [evaluate(i, alpha) for i in range(len(weights))]
    last = max((float(costs.costs[-1]) for costs in members if costs.costs.size), default=0.0)
    for i, costs in enumerate(members):
        finer = alpha
        while (
            costs.open_mass > 0
            and finer > LEAST_TAIL
            and (not costs.costs.size or costs.costs[-1] < last)
        ):
            finer = finer_tail(finer)
            costs = evaluate(i, finer)
        members[i] = costs
    found = mixed(weights, [costs.totals for costs in members], last)
    variance = np.dot(
        weights,
        [
            costs.std**2 + (costs.mean - found.mean) ** 2 if np.isfinite(costs.mean) else np.inf
            for costs in members
        ],
    )
    return CostDistribution(
        costs=found.costs,
        probabilities=found.masses,
        tail_mass=found.tail_mass,
        open_mass=found.open_mass,
        tail_excess=found.excess,
        alpha=alpha,
        mean=found.mean,
        deviation=float(np.sqrt(variance)),
        unreached=found.missed,
        expanded=sum(costs.expanded for costs in members),
        engine=members[0].engine,
        reason="; ".join(sorted({costs.reason for costs in members if costs.reason})),
        stuck=next((costs.stuck for costs in members if costs.stuck), ""),
        gamma=request.gamma,
        ssp=request.ssp,
        policy=request.policy,
        proof=lambda: mixed_enclosure(
            weights, [costs.enclosure for costs in members], found.costs, last
        ),
    )


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
        moved = {"costs": costs, "mean": shifted(reduced.mean, by), "proof": None}
        own = {"ssp": ssp, "reduced": reduced, "shift": by, "exact": exact}
        return cls(
            **{name: getattr(reduced, name) for name in CostDistribution.__dataclass_fields__}
            | moved
            | own
        )

    @vectorised
    def cvar(self, alpha: float) -> float:
        return shifted(self.reduced.cvar(alpha), self.shift)

    @property
    def enclosure(self) -> Enclosure:
        """What is proved of the reduced costs."""
        return self.reduced.enclosure

    @property
    def mean_bounds(self) -> Bracket:
        """Proved bounds on the mean: a tuple of float."""
        return shifted_bounds(self.reduced.mean_bounds, self.shift, self.exact)

    @vectorised
    def bounds(self, alpha: Any) -> Bracket:
        if hasattr(alpha, "bounds_of"):
            return super().bounds(alpha)
        return shifted_bounds(self.reduced.bounds(alpha), self.shift, self.exact)

    @vectorised
    def var_bounds(self, alpha: float) -> Bracket:
        return shifted_bounds(self.reduced.var_bounds(alpha), self.shift, self.exact)

    def expected_loss(self, loss: Any) -> tuple[float, float, float]:
        moved = loss.moved(self.shift, self._unit)
        value, low, high = self.reduced.expected_loss(moved)
        slack = self._slack(moved)
        return value, low - slack, high + slack

    def mean_loss(self, loss: Any) -> float:
        return self.reduced.mean_loss(loss.moved(self.shift, self._unit))

    def loss_bounds(self, loss: Any) -> Bracket:
        moved = loss.moved(self.shift, self._unit)
        (low, high), slack = self.reduced.loss_bounds(moved), self._slack(moved)
        return low - slack, high + slack

    @property
    def _unit(self) -> Fraction | None:
        """The unit of the reduced costs."""
        return self.reduced.ssp.cost_unit if self.reduced.ssp is not None else None

    def _slack(self, loss: Any) -> float:
        """What a loss may be off by where reduced costs are the nearest floats."""
        if self.exact:
            return 0.0
        found, error = self.reduced, 4 * ROUNDOFF
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
