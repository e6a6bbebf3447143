"""E[h(Z)] of a piecewise linear loss h (`risk/curves.py`) of the total cost Z, with proved bounds.

The head gives a sum over its costs. Of the tail, Z > x, only mass and excess are known, and they
say all once h is linear there:

    E[h(Z); Z > x] = h(x+) P(Z > x) + slope E[(Z - x)+]

What never arrives is worth the limit of h.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tailpath.kernels.rounding import ROUNDOFF

if TYPE_CHECKING:
    from tailpath.evaluation.distribution import CostDistribution

Bracket = tuple[float, float]


def is_linear_beyond(costs: CostDistribution, loss: Any) -> bool:
    """Whether mass and excess of the tail say all."""
    return costs.tail_mass == 0 or costs._tail_never_arrives or loss.last <= costs._last_cost


def loss_of_head_and_tail(costs: CostDistribution, loss: Any) -> tuple[float, float, float]:
    """E[h(Z)] and proved bounds on it, of a loss that is linear beyond the head."""
    if costs.unreached > 0 and loss.slope > 0:
        return math.inf, math.inf, math.inf
    last, mass = costs._last_cost, costs.tail_mass
    head, error_bound = _head_loss(costs, loss)
    value, slope = loss.at_infinity, 0.0  # of h, just after the head
    if not costs._tail_never_arrives and mass > 0:
        value, slope = loss.after[-1] + loss.slope * (last - loss.last), loss.slope
        error_bound += (
            mass * slope * ((costs.cost_error + 4 * ROUNDOFF) * last + 4 * ROUNDOFF * loss.last)
        )
    tail = mass * value if mass > 0 else 0.0
    size = mass * abs(loss.after[-1])
    if slope > 0:  # where nothing arrives there is no last cost
        size += mass * slope * abs(last - loss.last)
    error_bound += (costs.relative_error + 20 * ROUNDOFF) * size + costs.dropped * loss.largest
    excess, low, high = (
        loss.slope * part if loss.slope > 0 else 0.0
        for part in (costs.tail_excess, *costs.tail_excess_bounds)
    )
    error_bound += 8 * ROUNDOFF * (abs(head) + abs(tail) + high)
    return (
        head + tail + excess,
        head + tail + low - error_bound,
        head + tail + high + error_bound,
    )


def loss_bounds_by_lines(costs: CostDistribution, loss: Any) -> Bracket:
    """Proved bounds on E[h(Z)] of a loss that bends beyond the head: by flat lines, those of the
    last slope, and those through the end of the head and another point of h.
    """
    if costs.unreached > 0 and loss.slope > 0:
        return math.inf, math.inf
    x = max(costs._last_cost, 0.0)
    breakpoints, at, after = loss.points_beyond(x, include=costs._last_cost < 0)
    lower, upper = np.minimum(at, after), np.maximum(at, after)
    mass, missed = _masses(costs)
    # What never arrives is worth the limit, and nothing is known of when the rest arrives.
    limits = (
        (_least(loss.at_infinity, missed), -_least(-loss.at_infinity, missed))
        if costs.unreached > 0
        else (0.0, 0.0)
    )
    lows = [_least(float(lower.min()), mass) + limits[0]]
    highs = [-_least(-float(upper.max()), mass) + limits[1]]
    if loss.slope > 0:  # no flat line stays above
        highs.clear()
    slopes = set()
    if costs.unreached == 0 and math.isfinite(costs.tail_excess_bounds[1]):
        through = [(values[1:] - values[0]) / (breakpoints[1:] - x) for values in (lower, upper)]
        slopes = {loss.slope, *np.concatenate(through).tolist()}
    for c in slopes - {0.0}:
        # Of the line, and of where the head ends.
        error_bound = mass[1] * (
            8 * ROUNDOFF * (loss.largest + abs(c) * float(breakpoints.max()))
            + abs(c) * (costs.cost_error + 4 * ROUNDOFF) * x
        )
        if c <= loss.slope:
            lows.append(
                _least(float(np.min(lower - c * (breakpoints - x))), mass)
                + _least(c, costs.tail_excess_bounds)
                - error_bound
            )
        if c >= loss.slope:
            highs.append(
                error_bound
                - _least(-float(np.max(upper - c * (breakpoints - x))), mass)
                - _least(-c, costs.tail_excess_bounds)
            )
    head, slack = _head_loss(costs, loss)
    low, high = head + max(lows), head + min(highs, default=math.inf)
    slack += costs.dropped * loss.largest
    return (
        low - slack - 16 * ROUNDOFF * (abs(head) + abs(low)),
        high + slack + 16 * ROUNDOFF * (abs(head) + abs(high)),
    )


def _head_loss(costs: CostDistribution, loss: Any) -> tuple[float, float]:
    """The part of E[h(Z)] that the head has, and a bound on its error."""
    z, error = costs.costs, costs.cost_error
    parts = costs.probabilities * loss.values(z)
    of_sums = (costs.relative_error + (len(z) + 20) * 2 * ROUNDOFF) * float(np.sum(np.abs(parts)))
    slope, jump = loss.slope_and_jump(z * (1 - error), z * (1 + error))
    # Sums of whole costs decide exactly which side of a jump they are on; those of discounted ones
    # do not.
    of_values = loss.rounding_error(z) + error * slope * z + (jump if costs.gamma < 1 else 0.0)
    of_values = float(np.sum(costs.probabilities * of_values)) * (1 + 1e-9)
    return float(np.sum(parts)), of_sums + of_values


def _masses(costs: CostDistribution) -> tuple[Bracket, Bracket]:
    """Bounds on the mass that may still arrive, and on that which never does."""
    error_bound = costs.relative_error + 20 * ROUNDOFF
    missed = 0.0
    if costs.unreached > 0:
        missed = max(costs.tail_mass - costs.open_mass - costs.dropped, 0.0)
    return (
        (
            costs.open_mass * (1 - error_bound),
            costs.open_mass * (1 + error_bound) + costs.dropped,
        ),
        (
            max(missed * (1 - error_bound) - 4 * ROUNDOFF * costs.tail_mass, 0.0),
            missed * (1 + error_bound) + 4 * ROUNDOFF * costs.tail_mass,
        ),
    )


def _least(factor: float, between: Bracket) -> float:
    """The least of factor times a number between two, none of them negative; 0 if factor is."""
    return 0.0 if factor == 0 else factor * (between[0] if factor > 0 else between[1])
