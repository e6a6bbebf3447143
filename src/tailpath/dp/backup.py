"""The Bellman backup: what a row is worth, and the best row of a state. The only home of inner products with values.

    state s has rows      state_choices[s] .. state_choices[s + 1] - 1
    row k has outcomes    choice_outcomes[k] .. choice_outcomes[k + 1] - 1, and an expected cost rate[k]
    outcome o leads to    target[o] with probability[o]

The end is state n, worth 0: values that are read with it have n + 1 entries, the last of them 0. A chain is the case of one row per state.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tailpath.kernels.jit import kernel
from tailpath.kernels.rounding import SURPLUS, SURPLUS_FINE, UNIT

Array = NDArray[Any]


class Decisions(NamedTuple):
    """State -> rows -> outcomes, with the expected cost `rate` of every row, and how far probabilities may be off, relatively, beside rounding."""

    state_choices: Array
    choice_outcomes: Array
    target: Array
    probability: Array
    rate: Array
    error: float = 0.0


@kernel(inline=True)
def row_value(row_start: Array, target: Array, probability: Array, row: int, base: int, value: Array) -> float:
    """The expected value of where a row leads; values are those from the place `base` on. Indices without a sign are quicker."""
    total = 0.0
    for outcome in range(np.uint64(row_start[row]), np.uint64(row_start[row + 1])):
        total += probability[outcome] * value[np.uint64(base + target[outcome])]
    return total


@kernel
def best_row(given: Decisions, state: int, value: Array) -> tuple[float, int]:
    """The least r + P v of a state, and the first row that has it; infinite and -1 where there is no row."""
    best, best_choice = np.inf, -1
    for row in range(given.state_choices[state], given.state_choices[state + 1]):
        total = given.rate[row] + row_value(given.choice_outcomes, given.target, given.probability, row, 0, value)
        if total < best:
            best, best_choice = total, int(row)
    return best, best_choice


@kernel
def row_surplus(given: Decisions, state: int, row: int, rate: float, value: Array, fine: Array) -> tuple[float, float]:
    """rate + P v - v(s) for v = value + fine, and what its rounding may amount to, with all that probabilities may be off.

    Probabilities sum to 1, so it is a sum of differences between a state and where it leads, which stay small however long the way is, and
    rounding is charged on these. `fine` is what the floats of `value` have no room for.
    """
    total, size, mass, rounded = rate, abs(rate), 0.0, SURPLUS
    for outcome in range(given.choice_outcomes[row], given.choice_outcomes[row + 1]):
        to, p = given.target[outcome], given.probability[outcome]
        ahead, finely = value[to] - value[state], fine[to] - fine[state]
        if finely != 0.0:
            rounded = SURPLUS_FINE
        total += p * (ahead + finely)
        size += p * (abs(ahead) + abs(finely))
        mass += p
    count = given.choice_outcomes[row + 1] - given.choice_outcomes[row]
    return total, ((3 * count + rounded) * UNIT + abs(mass - 1.0) + given.error) * size


@kernel
def best_surplus(given: Decisions, state: int, value: Array, fine: Array) -> tuple[float, int]:
    """The least surplus of a state for values of value + fine, and the first row that has it but for rounding, however little better it is."""
    least, best = np.inf, int(given.state_choices[state])
    for row in range(given.state_choices[state], given.state_choices[state + 1]):
        total, doubt = row_surplus(given, state, row, given.rate[row], value, fine)
        if total < least - doubt:
            least, best = total, int(row)
    return least, best
