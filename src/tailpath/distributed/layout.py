"""A rank's part of the nodes of a sweep over budgets, laid out like any other model: cut out of a
layout that every rank has, or made of a model in parts, as `solvers.exact.layout` does. A model in
parts has no dead ends, so that every choice is safe, and no cycles of zero-cost outcomes, so that
no state is joined with others.

Own nodes come first, in the order that they have in the model: of a plain block those that others
need before all others, so that they are on their way while the rest is worked on. Ghosts are a last
block whose nodes never begin: the sweep reads them, and never looks at them.

Blocks stand in *stages*. Where a zero-cost outcome leads to a ghost, its value at the same level
must have come before its block is settled, so that a stage ends there. As a rule there is one.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tailpath.distributed.expected import PartExpected
from tailpath.distributed.ranks import Halo, anywhere, joined, largest
from tailpath.distributed.search import PartGraph
from tailpath.dp.backup import row_means
from tailpath.dp.budget_model import NEVER, BudgetModel, Nodes, Work
from tailpath.dp.joint import NO_JOINT, Joint
from tailpath.dp.layout import Layout
from tailpath.dp.layout_builders import Choices
from tailpath.errors import ModelError
from tailpath.graph import Array, FloatArray, IntArray, grouped, members_of, offsets_of, owners
from tailpath.kernels.jit import frozen

#: Where steps cost several units, so many levels go with one exchange, at most.
MAX_TOGETHER = 16
#: Nodes whose outcomes are looked at together.
SOME = 2**16


class Stage(NamedTuple):
    """Blocks `first : end`; what others need is sent once they are settled, or is waited for."""

    first: int
    end: int
    send: bool
    wait: bool


class Overall(NamedTuple):
    """What all ranks must agree on: costs of outcomes, in units, that do not arrive; the rank of
    the start; the largest least cost of a node; whether budgets are skipped."""

    costs: IntArray
    home: int
    farthest: float
    skips: bool


@dataclass(frozen=True, eq=False)
class PartLayout(Layout):
    """The nodes of a rank, and ghosts of those of others.

    `own` counts the first; `number` (n,) is the number of each node in the model, `place` (n,) in
    what was laid out, and `choice` (choices,) each choice. `unit` is that of costs.
    """

    halo: Halo
    own: int
    number: IntArray
    place: IntArray
    choice: IntArray
    stages: tuple[Stage, ...]
    overall: Overall
    unit: Fraction

    @cached_property
    def start_value(self) -> float:
        comm, home = self.halo.comm, self.overall.home
        return float(comm.allgather(float(self.nodes.value[self.start]))[home])

    @cached_property
    def costs(self) -> IntArray:
        return self.overall.costs

    @cached_property
    def farthest(self) -> float:
        return self.overall.farthest

    @cached_property
    def skips(self) -> bool:
        return self.overall.skips

    def levels_together(self, limit: float) -> int:
        """How many levels go with one exchange: no step that costs something costs less."""
        least = int(min(self.costs[self.costs > 0], default=1))
        some = 1 if len(self.stages) > 2 else min(least, MAX_TOGETHER)
        return max(min(some, self.reach(limit)), 1)

    def staged(self, model: BudgetModel, work: Work) -> Iterator[tuple[Stage, BudgetModel, Work]]:
        """What the sweep reads and works on, one stage after the other."""
        nodes = model.nodes
        for stage in self.stages:
            some = slice(stage.first, stage.end)
            blocks = nodes.block_start[stage.first : stage.end + 1], nodes.block_joint[some]
            view = nodes._replace(block_start=blocks[0], block_joint=blocks[1])
            its = work._replace(next_node=work.next_node[some], n_active=work.n_active[some])
            yield stage, model._replace(nodes=view), its


class Blocks(NamedTuple):
    """The blocks of all ranks: whether each is joint, and before which of them ghosts are read."""

    joint: Array
    reads: Array


def arranged(block: Array, boundary: Array, blocks: Blocks) -> tuple[IntArray, IntArray, Array]:
    """Own nodes by block, in a new order; where each block then begins; and whether it is joint.

    `block` (n,) is that of every own node, rising, and `boundary` whether others need it. A plain
    block on its own is two: what others need, and the rest.
    """
    count = len(blocks.joint)
    if count == 1 and not blocks.joint[0]:
        order, start = grouped(np.where(boundary, 0, 1), 2)
        return order.astype(np.int64), start, np.zeros(2, dtype=np.bool_)
    start = offsets_of(block, count)
    return np.arange(len(block)), start, blocks.joint & (np.diff(start) > 0)


def stages_of(blocks: Blocks) -> tuple[Stage, ...]:
    if len(blocks.joint) == 1 and not blocks.joint[0]:
        return Stage(0, 1, True, False), Stage(1, 2, False, True)
    bounds = [0, *(b for b in np.flatnonzero(blocks.reads).tolist() if b > 0), len(blocks.joint)]
    return tuple(Stage(first, end, True, True) for first, end in itertools.pairwise(bounds))


def nodes_with_ghosts(nodes: Nodes, ghosts: int) -> Nodes:
    """Nodes, of which the last so many are ghosts; blocks and first levels are those of the
    others.
    """
    return nodes._replace(
        block_start=np.append(nodes.block_start, len(nodes.cost_from_start)),
        block_joint=np.append(nodes.block_joint, False),
        first_level=np.append(nodes.first_level, np.full(ghosts, NEVER)),
    )


def cut(comm: Any, layout: Layout, owner: Array) -> PartLayout:
    """The part of this rank of a layout that every rank has.

    `owner` (n,) is the rank of every node; a joint block belongs to the rank of its first node.
    """
    nodes, joint = layout.nodes, layout.joint
    block = owners(nodes.block_start)
    first_owner = owner[np.minimum(nodes.block_start[:-1], layout.n - 1)]
    owner = np.where(nodes.block_joint[block], first_owner[block], owner)
    blocks, needed, ghost = _crossings(layout, owner, block, comm.rank)
    own = np.flatnonzero(owner == comm.rank)
    order, start, is_joint = arranged(block[own], needed[own], blocks)
    own = own[order]
    number = np.concatenate([own, ghost])
    position = np.full(layout.n + 1, -1, dtype=np.int64)
    position[number] = np.arange(len(number))
    chosen, node_choices = members_of(layout.node_choices, own)
    outcome, outcome_start = members_of(layout.outcome_start, chosen)
    by_node = nodes.cost_from_start[number], nodes.certain_cost[number], nodes.first_level[own]
    return PartLayout(
        nodes=nodes_with_ghosts(Nodes(start, is_joint, *by_node, nodes.value[number]), len(ghost)),
        node_choices=np.append(node_choices, np.full(len(ghost), len(chosen))),
        choice_cost=layout.choice_cost[chosen],
        outcome_start=outcome_start,
        target=position[layout.target[outcome]].astype(np.int32),
        level=layout.level[outcome],
        probability=layout.probability[outcome],
        joint=_joint_of(joint, chosen) if nodes.block_joint.any() else joint,
        start=max(int(position[layout.start]), 0),
        row_size=layout.row_size[chosen],
        halo=Halo.of(comm, owner[ghost], ghost, len(own), lambda asked: position[asked]),
        own=len(own),
        number=number,
        place=number,
        choice=chosen,
        stages=stages_of(blocks),
        overall=Overall(
            costs=layout.costs,
            home=int(owner[layout.start]),
            farthest=layout.farthest,
            skips=layout.skips,
        ),
        unit=getattr(layout, "unit", Fraction(1)),
    )


def _crossings(
    layout: Layout, owner: Array, block: Array, rank: int
) -> tuple[Blocks, Array, IntArray]:
    """Where outcomes lead from rank to rank: what that means for blocks, whether others need each
    node (n,), and the nodes that a rank has ghosts of.
    """
    source = owners(layout.node_choices)[owners(layout.outcome_start)]
    crosses = (layout.target >= 0) & (owner[source] != owner[layout.target])
    reads = np.zeros(len(layout.nodes.block_joint), dtype=np.bool_)
    reads[block[source[crosses & (layout.level == 0)]]] = True
    needed = np.zeros(layout.n, dtype=np.bool_)
    needed[layout.target[crosses]] = True
    ghost = np.unique(layout.target[crosses & (owner[source] == rank)]).astype(np.int64)
    if not len(ghost) and not (owner == rank).any():
        ghost = np.zeros(1, dtype=np.int64)  # kernels want a node to look at
    return Blocks(layout.nodes.block_joint, reads), needed, ghost


def _joint_of(joint: Joint, chosen: IntArray) -> Joint:
    """The zero-cost outcomes inside joint blocks, of some choices."""
    inner, inner_start = members_of(joint.inner_start, chosen)
    target, probability = joint.inner_target[inner], joint.inner_probability[inner]
    return Joint(inner_start, target, probability, joint.leave[chosen])


def shares(work: Array, ranks: int) -> IntArray:
    """Contiguous parts of about the same work each: the rank of every member, given its work."""
    done = np.cumsum(work, dtype=np.float64)
    total = float(done[-1]) if len(done) else 0.0
    middle = (done - np.asarray(work) / 2) * (ranks / total) if total else np.zeros(len(work))
    return np.clip(middle.astype(np.int64), 0, ranks - 1)


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
    unit = graph.part.unit
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
        row_size=np.diff(outcome_start),
        halo=replace(graph.halo, send=tuple(position[some] for some in graph.halo.send)),
        own=own,
        number=graph.state[number],
        place=number,
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
    return Choices(choice, of_node, *columns, decisions.probability[outcome]), rows
