"""The distribution of a mixture of policies, by one coin at the start: P(Z = z) is the sum of
weight * P_i(Z = z), and so are the tails and excesses beyond a common cost X. The VaR of the
mixture is at most the largest VaR of its members, so that is X; members whose head ends before are
evaluated with a finer tail until it does not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from tailpath.certify.totals import mixed_enclosure
from tailpath.dp.totals import mixed
from tailpath.evaluation.distribution import CostDistribution
from tailpath.evaluation.engine import Request

#: A tail this small is never cut finer.
LEAST_TAIL = 1e-250


def reaching(
    found: CostDistribution, cost: float, evaluate: Callable[[float], CostDistribution]
) -> CostDistribution:
    """A distribution whose head reaches a cost, or has nearly everything: where the one found does
    not, the tail is cut finer, at 0.1, 1e-3, 1e-7, ...
    """
    while (
        found.open_mass > LEAST_TAIL
        and found.alpha > LEAST_TAIL
        and not (found.costs.size and found.costs[-1] >= cost)
    ):
        found = evaluate(max(min(found.alpha, found.tail_mass) ** 2 / 10, LEAST_TAIL))
    return found


def mixed_distribution(
    request: Request, weights: Sequence[float], evaluate: Callable[[int, float], CostDistribution]
) -> CostDistribution:
    """The distribution of a mixture; `evaluate(i, alpha)` gives that of member i."""
    alpha = request.alpha
    members = [evaluate(i, alpha) for i in range(len(weights))]
    heads = [costs for costs in members if costs.costs.size]
    last = max((costs.totals.last for costs in heads), default=0.0)
    farthest = max((costs.costs[-1] for costs in heads), default=0.0)
    members = [reaching(costs, farthest, partial(evaluate, i)) for i, costs in enumerate(members)]
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
