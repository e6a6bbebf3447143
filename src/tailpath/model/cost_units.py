"""Costs as exact rationals: the number that a float stands for, and the unit of a set of costs."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from tailpath.errors import OptionError
from tailpath.graph import FloatArray, IntArray

#: If the largest cost is more units than this, integers are of no use and costs stay floats.
MAX_UNITS = 10_000_000
#: No useful number has a larger exponent, and the power of ten would fill the memory.
MAX_EXPONENT = 5_000
_EXPONENT = re.compile(r"[eE]([+-]?[0-9_]+)\s*$")


def as_fraction(number: Any) -> Fraction:
    """The rational a number stands for; a float stands for the shortest decimal that prints it.

    A decimal with an exponent beyond `MAX_EXPONENT` is a `ValueError`.
    """
    if isinstance(number, (float, np.floating)):
        return Fraction(repr(float(number)))
    exponent = _EXPONENT.search(str(number)) if isinstance(number, (str, Decimal)) else None
    if exponent and abs(int(exponent[1])) > MAX_EXPONENT:
        raise ValueError(f"the exponent of {number} is out of range")
    return Fraction(int(number) if isinstance(number, np.integer) else number)


def refused_unless_number(number: Any, refusal: Exception) -> Fraction:
    """As `as_fraction`; raises `refusal` if it is not a number."""
    try:
        return as_fraction(number)
    except (TypeError, ValueError, ArithmeticError):
        raise refusal from None


def exact_number(number: Any, what: str, *, signed: bool = False) -> Fraction:
    """An argument as `as_fraction`, called `what` in messages; negative only if `signed`."""
    exact = refused_unless_number(number, OptionError(f"{what} must be a number, not {number!r}"))
    if abs(exact) > sys.float_info.max:
        raise OptionError(f"{what} must be a finite number, not {number!r}")
    if exact < 0 and not signed:
        raise OptionError(f"{what} must be 0 or more, not {number!r}")
    return exact


def vanishes(decimal: str, value: float) -> bool:
    """Whether a decimal other than 0 was rounded to 0."""
    return value == 0 and decimal.lower().partition("e")[0].strip("+-0.") != ""


def common_unit(costs: Iterable[Any]) -> Fraction | None:
    """The largest rational of which all costs are integer multiples, or `None` beyond `MAX_UNITS`
    units.

    The greatest common divisor of p1/q1 and p2/q2 in lowest terms is gcd(p1, p2) / lcm(q1, q2). All
    costs zero: the unit is 1.
    """
    numerator, denominator = 0, 1
    largest = Fraction(0)
    for cost in costs:
        value = as_fraction(cost)
        numerator = math.gcd(numerator, value.numerator)
        denominator = math.lcm(denominator, value.denominator)
        largest = max(largest, abs(value))
        # The unit only ever gets finer, so the search may stop at the first sign that it is too
        # fine.
        if numerator and largest * denominator > MAX_UNITS * numerator:
            return None
    return Fraction(numerator, denominator) if numerator else Fraction(1)


def in_levels(costs: FloatArray, unit: Fraction) -> IntArray:
    """Costs in units, each to the nearest whole number."""
    return np.rint(costs * (unit.denominator / unit.numerator)).astype(np.int64)


def as_multiples(costs: FloatArray, unit: Fraction) -> FloatArray:
    """For each cost the float nearest to an integer multiple of the unit, of all multiples the one
    nearest to the cost.
    """
    return in_costs(in_levels(costs, unit), unit)


def in_costs(levels: Any, unit: Fraction) -> FloatArray:
    """Whole numbers of units as costs, each the float nearest to it; infinite beyond all floats."""
    numerator, denominator = unit.numerator, unit.denominator
    if isinstance(levels, np.ndarray) and levels.dtype != object:
        integers = levels if levels.dtype.kind == "i" else levels[np.isfinite(levels)]
        if numerator * int(np.abs(integers).max(initial=0)) < 2**53 > denominator:
            costs = levels * float(numerator)
            if denominator > 1:
                costs /= denominator  # an integer divided once: rounded once
            return np.asarray(costs)
        levels = levels.tolist()

    def nearest(level: int) -> float:
        try:
            return level * numerator / denominator
        except OverflowError:
            return math.inf if level > 0 else -math.inf

    return np.array([nearest(level) for level in levels], dtype=np.float64)


def float_above(exact: Fraction, read: Callable[[float], Fraction] = Fraction) -> float:
    """The least float that is no less than a number; infinite beyond all floats.

    With `as_fraction` to `read` it, the decimal that is printed counts: an exact cost is at most x,
    as somebody writes x, exactly if this float is.
    """
    try:
        nearest = float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -sys.float_info.max
    return nearest if read(nearest) >= exact else math.nextafter(nearest, math.inf)


def integer_costs(costs: FloatArray) -> tuple[list[int], Fraction]:
    """Costs as integer multiples of a unit that divides all of them as they are written, however
    small it is.
    """
    distinct, at = np.unique(costs, return_inverse=True)
    exact = [as_fraction(value) for value in distinct.tolist()]
    unit = Fraction(1, math.lcm(*(value.denominator for value in exact)))
    integers = [int(value / unit) for value in exact]
    return [integers[i] for i in at.ravel().tolist()], unit


def fraction_unit(costs: Sequence[float]) -> Fraction | None:
    """The unit of costs that came as floats and were fractions such as 1/3: each the float of one
    with a small denominator.

    `None` where the costs have a unit as they stand, or none this way either. Among the fractions
    with a denominator below 10^4 only one in 10^8 floats has one that rounds to it, so a cost that
    has is hardly anything else.
    """
    if common_unit(costs) is not None:
        return None
    fractions = [Fraction(cost).limit_denominator(10_000) for cost in costs]
    meant = all(float(fraction) == cost for fraction, cost in zip(fractions, costs))
    return common_unit(fractions) if meant else None


def in_units(number: Any, unit: Fraction) -> Fraction:
    """A cost in units, exactly; a float that is the nearest one to a whole number of units stands
    for that number.
    """
    # Most are integers, which need no search for the fraction meant.
    if isinstance(number, float) and number.is_integer():
        integers, remainder = divmod(int(number) * unit.denominator, unit.numerator)
        if remainder == 0:
            return Fraction(integers)
    level = as_fraction(number) / unit
    integers = round(level)
    return Fraction(integers) if float(integers * unit) == float(number) else level


def exact_cost(cost: float, unit: Fraction | None) -> Fraction:
    """A cost as somebody writes it: whole units, where there is a unit and it is their float."""
    return as_fraction(cost) if unit is None else in_units(cost, unit) * unit
