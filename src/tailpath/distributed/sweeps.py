"""Value iteration over the states of all ranks, value for value as in one process (`dp/sweeps.py`).

In one process each value takes the place of the last one at once, so that a state reads new values
of those before it in the order, and old ones of those behind. On ranks that needs no more than
*turns*: a state takes its turn after those before it that it reads on other ranks, and not after
those behind it that it reads. A rank works through its own states of a turn in their order, and
then passes on what others need. So all values are those of one process to the last bit, whoever has
which state. Bands of distances begin turns of their own: a rank goes on with the next band while
those that wait for the last one follow.

The order is that of one process: strong components, by way of a graph of those that each rank finds
in its own states; inside them the distance to the end, which is the least of sums that are taken
along ways, wherever these lead; then the number of the state. What ends a component is decided by
the same rules, from the largest change and the first state that made one. Sums over states, of a
leap, are sums of integers.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tailpath.distributed.ranks import Halo, joined, largest
from tailpath.distributed.search import PartGraph
from tailpath.dp.across import FULL, OneProcess
from tailpath.dp.backup import Decisions
from tailpath.dp.bounds import Bounds
from tailpath.dp.sweeps import (
    DONE,
    FOLLOWED,
    FOLLOWED_SLOWLY,
    LOOK,
    MOST_ROUNDS,
    PLAIN,
    Pace,
    after_round,
    choose_rows,
    direction,
    follow_rows,
    largest_move,
    leap,
    leap_length,
    leap_limit,
    room_for,
    settle,
    ways_back,
    without_self_loops,
)
from tailpath.graph import offsets_from_lengths
from tailpath.kernels.forward import cheapest_way
from tailpath.kernels.graph import raise_turns, strong_components
from tailpath.kernels.jit import frozen
from tailpath.kernels.rounding import NOTHING, STRICT

Array = NDArray[Any]
IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]
#: Edges that are looked at together.
SOME = 2**22
#: Into so many bands of so many states the states of a sweep are cut, at most and at least. While a
#: rank is at the next band, others are at the last one.
MOST_BANDS, LEAST_BAND = 128, 2**10
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


class PartSweeps:
    """The states of a rank in the order in which they are swept, and what is passed on between."""

    def __init__(self, graph: PartGraph) -> None:
        self.graph, comm = graph, graph.comm
        self.across = AcrossRanks(graph.halo, graph.n - graph.own)
        self.n = self.across.total(graph.own)
        self.least = self._distances()
        component, size = self._components()
        # Components of one state each, one after the other, are swept as one.
        begins = np.append(True, (size[1:] > 1) | (size[:-1] > 1)) if len(size) else size > 0
        group = (np.cumsum(begins) - 1)[component]
        self.order = np.lexsort((graph.state, self.least, component))
        self.position = np.empty(graph.n, dtype=np.int64)
        self.position[self.order] = np.arange(graph.n)
        turn = self._turns(group)
        turns = int(largest(comm, float(turn.max(initial=0)))) + 1
        stops = self._segments(group * turns + turn, (group[: graph.own] + 1) * turns - 1)
        self.groups = self._groups(group, np.flatnonzero(begins), size, stops // turns)

    def _distances(self) -> FloatArray:
        """The distance of every node to the end, as `Sweeps.outwards` has it."""
        graph, given = self.graph, self.graph.decisions
        extra = STRICT * self.across.most(float(given.rate.max(initial=0.0)))
        start, source, length = ways_back(given, extra)
        found, known = np.full(graph.n, np.inf), None
        while True:
            beyond = found[graph.own :].copy()
            if known is None or not np.array_equal(beyond, known):
                # A ghost is as far from the end as its rank has found.
                ghost, known = np.flatnonzero(np.isfinite(beyond)), beyond
                least, more = np.full(graph.n + 1, np.inf), start.copy()
                more[-1] += len(ghost)
                ways = np.append(source, (graph.own + ghost).astype(np.int32))
                cheapest_way(more, ways, np.append(length, beyond[ghost]), graph.n, least)
                found = least[:-1]
            graph.halo.exchange(found)
            if self.across.every(np.array_equal(found[graph.own :], known)):
                return found

    def _components(self) -> tuple[IntArray, IntArray]:
        """The strong component of every node, ghosts included, numbered such that all lead to the
        same or a lower one; and how many states each has.
        """
        graph, comm = self.graph, self.graph.comm
        links = self.graph.links
        own = graph.own
        here = np.empty(max(own, 1), dtype=np.int32)
        count = strong_components(*frozen(links.row_start[: own + 1], links.target), here[:own])
        counts = comm.allgather(int(count))
        local = np.zeros(graph.n, dtype=np.int64)
        local[:own] = here[:own] + sum(counts[: comm.rank])
        graph.halo.exchange(local)
        total, edges = sum(counts), [np.zeros(0, dtype=np.int64)]
        for first in range(0, len(links.target), SOME):  # as arrays by edge are long
            some = np.arange(first, min(first + SOME, len(links.target)))
            some = some[links.target[some] < graph.n]
            source = np.searchsorted(links.row_start, some, side="right") - 1
            pair = local[source] * total + local[links.target[some]]
            edges.append(np.unique(pair[local[source] != local[links.target[some]]]))
        source, target = np.divmod(np.unique(joined(comm, np.concatenate(edges))), max(total, 1))
        row_start = offsets_from_lengths(np.bincount(source, minlength=total))
        number = np.empty(max(total, 1), dtype=np.int32)
        count = strong_components(*frozen(row_start, target.astype(np.int32)), number[:total])
        found = number[local].astype(np.int64)
        mine = np.bincount(found[:own], minlength=int(count))
        return found, np.sum(comm.allgather(mine), axis=0)

    def _turns(self, group: IntArray) -> IntArray:
        """The turn of every node in its group, from a turn for every band of distances on."""
        graph, links = self.graph, self.graph.links
        farthest = self.across.most(float(self.least.max(initial=0.0)))
        bands = min(self.n // LEAST_BAND, MOST_BANDS)
        turn = (self.least * (bands / max(farthest, NOTHING))).astype(np.int64)
        while True:
            before = turn.copy()
            columns = frozen(links.row_start, links.target, self.order, group)
            raise_turns(*columns, graph.own, turn)
            later = -turn
            graph.halo.gather_least(later, later)
            turn = -later
            graph.halo.exchange(turn)
            if self.across.every(np.array_equal(turn, before)):
                return turn

    def _segments(self, code: IntArray, ends: IntArray) -> IntArray:
        """Cut own nodes into segments, each up to where something is passed on or, at codes in
        `ends`, a group is over; `code` (n,) has groups, and turns in them. Returns the stops.
        """
        graph, halo = self.graph, self.graph.halo
        passed = [code[some] for some in (*halo.send, *halo.receive)]
        stops = np.unique(np.concatenate([ends, *passed]))
        segment = np.searchsorted(stops, code[: graph.own])
        own = np.lexsort((self.position[: graph.own], segment))
        self.folded = np.append(own, np.arange(graph.own, graph.n))
        self.starts = np.searchsorted(segment[own], np.arange(len(stops) + 1))
        self.keys = segment[own] * graph.n + self.position[own]
        index = np.empty(graph.n, dtype=np.int64)
        index[self.folded] = np.arange(graph.n)
        self.halo = halo.renumbered(index)
        # By stop and rank, with the position of the last node that is passed on either way.
        self.halos: dict[int, list[tuple[int, Halo]]] = {}
        behind = np.append(stops, stops[-1:] + 1)
        for rank, send, receive in zip(halo.ranks, halo.send, halo.receive):
            sides = [some[np.argsort(code[some], kind="stable")] for some in (send, receive)]
            first = [np.searchsorted(code[some], behind) for some in sides]
            some = np.flatnonzero((np.diff(first[0]) > 0) | (np.diff(first[1]) > 0))
            for stop in some.tolist():
                out, here = (p[f[stop] : f[stop + 1]] for p, f in zip(sides, first))
                last = int(self.position[np.append(out, here)].max())
                pair = halo.between(rank, index[out], index[here])
                self.halos.setdefault(stop, []).append((last, pair))
        return stops

    def _groups(
        self, group: IntArray, begins: IntArray, size: IntArray, at_stop: IntArray
    ) -> list[Group]:
        """All groups, in the order in which they are swept."""
        graph, count = self.graph, len(begins)
        every = np.arange(count + 1)
        nodes, segments = np.searchsorted(group[self.order], every), np.searchsorted(at_stop, every)
        sizes = np.add.reduceat(size, begins) if count else size
        own = self.order[self.order < graph.own]
        first = np.searchsorted(group[own], every[:-1])
        here = np.append(own, -1)[first]
        some = (first < len(own)) & (np.append(group, -1)[here] == every[:-1])
        distance = np.where(some, np.append(self.least, np.inf)[here], np.inf)
        state = np.where(some, np.append(graph.state, 0)[here], 0)
        keys = zip(*(np.stack(graph.comm.allgather(each)).T for each in (distance, state)))
        starts = [min(zip(d.tolist(), s.tolist())) for d, s in keys]
        most = np.max(graph.comm.allgather(np.bincount(group[own], minlength=count)), axis=0)
        columns = nodes[:-1], nodes[1:], segments[:-1], segments[1:], sizes, size[begins] > 1
        rows = zip(*(each.tolist() for each in (*columns, most == sizes)), starts)
        return [Group(*row) for row in rows]

    def run(self, given: Decisions, first: FloatArray, tolerance: float) -> tuple[FloatArray, int]:
        """Value iteration from `first`, by own node: `Sweeps.run`, over all ranks."""
        graph = self.graph
        ghosts = np.full(graph.n - graph.own, given.state_choices[-1])
        rows = given._replace(state_choices=next(frozen(np.append(given.state_choices, ghosts))))
        loop_free = room_for(rows)
        without_self_loops(rows, *frozen(self.folded), loop_free)
        value = self.across.padded(first)[self.folded]
        settling = _Settling(self, loop_free, tolerance, value, np.zeros_like(loop_free[0]))
        rounds = [settling.settle(group) for group in self.groups]
        result = np.empty(graph.own)
        result[self.folded[: graph.own]] = value[: graph.own]
        return result, int(self.across.most(max(rounds, default=0)))

    def pieces(self, group: Group, begin: Key) -> Iterator[tuple[int, int, list[Halo]]]:
        """The own nodes of a group from one of its states on, and what is passed on behind each."""
        segments, first = np.arange(group.begin, group.end), group.first
        starts = self.starts[segments]
        if begin != group.start:
            nodes = self.order[group.first : group.last]
            near, far = (
                int(np.searchsorted(self.least[nodes], begin[0], side))
                for side in ("left", "right")
            )
            first += near + int(np.searchsorted(self.graph.state[nodes[near:far]], begin[1]))
            starts = np.searchsorted(self.keys, segments * self.graph.n + first)
        for segment, start in zip(segments.tolist(), starts.tolist()):
            # What comes before has not changed, which both sides know.
            pairs = [pair for last, pair in self.halos.get(segment, ()) if last >= first]
            yield start, int(self.starts[segment + 1]), pairs


class _Settling:
    """Values on the way, and what is done to those of a group (`dp.sweeps.settle`)."""

    def __init__(
        self,
        sweeps: PartSweeps,
        loop_free: Decisions,
        tolerance: float,
        value: FloatArray,
        chosen: Array,
    ) -> None:
        self.sweeps, self.loop_free = sweeps, loop_free
        self.tolerance = tolerance
        self.value, self.chosen = value, chosen

    def settle(self, group: Group) -> int:
        """Value iteration until the group has settled; the rounds it took."""
        if group.on_one_rank:
            return self._settle_here(group)
        begin, pace = group.start, Pace()
        while True:
            change, moved = self._choose(group, begin)
            if not group.is_component:
                return 0
            settled, everywhere = moved == NOWHERE, begin == group.start
            what, pace = after_round(change, settled, everywhere, MOST_ROUNDS, pace)
            if what == DONE:
                return int(pace.rounds)
            begin = group.start if what == LOOK else moved
            if what == LOOK:
                continue
            for _ in range(FOLLOWED if pace.rounds < PLAIN else FOLLOWED_SLOWLY):
                self._follow(group, begin)
            if pace.rounds >= PLAIN and self._leap(group):
                begin, pace = group.start, pace._replace(previous=np.inf)

    def _settle_here(self, group: Group) -> int:
        """The same where all states of the group are on one rank: others hear of them in the end.
        Without rounds of its own a group is a row of components.
        """
        starts = self.sweeps.starts
        first, last = int(starts[group.begin]), int(starts[group.end])
        rounds = 0
        if first < last:
            ends = np.array([first, last]) if group.is_component else np.arange(first, last + 1)
            columns = self.value, self.chosen, np.empty((2, len(self.value)))
            rounds = settle(*frozen(ends), self.loop_free, self.tolerance, MOST_ROUNDS, *columns)
        for _, _, pairs in self.sweeps.pieces(group, group.start):
            self._pass_on(pairs)
        return int(rounds)

    def _choose(self, group: Group, begin: Key) -> tuple[float, Key]:
        """The largest change of a round on all ranks, and the first state that made one."""
        sweeps, most = self.sweeps, 0.0
        moved = self.sweeps.graph.n
        for first, last, pairs in sweeps.pieces(group, begin):
            if first < last:
                rows = self.loop_free, first, last, self.tolerance
                change, at = choose_rows(*rows, self.value, self.chosen)
                most = max(most, change)
                if at < last:
                    moved = min(moved, int(sweeps.position[sweeps.folded[at]]))
            self._pass_on(pairs)
        mine = NOWHERE
        if moved < sweeps.graph.n:
            node = sweeps.order[moved]
            mine = float(sweeps.least[node]), int(sweeps.graph.state[node])
        every = sweeps.graph.comm.allgather((most, mine))
        return max(each[0] for each in every), min(each[1] for each in every)

    def _follow(self, group: Group, begin: Key) -> None:
        for first, last, pairs in self.sweeps.pieces(group, begin):
            if first < last:
                follow_rows(self.loop_free, first, last, self.chosen, self.value)
            self._pass_on(pairs)

    def _pass_on(self, pairs: list[Halo]) -> None:
        pending = [pair.begin(self.value) for pair in pairs]
        for pair, messages in zip(pairs, pending):
            pair.finish(messages, self.value)

    def _leap(self, group: Group) -> bool:
        """Follow the choices twice, and go on as far as the second time leads if it has the
        direction of the first; whether it has.
        """
        sweeps, across = self.sweeps, self.sweeps.across
        value = self.value[sweeps.starts[group.begin] : sweeps.starts[group.end]]
        before = value.copy()
        self._follow(group, group.start)
        old = value.copy()
        self._follow(group, group.start)
        nodes = 0, len(value)
        most = across.most(largest_move(*nodes, before, old, value))
        if not 0.0 < most < np.inf:
            return False
        sums = direction(*nodes, before, old, value, most, FULL / group.size)
        far = leap_length(*(across.total(int(each)) for each in sums))
        if far == 0.0:
            return False
        far = -across.most(-leap_limit(*nodes, old, value, far))
        leap(*nodes, old, far, value)
        sweeps.halo.exchange(self.value)
        return True
