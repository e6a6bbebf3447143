"""Every index, width and length of a table policy, checked once on the way in: kernels trust their
arrays and would read beside them.

A refusal says which array and, where there is one, which state. The arrays are copied, so that a
policy never changes with its maker's.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

from tailpath.errors import PolicyError, kind_of
from tailpath.graph import Array, FloatArray, IntArray, first_of
from tailpath.model.ssp import SSP

#: Budgets and levels beyond this could overflow where they are added up.
MAX_LEVELS = 2**62


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
        raise PolicyError(f"level must stay below {MAX_LEVELS}")
    own_choices(found["choice"], ssp, "choice", state)
    if unit is not None and not (isinstance(unit, (int, float, Fraction)) and 0 < unit < math.inf):
        raise PolicyError(f"unit must be a positive number, not {unit!r}")
    own_choices(found["risk_neutral"], ssp, "risk_neutral")
    return found


def rising_steps(first: IntArray, from_budget: IntArray, what: str = "from_budget") -> IntArray:
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
            f"{what} must rise within each state, from 1 or more, and stay below {MAX_LEVELS}"
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
