"""A rank's part of the nodes of a sweep over budgets, laid out as `solvers.exact.layout` does with
whole models. A model in parts has no dead ends, so that every choice is safe, and no cycles of
zero-cost outcomes, so that no state is joined with others.

Own nodes come first, in the order of the sweep. Ghosts are a last block whose nodes never begin:
the sweep reads them, and never looks at them. Blocks stand in *stages*, behind each of which ranks
pass on what others need: a new one begins where a zero-cost outcome leads to a ghost, whose value
at the same level must have come. As a rule there is one.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple

import numpy as np

from tailpath.certify.budgets import Ends
from tailpath.distributed.expected import PartExpected
from tailpath.distributed.ranks import Halo, anywhere, joined, largest
from tailpath.distributed.search import PartGraph
from tailpath.dp.budget_model import NEVER, BudgetModel, Nodes, Work
from tailpath.dp.joint import NO_JOINT
from tailpath.dp.layout import Layout
from tailpath.dp.layout_builders import first_levels
from tailpath.errors import ModelError
from tailpath.graph import Array, FloatArray, IntArray, members_of, offsets_of, owners


class Overall(NamedTuple):
    """What all ranks must agree on: costs of outcomes, in units, that do not arrive; the rank of
    the start; the largest least cost of a node."""

    costs: IntArray
    home: int
    farthest: float


@dataclass(frozen=True, eq=False)
class PartLayout(Layout):
    """The nodes of a rank, and ghosts of those of others.

    `own` counts the first; `number` (n,) is the number of each node in the model. `stages` are
    blocks `first : end`; `unit` is that of costs; `around` are the bounds on V*.
    """

    halo: Halo
    own: int
    number: IntArray
    stages: tuple[slice, ...]
    overall: Overall
    unit: Fraction
    around: Ends

    def ends(self) -> Ends:
        return self.around

    @cached_property
    def start_value(self) -> float:
        every = self.halo.comm.allgather(float(self.nodes.value[self.start]))
        return float(every[self.overall.home])

    @cached_property
    def costs(self) -> IntArray:
        return self.overall.costs

    @cached_property
    def farthest(self) -> float:
        return self.overall.farthest

    def staged(self, model: BudgetModel, work: Work) -> Iterator[tuple[BudgetModel, Work]]:
        """What the sweep reads and works on, one stage after the other."""
        nodes = model.nodes
        for some in self.stages:
            view = nodes._replace(
                block_start=nodes.block_start[some.start : some.stop + 1],
                block_joint=nodes.block_joint[some],
            )
            its = work._replace(next_node=work.next_node[some], n_active=work.n_active[some])
            yield model._replace(nodes=view), its


def _stages(reads: Array) -> tuple[slice, ...]:
    """The stages of blocks, of which some read ghosts at their own level."""
    bounds = [0, *(block for block in np.flatnonzero(reads).tolist() if block > 0), len(reads)]
    return tuple(itertools.starmap(slice, itertools.pairwise(bounds)))


def lay_out_part(expected: PartExpected, unavoidable_cost: IntArray) -> PartLayout:
    """The part laid out, given by node the budgets, in units, that are left to their
    closed form.
    """
    graph, own, rows = expected.graph, expected.graph.own, expected.graph.rows
    least, unit = graph.least(), graph.part.unit
    vars(graph).pop("links", None)  # large, and no longer needed
    first_level = _first_levels(graph, unavoidable_cost, least)
    depth, reads = _blocks(graph)
    node = np.lexsort((least[:own], first_level[:own], depth[:own]))
    number = np.append(node, np.arange(own, graph.n))
    position = np.full(graph.n + 1, -1, dtype=np.int32)
    position[number] = np.arange(graph.n)
    choice, node_choices = _choices(expected, node)
    laid = rows.replaced(cost=graph.level).restrict(choice)
    reached = np.where(np.isfinite(least), least, NEVER).astype(np.int64)
    ghosts = graph.n - own
    return PartLayout(
        nodes=Nodes(
            np.append(offsets_of(depth[node], len(reads)), graph.n),
            np.zeros(len(reads) + 1, dtype=np.bool_),
            cost_from_start=reached[number],
            unavoidable_cost=unavoidable_cost[number],
            first_level=np.append(first_level[node], np.full(ghosts, NEVER)),
            value=expected.bounds.value[number] / float(unit),
        ),
        node_choices=np.append(node_choices, np.full(ghosts, node_choices[-1])),
        choice_cost=laid.rate,
        outcome_start=laid.row_start,
        target=position[laid.target],
        level=laid.cost.astype(np.int64),
        probability=laid.probability,
        joint=NO_JOINT,
        start=max(int(position[graph.start]), 0) if graph.start >= 0 else 0,
        row_size=np.diff(laid.row_start),
        halo=replace(graph.halo, send=tuple(position[some] for some in graph.halo.send)),
        own=own,
        number=graph.state[number],
        choice=choice,
        stages=_stages(reads),
        overall=_overall(graph, least),
        unit=unit,
        around=_ends(expected, number),
    )


def _ends(expected: PartExpected, number: IntArray) -> Ends:
    part = expected.graph.part
    _, *start = (end / float(part.unit) for end in expected.start)
    bounds = expected.bounds.map(lambda side: side[number] / float(part.unit))
    return Ends(bounds.lower, bounds.upper, (start[0], start[1]), part.probability_error)


def _first_levels(graph: PartGraph, unavoidable_cost: IntArray, least: FloatArray) -> IntArray:
    """The first level of each node that is read, by itself or by one that leads to it."""
    by_node = graph.rows.joined().replaced(level=graph.level)
    first = first_levels(by_node, least, unavoidable_cost)
    graph.halo.gather_least(first)
    return first


def _blocks(graph: PartGraph) -> tuple[IntArray, Array]:
    """How many zero-cost outcomes follow in a row from each node, which is its block; and whether
    some of a block, on any rank, lead to ghosts.
    """
    comm, target = graph.comm, graph.rows.target
    free = (graph.level == 0) & (target < graph.n)
    depth = np.zeros(graph.n, dtype=np.int64)
    if anywhere(comm, free):
        depth = graph.depth()
    reads = np.zeros(int(largest(comm, depth.max(initial=0))) + 1, dtype=np.bool_)
    reads[depth[graph.source(np.flatnonzero(free & (target >= graph.own)))]] = True
    return depth, np.logical_or.reduce(comm.allgather(reads))


def _overall(graph: PartGraph, least: FloatArray) -> Overall:
    comm = graph.comm
    home = [rank for rank, here in enumerate(comm.allgather(graph.start)) if here >= 0]
    if not home:
        raise ModelError("the start is a goal: there is nothing to solve")
    costs = np.unique(graph.level[graph.rows.target < graph.n]).astype(np.int64)
    return Overall(
        costs=np.unique(joined(comm, costs)),
        home=home[0],
        farthest=largest(comm, np.max(least, where=np.isfinite(least), initial=0.0)),
    )


def _choices(expected: PartExpected, node: IntArray) -> tuple[IntArray, IntArray]:
    """The choices of own nodes in their order, the risk-neutral one first; and where they begin."""
    rows = expected.graph.rows
    risk_neutral = np.zeros(rows.n, dtype=np.bool_)
    risk_neutral[expected.chosen] = True
    choice, node_choices = members_of(rows.state_rows, node)
    order = np.argsort(2 * owners(node_choices) - risk_neutral[choice], kind="stable")
    return choice[order], node_choices
