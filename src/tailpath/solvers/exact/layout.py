"""A model laid out for the sweep over budgets (`dp/budgets.py`), and what rounding may do to its
values.

What is laid out: almost sure states, safe choices, and of these what the start can reach; zero-cost
components are one node each, with the choices that leave it. A zero-cost outcome back to its own
node is divided out. What zero-cost outcomes remain between nodes decides the order of the blocks.
Choices of a node stand with the risk-neutral one first, then in the model's order, so that ties go
to the policy that is also good on average.

All terms of the recursion are non-negative, so *rounding* is a relative error: at most 4 k + 17
units for a choice with k outcomes and cost groups, per step; a budget of w is spent within w steps
(times the longest run of zero-cost outcomes). To this comes the proved error of V*.

*Budgets that every run exceeds* may be left to their closed form, U(s, w) = V*(s) - w for w <=
nearest(s), the least cost of arriving. Digits cancel in it: the error e(s) of V* is e / (V* - w) of
the result. So for excesses only budgets up to `certain_cost(s)` are left out, the largest integer
<= nearest(s) with

    e(s) <= d (V*(s) - certain_cost(s)),

d the relative error that there was before V* was sharpened for this (`expectation.sharpened`): the
bounds do not get wider. Lateness is 1 there, exactly, so that for deadlines all of them are left
out.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tailpath.analysis.core import Core, core_of
from tailpath.dp.bounds import Bounds
from tailpath.dp.budget_model import Nodes
from tailpath.dp.joint import Joint, joint_optimum
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
from tailpath.kernels.jit import frozen
from tailpath.kernels.rounding import ROUNDOFF
from tailpath.model.records import found_once
from tailpath.model.ssp import SSP
from tailpath.solvers.expectation import (
    ExpectedSolution,
    bounds_by_state,
    sharpened,
    solve_expected,
)

#: What it takes, in roundings of V*, to write it in units and to take a budget off it.
TAKEN_OFF = 4 * ROUNDOFF
#: A relative error of closed forms that a step of the recursion exceeds, and one that is too much.
LITTLE, MUCH = 16 * ROUNDOFF, 1e-6
#: Layouts of up to so many outcomes are stored with their model; larger ones are laid out anew.
LARGEST_STORED = 2**17


class ErrorBound(NamedTuple):
    """How far V* may lie below and above its value, relatively, above where it is 0 and at all, in
    units; what each level adds, relatively; and what may have vanished, in units.
    """

    below: float
    above: float
    at_zero: float
    at_all: float
    per_level: float
    vanished: float = 1e-250


def error_bound_of(
    expected: ExpectedSolution, per_level: float, certain_cost: IntArray | int = 0
) -> ErrorBound:
    """The error bound of V*, where closed forms take budgets up to `certain_cost`, in units, off
    it.
    """
    ssp, zero = expected.ssp, expected.value == 0
    assert ssp.cost_unit is not None
    # A policy that keeps to zero-cost outcomes among states of value 0 proves the 0; otherwise
    # their upper bounds count.
    outcome = np.flatnonzero(
        np.isin(ssp.outcome_choice, expected.choices[zero & (expected.choices >= 0)])
    )
    zero_cost = (ssp.outcome_level[outcome] == 0) & zero[ssp.outcome_target[outcome]]
    return error_bound_by(
        bounds_by_state(expected), ssp.cost_unit, certain_cost, bool(zero_cost.all()), per_level
    )


def error_bound_by(
    bounds: Bounds,
    cost_unit: Fraction,
    certain_cost: IntArray | int,
    zero_is_proved: bool,
    per_level: float,
    most: Callable[[float], float] = float,
) -> ErrorBound:
    """The same from bounds by state or node; `most` has the largest number of all ranks."""
    value, unit = bounds.value, float(cost_unit)
    positive = (value > 0) & np.isfinite(value)
    rounded = np.where(np.asarray(certain_cost) > 0, TAKEN_OFF * value, 0.0)
    beyond = value - np.asarray(certain_cost) * unit
    with np.errstate(invalid="ignore", divide="ignore"):
        low, high = value - bounds.lower + rounded, bounds.upper - value + rounded
        below, above = (
            most(float(np.max(side / beyond, where=positive, initial=0.0))) for side in (low, high)
        )
    at_zero = most(float(np.max(bounds.upper, where=value == 0, initial=0.0)) / unit)
    at_all = most(
        float(np.max(np.maximum(low, high), where=np.isfinite(value), initial=0.0)) / unit
    )
    return ErrorBound(
        min(below * (1 + 1e-15), 1.0),
        above * (1 + 1e-15),
        0.0 if zero_is_proved else at_zero,
        at_all * (1 + 1e-15),
        per_level,
    )


def enclosed(
    priced: FloatArray,
    weight: float,
    error_bound: ErrorBound,
    scale: float,
    budgets: IntArray | None = None,
    steps: IntArray | None = None,
) -> tuple[FloatArray, FloatArray]:
    """Bounds, in units, on `weight * w + priced` for each of the budgets w (0, 1, ...); `scale` is
    the price of one unit of V*, and `steps` counts the levels of error in each value (w).
    """
    w = np.arange(len(priced)) if budgets is None else budgets
    # An infinite error bound of a level, where zero-cost outcomes go round without end, is one of
    # all levels.
    levels = np.asarray(w if steps is None else steps, dtype=np.float64)
    error: FloatArray = (
        np.minimum(levels * error_bound.per_level, 1.0)
        if math.isfinite(error_bound.per_level)
        else np.ones(levels.shape)
    )
    # Whatever is counted, a run counts V* once, so that its error bound counts once as well.
    share = 1 - error
    least = priced * share
    low = weight * w + np.maximum(
        least * (1 - error_bound.below), least - error_bound.at_all * scale
    )
    share = np.maximum(share, 1e-300)
    raised = (
        np.where(priced > 0, priced * (1 + error_bound.above), 0.0) + error_bound.at_zero * scale
    )
    most = np.minimum(raised / share, priced / share + error_bound.at_all * scale)
    high = np.asarray(weight * w + np.where(error < 1, most, np.inf), dtype=np.float64)
    # A few units more for the sums above, and for values so small that they were taken for 0.
    return np.asarray(low * (1 - 2e-15)), high * (1 + 2e-15) + error_bound.vanished * scale


@dataclass(frozen=True, eq=False)
class ModelLayout(Layout):
    """A model laid out. Node `node_of[s]` is that of state s, -1 where the start cannot or must not
    go; `choice[k]` is the model's choice behind choice k.
    """

    choice: IntArray
    node_of: NDArray[np.int32]
    unit: Fraction
    expected: ExpectedSolution

    @property
    def start_lower(self) -> float:
        return self.expected.bounds[0] / float(self.unit)

    @cached_property
    def members(self) -> tuple[IntArray, IntArray]:
        """The states of every node, one node after the other, and where each begins."""
        states = np.flatnonzero(self.node_of >= 0)
        states = states[np.argsort(self.node_of[states], kind="stable")]
        return states, offsets_of(self.node_of[states], self.n)

    def certain_cost_of_states(self) -> IntArray:
        """By state the largest budget, in units, that a closed form takes off V*."""
        return np.where(self.node_of >= 0, self.nodes.certain_cost[self.node_of], 0)


def require_unit(ssp: SSP) -> None:
    if ssp.cost_unit is None:
        raise ModelError(
            "the costs have no common unit that is coarse enough to count in; give the width of a"
            " grid with --delta D (delta=)"
        )


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
    certain_cost = np.zeros(core.n, dtype=np.int64)
    if skip:
        nearest = rows.distances().least[: core.n]
        certain_cost = nearest.astype(np.int64)
        if skip == "excess":
            allowed, expected = allowed_error(error_bound_of(expected, 0.0)), sharpened(ssp)
            bounds = bounds_by_state(expected).each(core.to_nodes)
            certain_cost = certain_budgets(bounds, unit, nearest, allowed)
    cost_from_start = rows.costs_from(int(core.node_of[ssp.start_index]))[:-1]
    value = core.to_nodes(expected.value) / float(unit)
    order, depth, nodes = _ordered(rows, cost_from_start, certain_cost, value)
    position = np.full(core.n + 2, -1, dtype=np.int32)
    position[order] = np.arange(len(order))
    node_of = position[core.node_of]
    del rows  # as long as all that follows
    choices, node_choices = _choices(core, expected, order, position)
    count = len(choices.choice)
    joint, outer = joint_of(choices, nodes)
    size = np.diff(nodes.block_start)[nodes.block_joint]
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
        rounding=choices.rounding() + ssp.probability_error,
        depth=depth,
        visits=_visits(ssp, nodes, node_choices, joint, node_of),
        joints=min(depth, len(size)),
        largest=int(size.max(initial=0)),
        unit=unit,
        expected=expected,
    )


def certain_budgets(
    bounds: Bounds, cost_unit: Fraction, nearest: FloatArray, allowed: float
) -> IntArray:
    """Up to which budget each node is sure to exceed it, and its closed form is good enough."""
    low, value, high = (
        side / float(cost_unit) for side in (bounds.lower, bounds.value, bounds.upper)
    )
    error_bound = np.maximum(high - value, value - low) + TAKEN_OFF * value
    most = np.floor(np.minimum(nearest, value - error_bound / allowed))
    return np.asarray(np.maximum(most, 0.0), dtype=np.int64)


def allowed_error(before: ErrorBound) -> float:
    """The share by which closed forms may be off, from the error before V* was sharpened."""
    return min(max(0.45 * (before.below + before.above), LITTLE), MUCH)


def _ordered(
    rows: Transitions, cost_from_start: FloatArray, certain_cost: IntArray, value: FloatArray
) -> tuple[IntArray, int, Nodes]:
    """The nodes in the order of the sweep, the most blocks on a path at one level, and the nodes as
    the sweep reads them.

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
    # A joint block may be walked all over, so a path at one level can meet each of its nodes;
    # eliminations carry their own bounds.
    by_node = cost_from_start[node].astype(np.int64), certain_cost[node], first_level[node]
    # A start that is a goal reaches no node.
    together = np.append(joint[node], False)[first[:-1]]
    return node, int(depth.max(initial=0)) + 1, Nodes(first, together, *by_node, value[node])


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
    loops = bool(loop.any())
    if loops:
        leave = np.bincount(owner, weights=np.where(loop, 0.0, probability))
        leave[np.bincount(owner, weights=loop) == 0] = 1.0
        probability = (probability / leave[owner])[~loop]
        owner, target, level = (column[~loop] for column in (owner, target, level))
    return Choices(
        core.choice[selected], node, owner, level, target, probability, loops
    ), node_choices


def _visits(
    ssp: SSP, nodes: Nodes, node_choices: IntArray, joint: Joint, node_of: NDArray[np.int32]
) -> float:
    """The most expected visits to all nodes of a joint block, under any policy."""
    most = 0.0
    policy = node_choices[:-1].copy()
    for block in np.flatnonzero(nodes.block_joint).tolist():
        first, last = int(nodes.block_start[block]), int(nodes.block_start[block + 1])
        begin, end = int(node_choices[first]), int(node_choices[last])
        steps = np.empty(last - first)
        everything = np.ones(end - begin, dtype=np.bool_)
        error, _ = joint_optimum(
            Joint(*frozen(*joint)),
            node_choices,
            first,
            last,
            np.full(end - begin, -1.0),
            everything,
            policy,
            steps,
        )
        if not np.isfinite(error):  # the chance to leave is smaller than floats can say
            state = ssp.states[int(np.flatnonzero((node_of >= first) & (node_of < last))[0])]
            raise ModelError(
                f"from {state!r} runs can go around at no cost for a number of steps that is too"
                " large to compute with"
            )
        most = max(most, -1.01 * float(steps.sum()))
    return most
