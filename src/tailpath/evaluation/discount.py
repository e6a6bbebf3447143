"""Evaluation with a discount: the cost of step t, counted from 0, counts gamma^t times.

The queue searches pairs (node, cost) by stage, and open nodes count with gamma^t V_mean. Where
steps at no cost form a cycle, costs can be put off for ever, in more ways than can be followed:
what is unlikely stays where it is, and counts with its mean.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from tailpath.certify.values import Bounds, discounted_total
from tailpath.errors import PolicyError
from tailpath.evaluation.engine import Request, Search, one_side
from tailpath.evaluation.queue import QueueEngine
from tailpath.graph import FloatArray
from tailpath.model.endings import ending_chance
from tailpath.policies.chain import CostChain

#: Where costs can be put off for ever, a smaller share of alpha is not followed.
LEAST_PUT_OFF = 2.0**-30


class DiscountEngine(QueueEngine):
    """Evaluates a chain with a discount; raises PolicyError where more than alpha never arrives,
    since its costs never end.
    """

    def __init__(self, request: Request, chain: CostChain) -> None:
        missed = float(one_side(chain.unreached, 0)[chain.start])
        if missed > request.alpha:
            raise PolicyError(
                f"the policy misses the goal with probability {missed:.6g}, more than alpha; its"
                " discounted costs never end"
            )
        free = chain.only((chain.cost == 0) & (chain.target < chain.n))
        if chain.has_zero_cost_edges and free.cycles()[1].any():
            self.least = request.alpha * LEAST_PUT_OFF
        super().__init__(request, chain, chain)

    @cached_property
    def _total(self) -> Bounds:
        """The expected discounted cost to go."""
        return self._sum_of(self.chain.cost, self.request.gamma)

    def _sum_of(self, price: FloatArray, gamma: float) -> Bounds:
        """The expected discounted sum of a price per transition."""
        off = self.chain.ssp.probability_error
        return discounted_total(self.chain, price, gamma, ending_chance(gamma), off)

    def cost_to_go(self, found: Search, side: int) -> FloatArray:
        return self.request.gamma**found.stage * one_side(self._total, side)[found.node]

    def dearest(self, found: Search, side: int) -> float:
        return float(np.max(one_side(self._total, side)))

    def mean(self, side: int) -> float:
        return float(one_side(self._total, side)[self.chain.start])

    def missed(self, found: Search, side: int) -> float:
        return 0.0

    def variance(self, found: Search, mean: float) -> float:
        """A sum over the steps of (c + gamma V(x') - V(x))^2, each discounted twice."""
        chain, gamma = self.chain, self.request.gamma
        value = one_side(self._total, 0)
        squared = (chain.cost + gamma * value[chain.target] - value[chain.source]) ** 2
        return float(one_side(self._sum_of(squared, gamma**2), 0)[chain.start])
