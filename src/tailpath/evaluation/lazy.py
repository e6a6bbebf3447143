"""Evaluation of a policy whose memory need not end, such as a history: pairs (state, memory) are expanded as the search meets them.

There is no V_mean to complete the open nodes with, so the search goes on until almost nothing is open. What is open then counts with its least
cost; `bounds` is exact if nothing is open and otherwise has no upper end.
"""

from __future__ import annotations

import numpy as np

from tailpath.analysis.absorption import Bracket
from tailpath.evaluation.distribution import CostDistribution
from tailpath.evaluation.queue import LazyWalk, QueueSearch
from tailpath.evaluation.request import Request
from tailpath.evaluation.result import completed, summarise
from tailpath.model.ssp import SSP
from tailpath.policies.kinds import Policy

#: The policy is followed until this share of alpha is open.
REST = 1e-14


def evaluate_lazily(ssp: SSP, policy: Policy, request: Request) -> CostDistribution:
    """The distribution of the total cost as far as it is worth following."""
    gamma = request.gamma
    walk = LazyWalk(ssp, policy, request.heuristic, gamma)
    search = QueueSearch(walk, request)
    end = search.run(request.watch, until=request.alpha * REST)
    unit = None if gamma < 1 else ssp.cost_unit
    found = search.result(unit, numbered=False)
    scale = 1.0 if unit is None else float(unit)
    least = np.array([scale * walk.least(node.x) * gamma**node.stage for node in search.listed()], dtype=np.float64)
    settled = found.open.mass.size == 0 and found.aside.mass.size == 0
    mean = float(np.sum(found.costs * found.probabilities)) + float(np.sum(found.open.mass * (found.open.cost + least[found.open.node])))
    slack = 1 + found.relative_error + found.cost_error + 1e-15 * (len(found.costs) + 2)
    variance = float(np.sum(found.probabilities * (found.costs - mean) ** 2))
    arrives = found.lost == 0
    result = summarise(
        found,
        Bracket(least, least, np.full_like(least, np.inf), "least cost"),
        alpha=request.alpha,
        mean=(mean if arrives else np.inf, mean / slack, mean * slack if settled else np.inf),
        deviation=float(np.sqrt(variance)) if arrives else np.inf,
        unreached=found.lost,
        engine="queue",
    )
    return completed(result, end, request)
