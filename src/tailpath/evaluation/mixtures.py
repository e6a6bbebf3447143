"""The distribution of a mixture of policies, by one coin at the start: P(Z = z) is the sum of
weight * P_i(Z = z), and so are the tails and excesses beyond a common cost X. The VaR of the
mixture is at most the largest VaR of its members, so that is X; members whose head ends before are
evaluated with a finer tail until it does not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tailpath.certify.totals import mixed_enclosure
from tailpath.dp.totals import mixed
from tailpath.evaluation.distribution import CostDistribution
from tailpath.evaluation.engine import Request

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
    last = max((costs.totals.last for costs in members if costs.costs.size), default=0.0)
    for i, costs in enumerate(members):
        finer = alpha
        while (
            costs.open_mass > 0
            and finer > LEAST_TAIL
            and (not costs.costs.size or costs.totals.last < last)
        ):
            finer = finer_tail(finer)
            costs = evaluate(i, finer)
        members[i] = costs
    found = mixed(weights, [costs.totals for costs in members], last)
    return CostDistribution._from_totals(
        found,
        request.border,
        alpha=alpha,
        expanded=sum(costs.expanded for costs in members),
        engine=members[0].engine,
        reason="; ".join(sorted({costs.reason for costs in members if costs.reason})),
        stuck=next((costs.stuck for costs in members if costs.stuck), ""),
        gamma=request.gamma,
        policy=request.policy,
        proof=lambda: mixed_enclosure(
            weights, [costs.enclosure for costs in members], found.costs, last
        ),
    )
