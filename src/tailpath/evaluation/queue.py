"""ForPECVaR (Algorithm 1), in plain Python: the engine for any costs, any discount and
any policy, and the reference for the other one.

Pairs (node, cost) leave a priority queue in the order (cost + V_min(node), cost). A goal adds its
probability to the head; any other pair sends its probability on to its successors, where equal ones
are grouped. The loop stops when P(Z > X) <= alpha, the sum of the open probabilities, taken anew
whenever it matters: nothing is subtracted.

*With a discount* a cost at stage t counts gamma^t times. Equal costs at different stages have
different futures, so the stage belongs to the key, and open nodes count with gamma^t V_mean.

*A memory that need not end*, such as a history, has no V_mean to complete the open nodes with, so
the search goes on until almost nothing is open. What is open then counts with its least cost;
`bounds` is exact if nothing is open and otherwise has no upper end.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tailpath.dp.bounds import Bounds
from tailpath.dp.expected import expected_total
from tailpath.errors import PolicyError
from tailpath.evaluation.distribution import CostDistribution
from tailpath.evaluation.engine import (
    SCALE,
    Moments,
    OpenMass,
    Request,
    SearchResult,
    StopReason,
    cost_error,
    summarise,
    truncation_bound,
    truncation_threshold,
    unscaled,
)
from tailpath.evaluation.search_graphs import ChainGraph, LazyGraph, SearchGraph
from tailpath.graph import FloatArray
from tailpath.kernels.rounding import (
    PER_EDGE,
    PER_ROW,
    ROUNDING_NOISE,
    ROUNDOFF,
    SAME_MASS,
)
from tailpath.model.cost_units import decimal_above, in_costs
from tailpath.policies.chain import CostChain

#: The policy is followed until this share of alpha is open.
OPEN_SHARE = 1e-14


@dataclass
class Entry:
    """A node, what was paid on the way to it, and with which probability, in units of 2^-SCALE;
    `roundings` counts those of the longest way.
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
        return math.fsum(entry.probability for entry in self.remaining()) + self.dead_end_mass

    def run(self, until: float = 0.0) -> StopReason:
        """Expand until P(Z > X) <= alpha, or `until` if given, or until a limit or the user stops
        it.
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
        roundings = entry.roundings + PER_EDGE * len(successors) + PER_ROW + 2
        for node, cost, p in successors:
            self._insert_and_group(
                node, entry.cost + factor * cost, entry.stage + 1, entry.probability * p, roundings
            )

    def _bytes(self, stage: int) -> int:
        """About the memory in use: 600 bytes for an entry, and a history as much as it is long."""
        history = 24 * stage if self.graph.remembers_all else 0
        return (len(self._open) + len(self._truncated)) * (600 + history) + 200 * len(self.head)

    def remaining(self) -> list[Entry]:
        """All that has not arrived: first what is open, then what was truncated."""
        return [*self._open.values(), *self._truncated]

    def relative_error(self) -> float:
        worst = max((entry.roundings for entry in self._open.values()), default=0)
        return (max(worst, self.head_roundings) + 4) * ROUNDOFF

    def result(self, cycle_error: float = 0.0, *, numbered: bool = True) -> SearchResult:
        """What was found, as arrays of costs; unless `numbered`, nodes are positions in
        `remaining()`.
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
            relative_error=self.relative_error() * (1 + cycle_error / ROUNDOFF),
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
                (2 * max(self.longest, longest) + 6) * ROUNDOFF,
            )
        if unit == self.request.ssp.cost_unit:
            return in_costs(exact, unit), probabilities, cost_error(max(exact, default=0), unit)
        # Several exact costs may be one float.
        costs, at = np.unique([decimal_above(cost * unit) for cost in exact], return_inverse=True)
        sums = np.bincount(at.ravel(), weights=probabilities, minlength=len(costs)).astype(
            np.float64
        )
        return costs, sums, 10 * ROUNDOFF


def _quantised(priority: float) -> float:
    """The priority in steps of about 1e-12 of itself.

    Discounted costs pile up below a limit, where rounding decides which comes first. A node that
    left the queue before the last of its predecessors would be expanded again for each of them:
    their number explodes. Within a step the stage decides instead. The odd fraction keeps limits
    such as 1 / (1 - gamma) off the edge of a step.
    """
    mantissa, exponent = math.frexp(priority)
    return math.ldexp(math.floor(mantissa * 2**40 + 0.381966), exponent - 40)


def evaluate_discounted(chain: CostChain, request: Request) -> CostDistribution:
    """Refused where a mass above alpha never arrives, since its costs never end."""
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
    return expected_total(*rows, chain.ssp.probability_error, close=ROUNDING_NOISE)


def _deviation(chain: CostChain, value: FloatArray, gamma: float) -> float:
    """The variance is a sum over the steps of (c + gamma V(x') - V(x))^2, each discounted twice."""
    squared = (chain.cost + gamma * value[chain.target] - value[chain.source]) ** 2
    return float(
        np.sqrt(np.append(_discounted_total(chain, squared, gamma**2).value, 0.0)[chain.start])
    )


def evaluate_lazily(request: Request) -> CostDistribution:
    gamma = request.gamma
    graph = LazyGraph(request.ssp, request.policy, request.heuristic, gamma)
    search = QueueSearch(graph, request)
    stop_reason = search.run(until=request.alpha * OPEN_SHARE)
    found = search.result(request.ssp.probability_error, numbered=False)
    least: list[float] = [graph.heuristic(entry.node) for entry in search.remaining()]
    if graph.unit is not None:
        least_cost = in_costs(least, graph.unit) * (1 - 2 * ROUNDOFF)
    else:
        least_cost = np.array(
            [cost * gamma**entry.stage for cost, entry in zip(least, search.remaining())],
            dtype=np.float64,
        )
    complete = found.open.mass.size == 0 and found.truncated.mass.size == 0
    mean = found.mean(least_cost)
    slack = 1 + found.relative_error + found.cost_error + 1e-15 * (len(found.costs) + 2)
    error_bound = found.relative_error + (len(found.open.mass) + 4) * ROUNDOFF
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
