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

from tailpath.dp.backup import Rows, best_row, best_rows, row_value
from tailpath.dp.expected import total
from tailpath.dp.sweeps import MAX_ROUNDS, Sweeps
from tailpath.graph import FloatArray, Transitions, owners
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
def improve_rows(rows: Rows, value: Any, margin: float, out_chosen: Any) -> int:
    """Howard's step: move to the best row where it beats the present one by more than `margin`
    relative. Returns how many moved.

    Only strict gains count: a tie could close a loop that never arrives.
    """
    moved = 0
    first_row, row_start, target, probability, rate = rows
    for state in range(len(out_chosen)):
        best, row = best_row(first_row, row_start, target, probability, rate, state, value)
        present = out_chosen[state]
        if row < 0:  # everything is too large to compute with
            row = int(first_row[state])
        if present >= 0:
            present_value = rate[present] + row_value(
                row_start, target, probability, present, 0, value
            )
            room = margin * abs(present_value) if present_value < np.inf else 0.0
            if not best < present_value - room:
                continue
        out_chosen[state] = row
        moved += 1
    return moved


def optimum(
    rows: Transitions,
    rate: FloatArray,
    zero: NDArray[np.bool_] | None = None,
    *,
    directly: bool = False,
    tolerance: float = SETTLED,
) -> Optimum:
    """V* and a policy that attains it. `zero` marks states that are known to be worth 0 exactly;
    `directly` and `tolerance` as for `expected.total`.
    """
    first_row = rows.state_rows
    if directly and len(first_row) == rows.n + 1:  # nothing to choose
        return _by_policies(rows, rate, first_row[:-1])
    sweeps, first = Sweeps.outwards(rows, rate)
    if rate.min(initial=0.0) < 0.0:
        first[:] = 0.0
    if zero is not None:
        # Elsewhere values are positive; a sweep that starts from 0 keeps these so.
        first[zero] = 0.0
    value, rounds = sweeps.run(rows, rate, first, tolerance)
    finite = bool(np.isfinite(value).all())
    ahead = np.append(value, 0.0)
    chosen = best_rows(rows.columns(rate), ahead) if finite else _proper_policy(rows)
    if finite and rounds <= MAX_ROUNDS and not directly:
        return Optimum(chosen, value, VALUE_ITERATION, rounds)
    if finite and not _is_proper(rows, chosen):
        chosen = _proper_policy(rows)
    if chosen.min(initial=0) < 0:  # no policy ends
        return Optimum(chosen, np.full_like(value, np.inf), "graph", 0)
    return _by_policies(rows, rate, chosen)


def _by_policies(rows: Transitions, rate: FloatArray, chosen: Chosen) -> Optimum:
    policies, better = 0, chosen
    while True:
        chosen, policies = better, policies + 1
        value, how = total(rows.restrict(chosen), rate[chosen], directly=True)
        better = chosen.copy()
        moved = improve_rows(rows.columns(rate), np.append(value, 0.0), SAME_VALUE, better)
        if not moved or not _is_proper(rows, better) or policies == MAX_POLICIES:
            break
    if not np.isfinite(value).all():  # the probability of reaching the end underflows
        swept, rounds = Sweeps.outwards(rows, rate)[0].run(
            rows, rate, np.zeros(len(value)), SETTLED
        )
        value, how = (swept, VALUE_ITERATION) if rounds <= MAX_ROUNDS else (value, how)
    return Optimum(chosen, value, f"policy iteration, {how}", policies)


def _is_proper(rows: Transitions, chosen: Chosen) -> bool:
    return bool(np.all(rows.restrict(chosen).steps() >= 0))


def _proper_policy(rows: Transitions) -> Chosen:
    """A proper policy: in every state the first row that may come one step nearer to the end."""
    state, distance = owners(rows.state_rows), rows.joined().steps()
    nearest = np.minimum.reduceat(np.append(distance, 0)[rows.target], rows.row_start[:-1])
    nearer = np.flatnonzero(nearest < distance[state])
    chosen = np.full(len(distance), -1, dtype=np.int64)
    chosen[state[nearer][::-1]] = nearer[::-1]
    return chosen
