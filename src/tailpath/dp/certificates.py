"""Proofs of bounds on expected totals, each one look at every row. A small residual is none: where
runs take 10^6 steps, 10^-10 may hide 10^-4.

*Shares.* If every rate is positive, v may be off by the share by which a row's surplus r + P v -
v(s) exceeds its rate.

*Weights.* Let w > 0 be what a step weighs and T the expected total of it. If v's surplus is at most
e w everywhere, V lies within e T of v: v + e T dominates its own backup, and v - e T is dominated
by it. With w what rounding may make of a surplus, e is a unit or two, and a dear step counts no
more than it is likely. T need not be exact: what it loses in a step, its drift, is looked at. What
the floats of v have no room for, `fine`, is found by solving the same equations for what is
missing; on long ways it matters.

*From below, for all rows.* If L <= r + P L for every row of every state, no policy that arrives
costs less than L.

All rounding is charged to the bad side, and with it what probabilities and rates are off from the
decimals as written.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tailpath.dp.across import ONE_PROCESS, OneProcess
from tailpath.dp.backup import Decisions, best_surplus, row_surplus
from tailpath.kernels.jit import kernel
from tailpath.kernels.rounding import FEW, SURPLUS_FINE, UNIT, VANISHED

Array = NDArray[Any]
FloatArray = NDArray[np.float64]
#: Rows between equal values weigh nothing by themselves. What is added, as a share of the value,
#: and the mean weight at most; and where values are 0, as a share of the mean weight.
LITTLE, LEAST = 0.05, 1e-250
#: How often what is missing in values is looked for.
REFINEMENTS = 3
#: A surplus of half its rounding beside that is close enough.
ENOUGH = 1.5 * UNIT


@kernel
def relative_bounds(given: Decisions, value: Array, chosen: Array) -> tuple[float, float]:
    """Shares d, e with (1 - d) value <= V* and V of the policy `chosen` <= (1 + e) value; all rates
    must be positive.

    With D = r + P v - v(s), (1 - d) v lies below its backup if d r >= -D for every row, and (1 + e)
    v above its own under the policy if e (r - D) >= D. Since rates are positive, such an upper
    bound also proves that the policy arrives.
    """
    low, high = 0.0, 0.0
    fine = np.empty(0)
    for state in range(len(given.state_choices) - 1):
        for row in range(given.state_choices[state], given.state_choices[state + 1]):
            rate = given.rate[row]
            total, error_bound = row_surplus(given, state, row, rate, value, fine)
            if not (rate > 0.0 and error_bound < np.inf):
                return np.inf, np.inf
            low = max(low, (error_bound - total) / rate)
            if row == chosen[state]:
                above, room = total + error_bound, rate - total - error_bound
                if above > 0.0:
                    high = max(high, above / room if room > 0.0 else np.inf)
    return low * (1 + FEW), high * (1 + FEW)


@kernel
def certify(chain: Decisions, value: Array, fine: Array, total: Array, out_gain: Array) -> float:
    """The least e with |V - value - fine| <= e total; infinite if the proof fails. `out_gain` gets
    the surplus of value + fine, as far as it went.
    """
    e = 0.0
    exactly = np.empty(0)
    for node in range(len(out_gain)):
        gain, error_bound = row_surplus(chain, node, node, chain.rate[node], value, fine)
        rise, unsure = row_surplus(chain, node, node, 0.0, total, exactly)
        out_gain[node] = gain
        drift = -rise - unsure
        if not drift > 0.0:
            return np.inf
        defect = abs(gain) + error_bound
        if defect > 0.0:
            e = max(e, (defect + VANISHED) / drift)
    return e * (1 + FEW)


@kernel
def lower_defect(given: Decisions, value: Array, fine: Array) -> float:
    """The largest amount by which value + fine may exceed its own backup. If it is <= 0, no policy
    that arrives costs less.
    """
    worst = -np.inf
    for state in range(len(given.state_choices) - 1):
        for row in range(given.state_choices[state], given.state_choices[state + 1]):
            total, error_bound = row_surplus(given, state, row, given.rate[row], value, fine)
            worst = max(worst, error_bound - total)
    return worst


@kernel
def mark_tied(
    given: Decisions, value: Array, fine: Array, weight: Array, share: float, out_tied: Array
) -> None:
    """Mark the rows that are worse than value + fine by no more than a share of their weight, and
    the best one of every state.
    """
    for state in range(len(given.state_choices) - 1):
        for row in range(given.state_choices[state], given.state_choices[state + 1]):
            out_tied[row] = (
                row_surplus(given, state, row, given.rate[row], value, fine)[0]
                <= share * weight[row]
            )
        out_tied[best_surplus(given, state, value, fine)[1]] = True


class Certificate(NamedTuple):
    """V lies within `share` times `total` of value + fine, by node; and as much again away from
    these the proof only gets easier.
    """

    value: FloatArray
    fine: FloatArray
    total: FloatArray
    share: float

    @property
    def slack(self) -> FloatArray:
        return np.asarray((self.share * self.total) * (1 + FEW))


def proved(
    chain: Decisions,
    value: FloatArray,
    solve: Callable[[FloatArray, FloatArray], FloatArray | None],
    across: OneProcess = ONE_PROCESS,
) -> Certificate | None:
    """What weights prove of the values of a chain; None if that is nothing. `solve(c, w)` solves x
    = c + P x roughly, where |c| is no more than a share of w > 0; it is asked for what is missing
    in the values, a few times, until rounding is all that is left.
    """
    here, fine = value, np.zeros(len(value))
    gain = np.empty(len(value))
    value = across.padded(here)
    weight = weights(chain, value, across)
    total = solve(weight, weight)
    if total is None:
        return None
    padded = across.padded(total)
    e = across.most(certify(chain, value, across.padded(fine), padded, gain))
    for _ in range(REFINEMENTS if np.isfinite(e) else 0):
        missing = solve(gain, weight) if e > ENOUGH else None
        if missing is None:
            break
        finer = fine + missing
        better = across.most(certify(chain, value, across.padded(finer), padded, gain))
        if not better < e:
            break
        fine, e = finer, better
    return Certificate(here, fine, total, e) if np.isfinite(e) else None


def weights(given: Decisions, value: FloatArray, across: OneProcess = ONE_PROCESS) -> FloatArray:
    """By row what rounding may make of a surplus, in units of it, and a little more for
    every step.
    """
    here = np.repeat(value[: len(given.state_choices) - 1], np.diff(given.state_choices))
    weight = _rounding_weights(given, value, here)
    mean = across.mean(weight) or 1.0
    return np.asarray(weight + LITTLE * np.minimum(mean, np.abs(here)) + LEAST * mean)


def _rounding_weights(given: Decisions, value: FloatArray, here: FloatArray) -> FloatArray:
    """By row what rounding may make of a surplus, in units of it; `here` (rows,) are the values of
    their states.
    """
    first, count = given.choice_outcomes[:-1], np.diff(given.choice_outcomes)
    ahead = np.abs(value[given.target] - np.repeat(here, count))
    size = np.abs(given.rate) + np.add.reduceat(given.probability * ahead, first)
    off = np.abs(np.add.reduceat(given.probability, first) - 1.0) + given.error
    return np.asarray(size * (3 * count + SURPLUS_FINE + off / UNIT))
