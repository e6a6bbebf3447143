"""Convex curves known by some of their corners, and the lower envelope of several.

A curve is least mean against risk for one budget. A corner was found at some price k, where it minimises mean + k * risk, so the line of slope
-k through it lies below the whole curve. Between two corners the chord lies above the curve, and the lines through both lie below.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
#: Differences below this, relatively, are rounding.
SAME = 1e-11


class Point(NamedTuple):
    """A corner, the price at which it was found, and the lowest and highest price at which nothing else was better."""

    risk: float
    mean: float
    price: float
    low: float
    high: float


class Line(NamedTuple):
    """A corner of the envelope: where it lies, and the corners it is mixed of, as `(weight, price, curve)`.

    `before` is the mean just to the left: more than `mean` where a curve begins below all others, otherwise the same.
    """

    risk: float
    mean: float
    parts: tuple[tuple[float, float, int], ...]
    before: float


class Curve:
    """Corners in rising risk, and which of the segments between them are settled."""

    def __init__(self, number: int, corners: list[tuple[float, float, float]]) -> None:
        self.number = number
        self.points: list[Point] = []
        self.settled: list[bool] = []
        for price, risk, mean in corners:
            point = Point(risk, mean, price, price, price)
            if self.points and _same(self.points[-1], point):
                self.points[-1] = self.points[-1]._replace(low=price)
            else:
                self.points.append(point)
        self.settled = [False] * (len(self.points) - 1)
        self._corners: FloatArray | None = None

    @property
    def corners(self) -> FloatArray:
        """The risks and the means of all corners."""
        if self._corners is None:
            self._corners = np.array([(point.risk, point.mean) for point in self.points]).T
        return self._corners

    def add(self, price: float, risk: float, mean: float) -> None:
        """Take in the corner found at a price."""
        i = min(bisect_left(self.points, -price, key=lambda point: -point.low), len(self.points) - 1)
        if price <= self.points[i].high:
            return
        a, b, new = self.points[i - 1], self.points[i], Point(risk, mean, price, price, price)
        chord = a.mean + (b.mean - a.mean) * (risk - a.risk) / (b.risk - a.risk)
        if (
            new.mean + price * new.risk >= min(a.mean + price * a.risk, b.mean + price * b.risk) - SAME * abs(a.mean)
            or not a.risk < risk < b.risk
        ):
            # Nothing below the chord at this price: one of its ends is best here too, and both are if the price is the slope.
            if a.mean + price * a.risk <= b.mean + price * b.risk:
                self.points[i - 1] = a._replace(low=price)
            else:
                self.points[i] = b._replace(high=price)
            if abs((a.mean - b.mean) - price * (b.risk - a.risk)) <= SAME * abs(a.mean):
                self.settled[i - 1] = True
        elif mean < chord:
            self.points.insert(i, new)
            self.settled.insert(i, False)
            self._corners = None

    def chord(self, i: int) -> float:
        """The price that is the slope of segment i."""
        a, b = self.points[i], self.points[i + 1]
        return (a.mean - b.mean) / (b.risk - a.risk)

    def gaps(self, risk: FloatArray, mean: FloatArray, tolerance: float) -> list[tuple[float, float, int]]:
        """The segments that may lie below an envelope, given by its corners: `(how far, price to ask, number of the curve)`."""
        if not self.settled or all(self.settled):
            return []
        x, m, _, low, high = (np.array(column) for column in zip(*self.points))
        low = np.where(np.isfinite(low), low, 1e300)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            apex = (m[:-1] - m[1:] + low[:-1] * x[:-1] - high[1:] * x[1:]) / (low[:-1] - high[1:])
        apex = np.clip(np.where(np.isfinite(apex), apex, x[:-1]), x[:-1], x[1:])
        inside = risk[np.searchsorted(risk, x[0], side="right") : np.searchsorted(risk, x[-1])]
        # Just before a step the envelope is higher than at it.
        inside = np.concatenate([inside, np.nextafter(inside, -np.inf)])
        at = np.concatenate([apex, inside])
        segment = np.concatenate([np.arange(len(apex)), np.searchsorted(x, inside) - 1])
        with np.errstate(over="ignore"):
            lines = m[segment] - low[segment] * (at - x[segment]), m[segment + 1] + high[segment + 1] * (x[segment + 1] - at)
        above = np.where(at < risk[0], np.inf, np.interp(at, risk, mean)) - np.maximum(np.maximum(*lines), m[segment + 1])
        gap = np.full(len(apex), -np.inf)
        np.maximum.at(gap, segment, above)
        wide = (np.diff(x) > SAME * x[1:]) & (-np.diff(m) > SAME * m[:-1]) & ~np.array(self.settled)
        wanted = np.flatnonzero(wide & (gap > max(tolerance, SAME) * m[:-1]))
        return [(float(gap[i]), self.chord(i), self.number) for i in wanted.tolist()]


def _same(a: Point, b: Point) -> bool:
    return abs(a.mean - b.mean) <= SAME * abs(a.mean) or abs(a.risk - b.risk) <= SAME * abs(a.risk)


def envelope(curves: list[Curve]) -> list[Line]:
    """The corners of the lower envelope of all curves, in rising risk and falling mean, crossings included.

    Behind its last corner a curve is at its last mean, since more risk is always allowed. Between two places where any curve has a corner all are
    straight, so the lowest one at both ends is the lowest between them; only where the lowest changes is there a crossing.
    """
    places = np.unique(np.concatenate([curve.corners[0] for curve in curves]))
    height = _heights(curves, places)
    owned = np.zeros(height.shape, dtype=np.bool_)
    for own, curve in zip(owned, curves):
        own[np.searchsorted(places, curve.corners[0])] = True
    lowest = np.argmin(height, axis=0)
    # On a tie the curve that has a corner there says what it is.
    tied = owned & (height <= height[lowest, np.arange(len(places))])
    lowest = np.where(tied.any(axis=0), np.argmax(tied, axis=0), lowest)
    found: list[Line] = []
    after = np.where(np.isfinite(height[:, :-1]), height[:, 1:], np.inf).min(axis=0)
    every = np.arange(len(places))
    corner, least = owned[lowest, every], height[lowest, every]
    crossed = np.append((lowest[:-1] != lowest[1:]) | (height[lowest[:-1], every[1:]] > after), False)
    for j in np.flatnonzero(corner | crossed).tolist():
        if corner[j]:
            line = _line(float(places[j]), float(least[j]), curves[lowest[j]])
            _append(found, line._replace(before=max(float(after[j - 1]), line.mean)) if j else line)
        if crossed[j]:
            for x, mean, place in _crossings(places[j : j + 2], height[:, j : j + 2]):
                _append(found, _line(x, mean, curves[place]))
    return _tidy(found)


def touching(curves: list[Curve], lines: list[Line]) -> set[int]:
    """The numbers of the curves that are lowest somewhere.

    A corner of the envelope names one curve, and several may meet there; so all are held against the envelope at its corners, at theirs, and
    between any two of these.
    """
    corners = np.unique(np.concatenate([[line.risk for line in lines], *(curve.corners[0] for curve in curves)]))
    height = _heights(curves, np.concatenate([corners, (corners[1:] + corners[:-1]) / 2]))
    lowest = height.min(axis=0)
    return {curve.number for curve, own in zip(curves, height) if np.any(own <= lowest * (1 + SAME))}


def _heights(curves: list[Curve], places: FloatArray) -> FloatArray:
    """The mean of every curve at some risks: infinite before its first corner, and that of its last corner behind it."""
    return np.stack([np.interp(places, curve.corners[0], curve.corners[1], left=np.inf) for curve in curves])


def _crossings(ends: FloatArray, height: FloatArray) -> list[tuple[float, float, int]]:
    """Where the lowest of some straight lines changes between two places."""
    active = np.flatnonzero(np.isfinite(height[:, 0]))
    left, right = height[active, 0], height[active, 1]
    k = int(np.lexsort((right, left))[0])
    found: list[tuple[float, float, int]] = []
    share = 0.0
    while right[k] > right.min():
        lower = np.flatnonzero(right < right[k])
        cross = (left[lower] - left[k]) / ((left[lower] - left[k]) + (right[k] - right[lower]))
        nearest = int(np.lexsort((right[lower], cross))[0])
        share, k = max(float(cross[nearest]), share), int(lower[nearest])
        found.append((float(ends[0] + share * (ends[1] - ends[0])), float(left[k] + share * (right[k] - left[k])), int(active[k])))
    return [place for place in found if ends[0] < place[0] < ends[1]]


def _line(x: float, mean: float, curve: Curve) -> Line:
    """A place on a curve as a mixture of the corners beside it."""
    i = min(bisect_left(curve.points, x, key=lambda point: point.risk), len(curve.points) - 1)
    b = curve.points[i]
    if i == 0 or x >= b.risk:
        return Line(x, mean, ((1.0, b.price, curve.number),), mean)
    a = curve.points[i - 1]
    share = (x - a.risk) / (b.risk - a.risk)
    if share <= 1e-12 or share >= 1 - 1e-12:
        return Line(x, mean, ((1.0, (a if share < 0.5 else b).price, curve.number),), mean)
    return Line(x, mean, ((1 - share, a.price, curve.number), (share, b.price, curve.number)), mean)


def _append(found: list[Line], line: Line) -> None:
    """Keep what is lower than all before it; at one place the lowest."""
    if found and line.mean >= found[-1].mean * (1 - SAME * 1e-2):
        return
    if found and line.risk <= found[-1].risk * (1 + 1e-14):
        found[-1] = line
    else:
        found.append(line)


def _tidy(found: list[Line]) -> list[Line]:
    """Without the places that lie on the straight line between their neighbours, unless they are policies of their own."""
    kept = found[:1]
    for i in range(1, len(found)):
        if i + 1 < len(found):
            a, b, c = kept[-1], found[i], found[i + 1]
            straight = a.mean + (c.before - a.mean) * (b.risk - a.risk) / (c.risk - a.risk)
            if max(b.before, b.mean) - b.mean <= SAME * b.mean and abs(b.mean - straight) <= SAME * abs(b.mean):
                continue
        kept.append(found[i])
    return kept
