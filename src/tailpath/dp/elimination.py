"""Elimination without subtraction (Grassmann, Taksar, Heyman): v = r + P v on the transient nodes
of a chain.

Eliminating node k sends its inflow to its outflow; 1 - p_kk is formed as the sum of the other
probabilities. Every operation is on non-negative numbers, so every result keeps its relative
accuracy however ill-conditioned the chain is.

By the matrix-tree theorem the entries of (I - P)^-1 are quotients of polynomials of degree m - 1
and m with non-negative coefficients in the probabilities and the chances to leave, so a relative
change of eps in them moves a value by at most 2 m eps. Eliminating a row with k entries while m
nodes remain commits relative errors of at most (k + 5) ROUNDOFF, hence adds 2 m (k + 5) ROUNDOFF.
That holds for numbers that have all of their digits: where one falls below `NEAR_UNDERFLOW` the
result is given up.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tailpath.kernels.jit import Array, kernel
from tailpath.kernels.rounding import NEAR_UNDERFLOW, PER_EDGE, PER_ROW, ROUNDOFF


@kernel
def eliminate(
    order: Array, component_start: Array, chain: Any, out_value: Array, out_error: Array
) -> bool:
    """One strong component of a chain (`dp/backup.py`) after the other; whether no number was too
    small.

    `out_value` and `out_error`, which bounds its relative error, have n + 1 entries; they come in
    as 0, and the last stays so. Inside a component of m nodes, `leave` is the probability of
    leaving it at once and `gain` the rate plus what waits outside.
    """
    n = len(order)
    position = np.empty(n + 1, dtype=np.int64)
    part_of = np.full(n + 1, -1, dtype=np.int64)
    for component in range(len(component_start) - 1):
        first, last = component_start[component], component_start[component + 1]
        m = last - first
        inner, leave = np.zeros((m, m)), np.zeros(m)
        gain = np.zeros((m, 1))
        error, most_row = 0.0, 0
        for i in range(m):
            position[order[first + i]], part_of[order[first + i]] = i, component
        for i in range(m):
            node = order[first + i]
            gain[i, 0] = chain.rate[node]
            most_row = max(most_row, chain.choice_outcomes[node + 1] - chain.choice_outcomes[node])
            for edge in range(chain.choice_outcomes[node], chain.choice_outcomes[node + 1]):
                to, p = chain.target[edge], chain.probability[edge]
                if part_of[to] == component:
                    inner[i, position[to]] += p
                else:
                    leave[i] += p
                    gain[i, 0] += p * out_value[to]
                    error = max(error, out_error[to])
                    if out_value[to] > 0.0 and gain[i, 0] < NEAR_UNDERFLOW:
                        return False
        error += (2 * m + 2) * (((PER_EDGE + 1) * most_row + PER_ROW + 3) * ROUNDOFF + chain.error)
        solved, faded = eliminate_dense(inner, leave, gain)
        error += solved
        if faded or error == np.inf:
            return False
        for i in range(m):
            out_value[order[first + i]], out_error[order[first + i]] = gain[i, 0], error
    return True


@kernel
def eliminate_dense(inner: Array, leave: Array, gain: Array) -> tuple[float, bool]:
    """Solve one component in place: `gain` (m, problems) becomes the values. Returns their relative
    error, infinite where a node is left with too small a probability, and whether any number was so
    small that it lacks digits.

    The last node goes first.
    """
    m, problems = gain.shape
    pivot = np.empty(m)
    columns = np.empty(m, dtype=np.int64)
    error, faded = 0.0, False
    for k in range(m - 1, -1, -1):
        count = 0
        total = leave[k]
        for j in range(k):
            if inner[k, j] > 0.0:
                columns[count] = j
                count += 1
                total += inner[k, j]
        pivot[k] = total
        if total < NEAR_UNDERFLOW:
            return np.inf, True
        error += 2 * (k + 1) * (count + 5) * ROUNDOFF
        for i in range(k):
            if inner[i, k] > 0.0:
                weight = inner[i, k] / total
                for c in range(count):
                    inner[i, columns[c]] += weight * inner[k, columns[c]]
                    faded |= inner[i, columns[c]] < NEAR_UNDERFLOW
                leave[i] += weight * leave[k]
                faded |= leave[k] > 0.0 and leave[i] < NEAR_UNDERFLOW
                for c in range(problems):
                    gain[i, c] += weight * gain[k, c]
                    faded |= gain[k, c] != 0.0 and abs(gain[i, c]) < NEAR_UNDERFLOW
    for k in range(m):
        for c in range(problems):
            value = gain[k, c]
            for j in range(k):
                if inner[k, j] > 0.0:
                    value += inner[k, j] * gain[j, c]
                    faded |= gain[j, c] != 0.0 and abs(value) < NEAR_UNDERFLOW
            gain[k, c] = value / pivot[k]
        error += 2 * ROUNDOFF
    return error, faded
