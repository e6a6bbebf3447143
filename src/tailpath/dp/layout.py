"""Decisions laid out for the sweep over budgets (`budgets.py`): what it reads, and what it works
on.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tailpath.dp.backup import CERTAIN, NO_SPREAD, Spread
from tailpath.dp.budgets import (
    BASE,
    TO_GO,
    Changes,
    Ends,
    Model,
    Nodes,
    Objective,
    Rows,
    Work,
    sweep,
    work_on,
)
from tailpath.dp.games import Game
from tailpath.dp.joint import Joint, longest_ways
from tailpath.errors import ModelError
from tailpath.graph import Transitions, grouped, members_of, offsets_of, owners
from tailpath.kernels.forward import cheapest_way
from tailpath.kernels.jit import frozen
from tailpath.kernels.rounding import FIXED, ROW, SERVED, UNIT

Array = NDArray[Any]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]
FloatArray = NDArray[np.float64]
#: A window of about this many bytes stays near the processor.
WINDOW = 2**19
#: At least so many levels are put down before those that later ones need are moved.
FEW_ROWS = 8
#: Nodes joined by cycles of zero-cost moves are solved together, densely; beyond this many at once
#: the model is refused.
LARGEST_JOINT = 2_000
NO_LOSS = np.zeros((0, 0))


@dataclass(frozen=True, eq=False)
class Layout:
    """The nodes of the sweep in their order, their choices and outcomes.

    `choice_cost[k]` is what choice k costs on average. Outcomes are by choice, with their `level`,
    a cost in units; the target of one that arrives is -1, and those inside a joint block are left
    out. `rounding` bounds the relative error that one step adds; `depth` is the most blocks a path
    can visit at one level, `joints` the most joint ones among them, `largest` the most nodes of
    one, and `visits` bounds the expected visits to its nodes, summed over them. Where probabilities
    are intervals, `probability` has the low ones and `spread` what `nature` hands out; node 0 is
    then the goal.
    """

    nodes: Nodes
    node_choices: IntArray
    choice_cost: FloatArray
    outcome_start: IntArray
    target: NDArray[np.int32]
    level: IntArray
    probability: FloatArray
    joint: Joint
    start: int
    rounding: float
    depth: int
    visits: float
    joints: int = field(default=0, kw_only=True)
    largest: int = field(default=0, kw_only=True)
    spread: Spread = field(default=NO_SPREAD, kw_only=True)
    nature: int = field(default=CERTAIN, kw_only=True)

    @property
    def n(self) -> int:
        return len(self.nodes.least)

    @property
    def start_value(self) -> float:
        """V* of the start in units."""
        return float(self.nodes.value[self.start])

    def spent(self, criteria: FloatArray) -> FloatArray:
        """What the start is worth with the budget spent, by criterion."""
        return criteria[:, BASE] + criteria[:, TO_GO] * self.start_value

    @cached_property
    def arrives(self) -> BoolArray:
        """Whether an outcome ends at a goal."""
        return self.target < 0

    @cached_property
    def costs(self) -> IntArray:
        """The costs, in units, of outcomes that do not arrive, rising."""
        # Costs are whole numbers, most of them small, and outcomes are many.
        level = self.level[~self.arrives]
        if level.max(initial=0) > 2 * len(level):
            return np.unique(level)
        found = np.zeros(level.max(initial=0) + 1, dtype=np.bool_)
        found[level] = True
        return np.flatnonzero(found)

    @cached_property
    def longest(self) -> int:
        """The largest cost, in units, of an outcome that does not end at a goal."""
        return int(self.costs[-1]) if len(self.costs) else 0

    def reach(self, limit: float) -> int:
        """The largest cost, in units, of an outcome that does not end at a goal: of those below
        `limit`, since no budget up to it has others left.
        """
        if self.longest < limit or self.nature != CERTAIN:
            return self.longest
        below = int(np.searchsorted(self.costs, limit))
        return int(self.costs[below - 1]) if below else 0

    @cached_property
    def farthest(self) -> float:
        """The most that it costs at least to get to a node, in units."""
        return float(self.nodes.least.max())

    @cached_property
    def skips(self) -> bool:
        """Whether budgets that every run exceeds are left to their closed form."""
        return bool(self.nodes.certain_cost.any())

    def entries(self, limit: float) -> float:
        """How many entries the table has for budgets up to the limit."""
        return float(np.sum(np.maximum(limit - self.nodes.least - self.nodes.certain_cost, 0.0)))

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
        return Objective(
            np.atleast_2d(criteria), several, self.start, weight, price, floor, limit, tie
        )

    def per_block(self, error: float, residual: float) -> float:
        """The relative error that a block adds, given the worst elimination of a joint block and
        the most it left to gain. Where nature hands out shares, `error` is the largest factor by
        which an outcome served last exceeds its row.
        """
        if self.nature != CERTAIN:
            return self.rounding * (1 + error)
        return self.rounding + self._jointly(error, residual)

    def per_level(self, error: float, residual: float) -> float:
        """The relative error that a level adds, of as many blocks as a path can visit at it."""
        if self.nature != CERTAIN:
            return self.depth * self.per_block(error, residual)
        return self.depth * self.rounding + self.joints * self._jointly(error, residual)

    def _jointly(self, error: float, residual: float) -> float:
        """What a joint block adds beside the rounding of what leaves it: the error of its
        elimination; what its probabilities are off; and what choices left to gain.

        The value of a policy on m nodes is a quotient of sums of products of at most m
        probabilities, so that probabilities that are off by a share move it by 2 m + 2 of these.
        At every visit to a node its choice may have left something to gain, and the two sums that
        were compared are rounded, each by less than a quarter of `rounding`. Visits count summed
        over the nodes: if x are the least values and N the expected visits of a policy that has
        them, what comes of a share of 1 at every visit is sum_j N_ij x_j, and N_ij x_j <= N_jj x_i,
        since x_i is at least x_j times the probability of getting from i to j. (The shares are
        those of the values found, not of x: a second-order effect, for which `visits` has room.)
        """
        if not self.visits:
            return 0.0
        at_a_visit = residual + 0.5 * self.rounding
        return error + (2 * self.largest + 2) * self.rounding + at_a_visit * self.visits

    @cached_property
    def everything(self) -> Model:
        """What the kernel needs for budgets above every cost of an outcome that does not arrive."""
        return self._split(self.arrives)

    def up_to(self, limit: float) -> Model:
        """What the kernel needs for budgets up to a limit."""
        if self.nature != CERTAIN:
            # What lies beyond every budget is served in its turn, like all others. The kernel sorts
            # the outcomes of a row, so it gets copies.
            rows, spread = self.everything.rows, self.spread
            rows = rows._replace(offset=rows.offset.copy(), probability=rows.probability.copy())
            spread = spread._replace(width=spread.width.copy())
            return self.everything._replace(rows=rows, spread=spread, nature=self.nature)
        if self.longest < limit:
            return self.everything
        return self._split(self.arrives | (self.level >= limit))

    def beyond(self, limit: float) -> Layout:
        """A layout against nature in which outcomes that cost the limit or more lead, for 1, to
        nodes of their own behind all others.

        No budget up to the limit has any of it left there, so that these have a closed form at
        every level: the levels that others need are fewer.
        """
        far = np.flatnonzero(self.level >= limit)
        if not len(far):
            return self
        own, of_far = np.unique(
            np.stack([self.target[far], self.level[far]]), axis=1, return_inverse=True
        )
        nodes, count = self.nodes, own.shape[1]
        of_far = of_far.ravel()
        least = np.full(count, np.iinfo(np.int64).max)
        np.minimum.at(
            least,
            of_far,
            nodes.least[owners(self.node_choices)[owners(self.outcome_start)[far]]] + 1,
        )
        target, level = self.target.copy(), self.level.copy()
        target[far], level[far] = self.n + of_far, 1
        behind = Nodes(
            np.append(nodes.block_start, self.n + count),
            np.append(nodes.block_joint, False),
            np.append(nodes.least, least),
            np.append(nodes.certain_cost, np.full(count, np.iinfo(np.int64).max)),
            np.append(nodes.begin, np.ones(count, dtype=np.int64)),
            np.append(nodes.value, nodes.value[own[0]] + own[1] - 1),
        )
        node_choices = np.append(self.node_choices, np.full(count, self.node_choices[-1]))
        return replace(self, nodes=behind, node_choices=node_choices, target=target, level=level)

    def _split(self, ends: BoolArray) -> Model:
        """The outcomes that have a row in the table, and those that end at a goal or beyond every
        budget.
        """
        # Arrays by outcome are what takes memory on large models.
        near, far = ~ends, np.flatnonzero(ends)
        offset = self.level[near]
        if len(offset) >= 2**31 or (int(offset.max(initial=0)) + 1) * self.n >= 2**31:
            raise ModelError(
                f"{self.n} states with costs of up to {offset.max()} units are beyond this solver"
            )
        offset *= -self.n
        offset += self.target[near]
        before = self.outcome_start - np.searchsorted(far, self.outcome_start)
        rows = before, offset.astype(np.int32), self.probability[near], self.choice_cost
        owner = np.searchsorted(self.outcome_start, far, side="right") - 1
        columns = self.level[far], self.probability[far], value_behind(self.nodes, self.target[far])
        return Model(
            Rows(*frozen(self.node_choices, *rows)),
            ends_of(self.node_choices, owner, *columns),
            Nodes(*frozen(*self.nodes)),
            Joint(*frozen(*self.joint)),
        )

    def node_values(
        self, objective: Objective, levels: int, loss: FloatArray = NO_LOSS
    ) -> Iterator[tuple[FloatArray, Changes]]:
        """The values of all nodes in criterion 0, (levels, n), with budgets 1, 2, ..: so many at a
        time, and the changes of choice among them, up to the limit of the objective.

        Where the start has paid too much when it gets to a node, there is no number. The arrays are
        used again for the next levels.
        """
        model, work = self.up_to(objective.limit), self.work(objective, rows=levels)
        size = (levels + 1) * self.n
        found = Changes(*(np.empty(size, dtype=kind) for kind in (np.int32, np.int64, np.int32)))
        out_value = np.empty((levels + 1, len(objective.criteria)))
        values = work.value.reshape(len(objective.criteria), -1, self.n)[0, work.reach :]
        first, w = 0, 1
        while w <= objective.limit:
            span = first, w + levels - 1, 0
            first, at, *_ = sweep(model, objective, loss, span, np.inf, work, found, out_value)
            now = values[: first - w]
            now[self.nodes.least + np.arange(w, first)[:, None] > objective.limit] = np.nan
            w = first
            yield now, Changes(*(each[:at] for each in found))

    def work(
        self, objective: Objective, max_bytes: float = math.inf, rows: int | None = None
    ) -> Work:
        """What a sweep from level 0 on works on: `rows` levels stay before the window moves, or
        about as many as stay near the processor.
        """
        n, count = self.n, len(objective.criteria)
        n_prices = max(len(objective.prices), 1)
        reach, row = self.reach(objective.limit), 8 * n * n_prices * count
        if rows is None:  # twice those needed, and a few more, so that they seldom move
            most = min(max_bytes // row, min(objective.limit, 2**31) + reach)
            rows = int(max(min(max(WINDOW // row, 2 * reach, reach + FEW_ROWS), most) - reach, 1))
        return work_on(self.nodes, (count, len(self.choice_cost)), reach, (reach + rows) * n_prices)


def value_behind(nodes: Nodes, target: Array) -> FloatArray:
    """V* of some nodes, 0 at goals."""
    return np.where(target < 0, 0.0, nodes.value[target])


def ends_of(
    node_choices: IntArray,
    choice: IntArray,
    cost: IntArray,
    probability: FloatArray,
    cost_to_go: FloatArray,
) -> Ends:
    """Outcomes that need no row, given the choice of each, rising."""
    distinct, of_end = np.unique(choice, return_inverse=True)
    of_node = np.searchsorted(distinct, node_choices)
    start = offsets_of(of_end, len(distinct))
    return Ends(*frozen(of_node, distinct, start, cost, probability, cost_to_go))


class Choices(NamedTuple):
    """Choices in the order of their nodes, and their outcomes.

    `choice` is what the caller calls each, and `node` whose it is. By outcome: `owner`, the choice
    that it belongs to, its `level`, a cost in units, its `target`, -1 at goals, and `probability`.
    `loops` says whether probabilities of zero-cost loops were divided out.
    """

    choice: Array
    node: Array
    owner: Array
    level: Array
    target: Array
    probability: Array
    loops: bool

    def rounding(self) -> float:
        """The relative error that one step adds at most.

        k + 8 units for k terms of a sum, twice k where loops were divided out, and what the
        probabilities are off from the decimals as written (`kernels/rounding.py`).
        """
        most = int(np.max(np.bincount(self.owner), initial=0))
        return ((2 if self.loops else 1) * most + 8 + ROW * most + FIXED) * UNIT


def zero_cost_blocks(zero_cost: Transitions) -> tuple[IntArray, Array]:
    """Where each node stands in the order of zero-cost edges, which are all that is given.

    The first result is the most other components on a way from a node; the second numbers the
    components of several nodes, which need one another, with -1 for all other nodes.
    """
    component, count = zero_cost.components()
    depth = np.zeros(count, dtype=np.int64)
    source, target = component[zero_cost.source], component[zero_cost.target]
    by_component = np.argsort(source, kind="stable")
    longest_ways(source[by_component], target[by_component], depth)
    size = np.bincount(component, minlength=count)
    if size.max(initial=0) > LARGEST_JOINT:
        raise ModelError(
            f"{size.max()} states are joined by cycles of free outcomes; the exact solver takes at"
            f" most {LARGEST_JOINT} at once"
        )
    return depth[component], np.where(size[component] > 1, component, -1)


def block_starts(depth: Array, group: Array) -> IntArray:
    """Where each block starts, and where the last ends, if nodes are sorted by these two."""
    new = (np.diff(depth) != 0) | (np.diff(group) != 0)
    return np.concatenate(([0], np.flatnonzero(new) + 1, [len(depth)]))


def joint_of(choices: Choices, nodes: Nodes) -> tuple[Joint, Any]:
    """The zero-cost outcomes inside joint blocks, and which outcomes are all others."""
    if not nodes.block_joint.any():
        empty = np.zeros(0)
        nothing = Joint(np.zeros(1, dtype=np.int64), empty.astype(np.int64), empty, empty)
        return nothing, slice(None)
    block = owners(nodes.block_start)
    stays = (choices.target >= 0) & (block[choices.target] == block[choices.node[choices.owner]])
    inner = stays & (choices.level == 0) & nodes.block_joint[block[choices.target]]
    inner_edges, count = np.flatnonzero(inner), len(choices.choice)
    target = choices.target[inner_edges]
    joint = Joint(
        inner_start=offsets_of(choices.owner[inner_edges], count),
        inner_target=target - nodes.block_start[block[target]],
        inner_probability=choices.probability[inner_edges],
        leave=np.bincount(choices.owner[~inner], choices.probability[~inner], count),
    )
    return joint, ~inner


def chain_layout(
    rows: Transitions, value: FloatArray, least: IntArray | None = None, start: int = 0
) -> tuple[Layout, IntArray]:
    """A chain laid out, and its nodes in their order: every node has one choice.

    Targets beyond the rows are goals; `value` (n,) is V in units, and `least` (n,) the least cost,
    in units, at which the start gets to a node; 0 where other starts are asked for, too.
    """
    n = rows.n
    least = np.zeros(n, dtype=np.int64) if least is None else least
    assert rows.level is not None
    loop = (rows.level == 0) & (rows.source == rows.target)
    rows = rows.without_self_loops(loop)
    assert rows.level is not None
    depth, group = zero_cost_blocks(rows.only((rows.level == 0) & (rows.target < n)))
    order = np.lexsort((group, depth))
    position = np.full(n + 1, -1, dtype=np.int64)
    position[order] = np.arange(n)
    rows = rows.restrict(order).renumber(position)
    assert rows.level is not None
    first = block_starts(depth[order], group[order])
    zero = np.zeros(n, dtype=np.int64)
    blocks = first, group[order][first[:-1]] >= 0
    nodes = Nodes(*blocks, least[order], zero, np.ones(n, dtype=np.int64), value[order])
    each = np.arange(n)
    choices = Choices(
        each, each, rows.source, rows.level, rows.target, rows.probability, bool(loop.any())
    )
    joint, outer = joint_of(choices, nodes)
    layout = Layout(
        nodes=nodes,
        node_choices=np.arange(n + 1),
        choice_cost=rows.sums(rows.probability * rows.level),
        outcome_start=offsets_of(rows.source[outer], n),
        target=rows.target[outer],
        level=rows.level[outer],
        probability=rows.probability[outer],
        joint=joint,
        start=int(position[start]),
        rounding=choices.rounding(),
        depth=int(depth.max(initial=0)) + 1,
        visits=0.0,
    )
    return layout, order


def nearest_ends(game: Game, level: IntArray) -> FloatArray:
    """The least cost, in units, at which each node of a game can arrive: (n,). `level` (A,) are
    costs in units.
    """
    given = game.given
    n = len(given.state_choices) - 1
    member, into = grouped(given.target, n + 1)
    nearest = np.full(n + 1, np.inf)
    source = owners(given.choice_outcomes[given.state_choices])
    cheapest_way(into, source[member], level[member].astype(np.float64), n, nearest)
    return nearest[:n]


def interval_layout(
    game: Game,
    level: IntArray,
    chosen: IntArray,
    value: FloatArray,
    certain_cost: IntArray,
    start: int,
) -> tuple[Layout, IntArray, IntArray]:
    """A game against nature laid out for budgets, as far as `start` can get; its nodes and rows
    behind those of the layout, -1 for the goal's.

    `level` (A,) are costs in units, `chosen` (n,) the rows that are best with the budget spent,
    `value` (n,) what they are worth then, in units, and `certain_cost` (n,) the budgets up to which
    every run exceeds them. Free outcomes must not go round.
    """
    given = game.given
    n, transitions = (
        len(value),
        Transitions(
            given.choice_outcomes[given.state_choices], given.target, game.low, game.cost, level
        ),
    )
    least = np.full(n + 1, np.inf)
    cheapest_way(
        np.append(transitions.row_start, len(level)),
        transitions.target,
        level.astype(np.float64),
        start,
        least,
    )
    depth = zero_cost_blocks(transitions.only((level == 0) & (transitions.target < n)))[0]
    selected = np.flatnonzero(np.isfinite(least[:n]))
    # The first level that is read: by the node itself, or by one that leads to it, beyond what is
    # sure there. The start's are all read.
    begin = np.append(certain_cost + 1, 1)
    inside = np.flatnonzero(np.isfinite(least[transitions.source]))
    np.minimum.at(
        begin,
        transitions.target[inside],
        (certain_cost + 1)[transitions.source[inside]] - level[inside],
    )
    begin[least == 0] = 1
    begin = np.maximum(begin, 1)
    node = selected[np.lexsort((least[selected], begin[selected], depth[selected]))]
    position = np.zeros(n + 1, dtype=np.int64)
    position[node] = np.arange(1, len(node) + 1)
    owner = owners(given.state_choices)
    row = np.flatnonzero(np.isfinite(least[owner]))
    row = row[np.lexsort((row != chosen[owner[row]], position[owner[row]]))]
    outcome, outcome_start = members_of(given.choice_outcomes, row)
    blocks = np.append(0, block_starts(depth[node], np.zeros(len(node))) + 1)
    nodes = Nodes(
        blocks,
        np.zeros(len(blocks) - 1, dtype=np.bool_),
        np.append(0, least[node]).astype(np.int64),
        np.append(0, certain_cost[node]),
        np.append(1, begin[node]),
        np.append(0.0, value[node]),
    )
    most = int(np.diff(outcome_start).max(initial=1))
    layout = Layout(
        nodes=nodes,
        node_choices=np.append(0, offsets_of(position[owner[row]] - 1, len(node)) + 1),
        choice_cost=np.zeros(len(row) + 1),
        outcome_start=np.append(0, outcome_start + 1),
        target=np.append(-1, position[given.target[outcome]]).astype(np.int32),
        level=np.append(0, level[outcome]),
        probability=np.append(1.0, game.low[outcome]),
        joint=Joint(
            np.zeros(1, dtype=np.int64), np.zeros(0, dtype=np.int64), np.zeros(0), np.zeros(0)
        ),
        start=int(position[start]),
        rounding=(SERVED * most + FIXED) * UNIT,
        depth=int(depth.max(initial=0)) + 1,
        visits=0.0,
        # Of outcomes that have a row in the table: all but the goal's.
        spread=Spread(game.spread.width[outcome], np.append(0.0, game.spread.rest[row])),
        nature=game.nature,
    )
    return layout, np.append(-1, node), np.append(-1, row)
