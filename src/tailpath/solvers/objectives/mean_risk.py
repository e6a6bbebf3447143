"""Mean against risk, for every budget at once.

For a price k the recursion for `mean + k * risk`, with the risk E[(Z - w)+] or the lateness P(Z >= w), gives the mean M_k(w) and the risk U_k(w)
of the best policy for *every* budget w from one table. For one w the points (U_k, M_k) are corners of a convex curve, least mean against risk,
and every table also bounds all these curves from below: mean >= M_k + k (U_k - risk).

`least_mean` keeps CVaR_alpha <= b at the least mean: some w must have a risk of at most alpha (b - w). For each w the corners to the left and
right of that risk bracket the answer; the prices between them are asked next, for the w that promise most, until nothing can be better.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from tailpath.dp.budgets import EXCESS, MEAN, SLOPE
from tailpath.kernels.rounding import SAME_VALUE
from tailpath.model.ssp import SSP, FloatArray
from tailpath.policies.budget import BudgetPolicy
from tailpath.policies.kinds import Policy
from tailpath.policies.mixed import MixedPolicy
from tailpath.risk.mean import Mean
from tailpath.risk.measure import Limit
from tailpath.solvers.exact.doubt import doubt_of
from tailpath.solvers.exact.layout import layout_of
from tailpath.solvers.exact.table import MAX_BYTES, BudgetTable, always_neutral, budget_policy, fill_table
from tailpath.solvers.expectation import solve_expected
from tailpath.solvers.objectives.answer import RiskSolution

#: The gap, relatively, at which a search over prices ends.
GAP = 1e-11
#: Prices asked at first, as multiples of mean over risk.
FIRST = np.geomspace(1e-2, 1e3, 7)
#: So many values stay near the processor; the fewest and the most prices asked in one sweep.
VALUES_AT_ONCE, AT_ONCE = 2**15, (8, 16)


class MeanRisk:
    """Tables of mean and risk by price, in cost units. Price 0 is the risk-neutral policy, an infinite one the safest."""

    def __init__(self, ssp: SSP, risk: FloatArray, limit: int, max_bytes: int = MAX_BYTES) -> None:
        assert ssp.cost_unit is not None
        self.ssp, self.risk, self.limit, self.max_bytes = ssp, risk, limit, max_bytes
        self.expected = solve_expected(ssp)
        self.layout = layout_of(ssp, self.expected, "late" if risk[SLOPE] == 0 else "")
        self.tables = 0
        self._per_level = self.layout.depth * self.layout.rounding

    def safest(self) -> tuple[FloatArray, FloatArray]:
        """The risk and the mean of the safest policy, with the least mean among those, for every budget from 0 to the limit."""
        self.tables += 1
        values = self._fill(math.inf, self.limit).values
        return values[:, 0], values[:, 1]

    def curves(self, prices: Sequence[float], limit: int | None = None) -> tuple[FloatArray, FloatArray]:
        """By price the risk and the mean of the best policy for every budget from 0 to the limit."""
        limit = self.limit if limit is None else limit
        self.tables += len(prices)
        found = []
        for first in range(0, len(prices), self.at_once):
            few = np.array(prices[first : first + self.at_once])
            if len(few) > 1:
                objective = self.layout.objective(np.stack([MEAN, self.risk]), prices=few, limit=float(limit))
                found.append(fill_table(self.layout, objective, max_bytes=self.max_bytes).values.transpose(2, 1, 0))
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
        return int(np.clip(VALUES_AT_ONCE // (2 * self.layout.n * (self.layout.reach(self.limit) + 1)), *AT_ONCE))

    def error(self) -> float:
        """What each level adds to the relative error, and the doubt about V* beside it."""
        doubt = doubt_of(self.expected, self._per_level)
        return doubt.below + self.limit * doubt.per_level + 1e-15

    def policy(self, price: float, budget: int) -> BudgetPolicy:
        """The best policy for a price and a budget."""
        if price == 0 or budget == 0:
            return always_neutral(self.ssp, self.expected.choices)
        return budget_policy(self.ssp, self._fill(price, budget), budget, self.expected.choices)

    def _fill(self, price: float, limit: int) -> BudgetTable:
        """The table of one price: what is minimised, then mean and risk; of an infinite price risk and then mean."""
        safest = math.isinf(price)
        criteria = np.stack([self.risk, MEAN] if safest else [MEAN + price * self.risk, MEAN, self.risk])
        objective = self.layout.objective(criteria, limit=float(limit), tie=SAME_VALUE if safest else 0.0)
        table = fill_table(self.layout, objective, max_bytes=self.max_bytes)
        self._per_level = max(self._per_level, table.error)
        return table


@dataclass
class _Bracket:
    """For every budget the nearest corners on both sides of the risk allowed: `risk`, `mean` and `price` of the one that keeps it (row 0) and of
    the one that does not (row 1); and the best lower bound on the mean."""

    allowed: FloatArray
    risk: FloatArray
    mean: FloatArray
    price: FloatArray
    lower: FloatArray = field(init=False)

    def __post_init__(self) -> None:
        self.lower = np.full(len(self.allowed), -np.inf)

    def update(self, price: float, risk: FloatArray, mean: FloatArray) -> None:
        """Take in the corners for one more price."""
        keeps = risk <= self.allowed
        nearer = np.where(keeps, risk >= self.risk[0], risk <= self.risk[1])
        side = np.where(keeps, 0, 1)
        for k in (0, 1):
            here = nearer & (side == k)
            self.risk[k, here], self.mean[k, here], self.price[k, here] = risk[here], mean[here], price
        if math.isfinite(price):
            self.lower = np.maximum(self.lower, mean + price * (risk - self.allowed))

    def cut(self, count: int) -> None:
        """Keep the first budgets alone."""
        self.allowed, self.lower = self.allowed[:count], self.lower[:count]
        self.risk, self.mean, self.price = self.risk[:, :count], self.mean[:, :count], self.price[:, :count]

    def upper(self) -> FloatArray:
        """The mean of the mixture of both corners that just keeps the limit; infinite where it cannot be kept."""
        share = self._share()
        with np.errstate(invalid="ignore"):
            value = np.where(share >= 1, self.mean[0], share * self.mean[0] + (1 - share) * self.mean[1])
        return np.where(np.isnan(value) | (share < 0), np.inf, value)

    def prices(self, best: int, count: int, before: set[float]) -> list[float]:
        """What to ask next: the slopes between the corners of the budgets that promise most, and of the best one; none if all were asked before.

        Where that is fewer than may be asked at once, the prices between the corners of the most promising budget are divided up, too.
        """
        upper = self.upper()
        open_ = np.flatnonzero((self.lower < upper[best]) & (self.lower < upper * (1 - GAP)) & np.isfinite(self.mean[0]))
        hopeful = open_[np.argsort(self.lower[open_], kind="stable")]
        found: dict[float, None] = {}
        for at in [*hopeful[:1].tolist(), best, *hopeful[1 : count // 2].tolist()]:
            with np.errstate(invalid="ignore", divide="ignore"):
                asked = float((self.mean[0, at] - self.mean[1, at]) / (self.risk[1, at] - self.risk[0, at]))
            if math.isfinite(asked) and asked not in before:
                found[asked] = None
        if found and len(found) < count:
            high, low = self.price[:, hopeful[0] if hopeful.size else best].tolist()
            parts = np.linspace(low, min(high, 10 * next(iter(found))), count - len(found) + 2)[1:-1]
            found |= dict.fromkeys(parts.tolist())
        return list(found)[:count]

    def _share(self) -> FloatArray:
        """The weight of the corner that keeps the limit; 1 where no other is needed, -1 where there is none."""
        wide = self.risk[1] - self.risk[0]
        with np.errstate(invalid="ignore", divide="ignore"):
            share = np.where((wide > 0) & np.isfinite(wide), (self.risk[1] - self.allowed) / wide, 1.0)
        return np.where(np.isinf(self.mean[0]), -1.0, np.clip(share, 0.0, 1.0))


def least_mean(ssp: SSP, limit: Limit, mix: bool = True) -> RiskSolution:
    """The least mean under a limit on CVaR."""
    assert ssp.cost_unit is not None and limit.measure.tail is not None
    unit, alpha = float(ssp.cost_unit), limit.measure.tail[1]
    most = max(math.floor(limit.bound / unit * (1 + 1e-12)), 0)
    search = MeanRisk(ssp, EXCESS, most)
    w = np.arange(most + 1)
    allowed = alpha * (limit.bound / unit - w)
    safest = search.safest()
    # A limit that only rounding denies is the least value itself.
    allowed = np.maximum(allowed, np.where(safest[0] <= allowed + 1e-12 * np.maximum(safest[0], alpha * most), safest[0], -np.inf))
    allowed = np.where(np.isneginf(allowed), alpha * (limit.bound / unit - w), allowed)
    nothing = np.full((2, most + 1), np.inf)
    bracket = _Bracket(
        np.asarray(allowed, dtype=np.float64), np.stack([np.full(most + 1, -np.inf), np.full(most + 1, np.inf)]), nothing, nothing.copy()
    )
    bracket.update(math.inf, *safest)
    bracket.lower[safest[0] > allowed] = np.inf
    single = np.where(safest[0] <= allowed, safest[1], np.inf)
    lone_price = np.full(most + 1, np.inf)
    typical = float(safest[1][0]) / max(float(np.max(safest[0])), 1e-300)
    prices, asked = [0.0, *(typical * FIRST)][: search.at_once], {math.inf}
    while True:
        infeasible = np.isinf(bracket.lower) & (bracket.lower > 0)
        for price, risk, mean in zip(prices, *search.curves(prices, len(allowed) - 1)):
            bracket.update(price, risk, mean)
            better = (risk <= allowed) & (mean < single)
            single, lone_price = np.where(better, mean, single), np.where(better, price, lone_price)
        bracket.lower[infeasible] = np.inf
        upper = bracket.upper()
        best, hope = int(np.argmin(upper)), int(np.argmin(bracket.lower))
        if upper[best] - bracket.lower[hope] <= GAP * upper[best]:
            break
        asked.update(prices)
        prices = bracket.prices(best, search.at_once, asked)
        if not prices:
            break
        # Budgets that promise less than what is there need no more tables.
        kept = int(np.flatnonzero(bracket.lower <= upper[best])[-1]) + 1
        bracket.cut(kept)
        allowed, single, lone_price = allowed[:kept], single[:kept], lone_price[:kept]
    low = float(bracket.lower.min()) * (1 - search.error()) * unit
    if not mix:
        lone = int(np.argmin(single))
        value = float(single[lone]) * unit
        return RiskSolution(ssp, Mean(), (limit,), value, (low, value), search.policy(float(lone_price[lone]), lone), (0.0,))
    value = float(upper[best]) * unit
    return RiskSolution(ssp, Mean(), (limit,), value, (low, value), _mixed(search, bracket, best), (_slope(bracket, best) * alpha,))


def _mixed(search: MeanRisk, bracket: _Bracket, w: int) -> Policy:
    share = float(bracket._share()[w])
    if share >= 1 - 1e-15:
        return search.policy(float(bracket.price[0, w]), w)
    members = tuple(search.policy(float(bracket.price[k, w]), w) for k in (0, 1))
    return members[1] if share <= 1e-15 else MixedPolicy(members, (share, 1 - share))


def _slope(bracket: _Bracket, w: int) -> float:
    """What one unit more of risk saves of the mean."""
    wide = bracket.risk[1, w] - bracket.risk[0, w]
    if not math.isfinite(wide) or wide <= 0:
        return 0.0
    return float((bracket.mean[0, w] - bracket.mean[1, w]) / wide)
