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
from tailpath.evaluation.engine import Moments, Request, summarise, truncation_bound
from tailpath.evaluation.queue import QueueSearch
from tailpath.evaluation.search_graphs import LazyGraph
from tailpath.kernels.rounding import UNIT
from tailpath.model.cost_units import in_costs

#: The policy is followed until this share of alpha is open.
OPEN_SHARE = 1e-14


def evaluate_lazily(request: Request) -> CostDistribution:
    """The distribution of the total cost as far as it is worth following."""
    gamma = request.gamma
    graph = LazyGraph(request.ssp, request.policy, request.heuristic, gamma)
    search = QueueSearch(graph, request)
    stop_reason = search.run(until=request.alpha * OPEN_SHARE)
    found = search.result(request.ssp.probability_error, numbered=False)
    least: list[float] = [graph.heuristic(entry.node) for entry in search.remaining()]
    if graph.unit is not None:
        least_cost = in_costs(least, graph.unit) * (1 - 2 * UNIT)
    else:
        least_cost = np.array(
            [cost * gamma**entry.stage for cost, entry in zip(least, search.remaining())],
            dtype=np.float64,
        )
    complete = found.open.mass.size == 0 and found.truncated.mass.size == 0
    mean = found.mean(least_cost)
    slack = 1 + found.relative_error + found.cost_error + 1e-15 * (len(found.costs) + 2)
    error_bound = found.relative_error + (len(found.open.mass) + 4) * UNIT
    variance = float(np.sum(found.probabilities * (found.costs - mean) ** 2))
    # Nobody knows whether what is open arrives.
    open_mass = float(np.sum(found.open.mass)) + truncation_bound(found.truncated, 1.0)
    missed = (
        found.dead_end_mass * (1 - error_bound),
        (found.dead_end_mass + open_mass) * (1 + error_bound),
    )
    moments = Moments(
        (mean, mean / slack, mean * slack if complete else np.inf),
        float(np.sqrt(variance)),
        unreached_bounds=missed,
    )
    if found.dead_end_mass > 0:
        moments = Moments((np.inf, np.inf, np.inf), np.inf, found.dead_end_mass, missed)
    cost_to_go = Bounds(least_cost, least_cost, np.full_like(least_cost, np.inf), "least cost")
    return summarise(request, found, cost_to_go, moments, stop_reason)
