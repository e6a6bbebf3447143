"""Rows laid out for the sweep over budgets: those of a model, of a chain, or of a game against
nature.

A zero-cost outcome back to its own node is divided out. What zero-cost outcomes remain between
nodes decides the order of the blocks: they lead to earlier blocks, or within a joint one.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tailpath.dp.budget_model import Nodes
from tailpath.dp.joint import NO_JOINT, Joint, longest_ways
from tailpath.dp.layout import Layout
from tailpath.errors import ModelError
from tailpath.graph import Array, BoolArray, FloatArray, IntArray, Transitions, members_of, owners

#: Nodes joined by cycles of zero-cost moves are solved together, densely; beyond this many at once
#: the model is refused.
LARGEST_JOINT = 2_000
#: Closed forms take at most this share of V* off it: four bits of it cancel.
LEFT_OUT = 15 / 16


def lay_out(
    rows: Transitions,
    node_choices: IntArray,
    value: FloatArray,
    start: int,
    *,
    first: BoolArray | None = None,
    unavoidable_cost: IntArray | None = None,
    cost_from_start: Array | None = None,
) -> tuple[Layout, NDArray[np.int32]]:
    """Choices laid out, as far as the start can get, and where each node stands then: (n + 1,), -1
    for those left out and for goals.

    `rows` has one row for each choice, with costs in units; those of node s are `node_choices[s] :
    node_choices[s + 1]`, and targets beyond the nodes are goals. `value` (n,) is V in units;
    `first` marks the choice of each node that comes first, which wins ties; `unavoidable_cost` (n,)
    are the budgets up to which every run exceeds them, and which are left to closed forms.
    `cost_from_start` (n,) is the least cost at which the start gets to a node; where it is given,
    other starts may be asked for, too.
    """
    n = len(node_choices) - 1
    by_node = rows.joined(node_choices)
    if cost_from_start is None:
        cost_from_start = by_node.costs_from(start)[:-1]
    if unavoidable_cost is None:
        unavoidable_cost = np.zeros(n, dtype=np.int64)
    order, nodes = _ordered(by_node, cost_from_start, unavoidable_cost, value)
    position = np.full(n + 1, -1, dtype=np.int32)
    position[order] = np.arange(len(order))
    choice, starts = members_of(node_choices, order)
    node = owners(starts, np.int32)
    if first is not None:
        choice = choice[np.argsort(2 * node.astype(np.int64) - first[choice], kind="stable")]
    rows = rows.restrict(choice).renumber(position)
    assert rows.level is not None
    row_size = np.diff(rows.row_start)
    loops = (rows.level == 0) & (rows.target == node[rows.source])
    rows = rows.without(loops)
    assert rows.level is not None
    choice_cost = rows.sums(rows.probability * rows.level)
    joint, outer = _joint_of(rows, node, nodes)
    assert outer.level is not None
    layout = Layout(
        nodes=nodes,
        node_choices=starts,
        choice=choice,
        choice_cost=choice_cost,
        outcome_start=outer.row_start,
        target=outer.target,
        level=outer.level,
        probability=outer.probability,
        joint=joint,
        start=int(position[start]),
        row_size=row_size,
    )
    return layout, position


def _ordered(
    rows: Transitions, cost_from_start: FloatArray, unavoidable_cost: IntArray, value: FloatArray
) -> tuple[IntArray, Nodes]:
    """The nodes in the order of the sweep, and as the sweep reads them. Plain blocks are sorted by
    the first level that is read, and by the cost from the start.
    """
    reached = np.isfinite(cost_from_start)
    depth, group = np.zeros(rows.n, dtype=np.int64), np.full(rows.n, -1)
    zero_cost = np.asarray(rows.level == 0)
    if zero_cost.any():
        zero_cost &= (rows.target < rows.n) & (rows.target != rows.source) & reached[rows.source]
        depth, group = _zero_cost_blocks(rows.only(zero_cost))
    joint = group >= 0
    unavoidable_cost = np.where(joint, 0, unavoidable_cost)
    first_level = first_levels(rows, cost_from_start, unavoidable_cost)
    selected = np.flatnonzero(reached)
    keys = cost_from_start, np.where(joint, 1, first_level), group, depth
    node = selected[np.lexsort(tuple(key[selected] for key in keys))]
    begins = (np.diff(depth[node]) != 0) | (np.diff(group[node]) != 0)
    first = np.concatenate(([0], np.flatnonzero(begins) + 1, [len(node)]))
    by_node = cost_from_start[node].astype(np.int64), unavoidable_cost[node], first_level[node]
    # A start that is a goal reaches no node.
    together = np.append(joint[node], False)[first[:-1]]
    return node, Nodes(first, together, *by_node, value[node])


def unavoidable_costs(rows: Transitions, value: FloatArray, late: bool = False) -> IntArray:
    """The budgets up to which every run from a node exceeds them, in units. Of excesses V - w, the
    closed form, digits cancel: only a share of V is left out, unless it is lateness that counts.
    """
    nearest = rows.distances().least[: rows.n]
    if not late:
        nearest = np.minimum(nearest, LEFT_OUT * value)
    return np.nan_to_num(np.floor(nearest), posinf=0.0).astype(np.int64)


def _zero_cost_blocks(zero_cost: Transitions) -> tuple[IntArray, Array]:
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
            f"{size.max()} states are joined by zero-cost cycles; the exact solver takes at most"
            f" {LARGEST_JOINT} at once"
        )
    return depth[component], np.where(size[component] > 1, component, -1)


def _joint_of(rows: Transitions, node: Array, nodes: Nodes) -> tuple[Joint, Transitions]:
    """The zero-cost outcomes inside joint blocks, and all others; `node` is that of each choice."""
    if not nodes.block_joint.any():
        return NO_JOINT, rows
    block = np.append(owners(nodes.block_start), -1)  # goals are in none
    inner = (rows.level == 0) & (block[rows.target] == block[node[rows.source]])
    inner &= nodes.block_joint[block[rows.target]]
    inside, outer = rows.only(inner), rows.only(~inner)
    target = inside.target - nodes.block_start[block[inside.target]]
    leave = outer.sums(outer.probability)
    return Joint(inside.row_start, target, inside.probability, leave), outer


def first_levels(
    rows: Transitions, cost_from_start: FloatArray, unavoidable_cost: IntArray
) -> IntArray:
    """The first level of each node whose value is read: by its own next level, or by a node that
    leads to it, at budgets above that node's unavoidable cost. Those of the start are all read.
    """
    first = np.append(unavoidable_cost + 1, 0)  # of goals nothing is read
    if unavoidable_cost.any():
        reached = np.isfinite(cost_from_start)
        own = np.where(reached, unavoidable_cost + 1, np.iinfo(np.int64).max)
        read = own[rows.source] - rows.level
        earlier = np.flatnonzero(read < first[rows.target])
        np.minimum.at(first, rows.target[earlier], read[earlier])
        first[:-1][cost_from_start == 0] = 1
    return np.asarray(np.maximum(first[:-1], 1))


def chain_layout(
    rows: Transitions, value: FloatArray, cost_from_start: Array | None = None, start: int = 0
) -> tuple[Layout, IntArray]:
    """A chain laid out, in which every node has one choice, and its nodes in their order: for all
    starts, unless the least costs at which one of them gets to every node are given.
    """
    if cost_from_start is None:
        cost_from_start = np.zeros(rows.n)
    layout, _ = lay_out(rows, np.arange(rows.n + 1), value, start, cost_from_start=cost_from_start)
    return layout, layout.choice
