"""Evaluation of a mixture of policies: one coin at the start, then one of them.

P(Z = z) of the mixture is the sum of weight * P_i(Z = z), and so are the tails and excesses beyond
a common cost X. The VaR of the mixture is at most the largest VaR of its members, so that is X;
members whose head ends before are evaluated with a finer tail until it does not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from tailpath.evaluation.distribution import CostDistribution
from tailpath.evaluation.engine import Request
from tailpath.kernels.rounding import UNIT

#: A tail this small is never cut finer.
LEAST_TAIL = 1e-250


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
            finer = max(finer**2 / 10, LEAST_TAIL)
            costs = evaluate(i, finer)
        members[i] = costs
    share = np.array(weights)
    values = np.unique(np.concatenate([costs.costs[costs.costs <= last] for costs in members]))
    probabilities = np.zeros(len(values))
    for weight, costs in zip(weights, members):
        inside = costs.costs <= last
        probabilities[np.searchsorted(values, costs.costs[inside])] += (
            weight * costs.probabilities[inside]
        )
    masses, opened, excesses = zip(*(_beyond(costs, last) for costs in members))
    mean = float(share @ [costs.mean for costs in members])
    spread = [
        costs.std**2 + (costs.mean - mean) ** 2 if np.isfinite(costs.mean) else np.inf
        for costs in members
    ]
    value, low, high = (float(share @ [excess[k] for excess in excesses]) for k in range(3))
    # One product and one addition for each member.
    error_bound = (len(members) + 4) * UNIT
    return CostDistribution(
        costs=values,
        probabilities=probabilities,
        tail_mass=float(share @ masses),
        open_mass=float(share @ opened),
        tail_excess=value,
        tail_excess_bounds=(low * (1 - error_bound), high * (1 + error_bound)),
        alpha=alpha,
        mean=mean,
        mean_bounds=(
            float(share @ [costs.mean_bounds[0] for costs in members]) * (1 - error_bound),
            float(share @ [costs.mean_bounds[1] for costs in members]) * (1 + error_bound),
        ),
        deviation=float(np.sqrt(share @ spread)),
        unreached=float(share @ [costs.unreached for costs in members]),
        relative_error=max(costs.relative_error for costs in members) + len(members) * 2.0**-52,
        cost_error=max(costs.cost_error for costs in members),
        dropped=float(share @ [costs.dropped for costs in members]),
        expanded=sum(costs.expanded for costs in members),
        engine=members[0].engine,
        reason="; ".join(sorted({costs.reason for costs in members if costs.reason})),
        stuck=next((costs.stuck for costs in members if costs.stuck), ""),
        gamma=request.gamma,
        ssp=request.ssp,
        policy=request.policy,
        unreached_bounds=(
            float(share @ [costs.unreached_bounds[0] for costs in members]) * (1 - error_bound),
            float(share @ [costs.unreached_bounds[1] for costs in members]) * (1 + error_bound),
        ),
    )


def _beyond(
    costs: CostDistribution, last: float
) -> tuple[float, float, tuple[float, float, float]]:
    """P(Z > last), what of it may arrive, and E[(Z - last)+] with its bounds, of a member whose
    head reaches that far or has nothing beyond it.
    """
    after = int(np.searchsorted(costs.costs, last, side="right"))
    behind, masses = costs.costs[after:], costs.probabilities[after:]
    mass = float(np.sum(masses))
    if costs.unreached > 0:
        return mass + costs.tail_mass, mass + costs.open_mass, (np.inf, np.inf, np.inf)
    end = float(costs.costs[-1]) if costs.costs.size else last
    head = float(np.sum(masses * (behind - last))) + max(end - last, 0.0) * costs.tail_mass
    # What the masses are off by, and the costs, whose differences cancel; what was dropped may
    # never have got there.
    error_bound = (costs.relative_error + (len(behind) + 8) * UNIT) * head
    error_bound += (costs.cost_error + UNIT) * (
        float(np.sum(masses * (behind + last))) + (end + last) * costs.tail_mass
    )
    low, high = costs.tail_excess_bounds
    low = max(
        head
        - error_bound
        - max(end - last, 0.0) * costs.dropped
        + low
        - max(last - end, 0.0) * costs.tail_mass * 2,
        0.0,
    )
    return (
        mass + costs.tail_mass,
        mass + costs.open_mass,
        (head + costs.tail_excess, low, head + error_bound + high),
    )
