"""The order in which the states of all ranks are swept, that of one process (`dp.sweeps.Sweeps`):
by strong components, inside them by the distance to the end, then by their numbers.

In one process each value takes the place of the last one at once, so that a state reads new values
of those before it in the order, and old ones of those behind. On ranks that needs no more than
*turns*: a state takes its turn after those before it that it reads on other ranks, and not after
those behind it that it reads. Bands of distances begin turns of their own, so that a rank passes on
what others wait for long before it has been through its states. These are cut into *segments*, each
up to where something is passed on. What a segment reads of others is known beforehand: nothing else
is waited for.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from typing import Any, NamedTuple

import numpy as np

from tailpath.distributed.ranks import Halo, joined, largest
from tailpath.distributed.search import PartGraph
from tailpath.dp.bounds import Bounds, OneProcess
from tailpath.dp.sweeps import incoming_edges
from tailpath.graph import FloatArray, IntArray, offsets_from_lengths
from tailpath.kernels.graph import raise_turns, strong_components
from tailpath.kernels.jit import frozen
from tailpath.kernels.rounding import STRICT

#: Nodes whose edges are looked at together.
SOME = 2**18
#: Into so many bands of so many states of a rank the states of a sweep are cut, at most and at
#: least; so many states tell where a band ends.
MAX_BANDS, LEAST_BAND = 128, 2**15
SAMPLES = 64
#: A state in the order of its component: its distance to the end, and its number.
Key = tuple[float, int]
#: Behind all states.
NOWHERE: Key = (np.inf, 0)


class AcrossRanks(OneProcess):
    """Every rank has its own nodes, and ghosts of those that their rows lead to."""

    def __init__(self, halo: Halo, ghosts: int) -> None:
        self.halo, self.ghosts = halo, ghosts

    def most(self, number: float) -> float:
        return largest(self.halo.comm, number)

    def total(self, count: int) -> int:
        return sum(self.halo.comm.allgather(count))

    def padded(self, values: FloatArray) -> FloatArray:
        padded = np.append(values, np.zeros(self.ghosts + 1))
        self.halo.exchange(padded)
        return padded

    def width(self, bounds: Bounds) -> float:
        return bounds.widest(self.most)


class Group(NamedTuple):
    """A strong component, or some in a row of one state each: positions `first : last` of the
    nodes here, segments `begin : end`, how many states it has on all ranks, whether one rank has
    them all, and its first one."""

    first: int
    last: int
    begin: int
    end: int
    size: int
    is_component: bool
    on_one_rank: bool
    start: Key


class Piece(NamedTuple):
    """Own nodes `first : last` of a segment, the messages that have what they read of other ranks,
    and those that are sent and asked for behind it."""

    first: int
    last: int
    reads: list[int]
    messages: list[int]


class PartOrder:
    """The states of a rank in the order in which they are swept, and what is passed on between.

    `swept` (n,) has own nodes, segment by segment, and ghosts behind them; `messages` are numbered
    parts of the halo of values in that order.
    """

    def __init__(self, graph: PartGraph) -> None:
        self.graph = graph
        self.across = AcrossRanks(graph.halo, graph.n - graph.own)
        self.n = self.across.total(graph.own)
        extra = STRICT * self.across.most(float(graph.decisions.rate.max(initial=0.0)))
        self.least = graph.distances(*incoming_edges(graph.decisions, extra))
        component, size = self._components()
        # Components of one state each, one after the other, are swept as one.
        begins = np.append(True, (size[1:] > 1) | (size[:-1] > 1)) if len(size) else size > 0
        group = (np.cumsum(begins) - 1)[component]
        self.order = np.lexsort((graph.state, self.least, component))
        self.position = np.empty(graph.n, dtype=np.int64)
        self.position[self.order] = np.arange(graph.n)
        turn = self._turns(group)
        turns = int(self.across.most(float(turn.max(initial=0)))) + 1
        code = group * turns + turn
        passed = [code[some] for some in (*graph.halo.send, *graph.halo.receive)]
        stops = np.unique(np.concatenate([(group[: graph.own] + 1) * turns - 1, *passed]))
        segment = np.searchsorted(stops, code)
        self._cut(segment[: graph.own], len(stops))
        self._connect(segment)
        self.groups = self._groups(group, np.flatnonzero(begins), size, stops // turns)

    def _components(self) -> tuple[IntArray, IntArray]:
        """The strong component of every node, ghosts included, numbered such that all lead to the
        same or a lower one; and how many states each has.
        """
        graph, comm = self.graph, self.graph.comm
        rows, target, _ = self.graph.links
        own = graph.own
        here = np.empty(max(own, 1), dtype=np.int32)
        count = strong_components(*frozen(rows[: own + 1], target), here[:own])
        counts = comm.allgather(int(count))
        local = np.full(graph.n + 1, -1, dtype=np.int64)
        local[:own] = here[:own] + sum(counts[: comm.rank])
        graph.halo.exchange(local)
        total, edges = sum(counts), [np.zeros(0, dtype=np.int64)]
        for first in range(0, own, SOME):  # as arrays by edge are long
            last = min(first + SOME, own)
            source = np.repeat(local[first:last], np.diff(rows[first : last + 1]))
            to = local[target[rows[first] : rows[last]]]
            leaves = (source != to) & (to >= 0)
            edges.append(np.unique(source[leaves] * total + to[leaves]))
        source, to = np.divmod(np.unique(joined(comm, np.concatenate(edges))), max(total, 1))
        row_start = offsets_from_lengths(np.bincount(source, minlength=total))
        number = np.empty(max(total, 1), dtype=np.int32)
        count = strong_components(*frozen(row_start, to.astype(np.int32)), number[:total])
        found = number[local[:-1]].astype(np.int64)
        mine = np.bincount(found[:own], minlength=int(count))
        return found, np.sum(comm.allgather(mine), axis=0)

    def _turns(self, group: IntArray) -> IntArray:
        """The turn of every node in its group, from a turn for every band of distances on. Bands
        have about as many states as each other: a few may be far from all others.
        """
        graph, links = self.graph, self.graph.links
        bands = min(self.n // (LEAST_BAND * graph.comm.size), MAX_BANDS)
        apart = self.n // (SAMPLES * MAX_BANDS) + 1
        some = np.sort(joined(graph.comm, self.least[: graph.own : apart]))
        ends = some[np.arange(1, bands) * len(some) // max(bands, 1)]
        turn = np.searchsorted(ends, self.least, side="right")
        columns = *frozen(links.row_start, links.target, self.order, group), graph.own

        def rise(turn: IntArray) -> None:
            raise_turns(*columns, turn)
            np.negative(turn, out=turn)
            graph.halo.gather_least(turn)
            np.negative(turn, out=turn)

        graph.halo.repeat(rise, turn, self.n + bands + 1)
        return turn

    def _cut(self, segment: IntArray, segments: int) -> None:
        """Put own nodes in the order of their segments, and inside them in that of the sweep."""
        graph = self.graph
        own = np.lexsort((self.position[: graph.own], segment))
        self.swept = np.append(own, np.arange(graph.own, graph.n))
        self.starts = np.searchsorted(segment[own], np.arange(segments + 1))
        self.keys = segment[own] * graph.n + self.position[own]

    def _connect(self, segment: IntArray) -> None:
        """Number the messages between ranks, by the segment (n,) behind which nodes are passed on,
        and find out which of them each segment reads and passes on.
        """
        graph, links = self.graph, self.graph.links
        index = np.empty(graph.n, dtype=np.int64)
        index[self.swept] = np.arange(graph.n)
        self.messages: list[Halo] = []
        #: The last position of what each message has, either way.
        self.last: list[int] = []
        self.behind: dict[int, list[int]] = defaultdict(list)
        self.reads: dict[int, list[int]] = defaultdict(list)
        message = np.full(graph.n + 1, -1, dtype=np.int32)
        for rank, send, receive in zip(graph.halo.ranks, graph.halo.send, graph.halo.receive):
            stops = np.unique(np.concatenate([segment[send], segment[receive]]))
            sides = (some[np.argsort(segment[some], kind="stable")] for some in (send, receive))
            split = (np.split(some, np.searchsorted(segment[some], stops[1:])) for some in sides)
            for stop, out, here in zip(stops.tolist(), *split):
                message[here] = len(self.messages)
                self.behind[stop].append(len(self.messages))
                self.messages.append(graph.halo.between(rank, index[out], index[here]))
                self.last.append(int(self.position[np.append(out, here)].max()))
        ghost = np.flatnonzero(message[links.target] >= 0)
        reader = segment[np.searchsorted(links.row_start, ghost, side="right") - 1]
        pairs = np.unique(np.stack([reader, message[links.target[ghost]]]), axis=1)
        for here, read in pairs.T.tolist():
            self.reads[here].append(read)

    def _groups(
        self, group: IntArray, begins: IntArray, size: IntArray, at_stop: IntArray
    ) -> list[Group]:
        """All groups, in the order in which they are swept."""
        graph, every = self.graph, np.arange(len(begins) + 1)
        nodes, segments = np.searchsorted(group[self.order], every), np.searchsorted(at_stop, every)
        sizes = np.add.reduceat(size, begins) if len(begins) else size
        own = self.order[self.order < graph.own]
        firsts = own[np.flatnonzero(np.diff(group[own], prepend=-1))]
        mine = [NOWHERE] * len(begins)
        for number, node in zip(group[firsts].tolist(), firsts.tolist()):
            mine[number] = self.key(node)
        starts = [min(keys) for keys in zip(*graph.comm.allgather(mine))]
        here = np.bincount(group[own], minlength=len(begins))
        on_one_rank = np.max(graph.comm.allgather(here), axis=0) == sizes
        columns = nodes[:-1], nodes[1:], segments[:-1], segments[1:], sizes, size[begins] > 1
        rows = zip(*(each.tolist() for each in (*columns, on_one_rank)), starts)
        return [Group(*row) for row in rows]

    def key(self, node: int) -> Key:
        """Where a node stands in the order of its component."""
        return float(self.least[node]), int(self.graph.state[node])

    def pieces(self, group: Group, begin: Key) -> list[Piece]:
        """The own nodes of a group from one of its states on, segment by segment."""
        segments = np.arange(group.begin, group.end)
        nodes: Any = self.order[group.first : group.last]
        first = group.first
        if begin != group.start:  # in a row of components there is no other
            first += bisect_left(nodes, begin, key=self.key)
        starts = np.searchsorted(self.keys, segments * self.graph.n + first)
        ends = self.starts[segments + 1]
        rows = zip(segments.tolist(), starts.tolist(), ends.tolist())
        # What comes before has not changed, which both sides know.
        return [
            Piece(start, end, self.reads[s], [m for m in self.behind[s] if self.last[m] >= first])
            for s, start, end in rows
        ]
