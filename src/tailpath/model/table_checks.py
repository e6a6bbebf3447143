"""Checks of the rows of a table before they become a model, so that all faults are listed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import compress

import numpy as np

from tailpath.graph import Array, BoolArray
from tailpath.model.builders import ROW_TOLERANCE, Name
from tailpath.model.cells import MOST_FAULTS, Faults, OutcomeTable
from tailpath.model.ends import MANY, StartAndGoals
from tailpath.model.outcome_columns import OutcomeColumns
from tailpath.texts import did_you_mean


class RowChecks:
    """Checks of the rows of a table before they become a model, so that all faults are listed."""

    def __init__(
        self,
        table: OutcomeTable,
        rows: OutcomeColumns,
        row: Array,
        states: Sequence[Name],
        actions: Sequence[Name],
        faults: Faults,
    ) -> None:
        self.table, self.faults = table, faults
        self.rows, self.row = rows, row
        self.states, self.actions = states, actions

    def _outcome(self, k: int) -> str:
        rows = self.rows
        choice = f"state {self.states[rows.state[k]]!r}, action {self.actions[rows.action[k]]!r}"
        return f"{choice} -> {self.states[rows.target[k]]!r}"

    def _refuse(self, bad: BoolArray, what: Callable[[int], str]) -> None:
        for k in np.flatnonzero(bad)[: MOST_FAULTS + 1].tolist():
            self.faults.add(self.row[k : k + 1], f"{self._outcome(k)} has {what(k)}")

    def probabilities(self, kinds: tuple[str, ...]) -> None:
        """Refuse invalid ones; cells that are not numbers were refused before, and are NaN here."""
        values = self.rows.probabilities
        if kinds == ("low", "high"):
            low, high = values
            self._refuse(
                (low < 0) | (low > high) | (high > 1),
                lambda k: f"the interval [{low[k]:g}, {high[k]:g}], not one of probabilities",
            )
        elif kinds == ("count",):
            count = values[0]
            self._refuse(
                (count < 0) | (count > np.floor(count)),
                lambda k: f"count {count[k]:g}, which is not a whole number of 0 or more",
            )
        elif kinds:
            self._refuse(values[0] < 0, lambda k: f"probability {values[0][k]:g}")

    def dead_ends(self, ends: StartAndGoals) -> None:
        """Refuse states that rows lead to but that have no rows and are not goals."""
        rows, begins = self.rows, np.zeros(len(self.states), dtype=np.bool_)
        begins[rows.state] = True
        dead = ends.mask & ~(begins | ends.is_goal)[rows.target] & (rows.probabilities[-1] > 0)
        few = dead.any() and len(self.states) <= MANY
        known = list(compress(self.states, begins | ends.is_goal)) if few else []
        for k in np.flatnonzero(dead)[: MOST_FAULTS + 1].tolist():
            name = self.states[rows.target[k]]
            hint = did_you_mean(name, known) or "; give it some, or make it a goal"
            self.faults.add(
                self.row[k : k + 1], f"state {name!r} has no choices and is not a goal{hint}"
            )

    def sums(self, mask: BoolArray) -> None:
        """Refuse choices whose probabilities do not sum to 1."""
        rows, width = self.rows, len(self.actions)
        key = rows.state[mask].astype(np.int64) * width + rows.action[mask]
        choice, first, of_row = np.unique(key, return_index=True, return_inverse=True)
        total = np.bincount(of_row, rows.probabilities[0][mask])
        off = np.abs(total - 1) > ROW_TOLERANCE * np.bincount(of_row)
        # What is left out, since it cannot happen, is for the model to say.
        off &= total > 0
        percent = "; if they are percentages, write them as 5%, or divide by 100"
        hint = percent if off.any() and np.allclose(total[off], 100, rtol=1e-6) else ""
        for k in np.flatnonzero(off)[: MOST_FAULTS + 1].tolist():
            state, action = divmod(int(choice[k]), width)
            what = f"state {self.states[state]!r}, action {self.actions[action]!r}"
            at = np.flatnonzero(mask)[first[k]]
            self.faults.add(
                self.row[at : at + 1],
                f"the probabilities of {what} sum to {total[k]:.12g}, not 1{hint}",
            )

    def few_negative(self, mask: BoolArray) -> list[str]:
        """A note on negative costs where they are so few that they may be a slip."""
        negative = np.flatnonzero((self.rows.cost < 0) & mask)
        if not 0 < 20 * len(negative) <= np.count_nonzero(mask):
            return []
        k = int(negative[0])
        are = "is" if len(negative) == 1 else "are"
        where = f"{self.table.row(int(self.row[k]))}: {self.rows.cost[k]:g}"
        return [f"{len(negative)} of {np.count_nonzero(mask)} costs {are} negative ({where})"]
