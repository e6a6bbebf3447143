"""The least expected total where nature hands out what is not known of the probabilities: V = min
over rows of ext over p of sum p (c + V).

Fixed shares make an ordinary problem (`optimum.py`); against its values nature may do better, and
the shares become those. With an adversarial nature this is strategy iteration (Hoffman, Karp 1966),
with a cooperative one policy iteration; either way values move in one direction, strict gains only,
and it ends. Every policy that never ends must cost infinitely much, whatever nature does, and
against an adversarial nature some policy must surely end.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tailpath.dp.backup import Slack, improve_shares
from tailpath.dp.optimum import Optimum, optimum
from tailpath.graph import FloatArray, Transitions
from tailpath.kernels.jit import Array
from tailpath.kernels.rounding import SAME_VALUE

#: More strategies than any game needs: those seen so far took a dozen at most.
MAX_STRATEGIES = 1_000


class Game(NamedTuple):
    """Rows by state against nature: with any probabilities inside the intervals, which begin at
    `low`. Those of the rows lie inside.
    """

    rows: Transitions
    low: FloatArray
    slack: Slack
    nature: int

    def worth(self, value: FloatArray) -> FloatArray:
        """The cost of every outcome plus the value of its target: (outcomes,)."""
        return np.asarray(self.rows.cost + np.append(value, 0.0)[self.rows.target])

    def intervals(self) -> tuple[Array, Array, FloatArray, Slack, int]:
        """The first arguments of `extreme_value`, with an outcome for a target: it sorts them, and
        the next order is much the same.
        """
        gap = self.slack.gap.copy()
        slack, low = self.slack._replace(gap=gap), self.low.copy()
        return self.rows.row_start, np.arange(len(gap)), low, slack, self.nature


def game_optimum(game: Game) -> tuple[Optimum, FloatArray]:
    """V, a policy that attains it, and the probabilities of nature's best answer."""
    intervals, rows, strategies = game.intervals(), game.rows, 0
    while True:
        found, strategies = optimum(rows, rows.rate), strategies + 1
        worth, probability = game.worth(found.value), rows.probability.copy()
        present = rows.sums(rows.probability * worth)
        if strategies == MAX_STRATEGIES or not np.isfinite(found.value).all():
            break
        if not improve_shares(intervals, worth, present, SAME_VALUE, probability):
            break
        rows = rows.replaced(probability=probability)
    how = f"strategy iteration, {found.how}"
    return found._replace(how=how, iterations=strategies), rows.probability
