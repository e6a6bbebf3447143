"""Evaluation of a policy whose memory need not end, such as a history: pairs (state, memory) are
expanded as the search meets them.

There is no V_mean to complete the open nodes with, so the search goes on until almost nothing is
open. What is open then counts with its least cost; `bounds` is exact if nothing is open and
otherwise has no upper end.
"""

from __future__ import annotations

import numpy as np

from tailpath.dp.bounds import Bounds
from tailpath.evaluation.distribution import CostDistribution
from tailpath.evaluation.engine import Request, Totals, charged, summarise
from tailpath.evaluation.queue import LazyWalk, QueueSearch
from tailpath.kernels.rounding import UNIT
from tailpath.model.cost_units import in_costs

#: The policy is followed until this share of alpha is open.
REST = 1e-14


def evaluate_lazily(request: Request) -> CostDistribution:
    """The distribution of the total cost as far as it is worth following."""
    gamma = request.gamma
    walk = LazyWalk(request.ssp, request.policy, request.heuristic, gamma)
    search = QueueSearch(walk, request)
    end = search.run(until=request.alpha * REST)
    found = search.result(request.ssp.probability_error, numbered=False)
    least: list[float] = [walk.least(node.x) for node in search.listed()]
    if walk.unit is not None:
        ahead = in_costs(least, walk.unit) * (1 - 2 * UNIT)
    else:
        ahead = np.array(
            [cost * gamma**node.stage for cost, node in zip(least, search.listed())],
            dtype=np.float64,
        )
    settled = found.open.mass.size == 0 and found.truncated.mass.size == 0
    mean = found.mean(ahead)
    slack = 1 + found.relative_error + found.cost_error + 1e-15 * (len(found.costs) + 2)
    error_bound = found.relative_error + (len(found.open.mass) + 4) * UNIT
    variance = float(np.sum(found.probabilities * (found.costs - mean) ** 2))
    # Nobody knows whether what is open arrives.
    opened = float(np.sum(found.open.mass)) + charged(found.truncated, 1.0)
    missed = found.lost * (1 - error_bound), (found.lost + opened) * (1 + error_bound)
    totals = Totals(
        (mean, mean / slack, mean * slack if settled else np.inf),
        float(np.sqrt(variance)),
        unreached_bounds=missed,
    )
    if found.lost > 0:
        totals = Totals((np.inf, np.inf, np.inf), np.inf, found.lost, missed)
    cost_to_go = Bounds(ahead, ahead, np.full_like(ahead, np.inf), "least cost")
    return summarise(request, found, cost_to_go, totals, end)
