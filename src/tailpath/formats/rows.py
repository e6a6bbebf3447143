"""Outcomes by column, as readers of tables and of labelled models collect them, made into a
model."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tailpath.graph import Array, BoolArray
from tailpath.model.builders import arrays_from_rows
from tailpath.model.interval import IntervalSSP
from tailpath.model.ssp import SSP


class OutcomeColumns(NamedTuple):
    """Outcomes in any order, a row each, by the numbers of states and actions. `probabilities` has
    one column of them, or the low and the high ends of intervals, or counts. Rows with the same
    outcome are added up.
    """

    state: Array
    action: Array
    target: Array
    cost: Array
    probabilities: tuple[Array, ...]

    def only(self, mask: BoolArray) -> OutcomeColumns:
        """Some of the rows."""
        return OutcomeColumns(
            self.state[mask],
            self.action[mask],
            self.target[mask],
            self.cost[mask],
            tuple(column[mask] for column in self.probabilities),
        )

    def numbered(self, number: Array) -> OutcomeColumns:
        """With other numbers for the states."""
        return self._replace(state=number[self.state], target=number[self.target])

    def extended(
        self, state: Any, action: int, target: Array, cost: float, probability: float
    ) -> OutcomeColumns:
        """With a row more for each of some targets."""

        def longer(column: Array, more: Any) -> Array:
            return np.append(column, np.broadcast_to(more, len(target)).astype(column.dtype))

        return OutcomeColumns(
            longer(self.state, state),
            longer(self.action, action),
            longer(self.target, target),
            longer(self.cost, cost),
            tuple(longer(each, probability) for each in self.probabilities),
        )

    def model(self, fields: dict[str, Any], confidence: float | None = None) -> SSP | IntervalSSP:
        """The model of probabilities or intervals, with the other fields of an `SSP`; with a
        confidence, that of counts, whose intervals all hold with this probability.
        """
        columns, n_states = self.probabilities, len(fields["is_goal"])
        is_plain = len(columns) == 1 and confidence is None
        arrays = fields | arrays_from_rows(
            *(self.state, self.action, self.target),
            columns[0] if is_plain else np.stack(columns, axis=1),
            self.cost,
            n_states,
            merge=True,
        )
        if is_plain:
            return SSP(**arrays)
        low, *high = arrays["outcome_probability"].T
        if confidence is None:
            return IntervalSSP.from_fields(arrays, low, np.minimum(high[0], 1.0))
        return IntervalSSP.from_fields_counted(arrays, low, confidence)
