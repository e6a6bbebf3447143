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
from tailpath.dp.backup import NOTHING_MORE, Decisions, first_least, surpluses
from tailpath.kernels.jit import frozen, kernel
from tailpath.kernels.rounding import FEW, UNIT, VANISHED

Array = NDArray[Any]
FloatArray = NDArray[np.float64]
#: Rows between equal values weigh nothing by themselves. What is added, as a share of the value,
#: and the mean weight at most; and where values are 0, as a share of the mean weight.
LITTLE, LEAST = 0.05, 1e-250
#: How often what is missing in values is looked for.
REFINEMENTS = 3
#: A surplus of half its rounding beside that is close enough.
ENOUGH = 1.5 * UNIT


def relative_bounds(decisions: Decisions, value: Array, chosen: Array) -> tuple[float, float]:
    """Shares d, e with (1 - d) value <= V* and V of the policy `chosen` <= (1 + e) value; all rates
    must be positive.

    With D = r + P v - v(s), (1 - d) v lies below its backup if d r >= -D for every row, and (1 + e)
    v above its own under the policy if e (r - D) >= D. Since rates are positive, such an upper
    bound also proves that the policy arrives.
    """
    surplus, error = surpluses(decisions, value, NOTHING_MORE)
    (chosen,) = frozen(chosen[: len(decisions.state_choices) - 1])
    shares: tuple[float, float] = shares_of_rates(surplus, error, decisions.rate, chosen)
    return shares


@kernel
def shares_of_rates(
    surplus: Array, error: Array, rate: Array, chosen: Array
) -> tuple[float, float]:
    """The shares of `relative_bounds`; what is no number proves nothing."""
    low, high = 0.0, 0.0
    for row in range(len(surplus)):
        if not (rate[row] > 0.0 and error[row] < np.inf):
            return np.inf, np.inf
        low = max(low, (error[row] - surplus[row]) / rate[row])
    for row in chosen:
        above = surplus[row] + error[row]
        if above > 0.0:
            room = rate[row] - above
            high = max(high, above / room if room > 0.0 else np.inf)
    return low * (1 + FEW), high * (1 + FEW)


@kernel
def share_of_drift(gain: Array, error: Array, rise: Array, unsure: Array) -> float:
    """The least e with |gain| + error <= e (-rise - unsure) everywhere; infinite if there is
    none.
    """
    e = 0.0
    for row in range(len(gain)):
        drift, defect = -rise[row] - unsure[row], abs(gain[row]) + error[row]
        if not (drift > 0.0 and defect < np.inf):
            return np.inf
        if defect > 0.0:
            e = max(e, (defect + VANISHED) / drift)
    return e * (1 + FEW)


def lower_defect(decisions: Decisions, value: Array, fine: Array = NOTHING_MORE) -> float:
    """The largest amount by which value + fine may exceed its own backup. If it is <= 0, no policy
    that arrives costs less.
    """
    surplus, error = surpluses(decisions, value, fine)
    with np.errstate(invalid="ignore"):  # what is no number proves nothing
        return float(np.max(error - surplus, initial=-np.inf))


def tied_rows(
    decisions: Decisions, value: Array, fine: Array, weight: FloatArray, share: float
) -> NDArray[np.bool_]:
    """Which rows are worse than value + fine by no more than a share of their weight; and the best
    one of every state.
    """
    surplus, error = surpluses(decisions, value, fine)
    tied = surplus <= share * weight
    best = np.empty(len(decisions.state_choices) - 1, dtype=np.int64)
    first_least(decisions.state_choices, surplus, error, best)
    tied[best] = True
    return np.asarray(tied)


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
    value = across.padded(here)
    weight = weights(chain, value, across)
    total = solve(weight, weight)
    if total is None:
        return None
    # What the total of weights loses in a step.
    no_rate = chain._replace(rate=next(frozen(np.zeros(len(chain.rate)))))
    rise, unsure = surpluses(no_rate, across.padded(total), NOTHING_MORE)

    def certify(fine: FloatArray) -> tuple[float, FloatArray]:
        """The least e with |V - value - fine| <= e total, infinite if the proof fails; and the
        surplus of value + fine.
        """
        gain, error = surpluses(chain, value, across.padded(fine))
        return across.most(share_of_drift(gain, error, rise, unsure)), gain

    e, gain = certify(fine)
    for _ in range(REFINEMENTS if np.isfinite(e) else 0):
        missing = solve(gain, weight) if e > ENOUGH else None
        if missing is None:
            break
        finer = fine + missing
        better, gain = certify(finer)
        if not better < e:
            break
        fine, e = finer, better
    return Certificate(here, fine, total, e) if np.isfinite(e) else None


def weights(
    decisions: Decisions, value: FloatArray, across: OneProcess = ONE_PROCESS
) -> FloatArray:
    """By row what rounding may make of a surplus, in units of it, and a little more for
    every step.
    """
    here = np.repeat(value[: len(decisions.state_choices) - 1], np.diff(decisions.state_choices))
    weight = surpluses(decisions, value, NOTHING_MORE)[1] / UNIT
    mean = across.mean(weight) or 1.0
    return np.asarray(weight + LITTLE * np.minimum(mean, np.abs(here)) + LEAST * mean)
