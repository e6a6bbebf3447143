"""The trade between mean and risk, as it was found: the least mean at every risk asked for, and
policies that have it.

For one budget w the points (risk, mean) of all mixtures of policies have a convex lower edge, a
piecewise linear curve. For lateness and shortfall the budget is given, and its curve is all. For
CVaR, with the risk w + E (Z - w)+ / alpha, every budget has a curve, and the least mean at a risk
is the lowest of them all there. A *chord* joins two points of a curve, so it lies above it. Each of
its ends minimises mean + price * risk at some price, so the line of that slope through it lies
below the curve: with the least such price of the left end (`steep`) and the largest of the right
end (`flat`) the curve is caught in a triangle under the chord.

The *envelope* of some chords is the lowest of them at every risk between two, stored as the risks
at which another chord becomes the lowest, and which one that is. There the two may cross, or meet
at an end of both, or the new one may begin below: a step. A mixture on the curve of w may have less
CVaR than the point says, by another budget; but then the curve of that budget is as low before this
point, and it is no corner: on the envelope every risk is that of its policy.

**Rounding.** Tables are off by a share e of risk and mean. Then the true least mean at b lies
between (1 - e) f(b (1 + e)) and (1 + e) f(b (1 - e)), with f the one found: a mixture of points
that are off is off by no more, and so is a line that lies below a curve.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tailpath.graph import FloatArray, IntArray
from tailpath.kernels.rounding import SAME_VALUE

#: The rows of an array of chords, one chord a column: risk, mean and price of the left end, and the
#: price of the line below it; the same of the right end; and the number of the curve.
X0, M0, FOUND0, STEEP, X1, M1, FOUND1, FLAT, CURVE = range(9)
Chords = FloatArray
#: The rows of an array of pieces of envelopes, one piece a column: whose it is, the
#: risk at which it starts, and the chord that is the lowest from there on, -1 where there is none.
GROUP, START, LOWEST = range(3)
#: Differences below this, relatively, are rounding.
SAME = SAME_VALUE
#: A weight, and the price and the budget in cost units that find the policy again.
Member = tuple[float, float, int]


class Envelope(NamedTuple):
    """From `start[i]` on chord `lowest[i]` is the lowest, the last one up to `end`; -1 where there
    is none.
    """

    start: FloatArray
    lowest: IntArray
    end: float

    def at(self, chords: Chords, risk: FloatArray) -> FloatArray:
        """The mean at some risks; at a step that behind it."""
        position = np.searchsorted(self.start, risk, side="right") - 1
        return means_at(chords, self.lowest[np.maximum(position, 0)], risk)

    def before(self, chords: Chords) -> FloatArray:
        """The mean just before each start but the first."""
        return means_at(chords, self.lowest[:-1], self.start[1:])

    def with_more(self, chords: Chords, more: IntArray) -> Envelope:
        others = envelope_of(chords, more, float(self.start[0]), self.end)
        pieces = [
            np.stack(np.broadcast_arrays(group, each.start, each.lowest))
            for group, each in enumerate((self, others))
        ]
        return _as_envelope(_lower(chords, np.concatenate(pieces, axis=1), self.end), self.end)


def means_at(chords: Chords, which: IntArray, risk: FloatArray) -> FloatArray:
    """The mean of chords at risks within them; infinite for chord -1."""
    x0, m0, x1, m1 = (chords[row][which] for row in (X0, M0, X1, M1))
    share = np.clip((risk - x0) / (x1 - x0), 0.0, 1.0)
    return np.where(which < 0, np.inf, m0 + share * (m1 - m0))


def slopes(chords: Chords) -> FloatArray:
    """What one unit more of risk saves of the mean, along chords."""
    saved: FloatArray = (chords[M0] - chords[M1]) / (chords[X1] - chords[X0])
    return saved


def envelope_of(chords: Chords, which: IntArray, low: float, high: float) -> Envelope:
    """The envelope of some chords between two risks: the envelopes of every two, then of every two
    of these, and so on.
    """
    which = which[(chords[X0][which] <= high) & (chords[X1][which] >= low)]
    x0, x1 = chords[X0][which], chords[X1][which]
    if not len(which):
        return Envelope(np.array([low]), np.array([-1]), high)
    group, ends = np.arange(len(which)), x1 < high
    # A chord alone: none, the chord, none.
    parts = (group, low, -1), (group, np.maximum(x0, low), which), (group[ends], x1[ends], -1)
    pieces = np.concatenate([np.stack(np.broadcast_arrays(*part)) for part in parts], axis=1)
    pieces = pieces[:, np.lexsort((pieces[START], pieces[GROUP]))]
    while pieces[GROUP, -1] > 0:
        pieces = _lower(chords, pieces, high)
    return _as_envelope(_distinct(pieces), high)


def _as_envelope(pieces: FloatArray, end: float) -> Envelope:
    return Envelope(pieces[START], pieces[LOWEST].astype(np.int64), end)


def _lower(chords: Chords, pieces: FloatArray, end: float) -> FloatArray:
    """Of groups 0 and 1, 2 and 3, ... the envelope of both, as group 0, 1, ...; every group starts
    at the same risk.
    """
    if pieces[GROUP, -1] % 2 == 0:
        nothing = [pieces[GROUP, -1] + 1, pieces[START, 0], -1.0]
        pieces = np.column_stack([pieces, nothing])
    pieces = pieces[:, np.lexsort((pieces[START], pieces[GROUP] // 2))]
    second, position = pieces[GROUP] % 2, np.arange(pieces.shape[1])
    one, two = (
        pieces[LOWEST, np.maximum.accumulate(np.where(second == k, position, 0))] for k in (0, 1)
    )
    # The last entry at a risk knows what both groups have there.
    pair, start, one, two = _distinct(np.stack([pieces[GROUP] // 2, pieces[START], one, two]))
    stop = np.where(np.append(pair[1:] == pair[:-1], False), np.append(start[1:], end), end)
    a, b = (
        np.stack([means_at(chords, which, start), means_at(chords, which, stop)])
        for which in (one.astype(np.int64), two.astype(np.int64))
    )
    first = np.where((b[0] < a[0]) | ((b[0] == a[0]) & (b[1] <= a[1])), two, one)
    then = np.where((b[1] < a[1]) | ((b[1] == a[1]) & (b[0] <= a[0])), two, one)
    crossed = np.flatnonzero(first != then)
    apart = np.abs(b[:, crossed] - a[:, crossed])
    cross = start[crossed] + apart[0] / (apart[0] + apart[1]) * (stop - start)[crossed]
    more = np.stack([pair[crossed], cross, then[crossed]])
    found = _distinct(np.insert(np.stack([pair, start, first]), crossed + 1, more, axis=1))
    unlike = found[:, 1:] != found[:, :-1]
    return found[:, np.append(True, unlike[GROUP] | unlike[LOWEST])]


def _distinct(pieces: FloatArray) -> FloatArray:
    """Of pieces of one group with the same start the last."""
    unlike = pieces[:, 1:] != pieces[:, :-1]
    return pieces[:, np.append(unlike[GROUP] | unlike[START], True)]


class Axis(NamedTuple):
    """At a budget a risk is `factor * value + shift * budget` of a table, in cost units."""

    criterion: FloatArray
    budgets: range
    factor: float
    shift: float


class Rounding(NamedTuple):
    """What risks and means may be off by: both by a `share`, and risks by `slack` besides."""

    share: float
    slack: float

    def below(self, risk: float) -> float:
        return risk * (1 - self.share) - self.slack

    def above(self, risk: float) -> float:
        return risk * (1 + self.share) + self.slack


class Point(NamedTuple):
    """A policy, or a mixture of two, by its parts: its risk and its mean, in cost units."""

    risk: float
    mean: float
    parts: tuple[Member, ...]


#: A point, and the least mean just before it.
CornerPoint = tuple[Point, float]


@dataclass(frozen=True, eq=False)
class Trade:
    """The envelope of the chords met. The least mean lies below it by a share `gap` of the range of
    means at most, at a risk that is larger by that share of the range of risks.
    """

    axis: Axis
    chords: Chords
    envelope: Envelope
    rounding: Rounding
    gap: float

    @property
    def least_risk(self) -> float:
        return float(self.envelope.start[0])

    def mean(self, risk: float) -> float:
        """The least mean at a risk; outside of what was searched that at its nearest end."""
        inside = min(max(risk, self.least_risk), self.envelope.end)
        return float(self.envelope.at(self.chords, np.array([inside]))[0])

    def slope(self, risk: float) -> float:
        """What one unit more of risk saves of the mean."""
        return float(slopes(self.chords[:, self._chord(risk)]))

    def point(self, risk: float) -> Point:
        """The mixture that has the least mean at a risk."""
        return self._on_chord(self._chord(risk), risk)

    def alone(self, risk: float) -> Point:
        """Of the single policies met with no more than a risk the one with the least mean."""
        ends = [(X0, M0), (X1, M1)]
        mean = np.stack([np.where(self.chords[x] <= risk, self.chords[m], np.inf) for x, m in ends])
        side, chord = np.unravel_index(int(np.argmin(mean)), mean.shape)
        return self._ends(int(chord))[int(side)]

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

    def _chord(self, risk: float) -> int:
        point = int(np.searchsorted(self.envelope.start, risk, side="right")) - 1
        return int(self.envelope.lowest[max(point, 0)])

    def _ends(self, chord: int) -> list[Point]:
        a = self.chords[:, chord].tolist()
        factor, budget = self.axis.factor, self.axis.budgets[int(a[CURVE])]
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
