"""Mean against risk, for every budget at once.

For a price k the recursion for `mean + k * risk`, with the risk E[(Z - w)+] or the lateness P(Z >=
w), gives the mean M_k(w) and the risk U_k(w) of the best policy for *every* budget w from one
table. For one w the points (U_k, M_k) are corners of a convex curve, least mean against risk, and
every table also bounds all these curves from below: mean >= M_k + k (U_k - risk). What is made of
them is `trade.py`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tailpath.dp.budget_model import MEAN, SLOPE
from tailpath.kernels.rounding import SAME_VALUE
from tailpath.model.ssp import SSP, FloatArray
from tailpath.policies.budget import BudgetPolicy
from tailpath.solvers.exact.error_bound import error_bound_of
from tailpath.solvers.exact.layout import layout_of
from tailpath.solvers.exact.table import (
    BudgetTable,
    always_risk_neutral,
    budget_policy,
    fill_table,
)
from tailpath.solvers.expectation import solve_expected

#: So many values stay near the processor; the fewest and the most prices asked in one sweep.
VALUES_AT_ONCE, AT_ONCE = 2**15, (8, 16)
#: V* that are off by more than this, relatively, are known badly.
BADLY = 1e-9
#: Risks below this, in cost units, may have been taken for 0.
VANISHED = 1e-250


class MeanRisk:
    """Tables of mean and risk by price, in cost units. Price 0 is the risk-neutral policy, an
    infinite one the safest.
    """

    def __init__(self, ssp: SSP, risk: FloatArray, limit: int) -> None:
        assert ssp.cost_unit is not None
        self.ssp, self.risk = ssp, risk
        self.limit = limit
        self.expected = solve_expected(ssp)
        self.layout = layout_of(ssp, "late" if risk[SLOPE] == 0 else "")
        self.tables = 0
        self._per_level, self._hidden = self.layout.depth * self.layout.rounding, 0.0

    def safest(self) -> tuple[FloatArray, FloatArray]:
        """The risk and the mean of the safest policy, with the least mean among those, for every
        budget from 0 to the limit.

        Choices whose risks differ by rounding count as equally safe; how much that may add up to is
        part of the error.
        """
        self.tables += 2
        values = self._fill(math.inf, self.limit).values
        objective = self.layout.objective(self.risk, limit=float(self.limit))
        least = fill_table(self.layout, objective).values[:, 0]
        with np.errstate(invalid="ignore", divide="ignore"):
            self._hidden = float(np.max(values[:, 0] / least - 1, where=least > 0, initial=0.0))
        return values[:, 0], values[:, 1]

    def risk_neutral(self) -> tuple[FloatArray, FloatArray]:
        """The risk and the mean of the policy with the least mean, and the least risk among those,
        for every budget from 0 to the limit. Ties count as for the safest.
        """
        self.tables += 1
        mean, risk = self._fill(0.0, self.limit).values.T
        if mean[0] > 0:  # V*, since nothing is decided by a budget of 0
            self._hidden = max(self._hidden, float(np.max(mean / mean[0] - 1)))
        return risk, mean

    def curves(
        self, prices: Sequence[float], limit: int | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """By price the risk and the mean of the best policy for every budget from 0 to
        the limit.
        """
        limit = self.limit if limit is None else limit
        self.tables += len(prices)
        found = []
        for first in range(0, len(prices), self.at_once):
            few = np.array(prices[first : first + self.at_once])
            if self.at_once > 1:
                criteria = np.stack([MEAN, self.risk])
                objective = self.layout.objective(criteria, prices=few, limit=float(limit))
                found.append(fill_table(self.layout, objective).values.transpose(2, 1, 0))
            else:
                found.append(self._fill(float(few[0]), limit).values.T[None, 1:])
        both = np.concatenate(found)
        return both[:, 1], both[:, 0]

    @property
    def updates(self) -> int:
        """How many outcomes were looked at so far, at most."""
        return self.tables * self.limit * len(self.layout.target)

    @property
    def at_once(self) -> int:
        """How many prices are asked in one sweep: joint blocks are solved for one at a time."""
        if self.layout.nodes.block_joint.any():
            return 1
        values = 2 * self.layout.n * (self.layout.reach(self.limit) + 1)
        return int(np.clip(VALUES_AT_ONCE // values, *AT_ONCE))

    def error(self) -> tuple[float, float]:
        """By how much risks and means may be off: relatively, and in cost units on top of it.

        What each level adds, what ties hide, the error of V*, and what is so small that it was
        taken for 0. Where some V* are known so badly that a share of them says nothing, their error
        counts as it is.
        """
        error_bound = error_bound_of(self.expected, self._per_level)
        relative, absolute = max(error_bound.below, error_bound.above), error_bound.at_zero
        if relative > BADLY:
            relative, absolute = 0.0, error_bound.at_all
        return (
            relative + self.limit * error_bound.per_level + self._hidden + 1e-15,
            absolute + VANISHED,
        )

    def policy(self, price: float, budget: int) -> BudgetPolicy:
        """The best policy for a price and a budget."""
        if budget == 0:
            return always_risk_neutral(self.ssp, self.expected.choices)
        table, deadline = self._fill(price, budget), bool(self.risk[SLOPE] == 0)
        return budget_policy(self.ssp, table, budget, self.expected.choices, deadline)

    def _fill(self, price: float, limit: int) -> BudgetTable:
        """The table of one price: what is minimised, then mean and risk; of an infinite price risk
        and then mean, of none mean and then risk.
        """
        if price == 0:
            criteria = [MEAN, self.risk]
        elif math.isinf(price):
            criteria = [self.risk, MEAN]
        else:
            criteria = [MEAN + price * self.risk, MEAN, self.risk]
        tie = SAME_VALUE if len(criteria) == 2 else 0.0
        objective = self.layout.objective(np.stack(criteria), limit=float(limit), tie=tie)
        table = fill_table(self.layout, objective)
        self._per_level = max(self._per_level, table.error)
        return table
