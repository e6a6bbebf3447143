"""That no policy has a CVaR below a claim on a model with intervals, against an adversarial nature.

A budget w = k + f between two integer ones may then be best, costs being whole numbers of the unit.
Let nature keep to what it does for one fraction f, at the same node of every history. Then
E[(Z - k - f')+] of each policy is a line in f' from 0 to 1, the least of them is concave, and no
more than what nature can do: values at 0, at f and at 1 make two lines below it. Besides, it falls
with f', by no more than f' grows. Where the highest of these lies below the claim for some f', that
is the next fraction to look at.
"""

from __future__ import annotations

import math
from fractions import Fraction

from tailpath.errors import OptionError
from tailpath.verify.excess import Below, Choice, hold, prove_at_integers
from tailpath.verify.totals import ONE

#: Fractions that the checker looks at before it gives up.
MOST_FRACTIONS = 40
NONE, ALL = Fraction(0), Fraction(1)


def integer_choice(low: list[Fraction], high: list[Fraction]) -> Choice:
    """A choice in integers; where nothing is open, the rounding of the sum is shared by
    all.
    """
    scale = math.lcm(*(end.denominator for end in (*low, *high)))
    least = [int(p * scale) for p in low]
    if low == high:
        return Choice(sum(least), least, [0] * len(least), 0)
    width = [int((top - p) * scale) for p, top in zip(low, high)]
    return Choice(max(scale, sum(least)), least, width, max(scale - sum(least), 0))


class _Search:
    """Lines below U between integer budgets, in units, from tables at some fractions."""

    def __init__(self, tables: Below, last: int, alpha: Fraction) -> None:
        self.tables, self.alpha = tables, alpha
        self.found = {ALL: [(end, begin, end) for end, begin in self._rows((ALL, NONE), last)]}
        self.zero = tables.floor[tables.start]

    def _rows(self, fractions: tuple[Fraction, ...], last: int) -> list[list[int]]:
        """By level up to the last what is least from the start, for each fraction."""
        pairs = self.tables.budgets(last + 1)[1]
        return [values for _, values in self.tables.table(fractions, pairs)]

    def value(self, k: int, f: Fraction) -> Fraction:
        """U with k + f left, which is known."""
        if f:
            return Fraction(self.found[f][k][0], ONE)
        return Fraction(self.found[ALL][k - 1][0] if k else self.zero, ONE)

    def look_at(self, k: int, f: Fraction) -> None:
        """Another fraction, for budgets up to k + f."""
        if len(self.found) >= MOST_FRACTIONS:
            raise OptionError(
                "the checker cannot decide about this optimum: it has looked at too many budgets"
            )
        self.found[f] = [(here, begin, end) for here, begin, end in self._rows((f, NONE, ALL), k)]

    def least(self, k: int, x: Fraction, y: Fraction) -> tuple[Fraction, Fraction]:
        """The least that the lines allow for w + U / alpha from k + x to k + y, known both, and at
        which fraction.
        """
        ends = [(self.value(k, y),) * 2, (self.value(k, x), self.value(k, x) - (y - x))]
        for f, rows in self.found.items():
            if k < len(rows):
                ends.append((_bent(f, rows[k], x), _bent(f, rows[k], y)))
        steep = [(left, (right - left) / (y - x)) for left, right in ends]
        breakpoints = {NONE, y - x}
        breakpoints |= {
            (c - a) / (b - d)
            for a, b in steep
            for c, d in steep
            if b != d and 0 < (c - a) / (b - d) < y - x
        }
        return min(
            (k + x + t + max(a + b * t for a, b in steep) / self.alpha, x + t) for t in breakpoints
        )


def _bent(f: Fraction, values: tuple[int, int, int], at: Fraction) -> Fraction:
    """The two lines through values at f, at 0 and at 1, as many parts of ONE."""
    here, begin, end = values
    if at <= f:
        return Fraction(begin, ONE) + (Fraction(here - begin, ONE) * at / f if f else 0)
    return Fraction(here, ONE) + Fraction(end - here, ONE) * (at - f) / (1 - f)


def prove_interval_below(
    tables: Below, error_bound: Fraction, claim: Fraction, alpha: Fraction, unit: Fraction
) -> None:
    """Prove that w + U(start, w) / alpha >= claim for every budget w from 0 on, in units; those
    beyond the claim need no proof.

    U may lie higher than what is found by no more than the error bound.
    """
    if not tables.worst:
        prove_at_integers(tables, error_bound, claim, alpha, unit)
        return
    last = max(math.ceil(claim) - 1, 0)
    search = _Search(tables, last, alpha)
    pieces = [(k, NONE, ALL) for k in range(last + 1)]
    while pieces:
        k, x, y = pieces.pop()
        found, at = search.least(k, x, y)
        if found >= claim:
            continue
        if at in (x, y):
            hold(found, claim, k + at, unit, error_bound / alpha)
        # A nearby fraction of few digits does as well.
        near = at.limit_denominator(2**20)
        at = near if x < near < y else at
        if at not in search.found or k >= len(search.found[at]):
            search.look_at(k, at)
        pieces += [(k, x, at), (k, at, y)]
