"""What rounding, and the error of V*, may have done to the values of a table.

All terms of the recursion are non-negative, so rounding is a relative error: at most 4 k + 17 units
for a choice with k outcomes and cost groups, per step; a budget of w is spent within w steps (times
the longest run of zero-cost outcomes). To this comes the proved error of V*, which counts for more
where a closed form takes the budget off it (`layout.py`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from tailpath.dp.bounds import Bounds
from tailpath.graph import IntArray
from tailpath.kernels.rounding import UNIT
from tailpath.model.ssp import FloatArray
from tailpath.solvers.expectation import ExpectedSolution


class ErrorBound(NamedTuple):
    """How far V* may lie below and above its value, relatively, and above where the value is 0, in
    units; how far at all, in units; what each level adds, relatively; and how much may have
    vanished because it was too small, in units.
    """

    below: float
    above: float
    at_zero: float
    at_all: float
    per_level: float
    vanished: float = 1e-250


#: What it takes, in roundings of V*, to write it in units and to take a budget off it.
TAKEN_OFF = 4 * UNIT


def error_bound_of(
    expected: ExpectedSolution, per_level: float, certain_cost: IntArray | int = 0
) -> ErrorBound:
    """The error bound of V*, and what each level of a table adds. `certain_cost` is the largest
    budget of each state, in units, that a closed form takes off its value.
    """
    ssp, zero = expected.ssp, expected.value == 0
    assert ssp.cost_unit is not None
    # A policy that keeps to zero-cost outcomes among states of value 0 proves the 0; otherwise
    # their upper bounds count.
    outcome = np.flatnonzero(
        np.isin(ssp.outcome_choice, expected.choices[zero & (expected.choices >= 0)])
    )
    zero_cost = (ssp.outcome_level[outcome] == 0) & zero[ssp.outcome_target[outcome]]
    bounds = Bounds(expected.value, expected.lower, expected.upper)
    return error_bound_by(bounds, ssp.cost_unit, certain_cost, bool(zero_cost.all()), per_level)


def error_bound_by(
    bounds: Bounds,
    cost_unit: Fraction,
    certain_cost: IntArray | int,
    zero_is_proved: bool,
    per_level: float,
    most: Callable[[float], float] = float,
) -> ErrorBound:
    """The same from bounds by state or node, where `most` has the largest number of all ranks."""
    value, unit = bounds.value, float(cost_unit)
    positive = (value > 0) & np.isfinite(value)
    rounded = np.where(np.asarray(certain_cost) > 0, TAKEN_OFF * value, 0.0)
    beyond = value - np.asarray(certain_cost) * unit
    with np.errstate(invalid="ignore", divide="ignore"):
        low, high = value - bounds.lower + rounded, bounds.upper - value + rounded
        below, above = (
            most(float(np.max(side / beyond, where=positive, initial=0.0))) for side in (low, high)
        )
    at_zero = most(float(np.max(bounds.upper, where=value == 0, initial=0.0)) / unit)
    at_all = most(
        float(np.max(np.maximum(low, high), where=np.isfinite(value), initial=0.0)) / unit
    )
    return ErrorBound(
        min(below * (1 + 1e-15), 1.0),
        above * (1 + 1e-15),
        0.0 if zero_is_proved else at_zero,
        at_all * (1 + 1e-15),
        per_level,
    )


def enclosed(
    priced: FloatArray,
    weight: float,
    error_bound: ErrorBound,
    scale: float,
    budgets: IntArray | None = None,
    steps: IntArray | None = None,
) -> tuple[FloatArray, FloatArray]:
    """Bounds, in units, on `weight * w + priced` for each of the budgets w, which are 0, 1, ... if
    none are given; `scale` is the price of one unit of V*. `steps` counts the levels of error in
    each value, as many as its budget if not given.
    """
    w = np.arange(len(priced)) if budgets is None else budgets
    # An infinite error bound of a level, where zero-cost outcomes go round without end, is one of
    # all levels.
    levels = np.asarray(w if steps is None else steps, dtype=np.float64)
    error: FloatArray = (
        np.minimum(levels * error_bound.per_level, 1.0)
        if math.isfinite(error_bound.per_level)
        else np.ones(levels.shape)
    )
    # Whatever is counted, a run counts V* once, so that its error bound counts once as well.
    share = 1 - error
    least = priced * share
    low = weight * w + np.maximum(
        least * (1 - error_bound.below), least - error_bound.at_all * scale
    )
    share = np.maximum(share, 1e-300)
    raised = (
        np.where(priced > 0, priced * (1 + error_bound.above), 0.0) + error_bound.at_zero * scale
    )
    most = np.minimum(raised / share, priced / share + error_bound.at_all * scale)
    high = np.asarray(weight * w + np.where(error < 1, most, np.inf), dtype=np.float64)
    # A few units more for the sums above, and for values so small that they were taken for 0.
    return np.asarray(low * (1 - 2e-15)), high * (1 + 2e-15) + error_bound.vanished * scale
