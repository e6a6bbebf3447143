"""The search: expand states of the boundary where the policy that is best for the lower side
leaves what is expanded, until the two sides meet.

A round solves both sides and follows the lower one's policy from the start. It leaves for state s'
with budget b left, in a share m of all runs; there the laws of the two sides differ by g, and the
sides differ by the sum of all m g at most. What has half of that sum is expanded, and at least a
share of what already is, so that rounds are few.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from time import monotonic
from typing import NamedTuple

import numpy as np

from tailpath.graph import FloatArray, IntArray, Transitions, members_of, owners
from tailpath.lazy.expansion import BOUNDARY, GOAL, Expansion, Snapshot
from tailpath.lazy.sides import Asked, Laws, Side, above, laws_above, laws_below
from tailpath.policies.unrolling import unroll

#: The share of the total score that is expanded in a round, and the least number of states: this
#: many, and this share of those expanded before.
SHARE, LEAST, GROWTH = 0.5, 32, 0.1
#: Masses, and scores as a share of the largest, that are nothing; and the most steps of a run that
#: are followed to weigh the boundary.
NEGLIGIBLE, MOST_STEPS = 1e-9, 2_000

Report = Callable[[int, float], None]


class Round(NamedTuple):
    """What was known after a round: states expanded and found, bounds, and seconds so far."""

    expanded: int
    found: int
    low: float
    high: float
    seconds: float


@dataclass
class Search:
    """A search from a state, whose sides are those of its last round."""

    expansion: Expansion
    start: int
    asked: Asked
    history: list[Round] = field(default_factory=list)
    sides: tuple[Side, Side | None] | None = None
    stopped: str = ""

    def run(self, gap: float, max_states: int, report: Report) -> None:
        """Go on until the bounds are no further apart than `gap`, or something else ends it."""
        began = monotonic() - (self.history[-1].seconds if self.history else 0.0)
        try:
            while not self._round(gap, max_states, began, report):
                pass
        except KeyboardInterrupt:
            if self.sides is None:
                raise
            self.stopped = "interrupted"

    def _round(self, gap: float, max_states: int, began: float, report: Report) -> bool:
        expansion, alpha = self.expansion, self.asked.alpha
        if expansion.rank[self.start] == GOAL:
            self.history.append(Round(0, 1, 0.0, 0.0, 0.0))
            self.stopped = "the start is a goal"
            return True
        if expansion.rank[self.start] == BOUNDARY:
            expansion.expand([self.start])
        rows = expansion.snapshot()
        position = int(rows.rank[self.start])
        below = Side(rows, laws_below(rows), position, self.asked, expansion.expanded)
        over = above(rows, position, self.asked)
        low, high = below.value(alpha), math.inf if over is None else over.value(alpha)
        if high - low <= gap and over is not None:
            low, high = below.bounds(alpha)[0], over.bounds(alpha)[1]
        self.sides = below, over
        self.history.append(Round(len(rows.state), len(rows.rank), low, high, monotonic() - began))
        report(len(rows.state), high - low)
        if high - low <= gap:
            self.stopped = "the gap is reached"
        elif len(rows.state) >= max_states:
            self.stopped = "max_states is reached"
        else:
            chosen = self._worth_expanding(rows, below, max_states)
            if len(chosen):
                expansion.expand(chosen.tolist())
                return False
            self.stopped = "there is nothing left to expand"
        return True

    def _worth_expanding(self, rows: Snapshot, below: Side, max_states: int) -> IntArray:
        score = scores(rows, below, laws_above(rows), self.asked)
        order = np.argsort(-score)
        order = order[: np.count_nonzero(score > NEGLIGIBLE * score.max(initial=0.0))]
        half = np.searchsorted(np.cumsum(score[order]), SHARE * score[order].sum()) + 1
        count = max(int(half), LEAST, int(GROWTH * len(rows.state)))
        return order[: min(count, max_states - len(rows.state))]


def scores(rows: Snapshot, below: Side, over: Laws, asked: Asked) -> FloatArray:
    """By found state, how much of the difference of the two sides lies there: (n,)."""
    chain = unroll(below.ssp, below.policy(asked.alpha))
    outcome = chain.outcome
    assert outcome is not None
    leaving = np.flatnonzero(rows.rank[rows.target[outcome]] == BOUNDARY)
    outcome = outcome[leaving]
    node = chain.source[leaving]
    mass = visits(chain, chain.start)[node] * chain.probability[leaving]
    memory = np.zeros(chain.n, np.int64) if chain.memory is None else np.asarray(chain.memory)
    left = memory[node] - rows.level[outcome]
    if over.known[outcome].all():
        unit = float(rows.unit)
        low, high = (laws.only(outcome).excess(left, unit) for laws in (below.laws, over))
        mass *= np.maximum(high - low, 0.0)
    return np.bincount(rows.target[outcome], mass, len(rows.rank)).astype(np.float64)


def visits(chain: Transitions, start: int) -> FloatArray:
    """About how often each node of a chain is met, from one of them on: the search needs no more
    than that.
    """
    found, mass = np.zeros(chain.n), np.zeros(chain.n)
    mass[start] = 1.0
    for _ in range(MOST_STEPS):
        node = np.flatnonzero(mass > NEGLIGIBLE)
        if not node.size:
            break
        found[node] += mass[node]
        edges, first = members_of(chain.row_start, node)
        moved = mass[node][owners(first)] * chain.probability[edges]
        mass = np.asarray(np.bincount(chain.target[edges], moved, chain.n + 1)[: chain.n], float)
    return found
