"""The least expected total where nature hands out what is not known of the probabilities: V = min
over rows of ext over p of sum p (c + V).

Fixed shares make an ordinary problem (`optimum.py`); against its values nature may do better, and
the shares become those. With an adversarial nature this is strategy iteration (Hoffman, Karp 1966),
with a cooperative one policy iteration; either way values move in one direction, strict gains only,
and it ends. Every policy that never ends must cost infinitely much, whatever nature does, and
against an adversarial nature some policy must surely end.

Bounds come from the optimum's own equation, with all that rounding may do counted against them:
values that are at least their backup, under some row of every state, lie above the optimum; values
that no row's backup is below lie below it. They are looked for a little above and below the values
found: by a share of them or, where steps may be free, with every step a little dearer and cheaper.
"""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tailpath.dp.backup import Decisions, Spread, extreme_defect, extreme_rows
from tailpath.dp.bounds import Bounds, FloatArray
from tailpath.dp.optimum import least_total
from tailpath.dp.sweeps import MOST_ROUNDS, Sweeps
from tailpath.graph import owners
from tailpath.kernels.jit import frozen
from tailpath.kernels.rounding import SAME_VALUE, SETTLED, UNIT
from tailpath.model.cost_units import as_fraction

#: Bounds are looked for this share away from the values, and so often so many times as far.
NEAR, FARTHER, TRIES = 8 * UNIT, 4.0, 16
#: After so many tries they are found, as a rule.
GUESS = 4
#: No game of ours has taken more than a dozen strategies.
MOST_STRATEGIES = 1_000


class Game(NamedTuple):
    """Decisions against nature. `given` has any probabilities inside the intervals, which begin at
    `low`; `cost` is by outcome.
    """

    given: Decisions
    low: FloatArray
    spread: Spread
    cost: FloatArray
    nature: int

    def responded(self, value: FloatArray) -> tuple[FloatArray, FloatArray]:
        """What every row is worth if states are worth `value`, and the probabilities that nature
        gives it then.
        """
        worth = self.worth(value)
        best, probability = np.empty(len(self.given.rate)), np.empty(len(worth))
        extreme_rows(
            *frozen(self.given.choice_outcomes, self.low),
            self.spread,
            self.nature,
            worth,
            best,
            probability,
        )
        return best, probability

    def worth(self, value: FloatArray) -> FloatArray:
        """What every outcome is worth: its cost, and the value of where it leads."""
        return np.asarray(self.cost + np.append(value, 0.0)[self.given.target])

    def sums(self, terms: FloatArray) -> FloatArray:
        """The sum of a term per outcome over every row."""
        return np.asarray(np.add.reduceat(terms, self.given.choice_outcomes[:-1]))

    def against(self, probability: FloatArray) -> Decisions:
        """The problem that is left if nature has decided."""
        rate = self.sums(probability * self.cost)
        return self.given._replace(probability=next(frozen(probability)), rate=next(frozen(rate)))

    def exact_rates(self, probability: FloatArray) -> list[Fraction]:
        """The expected costs of rows in rationals."""
        rates = [Fraction(0)] * len(self.given.rate)
        mass = [Fraction(0)] * len(self.given.rate)
        for row, p, c in zip(
            owners(self.given.choice_outcomes).tolist(), probability.tolist(), self.cost.tolist()
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


def game_optimum(game: Game) -> GameOptimum:
    """V with bounds. Strategies on the way are swept, and only the last is solved with all that
    proves it.
    """
    probability, strategies, proved = np.array(game.given.probability), 1, False
    row, (sweeps, value) = owners(game.given.choice_outcomes), Sweeps.outwards(game.given)
    for _ in range(MOST_STRATEGIES):
        now = probability.copy()
        given = game.against(now)
        if not proved:
            value, rounds = sweeps.run(given, value, SETTLED)
            proved = rounds > MOST_ROUNDS or not np.isfinite(value).all()
        if proved:
            found = least_total(given, lambda now=now: game.exact_rates(now))  # type: ignore[misc]
            value = found.bounds.value
        best, answer = game.responded(value)
        gain = game.nature * (best - game.sums(probability * game.worth(value)))
        better = (gain > SAME_VALUE * np.abs(best))[row]
        if better.any():
            probability[better] = answer[better]
            strategies += 1
        elif proved:
            break
        else:
            proved = True
    lower, upper = _bound(game, value, probability, -1), _bound(game, value, probability, 1)
    bounds = Bounds(
        value, np.maximum(lower, 0.0), upper, f"strategy iteration, {found.bounds.method}"
    )
    return GameOptimum(found.chosen, bounds, probability, strategies)


def _bound(game: Game, value: FloatArray, probability: FloatArray, side: int) -> FloatArray:
    """Values that are proved to lie above the optimum (`side` 1) or below it (-1)."""

    def away(farther: int) -> FloatArray:
        return np.asarray(value * (1 + side * NEAR * FARTHER**farther))

    # What holds at one share holds farther away: the nearest is looked for from a guess on.
    found = next((k for k in range(GUESS, TRIES) if _holds(game, away(k), side)), TRIES)
    while 0 < found <= GUESS and _holds(game, away(found - 1), side):
        found -= 1
    if found < TRIES:
        return away(found)
    given, size = game.against(probability), float(value.max(initial=0.0))
    share = NEAR
    for _ in range(TRIES):
        dearer = side * share * size
        other = least_total(
            given._replace(rate=next(frozen(given.rate + dearer))),
            lambda: game.exact_rates(probability),
        )
        if np.isfinite(other.bounds.value).all() and _holds(game, other.bounds.value, side):
            return np.asarray(other.bounds.value)
        share *= FARTHER
    return np.full_like(value, side * np.inf)


def _holds(game: Game, value: FloatArray, side: int) -> bool:
    given = game.given
    rows = frozen(given.choice_outcomes, game.low)
    return bool(
        extreme_defect(
            *rows, game.spread, game.nature, game.worth(value), value, given.state_choices, side
        )
        <= 0.0
    )
