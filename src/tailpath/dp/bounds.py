"""A value with proved bounds, how bounds are rounded, and what a proof asks about all nodes.
The sizes of all that rounding may do are in `kernels/rounding.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from tailpath.graph import FloatArray
from tailpath.kernels.rounding import NEAR_UNDERFLOW, NONZERO, ROUNDOFF, THREE_ROUNDINGS

#: A proved relative error above this makes a solver look for a better method.
WIDE = 1e-11
#: Integers that stand for shares of the largest number sum up to no more than this.
FULL = 2.0**61


@dataclass(frozen=True, eq=False)
class Bounds:
    """A value, or an array of them, with lower <= truth <= upper; `method` says which
    proof holds.
    """

    value: Any
    lower: Any
    upper: Any
    method: str = ""

    @cached_property
    def width(self) -> float:
        """The worst relative width, infinite if nothing is proved."""
        return self.widest(float)

    def widest(self, most: Callable[[float], float]) -> float:
        """The worst relative width, where `most` has the largest number of all ranks. Values far
        below the largest are allowed what comes with its rounding.
        """
        size = np.abs(self.value)
        scale = size + 1e-3 * most(float(np.max(size, initial=0.0))) + NONZERO
        with np.errstate(invalid="ignore"):
            widest = float(np.max((self.upper - self.lower) / scale, initial=0.0))
        return most(math.inf if math.isnan(widest) else widest)

    @property
    def is_wide(self) -> bool:
        """Whether they are worth a better method."""
        return self.width > 2 * WIDE

    def each(self, change: Callable[[FloatArray], FloatArray]) -> Bounds:
        """The same change made to the value and to both bounds."""
        return Bounds(change(self.value), change(self.lower), change(self.upper), self.method)

    def shifted(self, by: FloatArray) -> Bounds:
        """Of values and so much more, each the float nearest to what is meant; infinite ones stay,
        and so does what nothing is added to."""

        def moved(values: FloatArray, side: int) -> FloatArray:
            # The number added, the sum, and costs that are no more than the nearest floats.
            away = (
                side
                * 4
                * ROUNDOFF
                * np.where(np.isfinite(values), np.abs(values) + np.abs(by), 0.0)
            )
            return np.where(by == 0, values, values + by + away)

        return Bounds(
            moved(self.value, 0), moved(self.lower, -1), moved(self.upper, 1), self.method
        )


def within_shares(value: FloatArray, below: Any, above: Any, method: str) -> Bounds:
    """Bounds by relative errors: truth >= (1 - below) value and <= (1 + above) value, for values >=
    0.
    """
    lower = value * (np.maximum(1 - below, 0.0) * (1 - THREE_ROUNDINGS))
    upper = value * ((1 + above) * (1 + THREE_ROUNDINGS))
    if upper.min(initial=np.inf) < NEAR_UNDERFLOW:  # there a product is off by more than a share
        faded = (value > 0.0) & (upper < NEAR_UNDERFLOW)
        upper = np.where(faded, np.nextafter(upper, np.inf), upper)
    return Bounds(value, lower, upper, method)


def bounds_within(value: FloatArray, fine: FloatArray, slack: FloatArray, method: str) -> Bounds:
    """Bounds by absolute errors: the truth lies within `slack` of value + fine."""
    lower, upper = (
        np.nextafter(value + (fine - slack), -np.inf),
        np.nextafter(value + (fine + slack), np.inf),
    )
    # Without any slack every term is 0, and so is the value.
    some = slack > 0.0
    return Bounds(
        np.where(some, value + fine, value),
        np.where(some, lower, value),
        np.where(some, upper, value),
        method,
    )


def narrower(first: Bounds, second: Bounds) -> Bounds:
    """What two proofs say together, of the same values; those of the second are taken, which has
    looked for what is missing.
    """
    lower, upper = np.maximum(first.lower, second.lower), np.minimum(first.upper, second.upper)
    return Bounds(np.clip(second.value, lower, upper), lower, upper, first.method)


def unproved(value: FloatArray, method: str) -> Bounds:
    """Nothing is known."""
    return Bounds(value, np.full_like(value, -np.inf), np.full_like(value, np.inf), method)


class OneProcess:
    """What a proof asks about all nodes at once: the largest of some numbers, whether something
    holds everywhere, the values of neighbours. Here all nodes are in one process.

    On several ranks each has the rows of its own nodes, and the same proofs run on all of them
    (`distributed/expected.py`). No answer depends on the order in which nodes are looked at, so
    that none depends on who has which: means are taken over integers.
    """

    def most(self, number: float) -> float:
        """The largest of a number of every rank."""
        return number

    def total(self, count: int) -> int:
        """The sum of an integer of every rank."""
        return count

    def padded(self, values: FloatArray) -> FloatArray:
        """Values by node, those of other ranks that rows lead to, and 0 for the end."""
        return np.append(values, 0.0)

    def every(self, holds: Any) -> bool:
        """Whether something holds on every rank."""
        return self.most(float(not holds)) == 0.0

    def mean(self, numbers: FloatArray) -> float:
        """The mean of numbers >= 0 of all ranks."""
        largest, count = self.most(float(numbers.max(initial=0.0))), self.total(len(numbers))
        if not 0.0 < largest < np.inf:
            return largest
        parts = np.rint(numbers / largest * (FULL / count)).astype(np.int64)
        return largest * (self.total(int(parts.sum())) / FULL)

    def width(self, bounds: Bounds) -> float:
        """The worst relative width of bounds by node."""
        return bounds.width

    def is_wide(self, bounds: Bounds) -> bool:
        """Whether bounds are worth a better method."""
        return self.width(bounds) > 2 * WIDE


ONE_PROCESS = OneProcess()
