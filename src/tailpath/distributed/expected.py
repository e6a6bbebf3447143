"""V* of a model in parts, found and proved as in one process, with its own functions.

Sweeps over all ranks (`sweeps.py`) find the values of one process to the last bit, and the proofs
of `dp/optimum.py` look at every row where it is; the largest of what ranks find counts. What one
process does where sweeps prove too little (policies, eliminations, rationals) needs the model on
one rank and is refused.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tailpath.distributed.search import PartGraph, require_arrival
from tailpath.distributed.sweeps import PartSweeps
from tailpath.dp.backup import Decisions
from tailpath.dp.bounds import Bounds
from tailpath.dp.optimum import is_proved, sharper, swept_optimum
from tailpath.errors import ModelError

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]
SLOW = "value iteration settles too slowly on this model in parts; give the whole model"


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
    def start(self) -> tuple[float, float, float]:
        """V* of the start, and its lower and upper bound, on every rank."""
        here, bounds = self.graph.start, self.bounds
        mine = None
        if here >= 0:
            mine = tuple(float(side[here]) for side in (bounds.value, bounds.lower, bounds.upper))
        found = next((each for each in self.graph.comm.allgather(mine) if each is not None), None)
        return (0.0, 0.0, 0.0) if found is None else found

    @cached_property
    def sharpened(self) -> PartExpected:
        """The same with narrower bounds, where they are easily found."""
        sweeps: Any = self.sweeps
        found = sharper(_rows(self.graph), sweeps, self.own_bounds)
        return replace(self, bounds=_with_ghosts(sweeps, found))

    @property
    def own_bounds(self) -> Bounds:
        """The bounds of own nodes."""
        return self.bounds.each(lambda side: side[: self.graph.own])


def _rows(graph: PartGraph) -> Decisions:
    """The rows of own nodes."""
    decisions = graph.decisions
    return decisions._replace(state_choices=decisions.state_choices[: graph.own + 1])


def _with_ghosts(sweeps: Any, found: Bounds) -> Bounds:
    """Bounds by own node, and those of ghosts."""
    return found.each(lambda side: sweeps.across.padded(side)[:-1])


def solve_part_expected(graph: PartGraph) -> PartExpected:
    """V* of a model in parts, which must have no dead ends and no cycles of zero-cost outcomes."""
    nearest = graph.nearest()
    require_arrival(graph, nearest)
    sweeps: Any = PartSweeps(graph)
    first = sweeps.least[: graph.own].copy()
    if not sweeps.across.every(not np.any(graph.level == 0)):
        graph.depth()
        first[_worth_nothing(graph)] = 0.0
    found = swept_optimum(_rows(graph), sweeps, first)
    if not is_proved(found, sweeps):
        raise ModelError(SLOW)
    lower = np.maximum(found.bounds.lower, 0.0)
    value = np.clip(found.bounds.value, lower, found.bounds.upper)
    bounds = replace(found.bounds, value=value, lower=lower)
    with_ghosts = _with_ghosts(sweeps, bounds)
    return PartExpected(graph, sweeps, with_ghosts, found.chosen, nearest, found.iterations)


def _worth_nothing(graph: PartGraph) -> NDArray[np.bool_]:
    """The own nodes from which some policy arrives almost surely at no cost."""
    decisions, own = graph.decisions, graph.own
    zero = np.append(np.ones(graph.n, dtype=np.bool_), True)
    costs = np.append(0, np.cumsum(graph.level > 0))[decisions.choice_outcomes]
    no_cost = np.diff(costs) == 0

    def narrow(zero: NDArray[np.bool_]) -> None:
        others = np.append(0, np.cumsum(~zero[decisions.target]))[decisions.choice_outcomes]
        rows = np.append(0, np.cumsum(no_cost & (np.diff(others) == 0)))
        zero[:own] = np.diff(rows[decisions.state_choices[: own + 1]]) > 0

    graph.halo.repeat(narrow, zero, graph.part.n_states + 1)
    return zero[:own]
