"""Ways to lay decisions out for the sweep over budgets: a chain, and a game against nature; and
what these share with the layout of a model (`solvers/exact/layout.py`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tailpath.dp.backup import Spread
from tailpath.dp.budget_model import Nodes
from tailpath.dp.games import Game
from tailpath.dp.joint import NO_JOINT, Joint, longest_ways
from tailpath.dp.layout import Layout
from tailpath.errors import ModelError
from tailpath.graph import Array, FloatArray, IntArray, Transitions, members_of, offsets_of, owners

#: Nodes joined by cycles of zero-cost moves are solved together, densely; beyond this many at once
#: the model is refused.
LARGEST_JOINT = 2_000


class Choices(NamedTuple):
    """Choices in the order of their nodes, and their outcomes.

    `choice` is what the caller calls each, and `node` whose it is. By outcome: `owner`, the choice
    that it belongs to, its `level`, a cost in units, its `target`, -1 at goals, and `probability`.
    """

    choice: Array
    node: Array
    owner: Array
    level: Array
    target: Array
    probability: Array


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
        return NO_JOINT, slice(None)
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


def first_levels(
    rows: Transitions, cost_from_start: FloatArray, certain_cost: IntArray
) -> IntArray:
    """The first level of each node that is read: by itself, or by one that leads to it, beyond the
    certain cost there. The start's are all read.
    """
    first = np.append(certain_cost + 1, 0)  # of goals nothing is read
    if certain_cost.any():
        reached = np.isfinite(cost_from_start)
        own = np.where(reached, certain_cost + 1, np.iinfo(np.int64).max)
        read = own[rows.source] - rows.level
        earlier = np.flatnonzero(read < first[rows.target])
        np.minimum.at(first, rows.target[earlier], read[earlier])
        first[:-1][cost_from_start == 0] = 1
    return np.asarray(np.maximum(first[:-1], 1))


def chain_layout(
    rows: Transitions, value: FloatArray, cost_from_start: IntArray | None = None, start: int = 0
) -> tuple[Layout, IntArray]:
    """A chain laid out, and its nodes in their order: every node has one choice.

    Targets beyond the rows are goals; `value` (n,) is V in units, and `cost_from_start` (n,) the
    least cost, in units, at which the start gets to a node; 0 where other starts are asked for,
    too.
    """
    n = rows.n
    if cost_from_start is None:
        cost_from_start = np.zeros(n, dtype=np.int64)
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
    nodes = Nodes(*blocks, cost_from_start[order], zero, zero + 1, value[order])
    each = np.arange(n)
    choices = Choices(each, each, rows.source, rows.level, rows.target, rows.probability)
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
        row_size=np.diff(rows.row_start),
    )
    return layout, order


def game_transitions(game: Game, level: IntArray) -> Transitions:
    """The outcomes of a game by node, with costs in units: (A,)."""
    decisions = game.decisions
    row_start = decisions.choice_outcomes[decisions.state_choices]
    return Transitions(row_start, decisions.target, game.low, game.cost, level)


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
    every run exceeds them. Zero-cost outcomes must form no cycle.
    """
    decisions, n = game.decisions, len(value)
    rows = game_transitions(game, level)
    cost_from_start = rows.costs_from(start)[:-1]
    depth = zero_cost_blocks(rows.only((level == 0) & (rows.target < n)))[0]
    first_level = first_levels(rows, cost_from_start, certain_cost)
    reached = np.isfinite(cost_from_start)
    selected = np.flatnonzero(reached)
    keys = cost_from_start[selected], first_level[selected], depth[selected]
    node = selected[np.lexsort(keys)]
    position = np.zeros(n + 1, dtype=np.int64)
    position[node] = np.arange(1, len(node) + 1)
    owner = owners(decisions.state_choices)
    row = np.flatnonzero(reached[owner])
    row = row[np.lexsort((row != chosen[owner[row]], position[owner[row]]))]
    outcome, outcome_start = members_of(decisions.choice_outcomes, row)
    blocks = np.append(0, block_starts(depth[node], np.zeros(len(node))) + 1)
    nodes = Nodes(
        blocks,
        np.zeros(len(blocks) - 1, dtype=np.bool_),
        np.append(0, cost_from_start[node]).astype(np.int64),
        np.append(0, certain_cost[node]),
        np.append(1, first_level[node]),
        np.append(0.0, value[node]),
    )
    layout = Layout(
        nodes=nodes,
        node_choices=np.append(0, offsets_of(position[owner[row]] - 1, len(node)) + 1),
        choice_cost=np.zeros(len(row) + 1),
        outcome_start=np.append(0, outcome_start + 1),
        target=np.append(-1, position[decisions.target[outcome]]).astype(np.int32),
        level=np.append(0, level[outcome]),
        probability=np.append(1.0, game.low[outcome]),
        joint=NO_JOINT,
        start=int(position[start]),
        row_size=np.append(1, np.diff(outcome_start)),
        # Of outcomes that have a row in the table: all but the goal's.
        spread=Spread(game.spread.width[outcome], np.append(0.0, game.spread.rest[row])),
        nature=game.nature,
    )
    return layout, np.append(-1, node), np.append(-1, row)
