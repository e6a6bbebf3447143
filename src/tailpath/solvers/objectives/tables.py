"""Tables of mean and risk by price, for every budget at once; and what they prove.

For a price k the recursion for `mean + k * risk`, with the risk E[(Z - w)+] or the lateness P(Z >=
w), gives for *every* budget w the best policy: its mean and its risk. No policy has less than `mean
+ k * risk` there, so that with a risk of x none has a mean below `mean + k * (risk - x)`. To prove
that, the tables of the same prices are filled once more on probabilities that are too small; upper
bounds for a policy come from the sweep with its choices fixed, on probabilities that are too large.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple

import numpy as np

from tailpath.analysis.tables import BudgetTable, ModelLayout, fill_table
from tailpath.certify.losses import least_from_below
from tailpath.dp.budget_model import MEAN, NO_LOSS, SLOPE
from tailpath.graph import FloatArray
from tailpath.kernels.rounding import SAME_VALUE
from tailpath.model.ssp import SSP
from tailpath.policies.budget import BudgetPolicy
from tailpath.policies.kinds import by_coin
from tailpath.policies.policy import Policy
from tailpath.solvers.exact.layout import always_risk_neutral, budget_policy, layout_of
from tailpath.solvers.expectation import solve_expected

#: So many values stay near the processor; the fewest and the most prices asked in one sweep.
VALUES_AT_ONCE, AT_ONCE = 2**15, (8, 16)

#: A weight, and the price and the budget in cost units that find the policy again.
Member = tuple[float, float, int]


class Axis(NamedTuple):
    """At a budget a risk is `factor * value + shift * budget` of a table, in a unit."""

    criterion: FloatArray
    budgets: range
    factor: Fraction
    shift: int
    unit: Fraction

    def risk(self, value: FloatArray) -> FloatArray:
        """By budget, of values by budget from 0 on."""
        budgets = np.arange(self.budgets.start, min(self.budgets.stop, len(value)))
        return float(self.factor) * value[budgets] + self.shift * budgets


class MeanRisk:
    """Tables of mean and risk by price, in cost units. Price 0 is the risk-neutral policy, an
    infinite one the safest.
    """

    def __init__(self, ssp: SSP, axis: Axis) -> None:
        self.ssp, self.axis = ssp, axis
        self.limit = axis.budgets[-1]
        self.deadline = bool(axis.criterion[SLOPE] == 0)
        self.tables = 0

    @cached_property
    def layout(self) -> ModelLayout:
        return layout_of(self.ssp, "late" if self.deadline else "")

    def curves(self, prices: Sequence[float], limit: int) -> list[tuple[FloatArray, FloatArray]]:
        """By price the risk and the mean of the best policy for every budget up to a limit."""
        self.tables += len(prices)
        found = []
        for few in self._groups(prices):
            if len(few) > 1:
                objective = self.layout.objective(self._both, prices=few, limit=float(limit))
                values = fill_table(self.layout, objective).values.transpose(2, 1, 0)
            else:
                alone = self._fill(float(few[0]), limit).values[:, -2:].T
                values = (alone[::-1] if math.isinf(few[0]) else alone)[None]
            found += [(risk, mean) for mean, risk in values]
        return [(self.axis.risk(risk), mean[self.axis.budgets.start :]) for risk, mean in found]

    @property
    def _both(self) -> FloatArray:
        return np.stack([MEAN, self.axis.criterion])

    def _groups(self, prices: Sequence[float]) -> list[FloatArray]:
        """Prices that are asked in one sweep: joint blocks are solved for one at a time, and so is
        whatever is asked with an infinite price.
        """
        if math.inf in prices:
            return [np.array([price]) for price in prices]
        return np.split(np.array(prices), range(self.at_once, len(prices), self.at_once))

    @property
    def at_once(self) -> int:
        if self.layout.nodes.block_joint.any():
            return 1
        values = 2 * self.layout.n * (self.layout.reach(self.limit) + 1)
        return int(np.clip(VALUES_AT_ONCE // values, *AT_ONCE))

    @property
    def updates(self) -> int:
        """How many outcomes were looked at so far, at most."""
        return self.tables * self.limit * len(self.layout.target)

    # ------------------------------------------------------------------ policies

    def mixed(self, parts: Sequence[Member]) -> Policy:
        policies = [self.policy(price, budget) for _, price, budget in parts]
        return by_coin(policies, [weight for weight, _, _ in parts])

    def policy(self, price: float, budget: int) -> BudgetPolicy:
        """The best policy for a price and a budget."""
        if budget == 0:
            return always_risk_neutral(self.ssp, solve_expected(self.ssp).choices)
        changes = self._fill(price, budget).changes
        return budget_policy(self.layout, changes, budget, deadline=self.deadline)

    def _fill(self, price: float, limit: int) -> BudgetTable:
        """The table of one price: what is minimised, then mean and risk; of an infinite price risk
        and then mean, of none mean and then risk.
        """
        mean, risk = self._both
        criteria = self._both if price == 0 else np.stack([risk, mean])
        if 0 < price < math.inf:
            criteria = np.stack([mean + price * risk, mean, risk])
        tie = SAME_VALUE if len(criteria) == 2 else 0.0
        objective = self.layout.objective(criteria, limit=float(limit), tie=tie)
        return fill_table(self.layout, objective)

    # ------------------------------------------------------------------ proofs

    def highs(self, price: float, budget: int) -> tuple[Fraction, Fraction] | None:
        """What the policy of a price and a budget has of risk and mean at most, in units; None
        where nothing is proved.
        """
        high = self._fill(price, budget).sides().high[budget, -2:].tolist()
        mean, risk = high[::-1] if math.isinf(price) else high
        if math.isinf(mean) or math.isinf(risk):
            return None
        return self.axis.factor * Fraction(risk) + self.axis.shift * budget, Fraction(mean)

    def lows(self, prices: Sequence[float]) -> FloatArray:
        """From below, by price and budget, the least `mean + price * risk`; of an infinite price
        the least risk.
        """
        found, (mean, risk) = [], self._both
        for few in self._groups(prices):
            price, several = float(few[0]), len(few) > 1
            alone = risk if math.isinf(price) else mean + price * risk
            objective = self.layout.objective(
                self._both if several else alone,
                prices=few if several else None,
                limit=float(self.limit),
            )
            low = least_from_below(self.layout, objective, NO_LOSS)
            found.append(low.reshape(len(low), -1)[self.axis.budgets.start :].T)
        return np.concatenate(found)
