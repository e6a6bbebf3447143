"""Policies by budget from files written before decisions were steps, as changes `(state, from_budget, choice)`.

| kind | what its table holds |
| --- | --- |
| `budget` | `table[row[s], b]`, for every budget b from 1 on |
| `budget windows` | the same for a budget of `sure[row[s]]` + b; outside the choice is the risk-neutral one |
| `budget pairs` | the budgets `left[first[row[s]] : first[row[s] + 1]]` of a state, each up to the next |

Entries are positions among the choices of their state.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tailpath.errors import PolicyError
from tailpath.model.ragged import members_of

Source = Callable[[str, Any, int], NDArray[Any]]
TABLE_TYPES = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64")
#: The arrays of each kind besides `neutral` and `level`.
ARRAYS = {
    "budget": ("row", "table"),
    "budget windows": ("row", "sure", "table"),
    "budget pairs": ("row", "first", "left", "table"),
}


def old_changes(
    header: Mapping[str, Any], source: Source, state_choices: NDArray[Any], neutral: NDArray[Any]
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """The changes of an old file, whose states have the choices `state_choices[s] : state_choices[s + 1]`."""
    if header.get("table_type") not in TABLE_TYPES:
        raise PolicyError(f"table_type must be one of {', '.join(TABLE_TYPES)}")
    pairs = header["kind"] == "budget pairs"
    row, table = source("row", np.int32, 1), source("table", header["table_type"], 1 if pairs else 2).astype(np.int64)
    first = source("first", np.int64, 1) if pairs else np.zeros(len(table) + 1, dtype=np.int64)
    if pairs and (not first.size or first[0] != 0 or first[-1] != len(table) or (np.diff(first) <= 0).any()):
        raise PolicyError("first must rise from 0 to the length of the table, with an entry for each row and one more")
    n_states = len(state_choices) - 1
    if len(row) != n_states or len(neutral) != n_states or (len(row) and not -1 <= row.min() <= row.max() < len(first) - 1):
        raise PolicyError("row and neutral need an entry per state, inside the table")
    state = np.flatnonzero(row >= 0)
    if pairs:
        left = source("left", np.int64, 1)
        if left.shape != table.shape:
            raise PolicyError("left needs an entry for each of the table")
        member, ends = members_of(first, row[state])
        state = np.repeat(state, np.diff(ends))
        return state, left[member], _own(table[member], state, state_choices)
    shift = source("sure", np.int64, 1) if header["kind"] == "budget windows" else np.zeros(len(table), dtype=np.int64)
    if shift.shape != (len(table),) or (len(shift) and not 0 <= shift.min() <= shift.max() < 2**62):
        raise PolicyError("sure needs an entry for each row, none of them negative")
    positions = table[row[state]]
    # Budgets beyond the table count as spent ones; those of a full table end there.
    beyond = positions.shape[1] + shift[row[state]]
    changed = np.ones((len(state), positions.shape[1]), dtype=np.bool_)
    changed[:, 1:] = positions[:, 1:] != positions[:, :-1]
    changed[:, :1], changed[:, 1:2] = False, True
    at, budget = np.nonzero(changed)
    choice = _own(positions[at, budget], state[at], state_choices)
    ends_there = neutral[state] >= 0
    return (
        np.append(state[at], state[ends_there]),
        np.append(budget + shift[row[state[at]]], beyond[ends_there]),
        np.append(choice, neutral[state][ends_there]),
    )


def _own(position: NDArray[Any], state: NDArray[Any], state_choices: NDArray[Any]) -> NDArray[Any]:
    """Positions among the choices of states as choices; -1 where the state has no such choice, which is refused later."""
    choice = state_choices[state] + position
    return np.where((position < 0) | (choice >= state_choices[state + 1]), -1, choice)
