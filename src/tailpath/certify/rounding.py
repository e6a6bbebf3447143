"""What one step of a computation may round, and rows whose probabilities make up for it.

Lemma. The forward search and the sweep over budgets make every number of non-negative ones by sums,
products and minima, so that it rises with every probability. Let d be more than all that one step
of a row can round, relatively: its probabilities as stored beside the decimals as written, one
product, the additions into one cell, and the scaling itself. Then the same code on p (1 - d)
computes numbers that lie below the exact ones, since each step loses more by the scaling than
rounding can give back; and on p (1 + d) numbers that lie above. (Proof: docs/bounds.md.)
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tailpath.graph import FloatArray, IntArray, Transitions

#: The unit roundoff: one operation on doubles is off by this share of its result at most.
ROUNDOFF = 2.0**-53
#: A row of k outcomes rounds (k + 2) times as much at most, relatively: 3 k + 5 for probabilities
#: beside the decimals as written, divided by the sum of their row, and for the weights of a policy
#: that mixes actions; k for the sum that is its mean cost and k for the sum of what lies ahead; and
#: 5 for products, closed forms, the scaling p (1 +- d), and all of second order.
PER_EDGE = 5
#: More than a handful of operations, or the sum of as many numbers as there are, pairwise: by this
#: share bounds are widened that go through these.
AFTERWARDS = 64 * ROUNDOFF
#: More than all products of a computation may lose because they fall below the doubles that have
#: all their digits, by 2^-1074 each: there are not 2^60 of these.
VANISHED = 2.0**-1010


def row_error(size: Any, additions: Any, error: Any = 0.0) -> Any:
    """What one step of rows with so many outcomes may round, relatively.

    `additions` is how many numbers are added up in a cell that a step leads to; values that go
    backwards are sums over their own row. `error` is how far probabilities may be off beside
    rounding.
    """
    return (PER_EDGE * (size + 2) + additions) * ROUNDOFF + error


def sum_error(terms: int) -> float:
    """What a sum of so many products may round, relatively, in any order."""
    return 2 * terms * ROUNDOFF + AFTERWARDS


def row_factor(size: int, side: int, off: float) -> float:
    """The factor for a row of `size` outcomes, where masses are added up with one rounding."""
    return float(1 + side * row_error(size, 1, off))


def exit_error(rows: Transitions, component: IntArray, error: float) -> FloatArray:
    """The relative error, by node (n,), of the rows that replace free cycles
    (`policies/chain.py`), in excess of that of other rows; 0 for nodes on none.

    `component` numbers the cycles, with -1 for nodes on none, and `error` is how far probabilities
    may be off beside rounding. Lemma 7 of docs/bounds.md: errors d of the rows of m nodes compound
    to ((1 + d) / (1 - d))^m, and elimination rounds less than 2 m^3 / 3 + 4 m^2 + 2 m times.
    """
    size, longest = np.zeros(rows.n), np.diff(rows.row_start).astype(np.float64)
    on_cycle = component >= 0
    size[on_cycle] = np.bincount(component[on_cycle])[component[on_cycle]]
    of_row = row_error(longest, longest, error)
    most = np.zeros(component.max(initial=-1) + 1)
    np.maximum.at(most, component[on_cycle], of_row[on_cycle])
    of_row[on_cycle] = most[component[on_cycle]]
    eliminated = (2 * size**3 / 3 + 4 * size**2 + 2 * size) * ROUNDOFF
    compounds = 2 * size * of_row / np.maximum(1 - of_row, ROUNDOFF)
    total: FloatArray = np.expm1(np.minimum(compounds + eliminated, 700.0))
    return total


def scaled(
    rows: Transitions,
    side: int,
    additions: Any,
    off: float,
    cycles: tuple[Transitions, IntArray] | None = None,
) -> Transitions:
    """Rows with probabilities too small (`side` -1) or too large (+1) by what a step may round.

    `additions` is by edge or for all, and `off` how far probabilities may be off beside rounding.
    Of rows in which free cycles were solved, `cycles` are those before, and the component of every
    node (-1: on none).
    """
    if side == 0:
        return rows
    size, error = np.diff(rows.row_start), np.full(rows.n, off)
    if cycles is not None:  # where rows of the same outcome were merged they were more before
        size = np.maximum(size, np.diff(cycles[0].row_start))
        error += exit_error(*cycles, off)
    step = row_error(size[rows.source], additions, error[rows.source])
    return rows.replaced(probability=rows.probability * np.maximum(1 + side * step, 0.0))


def compounded(step_error: float, steps: int, side: int) -> float:
    """The factor between a computed and an exact number after n steps that are each off by
    `step_error`: the least (`side` -1) or the largest.
    """
    if side > 0:
        return math.exp(min(step_error * steps, 700.0)) * (1 + AFTERWARDS)
    return max(1 - step_error, 0.0) ** steps * (1 - AFTERWARDS)
