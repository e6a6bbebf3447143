"""Models with intervals, checked in rationals: values that their own equation proves, and the
promise of a policy.

*Above.* If W(s) is at least what the choice claimed may cost, ext over p of sum p (c + W), then W
lies above what the policy costs. With W - w where the budget is spent, the same recursion over the
budget left bounds E[(Z - w)+] of the policy, and w + that / alpha its CVaR, whatever nature does.
*Below.* If L(s) is at most that of every choice, L lies below what any policy costs that arrives.
States without a finite value must be those from which no policy surely arrives, which two players
decide on the graph.

*No CVaR below a claim* (`excess.py`), against an adversarial nature: a budget w = k + f between two
integer ones may then be best, costs being whole numbers of the unit. Let nature keep to what it
does for one fraction f, at the same node of every history. Then E[(Z - k - f')+] of each policy is
a line in f' from 0 to 1, the least of them is concave, and no more than what nature can do: values
at 0, at f and at 1 make two lines below it. Besides, it falls with f', by no more than f' grows.
Where the highest of these lies below the claim for some f', that is the next fraction to look at.
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise
from typing import Any

from tailpath.errors import OptionError, RefutedError
from tailpath.verify.chain import ONE, decimal, exact_costs
from tailpath.verify.distribution import Proof, relative_width
from tailpath.verify.excess import Below, Choice, hold, prove_at_integers, widest
from tailpath.verify.optimum import own_bounds

#: Fractions that the checker looks at before it gives up.
MAX_FRACTIONS = 40
NONE, ALL = Fraction(0), Fraction(1)
#: Pairs of state and budget beyond which a policy is not followed in rationals.
MAX_BUDGET_PAIRS = 200_000


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
        if len(self.found) >= MAX_FRACTIONS:
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


class _Game:
    """The intervals of a model as the decimals they are written with, and what nature makes of
    values.
    """

    def __init__(self, model: Any, nature: str) -> None:
        self.ssp, self.worst = model.inside, nature == "adversarial"
        self.low, self.high = ([*map(decimal, ends.tolist())] for ends in (model.low, model.high))
        self.cost, self.target = exact_costs(self.ssp), self.ssp.outcome_target.tolist()
        self.choices, self.outcomes = (
            [range(first, end) for first, end in pairwise(offsets.tolist())]
            for offsets in (self.ssp.state_choices, self.ssp.choice_outcomes)
        )
        self.rows = [
            integer_choice(self.low[own.start : own.stop], self.high[own.start : own.stop])
            for own in self.outcomes
        ]

    def extreme(self, choice: int, worth: Any) -> Fraction | float:
        """The most, or least, expected worth of the outcomes of a choice; infinite where an outcome
        of infinite worth cannot be avoided.
        """
        row, values = self.rows[choice], [worth(o) for o in self.outcomes[choice]]
        given = [pair for pair in zip(row.shares(values, self.worst), values) if pair[0]]
        if any(value == math.inf for _, value in given):
            return math.inf
        return sum((share * value for share, value in given), Fraction(0)) / row.denominator

    def surely_arriving(self) -> set[int]:
        """The states from which some policy surely arrives, goals included: those that are left
        when whoever can be kept away is taken out.
        """
        goals = {s for s in range(self.ssp.n_states) if self.ssp.is_goal[s]}
        remaining = set(range(self.ssp.n_states))
        while True:
            safe = {
                s: [k for k in self.choices[s] if self._stays(k, remaining)]
                for s in remaining - goals
            }
            near, before = set(goals), -1
            while len(near) > before:
                before = len(near)
                near |= {
                    s for s, rows in safe.items() if any(self._comes_near(k, near) for k in rows)
                }
            if near == remaining:
                return remaining
            remaining = near

    def _avoids(self, choice: int, states: set[int]) -> bool:
        """Whether nature can keep a choice from leading to any of the states."""
        there = [o for o in self.outcomes[choice] if self.target[o] in states]
        others = [self.high[o] for o in self.outcomes[choice] if self.target[o] not in states]
        return not there or (all(self.low[o] == 0 for o in there) and sum(others) >= 1)

    def _comes_near(self, choice: int, near: set[int]) -> bool:
        if self.worst:
            return not self._avoids(choice, near)
        return any(self.target[o] in near for o in self.outcomes[choice])

    def _stays(self, choice: int, remaining: set[int]) -> bool:
        away = {self.target[o] for o in self.outcomes[choice]} - remaining
        return not away if self.worst else self._avoids(choice, away)


def check_robust_expected(solution: Any) -> Proof:
    """Hold the bounds of every state against the equation of the model as given."""
    game = _Game(solution.ssp, solution.nature)
    ssp = game.ssp
    lower, upper = (
        [Fraction(v) if math.isfinite(v) else math.inf for v in side.tolist()]
        for side in (solution.lower, solution.upper)
    )
    arriving = game.surely_arriving()
    for state in range(ssp.n_states):
        name = ssp.states[state]
        if any((side[state] == math.inf) == (state in arriving) for side in (lower, upper)):
            raise RefutedError(
                f"the bounds of {name!r} do not agree with whether a policy is certain to arrive"
                f" from it under {solution.nature} nature"
            )
        if ssp.is_goal[state]:
            if (lower[state], upper[state]) != (0, 0):
                raise RefutedError(f"goal {name!r} is claimed to cost something")
            continue
        if lower[state] == math.inf:
            continue
        above = game.extreme(
            int(solution.choices[state]), lambda o: game.cost[o] + upper[game.target[o]]
        )
        if above > upper[state]:
            raise RefutedError(
                f"the expected cost from {name!r} is claimed to be at most"
                f" {float(upper[state])!r}, which its choice does not prove"
            )
        for choice in game.choices[state]:
            if game.extreme(choice, lambda o: game.cost[o] + lower[game.target[o]]) < lower[state]:
                raise RefutedError(
                    f"the expected cost from {name!r} is claimed to be at least"
                    f" {float(lower[state])!r}, which action {ssp.choice_name(choice)!r} does not"
                    " prove"
                )
    low, high = solution.bounds
    line = (
        f"the least expected cost, {solution.nature} nature, lies in [{low:.15g}, {high:.15g}], and"
        " likewise from all states from which a policy is certain to arrive"
    )
    return Proof((line,), relative_width(low, high))


def check_robust_cvar(solution: Any, expected: Any, alpha: float) -> Proof:
    """Hold both bounds on the least CVaR at alpha, and its policy, against the model as given;
    `expected` is the solution for the mean.
    """
    check_robust_expected(expected)
    low, high = own_bounds(solution, alpha)
    game = _Game(solution.model, solution.nature)
    promise = _check_promise(game, solution, expected, alpha)
    _check_below(game, expected, alpha, Fraction(low))
    whatever = (
        "whatever nature does" if solution.nature == "cooperative" else "against every nature"
    )
    proved = f"no policy has a CVaR below {low:.15g} at alpha {alpha:g} {whatever}", promise
    return Proof(proved, relative_width(low, high))


def _check_below(game: _Game, expected: Any, alpha: float, low: Fraction) -> None:
    """The lower bound, unless the mean proves it."""
    ssp, unit = game.ssp, game.ssp.cost_unit
    if low <= Fraction(float(expected.lower[ssp.start_index])):
        return
    level = ssp.outcome_level.tolist()
    choices = [
        (row, [(game.target[o], level[o]) for o in own])
        for row, own in zip(game.rows, game.outcomes)
    ]
    least, most = (
        [None if math.isinf(v) else math.floor(Fraction(v) / unit * ONE) for v in side.tolist()]
        for side in (expected.lower, expected.upper)
    )
    prove_interval_below(
        Below(ssp, choices, least, game.worst),
        widest(least, most),
        low / unit,
        Fraction(alpha),
        unit,
    )


def _check_promise(game: _Game, solution: Any, expected: Any, alpha: float) -> str:
    """Hold the upper bound on the CVaR of the policy against the model as given."""
    policy, ssp, unit = solution.policy(alpha), game.ssp, game.ssp.cost_unit
    if policy.risk_neutral.tolist() != expected.choices.tolist():
        raise RefutedError("the policy is not risk-neutral once its budget is spent")
    upper = [Fraction(v) / unit if math.isfinite(v) else math.inf for v in expected.upper.tolist()]
    given = solution.budget(alpha)
    # An integer budget is given as the nearest float, and a hair less would be another budget.
    nearest = Fraction(round(Fraction(given) / unit))
    budget = nearest if float(nearest * unit) == given else Fraction(given) / unit
    short = policy.budget - budget  # by which the integer budget of the policy is more
    known: dict[tuple[int, int], Fraction | float] = {}
    stack = [(ssp.start_index, int(policy.budget))]

    def worth(state: int, remaining: int) -> Fraction | float | None:
        """E[(Z - w)+] with so much left, if it is known."""
        if ssp.is_goal[state]:
            return max(Fraction(short - remaining), Fraction(0))
        if remaining > 0:
            return known.get((state, remaining))
        spent: Fraction | float = upper[state] - (remaining - short)
        return spent

    level = ssp.outcome_level.tolist()
    while stack:
        state, remaining = stack[-1]
        if worth(state, remaining) is not None:
            stack.pop()
            continue
        choice = policy.choice_at(state, remaining)
        span = game.outcomes[choice]
        ahead = {o: worth(game.target[o], remaining - level[o]) for o in span}
        missing = [(game.target[o], remaining - level[o]) for o in span if ahead[o] is None]
        if missing:
            stack.extend(missing)
            if len(known) + len(stack) > MAX_BUDGET_PAIRS:
                raise OptionError(
                    f"the checker follows at most {MAX_BUDGET_PAIRS} pairs of state and budget"
                )
            continue
        known[state, remaining] = game.extreme(choice, ahead.__getitem__)
    excess = worth(ssp.start_index, int(policy.budget))
    high = solution.bounds(alpha)[1]
    if excess is None or (budget + excess / Fraction(alpha)) * unit > Fraction(high):
        raise RefutedError(
            f"the policy is claimed to have a CVaR of at most {high!r} at alpha {alpha:g}, which"
            " following it does not prove"
        )
    promise = "under every nature" if game.worst else "under some nature"
    return f"the policy given has a CVaR of at most {high:.15g} at alpha {alpha:g} {promise}"
