"""From the numbers a file calls rewards to costs.

An owner who maximises (Gymnasium, tables with rewards) gives `cost = -reward`; one who counts costs (PRISM, Storm) gives `cost = reward`;
`negate_reward` turns the sign. `step_cost` replaces every reward by one cost; `cost_of` gives the cost of single rewards and wins over both.
Costs are never negative. The one exception that is repaired: where every arrival at the goal carries the same bonus b, each way to the goal
collects it exactly once, so the bonus is taken out and the mean, VaR and CVaR of the original are those of the model minus b.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tailpath.errors import FormatError, OptionError
from tailpath.formats.reading import Reading
from tailpath.model.cost_units import as_fraction

FloatArray = NDArray[np.float64]

HELP = "use --step-cost COST, --cost-of REWARD=COST or --negate-reward (step_cost=, cost_of=, negate_reward=)"


@dataclass(frozen=True)
class CostRule:
    """What the options say about costs. `sign` is -1 where the owner of the format maximises."""

    sign: int
    step_cost: float | None
    cost_of: Mapping[float, float]

    @classmethod
    def from_options(cls, sign: int, reading: Reading) -> CostRule:
        """Check the options; their refusals name the option."""
        step = None if reading.step_cost is None else _cost(reading.step_cost, "step_cost")
        pairs = {_finite(reward, "a reward in cost_of"): _cost(cost, "cost_of") for reward, cost in reading.cost_of.items()}
        return cls(-sign if reading.negate_reward else sign, step, pairs)

    @property
    def ignores_rewards(self) -> bool:
        return self.step_cost is not None and not self.cost_of

    def apply(self, rewards: FloatArray) -> FloatArray:
        """The costs; they may still be negative."""
        costs = np.full(len(rewards), self.step_cost) if self.step_cost is not None else self.sign * rewards + 0.0
        for reward, cost in self.cost_of.items():
            found = rewards == reward
            if not found.any():
                present = np.unique(rewards)
                some = ", ".join(f"{value:g}" for value in present[:8]) + (", ..." if len(present) > 8 else "")
                raise OptionError(f"cost_of has the reward {reward:g}, which no outcome has; the rewards are {some}")
            costs[found] = cost
        return costs


def refuse_negative(costs: FloatArray, where: str, name_outcome: Callable[[int], str]) -> None:
    """Refuse the first cost that is no number, such as a sum beyond the floats, and the first
    negative one, with the options that help."""
    for outcome in np.flatnonzero(~np.isfinite(costs))[:1].tolist():
        raise FormatError(f"{where}: {name_outcome(outcome)} costs {costs[outcome]:g}")
    for outcome in np.flatnonzero(costs < 0)[:1].tolist():
        raise FormatError(f"{where}: {name_outcome(outcome)} has the negative cost {costs[outcome]:g}; {HELP}")


def refuse_improbable(probability: FloatArray, where: str, name_outcome: Callable[[int], str]) -> None:
    """Refuse the first negative probability, before outcomes are merged: a merged one could hide it."""
    for outcome in np.flatnonzero(~(probability >= 0))[:1].tolist():
        raise FormatError(f"{where}: {name_outcome(outcome)} has probability {probability[outcome]:g}")


def without_bonus(costs: FloatArray, arrives: NDArray[np.bool_]) -> tuple[FloatArray, tuple[str, ...]]:
    """Take out a bonus that every arrival carries, and say so; leave anything else as it is."""
    arrival = costs[arrives]
    if not len(arrival) or arrival[0] >= 0 or (arrival != arrival[0]).any():
        return costs, ()
    bonus = -float(arrival[0])
    note = f"every arrival carries a bonus of {bonus:g}, which is left out: take {bonus:g} off the mean, VaR and CVaR"
    return np.where(arrives, 0.0, costs), (note,)


def exact_sum(*parts: FloatArray | None) -> FloatArray:
    """Add decimals as decimals: 0.1 + 0.2 is 0.3, or the costs would lose their unit."""
    present = [part for part in parts if part is not None and part.any()]
    if not present:
        return next(np.zeros(len(part)) for part in parts if part is not None)
    if len(present) == 1:
        return present[0]
    total = present[0]
    for part in present[1:]:
        left, at_left = np.unique(total, return_inverse=True)
        right, at_right = np.unique(part, return_inverse=True)
        pairs, position = np.unique(at_left * len(right) + at_right, return_inverse=True)
        sums = [_sum(left[pair // len(right)], right[pair % len(right)]) for pair in pairs.tolist()]
        total = np.array(sums)[position]
    return total


def _sum(left: float, right: float) -> float:
    try:
        return float(as_fraction(left) + as_fraction(right))
    except (ValueError, OverflowError):  # infinities and sums beyond the floats, which the model will refuse
        return math.inf


def _finite(value: Any, what: str) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise OptionError(f"{what} must be a number, not {value!r}")
    return number


def _cost(value: Any, what: str) -> float:
    number = _finite(value, what)
    if number < 0:
        raise OptionError(f"{what} must be 0 or more, not {value!r}: costs are minimised and never negative")
    return number
