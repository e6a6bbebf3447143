"""The least of w + U(w) / alpha over real budgets w, where the greatest over nature makes U neither
convex nor concave between integer ones.

With the probabilities that nature hands out at one budget, held fixed after the same
histories, the least over policies is *concave* in w from one integer budget k to the next, and lies
below U. So its values at two budgets there make a line below U between them. U also falls, by no
more than a slope of 1: two more lines. Where the highest of the lines lets w + U / alpha be less
than the best found, U is computed at the budget where it would be least, with nature's lines from
there, until the bounds meet. Where a policy is fixed this is the search by tangents, and exact; an
integer budget that is best is mostly proved so by two sweeps.

Budgets k + f with the same fraction f have one table for all k: the sweep with a base of 1 - f, in
which index k + 1 stands for k + f (`dp/budgets.py`).

*Rounding.* Lines are lowered when they are cut. Where two of them meet, what is computed is off by
what the largest of their ends rounds, divided by alpha, and not by a share of itself.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tailpath.certify.rounding import AFTERWARDS
from tailpath.dp.budget_model import Changes
from tailpath.graph import FloatArray

#: Sweeps beyond which the search ends with the bounds it has.
MAX_SWEEPS = 400


class Excess(NamedTuple):
    """U at the start by index, for budgets index - 1 + `fraction`, with proved bounds; `low[i]` for
    i > 0 are lines' ends at other fractions.
    """

    fraction: float
    value: FloatArray
    low: tuple[FloatArray, ...]
    high: FloatArray
    changes: Changes

    def budget(self, index: int) -> float:
        """The budget at an index, in units."""
        return index - 1 + self.fraction


class Least(NamedTuple):
    """The least w + U(w) / alpha, in units: the value at the best budget found, index `position` of
    `table`, and bounds of the least.
    """

    value: float
    low: float
    high: float
    table: Excess
    position: int


class _Stretch(NamedTuple):
    """Budgets k + x to k + y, and lines below U there, each by its values at both ends."""

    k: int
    x: float
    y: float
    lines: tuple[tuple[float, float], ...]

    def least(self, alpha: float) -> tuple[float, float]:
        """The least that lines allow for w + U / alpha, and at which fraction."""
        width = self.y - self.x
        largest = max(abs(end) for line in self.lines for end in line)
        rounding = AFTERWARDS * (self.k + self.y + largest / alpha)
        steep = [(left, (right - left) / width) for left, right in self.lines]
        positions = {0.0, width}
        for i, (a, b) in enumerate(steep):
            for c, d in steep[:i]:
                if b != d and 0 < (c - a) / (b - d) < width:
                    positions.add((c - a) / (b - d))
        return min(
            (
                self.k + self.x + t + max(a + b * t for a, b in steep) / alpha - rounding,
                self.x + t,
            )
            for t in sorted(positions)
        )


class RealBudgets:
    """U with its tables. `make(fractions, limit)` sweeps, up to an index of `limit` if that is
    finite: U at the first fraction, and what is least at the others with the probabilities that
    nature hands out for the first.
    """

    def __init__(
        self, make: Callable[[tuple[float, ...], float], Excess], integer_only: bool
    ) -> None:
        self.make, self.integer_only = make, integer_only
        self._tables: dict[tuple[float, ...], Excess] = {}

    def table(self, fractions: tuple[float, ...], limit: float) -> Excess:
        """A table, known at least up to an index."""
        found = self._tables.get(fractions)
        if found is None or len(found.value) <= limit < np.inf:
            found = self._tables[fractions] = self.make(fractions, limit)
        return found

    @property
    def sweeps(self) -> int:
        """How many tables there are."""
        return len(self._tables)

    @property
    def first(self) -> Excess:
        """The table of integer budgets, index by index."""
        return self.table((1.0,) if self.integer_only else (1.0, 0.0), np.inf)

    def least(self, alpha: float, tolerance: float) -> Least:
        """The least, with bounds no farther apart than the tolerance, relatively, if so many sweeps
        suffice.
        """
        first = self.first
        budgets = np.arange(len(first.value))
        best = _best(first, alpha, budgets)
        if not np.isfinite(best.high):  # the expected costs themselves have no bound
            return best
        at_integers = float(np.min(budgets + first.low[0] / alpha)) * (1 - AFTERWARDS)
        if self.integer_only:
            return best._replace(low=at_integers)
        open_: list[tuple[float, float, _Stretch]] = []
        below = np.minimum(
            budgets[:-1] + first.low[1][1:] / alpha, budgets[1:] + first.low[0][1:] / alpha
        ) * (1 - AFTERWARDS)
        able = below < best.high * (1 - tolerance)
        settled = float(np.min(below, where=~able, initial=at_integers))
        for k in np.flatnonzero(able).tolist():
            left, right = float(first.low[0][k]), float(first.low[0][k + 1])
            falling = left, _lowered(left - 1, left, 1.0)
            lines = (float(first.low[1][k + 1]), right), (right, right), falling
            _push(open_, _Stretch(k, 0.0, 1.0, lines), alpha)
        sweeps = 0
        while open_ and open_[0][0] < best.high * (1 - tolerance) and sweeps < MAX_SWEEPS:
            _, at, stretch = heappop(open_)
            k, x, y, known = stretch
            others = tuple(end for end in (x, y) if end != at)
            table = self.table((at, *others), float(k + 1))
            sweeps += 1
            found = _best(table, alpha, np.array([k + 1]))
            best = found if found.high < best.high else best
            here, *ends = (float(low[k + 1]) for low in table.low)
            if len(ends) == 2:
                middle = [_between(line, (at - x) / (y - x)) for line in known]
                before = [(line[0], value) for line, value in zip(known, middle)]
                behind = [(value, line[1]) for line, value in zip(known, middle)]
                falling = here, _lowered(here - (y - at), here, 1.0)
                _push(open_, _Stretch(k, x, at, (*before, (ends[0], here), (here, here))), alpha)
                _push(open_, _Stretch(k, at, y, (*behind, (here, ends[1]), falling)), alpha)
            else:
                line = (here, ends[0]) if at == x else (ends[0], here)
                _push(open_, _Stretch(k, x, y, (*known, line)), alpha)
        return best._replace(low=max(min(settled, open_[0][0] if open_ else np.inf), 0.0))


def _lowered(value: float, *sizes: float) -> float:
    """A little less than what was computed of numbers of these sizes."""
    return value - AFTERWARDS * max(map(abs, sizes))


def _between(line: tuple[float, float], share: float) -> float:
    """The value of a line at a share of its width."""
    begin, end = line
    return _lowered(begin + share * (end - begin), begin, end)


def _push(open_: list[tuple[float, float, _Stretch]], stretch: _Stretch, alpha: float) -> None:
    """Among stretches by what they may hold, the lowest first."""
    heappush(open_, (*stretch.least(alpha), stretch))


def _best(table: Excess, alpha: float, index: NDArray[np.int64]) -> Least:
    """The best of some indices."""
    budget = index - 1 + table.fraction
    at = int(np.argmin(budget + table.value[index] / alpha))
    total, high = (
        float(budget[at] + each[index[at]] / alpha) for each in (table.value, table.high)
    )
    return Least(total, 0.0, high * (1 + AFTERWARDS), table, int(index[at]))
