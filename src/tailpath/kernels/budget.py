"""The recursion over the budget left, one level of whole cost units at a time.

`U(s, w)` is the least E[(Z - w)+] from node s with budget w. A level w > 0 needs the levels w - c for the costs c that occur, so they live in a
ring of `capacity` rows, flat: level v of node s is `ring[(v % capacity) * n + s]`. At w <= 0 nothing is stored: U(s, w) = V*(s) - w.

The outcomes of a choice are grouped by cost into *segments*. While w <= cost, a whole segment is its closed form,

    sum p (V*(t) + cost - w) = segment_mean + segment_mass * (cost - w),

and afterwards its gathered sum over targets that are no goals (a goal with budget left is worth 0). So neither a goal nor a cost beyond the
budget ever needs a row. Counters are unsigned: numba then leaves out the test for negative indices, which is a third of the time.

Nodes come in *blocks*, in an order in which free outcomes only lead back: the nodes of a plain block do not need one another at the same level,
the nodes of a joint block do, and are solved together (`free_moves.py`). Inside a plain block nodes are sorted by the least cost at which the
start can reach them; at level w only those with least + w <= cutoff can matter, and the cutoff falls as better values are found.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tailpath.kernels.free_moves import Joint, joint_backup, joint_optimum, joint_values
from tailpath.kernels.jit import kernel, prange
from tailpath.kernels.rounding import TINY

Array = NDArray[Any]


class Levels(NamedTuple):
    """The model as the recursion sees it; see the module's docstring. `choice_cost` is the expected cost of a choice in units."""

    block_start: Array
    block_joint: Array
    least: Array
    node_choices: Array
    choice_segments: Array
    choice_label: Array
    choice_cost: Array
    segment_level: Array
    segment_outcomes: Array
    segment_mass: Array
    segment_mean: Array
    target: Array
    probability: Array


class Aim(NamedTuple):
    """What is minimised at the start node, `weight * w + excess_price * U + mean_price * M`, with M the expected cost.

    Levels matter up to `limit`, and until `weight * w + floor` exceeds the best value found.
    `tie` is the relative difference within which two choices count as equal, and then the smaller M decides; 0 for none.
    """

    start: int
    weight: float
    excess_price: float
    mean_price: float
    floor: float
    limit: float
    tie: float


@kernel
def choice_value(levels: Levels, choice: int, w: int, slot: int, capacity: int, ring: Array, slope: float) -> float:
    """The value of a choice at budget w, whose row is `slot`; `slope` is 1 for the excess over the budget, 0 for a plain expectation."""
    n = len(levels.least)
    total = 0.0
    segment, last = np.uint64(levels.choice_segments[choice]), np.uint64(levels.choice_segments[choice + 1])
    outcome = np.uint64(levels.segment_outcomes[segment])
    while segment < last:
        end = np.uint64(levels.segment_outcomes[segment + np.uint64(1)])
        cost = levels.segment_level[segment]
        if w > cost:
            back = slot - cost
            row = np.uint64((back if back >= 0 else back + capacity) * n)
            while outcome < end:
                total += levels.probability[outcome] * ring[row + np.uint64(levels.target[outcome])]
                outcome += np.uint64(1)
        else:
            total += levels.segment_mean[segment] + slope * (levels.segment_mass[segment] * (cost - w))
            outcome = end
        segment += np.uint64(1)
    return total


@kernel
def best_value(levels: Levels, node: int, w: int, slot: int, capacity: int, ring: Array) -> tuple[float, int]:
    """The least excess at a node, and the first choice that attains it."""
    best, picked = np.inf, 0
    for choice in range(levels.node_choices[node], levels.node_choices[node + 1]):
        value = choice_value(levels, choice, w, slot, capacity, ring, 1.0)
        picked = choice if value < best else picked
        best = min(best, value)
    return best if best > TINY else 0.0, picked


@kernel
def best_pair(
    levels: Levels, aim: Aim, node: int, w: int, slot: int, capacity: int, ring: Array, ring_mean: Array
) -> tuple[float, float, int]:
    """The excess and the mean of the choice with the least price; of choices whose prices tie, the one with the least mean."""
    least, best_excess, best_mean, picked = np.inf, 0.0, np.inf, 0
    for choice in range(levels.node_choices[node], levels.node_choices[node + 1]):
        excess = choice_value(levels, choice, w, slot, capacity, ring, 1.0)
        mean = levels.choice_cost[choice] + choice_value(levels, choice, w, slot, capacity, ring_mean, 0.0)
        price = aim.excess_price * excess + aim.mean_price * mean
        if price < least * (1 - aim.tie) or (price <= least * (1 + aim.tie) and mean < best_mean and aim.tie > 0):
            best_excess, best_mean, picked = excess, mean, choice
        least = min(least, price)
    return best_excess if best_excess > TINY else 0.0, best_mean, picked


@kernel
def value_block(levels: Levels, begin: int, end: int, w: int, slot: int, capacity: int, ring: Array, out_row: Array) -> None:
    for node in range(begin, end):
        ring[slot * len(levels.least) + node], picked = best_value(levels, node, w, slot, capacity, ring)
        out_row[node] = levels.choice_label[picked]


@kernel(parallel=True)
def value_block_threads(levels: Levels, begin: int, end: int, w: int, slot: int, capacity: int, ring: Array, out_row: Array) -> None:
    for node in prange(begin, end):
        ring[slot * len(levels.least) + node], picked = best_value(levels, node, w, slot, capacity, ring)
        out_row[node] = levels.choice_label[picked]


@kernel
def pair_block(
    levels: Levels, aim: Aim, begin: int, end: int, w: int, slot: int, capacity: int, ring: Array, ring_mean: Array, out_row: Array
) -> None:
    row = slot * len(levels.least)
    for node in range(begin, end):
        ring[row + node], ring_mean[row + node], picked = best_pair(levels, aim, node, w, slot, capacity, ring, ring_mean)
        out_row[node] = levels.choice_label[picked]


@kernel(parallel=True)
def pair_block_threads(
    levels: Levels, aim: Aim, begin: int, end: int, w: int, slot: int, capacity: int, ring: Array, ring_mean: Array, out_row: Array
) -> None:
    row = slot * len(levels.least)
    for node in prange(begin, end):
        ring[row + node], ring_mean[row + node], picked = best_pair(levels, aim, node, w, slot, capacity, ring, ring_mean)
        out_row[node] = levels.choice_label[picked]


@kernel
def settle_jointly(
    levels: Levels, joint: Joint, aim: Aim, first: int, last: int, w: int, capacity: int, ring: Array, ring_mean: Array, policy: Array
) -> tuple[float, float]:
    """A joint block at budget w: first the price, then, among choices that tie, the mean. Returns what `joint_optimum` returns.

    Without `ring_mean` (of length 0) the excess alone counts.
    """
    offset, slot, pairs = levels.node_choices[first], w % capacity, len(ring_mean) > 0
    size = levels.node_choices[last] - offset
    excess, mean, price = np.empty(size), np.zeros(size), np.empty(size)
    for k in range(size):
        excess[k] = choice_value(levels, offset + k, w, slot, capacity, ring, 1.0)
        if pairs:
            mean[k] = levels.choice_cost[offset + k] + choice_value(levels, offset + k, w, slot, capacity, ring_mean, 0.0)
        price[k] = aim.excess_price * excess[k] + aim.mean_price * mean[k]
    allowed = np.ones(size, dtype=np.bool_)
    value = np.empty(last - first)
    quality: tuple[float, float] = joint_optimum(joint, levels.node_choices, first, last, price, allowed, policy, value)
    if aim.tie > 0:
        for i in range(last - first):
            for choice in range(levels.node_choices[first + i], levels.node_choices[first + i + 1]):
                total = joint_backup(joint, choice, price[choice - offset], value)
                allowed[choice - offset] = choice == policy[first + i] or total <= value[i] * (1 + aim.tie)
        joint_optimum(joint, levels.node_choices, first, last, mean, allowed, policy, value)
    row = slot * len(levels.least)
    joint_values(joint, levels.node_choices, first, last, policy, excess, value)
    for i in range(last - first):
        ring[row + first + i] = value[i] if value[i] > TINY else 0.0
    if pairs:
        joint_values(joint, levels.node_choices, first, last, policy, mean, value)
        for i in range(last - first):
            ring_mean[row + first + i] = value[i]
    return quality


@kernel
def cutoff_of(aim: Aim, best: float) -> float:
    """No level, and no node at a level, beyond this can matter; a little more than the exact bound, to be safe from rounding."""
    if aim.weight == 0:
        return aim.limit
    return min(aim.limit, (best - aim.floor) / aim.weight * (1 + 1e-12))


@kernel
def still_active(least: Array, first: int, active: int, room: float) -> int:
    """The end of those nodes of a plain block that the start can still reach with the budget left; it only ever falls."""
    while active > first and least[active - 1] > room:
        active -= 1
    return active


def _driver(threads: bool, pairs: bool, joints: bool) -> Callable[..., Any]:
    """The loop over levels. The flags are constants of the closure: the compiler drops the branches not taken and caches each by its flags."""

    def raise_budget(
        levels: Levels,
        joint: Joint,
        aim: Aim,
        first: int,
        last: int,
        best: float,
        capacity: int,
        ring: Array,
        ring_mean: Array,
        active: Array,
        policy: Array,
        out_choice: Array,
        out_excess: Array,
        out_mean: Array,
    ) -> tuple[int, float, float, float]:
        n = len(levels.least)
        error, left, w = 0.0, 0.0, first
        while w <= last and w <= cutoff_of(aim, best):
            room = cutoff_of(aim, best) - w
            slot = w % capacity
            row = out_choice[w - first]
            for block in range(len(levels.block_joint)):
                begin, end = levels.block_start[block], levels.block_start[block + 1]
                if joints and levels.block_joint[block]:
                    if levels.least[begin] <= room:
                        quality = settle_jointly(levels, joint, aim, begin, end, w, capacity, ring, ring_mean, policy)
                        error, left = max(error, quality[0]), max(left, quality[1])
                        for node in range(begin, end):
                            row[node] = levels.choice_label[policy[node]]
                    continue
                end = active[block] = still_active(levels.least, begin, active[block], room)
                if pairs:
                    if threads:
                        pair_block_threads(levels, aim, begin, end, w, slot, capacity, ring, ring_mean, row)
                    else:
                        pair_block(levels, aim, begin, end, w, slot, capacity, ring, ring_mean, row)
                elif threads:
                    value_block_threads(levels, begin, end, w, slot, capacity, ring, row)
                else:
                    value_block(levels, begin, end, w, slot, capacity, ring, row)
            out_excess[w - first] = ring[slot * n + aim.start]
            value = aim.weight * w + aim.excess_price * out_excess[w - first]
            if pairs:
                out_mean[w - first] = ring_mean[slot * n + aim.start]
                value += aim.mean_price * out_mean[w - first]
            best = min(best, value)
            w += 1
        return w, best, error, left

    return raise_budget


@cache
def raise_budget(threads: bool, pairs: bool, joints: bool) -> Callable[..., Any]:
    """The compiled loop that raises the budget from level `first` to `last`, or until nothing beyond can matter.

    It fills the rows `out_choice[w - first]` and the values at the start, and returns the first level not done, the best value found, and
    the worst error bound and relative gain left of joint blocks.
    """
    compiled: Callable[..., Any] = kernel(_driver(threads, pairs, joints))
    return compiled
