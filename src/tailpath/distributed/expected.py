"""V* of a model in parts: value iteration over all ranks, proved by the certificate of one process.

A rank sweeps its own states from the end outwards, and then all ranks send what others need: within
a rank a new value is used at once, between ranks in the next sweep. The number of ranks changes
results in their last bits only, and the proof holds for any number: `certify/values.py` checks
every row on its own rank, and the largest defect of all ranks counts. What one process does if
sweeps converge too slowly (policies, eliminations) needs the model on one rank and is refused.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tailpath.certify.values import SLOPE_TOLERANCE, Bounds, OneProcess, value_bounds
from tailpath.distributed.ranks import Halo, largest
from tailpath.distributed.search import PartGraph, require_arrival
from tailpath.dp.backup import Rows, best_rows
from tailpath.dp.optimum import VALUE_ITERATION
from tailpath.dp.sweeps import (
    EVALUATIONS,
    MAX_ROUNDS,
    PLAIN_ROUNDS,
    SLOW_EVALUATIONS,
    STALLED,
    choose_rows,
    evaluate_rows,
    incoming_edges,
    leap_length,
    loop_free_rows,
    moves,
)
from tailpath.errors import ModelError
from tailpath.graph import FloatArray, IntArray, Transitions
from tailpath.kernels.rounding import ROUNDING_NOISE, SETTLED, STRICT

#: Bounds that are wider than this, relatively, mean that sweeps did not converge.
REFUSED_ABOVE = 2e-11
SLOW = "value iteration converges too slowly on this model in parts; solve the whole model instead"


class Ranks(OneProcess):
    """Every rank has its own nodes, and ghosts of the nodes that their rows lead to."""

    def __init__(self, halo: Halo, ghosts: int) -> None:
        self.halo, self.ghosts = halo, ghosts

    def most(self, number: float) -> float:
        return largest(self.halo.comm, number)

    def sum(self, number: float) -> float:
        return float(sum(self.halo.comm.allgather(number)))

    def padded(self, values: FloatArray) -> FloatArray:
        padded = np.append(values, np.zeros(self.ghosts + 1))
        self.halo.exchange(padded)
        return padded


class PartSweeps:
    """`dp.sweeps.Sweeps` over the states of all ranks; `least` (n,) is how far each node is from
    the end.
    """

    def __init__(self, graph: PartGraph) -> None:
        self.graph = graph
        self.comm = Ranks(graph.halo, graph.n - graph.own)
        rate = graph.rows.rate
        extra = STRICT * self.comm.most(float(rate.max(initial=0.0)))
        self.least, self.crossings = graph.distances(*incoming_edges(graph.rows, rate, extra))
        nearest = np.argsort(self.least[: graph.own], kind="stable")
        self.order = np.append(nearest, np.arange(graph.own, graph.n))

    def run(
        self, rows: Transitions, rate: FloatArray, first: FloatArray, tolerance: float = SETTLED
    ) -> tuple[FloatArray, int]:
        """Value iteration from `first`, by own node: `Sweeps.run`, over all ranks."""
        graph, own = self.graph, self.graph.own
        first_row = np.append(rows.state_rows, np.full(graph.n - own, rows.n))
        every = rows.replaced(first_row=first_row)
        loop_free = loop_free_rows(every.columns(rate), self.order)
        position = np.argsort(self.order)
        halo = replace(graph.halo, send=tuple(position[some] for some in graph.halo.send))
        value = self.comm.padded(first)[self.order]
        rounds = self._settle(loop_free, halo, value, tolerance)
        result = np.empty(own)
        result[self.order[:own]] = value[:own]
        return result, rounds

    def _settle(self, rows: Rows, halo: Halo, value: FloatArray, tolerance: float) -> int:
        """Value iteration until no value moves on any rank but by rounding; the rounds it took, or
        more than `MAX_ROUNDS` if it was given up."""
        own, chosen, before = self.graph.own, np.zeros_like(rows[0]), np.inf
        for rounds in range(1, MAX_ROUNDS + self.crossings + 1):
            change, moved = choose_rows(rows, 0, own, tolerance, value, chosen)
            halo.exchange(value)
            change = self.comm.most(change)
            if not self.comm.most(float(moved < own)) or before <= change <= ROUNDING_NOISE:
                return min(rounds, MAX_ROUNDS)
            before = change
            for _ in range(EVALUATIONS if rounds < PLAIN_ROUNDS else SLOW_EVALUATIONS):
                first = self._evaluate(rows, halo, chosen, value)
            if rounds >= PLAIN_ROUNDS:
                second = self._evaluate(rows, halo, chosen, value)
                third = self._evaluate(rows, halo, chosen, value)
                *sums, most = moves(0, own, first, second, third)
                length = leap_length(*map(self.comm.sum, sums), -self.comm.most(-most))
                if length > 0.0:  # both moves have one direction: go on along it
                    value[:own] += length * (third - second)
                    halo.exchange(value)
                    before = np.inf
        return MAX_ROUNDS + (before >= STALLED)

    def _evaluate(
        self, rows: Rows, halo: Halo, chosen: NDArray[Any], value: FloatArray
    ) -> FloatArray:
        """One sweep of the choices; the values of own nodes after it."""
        evaluate_rows(rows, 0, self.graph.own, chosen, value)
        halo.exchange(value)
        return value[: self.graph.own].copy()


@dataclass(frozen=True, eq=False)
class PartExpected:
    """V* of the nodes of a part, ghosts included, with bounds, and the best row of each own node.

    `bounds` (n,) are in costs; `chosen` (own,) are choices of the part, `nearest` (n,) the least
    cost of arriving, in units; `rounds` counts rounds of value iteration.
    """

    graph: PartGraph
    sweeps: PartSweeps
    bounds: Bounds
    chosen: IntArray
    nearest: FloatArray
    rounds: int

    @property
    def start(self) -> tuple[float, float]:
        """The lower and upper bound on V* of the start, on every rank; 0 where it is a goal."""
        here, sides = self.graph.start, (self.bounds.lower, self.bounds.upper)
        low, high = (largest(self.graph.comm, s[here] if here >= 0 else 0.0) for s in sides)
        return low, high


def solve_part_expected(graph: PartGraph) -> PartExpected:
    """V* of a model in parts, which must have no dead ends and no cycles of zero-cost outcomes."""
    nearest = graph.nearest()
    require_arrival(graph, nearest)
    sweeps = PartSweeps(graph)
    own_rows = graph.rows.state_rows[: graph.own + 1]
    rows, rate = graph.rows.replaced(first_row=own_rows), graph.rows.rate
    padded = sweeps.comm.padded
    value, rounds = sweeps.run(rows, rate, sweeps.least[: graph.own].copy())
    chosen = best_rows(rows.columns(rate), padded(value))

    def solve(some: Transitions, rate: FloatArray) -> FloatArray:
        return sweeps.run(some, rate, np.zeros(graph.own), SLOPE_TOLERANCE)[0]

    error = graph.part.probability_error
    found, chosen = value_bounds(rows, rate, value, chosen, error, solve, sweeps.comm)
    if not found.widest(sweeps.comm) <= REFUSED_ABOVE:
        raise ModelError(SLOW)
    bounds = replace(found.positive(), method=VALUE_ITERATION).map(lambda side: padded(side)[:-1])
    return PartExpected(graph, sweeps, bounds, chosen, nearest, rounds)
