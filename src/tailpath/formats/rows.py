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

    def model(self, fields: dict[str, Any]) -> SSP | IntervalSSP:
        """The model of probabilities or intervals, with the other fields of an `SSP`."""
        if len(self.probabilities) == 1:
            return SSP(**self._arrays(self.probabilities[0], fields))
        arrays = self._arrays(np.stack(self.probabilities, axis=1), fields)
        low, high = arrays["outcome_probability"].T
        return IntervalSSP.from_fields(arrays, low, np.minimum(high, 1.0))

    def counted_model(self, fields: dict[str, Any], confidence: float) -> IntervalSSP:
        """The model of counts, whose intervals all hold with this probability."""
        arrays = self._arrays(np.stack(self.probabilities, axis=1), fields)
        (count,) = arrays["outcome_probability"].T
        return IntervalSSP.from_fields_counted(arrays, count, confidence)

    def _arrays(self, probability: Array, fields: dict[str, Any]) -> dict[str, Any]:
        columns = self.state, self.action, self.target
        n_states = len(fields["is_goal"])
        return fields | arrays_from_rows(*columns, probability, self.cost, n_states, merge=True)
