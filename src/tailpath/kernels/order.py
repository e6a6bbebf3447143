"""The order in which value iteration visits the nodes of a core: from the goals outwards, and neighbours together."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tailpath.kernels.bellman import Decisions
from tailpath.kernels.forward import cheapest_tree
from tailpath.kernels.jit import kernel

Array = NDArray[Any]


@kernel
def outward_order(given: Decisions, extra: float, longest: float, room: int, out_least: Array, out_order: Array) -> None:
    """Distances from every node to the goals (the last place of `out_least`, infinite on entry), and nodes ordered by district and distance.

    An outcome is as long as its choice's rate, plus `extra`, divided by its probability, and at most `longest`; of several from a node to
    another the shortest counts. A node belongs to the district of the next node on its way; where that has `room` nodes already, to the one
    that goes on from there. Ways of the same length may be far apart: districts keep together what is used together.
    """
    n = len(given.state_choices) - 1
    into_start = np.zeros(n + 2, dtype=np.int64)
    last = np.zeros(n + 1, dtype=np.int32)  # one more than the node that led there last
    for node in range(n):
        for outcome in range(given.choice_outcomes[given.state_choices[node]], given.choice_outcomes[given.state_choices[node + 1]]):
            to = given.target[outcome]
            if last[to] != node + 1:
                last[to] = node + 1
                into_start[to + 1] += 1
    for to in range(n + 1):
        into_start[to + 1] += into_start[to]
    source, length = np.empty(into_start[-1], dtype=np.int32), np.empty(into_start[-1])
    place = np.empty(n + 1, dtype=np.int64)
    for to in range(n + 1):
        place[to] = into_start[to]
    for node in range(n):
        for choice in range(given.state_choices[node], given.state_choices[node + 1]):
            rate = given.rate[choice] + extra
            for outcome in range(given.choice_outcomes[choice], given.choice_outcomes[choice + 1]):
                to, p = given.target[outcome], given.probability[outcome]
                # A rare outcome of a dear choice may be longer than any float.
                long = rate / p if rate < longest * p else longest
                here = place[to]
                if here > into_start[to] and source[here - 1] == node:
                    length[here - 1] = min(length[here - 1], long)
                else:
                    source[here], length[here] = node, long
                    place[to] = here + 1
    order, before = np.empty(n + 1, dtype=np.int32), np.empty(n + 1, dtype=np.int32)
    cheapest_tree(into_start, source, length, n, out_least, order, before)
    _by_district(order, before, room, out_order)


@kernel
def _by_district(order: Array, before: Array, room: int, out_order: Array) -> None:
    """Sort nodes, which come in the order of their distances after the goals, by district; districts in the order in which they begin."""
    n = len(out_order)
    district = np.empty(n, dtype=np.int32)
    size, onward = np.zeros(n + 1, dtype=np.int32), np.zeros(n + 1, dtype=np.int32)  # district 0 follows no other
    count = 0
    for settled in range(1, n + 1):
        node = order[settled]
        if before[node] == n:
            here, count = count, count + 1
        else:
            here = district[before[node]]
            while size[here] >= room:
                if onward[here] == 0:
                    onward[here], count = count, count + 1
                elif onward[onward[here]] > 0:
                    onward[here] = onward[onward[here]]
                here = onward[here]
        district[node] = here
        size[here] += 1
    first = 0
    for here in range(count):
        size[here], first = first, first + size[here]
    for settled in range(1, n + 1):
        node = order[settled]
        out_order[size[district[node]]] = node
        size[district[node]] += 1
