"""That no policy has a CVaR below a claim on a model with intervals: tables of lower bounds on the
least E[(Z - w)+], rounded down.

Against an adversarial nature a budget w = k + f between two integer ones may be best, costs being
whole numbers of the unit. Let nature keep to what it does for one fraction f, at the same node of
every history. Then E[(Z - k - f')+] of each policy is a line in f' from 0 to 1, the least of them
is concave, and no more than what nature can do: values at 0, at f and at 1 make two lines below it.
Besides, it falls with f', by no more than f' grows. Where the highest of these lies below the claim
for some f', that is the next fraction to look at. With a cooperative nature all is a minimum,
concave itself, and integer budgets suffice.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, NamedTuple

from tailpath.errors import OptionError, RefutedError
from tailpath.verify.totals import ONE

#: Sums over the outcomes of a choice beyond which the checker gives up, and fractions that it looks
#: at.
MOST_SUMS, MOST_FRACTIONS = 3_000_000, 40
NONE, ALL = Fraction(0), Fraction(1)


class Choice(NamedTuple):
    """Low probabilities, what each may have more, and what remains to hand out, all of
    `denominator`.
    """

    denominator: int
    low: list[int]
    width: list[int]
    open_mass: int

    def shares(self, values: list[Any], worst: bool) -> list[int]:
        """What nature gives to each outcome, where these are their values."""
        given, remaining = list(self.low), self.open_mass
        for i in sorted(range(len(values)), key=values.__getitem__, reverse=worst):
            more = min(self.width[i], remaining)
            given[i] += more
            remaining -= more
        return given


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


#: A choice, and the targets of its outcomes with their costs, in units.
Leading = tuple[Choice, list[tuple[int, int]]]


class Below:
    """The tables of a model. `least` are lower bounds of V by state, in parts of ONE, None where
    nothing surely arrives.
    """

    def __init__(
        self, ssp: Any, choices: list[Leading], least: list[int | None], worst: bool
    ) -> None:
        self.goal, self.start = ssp.is_goal.tolist(), ssp.start_index
        self.least, self.worst = least, worst
        own = ssp.state_choices.tolist()
        self.rows = {
            s: choices[own[s] : own[s + 1]]
            for s, value in enumerate(least)
            if value is not None and not self.goal[s]
        }
        self.order = self._order()
        edges = [edge for rows in self.rows.values() for _, ahead in rows for edge in ahead]
        self.reach, self.sums = max((cost for _, cost in edges), default=0), len(edges)

    def _order(self) -> list[int]:
        """States so that outcomes that cost nothing lead to earlier ones."""
        done: dict[int, None] = {}
        begun: set[int] = set()
        stack = list(self.rows)
        while stack:
            state = stack[-1]
            if state in done or state in begun:
                done.setdefault(stack.pop())
                begun.discard(state)
                continue
            begun.add(state)
            ahead = {
                to
                for _, edges in self.rows[state]
                for to, cost in edges
                if cost == 0 and to in self.rows
            }
            if ahead & begun:
                raise OptionError("the checker cannot follow cycles of outcomes that cost nothing")
            stack += ahead - done.keys()
        return list(done)

    def table(self, fractions: tuple[Fraction, ...], last: int) -> list[list[int]]:
        """By level k, up to the last, what is least from the start with k + f left, for each
        fraction f: nature does what is worst for the first.
        """
        if self.sums * (last + 1) * len(fractions) > MOST_SUMS:
            raise OptionError("the checker would need too long for the optimum of this model")
        levels: dict[int, dict[int, list[Any]]] = {}
        found = []
        for level in range(last + 1):
            levels.pop(level - self.reach - 1, None)
            here = levels[level] = {}
            for state in self.order:
                here[state] = self._backed_up(state, level, fractions, levels)
            found.append(self._ahead(self.start, level, fractions, levels))
        return found

    def _backed_up(
        self, state: int, level: int, fractions: tuple[Fraction, ...], levels: Any
    ) -> list[Any]:
        best: list[Any] = [math.inf] * len(fractions)
        for row, edges in self.rows[state]:
            ahead = [self._ahead(to, level - cost, fractions, levels) for to, cost in edges]
            given = row.shares([values[0] for values in ahead], self.worst)
            if any(share and values[0] == math.inf for share, values in zip(given, ahead)):
                continue  # it may lead to where nothing surely arrives
            for i in range(len(fractions)):
                total = sum(share * values[i] for share, values in zip(given, ahead) if share)
                best[i] = min(best[i], total // row.denominator)
        return best

    def _ahead(
        self, state: int, level: int, fractions: tuple[Fraction, ...], levels: Any
    ) -> list[Any]:
        if not self.goal[state] and self.least[state] is None:
            return [math.inf] * len(fractions)
        if level >= 0 and not self.goal[state]:
            values: list[Any] = levels[level][state]
            return values
        over = [math.floor(-(level + f) * ONE) for f in fractions]
        if self.goal[state]:
            return [max(more, 0) for more in over]
        return [int(self.least[state] or 0) + more for more in over]


class _Search:
    """Lines below U between integer budgets, in units, from tables at some fractions."""

    def __init__(self, tables: Below, last: int, alpha: Fraction) -> None:
        self.tables, self.alpha = tables, alpha
        integral = tables.table((ALL, NONE) if tables.worst else (ALL,), last)
        self.found = {ALL: [(row[0], row[-1], row[0]) for row in integral]}
        self.zero = int(tables.least[tables.start] or 0)

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
        rows = self.tables.table((f, NONE, ALL), k)
        self.found[f] = [(here, begin, end) for here, begin, end in rows]

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
    tables: Below, claim: Fraction, alpha: Fraction, error_bound: Fraction, unit: Fraction
) -> None:
    """Prove that w + U(start, w) / alpha >= claim for every budget w from 0 on, in units; those
    beyond the claim need no proof.

    U may lie higher than what is found by no more than the error bound.
    """
    last = max(math.ceil(claim) - 1, 0)
    search = _Search(tables, last, alpha)
    if not tables.worst:  # integer budgets suffice
        for k in range(last + 1):
            _hold(k + search.value(k, NONE) / alpha, claim, error_bound / alpha, k * unit, unit)
        return
    pieces = [(k, NONE, ALL) for k in range(last + 1)]
    while pieces:
        k, x, y = pieces.pop()
        found, at = search.least(k, x, y)
        if found >= claim:
            continue
        if at in (x, y):
            _hold(found, claim, error_bound / alpha, (k + at) * unit, unit)
        # A nearby fraction of few digits does as well.
        near = at.limit_denominator(2**20)
        at = near if x < near < y else at
        if at not in search.found or k >= len(search.found[at]):
            search.look_at(k, at)
        pieces += [(k, x, at), (k, at, y)]


def _hold(
    found: Fraction, claim: Fraction, error_bound: Fraction, budget: Fraction, unit: Fraction
) -> None:
    if found >= claim:
        return
    if claim - found <= error_bound:
        raise OptionError(
            "the checker cannot decide about this optimum: its own bound may be too low"
        )
    raise RefutedError(
        f"no lower bound of {float(claim * unit)!r} on the least CVaR holds: the budget"
        f" {float(budget)!r} allows {float(found * unit)!r}"
    )
