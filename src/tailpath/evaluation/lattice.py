"""ForPECVaR on integer cost levels, compiled: the engine for every chain with a cost unit.

The search works through buckets f = level + V_min(x), lowest first (`kernels/lattice.py` has the layout). Nothing with f > VaR is
expanded, and when the search stops at X every open node has Z > X. Time and memory grow with the number of expanded (node, level) pairs.

Every number is a sum of products of non-negative numbers. A product along a path of t arrows commits t roundings and inherits what t
probabilities are off by (`kernels/rounding.py`), a sum with at most k terms per node and level commits k per arrow; so all probabilities are
within t (k + that) units of the truth, and t is bounded by the levels passed. Probabilities are counted in units of 2^-1000, so that products of
tiny ones do not vanish; what becomes negligible all the same is put aside, node by node, and charged in the end.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tailpath.analysis.reachability import free_arrow_order
from tailpath.errors import PolicyError
from tailpath.evaluation.heuristics import Heuristic
from tailpath.evaluation.request import End, Request, Tuning
from tailpath.evaluation.result import SCALE, SMALL, Left, SearchResult, negligible
from tailpath.evaluation.watch import Watch
from tailpath.kernels.jit import frozen
from tailpath.kernels.lattice import frontier, search
from tailpath.kernels.lattice_arrays import BLOCK, Arrows, Aside, Facts, FarNodes, Rings, Stop, Waiting, standing
from tailpath.kernels.lattice_layout import lay_out_rows
from tailpath.kernels.rounding import FIXED, ROW, UNIT
from tailpath.kernels.steps import NO_STEPS, Steps
from tailpath.model.ssp import FloatArray
from tailpath.policies.chain import CostChain

#: What a cost of the head takes while the result is made of it: level and mass, cost and probability, tails and sums.
HEAD_BYTES = 64


class Lattice(NamedTuple):
    """A chain laid out for the search: arriving nodes in the order of falling V_min; the goal is node n, and `node[x]` is the chain's name of x.

    Where nodes choose among rows, by their budget, `chooser` has the node of each row.
    """

    arrows: Arrows
    node: NDArray[np.int64]
    place: NDArray[np.int64]
    free_depth: int
    steps: Steps = NO_STEPS
    chooser: NDArray[np.int64] = np.empty(0, dtype=np.int64)

    @property
    def n(self) -> int:
        return len(self.node) - 1


def lay_out(chain: CostChain, heuristic: Heuristic) -> Lattice:
    """Order the nodes and turn costs into bucket jumps. `heuristic="zero"` buckets by cost alone."""
    assert chain.level is not None
    height = chain.least_cost if heuristic == "min" else np.empty(0)
    # Where no arrow is free, none stays among nodes of equal V_min, nor in a bucket by cost alone.
    node, place, free_depth = _along_free_arrows(chain, height) if chain.has_free_arrows else (chain.falling, chain.place, 0)
    return Lattice(
        arrows=Arrows(*frozen(chain.row_start, chain.target, chain.probability, chain.level, node[:-1], place, height)),
        node=node,
        place=place,
        free_depth=free_depth,
    )


def _along_free_arrows(chain: CostChain, height: FloatArray) -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
    """The arriving nodes by falling height, and along free arrows where it ties, and the goal; their places; and the most free arrows in a row."""
    n, finite = chain.n, np.append(chain.arrives, True)
    free = finite[chain.target] & finite[chain.source] & (chain.cost == 0) & (chain.target < n)
    ordered = free_arrow_order(chain.source[free], chain.target[free], n)
    assert ordered is not None, "free cycles are solved before the search"
    rank, depth = ordered
    # Free arrows lead to lower ranks, so higher ranks come first.
    nodes = np.flatnonzero(finite[:n])
    order = np.lexsort((-rank[nodes], -height[nodes]) if height.size else (-rank[nodes],))
    node, place = np.append(nodes[order], n), np.full(n + 1, -1)
    place[node] = np.arange(len(node))
    return node, place, depth


class LatticeSearch:
    """A search that can be stopped and looked at between calls of `run`."""

    def __init__(self, lattice: Lattice, start: int, request: Request) -> None:
        """Begin at a node of the lattice with nothing paid and probability 1."""
        self.lattice, self.request = lattice, request
        tuning = request.tuning
        caps = (tuning.ring_rows, tuning.ring_cells, tuning.far_rows)
        self.facts, self.near, self.far, few, far_node, far_place = lay_out_rows(lattice.arrows, lattice.n, caps, lattice.chooser.size > 0)
        taken = few[:0]
        if lattice.chooser.size:
            few = np.flatnonzero(np.bincount(lattice.chooser[np.diff(self.far.row_start) > 0])) if len(self.far.jump) else taken
            taken = np.empty(lattice.n if len(few) else 0, dtype=np.int64)
        self.far_nodes = FarNodes(few, taken)
        self.rings = _rings(lattice.n, self.facts, far_node, far_place, tuning)
        # The second ring is as long as the longest jump, if there is one.
        self.n_listed = 0 if self.rings.far.size else len(self.far.jump)
        self.waiting = Waiting(np.full((self.facts.longest >> self.facts.shift) + 3, -1, dtype=np.int64), *_entries(0))
        self.aside = Aside(np.zeros(lattice.n), np.zeros(lattice.n, dtype=np.int64))
        self.at_step = lattice.steps.first[1:] - 1
        self.flush = negligible(request.alpha, self.facts.least)
        self.now = standing()
        self.head_level, self.head_mass = np.empty(1024, dtype=np.int64), np.empty(1024)
        height = lattice.arrows.height
        first = int(height[lattice.node[start]]) if height.size else 0
        self.now["bucket"], self.now["free"], self.now["n_flags"], self.now["summed"] = first, -1, 1, 2.0**SCALE
        cell = (first & ((1 << self.facts.shift) - 1)) * self.facts.stride + start
        self.rings.ring[cell] = 2.0**SCALE
        self.rings.flag[cell >> BLOCK] = 1
        if self.n_listed:
            self._grow_lists(self.n_listed)

    @property
    def expanded(self) -> int:
        return int(self.now["expanded"])

    @property
    def bucket(self) -> int:
        """The first that has not been looked at."""
        return int(self.now["bucket"])

    def _grow_lists(self, room: int) -> None:
        """Make the pool of waiting entries larger and chain the new ones to the free list."""
        first, *present = self.waiting
        old = len(self.waiting.after)
        size = old + max(room, old)
        grown = _entries(size)
        for new, kept in zip(grown, present, strict=True):
            new[:old] = kept
        grown[0][old:] = np.append(np.arange(old + 1, size), self.now["free"])
        self.now["free"] = old
        self.waiting = Waiting(first, *grown)

    def _bytes(self) -> int:
        """Memory that grows: the head, once more and some sums of it in the result, and the waiting entries."""
        return HEAD_BYTES * len(self.head_level) + 28 * len(self.waiting.after)

    def run(self, watch: Watch) -> End:
        """Search until P(Z > X) <= alpha or nothing is open, or until a limit is passed or the user stops it."""
        end = self._stretch(watch)
        if end is None:  # most searches end before anybody could press a key, and to listen takes longer than small ones do
            with watch:
                while end is None:
                    end = End.STOPPED if watch.stop else self._stretch(watch)
        return end

    def _stretch(self, watch: Watch) -> End | None:
        """Search up to a pause, or the end."""
        lat, request = self.lattice, self.request
        status = search(
            self.near,
            self.far,
            self.far_nodes,
            lat.steps,
            self.at_step,
            self.rings,
            self.waiting,
            self.aside,
            self.n_listed,
            request.alpha * 2.0**SCALE,
            self.flush,
            request.limit,
            request.tuning.lattice_pause,
            self.head_level,
            self.head_mass,
            self.now,
        )
        if status in (Stop.NEED_HEAD, Stop.NEED_LISTS) and 2 * self._bytes() > request.max_bytes:
            return End.MEMORY
        if status == Stop.NEED_HEAD:
            self.head_level = np.append(self.head_level, np.empty_like(self.head_level))
            self.head_mass = np.append(self.head_mass, np.empty_like(self.head_mass))
        elif status == Stop.NEED_LISTS:
            self._grow_lists(self.n_listed)
        elif status == Stop.PAUSED:
            watch.tell(self.expanded, float(np.sum(self.head_mass[: self.now["n_head"]]) * 2.0**-SCALE))
        elif status == Stop.NO_ACTION:
            raise PolicyError("the policy has no action for a state that it can reach")
        else:
            return End.NODES if status == Stop.LIMIT else End.FINISHED
        return None

    def result(self, unit: Fraction, cycle_error: float) -> SearchResult:
        """The head and the open nodes, in the chain's numbering and in costs. The search is over then."""
        del self.near  # the list of the open nodes can take its room
        lat, n_head = self.lattice, int(self.now["n_head"])
        ratio, scale = (float(unit.numerator), float(unit.denominator)), 2.0**-SCALE
        end, *listed = frontier(self.rings, self.waiting, self.bucket, lat.arrows, ratio, scale, SMALL, *frozen(lat.node))
        left = Left(*listed)
        aside = left.part(slice(end, None))
        if self.now["aside"] > 0:
            few = np.flatnonzero(self.aside.mass)
            height = lat.arrows.height[lat.node[few]] if lat.arrows.height.size else 0.0
            aside = Left(lat.node[few], in_costs(self.aside.bucket[few] - height, unit), self.aside.mass[few]).with_more(aside)
        return SearchResult(
            costs=in_costs(self.head_level[:n_head], unit),
            probabilities=self.head_mass[:n_head] * scale,
            open=left.part(slice(end)),
            aside=aside,
            lost=float(self.now["lost"]) * scale,
            relative_error=self._relative_error(self.bucket, cycle_error),
            cost_error=4 * UNIT,
            expanded=self.expanded,
        )

    def _relative_error(self, bucket: int, cycle_error: float) -> float:
        steps = (max(bucket, 1) // self.facts.shortest + 2) * (1 + self.lattice.free_depth)
        per_step = (self.facts.into + ROW * self.facts.out + FIXED + 4) * UNIT + cycle_error
        return float(steps * per_step + (self.facts.arriving + 4) * UNIT)


def _rings(n: int, facts: Facts, far_node: NDArray[np.int64], far_place: NDArray[np.int32], tuning: Tuning) -> Rings:
    """The ring, and the second ring for the targets of longer jumps; left empty, so that these wait in lists, where it would be too large."""
    cells, rows = facts.stride << facts.shift, 1 << facts.longest.bit_length()
    ring, flag = np.zeros(cells), np.zeros(cells >> BLOCK, dtype=np.uint8)
    if len(far_node) == 0 or rows > tuning.far_rows or rows * len(far_node) > tuning.far_cells:
        rows, far_node = 0, far_node[:0]
    return Rings(n, facts.shift, facts.stride, ring, flag, np.zeros((rows, len(far_node))), far_node, far_place)


def _entries(size: int) -> tuple[Any, Any, Any, Any]:
    """Room for waiting entries: after, bucket, node, mass."""
    return np.empty(size, dtype=np.int64), np.empty(size, dtype=np.int64), np.empty(size, dtype=np.int32), np.empty(size)


def in_costs(levels: NDArray[Any], unit: Any) -> NDArray[np.float64]:
    """Levels as costs; numerator and denominator apart, so that a decimal unit gives the float nearest to the decimal."""
    return np.asarray(levels * float(unit.numerator) / float(unit.denominator))
