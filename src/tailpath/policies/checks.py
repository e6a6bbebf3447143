"""What a policy says, checked against the model: every index, width and length of a table policy,
once on the way in, since kernels trust their arrays and would read outside them; and its decision
in one state, as pairs (choice, probability).

A refusal says which array and, where there is one, which state. The arrays are copied, so that a
policy does not change with those that it was made from.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from tailpath.errors import PolicyError, kind_of
from tailpath.graph import Array, FloatArray, IntArray, first_of, members
from tailpath.model.ssp import SSP, Name
from tailpath.policies.policy import Decision, Policy

#: Budgets and levels beyond this could overflow where they are added up.
MAX_LEVELS = 2**62
#: The probabilities of a decision may miss 1 by this, for each action.
TOLERANCE = 1e-9


def integers(values: Any, what: str, shape: tuple[int, ...], dtype: Any) -> Array:
    """A copy as whole numbers of `dtype`; -1 in a shape stands for any length."""
    array = np.asarray(values)
    _check_shape(array, what, shape)
    if array.size and array.dtype.kind not in "iu":
        raise PolicyError(f"{what} must hold whole numbers, not {array.dtype}")
    limits = np.iinfo(dtype)
    if array.size and not limits.min <= int(array.min()) <= int(array.max()) <= limits.max:
        raise PolicyError(f"{what} must hold whole numbers that fit {np.dtype(dtype)}")
    return np.array(array, dtype=dtype, order="C")


def finite_numbers(values: Any, what: str) -> FloatArray:
    """A copy as floats, one axis, finite and not negative."""
    array = np.asarray(values)
    _check_shape(array, what, (-1,))
    if array.size and array.dtype.kind not in "iuf":
        raise PolicyError(f"{what} must hold numbers, not {array.dtype}")
    found = np.array(array, dtype=np.float64)
    if not ((found >= 0) & np.isfinite(found)).all():
        raise PolicyError(f"{what} must be finite and not negative")
    return found


def integer(value: Any, what: str, end: int) -> int:
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)):
        raise PolicyError(f"{what} must be a whole number, not {value!r}")
    if not 0 <= value < end:
        raise PolicyError(f"{what} is {value}, outside 0..{end - 1}")
    return int(value)


def own_choices(choice: Array, ssp: SSP, what: str, state: Array | None = None) -> None:
    """Each choice must belong to its state; by state, -1 for none, or one for each of `state`."""
    if state is None:
        choice = choice.reshape(ssp.n_states, -1)
        state, column = np.nonzero(choice != -1)
        choice = choice[state, column]
    wrong = (choice < ssp.state_choices[state]) | (choice >= ssp.state_choices[state + 1])
    for at in first_of(wrong):
        name = ssp.states[int(state[at])]
        raise PolicyError(f"{what} has a choice that state {name!r} does not have")


def checked_choices(choices: Any, ssp: SSP) -> IntArray:
    """One choice per state, -1 where there is none."""
    found = integers(choices, "choices", (require_model(ssp).n_states,), np.int64)
    own_choices(found, ssp, "choices")
    return found


def budget_steps(policy: Any) -> dict[str, Any]:
    ssp, unit = require_model(policy.ssp), policy.unit
    found: dict[str, Any] = {"budget": integer(policy.budget, "budget", MAX_LEVELS)}
    for name, length, dtype in (
        ("choice", -1, np.int32),
        ("from_budget", np.size(policy.choice), np.int64),
        ("first", ssp.n_states + 1, np.int64),
        ("risk_neutral", ssp.n_states, np.int32),
        ("level", ssp.n_outcomes, np.int64),
    ):
        found[name] = integers(getattr(policy, name), name, (length,), dtype)
    state, level = rising_steps(found["first"], found["from_budget"]), found["level"]
    if level.min(initial=0) < 0:
        raise PolicyError("level must not be negative")
    if level.max(initial=0) >= MAX_LEVELS:
        raise PolicyError(f"level must be below {MAX_LEVELS}")
    own_choices(found["choice"], ssp, "choice", state)
    if unit is not None and not (isinstance(unit, (int, float, Fraction)) and 0 < unit < math.inf):
        raise PolicyError(f"unit must be a positive number, not {unit!r}")
    own_choices(found["risk_neutral"], ssp, "risk_neutral")
    return found


def rising_steps(first: IntArray, from_budget: IntArray) -> IntArray:
    """The row, by `first`, that each step belongs to; budgets must rise within a row."""
    if (
        not first.size
        or first[0] != 0
        or first[-1] != len(from_budget)
        or (np.diff(first) < 0).any()
    ):
        raise PolicyError(f"first must rise from 0 to {len(from_budget)}, the number of steps")
    row = np.repeat(np.arange(len(first) - 1), np.diff(first))
    falls = (np.diff(from_budget) <= 0) & (row[1:] == row[:-1])
    if falls.any() or (len(row) and not 0 < from_budget.min() <= from_budget.max() < MAX_LEVELS):
        raise PolicyError(
            f"from_budget must rise within each state, from 1 or more, and stay below {MAX_LEVELS}"
        )
    return row


def _check_shape(array: Array, what: str, shape: tuple[int, ...]) -> None:
    if array.ndim != len(shape) or any(
        wanted not in (-1, found) for wanted, found in zip(shape, array.shape)
    ):
        wanted = " x ".join("any" if size < 0 else str(size) for size in shape)
        raise PolicyError(
            f"{what} must have the shape {wanted}, not"
            f" {' x '.join(map(str, array.shape)) or 'that of a single number'}"
        )


def require_model(ssp: Any) -> SSP:
    if not isinstance(ssp, SSP):
        raise PolicyError(f"a table policy needs its model, not {kind_of(ssp)}")
    return ssp


def decide(ssp: SSP, policy: Policy, state: int, memory: Any) -> list[tuple[int, float]]:
    """What a policy does at a state (by index): pairs (choice, probability), checked."""
    return checked_decision(ssp, state, policy.action(ssp.states[state], memory))


def checked_decision(ssp: SSP, state: int, decision: Any) -> list[tuple[int, float]]:
    """A decision, an action or a distribution over actions, as pairs (choice, probability)."""
    if not isinstance(decision, Mapping):
        choice = ssp.choice_index(state, decision)
        if choice < 0:
            raise unknown_action(ssp, state, decision)
        return [(choice, 1.0)]
    pairs = []
    for action, weight in decision.items():
        choice = ssp.choice_index(state, action)
        if choice < 0:
            raise unknown_action(ssp, state, action)
        least = min(ssp.outcome_probability[o] for o in members(ssp.choice_outcomes, choice))
        vanishes = 0 < weight < 1 and weight * float(least) < sys.float_info.min
        if vanishes or not 0 <= weight <= 1 + TOLERANCE:
            raise PolicyError(
                f"the policy takes action {action!r} in state {ssp.states[state]!r} with"
                f" probability {weight!r}{', too small to compute with' if vanishes else ''}"
            )
        if weight > 0:
            pairs.append((choice, float(weight)))
    total = sum(weight for _, weight in pairs)
    if abs(total - 1) > TOLERANCE * max(len(pairs), 1):
        raise PolicyError(
            f"the action probabilities of the policy in state {ssp.states[state]!r} sum to"
            f" {total:.12g}, not 1"
        )
    return [(choice, weight / total) for choice, weight in pairs]


def known_actions(ssp: SSP, state: int) -> str:
    names = [repr(ssp.choice_name(k)) for k in members(ssp.state_choices, state)]
    return ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")


def unknown_action(ssp: SSP, state: int, action: Any) -> PolicyError:
    """What to raise where the state does not have the action."""
    return PolicyError(
        f"the policy takes action {action!r} in state {ssp.states[state]!r}, which only has"
        f" {known_actions(ssp, state)}"
    )


def only_action(ssp: SSP, state: int) -> Name | None:
    """The action of a state that has one; None where there is something to decide."""
    choices = members(ssp.state_choices, state)
    return ssp.choice_name(choices[0]) if len(choices) == 1 else None


class Actions:
    """How others name the actions of a model: by name, or by index where names are not numbers."""

    def __init__(self, ssp: SSP) -> None:
        self.ssp = ssp
        # Where there is nothing to decide, nobody needs to name the action.
        decisive = np.unique(
            ssp.choice_action[(np.diff(ssp.state_choices) > 1)[ssp.choice_state]]
        ).tolist()
        names: list[Any] = [ssp.actions[action] for action in decisive]
        self.numbered = all(is_number(name) for name in names)
        #: Numbers in a row over all actions.
        self.width: int = max(names, default=-1) + 1 if self.numbered else len(ssp.actions)

    def understood(self, state: int, answer: Any) -> Decision | None:
        """What was said about a state, as the model names it; None for no decision (None, -1, NaN,
        masked).
        """
        if isinstance(answer, Mapping):
            shares = {
                self.name(state, key): float(share)
                for key, share in answer.items()
                if share and share == share
            }
            return shares or None
        if (
            isinstance(answer, np.ndarray)
            and answer.ndim == 1
            and answer.dtype.kind in "fiu"
            and answer.size > 1
        ):
            return self.understood(state, self.row(state, answer))
        # -1 may be an action.
        if _is_nothing(answer) and (
            answer is np.ma.masked or self.ssp.choice_index(state, answer) < 0
        ):
            return None
        return self.name(state, answer)

    def name(self, state: int, answer: Any) -> Name:
        """The action that a name or a number stands for in a state."""
        plain = _plain(answer)
        if isinstance(plain, float) and plain.is_integer():
            plain = int(plain)
        try:
            known = self.ssp.choice_index(state, plain) >= 0
            hash(plain)
        except (TypeError, ValueError):
            known, plain = False, repr(plain)
        by_number = not known and not self.numbered and is_number(plain)
        if by_number and 0 <= plain < len(self.ssp.actions):
            plain = self.ssp.actions[int(plain)]
            known = self.ssp.choice_index(state, plain) >= 0
        if not known:
            raise unknown_action(self.ssp, state, plain)
        name: Name = plain
        return name

    def row(self, state: int, values: Any) -> dict[Name, Any]:
        """A row of numbers, one for each action, by the names of the actions that the state has."""
        ssp = self.ssp
        if len(values) != self.width and not (self.numbered and len(values) > self.width):
            raise PolicyError(
                f"the row of state {ssp.states[state]!r} has {len(values)} numbers; expected one"
                f" for each of {self.width} actions"
            )
        choices = list(members(ssp.state_choices, state))
        names: list[Any] = [ssp.choice_name(choice) for choice in choices]
        positions = names if self.numbered else ssp.choice_action[choices].tolist()
        return {name: values[position] for name, position in zip(names, positions)}


def is_number(name: Any) -> bool:
    return isinstance(name, (int, np.integer)) and not isinstance(name, bool)


def _plain(answer: Any) -> Any:
    """A single number of numpy as a plain one; anything else as it is."""
    single = isinstance(answer, (np.ndarray, np.generic)) and np.size(answer) == 1
    return answer.item() if single else answer


def _is_nothing(answer: Any) -> bool:
    if answer is None or answer is np.ma.masked:
        return True
    answer = _plain(answer)
    return isinstance(answer, (int, float)) and (answer == -1 or answer != answer)


def own_name(ssp: SSP, state: int) -> Name | None:
    """The name of a state in the model that policies are written for, if it has one there."""
    if ssp.origin is None:
        return ssp.states[state]
    index = int(ssp.origin.index[state])
    return None if index < 0 else ssp.origin.states[index]


def decisions_met(ssp: SSP, ask: Callable[[int, Name], Decision | None]) -> dict[Name, Decision]:
    """The decisions in all states that they lead to, from the start on."""
    decisions: dict[Name, Decision] = {}
    seen, waiting = {ssp.start_index}, [ssp.start_index]
    while waiting:
        state = waiting.pop()
        if ssp.is_goal[state]:
            continue
        decision = ask(state, ssp.states[state])
        if decision is None:
            raise missing_decision(ssp, state)
        decisions[ssp.states[state]] = decision
        for choice, _ in checked_decision(ssp, state, decision):
            for outcome in members(ssp.choice_outcomes, choice):
                target = int(ssp.outcome_target[outcome])
                if target not in seen:
                    seen.add(target)
                    waiting.append(target)
    return decisions


def no_action(ssp: SSP, state: int, hint: str = "") -> PolicyError:
    """What to raise where a policy gets to a state that it does not know."""
    name = ssp.states[state]
    return PolicyError(f"the policy has no action for state {name!r}, which it can reach{hint}")


def missing_decision(ssp: SSP, state: int) -> PolicyError:
    return no_action(ssp, state, f"; expected one of {known_actions(ssp, state)}")
