"""Bounds on V and V*, which `dp` computes in plain doubles: one certificate, found afterwards.

Let D = r + P v - v(s) be the Bellman residual of a row at values v, and T >= 0 numbers by state,
the *slope*; T(s) - P T is its *drift*. (Proofs: docs/bounds.md.)

- *Above.* If D <= e (T(s) - P T), with a positive drift, in the row that a policy takes in every
  state, the policy ends surely and costs at most v + e T.
- *Below.* If D + e (T(s) - P T) >= 0 for every row of every state, no policy that ends surely costs
  less than v - e T.

A small residual alone proves nothing: where runs take 10^6 steps, 10^-10 may hide 10^-4. Where
every step costs something T = v does, since its drift is the rate: *shares*. Otherwise T is the
expected total of *weights*, what rounding may make of a residual, the largest over all rows that
tie; e is a few units then, and a dear step counts no more than it is likely. What the floats of v
have no room for, the *low word*, is the expected total of the residuals; on long ways it matters.

All rounding is charged to the bad side, and with it what probabilities and rates are off from the
decimals as written. What doubles cannot prove is infinite.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tailpath.certify.rounding import AFTERWARDS, PER_EDGE, ROUNDOFF, VANISHED
from tailpath.dp.backup import Rows
from tailpath.dp.expected import SWEEPS, total
from tailpath.dp.optimum import VALUE_ITERATION, Optimum, optimum
from tailpath.errors import TailpathWarning
from tailpath.graph import FloatArray, Transitions, owners
from tailpath.kernels.jit import Array, frozen, kernel
from tailpath.kernels.rounding import NONZERO

#: Bounds that are wider than this, relatively, are looked for by weights.
WEIGHTS_ABOVE = 4e-12
#: Rows between equal values weigh nothing by themselves. What is added, as a share of the value,
#: and the mean weight at most; and where values are 0, as a share of the mean weight.
ADDED_WEIGHT, LEAST_WEIGHT = 0.05, 1e-250
#: Rows that are worse by no more than this share of their weight tie with the best.
TIE = 1e-9
#: How often what is missing in values is looked for, and how exactly; slopes likewise.
REFINEMENTS, SLOPE_TOLERANCE = 2, 1e-10


@dataclass(frozen=True, eq=False)
class Bounds:
    """A value, or an array of them, with lower <= truth <= upper; `method` says how the value was
    found.
    """

    value: Any
    lower: Any
    upper: Any
    method: str = ""

    @cached_property
    def width(self) -> float:
        """The worst relative width, infinite if nothing is proved. Values far below the largest are
        allowed what comes with its rounding.
        """
        return self.widest(ONE_PROCESS)

    def widest(self, comm: OneProcess) -> float:
        """The worst relative width of all ranks."""
        size = np.abs(self.value)
        scale = size + 1e-3 * comm.most(float(np.max(size, initial=0.0))) + NONZERO
        with np.errstate(invalid="ignore"):
            widest = float(np.max((self.upper - self.lower) / scale, initial=0.0))
        return comm.most(math.inf if math.isnan(widest) else widest)

    def map(self, change: Callable[[FloatArray], FloatArray]) -> Bounds:
        """The same change made to the value and to both bounds."""
        return Bounds(change(self.value), change(self.lower), change(self.upper), self.method)

    def shifted(self, by: FloatArray) -> Bounds:
        """Bounds on the values plus `by`, both rounded to the nearest float. Infinite values stay,
        and so do those to which 0 is added.
        """

        def moved(values: FloatArray, side: int) -> FloatArray:
            size = np.where(np.isfinite(values), np.abs(values) + np.abs(by), 0.0)
            return np.where(by == 0, values, values + by + side * AFTERWARDS * size)

        return Bounds(
            moved(self.value, 0), moved(self.lower, -1), moved(self.upper, 1), self.method
        )

    def positive(self) -> Bounds:
        """The same of what is known to be 0 or more."""
        lower = np.maximum(self.lower, 0.0)
        return replace(self, value=np.clip(self.value, lower, self.upper), lower=lower)


class OneProcess:
    """What a proof asks about all nodes at once, where all of them are in one process. On several
    ranks each has the rows of its own nodes (`distributed/expected.py`).
    """

    def most(self, number: float) -> float:
        """The largest of a number of every rank."""
        return number

    def sum(self, number: float) -> float:
        """The sum of a number of every rank."""
        return number

    def padded(self, values: FloatArray) -> FloatArray:
        """Values by node, those of other ranks that rows lead to, and 0 for the end."""
        return np.append(values, 0.0)


ONE_PROCESS = OneProcess()


@kernel
def residuals(rows: Rows, value: Array, low_word: Array, off: float) -> tuple[Array, Array, Array]:
    """By row rate + P v - v(s) for v = value + low word, and what its rounding may amount to, with
    all that probabilities may be off; and what is certain of value(s) - P value, its drift.

    Probabilities sum to 1, so it is a sum of differences between a state and where it leads, which
    stay small however long the way is, and rounding is charged on these.
    """
    first_row, row_start, target, probability, rate = rows
    out_residual, out_error = np.empty(len(rate)), np.empty(len(rate))
    out_drift = np.empty(len(rate))
    for state in range(len(first_row) - 1):
        here, low_here = value[state], low_word[state]
        for row in range(first_row[state], first_row[state + 1]):
            found, size, mass = rate[row], abs(rate[row]), 0.0
            rise, distance, vanished = 0.0, 0.0, 0.0
            first, last = row_start[row], row_start[row + 1]
            for outcome in range(np.uint64(first), np.uint64(last)):
                to, p = np.uint64(target[outcome]), probability[outcome]
                ahead, low = value[to] - here, low_word[to] - low_here
                found += p * (ahead + low)
                size += p * (abs(ahead) + abs(low))
                rise += p * ahead
                distance += p * abs(ahead)
                mass += p
                if ahead != 0.0 or low != 0.0:
                    vanished = VANISHED
            out_residual[row] = found
            rounding = PER_EDGE * (last - first + 2) * ROUNDOFF + abs(mass - 1.0) + off
            out_error[row] = rounding * size + vanished
            out_drift[row] = -rise - (rounding * distance + vanished)
    return out_residual, out_error, out_drift


@kernel
def least_shares(residual: Array, error: Array, drift: Array, chosen: Array) -> tuple[float, float]:
    """The least e below, for all rows, and above, for those chosen; infinite if there is none."""
    below, above = 0.0, 0.0
    for row in range(len(residual)):
        missing = error[row] - residual[row]
        if not missing <= 0.0:
            if not (drift[row] > 0.0 and missing < np.inf):
                below = np.inf
                break
            below = max(below, missing / drift[row])
    below *= 1 + AFTERWARDS
    for row in range(len(residual)):
        if (
            drift[row] < 0.0
            and not (residual[row] - error[row]) * (1 - AFTERWARDS) >= -below * drift[row]
        ):
            below = np.inf
    for row in chosen:
        missing = residual[row] + error[row]
        if not (drift[row] > 0.0 and missing < np.inf):
            return below, np.inf
        if missing > 0.0:
            above = max(above, missing / drift[row])
    return below, above * (1 + AFTERWARDS)


@kernel
def outwards(
    value: Array,
    low_word: Array,
    slope: Array,
    below: float,
    above: float,
    out_lower: Array,
    out_upper: Array,
) -> None:
    """Value + low word by so much of the slope below and above, rounded outwards. A value stays
    where neither a residual nor rounding moves any.
    """
    one_word = True
    for low in low_word:
        one_word = one_word and low == 0.0
    for state in range(len(value)):
        v, low, t = value[state], low_word[state], slope[state]
        rounding = AFTERWARDS * abs(low)
        down, up = v, v
        if below == np.inf:
            down = -np.inf
        elif not (below == 0.0 and one_word):
            slack = below * t * (1 + AFTERWARDS) + rounding
            down = np.nextafter(v + (low - slack), -np.inf)
        if above == np.inf:
            up = np.inf
        elif not (above == 0.0 and one_word):
            slack = above * t * (1 + AFTERWARDS) + rounding
            up = np.nextafter(v + (low + slack), np.inf)
        out_lower[state], out_upper[state] = down, up


Solve = Callable[[Transitions, FloatArray], FloatArray]
#: By row: what is missing in values, what its rounding may amount to, and the certain drift.
Residuals = tuple[FloatArray, FloatArray, FloatArray]


class _Certificate(NamedTuple):
    """The problem and the policy of which something is to be proved."""

    rows: Transitions
    rate: FloatArray
    chosen: NDArray[np.int64]
    error: float
    comm: OneProcess

    def residuals(self, value: FloatArray, low_word: FloatArray) -> Residuals:
        words = frozen(self.comm.padded(value), self.comm.padded(low_word))
        columns = self.rows.columns(self.rate)
        found: Residuals = residuals(columns, *words, self.error)
        return found

    def bounds(
        self,
        value: FloatArray,
        low_word: FloatArray,
        residual: Residuals,
        slope: FloatArray,
    ) -> Bounds:
        """Of values and a low word, with residuals and their errors, by T = `slope`."""
        found, error, drift = residual
        if slope is not value:
            drift = self.residuals(slope, np.zeros(len(slope)))[2]
        if self.comm.most(float(not np.all(slope >= 0.0))):
            return unproved(value)
        shares = least_shares(*frozen(found, error, drift, self.chosen))
        below, above = map(self.comm.most, shares)
        lower, upper = np.empty_like(value), np.empty_like(value)
        outwards(*frozen(value, low_word, slope), below, above, lower, upper)
        return Bounds(value + low_word, lower, upper)

    def slope(
        self, value: FloatArray, residual: FloatArray, error: FloatArray, solve: Solve
    ) -> FloatArray:
        """The largest expected total of weights over all rows that tie with those chosen. A row
        weighs what rounding may make of its residual, in units, and a little more.
        """
        first_row = self.rows.state_rows
        here = np.repeat(np.abs(value), np.diff(first_row))
        weight = error / ROUNDOFF
        mean = self.comm.sum(float(weight.sum())) / max(self.comm.sum(len(weight)), 1) or 1.0
        weight += ADDED_WEIGHT * np.minimum(mean, here) + LEAST_WEIGHT * mean
        tied = residual <= TIE * weight
        tied[self.chosen] = True
        left = self.rows.restrict(tied)
        left = left.replaced(first_row=np.append(0, np.cumsum(tied))[first_row])
        return -solve(left, -weight[tied])

    def missing(self, residual: FloatArray, solve: Solve) -> FloatArray:
        """What is missing in the values of the policy: the expected total of its residuals. Sweeps
        take numbers of one sign.
        """
        chain, gain = self.rows.restrict(self.chosen), residual[self.chosen]
        return solve(chain, np.maximum(gain, 0.0)) - solve(chain, np.maximum(-gain, 0.0))

    def improved(self, residual: FloatArray, error: FloatArray) -> _Certificate:
        """With the best row of every state in which one beats that of the policy."""
        first = self.rows.state_rows
        state, least = owners(first), np.minimum.reduceat(residual, first[:-1])
        better = np.flatnonzero((residual == least[state]) & (residual < -error))
        chosen = self.chosen.copy()
        chosen[state[better]] = better
        return self._replace(chosen=chosen)


def slope_of(
    rows: Transitions, value: FloatArray, chosen: NDArray[np.int64], solve: Solve
) -> FloatArray:
    """The slope T for games (`games.py`): the weight of a row is the value of its state."""
    certificate = _Certificate(rows, rows.rate, chosen, 0.0, ONE_PROCESS)
    residual = certificate.residuals(value, np.zeros(len(value)))[0]
    error = ROUNDOFF * np.repeat(value, np.diff(rows.state_rows))
    return certificate.slope(value, residual, error, solve)


def unproved(value: FloatArray) -> Bounds:
    return Bounds(value, np.full_like(value, -np.inf), np.full_like(value, np.inf))


def value_bounds(
    rows: Transitions,
    rate: FloatArray,
    value: FloatArray,
    chosen: NDArray[np.int64],
    error: float,
    solve: Solve,
    comm: OneProcess = ONE_PROCESS,
) -> tuple[Bounds, NDArray[np.int64]]:
    """Bounds on V*, the upper one also on V of a policy, and this policy: `chosen`, which has about
    this value, or one that is better by less than the floats of the value can tell.

    `error` is how far probabilities may be off, relatively, beside rounding. `solve` finds the
    least expected total of rows and a rate.
    """
    if comm.most(float(not np.isfinite(value).all())):
        return unproved(value), chosen
    certificate, low_word = _Certificate(rows, rate, chosen, error, comm), np.zeros(len(value))
    residual = certificate.residuals(value, low_word)
    if comm.most(-float(rate.min(initial=np.inf))) < 0.0:
        found = certificate.bounds(value, low_word, residual, value)
        if found.widest(comm) <= WEIGHTS_ABOVE:
            return found, chosen
    else:
        found = unproved(value)
    for attempt in range(1 + REFINEMENTS):
        if attempt > 0:
            low_word = low_word + certificate.missing(residual[0], solve)
            residual = certificate.residuals(value, low_word)
            certificate = certificate.improved(*residual[:2])
        slope = certificate.slope(value, *residual[:2], solve)
        other = certificate.bounds(value, low_word, residual, slope)
        if other.widest(comm) < found.widest(comm):
            found, chosen = other, certificate.chosen
        # No policy costs less than what any slope proves.
        found = replace(found, lower=np.maximum(found.lower, other.lower))
        left = np.abs(residual[0]) - residual[1]
        unending = comm.most(float(np.isinf(other.upper).any())) > 0.0
        rounding = comm.most(float(np.max(left[certificate.chosen], initial=0.0))) == 0.0
        if unending or rounding or other.widest(comm) <= WEIGHTS_ABOVE:
            break
    return found, chosen


class Proved(NamedTuple):
    """A policy, one row per state; what is proved of V* by state; how many rounds of value
    iteration or policies it took.
    """

    chosen: NDArray[np.int64]
    bounds: Bounds
    iterations: int


def _proved(
    rows: Transitions, rate: FloatArray, error: float, solve: Callable[..., Optimum]
) -> Proved:
    """What `solve` finds of some rows, with bounds. Sweeps that seem to have settled and of which
    nothing can be proved may have stalled: then it is solved directly.
    """
    for directly in (False, True):
        chosen, value, how, iterations = solve(rows, rate, directly=directly)
        directly |= how not in (SWEEPS, VALUE_ITERATION)
        values = partial(_value, solve, directly)
        bounds, chosen = value_bounds(rows, rate, value, chosen, error, values)
        if directly or np.isfinite(bounds.upper - bounds.lower).all():
            break
    return Proved(chosen, replace(bounds, method=how), iterations)


def _value(
    solve: Callable[..., Optimum], directly: bool, rows: Transitions, rate: FloatArray
) -> FloatArray:
    return solve(rows, rate, directly=directly, tolerance=SLOPE_TOLERANCE).value


def least_total(
    rows: Transitions,
    rate: FloatArray,
    error: float = 0.0,
    zero: NDArray[np.bool_] | None = None,
) -> Proved:
    """V* with bounds. `zero` marks states that are known to be worth 0 exactly."""

    def solve(some: Transitions, rates: FloatArray, **how: Any) -> Optimum:
        return optimum(some, rates, zero if rates is rate else None, **how)

    return _proved(rows, rate, error, solve)


def expected_total(
    rows: Transitions, rate: FloatArray, error: float = 0.0, outwards: Array | None = None
) -> Bounds:
    """The expected total of `rate` (n,), 0 or more, until the end, from each of n nodes. The end,
    target n, must be reached surely from all of them; `outwards` has those nearer to it first.
    """
    if len(rate) == 0:
        return Bounds(rate, rate, rate, SWEEPS)

    def solve(some: Transitions, rates: FloatArray, **how: Any) -> Optimum:
        return Optimum(some.state_rows[:-1], *total(some, rates, outwards=outwards, **how), 1)

    found = _proved(rows, rate, error, solve).bounds.positive()
    warn_if_unproved(found)
    return found


def warn_if_unproved(found: Bounds) -> None:
    if not found.upper.max(initial=0.0) < np.inf:
        text = (
            "no upper bound on an expected total could be proved; the chain mixes too slowly for"
            " its size"
        )
        warnings.warn(text, TailpathWarning, stacklevel=3)


def discounted_total(
    chain: Transitions, price: FloatArray, gamma: float, ends: float, off: float
) -> Bounds:
    """The expected discounted sum of a price per transition, by node (n,).

    `ends` is 1 - gamma, and `off` how far probabilities may be off, relatively, beside rounding.
    """
    # One more transition for each node, which ends the run.
    end = chain.row_start[1:]
    rows = Transitions(
        chain.row_start + np.arange(chain.n + 1),
        np.insert(chain.target, end, chain.n),
        np.insert(gamma * chain.probability, end, ends),
        np.insert(price, end, 0.0),
        None,
    )
    # Both factors and their product are rounded.
    return expected_total(rows, chain.sums(chain.probability * price), off + 4 * ROUNDOFF)
