"""Chords of convex curves, and the lowest of them at every risk.

A curve is least mean against risk for one budget, convex and falling. A *chord* joins two points of
it, so it lies above the curve. Each of its ends minimises mean + price * risk at some price, so the
line of that slope through it lies below the curve: with the least such price of the left end
(`steep`) and the largest of the right end (`flat`) the curve is caught in a triangle under the
chord.

The *envelope* of some chords is the lowest of them at every risk between two. It is stored as
the risks at which another chord becomes the lowest, and which one that is. Where it does, the two
may cross, or meet at an end of both, or the new one may begin below: a step.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tailpath.graph import FloatArray, IntArray

#: The rows of an array of chords, one chord a column: risk, mean and price of the left end, and the
#: price of the line below it; the same of the right end; and the number of the curve.
X0, M0, FOUND0, STEEP, X1, M1, FOUND1, FLAT, CURVE = range(9)
Chords = FloatArray


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
        return heights(chords, self.lowest[np.maximum(position, 0)], risk)

    def before(self, chords: Chords) -> FloatArray:
        """The mean just before each start but the first."""
        return heights(chords, self.lowest[:-1], self.start[1:])

    def with_more(self, chords: Chords, more: IntArray) -> Envelope:
        """The envelope of these chords and some more."""
        best = envelope_of(chords, more, float(self.start[0]), self.end)
        group = np.repeat([0, 1], [len(self.start), len(best.start)])
        both = _lower(
            chords,
            group,
            np.append(self.start, best.start),
            np.append(self.lowest, best.lowest),
            self.end,
        )
        return Envelope(both[1], both[2], self.end)


def heights(chords: Chords, which: IntArray, risk: FloatArray) -> FloatArray:
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
    x0, x1 = chords[X0][which], chords[X1][which]
    inside = (x0 <= high) & (x1 >= low)
    which, x0 = which[inside], x0[inside]
    x1 = x1[inside]
    count = len(which)
    # A chord alone: none, the chord, none.
    group = np.tile(np.arange(count), 3)
    start = np.concatenate([np.full(count, low), np.maximum(x0, low), x1])
    lowest = np.concatenate([np.full(count, -1), which, np.full(count, -1)])
    mask = np.concatenate([np.ones(2 * count, dtype=np.bool_), x1 < high])
    order = np.lexsort((np.repeat([0, 1, 2], count), start, group))
    order = order[mask[order]]
    group, start = group[order], start[order]
    lowest = lowest[order]
    while count > 1:
        group, start, lowest = _lower(chords, group, start, lowest, high)
        count = (count + 1) // 2
    if count == 0:
        return Envelope(np.array([low]), np.array([-1]), high)
    _, start, lowest = _distinct(group, start, lowest)
    return Envelope(start, lowest, high)


def _lower(
    chords: Chords, group: IntArray, start: FloatArray, lowest: IntArray, end: float
) -> tuple[IntArray, FloatArray, IntArray]:
    """Of groups 0 and 1, 2 and 3, ... the envelope of both, as group 0, 1, ...; every group starts
    at the same risk.
    """
    if group[-1] % 2 == 0:
        group, start = np.append(group, group[-1] + 1), np.append(start, start[0])
        lowest = np.append(lowest, -1)
    order = np.lexsort((start, group // 2))
    pair, second = group[order] // 2, group[order] % 2
    start, lowest = start[order], lowest[order]
    position = np.arange(len(order))
    one, two = (lowest[np.maximum.accumulate(np.where(second == k, position, 0))] for k in (0, 1))
    # The last entry at a risk knows what both groups have there.
    pair, start, one, two = _distinct(pair, start, one, two)
    stop = np.where(np.append(pair[1:] == pair[:-1], False), np.append(start[1:], end), end)
    a, b = (
        np.stack([heights(chords, which, start), heights(chords, which, stop)])
        for which in (one, two)
    )
    first = np.where((b[0] < a[0]) | ((b[0] == a[0]) & (b[1] <= a[1])), two, one)
    then = np.where((b[1] < a[1]) | ((b[1] == a[1]) & (b[0] <= a[0])), two, one)
    crossed = np.flatnonzero(first != then)
    apart = np.abs(b[:, crossed] - a[:, crossed])
    cross = start[crossed] + apart[0] / (apart[0] + apart[1]) * (stop - start)[crossed]
    pair, start, lowest = (
        np.insert(each, crossed + 1, more)
        for each, more in ((pair, pair[crossed]), (start, cross), (first, then[crossed]))
    )
    pair, start, lowest = _distinct(pair, start, lowest)
    changes = np.append(True, (pair[1:] != pair[:-1]) | (lowest[1:] != lowest[:-1]))
    return pair[changes], start[changes], lowest[changes]


def _distinct(group: IntArray, start: FloatArray, *others: IntArray) -> tuple[Any, ...]:
    """Of entries of one group with the same start the last."""
    last = np.append((group[1:] != group[:-1]) | (start[1:] != start[:-1]), True)
    return tuple(each[last] for each in (group, start, *others))
