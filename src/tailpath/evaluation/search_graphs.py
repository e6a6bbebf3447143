"""Where the queue engine searches: graphs that hand out successors, costs and a heuristic.

Costs without a usable common unit are integer multiples of a tiny one, since each
is a decimal as it was written; so all sums are exact, and so is what they decide. With a discount
costs are floats.

The search is exact since the heuristic is *admissible*: at most V_min, the least cost of a run from
there. V_min and 0 are *consistent*, too, h(x) <= c + h(x') for every step: a pair that has left the
queue does not come back.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from tailpath.analysis.reachability import until_goals
from tailpath.certify.rounding import row_factor
from tailpath.graph import FloatArray, Transitions
from tailpath.model.cost_units import in_costs, integer_costs
from tailpath.model.ssp import SSP
from tailpath.policies.chain import CostChain
from tailpath.policies.policy import Policy
from tailpath.policies.unrolling import successors


@dataclass(frozen=True, eq=False)
class SearchGraph:
    """What the queue searches: `successors` hands out the next nodes, each with cost and
    probability. Costs count in units, or are floats where `unit` is None.

    `least` is the heuristic by the `number` of a node, infinite at dead ends under any heuristic:
    what enters them need not be followed. `remembers_all`: a node takes memory for every step that
    leads to it.
    """

    start: Any
    goal: Any
    successors: Callable[[Any], Iterable[tuple[Any, Any, float]]]
    number: Callable[[Any], int]
    least: list[Any]
    unit: Fraction | None
    remembers_all: bool

    @property
    def least_cost(self) -> FloatArray:
        """The heuristic in costs."""
        if self.unit is None:
            return np.array(self.least, dtype=np.float64)
        return in_costs(self.least, self.unit)


def _costs(
    edges: Transitions, unit: Fraction | None, heuristic: str, gamma: float
) -> tuple[list[Any], list[Any], Fraction | None]:
    """The cost of every edge, the least cost to go from every node, and the unit of both. With a
    discount V_min is no lower bound, and 0 is.
    """
    costs: list[Any]
    costs, unit = integer_costs(edges.cost) if edges.level is None else (edges.level.tolist(), unit)
    least = least_costs_to_go(edges, costs)
    if gamma < 1 or heuristic == "zero":
        least = [v if math.isinf(v) else 0 for v in least]
    return (costs, least, unit) if gamma == 1 else (edges.cost.tolist(), least, None)


def chain_graph(
    chain: CostChain, heuristic: str, gamma: float, probability: FloatArray
) -> SearchGraph:
    """The transitions of a chain; the goal is node n."""
    costs, least, unit = _costs(chain, chain.unit, heuristic, gamma)
    if gamma < 1:  # what never arrives has a total cost, too
        least = [0] * (chain.n + 1)
    row_start = chain.row_start.tolist()
    edges = list(zip(chain.target.tolist(), costs, probability.tolist()))
    return SearchGraph(
        chain.start,
        chain.n,
        lambda node: edges[row_start[node] : row_start[node + 1]],
        int,
        least,
        unit,
        False,
    )


def lazy_graph(ssp: SSP, policy: Policy, heuristic: str, gamma: float, side: int) -> SearchGraph:
    """Pairs (state index, memory), stepped by the policy's own functions. V_min is over all
    policies. Probabilities are too small (`side` -1) or too large (+1) by what a step may round.
    """
    level = None if ssp.cost_unit is None else ssp.outcome_level
    edges = until_goals(ssp).replaced(level=level)
    costs, least, unit = _costs(edges, ssp.cost_unit, heuristic, gamma)
    goal = (ssp.n_states, None)

    def step(node: tuple[int, Any]) -> Iterator[tuple[Any, Any, float]]:
        steps = list(successors(ssp, policy, *node))
        factor = row_factor(len(steps), side, ssp.probability_error)
        for state, memory, outcome, p in steps:
            yield goal if ssp.is_goal[state] else (state, memory), costs[outcome], p * factor

    start = ssp.start_index
    begin = goal if ssp.is_goal[start] else (start, policy.start(ssp.start))
    return SearchGraph(begin, goal, step, lambda node: int(node[0]), least, unit, True)


def least_costs_to_go(edges: Transitions, cost: list[int]) -> list[Any]:
    """V_min of every node, as an integer or, where it is too large for a float, a little less.
    Costs are rounded down beforehand, so that all sums are exact and h(x) <= c + h(y) to the last
    digit.
    """
    coarse = max(1, max(cost, default=0) * (edges.n + 1) >> 52)
    down = np.array([c // coarse for c in cost], dtype=np.float64)
    least = edges.replaced(cost=down, level=None).distances().least
    return [v if math.isinf(v) else int(v) * coarse for v in least.tolist()]
