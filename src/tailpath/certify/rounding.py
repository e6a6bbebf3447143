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
#: A stored probability of a row of k lies within (3 k + 3) ROUNDOFF, relatively, of the decimal as
#: written divided by the sum of its row: one to read the decimal, and what the float row may miss 1
#: by (`model/checks.py`).
PER_EDGE = 3
#: Those 3; 6 for the weight of a policy that mixes actions or, in the sweep over budgets, which has
#: none, for the constant of a choice and a closed form; a product; the scaling p (1 +- d), twice;
#: and one for all of second order. The proof needs each, but rows have so much room in PER_EDGE
#: that no model is known on which bounds without this exclude the truth.
PER_STEP = 13
#: More than a handful of operations: by this share bounds are widened that go through these.
AFTERWARDS = 16 * ROUNDOFF


def row_error(size: Any, additions: Any, error: Any = 0.0) -> Any:
    """What one step of rows with so many outcomes may round, relatively.

    `additions` is how many numbers are added up in a cell that a step leads to or, where values go
    backwards, that its row fills. `error` is how far probabilities may be off beside rounding.
    """
    return (PER_EDGE * size + PER_STEP + additions) * ROUNDOFF + error


def row_factor(size: int, side: int, off: float) -> float:
    """By what to scale a row of so many outcomes, where masses are added up with one rounding."""
    return float(1 + side * row_error(size, 1, off))


def exit_error(rows: Transitions, component: IntArray, error: float) -> FloatArray:
    """How far the rows of nodes on free cycles, by component (-1: on none), may be off once these
    are solved beforehand (`policies/chain.py`): (n,).

    Where a node stays by itself, the sum of its other edges is divided by. In a component of m
    every entry is off by what its rows are, 2 m + 2 times at most, and by the elimination, in which
    nothing is subtracted: in the step of node k at most 2 (k + 1) (k + 5) roundings meet, and 2
    more on the way back.
    """
    size, longest = np.zeros(rows.n), np.diff(rows.row_start).astype(np.float64)
    on_cycle = component >= 0
    size[on_cycle] = np.bincount(component[on_cycle])[component[on_cycle]]
    most = np.zeros(component.max(initial=-1) + 1)
    np.maximum.at(most, component[on_cycle], longest[on_cycle])
    longest[on_cycle] = most[component[on_cycle]]
    of_row = ((PER_EDGE + 1) * longest + PER_STEP) * ROUNDOFF
    eliminated = (2 * size**3 / 3 + 6 * size**2 + 8 * size) * ROUNDOFF
    joint = (2 * size + 2) * (of_row + error) + eliminated
    return np.where(size > 1, joint, np.where(size == 1, of_row, 0.0))


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
    error: Any = off
    if cycles is not None:
        error = off + exit_error(*cycles, off)[rows.source]
    step = row_error(np.diff(rows.row_start)[rows.source], additions, error)
    return rows.replaced(probability=rows.probability * (1 + side * step))


def share_of(roundings: int) -> float:
    """What so many roundings, few as they are, may change a number by, relatively."""
    return roundings * ROUNDOFF


def compounded(step_error: float, steps: int, side: int) -> float:
    """What so many steps make of a number: the least (`side` -1) or largest share of it."""
    return math.exp(side * min(1.01 * step_error * steps, 700.0))
