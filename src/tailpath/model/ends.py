"""Where the runs of a table begin and end, and the notes about it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any, NamedTuple

import numpy as np

from tailpath.errors import ModelError
from tailpath.graph import Array, BoolArray
from tailpath.model.outcomes import OutcomeColumns
from tailpath.texts import count

#: The note of models whose costs were given as rewards.
GAINS = "costs are minus the rewards"
#: With more states, names are not compared for typing errors.
MANY = 2_000
_DIGITS = re.compile("[0-9]+")


class StartAndGoals(NamedTuple):
    """Where runs begin and end: the goals, the number of the start, a `mask` of the rows that do
    not leave a goal, notes on what was assumed, and whether the goals were assumed.
    """

    is_goal: BoolArray
    start: int
    mask: BoolArray
    notes: tuple[str, ...]
    assumed: bool


def start_and_goals(
    rows: OutcomeColumns,
    states: Sequence[Any],
    start: int | None,
    goals: Sequence[int] | None,
    columns: Mapping[str, BoolArray],
) -> StartAndGoals:
    """Where the runs of a table begin and end: as given, or as the columns `start` and `goal` mark
    it, or as the rows suggest.

    Rows that leave a goal are left out, with a note unless they are free loops or impossible.
    """
    state, target = rows.state, rows.target
    leads_on, possible = (target != state) | (rows.cost != 0), rows.probabilities[-1] > 0
    is_goal, notes = np.zeros(len(states), dtype=np.bool_), []
    assumed = goals is None and "goal" not in columns
    if goals is not None:
        is_goal[list(goals)] = True
    elif "goal" in columns:
        is_goal[target[columns["goal"]]] = True
        if not is_goal.any():
            raise ModelError("the column goal marks no row")
    else:
        is_goal, what = _goals_assumed(state, leads_on, len(states))
        notes.append(f"{what} ({is_goal.sum()} of them)")
    if start is None and "start" in columns:
        marked = np.unique(state[columns["start"]])
        if len(marked) != 1:
            raise ModelError(
                f"the column start marks {len(marked)} states; exactly one must be the start"
            )
        start = int(marked[0])
    elif start is None:
        start = int(state[0])
        notes.append(f"the start is {states[start]!r}, the state of the first row")
    mask = ~is_goal[state]
    n_rows = int(np.count_nonzero(~mask & possible & leads_on))
    if n_rows:
        are = "is" if n_rows == 1 else "are"
        notes.append(
            f"runs end at goals: {count(n_rows, 'row')} leading on from them {are} left out"
        )
    return StartAndGoals(is_goal, start, mask, tuple(notes), assumed)


def _goals_assumed(state: Array, leads_on: BoolArray, n_states: int) -> tuple[BoolArray, str]:
    for begins, what in (
        (state, "states without rows are the goals"),
        (state[leads_on], "states that lead only to themselves at no cost are the goals"),
    ):
        is_goal = np.ones(n_states, dtype=np.bool_)
        is_goal[begins] = False
        if is_goal.any():
            return is_goal, what
    raise ModelError(
        "no goal: every state has rows, and none leads only to itself at no cost; give goals="
    )


def note_typos(ends: StartAndGoals, states: Sequence[Any]) -> list[str]:
    """Notes on goals that were assumed, for lack of rows, and whose names are close to those of
    other states: a typing error, unless only digits differ.
    """
    goals = [states[k] for k in np.flatnonzero(ends.is_goal).tolist()] if ends.assumed else []
    if len(goals) < 2 or len(states) > MANY:
        return []
    known, notes = [name for name in states if isinstance(name, str)], []
    for goal in filter(known.__contains__, goals):
        others = [name for name in known if _DIGITS.sub("", name) != _DIGITS.sub("", goal)]
        for near in get_close_matches(goal, others, 1, 0.8):
            notes.append(f"the goal {goal!r} has no rows; did you mean {near!r}?")
    return notes
