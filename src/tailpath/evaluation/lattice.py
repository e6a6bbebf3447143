"""ForPECVaR on whole cost levels, compiled: the engine for every chain with a cost unit.

The search (`dp/forward.py`) works through buckets f = level + V_min(x), lowest first. Nothing with
f > VaR is expanded, and when the search stops at X every open node has Z > X. Time and memory grow
with the number of expanded (node, level) pairs.

Every number is a sum of products of non-negative numbers. A product along a path of t transitions
commits t roundings and inherits what t probabilities are off by (`kernels/rounding.py`), a sum with
at most k terms per node and level commits k per transition; so all probabilities are within t (k +
that) units of the truth, and t is bounded by the levels passed. Probabilities are counted in units
of 2^-1000, so that products of tiny ones do not vanish; what becomes negligible all the same is
truncated, node by node, and charged in the end.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tailpath.analysis.reachability import zero_cost_edge_order
from tailpath.dp.forward import (
    AT_LIMIT,
    BLOCK,
    NEED_ROOM,
    PAUSED,
    RECENT,
    STATE,
    Found,
    Limits,
    Overflow,
    Ring,
    Rows,
    Steps,
    search,
)
from tailpath.evaluation.engine import (
    SCALE,
    End,
    Heuristic,
    OpenMass,
    Request,
    SearchResult,
    cost_error,
    negligible,
    unscaled,
)
from tailpath.graph import members_of
from tailpath.kernels.rounding import FIXED, ROW, UNIT
from tailpath.model.cost_units import in_costs
from tailpath.policies.chain import CostChain

#: What a cost of the head takes while the result is made of it: level and mass, cost and
#: probability, tails and sums.
HEAD_BYTES = 64
ENTRY_BYTES = 28
#: Lists of the overflow at most; epochs that are as far apart share one.
MOST_LISTS = 1 << 14
NO_STEPS = Steps(*(np.empty(0, dtype=np.int64) for _ in Steps._fields))


class Lattice(NamedTuple):
    """Rows of transitions laid out for the search: T of them, in R rows, among n nodes.

    Nodes have new numbers, the goal n and what never arrives n + 1; `node[x]` is the caller's
    number of x, and `height[x]` its lower bound on the cost to go in units. `budget` is -1 where
    nodes do not choose.
    """

    row_start: NDArray[np.int64]  # (R + 1,)
    target: NDArray[np.int64]  # (T,)
    jump: NDArray[np.int64]  # (T,)
    probability: NDArray[np.float64]  # (T,)
    shortest: int  # the least level of a transition that is not 0
    depth: int  # the most transitions of level 0 in a row
    node: NDArray[np.int64]  # (n + 1,)
    height: NDArray[np.int64]  # (n + 1,)
    start: int
    steps: Steps = NO_STEPS
    budget: int = -1


def lay_out(chain: CostChain, heuristic: Heuristic) -> Lattice | None:
    """The nodes by falling V_min, and along zero-cost transitions where it ties; `heuristic="zero"`
    takes 0 for V_min.

    None if the start is out of reach of the goal.
    """
    assert chain.level is not None
    # Where every step costs something, none stays among nodes of equal V_min, nor in a bucket by
    # cost alone.
    node, position, depth = (
        _along_zero_costs(chain, heuristic)
        if chain.has_zero_cost_edges
        else (chain.falling, chain.position, 0)
    )
    n = len(node) - 1
    if position[chain.start] < 0:
        return None
    height = np.zeros(chain.n + 1, dtype=np.int64)
    if heuristic == "min":
        np.copyto(height, chain.least_cost, where=np.isfinite(chain.least_cost), casting="unsafe")
    transition, row_start = members_of(chain.row_start, node[:-1])
    target: NDArray[Any] = chain.target.take(transition)
    level = chain.level.take(transition)
    jump = level + height.take(target) - np.repeat(height.take(node[:-1]), np.diff(row_start))
    target = position.take(target)
    if not chain.all_arrive:
        target, jump = np.where(target < 0, n + 1, target), np.where(target < 0, 0, jump)
    probability = chain.probability.take(transition)
    return Lattice(
        row_start,
        target,
        jump,
        probability,
        least_positive(level),
        depth,
        node,
        height.take(node),
        int(position[chain.start]),
    )


def least_positive(level: NDArray[np.int64]) -> int:
    """The least level that is not 0, or 1 if all are."""
    least = int(level.min()) if level.size else 0
    return least if least > 0 else int(level[level > 0].min()) if level.any() else 1


def _along_zero_costs(
    chain: CostChain, heuristic: Heuristic
) -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
    """The arriving nodes and the goal by falling height, and along zero-cost transitions where it
    ties; their places; and the most in a row.
    """
    n, arrives = chain.n, np.append(chain.arrives, True)
    zero = arrives[chain.target] & arrives[chain.source] & (chain.level == 0) & (chain.target < n)
    ordered = zero_cost_edge_order(chain.source[zero], chain.target[zero], n)
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
        """Begin at the start with nothing paid and probability 1."""
        self.lattice, self.request = lattice, request
        n, first = len(lattice.node) - 1, int(lattice.height[lattice.start])
        stride = (((n + 1) >> BLOCK) + 1) << BLOCK
        cell = lattice.jump * stride + lattice.target
        longest = int(lattice.jump.max(initial=0))
        shift = _ring_shift(cell, stride, request.tuning.ring_cells)
        self.rows = _parted(lattice, cell, stride << shift)
        self.ring = Ring(
            n,
            shift,
            stride,
            np.zeros(stride << shift),
            np.zeros(stride << shift >> BLOCK, dtype=np.uint8),
        )
        lists = np.full(min((longest >> shift) + 3, MOST_LISTS), -1, dtype=np.int64)
        recent = np.zeros(int(self.rows.far_recent.max(initial=0)) + (1 << RECENT), dtype=np.int64)
        self.overflow = Overflow(lists, recent, *_entries(0))
        self.found = Found(
            np.empty(1024, dtype=np.int64), np.empty(1024), np.zeros(n), np.zeros(n, dtype=np.int64)
        )
        least_mass = negligible(request.alpha, float(lattice.probability.min(initial=1.0)))
        self.limits = Limits(
            request.alpha * 2.0**SCALE,
            least_mass,
            lattice.budget,
            request.limit,
            request.tuning.lattice_pause,
        )
        self.state: Any = np.zeros(1, dtype=STATE).view(np.recarray)[0]
        self.state["bucket"], self.state["unused"], self.state["no_action"] = first, -1, -1
        self.state["open_mass"], self.state["n_in_use"] = 2.0**SCALE, 1
        begin = (first & ((1 << shift) - 1)) * stride + lattice.start
        self.ring.mass[begin], self.ring.in_use[begin >> BLOCK] = 2.0**SCALE, 1
        if len(self.rows.far_jump):
            self._grow_overflow()

    @property
    def bucket(self) -> int:
        """The first that has not been looked at."""
        return int(self.state["bucket"])

    def _grow_overflow(self) -> None:
        """Make room for all that may leave the ring in one bucket, and add the new entries to the
        unused ones.
        """
        first, recent, *present = self.overflow
        old = len(present[0])
        grown = _entries(old + max(old, len(self.rows.far_jump)))
        for new, kept in zip(grown, present, strict=True):
            new[:old] = kept
        grown[0][old:] = np.append(np.arange(old + 1, len(grown[0])), self.state["unused"])
        self.state["unused"] = old
        self.overflow = Overflow(first, recent, *grown)

    def _grow(self) -> None:
        """Make room where it is short."""
        if self.state["n_found"] < len(self.found.level):
            self._grow_overflow()
        else:
            level, mass, *others = self.found
            self.found = Found(
                np.append(level, np.empty_like(level)),
                np.append(mass, np.empty_like(mass)),
                *others,
            )

    def _bytes(self) -> int:
        """Memory that grows: the head, once more and some sums of it in the result, and the
        overflow.
        """
        return HEAD_BYTES * len(self.found.level) + ENTRY_BYTES * len(self.overflow.after)

    def run(self) -> End:
        """Search until P(Z > X) <= alpha or nothing is open, or until a limit is passed or the user
        stops it.
        """
        monitor = self.request.monitor
        end = self._stretch()
        # Most searches end before anybody could press a key, and to listen takes longer than they
        # do.
        if end is None:
            with monitor:
                while end is None:
                    end = End.STOPPED if monitor.stop else self._stretch()
        return end

    def _stretch(self) -> End | None:
        """Search up to a pause, or the end."""
        status = search(
            self.rows,
            self.lattice.steps,
            self.ring,
            self.overflow,
            self.found,
            self.limits,
            self.state,
        )
        if status == NEED_ROOM:
            if 2 * self._bytes() > self.request.max_bytes:
                return End.MEMORY
            self._grow()
        elif status == PAUSED:
            arrived = np.sum(self.found.mass[: self.state["n_found"]]) * 2.0**-SCALE
            self.request.monitor.report(int(self.state["expanded"]), float(arrived))
        else:
            return End.NODES if status == AT_LIMIT else End.FINISHED
        return None

    def result(self, cycle_error: float = 0.0) -> SearchResult:
        """The head and the open nodes, in the caller's numbers and in costs. The search is over
        then.
        """
        unit, count = self.request.ssp.cost_unit, int(self.state["n_found"])
        assert unit is not None
        levels = self.found.level[:count]
        last = int(levels[-1]) if count else 0
        few = np.flatnonzero(self.found.truncated_mass)
        return unscaled(
            SearchResult(
                costs=in_costs(levels, unit),
                probabilities=self.found.mass[:count],
                open=self._open_mass(self._open(), last),
                truncated=self._open_mass(
                    (few, self.found.truncated_bucket[few], self.found.truncated_mass[few]), last
                ),
                lost=float(self.state["lost"]),
                relative_error=self._relative_error(cycle_error),
                cost_error=cost_error(last, unit),
                ahead_error=0.0,
                expanded=int(self.state["expanded"]),
            )
        )

    def _open(self) -> tuple[NDArray[Any], ...]:
        """What is open, in the ring and beyond it: nodes, buckets and masses."""
        ring, beyond, bucket = self.ring, self.overflow, self.bucket
        blocks = np.flatnonzero(ring.in_use)
        mass = ring.mass.reshape(-1, 1 << BLOCK).take(blocks, axis=0).reshape(-1)
        full = np.flatnonzero(mass > 0)
        at = full >> BLOCK
        row = (blocks << BLOCK) // ring.stride  # of the ring: one bucket of those from `bucket` on
        there = bucket + ((row - bucket) & ((1 << ring.shift) - 1))
        first = ((blocks - np.arange(len(blocks))) << BLOCK) - row * ring.stride
        inside = full + first.take(at), there.take(at), mass.take(full)
        if self.state["n_overflow"] == 0:
            return inside
        entry = np.flatnonzero(beyond.mass)
        columns = zip(inside, (beyond.node, beyond.bucket, beyond.mass))
        return tuple(np.append(near, far[entry]) for near, far in columns)

    def _open_mass(self, pairs: tuple[NDArray[Any], ...], last: int) -> OpenMass:
        node, bucket, mass = pairs
        if node.size == 0:
            return OpenMass(node, mass, mass)
        level = bucket - self.lattice.height.take(node)
        assert self.request.ssp.cost_unit is not None
        return OpenMass(
            self.lattice.node.take(node), in_costs(level - last, self.request.ssp.cost_unit), mass
        )

    def _relative_error(self, cycle_error: float) -> float:
        lattice = self.lattice
        into = np.bincount(lattice.target, minlength=self.ring.n + 2)
        steps = (max(self.bucket, 1) // lattice.shortest + 2) * (1 + lattice.depth)
        row = int(np.diff(lattice.row_start).max(initial=0))
        per_step = (
            int(into[: self.ring.n].max(initial=0)) + ROW * row + FIXED + 4
        ) * UNIT + cycle_error
        return float(steps * per_step + (int(into[self.ring.n :].max()) + 4) * UNIT)


def _ring_shift(cell: NDArray[np.int64], stride: int, most: int) -> int:
    """log2 of the rows of the ring: enough for all but one jump in a thousand or, where these are
    many, for nineteen in twenty.
    """
    least = max(1, 14 - stride.bit_length())
    shift = least
    for share, cells in ((0.999, most >> 2), (0.95, most)):
        for shift in range(least, 64):
            if np.count_nonzero(cell < stride << shift) >= share * len(cell):
                return shift
            if stride << (shift + 1) > cells:
                break
    return shift


def _parted(lattice: Lattice, cell: NDArray[np.int64], end: int) -> Rows:
    """The transitions to cells before `end`, and the others."""
    near, start = cell < end, lattice.row_start
    n_near = int(np.count_nonzero(near))
    if n_near == len(cell):
        none = np.empty(0, dtype=np.int64)
        return Rows(
            start,
            cell.astype(np.uint32),
            lattice.probability,
            np.zeros_like(start),
            none.astype(np.int32),
            none,
            none,
            np.empty(0),
        )
    before = np.concatenate(([0], np.cumsum(near)))[start]
    far = np.flatnonzero(~near)
    _, recent = np.unique(lattice.target[far], return_inverse=True)
    return Rows(
        before,
        cell[near].astype(np.uint32),
        lattice.probability[near],
        start - before,
        lattice.target[far].astype(np.int32),
        recent << RECENT,
        lattice.jump[far],
        lattice.probability[far],
    )


def _entries(size: int) -> tuple[Any, Any, Any, Any]:
    """Room for entries of the overflow: after, bucket, node, mass."""
    return (
        np.empty(size, dtype=np.int64),
        np.empty(size, dtype=np.int64),
        np.empty(size, dtype=np.int32),
        np.zeros(size),
    )
