"""Rows of transitions: the one record of what leads where, and everything that is done to it.

A *row* is what is left together, a choice of a model or a node of a chain, and an *edge* is one
way out of it. The operations keep the order of edges within their row, and none of them changes
the record that it is called on.

Where rows are nodes, a target below the number of rows is a node, and every other target is
*outside*: a goal, or whatever else ends it. Outside counts as one more node, with the number after
the last. So it is in `transpose`, `collapse`, `distances` and all searches; only `restrict`,
`only`, `joined`, `renumber` and `sums` do not ask what a target is.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tailpath.errors import ModelError
from tailpath.kernels import graph
from tailpath.kernels.jit import Array as Array
from tailpath.kernels.jit import Kernel, frozen
from tailpath.kernels.shortest_paths import dijkstra

BoolArray = NDArray[np.bool_]
FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
#: Up to this many members are sorted by numpy.
SORTED_BY_NUMPY = 20_000
COLUMNS = {"row_start": "i8", "target": "i4", "probability": "f8", "cost": "f8", "level": "i8"}


class Rows(NamedTuple):
    """Rows by state, as kernels take them: those of state s are `first_row[s] : first_row[s + 1]`,
    and each costs `rate` on average. The targets of the edges of row k, and their probabilities,
    are `row_start[k] : row_start[k + 1]` of these.
    """

    first_row: Array
    row_start: Array
    target: Array
    probability: Array
    rate: Array


def offsets_of(group: Array, n_groups: int) -> IntArray:
    """Where each group starts if `group` is that of every member, in order: (n_groups + 1,)."""
    return offsets_from_lengths(np.bincount(group, minlength=n_groups))


def offsets_from_lengths(length: Array) -> IntArray:
    """Where each group starts if the groups have these lengths; one entry more than groups."""
    offsets = np.zeros(len(length) + 1, dtype=np.int64)
    np.cumsum(length, out=offsets[1:])
    return offsets


def members(offsets: Array, group: int) -> range:
    """The members of one group: the choices of a state, the outcomes of a choice."""
    return range(int(offsets[group]), int(offsets[group + 1]))


def members_of(offsets: Array, groups: Array) -> tuple[IntArray, IntArray]:
    """The members of some groups, one after the other, and the offsets of the groups among them."""
    length = np.diff(offsets)[groups]
    start = offsets_from_lengths(length)
    return np.repeat(offsets[groups] - start[:-1], length) + np.arange(start[-1]), start


def owners(offsets: Array, dtype: Any = np.int64) -> Array:
    """The group of every member."""
    return np.repeat(np.arange(len(offsets) - 1, dtype=dtype), np.diff(offsets))


def grouped(group: Array, n_groups: int) -> tuple[Array, IntArray]:
    """The members of each group, one after the other, from the group of each; and the offsets."""
    if len(group) <= SORTED_BY_NUMPY:
        # Integers of 16 bits are sorted by their digits, in linear time.
        key = np.asarray(group, np.uint16 if n_groups <= 2**16 else np.int64)
        return np.argsort(key, kind="stable"), offsets_of(group, n_groups)
    members, start = np.empty(len(group), np.int32), np.zeros(n_groups + 2, dtype=np.int64)
    graph.group_members(*frozen(group.astype(np.int32, copy=False)), start, members)
    return members, start[:-1]


def positions(mask: BoolArray) -> IntArray:
    """The numbers of nodes if only some are kept, in order; one more for all others: (n + 1,)."""
    count = int(mask.sum())
    return np.append(np.where(mask, np.cumsum(mask) - 1, count), count)


def first_of(mask: BoolArray) -> list[int]:
    """The first position of those marked, for a message about it; none where none is."""
    positions: list[int] = np.flatnonzero(mask)[:1].tolist()
    return positions


class Distances(NamedTuple):
    """The cheapest way outside from every node, of n.

    `least` (n + 1,) is its cost, 0 outside and infinite where there is no way. `farthest_first`:
    nodes that have one, by falling cost, and then outside; `position` (n + 1,) says where
    each of these stands among them, and has -1 for others.
    """

    least: FloatArray
    farthest_first: IntArray
    position: IntArray


@dataclass(frozen=True, eq=False, repr=False)
class Transitions:
    """Rows of edges: those of row r are `row_start[r] : row_start[r + 1]`. Arrays are read-only.

    `row_start` int64 (R + 1,), rising from 0 to A; `target` int32 (A,); `probability` and `cost`
    float64 (A,); `level` int64 (A,), the cost as a whole number of a unit, or None. Where rows are
    the choices of states, those of state s are `first_row[s] : first_row[s + 1]`.
    """

    row_start: IntArray
    target: NDArray[np.int32]
    probability: FloatArray
    cost: FloatArray
    level: IntArray | None
    first_row: IntArray | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        given = [name for name in COLUMNS if getattr(self, name) is not None]
        arrays = [np.ascontiguousarray(getattr(self, name), COLUMNS[name]) for name in given]
        vars(self).update(zip(given, frozen(*arrays)))
        count = len(self.target)
        if len(self.row_start) == 0 or any(len(array) != count for array in arrays[1:]):
            raise ModelError(f"{count} transitions need row starts, and columns of the same length")

    @staticmethod
    def from_edges(source: Array, n: int, target: Any, probability: Any, cost: Any) -> Transitions:
        """n rows from edges in any order, with the row of each."""
        rows = Transitions(offsets_of(source, n), target, probability, cost, None)
        order = slice(None) if (np.diff(source) >= 0).all() else grouped(source, n)[0]
        return rows._picked(rows.row_start, order)

    @property
    def n(self) -> int:
        """The number of rows, R."""
        return len(self.row_start) - 1

    @cached_property
    def source(self) -> NDArray[np.int32]:
        """The row of every edge: (A,)."""
        return next(frozen(owners(self.row_start, np.int32)))

    @cached_property
    def state_rows(self) -> IntArray:
        """Where the rows of each state begin: (S + 1,). Without `first_row`, each has one."""
        return np.arange(self.n + 1) if self.first_row is None else self.first_row

    def columns(self, rate: Array) -> Rows:
        """What kernels take, with what each row costs."""
        rows = self.state_rows, self.row_start, self.target, self.probability, rate
        return Rows(*frozen(*rows))

    def replaced(self, **columns: Any) -> Transitions:
        """The transitions with other columns."""
        first_row = columns.pop("first_row", self.first_row)
        found = Transitions(**{name: columns.get(name, getattr(self, name)) for name in COLUMNS})
        vars(found)["first_row"] = first_row
        return found

    def sums(self, terms: FloatArray) -> FloatArray:
        """The sum of a term per edge, (A,), over each row, first to last: (R,)."""
        return np.bincount(self.source, weights=terms, minlength=self.n).astype(np.float64)

    @cached_property
    def rate(self) -> FloatArray:
        """The mean cost of each row: (R,)."""
        return self.sums(self.probability * self.cost)

    # ------------------------------------------------------------ cutting, joining, numbering

    def edges(self, rows: Array) -> IntArray:
        """The edges of some rows, given by number or by mask, one row after the other."""
        return members_of(self.row_start, _numbers(rows))[0]

    def restrict(self, rows: Array) -> Transitions:
        """Only these rows, by number, in this order, or by mask; targets keep their numbers."""
        rows = _numbers(rows)
        if np.array_equal(rows, np.arange(self.n)):
            return self
        edges, row_start = members_of(self.row_start, rows)
        return self._picked(row_start, edges)

    def only(self, edges: BoolArray) -> Transitions:
        """The same rows with only some of their edges, by mask."""
        if edges.all():
            return self
        row_start = offsets_from_lengths(edges)[self.row_start]
        return self._picked(row_start, edges).replaced(first_row=self.first_row)

    def joined(self, first: Array | None = None) -> Transitions:
        """The rows `first[i] : first[i + 1]` as one row each; by default those of each state."""
        first = self.state_rows if first is None else first
        return self.replaced(row_start=self.row_start[first], first_row=None)

    def renumber(self, number: Array) -> Transitions:
        """The same rows with other targets: `number` has one for every target that there is."""
        return self.replaced(target=number[self.target])

    def transpose(self, n: int | None = None) -> Transitions:
        """The edges the other way round: a row for each target below n, and one for outside.

        n is the number of rows unless it is given. Targets are the rows here; those in a row rise.
        """
        n = self.n if n is None else n
        order, row_start = grouped(np.minimum(self.target, n), n + 1)
        return self._picked(row_start, order).replaced(target=self.source[order])

    def collapse(self, group: Array, count: int) -> Transitions:
        """Nodes of the same group, of `count`, drawn together into one, with the edges of all."""
        rows, first = grouped(group, count)
        joined = self.restrict(rows).joined(first)
        return joined.replaced(target=np.append(group, count)[np.minimum(joined.target, self.n)])

    def without_self_loops(self, edges: BoolArray | None = None) -> Transitions:
        """The chance of staying, by all edges from a node to itself or by some, shared out.

        The probabilities of the node's other edges are divided by their sum, which keeps its
        digits where 1 - p has none. A node without others has no edges left.
        """
        loop = self.source == self.target
        return self.without(loop if edges is None else loop & edges)

    def without(self, edges: BoolArray) -> Transitions:
        """The chance of some edges shared out among the others of their row."""
        if not edges.any():
            return self
        others = self.only(~edges)
        leaves = np.ones(self.n)
        stays = np.bincount(self.source[edges], minlength=self.n) > 0
        leaves[stays] = others.sums(others.probability)[stays]
        return others.replaced(probability=others.probability / leaves[others.source])

    def _picked(self, row_start: IntArray, edges: Any) -> Transitions:
        level = None if self.level is None else self.level[edges]
        columns = self.target[edges], self.probability[edges], self.cost[edges]
        return Transitions(row_start, *columns, level)

    # ------------------------------------------------------------ searches

    def _search(self, search: Kernel, *arguments: Any) -> Any:
        return search(self.row_start, self.target, *arguments)

    def reachable(self, start: int) -> BoolArray:
        """The nodes that can be reached from a node, itself among them: (n,); none from outside."""
        reached = np.zeros(self.n, dtype=np.bool_)
        if start < self.n:
            self._search(graph.forward_reach, start, reached)
        return reached

    def components(self) -> tuple[NDArray[np.int32], int]:
        """The strongly connected component of every node (n,), and how many there are.

        They are numbered against the edges, which lead to the same or a lower number: whoever
        takes them in order finds the successors done.
        """
        component = np.empty(self.n, dtype=np.int32)
        count = self._search(graph.strong_components, component)
        return component, int(count)

    def within(self, label: Array) -> BoolArray:
        """Whether an edge leads to a node of the same label as the one it leaves: (A,)."""
        # Any number will do for what is outside, which is then left out.
        same: BoolArray = np.append(label, 0)[np.minimum(self.target, self.n)] == label[self.source]
        return same & (self.target < self.n)

    def cycles(self) -> tuple[NDArray[np.int32], BoolArray]:
        """The component of every node (n,), and which have a cycle: an edge that stays inside."""
        component, count = self.components()
        cyclic = np.zeros(count, dtype=np.bool_)
        cyclic[component[self.source[self.within(component)]]] = True
        return component, cyclic

    def closed(self) -> tuple[NDArray[np.int32], BoolArray]:
        """The component of every node (n,), and which are closed: no edge leads out."""
        component, count = self.components()
        closed = np.ones(count, dtype=np.bool_)
        closed[component[self.source[~self.within(component)]]] = False
        return component, closed

    def acyclic_order(self) -> tuple[NDArray[np.int32], int] | None:
        """A rank that falls along edges (n,), and the most of them in a row; None with a cycle."""
        rank, count = self.components()
        if count < self.n or np.any(self.source == self.target):
            return None
        length = np.zeros(self.n, dtype=np.int64)
        self._search(graph.longest_paths, np.argsort(rank), length)
        return rank, int(length.max(initial=0))

    def distances(self) -> Distances:
        """The cheapest way outside from every node, in levels if there are any, else in costs."""
        least = np.full(self.n + 1, np.inf)
        cost = self.cost if self.level is None else self.level.astype(np.float64)
        into, row_start = grouped(np.minimum(self.target, self.n), self.n + 1)
        order = dijkstra(row_start, self.source[into], cost[into], self.n, least)
        farthest_first = order[np.count_nonzero(order >= 0) - 1 :: -1].astype(np.int64)
        position = np.full(self.n + 1, -1)
        position[farthest_first] = np.arange(len(farthest_first))
        return Distances(*frozen(least, farthest_first, position))

    def costs_from(self, start: int) -> FloatArray:
        """The least cost, in levels, at which each node can be reached from one of them, infinite
        where it cannot: (n + 1,), the last of them outside.
        """
        assert self.level is not None
        least, row_start = np.full(self.n + 1, np.inf), np.append(self.row_start, len(self.target))
        dijkstra(row_start, self.target, self.level.astype(np.float64), start, least)
        return least

    def steps(self) -> NDArray[np.int64]:
        """The fewest edges outside from every node, -1 where there is no way: (n,)."""
        least = self.replaced(level=np.ones_like(self.target)).distances().least[: self.n]
        return np.where(np.isinf(least), -1, least).astype(np.int64)


def _numbers(rows: Array) -> Array:
    return np.flatnonzero(rows) if rows.dtype == np.bool_ else rows
