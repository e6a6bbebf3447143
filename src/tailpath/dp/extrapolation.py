"""Extrapolation of value iteration that converges slowly (Aitken's, by the dominant direction).

Where a component mixes well but is seldom left, what is missing shrinks slowly and in one
direction: once two sweeps move values along the same direction, by a share q of each other, the
remainder, q / (1 - q) times the last move, is taken at once.

The moves are summed as integers, so that the same values result however states are shared out among
ranks (`distributed/expected.py`). Arrays are those of states `first` to `last - 1`: as they were
`before` both sweeps, `old` between them, and their `value` now.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tailpath.kernels.jit import Array, kernel
from tailpath.kernels.rounding import NONZERO

#: Two moves have the same direction if the square of their cosine exceeds this.
SAME_DIRECTION = 0.9
#: By how much a value may fall, and rise, at most: as a share of it.
MAX_FALL, MAX_RISE = 0.1, 1e6


@kernel
def largest_move(first: int, last: int, before: Array, old: Array, value: Array) -> float:
    """The largest of two moves of a state, from `before` to `old` and from there to `value`, as a
    share of its value."""
    most = 0.0
    for state in range(first, last):
        size = max(abs(value[state] - old[state]), abs(old[state] - before[state]))
        size /= abs(value[state]) + NONZERO
        if not size < np.inf:
            return np.inf
        most = max(most, size)
    return most


@kernel
def move_products(
    first: int, last: int, before: Array, old: Array, value: Array, most: float, full: float
) -> tuple[int, int, int]:
    """The products of the first move with the second, with itself, and of the second with itself,
    summed over states: integers, in which the square of the largest move is `full`. So sums do not
    depend on the order of the states.
    """
    cross: Any = 0
    first_square: Any = 0
    second_square: Any = 0
    for state in range(first, last):
        weight = 1.0 / ((abs(value[state]) + NONZERO) * most)
        first_move = (old[state] - before[state]) * weight
        second_move = (value[state] - old[state]) * weight
        cross += np.int64(np.rint(first_move * second_move * full))
        first_square += np.int64(np.rint(first_move * first_move * full))
        second_square += np.int64(np.rint(second_move * second_move * full))
    return cross, first_square, second_square


@kernel
def extrapolation_length(cross: int, first_square: int, second_square: int) -> float:
    """q / (1 - q) from the sums of `move_products`; 0 if the moves differ in direction."""
    if not (
        0 < cross < first_square
        and float(cross) * cross > SAME_DIRECTION * float(first_square) * second_square
    ):
        return 0.0
    return cross / (first_square - cross)


@kernel
def extrapolation_limit(first: int, last: int, old: Array, value: Array, length: float) -> float:
    """The length, or less where a value would change its sign, or its size by much."""
    for state in range(first, last):
        move = value[state] - old[state]
        if move * value[state] < 0.0:
            length = min(length, MAX_FALL * abs(value[state] / move))
        elif move != 0.0:
            length = min(length, MAX_RISE * abs(value[state] / move))
    return length


@kernel
def extrapolate(first: int, last: int, old: Array, length: float, out_value: Array) -> None:
    """Go on along the second move, so many times as far."""
    for state in range(first, last):
        out_value[state] += length * (out_value[state] - old[state])
