"""Losses of the total cost: piecewise linear functions that may jump and need not be convex.

`h` is given by points (x, y) in rising x and by its slope after the last one. It is constant before
the first point and linear between two. Two points with the same x are a jump: h(x) is the first y,
and just after x it is the second. So a deadline of 35 is (35, 0), (35, 1), and a cost of exactly 35
is on time. Breakpoints are rationals, so that what lies on the model's cost grid is decided
exactly.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from operator import add
from typing import Any

import numpy as np

from tailpath.errors import OptionError
from tailpath.model.border import less
from tailpath.model.cost_units import as_fraction, in_units, refused_unless_number
from tailpath.model.ssp import FloatArray


@dataclass(frozen=True)
class Curve:
    """A loss: `at[i]` is its value at `breakpoints[i]`, `after[i]` the limit from the right, and
    `slope` holds beyond the last of them.
    """

    breakpoints: tuple[Fraction, ...]
    at: tuple[float, ...]
    after: tuple[float, ...]
    slope: float

    @property
    def last(self) -> float:
        """The last cost where the loss is not linear."""
        return float(self.breakpoints[-1])

    @property
    def at_infinity(self) -> float:
        """The limit of the loss, which never arriving is worth."""
        return math.inf if self.slope > 0 else self.after[-1]

    @cached_property
    def x(self) -> FloatArray:
        """The breakpoints as floats."""
        return np.array([float(breakpoint) for breakpoint in self.breakpoints])

    def values(self, costs: Any) -> FloatArray:
        z = np.asarray(costs, dtype=np.float64)
        x, at = self.x, np.array(self.at)
        after = np.array(self.after)
        here = np.searchsorted(x, z, side="left")  # the first at or behind z
        last = len(x) - 1
        result = np.where(here == 0, at[0], after[-1] + self.slope * (z - x[-1]))
        if last > 0:
            right = np.clip(here, 1, last)
            left = right - 1
            share = (z - x[left]) / (x[right] - x[left])
            between = after[left] + share * (at[right] - after[left])
            result = np.where((here > 0) & (here <= last), between, result)
        here = np.minimum(here, last)
        return np.where(x[here] == z, at[here], result)

    def slope_and_jump(self, low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The steepest slope between each of some costs and another, and by how much the loss jumps
        there.
        """
        x, slopes = self.x, self.steepness
        first, last = np.searchsorted(x, low, side="left"), np.searchsorted(x, high, side="right")
        steepest = np.where(last - first > 1, slopes.max(), np.maximum(slopes[first], slopes[last]))
        jumps = np.concatenate([[0.0], np.cumsum(np.abs(np.array(self.after) - np.array(self.at)))])
        return steepest, jumps[last] - jumps[first]

    def moved(self, by: Fraction, unit: Fraction | None) -> Curve:
        """The same loss of costs that are so much less, and whole units if there is one."""
        moved = tuple(less(breakpoint, by, unit) for breakpoint in self.breakpoints)
        return replace(self, breakpoints=moved)

    @property
    def steepest(self) -> float:
        return float(np.max(self.steepness))

    @property
    def least(self) -> float:
        """The least value at a breakpoint, or just after one."""
        return min(*self.at, *self.after)

    @property
    def largest(self) -> float:
        return max(map(abs, (*self.at, *self.after)))

    @property
    def steepness(self) -> FloatArray:
        """The size of the slope before the first breakpoint, between two, and behind the last."""
        rises = (np.array(self.at)[1:] - np.array(self.after)[:-1]) / np.diff(self.x)
        slopes: FloatArray = np.abs(np.concatenate([[0.0], rises, [self.slope]]))
        return slopes

    def points_beyond(
        self, x: float, include: bool = False
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Breakpoints beyond a cost, values there, values just after. The first is x itself, with
        what holds just after it, or, to `include` it, at it.
        """
        start = as_fraction(x)
        first = sum(breakpoint <= start for breakpoint in self.breakpoints)
        after = self._after((start,))[0]
        here = self._at((start,))[0] if include else after
        return (
            np.append(x, self.x[first:]),
            np.array([here, *self.at[first:]]),
            np.array([after, *self.after[first:]]),
        )

    def units(self, unit: Fraction) -> int:
        """The least number of units from which on, on their grid, the loss is linear."""
        breakpoint = in_units(self.breakpoints[-1], unit)
        level = math.floor(breakpoint)
        return max(level if level == breakpoint and self.at[-1] == self.after[-1] else level + 1, 0)

    def __add__(self, other: Curve) -> Curve:
        breakpoints = tuple(sorted({*self.breakpoints, *other.breakpoints}))
        at = tuple(map(add, self._at(breakpoints), other._at(breakpoints)))
        after = tuple(map(add, self._after(breakpoints), other._after(breakpoints)))
        return Curve(breakpoints, at, after, self.slope + other.slope)

    def __mul__(self, weight: float) -> Curve:
        at, after = (tuple(weight * y for y in values) for values in (self.at, self.after))
        return Curve(self.breakpoints, at, after, weight * self.slope)

    def _at(self, breakpoints: tuple[Fraction, ...]) -> list[float]:
        return [float(y) for y in self.values([float(breakpoint) for breakpoint in breakpoints])]

    def _after(self, breakpoints: tuple[Fraction, ...]) -> list[float]:
        own = dict(zip(self.breakpoints, self.after))
        return [own.get(x, value) for x, value in zip(breakpoints, self._at(breakpoints))]


def curve_of(points: Iterable[tuple[Any, Any]], slope: Any) -> Curve:
    """A loss of the total cost, for the `curve` of a measure.

    Parameters
    ----------
    points : iterable of pairs (cost, value)
        Points of the loss, by rising cost; two at one cost are a jump just behind it.
    slope : number, 0 or more
        How steeply the loss rises behind the last point.

    Returns
    -------
    Curve
        The loss.

    Raises
    ------
    OptionError
        If the points do not rise, or the slope is negative.

    Examples
    --------
    >>> tp.risk.curve_of([(30, 0), (30, 5)], 1).values([30, 31]).tolist()
    [0.0, 6.0]
    """
    breakpoints: dict[Fraction, list[float]] = {}
    last = None
    for x, y in points:
        breakpoint, value = _number(x, "cost"), float(_number(y, "value"))
        if last is not None and breakpoint < last:
            raise OptionError(f"the points of a loss must be in rising order; {x!r} is not")
        breakpoints.setdefault(breakpoint, []).append(value)
        last = breakpoint
    if not breakpoints:
        raise OptionError("a loss needs at least one point (cost, value)")
    for breakpoint, values in breakpoints.items():
        if len(values) > 2:
            raise OptionError(
                f"a loss has at most two points at one cost; at {float(breakpoint):g} it has"
                f" {len(values)}"
            )
    steepness = float(_number(slope, "slope"))
    if steepness < 0:
        raise OptionError(f"the last slope of a loss must be 0 or more, not {slope!r}")
    at, after = (tuple(values[end] for values in breakpoints.values()) for end in (0, -1))
    return Curve(tuple(breakpoints), at, after, steepness)


def _number(value: Any, what: str) -> Fraction:
    refusal = OptionError(f"the {what} {value!r} of a loss is not a number")
    return refused_unless_number(value, refusal)
