"""Bounds on V against nature, which `dp/games.py` computes in plain doubles.

They come from the optimum's own equation, with all that rounding may do counted against them:
values that are at least their backup under the rows of a policy lie above what it costs, whatever
nature does; values that no row's backup is below lie below the optimum. They are looked for at
v - e T and v + e T, T as in `values.py`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tailpath.certify.rounding import PER_EDGE, ROUNDOFF
from tailpath.certify.values import SLOPE_TOLERANCE, WEIGHTS_ABOVE, Bounds, slope_of
from tailpath.dp.backup import Slack, extreme_value
from tailpath.dp.games import Game, game_optimum
from tailpath.dp.optimum import Optimum, optimum
from tailpath.graph import FloatArray
from tailpath.kernels.jit import Array, frozen, kernel

#: Bounds are looked for this share of T away from the values, and so often twice as far.
FIRST_DISTANCE, TRIES = 8 * ROUNDOFF, 32


@kernel
def extreme_holds(
    rows: tuple[Array, Array, Array, Slack, int],
    worth: Array,
    counted: tuple[Array, Array],
    value: Array,
    side: int,
) -> bool:
    """Whether the backup of values proves them a bound of the optimum; `rows` and `worth` are
    those of `improve_shares`.

    They lie below it (`side` -1) where no row of a state is less than its value, and above it (1)
    where one row of every state is no more: `counted` are the first of the rows that count, by
    state, and the first behind them.

    Rounding counts against the bound; Lemma 6 of docs/bounds.md counts k + 8 roundings of the value
    of a row and 2 k + 6 of the value of the last outcome that gets free mass.
    """
    row_start, target, low, slack, nature = rows
    first, last = counted
    for state in range(len(value)):
        for row in range(np.uint64(first[state]), np.uint64(last[state])):
            total, marginal = extreme_value(row_start, target, low, slack, nature, row, 0, worth)
            count = row_start[row + np.uint64(1)] - row_start[row]
            error_bound = PER_EDGE * (count + 2) * ROUNDOFF * (total + marginal)
            if not side * (total - value[state]) + error_bound <= 0.0:
                return False
    return True


class GameOptimum(NamedTuple):
    """The best row of every state, values with bounds, the probabilities of nature's best answer to
    them, and how many strategies it took.
    """

    chosen: NDArray[np.int64]
    bounds: Bounds
    probability: FloatArray
    iterations: int


def solve_game(game: Game) -> GameOptimum:
    """V with bounds."""
    found, probability = game_optimum(game)
    bounds = _away(game, found, found.value)
    if bounds.width > WEIGHTS_ABOVE:
        slope = slope_of(
            game.rows.replaced(probability=probability),
            found.value,
            found.chosen,
            lambda rows, rate: optimum(rows, rate, tolerance=SLOPE_TOLERANCE).value,
        )
        bounds = _away(game, found, slope)
    bounds = Bounds(bounds.value, np.maximum(bounds.lower, 0.0), bounds.upper, found.how)
    return GameOptimum(found.chosen, bounds, probability, found.iterations)


def _away(game: Game, found: Optimum, slope: FloatArray) -> Bounds:
    """The nearest bounds along T = `slope`."""
    intervals, first, chosen = game.intervals(), game.rows.state_rows, found.chosen

    def nearest(side: int, *counted: Array) -> FloatArray:
        for farther in range(TRIES if np.isfinite(slope).all() else 0):
            bound = np.asarray(found.value + side * FIRST_DISTANCE * 2.0**farther * slope)
            if extreme_holds(intervals, game.worth(bound), tuple(frozen(*counted)), bound, side):
                return bound
        return np.full_like(slope, side * np.inf)

    return Bounds(found.value, nearest(-1, first[:-1], first[1:]), nearest(1, chosen, chosen + 1))
