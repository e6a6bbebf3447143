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

from tailpath.errors import OptionError, PolicyError
from tailpath.graph import Array, FloatArray, IntArray, first_of
from tailpath.model.ssp import SSP
from tailpath.policies.atoms import Grids, checked_atoms

#: Budgets and levels beyond this could overflow where they are added up.
MOST_LEVELS = 2**62


def integers(values: Any, what: str, shape: tuple[int, ...], dtype: Any) -> Array:
    """A copy as whole numbers of `dtype`, of the given shape; -1 in a shape stands for
    any length.
    """
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
    """An integer in 0 .. end - 1."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)):
        raise PolicyError(f"{what} must be a whole number, not {value!r}")
    if not 0 <= value < end:
        raise PolicyError(f"{what} is {value}, outside 0..{end - 1}")
    return int(value)


def own_choices(choice: Array, ssp: SSP, what: str) -> None:
    """Choice numbers by state, -1 for none: each must belong to its state."""
    flat = choice.reshape(-1)
    state = np.repeat(np.arange(ssp.n_states), len(flat) // ssp.n_states)
    _own_choices(flat[flat != -1], state[flat != -1], ssp, what)


def _own_choices(choice: Array, state: Array, ssp: SSP, what: str) -> None:
    """Choice numbers, each with the number of its state."""
    wrong = (choice < ssp.state_choices[state]) | (choice >= ssp.state_choices[state + 1])
    for at in first_of(wrong):
        name = ssp.states[int(state[at])]
        raise PolicyError(f"{what} has a choice that state {name!r} does not have")


def checked_choices(choices: Any, ssp: SSP) -> IntArray:
    """One choice per state, -1 where there is none."""
    found = integers(choices, "choices", (_model(ssp).n_states,), np.int64)
    own_choices(found, ssp, "choices")
    return found


def atom_tables(
    ssp: SSP, atoms: Any, choice: Any, xi_offset: Any, xi: Any, start_atom: Any, grids: Any = None
) -> dict[str, Any]:
    """The fields of an `AtomPolicy`, checked."""
    try:
        grid = checked_atoms(atoms)
    except OptionError as error:
        raise PolicyError(str(error)) from None
    shape = (_model(ssp).n_states, len(grid))
    if np.shape(choice) != shape or np.shape(xi_offset) != shape:
        raise PolicyError(f"choice and xi_offset must be {shape[0]} x {shape[1]}")
    choice = integers(choice, "choice", shape, np.int32)
    xi_offset = integers(xi_offset, "xi_offset", shape, np.int64)
    xi = finite_numbers(xi, "xi")
    start = integer(start_atom, "start_atom", len(grid))
    own_choices(choice, ssp, "choice")
    taken = choice >= 0
    length = np.diff(ssp.choice_outcomes)[choice[taken]]
    if ((xi_offset[taken] < 0) | (xi_offset[taken] > len(xi) - length)).any():
        raise PolicyError("xi_offset points outside xi")
    if grids is not None:
        _check_grids(grids, shape)
        grids = Grids(np.array(grids.own), np.array(grids.of_state))
    return {
        "atoms": grid,
        "choice": choice,
        "xi_offset": xi_offset,
        "xi": xi,
        "start_atom": start,
        "grids": grids,
    }


def _check_grids(grids: Any, shape: tuple[int, int]) -> None:
    """Grids for so many states and atoms; each has the last atom, which is 1, so that every y has a
    nearest.
    """
    if not isinstance(grids, Grids):
        raise PolicyError(f"grids must be Grids, not a {type(grids).__name__}")
    own, of_state = np.asarray(grids.own), np.asarray(grids.of_state)
    if (
        own.ndim != 2
        or own.shape[1] != shape[1]
        or own.dtype != np.bool_
        or not own.size
        or not own[:, -1].all()
    ):
        raise PolicyError(
            f"own must mark some of {shape[1]} atoms for every grid, and the last one always"
        )
    if (
        of_state.shape != shape[:1]
        or of_state.dtype.kind not in "iu"
        or not 0 <= of_state.min() <= of_state.max() < len(own)
    ):
        raise PolicyError(
            f"of_state must name one of {len(own)} grids for each of {shape[0]} states"
        )


def budget_steps(
    ssp: SSP,
    budget: Any,
    first: Any,
    from_budget: Any,
    choice: Any,
    risk_neutral: Any,
    level: Any,
    unit: Any,
) -> dict[str, Any]:
    """The fields of a `BudgetPolicy`, checked."""
    n_states = _model(ssp).n_states
    budget = integer(budget, "budget", MOST_LEVELS)
    choice = integers(choice, "choice", (-1,), np.int32)
    from_budget = integers(from_budget, "from_budget", (len(choice),), np.int64)
    first = integers(first, "first", (n_states + 1,), np.int64)
    risk_neutral = integers(risk_neutral, "risk_neutral", (n_states,), np.int32)
    level = integers(level, "level", (ssp.n_outcomes,), np.int64)
    state = rising_steps(first, from_budget)
    if level.size and not 0 <= level.min() <= level.max() < MOST_LEVELS:
        raise PolicyError(
            "level must not be negative"
            if level.min() < 0
            else f"level must stay below {MOST_LEVELS}"
        )
    _own_choices(choice, state, ssp, "choice")
    if unit is not None and not (isinstance(unit, (int, float, Fraction)) and 0 < unit < math.inf):
        raise PolicyError(f"unit must be a positive number, not {unit!r}")
    own_choices(risk_neutral, ssp, "risk_neutral")
    return {
        "budget": budget,
        "first": first,
        "from_budget": from_budget,
        "choice": choice,
        "risk_neutral": risk_neutral,
        "level": level,
    }


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
    if falls.any() or (len(row) and not 0 < from_budget.min() <= from_budget.max() < MOST_LEVELS):
        raise PolicyError(
            f"{what} must rise within each state, from 1 or more, and stay below {MOST_LEVELS}"
        )
    return row


def _check_shape(array: Array, what: str, shape: tuple[int, ...]) -> None:
    if array.ndim != len(shape) or any(
        wanted not in (-1, found) for wanted, found in zip(shape, array.shape)
    ):
        wanted = " x ".join("any" if size < 0 else str(size) for size in shape)
        raise PolicyError(
            f"{what} must be {wanted}, not {' x '.join(map(str, array.shape)) or 'a single number'}"
        )


def _model(ssp: Any) -> SSP:
    if not isinstance(ssp, SSP):
        raise PolicyError(f"a table policy needs its model, not a {type(ssp).__name__}")
    return ssp
