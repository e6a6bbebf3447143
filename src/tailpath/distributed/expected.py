"""V* of a model in parts, found and proved as in one process, with its own functions, to the last
bit.

A rank works through its own states, segment by segment in the order of all (`order.py`), and passes
on what others need. It goes on, into the next sweep if it comes to that, until it is about to read
what has not come. What ends a component is decided by the rules of one process, from the largest
change and the first state that made one. Sums over states, for an extrapolation, are sums of
integers.

The proofs of `dp/optimum.py` look at every row where it is; the largest of what ranks find counts.
What one process does where sweeps prove too little (policies, eliminations, rationals) needs the
model on one rank and is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tailpath.distributed.order import NOWHERE, Group, Key, PartOrder, Piece
from tailpath.distributed.ranks import Pending
from tailpath.distributed.search import PartGraph, require_arrival
from tailpath.dp.backup import Decisions
from tailpath.dp.bounds import FULL, Bounds
from tailpath.dp.extrapolation import (
    extrapolate,
    extrapolation_length,
    extrapolation_limit,
    largest_move,
    move_products,
)
from tailpath.dp.optimum import is_proved, sharper, swept_optimum
from tailpath.dp.sweeps import (
    CHECK,
    DONE,
    EVALUATIONS,
    MAX_ROUNDS,
    PLAIN_ROUNDS,
    SLOW_EVALUATIONS,
    Convergence,
    after_round,
    choose_rows,
    empty_decisions,
    evaluate_rows,
    settle,
    without_self_loops,
)
from tailpath.errors import ModelError
from tailpath.graph import FloatArray, IntArray
from tailpath.kernels.jit import frozen

SLOW = "value iteration settles too slowly on this model in parts; give the whole model"


class PartSweeps(PartOrder):
    """`dp.sweeps.Sweeps` over the states of all ranks."""

    def run(
        self, decisions: Decisions, first: FloatArray, tolerance: float
    ) -> tuple[FloatArray, int]:
        """Value iteration from `first`, by own node: `Sweeps.run`, over all ranks."""
        graph = self.graph
        ghosts = np.full(graph.n - graph.own, decisions.state_choices[-1])
        rows = decisions._replace(
            state_choices=next(frozen(np.append(decisions.state_choices, ghosts)))
        )
        loop_free = empty_decisions(rows)
        without_self_loops(rows, *frozen(self.swept), loop_free)
        value = self.across.padded(first)[self.swept]
        settling = _Settling(self, loop_free, tolerance, value)
        rounds = [settling.settle(group) for group in self.groups]
        settling.receive(list(settling.pending))
        result = np.empty(graph.own)
        result[self.swept[: graph.own]] = value[: graph.own]
        return result, int(self.across.most(max(rounds, default=0)))


class _Settling:
    """Values on the way, and what is done to those of a group (`dp.sweeps.settle`)."""

    def __init__(
        self, sweeps: PartSweeps, loop_free: Decisions, tolerance: float, value: FloatArray
    ) -> None:
        self.sweeps, self.loop_free = sweeps, loop_free
        self.tolerance, self.value = tolerance, value
        self.chosen = np.zeros_like(loop_free.state_choices)
        #: By number, messages that nobody here has read yet.
        self.pending: dict[int, Pending] = {}

    def settle(self, group: Group) -> int:
        """Value iteration until the group has settled; the rounds it took."""
        if group.on_one_rank:
            return self._settle_here(group)
        begin, convergence = group.start, Convergence()
        while True:
            change, moved = self._choose(self.sweeps.pieces(group, begin))
            if not group.is_component:
                return 0
            settled, everywhere = moved == NOWHERE, begin == group.start
            action, *after = after_round(change, settled, everywhere, MAX_ROUNDS, convergence)
            convergence = Convergence(*after)
            if action == DONE:
                return int(convergence.rounds)
            begin = group.start if action == CHECK else moved
            if action == CHECK:
                continue
            pieces = self.sweeps.pieces(group, begin)
            for _ in range(EVALUATIONS if convergence.rounds < PLAIN_ROUNDS else SLOW_EVALUATIONS):
                self._evaluate(pieces)
            if convergence.rounds >= PLAIN_ROUNDS and self._extrapolate(group):
                begin, convergence = group.start, convergence._replace(previous=np.inf)

    def _settle_here(self, group: Group) -> int:
        """The same where all states of the group are on one rank: others hear of them in the end.
        Without rounds of its own a group is a row of components.
        """
        pieces = self.sweeps.pieces(group, group.start)
        first, last = (int(self.sweeps.starts[each]) for each in (group.begin, group.end))
        rounds = 0
        if first < last:
            for piece in pieces:
                self.receive(piece.reads)
            ends = np.array([first, last]) if group.is_component else np.arange(first, last + 1)
            columns = self.value, self.chosen, np.empty((2, len(self.value)))
            rounds = settle(*frozen(ends), self.loop_free, self.tolerance, MAX_ROUNDS, *columns)
        for piece in pieces:
            self._pass_on(piece.messages)
        return int(rounds)

    def _each(self, pieces: Iterable[Piece]) -> Iterator[tuple[int, int]]:
        """One piece after the other, once what it reads has come; then what others need is passed
        on."""
        for piece in pieces:
            if piece.first < piece.last:
                self.receive(piece.reads)
                yield piece.first, piece.last
            self._pass_on(piece.messages)

    def receive(self, messages: Iterable[int]) -> None:
        """Wait for those of some messages that are under way."""
        for message in messages:
            pending = self.pending.pop(message, None)
            if pending is not None:
                self.sweeps.messages[message].finish(pending, self.value)

    def _pass_on(self, messages: Iterable[int]) -> None:
        self.receive(messages)  # those of the last sweep, if nobody has read them
        for message in messages:
            self.pending[message] = self.sweeps.messages[message].begin(self.value)

    def _choose(self, pieces: list[Piece]) -> tuple[float, Key]:
        """The largest change of a round on all ranks, and the first state that made one."""
        most, moved = 0.0, NOWHERE
        for first, last in self._each(pieces):
            rows = self.loop_free, first, last, self.tolerance
            change, at = choose_rows(*rows, self.value, self.chosen)
            most = max(most, change)
            if at < last:
                moved = min(moved, self.sweeps.key(self.sweeps.swept[at]))
        every = self.sweeps.graph.comm.allgather((most, moved))
        return max(each[0] for each in every), min(each[1] for each in every)

    def _evaluate(self, pieces: list[Piece]) -> None:
        for first, last in self._each(pieces):
            evaluate_rows(self.loop_free, first, last, self.chosen, self.value)

    def _extrapolate(self, group: Group) -> bool:
        """Evaluate the choices twice, and go on as far as the second move leads if it has the
        direction of the first; whether it has.
        """
        sweeps, across = self.sweeps, self.sweeps.across
        pieces = sweeps.pieces(group, group.start)
        value = self.value[sweeps.starts[group.begin] : sweeps.starts[group.end]]
        before = value.copy()
        self._evaluate(pieces)
        old = value.copy()
        self._evaluate(pieces)
        nodes = 0, len(value)
        most = across.most(largest_move(*nodes, before, old, value))
        if not 0.0 < most < np.inf:
            return False
        sums = move_products(*nodes, before, old, value, most, FULL / group.size)
        length = extrapolation_length(*(across.total(int(each)) for each in sums))
        if length == 0.0:
            return False
        length = -across.most(-extrapolation_limit(*nodes, old, value, length))
        extrapolate(*nodes, old, length, value)
        self._pass_on(range(len(sweeps.messages)))
        return True


@dataclass(frozen=True, eq=False)
class PartExpected:
    """V* of the nodes of a part, ghosts included, with bounds, and the best row of each own node.

    `bounds` (n,) are in costs; `chosen` (own,) are choices of the part, `nearest` (n,) the least
    cost of arriving, in units; `rounds` counts rounds of value iteration.
    """

    graph: PartGraph
    sweeps: PartSweeps
    bounds: Bounds
    chosen: IntArray
    nearest: FloatArray
    rounds: int

    @property
    def start(self) -> tuple[float, float, float]:
        """V* of the start, and its lower and upper bound, on every rank."""
        here, bounds = self.graph.start, self.bounds
        mine = None
        if here >= 0:
            mine = tuple(float(side[here]) for side in (bounds.value, bounds.lower, bounds.upper))
        found = next((each for each in self.graph.comm.allgather(mine) if each is not None), None)
        return (0.0, 0.0, 0.0) if found is None else found

    @cached_property
    def sharpened(self) -> PartExpected:
        """The same with narrower bounds, where they are easily found."""
        sweeps: Any = self.sweeps
        found = sharper(_rows(self.graph), sweeps, self.own_bounds)
        return replace(self, bounds=_with_ghosts(sweeps, found))

    @property
    def own_bounds(self) -> Bounds:
        return self.bounds.each(lambda side: side[: self.graph.own])


def _rows(graph: PartGraph) -> Decisions:
    decisions = graph.decisions
    return decisions._replace(state_choices=decisions.state_choices[: graph.own + 1])


def _with_ghosts(sweeps: Any, found: Bounds) -> Bounds:
    """Bounds by own node, and those of ghosts."""
    return found.each(lambda side: sweeps.across.padded(side)[:-1])


def solve_part_expected(graph: PartGraph) -> PartExpected:
    """V* of a model in parts, which must have no dead ends and no cycles of zero-cost outcomes."""
    nearest = graph.nearest()
    require_arrival(graph, nearest)
    sweeps: Any = PartSweeps(graph)
    first = sweeps.least[: graph.own].copy()
    if not sweeps.across.every(not np.any(graph.level == 0)):
        graph.depth()
        first[_worth_nothing(graph)] = 0.0
    found = swept_optimum(_rows(graph), sweeps, first)
    if not is_proved(found, sweeps):
        raise ModelError(SLOW)
    lower = np.maximum(found.bounds.lower, 0.0)
    value = np.clip(found.bounds.value, lower, found.bounds.upper)
    bounds = replace(found.bounds, value=value, lower=lower)
    with_ghosts = _with_ghosts(sweeps, bounds)
    return PartExpected(graph, sweeps, with_ghosts, found.chosen, nearest, found.iterations)


def _worth_nothing(graph: PartGraph) -> NDArray[np.bool_]:
    """The own nodes from which some policy arrives almost surely at no cost."""
    decisions, own = graph.decisions, graph.own
    zero = np.append(np.ones(graph.n, dtype=np.bool_), True)
    costs = np.append(0, np.cumsum(graph.level > 0))[decisions.choice_outcomes]
    no_cost = np.diff(costs) == 0

    def narrow(zero: NDArray[np.bool_]) -> None:
        others = np.append(0, np.cumsum(~zero[decisions.target]))[decisions.choice_outcomes]
        rows = np.append(0, np.cumsum(no_cost & (np.diff(others) == 0)))
        zero[:own] = np.diff(rows[decisions.state_choices[: own + 1]]) > 0

    graph.halo.repeat(narrow, zero, graph.part.n_states + 1)
    return zero[:own]
