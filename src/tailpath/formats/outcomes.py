"""Outcomes by column, as readers of tables and of labelled models collect them, made into a model;
and their costs, from the numbers that a file calls rewards. `docs/formats.md` says which sign is
whose, and which option wins.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from tailpath.errors import FormatError, OptionError
from tailpath.formats.registry import Reading
from tailpath.graph import Array, BoolArray, FloatArray, first_of
from tailpath.model.builders import arrays_from_rows
from tailpath.model.cost_units import as_fraction
from tailpath.model.interval import IntervalSSP
from tailpath.model.ssp import SSP
from tailpath.options import check_amount


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
        return OutcomeColumns(
            self.state[mask],
            self.action[mask],
            self.target[mask],
            self.cost[mask],
            tuple(column[mask] for column in self.probabilities),
        )

    def numbered(self, number: Array) -> OutcomeColumns:
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


# ---------------------------------------------------------------------- what they cost


@dataclass(frozen=True)
class CostRule:
    """What the options say about costs. `sign` is -1 where the owner of the format maximises."""

    sign: int
    step_cost: float | None
    cost_of: Mapping[float, float]

    @classmethod
    def from_options(cls, sign: int, reading: Reading) -> CostRule:
        finite = partial(check_amount, finite=True, signed=True)
        step = None if reading.step_cost is None else finite(reading.step_cost, "step_cost")
        pairs = {
            finite(reward, "a reward in cost_of"): finite(cost, "cost_of")
            for reward, cost in reading.cost_of.items()
        }
        own = -1 if reading.rewards else sign
        return cls(-own if reading.negate_reward else own, step, pairs)

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


def refuse_improbable(
    probability: FloatArray, location: str, name_outcome: Callable[[int], str]
) -> None:
    """Refuse the first negative probability, before outcomes are merged: a merged one could hide
    it.
    """
    for outcome in first_of(~(probability >= 0)):
        raise FormatError(
            f"{location}: {name_outcome(outcome)} has probability {probability[outcome]:g}"
        )


def loop_cost(costs: FloatArray) -> float:
    """What a loop at a dead end costs: who is there never arrives, so it does not matter, but
    nothing may be free for ever. The smallest cost of the model keeps its unit.
    """
    paid = np.abs(costs[costs != 0])
    return float(paid.min()) if paid.size else 1.0


def exact_sum(total: FloatArray, *parts: FloatArray | None) -> FloatArray:
    """Add decimals as decimals: 0.1 + 0.2 is 0.3, or the costs would lose their unit."""
    for part in parts:
        if part is None or not part.any():
            continue
        if not total.any():
            total = part
            continue
        left, at_left = np.unique(total, return_inverse=True)
        right, at_right = np.unique(part, return_inverse=True)
        pairs, position = np.unique(at_left * len(right) + at_right, return_inverse=True)
        sums = [_sum(left[pair // len(right)], right[pair % len(right)]) for pair in pairs.tolist()]
        total = np.array(sums)[position]
    return total


def _sum(left: float, right: float) -> float:
    try:
        return float(as_fraction(left) + as_fraction(right))
    except (ValueError, OverflowError):
        # Infinities and sums beyond the floats, which the model will refuse.
        return math.inf
