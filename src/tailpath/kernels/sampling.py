"""Monte Carlo runs of a chain, each with a random number generator of its own.

Run r is driven by xoshiro256+ (Blackman and Vigna), its four words set by the mixing function of
splitmix64 from four keys and the number r. The mixing function is a bijection, so no two runs of a
seed share their words, and a run does not depend on which thread it falls to or on how many others
there are. (numpy's own Generator, called from compiled code, takes six times as long for a number.)

A short row lists its edges by falling probability with their cumulative sums, and is searched from
the front: with the rows of planning problems this is about twice as fast as alias tables, since the
first edge is nearly always the one. Long rows are searched by halving.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tailpath.kernels.jit import Array, kernel

#: Rows longer than this are halved until they are not.
LONG = 16
#: What `walk` puts in place of a total that never ends.
NEVER = -1
#: What survives between two calls of `walk`: the run at work, its node (-1: not begun), and the
#: words of its generator.
WALKER = np.dtype(
    [(name, np.int64) for name in ("run", "node")]
    + [(word, np.uint64) for word in ("s0", "s1", "s2", "s3")],
)


def walker() -> Any:
    """A record of `WALKER` before its first run."""
    now = np.zeros(1, dtype=WALKER).view(np.recarray)[0]
    now.node = -1
    return now


class Paths(NamedTuple):
    """Rows ready for drawing: edges by falling probability, with cumulative sums. The goal is the
    node behind the last of `trapped`.
    """

    row_start: Array
    target: Array
    cumulative: Array
    cost: Array
    trapped: Array


_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_STEP = 2.0**-53


@kernel
def lay_rows(row_start: Array, probability: Array, out_order: Array, out_cumulative: Array) -> None:
    """Sort the edges of each short row by falling probability (`out_order`), and sum up the
    probabilities of every row.

    The last sum of a row is set beyond every random number, whatever rounding made of it.
    """
    for row in range(len(row_start) - 1):
        begin, end = row_start[row], row_start[row + 1]
        for edge in range(begin, end):
            position = edge
            if end - begin <= LONG:
                while position > begin and probability[out_order[position - 1]] < probability[edge]:
                    out_order[position] = out_order[position - 1]
                    position -= 1
            out_order[position] = edge
        total = 0.0
        for position in range(begin, end):
            total += probability[out_order[position]]
            out_cumulative[position] = total
        if begin < end:
            out_cumulative[end - 1] = 2.0


@kernel
def _mixed(word: Any) -> Any:
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return word ^ (word >> np.uint64(31))


@kernel
def _drawn(row_start: Array, cumulative: Array, row: Any, u: float) -> Any:
    """The edge of a row that the random number u falls on. Unsigned indices are quicker."""
    one = np.uint64(1)
    edge, end = np.uint64(row_start[row]), np.uint64(row_start[row + one])
    while end - edge > LONG:
        middle = (edge + end) >> one
        if u >= cumulative[middle - one]:
            edge = middle
        else:
            end = middle
    while u >= cumulative[edge]:
        edge += one
    return edge


@kernel
def walk(
    paths: Paths,
    start: int,
    key: Array,
    first: int,
    pause: int,
    now: Any,
    out_total: Array,
) -> bool:
    """Walk runs `first`, `first` + 1, ... until each has arrived at the last node, or until `pause`
    steps are done; True if all have arrived. `trapped` nodes never do.

    `now`, a record of `WALKER`, carries the run at work from call to call; `out_total` comes in as
    zeros.
    """
    goal = len(paths.trapped)
    steps = 0
    while now.run < len(out_total):
        if now.node < 0:
            counter = np.uint64(first + now.run + 1) * _GOLDEN
            s0, s1 = _mixed(key[0] + counter), _mixed(key[1] + counter)
            s2, s3 = _mixed(key[2] + counter), _mixed(key[3] + counter)
            node = start
        else:
            s0, s1 = now.s0, now.s1
            s2, s3 = now.s2, now.s3
            node = now.node
        total = out_total[now.run]
        while node < goal and steps < pause:
            if paths.trapped[np.uint64(node)]:
                total, node = total * 0 + NEVER, goal
                break
            u = ((s0 + s3) >> np.uint64(11)) * _STEP
            shifted = s1 << np.uint64(17)
            s2 ^= s0
            s3 ^= s1
            s1 ^= s2
            s0 ^= s3
            s2 ^= shifted
            s3 = (s3 << np.uint64(45)) | (s3 >> np.uint64(19))
            edge = _drawn(paths.row_start, paths.cumulative, np.uint64(node), u)
            total += paths.cost[edge]
            node = paths.target[edge]
            steps += 1
        out_total[now.run] = total
        if node < goal:
            now.node = node
            now.s0, now.s1 = s0, s1
            now.s2, now.s3 = s2, s3
            return False
        now.run, now.node = now.run + 1, -1
    return True
