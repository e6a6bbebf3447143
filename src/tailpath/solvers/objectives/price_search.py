"""The search for the least mean at every risk, or at one, by prices that serve all budgets at once.

For a price k the recursion for `mean + k * risk`, with the risk E[(Z - w)+] or the lateness P(Z >=
w), gives for *every* budget w a point of its curve (`trade.py`), and a line of slope -k below it. A
chord is *open* while its curve may lie below the envelope of all chords found so far, at a risk
that is asked for. Then the price that is its slope is asked for: it finds a point below the chord,
which splits it, or proves that there is none. One limit is the same search with one risk asked for.

Points that miss a line by less than `SAME` of mean + price * risk count as on it. That is less than
`SAME` of the mean at a risk that is larger by `SAME`, so it is part of the rounding of the answer.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from time import monotonic

import numpy as np

from tailpath.certify.budgets import table_share
from tailpath.dp.budget_model import MEAN, SLOPE
from tailpath.graph import FloatArray, IntArray
from tailpath.kernels.rounding import SAME_VALUE
from tailpath.model.ssp import SSP
from tailpath.options import Progress
from tailpath.policies.budget import BudgetPolicy
from tailpath.policies.kinds import by_coin
from tailpath.policies.policy import Policy
from tailpath.solvers.exact.layout import layout_of
from tailpath.solvers.exact.table import (
    MAX_BYTES,
    BudgetTable,
    always_risk_neutral,
    budget_policy,
    fill_table,
    too_many_levels,
)
from tailpath.solvers.expectation import solve_expected
from tailpath.solvers.objectives.trade import (
    CURVE,
    FLAT,
    FOUND0,
    FOUND1,
    M0,
    M1,
    SAME,
    STEEP,
    X0,
    X1,
    Axis,
    Chords,
    Member,
    Rounding,
    Trade,
    envelope_of,
    slopes,
)

#: So many values stay near the processor; the fewest and the most prices asked in one sweep.
VALUES_AT_ONCE, AT_ONCE = 2**15, (8, 16)
#: Risks below this, in cost units, may have been taken for 0.
VANISHED = 1e-250
#: Prices asked for at first, as multiples of mean over risk.
FIRST = np.geomspace(1e-3, 1e4, 15)
#: Later the slopes of chords whose gap is this share of the widest, in this many tables at once.
WIDE, MAX_TABLES = 0.05, 8
#: All corners are looked for within so many updates of outcomes; after that the search ends as soon
#: as it has caught the frontier within this share of its range.
ALL_CORNERS_WITHIN, CAUGHT = 5 * 10**7, 1e-3
#: Chords are held against so many pieces of the envelope at a time.
PAIRS = 2**20
#: What a budget takes, in bytes: its curve, and its points for one price.
CURVE_BYTES, POINT_BYTES = 600, 48


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
        self._residual, self._hidden = 0.0, 0.0

    def safest(self) -> tuple[FloatArray, FloatArray]:
        """The risk and the mean of the safest policy, of several the one of least mean, for every
        budget up to the limit. Risks that differ by rounding count as the same, which is part of
        the error.
        """
        self.tables += 2
        values = self._fill(math.inf, self.limit).values
        objective = self.layout.objective(self.risk, limit=float(self.limit))
        least = fill_table(self.layout, objective).values[:, 0]
        with np.errstate(invalid="ignore", divide="ignore"):
            self._hidden = float(np.max(values[:, 0] / least - 1, where=least > 0, initial=0.0))
        return values[:, 0], values[:, 1]

    def risk_neutral(self) -> tuple[FloatArray, FloatArray]:
        """The same of the policy with the least mean, of several the one of least risk."""
        self.tables += 1
        mean, risk = self._fill(0.0, self.limit).values.T
        if mean[0] > 0:  # V*, since nothing is decided by a budget of 0
            self._hidden = max(self._hidden, float(np.max(mean / mean[0] - 1)))
        return risk, mean

    def curves(self, prices: Sequence[float], limit: int) -> tuple[FloatArray, FloatArray]:
        """By price the risk and the mean of the best policy for every budget from 0 to
        the limit.
        """
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
        """By how much risks and means may be off: relatively, and in cost units on top of it."""
        known = table_share(
            self.layout, self.layout.ends(), self.limit, self._residual, self.risk[SLOPE]
        )
        return known.share + self._hidden, known.slack + VANISHED

    def policy(self, price: float, budget: int) -> BudgetPolicy:
        """The best policy for a price and a budget."""
        if budget == 0:
            return always_risk_neutral(self.ssp, self.expected.choices)
        table, deadline = self._fill(price, budget), bool(self.risk[SLOPE] == 0)
        return budget_policy(
            self.ssp, self.layout, table.changes, budget, self.expected.choices, deadline
        )

    def mixed(self, parts: Sequence[Member]) -> Policy:
        policies = [self.policy(price, budget) for _, price, budget in parts]
        return by_coin(policies, [weight for weight, _, _ in parts])

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
        self._residual = max(self._residual, table.residual)
        return table


def least_means(
    tables: MeanRisk,
    axis: Axis,
    at: float | None = None,
    tolerance: float | None = None,
    progress: Progress | None = None,
    until: float = math.inf,
) -> Trade:
    """The least mean at every risk up to that of the risk-neutral policy, or at one.

    The search ends when it has caught the least mean within a share `tolerance` of the range of
    means, at a risk larger by that share of the range of risks: unless told 0, or, after
    `ALL_CORNERS_WITHIN` updates, `CAUGHT`. At the time `until` it ends with what it has.
    """
    search = _Search(tables, axis, at)
    search.ask(search.typical * (FIRST if at is None else FIRST[::2]))
    gap = tolerance or 0.0
    while True:
        if at is None and tolerance is None and tables.updates >= ALL_CORNERS_WITHIN:
            gap = max(gap, CAUGHT)
        below = search.close(gap)
        while len(below) and monotonic() >= until:
            gap = max(2 * gap, CAUGHT)
            below = search.close(gap)
        if progress is not None:
            progress(tables.tables, float(len(search.envelope.start)))
        if not len(below):
            return search.found(gap)
        search.ask(search.wanted(below, all_corners=gap == 0))


class _Search:
    """All chords met, those that are open, and the envelope."""

    def __init__(self, tables: MeanRisk, axis: Axis, at: float | None) -> None:
        self.tables, self.axis = tables, axis
        self.asked = 0
        self.budgets = np.arange(axis.budgets.start, axis.budgets.stop)
        self.most = (MAX_BYTES - CURVE_BYTES * axis.budgets[-1]) // (
            POINT_BYTES * axis.budgets.stop
        )
        if self.most < tables.at_once:
            raise too_many_levels(axis.budgets[-1])
        if at is not None:  # one risk needs the next prices only
            self.most = tables.at_once
        safest = self._points(*tables.safest())
        risk_neutral = self._points(*tables.risk_neutral())
        low, high = float(safest[0].min()), float(risk_neutral[0].min())
        self.least_mean = float(risk_neutral[1].min())
        share, slack = tables.error()
        self.rounding = Rounding(SAME + share + slack / self.least_mean, slack * axis.factor)
        self.typical = self.least_mean / max(float(safest[0].max()), 1e-300)
        if at is not None:
            low, high = max(self.rounding.below(at), low), min(self.rounding.above(at), high)
        curve = np.arange(len(self.budgets), dtype=np.float64)
        chords = np.stack(
            np.broadcast_arrays(*safest, np.inf, np.inf, *risk_neutral, 0.0, 0.0, curve)
        )
        self.open = chords[:, (chords[X0] < chords[X1]) & (chords[X0] <= high)]
        self.chords = np.column_stack([self.open, self._ray(*risk_neutral)])
        self.envelope = envelope_of(
            self.chords, np.arange(self.chords.shape[1]), low, max(low, high)
        )
        # What a tolerance is a share of.
        self.risks = self.envelope.end - low
        self.means = float(self.envelope.at(self.chords, np.array([low]))[0]) - self.least_mean

    def _ray(self, risk: FloatArray, mean: FloatArray) -> Chords:
        """Behind the risk-neutral policy the mean stays as it is."""
        nearest = int(np.argmin(risk))
        x, m = float(risk[nearest]), float(mean[nearest])
        return np.array([x, m, 0.0, 0.0, 2 * x + 1, m, 0.0, 0.0, nearest])

    def _points(self, risk: FloatArray, mean: FloatArray) -> tuple[FloatArray, FloatArray]:
        """By curve the risk and the mean of what a table says by budget."""
        budgets = self.budgets[: len(risk) - self.axis.budgets.start]
        return self.axis.factor * risk[budgets] + self.axis.shift * budgets, mean[budgets]

    def ask(self, prices: FloatArray) -> None:
        """Make tables for some prices, and split the open chords by them."""
        self.asked = len(prices)
        for first in range(0, len(prices) if self.open.size else 0, self.most):
            few = prices[first : first + self.most]
            largest = int(self.budgets[int(self.open[CURVE].max())])
            found = self.tables.curves((few * self.axis.factor).tolist(), largest)
            halves = [
                self._split(price, *self._points(*both))
                for price, *both in zip(few.tolist(), *found)
            ]
            known = self.chords.shape[1]
            self.chords = np.concatenate([self.chords, *halves], axis=1)
            self.envelope = self.envelope.with_more(
                self.chords, np.arange(known, self.chords.shape[1])
            )

    def _split(self, price: float, risk: FloatArray, mean: FloatArray) -> Chords:
        """Take in the points of one price. Returns the halves of the chords that were split."""
        between = (self.open[FLAT] < price) & (price < self.open[STEEP])
        chord = self.open[:, between]
        curve = chord[CURVE].astype(np.int64)
        x, m = risk[curve], mean[curve]
        least = (m + price * x) * (1 + SAME)
        left, right = (chord[m] + price * chord[x] <= least for x, m in ((X0, M0), (X1, M1)))
        # An end that is as good is best at this price, too, and the chord is proved if both are.
        chord[STEEP, left] = price
        chord[FLAT, right] = price
        new = ~(left | right)
        first, last = chord[:, new], chord[:, new]
        first[X1] = last[X0] = np.clip(x[new], first[X0], last[X1])
        first[M1] = last[M0] = np.clip(m[new], last[M1], first[M0])
        first[FOUND1] = first[FLAT] = last[FOUND0] = last[STEEP] = price
        halves = np.concatenate([first, last], axis=1)
        halves = halves[:, halves[X0] < halves[X1]]
        self.open = np.concatenate(
            [self.open[:, ~between], chord[:, left != right], halves], axis=1
        )
        return halves

    def close(self, tolerance: float) -> FloatArray:
        """Close the chords whose curve lies nowhere below the envelope, within a tolerance. Returns
        how far the others may.
        """
        gap, slope = self._gaps(tolerance), slopes(self.open)
        # A line below that is no steeper than the chord, or no flatter, lies on it.
        stay = (gap > 0) & (self.open[FLAT] < slope) & (slope < self.open[STEEP])
        self.open = self.open[:, stay]
        return np.asarray(gap[stay])

    def _gaps(self, tolerance: float) -> FloatArray:
        """By open chord how far its curve may lie below the envelope; 0 or less within the
        tolerance.

        The envelope counts as low as it is at a risk that is larger by the tolerance. It and the
        two lines below a curve are straight between its starts: the largest distance is where the
        lines meet, mostly, or at an end or a start.
        """
        x0, m0, _, steep, x1, m1, _, flat, _ = self.open
        later, lower = tolerance * self.risks, tolerance * self.means
        begin, end = np.maximum(x0, self.envelope.start[0]), np.minimum(x1, self.envelope.end)
        with np.errstate(invalid="ignore", over="ignore"):
            meet = np.where(
                np.isinf(steep), x0, (m0 - m1 + steep * x0 - flat * x1) / (steep - flat)
            )
        gap = np.full(len(x0), -np.inf)
        inside = np.flatnonzero(begin <= end)
        for at in (np.clip(meet, begin, end)[inside], begin[inside], end[inside]):
            risk = np.minimum(at * (1 + SAME) + later, self.envelope.end)
            mean = self.envelope.at(self.chords, risk) - lower
            gap[inside] = np.maximum(gap[inside], self._beyond(inside, at, mean))
        # Just before a step the envelope is higher than at it.
        start = (self.envelope.start[1:] - later) / (1 + SAME)
        before = self.envelope.before(self.chords) - lower
        inside = inside[gap[inside] <= 0]
        first = np.searchsorted(start, begin[inside])
        count = np.searchsorted(start, end[inside], side="right") - first
        total = np.cumsum(count)
        cuts = np.searchsorted(total, np.arange(PAIRS, total[-1] if len(total) else 0, PAIRS))
        for part in np.split(np.arange(len(inside)), cuts):
            owner = np.repeat(part, count[part])
            offset = np.cumsum(count[part]) - count[part]
            position = np.arange(len(owner)) - np.repeat(offset, count[part]) + first[owner]
            found = self._beyond(inside[owner], start[position], before[position])
            np.maximum.at(gap, inside[owner], found)
        return gap

    def _beyond(self, which: IntArray, at: FloatArray, mean: FloatArray) -> FloatArray:
        """How far the lines below some open chords lie below a mean at some risks; 0 if that is
        rounding.
        """
        x0, m0, steep, x1, m1, flat = (
            self.open[row][which] for row in (X0, M0, STEEP, X1, M1, FLAT)
        )
        with np.errstate(invalid="ignore", over="ignore"):
            left = np.where(np.isinf(steep), -np.inf, m0 - steep * (at - x0))
        apart = mean - np.maximum(left, m1 + flat * (x1 - at))
        return np.where(apart > SAME * mean, apart, 0.0)

    def wanted(self, gap: FloatArray, all_corners: bool) -> FloatArray:
        """The prices to ask for next: the slope of the open chord with the widest gap between any
        two prices asked before; for all corners the slopes of all with wide gaps, or, if there are
        more than fit, some from the least to the largest.
        """
        slope, tables = slopes(self.open), self.tables.at_once
        if not all_corners:
            widest = np.lexsort((-gap, self.open[FLAT]))
            _, first = np.unique(self.open[FLAT][widest], return_index=True)
            return np.unique(slope[widest[first]])[: self.most]
        enough = min(WIDE * gap.max(), np.sort(gap)[-tables:][0])
        slope = np.unique(slope[gap >= enough])
        count = min(self.most, MAX_TABLES * tables, 2 * self.asked)
        return np.asarray(
            slope[np.unique(np.linspace(0, len(slope) - 1, count).round().astype(np.int64))]
        )

    def found(self, gap: float) -> Trade:
        return Trade(self.axis, self.chords, self.envelope, self.rounding, gap)
