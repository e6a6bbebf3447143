"""Loops for absorbing chains: v = r + P v on transient nodes, with everything beyond them worth 0, and elimination without subtraction."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tailpath.kernels.jit import kernel
from tailpath.kernels.rounding import FIXED, ROW, UNIT, VANISHED

Array = NDArray[Any]


class Chain(NamedTuple):
    """Rows of arrows (CSR) with the `rate` collected at each visit. A target >= n is outside, and so is the probability `leak` no row lists."""

    row_start: Array
    target: Array
    probability: Array
    rate: Array
    leak: Array


@kernel
def certify(chain: Chain, value: Array, fine: Array, steps: Array, out_gain: Array) -> float:
    """The least eps with |V - value - fine| <= eps * steps, proved by one look at every node; infinite if the proof fails.

    If e bounds the defect |v - (r + P v)| of v = value + fine and d > 0 the drift steps - P steps, both with all rounding charged to the bad
    side, then v + eps * steps with eps >= e / d dominates its own backup, hence the true V; and v - eps * steps likewise from below.
    `fine` is what the floats of `value` have no room for: on long ways it matters. `out_gain` gets r + P v - v, as far as the proof went.
    Probabilities sum to 1, so both are sums of differences between a node and where it leads, and rounding is charged on these. The charge
    for a row of k outcomes also covers what probabilities and rates are off from the decimals as written (`kernels/rounding.py`).
    """
    n = len(chain.rate)
    eps = 0.0
    for node in range(n):
        gain = chain.rate[node] - chain.leak[node] * value[node] - chain.leak[node] * fine[node]
        gain_size = chain.rate[node] + chain.leak[node] * (value[node] + abs(fine[node]))
        drift, mass = chain.leak[node] * steps[node], chain.leak[node]
        drift_size, rounded = drift, 16
        for arrow in range(chain.row_start[node], chain.row_start[node + 1]):
            to, p = chain.target[arrow], chain.probability[arrow]
            mass += p
            ahead = (value[to] if to < n else 0.0) - value[node]
            finely = (fine[to] if to < n else 0.0) - fine[node]
            nearer = p * (steps[node] - (steps[to] if to < n else 0.0))
            if finely != 0.0:
                rounded = 20
            gain += p * (ahead + finely)
            gain_size += p * (abs(ahead) + abs(finely))
            drift += nearer
            drift_size += abs(nearer)
        out_gain[node] = gain
        charge = (3 * (chain.row_start[node + 1] - chain.row_start[node]) + rounded) * UNIT + abs(mass - 1.0)
        drift -= charge * drift_size
        if not drift > 0.0:
            return np.inf
        defect = abs(gain) + charge * gain_size
        if defect > 0.0:
            eps = max(eps, (defect + VANISHED) / drift)
    return eps * (1 + 16 * UNIT)


@kernel
def certified_shares(chain: Chain, value: Array) -> tuple[float, float]:
    """As `bellman.relative_bounds` where there is nothing to decide: shares d, e with (1 - d) value <= V <= (1 + e) value.

    Proved by one look at every node; infinite where a rate is not positive, something leaks or a value is not finite.
    """
    n = len(chain.rate)
    low, high = 0.0, 0.0
    for node in range(n):
        rate, first, last = chain.rate[node], chain.row_start[node], chain.row_start[node + 1]
        total, size, mass = rate, rate, 0.0
        for arrow in range(first, last):
            to, p = chain.target[arrow], chain.probability[arrow]
            term = p * ((value[to] if to < n else 0.0) - value[node])
            total += term
            size += abs(term)
            mass += p
        doubt = ((3 * (last - first) + 12) * UNIT + abs(mass - 1.0)) * size
        if not (rate > 0.0 and chain.leak[node] == 0.0 and size < np.inf):
            return np.inf, np.inf
        low = max(low, (doubt - total) / rate)
        above, room = total + doubt, rate - total - doubt
        if above > 0.0:
            high = max(high, above / room if room > 0.0 else np.inf)
    return low * (1 + 16 * UNIT), high * (1 + 16 * UNIT)


@kernel
def eliminate(order: Array, part_start: Array, chain: Chain, out_value: Array, out_error: Array) -> None:
    """Elimination without subtraction (Grassmann, Taksar, Heyman), one strong component after the other.

    Inside a component of m nodes, `leave` is the probability of leaving it at once and `gain` the rate plus what waits outside. Eliminating
    node k sends its inflow to its outflow; 1 - p_kk is formed as the sum of the other probabilities. Every operation is on non-negative
    numbers, so every result keeps its relative accuracy however ill-conditioned the chain is.

    `out_error[node]` bounds the relative error. By the matrix-tree theorem the entries of (I - P)^-1 are quotients of polynomials of degree
    m - 1 and m with non-negative coefficients in the probabilities and `leave`, so a relative change of eps in them moves a value by at
    most 2 m eps. Eliminating a row with k entries while m nodes remain commits relative errors of at most (k + 5) UNIT, hence adds 2 m (k
    + 5) UNIT; the first term is for the probabilities as given.
    """
    n = len(chain.rate)
    place = np.empty(n, dtype=np.int64)
    for part in range(len(part_start) - 1):
        first, last = part_start[part], part_start[part + 1]
        m = last - first
        inner = np.zeros((m, m))
        leave = np.zeros(m)
        gain = np.zeros(m)
        error = 0.0
        most_row = 0
        for i in range(m):
            place[order[first + i]] = i
        for i in range(m):
            node = order[first + i]
            gain[i] = chain.rate[node]
            leave[i] = chain.leak[node]
            most_row = max(most_row, chain.row_start[node + 1] - chain.row_start[node])
            for arrow in range(chain.row_start[node], chain.row_start[node + 1]):
                to = chain.target[arrow]
                if to < n and first <= _position(place, order, to, first, last) < last:
                    inner[i, place[to]] += chain.probability[arrow]
                else:
                    leave[i] += chain.probability[arrow]
                    if to < n:
                        gain[i] += chain.probability[arrow] * out_value[to]
                        error = max(error, out_error[to])
        error += (2 * m + 2) * ((ROW + 1) * most_row + FIXED + 3) * UNIT
        error += eliminate_dense(inner, leave, gain)
        for i in range(m):
            out_value[order[first + i]] = gain[i]
            out_error[order[first + i]] = error


@kernel
def _position(place: Array, order: Array, node: int, first: int, last: int) -> int:
    """Where a node stands in the order, if it belongs to the component now in `place`; otherwise -1."""
    i = place[node]
    if 0 <= i < last - first and order[first + i] == node:
        return int(first + i)
    return -1


@kernel
def eliminate_dense(inner: Array, leave: Array, gain: Array) -> float:
    """Solve one component in place (`gain` becomes the values); returns the relative error bound of `eliminate`.

    `gain` holds one number per node, or a row of them: several problems on the same component. The last node goes first.
    """
    m = len(gain)
    pivot = np.empty(m)
    columns = np.empty(m, dtype=np.int64)
    error = 0.0
    for k in range(m - 1, -1, -1):
        count = 0
        total = leave[k]
        for j in range(k):
            if inner[k, j] > 0.0:
                columns[count] = j
                count += 1
                total += inner[k, j]
        pivot[k] = total
        error += 2 * (k + 1) * (count + 5) * UNIT
        for i in range(k):
            if inner[i, k] > 0.0:
                weight = inner[i, k] / total
                for c in range(count):
                    inner[i, columns[c]] += weight * inner[k, columns[c]]
                leave[i] += weight * leave[k]
                gain[i] += weight * gain[k]
    for k in range(m):
        value = gain[k] + 0.0
        for j in range(k):
            if inner[k, j] > 0.0:
                value += inner[k, j] * gain[j]
        gain[k] = value / pivot[k]
        error += 2 * UNIT
    return error
