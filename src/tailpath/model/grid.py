"""Costs rounded to a grid, where they have no unit or one too fine to count in.

With every cost rounded up and down to multiples of `delta`, a run of any policy has Z_down <= Z <=
Z_up, and so has every measure that rises with the cost; a limit that is kept with costs rounded up
is kept.

A grid that is wider than a step makes it a zero-cost step when it is rounded down. Where such steps
lead in a cycle, that says next to nothing of the optimum, and states joined by them take long to
solve. Then a grid some times finer is taken for this side, or, where that would not do, none: the
least expected cost bounds the optimum as well.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from tailpath.errors import OptionError
from tailpath.model.checks import LARGEST_COST
from tailpath.model.cost_units import MAX_UNITS, as_fraction
from tailpath.model.ssp import SSP
from tailpath.options import warn_caller

#: Up to so many states joined by steps whose cost was rounded to 0 are solved as they are.
MOST_JOINED = 30
#: The finest grid for costs rounded down is so many times finer than the one asked for.
FINEST = 4


def proposed_delta(ssp: SSP) -> float:
    """About a thousandth of the largest cost, as a power of ten."""
    return float(10.0 ** (np.floor(np.log10(ssp.outcome_cost.max())) - 3))


def rounded(ssp: SSP, delta: Any, *, up: bool) -> SSP:
    """The model with every cost rounded to a multiple of `delta`, exactly."""
    step = _step(delta)
    exact = ssp.outcome_cost if ssp.cost_unit is None else ssp.outcome_level
    costs, position = np.unique(exact, return_inverse=True)
    unit = Fraction(1) if ssp.cost_unit is None else ssp.cost_unit
    level = [
        (math.ceil if up else math.floor)(as_fraction(cost) * unit / step)
        for cost in costs.tolist()
    ]
    if max(level, default=0) > MAX_UNITS:
        raise OptionError(
            f"delta = {delta} is too fine: the largest cost is {max(level):.6g} units, the limit is"
            f" {MAX_UNITS}"
        )
    return replace(
        ssp, outcome_cost=np.array(level, dtype=np.float64)[position] * float(step), exact_unit=step
    )


def rounded_down(ssp: SSP, delta: Any) -> SSP | None:
    """The same, rounded down, on this grid or a finer one; None where steps would still cost
    nothing.
    """
    below, step = rounded(ssp, delta, up=False), _step(delta)
    joined = _joined(ssp, below)
    if not joined:
        return below
    least = min(
        as_fraction(cost) for cost in np.unique(ssp.outcome_cost[ssp.outcome_cost > 0]).tolist()
    )
    warn_caller(
        f"delta = {delta} is more than the least cost of a step, {float(least):g}: rounded up,"
        f" steps cost several times as much, and the bounds are wide; a delta of {float(least):g}"
        " or less gives a closer bracket"
    )
    if joined <= MOST_JOINED:
        return below
    finer = step / math.ceil(step / least)
    largest = as_fraction(float(ssp.outcome_cost.max()))
    return (
        rounded(ssp, finer, up=False)
        if step <= FINEST * least and largest <= MAX_UNITS * finer
        else None
    )


def _joined(ssp: SSP, below: SSP) -> int:
    """The most states that a cycle of zero-cost steps joins which rounding down has made."""
    zero_cost = (below.outcome_level == 0) & ~ssp.is_goal[ssp.outcome_target]
    component, count = ssp.by_state.only(zero_cost).components()
    inside = zero_cost & ssp.by_state.within(component) & (ssp.outcome_cost > 0)
    source = ssp.by_state.source[inside]
    return int(np.bincount(component, minlength=count)[component[source]].max(initial=0))


def _step(delta: Any) -> Fraction:
    try:
        step = as_fraction(delta)
    except (TypeError, ValueError, ArithmeticError):
        raise OptionError(f"delta must be a number, not {delta!r}") from None
    if step <= 0:
        raise OptionError(f"delta must be positive, not {delta!r}")
    if not 1 / LARGEST_COST <= step <= LARGEST_COST:
        raise OptionError(
            f"delta must lie between {1 / LARGEST_COST:g} and {LARGEST_COST:g}, not {delta}"
        )
    return step


def rounded_both_ways(ssp: SSP, delta: Any) -> tuple[SSP, SSP]:
    """The model with costs rounded up, and with costs rounded down, perhaps on a finer grid."""
    return rounded(ssp, delta, up=True), rounded_down(ssp, delta) or rounded(ssp, delta, up=False)
