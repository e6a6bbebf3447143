"""Loops over chains, breadth first and by cost."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tailpath.kernels.jit import kernel

Array = NDArray[Any]


@kernel
def fewest_steps(into_start: Array, into_source: Array, out_steps: Array) -> None:
    """Breadth-first search against the arrows from the last node (the goals): the least number of steps to it, -1 where there is no way."""
    n = len(out_steps)
    queue = np.empty(n, dtype=np.int32)
    queue[0] = n - 1
    out_steps[n - 1] = 0
    head, tail = 0, 1
    while head < tail:
        node = queue[head]
        head += 1
        for position in range(into_start[node], into_start[node + 1]):
            source = into_source[position]
            if out_steps[source] < 0:
                out_steps[source] = out_steps[node] + 1
                queue[tail] = source
                tail += 1
