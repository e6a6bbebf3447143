"""That no policy has a CVaR below a claim: a table of lower bounds on E[(Z - w)+], in whole
multiples of 2^-BITS, always rounded down.

For each policy `w + E[(Z - w)+] / alpha` is convex in w, with kinks at costs at which it may
arrive; so its least value, the CVaR, is found at one of these, or at w = 0. Budgets from the claim
on need no proof. The pairs (state, budget left) that follow from those budgets are all that is
looked at, or, on a small model, all pairs there are.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from tailpath.errors import OptionError, RefutedError
from tailpath.verify.chain import Row, rows_of
from tailpath.verify.totals import ONE

MOST_BACKUPS = 100_000_000
#: Where zero-cost moves need one another, a level is swept until no bound grows by more than
#: 2^-SETTLED of itself, or so many times.
MOST_SWEEPS, SETTLED = 1_000, 150
#: Up to so many edges times budgets, all pairs are taken without asking which can be reached.
SMALL = 2_000_000


class _Table:
    """Lower bounds by budget and state. `least` bounds V* from below, in units of 2^-BITS; states
    without it, and choices to them, do not count.
    """

    def __init__(self, ssp: Any, least: list[int | None]) -> None:
        model = rows_of(ssp)
        self.goal, self.start = ssp.is_goal.tolist(), ssp.start_index
        self.least, self.unit = least, model.unit
        self.rows: dict[int, list[Row]] = {
            s: [
                model.choice[k]
                for k in range(int(ssp.state_choices[s]), int(ssp.state_choices[s + 1]))
                if all(least[to] is not None for to, _, _ in model.choice[k][1])
                and any(to != s or cost for to, _, cost in model.choice[k][1])
            ]
            for s in range(ssp.n_states)
            if least[s] is not None and not self.goal[s]
        }
        moves = [
            (to, cost) for of in self.rows.values() for _, edges in of for to, _, cost in edges
        ]
        self.zero_cost = any(cost == 0 and not self.goal[to] for to, cost in moves)
        self.edges = len(moves)
        self.reach = max((cost for to, cost in moves if not self.goal[to]), default=0)
        self.levels: dict[int, dict[int, int]] = {}
        self.before: dict[int, tuple[int, int]] = {}

    def budgets(self, last: int) -> tuple[list[int], dict[int, list[int]]]:
        """The budgets to look at, from 1 to `last`, and the states that they need at every budget
        left, in ascending order.
        """
        if last * self.edges <= SMALL:
            known = list(self.rows)
            return list(range(1, last + 1)), dict.fromkeys(range(1, last + 1), known)
        asked = sorted(
            {cost for cost, state in self._spread([0], 1, last) if self.goal[state] and cost > 0}
        )
        pairs: dict[int, list[int]] = {}
        for budget, state in sorted(self._spread(asked, -1, last)):
            if not self.goal[state]:
                pairs.setdefault(budget, []).append(state)
        return asked, pairs

    def _spread(self, amounts: list[int], sign: int, last: int) -> set[tuple[int, int]]:
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
                for to, _, cost in edges:
                    pair = (amount + sign * cost, to)
                    if low <= pair[0] <= last and pair not in found:
                        found.add(pair)
                        waiting.append(pair)
            if steps > MOST_BACKUPS:
                raise OptionError("the checker would need too long for the optimum of this model")
        return found

    def ahead(self, state: int, budget: int) -> int:
        if self.goal[state]:
            return max(-budget, 0) * ONE
        if budget <= 0:
            return int(self.least[state] or 0) - budget * ONE
        return self.levels[budget][state]

    def raise_to(self, budget: int, states: list[int]) -> None:
        """Fill a level; all lower ones that it needs must be there."""
        while self.levels and (oldest := next(iter(self.levels))) < budget - self.reach:
            del self.levels[oldest]
        if not self.zero_cost:
            self.levels[budget] = {s: self._backed_up(s, budget) for s in states}
            return
        # Excess falls by 1 for a unit of budget at most, and never below 0: a bound to begin with
        # where zero-cost moves need one another.
        begin = {s: self.before.get(s, (0, int(self.least[s] or 0))) for s in states}
        self.levels[budget] = {
            s: max(value - (budget - level) * ONE, 0) for s, (level, value) in begin.items()
        }
        for _ in range(MOST_SWEEPS):
            # Every sweep goes from lower bounds to lower bounds, so that any of them may be the
            # last.
            after = {s: max(self._backed_up(s, budget), self.levels[budget][s]) for s in states}
            settled = all(
                value - self.levels[budget][s] <= value >> SETTLED for s, value in after.items()
            )
            self.levels[budget] = after
            if settled:
                break
        self.before.update((s, (budget, value)) for s, value in self.levels[budget].items())

    def _backed_up(self, state: int, budget: int) -> int:
        return min(
            sum(w * self.ahead(to, budget - cost) for to, w, cost in edges) // denominator
            for denominator, edges in self.rows[state]
        )


def prove_below(
    ssp: Any, least: list[int | None], most: list[int | None], claim: Fraction, alpha: Fraction
) -> None:
    """Prove that w + U(start, w) / alpha >= claim for every budget w, all in units.

    `least` and `most` enclose V*. A run counts V* once, so U may lie higher than what is found by
    no more than the widest of these.
    """
    error_bound = max(
        (high - low for low, high in zip(least, most) if low is not None and high is not None),
        default=0,
    )
    table = _Table(ssp, least)
    asked, pairs = table.budgets(math.ceil(claim) - 1)
    if sum(len(states) for states in pairs.values()) * table.edges > MOST_BACKUPS * max(
        len(table.rows), 1
    ):
        raise OptionError("the checker would need too long for the optimum of this model")
    _hold(table, 0, claim, alpha, error_bound)
    wanted = set(asked)
    for budget, states in pairs.items():
        table.raise_to(budget, states)
        if budget in wanted:
            _hold(table, budget, claim, alpha, error_bound)


def _hold(table: _Table, budget: int, claim: Fraction, alpha: Fraction, error_bound: int) -> None:
    """One budget against the claim."""
    found = budget + Fraction(table.ahead(table.start, budget), ONE) / alpha
    if found >= claim:
        return
    if table.zero_cost:
        raise OptionError(
            "the checker cannot decide about this optimum: where moves cost nothing, its own bound"
            " may be too low"
        )
    # Every backup rounds down by less than one part of the scale.
    if claim - found <= Fraction(error_bound + budget + 2, ONE) / alpha:
        raise OptionError(
            "the checker cannot decide about this optimum: it is too small for the scale of the"
            " checker"
        )
    raise RefutedError(
        f"no lower bound of {float(claim * table.unit)!r} on the least CVaR holds: budget {budget}"
        f" allows {float(found * table.unit)!r}"
    )
