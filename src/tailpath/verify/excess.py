"""That no policy has a CVaR below a claim: tables of lower bounds on the least E[(Z - w)+], in
whole multiples of 2^-BITS, always rounded down. Known probabilities are intervals of which nothing
is open.

For each policy `w + E[(Z - w)+] / alpha` is convex in w, with kinks at costs at which it may
arrive; so its least value, the CVaR, is found at one of these, or at w = 0. Budgets from the claim
on need no proof. The pairs (state, budget left) that follow from those budgets are all that is
looked at, or, on a small model, all pairs there are.

Against an adversarial nature a budget between two integer ones may be best (`intervals.py`);
a cooperative one makes all a minimum, as if there were more policies.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from operator import mul
from typing import Any, NamedTuple

from tailpath.errors import OptionError, RefutedError
from tailpath.verify.chain import ONE, components, rows_of

#: Sums over the outcomes of a choice beyond which the checker gives up, without and with nature.
MAX_BACKUPS, MAX_SUMS = 100_000_000, 3_000_000
#: Where zero-cost moves lead round, a level is swept until no bound grows by more than 2^-SETTLED
#: of itself, or this many times.
MAX_SWEEPS, SETTLED = 1_000, 150
#: Up to this many edges times budgets, all pairs are taken without asking which can be reached.
ALL_PAIRS_UP_TO = 2_000_000
#: A lower bound on what never arriving costs, beyond all costs that count.
NEVER = ONE << 4000
#: What the checker may be off by besides, in units: every backup rounds down by less than 1 / ONE.
ROUNDED = Fraction(1, 10**100)
WHOLE = Fraction(1)
Values = dict[int, int]


class Choice(NamedTuple):
    """Low probabilities, the width of each interval, and the mass left to distribute, all over
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


#: A choice, and the targets of its outcomes with their costs, in units.
Leading = tuple[Choice, list[tuple[int, int]]]


class LevelBounds:
    """Lower bounds with k + f units left, by integer level k and state, for one fraction f."""

    def __init__(self, model: Below, fraction: Fraction) -> None:
        self.model, self.rows = model, model.rows
        self.offset = math.floor(-fraction * ONE)
        self.levels: dict[int, Values] = {}

    def ahead(self, state: int, level: int) -> int:
        """What is least from a state with so much left."""
        if level >= 0 and state in self.rows:
            return self.levels[level][state]
        over = self.offset - level * ONE
        return max(over, 0) if self.model.goal[state] else self.model.floor[state] + over


class Below:
    """The tables of a model. `least` are lower bounds of V by state, in parts of ONE, None where
    nothing surely arrives; `worst` says whether nature is against us.
    """

    def __init__(
        self, ssp: Any, choices: list[Leading], least: list[int | None], worst: bool = False
    ) -> None:
        self.goal, self.start = ssp.is_goal.tolist(), ssp.start_index
        self.worst = worst
        self.floor = [NEVER if value is None else value for value in least]
        own = ssp.state_choices.tolist()
        self.rows = {
            s: [row for row in choices[own[s] : own[s + 1]] if self._matters(s, *row)]
            for s, value in enumerate(least)
            if value is not None and not self.goal[s]
        }
        edges = [edge for rows in self.rows.values() for _, ahead in rows for edge in ahead]
        self.reach, self.edges = max((cost for _, cost in edges), default=0), len(edges)
        self.open = any(row.open_mass for rows in self.rows.values() for row, _ in rows)
        zero_cost = [
            [to for _, ahead in self.rows.get(s, ()) for to, cost in ahead if cost == 0]
            for s in range(len(self.goal))
        ]
        label = components(zero_cost)
        #: Outcomes that cost nothing lead to earlier states, unless they lead round.
        self.order = sorted(self.rows, key=label.__getitem__)
        self.cyclic = any(
            label[to] == label[s] for s, ahead in enumerate(zero_cost) for to in ahead
        )
        if self.cyclic and worst:
            raise OptionError("the checker cannot follow cycles of outcomes that cost nothing")

    def _matters(self, state: int, row: Choice, edges: list[tuple[int, int]]) -> bool:
        """Whether a choice may arrive: it does not lead to where nothing surely does, and not only
        to itself at no cost.
        """
        stays = all(self.floor[to] < NEVER or not w for w, (to, _) in zip(row.low, edges))
        return stays and any(to != state or cost for to, cost in edges)

    def budgets(self, last: int) -> tuple[set[int], dict[int, list[int]]]:
        """The budgets to look at, from 1 to `last`, and the states that they need at every budget
        left, in order.
        """
        every = range(1, last + 1)
        if self.worst or last * self.edges <= ALL_PAIRS_UP_TO:
            return set(every), dict.fromkeys(every, self.order)
        asked = {cost for cost, state in self._spread({0}, 1, last) if self.goal[state]} - {0}
        needed: dict[int, set[int]] = {}
        for budget, state in self._spread(asked, -1, last):
            needed.setdefault(budget, set()).add(state)
        return asked, {
            budget: [s for s in self.order if s in needed[budget]] for budget in sorted(needed)
        }

    def _spread(self, amounts: set[int], sign: int, last: int) -> set[tuple[int, int]]:
        """The pairs of amount and state that the start can reach: budgets left (sign -1) above 0,
        or costs so far (1) up to `last`.
        """
        found = {(amount, self.start) for amount in amounts}
        waiting, steps = list(found), 0
        low = 1 if sign < 0 else 0
        while waiting:
            amount, state = waiting.pop()
            for _, edges in self.rows.get(state, ()):
                steps += len(edges)
                for to, cost in edges:
                    pair = (amount + sign * cost, to)
                    if low <= pair[0] <= last and pair not in found:
                        found.add(pair)
                        waiting.append(pair)
            if steps > MAX_BACKUPS:
                raise _too_long()
        return found

    def table(
        self, fractions: tuple[Fraction, ...], pairs: dict[int, list[int]]
    ) -> Iterator[tuple[int, list[int]]]:
        """The levels one after the other, each with what is least from the start, for each fraction
        f, with k + f left: nature does what is worst for the first. `pairs` are the states needed
        at every budget k + 1.
        """
        sums = sum(map(len, pairs.values())) * self.edges * len(fractions)
        if sums > (MAX_SUMS if self.open else MAX_BACKUPS) * max(len(self.rows), 1):
            raise _too_long()
        tables = [LevelBounds(self, fraction) for fraction in fractions]
        before = {s: (-1, self.floor[s]) for s in self.rows}
        for level, states in ((budget - 1, states) for budget, states in pairs.items()):
            for table in tables:
                for old in [old for old in table.levels if old < level - self.reach]:
                    del table.levels[old]
                table.levels[level] = {}
            if self.cyclic:
                self._sweep(tables[0], level, states, before)
            else:
                for state in states:
                    found = self._backed_up(state, level, tables)
                    for table, value in zip(tables, found):
                        table.levels[level][state] = value
            if self.goal[self.start] or self.start in tables[0].levels[level]:
                yield level, [table.ahead(self.start, level) for table in tables]

    def _backed_up(self, state: int, level: int, tables: list[LevelBounds]) -> list[int]:
        """What is least at a state, for each fraction."""
        ahead, rows = tables[0].ahead, self.rows[state]
        found, given = [], []
        for row, edges in rows:
            values = [ahead(to, level - cost) for to, cost in edges]
            given.append(row.shares(values, self.worst) if row.open_mass else row.low)
            found.append(sum(map(mul, given[-1], values)) // row.denominator)
        best = [min(found)]
        for table in tables[1:]:
            totals = [
                sum(w * table.ahead(to, level - cost) for w, (to, cost) in zip(shares, edges))
                for shares, (_, edges) in zip(given, rows)
            ]
            best.append(min(total // row.denominator for total, (row, _) in zip(totals, rows)))
        return best

    def _sweep(
        self, table: LevelBounds, level: int, states: list[int], before: dict[int, tuple[int, int]]
    ) -> None:
        """Fill a level where zero-cost moves lead round; `before` are the last levels and values.

        Excess falls by 1 for a unit of budget at most, and never below 0: a bound to begin with.
        """
        here = table.levels[level]
        for s in states:
            here[s] = max(before[s][1] - (level - before[s][0]) * ONE, 0)
        for _ in range(MAX_SWEEPS):
            # Every sweep goes from lower bounds to lower bounds, so that any may be the last.
            after = {s: max(self._backed_up(s, level, [table])[0], here[s]) for s in states}
            settled = all(value - here[s] <= value >> SETTLED for s, value in after.items())
            here.update(after)
            if settled:
                break
        before.update((s, (level, value)) for s, value in here.items())


def prove_below(
    ssp: Any, least: list[int | None], most: list[int | None], claim: Fraction, alpha: Fraction
) -> None:
    """Prove that w + U(start, w) / alpha >= claim for every budget w, all in units, of a model with
    known probabilities; `least` and `most` enclose V*.
    """
    rows, unit = rows_of(ssp)
    choices = [
        (Choice(denominator, [w for _, w, _ in row], [], 0), [(to, cost) for to, _, cost in row])
        for denominator, row in rows
    ]
    tables = Below(ssp, choices, least)
    prove_at_integers(tables, widest(least, most), claim, alpha, unit)


def widest(least: list[int | None], most: list[int | None]) -> Fraction:
    """A run counts V* once, so U may lie higher than what is found by no more than the widest of
    its bounds, in units.
    """
    pairs = zip(least, most)
    widths = [high - low for low, high in pairs if low is not None and high is not None]
    return Fraction(max(widths, default=0), ONE) + ROUNDED


def prove_at_integers(
    tables: Below, error_bound: Fraction, claim: Fraction, alpha: Fraction, unit: Fraction
) -> None:
    """Prove the claim for integer budgets: others need no proof but against nature."""
    off = math.inf if tables.cyclic else error_bound / alpha
    asked, pairs = tables.budgets(math.ceil(claim) - 1)
    hold(LevelBounds(tables, WHOLE).ahead(tables.start, -1) / (ONE * alpha), claim, 0, unit, off)
    for level, (value,) in tables.table((WHOLE,), pairs):
        if level + 1 in asked:
            hold(level + 1 + value / (ONE * alpha), claim, level + 1, unit, off)


def hold(
    found: Fraction, claim: Fraction, budget: Any, unit: Fraction, error_bound: Fraction | float
) -> None:
    """Hold w + U(start, w) / alpha, as found for a budget w, against the claim, all in units: it
    may lie higher by no more than the error bound.
    """
    if found >= claim:
        return
    if claim - found <= error_bound:
        raise OptionError(
            "the checker cannot decide about this optimum: its own bound may be too low, or too"
            " small for the scale of the checker"
        )
    raise RefutedError(
        f"no lower bound of {float(claim * unit)!r} on the least CVaR holds: the budget"
        f" {float(budget * unit)!r} allows {float(found * unit)!r}"
    )


def _too_long() -> OptionError:
    return OptionError("the checker would take too long for the optimum of this model")
