"""ForPECVaR on integer cost levels, compiled: the engine for every chain with a cost unit.

The search works through buckets f = level + V_min(x), lowest first (`kernels/lattice.py` has the layout). Nothing with f > VaR is
expanded, and when the search stops at X every open node has Z > X. Time and memory grow with the number of expanded (node, level) pairs.

Every number is a sum of products of non-negative numbers. A product along a path of t arrows commits 2 t roundings and inherits t input
roundings, a sum with at most k terms per node and level commits k per arrow; so all probabilities are within t (k + 4) units of the
truth, and t is bounded by the levels passed.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tailpath.chain import CostChain
from tailpath.errors import PolicyError
from tailpath.evaluation.search import SearchResult, negligible
from tailpath.evaluation.watch import Watch
from tailpath.layouts import offsets_of
from tailpath.reachability import strong_components

UNIT = 2.0**-53
#: The ring is capped, in rows and in cells, so that it stays near the size of the caches; longer jumps wait in lists.
MOST_RING_ROWS = 1 << 10
MOST_RING_CELLS = 1 << 22
#: Cells of the second ring, for the nodes that long jumps lead to; beyond, entries wait in lists.
MOST_FAR_CELLS = 1 << 23
#: Expansions between two looks at the clock, the user and the limit.
PAUSE = 5_000_000


class BudgetRows(NamedTuple):
    """How a node picks its row by the budget left; a budget of -1 means that rows belong to nodes."""

    budget: int
    first_choice: NDArray[np.int64]
    neutral: NDArray[np.int64]
    table_row: NDArray[np.int64]
    table: NDArray[Any]


_NONE = np.empty(0, dtype=np.int64)
ROWS_OF_NODES = BudgetRows(-1, _NONE, _NONE, _NONE, np.empty((0, 0), dtype=np.int8))


@dataclass(frozen=True, eq=False)
class Lattice:
    """A chain laid out for the search: arriving nodes in the order of falling V_min; the goal is node n."""

    row_start: NDArray[np.int64]
    target: NDArray[np.int32]
    probability: NDArray[np.float64]
    jump: NDArray[np.int64]
    leak: NDArray[np.float64]
    heuristic: NDArray[np.int64]
    node: NDArray[np.int64]
    place: NDArray[np.int64]
    free_depth: int
    least_step: int
    by_budget: BudgetRows

    @property
    def n(self) -> int:
        return len(self.node) - 1


def lay_out(chain: CostChain, heuristic: str) -> Lattice:
    """Order the nodes and turn costs into bucket jumps. `heuristic="zero"` buckets by cost alone."""
    assert chain.level is not None
    n_all = chain.n
    finite = np.append(chain.arrives, True)
    height = np.where(finite, chain.least_cost, 0).astype(np.int64) if heuristic == "min" else np.zeros(n_all + 1, dtype=np.int64)
    inner = finite[chain.target] & finite[chain.source]
    free = inner & (chain.level == 0) & (chain.target < n_all)
    if free.any():
        rank, _ = strong_components(offsets_of(chain.source[free], n_all), chain.target[free])
        free_depth = longest_path(chain.source[free], chain.target[free], n_all)
    else:
        rank, free_depth = np.zeros(n_all, dtype=np.int32), 0
    nodes = np.flatnonzero(finite[:n_all])
    # Free arrows lead to lower ranks, so higher ranks come first.
    nodes = nodes[np.lexsort((-rank[nodes], -height[nodes]))]
    place = np.full(n_all + 1, -1, dtype=np.int64)
    place[nodes] = np.arange(len(nodes))
    place[n_all] = len(nodes)

    edge = np.flatnonzero(inner)
    order = edge[np.argsort(place[chain.source[edge]], kind="stable")]
    lost = finite[chain.source] & ~finite[chain.target]
    leak = np.bincount(place[chain.source[lost]], weights=chain.probability[lost], minlength=len(nodes)).astype(np.float64)
    level = chain.level[order]
    return Lattice(
        row_start=offsets_of(place[chain.source[order]], len(nodes)),
        target=place[chain.target[order]].astype(np.int32),
        probability=chain.probability[order],
        jump=level + height[chain.target[order]] - height[chain.source[order]],
        leak=leak,
        heuristic=np.append(height[nodes], 0),
        node=np.append(nodes, n_all),
        place=place,
        free_depth=free_depth,
        least_step=least_step(level),
        by_budget=ROWS_OF_NODES,
    )


def least_step(level: NDArray[Any]) -> int:
    """The smallest positive level: how many levels a step that is not free takes at least."""
    return int(level[level > 0].min(initial=np.iinfo(np.int64).max))


def longest_path(source: NDArray[Any], target: NDArray[Any], n: int) -> int:
    """The most arrows in a row along free arrows, which have no cycle."""
    depth = np.zeros(n, dtype=np.int64)
    while True:
        deeper = depth.copy()
        np.maximum.at(deeper, source, depth[target] + 1)
        if np.array_equal(deeper, depth):
            return int(depth.max(initial=0))
        depth = deeper


class LatticeSearch:
    """A search that can be stopped and looked at between calls of `run`."""

    def __init__(self, lattice: Lattice, alpha: float, entries: tuple[NDArray[Any], NDArray[Any], NDArray[Any]], lost: float = 0.0) -> None:
        """`entries` are (node, level, mass) in the lattice's numbering: for an ordinary evaluation the start at level 0 with mass 1."""
        self.lattice, self.alpha = lattice, alpha
        nodes, levels, masses = entries
        buckets = levels + lattice.heuristic[nodes]
        first = int(buckets.min())
        spread = int(buckets.max()) - first
        longest = int(lattice.jump.max(initial=0))
        self.shift = _ring_shift(lattice)
        width = 1 << self.shift
        n_blocks = (lattice.n >> 6) + 1
        self.ring = np.zeros((width, lattice.n + 1))
        self.flag = np.zeros((width, n_blocks), dtype=np.uint8)
        self.far, self.far_node, self.far_place = _far_ring(lattice, width)
        self.n_listed = int(np.count_nonzero(lattice.jump >= max(width, len(self.far))))
        self.list_head = np.full((max(longest, spread) >> self.shift) + 3, -1, dtype=np.int64)
        self.entry_next, self.entry_bucket, self.entry_node, self.entry_mass = _entries(0)
        self.whole = np.zeros(7, dtype=np.int64)
        self.real = np.zeros(3)
        self.head_level, self.head_mass = np.empty(1024, dtype=np.int64), np.empty(1024)
        self.whole[0] = (first >> self.shift) << self.shift
        self.whole[4] = -1
        self.real[0], self.real[2] = float(np.sum(masses)) + lost, lost
        self._grow_lists(len(nodes) + self.n_listed)
        self._queue(nodes, buckets, masses)

    def _queue(self, nodes: NDArray[Any], buckets: NDArray[Any], masses: NDArray[Any]) -> None:
        from tailpath.kernels.lattice import wait_all

        wait_all(
            buckets,
            nodes,
            masses,
            self.shift,
            self.list_head,
            self.entry_next,
            self.entry_bucket,
            self.entry_node,
            self.entry_mass,
            self.whole,
        )

    def _grow_lists(self, room: int) -> None:
        """Make the pool of waiting entries larger and chain the new ones to the free list."""
        old = len(self.entry_next)
        size = old + max(room, old, 1024)
        grown = _entries(size)
        present: tuple[NDArray[Any], ...] = (self.entry_next, self.entry_bucket, self.entry_node, self.entry_mass)
        for new, kept in zip(grown, present):
            new[:old] = kept  # type: ignore[index]
        self.entry_next, self.entry_bucket, self.entry_node, self.entry_mass = grown
        self.entry_next[old:] = np.append(np.arange(old + 1, size), self.whole[4])
        self.whole[4] = old

    def run(self, max_nodes: int, watch: Watch) -> bool:
        """Search until P(Z > X) <= alpha or nothing is open (True), or until `max_nodes` pairs were expanded or the user stops it (False)."""
        with watch:
            return self._run(max_nodes, watch)

    def _run(self, max_nodes: int, watch: Watch) -> bool:
        from tailpath.kernels import lattice as kernels

        lat = self.lattice
        while not watch.stop:
            status = kernels.search(
                lat.row_start,
                lat.target,
                lat.probability,
                lat.jump,
                lat.leak,
                *lat.by_budget,
                self.shift,
                self.ring,
                self.flag,
                self.far,
                self.far_node,
                self.far_place,
                self.list_head,
                self.entry_next,
                self.entry_bucket,
                self.entry_node,
                self.entry_mass,
                self.n_listed,
                self.alpha,
                negligible(self.alpha),
                max_nodes,
                PAUSE,
                self.head_level,
                self.head_mass,
                self.whole,
                self.real,
            )
            if status == kernels.NEED_HEAD:
                self.head_level = np.append(self.head_level, np.empty_like(self.head_level))
                self.head_mass = np.append(self.head_mass, np.empty_like(self.head_mass))
            elif status == kernels.NEED_LISTS:
                self._grow_lists(self.n_listed)
            elif status == kernels.PAUSED:
                watch.report(float(np.sum(self.head_mass[: self.whole[1]])), int(self.whole[2]))
            elif status == kernels.NO_ACTION:
                raise PolicyError("the policy has no action for a state that it can reach")
            else:
                return bool(status != kernels.LIMIT)
        return False

    def result(self, unit: Fraction, cycle_error: float) -> SearchResult:
        """The head and the open nodes, in the chain's numbering and in costs."""
        from tailpath.kernels.lattice import frontier

        lists = (self.list_head, self.entry_next, self.entry_bucket, self.entry_node, self.entry_mass)
        state = (self.shift, self.ring, self.flag, self.far, self.far_node, *lists)
        bucket = int(self.whole[0])
        nothing = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64), np.empty(0)
        count = frontier(*state, bucket, *nothing)
        node, at, mass = np.empty(count, dtype=np.int64), np.empty(count, dtype=np.int64), np.empty(count)
        if count:
            frontier(*state, bucket, node, at, mass)
        n_head = int(self.whole[1])
        return SearchResult(
            costs=in_costs(self.head_level[:n_head], unit),
            probabilities=self.head_mass[:n_head].copy(),
            open_cost=in_costs(at - self.lattice.heuristic[node], unit),
            open_mass=mass,
            open_node=self.lattice.node[node],
            lost=float(self.real[2]),
            relative_error=self._relative_error(bucket, cycle_error),
            expanded=int(self.whole[2]),
        )

    def _relative_error(self, bucket: int, cycle_error: float) -> float:
        lat = self.lattice
        steps = (max(bucket, 1) // lat.least_step + 2) * (1 + lat.free_depth)
        into = np.bincount(lat.target, minlength=lat.n + 1)
        per_step = (int(into[:-1].max(initial=0)) + 4) * UNIT + cycle_error
        return float(steps * per_step + (int(into[-1]) + 4) * UNIT)


def _ring_shift(lattice: Lattice) -> int:
    """log2 of the rows of the ring: enough for nineteen jumps in twenty, within the caps, so that the ring stays in the caches."""
    usual = int(np.quantile(lattice.jump, 0.95, method="higher")) if lattice.jump.size else 0
    rows = min(max(usual + 1, 2), MOST_RING_ROWS, max(2, MOST_RING_CELLS // (lattice.n + 1)))
    return (rows - 1).bit_length() if rows == usual + 1 else rows.bit_length() - 1


def _far_ring(lattice: Lattice, width: int) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64]]:
    """A ring for the targets of jumps of `width` and more, with the targets and each node's place among them; empty if it would be large."""
    place = np.full(lattice.n + 1, -1, dtype=np.int64)
    nodes = np.unique(lattice.target[lattice.jump >= width]).astype(np.int64)
    rows = 1 << int(lattice.jump.max(initial=0)).bit_length()
    if nodes.size == 0 or rows * nodes.size > MOST_FAR_CELLS:
        return np.zeros((0, 0)), nodes[:0], place
    place[nodes] = np.arange(nodes.size)
    return np.zeros((rows, nodes.size)), nodes, place


def _entries(size: int) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int32], NDArray[np.float64]]:
    return np.empty(size, dtype=np.int64), np.empty(size, dtype=np.int64), np.empty(size, dtype=np.int32), np.empty(size)


def in_costs(levels: NDArray[Any], unit: Any) -> NDArray[np.float64]:
    """Levels as costs; numerator and denominator apart, so that a decimal unit gives the float nearest to the decimal."""
    return np.asarray(levels * float(unit.numerator) / float(unit.denominator))
