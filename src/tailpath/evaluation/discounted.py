"""Evaluation with a discount: a cost at stage t counts gamma^t times.

Absorption at rate 1 - gamma per step makes every expected total finite, and equal costs at
different stages have different futures, so that the stage belongs to a node of the search and open
nodes count with gamma^t V_mean.
"""

from __future__ import annotations

import numpy as np

from tailpath.dp.bounds import Bounds
from tailpath.dp.expected import expected_total
from tailpath.errors import PolicyError
from tailpath.evaluation.distribution import CostDistribution
from tailpath.evaluation.engine import Moments, Request, summarise
from tailpath.evaluation.queue import QueueSearch
from tailpath.evaluation.search_graphs import ChainGraph
from tailpath.kernels.rounding import FLUTTER
from tailpath.model.ssp import FloatArray
from tailpath.policies.chain import CostChain


def evaluate_discounted(chain: CostChain, request: Request) -> CostDistribution:
    """The distribution of the discounted cost; refused where a mass above alpha never arrives,
    since its costs never end.
    """
    alpha, gamma = request.alpha, request.gamma
    missed = float(np.append(chain.unreached.value, 0.0)[chain.start])
    if missed > alpha:
        raise PolicyError(
            f"the policy misses the goal with probability {missed:.6g}, more than alpha; its"
            " discounted costs never end"
        )
    search = QueueSearch(ChainGraph(chain, request.heuristic, gamma), request)
    stop_reason = search.run()
    total = _discounted_total(chain, chain.cost, gamma).each(lambda v: np.append(v, 0.0))
    remaining = search.remaining()
    weight = np.array([gamma**entry.stage for entry in remaining], dtype=np.float64)
    node = np.array([entry.node for entry in remaining], dtype=np.int64)
    mean = total.each(lambda v: v[chain.start])
    moments = Moments(
        (float(mean.value), float(mean.lower), float(mean.upper)),
        _deviation(chain, total.value, gamma),
    )
    found = search.result(request.ssp.probability_error, numbered=False)
    return summarise(request, found, total.each(lambda v: weight * v[node]), moments, stop_reason)


def _discounted_total(chain: CostChain, step_cost: FloatArray, gamma: float) -> Bounds:
    """The expected discounted sum of a cost per transition."""
    rate = chain.sums(chain.probability * step_cost)
    # One more transition for each node, which ends the run.
    end = chain.row_start[1:]
    target, probability = (
        np.insert(chain.target, end, chain.n),
        np.insert(gamma * chain.probability, end, 1 - gamma),
    )
    rows = chain.row_start + np.arange(chain.n + 1), target, probability, rate
    return expected_total(*rows, chain.ssp.probability_error, close=FLUTTER)


def _deviation(chain: CostChain, value: FloatArray, gamma: float) -> float:
    """As without discount, the variance is a sum over the steps of (c + gamma V(x') - V(x))^2, each
    discounted twice.
    """
    squared_difference = (chain.cost + gamma * value[chain.target] - value[chain.source]) ** 2
    return float(
        np.sqrt(
            np.append(_discounted_total(chain, squared_difference, gamma**2).value, 0.0)[
                chain.start
            ]
        )
    )
