"""ForPECVaR (Algorithm 1), in plain Python: the engine for any costs, any discount and
any policy, and the reference for the other one.

Pairs (node, cost) leave a priority queue in the order (cost + V_min(node), cost). A goal adds its
probability to the head; any other pair sends its probability on to its successors, where equal ones
are grouped. The loop stops when P(Z > X) <= alpha, the sum of the open probabilities, taken anew
whenever it matters: nothing is subtracted.

*With a discount* (`discount.py`) a cost at stage t counts gamma^t times. Equal costs at different
stages have different futures, so the stage belongs to the key.

*A memory that may be infinite*, such as a history, has no V_mean to complete the open nodes with,
so the search goes on until almost nothing is open. What is open then counts with its least cost;
`bounds` is exact if nothing is open and otherwise has no upper end.
"""

from __future__ import annotations

import heapq
import itertools
import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tailpath.certify.rounding import row_factor, scaled
from tailpath.dp.forward import LEAST_MASS
from tailpath.evaluation.engine import NO_COSTS, Engine, Request, Search
from tailpath.evaluation.search_graphs import SearchGraph, chain_graph, lazy_graph
from tailpath.graph import FloatArray, Transitions
from tailpath.kernels.rounding import SAME_MASS
from tailpath.model.border import proposed_delta
from tailpath.model.cost_units import as_fraction, float_above, in_costs
from tailpath.options import warn_caller
from tailpath.policies.chain import CostChain

#: A policy whose memory does not end is followed until this share of alpha is open, and nothing
#: that has less than the second share.
OPEN_SHARE, LEAST_SHARE = 1e-14, 1e-20
#: A search looks at the user every so many expansions, and says that it is slow after as many as
#: take some seconds.
PAUSE, SLOW_FROM = 20_000, 100_000


@dataclass(slots=True)
class Entry:
    """A node, what was paid on the way to it, the most steps of such a way, and the probabilities
    of all of them.
    """

    node: Any
    cost: Any
    stage: int
    masses: list[float] = field(default_factory=list)

    @property
    def mass(self) -> float:
        return self.masses[0] if len(self.masses) == 1 else math.fsum(self.masses)


class QueueSearch:
    """Algorithm 1 with insert-and-group, on a graph. Smaller masses than `least` are left alone."""

    def __init__(
        self, graph: SearchGraph, request: Request, least: float, until: Any = None
    ) -> None:
        self.graph, self.request = graph, request
        self.least, self.until = least, until
        self.gamma = request.gamma
        self.head: dict[Any, list[float]] = {}
        self._dead: list[float] = []
        self.expanded = self.longest = 0
        self.highest: Any = -math.inf
        self._open: dict[Any, Entry] = {}
        self._left: list[Entry] = []
        self._heap: list[tuple[Any, Any, int, Any]] = []
        self._tick = itertools.count()
        self._insert_and_group(graph.start, 0, 0, 1.0)

    def _insert_and_group(self, node: Any, cost: Any, stage: int, mass: float) -> None:
        key = (node, cost, stage if self.gamma < 1 else 0)
        self.longest = max(self.longest, stage)
        entry = self._open.get(key)
        if entry is None:
            least = self.graph.least[self.graph.number(node)]
            if math.isinf(least):
                self._dead.append(mass)
                return
            entry = self._open[key] = Entry(node, cost, stage)
            # With a discount the heuristic is 0 (`search_graphs.py`).
            order = (cost + least, cost) if self.gamma == 1 else (_quantised(cost), stage)
            heapq.heappush(self._heap, (*order, next(self._tick), key))
        entry.stage = max(entry.stage, stage)
        entry.masses.append(mass)

    def open_mass(self) -> float:
        return math.fsum(entry.mass for entry in self.remaining()) + math.fsum(self._dead)

    def run(self, target: float) -> str:
        """Expand until P(Z > X) <= `target`; or until a limit or the user stops it: which."""
        monitor, limit = self.request.monitor, self.request.limit
        pause = self.request.pause or PAUSE
        base, arrived_since = 1.0, 0.0
        while self._heap:
            if monitor.stop:
                return "user"
            if self.until is not None and not self._heap[0][0] < self.until:
                return ""
            # Look before each new priority: the head is complete up to the highest one so far.
            if self.until is None and self.head and self._heap[0][0] > self.highest:
                tail = base - arrived_since
                if tail <= target * (1 + 1e-9) or tail < 0.25 * base:
                    base, arrived_since = self.open_mass(), 0.0
                    if base <= target * (1 + SAME_MASS):
                        return ""
                if self.expanded > limit:
                    return self.request.out_of_nodes
            priority, _, _, key = heapq.heappop(self._heap)
            self.highest = max(self.highest, priority)
            entry = self._open.pop(key)
            mass = entry.mass
            if entry.node == self.graph.goal:
                self.head.setdefault(entry.cost, []).append(mass)
                arrived_since += mass
                continue
            if mass >= self.least:
                self._expand(entry, mass)
            else:
                self._left.append(entry)
            if self.expanded > 2 * limit + 1000:
                return self.request.out_of_nodes
            if self.expanded % pause == 0:
                if self._bytes(entry.stage) > self.request.max_bytes:
                    return self.request.out_of_memory
                monitor.report(self.expanded, math.fsum(map(math.fsum, self.head.values())))
                if self.expanded == SLOW_FROM < limit / 2 and self.until is None:
                    self._warn_of_slowness()
        return ""

    def _expand(self, entry: Entry, mass: float) -> None:
        self.expanded += 1
        factor = self.gamma**entry.stage if self.gamma < 1 else 1
        for node, cost, p in self.graph.successors(entry.node):
            self._insert_and_group(node, entry.cost + factor * cost, entry.stage + 1, mass * p)

    def _bytes(self, stage: int) -> int:
        """About the memory in use: 600 bytes for an entry, and a history as much as it is long."""
        history = 24 * stage if self.graph.remembers_all else 0
        return (len(self._open) + len(self._left)) * (600 + history) + 200 * len(self.head)

    def _warn_of_slowness(self) -> None:
        ssp = self.request.ssp
        if ssp.cost_unit is None:
            remedy = (
                f"costs on a grid of {proposed_delta(ssp):g}, or a larger alpha, take less time"
            )
        elif self.graph.remembers_all:
            remedy = "a memory that forgets (MemoryPolicy) takes less time"
        else:  # the user asked for this engine
            return
        warn_caller(
            f"evaluate may take minutes here: {self.request.reason}; {remedy}. Ctrl-C stops it"
            " with an error that has bounds"
        )

    def remaining(self, side: int = 0) -> list[Entry]:
        """All that has not arrived: the open entries, then those left alone. Since these may arrive
        at any cost, they do not count on the lower side (-1).
        """
        return [*self._open.values(), *(self._left if side >= 0 else ())]

    def found(self, stopped: str, side: int) -> Search:
        """What was found, as arrays of costs; nodes by the numbers that their graph gives them."""
        costs, masses, last = self._head()
        until = self._heap[0][0] if self._heap else math.inf
        if stopped and self._heap:
            last = max(self.highest, until)
        entries, unit = self.remaining(side), self.graph.unit
        paid: list[Any] = [entry.cost for entry in entries]
        overshoot = (
            np.array(paid, dtype=np.float64) - last
            if unit is None
            else in_costs([cost - last for cost in paid], unit)
        )
        if side > 0:
            alone = overshoot[len(self._open) :]
            np.maximum(alone, 0.0, out=alone)
        end = float(last if unit is None else last * unit)
        if costs.size and not stopped:
            end = float(costs[-1])  # the cost as its decimal is printed, perhaps a last bit more
        whole = unit is not None and unit.denominator == 1 and last * unit.numerator <= 2**53
        # Each step rounds, and the powers of the discount are off by as many roundings. Several
        # exact costs may be one float.
        roundings = 2 * self.longest + 6 if unit is None else 0 if whole else 10
        return Search(
            costs=costs,
            masses=masses,
            last=end,
            node=np.array([self.graph.number(entry.node) for entry in entries], dtype=np.int64),
            overshoot=overshoot,
            mass=np.array([entry.mass for entry in entries], dtype=np.float64),
            dead_mass=math.fsum(self._dead),
            alone=math.fsum(entry.mass for entry in self._left),
            expanded=self.expanded,
            roundings=roundings,
            steps=self.longest + 1,
            until=until,
            stopped=stopped,
            stage=np.array([entry.stage for entry in entries], dtype=np.int64),
        )

    def _head(self) -> tuple[FloatArray, FloatArray, Any]:
        """Costs as floats, their probabilities, and the last of the exact costs."""
        unit, exact = self.graph.unit, sorted(self.head)
        own: Any = exact
        if unit is not None:
            own = (
                in_costs(exact, unit).tolist()
                if unit == self.request.ssp.cost_unit
                else [float_above(cost * unit, as_fraction) for cost in exact]
            )
        by_cost: dict[float, list[float]] = {}
        for cost, as_float in zip(exact, own):
            by_cost.setdefault(as_float, []).extend(self.head[cost])
        masses = np.array([math.fsum(each) for each in by_cost.values()])
        return np.array([*by_cost], dtype=np.float64), masses, exact[-1] if exact else 0


def _quantised(priority: float) -> float:
    """The priority in steps of about 1e-12 of itself.

    Discounted costs pile up below a limit, where rounding decides which comes first. A node that
    left the queue before the last of its predecessors would be expanded again for each of them:
    their number explodes. Within a step the stage decides instead. The odd fraction keeps limits
    such as 1 / (1 - gamma) off the edge of a step.
    """
    mantissa, exponent = math.frexp(priority)
    return math.ldexp(math.floor(mantissa * 2**40 + 0.381966), exponent - 40)


class QueueEngine(Engine):
    """Evaluates a chain by its nodes, or by those of one where free cycles are solved."""

    #: Smaller masses are left alone, and the search ends when this share of alpha is open.
    least, open_share = LEAST_MASS, 1.0

    def __init__(self, request: Request, chain: CostChain, searched: CostChain) -> None:
        self.request, self.chain, self.searched = request, chain, searched

    def rows(self, side: int) -> Transitions:
        """Masses are added up with one rounding."""
        rows, off = self.searched, self.request.ssp.probability_error
        return scaled(rows, side, 1, off, self.cycles(rows))

    def graph(self, side: int) -> SearchGraph:
        """Where to search, with probabilities too small (-1) or too large (+1)."""
        request, rows = self.request, self.rows(side)
        return chain_graph(self.searched, request.heuristic, request.gamma, rows.probability)

    def search(self, side: int, until: Any = None, head: FloatArray = NO_COSTS) -> Search:
        request = self.request if until is None else self.request.again
        search = QueueSearch(self.graph(side), request, self.least, until)
        with request.monitor:
            stopped = search.run(self.request.alpha * self.open_share)
        return search.found(stopped, side)


class LazyEngine(QueueEngine):
    """Follows a policy step by step, as far as its probability matters."""

    sums, open_share = True, OPEN_SHARE

    def __init__(self, request: Request) -> None:
        self.request, self.least = request, request.alpha * LEAST_SHARE

    def largest_factor(self) -> float:
        """That of a row as long as any."""
        ssp = self.request.ssp
        most = int(np.diff(ssp.state_choices).max(initial=1))
        most *= int(np.diff(ssp.choice_outcomes).max(initial=1))
        return row_factor(most, 1, ssp.probability_error)

    def graph(self, side: int) -> SearchGraph:
        request = self.request
        return lazy_graph(request.ssp, request.policy, request.heuristic, request.gamma, side)

    def cost_to_go(self, found: Search, side: int) -> FloatArray:
        """The least cost: V_mean is unknown where the memory has no end."""
        if side > 0:
            return np.full(len(found.node), np.inf)
        return self.graph(0).least_cost[found.node]

    def dearest(self, found: Search, side: int) -> float:
        return math.inf if side > 0 and len(found.mass) else 0.0

    def missed(self, found: Search, side: int) -> float:
        """What is open may or may not arrive, however small it is."""
        return found.dead_mass + (float(np.sum(found.mass)) if side > 0 else 0.0)

    def variance(self, found: Search, mean: float) -> float:
        return float(np.sum(found.masses * (found.costs - mean) ** 2))

    def stuck(self, found: Search) -> str:
        return ""
