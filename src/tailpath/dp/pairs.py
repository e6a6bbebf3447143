"""Which pairs (node, amount) can be met, where an outcome of cost c takes an amount b to b + c or b - c: a search over a table of open addressing.

A pair has the number `amount * width + node`. The table holds places in the list of the pairs found so far, or -1, and is as large as a power of two.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tailpath.kernels.jit import kernel

Array = NDArray[Any]
#: An odd number near 2^64 / golden ratio: its multiples spread over the upper bits.
SPREAD = np.uint64(0x9E3779B97F4A7C15)
#: The first size of a list of pairs, as a power of two.
FIRST_SIZE = 1024


class Moves(NamedTuple):
    """Outcomes by node, with targets, -1 at goals, and whole costs; from a node in a joint block one gets to `first_in : end_in` at no cost."""

    start: Array
    target: Array
    cost: Array
    first_in: Array
    end_in: Array


@kernel
def where(table: Array, key: Array, wanted: int) -> int:
    """The cell of a pair in the table, or the empty one where it belongs."""
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
def reach_pairs(moves: Moves, start: int, first: Array, sign: int, low: int, high: int, most: int) -> Array:
    """All pairs that the start can reach from the amounts `first`, where a cost c takes amount b to b + sign * c, from `low` to `high`.

    With sign -1 amounts are budgets left; with sign 1 they are costs so far, and arrivals count as node n. Those of the start with `first` come
    before all others. Gives up beyond `most` pairs.
    """
    n, count, done = len(moves.first_in), 0, 0
    table, key = longer(first, 0, len(first))
    for amount in first:
        count = entered(table, key, count, amount * (n + 1) + start)
    while done < count <= most:
        amount, node = key[done] // (n + 1), key[done] % (n + 1)
        done += 1
        if node == n:
            continue
        begin, end = moves.start[node], moves.start[node + 1]
        room = end - begin + moves.end_in[node] - moves.first_in[node]
        if count + room > len(key):
            table, key = longer(key, count, 2 * room + count)
        for other in range(moves.first_in[node], moves.end_in[node]):
            count = entered(table, key, count, amount * (n + 1) + other)
        for k in range(begin, end):
            then, to = amount + sign * moves.cost[k], moves.target[k]
            if low <= then <= high and (to >= 0 or sign > 0):
                count = entered(table, key, count, then * (n + 1) + (to if to >= 0 else n))
    found: Array = key[:count]
    return found
