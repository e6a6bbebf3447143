"""Sums over what a search has left open, for the tail of a distribution."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tailpath.kernels.jit import kernel

Array = NDArray[Any]


@kernel
def open_sums(node: Array, cost: Array, mass: Array, last: float, value: Array, lower: Array, upper: Array) -> tuple[float, ...]:
    """The sums of mass, of mass times (cost - last + V)+ for the three V, and of mass times (|cost - last| + upper) as far as it is finite.

    A node beyond the last has V = 0: the goal. All terms are non-negative. Sixteen of them are added up at a time, and what the sum of these
    loses is carried along, so that every result is off by 20 roundings at most.
    """
    total, lost, part = np.zeros(5), np.zeros(5), np.zeros(5)
    for begin in range(0, len(node), 16):
        for k in range(5):
            part[k] = 0.0
        for i in range(begin, min(begin + 16, len(node))):
            x, p, ahead = node[i], mass[i], cost[i] - last
            inside = x < len(value)
            high = upper[x] if inside else 0.0
            part[0] += p
            part[1] += p * max(ahead + (value[x] if inside else 0.0), 0.0)
            part[2] += p * max(ahead + (lower[x] if inside else 0.0), 0.0)
            part[3] += p * max(ahead + high, 0.0)
            part[4] += p * (abs(ahead) + (high if high < np.inf else 0.0))
        for k in range(5):
            after = total[k] + part[k]
            # Exact, for the larger of the two less what it became.
            small, large = min(total[k], part[k]), max(total[k], part[k])
            lost[k] += (large - after) + small if after < np.inf else 0.0
            total[k] = after
    for k in range(5):
        total[k] += lost[k]
    return total[0], total[1], total[2], total[3], total[4]
