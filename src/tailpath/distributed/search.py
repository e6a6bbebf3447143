"""The graph of a part with ghost rows, and searches that cross from rank to rank.

A search settles its own nodes, sends what others need, and continues until nothing changes on any
rank. Costs are integers, so that the result does not depend on the order of messages.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tailpath.distributed.part import Part
from tailpath.distributed.ranks import Halo, anywhere
from tailpath.errors import GoalUnreachableError, ModelError
from tailpath.graph import (
    Array,
    FloatArray,
    IntArray,
    Transitions,
    grouped,
    offsets_from_lengths,
    owners,
)
from tailpath.kernels.graph import shortest_edges
from tailpath.kernels.jit import frozen
from tailpath.kernels.shortest_paths import update_distances

#: Why zero-cost outcomes are refused: their order would cross ranks.
FREE = (
    "zero-cost outcomes that do not arrive are not supported in a model in parts; solve the whole"
    " model instead"
)
#: Why states from which nothing leads to a goal are refused.
DEAD_END = (
    "no policy reaches a goal, and a model in parts must have no dead ends; solve the whole model"
    " instead, or allow giving up at a cost (give_up)"
)


class Links(NamedTuple):
    """Edges of nodes: those of a row begin at `row_start`, lead to `target` and cost `level`."""

    row_start: IntArray
    target: NDArray[np.int32]
    level: NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class PartGraph:
    """The nodes of a part, its states but for goals, and after them ghosts: n in all.

    `state` (n,) is the number of each; `own` counts those of the part. `rows`, by node, are
    those of own nodes, none of ghosts; their targets are nodes, or n for goals; `level` (outcomes,)
    are costs in units. `start` is the node of the start, or -1 where another rank has it.
    """

    part: Part
    halo: Halo
    own: int
    state: IntArray
    rows: Transitions
    level: NDArray[np.int32]
    start: int

    @property
    def n(self) -> int:
        return len(self.state)

    @property
    def comm(self) -> Any:
        return self.halo.comm

    @cached_property
    def links(self) -> Links:
        """The cheapest outcome from each node to each other; ghosts have none. Freed after use."""
        by_node, n = self.rows.joined(), self.n
        start, scratch = np.empty(n + 1, dtype=np.int64), np.zeros(n + 1, dtype=np.int64)
        target, level = (np.empty(len(by_node.target), dtype=np.int32) for _ in range(2))
        columns = frozen(by_node.row_start, by_node.target, self.level)
        shortest_edges(*columns, scratch, start, target, level)
        return Links(start, *(column[: start[-1]].copy() for column in (target, level)))

    def nearest(self) -> FloatArray:
        """The least cost, in units, from every node to a goal: (n,), infinite where none is."""
        links = self.links
        into, start = grouped(links.target, self.n + 1)
        source = owners(links.row_start, np.int32)[into]
        return self.distances(start, source, links.level[into].astype(np.float64))[0]

    def distances(
        self, into_start: IntArray, into_source: Array, length: FloatArray
    ) -> tuple[FloatArray, int]:
        """How long the shortest way to the end is from every node, (n,), and how often such ways
        lead from rank to rank. The edges into a node come from `into_source`, those into the end,
        node n, last.
        """
        ghosts, found = np.arange(self.own, self.n), np.full(self.n + 1, np.inf)
        found[self.n] = 0.0
        edges, end = (into_start, into_source, length), np.array([self.n])
        crossings = self._cheapest(edges, end, self.halo.exchange, ghosts, found)
        return found[:-1], crossings

    def least(self) -> FloatArray:
        """The least cost, in units, at which the start gets to every node; infinite if
        it cannot.
        """
        links, found = self.links, np.full(self.n + 1, np.inf)
        start = np.array([self.start][: self.start + 1], dtype=np.int64)
        found[start] = 0.0
        rows = np.append(links.row_start, links.row_start[-1])
        edges, halo = (rows, links.target, links.level.astype(np.float64)), self.halo
        self._cheapest(edges, start, halo.gather_least, halo.boundary, found)
        halo.exchange(found)
        return found[:-1]

    def _cheapest(
        self,
        edges: tuple[Array, Array, Array],
        begin: IntArray,
        pass_on: Callable[[Array], None],
        passed: IntArray,
        out_found: FloatArray,
    ) -> int:
        """The cheapest ways along edges on all ranks, from nodes whose costs are known. What ranks
        pass on lowers the costs of the nodes `passed`, and the search goes on from those that fell;
        returns how often.
        """
        start, node, length = edges
        for crossings in itertools.count():
            update_distances(start, node, length, begin, out_found)
            before = out_found[passed]
            pass_on(out_found)
            begin = passed[out_found[passed] < before]
            if not anywhere(self.comm, len(begin) > 0):
                return crossings
        raise AssertionError


def graph_of(comm: Any, part: Part) -> PartGraph:
    """The graph of a part. All ranks call it; goals of others are found out on the way."""
    _check_fits(comm, part)
    n, first = len(part.is_goal), part.first
    outside = (part.outcome_target < first) | (part.outcome_target >= first + n)
    there, owner, is_goal = _neighbours(comm, part, outside)
    own, ghost = np.flatnonzero(~part.is_goal), there[~is_goal[n:]]
    node = np.full(n + len(there), -1, dtype=np.int64)
    node[np.flatnonzero(~is_goal)] = np.arange(len(own) + len(ghost))
    local = np.where(outside, n + np.searchsorted(there, part.outcome_target), 0)
    local[~outside] = part.outcome_target[~outside] - first
    target = np.where(is_goal[local], len(own) + len(ghost), node[local]).astype(np.int32)
    if anywhere(comm, (part.outcome_level == 0) & (target < len(own) + len(ghost))):
        raise ModelError(FREE)
    # Goals have no choices, so that those of own nodes are all there are.
    choices = offsets_from_lengths(
        np.append(np.diff(part.state_choices)[own], np.zeros(len(ghost), dtype=np.int64))
    )
    columns = part.choice_outcomes, target, part.outcome_probability, part.outcome_cost
    return PartGraph(
        part=part,
        halo=Halo.of(comm, owner[~is_goal[n:]], ghost, len(own), lambda asked: node[asked - first]),
        own=len(own),
        state=np.append(own + first, ghost),
        rows=Transitions(*columns, None).replaced(first_row=choices),
        level=part.outcome_level,
        start=int(node[part.start - first]) if first <= part.start < first + n else -1,
    )


def _neighbours(comm: Any, part: Part, outside: Array) -> tuple[IntArray, IntArray, Array]:
    """The states of others that a part leads to, (k,), the rank of each, and whether it is a goal:
    (n + k,), those of the part before them.
    """
    n, first = len(part.is_goal), part.first
    there = np.unique(part.outcome_target[outside]).astype(np.int64)
    if not len(there) and part.is_goal.all() and not first <= part.start < first + n:
        there = np.array([part.start])  # kernels want a node to look at
    owner = np.searchsorted(part.bounds, there, side="right") - 1
    is_goal = np.append(part.is_goal, np.zeros(len(there), dtype=np.bool_))
    Halo.of(comm, owner, there, n, lambda asked: asked - first).exchange(is_goal)
    return there, owner, is_goal


def _check_fits(comm: Any, part: Part) -> None:
    """Refuse parts that are not those of one model, one for each rank. Rank 0 says so, and ends the
    others."""
    about = part.bounds.tolist(), part.start, part.actions, part.unit, part.probability_error
    every = comm.allgather((part.index, *about, part.model))
    indices, wrong = [each[0] for each in every], ""
    if indices != list(range(comm.size)) or len(part.bounds) != comm.size + 1:
        wrong = f"{comm.size} ranks need parts 0 to {comm.size - 1}, not {indices}"
    for each in every:
        if each[1:] != every[0][1:]:
            wrong = f"part {each[0]} is not of the same model as part {indices[0]}"
    if wrong and comm.rank == 0:
        raise ModelError(wrong)
    if wrong:
        comm.Barrier()


def require_arrival(graph: PartGraph, nearest: FloatArray) -> None:
    """Refuse a model in parts that has dead ends: without, all arrive almost surely."""
    dead = graph.state[: graph.own][np.isinf(nearest[: graph.own])]
    found = [int(state) for some in graph.comm.allgather(dead[:1].tolist()) for state in some]
    if found:
        raise GoalUnreachableError(f"from state {found[0]} {DEAD_END}")
