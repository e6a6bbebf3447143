"""ForPECVaR on integer cost levels, compiled: the engine for every chain with a cost unit.

The search (`dp/forward.py`) works through buckets f = level + V_min(x), lowest first. Nothing with
f > VaR is expanded, and when the search stops at X every open node has Z > X.

Every number is a sum of products of non-negative numbers. A product along a path of t transitions
commits t roundings and inherits what t probabilities are off by (`kernels/rounding.py`), a sum with
at most k terms per node and level commits k per transition; so all probabilities are within t (k +
that) units of the truth, and t is bounded by the levels passed. Probabilities are counted in units
of 2^-1000, so that products of tiny ones do not vanish; what becomes negligible all the same is
truncated, node by node, and charged in the end.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from tailpath.dp.forward import (
    ARRAYS_FULL,
    AT_LIMIT,
    PAUSED,
    STATE,
    Arrived,
    Limits,
    RowSteps,
    search,
)
from tailpath.dp.ring import BLOCK, RECENT, Overflow, Ring, SearchSpace, lay_out_rows, open_pairs
from tailpath.evaluation.engine import (
    NOTHING_OPEN,
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
from tailpath.graph import IntArray
from tailpath.kernels.jit import frozen
from tailpath.kernels.rounding import PER_EDGE, PER_ROW, ROUNDOFF
from tailpath.model.cost_units import in_costs
from tailpath.policies.chain import CostChain

#: What a cost of the head takes while the result is made of it: level and mass, cost and
#: probability, tails and sums.
HEAD_BYTES = 64
ENTRY_BYTES = 28
#: Lists of the overflow at most; epochs that are as far apart share one.
MAX_LISTS = 1 << 14
NO_ROW_STEPS, NO_HEURISTIC = (
    RowSteps(*(np.empty(0, dtype=np.int64) for _ in RowSteps._fields)),
    np.empty(0),
)


class Lattice(NamedTuple):
    """What is searched. `node[x]` is the caller's number of node x, and `depth` the most
    transitions of level 0 in a row. `budget` is -1 where nodes do not choose; with `dead_end_row`
    they may choose a row after the last one, which never arrives.
    """

    space: SearchSpace
    node: IntArray  # (n + 1,)
    start: int
    depth: int
    steps: RowSteps = NO_ROW_STEPS
    budget: int = -1
    dead_end_row: bool = False


def lay_out(chain: CostChain, heuristic: Heuristic) -> Lattice | None:
    """The nodes by falling V_min, and along zero-cost transitions where it ties; None if the start
    is out of reach of the goal.
    """
    # Where every step costs something, none stays among nodes of equal V_min, nor in a bucket by
    # cost alone.
    node, position, depth = (
        _along_zero_costs(chain, heuristic)
        if chain.has_zero_cost_edges
        else (chain.falling, chain.position, 0)
    )
    start = int(position[chain.start])
    if start < 0:
        return None
    v_min = chain.least_cost if heuristic == "min" else NO_HEURISTIC
    rows = chain.row_start, chain.target, chain.level, chain.probability
    return Lattice(SearchSpace(*frozen(*rows, node[:-1], position, v_min)), node, start, depth)


def _along_zero_costs(chain: CostChain, heuristic: Heuristic) -> tuple[IntArray, IntArray, int]:
    """The arriving nodes and the goal in that order, their positions, and the most zero-cost steps
    in a row.
    """
    n, arrives = chain.n, np.append(chain.arrives, True)
    zero = arrives[chain.target] & arrives[chain.source] & (chain.level == 0) & (chain.target < n)
    ordered = chain.only(zero).acyclic_order()
    assert ordered is not None, "zero-cost cycles are solved before the search"
    rank, depth = ordered
    # Zero-cost transitions lead to lower ranks, so higher ranks come first.
    nodes = np.flatnonzero(arrives[:n])
    order = np.lexsort(
        (-rank[nodes], -chain.least_cost[nodes]) if heuristic == "min" else (-rank[nodes],)
    )
    node, position = np.append(nodes[order], n), np.full(n + 1, -1)
    position[node] = np.arange(len(node))
    return node, position, depth


class LatticeSearch:
    """A search that can be stopped and looked at between calls of `run`."""

    def __init__(self, lattice: Lattice, request: Request) -> None:
        self.lattice, self.request = lattice, request
        n, start = len(lattice.node) - 1, lattice.start
        heuristic = lattice.space.heuristic
        first = int(heuristic[lattice.node[start]]) if heuristic.size else 0
        self.statistics, self.rows = lay_out_rows(
            lattice.space, n, lattice.dead_end_row, request.tuning.ring_cells
        )
        shift, stride = self.statistics.shift, self.statistics.stride
        cells = stride << shift
        self.ring = Ring(n, shift, stride, np.empty(cells), np.zeros(cells >> BLOCK, np.uint8))
        lists = np.full(min((self.statistics.max_jump >> shift) + 3, MAX_LISTS), -1)
        recent = np.zeros((self.statistics.far_targets + 1) << RECENT, np.int64)
        self.overflow = Overflow(lists, recent, *_entries(0))
        self.found = Arrived(
            np.empty(1024, np.int64), np.empty(1024), np.zeros(n), np.zeros(n, np.int64)
        )
        least_mass = truncation_threshold(request.alpha, self.statistics.min_probability)
        self.limits = Limits(
            request.alpha * 2.0**SCALE,
            least_mass,
            lattice.budget,
            request.limit,
            request.tuning.lattice_pause,
        )
        self.state: Any = np.zeros(1, STATE)[0]
        self.state["bucket"] = first
        self.state["unused"] = -1
        self.state["no_action"] = -1
        self.state["open_mass"], self.state["n_in_use"] = 2.0**SCALE, 1
        begin = (first & ((1 << shift) - 1)) * stride + start
        self.ring.mass[begin >> BLOCK << BLOCK :][: 1 << BLOCK] = 0.0
        self.ring.mass[begin], self.ring.in_use[begin >> BLOCK] = 2.0**SCALE, 1
        if len(self.rows.far_jump):
            self._grow_overflow()

    @property
    def bucket(self) -> int:
        return int(self.state["bucket"])

    def _grow_overflow(self) -> None:
        """Add unused entries, enough for all that may leave the ring in one bucket."""
        first, recent, *present = self.overflow
        old = len(present[0])
        grown = _entries(old + max(old, len(self.rows.far_jump)))
        for new, entries in zip(grown, present, strict=True):
            new[:old] = entries
        grown[0][old:] = np.append(np.arange(old + 1, len(grown[0])), self.state["unused"])
        self.state["unused"] = old
        self.overflow = Overflow(first, recent, *grown)

    def _grow(self) -> None:
        if self.state["n_found"] < len(self.found.level):
            self._grow_overflow()
        else:
            level, mass, *others = self.found
            self.found = Arrived(
                np.append(level, np.empty_like(level)),
                np.append(mass, np.empty_like(mass)),
                *others,
            )

    def _bytes(self) -> int:
        """Memory that grows: the head, once more in the result, and the overflow."""
        return HEAD_BYTES * len(self.found.level) + ENTRY_BYTES * len(self.overflow.after)

    def run(self) -> StopReason:
        """Search until P(Z > X) <= alpha, or until a limit or the user stops it."""
        monitor = self.request.monitor
        end = self._run_until_pause()
        # Most searches end before anybody could press a key, and to listen takes longer than they
        # do.
        if end is None:
            with monitor:
                while end is None:
                    end = StopReason.STOPPED if monitor.stop else self._run_until_pause()
        return end

    def _run_until_pause(self) -> StopReason | None:
        status = search(
            self.rows,
            self.lattice.steps,
            self.ring,
            self.overflow,
            self.found,
            self.limits,
            self.state,
        )
        if status == ARRAYS_FULL:
            if 2 * self._bytes() > self.request.max_bytes:
                return StopReason.MEMORY
            self._grow()
        elif status == PAUSED:
            arrived = np.sum(self.found.mass[: self.state["n_found"]]) * 2.0**-SCALE
            self.request.monitor.report(int(self.state["expanded"]), float(arrived))
        else:
            return StopReason.NODES if status == AT_LIMIT else StopReason.FINISHED
        return None

    def result(self, cycle_error: float = 0.0) -> SearchResult:
        """The head and the open nodes, in the caller's numbers and in costs. The search is over
        then.
        """
        unit, count = self.request.ssp.cost_unit, int(self.state["n_found"])
        assert unit is not None
        levels = self.found.level[:count]
        last = int(levels[-1]) if count else 0
        by = self.lattice.node, self.lattice.space.heuristic
        node, overshoot, mass = open_pairs(
            self.ring, self.overflow, self.bucket, last, *frozen(*by)
        )
        opened = OpenMass(node, in_costs(overshoot, unit), mass)
        opened, truncated = unscaled(opened, self._truncated(last, unit))
        return SearchResult(
            costs=in_costs(levels, unit),
            probabilities=self.found.mass[:count] * 2.0**-SCALE,
            open=opened,
            truncated=truncated,
            dead_end_mass=float(self.state["dead_end_mass"]) * 2.0**-SCALE,
            relative_error=self._relative_error(cycle_error),
            cost_error=cost_error(last, unit),
            overshoot_error=0.0,
            expanded=int(self.state["expanded"]),
        )

    def _truncated(self, last: int, unit: Fraction) -> OpenMass:
        if self.state["truncated"] == 0:
            return NOTHING_OPEN
        nodes, heuristic = np.flatnonzero(self.found.truncated_mass), self.lattice.space.heuristic
        node, level = self.lattice.node[nodes], self.found.truncated_bucket[nodes]
        if heuristic.size:
            level = level - heuristic[node].astype(np.int64)
        return OpenMass(node, in_costs(level - last, unit), self.found.truncated_mass[nodes])

    def _relative_error(self, cycle_error: float) -> float:
        statistics = self.statistics
        steps = (max(self.bucket, 1) // statistics.min_level + 2) * (1 + self.lattice.depth)
        roundings = statistics.max_in_degree + PER_EDGE * statistics.max_out_degree + PER_ROW + 4
        per_step = roundings * ROUNDOFF + cycle_error
        return float(steps * per_step + (statistics.max_absorbed + 4) * ROUNDOFF)


def _entries(size: int) -> tuple[Any, Any, Any, Any]:
    """Arrays for entries of the overflow: after, bucket, node, mass."""
    return (
        np.empty(size, dtype=np.int64),
        np.empty(size, dtype=np.int64),
        np.empty(size, dtype=np.int32),
        np.zeros(size),
    )
