"""One choice per pair of state and memory, followed from the start: the pairs that are reached, and where their outcomes lead.

Memories are numbers 0 .. m - 1, and pair (s, i) has the number s m + i. After an outcome the memory is found by one of two rules: the atom
nearest to y xi, or the budget less the level of the outcome. Pairs are numbered in the order in which they are met.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tailpath.kernels.jit import kernel

Array = NDArray[Any]


class Outcomes(NamedTuple):
    """Choice -> outcomes of a model, and which states are goals."""

    choice_outcomes: Array
    target: Array
    is_goal: Array


_NO_NUMBERS, _NO_INDICES = np.empty(0), np.empty(0, dtype=np.int64)


class Memories(NamedTuple):
    """How the memory, one of `n`, moves.

    With atoms: `xi[xi_offset[pair] + i]` is the factor of outcome i, and `borders` part the atoms; where states have atoms of their own,
    `own_borders` part those of a grid, whose numbers are `own_atoms`, and `grid` has the grid of each state. Without: the `level` of the outcome is paid.
    """

    n: int
    atoms: Array = _NO_NUMBERS
    borders: Array = _NO_NUMBERS
    xi_offset: Array = _NO_INDICES
    xi: Array = _NO_NUMBERS
    level: Array = _NO_INDICES
    grid: Array = np.empty(0, dtype=np.int32)
    own_borders: Array = np.empty((0, 0))
    own_atoms: Array = np.empty((0, 0), dtype=np.int64)


@kernel
def follow(
    model: Outcomes,
    memories: Memories,
    choice: Array,
    start: int,
    out_pair: Array,
    out_row_start: Array,
    out_target: Array,
    out_outcome: Array,
) -> tuple[int, int]:
    """Fill the rows of all pairs that can be reached from the pair `start`; returns how many pairs and arrows there are.

    The target of an arrow to a goal is -1. A pair without a choice (-1) ends it: returned are its number among the pairs and -1.
    """
    number = np.full(len(choice), -1, dtype=np.int32)
    number[start] = 0
    out_pair[0] = start
    out_row_start[0] = 0
    size, done, edge = 1, 0, 0
    while done < size:
        pair = out_pair[done]
        if choice[pair] < 0:
            return done, -1
        first = model.choice_outcomes[choice[pair]]
        for outcome in range(first, model.choice_outcomes[choice[pair] + 1]):
            state = model.target[outcome]
            out_outcome[edge] = outcome
            to = -1
            if not model.is_goal[state]:
                after = state * memories.n + _memory_after(memories, pair, state, outcome, outcome - first)
                to = number[after]
                if to < 0:
                    to = size
                    number[after] = size
                    out_pair[size] = after
                    size += 1
            out_target[edge] = to
            edge += 1
        done += 1
        out_row_start[done] = edge
    return size, edge


@kernel
def _memory_after(memories: Memories, pair: int, state: int, outcome: int, place: int) -> int:
    """The memory in the next state after the outcome that has this place in the choice of a pair."""
    if memories.n == 1:
        return 0
    memory = pair % memories.n
    if len(memories.atoms) == 0:
        return int(max(memory - memories.level[outcome], 0))
    y = memories.atoms[memory] * memories.xi[memories.xi_offset[pair] + place]
    if len(memories.grid) > 0:
        own = memories.grid[state]
        return int(memories.own_atoms[own, np.searchsorted(memories.own_borders[own], y)])
    # Most often the atom stays, or moves to a neighbour.
    low, high = max(memory - 1, 0), min(memory + 1, memories.n - 1)
    if (low > 0 and y <= memories.borders[low - 1]) or (high < memories.n - 1 and y > memories.borders[high]):
        return int(np.searchsorted(memories.borders, y))
    while low < high and y > memories.borders[low]:
        low += 1
    return int(low)
