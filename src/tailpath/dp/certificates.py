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
costs less than L. Such an L is found from what proves the value of one policy, or from the same
problem with every step slightly cheaper.

All rounding is charged to the bad side, and with it what probabilities and rates are off from the
decimals as written.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tailpath.dp.backup import NOTHING_MORE, Decisions, first_least, surpluses
from tailpath.dp.bounds import ONE_PROCESS, Bounds, OneProcess
from tailpath.dp.sweeps import Sweeps
from tailpath.graph import FloatArray, members_of
from tailpath.kernels.jit import Array, frozen, kernel
from tailpath.kernels.rounding import FEW, NONZERO, ROUNDING_NOISE, ROUNDOFF, VANISHED

#: Rows between equal values weigh nothing by themselves. What is added, as a share of the value,
#: and the mean weight at most; and where values are 0, as a share of the mean weight.
LITTLE, LEAST = 0.05, 1e-250
#: How often what is missing in values is looked for.
REFINEMENTS = 3
#: A surplus of half its rounding beside that is close enough.
ENOUGH = 1.5 * ROUNDOFF
#: How often the problem is made cheaper to prove a lower bound, and by how much more each time.
MAX_REDUCTIONS, REDUCTION_GROWTH = 6, 100.0
#: How many times as far below its values a bound for all policies is looked for: first by the
#: weights of the policy, then of all that tie.
OWN_MARGINS, TIED_MARGINS = (1.1, 2.0), (2.0, 8.0)
#: Rows that are worse by no more than this share of their weight tie with the best; how exactly the
#: weights of all that tie are summed up.
TIE, WEIGHT_TOLERANCE = 1e-9, 1e-6
#: How much more than its weight a row counts for there.
WEIGHT_MARGIN = 1.1


def relative_bounds(decisions: Decisions, value: Array, chosen: Array) -> tuple[float, float]:
    """Shares d, e with (1 - d) value <= V* and V of the policy `chosen` <= (1 + e) value; all rates
    must be positive.

    With D = r + P v - v(s), (1 - d) v lies below its backup if d r >= -D for every row, and (1 + e)
    v above its own under the policy if e (r - D) >= D. Since rates are positive, such an upper
    bound also proves that the policy arrives.
    """
    chosen = chosen[: len(decisions.state_choices) - 1]
    surplus, error = surpluses(decisions, value, NOTHING_MORE)
    shares: tuple[float, float] = shares_of_rates(*frozen(decisions.rate, chosen), surplus, error)
    return shares


@kernel
def shares_of_rates(
    rate: Array, chosen: Array, surplus: Array, error: Array
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
            margin = rate[row] - above
            high = max(high, above / margin if margin > 0.0 else np.inf)
    return low * (1 + FEW), high * (1 + FEW)


@kernel
def share_of_drift(gain: Array, error: Array, rise: Array, rise_error: Array) -> float:
    """The least e with |gain| + error <= e (-rise - rise_error) everywhere; infinite if there is
    none.
    """
    e = 0.0
    for row in range(len(gain)):
        drift, defect = -rise[row] - rise_error[row], abs(gain[row]) + error[row]
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
    rise, rise_error = surpluses(no_rate, across.padded(total), NOTHING_MORE)

    def certify(fine: FloatArray) -> tuple[float, FloatArray]:
        """The least e with |V - value - fine| <= e total, infinite if the proof fails; and the
        surplus of value + fine.
        """
        gain, error = surpluses(chain, value, across.padded(fine))
        return across.most(share_of_drift(gain, error, rise, rise_error)), gain

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
    weight = surpluses(decisions, value, NOTHING_MORE)[1] / ROUNDOFF
    mean = across.mean(weight) or 1.0
    return np.asarray(weight + LITTLE * np.minimum(mean, np.abs(here)) + LEAST * mean)


def bound_by_own_weights(
    decisions: Decisions, sweeps: Sweeps, policy: Certificate
) -> FloatArray | None:
    """A lower bound on V* by the weights that prove the value of a policy, if they prove one."""
    return _bound_by(decisions, sweeps.across, policy, policy.total, OWN_MARGINS)


def bound_by_tied_weights(
    decisions: Decisions, sweeps: Sweeps, policy: Certificate
) -> FloatArray | None:
    """A lower bound on V* by the weights of all policies that tie with one, if they prove one."""
    total = largest_tied_total(decisions, sweeps, policy)
    return _bound_by(decisions, sweeps.across, policy, total, TIED_MARGINS)


def _bound_by(
    decisions: Decisions,
    across: OneProcess,
    policy: Certificate,
    total: FloatArray,
    margins: tuple[float, ...],
) -> FloatArray | None:
    """L = v - e T, where T is a `total` of weights, and e the share that proves the value of the
    policy, or so many times as much.

    For rows that tie, L lies below its backup if T loses as much as the row weighs; others have
    margin.
    """
    value = across.padded(policy.value)
    for margin in margins:
        below = policy.fine - margin * policy.share * total
        if across.most(lower_defect(decisions, value, across.padded(below))) <= 0.0:
            return np.asarray(np.nextafter(policy.value + below, -np.inf))
    return None


def largest_tied_total(decisions: Decisions, sweeps: Sweeps, policy: Certificate) -> FloatArray:
    """The largest expected total of weights over all policies that tie with one, roughly, as far as
    sweeps tell.
    """
    across = sweeps.across
    value, fine = across.padded(policy.value), across.padded(policy.fine)
    weight = weights(decisions, value, across)
    tied = tied_rows(decisions, value, fine, weight, TIE)
    row = np.flatnonzero(tied)
    outcome, row_start = members_of(decisions.choice_outcomes, row)
    state_rows = np.append(0, np.cumsum(tied))[decisions.state_choices]
    rate = -WEIGHT_MARGIN * weight[row]
    target, probability = decisions.target[outcome], decisions.probability[outcome]
    some = Decisions(*frozen(state_rows, row_start, target, probability, rate))
    # A row must lose its weight, so that what sweeps leave open has to be less than the little more
    # than that.
    least = -across.most(-float(weight[row].min(initial=np.inf)))
    most = across.most(float(policy.total.max(initial=0.0)))
    tolerance = np.clip(
        (WEIGHT_MARGIN - 1) / 4 * least / (most + NONZERO), ROUNDING_NOISE, WEIGHT_TOLERANCE
    )
    return -sweeps.run(some, -policy.total, float(tolerance))[0]


def bound_by_cheaper_steps(decisions: Decisions, sweeps: Sweeps, policy: Bounds) -> FloatArray:
    """A lower bound that holds for every proper policy, given the bounds of one: values of the same
    problem with every step slightly cheaper.
    """
    value, across = policy.value, sweeps.across

    def defect(values: FloatArray) -> float:
        return across.most(lower_defect(decisions, across.padded(values)))

    reduction = 4 * max(defect(value), 0.0)
    size = across.most(float(np.abs(value).max(initial=0.0))) + NONZERO
    # The upper bound exceeds the value by a multiple of the expected steps; as much below is where
    # the cheaper problem's values lie.
    slope = np.subtract(
        policy.upper, value, where=np.isfinite(policy.upper), out=np.zeros(len(value))
    )
    for attempt in range(MAX_REDUCTIONS):
        cheaper = decisions._replace(rate=next(frozen(decisions.rate - reduction)))
        first = value - 4 * REDUCTION_GROWTH**attempt * slope
        lower, _ = sweeps.run(cheaper, first, 0.25 * reduction / size)
        if across.every(np.isfinite(lower).all()) and defect(lower) <= 0.0:
            return lower
        reduction *= REDUCTION_GROWTH
    return np.full_like(value, -np.inf)
