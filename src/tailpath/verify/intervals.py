"""Models with intervals, checked in rationals: values that their own equation proves, and the promise of a policy.

*Above.* If W(s) is at least what the choice claimed may cost, ext over p of sum p (c + W), then W lies above what the policy costs. With W - w
where the budget is spent, the same recursion over the budget left bounds E[(Z - w)+] of the policy, and w + that / alpha its CVaR, whatever nature
does.
*Below.* If L(s) is at most that of every choice, L lies below what any policy costs that arrives.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from tailpath.errors import OptionError, RefutedError
from tailpath.verify.chain import decimal
from tailpath.verify.distribution import Proof

#: Pairs of state and budget beyond which a policy is not followed in rationals.
MOST_PAIRS = 200_000


class _Game:
    """The intervals of a model as the decimals they are written with, and what nature makes of values."""

    def __init__(self, model: Any, nature: str) -> None:
        self.model, self.ssp, self.worst = model, model.inside, nature == "adversarial"
        self.low, self.high = ([decimal(end) for end in ends.tolist()] for ends in (model.low, model.high))
        unit = self.ssp.cost_unit
        levels = None if unit is None else self.ssp.outcome_level.tolist()
        self.cost = [decimal(c) for c in self.ssp.outcome_cost.tolist()] if levels is None else [unit * level for level in levels]

    def extreme(self, choice: int, worth: Any) -> Fraction | float:
        """The most, or least, expected worth of the outcomes of a choice; infinite where an outcome of infinite worth cannot be avoided."""
        span = range(int(self.ssp.choice_outcomes[choice]), int(self.ssp.choice_outcomes[choice + 1]))
        least, most = [self.low[o] for o in span], [self.high[o] for o in span]
        if least == most:  # known, but for the rounding of their sum
            whole = sum(least)
            least = most = [p / whole for p in least]
        rest, total = 1 - sum(least), Fraction(0)
        values = [worth(o) for o in span]
        for i in sorted(range(len(values)), key=lambda i: values[i], reverse=self.worst):
            share = min(most[i] - least[i], max(rest, Fraction(0)))
            rest -= share
            if (p := least[i] + share) > 0:
                if values[i] == math.inf:
                    return math.inf
                total += p * values[i]
        return total

    def choices(self, state: int) -> range:
        return range(int(self.ssp.state_choices[state]), int(self.ssp.state_choices[state + 1]))

    def target(self, outcome: int) -> int:
        return int(self.ssp.outcome_target[outcome])


def check_robust_expected(solution: Any) -> Proof:
    """Hold the bounds of every state against the equation of the model as given."""
    game = _Game(solution.model, solution.nature)
    ssp = game.ssp
    lower, upper = ([Fraction(v) if math.isfinite(v) else math.inf for v in side.tolist()] for side in (solution.lower, solution.upper))
    for state in range(ssp.n_states):
        name = ssp.states[state]
        if ssp.is_goal[state]:
            if (lower[state], upper[state]) != (0, 0):
                raise RefutedError(f"goal {name!r} is said to cost something")
            continue
        if lower[state] == math.inf:
            continue
        above = game.extreme(int(solution.choices[state]), lambda o: game.cost[o] + upper[game.target(o)])
        if above > upper[state]:
            raise RefutedError(
                f"the expected cost from {name!r} is said to be at most {float(upper[state])!r}, which its choice does not prove"
            )
        for choice in game.choices(state):
            if game.extreme(choice, lambda o: game.cost[o] + lower[game.target(o)]) < lower[state]:
                raise RefutedError(
                    f"the expected cost from {name!r} is said to be at least {float(lower[state])!r}, which action"
                    f" {ssp.choice_name(choice)!r} does not prove"
                )
    low, high = solution.bounds
    line = f"the least expected cost, {solution.nature} nature, lies in [{low:.15g}, {high:.15g}], and likewise from all states that surely arrive"
    return Proof((line,), (high - low) / high if high > 0 else 0.0)


def check_promise(solution: Any, expected: Any, alpha: float) -> Proof:
    """Hold the upper bound on the CVaR of the policy for alpha against the model as given; `expected` is the solution for the mean."""
    check_robust_expected(expected)
    game, policy = _Game(solution.model, solution.nature), solution.policy(alpha)
    ssp, unit = game.ssp, game.ssp.cost_unit
    if policy.risk_neutral.tolist() != expected.choices.tolist():
        raise RefutedError("the policy is not that of least expected cost once its budget is spent")
    upper = [Fraction(v) / unit if math.isfinite(v) else math.inf for v in expected.upper.tolist()]
    budget = Fraction(solution.budget(alpha)) / unit
    short = policy.budget - budget  # what the whole budget that the policy counts is more than the real one
    known: dict[tuple[int, int], Fraction | float] = {}
    stack = [(ssp.start_index, int(policy.budget))]

    def worth(state: int, left: int) -> Fraction | float | None:
        """E[(Z - w)+] with so much left, if it is known."""
        if ssp.is_goal[state]:
            return max(Fraction(short - left), Fraction(0))
        if left > 0:
            return known.get((state, left))
        spent: Fraction | float = upper[state] - (left - short)
        return spent

    level = ssp.outcome_level.tolist()
    while stack:
        state, left = stack[-1]
        if worth(state, left) is not None:
            stack.pop()
            continue
        choice = policy.choice_at(state, left)
        span = range(int(ssp.choice_outcomes[choice]), int(ssp.choice_outcomes[choice + 1]))
        ahead = {o: worth(game.target(o), left - level[o]) for o in span}
        missing = [(game.target(o), left - level[o]) for o in span if ahead[o] is None]
        if missing:
            stack.extend(missing)
            if len(known) + len(stack) > MOST_PAIRS:
                raise OptionError(f"the checker follows at most {MOST_PAIRS} pairs of state and budget")
            continue
        known[state, left] = game.extreme(choice, ahead.__getitem__)
    excess = worth(ssp.start_index, int(policy.budget))
    high = solution.bounds(alpha)[1]
    if excess is None or (budget + excess / Fraction(alpha)) * unit > Fraction(high):
        raise RefutedError(f"the policy is said to have a CVaR of at most {high!r} at alpha {alpha:g}, which following it does not prove")
    promise = "under every nature" if game.worst else "under some nature"
    return Proof((f"the policy given has a CVaR of at most {high:.15g} at alpha {alpha:g} {promise}",), 0.0)
