"""The recursion over the budget left (`budget.py`) on those pairs (node, budget) alone that the start can reach.

A pair has the number `budget * (n + 1) + node`; ascending numbers are the order of the recursion, because free outcomes lead to lower nodes or
stay inside a joint block. The pairs are found first, by following every choice from the start with every budget asked for: an outcome of
cost c leads from budget b to b - c, and needs a pair while b > c; beyond that there is the closed form. A table of open addressing tells
where a pair stands.

Which budgets to ask for at the start is found the same way, by the cost so far instead of the budget left: those at which some policy may
arrive. Arrivals count as node n.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tailpath.kernels.budget import BASE, OWN, REST, SLOPE, Levels, settle_gains
from tailpath.kernels.free_moves import Joint
from tailpath.kernels.jit import kernel
from tailpath.kernels.rounding import TINY

Array = NDArray[Any]
#: An odd number near 2^64 / golden ratio: its multiples spread over the upper bits.
SPREAD = np.uint64(0x9E3779B97F4A7C15)
#: The first size of a table of pairs, as a power of two.
FIRST_SIZE = 1024


class Web(NamedTuple):
    """What the search sees beside the levels: whether a segment may end at a goal, and the block of every node."""

    arrives: Array
    block: Array


@kernel
def where(table: Array, key: Array, wanted: int) -> int:
    """The cell of a pair in the table, or the empty one where it belongs. The table is as large as a power of two."""
    mask = len(table) - 1
    cell = np.int64((np.uint64(wanted) * SPREAD) >> np.uint64(20)) & mask
    while table[cell] >= 0 and key[table[cell]] != wanted:
        cell = (cell + 1) & mask
    return int(cell)


@kernel
def entered(table: Array, key: Array, count: int, wanted: int) -> int:
    """The count of the pairs once this one is among them. There must be room."""
    cell = where(table, key, wanted)
    if table[cell] < 0:
        table[cell], key[count] = count, wanted
        count += 1
    return count


@kernel
def longer(key: Array, count: int, room: int) -> tuple[Array, Array]:
    """A table of the pairs and their numbers, with room for so many more."""
    size = FIRST_SIZE
    while size < count + room:
        size *= 2
    longer_key, table = np.empty(size, dtype=np.int64), np.full(2 * size, -1, dtype=np.int32)
    for i in range(count):
        longer_key[i] = key[i]
        table[where(table, longer_key, key[i])] = i
    return table, longer_key


@kernel
def members(levels: Levels, web: Web, node: int) -> tuple[int, int]:
    """Whoever is in a joint block may get to all of its nodes at no cost; from any other node, to itself alone."""
    block = web.block[node]
    if levels.block_joint[block]:
        return levels.block_start[block], levels.block_start[block + 1]
    return node, node + 1


@kernel
def spread(levels: Levels, web: Web, start: int, first: Array, sign: int, low: int, high: int, most: int) -> tuple[Array, Array]:
    """All pairs that the start can reach from the amounts `first`, where a cost c takes amount b to b + sign * c, from `low` to `high`.

    With sign -1 amounts are budgets left; with sign 1 they are costs so far, and arrivals count as node n. Returns the table of where the pairs
    stand and their numbers, those of the start with `first` before all others. Gives up beyond `most` pairs.
    """
    n, count, done = len(levels.least), 0, 0
    table, key = longer(first, 0, len(first))
    for amount in first:
        count = entered(table, key, count, amount * (n + 1) + start)
    while done < count <= most:
        amount, node = key[done] // (n + 1), key[done] % (n + 1)
        done += 1
        if node == n:
            continue
        begin, end = members(levels, web, node)
        segments = levels.choice_segments[levels.node_choices[node]], levels.choice_segments[levels.node_choices[node + 1]]
        room = (
            np.int64(levels.segment_outcomes[segments[1]] - levels.segment_outcomes[segments[0]] + segments[1] - segments[0]) + end - begin
        )
        if count + room > len(key):
            table, key = longer(key, count, 2 * room + count)
        for other in range(begin, end):
            count = entered(table, key, count, amount * (n + 1) + other)
        for segment in range(segments[0], segments[1]):
            then = amount + sign * levels.segment_level[segment]
            if low <= then <= high:
                if sign > 0 and web.arrives[segment]:
                    count = entered(table, key, count, then * (n + 1) + n)
                for outcome in range(levels.segment_outcomes[segment], levels.segment_outcomes[segment + 1]):
                    count = entered(table, key, count, then * (n + 1) + levels.target[outcome])
    return table, key[:count]


@kernel
def pair_value(
    levels: Levels, accounts: Array, i: int, choice: int, budget: int, table: Array, key: Array, value: Array, steps: Array
) -> tuple[float, int]:
    """The value of a choice in account i with a budget, and the most blocks that a run may still meet before the budget is spent."""
    n = len(levels.least)
    total, most = accounts[i, OWN] * levels.choice_cost[choice] if accounts[i, OWN] != 0.0 else 0.0, 0
    for segment in range(levels.choice_segments[choice], levels.choice_segments[choice + 1]):
        cost = levels.segment_level[segment]
        if budget > cost:
            for outcome in range(levels.segment_outcomes[segment], levels.segment_outcomes[segment + 1]):
                pair = table[where(table, key, (budget - cost) * (n + 1) + levels.target[outcome])]
                total += levels.probability[outcome] * value[pair, i]
                most = max(most, steps[pair])
        else:
            spent = accounts[i, BASE] + accounts[i, SLOPE] * (cost - budget)
            total += accounts[i, REST] * levels.segment_mean[segment] + levels.segment_mass[segment] * spent
    return total, most


@kernel
def solve_pairs(
    levels: Levels,
    joint: Joint,
    web: Web,
    accounts: Array,
    tie: float,
    table: Array,
    key: Array,
    order: Array,
    policy: Array,
    out_value: Array,
    out_label: Array,
    out_steps: Array,
) -> tuple[float, float]:
    """The recursion over the pairs in `order`, that of their numbers. Fills, for every pair, its value in each account, the label of the choice
    taken and the most blocks a run may meet from there; returns the worst error bound and relative gain left of joint blocks."""
    n, error, left, done = len(levels.least), 0.0, 0.0, 0
    while done < len(order):
        budget, node = key[order[done]] // (n + 1), key[order[done]] % (n + 1)
        first, end = members(levels, web, node)
        offset = levels.node_choices[first]
        gain = np.empty((len(accounts), levels.node_choices[end] - offset))
        most = 0
        for i in range(len(accounts)):
            for k in range(gain.shape[1]):
                gain[i, k], ahead = pair_value(levels, accounts, i, offset + k, budget, table, key, out_value, out_steps)
                most = max(most, ahead)
        if levels.block_joint[web.block[node]]:
            quality = settle_gains(levels, joint, tie, first, end, gain, policy)
            error, left = max(error, quality[0]), max(left, quality[1])
        else:
            policy[node] = offset + best_of(gain, tie)
            for i in range(len(accounts)):
                gain[i, 0] = gain[i, policy[node] - offset]
        # The members of a block are all there, in their order.
        for other in range(first, end):
            pair = order[done]
            for i in range(len(accounts)):
                out_value[pair, i] = gain[i, other - first] if gain[i, other - first] > TINY else 0.0
            out_label[pair] = levels.choice_label[policy[other]]
            out_steps[pair] = most + 1
            done += 1
    return error, left


@kernel
def best_of(gain: Array, tie: float) -> int:
    """The first choice with the least value in account 0; given a tie, of those within it, the one with the least value in account 1."""
    least, second, picked = np.inf, np.inf, 0
    for choice in range(gain.shape[1]):
        value = gain[0, choice]
        if tie == 0.0:
            picked = choice if value < least else picked
        elif value <= least * (1 + tie) and (value < least * (1 - tie) or gain[1, choice] < second):
            second, picked = gain[1, choice], choice
        least = min(least, value)
    return picked
