"""Columns: of outcomes by number, as tables and readers of files collect them; and of cells, each
different one once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from tailpath.errors import OptionError
from tailpath.graph import Array, BoolArray, FloatArray, IntArray
from tailpath.model.builders import arrays_from_rows


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
        state, action, target, cost = (column[mask] for column in self[:4])
        shares = tuple(column[mask] for column in self.probabilities)
        return OutcomeColumns(state, action, target, cost, shares)

    def numbered(self, number: Array) -> OutcomeColumns:
        return self._replace(state=number[self.state], target=number[self.target])

    def extended(
        self, state: Any, action: int, target: Array, cost: float, probability: float
    ) -> OutcomeColumns:
        """With a row more for each of some targets."""

        def longer(column: Array, more: Any) -> Array:
            return np.append(column, np.broadcast_to(more, len(target)).astype(column.dtype))

        shares = tuple(longer(column, probability) for column in self.probabilities)
        added = (state, action, target, cost)
        source, chosen, ends, costs = map(longer, self[:4], added)
        return OutcomeColumns(source, chosen, ends, costs, shares)

    def fields(self, fields: dict[str, Any], *, plain: bool) -> dict[str, Any]:
        """The arrays beside the other fields of an `SSP`. If they are `plain`, probabilities are
        such; else there is a column for each that stands for them, (n_outcomes, k).
        """
        columns = self.probabilities
        return fields | arrays_from_rows(
            *(self.state, self.action, self.target),
            columns[0] if plain else np.stack(columns, axis=1),
            self.cost,
            len(fields["is_goal"]),
            merge=True,
        )


@dataclass(frozen=True)
class CostRule:
    """What outcomes cost whose rewards are given: these times `sign`, or `step_cost`; where the
    reward is one of `cost_of`, what that says.
    """

    sign: int
    step_cost: float | None = None
    cost_of: Mapping[float, float] = field(default_factory=dict)

    @property
    def is_sign(self) -> bool:
        """Whether costs are rewards but for the sign."""
        return self.step_cost is None and not self.cost_of

    @property
    def ignores_rewards(self) -> bool:
        return self.step_cost is not None and not self.cost_of

    def apply(self, rewards: FloatArray) -> FloatArray:
        costs = (
            np.full(len(rewards), self.step_cost)
            if self.step_cost is not None
            else self.sign * rewards + 0.0
        )
        for reward, cost in self.cost_of.items():
            found = rewards == reward
            if not found.any():
                present = np.unique(rewards)
                some = ", ".join(f"{value:g}" for value in present[:8]) + (
                    ", ..." if len(present) > 8 else ""
                )
                raise OptionError(
                    f"cost_of has the reward {reward:g}, which no outcome has; the rewards are"
                    f" {some}"
                )
            costs[found] = cost
        return costs


class Categorical(NamedTuple):
    """A column of cells as pandas has them: the code of each, (n,), and the different ones."""

    codes: Array
    categories: list[Any]

    @classmethod
    def from_cells(cls, cells: Sequence[Any]) -> Categorical:
        known = {cell: number for number, cell in enumerate(dict.fromkeys(cells))}
        return cls(np.fromiter(map(known.__getitem__, cells), np.int32, len(cells)), list(known))

    def map(self, parse: Callable[[list[str]], Array]) -> Array:
        """What each text, without the blanks around it, is parsed to, (n,); equal ones once."""
        return parse([text.strip() for text in self.categories])[self.codes]


def as_they_appear(number: Array, count: int) -> IntArray:
    """Those of the numbers 0 .. count - 1 that stand in a column, as they first appear in it."""
    first = np.full(count, len(number), dtype=np.int64)
    # Of equal ones, the last assignment stays.
    first[number[::-1]] = np.arange(len(number) - 1, -1, -1)
    order = np.argsort(first, kind="stable")
    return order[: np.count_nonzero(first < len(number))]
