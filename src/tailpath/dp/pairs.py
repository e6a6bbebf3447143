"""Which pairs (node, amount) can be met, where an outcome of cost c takes an amount b to b + c or b
- c.

A pair is the number `amount * (n + 1) + node`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tailpath.kernels.hash_set import enlarge, insert
from tailpath.kernels.jit import Array, kernel


class PairMoves(NamedTuple):
    """Outcomes by node, with targets, -1 at goals, and integer costs; from a node in a joint block
    one gets to `first_in : end_in` at no cost.
    """

    start: Array
    target: Array
    cost: Array
    first_in: Array
    end_in: Array


@kernel
def reach_pairs(
    moves: PairMoves, start: int, first: Array, sign: int, least: int, largest: int, most: int
) -> Array:
    """All pairs that the start can reach from the amounts `first`, where a cost c takes amount b to
    b + sign * c, from `least` to `largest`.

    With sign -1 amounts are budgets left; with sign 1 they are costs so far, and arrivals count as
    node n. Those of the start with `first` come before all others. Gives up beyond `most` pairs.
    """
    n, count = len(moves.first_in), np.int64(0)
    done = 0
    table, key = enlarge(first, count, len(first))
    for amount in first:
        count = insert(table, key, count, amount * (n + 1) + start)
    while done < count <= most:
        amount, node = key[done] // (n + 1), key[done] % (n + 1)
        done += 1
        if node == n:
            continue
        begin, end = moves.start[node], moves.start[node + 1]
        room = end - begin + moves.end_in[node] - moves.first_in[node]
        if count + room > len(key):
            table, key = enlarge(key, count, 2 * room + count)
        for other in range(moves.first_in[node], moves.end_in[node]):
            count = insert(table, key, count, amount * (n + 1) + other)
        for k in range(begin, end):
            then, to = amount + sign * moves.cost[k], moves.target[k]
            if least <= then <= largest and (to >= 0 or sign > 0):
                count = insert(table, key, count, then * (n + 1) + (to if to >= 0 else n))
    found: Array = key[:count]
    return found
