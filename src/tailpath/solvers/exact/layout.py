"""A model laid out for the sweep over budgets (`dp/budgets.py`).

What is kept: almost sure states, safe choices, and of these what the start can reach; zero-cost components (sets that can be walked at no cost for
ever) are one node each, with the choices that leave it. A zero-cost outcome back to its own node is divided out: with q the probability of all
other outcomes of the choice, their probabilities become p / q. What zero-cost outcomes remain between nodes decides the order of the blocks.

Choices of a node stand with the risk-neutral one first, then in the model's order, so that ties go to the policy that is also good on average.

Budgets that every run exceeds may be left to their closed form, U(s, w) = V*(s) - w for w <= nearest(s), the least cost of arriving. Digits cancel in
it: the error e(s) of V* is e / (V* - w) of the result. So for excesses only budgets up to `sure(s)` are left out,

    sure(s) = the largest whole number <= nearest(s) with e(s) <= d (V*(s) - sure(s)),

with d the relative error that there was before V* was sharpened for this (`expectation.sharpened`): the bounds do not get wider. Lateness is 1 there,
exactly, so that for deadlines all of them are left out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tailpath.analysis.core import Core, core_of
from tailpath.analysis.reachability import strong_components
from tailpath.dp.budgets import PER_STEP, TO_GO, Ends, Model, Nodes, Objective, Rows
from tailpath.dp.joint import Joint, joint_optimum, longest_ways
from tailpath.errors import ModelError
from tailpath.kernels.forward import cheapest_way
from tailpath.kernels.jit import frozen
from tailpath.kernels.rounding import FIXED, ROW, UNIT
from tailpath.model.ragged import grouped, members_of, offsets_of, owners
from tailpath.model.ssp import SSP, FloatArray
from tailpath.solvers.exact.doubt import TAKEN_OFF, doubt_of
from tailpath.solvers.expectation import ExpectedSolution, sharpened

#: Nodes joined by cycles of zero-cost moves are solved together, densely; beyond this many at once the model is refused.
LARGEST_JOINT = 2_000
#: A relative error of closed forms that a step of the recursion exceeds, and one that is too much.
LITTLE, MUCH = 16 * UNIT, 1e-6
#: Layouts of up to so many outcomes are kept with their model; larger ones are laid out anew.
KEPT = 2**17

IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Layout:
    """The nodes of the sweep in their order, their choices and outcomes, and the way back to the model.

    `node_of[s]` is the node of state s, -1 at goals and wherever the start cannot or must not go. `choice[k]` is the model's choice behind k, and
    `choice_cost[k]` what it costs on average. Outcomes are by choice, with their `level`, a cost in units; the target of one that arrives is -1,
    and those inside a joint block are left out. `rounding` bounds the relative error that one step adds; `depth` is the most blocks a path can
    visit at one level, and `visits` bounds the expected visits to the nodes of a joint block, summed over them. `expected` is where V* comes from.
    """

    nodes: Nodes
    node_choices: IntArray
    choice: IntArray
    choice_cost: FloatArray
    outcome_start: IntArray
    target: NDArray[np.int32]
    level: IntArray
    probability: FloatArray
    joint: Joint
    node_of: NDArray[np.int32]
    start: int
    rounding: float
    depth: int
    visits: float
    unit: Fraction
    expected: ExpectedSolution

    @property
    def n(self) -> int:
        return len(self.nodes.least)

    @property
    def start_value(self) -> float:
        """V* of the start in units."""
        return self.expected.cost() / float(self.unit)

    @property
    def start_lower(self) -> float:
        """Its proved lower bound."""
        return self.expected.bounds[0] / float(self.unit)

    @cached_property
    def arrives(self) -> BoolArray:
        """Whether an outcome ends at a goal."""
        return self.target < 0

    @cached_property
    def members(self) -> tuple[IntArray, IntArray]:
        """The states of every node, one node after the other, and where each begins."""
        states = np.flatnonzero(self.node_of >= 0)
        states = states[np.argsort(self.node_of[states], kind="stable")]
        return states, offsets_of(self.node_of[states], self.n)

    @cached_property
    def costs(self) -> IntArray:
        """The costs, in units, of outcomes that do not arrive, rising."""
        return np.unique(self.level[~self.arrives])

    def reach(self, limit: float = math.inf) -> int:
        """The largest cost, in units, of an outcome that does not end at a goal: of those below `limit`, since no budget up to it has others left."""
        below = int(np.searchsorted(self.costs, limit))
        return int(self.costs[below - 1]) if below else 0

    def entries(self, limit: float) -> float:
        """How many entries the table has for budgets up to the limit."""
        return float(np.sum(np.maximum(limit - self.nodes.least - self.nodes.sure, 0.0)))

    def sure_of_states(self) -> IntArray:
        """By state the largest budget, in units, that a closed form takes off V*."""
        return np.where(self.node_of >= 0, self.nodes.sure[self.node_of], 0)

    def objective(
        self,
        criteria: FloatArray,
        weight: float = 0.0,
        price: float = 1.0,
        *,
        prices: FloatArray | None = None,
        floor: float = 0.0,
        limit: float = math.inf,
        tie: float = 0.0,
    ) -> Objective:
        """What the sweep is to minimise at the start."""
        several = np.empty(0) if prices is None else np.asarray(prices, dtype=np.float64)
        return Objective(np.atleast_2d(criteria), several, self.start, weight, price, floor, limit, tie)

    def per_block(self, error: float, gain_left: float) -> float:
        """The relative error that a block adds, given the worst elimination of a joint block and the most it left to gain.

        A joint block adds the error of its elimination, of what goes into it, and of choices that are not quite the best at every visit.
        """
        return self.rounding + (error + (gain_left + 4 * self.rounding) * self.visits if self.visits else 0.0)

    @cached_property
    def everything(self) -> Model:
        """What the kernel needs for budgets above every cost of an outcome that does not arrive."""
        return self._split(self.arrives)

    def up_to(self, limit: float) -> Model:
        """What the kernel needs for budgets up to a limit."""
        return self.everything if self.reach() < limit else self._split(self.arrives | (self.level >= limit))

    def _split(self, ends: BoolArray) -> Model:
        """The outcomes that have a row in the table, and those that end at a goal or beyond every budget."""
        near, far = np.flatnonzero(~ends), np.flatnonzero(ends)
        if len(near) >= 2**31 or (int(self.level[near].max(initial=0)) + 1) * self.n >= 2**31:
            raise ModelError(f"{self.n} states with costs of up to {self.level[near].max()} units are beyond this solver")
        with_ends, of_end = np.unique(owners(self.outcome_start)[far], return_inverse=True)
        rows = Rows(
            self.node_choices,
            np.append(0, np.cumsum(~ends))[self.outcome_start],
            (self.target[near] - self.level[near] * self.n).astype(np.int32),
            self.probability[near],
        )
        return Model(
            Rows(*frozen(*rows)),
            Ends(*frozen(with_ends, offsets_of(of_end, len(with_ends)), self.level[far], self.probability[far])),
            Nodes(*frozen(*self.nodes)),
            Joint(*frozen(*self.joint)),
        )

    def static(self, criteria: FloatArray, limit: float) -> FloatArray:
        """What every choice is worth at all levels: its own cost, and V* behind outcomes that cost the limit or more."""
        own = criteria[:, PER_STEP, None] * self.choice_cost
        if self.reach() < limit:
            return np.asarray(own)
        far = np.flatnonzero(~self.arrives & (self.level >= limit))
        ahead = np.bincount(owners(self.outcome_start)[far], self.probability[far] * self.nodes.value[self.target[far]], len(self.choice))
        return np.asarray(own + criteria[:, TO_GO, None] * ahead)


class _Edges(NamedTuple):
    """The outcomes of a core: the node each leaves, and its cost in units. `least` is the least cost at which the start reaches each node."""

    source: IntArray
    level: IntArray
    least: FloatArray


class _Order(NamedTuple):
    """The nodes in the order of the sweep: `node[i]` is the core's node at position i. `sure` and `begin` (`dp/budgets.py`) are by position."""

    node: IntArray
    block_start: IntArray
    block_joint: BoolArray
    depth: int
    sure: IntArray
    begin: IntArray


class _Choices(NamedTuple):
    """The choices in the order of their nodes, and their outcomes; targets are positions, -1 at goals."""

    choice: IntArray
    node: NDArray[np.int32]
    owner: NDArray[np.int32]
    level: IntArray
    target: NDArray[np.int32]
    probability: FloatArray
    loops: bool


def layout_of(ssp: SSP, expected: ExpectedSolution, skip: str = "") -> Layout:
    """Lay out a model that has a cost unit and whose start is no goal. `skip` leaves out budgets that are sure to be exceeded: "excess" as far as the
    error of V* allows, "late" all of them, which holds for lateness alone."""
    if ssp.n_outcomes > KEPT:
        return _laid_out(ssp, expected, skip)
    return ssp.kept(f"layout {skip}", lambda: _laid_out(ssp, expected, skip))


def _laid_out(ssp: SSP, expected: ExpectedSolution, skip: str) -> Layout:
    assert ssp.cost_unit is not None
    core = core_of(ssp)
    level = ssp.outcome_level[core.outcome]
    source = core.outcome_node()
    least = _least_from(int(core.node_of[ssp.start_index]), core, source, level)
    sure = np.zeros(core.n, dtype=np.int64)
    if skip == "late":
        sure = nearest_of(core).astype(np.int64)
    elif skip:
        before, expected = doubt_of(expected, 0.0), sharpened(expected)
        allowed = min(max(0.49 * (before.below + before.above), LITTLE), MUCH)
        sure = _sure(core, expected, nearest_of(core), allowed)
    order = _ordered(core, _Edges(source, level, least), sure)
    position = np.full(core.n + 2, -1, dtype=np.int32)
    position[order.node] = np.arange(len(order.node))
    node_of = position[core.node_of]
    choices = _choices(ssp, core, position, level, expected)
    del source, level  # as long as all that follows
    inner = _inner(choices, order)
    outer = ~inner
    count, node_choices = len(choices.choice), offsets_of(choices.node, len(order.node))
    nodes = Nodes(
        order.block_start,
        order.block_joint,
        least[order.node].astype(np.int64),
        order.sure,
        order.begin,
        _node_values(expected, ssp.cost_unit, node_of, len(order.node)),
    )
    joint = _joint(choices, inner, order)
    return Layout(
        nodes=nodes,
        node_choices=node_choices,
        choice=choices.choice,
        choice_cost=np.bincount(choices.owner, weights=choices.probability * choices.level, minlength=count).astype(np.float64),
        outcome_start=offsets_of(choices.owner[outer], count),
        target=choices.target[outer],
        level=choices.level[outer],
        probability=choices.probability[outer],
        joint=joint,
        node_of=node_of,
        start=int(node_of[ssp.start_index]),
        rounding=_rounding(choices),
        depth=order.depth,
        visits=_visits(ssp, nodes, node_choices, joint, node_of),
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


def _begin(core: Core, edges: _Edges, sure: IntArray) -> IntArray:
    """The first level of each node that is read: by itself, or by one that leads to it, beyond what is sure there. The start's are all read."""
    begin = sure + 1
    if sure.any():
        inside = np.flatnonzero((core.target < core.n) & np.isfinite(edges.least[edges.source]))
        np.minimum.at(begin, core.target[inside], (sure + 1)[edges.source[inside]] - edges.level[inside])
        begin[edges.least == 0] = 1
    return np.maximum(begin, 1)


def _ordered(core: Core, edges: _Edges, sure: IntArray) -> _Order:
    """Blocks such that zero-cost outcomes only lead to earlier blocks, or within a joint one; plain blocks sorted by where their nodes begin, and by
    least cost."""
    source, level, least = edges
    kept = np.flatnonzero(np.isfinite(least))
    edge = np.flatnonzero((level == 0) & (core.target < core.n) & (core.target != source) & np.isfinite(least[source]))
    if edge.size == 0:
        begin = _begin(core, edges, sure)
        node = kept[np.lexsort((least[kept], begin[kept]))]
        return _Order(node, np.array([0, len(kept)]), np.zeros(1, dtype=np.bool_), 1, sure[node], begin[node])
    edge = edge[np.argsort(source[edge], kind="stable")]
    component, count = strong_components(offsets_of(source[edge], core.n), core.target[edge])
    depth = np.zeros(count, dtype=np.int64)
    by_component = np.argsort(component[source[edge]], kind="stable")
    longest_ways(component[source[edge]][by_component], component[core.target[edge]][by_component], depth)
    size = np.bincount(component, minlength=count)
    if size.max() > LARGEST_JOINT:
        raise ModelError(
            f"{size.max()} states are joined by cycles of free outcomes; the exact solver takes at most {LARGEST_JOINT} at once"
        )
    joint = size[component] > 1
    group = np.where(joint, component, -1)
    sure = np.where(joint, 0, sure)
    begin = _begin(core, edges, sure)
    node = kept[np.lexsort((least[kept], np.where(joint, 1, begin)[kept], group[kept], depth[component][kept]))]
    keys = np.stack((depth[component][node], group[node]))
    first = np.flatnonzero(np.append(True, np.any(keys[:, 1:] != keys[:, :-1], axis=0)))
    # A joint block may be walked all over, so a path at one level can meet each of its nodes; eliminations carry their own bounds.
    return _Order(node, np.append(first, len(node)), joint[node[first]], int(depth.max()) + 1, sure[node], begin[node])


def _choices(ssp: SSP, core: Core, position: NDArray[np.int32], level: IntArray, expected: ExpectedSolution) -> _Choices:
    node = np.repeat(position[: core.n], np.diff(core.state_choices))
    neutral = np.zeros(ssp.n_choices, dtype=np.bool_)
    neutral[expected.choices[expected.choices >= 0]] = True
    kept = np.flatnonzero(node >= 0)
    kept = kept[np.lexsort((~neutral[core.choice[kept]], node[kept]))]
    outcome, kept_outcomes = members_of(core.choice_outcomes, kept)
    owner = owners(kept_outcomes, np.int32)
    target, probability, level = position[core.target[outcome]], core.probability[outcome], level[outcome]
    loop = (level == 0) & (target == node[kept][owner])
    if loop.any():
        leave = np.bincount(owner[~loop], weights=probability[~loop], minlength=len(kept))
        leave[np.setdiff1d(np.arange(len(kept)), owner[loop])] = 1.0
        owner, target, probability, level = owner[~loop], target[~loop], (probability / leave[owner])[~loop], level[~loop]
    return _Choices(core.choice[kept], node[kept], owner, level, target, probability, bool(loop.any()))


def _inner(choices: _Choices, order: _Order) -> BoolArray:
    """Which outcomes cost nothing and stay inside their joint block."""
    block = np.repeat(np.arange(len(order.block_joint)), np.diff(order.block_start))
    stays = (choices.target >= 0) & (block[choices.target] == block[choices.node[choices.owner]])
    return np.asarray(stays & (choices.level == 0) & order.block_joint[block[choices.target]])


def _node_values(expected: ExpectedSolution, unit: Fraction, node_of: NDArray[np.int32], n: int) -> FloatArray:
    """V* per node in units."""
    value = np.zeros(n)
    kept = node_of >= 0
    value[node_of[kept]] = expected.value[kept] / float(unit)
    return value


def _joint(choices: _Choices, inner: BoolArray, order: _Order) -> Joint:
    """The zero-cost outcomes inside joint blocks, by choice; empty arrays where there are none."""
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


def _rounding(choices: _Choices) -> float:
    """The relative error that one step adds at most.

    k + 8 units for k terms of a sum, twice k where loops were divided out, and what the probabilities are off from the decimals as written
    (`kernels/rounding.py`).
    """
    most = int(np.max(np.bincount(choices.owner)))
    return ((2 if choices.loops else 1) * most + 8 + ROW * most + FIXED) * UNIT


def _visits(ssp: SSP, nodes: Nodes, node_choices: IntArray, joint: Joint, node_of: NDArray[np.int32]) -> float:
    """The most expected visits to the nodes of a joint block, summed over them, under any policy; for the error bound."""
    most = 0.0
    policy = node_choices[:-1].copy()
    for block in np.flatnonzero(nodes.block_joint).tolist():
        first, last = int(nodes.block_start[block]), int(nodes.block_start[block + 1])
        begin, end = int(node_choices[first]), int(node_choices[last])
        steps = np.empty(last - first)
        everything = np.ones(end - begin, dtype=np.bool_)
        try:
            joint_optimum(Joint(*frozen(*joint)), node_choices, first, last, np.full(end - begin, -1.0), everything, policy, steps)
        except ZeroDivisionError:  # the chance to leave is smaller than any float
            state = ssp.states[int(np.flatnonzero((node_of >= first) & (node_of < last))[0])]
            raise ModelError(
                f"from {state!r} runs can go round at no cost for a number of steps that is too large to compute with"
            ) from None
        most = max(most, -1.01 * float(steps.sum()))
    return most
