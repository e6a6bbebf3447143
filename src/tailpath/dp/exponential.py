"""The least expected exponential of a total over all policies, in plain doubles: W = min_a sum p
exp(x) W', where x is by edge, and W is 1 at the end.

All of it is in logarithms h = ln W, so that nothing overflows. With y = x + h' - h by edge, rows of
p exp(y) have the solution W / exp(h), which is 1 where h is right, and what is missing solves

    g = sum p (exp(y) - 1) + sum p exp(y) g',    h <- h + ln(1 + g),

a small number from small ones, for tiny x, too.

1. *Policy iteration* from a policy whose W is finite: each is the solution of a linear system, and
   a row is better where it makes the right side less.
2. *Value iteration* from below where none is known to be: of h + x over all rows.
3. States that only grow, u <= min_a sum p exp(x) u' over some of them, have no finite W. Rows that
   may lead there are left out.

How far h may be off, `certify/exponentials.py` proves.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tailpath.dp.expected import factorised
from tailpath.errors import LimitExceededError
from tailpath.graph import Array, BoolArray, FloatArray, Transitions, offsets_of, owners, positions
from tailpath.kernels.jit import frozen, kernel

#: Gains and ties of rows, as a share of what their differences add up to.
GAIN, TIE = 1e-12, 1e-9
#: The most policies; edges that value iteration looks at, in all; rounds of it before the first
#: policy.
MAX_POLICIES, MAX_EDGES, ROUNDS = 500, 10_000_000, 16
#: A round takes about as long as so many edges, at the least.
CALL = 1000
#: No edge of a row counts for more than the exponential of this; only of rows that are not best.
MOST = 30.0
#: No logarithm of u is less, beside the largest.
LEAST = -1e4


class Least(NamedTuple):
    """The states whose W is finite, with h, a row each, and the most expected steps to the end,
    weighted by what they count, of all rows that tie; `rows` are theirs, numbers of all rows, and
    `part` the same by number of these states. `growth` is ln u by state, -inf where W is finite.
    """

    states: Array
    rows: Array
    part: Transitions
    exponent: FloatArray
    log: FloatArray
    chosen: Array
    steps: FloatArray
    growth: FloatArray


@kernel
def sweep_logs(
    first_row: Array, row_start: Array, target: Array, weight: Array, back: bool, out_log: Array
) -> None:
    """One round of h(s) = min over rows of ln sum exp(weight + h'), in place, either way round."""
    n = len(first_row) - 1
    for step in range(n):
        state = n - 1 - step if back else step
        least = np.inf
        for row in range(first_row[state], first_row[state + 1]):
            most = -np.inf
            for edge in range(row_start[row], row_start[row + 1]):
                most = max(most, weight[edge] + out_log[target[edge]])
            total = 0.0
            for edge in range(row_start[row], row_start[row + 1]):
                total += math.exp(weight[edge] + out_log[target[edge]] - most)
            least = min(least, most + math.log(total))
        out_log[state] = least


def least_exponential(
    rows: Transitions, exponent: FloatArray, log: FloatArray, chosen: Array
) -> Least | None:
    """h by state from a first guess `log` below it and a policy, one row per state; None if doubles
    do not decide in time where W is finite.
    """
    growth, weight = np.full(len(log), -np.inf), np.log(rows.probability) + exponent
    swept, rounds = 0, ROUNDS
    while True:
        states, kept, part = _finite(rows, growth)
        own_exponent = exponent[rows.edges(kept)]
        if swept > 0:
            chosen = _best(part, _differences(part, own_exponent, log[states])[0])
        found = _by_policies(part, own_exponent, log[states], chosen)
        if found is not None:
            values, better, steps = found
            return Least(states, kept, part, own_exponent, values, better, steps, growth)
        if swept > MAX_EDGES:
            return None
        ahead, columns = np.append(log, 0.0), (rows.state_rows, rows.row_start, rows.target)
        for turn in range(rounds):
            sweep_logs(*frozen(*columns, weight), turn % 2 == 0, ahead)
        swept, rounds, log = swept + rounds * (len(weight) + CALL), 2 * rounds, ahead[:-1]
        growth = _growing(rows, weight, log, rounds)


def _differences(
    rows: Transitions, exponent: FloatArray, log: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """By row sum p (exp(y) - 1) and the sum of its sizes; by edge y."""
    state = owners(rows.state_rows)[rows.source]
    y = exponent + np.append(log, 0.0)[rows.target] - log[state]
    y = np.minimum(y, MOST - np.log(rows.probability))
    with np.errstate(over="ignore"):  # far from right; rows that may be taken are refused then
        part = rows.probability * np.expm1(y)
    return rows.sums(part), rows.sums(np.abs(part)), y


def _best(rows: Transitions, by_row: FloatArray) -> Array:
    """The first row of every state with the least of a number."""
    first = rows.state_rows
    least = np.minimum.reduceat(by_row, first[:-1])
    best = np.flatnonzero(by_row == least[owners(first)])
    chosen = np.empty(len(first) - 1, dtype=np.int64)
    chosen[owners(first)[best][::-1]] = best[::-1]
    return chosen


def _by_policies(
    rows: Transitions, exponent: FloatArray, log: FloatArray, chosen: Array
) -> tuple[FloatArray, Array, FloatArray] | None:
    """h, rows and weighted steps by policy iteration; None if the first policy is not finite."""
    steps, settled = log, 0
    if len(log) == 0:
        return log, chosen, steps
    missing, size, y = _differences(rows, exponent, log)
    for _ in range(MAX_POLICIES):
        found = _solved(rows, missing, y, chosen)
        if found is None:
            return None
        steps, log = found[0], log + np.log1p(found[1])
        missing, size, y = _differences(rows, exponent, log)
        best = _best(rows, missing)
        gains = missing[chosen] - missing[best] > GAIN * (size[chosen] + size[best])
        settled = 0 if gains.any() else settled + 1
        if settled == 2:
            break
        chosen = np.where(gains, best, chosen)
    tied = missing <= TIE * size
    tied[chosen] = True
    with np.errstate(over="ignore"):
        slowest, factor = chosen, rows.probability * np.exp(y)
    for _ in range(MAX_POLICIES):
        ahead = rows.sums(factor * np.append(steps, 0.0)[rows.target])
        slower = _best(rows, np.where(tied, -ahead, np.inf))
        more = ahead[slower] > ahead[slowest] * (1 + TIE)
        if not more.any():
            break
        slowest = np.where(more, slower, slowest)
        solved = _solved(rows, missing, y, slowest)
        if solved is None:
            break
        steps = solved[0]
    return log, chosen, steps


def _solved(
    rows: Transitions, missing: FloatArray, y: FloatArray, chosen: Array
) -> tuple[FloatArray, FloatArray] | None:
    """Of the policy, by state: the weighted steps to the end, and what is missing; None if W is not
    finite.
    """
    part, inside = rows.restrict(chosen), rows.edges(chosen)
    with np.errstate(over="ignore"):
        factor = part.probability * np.exp(y[inside])
    if factor.max(initial=0.0) > math.exp(MOST - 1):  # h is far from right
        return None
    part = part.replaced(probability=factor, first_row=None)
    rates = np.column_stack((np.ones(part.n), missing[chosen]))
    found = factorised(part, rates)
    if found is None:
        if part.n < 1000:
            return None
        raise LimitExceededError("the model is too large for expected exponentials", (0.0, np.inf))
    steps, gain = found[0].T
    return (steps, gain) if (steps > 0).all() and (gain > -1).all() else None


def _growing(rows: Transitions, weight: FloatArray, log: FloatArray, steps: int) -> FloatArray:
    """ln u by state for u <= min_a sum p exp(x) u', -inf where u is 0; every row of the others ends
    surely enough, as far as can be seen.
    """
    first, log = rows.state_rows, log - log.max()
    for _ in range(steps):  # towards what grows most, where some states wait for others
        log = np.logaddexp(log, _stepped(rows, weight, log))
        log = np.maximum(log - log.max(), LEAST)
    grows: NDArray[np.bool_] = np.ones(len(log), dtype=np.bool_)
    while grows.any():
        next_log = _stepped(rows, weight, np.where(grows, log, -np.inf))
        still = grows & (next_log > log + GAIN * (1 + np.abs(log)))
        if (still == grows).all():
            break
        grows = still
    # Whoever cannot avoid these grows with them.
    growth = np.where(grows, log, -np.inf)
    while grows.any():
        leads = np.append(grows, False)[rows.target]
        avoids = rows.sums(leads.astype(np.float64)) == 0
        doomed = ~np.logical_or.reduceat(avoids, first[:-1]) & ~grows
        if not doomed.any():
            break
        growth = np.where(doomed, _stepped(rows, weight, growth) - math.log(2), growth)
        grows = grows | doomed
    return growth


def _stepped(rows: Transitions, weight: FloatArray, log: FloatArray) -> FloatArray:
    """ln of min_a sum p exp(x) u', by that of u, which is 0 at the end."""
    terms = weight + np.append(log, -np.inf)[rows.target]
    most = np.maximum.reduceat(terms, rows.row_start[:-1])
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = np.exp(terms - most[rows.source])
        total = np.where(np.isfinite(most), most + np.log(rows.sums(shares)), -np.inf)
    return np.asarray(np.minimum.reduceat(total, rows.state_rows[:-1]))


def _finite(rows: Transitions, growth: FloatArray) -> tuple[Array, Array, Transitions]:
    """The states that need not grow, their rows that never lead to others, and these by number."""
    finite: BoolArray = np.isinf(growth)
    state = owners(rows.state_rows)
    outside = rows.sums((~np.append(finite, True))[rows.target].astype(np.float64))
    kept = np.flatnonzero(finite[state] & (outside == 0))
    number = positions(finite)
    part = rows.restrict(kept).renumber(number)
    first_row = offsets_of(number[state[kept]], int(finite.sum()))
    return np.flatnonzero(finite), kept, part.replaced(first_row=first_row)
