"""The ends of a Gymnasium table: which outcomes arrive, which are lost, and what the states are
called in which they do.

An end keeps the state of the environment as its name, so that what an environment hands out at the
end of an episode is a state of the model. Only where a run may also be in that state and go on, or
where both arrivals and losses end in it, is the end another state, `7 (goal)` or `7 (dead end)`.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from tailpath.errors import FormatError
from tailpath.graph import Array, BoolArray
from tailpath.model.endings import fresh_name
from tailpath.model.ssp import Name

#: State, action, next state, probability, reward, and whether the episode ends.
Outcome = tuple[Name, Name, Name, float, float, bool]


class Endings(NamedTuple):
    """Which outcomes arrive and which are lost; the others go on."""

    arrives: BoolArray
    lost: BoolArray
    notes: tuple[str, ...]

    @classmethod
    def of(cls, rows: list[Outcome], goal: str | None, location: str) -> Endings:
        """Ends told apart by their reward: `goal` is `best`, `all` or a reward."""
        ends = np.array([row[5] for row in rows], dtype=np.bool_)
        if not ends.any():
            raise FormatError(
                f"{location}: no outcome that can be reached is marked as terminated, so there is"
                " no goal"
            )
        rewards = np.array([row[4] for row in rows], dtype=np.float64)
        final = np.unique(rewards[ends])
        if goal == "all":
            wanted = final
        elif goal is None or goal == "best":
            wanted = final[-1:]
        else:
            wanted = np.array([_reward(part, final, location) for part in goal.split(",")])
        arrives = ends & np.isin(rewards, wanted)
        lost = ends & ~arrives
        if not lost.any():
            return cls(arrives, lost, ())
        others = ", ".join(f"{value:g}" for value in final if value not in wanted)
        best = ", ".join(f"{value:g}" for value in wanted)
        note = (
            f"a run that ends with a reward of {best} has arrived, one that ends with {others} is"
            " lost (goal='all', --goal all: every end counts)"
        )
        return cls(arrives, lost, (note,))

    def targets(self, rows: list[Outcome]) -> tuple[list[Name], dict[Name, None], dict[Name, None]]:
        """Where each outcome leads by the names of the model, and the names of the goals and of the
        dead ends.
        """
        taken: dict[Name, Any] = dict.fromkeys(row[0] for row in rows)
        taken.update(
            dict.fromkeys(row[2] for row, ends in zip(rows, self.arrives | self.lost) if not ends)
        )
        called: list[dict[Name, Name]] = []
        for mask, word in ((self.arrives, "goal"), (self.lost, "dead end")):
            found: dict[Name, Name] = {}
            for state in dict.fromkeys(rows[row][2] for row in np.flatnonzero(mask).tolist()):
                found[state] = fresh_name(f"{state} ({word})", taken) if state in taken else state
                taken[found[state]] = None
            called.append(found)
        kind = np.where(self.arrives, 1, np.where(self.lost, 2, 0)).tolist()
        names = ({}, *called)
        targets = [names[k].get(row[2], row[2]) for row, k in zip(rows, kind)]
        return targets, dict.fromkeys(called[0].values()), dict.fromkeys(called[1].values())


def _reward(text: str, final: Array, location: str) -> float:
    known = ", ".join(f"{value:g}" for value in final)
    try:
        reward = float(text)
    except ValueError:
        reward = math.nan
    if reward not in final:
        raise FormatError(
            f"{location}: goal must be best, all or the reward of an end, one of {known}, not"
            f" {text.strip()!r}"
        )
    return reward
