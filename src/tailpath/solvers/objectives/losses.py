"""The least expected loss, and the losses that come with it.

For a loss h that is linear from W units on, with the budget b = W - (cost so far),

    J(goal, b) = h(W - b),     J(s, b) = min_a sum P J(s', b - c),     J(s, b) = h(W) + slope * (V*(s) - b) for b <= 0,

and the optimum over all policies is J(start, W). `Losses` holds several losses over one model: `price(weights)` minimises their weighted sum and
says what the policy found makes of each. Each is shifted to be non-negative, so that rounding stays a relative error.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from tailpath.dp.budgets import BASE, SLOPE, TO_GO, Changes
from tailpath.errors import OptionError
from tailpath.model.ssp import SSP, FloatArray
from tailpath.policies.budget import BudgetPolicy
from tailpath.risk.curves import Curve
from tailpath.solvers.exact.doubt import doubt_of, proved
from tailpath.solvers.exact.layout import Layout, layout_of
from tailpath.solvers.exact.table import MAX_BYTES, BudgetTable, always_neutral, budget_policy, fill_table
from tailpath.solvers.expectation import solve_expected
from tailpath.solvers.objectives.dead_ends import fined


class Priced(NamedTuple):
    """A policy that minimises a weighted sum of losses: the sum with proved bounds, and each loss. `weights` find the policy again."""

    value: float
    low: float
    high: float
    losses: FloatArray
    weights: FloatArray


class Losses:
    """Several losses over one model."""

    def __init__(self, ssp: SSP, curves: Sequence[Curve], max_bytes: int = MAX_BYTES) -> None:
        assert ssp.cost_unit is not None
        for curve in curves:
            if curve.slope < 0:
                raise OptionError("a sum of measures falls without end for large costs; nothing is best then")
        self.ssp, self.max_bytes, self.unit = ssp, max_bytes, ssp.cost_unit
        self.horizon = max(curve.units(self.unit) for curve in curves)
        self.flat = all(curve.slope == 0 for curve in curves)
        # Rows by the budget left: what arriving with it is worth. Row 0 is where the budget is spent.
        left = np.arange(self.horizon + 1)
        costs = np.array([float((self.horizon - b) * self.unit) for b in left.tolist()])
        self.worth = np.stack([curve.values(costs) for curve in curves], axis=1)
        self.slope = np.array([curve.slope * float(self.unit) for curve in curves])

    @cached_property
    def model(self) -> SSP:
        """The model the losses are minimised on: with fines at dead ends if no loss goes on rising."""
        return fined(self.ssp, self.horizon + 1) if self.flat else self.ssp

    @cached_property
    def _layout(self) -> Layout:
        return layout_of(self.model, solve_expected(self.model))

    def price(self, weights: FloatArray) -> Priced:
        """Minimise the sum of the losses with these weights."""
        table, shift = self._fill(weights)
        values = table.values[-1]
        doubt = doubt_of(solve_expected(self.model), table.error)
        priced = np.full(len(table.values), np.inf)
        priced[-1] = values[0]
        low, high = proved(priced, 0.0, doubt, float(weights @ self.slope))
        value, low, high = (float(each + shift[0]) for each in (values[0], low, high))
        return Priced(value, low, high, values[1:] + shift[1:], weights)

    def policy(self, weights: FloatArray) -> BudgetPolicy:
        """The policy that `price` found for these weights."""
        if self.ssp.is_goal[self.ssp.start_index] or self.horizon == 0:
            return always_neutral(self.ssp, solve_expected(self.model).choices)
        table, _ = self._fill(weights)
        policy = budget_policy(self.model, table, self.horizon, solve_expected(self.model).choices)
        return replace(policy, ssp=self.ssp, level=self.ssp.outcome_level)

    def _fill(self, weights: FloatArray) -> tuple[BudgetTable, FloatArray]:
        """The table for a sum, criterion 0, with the losses themselves behind it; and what every criterion was shifted by."""
        worth = np.column_stack([self.worth @ weights, self.worth])
        slope = np.append(self.slope @ weights, self.slope)
        shift = worth.min(axis=0)
        criteria = np.zeros((len(slope), 4))
        criteria[:, BASE], criteria[:, SLOPE], criteria[:, TO_GO] = worth[0] - shift, slope, slope
        if self.ssp.is_goal[self.ssp.start_index]:
            arrived = worth[-1] - shift
            nothing = np.zeros(0, dtype=np.int64)
            one = np.zeros(1, dtype=np.int64)
            return BudgetTable(None, one, one, arrived[None, :], Changes(nothing, nothing, nothing), 0.0), shift  # type: ignore[arg-type]
        objective = self._layout.objective(criteria, limit=float(self.horizon))
        return fill_table(self._layout, objective, worth - shift, max_bytes=self.max_bytes), shift
