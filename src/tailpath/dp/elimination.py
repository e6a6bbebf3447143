"""Elimination without subtraction (Grassmann, Taksar, Heyman): v = r + P v on the transient nodes
of a chain.

Eliminating node k sends its inflow to its outflow; 1 - p_kk is formed as the sum of the other
probabilities. Every operation is on non-negative numbers, so every result keeps its relative
accuracy however ill-conditioned the chain is.
"""

from __future__ import annotations

import numpy as np

from tailpath.dp.backup import Rows
from tailpath.kernels.jit import Array, kernel
from tailpath.kernels.rounding import NEAR_UNDERFLOW


@kernel
def eliminate(order: Array, component_start: Array, rows: Rows, out_value: Array) -> bool:
    """The values of a chain, one strong component after the other; whether all were found.

    `out_value` has n + 1 entries and comes in as 0. Inside a component `leave` is the probability
    of leaving it at once, and `gain` the rate plus what waits outside.
    """
    _, row_start, target, probability, rate = rows
    position = np.full(len(out_value), -1)
    for component in range(len(component_start) - 1):
        first, last = component_start[component], component_start[component + 1]
        m = last - first
        inner, leave, gain = np.zeros((m, m)), np.zeros(m), np.zeros((m, 1))
        for i in range(m):
            position[order[first + i]] = i
        for i in range(m):
            node = order[first + i]
            gain[i, 0] = rate[node]
            for edge in range(row_start[node], row_start[node + 1]):
                to = target[edge]
                if position[to] >= 0:
                    inner[i, position[to]] += probability[edge]
                else:
                    leave[i] += probability[edge]
                    gain[i, 0] += probability[edge] * out_value[to]
        if not eliminate_dense(inner, leave, gain):
            return False
        for i in range(m):
            out_value[order[first + i]] = gain[i, 0]
            position[order[first + i]] = -1
    return True


@kernel
def eliminate_dense(inner: Array, leave: Array, gain: Array) -> bool:
    """Solve one component in place: `gain` (m, problems) becomes the values; False where a node is
    left with too small a probability to compute with.

    The last node goes first; its row of `inner` stays as it was then.
    """
    m, problems = gain.shape
    pivot, columns = np.empty(m), np.empty(m, dtype=np.int64)
    for k in range(m - 1, -1, -1):
        count, pivot[k] = 0, leave[k]
        for j in range(k):
            if inner[k, j] > 0.0:
                columns[count] = j
                count += 1
                pivot[k] += inner[k, j]
        if pivot[k] < NEAR_UNDERFLOW:
            return False
        for i in range(k):
            if inner[i, k] > 0.0:
                weight = inner[i, k] / pivot[k]
                for c in range(count):
                    inner[i, columns[c]] += weight * inner[k, columns[c]]
                leave[i] += weight * leave[k]
                for c in range(problems):
                    gain[i, c] += weight * gain[k, c]
    for k in range(m):
        for c in range(problems):
            for j in range(k):
                gain[k, c] += inner[k, j] * gain[j, c]
            gain[k, c] /= pivot[k]
    return True
