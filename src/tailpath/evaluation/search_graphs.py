"""Where the queue engine searches: graphs that hand out successors, costs and a heuristic.

Costs without a common unit that is worth the name are integer multiples of a tiny one, since each
is a decimal as it was written; so all sums are exact, and so is what they decide. With a discount
costs are floats.

The search is exact if the heuristic h is *consistent* along the policy: h(x) <= c + h(x') for every
step that may happen, and h = 0 at the goal. Then a pair that has left the queue does not come back.
V_min, the default, is the largest such h. One of the user's own is refused where it is not
consistent, and rounded down to integer units, which keeps it so.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from tailpath.analysis.reachability import until_goals
from tailpath.certify.rounding import row_factor
from tailpath.errors import OptionError
from tailpath.evaluation.engine import Heuristic
from tailpath.graph import FloatArray, IntArray, Transitions, first_of
from tailpath.model.cost_units import as_fraction, in_costs, integer_costs
from tailpath.model.ssp import SSP
from tailpath.policies.chain import CostChain
from tailpath.policies.policy import Policy
from tailpath.policies.unrolling import successors

GOAL = "goal"
#: Allowance for the rounding of the user's numbers, relatively.
ROUNDING = 1e-12


class SearchGraph:
    """Successors with cost and probability, and the heuristic. Costs count in units, or are floats
    where `unit` is None.

    The cheapest way out of `edges` is V_min; with a discount that is no lower bound, and 0 is. Dead
    ends stay infinite under any heuristic: what enters them need not be followed.
    """

    start: Any
    goal: Any
    remembers_all = False

    def __init__(
        self,
        edges: Transitions,
        level: IntArray | None,
        unit: Fraction | None,
        heuristic: Heuristic,
        gamma: float,
    ) -> None:
        costs: list[Any]
        self.unit: Fraction | None
        costs, self.unit = integer_costs(edges.cost) if level is None else (level.tolist(), unit)
        self._heuristic = least_costs_to_go(edges, costs)
        if gamma < 1 or (isinstance(heuristic, str) and heuristic == "zero"):
            self._heuristic = [v if math.isinf(v) else 0 for v in self._heuristic]
        if gamma < 1:
            costs, self.unit = edges.cost.tolist(), None
        self._cost = costs

    def successors(self, node: Any) -> Iterable[tuple[Any, Any, float]]:
        raise NotImplementedError

    def heuristic(self, node: Any) -> Any:
        return self._heuristic[node]

    def number(self, node: Any) -> int:
        """A number for what is known of a node."""
        return int(node)


class ChainGraph(SearchGraph):
    """The transitions of a chain; the goal is node n."""

    def __init__(
        self, chain: CostChain, heuristic: Heuristic, gamma: float, probability: FloatArray
    ) -> None:
        super().__init__(chain, chain.level, chain.unit, heuristic, gamma)
        self.start, self.goal = chain.start, chain.n
        if gamma < 1:  # what never arrives has a total cost, too
            self._heuristic = [0] * (chain.n + 1)
        elif not isinstance(heuristic, str):
            checked, up = check_consistent(chain, heuristic), 1 + Fraction(ROUNDING)
            assert self.unit is not None
            own = (math.floor(as_fraction(h) * up / self.unit) for h in checked.tolist())
            self._heuristic = [
                v if math.isinf(v) else min(v, h) for v, h in zip(self._heuristic, own)
            ]
        self._row_start = chain.row_start.tolist()
        self._transitions = list(zip(chain.target.tolist(), self._cost, probability.tolist()))

    def successors(self, node: int) -> Iterable[tuple[int, Any, float]]:
        return self._transitions[self._row_start[node] : self._row_start[node + 1]]


class LazyGraph(SearchGraph):
    """Pairs (state index, memory), stepped by the policy's own functions. V_min is over all
    policies. Probabilities are too small (`side` -1) or too large (+1) by what a step may round.
    """

    remembers_all = True

    def __init__(
        self, ssp: SSP, policy: Policy, heuristic: Heuristic, gamma: float, side: int
    ) -> None:
        unit = ssp.cost_unit
        edges = until_goals(ssp)
        super().__init__(edges, None if unit is None else ssp.outcome_level, unit, heuristic, gamma)
        self.ssp, self.policy, self.side = ssp, policy, side
        self.goal = GOAL
        self.start = (
            GOAL if ssp.is_goal[ssp.start_index] else (ssp.start_index, policy.start(ssp.start))
        )

    def successors(self, node: Any) -> Iterable[tuple[Any, Any, float]]:
        steps = list(successors(self.ssp, self.policy, *node))
        factor = row_factor(len(steps), self.side, self.ssp.probability_error)
        for state, memory, outcome, p in steps:
            to = GOAL if self.ssp.is_goal[state] else (state, memory)
            yield to, self._cost[outcome], p * factor

    def heuristic(self, node: Any) -> Any:
        return 0 if node == GOAL else self._heuristic[node[0]]

    def number(self, node: Any) -> int:
        """That of its state."""
        return self.ssp.n_states if node == GOAL else int(node[0])

    @property
    def least_cost(self) -> FloatArray:
        """The heuristic in costs, by state, and 0 for the goal."""
        least = [*self._heuristic[: self.ssp.n_states], 0]
        return (
            np.array(least, dtype=np.float64) if self.unit is None else in_costs(least, self.unit)
        )


def least_costs_to_go(edges: Transitions, cost: list[int]) -> list[Any]:
    """V_min of every node, as an integer or, where it is too large for a float, a little less.
    Costs are rounded down beforehand, so that all sums are exact and h(x) <= c + h(y) to the last
    digit.
    """
    coarse = max(1, max(cost, default=0) * (edges.n + 1) >> 52)
    down = np.array([c // coarse for c in cost], dtype=np.float64)
    least = edges.replaced(cost=down, level=None).distances().least
    return [v if math.isinf(v) else int(v) * coarse for v in least.tolist()]


def own_heuristic(ssp: SSP, given: Any) -> FloatArray:
    """A user's heuristic as an array over the states."""
    if isinstance(given, Mapping):
        for state, goal in zip(ssp.states, ssp.is_goal):
            if not goal and state not in given:
                raise OptionError(f"the heuristic has no value for state {state!r}")
        values: Any = [given.get(state, 0.0) for state in ssp.states]
    else:
        values = [given(state) for state in ssp.states] if callable(given) else given
    try:
        array = np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise OptionError("a heuristic gives a number for every state") from None
    if array.shape != (ssp.n_states,):
        raise OptionError(f"the heuristic has {array.size} values for {ssp.n_states} states")
    for index in first_of(~(np.isfinite(array) & (array >= 0))):
        raise OptionError(
            f"the heuristic is {array[index]:g} at state {ssp.states[index]!r}; it must be a number"
            " of at least 0"
        )
    return np.where(ssp.is_goal, 0.0, array)


def check_consistent(chain: CostChain, heuristic: FloatArray) -> FloatArray:
    """The heuristic at every node of a chain and at the goal."""
    value = np.append(heuristic[chain.state[: chain.n]], 0.0)
    over = value[chain.source] - (chain.cost + value[chain.target])
    unit = 1.0 if chain.unit is None else float(chain.unit)
    for transition in first_of(over > ROUNDING * np.maximum(unit, value[chain.source])):
        source, target = int(chain.source[transition]), int(chain.target[transition])
        to = "the goal" if target >= chain.n else chain.label(target)
        raise OptionError(
            f"the heuristic is not consistent: {value[source]:g} at {chain.label(source)} exceeds"
            f" the cost {chain.cost[transition]:g} of a step to {to} plus {value[target]:g} there"
        )
    return value
