"""The least expected total where nature hands out what is not known of the probabilities: V = min
over rows of ext over p of sum p (c + V).

Fixed shares make an ordinary problem (`optimum.py`); against its values nature may do better, and
the shares become those. With an adversarial nature this is strategy iteration (Hoffman, Karp 1966),
with a cooperative one policy iteration; either way values move in one direction, strict gains only,
and it ends. Every policy that never ends must cost infinitely much, whatever nature does, and
against an adversarial nature some policy must surely end.

Bounds come from the optimum's own equation, with all that rounding may do counted against them:
values that are at least their backup under the rows of a policy lie above what it costs, whatever
nature does; values that no row's backup is below lie below the optimum. They are looked for a
little above and below the values found: by a share of them or, where steps may be free, with every
step a little dearer and cheaper.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tailpath.dp.backup import (
    Decisions,
    Slack,
    best_rows,
    extreme_holds,
    improve_shares,
    row_means,
)
from tailpath.dp.bounds import Bounds, unproved
from tailpath.dp.optimum import Optimum, least_total, policy_chain
from tailpath.dp.sweeps import MAX_ROUNDS, Sweeps
from tailpath.graph import FloatArray, owners
from tailpath.kernels.jit import frozen
from tailpath.kernels.rounding import ROUNDOFF, SAME_VALUE, SETTLED
from tailpath.model.cost_units import as_fraction

#: Bounds are looked for this share away from the values, and so often so many times as far.
NEAR, FARTHER = 8 * ROUNDOFF, 2.0
TRIES = 32
#: After so many tries they are found, as a rule.
GUESS = 8
#: No game of ours has taken more than a dozen strategies.
MAX_STRATEGIES = 1_000


class Game(NamedTuple):
    """Decisions against nature: with any probabilities inside the intervals, which begin at `low`;
    `cost` is by outcome.
    """

    decisions: Decisions
    low: FloatArray
    slack: Slack
    cost: FloatArray
    nature: int

    def worth(self, value: FloatArray) -> FloatArray:
        """What every outcome is worth: its cost, and the value of where it leads."""
        return np.asarray(self.cost + np.append(value, 0.0)[self.decisions.target])

    def against(self, probability: FloatArray) -> Decisions:
        """The problem that is left if nature has decided."""
        p, cost = frozen(probability, self.cost)
        rate = row_means(self.decisions.choice_outcomes, p, cost)
        return self.decisions._replace(probability=p, rate=next(frozen(rate)))

    def exact_rates(self, probability: FloatArray) -> list[Fraction]:
        """The expected costs of rows in rationals."""
        rates = [Fraction(0)] * len(self.decisions.rate)
        mass = [Fraction(0)] * len(self.decisions.rate)
        for row, p, c in zip(
            owners(self.decisions.choice_outcomes).tolist(),
            probability.tolist(),
            self.cost.tolist(),
        ):
            rates[row] += as_fraction(p) * as_fraction(c)
            mass[row] += as_fraction(p)
        return [rate / total for rate, total in zip(rates, mass)]


class GameOptimum(NamedTuple):
    """The best row of every state, values with bounds, the probabilities of nature's best answer to
    them, and how many strategies it took.
    """

    chosen: NDArray[np.int64]
    bounds: Bounds
    probability: FloatArray
    iterations: int


class _Nature:
    """Who answers to values, and checks what they prove. The outcomes of rows stay in the order in
    which they were last ordered: the next is much the same.
    """

    def __init__(self, game: Game) -> None:
        self.game = game
        width = game.slack.gap.copy()
        slack = game.slack._replace(gap=width)
        outcome, low = np.arange(len(width)), game.low.copy()
        self.rows = game.decisions.choice_outcomes, outcome, low, slack, game.nature

    def answer(self, decisions: Decisions, value: FloatArray) -> Decisions | None:
        """The problem that is left if nature decides by these values; None if it gains nothing."""
        worth, probability = self.game.worth(value), decisions.probability.copy()
        present = row_means(decisions.choice_outcomes, decisions.probability, next(frozen(worth)))
        if improve_shares(self.rows, worth, present, SAME_VALUE, probability):
            return self.game.against(probability)
        return None

    def proves(self, value: FloatArray, chosen: NDArray[np.int64], side: int) -> bool:
        """Whether values are proved to lie below the optimum (`side` -1), or above what the policy
        `chosen` costs at most (1).
        """
        first = self.game.decisions.state_choices
        counted = (chosen, chosen + 1) if side > 0 else (first[:-1], first[1:])
        return bool(
            extreme_holds(self.rows, self.game.worth(value), tuple(frozen(*counted)), value, side)
        )


def game_optimum(game: Game) -> GameOptimum:
    """V with bounds. Strategies are swept; where that leaves the bounds wide, the last one is
    solved with all that proves it, and so are those that follow.
    """
    nature, (sweeps, first) = _Nature(game), Sweeps.outwards(game.decisions)

    def swept(decisions: Decisions, before: Optimum | None) -> Optimum:
        value, rounds = sweeps.run(decisions, before.bounds.value if before else first, SETTLED)
        chosen = best_rows(decisions, np.append(value, 0.0))
        if rounds > MAX_ROUNDS:
            value[:] = np.inf
        return Optimum(chosen, unproved(value, "value iteration"), rounds)

    def solved(decisions: Decisions, _: Optimum | None) -> Optimum:
        return least_total(decisions, partial(game.exact_rates, decisions.probability))

    decisions, found, strategies = _settled(nature, game.decisions, swept)
    lower, upper = (_by_share(nature, found, side) for side in (-1, 1))
    if Bounds(found.bounds.value, lower, upper).is_wide:
        decisions, found, more = _settled(nature, decisions, solved)
        strategies += more - 1
        lower, upper = (
            _by_steps(nature, decisions, found, side) if np.isinf(bound).any() else bound
            for side, bound in ((side, _by_share(nature, found, side)) for side in (-1, 1))
        )
    method = f"strategy iteration, {found.bounds.method}"
    bounds = Bounds(found.bounds.value, np.maximum(lower, 0.0), upper, method)
    return GameOptimum(found.chosen, bounds, decisions.probability, strategies)


def _settled(
    nature: _Nature, decisions: Decisions, solve: Callable[[Decisions, Optimum | None], Optimum]
) -> tuple[Decisions, Optimum, int]:
    """The problem in which nature has nothing left to gain, its optimum, and how many strategies it
    took. `solve` takes a problem and the optimum of the one before.
    """
    found, strategies = solve(decisions, None), 1
    while strategies < MAX_STRATEGIES and np.isfinite(found.bounds.value).all():
        other = nature.answer(decisions, found.bounds.value)
        if other is None:
            break
        decisions, found = other, solve(other, found)
        strategies = strategies + 1
    return decisions, found, strategies


def _by_share(nature: _Nature, found: Optimum, side: int) -> FloatArray:
    """Values that are proved to lie below the optimum (`side` -1), or above what the policy found
    costs (1): a share away from those found. Infinite if that proves nothing.
    """
    if not np.isfinite(found.bounds.value).all():
        return np.full(len(found.chosen), side * np.inf)

    def away(farther: int) -> FloatArray:
        return np.asarray(found.bounds.value * (1 + side * NEAR * FARTHER**farther))

    def holds(farther: int) -> bool:
        return nature.proves(away(farther), found.chosen, side)

    # What holds at one share holds farther away: the nearest is looked for from a guess on.
    nearest = next(filter(holds, range(GUESS, TRIES)), TRIES)
    while 0 < nearest <= GUESS and holds(nearest - 1):
        nearest -= 1
    return away(nearest) if nearest < TRIES else np.full(len(found.chosen), side * np.inf)


def _by_steps(nature: _Nature, decisions: Decisions, found: Optimum, side: int) -> FloatArray:
    """Such values with every step a little cheaper, or dearer."""
    p, rows = decisions.probability, np.arange(len(decisions.rate))
    if side > 0:  # steps of the policy alone: another that ties may take fewer
        rows, decisions = found.chosen, policy_chain(decisions, found.chosen)

    def exact_rates(more: float) -> list[Fraction]:
        rates = nature.game.exact_rates(p)
        return [rates[row] + as_fraction(more) for row in rows.tolist()]

    size = side * NEAR * float(found.bounds.value.max(initial=0.0))
    for farther in range(0, TRIES, 2):  # each of these takes long
        more = size * FARTHER**farther
        other = least_total(
            decisions._replace(rate=next(frozen(decisions.rate + more))), partial(exact_rates, more)
        )
        value: FloatArray = other.bounds.value
        if np.isfinite(value).all() and nature.proves(value, found.chosen, side):
            return value
    return np.full(len(found.chosen), side * np.inf)
