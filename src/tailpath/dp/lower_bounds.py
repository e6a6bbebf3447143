"""Lower bounds on V*, for all policies: from what proves the value of one (`certificates.py`), or
from the same problem with every step slightly cheaper.
"""

from __future__ import annotations

import numpy as np

from tailpath.dp.across import OneProcess
from tailpath.dp.backup import Decisions
from tailpath.dp.bounds import Bounds, FloatArray
from tailpath.dp.certificates import Certificate, lower_defect, tied_rows, weights
from tailpath.dp.sweeps import Sweeps
from tailpath.graph import members_of
from tailpath.kernels.jit import frozen
from tailpath.kernels.rounding import FLUTTER, NOTHING

#: How often the problem is made cheaper to prove a lower bound, and by how much more each time.
MOST_REDUCTIONS, REDUCTION_GROWTH = 6, 100.0
#: How many times as far below its values a bound for all policies is looked for: first by the
#: weights of the policy, then of all that tie.
OWN_MARGINS, TIED_MARGINS = (1.1, 2.0), (2.0, 8.0)
#: Rows that are worse by no more than this share of their weight tie with the best; how exactly the
#: weights of all that tie are summed up.
TIE, WEIGHT_TOLERANCE = 1e-9, 1e-6
#: How much more than its weight a row counts for there.
WEIGHT_MARGIN = 1.1


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
    room.
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
        (WEIGHT_MARGIN - 1) / 4 * least / (most + NOTHING), FLUTTER, WEIGHT_TOLERANCE
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
    size = across.most(float(np.abs(value).max(initial=0.0))) + NOTHING
    # The upper bound exceeds the value by a multiple of the expected steps; as much below is where
    # the cheaper problem's values lie.
    slope = np.subtract(
        policy.upper, value, where=np.isfinite(policy.upper), out=np.zeros(len(value))
    )
    for attempt in range(MOST_REDUCTIONS):
        cheaper = decisions._replace(rate=next(frozen(decisions.rate - reduction)))
        first = value - 4 * REDUCTION_GROWTH**attempt * slope
        lower, _ = sweeps.run(cheaper, first, 0.25 * reduction / size)
        if across.every(np.isfinite(lower).all()) and defect(lower) <= 0.0:
            return lower
        reduction *= REDUCTION_GROWTH
    return np.full_like(value, -np.inf)
