"""The least cost of any way to a goal, where costs may be negative.

Labels are corrected until none can be (Bellman, Ford, Moore).
"""

from __future__ import annotations

import numpy as np

from tailpath.kernels.jit import Array, kernel


@kernel
def correct_labels(
    into_start: Array,
    into_edge: Array,
    source: Array,
    cost: Array,
    out_least: Array,
    out_edge: Array,
) -> int:
    """Fill in the least cost from every node, and the edge that it begins with.

    `into_edge[into_start[t] : into_start[t + 1]]` are the edges that lead to node t; edge e leaves
    `source[e]` at `cost[e]`. `out_least` (n,) comes with 0 at the ends and more than any way costs
    elsewhere, `out_edge` (n,) with -1, and they stay so where no way leads to an end. Returns -1,
    or a node on a cycle of `out_edge` with a negative cost: then there is no least cost.
    """
    n = len(out_least)
    queue, waiting = np.empty(n + 1, dtype=np.int64), np.zeros(n, dtype=np.bool_)
    first, end = 0, 0
    for node in range(n):
        if out_least[node] == 0:
            queue[end] = node
            waiting[node] = True
            end += 1
    target = np.empty(n, dtype=np.int64)  # where the edge of a node leads
    seen = np.empty(n, dtype=np.int64)
    corrected = 0
    while first != end:
        node = queue[first]
        first = (first + 1) % (n + 1)
        waiting[node] = False
        for position in range(into_start[node], into_start[node + 1]):
            edge = into_edge[position]
            before = source[edge]
            if cost[edge] + out_least[node] < out_least[before]:
                out_least[before] = cost[edge] + out_least[node]
                out_edge[before] = edge
                target[before] = node
                corrected += 1
                if not waiting[before]:
                    waiting[before] = True
                    queue[end] = before
                    end = (end + 1) % (n + 1)
        if corrected >= n:  # now and then: do the edges lead round?
            corrected = 0
            seen[:] = -1
            for begin in range(n):
                at = begin
                while seen[at] < 0 and out_edge[at] >= 0:
                    seen[at] = begin
                    at = target[at]
                if seen[at] == begin and out_edge[at] >= 0:
                    return at
    return -1
