"""ForPECVaR on integer cost levels, compiled: the engine for every chain with a cost unit.

The search (`dp/forward.py`) works through buckets f = level + V_min(x), lowest first. Nothing with
f > VaR is expanded, and when the search stops at X every open node has Z > X.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from tailpath.certify.rounding import scaled, step_error
from tailpath.dp.expected import variances
from tailpath.dp.forward import ARRAYS_FULL, AT_LIMIT, PAUSED, STATE, Limits, RowSteps, search
from tailpath.dp.ring import BLOCK, Overflow, entries, lay_out, open_pairs
from tailpath.evaluation.engine import NOTHING_FOUND, Engine, Heuristic, Request, Search
from tailpath.graph import FloatArray, IntArray, Transitions
from tailpath.kernels.jit import steps_until_pause
from tailpath.model.cost_units import in_costs
from tailpath.policies.chain import CostChain
from tailpath.policies.checks import no_action

#: What a cost of the head takes while the result is made of it: level and mass, cost and
#: probability, and what is next to be asked for.
HEAD_BYTES = 40
ENTRY_BYTES = 28
#: Costs of the head that are found before they are put aside: such blocks are given back to the
#: system as soon as they are let go.
MOST_AT_ONCE = 1 << 22
#: Costs that are made of levels at once.
AT_ONCE = 1 << 18
#: A search looks at the user every so many expansions.
PAUSE = 5_000_000
NO_ROW_STEPS = RowSteps(*(np.empty(0, dtype=np.int64) for _ in RowSteps._fields))
NO_HEURISTIC = NO_COSTS = np.empty(0)


class Lattice(NamedTuple):
    """What is searched: some `row`s of transitions, in the order of their nodes.

    `node[x]` is the caller's number of node x, and `position` the other way round, -1 at dead ends.
    `budget` is -1 where nodes do not choose; with `dead_end_row` they may choose a row after the
    last one, which never arrives.
    """

    rows: Transitions
    row: IntArray  # (R,)
    node: IntArray  # (n + 1,)
    position: IntArray
    start: int
    heuristic: FloatArray = NO_HEURISTIC
    steps: RowSteps = NO_ROW_STEPS
    budget: int = -1
    dead_end_row: bool = False


def chain_lattice(chain: CostChain, heuristic: Heuristic) -> Lattice | None:
    """The nodes by falling V_min, and along zero-cost transitions where it ties; None if the start
    is out of reach of the goal.
    """
    # Where every step costs something, none stays among nodes of equal V_min, nor in a bucket by
    # cost alone.
    node, position = (
        _along_zero_costs(chain, heuristic)
        if chain.has_zero_cost_edges
        else (chain.falling, chain.position)
    )
    start = int(position[chain.start])
    if start < 0:
        return None
    v_min = chain.least_cost if heuristic == "min" else NO_HEURISTIC
    return Lattice(chain, node[:-1], node, position, start, v_min)


def _along_zero_costs(chain: CostChain, heuristic: Heuristic) -> tuple[IntArray, IntArray]:
    """The arriving nodes and the goal in that order, and their positions."""
    n, arrives = chain.n, np.append(chain.arrives, True)
    zero = arrives[chain.target] & arrives[chain.source] & (chain.level == 0) & (chain.target < n)
    ordered = chain.only(zero).acyclic_order()
    assert ordered is not None, "zero-cost cycles are solved before the search"
    rank = ordered[0]
    # Zero-cost transitions lead to lower ranks, so higher ranks come first.
    nodes = np.flatnonzero(arrives[:n])
    order = np.lexsort(
        (-rank[nodes], -chain.least_cost[nodes]) if heuristic == "min" else (-rank[nodes],)
    )
    node, position = np.append(nodes[order], n), np.full(n + 1, -1)
    position[node] = np.arange(len(node))
    return node, position


class LatticeSearch:
    """A search that can be stopped and looked at between calls of `run`."""

    def __init__(self, lattice: Lattice, request: Request, until: int | None = None) -> None:
        self.lattice, self.request = lattice, request
        n, heuristic = len(lattice.node) - 1, lattice.heuristic
        start = lattice.start
        first = int(heuristic[lattice.node[start]]) if heuristic.size else 0
        self.rows, self.ring, self.overflow = lay_out(
            lattice.rows,
            lattice.row,
            lattice.position,
            heuristic,
            n,
            lattice.dead_end_row,
            request.ring_cells,
        )
        self._levels: list[IntArray | range] = []
        self._masses: list[FloatArray] = []
        self._level, self._mass = np.empty(1024, np.int64), np.empty(1024)
        end = lattice.budget if until is None else until
        pause = request.pause or steps_until_pause(PAUSE)
        self.limits = Limits(request.alpha, end, lattice.budget, request.limit, pause)
        self.steps = RowSteps(*(column.copy() for column in lattice.steps))
        self.state: Any = np.zeros(1, STATE)[0]
        self.state["unused"] = self.state["no_action"] = self.state["last"] = -1
        self.state["open_mass"] = self.state["n_in_use"] = 1
        self.state["bucket"] = first
        _, shift, stride, mass, in_use = self.ring
        begin = (first & ((1 << shift) - 1)) * stride + start
        mass[begin >> BLOCK << BLOCK :][: 1 << BLOCK] = 0.0
        mass[begin], in_use[begin >> BLOCK] = 1.0, 1
        if len(self.rows.far_jump):
            self._grow_overflow()

    @property
    def bucket(self) -> int:
        return int(self.state["bucket"])

    def _grow_overflow(self) -> None:
        """Add unused entries, enough for all that may leave the ring in one bucket."""
        first, recent, *present = self.overflow
        old = len(present[0])
        grown = entries(old + max(old, len(self.rows.far_jump)))
        for new, some in zip(grown, present, strict=True):
            new[:old] = some
        grown[0][old:] = np.append(np.arange(old + 1, len(grown[0])), self.state["unused"])
        self.state["unused"] = old
        self.overflow = Overflow(first, recent, *grown)

    def _put_aside(self) -> None:
        """Take what was found out of the way of more."""
        count = int(self.state["n_found"])
        level = self._level[:count]
        # Long heads have every level, one after the other.
        dense = count and int(level[-1]) - int(level[0]) == count - 1
        self._levels.append(range(int(level[0]), int(level[-1]) + 1) if dense else level)
        self._masses.append(self._mass[:count])
        size = min(2 * len(self._level), MOST_AT_ONCE)
        if not dense or size > len(self._level):
            self._level = np.empty(size, np.int64)
        self._mass = np.empty(size)
        self.state["n_found"] = 0

    def _bytes(self) -> int:
        """Memory that grows: the head, once more in the result, and the overflow."""
        head = sum(map(len, self._levels)) + len(self._level)
        return HEAD_BYTES * head + 2 * ENTRY_BYTES * len(self.overflow.after)

    def run(self) -> str:
        """Search until P(Z > X) <= alpha; or until a limit or the user stops it: which."""
        monitor = self.request.monitor
        end = self._run_until_pause()
        # Most searches end before anybody could press a key, and to listen takes longer than they
        # do.
        if end is None:
            with monitor:
                while end is None:
                    end = "user" if monitor.stop else self._run_until_pause()
        return end

    def _run_until_pause(self) -> str | None:
        status = search(
            self.rows,
            self.steps,
            self.ring,
            self.overflow,
            self.limits,
            self.state,
            self._level,
            self._mass,
        )
        if status == ARRAYS_FULL:
            if self._bytes() > self.request.max_bytes:
                return self.request.out_of_memory
            if self.state["n_found"] == len(self._level):
                self._put_aside()
            else:
                self._grow_overflow()
        elif status == PAUSED:
            some = [*self._masses, self._mass[: self.state["n_found"]]]
            self.request.monitor.report(int(self.state["expanded"]), float(sum(map(np.sum, some))))
        else:
            return self.request.out_of_nodes if status == AT_LIMIT else ""
        return None

    def _head(self, known: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The costs that were found, those that are known if they are the same, and their masses.
        Blocks are let go one after the other.
        """
        unit = self.request.ssp.cost_unit
        assert unit is not None
        self._put_aside()
        masses = np.empty(sum(map(len, self._masses)))
        costs = known if len(known) == len(masses) else np.empty(len(masses))
        begin = 0
        self._levels.reverse()
        self._masses.reverse()
        while self._masses:
            levels, block = self._levels.pop(), self._masses.pop()
            for at in range(0, len(block), AT_ONCE):
                level = levels[at : at + AT_ONCE]
                if isinstance(level, range):
                    level = np.arange(level.start, level.stop)
                here, cost = slice(begin, begin + len(level)), in_costs(level, unit)
                masses[here] = block[at : at + AT_ONCE]
                if costs is known and not np.array_equal(cost, known[here]):
                    costs = known.copy()
                if costs is not known:
                    costs[here] = cost
                begin += len(level)
        return costs, masses

    def found(self, stopped: str, known: FloatArray = NO_COSTS) -> Search:
        """The head and the open nodes, in the caller's numbers and in costs. The search is over
        then.
        """
        state, lattice = self.state, self.lattice
        unit, levels = self.request.ssp.cost_unit, lattice.rows.level
        assert unit is not None and levels is not None
        last = self.bucket if stopped else max(int(state["last"]), 0)
        node, level, mass = open_pairs(
            self.ring, self.overflow, self.bucket, lattice.node, lattice.heuristic
        )
        level -= last
        costs, masses = self._head(known)
        # Where every number of units is a float nothing is rounded.
        whole = unit.denominator == 1 and last * unit.numerator <= 2**53
        free = levels.min(initial=1) == 0
        return Search(
            costs=costs,
            masses=masses,
            last=float(
                in_costs(np.array([last]), unit)[0] if stopped or not costs.size else costs[-1]
            ),
            node=node,
            overshoot=in_costs(level, unit),
            mass=mass,
            dead_mass=float(state["dead_end_mass"]),
            dropped=float(state["dropped"]),
            expanded=int(state["expanded"]),
            roundings=0 if whole else 4,
            # Between two steps that cost something every node is free at most once.
            steps=(self.bucket + 2) * (len(lattice.node) if free else 1),
            until=self.bucket,
            stopped=stopped,
            dead_ends=np.flatnonzero(self.steps.row[self.steps.at_step] == len(lattice.row)),
        )


class LatticeEngine(Engine):
    """Evaluates a chain; its rows may be off by an error of their own."""

    def __init__(
        self, request: Request, chain: CostChain, lattice: Lattice | None, row_error: FloatArray
    ) -> None:
        self.request, self.chain = request, chain
        self.lattice, self.row_error = lattice, row_error

    @property
    def step_error(self) -> float:
        return float(self._step_errors.max(initial=0.0)) if self.lattice else 0.0

    @cached_property
    def _step_errors(self) -> FloatArray:
        """What a step along each edge may round."""
        assert self.lattice is not None
        rows, position = self.lattice.rows, self.lattice.position
        into = position[rows.target]  # -1 for dead ends
        return step_error(rows, np.bincount(into + 1)[into + 1], self.row_error[rows.source])

    def search(self, side: int, until: Any = None, known: FloatArray = NO_COSTS) -> Search:
        lattice, request = self.lattice, self.request
        if lattice is None:
            return NOTHING_FOUND
        if side != 0:
            lattice = lattice._replace(rows=scaled(lattice.rows, self._step_errors, side))
        search = LatticeSearch(lattice, request if until is None else request.again, until)
        stopped = search.run()
        if search.state["no_action"] >= 0:
            raise no_action(request.ssp, int(lattice.node[search.state["no_action"]]))
        return search.found(stopped, known)

    def deviation(self, found: Search, mean: float) -> float | None:
        return chain_deviation(self.chain) if self.request.deviation else None


def chain_deviation(chain: CostChain) -> float:
    """The standard deviation of the total cost of a chain."""
    return float(np.sqrt(np.append(variances(chain, chain.expected_cost), 0.0)[chain.start]))
