"""Bounds on ln W for the least expected exponential of a total (`dp/exponential.py`).

With y = x + h' - h, D = sum p (exp(y) - 1) by row, and numbers T > 0 by state, whose drift is T -
sum p exp(y) T':

- *Above.* If D <= e drift in the row of a policy, it has W <= exp(h) (1 + e T): the right side is
  no less than what it leads to, and W is the limit from below.
- *Below.* If D + e drift >= 0 for all rows, then W >= exp(h) (1 - e T) for every policy: what is
  left of it on runs that go on falls to 0 where W is finite (costs are 0 or more, or there is one
  policy). A smaller y does no harm.
- *Infinite.* If u <= sum p exp(x) u' in every row of some states, and u > 0 there, then no policy
  has a finite W in them: W >= k u for every k.

Since all that is rounded is y and a sum of differences, bounds are as close for tiny x. (Proofs:
Lemma 14 of docs/bounds.md.)
"""

from __future__ import annotations

import numpy as np

from tailpath.certify.rounding import AFTERWARDS, ROUNDOFF, VANISHED, row_error
from tailpath.certify.values import Bounds, least_shares
from tailpath.dp.exponential import MOST, least_exponential
from tailpath.graph import Array, FloatArray, Transitions, owners
from tailpath.kernels.jit import frozen

#: What x, h and h' round in y, relatively: costs and factors beside the decimals as written, their
#: product, and two sums, 5 of x and 2 of h', at most.
OF_EXPONENTS = 8 * ROUNDOFF


def exponential_bounds(
    rows: Transitions,
    exponent: FloatArray,
    log: FloatArray,
    chosen: Array,
    off: float,
    below: FloatArray,
) -> tuple[Bounds, Array]:
    """ln W with bounds by state, infinite where no policy has a finite one, and a policy, -1 there.
    `log` is a first guess, of the policy `chosen`; `off` is what probabilities are off by, and
    `below` what ln W is known to be at least.
    """
    below = below - VANISHED
    n = len(log)
    value, lower, upper = (np.full(n, np.inf) for _ in range(3))
    found = least_exponential(rows, exponent, log, chosen)
    if found is None:
        return Bounds(value, below, upper), np.full(n, -1)
    policy = np.full(n, -1)
    policy[found.states] = found.rows[found.chosen]
    value[found.states] = found.log
    certain = _grows(rows, exponent, found.growth, off)
    low, high = _sides(found.part, found.exponent, found.log, found.steps, found.chosen, off)
    lower[found.states] = low if certain else -np.inf
    if not certain:
        lower[np.isfinite(found.growth)] = -np.inf
    upper[found.states] = high
    return Bounds(value, np.maximum(lower, below), upper), policy


def _sides(
    rows: Transitions,
    exponent: FloatArray,
    log: FloatArray,
    steps: FloatArray,
    chosen: Array,
    off: float,
) -> tuple[FloatArray, FloatArray]:
    if len(log) == 0:
        return log, log
    ahead, here = np.append(log, 0.0)[rows.target], log[owners(rows.state_rows)[rows.source]]
    y, p = exponent + ahead - here, rows.probability
    most = MOST - np.log(p)
    cut = np.flatnonzero(rows.sums((y > most).astype(np.float64)) > 0)
    y = np.minimum(y, most)
    with np.errstate(over="ignore", invalid="ignore"):
        factor, of_y = p * np.exp(y), _of_exponentials(exponent, ahead, here)
        difference = p * np.expm1(y)
    size = np.diff(rows.row_start)
    step = row_error(size, size, off + AFTERWARDS) + np.abs(rows.sums(p) - 1)
    with np.errstate(over="ignore", invalid="ignore"):
        residual, size_of_terms = rows.sums(difference), rows.sums(np.abs(difference))
        error = size_of_terms * step + rows.sums(factor * of_y) * (1 + AFTERWARDS) + VANISHED
        loss = factor * np.append(steps, 0.0)[rows.target]
        drift = steps[owners(rows.state_rows)] - rows.sums(loss * (1 + of_y)) * (1 + step)
    below, above = least_shares(*frozen(residual, error, drift, chosen))
    if np.isin(chosen, cut).any():
        above = np.inf
    with np.errstate(invalid="ignore", divide="ignore"):
        down, up = (side * steps * (1 + AFTERWARDS) for side in (below, above))
        low = np.where(down < 1, log + np.log1p(-np.minimum(down, 1.0)), -np.inf)
        high = log + np.log1p(up)
    return (
        low - AFTERWARDS * np.where(np.isfinite(low), np.abs(low - log), 0.0) - _ulps(log),
        high + AFTERWARDS * np.where(np.isfinite(high), np.abs(high - log), 0.0) + _ulps(log),
    )


def _of_exponentials(exponent: FloatArray, ahead: FloatArray, here: FloatArray) -> FloatArray:
    """What exp(y) is off by, relatively, because y is."""
    of_y = OF_EXPONENTS * (np.abs(exponent) + np.abs(ahead) + np.abs(here))
    return np.asarray(np.expm1(of_y))


def _ulps(log: FloatArray) -> FloatArray:
    return np.asarray(2 * np.spacing(np.abs(log)))


def _grows(rows: Transitions, exponent: FloatArray, growth: FloatArray, off: float) -> bool:
    """Whether it is certain that u grows in every row of its states."""
    inside = np.isfinite(growth)
    if not inside.any():
        return True
    state = owners(rows.state_rows)
    here, ahead = growth[state[rows.source]], np.append(growth, -np.inf)[rows.target]
    with np.errstate(invalid="ignore", over="ignore"):
        y = np.where(np.isfinite(ahead), exponent + ahead - here, -np.inf)
        of_y = _of_exponentials(exponent, ahead, here)
        size = np.diff(rows.row_start)
        step = row_error(size, size, off + AFTERWARDS)
        least = rows.sums(np.where(np.isfinite(y), rows.probability * np.exp(y) * (1 - of_y), 0.0))
    return bool((least * (1 - step) >= 1)[inside[state]].all())
