"""ForPECVaR as published (Algorithm 1), in plain Python: the engine for any costs, any discount and
any policy, and the reference for the other one.

Pairs (node, cost) leave a priority queue in the order (cost + V_min(node), cost). A goal adds its
probability to the head; any other pair sends its probability on to its successors, where equal ones
are grouped. The loop stops when P(Z > X) <= alpha. With gamma < 1 the stage t belongs to the
key, since equal costs at different stages have different futures.

The paper computes the tail as (V_mean - V_{<=X} P) / (1 - P), which loses all digits for small
alpha. Here the open nodes are handed over instead, and the tail is summed over them. For the same
reason P(Z > X) is the sum of the open probabilities, taken anew whenever it matters.

A graph hands out integer costs and knows nothing of the search. Costs without a common unit that is
worth the name are integer multiples of a tiny one, since each is a decimal as it was written; so
all sums are exact, and so is what they decide. With a discount costs are floats.

    ChainGraph  a finite chain
    LazyGraph   pairs (state, memory) of a policy whose memory need not end, such as a history;
                expanded as they are met
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from tailpath.evaluation.engine import (
    SCALE,
    Heuristic,
    OpenMass,
    Request,
    SearchResult,
    StopReason,
    cost_error,
    truncation_threshold,
    unscaled,
)
from tailpath.evaluation.heuristics import ROUNDING, check_consistent
from tailpath.graph import IntArray, Transitions
from tailpath.kernels.rounding import FIXED, ROW, SAME_MASS, UNIT
from tailpath.model.cost_units import as_fraction, decimal_above, in_costs, integer_costs
from tailpath.model.ssp import SSP, FloatArray
from tailpath.policies.chain import CostChain
from tailpath.policies.policy import Policy
from tailpath.policies.unrolling import MANY_PAIRS, successors, warn_of_growth

GOAL = "goal"


class SearchGraph:
    """Where a search can go: successors with cost and probability, and a lower bound on the cost
    to go, the heuristic. Costs count in units, or are floats where `unit` is None.

    `edges` are the transitions whose cheapest way outside is V_min; with a discount that is no
    lower bound, and 0 is. Dead ends stay infinite under any heuristic: what enters them need not be
    followed.
    """

    start: Any
    goal: Any
    least_probability: float
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


class ChainGraph(SearchGraph):
    """The transitions of a chain; the goal is node n."""

    def __init__(self, chain: CostChain, heuristic: Heuristic, gamma: float) -> None:
        super().__init__(chain, chain.level, chain.unit, heuristic, gamma)
        self.start, self.goal = chain.start, chain.n
        self.least_probability = float(chain.probability.min(initial=1.0))
        if gamma < 1:
            least = discounted_least_cost(chain, gamma)
            self._heuristic = (least if heuristic == "min" else np.zeros_like(least)).tolist()
        elif not isinstance(heuristic, str):
            checked, up = check_consistent(chain, heuristic), 1 + Fraction(ROUNDING)
            assert self.unit is not None
            own = (math.floor(as_fraction(h) * up / self.unit) for h in checked.tolist())
            self._heuristic = [
                v if math.isinf(v) else min(v, h) for v, h in zip(self._heuristic, own)
            ]
        self._row_start = chain.row_start.tolist()
        self._transitions = list(zip(chain.target.tolist(), self._cost, chain.probability.tolist()))

    def successors(self, node: int) -> Iterable[tuple[int, Any, float]]:
        return self._transitions[self._row_start[node] : self._row_start[node + 1]]


class LazyGraph(SearchGraph):
    """Pairs (state index, memory), stepped by the policy's own functions. V_min is over all
    policies of the model, hence admissible.
    """

    remembers_all = True

    def __init__(self, ssp: SSP, policy: Policy, heuristic: Heuristic, gamma: float) -> None:
        edges = ssp.by_state.renumber(np.where(ssp.is_goal, ssp.n_states, np.arange(ssp.n_states)))
        unit = ssp.cost_unit
        super().__init__(edges, None if unit is None else ssp.outcome_level, unit, heuristic, gamma)
        self.ssp, self.policy = ssp, policy
        self._steps = itertools.count()
        # A policy may mix actions with probabilities of its own; nobody mixes in less than this.
        self.least_probability = float(ssp.outcome_probability.min(initial=1.0)) * 1e-20
        self.goal = GOAL
        self.start = (
            GOAL if ssp.is_goal[ssp.start_index] else (ssp.start_index, policy.start(ssp.start))
        )

    def successors(self, node: Any) -> Iterable[tuple[Any, Any, float]]:
        if next(self._steps) == MANY_PAIRS:
            warn_of_growth()
        for state, memory, outcome, p in successors(self.ssp, self.policy, *node):
            yield GOAL if self.ssp.is_goal[state] else (state, memory), self._cost[outcome], p

    def heuristic(self, node: Any) -> Any:
        return 0 if node == GOAL else self._heuristic[node[0]]


@dataclass
class Entry:
    """An entry of the queue: a node of the graph, what was paid on the way to it, and with which
    probability, in units of 2^-SCALE; `roundings` counts those of the longest way.
    """

    node: Any
    cost: Any
    stage: int
    probability: float
    roundings: int


class QueueSearch:
    """Algorithm 1 with insert-and-group, on a graph."""

    def __init__(self, graph: SearchGraph, request: Request) -> None:
        self.graph, self.request = graph, request
        self.gamma = request.gamma
        self.head: dict[Any, float] = {}
        self.head_roundings = self.longest = 0
        self.dead_end_mass = 0.0
        self.expanded = 0
        self._open: dict[tuple[Hashable, Any, int], Entry] = {}
        self._truncated: list[Entry] = []
        self._heap: list[tuple[Any, Any, int, tuple[Hashable, Any, int]]] = []
        self._tick = itertools.count()
        self._insert_and_group(graph.start, 0, 0, 2.0**SCALE, 0)

    def _insert_and_group(
        self, node: Any, cost: Any, stage: int, probability: float, roundings: int
    ) -> None:
        key = (node, cost, stage if self.gamma < 1 else 0)
        if key in self._open:
            entry = self._open[key]
            entry.probability += probability
            entry.roundings = max(entry.roundings, roundings) + 1
            entry.stage = max(entry.stage, stage)
            return
        least = self.graph.heuristic(node)
        if math.isinf(least):
            self.dead_end_mass += probability
            return
        self._open[key] = Entry(node, cost, stage, probability, roundings)
        order = (
            (cost + least, cost)
            if self.gamma == 1
            else (_quantised(cost + self.gamma**stage * least), stage)
        )
        heapq.heappush(self._heap, (*order, next(self._tick), key))

    def open_mass(self) -> float:
        return (
            math.fsum(
                entry.probability for entry in itertools.chain(self._open.values(), self._truncated)
            )
            + self.dead_end_mass
        )

    def run(self, until: float = 0.0) -> StopReason:
        """Expand until P(Z > X) <= alpha, or until a limit is passed or the user stops it. `until`
        < alpha goes on to that open mass.
        """
        with self.request.monitor:
            return self._run((until if until > 0 else self.request.alpha) * 2.0**SCALE)

    def _run(self, target_mass: float) -> StopReason:
        monitor, limit = self.request.monitor, self.request.limit
        pause = self.request.tuning.queue_pause
        least_mass = truncation_threshold(self.request.alpha, self.graph.least_probability)
        base, arrived_since = 2.0**SCALE, 0.0
        highest: Any = -math.inf
        while self._heap:
            if monitor.stop:
                return StopReason.STOPPED
            # Look before each new priority: the head is complete up to the highest one so far.
            if self.head and self._heap[0][0] > highest:
                tail = base - arrived_since
                if tail <= target_mass * (1 + 1e-9) or tail < 0.25 * base:
                    base, arrived_since = self.open_mass(), 0.0
                    if base <= target_mass * (1 + SAME_MASS):
                        return StopReason.FINISHED
                if self.expanded > limit:
                    return StopReason.NODES
            priority, _, _, key = heapq.heappop(self._heap)
            highest = max(highest, priority)
            entry = self._open.pop(key)
            if entry.node == self.graph.goal:
                self.head[entry.cost] = self.head.get(entry.cost, 0.0) + entry.probability
                self.head_roundings = max(self.head_roundings, entry.roundings + 1)
                self.longest = max(self.longest, entry.stage)
                arrived_since += entry.probability
                continue
            if entry.probability >= least_mass:
                self._expand(entry)
            else:
                self._truncated.append(entry)
            if self.expanded > 2 * limit + 1000:
                return StopReason.NODES
            if self.expanded % pause == 0:
                if self._bytes(entry.stage) > self.request.max_bytes:
                    return StopReason.MEMORY
                monitor.report(self.expanded, math.fsum(self.head.values()) * 2.0**-SCALE)
        return StopReason.FINISHED

    def _expand(self, entry: Entry) -> None:
        self.expanded += 1
        factor = self.gamma**entry.stage if self.gamma < 1 else 1
        successors = list(self.graph.successors(entry.node))
        roundings = entry.roundings + ROW * len(successors) + FIXED + 2
        for node, cost, p in successors:
            self._insert_and_group(
                node, entry.cost + factor * cost, entry.stage + 1, entry.probability * p, roundings
            )

    def _bytes(self, stage: int) -> int:
        """About the memory in use: an entry of the queue takes 600 bytes, and a memory that is a
        history as much as it is long.
        """
        history = 24 * stage if self.graph.remembers_all else 0
        return (len(self._open) + len(self._truncated)) * (600 + history) + 200 * len(self.head)

    def remaining(self) -> list[Entry]:
        """All that has not arrived: first what is open, then what was truncated."""
        return [*self._open.values(), *self._truncated]

    def relative_error(self) -> float:
        worst = max((entry.roundings for entry in self._open.values()), default=0)
        return (max(worst, self.head_roundings) + 4) * UNIT

    def result(self, cycle_error: float = 0.0, *, numbered: bool = True) -> SearchResult:
        """What was found, as arrays of costs. `numbered=False`: nodes get the numbers of their
        positions in `remaining()`.
        """
        costs, probabilities, cost_error = self._head()
        entries, n_open = self.remaining(), len(self._open)
        unit, last = self.graph.unit, max(self.head, default=0)
        paid: Any = [entry.cost for entry in entries]
        overshoot_error = 0.0
        if unit is not None:
            overshoot = in_costs([cost - last for cost in paid], unit)
        else:
            overshoot = np.array(paid, dtype=np.float64) - last
            overshoot_error = cost_error * (last + max(paid, default=0.0))
        remaining = OpenMass(
            np.array([entry.node for entry in entries], dtype=np.int64)
            if numbered
            else np.arange(len(entries)),
            overshoot,
            np.array([entry.probability for entry in entries], dtype=np.float64),
        )
        open_nodes, truncated = unscaled(
            remaining.selected(slice(n_open)), remaining.selected(slice(n_open, None))
        )
        return SearchResult(
            costs=costs,
            probabilities=probabilities * 2.0**-SCALE,
            open=open_nodes,
            truncated=truncated,
            dead_end_mass=self.dead_end_mass * 2.0**-SCALE,
            relative_error=self.relative_error() * (1 + cycle_error / UNIT),
            cost_error=cost_error,
            overshoot_error=overshoot_error,
            expanded=self.expanded,
        )

    def _head(self) -> tuple[FloatArray, FloatArray, float]:
        """Costs as floats, their probabilities, and the relative error of a cost."""
        exact, unit = sorted(self.head), self.graph.unit
        probabilities = np.array([self.head[cost] for cost in exact], dtype=np.float64)
        if unit is None:
            # Each step rounds, and the powers of the discount are off by as many roundings.
            longest = max((entry.stage for entry in self.remaining()), default=0)
            return (
                np.array(exact, dtype=np.float64),
                probabilities,
                (2 * max(self.longest, longest) + 6) * UNIT,
            )
        if unit == self.request.ssp.cost_unit:
            return in_costs(exact, unit), probabilities, cost_error(max(exact, default=0), unit)
        # Several exact costs may be one float.
        costs, at = np.unique([decimal_above(cost * unit) for cost in exact], return_inverse=True)
        sums = np.bincount(at.ravel(), weights=probabilities, minlength=len(costs)).astype(
            np.float64
        )
        return costs, sums, 10 * UNIT


def least_costs_to_go(edges: Transitions, cost: list[int]) -> list[Any]:
    """V_min of every node, as an integer: what the cheapest way to the goal costs or, where
    that is too large for a float, a little less.

    Costs are rounded down to a multiple of a number of units beforehand, so that all sums are exact
    and h(x) <= c + h(y) holds to the last digit: a pair that has left the queue does not come back.
    """
    coarse = max(1, max(cost, default=0) * (edges.n + 1) >> 52)
    down = np.array([c // coarse for c in cost], dtype=np.float64)
    least = edges.replaced(cost=down, level=None).distances().least
    return [v if math.isinf(v) else int(v) * coarse for v in least.tolist()]


def _quantised(priority: float) -> float:
    """The priority in steps of about 1e-12 of itself.

    Discounted costs pile up below a limit, where rounding decides which comes first. A node that
    left the queue before the last of its predecessors would be expanded again for each of them, and
    so would its successors: their number explodes. Within a step the stage decides instead, and
    every predecessor comes first. The odd fraction keeps limits such as 1 / (1 - gamma) off the
    edge of a step.
    """
    mantissa, exponent = math.frexp(priority)
    return math.ldexp(math.floor(mantissa * 2**40 + 0.381966), exponent - 40)


def discounted_least_cost(chain: CostChain, gamma: float) -> np.ndarray[Any, np.dtype[np.float64]]:
    """The cheapest discounted way to the goal, from below: every iterate is admissible, so stopping
    early is safe.

    With a discount the goal need not be reached at all, so a way that cycles for ever counts too.
    """
    least = np.zeros(chain.n + 1)
    rows = chain.row_start[:-1]
    for _ in range(10_000):
        after = (
            np.append(np.minimum.reduceat(chain.cost + gamma * least[chain.target], rows), 0.0)
            if chain.n
            else least
        )
        if np.all(after - least <= 1e-12 * (1 + after)):
            return least
        least = after
    return least
