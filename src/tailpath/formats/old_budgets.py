"""Policies by budget from files written before decisions were steps, as changes `(state,
from_budget, choice)`.

- `budget`: `table[row[s], b]`, for every budget b from 1 on
- `budget windows`: the same for a budget of `sure[row[s]]` + b; outside the choice is the
  risk-neutral one
- `budget pairs`: the budgets `left[first[row[s]] : first[row[s] + 1]]` of a state, each up to the
  next

Entries are positions among the choices of their state.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tailpath.errors import PolicyError
from tailpath.graph import Array, first_of, members_of
from tailpath.model.ssp import SSP
from tailpath.policies.checks import MAX_LEVELS, rising_steps

#: `source(name, dtype, axes)` gives an array of the file.
Source = Callable[[str, Any, int], Array]
ChangeColumns = tuple[Array, Array, Array]
TABLE_TYPES = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64")
#: The arrays of each kind besides `risk_neutral` and `level`.
ARRAYS = {
    "budget": ("row", "table"),
    "budget windows": ("row", "sure", "table"),
    "budget pairs": ("row", "first", "left", "table"),
}


def old_changes(
    header: Mapping[str, Any], source: Source, model: SSP, risk_neutral: Array
) -> ChangeColumns:
    """The changes of an old file, made for a model with these states and choices."""
    if header.get("table_type") not in TABLE_TYPES:
        raise PolicyError(f"table_type must be one of {', '.join(TABLE_TYPES)}")
    row = source("row", np.int32, 1)
    if len(row) != len(model.states) or len(risk_neutral) != len(model.states):
        raise PolicyError("row and neutral need an entry per state")
    if header["kind"] == "budget pairs":
        return _pairs(header, source, model, row)
    return _windows(header, source, model, row, risk_neutral)


def _pairs(header: Mapping[str, Any], source: Source, model: SSP, row: Array) -> ChangeColumns:
    table = source("table", header["table_type"], 1)
    first, left = source("first", np.int64, 1), source("left", np.int64, 1)
    if left.shape != table.shape:
        raise PolicyError("left needs an entry for each of the table")
    rising_steps(first, left, "left")
    _check_rows(row, len(first) - 1)
    state = np.flatnonzero(row >= 0)
    member, ends = members_of(first, row[state])
    state = np.repeat(state, np.diff(ends))
    return state, left[member], _own(table[member], state, model)


def _windows(
    header: Mapping[str, Any],
    source: Source,
    model: SSP,
    row: Array,
    risk_neutral: Array,
) -> ChangeColumns:
    table = source("table", header["table_type"], 2)
    _check_rows(row, len(table))
    shift = np.zeros(len(table), dtype=np.int64)
    if header["kind"] == "budget windows":
        shift = source("sure", np.int64, 1)
    elif len(table) and header["budget"] >= table.shape[1]:
        raise PolicyError(
            f"the budget is {header['budget']}, but the table ends at {table.shape[1] - 1}"
        )
    if shift.shape != (len(table),) or (
        len(shift) and not 0 <= shift.min() <= shift.max() < MAX_LEVELS
    ):
        raise PolicyError(
            f"sure needs an entry for each row, none of them negative, and all below {MAX_LEVELS}"
        )
    state = np.flatnonzero(row >= 0)
    positions = table[row[state]]
    changed = np.ones(positions.shape, dtype=np.bool_)
    changed[:, 1:] = positions[:, 1:] != positions[:, :-1]
    changed[:, :1], changed[:, 1:2] = False, True
    at, budget = np.nonzero(changed)
    choice = _own(positions[at, budget], state[at], model)
    # Budgets beyond the table count as spent ones.
    ends = state[risk_neutral[state] >= 0]
    return (
        np.append(state[at], ends),
        np.append(budget + shift[row[state[at]]], positions.shape[1] + shift[row[ends]]),
        np.append(choice, risk_neutral[ends]),
    )


def _check_rows(row: Array, end: int) -> None:
    if len(row) and not -1 <= row.min() <= row.max() < end:
        raise PolicyError("row points outside the table")


def _own(position: Array, state: Array, model: SSP) -> Array:
    """Positions among the choices of states as choices."""
    first, end = model.state_choices[state], model.state_choices[state + 1]
    for at in first_of((position < 0) | (position >= end - first)):
        raise PolicyError(
            f"the table has a choice that state {model.states[int(state[at])]!r} does not have"
        )
    return np.asarray(first + position)
