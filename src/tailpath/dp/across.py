"""What a proof asks about all nodes at once: the largest of some numbers, whether something holds
everywhere, the values of neighbours.

A process that has all nodes answers by itself. On several ranks each has the rows of its own nodes,
and the same proofs run on all of them (`distributed/expected.py`). No answer depends on the order
in which nodes are looked at, so that none depends on who has which: means are taken over integers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tailpath.dp.bounds import WIDE, Bounds

FloatArray = NDArray[np.float64]
#: Integers that stand for shares of the largest number sum up to no more than this.
FULL = 2.0**61


class OneProcess:
    """All nodes are here."""

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
