"""Monte Carlo runs of a chain, each with a random number generator of its own.

Run r is driven by xoshiro256+ (Blackman and Vigna), its four words set by the mixing function of splitmix64 from four keys and the number r.
The mixing function is a bijection, so no two runs of a seed share their words, and a run does not depend on which thread it falls to or
on how many others there are.

A short row lists its arrows by falling probability with their cumulative sums, and is searched from the front: with the rows of planning
problems this is about twice as fast as alias tables, since the first arrow is nearly always the one. Long rows are searched by halving.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tailpath.kernels.jit import kernel

Array = NDArray[Any]
#: Rows longer than this are halved until they are not.
LONG = 16
#: Slots of the state that survives between calls: the run at work, its node (-1: not begun) and its budget.
RUN, NODE, LEFT = 0, 1, 2
#: What `walk` returns, and what it puts in place of a total that never ends.
FINISHED, PAUSED, NO_ACTION = 0, 1, 2
NEVER = -1

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_STEP = 2.0**-53


@kernel
def lay_rows(row_start: Array, probability: Array, out_order: Array, out_cumulative: Array) -> None:
    """Sort the arrows of each short row by falling probability (`out_order`), and sum up the probabilities of every row.

    The last sum of a row is set beyond every random number, whatever rounding left of it.
    """
    for row in range(len(row_start) - 1):
        begin, end = row_start[row], row_start[row + 1]
        for edge in range(begin, end):
            place = edge
            if end - begin <= LONG:
                while place > begin and probability[out_order[place - 1]] < probability[edge]:
                    out_order[place] = out_order[place - 1]
                    place -= 1
            out_order[place] = edge
        total = 0.0
        for place in range(begin, end):
            total += probability[out_order[place]]
            out_cumulative[place] = total
        if begin < end:
            out_cumulative[end - 1] = 2.0


@kernel
def _mixed(word: Any) -> Any:
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return word ^ (word >> np.uint64(31))


@kernel
def _drawn(row_start: Array, cumulative: Array, row: int, u: float) -> Any:
    """The arrow of a row that the random number u falls on."""
    edge, end = row_start[row], row_start[row + 1]
    while end - edge > LONG:
        middle = (edge + end) >> 1
        if u >= cumulative[middle - 1]:
            edge = middle
        else:
            end = middle
    while u >= cumulative[edge]:
        edge += 1
    return edge


@kernel
def walk(
    row_start: Array,
    target: Array,
    cumulative: Array,
    cost: Array,
    spent: Array,
    trapped: Array,
    budget: int,
    first_choice: Array,
    neutral: Array,
    table_row: Array,
    table: Array,
    start: int,
    key: Array,
    first: int,
    pause: int,
    memo: Array,
    word: Array,
    out_total: Array,
) -> int:
    """Walk runs `first`, `first` + 1, ... until each has arrived at the last node, or until `pause` steps are done.

    `memo` and `word` carry the run at work from call to call; `out_total` comes in as zeros. With a `budget` >= 0 rows belong to choices,
    and a node picks its row by the budget left, which falls by `spent`. `trapped` nodes never arrive once no budget is left.
    """
    goal = len(trapped)
    by_budget = budget >= 0
    steps = 0
    while memo[RUN] < len(out_total):
        run = memo[RUN]
        if memo[NODE] < 0:
            counter = np.uint64(first + run + 1) * _GOLDEN
            s0, s1, s2, s3 = _mixed(key[0] + counter), _mixed(key[1] + counter), _mixed(key[2] + counter), _mixed(key[3] + counter)
            node, left = start, max(budget, 0)
        else:
            s0, s1, s2, s3 = word[0], word[1], word[2], word[3]
            node, left = memo[NODE], memo[LEFT]
        total = out_total[run]
        while node < goal and steps < pause:
            row = node
            if left <= 0 and trapped[node]:
                total, node = total * 0 + NEVER, goal
                break
            if by_budget:
                row = neutral[node]
                if left > 0 and table_row[node] >= 0 and left < table.shape[1]:
                    row = first_choice[node] + table[table_row[node], left]
                if row < 0:
                    memo[NODE] = node
                    return NO_ACTION
            u = ((s0 + s3) >> np.uint64(11)) * _STEP
            shifted = s1 << np.uint64(17)
            s2 ^= s0
            s3 ^= s1
            s1 ^= s2
            s0 ^= s3
            s2 ^= shifted
            s3 = (s3 << np.uint64(45)) | (s3 >> np.uint64(19))
            edge = _drawn(row_start, cumulative, row, u)
            total += cost[edge]
            if by_budget:
                left -= spent[edge]
            node = target[edge]
            steps += 1
        out_total[run] = total
        if node < goal:
            memo[NODE], memo[LEFT] = node, left
            word[0], word[1], word[2], word[3] = s0, s1, s2, s3
            return PAUSED
        memo[RUN], memo[NODE] = run + 1, -1
    return FINISHED
