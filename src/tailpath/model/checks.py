"""The checks of a model, made once, when it is built; every message names the state, the action or
the number at fault. And whether two models are the same, for tables that were made for one of them.
"""

from __future__ import annotations

import hashlib
import warnings
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from tailpath.errors import ModelError, TailpathWarning
from tailpath.graph import BoolArray, FloatArray, first_of
from tailpath.model.cost_units import MAX_UNITS, as_multiples
from tailpath.model.outcomes import ROW_TOLERANCE
from tailpath.texts import count

if TYPE_CHECKING:
    from tailpath.model.ssp import SSP

#: Beyond this, and below its inverse, sums of costs would overflow or lose their relative
#: precision.
LARGEST_COST = 1e300


def check_structure(ssp: SSP) -> None:
    """Refuse arrays that do not fit together, and invalid names, states and choices."""
    if ssp.n_states <= 0:
        raise ModelError("the model has no states")
    check_lengths(ssp)
    _check_names(ssp)
    check_choices(ssp)


def check_lengths(ssp: SSP) -> None:
    n = ssp.n_states
    for name, array, end in (
        ("state_choices", ssp.state_choices, ssp.n_choices),
        ("choice_outcomes", ssp.choice_outcomes, ssp.n_outcomes),
    ):
        if len(array) == 0 or array[0] != 0 or array[-1] != end or np.any(np.diff(array) < 0):
            raise ModelError(f"{name} must rise from 0 to {end}")
    if len(ssp.outcome_probability) != ssp.n_outcomes or len(ssp.outcome_cost) != ssp.n_outcomes:
        raise ModelError("outcome arrays differ in length")
    if len(ssp.choice_action) != ssp.n_choices or len(ssp.is_goal) != n or len(ssp.states) != n:
        raise ModelError("choice or state arrays differ in length")
    if ssp.n_choices and not 0 <= ssp.choice_action.min() <= ssp.choice_action.max() < len(
        ssp.actions
    ):
        raise ModelError("choice_action points outside the list of actions")


def _check_names(ssp: SSP) -> None:
    n = ssp.n_states
    for names, what in ((ssp.states, "states"), (ssp.actions, "actions")):
        if not isinstance(names, range) and len(set(names)) < len(names):
            repeated = next(name for name, often in Counter(names).items() if often > 1)
            raise ModelError(f"two {what} are named {repeated!r}")
    if isinstance(ssp.start_index, bool) or not isinstance(ssp.start_index, (int, np.integer)):
        raise ModelError(f"the start index must be a whole number, not {ssp.start_index!r}")
    if not 0 <= ssp.start_index < n:
        raise ModelError(f"the start index {ssp.start_index} lies outside 0..{n - 1}")
    if not ssp.is_goal.any():
        raise ModelError("the model has no goals")
    if (
        ssp.geometry is not None
        and not len(ssp.geometry.row) == len(ssp.geometry.column) == len(ssp.geometry.kind) == n
    ):
        raise ModelError("the geometry needs a row, a column and a kind per state")


def check_choices(ssp: SSP) -> None:
    n_choices = np.diff(ssp.state_choices)
    for state in first_of((n_choices > 0) == ssp.is_goal):
        name = repr(ssp.states[state])
        if ssp.is_goal[state]:
            raise ModelError(
                f"goal {name} has choices: goals are absorbing and free, and need none"
            )
        raise ModelError(
            f"state {name} has no choices and is not a goal; give it some, or make it a goal"
        )
    for choice in first_of(np.diff(ssp.choice_outcomes) == 0):
        raise ModelError(f"{describe_choice(ssp, choice)} has no outcomes")
    key = ssp.choice_state.astype(np.int64) * len(ssp.actions) + ssp.choice_action
    if not (np.diff(key) > 0).all():
        order = np.argsort(key, kind="stable")
        for position in first_of(np.diff(key[order]) == 0):
            raise ModelError(f"{describe_choice(ssp, int(order[position]))} is given twice")


def refuse_outcome(ssp: SSP, wrong: BoolArray, why: Callable[[int], str]) -> None:
    """Refuse the first outcome that is wrong, by its name and what is wrong with it."""
    for outcome in first_of(wrong):
        choice = int(np.searchsorted(ssp.choice_outcomes, outcome, side="right")) - 1
        target = int(ssp.outcome_target[outcome])
        to = f" -> {ssp.states[target]!r}" if 0 <= target < ssp.n_states else ""
        raise ModelError(f"{describe_choice(ssp, choice)}{to} {why(outcome)}")


def check_outcomes(ssp: SSP) -> None:
    target, cost = ssp.outcome_target, ssp.outcome_cost
    last = ssp.n_states - 1
    refuse_outcome(
        ssp,
        (target < 0) | (target > last),
        lambda o: f"leads to state index {target[o]}, outside 0..{last}",
    )
    refuse_outcome(ssp, ~np.isfinite(cost), lambda o: f"costs {cost[o]}")
    size = np.abs(cost)
    refuse_outcome(
        ssp,
        (size > LARGEST_COST) | ((size > 0) & (size < 1 / LARGEST_COST)),
        lambda o: (
            f"costs {cost[o]:g}, too {'large' if size[o] > 1 else 'small'} to compute with; choose"
            " another unit of cost"
        ),
    )
    if np.signbit(cost).any():  # a reward of 0 turned into a cost of -0
        vars(ssp)["outcome_cost"] = cost + 0.0


def check_unit(ssp: SSP) -> None:
    """A given unit must fit the costs: each cost is the float of a whole number of units, or so
    close to it that it is replaced by it.
    """
    if ssp.exact_unit is None:
        return
    if not isinstance(ssp.exact_unit, (int, Fraction)) or not ssp.exact_unit > 0:
        raise ModelError(f"the cost unit must be a positive fraction, not {ssp.exact_unit!r}")
    unit, cost = Fraction(ssp.exact_unit), ssp.outcome_cost
    vars(ssp)["exact_unit"] = unit
    largest = float(np.abs(cost).max(initial=0.0))
    said = str(unit) if len(str(unit)) <= 60 else f"{str(unit)[:57]}..."
    if not Fraction(1, 10**307) <= unit <= 10**300 or Fraction(repr(largest)) > MAX_UNITS * unit:
        raise ModelError(
            f"the cost unit {said} is too fine or too large for costs up to {largest:g}"
        )
    exact = as_multiples(cost, unit)
    if np.array_equal(exact, cost):
        return
    # A reader of decimals may have added some up, each sum with half a unit of its last digit.
    refuse_outcome(
        ssp,
        np.abs(exact - cost) > 4 * np.finfo(np.float64).eps * np.abs(cost),
        lambda o: f"costs {float(cost[o])!r}, not a whole multiple of {said}, the cost unit",
    )
    vars(ssp)["outcome_cost"] = exact


def checked_probabilities(ssp: SSP) -> FloatArray:
    probability = ssp.outcome_probability
    # NaN fails every comparison, so ask for what is wanted rather than for what is not.
    possible = (probability >= 0) & (probability < np.inf)
    refuse_outcome(ssp, ~possible, lambda o: f"has probability {probability[o]}")
    refuse_outcome(ssp, probability == 0, lambda o: "has probability 0: leave it out")
    if ssp.n_choices == 0:
        return probability
    length = np.diff(ssp.choice_outcomes)
    total = np.add.reduceat(probability, ssp.choice_outcomes[:-1])
    gap = np.abs(total - 1.0)
    for choice in first_of(gap > ROW_TOLERANCE * length):
        raise ModelError(
            f"the probabilities of {describe_choice(ssp, choice)} sum to {total[choice]:.12g}, not"
            " 1"
        )
    # Rounding alone lets the sum of k floats miss 1 by k eps; sums further off are scaled, with a
    # warning if people may care.
    eps = np.finfo(np.float64).eps
    off = gap > eps * length
    if not off.any():
        return probability
    rough = np.flatnonzero(gap > 4 * eps * np.maximum(length, 4))
    for first in rough[:1].tolist():
        warnings.warn(
            f"the probabilities of {count(rough.size, 'choice')} were scaled to sum to 1;"
            f" the first is {describe_choice(ssp, first)}, off by {gap[first]:.3g}",
            TailpathWarning,
            stacklevel=4,
        )
    return np.asarray(probability / np.repeat(np.where(off, total, 1.0), length))


def describe_choice(ssp: SSP, choice: int) -> str:
    state = int(np.searchsorted(ssp.state_choices, choice, side="right")) - 1
    return f"state {ssp.states[state]!r}, action {ssp.choice_name(choice)!r}"


# ---------------------------------------------------------------------- is this the same model?


#: The parts of a model that have a hash of their own.
PARTS = ("targets", "probabilities", "costs")


def same_numbering(made_for: SSP, ssp: SSP) -> bool:
    """Whether numbers of choices and outcomes mean the same in two models; if not, names decide."""
    if made_for is ssp:
        return True
    arrays = ("state_choices", "choice_outcomes", "outcome_target", "choice_action")
    return all(
        np.array_equal(getattr(made_for, name), getattr(ssp, name)) for name in arrays
    ) and all(
        list(getattr(made_for, name)) == list(getattr(ssp, name)) for name in ("states", "actions")
    )


def fingerprint(ssp: SSP) -> dict[str, Any]:
    """The sizes of a model, a hash of its arrays, and short ones of its parts, which show what
    differs. They do not depend on names, geometry and start.
    """
    integers = ("state_choices", "choice_outcomes", "outcome_target")
    floats = ("outcome_probability", "outcome_cost")
    kinds = {**dict.fromkeys(integers, "<i8"), **dict.fromkeys(floats, "<f8"), "is_goal": "u1"}
    digest, parts = hashlib.sha256(), []
    for name, kind in kinds.items():
        part = np.ascontiguousarray(getattr(ssp, name), dtype=kind).tobytes()
        digest.update(part)
        parts.append(hashlib.sha256(part).hexdigest()[:16])
    sizes = {"n_states": ssp.n_states, "n_choices": ssp.n_choices, "n_outcomes": ssp.n_outcomes}
    return {**sizes, "sha256": digest.hexdigest(), **dict(zip(PARTS, parts[2:5]))}


def model_mark(ssp: SSP) -> str:
    """A short hash of everything that decides the numbers of a run, including the start."""
    text = f"{fingerprint(ssp)['sha256']} {ssp.start_index}"
    return hashlib.sha256(text.encode()).hexdigest()[:16]
