"""ForPECVaR on integer cost levels, compiled: the engine for every chain with a cost unit.

The search (`dp/forward.py`) works through buckets f = level + V_min(x), lowest first. Nothing with
f > VaR is expanded, and when the search stops at X every open node has Z > X.
"""

from __future__ import annotations

from contextlib import ExitStack
from fractions import Fraction
from typing import Any

import numpy as np

from tailpath.certify.rounding import scaled
from tailpath.dp.forward import (
    ARRAYS_FULL,
    AT_LIMIT,
    PAUSED,
    Ring,
    Space,
    enlarged,
    lay_out,
    levels_of,
    open_pairs,
    search,
)
from tailpath.evaluation.engine import NO_COSTS, NOTHING_FOUND, Engine, Request, Search
from tailpath.graph import FloatArray, IntArray, Transitions
from tailpath.kernels.jit import steps_until_pause
from tailpath.kernels.steps import Steps
from tailpath.model.cost_units import in_costs
from tailpath.policies.chain import CostChain
from tailpath.policies.checks import no_action

#: What a cost of the head takes while the result is made of it, and an entry of the overflow.
HEAD_BYTES, ENTRY_BYTES = 40, 28
#: Long heads grow by so many costs at once.
MOST_AT_ONCE = 1 << 22
#: Costs that are made of levels at once.
AT_ONCE = 1 << 18
#: A search looks at the user every so many expansions.
PAUSE = 5_000_000


def chain_space(chain: CostChain, heuristic: str) -> Space:
    """The nodes by falling V_min, and along zero-cost transitions where it ties."""
    # Where every step costs something, none stays among nodes of equal V_min, nor in a bucket by
    # cost alone.
    node, position = (
        _along_zero_costs(chain, heuristic)
        if chain.has_zero_cost_edges
        else (chain.farthest_first, chain.position)
    )
    v_min = chain.least_cost if heuristic == "min" else NO_COSTS
    return Space(chain, node[:-1], node, position, v_min)


def _along_zero_costs(chain: CostChain, heuristic: str) -> tuple[IntArray, IntArray]:
    """The arriving nodes and the goal in that order, and their positions."""
    n, arrives = chain.n, np.append(chain.arrives, True)
    zero = arrives[chain.target] & arrives[chain.source] & (chain.level == 0) & (chain.target < n)
    ordered = chain.only(zero).acyclic_order()
    assert ordered is not None, "zero-cost cycles are solved before the search"
    rank = ordered[0]
    # Zero-cost transitions lead to lower ranks, so higher ranks come first.
    nodes = np.flatnonzero(arrives[:n])
    order = np.lexsort(
        (-rank[nodes], -chain.least_cost[nodes]) if heuristic == "min" else (-rank[nodes],)
    )
    node, position = np.append(nodes[order], n), np.full(n + 1, -1)
    position[node] = np.arange(len(node))
    return node, position


def run(
    request: Request, steps: Steps, ring: Ring, state: Any
) -> tuple[str, IntArray, FloatArray, Ring]:
    """Search until P(Z > X) <= alpha, or until a limit or the user stops it: which, the runs of
    levels and the masses of the head, and the ring.
    """
    runs, mass = np.empty((256, 2), np.int64), np.empty(1024)
    stopped = None
    state["alpha"], state["limit"] = request.alpha, request.limit
    monitor = request.monitor
    with ExitStack() as listening:
        while stopped is None:
            state["pause"] = request.pause or steps_until_pause(search, PAUSE)
            status = search(ring, steps, state, runs, mass)
            count = int(state["n_found"])
            if status == ARRAYS_FULL:
                grown = HEAD_BYTES * len(mass) + 2 * ENTRY_BYTES * len(ring.after)
                if grown > request.max_bytes:
                    stopped = request.out_of_memory
                elif count == len(mass):  # in place: a copy would take as much again
                    mass.resize(count + min(count, MOST_AT_ONCE), refcheck=False)
                elif state["n_runs"] == len(runs):
                    runs = np.concatenate((runs, np.empty_like(runs)))
                else:
                    ring = enlarged(ring, state)
            elif status == PAUSED:
                monitor.report(int(state["expanded"]), float(np.sum(mass[:count])))
                stopped = "user" if monitor.stop else None
            else:
                stopped = request.out_of_nodes if status == AT_LIMIT else ""
            if stopped is None:  # most searches end before anybody could press a key
                listening.enter_context(monitor)
    mass.resize(count, refcheck=False)
    return stopped, runs[: int(state["n_runs"])], mass, ring


def costs_of(runs: IntArray, count: int, unit: Fraction, known: FloatArray) -> FloatArray:
    """The costs of a head; those that are known if they are the same, to store them once."""
    costs = known if len(known) == count else np.empty(count)
    for at in range(0, count, AT_ONCE):
        here = slice(at, min(at + AT_ONCE, count))
        some = in_costs(levels_of(runs, here.start, here.stop), unit)
        if costs is known and not np.array_equal(some, known[here]):
            costs = known.copy()
        if costs is not known:
            costs[here] = some
    return costs


class LatticeEngine(Engine):
    """Evaluates a chain on a space of the same nodes."""

    def __init__(self, request: Request, chain: CostChain, space: Space, start: int) -> None:
        self.request, self.chain = request, chain
        self.space, self.start = space, int(space.position[start])

    def rows(self, side: int) -> Transitions:
        rows = self.space.rows
        into = self.space.position[rows.target] + 1  # 0 for dead ends
        off = self.request.ssp.probability_error
        return scaled(rows, side, np.bincount(into)[into], off, self.cycles(rows))

    def search(self, side: int, until: Any = None, head: FloatArray = NO_COSTS) -> Search:
        space, request = self.space, self.request if until is None else self.request.again
        if self.start < 0:
            return NOTHING_FOUND
        if side != 0:
            space = space._replace(rows=self.rows(side))
        ring, state = lay_out(space, self.start, request.ring_cells)
        state["until"] = space.steps.budget if until is None else until
        stopped, runs, masses, ring = run(request, space.steps, ring, state)
        if state["no_action"] >= 0:
            raise no_action(request.ssp, int(space.node[state["no_action"]]))
        unit, bucket = request.ssp.cost_unit, int(state["bucket"])
        assert unit is not None and space.rows.level is not None
        last = bucket if stopped else max(int(state["last"]), 0)
        node, level, mass = open_pairs(ring, bucket, space.heuristic)
        # Where every number of units is a float nothing is rounded.
        whole = unit.denominator == 1 and last * unit.numerator <= 2**53
        free = space.rows.level.min(initial=1) == 0
        return Search(
            costs=costs_of(runs, len(masses), unit, head),
            masses=masses,
            last=float(in_costs(np.array([last]), unit)[0]),
            node=node,
            overshoot=in_costs(level - last, unit),
            mass=mass,
            dead_mass=float(state["dead_mass"] + state["dead_rest"]),
            dropped=float(state["dropped"]),
            expanded=int(state["expanded"]),
            roundings=0 if whole else 4,
            # Between two steps that cost something every node is free at most once.
            steps=(bucket + 2) * (len(space.node) if free else 1),
            until=bucket,
            stopped=stopped,
            trapped=int(state["trapped"]),
        )
