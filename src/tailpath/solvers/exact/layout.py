"""A model laid out for the sweep over budgets (`dp/budgets.py`).

What is laid out: almost sure states, safe choices, and of these what the start can reach; zero-cost
components are one node each, with the choices that leave it. A zero-cost outcome back to its own
node is divided out. What zero-cost outcomes remain between nodes decides the order of the blocks.
Choices of a node stand with the risk-neutral one first, then in the model's order, so that ties go
to the policy that is also good on average.

*Budgets that every run exceeds* may be left to their closed form, U(s, w) = V*(s) - w for w <=
nearest(s), the least cost of arriving. Digits cancel in it, so for excesses only budgets up to a
share `LEFT_OUT` of V*(s) are left out. Lateness is 1 there, exactly, so that for deadlines all of
them are left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tailpath.analysis.core import Core, core_of
from tailpath.certify.budgets import Ends
from tailpath.dp.budget_model import Nodes
from tailpath.dp.layout import Layout
from tailpath.dp.layout_builders import (
    Choices,
    block_starts,
    first_levels,
    joint_of,
    zero_cost_blocks,
)
from tailpath.errors import ModelError
from tailpath.graph import FloatArray, IntArray, Transitions, members_of, offsets_of, owners
from tailpath.model.records import found_once
from tailpath.model.ssp import SSP
from tailpath.solvers.expectation import ExpectedSolution, solve_expected

#: Closed forms take at most this share of V* off it: four bits of it cancel.
LEFT_OUT = 15 / 16
#: Layouts of up to so many outcomes are stored with their model; larger ones are laid out anew.
LARGEST_STORED = 2**17


@dataclass(frozen=True, eq=False)
class ModelLayout(Layout):
    """A model laid out. Node `node_of[s]` is that of state s, -1 where the start cannot or must not
    go; `choice[k]` is the model's choice behind choice k.
    """

    choice: IntArray
    node_of: NDArray[np.int32]
    unit: Fraction
    expected: ExpectedSolution

    @cached_property
    def members(self) -> tuple[IntArray, IntArray]:
        """The states of every node, one node after the other, and where each begins."""
        states = np.flatnonzero(self.node_of >= 0)
        states = states[np.argsort(self.node_of[states], kind="stable")]
        return states, offsets_of(self.node_of[states], self.n)

    def ends(self) -> Ends:
        """V* of nodes from below and from above."""
        (states, first), expected = self.members, self.expected
        low, high = (
            side[states[first[:-1]]] / float(self.unit) for side in (expected.lower, expected.upper)
        )
        start = float(low[self.start]), float(high[self.start])
        return Ends(low, high, start, self.expected.ssp.probability_error)


def require_unit(ssp: SSP) -> None:
    if ssp.cost_unit is None:
        raise ModelError(
            "the costs have no common unit that is coarse enough to count in; give the width of a"
            f" grid with --delta D (delta=), such as {_proposed_delta(ssp):g}"
        )


def _proposed_delta(ssp: SSP) -> float:
    """About a thousandth of the largest cost, as a power of ten."""
    return float(10.0 ** (np.floor(np.log10(ssp.outcome_cost.max())) - 3))


def layout_of(ssp: SSP, skip: str = "") -> ModelLayout:
    """Lay out a model that has a cost unit and whose start is no goal. `skip` leaves out budgets
    that are sure to be exceeded: "excess" as far as the error of V* allows, "late" all of them.
    """
    if ssp.n_outcomes > LARGEST_STORED:
        return _laid_out(ssp, skip)
    return _stored(ssp, skip)


@found_once
def _stored(ssp: SSP, skip: str) -> ModelLayout:
    return _laid_out(ssp, skip)


def _laid_out(ssp: SSP, skip: str) -> ModelLayout:
    assert ssp.cost_unit is not None
    core, expected = core_of(ssp), solve_expected(ssp)
    unit = ssp.cost_unit
    rows = core.by_node.replaced(level=core.level)
    value = core.to_nodes(expected.value) / float(unit)
    certain_cost = np.zeros(core.n, dtype=np.int64)
    if skip:
        nearest = rows.distances().least[: core.n]
        if skip == "excess":
            nearest = np.minimum(nearest, LEFT_OUT * value)
        certain_cost = np.floor(nearest).astype(np.int64)
    cost_from_start = rows.costs_from(int(core.node_of[ssp.start_index]))[:-1]
    order, nodes = _ordered(rows, cost_from_start, certain_cost, value)
    position = np.full(core.n + 2, -1, dtype=np.int32)
    position[order] = np.arange(len(order))
    node_of = position[core.node_of]
    del rows  # as long as all that follows
    choices, node_choices = _choices(core, expected, order, position)
    count = len(choices.choice)
    joint, outer = joint_of(choices, nodes)
    return ModelLayout(
        nodes=nodes,
        node_choices=node_choices,
        choice=choices.choice,
        choice_cost=np.bincount(
            choices.owner, weights=choices.probability * choices.level, minlength=count
        ).astype(np.float64),
        outcome_start=offsets_of(choices.owner[outer], count),
        target=choices.target[outer],
        level=choices.level[outer],
        probability=choices.probability[outer],
        joint=joint,
        node_of=node_of,
        start=int(node_of[ssp.start_index]),
        row_size=np.diff(ssp.choice_outcomes)[choices.choice],
        unit=unit,
        expected=expected,
    )


def _ordered(
    rows: Transitions, cost_from_start: FloatArray, certain_cost: IntArray, value: FloatArray
) -> tuple[IntArray, Nodes]:
    """The nodes in the order of the sweep, and as the sweep reads them.

    Zero-cost outcomes only lead to earlier blocks, or within a joint one; plain blocks are sorted
    by the first level that is read, and by the cost from the start.
    """
    reached = np.isfinite(cost_from_start)
    depth, group = np.zeros(rows.n, dtype=np.int64), np.full(rows.n, -1)
    zero_cost = np.asarray(rows.level == 0)
    if zero_cost.any():
        zero_cost &= (rows.target < rows.n) & (rows.target != rows.source) & reached[rows.source]
        depth, group = zero_cost_blocks(rows.only(zero_cost))
    joint = group >= 0
    certain_cost = np.where(joint, 0, certain_cost)
    first_level = first_levels(rows, cost_from_start, certain_cost)
    selected = np.flatnonzero(reached)
    keys = cost_from_start, np.where(joint, 1, first_level), group, depth
    node = selected[np.lexsort(tuple(key[selected] for key in keys))]
    first = block_starts(depth[node], group[node])
    by_node = cost_from_start[node].astype(np.int64), certain_cost[node], first_level[node]
    # A start that is a goal reaches no node.
    together = np.append(joint[node], False)[first[:-1]]
    return node, Nodes(first, together, *by_node, value[node])


def _choices(
    core: Core,
    expected: ExpectedSolution,
    order: IntArray,
    position: NDArray[np.int32],
) -> tuple[Choices, IntArray]:
    """The choices of nodes in their order, of each the risk-neutral one first; and where they
    begin.
    """
    risk_neutral = np.zeros(core.ssp.n_choices, dtype=np.bool_)
    risk_neutral[expected.choices[expected.choices >= 0]] = True
    selected, node_choices = members_of(core.state_choices, order)
    node = owners(node_choices, np.int32)
    first = risk_neutral[core.choice[selected]]
    selected = selected[np.argsort(2 * node.astype(np.int64) - first, kind="stable")]
    outcome, outcome_start = members_of(core.choice_outcomes, selected)
    owner = owners(outcome_start, np.int32)
    target, probability = position[core.target[outcome]], core.probability[outcome]
    level = core.level[outcome]
    loop = level == 0
    if loop.any():
        loop &= target == node[owner]
    if loop.any():
        leave = np.bincount(owner, weights=np.where(loop, 0.0, probability))
        leave[np.bincount(owner, weights=loop) == 0] = 1.0
        probability = (probability / leave[owner])[~loop]
        owner, target, level = (column[~loop] for column in (owner, target, level))
    return Choices(core.choice[selected], node, owner, level, target, probability), node_choices
