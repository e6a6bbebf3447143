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
from tailpath.kernels.jit import frozen
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


def relative_bounds(given: Decisions, value: Array, chosen: Array) -> tuple[float, float]:
    """Shares d, e with (1 - d) value <= V* and V of the policy `chosen` <= (1 + e) value; all rates
    must be positive.

    With D = r + P v - v(s), (1 - d) v lies below its backup if d r >= -D for every row, and (1 + e)
    v above its own under the policy if e (r - D) >= D. Since rates are positive, such an upper
    bound also proves that the policy arrives.
    """
    chosen = chosen[: len(given.state_choices) - 1]
    surplus, error = surpluses(given, value, NOTHING_MORE)
    rate = given.rate[: len(surplus)]
    if not (np.all(rate > 0.0) and np.all(error < np.inf)):
        return np.inf, np.inf
    with np.errstate(all="ignore"):
        above, room = (surplus + error)[chosen], (rate - surplus - error)[chosen]
        low = np.max((error - surplus) / rate, initial=0.0)
        shares = np.where(room > 0.0, above / room, np.inf)
    high = np.max(shares, where=above > 0.0, initial=0.0)
    return float(low * (1 + FEW)), float(high * (1 + FEW))


def lower_defect(given: Decisions, value: Array, fine: Array = NOTHING_MORE) -> float:
    """The largest amount by which value + fine may exceed its own backup. If it is <= 0, no policy
    that arrives costs less.
    """
    surplus, error = surpluses(given, value, fine)
    with np.errstate(invalid="ignore"):  # what is no number proves nothing
        return float(np.max(error - surplus, initial=-np.inf))


def tied_rows(
    given: Decisions, value: Array, fine: Array, weight: FloatArray, share: float
) -> NDArray[np.bool_]:
    """Which rows are worse than value + fine by no more than a share of their weight; and the best
    one of every state.
    """
    surplus, error = surpluses(given, value, fine)
    tied = surplus <= share * weight
    best = np.empty(len(given.state_choices) - 1, dtype=np.int64)
    first_least(given.state_choices, surplus, error, best)
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
    with np.errstate(invalid="ignore"):
        drift = -rise - unsure

    def certify(fine: FloatArray) -> tuple[float, FloatArray]:
        """The least e with |V - value - fine| <= e total, infinite if the proof fails; and the
        surplus of value + fine.
        """
        gain, error = surpluses(chain, value, across.padded(fine))
        defect = np.abs(gain) + error
        with np.errstate(all="ignore"):
            shares = np.where(drift > 0.0, (defect + VANISHED) / drift, np.inf)
        shares[(defect == 0.0) & (drift > 0.0)] = 0.0
        return across.most(float(np.max(shares, initial=0.0)) * (1 + FEW)), gain

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
