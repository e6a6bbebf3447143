"""The least expected total over all policies, V* = min (r + P V*), in plain doubles. Every policy
that never ends must cost infinitely much.

Value iteration in the order in which values propagate (`sweeps.py`), until only the last bits move.
Where they settle too slowly (chains that need 2^50 steps), policy iteration takes over, each policy
evaluated by `expected.total`, strict gains only, so that every policy on the way is proper.

Rates may be negative where every policy ends: the largest probability of arriving is the least
expected total of its negative. How far values may be off, `certify/values.py` proves.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tailpath.dp.backup import Decisions, best_row, best_rows, row_value
from tailpath.dp.expected import chain_of, total
from tailpath.dp.sweeps import MAX_ROUNDS, Sweeps
from tailpath.graph import FloatArray, Transitions, members_of, owners
from tailpath.kernels.jit import kernel
from tailpath.kernels.rounding import SAME_VALUE, SETTLED

#: The method of values that sweeps found.
VALUE_ITERATION = "value iteration"
#: The most policies that are tried.
MAX_POLICIES = 1_000
Chosen = NDArray[np.int64]


class Optimum(NamedTuple):
    """A policy, one row per state; V* by state; how they were found, and how many rounds of value
    iteration or policies it took.
    """

    chosen: Chosen
    value: FloatArray
    how: str
    iterations: int


@kernel
def improve_rows(decisions: Decisions, value: Any, margin: float, out_chosen: Any) -> int:
    """Howard's step: move to the best row where it beats the present one by more than `margin`
    relative. Returns how many moved.

    Only strict gains count: a tie could close a loop that never arrives.
    """
    moved = 0
    state_choices, choice_outcomes, target, probability, rate = decisions
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
            room = margin * abs(present_value) if present_value < np.inf else 0.0
            if not best < present_value - room:
                continue
        out_chosen[state] = row
        moved += 1
    return moved


def policy_chain(decisions: Decisions, chosen: NDArray[Any]) -> Decisions:
    """The chain of a policy."""
    outcome, row_start = members_of(decisions.choice_outcomes, chosen)
    target, probability = decisions.target[outcome], decisions.probability[outcome]
    return chain_of(row_start, target, probability, decisions.rate[chosen])


def optimum(
    rows: Decisions,
    zero: NDArray[np.bool_] | None = None,
    *,
    directly: bool = False,
    tolerance: float = SETTLED,
) -> Optimum:
    """V* and a policy that attains it. `zero` marks states that are known to be worth 0 exactly;
    `directly` and `tolerance` as for `expected.total`.
    """
    if directly and len(rows.rate) == len(rows.state_choices) - 1:  # nothing to choose
        return _by_policies(rows, rows.state_choices[:-1])
    sweeps, first = Sweeps.outwards(rows)
    if rows.rate.min(initial=0.0) < 0.0:
        first[:] = 0.0
    if zero is not None:
        # Elsewhere values are positive; a sweep that starts from 0 keeps these so.
        first[zero] = 0.0
    value, rounds = sweeps.run(rows, first, tolerance)
    finite = bool(np.isfinite(value).all())
    chosen = best_rows(rows, np.append(value, 0.0)) if finite else _proper_policy(rows)
    if finite and rounds <= MAX_ROUNDS and not directly:
        return Optimum(chosen, value, VALUE_ITERATION, rounds)
    chosen = chosen if _is_proper(rows, chosen) else _proper_policy(rows)
    if chosen.min(initial=0) < 0:  # no policy ends
        return Optimum(chosen, np.full_like(value, np.inf), "graph", 0)
    return _by_policies(rows, chosen)


def _by_policies(rows: Decisions, chosen: Chosen) -> Optimum:
    policies, better = 0, chosen
    while True:
        chosen, policies = better, policies + 1
        value, how = total(policy_chain(rows, chosen), directly=True)
        better = chosen.copy()
        moved = improve_rows(rows, np.append(value, 0.0), SAME_VALUE, better)
        if not moved or not _is_proper(rows, better) or policies == MAX_POLICIES:
            break
    if not np.isfinite(value).all():  # the end is less often met than doubles can say
        swept, rounds = Sweeps.outwards(rows)[0].run(rows, np.zeros(len(value)), SETTLED)
        value, how = (swept, VALUE_ITERATION) if rounds <= MAX_ROUNDS else (value, how)
    return Optimum(chosen, value, f"policy iteration, {how}", policies)


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
