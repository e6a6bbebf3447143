"""The least expected total over all policies: V* = min (r + P V*), with proved bounds. Every policy
that never ends must cost infinitely much.

1. *Values*: value iteration in the order in which they propagate (`sweeps.py`), until only the last
   bits move.
2. *Bounds* (`certificates.py`): where every row costs something, by shares. Otherwise weights prove
   the value of the policy found, which is an upper bound; what proves its lower one may hold for
   all other rows, too, or else the problem is solved once more with every step slightly cheaper.
3. Where values settle too slowly (chains that need 2^50 steps), policy iteration takes over, each
   policy evaluated by `expected.total_of`, strict gains only, so that every policy on the way is
   proper.
4. Where floating point then proves no tight lower bound, a small problem is solved again in
   rationals; otherwise the bounds are sound and wide. Where bounds are to be as close as doubles
   are, problems of up to 2,000 states are solved again in rationals or long decimals, unless that
   would take minutes, as it does on dense ones.

Rates may be negative where every policy ends: the largest probability of arriving is the least
expected total of its negative.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tailpath.dp.across import OneProcess
from tailpath.dp.backup import Decisions, best_row, best_rows, row_value
from tailpath.dp.bounds import WIDE, Bounds, FloatArray, narrower, unproved, within_shares
from tailpath.dp.certificates import Certificate, lower_defect, relative_bounds, tied_rows, weights
from tailpath.dp.expected import (
    FEW_NODES,
    LARGEST_ELIMINATION,
    Total,
    bounds_by,
    close_enough,
    proof_by_sweeps,
    total_of,
)
from tailpath.dp.rational import (
    can_eliminate,
    decimal_optimum,
    policy_iteration,
    rational_optimum,
    reading_error,
)
from tailpath.dp.sweeps import MOST_ROUNDS, Sweeps
from tailpath.graph import Transitions, members_of, owners
from tailpath.kernels.jit import frozen, kernel
from tailpath.kernels.rounding import FLUTTER, NOTHING, SAME_VALUE, SETTLED

#: Problems of up to this many states may be solved in rationals when floating point cannot prove
#: the lower bound.
LARGEST_EXACT = 400
#: Problems of up to this many states are solved in rationals, or in long decimals, where bounds are
#: to be as close as doubles are.
LARGEST_SHARP, LARGEST_DECIMAL = 150, 2_000
#: A relative width of the bounds that is good enough for large problems, and for those of few
#: states, where policy iteration takes no time.
FAIR, FINE = 1e-9, 1e-12
#: How often the problem is made cheaper to prove a lower bound, and by how much more each time.
CHEAPER, MORE = 6, 100.0
#: How many policies are tried that the values alone cannot tell apart.
SHARPENINGS = 3
#: How many times as far below its values a bound for all policies is looked for: first by the
#: weights of the policy, then of all that tie.
FURTHER, FURTHEST = (1.1, 2.0), (2.0, 8.0)
#: Rows that are worse by no more than this share of their weight tie with the best; how exactly the
#: weights of all that tie are summed up.
TIED, HEAVILY = 1e-9, 1e-6
#: How much more than its weight a row counts for there.
HEAVIER = 1.1

Chosen = NDArray[np.int64]
Rates = Callable[[], Sequence[Fraction]]


@dataclass(frozen=True, eq=False)
class Optimum:
    """A policy, one row per state; what is proved of V* by state; how many rounds of value
    iteration or policies it took.
    """

    chosen: Chosen
    bounds: Bounds
    iterations: int


@kernel
def improve_rows(decisions: Decisions, value: Any, margin: float, out_chosen: Any) -> int:
    """Howard's step: move to the best row where it beats the present one by more than `margin`
    relative. Returns how many moved.

    Only strict gains count: a tie could close a loop that never arrives.
    """
    moved = 0
    state_choices, choice_outcomes, target, probability, rate, _ = decisions
    for state in range(len(out_chosen)):
        best, row = best_row(
            state_choices, choice_outcomes, target, probability, rate, state, value
        )
        present = out_chosen[state]
        if row < 0:  # everything is too large to compute with
            row = int(state_choices[state])
        if present >= 0:
            worth = rate[present] + row_value(
                choice_outcomes, target, probability, present, 0, value
            )
            if not best < worth - margin * abs(worth):
                continue
        out_chosen[state] = row
        moved += 1
    return moved


def policy_chain(decisions: Decisions, chosen: NDArray[Any]) -> Decisions:
    """The chain of a policy."""
    outcome, row_start = members_of(decisions.choice_outcomes, chosen)
    columns = (
        np.arange(len(chosen) + 1),
        row_start,
        decisions.target[outcome],
        decisions.probability[outcome],
        decisions.rate[chosen],
    )
    return Decisions(*frozen(*columns))._replace(error=decisions.error)


def least_total(
    decisions: Decisions,
    exact_rates: Rates,
    zero: NDArray[np.bool_] | None = None,
    *,
    sharp: bool = False,
) -> Optimum:
    """V* with bounds. `zero` marks states that are known to be worth 0 exactly; `exact_rates` are
    asked for where it comes to rationals, or to long decimals. These make `sharp` bounds where
    problems are not large: as close as doubles are, for the decimals that probabilities stand for.
    """
    sweeps, first = Sweeps.outwards(decisions)
    if decisions.rate.min(initial=0.0) < 0.0:
        first[:] = 0.0
    if zero is not None:
        # Elsewhere values are positive; a sweep that starts from 0 keeps these so.
        first[zero] = 0.0
    found = swept_optimum(decisions, sweeps, first)
    value = found.bounds.value
    if not is_proved(found, sweeps):
        slow = _by_policies(decisions, sweeps, found.chosen)
        # What sweeps have found without a proof may be a policy that never ends.
        found = found if found.bounds.width < slow.bounds.width else slow
    exact = None
    if len(value) <= (LARGEST_SHARP if sharp else LARGEST_EXACT) and (
        sharp or found.bounds.is_wide
    ):
        exact = rational_optimum(
            decisions,
            exact_rates(),
            found.chosen,
            decisions.error + (0.0 if sharp else reading_error(decisions)),
        )
    elif (
        sharp
        and len(value) <= LARGEST_DECIMAL
        and can_eliminate(policy_chain(decisions, found.chosen))
    ):
        policy = Certificate(
            found.bounds.value, np.zeros_like(value), np.abs(found.bounds.value), 0.0
        )
        exact = decimal_optimum(
            decisions,
            exact_rates(),
            found.chosen,
            decisions.error,
            _heaviest(decisions, sweeps, policy),
        )
    return found if exact is None else Optimum(*exact, found.iterations)


def _good_enough(n: int) -> float:
    """The relative width of bounds on n states that is not worth another method."""
    return FINE if n <= FEW_NODES else 2 * WIDE if n <= LARGEST_ELIMINATION else FAIR


def swept_optimum(decisions: Decisions, sweeps: Sweeps, first: FloatArray) -> Optimum:
    """What sweeps find and prove from first values on."""
    value, rounds = sweeps.run(decisions, first, SETTLED)
    return Optimum(*_by_sweeps(decisions, sweeps, value, rounds <= MOST_ROUNDS), rounds)


def is_proved(found: Optimum, sweeps: Sweeps) -> bool:
    """Whether what sweeps prove is so close that no other method is tried."""
    return sweeps.across.width(found.bounds) <= _good_enough(sweeps.n)


def _by_sweeps(
    decisions: Decisions, sweeps: Sweeps, value: FloatArray, settled: bool
) -> tuple[Chosen, Bounds]:
    """The policy that is best for values that sweeps found, and bounds as far as they can be
    proved.
    """
    method = "value iteration"
    across = sweeps.across
    if not across.every(np.isfinite(value).all()):
        return _nearer_rows(decisions), unproved(value, method)
    padded = across.padded(value)
    chosen, found = best_rows(decisions, padded), unproved(value, method)
    if across.every(settled and decisions.rate.min(initial=1.0) > 0.0):
        low, high = map(across.most, relative_bounds(decisions, padded, chosen))
        found = within_shares(value, low, high, method)
        if low + high <= close_enough(sweeps.n):
            return chosen, found
    sharp, proof, below = sharpest(decisions, sweeps, value)
    if proof is None or (below is None and not settled):
        return chosen, found
    policy = bounds_by(proof, method)
    if below is None:
        below = _cheaper(decisions, sweeps, policy) if across.is_wide(found) else found.lower
    # On small problems both proofs take no time, and either may be closer; what lies above is said
    # of the policy, too.
    both = narrower(found, replace(policy, lower=below))
    same = across.every(np.array_equal(sharp, chosen))
    return sharp, both if same else replace(both, upper=policy.upper)


def sharpest(
    decisions: Decisions, sweeps: Sweeps, value: FloatArray
) -> tuple[Chosen, Certificate | None, FloatArray | None]:
    """The policy that is best for these values and what is missing in them, what proves its own
    value, and a lower bound on V* if that proves one.
    """
    chosen, fine = np.empty(0, dtype=np.int64), np.zeros(len(value))
    proof = None
    across, padded = sweeps.across, sweeps.across.padded(value)
    for _ in range(SHARPENINGS):
        # Another row may be better by less than the values alone could tell.
        before, chosen = chosen, best_rows(decisions, padded, across.padded(fine))
        if proof is not None and across.every(np.array_equal(chosen, before)):
            break
        _, proof = proof_by_sweeps(policy_chain(decisions, chosen), sweeps, value)
        if proof is None:
            return chosen, None, None
        fine, below = proof.fine, _below(decisions, proof, proof.total, FURTHER, across)
        if below is not None:
            return chosen, proof, below
    assert proof is not None
    return (
        chosen,
        proof,
        _below(decisions, proof, _heaviest(decisions, sweeps, proof), FURTHEST, across),
    )


def sharper(decisions: Decisions, sweeps: Sweeps, found: Bounds) -> Bounds:
    """The same bounds or narrower ones, where they are easily found; for what takes differences of
    values."""
    _, proof, below = sharpest(decisions, sweeps, found.value)
    if proof is None or below is None:
        return found
    above = np.nextafter(found.value + (proof.fine + proof.slack), np.inf)
    lower, upper = np.maximum(below, found.lower), np.minimum(above, found.upper)
    # What is exactly 0 stays so.
    finer = np.where(found.value > 0.0, found.value + proof.fine, 0.0)
    return Bounds(np.clip(finer, lower, upper), lower, upper, found.method)


def _below_all(decisions: Decisions, sweeps: Sweeps, policy: Certificate) -> FloatArray | None:
    """A lower bound on V*, from what proves the value of a policy, if that proves one."""
    below = _below(decisions, policy, policy.total, FURTHER, sweeps.across)
    if below is None:
        return _below(
            decisions, policy, _heaviest(decisions, sweeps, policy), FURTHEST, sweeps.across
        )
    return below


def _below(
    decisions: Decisions,
    policy: Certificate,
    total: FloatArray,
    times: tuple[float, ...],
    across: OneProcess,
) -> FloatArray | None:
    """A lower bound on V*: so many times the distance below a policy that proves its own value,
    where that is a share of `total`, its own or that of the heaviest policy which ties with it.

    For rows that tie, L = v - e T lies below its backup if T loses as much as the row weighs;
    others have room.
    """
    value = across.padded(policy.value)
    for further in times:
        below = policy.fine - further * policy.share * total
        if across.most(lower_defect(decisions, value, across.padded(below))) <= 0.0:
            return np.asarray(np.nextafter(policy.value + below, -np.inf))
    return None


def _heaviest(decisions: Decisions, sweeps: Sweeps, policy: Certificate) -> FloatArray:
    """The largest expected total of weights over all policies that tie with one, roughly, as far as
    sweeps tell.
    """
    across = sweeps.across
    value, fine = across.padded(policy.value), across.padded(policy.fine)
    weight = weights(decisions, value, across)
    tied = tied_rows(decisions, value, fine, weight, TIED)
    row = np.flatnonzero(tied)
    outcome, row_start = members_of(decisions.choice_outcomes, row)
    state_rows = np.append(0, np.cumsum(tied))[decisions.state_choices]
    rate = -HEAVIER * weight[row]
    some = Decisions(
        *frozen(
            state_rows, row_start, decisions.target[outcome], decisions.probability[outcome], rate
        )
    )
    # A row must lose its weight, so that what sweeps leave open has to be less than the little more
    # than that.
    least = -across.most(-float(weight[row].min(initial=np.inf)))
    most = across.most(float(policy.total.max(initial=0.0)))
    tolerance = (HEAVIER - 1) / 4 * least / (most + NOTHING)
    return -sweeps.run(some, -policy.total, float(np.clip(tolerance, FLUTTER, HEAVILY)))[0]


def _cheaper(decisions: Decisions, sweeps: Sweeps, policy: Bounds) -> FloatArray:
    """A lower bound that holds for every proper policy, given the bounds of one: values of the same
    problem with every step slightly cheaper.
    """
    value, across = policy.value, sweeps.across

    def defect(values: FloatArray) -> float:
        return across.most(lower_defect(decisions, across.padded(values)))

    discount = 4 * max(defect(value), 0.0)
    size = across.most(float(np.abs(value).max(initial=0.0))) + NOTHING
    # The upper bound exceeds the value by a multiple of the expected steps; as much below is where
    # the cheaper problem's values lie.
    slope = np.subtract(
        policy.upper, value, where=np.isfinite(policy.upper), out=np.zeros(len(value))
    )
    for attempt in range(CHEAPER):
        cheaper = decisions._replace(rate=next(frozen(decisions.rate - discount)))
        first = value - 4 * MORE**attempt * slope
        lower, _ = sweeps.run(cheaper, first, 0.25 * discount / size)
        if across.every(np.isfinite(lower).all()) and defect(lower) <= 0.0:
            return lower
        discount *= MORE
    return np.full_like(value, -np.inf)


def _by_policies(decisions: Decisions, sweeps: Sweeps, greedy: Chosen) -> Optimum:
    sign = -1.0 if decisions.rate.min(initial=0.0) < 0.0 else 1.0

    def evaluate(chosen: Chosen) -> Total:
        chain = policy_chain(decisions, chosen)
        found, proof = total_of(chain._replace(rate=next(frozen(sign * chain.rate))), slow=True)
        if sign > 0:
            return found, proof
        turned = Bounds(-found.value, -found.upper, -found.lower, found.method)
        return turned, None if proof is None else proof._replace(
            value=-proof.value, fine=-proof.fine
        )

    def improve(chosen: Chosen, found: Total) -> Chosen | None:
        better = chosen.copy()
        moved = improve_rows(decisions, np.append(found[0].value, 0.0), SAME_VALUE, better)
        return better if moved and _is_proper(decisions, better) else None

    first = greedy if _is_proper(decisions, greedy) else _nearer_rows(decisions)
    chosen, (policy, proof), iterations = policy_iteration(first, evaluate, improve)
    if len(decisions.rate) > len(chosen):  # without a decision the only policy is the best
        below = None if proof is None else _below_all(decisions, sweeps, proof)
        policy = replace(
            policy, lower=_cheaper(decisions, sweeps, policy) if below is None else below
        )
    return Optimum(chosen, replace(policy, method=f"policy iteration, {policy.method}"), iterations)


def _is_proper(decisions: Decisions, chosen: Chosen) -> bool:
    chain = policy_chain(decisions, chosen)
    return bool(np.all(_fewest_steps(chain.choice_outcomes, chain.target) >= 0))


def _nearer_rows(decisions: Decisions) -> Chosen:
    """A proper policy: in every state the first row that may come one step nearer to the end."""
    n, state = len(decisions.state_choices) - 1, owners(decisions.state_choices)
    distance = _fewest_steps(decisions.choice_outcomes[decisions.state_choices], decisions.target)
    nearest = np.minimum.reduceat(
        np.append(distance, 0)[decisions.target], decisions.choice_outcomes[:-1]
    )
    nearer = np.flatnonzero(nearest < distance[state])
    chosen = np.full(n, -1, dtype=np.int64)
    chosen[state[nearer][::-1]] = nearer[::-1]
    return chosen


def _fewest_steps(row_start: NDArray[Any], target: NDArray[Any]) -> NDArray[np.int64]:
    """The least number of outcomes from each state to the end; -1 where there is no way."""
    nothing = np.broadcast_to(0.0, len(target))
    return Transitions(row_start, target, nothing, nothing, None).steps()
