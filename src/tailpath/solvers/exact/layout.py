"""A model laid out for the recursion over budgets (`kernels/budget.py`).

What is kept: sure states, safe choices, and of these what the start can reach; free components (sets that can be walked at no cost for ever) are
one node each, with the choices that leave it. A free outcome back to its own node is divided out: with q the probability of all other outcomes
of the choice, their probabilities become p / q. What free outcomes remain between nodes decides the order of the blocks.

Choices of a node stand with the risk-neutral one first, then in the model's order, so that ties go to the policy that is also good on average.

Where the table is large, budgets that every run exceeds are left to their closed form, U(s, w) = V*(s) - w for w <= nearest(s), the least cost of
arriving. Digits cancel in it: the doubt e(s) about V* is e / (V* - w) of the result. So only budgets up to `sure(s)` are left out,

    sure(s) = the largest whole number <= nearest(s) with e(s) <= d (V*(s) - sure(s)),

with d the relative doubt that there was before V* was sharpened for this (`expectation.sharpened`): the bounds do not get wider.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tailpath.analysis.core import Core, core_of
from tailpath.analysis.reachability import strong_components
from tailpath.errors import ModelError
from tailpath.kernels.budget import Aim, Levels
from tailpath.kernels.forward import cheapest_way
from tailpath.kernels.free_moves import Joint, joint_optimum, longest_ways
from tailpath.kernels.pairs import Web
from tailpath.kernels.rounding import FIXED, ROW, UNIT
from tailpath.model.ragged import grouped, members_of, offsets_of, owners
from tailpath.model.ssp import SSP, FloatArray
from tailpath.solvers.exact.doubt import TAKEN_OFF, doubt_of
from tailpath.solvers.expectation import ExpectedSolution, sharpened

#: Nodes joined by cycles of free moves are solved together, densely; beyond this many at once the model is refused.
LARGEST_JOINT = 2_000
#: A relative doubt about closed forms that a step of the recursion exceeds, and one that is too much.
LITTLE, MUCH = 16 * UNIT, 1e-6
#: The least cost at which the start reaches a node that no level needs.
NEVER = 2**62

IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Layout:
    """The arrays of the recursion, and the way back to the model.

    `node_of[s]` is the node of state s, -1 at goals and wherever the start cannot or must not go; `collapsed` marks nodes that stand for several
    states. `choice[k]` is the model's choice behind k.
    `rounding` bounds the relative error that one step adds; `depth` is the most blocks a path can visit at one level, and
    `visits` bounds the expected visits to the nodes of a joint block, summed over them. `expected` is where V* comes from.
    """

    levels: Levels
    joint: Joint
    web: Web
    node_of: NDArray[np.int32]
    collapsed: BoolArray
    choice: IntArray
    start: int
    rounding: float
    depth: int
    visits: float
    unit: Fraction
    expected: ExpectedSolution

    @property
    def n(self) -> int:
        return len(self.levels.least)

    @property
    def start_value(self) -> float:
        """V* of the start in units."""
        return self.expected.cost() / float(self.unit)

    @property
    def start_lower(self) -> float:
        """Its proved lower bound."""
        return self.expected.bounds[0] / float(self.unit)

    def reach(self, limit: float = math.inf) -> int:
        """The largest cost, in units, of an outcome that does not end at a goal: of those below `limit`, since no budget up to it has others left."""
        costs = self.levels.segment_level[np.diff(self.levels.segment_outcomes) > 0]
        return int(np.max(costs, where=costs < limit, initial=0))

    def at_a_time(self, limit: float) -> float:
        """How many outcomes a level looks at on average, in a block, for budgets up to the limit."""
        levels = self.levels
        most = min(limit, float(levels.least.max(initial=0, where=levels.least < NEVER) + self.start_value))
        return self.entries(most) / max(most, 1.0) / self.n * len(levels.target) / len(levels.block_joint)

    def entries(self, limit: float) -> float:
        """How many entries the table has for budgets up to the limit."""
        return float(np.sum(np.maximum(limit - self.levels.least - self.levels.sure, 0.0)))

    def sure_of_states(self) -> IntArray:
        """By state the largest budget, in units, that a closed form takes off V*."""
        return np.where(self.node_of >= 0, self.levels.sure[self.node_of], 0)

    def aim(self, weight: float = 0.0, price: float = 1.0, *, floor: float = 0.0, limit: float = math.inf, tie: float = 0.0) -> Aim:
        """What the recursion is to minimise at the start."""
        return Aim(self.start, weight, price, floor, limit, tie)

    def per_block(self, error: float, gain_left: float) -> float:
        """The relative error that a block adds, given the worst elimination of a joint block and the most it left to gain.

        A joint block adds the error of its elimination, of what goes into it, and of choices that are not quite the best at every visit.
        """
        return self.rounding + (error + (gain_left + 4 * self.rounding) * self.visits if self.visits else 0.0)


class _Arrows(NamedTuple):
    """The outcomes of a core: the node each leaves, and its cost in units. `least` is the least cost at which the start reaches each node."""

    source: IntArray
    level: IntArray
    least: FloatArray


class _Order(NamedTuple):
    """The nodes in the order of the recursion: `node[i]` is the core's node at place i. `sure` and `begin` (`kernels/budget.py`) are by place."""

    node: IntArray
    block_start: IntArray
    block_joint: BoolArray
    depth: int
    sure: IntArray
    begin: IntArray


class _Choices(NamedTuple):
    """The choices kept, in the order of their nodes, and their outcomes; targets are places, -1 at goals."""

    choice: IntArray
    node: NDArray[np.int32]
    owner: NDArray[np.int32]
    level: IntArray
    target: NDArray[np.int32]
    probability: FloatArray
    loops: bool


def layout_of(ssp: SSP, expected: ExpectedSolution, *, goal_node: bool = False, skip: bool = False) -> Layout:
    """Lay out a model that has a cost unit and whose start is no goal. With `goal_node` the goals are the last node, for losses that ask
    how much of the budget is left on arrival. With `skip`, budgets that are sure to be exceeded are left out, as far as the doubt about V* allows."""
    return ssp.kept(f"layout {goal_node} {skip}", lambda: _laid_out(ssp, expected, goal_node, skip))


def _laid_out(ssp: SSP, expected: ExpectedSolution, goal_node: bool, skip: bool) -> Layout:
    assert ssp.cost_unit is not None
    core = core_of(ssp)
    level = ssp.outcome_level[core.outcome]
    source = core.outcome_node()
    least = _least_from(int(core.node_of[ssp.start_index]), core, source, level)
    sure = np.zeros(core.n, dtype=np.int64)
    if skip:
        before, expected = doubt_of(expected, 0.0), sharpened(expected)
        allowed = min(max(0.49 * (before.below + before.above), LITTLE), MUCH)
        sure = _sure(core, expected, nearest_of(core), allowed)
    order = _ordered(core, _Arrows(source, level, least), sure)
    place = np.full(core.n + 2, -1, dtype=np.int32)
    place[order.node] = np.arange(len(order.node))
    node_of = place[core.node_of]
    collapsed = np.bincount(node_of[node_of >= 0], minlength=len(order.node)) > 1
    choices = _choices(ssp, core, place, level, expected)
    del source, level  # as long as all that follows
    inner = _inner(choices, order)
    levels, arrives = _levels(
        choices, inner, order, least, _labels(ssp, choices, collapsed), _node_values(expected, ssp.cost_unit, node_of, order), goal_node
    )
    joint = _joint(choices, inner, order)
    return Layout(
        levels=levels,
        joint=joint,
        web=Web(arrives, np.repeat(np.arange(len(order.block_joint)), np.diff(order.block_start))),
        node_of=node_of,
        collapsed=collapsed,
        choice=choices.choice,
        start=int(node_of[ssp.start_index]),
        rounding=_rounding(choices, levels),
        depth=order.depth,
        visits=_visits(ssp, levels, joint, node_of),
        unit=ssp.cost_unit,
        expected=expected,
    )


def _least_from(start: int, core: Core, source: IntArray, level: IntArray) -> FloatArray:
    """The least cost, in units, at which the start can reach each node; infinite where it cannot."""
    least = np.full(core.n + 1, np.inf)
    cheapest_way(offsets_of(source, core.n + 1), np.minimum(core.target, core.n), level.astype(np.float64), start, least)
    return least[: core.n]


def nearest_of(core: Core) -> FloatArray:
    """The least cost, in units, at which each node of a core can arrive."""
    member, into = grouped(np.minimum(core.target, core.n), core.n + 1)
    nearest = np.full(core.n + 1, np.inf)
    level = core.ssp.outcome_level[core.outcome]
    cheapest_way(into, core.outcome_node()[member], level[member].astype(np.float64), core.n, nearest)
    return nearest[: core.n]


def _sure(core: Core, expected: ExpectedSolution, nearest: FloatArray, allowed: float) -> IntArray:
    """Up to which budget each node is sure to exceed it, and the closed form is off by no more than the share allowed."""
    assert core.ssp.cost_unit is not None
    low, value, high = (core.gather(of) / float(core.ssp.cost_unit) for of in (expected.lower, expected.value, expected.upper))
    doubt = np.maximum(high - value, value - low) + TAKEN_OFF * value
    return np.maximum(np.floor(np.minimum(nearest, value - doubt / allowed)), 0.0).astype(np.int64)


def _begin(core: Core, arrows: _Arrows, sure: IntArray) -> IntArray:
    """The first level of each node that is read: by itself, or by one that leads to it, beyond what is sure there. The start's are all read."""
    begin = sure + 1
    if sure.any():
        inside = np.flatnonzero((core.target < core.n) & np.isfinite(arrows.least[arrows.source]))
        np.minimum.at(begin, core.target[inside], (sure + 1)[arrows.source[inside]] - arrows.level[inside])
        begin[arrows.least == 0] = 1
    return np.maximum(begin, 1)


def _ordered(core: Core, arrows: _Arrows, sure: IntArray) -> _Order:
    """Blocks such that free outcomes only lead to earlier blocks, or within a joint one; plain blocks sorted by where their nodes begin, and by least
    cost."""
    source, level, least = arrows
    kept = np.flatnonzero(np.isfinite(least))
    arrow = np.flatnonzero((level == 0) & (core.target < core.n) & (core.target != source) & np.isfinite(least[source]))
    if arrow.size == 0:
        begin = _begin(core, arrows, sure)
        node = kept[np.lexsort((least[kept], begin[kept]))]
        return _Order(node, np.array([0, len(kept)]), np.zeros(1, dtype=np.bool_), 1, sure[node], begin[node])
    arrow = arrow[np.argsort(source[arrow], kind="stable")]
    component, count = strong_components(offsets_of(source[arrow], core.n), core.target[arrow])
    depth = np.zeros(count, dtype=np.int64)
    by_component = np.argsort(component[source[arrow]], kind="stable")
    longest_ways(component[source[arrow]][by_component], component[core.target[arrow]][by_component], depth)
    size = np.bincount(component, minlength=count)
    if size.max() > LARGEST_JOINT:
        raise ModelError(
            f"{size.max()} states are joined by cycles of free outcomes; the exact solver takes at most {LARGEST_JOINT} at once"
        )
    joint = size[component] > 1
    group = np.where(joint, component, -1)
    sure = np.where(joint, 0, sure)
    begin = _begin(core, arrows, sure)
    node = kept[np.lexsort((least[kept], np.where(joint, 1, begin)[kept], group[kept], depth[component][kept]))]
    keys = np.stack((depth[component][node], group[node]))
    first = np.flatnonzero(np.append(True, np.any(keys[:, 1:] != keys[:, :-1], axis=0)))
    # A joint block may be walked all over, so a path at one level can meet each of its nodes; eliminations carry their own bounds.
    return _Order(node, np.append(first, len(node)), joint[node[first]], int(depth.max()) + 1, sure[node], begin[node])


def _choices(ssp: SSP, core: Core, place: NDArray[np.int32], level: IntArray, expected: ExpectedSolution) -> _Choices:
    node = np.repeat(place[: core.n], np.diff(core.state_choices))
    neutral = np.zeros(ssp.n_choices, dtype=np.bool_)
    neutral[expected.choices[expected.choices >= 0]] = True
    kept = np.flatnonzero(node >= 0)
    kept = kept[np.lexsort((~neutral[core.choice[kept]], node[kept]))]
    outcome, kept_outcomes = members_of(core.choice_outcomes, kept)
    owner = owners(kept_outcomes, np.int32)
    target, probability, level = place[core.target[outcome]], core.probability[outcome], level[outcome]
    loop = (level == 0) & (target == node[kept][owner])
    if loop.any():
        leave = np.bincount(owner[~loop], weights=probability[~loop], minlength=len(kept))
        leave[np.setdiff1d(np.arange(len(kept)), owner[loop])] = 1.0
        owner, target, probability, level = owner[~loop], target[~loop], (probability / leave[owner])[~loop], level[~loop]
    return _Choices(core.choice[kept], node[kept], owner, level, target, probability, bool(loop.any()))


def _inner(choices: _Choices, order: _Order) -> BoolArray:
    """Which outcomes are free and stay inside their joint block."""
    block = np.repeat(np.arange(len(order.block_joint)), np.diff(order.block_start))
    stays = (choices.target >= 0) & (block[choices.target] == block[choices.node[choices.owner]])
    return np.asarray(stays & (choices.level == 0) & order.block_joint[block[choices.target]])


def _node_values(expected: ExpectedSolution, unit: Fraction, node_of: NDArray[np.int32], order: _Order) -> FloatArray:
    """V* per node in units, and 0 for the goals' place -1."""
    value = np.zeros(len(order.node) + 1)
    kept = node_of >= 0
    value[node_of[kept]] = expected.value[kept] / float(unit)
    return value


def _levels(
    choices: _Choices, inner: BoolArray, order: _Order, least: FloatArray, label: NDArray[Any], value: FloatArray, goal_node: bool
) -> tuple[Levels, BoolArray]:
    """The arrays of the kernel, and which segments may arrive. The goals, if they are a node, come last, belong to no block and have no choices."""
    n = len(order.node) + goal_node
    segments, arrives = _segments(choices, inner, value, n - 1 if goal_node else -1)
    levels = Levels(
        block_start=order.block_start,
        block_joint=order.block_joint,
        least=np.append(least[order.node], [NEVER] * goal_node).astype(np.int64),
        sure=np.append(order.sure, [0] * goal_node).astype(np.int64),
        begin=np.append(order.begin, [NEVER] * goal_node).astype(np.int64),
        value=value[:n],
        node_choices=offsets_of(choices.node, n),
        choice_label=label,
        choice_cost=np.bincount(choices.owner, weights=choices.probability * choices.level, minlength=len(choices.choice)),
        **segments,
    )
    return levels, arrives


def _segments(choices: _Choices, inner: BoolArray, value: FloatArray, goal: int) -> tuple[dict[str, NDArray[Any]], BoolArray]:
    """Outcomes grouped by choice and cost, with the closed form of each group; only targets that need a row stay in the lists. Beside them,
    which groups may end at a goal."""
    order: Any = slice(None)
    if np.any((np.diff(choices.owner) == 0) & (np.diff(choices.level) < 0)):
        order = np.lexsort((choices.level, choices.owner))
    owner, level, target, probability = choices.owner[order], choices.level[order], choices.target[order], choices.probability[order]
    first = np.flatnonzero(np.append(True, (np.diff(owner) != 0) | (np.diff(level) != 0)))
    mean = np.add.reduceat(probability * value[target], first)
    arrives = np.logical_or.reduceat(target < 0, first)
    target = np.where(target < 0, goal, target)
    gathered = (target >= 0) & ~inner[order]
    if len(owner) >= 2**32 or level.max() >= 2**31:
        raise ModelError(f"{len(owner)} outcomes with costs of up to {level.max()} units are beyond this solver")
    segments = {
        "choice_segments": offsets_of(owner[first], len(choices.choice)).astype(np.uint32),
        "segment_level": level[first].astype(np.int32),
        "segment_outcomes": np.append(0, np.cumsum(gathered))[np.append(first, len(owner))].astype(np.uint32),
        "segment_mass": np.add.reduceat(probability, first),
        "segment_mean": mean,
        "target": target[gathered].astype(np.uint32),
        "probability": probability[gathered],
    }
    return segments, arrives


def _joint(choices: _Choices, inner: BoolArray, order: _Order) -> Joint:
    """The free outcomes inside joint blocks, by choice; empty arrays where there are none."""
    if not inner.any():
        return Joint(np.zeros(1, dtype=np.int64), np.zeros(0, dtype=np.int64), np.zeros(0), np.zeros(0))
    free = np.flatnonzero(inner)
    block_first = np.repeat(order.block_start[:-1], np.diff(order.block_start))
    return Joint(
        inner_start=offsets_of(choices.owner[free], len(choices.choice)),
        inner_target=choices.target[free] - block_first[choices.target[free]],
        inner_probability=choices.probability[free],
        leave=np.bincount(choices.owner[~inner], weights=choices.probability[~inner], minlength=len(choices.choice)),
    )


def _labels(ssp: SSP, choices: _Choices, collapsed: BoolArray) -> NDArray[Any]:
    """What the table of decisions stores: the choice's place in its state, or, where a node stands for several states, in its node."""
    in_state = choices.choice - ssp.state_choices[ssp.choice_state[choices.choice]]
    in_node = np.arange(len(choices.choice)) - offsets_of(choices.node, len(collapsed))[choices.node]
    label = np.where(collapsed[choices.node], in_node, in_state)
    return label.astype(np.min_scalar_type(int(label.max())))


def _rounding(choices: _Choices, levels: Levels) -> float:
    """The relative error that one step adds at most.

    k + 8 units for k outcomes and cost groups, twice k where loops were divided out, and what the probabilities are off from the decimals as
    written (`kernels/rounding.py`).
    """
    most = int(np.max(np.bincount(choices.owner) + np.diff(levels.choice_segments)))
    return ((2 if choices.loops else 1) * most + 8 + ROW * int(np.bincount(choices.owner).max()) + FIXED) * UNIT


def _visits(ssp: SSP, levels: Levels, joint: Joint, node_of: NDArray[np.int32]) -> float:
    """The most expected visits to the nodes of a joint block, summed over them, under any policy; for the error bound."""
    most = 0.0
    policy = levels.node_choices[:-1].copy()
    for block in np.flatnonzero(levels.block_joint).tolist():
        first, last = int(levels.block_start[block]), int(levels.block_start[block + 1])
        begin, end = int(levels.node_choices[first]), int(levels.node_choices[last])
        steps = np.empty(last - first)
        everything = np.ones(end - begin, dtype=np.bool_)
        try:
            joint_optimum(joint, levels.node_choices, first, last, np.full(end - begin, -1.0), everything, policy, steps)
        except ZeroDivisionError:  # the chance to leave is smaller than any float
            state = ssp.states[int(np.flatnonzero((node_of >= first) & (node_of < last))[0])]
            raise ModelError(
                f"from {state!r} runs can go round at no cost for a number of steps that is too large to compute with"
            ) from None
        most = max(most, -1.01 * float(steps.sum()))
    return most
