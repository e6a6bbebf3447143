"""A rank's part of the nodes of a sweep over budgets, laid out as `solvers.exact.layout` does with
whole models. A model in parts has no dead ends, so every choice is safe, and outcomes at no cost
lead to goals only, so no node needs another one at the same level.

Own nodes are one block, in the order of the sweep. Ghosts are a second one whose nodes never begin:
the sweep reads their values, which ranks exchange after every level.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple

import numpy as np

from tailpath.certify.budgets import Ends
from tailpath.distributed.expected import PartExpected
from tailpath.distributed.ranks import Halo, joined, largest
from tailpath.distributed.search import PartGraph
from tailpath.dp.budget_model import NEVER, Nodes
from tailpath.dp.joint import NO_JOINT
from tailpath.dp.layout import Layout
from tailpath.dp.layout_builders import first_levels
from tailpath.errors import ModelError
from tailpath.graph import FloatArray, IntArray, members_of, owners


class Overall(NamedTuple):
    """What all ranks must agree on: costs of outcomes, in units, that do not arrive; the rank of
    the start; the largest least cost of a node."""

    costs: IntArray
    home: int
    farthest: float


@dataclass(frozen=True, eq=False)
class PartLayout(Layout):
    """The nodes of a rank, and ghosts of those of others.

    `own` counts the first; `number` (n,) is the number of each node in the model, `unit` that of
    costs; `around` are the bounds on V*.
    """

    halo: Halo
    own: int
    number: IntArray
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


def lay_out_part(expected: PartExpected, unavoidable_cost: IntArray) -> PartLayout:
    """The part laid out, given by node the budgets, in units, that are left to their
    closed form.
    """
    graph, own, rows = expected.graph, expected.graph.own, expected.graph.rows
    least, unit = graph.least(), graph.part.unit
    vars(graph).pop("links", None)  # large, and no longer needed
    # The first level of each node that is read, by itself or by one that leads to it.
    first_level = first_levels(rows.joined().replaced(level=graph.level), least, unavoidable_cost)
    graph.halo.gather_least(first_level)
    node = np.lexsort((least[:own], first_level[:own]))
    number = np.append(node, np.arange(own, graph.n))
    position = np.full(graph.n + 1, -1, dtype=np.int32)
    position[number] = np.arange(graph.n)
    choice, node_choices = _choices(expected, node)
    laid = rows.replaced(cost=graph.level).restrict(choice)
    reached = np.where(np.isfinite(least), least, NEVER).astype(np.int64)
    ghosts = graph.n - own
    return PartLayout(
        nodes=Nodes(
            np.array([0, own, graph.n]),
            np.zeros(2, dtype=np.bool_),
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
        overall=_overall(graph, least),
        unit=unit,
        around=_ends(expected, number),
    )


def _ends(expected: PartExpected, number: IntArray) -> Ends:
    part = expected.graph.part
    low, high = (end / float(part.unit) for end in expected.start)
    bounds = expected.bounds.map(lambda side: side[number] / float(part.unit))
    return Ends(bounds.lower, bounds.upper, (low, high), part.probability_error)


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
