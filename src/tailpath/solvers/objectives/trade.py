"""The trade between mean and risk, as it was found: the least mean at every risk asked for, and
policies that have it.

For one budget w the points (risk, mean) of all mixtures of policies have a convex lower edge, a
piecewise linear curve. For lateness and shortfall the budget is given, and its curve is all. For
CVaR

    CVaR_alpha <= b  exactly if  E (Z - w)+ <= alpha (b - w)  for a budget w >= 0 on the cost grid,

so with the risk w + E (Z - w)+ / alpha every budget has a curve, and the least mean at a risk is
the lowest of them all there. This envelope is not convex where the best budget changes, and falls
in a step where a curve begins below all others. A mixture on the curve of w may have less CVaR than
the point says, by another budget; but then the curve of that budget is as low before this point,
and it is no corner: on the envelope every risk is that of its policy.

**Rounding.** Tables are off by a share e of risk and mean. Then the true least mean at b lies
between (1 - e) f(b (1 + e)) and (1 + e) f(b (1 - e)), with f the one found: a mixture of points
that are off is off by no more, and so is a line that lies below a curve.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tailpath.kernels.rounding import SAME_VALUE
from tailpath.model.ssp import FloatArray
from tailpath.policies.policy import Policy
from tailpath.solvers.objectives.envelope import (
    CURVE,
    FOUND0,
    FOUND1,
    M0,
    M1,
    X0,
    X1,
    Chords,
    Envelope,
    slopes,
)
from tailpath.solvers.objectives.mean_risk import MeanRisk
from tailpath.solvers.objectives.risk_solution import by_coin

#: Differences below this, relatively, are rounding.
SAME = SAME_VALUE

#: A weight, and the price and the budget in cost units that find the policy again.
Member = tuple[float, float, int]


class Axis(NamedTuple):
    """How a risk is read off a table: at a budget it is `factor * value + shift * budget`, in cost
    units.
    """

    criterion: FloatArray
    budgets: range
    factor: float
    shift: float


class Rounding(NamedTuple):
    """What risks and means may be off by: both by a `share`, and risks by `slack` besides."""

    share: float
    slack: float

    def below(self, risk: float) -> float:
        """The least that a risk may be."""
        return risk * (1 - self.share) - self.slack

    def above(self, risk: float) -> float:
        """The most that a risk may be."""
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
    """The envelope of the chords met. The least mean may lie below it by `gap`, relatively, and by
    rounding.
    """

    axis: Axis
    chords: Chords
    envelope: Envelope
    rounding: Rounding
    gap: float

    @property
    def least_risk(self) -> float:
        """The least risk that was searched."""
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
        """Of the single policies met that have no more than a risk the one with the least mean."""
        ends = [(X0, M0), (X1, M1)]
        mean = np.stack([np.where(self.chords[x] <= risk, self.chords[m], np.inf) for x, m in ends])
        side, chord = np.unravel_index(int(np.argmin(mean)), mean.shape)
        return self._ends(int(chord))[int(side)]

    def corners(self) -> list[CornerPoint]:
        """The corners in rising risk and falling mean. What differs by no more than
        `SAME` is one.
        """
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
        """The lowest chord at a risk."""
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


def mixed(tables: MeanRisk, parts: tuple[Member, ...]) -> Policy:
    """The policy with these parts."""
    policies = [tables.policy(price, budget) for _, price, budget in parts]
    return by_coin(policies, [weight for weight, _, _ in parts])


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
    """How far a point is from the line that goes from the start to a mean at the end's risk,
    relatively.
    """
    slope = (start.mean - mean) / (end.risk - start.risk)
    straight = start.mean + slope * start.risk
    if straight == 0:
        return math.inf
    return abs(straight - between.mean - slope * between.risk) / straight
