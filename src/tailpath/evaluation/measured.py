"""Evaluation as far as measures of risk need it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tailpath.evaluation.distribution import CostDistribution
from tailpath.evaluation.evaluate import evaluate
from tailpath.model.ssp import SSP

#: Tails below this mass are beyond what doubles hold; whatever lies there counts as settled.
LEAST_TAIL = 1e-250


def evaluate_for(ssp: SSP, policy: Any, measures: Iterable[Any], alpha: float = 1.0, max_nodes: int | None = None) -> CostDistribution:
    """The distribution of the total cost of a policy, known as far as all the measures ask, and for every tail mass from `alpha` up.

    How far a tail mass leads is known only afterwards, so where a measure asks for the probability of a certain cost the tail is cut finer until
    the cost is reached.
    """
    wanted = list(measures)
    alpha = min([alpha, *(measure.finest_alpha for measure in wanted)])
    cost = max([0.0, *(measure.farthest_cost for measure in wanted)])
    while True:
        found = evaluate(ssp, policy, alpha, max_nodes=max_nodes)
        arriving = found.tail_mass - found.unreached
        if (found.costs.size and found.costs[-1] >= cost) or arriving <= LEAST_TAIL or alpha <= LEAST_TAIL:
            return found
        # Two steps of the same factor: from a mass of 0.1 to 0.01, then to 0.0001 and so on.
        alpha = max(min(alpha, found.tail_mass) ** 2 / 10, LEAST_TAIL)
