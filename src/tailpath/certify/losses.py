"""Bounds on E[h(Z)] of a piecewise linear loss h (`risk/curves.py`): of a total cost Z that is
enclosed (`totals.py`), and of tables over budgets, where arriving is worth a loss.

The head gives a sum over its costs. Beyond it, at X, a line a + c (z - X) below h gives

    E[h(Z); Z > X] >= a P(Z > X) + c E[(Z - X)+],

and one above h an upper bound. Flat lines, those of the last slope, and those through X and
another point of h are tried: a deadline gives Markov's inequality, and where h is linear beyond X
the line is h itself. What never arrives is worth the limit of h.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

from tailpath.certify.budgets import scaled_layout
from tailpath.certify.rounding import AFTERWARDS, sum_error
from tailpath.certify.totals import Bracket, Enclosure
from tailpath.dp.budget_model import Objective
from tailpath.dp.budgets import fill
from tailpath.dp.joint import MARGIN
from tailpath.graph import FloatArray


def loss_bounds(
    known: Enclosure, loss: Any, jumps: bool = False, cost_error: float = 0.0
) -> Bracket:
    """Bounds on E[h(Z)]; `jumps` where costs are so coarse that they may lie on either side of one.

    That is so with a discount. Sums of whole units decide exactly. `cost_error` is what the costs
    of the model are off by, relatively, from those that are meant.
    """
    if known.may_miss and loss.slope > 0:
        return math.inf, math.inf
    low, high = known.low, known.high
    x = max(low.last, 0.0)
    if known.costs.size and loss.last <= low.last:  # linear from there on
        breakpoints = np.array([x])
        at = after = np.array([loss.after[-1] + loss.slope * (x - loss.last)])
    else:
        breakpoints, at, after = loss.points_beyond(x, include=not known.costs.size)
    lower, upper = np.minimum(at, after), np.maximum(at, after)
    mass = low.open_mass, high.open_mass
    # What never arrives is worth the limit, and nothing is known of when the rest arrives.
    missed = low.dead_mass, high.dead_mass
    limit = loss.at_infinity if high.dead_mass > 0 else 0.0
    lows = [_least(float(lower.min()), mass) + _least(limit, missed)]
    highs = [-_least(-float(upper.max()), mass) - _least(-limit, missed)]
    if loss.slope > 0:  # no flat line stays above
        highs.clear()
    slopes = set()
    if not known.may_miss and math.isfinite(high.excess):
        through = [(values[1:] - values[0]) / (breakpoints[1:] - x) for values in (lower, upper)]
        slopes = {loss.slope, *np.concatenate(through).tolist()}
    for c in slopes - {0.0}:
        # Of the line, and of where the head ends.
        slack = mass[1] * (
            AFTERWARDS * (loss.largest + abs(c) * float(breakpoints.max()))
            + abs(c) * (known.cost_error + AFTERWARDS) * x
        )
        slack += abs(c) * cost_error * (2 * mass[1] * x + known.excess[1])
        if c <= loss.slope:
            least = _least(float(np.min(lower - c * (breakpoints - x))), mass)
            lows.append(least + _least(c, known.excess) - slack)
        if c >= loss.slope:
            most = -_least(-float(np.max(upper - c * (breakpoints - x))), mass)
            highs.append(most - _least(-c, known.excess) + slack)
    (least, most), slack = _head(known, loss, jumps or cost_error > 0, cost_error)
    low_end, high_end = least + max(lows), most + min(highs, default=math.inf)
    size = abs(least) + abs(most)
    return (
        low_end - slack - AFTERWARDS * (size + abs(low_end)),
        high_end + slack + AFTERWARDS * (size + abs(high_end)),
    )


def _head(known: Enclosure, loss: Any, jumps: bool, cost_error: float) -> tuple[Bracket, float]:
    """The part of E[h(Z)] that the head has, and what it may be off by besides."""
    z, error = known.costs, known.cost_error + cost_error
    below, above = known.low.masses, known.high.masses
    value = loss.values(z)
    rises = value >= 0
    least = float(np.sum(value * np.where(rises, below, above)))
    most = float(np.sum(value * np.where(rises, above, below)))
    slope, jump = loss.slope_and_jump(z * (1 - error), z * (1 + error))
    of_values = loss_error(loss, z) + error * slope * z + (jump if jumps else 0.0)
    of_values += known.of_sums * np.abs(value)
    # What was too small to be followed, or vanished, may be anywhere in the head.
    return (least, most), float(np.sum(above * of_values)) * (
        1 + known.of_sums
    ) + known.stray * loss.largest


def loss_error(loss: Any, costs: Any, exact: bool = False) -> FloatArray:
    """By how much `values` of a loss may miss it: not at all where it is constant, or a point was
    given. `exact` says that the floats are the costs themselves.
    """
    z, x = np.asarray(costs, dtype=np.float64), loss.x
    here = np.searchsorted(x, z, side="left")
    slope, before = loss.steepness[here], x[np.maximum(here - 1, 0)]
    # Both floats, a difference, a product, a sum, and between two breakpoints a quotient of
    # differences. Where the floats are exact, the rest counts by the size of the difference.
    exact = exact and all(Fraction(float(point)) == point for point in loss.breakpoints)
    size = np.abs(z - before) if exact else np.maximum(np.abs(z), np.abs(before))
    missed = AFTERWARDS * (np.abs(loss.values(z)) + slope * size)
    return np.where(np.isin(z, x) | (slope == 0), 0.0, missed)


def terminal_error(loss: FloatArray, error: FloatArray, weights: FloatArray) -> FloatArray:
    """By how much sums of losses (levels, n) may be off where each is off by an error."""
    rounding = sum_error(len(weights)) if np.count_nonzero(weights) > 1 else 0.0
    missed: FloatArray = (error + rounding * np.abs(loss)) @ np.abs(weights)
    return missed


def with_error(value: float, side: int, loss: FloatArray, error: FloatArray) -> float:
    """A bound on E[h(Z)], with h shifted to be 0 at least, where `loss` by level misses h by an
    `error`: as a share of it, or, where it is 0, as it is; or all of it at most.
    """
    if math.isinf(value):
        return value
    share = float(np.max(error / np.maximum(loss, 1e-300), where=loss > 0, initial=0.0))
    least = float(np.max(error, where=loss <= 0, initial=0.0))
    if side > 0:
        return (value + min(share * value + least, float(error.max()))) * (1 + AFTERWARDS)
    missed = min(share * value + least, float(error.max()))
    return max(value * (1 - AFTERWARDS) - missed * (1 + AFTERWARDS), -least)


def least_from_below(layout: Any, objective: Objective, loss: FloatArray) -> FloatArray:
    """The least values at the start by level (w,), or by level and price (w, k), from below: the
    sweep on probabilities that are too small (`budgets.py`).
    """
    ends = layout.ends()
    found = fill(scaled_layout(layout, -1, ends.low, ends.error), objective, loss)
    value = found.values[:, 0]
    if len(objective.prices):
        value = value + found.values[:, 1] * objective.prices
    return value * (1 - AFTERWARDS) if found.residual <= MARGIN else 0 * value


def _least(factor: float, between: Bracket) -> float:
    """The least of factor times a number between two, none of them negative; 0 if factor is."""
    return 0.0 if factor == 0 else factor * (between[0] if factor > 0 else between[1])


def dual_bounds(
    least: FloatArray,
    lows: FloatArray,
    prices: FloatArray,
    budgets: FloatArray,
    risk: Fraction,
    factor: Fraction,
) -> FloatArray:
    """By budget w what no mean is less than at a risk, which is `factor` times a value and, where
    budgets are given, so much more: infinite where `least`, the least value, allows for none, and
    the best of `lows`, the least mean + price * value by price and budget, otherwise.
    """
    whole = math.floor(risk)
    # The value that the risk leaves: a whole number of units and a part of one, so that nothing
    # cancels.
    left = (whole - budgets + float(risk - whole)) / float(factor)
    left = left + AFTERWARDS * np.abs(left)
    with np.errstate(over="ignore", invalid="ignore"):
        paid = np.outer(prices, left)
        each = lows - paid - AFTERWARDS * (lows + np.abs(paid))
    return np.where(least > left, np.inf, np.fmax.reduce(each, axis=0, initial=0.0))
