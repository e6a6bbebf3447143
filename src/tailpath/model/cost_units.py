"""Costs as exact rationals: what a number stands for, and the grid a set of costs lies on."""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

import numpy as np

#: Beyond this many units in the largest cost, an integer grid is of no use and costs stay floats.
MOST_UNITS = 10_000_000


def as_fraction(number: Any) -> Fraction:
    """The rational a number stands for; a float stands for the shortest decimal that prints it."""
    if isinstance(number, (float, np.floating)):
        return Fraction(repr(float(number)))
    return Fraction(int(number) if isinstance(number, np.integer) else number)


def common_unit(costs: Iterable[Any]) -> Fraction | None:
    """The largest rational of which all costs are whole multiples, or `None` beyond `MOST_UNITS` units.

    The greatest common divisor of p1/q1 and p2/q2 in lowest terms is gcd(p1, p2) / lcm(q1, q2). All costs zero: the unit is 1.
    """
    numerator, denominator, largest = 0, 1, Fraction(0)
    for cost in costs:
        value = as_fraction(cost)
        numerator, denominator = math.gcd(numerator, value.numerator), math.lcm(denominator, value.denominator)
        largest = max(largest, value)
        # The unit only ever gets finer, so the search may stop at the first sign that it is too fine.
        if numerator and largest * denominator > MOST_UNITS * numerator:
            return None
    return Fraction(numerator, denominator) if numerator else Fraction(1)
