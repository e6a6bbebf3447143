"""Distributions of the total cost that are made of others.

*A mixture of policies*, by one coin at the start: P(Z = z) is the sum of weight * P_i(Z = z), and
so are the tails and excesses beyond a common cost X. The VaR of the mixture is at most the largest
VaR of its members, so that is X; members whose head ends before are evaluated with a finer tail
until it does not.

*Costs of any sign*: the distribution of the reduced model (`model/potential.py`), whose costs are 0
or more, and so much more. Whatever is claimed is claimed by that one, and moved.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from tailpath.evaluation.distribution import CostDistribution
from tailpath.evaluation.engine import Request
from tailpath.evaluation.expected_loss import Bracket
from tailpath.kernels.rounding import ROUNDOFF
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
    share = np.array(weights)
    # One product and one addition for each member.
    error_bound = (len(members) + 4) * ROUNDOFF

    def mixed(of_members: Iterable[float]) -> float:
        return float(share @ list(of_members))

    def mixed_bounds(of_members: Iterable[Bracket]) -> Bracket:
        low, high = map(mixed, zip(*of_members))
        return low * (1 - error_bound), high * (1 + error_bound)

    inside = [costs.costs <= last for costs in members]
    values, position = np.unique(
        np.concatenate([costs.costs[head] for costs, head in zip(members, inside)]),
        return_inverse=True,
    )
    parts = [w * costs.probabilities[head] for w, costs, head in zip(weights, members, inside)]
    masses, open_masses, excesses, excess_bounds = zip(
        *(_tail_beyond(costs, last) for costs in members)
    )
    mean = mixed(costs.mean for costs in members)
    variance = mixed(
        costs.std**2 + (costs.mean - mean) ** 2 if np.isfinite(costs.mean) else np.inf
        for costs in members
    )
    return CostDistribution(
        costs=values,
        probabilities=np.bincount(position, weights=np.concatenate(parts)).astype(np.float64),
        tail_mass=mixed(masses),
        open_mass=mixed(open_masses),
        tail_excess=mixed(excesses),
        tail_excess_bounds=mixed_bounds(excess_bounds),
        alpha=alpha,
        mean=mean,
        mean_bounds=mixed_bounds(costs.mean_bounds for costs in members),
        deviation=float(np.sqrt(variance)),
        unreached=mixed(costs.unreached for costs in members),
        relative_error=max(costs.relative_error for costs in members) + len(members) * 2.0**-52,
        cost_error=max(costs.cost_error for costs in members),
        dropped=mixed(costs.dropped for costs in members),
        expanded=sum(costs.expanded for costs in members),
        engine=members[0].engine,
        reason="; ".join(sorted({costs.reason for costs in members if costs.reason})),
        stuck=next((costs.stuck for costs in members if costs.stuck), ""),
        gamma=request.gamma,
        ssp=request.ssp,
        policy=request.policy,
        unreached_bounds=mixed_bounds(costs.unreached_bounds for costs in members),
    )


def _tail_beyond(costs: CostDistribution, last: float) -> tuple[float, float, float, Bracket]:
    """P(Z > last), what of it may arrive, E[(Z - last)+] and its bounds, of a member whose head
    reaches that far or has nothing beyond it.
    """
    after = int(np.searchsorted(costs.costs, last, side="right"))
    beyond, masses = costs.costs[after:], costs.probabilities[after:]
    mass = float(np.sum(masses))
    if costs.unreached > 0:
        return mass + costs.tail_mass, mass + costs.open_mass, np.inf, (np.inf, np.inf)
    head_end = float(costs.costs[-1]) if costs.costs.size else last
    head = float(np.sum(masses * (beyond - last))) + max(head_end - last, 0.0) * costs.tail_mass
    # What the masses are off by, and the costs, whose differences cancel; what was dropped may
    # never have got there.
    error_bound = (costs.relative_error + (len(beyond) + 8) * ROUNDOFF) * head
    error_bound += (costs.cost_error + ROUNDOFF) * (
        float(np.sum(masses * (beyond + last))) + (head_end + last) * costs.tail_mass
    )
    low, high = costs.tail_excess_bounds
    low = max(
        head
        - error_bound
        - max(head_end - last, 0.0) * costs.dropped
        + low
        - max(last - head_end, 0.0) * costs.tail_mass * 2,
        0.0,
    )
    return (
        mass + costs.tail_mass,
        mass + costs.open_mass,
        head + costs.tail_excess,
        (low, head + error_bound + high),
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
        moved = {
            "costs": costs,
            "mean": shifted(reduced.mean, by),
            "mean_bounds": shifted_bounds(reduced.mean_bounds, by, exact),
        }
        error = (
            0.0
            if exact and reduced.cost_error == 0 and np.array_equal(costs, np.rint(costs))
            else max(reduced.cost_error, 4 * ROUNDOFF)
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

    def _cvar_bounds(self, alpha: float) -> tuple[float, float]:
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
