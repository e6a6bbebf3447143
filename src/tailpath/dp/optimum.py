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

from tailpath.dp.backup import Decisions, best_row, best_rows, row_value
from tailpath.dp.bounds import WIDE, Bounds, narrower, unproved, within_shares
from tailpath.dp.certificates import (
    Certificate,
    bound_by_cheaper_steps,
    bound_by_own_weights,
    bound_by_tied_weights,
    largest_tied_total,
    relative_bounds,
)
from tailpath.dp.expected import (
    FEW_NODES,
    LARGEST_ELIMINATION,
    Total,
    bounds_by,
    chain_of,
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
from tailpath.dp.sweeps import MAX_ROUNDS, Sweeps
from tailpath.graph import FloatArray, Transitions, members_of, owners
from tailpath.kernels.jit import frozen, kernel
from tailpath.kernels.rounding import SAME_VALUE, SETTLED

#: Problems of up to this many states may be solved in rationals when floating point cannot prove
#: the lower bound.
LARGEST_EXACT = 400
#: Problems of up to this many states are solved in rationals, or in long decimals, where bounds are
#: to be as close as doubles are.
LARGEST_SHARP, LARGEST_DECIMAL = 150, 2_000
#: A relative width of the bounds that is good enough for large problems, and for those of few
#: states, where policy iteration takes no time.
FAIR_WIDTH, FINE_WIDTH = 1e-9, 1e-12
#: How many policies are tried that the values alone cannot tell apart.
SHARPENINGS = 3
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
            present_value = rate[present] + row_value(
                choice_outcomes, target, probability, present, 0, value
            )
            if not best < present_value - margin * abs(present_value):
                continue
        out_chosen[state] = row
        moved += 1
    return moved


def policy_chain(decisions: Decisions, chosen: NDArray[Any]) -> Decisions:
    """The chain of a policy."""
    outcome, row_start = members_of(decisions.choice_outcomes, chosen)
    return chain_of(
        row_start,
        decisions.target[outcome],
        decisions.probability[outcome],
        decisions.rate[chosen],
        decisions.error,
    )


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
            largest_tied_total(decisions, sweeps, policy),
        )
    return found if exact is None else Optimum(*exact, found.iterations)


def _good_enough(n: int) -> float:
    """The relative width of bounds on n states that is not worth another method."""
    return FINE_WIDTH if n <= FEW_NODES else 2 * WIDE if n <= LARGEST_ELIMINATION else FAIR_WIDTH


def swept_optimum(decisions: Decisions, sweeps: Sweeps, first: FloatArray) -> Optimum:
    """What sweeps find and prove from first values on."""
    value, rounds = sweeps.run(decisions, first, SETTLED)
    return Optimum(*_by_sweeps(decisions, sweeps, value, rounds <= MAX_ROUNDS), rounds)


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
        return _proper_policy(decisions), unproved(value, method)
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
        below = (
            bound_by_cheaper_steps(decisions, sweeps, policy)
            if across.is_wide(found)
            else found.lower
        )
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
        fine, below = proof.fine, bound_by_own_weights(decisions, sweeps, proof)
        if below is not None:
            return chosen, proof, below
    assert proof is not None
    return chosen, proof, bound_by_tied_weights(decisions, sweeps, proof)


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

    first = greedy if _is_proper(decisions, greedy) else _proper_policy(decisions)
    chosen, (policy, proof), iterations = policy_iteration(first, evaluate, improve)
    if len(decisions.rate) > len(chosen):  # without a decision the only policy is the best
        below = None
        if proof is not None:
            below = bound_by_own_weights(decisions, sweeps, proof)
            if below is None:
                below = bound_by_tied_weights(decisions, sweeps, proof)
        if below is None:
            below = bound_by_cheaper_steps(decisions, sweeps, policy)
        policy = replace(policy, lower=below)
    return Optimum(chosen, replace(policy, method=f"policy iteration, {policy.method}"), iterations)


def _is_proper(decisions: Decisions, chosen: Chosen) -> bool:
    chain = policy_chain(decisions, chosen)
    return bool(np.all(_fewest_steps(chain.choice_outcomes, chain.target) >= 0))


def _proper_policy(decisions: Decisions) -> Chosen:
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
