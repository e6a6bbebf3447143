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
    """Choice -> outcomes of a model, and which states are goals. A model without a cost unit has no levels."""

    choice_outcomes: Array
    target: Array
    probability: Array
    cost: Array
    level: Array
    is_goal: Array


class Rows(NamedTuple):
    """Room for the chain: the pair of every node, and the arrows by rows."""

    pair: Array
    row_start: Array
    target: Array
    outcome: Array
    probability: Array
    cost: Array
    level: Array


def room_for(pairs: int, arrows: int) -> Rows:
    """Room for the chain of so many pairs and arrows at most."""
    whole = [np.empty(size, dtype=np.int64) for size in (pairs, pairs + 1, arrows, arrows)]
    return Rows(whole[0], whole[1], np.empty(arrows, dtype=np.int32), whole[2], np.empty(arrows), np.empty(arrows), whole[3])


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
def follow(model: Outcomes, memories: Memories, choice: Array, start: int, out: Rows) -> tuple[int, int]:
    """Fill the rows of all pairs that can be reached from the pair `start`; returns how many pairs and arrows there are.

    The target of an arrow to a goal is -1. A pair without a choice (-1) ends it: returned are its number among the pairs and -1.
    """
    number = np.full(len(choice), -1, dtype=np.int32)
    number[start] = 0
    out.pair[0] = start
    out.row_start[0] = 0
    size, done, arrow = 1, 0, 0
    while done < size:
        pair = out.pair[done]
        if choice[pair] < 0:
            return done, -1
        memory = pair % memories.n
        first = model.choice_outcomes[choice[pair]]
        for outcome in range(first, model.choice_outcomes[choice[pair] + 1]):
            state = model.target[outcome]
            to = -1
            if not model.is_goal[state]:
                after = state * memories.n
                if len(memories.atoms) > 0:
                    y = memories.atoms[memory] * memories.xi[memories.xi_offset[pair] + outcome - first]
                    if len(memories.grid) > 0:
                        own = memories.grid[state]
                        after += memories.own_atoms[own, first_at_least(memories.own_borders[own], y)]
                    else:
                        after += _nearest(memories.borders, y, memory)
                elif len(memories.level) > 0:
                    after += max(memory - memories.level[outcome], 0)
                to = number[after]
                if to < 0:
                    to = size
                    number[after] = size
                    out.pair[size] = after
                    size += 1
            out.target[arrow], out.outcome[arrow] = to, outcome
            out.probability[arrow], out.cost[arrow] = model.probability[outcome], model.cost[outcome]
            if len(model.level) > 0:
                out.level[arrow] = model.level[outcome]
            arrow += 1
        done += 1
        out.row_start[done] = arrow
    return size, arrow


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
    """The atom on whose side of all borders y lies; most often it is the guess, or a neighbour."""
    low, high = max(guess - 1, 0), min(guess + 1, len(borders))
    if (low > 0 and y <= borders[low - 1]) or (high < len(borders) and y > borders[high]):
        return int(first_at_least(borders, y))
    while low < high and y > borders[low]:
        low += 1
    return int(low)
