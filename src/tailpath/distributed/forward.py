"""The costs of a policy by budget on a model in parts: its masses move from rank to rank.

A node holds the probability of being there with g cost units paid; g rises, and w - g is the budget
left, which decides. What is pushed onto ghosts is sent to the ranks that have them before their
level is taken up. From g = w on the policy is risk-neutral, and V* completes what is still open:

    E[(Z - x)+] = sum over arrivals beyond x of p (cost - x)  +  sum over open of p (paid + V* - x).

All terms are non-negative, and every mass is a sum of products: `relative_error` bounds what
rounding did to any of them, as in `evaluation/lattice.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tailpath.distributed.expected import PartExpected
from tailpath.distributed.ranks import Halo, largest
from tailpath.distributed.search import PartGraph
from tailpath.errors import OptionError
from tailpath.graph import members_of
from tailpath.kernels.rounding import FADED, FIXED, ROW, SAME_MASS, UNIT

Array = NDArray[Any]
IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]
#: A sum of what is open is taken anew when so much of it is left.
LEFT = 0.25


class NodeSteps(NamedTuple):
    """Decisions of own nodes: steps `first[x] : end[x]` rise in `from_budget`, below them
    `risk_neutral`. Runs begin with `budget`, in units.
    """

    budget: int
    first: IntArray
    end: IntArray
    from_budget: IntArray
    choice: NDArray[np.int32]
    risk_neutral: IntArray

    @classmethod
    def markov(cls, row: IntArray) -> NodeSteps:
        """One row for every own node, whatever is left."""
        none = np.zeros(0, dtype=np.int64)
        return cls(0, 0 * row, 0 * row, none, none.astype(np.int32), row)


@dataclass(frozen=True, eq=False)
class PartCosts:
    """The costs of a policy, known on every rank.

    `levels` and `probabilities` (h,) are arrivals, in units, as far as they were followed; `excess`
    has (value, lower, upper) of E[(Z - x)+] in units for each x = 0, 1, ..., and `tail` (x,) P(Z >
    x).
    """

    alpha: float
    unit: float
    probabilities: FloatArray
    tail: FloatArray
    excess: FloatArray
    relative_error: float

    def var(self, alpha: float | None = None) -> float:
        """The VaR at a tail mass, `alpha` or more."""
        return self._place(alpha)[0] * self.unit

    def cvar(self, alpha: float | None = None) -> float:
        """The CVaR at a tail mass, `alpha` or more."""
        x, a = self._place(alpha)
        return float(x + self.excess[0, x] / a) * self.unit

    def bounds(self, alpha: float | None = None) -> tuple[float, float]:
        """Proved bounds on the CVaR."""
        x, a = self._place(alpha)
        places, off = np.arange(self.excess.shape[1]), self.relative_error
        low = float(np.min(places + self.excess[1] * (1 - off) / a))
        high = x + float(self.excess[2, x]) / (1 - off) / a
        return low * (1 - 4 * UNIT) * self.unit, high * (1 + 4 * UNIT) * self.unit

    @property
    def mean(self) -> float:
        """The expected cost."""
        return float(self.excess[0, 0]) * self.unit

    def _place(self, alpha: float | None) -> tuple[int, float]:
        a = self.alpha if alpha is None else alpha
        if not self.alpha <= a <= 1:
            raise OptionError(f"the policy was evaluated for alpha >= {self.alpha:g}")
        return int(np.flatnonzero(self.tail <= a * (1 + SAME_MASS))[0]), a


class _Forward:
    """The masses of a rank: `ring[g % R]` (n + 1,) those of level g; `head[g]` what
    arrived at g.
    """

    def __init__(self, graph: PartGraph, steps: NodeSteps) -> None:
        self.graph, self.steps = graph, steps
        inside = graph.decisions.target < graph.n
        reach = int(largest(graph.comm, float(np.max(graph.level, where=inside, initial=0))))
        self.ring = np.zeros((reach + 1, graph.n + 1))
        self.head = np.zeros(steps.budget + reach + 2)
        self.at = steps.end - 1
        self.free = bool(largest(graph.comm, float(np.any((graph.level == 0) & inside))))
        self.back = Halo(graph.comm, graph.halo.ranks, graph.halo.receive, graph.halo.send)
        self.truncated = 0.0
        if graph.start >= 0:
            self.ring[0, graph.start] = 1.0

    def advance(self, g: int) -> None:
        """Send on all that nodes hold at level g."""
        row, own, n = self.ring[g % len(self.ring)], self.graph.own, self.graph.n
        while True:
            pending = self.back.begin(row[:n])
            for request in pending.requests:
                request.Wait()
            row[own:] = 0.0
            for place, here in zip(self.back.receive, pending.incoming):
                np.add.at(row, place, here)
            self._push(g, row)
            if not self.free or not largest(self.graph.comm, float(row.any())):
                return

    def _push(self, g: int, row: FloatArray) -> None:
        node = np.flatnonzero(row[: self.graph.own])
        mass = row[node]
        row[node] = 0.0
        small = mass < FADED
        self.truncated += float(mass[small].sum())
        node, mass = node[~small], mass[~small]
        given, level = self.graph.decisions, self.graph.level
        outcome, start = members_of(given.choice_outcomes, self._rows(node, self.steps.budget - g))
        moved = np.repeat(mass, np.diff(start)) * given.probability[outcome]
        target, paid = given.target[outcome], g + level[outcome].astype(np.int64)
        arrives = target == self.graph.n
        last = int(np.max(paid, where=arrives, initial=0))
        if last >= len(self.head):
            self.head = np.append(self.head, np.zeros(last))
        np.add.at(self.head, paid[arrives], moved[arrives])
        for there in np.unique(paid[~arrives]).tolist():
            some = ~arrives & (paid == there)
            np.add.at(self.ring[there % len(self.ring)], target[some], moved[some])

    def _rows(self, node: IntArray, left: int) -> IntArray:
        """What these nodes choose with so much left."""
        _, first, _, from_budget, choice, risk_neutral = self.steps
        at = self.at[node]
        above = (at >= first[node]) & (np.append(from_budget, 0)[at] > left)
        while above.any():
            at[above] -= 1
            above = (at >= first[node]) & (np.append(from_budget, 0)[at] > left)
        self.at[node] = at
        taken = np.append(choice, np.int32(0))[at]
        return np.where(at >= first[node], taken, risk_neutral[node]).astype(np.int64)


def follow(expected: PartExpected, steps: NodeSteps, alpha: float) -> PartCosts:
    """The costs of a policy, with its VaR and CVaR at `alpha` and more; all ranks call this."""
    forward = _Forward(expected.graph, steps)
    comm, ring = expected.graph.comm, forward.ring
    known, arrived, g = 1.0, 0.0, 0
    while True:
        forward.advance(g)
        here = float(forward.head[g]) if g < len(forward.head) else 0.0
        arrived += sum(comm.allgather(here))
        if known - arrived < LEFT * known:
            still = float(ring.sum() + forward.head[g + 1 :].sum() + forward.truncated)
            known, arrived = sum(comm.allgather(still)), 0.0
        if g >= steps.budget and known - arrived <= alpha * (1 + SAME_MASS / 2):
            return _summed(expected, forward, g, alpha)
        g += 1


def _summed(expected: PartExpected, forward: _Forward, g: int, alpha: float) -> PartCosts:
    """What arrived and what is open, by rank, to what is known of all."""
    graph, bounds, unit = expected.graph, expected.bounds, float(expected.graph.part.unit)
    comm, ring, rows = graph.comm, forward.ring, len(forward.ring)
    length = int(largest(comm, float(max(len(forward.head), g + 2))))
    mine = np.append(forward.head, np.zeros(length - len(forward.head)))
    head: FloatArray = np.sum(comm.allgather(mine), axis=0)
    paid = np.array([(there - g - 1) % rows for there in range(rows)]) + 1.0  # beyond g
    worst = (graph.level.max(initial=0) + 1.0) + float(bounds.upper.max(initial=0.0)) / unit
    sums = [float(ring.sum()) + forward.truncated, float((ring.sum(axis=1) * paid).sum())]
    for side in (bounds.value, bounds.lower, bounds.upper):
        sums.append(float((ring[:, :-1] @ np.where(np.isfinite(side), side, 0.0)).sum()) / unit)
    sums[4] += forward.truncated * worst
    mass, ahead, *values = np.sum(comm.allgather(np.array(sums)), axis=0).tolist()
    at = np.arange(length)
    beyond = np.append(np.cumsum(head[::-1])[::-1][1:], 0.0)  # P(arrived beyond x)
    # Summed up from behind: E[(Z - x)+] of arrivals is the sum of P(arrived beyond y) for y >= x.
    arrivals = np.cumsum(beyond[::-1])[::-1]
    open_at = [mass * (g - at[: g + 1]) + ahead + value for value in values]
    excess = np.stack([arrivals[: g + 1] + each for each in open_at])
    return PartCosts(alpha, unit, head[: g + 1], beyond[: g + 1] + mass, excess, _error(graph, g))


def _error(graph: PartGraph, g: int) -> float:
    """A bound on the relative error of every mass: what a step adds, for as many as there are."""
    comm, given = graph.comm, graph.decisions
    into = np.bincount(given.target, minlength=graph.n + 1)[: graph.n].max(initial=1)
    out = np.diff(given.choice_outcomes).max(initial=1)
    least = int(np.min(graph.level, where=graph.level > 0, initial=2**31 - 1))
    depth = float(graph.depth().max(initial=0))
    into, out, deepest = (largest(comm, float(each)) for each in (into, out, depth))
    cheapest = -largest(comm, -float(least))
    steps = (g / cheapest + 2) * (deepest + 1)
    return float(steps * (into * comm.size + comm.size + ROW * out + FIXED) + 4 * (g + 64)) * UNIT
