"""A model in parts, laid out for the sweep over budgets: what `solvers.exact.layout` does, by rank.

Every state arrives almost surely and every choice is safe, since a model in parts has no dead ends,
and no state is joined with others, since it has no cycles of zero-cost outcomes.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tailpath.distributed.expected import PartExpected
from tailpath.distributed.layout import (
    Blocks,
    Overall,
    PartLayout,
    arranged,
    nodes_with_ghosts,
    stages_of,
)
from tailpath.distributed.ranks import anywhere, joined, largest
from tailpath.distributed.search import PartGraph
from tailpath.dp.backup import row_means
from tailpath.dp.budget_model import NEVER, Nodes
from tailpath.dp.joint import NO_JOINT
from tailpath.dp.layout_builders import Choices
from tailpath.errors import ModelError
from tailpath.graph import members_of, offsets_of, owners
from tailpath.kernels.jit import frozen

Array = NDArray[Any]
IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]
#: Nodes whose outcomes are looked at together.
SOME = 2**16


def _first_levels(graph: PartGraph, certain_cost: IntArray, least: FloatArray) -> IntArray:
    """The first level of each node that is read, by itself or by one that leads to it."""
    first_level = (certain_cost + 1).astype(np.float64)
    if anywhere(graph.comm, certain_cost):
        decisions, own_level = graph.decisions, first_level.copy()
        rows = decisions.choice_outcomes[decisions.state_choices]
        for first in range(0, graph.own, SOME):  # as arrays by outcome are long
            nodes = slice(first, min(first + SOME, graph.own))
            edges = slice(rows[nodes.start], rows[nodes.stop])
            source = np.repeat(np.arange(nodes.start, nodes.stop), np.diff(rows)[nodes])
            inside = (decisions.target[edges] < graph.n) & np.isfinite(least[source])
            read = own_level[source[inside]] - graph.level[edges][inside]
            np.minimum.at(first_level, decisions.target[edges][inside], read)
        graph.halo.gather_least(first_level)
        first_level[least == 0] = 1
    return np.maximum(first_level, 1).astype(np.int64)


def lay_out_part(expected: PartExpected, certain_cost: IntArray) -> PartLayout:
    """The part laid out, given by node the budgets, in units, that are left to their
    closed form.
    """
    graph, own = expected.graph, expected.graph.own
    comm, unit = graph.comm, graph.part.unit
    ghosts = graph.n - graph.own
    least = graph.least()
    vars(graph).pop("links", None)  # large, and no longer needed
    first_level = _first_levels(graph, certain_cost, least)
    blocks, node, start, is_joint = _arranged(graph, first_level, least)
    position = np.full(graph.n + 1, -1, dtype=np.int32)
    position[node] = np.arange(own)
    position[own : graph.n] = np.arange(own, graph.n)
    number = np.append(node, np.arange(own, graph.n))
    choices, outcome_start = _choices(expected, node, position)
    reached = np.where(np.isfinite(least), least, NEVER).astype(np.int64)
    columns = reached[number], certain_cost[number], first_level[node]
    value = expected.bounds.value[number] / float(unit)
    return PartLayout(
        nodes=nodes_with_ghosts(Nodes(start, is_joint, *columns, value), ghosts),
        node_choices=np.append(offsets_of(choices.node, own), np.full(ghosts, len(choices.choice))),
        choice_cost=row_means(*frozen(outcome_start, choices.probability, choices.level)),
        outcome_start=outcome_start,
        target=choices.target,
        level=choices.level,
        probability=choices.probability,
        joint=NO_JOINT,
        start=max(int(position[graph.start]), 0) if graph.start >= 0 else 0,
        rounding=largest(comm, choices.rounding()) + graph.decisions.error,
        depth=len(blocks.joint),
        visits=0.0,
        halo=replace(graph.halo, send=tuple(position[some] for some in graph.halo.send)),
        own=own,
        number=graph.state[number],
        choice=choices.choice,
        stages=stages_of(blocks),
        overall=_overall(expected, certain_cost, least),
        unit=unit,
    )


def _arranged(
    graph: PartGraph, first_level: IntArray, least: FloatArray
) -> tuple[Blocks, IntArray, IntArray, Array]:
    """Blocks by how many zero-cost outcomes follow in a row, and where they read ghosts; own nodes
    in the order of the sweep; where each block begins there, and whether it is joint: none is.
    """
    comm, own = graph.comm, graph.own
    decisions, level = graph.decisions, graph.level
    depth = np.zeros(graph.n, dtype=np.int64)
    if anywhere(comm, (level == 0) & (decisions.target < graph.n)):
        depth = graph.depth()
    deepest = int(largest(comm, depth.max(initial=0)))
    zero_cost = np.flatnonzero(
        (level == 0) & (decisions.target >= own) & (decisions.target < graph.n)
    )
    reads = np.zeros(deepest + 1, dtype=np.bool_)
    reads[depth[graph.source(zero_cost)]] = True
    reads = np.logical_or.reduce(comm.allgather(reads))
    blocks = Blocks(np.zeros(deepest + 1, dtype=np.bool_), reads)
    order = np.lexsort((least[:own], first_level[:own], depth[:own]))
    needed = np.zeros(graph.n, dtype=np.bool_)
    needed[graph.halo.boundary] = True
    again, start, is_joint = arranged(depth[order], needed[order], blocks)
    return blocks, order[again], start, is_joint


def _overall(expected: PartExpected, certain_cost: IntArray, least: FloatArray) -> Overall:
    graph = expected.graph
    comm = graph.comm
    home = [rank for rank, here in enumerate(comm.allgather(graph.start)) if here >= 0]
    if not home:
        raise ModelError("the start is a goal: there is nothing to solve")
    return Overall(
        costs=np.unique(joined(comm, _costs(graph))),
        home=home[0],
        start_value=expected.start[0] / float(graph.part.unit),
        farthest=largest(comm, np.max(least, where=np.isfinite(least), initial=0.0)),
        skips=anywhere(comm, certain_cost),
    )


def _costs(graph: PartGraph) -> IntArray:
    """The costs of outcomes, in units, that do not arrive, rising."""
    target, level = graph.decisions.target, graph.level
    some = [slice(first, first + SOME) for first in range(0, len(level), SOME)]
    found = [np.unique(level[edges][target[edges] < graph.n]) for edges in some]
    return np.unique(np.concatenate([np.zeros(0, dtype=np.int64), *found]))


def _choices(
    expected: PartExpected, node: IntArray, position: NDArray[np.int32]
) -> tuple[Choices, IntArray]:
    """The choices of own nodes in their order, the risk-neutral one first."""
    graph, decisions = expected.graph, expected.graph.decisions
    risk_neutral = np.zeros(len(decisions.rate), dtype=np.bool_)
    risk_neutral[expected.chosen] = True
    choice, first = members_of(decisions.state_choices, node)
    of_node, is_first = owners(first), risk_neutral[choice]
    # Those before the risk-neutral one of their node make room for it.
    index, seen = np.arange(len(choice)), np.cumsum(is_first)
    index += seen[first[1:] - 1][of_node] > seen
    index[is_first] = first[of_node[is_first]]
    choice[index] = choice.copy()
    outcome, rows = members_of(decisions.choice_outcomes, choice)
    target = position[decisions.target[outcome]]
    columns = owners(rows, np.int32), graph.level[outcome].astype(np.int64), target
    return Choices(choice, of_node, *columns, decisions.probability[outcome], False), rows
