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
from tailpath.kernels.jit import Array, kernel
from tailpath.kernels.steps import Steps, step_choice

#: Up to this many borders it is faster to look at all than to search.
FEW = 64


class Outcomes(NamedTuple):
    """Choice -> outcomes of a model, and which states are goals. A model without a cost unit has no
    levels.
    """

    choice_outcomes: Array
    target: Array
    probability: Array
    cost: Array
    level: Array
    is_goal: Array


class ChainRows(NamedTuple):
    """The chain: state and memory of every node, and the edges by rows. The target of an edge to a
    goal is the number after the last node.
    """

    state: Array
    memory: Array
    row_start: Array
    target: Array
    outcome: Array
    probability: Array
    cost: Array
    level: Array


_NO_NUMBERS, _NO_INDICES = np.empty(0), np.empty(0, dtype=np.int64)


class Memories(NamedTuple):
    """How the memory, one of `n`, moves.

    With atoms: `xi[xi_offset[pair] + i]` is the factor of outcome i, and `borders` part the atoms;
    where states have atoms of their own, `own_borders` part those of a grid, whose numbers are
    `own_atoms`, and `grid` has the grid of each state.
    """

    n: int
    atoms: Array = _NO_NUMBERS
    borders: Array = _NO_NUMBERS
    xi_offset: Array = _NO_INDICES
    xi: Array = _NO_NUMBERS
    grid: Array = np.empty(0, dtype=np.int32)
    own_borders: Array = np.empty((0, 0))
    own_atoms: Array = np.empty((0, 0), dtype=np.int64)


@kernel
def follow(
    model: Outcomes, memories: Memories, choice: Array, first: Array
) -> tuple[int, tuple[Array, ...]]:
    """The `ChainRows` of all pairs that can be reached from the first ones, which come first.

    A pair without a choice (-1) ends it: returned first is its state, otherwise -1. Unsigned
    indices are quicker, and so are arrays that are taken out of their groups before the loops.
    """
    n, one = np.uint64(memories.n), np.uint64(1)
    size: Any = np.uint64(0)
    edge: Any = np.uint64(0)
    done = np.uint64(0)
    choice_outcomes, target, probability, cost, level, is_goal = model
    _, atoms, borders, xi_offset, xi, grid, own_borders, own_atoms = memories
    pairs, most = len(choice), 0
    number = np.empty(pairs, dtype=np.int32)
    for i in range(pairs):
        number[i] = -1
        if choice[i] >= 0:
            row = np.uint64(choice[i])
            most += choice_outcomes[row + one] - choice_outcomes[row]
    out_state, out_memory = np.empty(pairs, dtype=np.int32), np.empty(pairs, dtype=np.int64)
    row_start = np.empty(pairs + 1, dtype=np.int64)
    out_target, out_outcome = np.empty(most, dtype=np.int32), np.empty(most, dtype=np.int64)
    out_probability, out_cost = np.empty(most), np.empty(most)
    out_level = np.empty(most if len(level) > 0 else 0, dtype=np.int64)
    unknown = -1
    by_level, by_atom = len(level) > 0, len(atoms) > 0
    by_grid = len(grid) > 0
    row_start[0] = 0
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
        begin = np.uint64(choice_outcomes[row])
        for outcome in range(begin, np.uint64(choice_outcomes[row + one])):
            state, to = np.uint64(target[outcome]), np.int32(-1)
            if not is_goal[state]:
                after = np.uint64(0)
                if by_atom:
                    y = atoms[memory] * xi[np.uint64(xi_offset[pair]) + outcome - begin]
                    if by_grid:
                        own = np.uint64(grid[state])
                        nearest = np.uint64(_nearest(own_borders[own], y))
                        after = np.uint64(own_atoms[own, nearest])
                    else:
                        after = np.uint64(_nearest(borders, y))
                there = state * n + after
                to = number[there]
                if to < 0:
                    to = np.int32(size)
                    number[there] = to
                    out_state[size] = state
                    out_memory[size] = after
                    size += one
            out_target[edge], out_outcome[edge] = to, outcome
            out_probability[edge], out_cost[edge] = probability[outcome], cost[outcome]
            if by_level:
                out_level[edge] = level[outcome]
            edge += one
        done += one
        row_start[done] = edge
    for i in range(edge):
        if out_target[i] < 0:
            out_target[i] = size
    return unknown, (
        out_state[:size],
        out_memory[:size],
        row_start[: size + one],
        out_target[:edge],
        out_outcome[:edge],
        out_probability[:edge],
        out_cost[:edge],
        out_level[:edge],
    )


@kernel
def follow_budget(
    model: Outcomes, steps: Steps, level: Array, start: int, most: int
) -> tuple[int, Array]:
    """The pairs of state and remaining budget that a policy reaches from a state, as
    budget * states + state; it ends beyond `most`.

    A pair without a choice ends it, too: returned first is its state, otherwise -1.
    """
    n, count = len(model.is_goal), np.int64(0)
    done = 0
    table, key = enlarge(np.empty(0, dtype=np.int64), count, count)
    count = insert(table, key, count, steps.budget * n + start)
    while done < count <= most:
        remaining, state = key[done] // n, key[done] % n
        done += 1
        chosen = step_choice(steps, state, remaining)
        if chosen < 0:
            return state, key[:count]
        first_outcome, last = model.choice_outcomes[chosen], model.choice_outcomes[chosen + 1]
        if count + last - first_outcome > len(key):
            table, key = enlarge(key, count, 2 * (last - first_outcome) + count)
        for outcome in range(first_outcome, last):
            to = model.target[outcome]
            if not model.is_goal[to]:
                count = insert(table, key, count, max(remaining - level[outcome], 0) * n + to)
    return -1, key[:count]


@kernel
def first_at_least(rising: Array, y: float) -> int:
    """Where y would stand in a rising array, before its equals."""
    one = np.uint64(1)
    low, high = np.uint64(0), np.uint64(len(rising))
    while low < high:
        middle = (low + high) >> one
        if rising[middle] < y:
            low = middle + one
        else:
            high = middle
    return int(low)


@kernel
def _nearest(borders: Array, y: float) -> int:
    """The atom on whose side of all borders y lies. Few borders are counted, several at once and
    without a branch to guess.
    """
    if len(borders) > FEW:
        found: int = first_at_least(borders, y)
        return found
    below = 0
    for i in range(np.uint64(len(borders))):
        below += 1 if y > borders[i] else 0
    return below
