"""The least mean at every risk, or at one, by prices that serve all budgets at once (`tables.py`).

A table gives for every budget a point of its curve of mean against risk (`chords.py`), and a line
below the curve. A chord is *open* while its curve may lie below the envelope of all chords found so
far, at a risk of interest. The next price is its slope: the table for it finds a point below
the chord, which splits it, or proves that there is none. One limit is the same search at one risk.

Points that miss a line by less than `SAME` of mean + price * risk count as on it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple

import numpy as np

from tailpath.analysis.tables import MAX_BYTES, too_many_levels
from tailpath.certify.losses import dual_bounds
from tailpath.dp.budget_model import EXCESS
from tailpath.graph import FloatArray, IntArray
from tailpath.model.border import shifted_bounds
from tailpath.model.records import Record, found_once
from tailpath.model.ssp import SSP
from tailpath.options import Progress
from tailpath.solvers.expectation import solve_expected
from tailpath.solvers.objectives.chords import (
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
    Chords,
    Envelope,
    envelope_of,
    slopes,
)
from tailpath.solvers.objectives.tables import Axis, MeanRisk, Member

#: Prices asked for at first, as multiples of mean over risk.
FIRST = np.geomspace(1e-3, 1e4, 15)
#: All corners are looked for within so many updates of outcomes; after that the search ends as soon
#: as it has caught the frontier within this share of its range.
ALL_CORNERS_WITHIN, CAUGHT = 5 * 10**7, 1e-3
#: Chords are held against so many pieces of the envelope at a time.
PAIRS = 2**20
#: What a budget takes, in bytes: its curve, and its points for one price.
CURVE_BYTES, POINT_BYTES = 600, 48
NOTHING = Fraction(0)
#: Risks below this may have been taken for 0.
VANISHED = 1e-250
#: A search for one risk looks this far around it, relatively.
AROUND = 1e-11


def least_means(
    ssp: SSP,
    axis: Axis,
    at: float | None = None,
    tolerance: float | None = None,
    progress: Progress | None = None,
) -> Trade:
    """The least mean at every risk up to that of the risk-neutral policy, or at one.

    The search ends when it has caught the least mean within a share `tolerance` of the range of
    means, at a risk larger by that share of the range of risks. By default it looks for all corners
    first, and after `ALL_CORNERS_WITHIN` updates of outcomes for `CAUGHT`.
    """
    tables = MeanRisk(ssp, axis)
    search = _Search(tables, at)
    search.ask(search.typical * (FIRST if at is None else FIRST[::2]))
    gap = tolerance or 0.0
    while True:
        if at is None and tolerance is None and tables.updates >= ALL_CORNERS_WITHIN:
            gap = max(gap, CAUGHT)
        below = search.close(gap)
        if progress is not None:
            progress(tables.tables, float(len(search.envelope.start)))
        if not len(below):
            return search.found(gap)
        search.ask(search.wanted(below))


class _Search:
    """All chords met, those that are open, and the envelope."""

    def __init__(self, tables: MeanRisk, at: float | None) -> None:
        self.tables, self.axis = tables, tables.axis
        self.asked: list[float] = [0.0]
        count = len(self.axis.budgets)
        self.most = (MAX_BYTES - CURVE_BYTES * tables.limit) // (POINT_BYTES * (tables.limit + 1))
        if self.most < tables.at_once:
            raise too_many_levels(tables.limit)
        if at is not None:  # one risk needs the next prices only
            self.most = tables.at_once
        safest, risk_neutral = tables.curves([math.inf, 0.0], tables.limit)
        low, high = float(safest[0].min()), float(risk_neutral[0].min())
        self.least_mean = float(risk_neutral[1].min())
        self.typical = self.least_mean / max(float(safest[0].max()), 1e-300)
        if at is not None:
            low = max(at * (1 - AROUND), low)
            high = max(min(at * (1 + AROUND), high), low)
        curve = np.arange(count, dtype=np.float64)
        chords = np.stack(
            np.broadcast_arrays(*safest, np.inf, np.inf, *risk_neutral, 0.0, 0.0, curve)
        )
        self.open = chords[:, (chords[X0] < chords[X1]) & (chords[X0] <= high)]
        self.chords = np.column_stack([self.open, self._ray(*risk_neutral)])
        self.envelope = envelope_of(
            self.chords, np.arange(self.chords.shape[1]), low, max(low, high)
        )
        self.keeps_all = at is not None
        # What a tolerance is a share of.
        self.risks = self.envelope.end - low
        self.means = float(self.envelope.at(self.chords, np.array([low]))[0]) - self.least_mean

    def _ray(self, risk: FloatArray, mean: FloatArray) -> Chords:
        """Behind the risk-neutral policy the mean stays as it is."""
        nearest = int(np.argmin(risk))
        x, m = float(risk[nearest]), float(mean[nearest])
        return np.array([x, m, 0.0, 0.0, 2 * x + 1, m, 0.0, 0.0, nearest])

    def ask(self, prices: FloatArray) -> None:
        """Make tables for some prices, and split the open chords by them."""
        for first in range(0, len(prices) if self.open.size else 0, self.most):
            few = prices[first : first + self.most]
            own = (few * float(self.axis.factor)).tolist()
            largest = self.axis.budgets[int(self.open[CURVE].max())]
            found = zip(few.tolist(), self.tables.curves(own, largest))
            halves = [self._split(price, *both) for price, both in found]
            self.asked += own
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

    def wanted(self, gap: FloatArray) -> FloatArray:
        """The prices to ask for next: the slope of the open chord with the widest gap between any
        two prices asked before.
        """
        widest = np.lexsort((-gap, self.open[FLAT]))
        _, first = np.unique(self.open[FLAT][widest], return_index=True)
        return np.unique(slopes(self.open)[widest[first]])[: self.most]

    def found(self, gap: float) -> Trade:
        chords, envelope, asked = self.chords, self.envelope, np.unique(self.asked)
        if not self.keeps_all:
            used, lowest = np.unique(envelope.lowest, return_inverse=True)
            chords, envelope = chords[:, used], envelope._replace(lowest=lowest)
        return Trade(self.tables.ssp, self.axis, chords, envelope, asked, gap)


class Point(NamedTuple):
    """A policy, or a mixture of two, by its parts: its risk and its mean, in cost units."""

    risk: float
    mean: float
    parts: tuple[Member, ...]


#: A point, and the least mean just before it.
CornerPoint = tuple[Point, float]


@dataclass(frozen=True, eq=False)
class Trade(Record):
    """The trade between mean and risk, as it was found: the envelope of the chords met, in cost
    units. The least mean lies below it by a share `gap` of the range of means at most, at a risk
    that is larger by that share of the range of risks. `prices` are those asked for.
    """

    ssp: SSP
    axis: Axis
    chords: Chords
    envelope: Envelope
    prices: FloatArray
    gap: float

    @property
    def least_risk(self) -> float:
        return float(self.envelope.start[0])

    def slope(self, risk: float) -> float:
        """What one unit more of risk saves of the mean."""
        return float(slopes(self.chords[:, self._chord(risk)]))

    def point(self, risk: float) -> Point:
        """The mixture that has the least mean at a risk."""
        return self._on_chord(self._chord(risk), risk)

    def corners(self) -> list[CornerPoint]:
        """By rising risk and falling mean; what differs by no more than `SAME` is one."""
        lowest, before = self.envelope.lowest.tolist(), self.envelope.before(self.chords).tolist()
        first = self._on_chord(lowest[0], self.least_risk)
        found = [(first, first.mean)]
        for risk, left, right, mean in zip(
            self.envelope.start[1:].tolist(), lowest, lowest[1:], before
        ):
            there, here = self._on_chord(left, risk), self._on_chord(right, risk)
            if mean > here.mean + SAME * (here.mean + self.slope(risk) * risk):
                found.append((here, mean))
            else:
                found.append((min(here, there, key=lambda point: len(point.parts)), here.mean))
        last = self._on_chord(lowest[-1], self.envelope.end)
        return _without_straight(_falling([*found, (last, last.mean)]))

    def _piece(self, risk: float) -> int:
        return max(int(np.searchsorted(self.envelope.start, risk, side="right")) - 1, 0)

    def _chord(self, risk: float) -> int:
        return int(self.envelope.lowest[self._piece(risk)])

    def _ends(self, chord: int) -> list[Point]:
        a = self.chords[:, chord].tolist()
        factor, budget = float(self.axis.factor), self.axis.budgets[int(a[CURVE])]
        rows = ((X0, M0, FOUND0), (X1, M1, FOUND1))
        return [Point(a[x], a[m], ((1.0, a[found] * factor, budget),)) for x, m, found in rows]

    def _on_chord(self, chord: int, risk: float) -> Point:
        """A point on a chord as a mixture of its ends, or the end that it is."""
        a, b = self._ends(chord)
        if risk <= a.risk * (1 + SAME) or a.parts == b.parts:
            return a
        if risk >= b.risk * (1 - SAME):
            return b
        share = (risk - a.risk) / (b.risk - a.risk)
        parts = ((1 - share, *a.parts[0][1:]), (share, *b.parts[0][1:]))
        return Point(risk, a.mean + share * (b.mean - a.mean), parts)

    # ------------------------------------------------------------------ proofs

    @cached_property
    def tables(self) -> MeanRisk:
        return MeanRisk(self.ssp, self.axis)

    @cached_property
    def _lows(self) -> tuple[FloatArray, FloatArray]:
        return self.tables.lows([math.inf])[0], self.tables.lows(self.prices.tolist())

    def bounds(
        self, risk: float, more: Fraction = NOTHING, floor: Trade | None = None
    ) -> tuple[float, float]:
        """Bounds on the least mean at a risk, both as given, where a risk is so much `more` than
        here. With costs rounded up here, the lower one is that of the `floor`.
        """
        # A risk stands for what is next to it: the decimal, or the number that it was rounded from,
        # here or as given.
        around = 2 * Fraction(math.ulp(max(abs(risk), abs(risk - more))))
        least, most = ((Fraction(risk) + by - more) / self.axis.unit for by in (-around, around))
        low = self.low(most)
        high = self.high(least) if low < math.inf else math.inf
        if floor is not None:
            low = floor.low((most * self.axis.unit) / floor.axis.unit)
        units = (self if floor is None else floor).ssp.cost_unit, self.ssp.cost_unit
        return _as_cost(low, units[0])[0], _as_cost(high, units[1])[1]

    def low(self, risk: Fraction) -> Fraction | float:
        """What no policy with at most this risk has less of mean; infinite if there is none."""
        least, lows = self._lows
        budgets = self.axis.shift * np.array(self.axis.budgets)
        return float(dual_bounds(least, lows, self.prices, budgets, risk, self.axis.factor).min())

    def high(self, risk: Fraction) -> Fraction | float:
        """A mean that some policy met surely has with a risk of at most this; where none surely has
        the risk, the least risk counts as this.
        """
        for piece in range(self._piece(float(risk)), -1, -1):
            chord = int(self.envelope.lowest[piece])
            a, b = (self._high(*end.parts) for end in self._ends(chord))
            if a is not None and (a[0] <= risk or piece == 0):
                share = Fraction(1)
                if b is None or b[1] >= a[1] or a[0] >= risk:
                    share = Fraction(0)
                elif b[0] > risk:
                    share = (risk - a[0]) / (b[0] - a[0])
                return a[1] + share * (b[1] - a[1]) if b is not None else a[1]
        return math.inf

    @found_once
    def _high(self, member: Member) -> tuple[Fraction, Fraction] | None:
        return self.tables.highs(*member[1:])


class RiskNeutral(Trade):
    """The trade where the risk-neutral policy has the least risk, by definition or since it is next
    to nothing.
    """

    @classmethod
    def of(cls, ssp: SSP, risk: float) -> RiskNeutral:
        mean = solve_expected(ssp).cost() / float(ssp.cost_unit or 1)
        chord = np.array([risk, mean, 0, 0, 2 * risk + 1, mean, 0, 0, 0], dtype=np.float64)
        envelope = Envelope(np.array([risk]), np.array([0]), risk)
        axis = Axis(EXCESS, range(1), Fraction(1), 0, Fraction(1))
        return cls(ssp, axis, chord[:, None], envelope, np.zeros(1), 0.0)

    def low(self, risk: Fraction) -> Fraction | float:
        if risk < self.least_risk * (1 - SAME) - VANISHED:
            return math.inf
        return Fraction(solve_expected(self.ssp).bounds[0]) / (self.ssp.cost_unit or 1)

    def high(self, risk: Fraction) -> Fraction | float:
        return Fraction(solve_expected(self.ssp).bounds[1]) / (self.ssp.cost_unit or 1)


def _as_cost(value: Fraction | float, unit: Fraction | None) -> tuple[float, float]:
    """A number of units as a cost, rounded to both sides."""
    if value == math.inf:
        return math.inf, math.inf
    return shifted_bounds((0.0, 0.0), Fraction(value) * (unit or 1))


def _falling(corners: list[CornerPoint]) -> list[CornerPoint]:
    """The points whose mean is lower than all before, of several at one risk the lowest."""
    found = corners[:1]
    for point, before in corners[1:]:
        last = found[-1][0]
        if point.mean >= last.mean * (1 - SAME):
            continue
        if point.risk <= last.risk * (1 + SAME):
            found[-1] = point, max(found[-1][1], point.mean)
        else:
            found.append((point, before))
    return found


def _without_straight(corners: list[CornerPoint]) -> list[CornerPoint]:
    """Without points on the straight line between others."""
    found: list[CornerPoint] = corners[:1]
    waiting: list[CornerPoint] = []
    for point, before in corners[1:]:
        if any(_apart(found[-1][0], point, before, between) > SAME for between, _ in waiting):
            found.append(waiting[-1])
            waiting = []
        waiting.append((point, before))
        if before > point.mean:  # what waits lies on the line that ends above the step
            found.append((point, before))
            waiting = []
    return found + waiting[-1:]


def _apart(start: Point, end: Point, mean: float, between: Point) -> float:
    """How far a point is from the line from the start to a mean at the end's risk, relatively."""
    slope = (start.mean - mean) / (end.risk - start.risk)
    straight = start.mean + slope * start.risk
    if straight == 0:
        return math.inf
    return abs(straight - between.mean - slope * between.risk) / straight
