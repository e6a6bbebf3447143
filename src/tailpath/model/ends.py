"""Where the runs of a table begin and end, and the notes about it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from itertools import takewhile
from typing import Any, NamedTuple

import numpy as np

from tailpath.errors import ModelError
from tailpath.graph import Array, BoolArray, IntArray
from tailpath.model.outcomes import OutcomeColumns
from tailpath.texts import count

#: The note of models whose costs were given as rewards.
GAINS = "costs are minus the rewards"
#: With more states, names are not compared for typing errors.
MANY = 2_000
_DIGITS = re.compile("[0-9]+")
_LOOKS = str.maketrans("oilszb", "011528")


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


def note_typos(ends: StartAndGoals, states: Sequence[Any], uses: IntArray) -> list[str]:
    """Notes on goals that were assumed, for lack of rows, and whose names are close to those of
    other states: a typing error, unless only digits differ, or the other is a goal that no more
    rows name. `uses` counts the rows that name a state.
    """
    goals = np.flatnonzero(ends.is_goal).tolist() if ends.assumed else []
    if len(goals) < 2 or len(states) > MANY:
        return []
    known, notes = {name: k for k, name in enumerate(states) if isinstance(name, str)}, []
    for name, goal in ((states[goal], goal) for goal in goals if states[goal] in known):
        others = {
            other: int(uses[k])
            for other, k in known.items()
            if (not ends.is_goal[k] or uses[k] > uses[goal])
            and _DIGITS.sub("", other) != _DIGITS.sub("", name)
        }
        near = nearest(name, others, 0.8)
        if near is not None:
            notes.append(f"the goal {name!r} has no rows; did you mean {near!r}?")
    return notes


def nearest(name: str, uses: Mapping[str, int], cutoff: float = 0.6) -> str | None:
    """The name that another was probably meant to be: one that looks alike, or else differs by one
    letter, or else is close; of several, the one with the most uses.
    """
    near = get_close_matches(name, uses, max(len(uses), 1), cutoff)
    near += [other for other in uses if _looks(other) == _looks(name) and other not in near]
    rank = {other: k for k, other in enumerate(near)}

    def how_near(other: str) -> tuple[bool, bool, int, int]:
        alike = _looks(other) == _looks(name)
        return alike, _one_letter(name, other), uses[other], -rank[other]

    return max(near, key=how_near, default=None)


def _looks(name: str) -> str:
    """A name by its looks: no upper case, no spaces, and digits for letters that look like them."""
    return "".join(name.casefold().split()).translate(_LOOKS)


def _one_letter(one: str, other: str) -> bool:
    """Whether one letter is another, missing or too many, or two have changed places."""
    for _ in range(2):  # off with what they begin and end with alike
        same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other)))
        one, other = one[same:][::-1], other[same:][::-1]
    return max(len(one), len(other)) <= 1 or (len(one) == 2 and one == other[::-1])
