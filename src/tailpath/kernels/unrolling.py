"""One choice per pair of state and memory, followed from the start: the pairs that are reached, and where their outcomes lead.

Memories are numbers 0 .. m - 1, and the choice of pair (s, i) is entry s m + i of a table. After an outcome the memory is found by one of two
rules: the atom nearest to y xi, or the budget less the level of the outcome. Pairs are numbered in the order in which they are met.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tailpath.kernels.jit import kernel

Array = NDArray[Any]


class Outcomes(NamedTuple):
    """Choice -> outcomes of a model, and which states are goals. A model without a cost unit has no levels."""

    choice_outcomes: Array
    target: Array
    probability: Array
    cost: Array
    level: Array
    is_goal: Array


class Rows(NamedTuple):
    """The chain: state and memory of every node, and the arrows by rows. The target of an arrow to a goal is the number after the last node."""

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

    With atoms: `xi[xi_offset[pair] + i]` is the factor of outcome i, and `borders` part the atoms; where states have atoms of their own,
    `own_borders` part those of a grid, whose numbers are `own_atoms`, and `grid` has the grid of each state. Without: the `level` of the
    outcome is paid.
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
def follow(model: Outcomes, memories: Memories, choice: Array, start: int, memory: int) -> tuple[int, Rows]:
    """The rows of all pairs that can be reached from a state and a memory; from the state -1 there are none.

    A pair without a choice (-1) ends it: returned first is its state, otherwise -1.
    """
    n_arrows = 0
    for chosen in choice:
        if chosen >= 0:
            n_arrows += model.choice_outcomes[chosen + 1] - model.choice_outcomes[chosen]
    n, n_levels = memories.n, n_arrows if len(model.level) > 0 else 0
    states, memory_of = np.empty(len(choice), dtype=np.int32), np.empty(len(choice), dtype=np.int64)
    row_start, target = np.empty(len(choice) + 1, dtype=np.int64), np.empty(n_arrows, dtype=np.int32)
    outcomes, levels = np.empty(n_arrows, dtype=np.int64), np.empty(n_levels, dtype=np.int64)
    probability, cost = np.empty(n_arrows), np.empty(n_arrows)
    number = np.full(len(choice), -1, dtype=np.int32)
    row_start[0] = 0
    size, done, arrow, unknown = 0, 0, 0, -1
    if start >= 0:
        number[start * n + memory], states[0], memory_of[0], size = 0, start, memory, 1
    while done < size and unknown < 0:
        memory = memory_of[done]
        pair = states[done] * n + memory
        chosen = choice[pair]
        first, last = (model.choice_outcomes[chosen], model.choice_outcomes[chosen + 1]) if chosen >= 0 else (0, 0)
        unknown = states[done] if chosen < 0 else -1
        for outcome in range(first, last):
            state, to = model.target[outcome], -1
            if not model.is_goal[state]:
                after = 0
                if len(memories.atoms) > 0:
                    y = memories.atoms[memory] * memories.xi[memories.xi_offset[pair] + outcome - first]
                    if len(memories.grid) > 0:
                        own = memories.grid[state]
                        after = memories.own_atoms[own, first_at_least(memories.own_borders[own], y)]
                    else:
                        after = _nearest(memories.borders, y, memory)
                elif len(memories.level) > 0:
                    after = max(memory - memories.level[outcome], 0)
                to = number[state * n + after]
                if to < 0:
                    to = size
                    number[state * n + after], states[size], memory_of[size] = size, state, after
                    size += 1
            target[arrow], outcomes[arrow] = to, outcome
            probability[arrow], cost[arrow] = model.probability[outcome], model.cost[outcome]
            if n_levels > 0:
                levels[arrow] = model.level[outcome]
            arrow += 1
        done += 1
        row_start[done] = arrow
    for i in range(arrow):
        if target[i] < 0:
            target[i] = size
    return unknown, Rows(
        states[:size],
        memory_of[:size],
        row_start[: size + 1],
        target[:arrow],
        outcomes[:arrow],
        probability[:arrow],
        cost[:arrow],
        levels[: min(arrow, n_levels)],
    )


@kernel
def first_at_least(rising: Array, y: float) -> int:
    """Where y would stand in a rising array, before its equals."""
    low, high = 0, len(rising)
    while low < high:
        middle = (low + high) >> 1
        if rising[middle] < y:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def _nearest(borders: Array, y: float, guess: int) -> int:
    """The atom on whose side of all borders y lies; most often it is the guess, or not far above."""
    low, high = max(guess - 1, 0), min(guess + 8, len(borders))
    if (low > 0 and y <= borders[low - 1]) or (high < len(borders) and y > borders[high]):
        return int(first_at_least(borders, y))
    while low < high and y > borders[low]:
        low += 1
    return int(low)
