"""Chords of the curves of mean against risk, and their envelope.

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
"""

from __future__ import annotations

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
