"""V* of a model in parts: value iteration in bands, with the proofs of one process.

Nodes stand in *bands* by their least cost of arriving. A sweep takes one band after the other, from
the goals outwards; the nodes of a band get new values all from the old ones, and their neighbours
on other ranks hear of them before the next band (block Gauss-Seidel). So news travels all the way
in one sweep, as in one process, and the values do not depend on how the states are shared out: 1, 2
or more parts give the same bits. They are not those of `solve_expected` of the whole model, whose
order is another; both lie within their bounds.

The bounds are proved by the same looks at every row (`dp/certificates.py`): by shares where every
row costs something, and by weights otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tailpath.distributed.ranks import Halo, largest
from tailpath.distributed.search import PartGraph, require_arrival
from tailpath.dp.backup import Decisions
from tailpath.dp.bounds import Bounds, bounds_within, within_shares
from tailpath.dp.certificates import certify, lower_defect, relative_bounds, rounding_weights
from tailpath.dp.optimum import CHEAPER, FURTHER, MORE, best_rows, policy_chain
from tailpath.dp.sweeps import FOLLOWED, settle_band, without_self_loops
from tailpath.errors import ModelError
from tailpath.kernels.jit import frozen
from tailpath.kernels.rounding import FEW, FLUTTER, NOTHING

Array = NDArray[Any]
IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]
#: The most bands; a sweep has as many exchanges. News should not have to wait within one.
MOST_BANDS = 2**16
#: What a step weighs beside rounding, as a share of the largest rate, so that no step weighs
#: nothing.
STEP_SHARE = 0.5
#: How exactly weights are summed up.
WEIGHTS_SETTLED = 1e-6
#: Rounds before values are given up that still move: bands need more than one process does.
MOST_BAND_ROUNDS = 4000
SLOW = "value iteration settles too slowly on this model in parts; give the whole model"


@dataclass(frozen=True, eq=False)
class PartExpected:
    """V* of the nodes of a part, ghosts included, with bounds, and the best row of each own node.

    `bounds` (n,) are in costs; `chosen` (own,) are choices of the part, `nearest` (n,) the least
    cost of arriving, in units; `rounds` counts rounds of value iteration.
    """

    graph: PartGraph
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


class BandSweeps:
    """Rows folded into bands, and who needs what of each band."""

    def __init__(self, graph: PartGraph, nearest: FloatArray) -> None:
        self.graph = graph
        farthest = largest(graph.comm, float(nearest.max(initial=0.0)))
        band = (nearest // max(1.0, farthest / MOST_BANDS)).astype(np.int64)
        self.count = int(largest(graph.comm, float(band.max(initial=0)))) + 1
        own = np.argsort(band[: graph.own], kind="stable")
        self.order = np.append(own, np.arange(graph.own, graph.n))
        self.start = np.searchsorted(band[own], np.arange(self.count + 1))
        place = np.empty(graph.n, dtype=np.int64)
        place[self.order] = np.arange(graph.n)
        self.room = np.empty(int(np.diff(self.start).max(initial=0)))
        self.halos = self._halos(band, place)
        lengths = np.diff(self.start).tolist()
        self.here = [b for b in range(self.count) if lengths[b] or b in self.halos]

    def _halos(self, band: IntArray, place: IntArray) -> dict[int, Halo]:
        """By band, where there is one: who needs what of it."""
        halo, every = self.graph.halo, np.arange(self.count + 1)
        found: dict[int, list[tuple[int, Array, Array]]] = {}
        for rank, send, receive in zip(halo.ranks, halo.send, halo.receive):
            send, receive = (p[np.argsort(band[p], kind="stable")] for p in (send, receive))
            first, then = (np.searchsorted(band[p], every) for p in (send, receive))
            for b in np.flatnonzero((np.diff(first) > 0) | (np.diff(then) > 0)).tolist():
                out, here = send[first[b] : first[b + 1]], receive[then[b] : then[b + 1]]
                found.setdefault(b, []).append((rank, place[out], place[here]))
        return {b: halo.among(some) for b, some in found.items()}

    def loop_free(self, given: Decisions) -> Decisions:
        """The rows in the order of the bands, with the chance of staying divided out."""
        n, rows, outcomes = self.graph.n, len(given.rate), len(given.target)
        place = np.uint32 if outcomes < 2**32 else np.uint64
        starts = np.empty(n + 1, place), np.empty(rows + 1, place)
        room = *starts, np.empty(outcomes, np.uint32), np.empty(outcomes), np.empty(rows)
        without_self_loops(given, self.order, Decisions(*room))
        return Decisions(*frozen(*room))

    def sweep(
        self, loop_free: Decisions, choose: bool, value: FloatArray, chosen: IntArray
    ) -> float:
        """All bands once, from the goals outwards; the largest change here."""
        change = 0.0
        for b in self.here:
            first, last = int(self.start[b]), int(self.start[b + 1])
            if last > first:
                moved = settle_band(loop_free, first, last, choose, value, chosen, self.room)
                change = max(change, moved)
            if b in self.halos:
                self.halos[b].exchange(value)
        return change

    def run(self, given: Decisions, first: FloatArray, tolerance: float) -> tuple[FloatArray, int]:
        """Value iteration from `first` (n,): values, those of ghosts included, and rounds."""
        loop_free, value = self.loop_free(given), first[self.order]
        chosen, previous = np.zeros(self.graph.n, dtype=np.int64), np.inf
        for rounds in range(1, MOST_BAND_ROUNDS + 1):
            change = largest(self.graph.comm, self.sweep(loop_free, True, value, chosen))
            if change <= tolerance or (change <= FLUTTER and change >= previous):
                result = np.empty(len(value))
                result[self.order] = value
                return result, rounds
            previous = change
            for _ in range(FOLLOWED):
                self.sweep(loop_free, False, value, chosen)
        raise ModelError(SLOW)


def solve_part_expected(graph: PartGraph) -> PartExpected:
    """V* of a model in parts, which must have no dead ends and no cycles of free outcomes."""
    nearest = graph.nearest()
    require_arrival(graph, nearest)
    if largest(graph.comm, float(np.any(graph.level == 0))):
        graph.depth()
    sweeps = BandSweeps(graph, nearest)
    value, rounds = sweeps.run(graph.decisions, nearest * float(graph.part.unit), 0.0)
    chosen = np.empty(graph.own, dtype=np.int64)
    whole = np.append(value, 0.0)
    best_rows(graph.decisions, whole, np.zeros(len(whole)), chosen)
    bounds = _by_shares(graph, value, whole, chosen) or _by_weights(graph, sweeps, value, chosen)
    lower = np.maximum(bounds.lower, 0.0)
    value = np.clip(bounds.value, lower, bounds.upper)
    found = Bounds(value, lower, bounds.upper, "value iteration in bands")
    return PartExpected(graph, found, chosen, nearest, rounds)


def _by_shares(
    graph: PartGraph, value: FloatArray, whole: FloatArray, chosen: IntArray
) -> Bounds | None:
    """Bounds where every row costs something."""
    low, high = relative_bounds(graph.decisions, whole, chosen)
    low, high = (largest(graph.comm, side) for side in (low, high))
    return within_shares(value, low, high, "") if np.isfinite(low + high) else None


def _by_weights(
    graph: PartGraph, sweeps: BandSweeps, value: FloatArray, chosen: IntArray
) -> Bounds:
    """Bounds from what rounding may do in a step, summed up along the way (`certificates.py`)."""
    given, own = graph.decisions, graph.own
    rows = np.append(np.arange(own + 1), np.full(graph.n - own, own))
    chain = policy_chain(given, chosen)._replace(state_choices=next(frozen(rows)))
    weight = next(frozen(_weights(graph, value)[chosen]))
    total, _ = sweeps.run(chain._replace(rate=weight), value, WEIGHTS_SETTLED)
    total = np.append(total, 0.0)
    whole, fine, gain = np.append(value, 0.0), np.zeros(graph.n + 1), np.empty(own)
    share = largest(graph.comm, certify(chain, whole, fine, total, gain))
    if not np.isfinite(share):
        raise ModelError(SLOW)
    upper = bounds_within(value, fine[:-1], share * total[:-1] * (1 + FEW), "").upper
    for times in FURTHER:
        below = fine - times * share * total
        if largest(graph.comm, lower_defect(given, whole, below)) <= 0.0:
            lower = np.nextafter(value + below[:-1], -np.inf)
            return Bounds(value, np.where(value > 0.0, lower, 0.0), upper)
    return Bounds(value, _cheaper(graph, sweeps, value), upper)


def _cheaper(graph: PartGraph, sweeps: BandSweeps, value: FloatArray) -> FloatArray:
    """A lower bound for all policies: values of the same problem with every step a bit cheaper."""
    comm, given, fine = graph.comm, graph.decisions, np.zeros(graph.n + 1)
    discount = 4 * max(largest(comm, lower_defect(given, np.append(value, 0.0), fine)), 0.0)
    size = largest(comm, float(np.abs(value).max(initial=0.0))) + NOTHING
    for _ in range(CHEAPER):
        cheaper = given._replace(rate=next(frozen(given.rate - discount)))
        lower, _ = sweeps.run(cheaper, value, 0.25 * discount / size)
        if largest(comm, lower_defect(given, np.append(lower, 0.0), fine)) <= 0.0:
            return lower
        discount *= MORE
    raise ModelError(SLOW)


def _weights(graph: PartGraph, value: FloatArray) -> FloatArray:
    """By row what rounding may make of a surplus, in units of it, and a little more for a step:
    a share of what all ranks agree on.
    """
    given = graph.decisions
    here = np.repeat(value, np.diff(given.state_choices))
    most = largest(graph.comm, float(given.rate.max(initial=0.0)))
    return rounding_weights(given, np.append(value, 0.0), here) + STEP_SHARE * (most or 1.0)
