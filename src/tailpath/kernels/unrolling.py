"""One choice per pair of state and memory, followed from the start: the pairs that are reached, and
where their outcomes lead.

`follow` takes memories 0 .. m - 1, with the choice of pair (s, i) in entry s m + i of a table;
after an outcome the memory is the atom nearest to y xi. `follow_budget` takes a remaining budget,
with choices by steps; it falls by the level of the outcome. Pairs are numbered in the order in
which they are met.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tailpath.kernels.hash_set import enlarge, insert
from tailpath.kernels.jit import Array, frozen, kernel
from tailpath.kernels.steps import Steps, step_choice

#: Up to so many numbers it is faster to look at all than to search.
SEARCHED_ABOVE = 64
_NO_NUMBERS, _NO_INDICES = np.empty(0), np.empty(0, dtype=np.int64)


class Memories(NamedTuple):
    """How the memory, one of `n`, moves.

    With atoms: `xi[xi_offset[pair] + i]` is the factor of outcome i, `grid` has the grid of each
    state, and row by grid `borders` part its atoms, whose numbers are `own`.
    """

    n: int
    atoms: Array = _NO_NUMBERS
    xi_offset: Array = _NO_INDICES
    xi: Array = _NO_NUMBERS
    grid: Array = np.empty(0, dtype=np.int32)
    borders: Array = np.empty((0, 0))
    own: Array = np.empty((0, 0), dtype=np.int64)


#: Nothing is remembered; to the compiler it looks like the atoms of a policy.
NO_MEMORIES = Memories(1, *frozen(*Memories(1)[1:]))


@kernel
def follow(
    row_start: Array,
    target: Array,
    is_goal: Array,
    memories: Memories,
    choice: Array,
    first: Array,
) -> tuple[int, tuple[Array, ...]]:
    """All pairs that can be reached from the first ones, which come first, along the rows of their
    choices: the state and memory of each, where its edges begin, their targets, and the edge of
    the model behind each. The target of an edge to a goal is the number after the last pair.

    A pair without a choice (-1) ends it: returned first is its state, otherwise -1. Unsigned
    indices are quicker, and so are arrays that are taken out of their groups before the loops.
    """
    n, one = np.uint64(memories.n), np.uint64(1)
    size: Any = np.uint64(0)
    edge: Any = np.uint64(0)
    done = np.uint64(0)
    _, atoms, xi_offset, xi, grid, borders, own = memories
    pairs, most = len(choice), 0
    number = np.empty(pairs, dtype=np.int32)
    for i in range(pairs):
        number[i] = -1
        if choice[i] >= 0:
            row = np.uint64(choice[i])
            most += row_start[row + one] - row_start[row]
    out_state, out_memory = np.empty(pairs, dtype=np.int32), np.empty(pairs, dtype=np.int64)
    out_start = np.empty(pairs + 1, dtype=np.int64)
    out_target, out_outcome = np.empty(most, dtype=np.int32), np.empty(most, dtype=np.int64)
    unknown = -1
    by_atom = len(atoms) > 0
    out_start[0] = 0
    for pair in first:
        number[np.uint64(pair)] = size
        out_state[size], out_memory[size] = np.uint64(pair) // n, np.uint64(pair) % n
        size += one
    while done < size:
        memory = np.uint64(out_memory[done])
        pair = np.uint64(out_state[done]) * n + memory
        if choice[pair] < 0:
            unknown = out_state[done]
            break
        row = np.uint64(choice[pair])
        begin = np.uint64(row_start[row])
        for outcome in range(begin, np.uint64(row_start[row + one])):
            state, to = np.uint64(target[outcome]), np.int32(-1)
            if not is_goal[state]:
                after = np.uint64(0)
                if by_atom:
                    y = atoms[memory] * xi[np.uint64(xi_offset[pair]) + outcome - begin]
                    row_of = np.uint64(grid[state])
                    after = np.uint64(own[row_of, np.uint64(first_at_least(borders[row_of], y))])
                there = state * n + after
                to = number[there]
                if to < 0:
                    to = np.int32(size)
                    number[there] = to
                    out_state[size] = state
                    out_memory[size] = after
                    size += one
            out_target[edge], out_outcome[edge] = to, outcome
            edge += one
        done += one
        out_start[done] = edge
    for i in range(edge):
        if out_target[i] < 0:
            out_target[i] = size
    return unknown, (
        out_state[:size],
        out_memory[:size],
        out_start[: size + one],
        out_target[:edge],
        out_outcome[:edge],
    )


@kernel
def follow_budget(
    row_start: Array,
    target: Array,
    is_goal: Array,
    steps: Steps,
    level: Array,
    start: int,
    most: int,
) -> tuple[int, Array]:
    """The pairs of state and remaining budget that a policy reaches from a state, as
    budget * states + state; it ends beyond `most`.

    A pair without a choice ends it, too: returned first is its state, otherwise -1.
    """
    n, count = len(is_goal), np.int64(0)
    done = 0
    table, key = enlarge(np.empty(0, dtype=np.int64), count, count)
    count = insert(table, key, count, steps.budget * n + start)
    while done < count <= most:
        remaining, state = key[done] // n, key[done] % n
        done += 1
        chosen = step_choice(steps, state, remaining)
        if chosen < 0:
            return state, key[:count]
        first_outcome, last = row_start[chosen], row_start[chosen + 1]
        if count + last - first_outcome > len(key):
            table, key = enlarge(key, count, 2 * (last - first_outcome) + count)
        for outcome in range(first_outcome, last):
            to = target[outcome]
            if not is_goal[to]:
                count = insert(table, key, count, max(remaining - level[outcome], 0) * n + to)
    return -1, key[:count]


@kernel
def first_at_least(rising: Array, y: float) -> int:
    """Where y would stand in a rising array, before its equals. The last few are counted, several
    at once and without a branch to guess.
    """
    low, left = np.uint64(0), np.uint64(len(rising))
    while left > SEARCHED_ABOVE:
        half = left >> np.uint64(1)
        if rising[low + half] < y:
            low += half
        left -= half
    below = np.int64(low)
    for i in range(low, low + left):
        below += 1 if rising[i] < y else 0
    return int(below)
