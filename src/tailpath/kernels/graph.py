"""Graph searches over the arrays of a model or a chain, in plain loops.

None of them calls another, so that on small inputs they can run as they stand (`plain`), and
`tailpath info` needs no compiler.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tailpath.kernels.jit import Array, kernel


@kernel
def forward_reach(row_start: Array, target: Array, start: int, out_reached: Array) -> None:
    """Mark everything that can be reached from `start` along the edges `row_start`, `target`."""
    stack = np.empty(len(row_start), dtype=np.int32)
    stack[0] = start
    size = 1
    out_reached[start] = True
    while size > 0:
        size -= 1
        node = stack[size]
        for edge in range(row_start[node], row_start[node + 1]):
            to = target[edge]
            if to < len(out_reached) and not out_reached[to]:
                out_reached[to] = True
                stack[size] = to
                size += 1


@kernel
def backward_reach(
    into_start: Array,
    into_choice: Array,
    choice_state: Array,
    choice_allowed: Array,
    out_reached: Array,
) -> None:
    """Mark the states that reach an already marked state, step by step, through choices that are
    allowed.

    `into_choice[into_start[t] : into_start[t + 1]]` are the choices that may lead to t.
    """
    stack = np.empty(len(out_reached), dtype=np.int32)
    size = 0
    for state in range(len(out_reached)):
        if out_reached[state]:
            stack[size] = state
            size += 1
    while size > 0:
        size -= 1
        state = stack[size]
        for position in range(into_start[state], into_start[state + 1]):
            choice = into_choice[position]
            source = choice_state[choice]
            if choice_allowed[choice] and not out_reached[source]:
                out_reached[source] = True
                stack[size] = source
                size += 1


@kernel
def close_under_choices(
    into_start: Array,
    into_choice: Array,
    choice_state: Array,
    out_inside: Array,
    out_allowed: Array,
) -> None:
    """Shrink a set of states to the largest part in which every state has a choice all of whose
    outcomes stay inside.

    On return `out_inside` is that part and `out_allowed` marks the choices of its states that stay
    inside. Choices not allowed on entry stay so.
    """
    n_states = len(out_inside)
    choices_left = np.zeros(n_states, dtype=np.int32)
    for choice in range(len(out_allowed)):
        if out_allowed[choice]:
            choices_left[choice_state[choice]] += 1
    stack = np.empty(n_states, dtype=np.int32)
    size = 0
    for state in range(n_states):
        if out_inside[state] and choices_left[state] == 0:
            out_inside[state] = False
        if not out_inside[state]:
            stack[size] = state
            size += 1
    while size > 0:
        size -= 1
        gone = stack[size]
        for position in range(into_start[gone], into_start[gone + 1]):
            choice = into_choice[position]
            if not out_allowed[choice]:
                continue
            out_allowed[choice] = False
            source = choice_state[choice]
            choices_left[source] -= 1
            if out_inside[source] and choices_left[source] == 0:
                out_inside[source] = False
                stack[size] = source
                size += 1
    for choice in range(len(out_allowed)):
        if not out_inside[choice_state[choice]]:
            out_allowed[choice] = False


@kernel
def strong_components(row_start: Array, target: Array, out_component: Array) -> int:
    """Tarjan's strongly connected components, without recursion. Edges to `target >= n` (a sink
    outside) are passed over.

    Components are numbered so that every edge leads to the same or a *lower* number: solving them
    in order 0, 1, 2, ... always finds the successors done. Returns how many there are. Unsigned
    indices are quicker.
    """
    n, one = len(row_start) - 1, np.uint64(1)
    node: Any
    unseen, finished = -1, n  # a finished node counts as met after all others
    index, low = np.empty(n, dtype=np.int32), np.empty(n, dtype=np.int32)
    for node in range(n):
        index[node] = low[node] = unseen
    path, next_edge = np.empty(n, dtype=np.uint32), np.empty(n, dtype=np.int64)
    pending, n_pending = np.empty(n, dtype=np.uint32), np.uint64(0)
    order, n_components = 0, 0
    for root in range(np.uint64(n)):
        if index[root] != unseen:
            continue
        node, depth = root, np.uint64(0)
        edge, last = np.uint64(row_start[node]), np.uint64(row_start[node + one])
        index[node] = low[node] = order
        pending[n_pending] = node
        order += 1
        n_pending += one
        while True:
            if edge < last:
                to = np.uint64(target[edge])
                edge += one
                if to >= n:
                    continue
                if index[to] == unseen:
                    path[depth], next_edge[node] = node, edge
                    depth += one
                    node = to
                    edge, last = np.uint64(row_start[node]), np.uint64(row_start[node + one])
                    index[node] = low[node] = order
                    pending[n_pending] = node
                    order += 1
                    n_pending += one
                elif index[to] < low[node]:
                    low[node] = index[to]
                continue
            if low[node] == index[node]:
                member = np.uint64(n)
                while member != node:
                    n_pending -= one
                    member = np.uint64(pending[n_pending])
                    out_component[member] = n_components
                    index[member] = finished
                n_components += 1
            if depth == 0:
                break
            depth -= one
            before = np.uint64(path[depth])
            low[before] = min(low[before], low[node])
            node = before
            edge, last = np.uint64(next_edge[node]), np.uint64(row_start[node + one])
    return n_components


@kernel
def longest_paths(row_start: Array, target: Array, order: Array, out_length: Array) -> None:
    """The most edges in a row from each node of a graph without cycles; `order` lists successors
    before their predecessors.

    Edges that lead outside do not count.
    """
    for node in order:
        longest = 0
        for edge in range(row_start[node], row_start[node + 1]):
            if target[edge] < len(out_length):
                longest = max(longest, out_length[target[edge]] + 1)
        out_length[node] = longest


@kernel
def group_members(group: Array, out_start: Array, out_members: Array) -> None:
    """Counting sort: the members of each group, one group after the other, in `out_members`; those
    of group g begin at `out_start[g]`. `out_start` (groups + 2,) comes in 0.
    """
    two = np.uint64(2)
    for member in range(np.uint64(len(group))):
        out_start[np.uint64(group[member]) + two] += 1
    for position in range(two, np.uint64(len(out_start))):
        out_start[position] += out_start[position - np.uint64(1)]
    for member in range(np.uint64(len(group))):
        here = np.uint64(group[member]) + np.uint64(1)
        out_members[np.uint64(out_start[here])] = member
        out_start[here] += 1


@kernel
def shortest_edges(
    row_start: Array,
    target: Array,
    level: Array,
    latest: Array,
    out_start: Array,
    out_target: Array,
    out_level: Array,
) -> None:
    """Of several edges from a row to a target only one, of the least level, in the order of the
    first; `latest` has an entry for every target.
    """
    size = 0
    out_start[0] = 0
    for row in range(len(row_start) - 1):
        begin = size
        for edge in range(row_start[row], row_start[row + 1]):
            to = target[edge]
            at = latest[to]
            if begin <= at < size and out_target[at] == to:
                out_level[at] = min(out_level[at], level[edge])
            else:
                latest[to] = size
                out_target[size] = to
                out_level[size] = level[edge]
                size += 1
        out_start[row + 1] = size


@kernel
def equal_members(group: Array, target: Array, cost: Array, most: int) -> int:
    """Whether two members of a group agree in target and cost: 1 or 0; -1 where the groups are not
    in order, or one has more than `most` members.
    """
    first, equal = 0, 0
    for member in range(1, len(group)):
        if group[member] < group[member - 1]:
            return -1
        if group[member] > group[member - 1]:
            first = member
        if member - first >= most:
            return -1
        for other in range(first, member):
            if target[other] == target[member] and cost[other] == cost[member]:
                equal = 1
    return equal
