"""Where a run first enters a group of nodes, on a part of a chain without cycles.

Nodes stand in an order that follows the edges, and `visits` are their expected visits. Of these, a
part comes from runs that were in the group before: it starts out as all of the visits of its
members, and goes on along the edges. What a member has beyond that part enters there first.
"""

from __future__ import annotations

import numpy as np

from tailpath.dp.backup import row_value
from tailpath.kernels.inverse import Factors, inverse_entry
from tailpath.kernels.jit import Array, kernel
from tailpath.kernels.rounding import ROUNDOFF

#: What is less than this share of the visits of a group is not followed.
FAINT = ROUNDOFF / 256


@kernel
def mark_behind(row_start: Array, target: Array, out_marked: Array) -> None:
    """Mark all nodes to which marked ones lead."""
    for node in range(len(out_marked)):
        if out_marked[node]:
            for edge in range(row_start[node], row_start[node + 1]):
                out_marked[target[edge]] = True


@kernel
def push(row_start: Array, target: Array, probability: Array, behind: Array, out: Array) -> None:
    """The expected visits of nodes that are not `behind`, from where runs begin; `behind` those,
    what enters from there.
    """
    for node in range(len(out)):
        if not behind[node]:
            for edge in range(row_start[node], row_start[node + 1]):
                out[target[edge]] += probability[edge] * out[node]


@kernel
def pull(row_start: Array, target: Array, probability: Array, behind: Array, out: Array) -> None:
    """Add what their edges lead to, to the values of nodes that are not `behind`: of several values
    by node, one after the other in `out`.
    """
    n = len(behind)
    for first in range(0, len(out), n):
        for node in range(n - 1, -1, -1):
            if not behind[node]:
                out[first + node] += row_value(row_start, target, probability, node, first, out)


@kernel
def first_entries(
    rows: tuple[Array, Array, Array],
    visits: Array,
    behind: tuple[Array, Array, Factors],
    groups: tuple[Array, Array, Array],
    scratch: tuple[Array, Array, Array, Array, Array],
    out_entry: Array,
) -> None:
    """The first entries of some groups, by member.

    `groups` are their numbers, `bounds` and `position`: the members of group g are `position[
    bounds[g] : bounds[g + 1]]`, which rise. `behind` says of every node which number it has in the
    factors, -1 for nodes of the part without cycles; those behind it, to which it leads and which
    never lead back, have one; and by number the visits of each from itself, and the factors. A
    group has at most one of these. `scratch` holds zeros: by node, twice by number in the factors,
    and twice more by node, as flags.
    """
    row_start, target, probability = rows
    number, own, factors = behind
    asked, bounds, position = groups
    before, flow, other, queued, inside = scratch
    for g in asked:
        first, last = bounds[g], bounds[g + 1]
        total, final = 0.0, np.int64(-1)
        end, waiting = np.int64(-1), 0
        for i in range(first, last):
            total += visits[position[i]]
            if number[position[i]] >= 0:
                end = np.int64(i)
            else:
                final = np.int64(position[i])
                inside[final] = queued[final] = True
                waiting += 1
        node = np.int64(position[first]) if waiting else final
        while waiting > 0:
            if queued[node]:
                gone = visits[node] if inside[node] else before[node]
                if inside[node] or gone > FAINT * total:
                    for edge in range(row_start[node], row_start[node + 1]):
                        to = target[edge]
                        if number[to] >= 0:
                            if end >= 0:
                                flow[number[to]] += probability[edge] * gone
                        elif to <= final or end >= 0:
                            before[to] += probability[edge] * gone
                            waiting += 0 if queued[to] else 1
                            queued[to] = True
                queued[node] = False
                waiting -= 1
                if not inside[node]:
                    before[node] = 0.0
            node += 1
        for i in range(first, last):
            node = position[i]
            if i != end:
                out_entry[i] = visits[node] - before[node]
                before[node], inside[node] = 0.0, False
            else:
                there = number[node]
                again = inverse_entry(factors, there, flow, other)
                out_entry[i] = (visits[node] - again) / own[there]
