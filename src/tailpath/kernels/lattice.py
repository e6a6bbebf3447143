"""The forward search on integer cost levels.

Nodes stand in the order of falling V_min (ties: along free arrows), so that in the bucket f = level + V_min every arrow that stays in the
bucket leads forward: one pass over a bucket finishes it. `jump` = cost + V_min(target) - V_min(node) >= 0 is how many buckets an arrow
skips. Bucket f of node x holds the probability of being in x with accumulated level f - V_min(x). Node n is the goal; what arrives there
in bucket f costs f.

Buckets f .. f + width - 1 live in a ring of rows; arrows that jump further wait in a second ring or in lists by epoch (f // width), so a jump of
10^6 levels costs one entry and not 10^6 rows. `flag` marks blocks of 64 cells that hold anything, so that empty regions are passed over. Arrows
within the ring are told by how many cells they skip, and the others stand apart, so that the inner loop is an addition and little else.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tailpath.kernels.jit import kernel
from tailpath.kernels.lattice_arrays import BLOCK, Arrows, Aside, Far, FarNodes, Near, Rings, Stop, Waiting
from tailpath.kernels.steps import Steps

Array = NDArray[Any]
#: Blocks that are worked on in one go: what they hold stays near.
PART = 128


@kernel
def search(
    near: Near,
    far: Far,
    far_nodes: FarNodes,
    steps: Steps,
    at_step: Array,
    rings: Rings,
    waiting: Waiting,
    aside: Aside,
    n_listed: int,
    alpha: float,
    flush: float,
    limit: int,
    pause: int,
    out_level: Array,
    out_mass: Array,
    now: Any,
) -> int:
    """Work through buckets until P(Z > f) <= alpha, `limit` expansions in all, or `pause` expansions in this call.

    `now`, a record of `STANDING`, carries the state from call to call. `now.summed` is a summed open mass and `now.since` what reached the goal
    since; the difference is P(Z > f) with nearly full relative accuracy while it is a fair share of the base, and the sum is taken anew when
    it no longer is. A tail that cannot be told from alpha counts as equal.

    With `steps` rows belong to choices, not to nodes, and a node picks its choice by the budget left in the bucket; `at_step` is the step
    that each node has come down to, at first its last one. V_min is 0 then, a bucket is an accumulated level, and the search does not stop
    before the budget is spent. `n_listed` arrows at most put an entry on a list in one bucket.
    """
    first_expanded = now.expanded
    while True:
        if not _next_bucket(rings, waiting, now):
            return Stop.EXHAUSTED
        f = now.bucket
        if now.n_head >= len(out_level):
            return Stop.NEED_HEAD
        if len(waiting.after) - now.n_waiting < n_listed:
            return Stop.NEED_LISTS
        if now.expanded > limit:
            return Stop.LIMIT
        if now.expanded - first_expanded > pause:
            return Stop.PAUSED

        _take_in_far(f, rings, now)
        sent, blocks = 0, rings.stride >> BLOCK
        for first in range(0, blocks if now.n_flags > 0 else 0, PART):
            last = min(first + PART, blocks)
            if not _expand(f, first, last, near, steps, at_step, rings, flush, far_nodes.taken, now):
                return Stop.NO_ACTION
            if now.n_small > 0:
                _put_aside(f, first, last, rings, aside, flush, now)
            sent = _send_far(f, sent, last, far, far_nodes, rings, waiting, now)
            _clear(f, first, last, rings, now)
        goal = (f & ((1 << rings.shift) - 1)) * rings.stride + rings.n
        arrived = rings.ring[goal]
        if arrived > 0.0:
            out_level[now.n_head], out_mass[now.n_head] = f, arrived
            now.n_head += 1
            now.since += arrived
            rings.ring[goal] = 0.0
        now.bucket = f + 1

        rest = now.summed - now.since
        if rest < 0.25 * now.summed:
            rest = _open_mass(rings, waiting) + now.lost + now.aside
            now.summed, now.since = rest, 0.0
        if now.n_head > 0 and f + 1 >= steps.budget and rest <= alpha * (1 + 5e-13):
            return Stop.FINISHED


@kernel
def _next_bucket(rings: Rings, waiting: Waiting, now: Any) -> bool:
    """Move on to the next bucket that may hold anything, taking in the entries of each epoch that starts; False if nothing is left."""
    width = 1 << rings.shift
    f = now.bucket
    nothing_near = now.n_flags == 0 and now.n_far == 0
    if nothing_near and (f & (width - 1)) != 0:
        f = ((f >> rings.shift) + 1) << rings.shift
    if (f & (width - 1)) == 0:
        if nothing_near:
            if now.n_waiting == 0:
                now.bucket = f
                return False
            while waiting.first[(f >> rings.shift) % len(waiting.first)] < 0:
                f += width
        _take_in_epoch(f, rings, waiting, now)
    now.bucket = f
    return True


@kernel
def _expand(
    f: int, first: int, last: int, near: Near, steps: Steps, at_step: Array, rings: Rings, flush: float, out_taken: Array, now: Any
) -> bool:
    """Send on, within the ring, what the nodes of blocks hold in bucket f; False if one of them has no action. What they hold stays until `_clear`.

    With budgets, `out_taken` gets the rows taken, if anybody wants to know. Many blocks a call: handing these groups of arrays over costs more than
    expanding one. What few nodes need has no place in this loop.
    """
    ring, flag = rings.ring, rings.flag
    n, end, base = rings.n, len(rings.ring), (f & ((1 << rings.shift) - 1)) * rings.stride
    expanded, new_flags, small = 0, 0, 0
    for block in range(first, last):
        if flag[(base >> BLOCK) + block] == 0:
            continue
        for node in range(block << BLOCK, min((block + 1) << BLOCK, n)):
            mass = ring[base + node]
            if mass == 0.0:
                continue
            # Masses at the edge of underflow would lose digits, and slow every operation down.
            if mass < flush:
                small += 1
                continue
            expanded += 1
            chosen = node
            if steps.budget >= 0:
                # Budgets only fall, and so does the step.
                step, left = at_step[node], steps.budget - f
                while step >= steps.first[node] and steps.from_budget[step] > left:
                    step -= 1
                at_step[node] = step
                chosen = steps.choice[step] if step >= steps.first[node] else steps.risk_neutral[node]
                if chosen < 0:
                    return False
                if len(out_taken) > 0:
                    out_taken[node] = chosen
            for arrow in range(near.row_start[chosen], near.row_start[chosen + 1]):
                cell = base + near.cell[arrow]
                if cell >= end:
                    cell -= end
                ring[cell] += mass * near.probability[arrow]
                if flag[cell >> BLOCK] == 0:
                    flag[cell >> BLOCK] = 1
                    new_flags += 1
    now.expanded += expanded
    now.n_flags += new_flags
    now.n_small = small
    return True


@kernel
def _put_aside(f: int, first: int, last: int, rings: Rings, aside: Aside, flush: float, now: Any) -> None:
    """Put aside what is too small to be followed of what the nodes of blocks hold in bucket f."""
    base = (f & ((1 << rings.shift) - 1)) * rings.stride
    for node in range(first << BLOCK, min(last << BLOCK, rings.n)):
        mass = rings.ring[base + node]
        if 0.0 < mass < flush:
            rings.ring[base + node] = 0.0
            aside.mass[node] += mass
            aside.bucket[node] = f
            now.aside += mass


@kernel
def _send_far(f: int, i: int, last: int, far: Far, nodes: FarNodes, rings: Rings, waiting: Waiting, now: Any) -> int:
    """Send on what jumps over the ring or leaks in bucket f, from the nodes before block `last`; returns how many of them are done, which were i."""
    ring, n_far_rows, base = rings.ring, rings.far.shape[0], (f & ((1 << rings.shift) - 1)) * rings.stride
    new_far, lost = 0, 0.0
    while i < len(nodes.node) and nodes.node[i] < last << BLOCK:
        node = nodes.node[i]
        mass, row = ring[base + node], nodes.taken[node] if len(nodes.taken) > 0 else i
        i += 1
        if mass == 0.0:
            continue
        lost += mass * far.leak[row]
        for other in range(far.row_start[row], far.row_start[row + 1]):
            to, jump = far.target[other], far.jump[other]
            share = mass * far.probability[other]
            if jump < n_far_rows:
                there, place = (f + jump) & (n_far_rows - 1), rings.far_place[to]
                if rings.far[there, place] == 0.0:
                    new_far += 1
                rings.far[there, place] += share
            else:
                wait(f + jump, to, share, rings.shift, waiting, now)
    now.n_far += new_far
    now.lost += lost
    return i


@kernel
def _clear(f: int, first: int, last: int, rings: Rings, now: Any) -> None:
    """Empty blocks of bucket f, but for what has arrived at the goal."""
    base = (f & ((1 << rings.shift) - 1)) * rings.stride
    for block in range((base >> BLOCK) + first, (base >> BLOCK) + last):
        if rings.flag[block]:
            for cell in range(block << BLOCK, min((block + 1) << BLOCK, base + rings.n)):
                rings.ring[cell] = 0.0
            rings.flag[block] = 0
            now.n_flags -= 1


@kernel
def wait(bucket: int, node: int, mass: float, shift: int, waiting: Waiting, now: Any) -> None:
    """Put an entry on the list of its epoch; the pool has room for it."""
    entry = now.free
    now.free = waiting.after[entry]
    epoch = (bucket >> shift) % len(waiting.first)
    waiting.bucket[entry] = bucket
    waiting.node[entry] = node
    waiting.mass[entry] = mass
    waiting.after[entry] = waiting.first[epoch]
    waiting.first[epoch] = entry
    now.n_waiting += 1


@kernel
def _put(row: int, node: int, mass: float, rings: Rings, now: Any) -> None:
    """Add mass to the ring and flag its block."""
    cell = row * rings.stride + node
    rings.ring[cell] += mass
    if rings.flag[cell >> BLOCK] == 0:
        rings.flag[cell >> BLOCK] = 1
        now.n_flags += 1


@kernel
def _take_in_far(f: int, rings: Rings, now: Any) -> None:
    """Move what the second ring holds for bucket f into the first."""
    if now.n_far == 0:
        return
    row = f & ((1 << rings.shift) - 1)
    far_row = f & (rings.far.shape[0] - 1)
    for i in range(len(rings.far_node)):
        if rings.far[far_row, i] > 0.0:
            _put(row, rings.far_node[i], rings.far[far_row, i], rings, now)
            rings.far[far_row, i] = 0.0
            now.n_far -= 1


@kernel
def _take_in_epoch(f: int, rings: Rings, waiting: Waiting, now: Any) -> None:
    """Move the entries of the epoch that starts at f into the ring."""
    epoch = (f >> rings.shift) % len(waiting.first)
    entry = waiting.first[epoch]
    waiting.first[epoch] = -1
    while entry >= 0:
        after = waiting.after[entry]
        _put(waiting.bucket[entry] & ((1 << rings.shift) - 1), waiting.node[entry], waiting.mass[entry], rings, now)
        waiting.after[entry] = now.free
        now.free = entry
        now.n_waiting -= 1
        entry = after


@kernel
def _open_mass(rings: Rings, waiting: Waiting) -> float:
    """The sum of everything still open, block by block so that roundings do not pile up."""
    total = 0.0
    for block in range(len(rings.flag)):
        if rings.flag[block]:
            part = 0.0
            for cell in range(block << BLOCK, (block + 1) << BLOCK):
                part += rings.ring[cell]
            total += part
    for row in range(rings.far.shape[0]):
        part = 0.0
        for i in range(rings.far.shape[1]):
            part += rings.far[row, i]
        total += part
    for epoch in range(len(waiting.first)):
        entry = waiting.first[epoch]
        while entry >= 0:
            total += waiting.mass[entry]
            entry = waiting.after[entry]
    return total


@kernel
def frontier(
    rings: Rings,
    waiting: Waiting,
    bucket: int,
    arrows: Arrows,
    unit: tuple[float, float],
    scale: float,
    least: float,
    name: Array,
) -> tuple[int, Array, Array, Array]:
    """List what is still open as (node, cost so far, mass). Open buckets are `bucket` and above. A place x is the node `name[x]`, and a level is so
    many `unit`s, a numerator and a denominator.

    Masses are multiplied by `scale` but for those below `least`, which come last; returned first is how many come before them.
    """
    count = _count_open(rings, waiting)
    out_node, out_cost, out_mass = np.empty(count, dtype=np.int64), np.empty(count), np.empty(count)
    end = _list_open(rings, waiting, bucket, arrows, unit, scale, least, name, out_node, out_cost, out_mass)
    return end, out_node, out_cost, out_mass


@kernel
def _count_open(rings: Rings, waiting: Waiting) -> int:
    count = 0
    for block in range(len(rings.flag)):
        if rings.flag[block]:
            for cell in range(block << BLOCK, (block + 1) << BLOCK):
                count += 1 if rings.ring[cell] > 0.0 else 0
    for row in range(rings.far.shape[0]):
        for i in range(rings.far.shape[1]):
            count += 1 if rings.far[row, i] > 0.0 else 0
    for epoch in range(len(waiting.first)):
        entry = waiting.first[epoch]
        while entry >= 0:
            count += 1
            entry = waiting.after[entry]
    return count


@kernel
def _list_open(
    rings: Rings,
    waiting: Waiting,
    bucket: int,
    arrows: Arrows,
    unit: tuple[float, float],
    scale: float,
    least: float,
    name: Array,
    out_node: Array,
    out_cost: Array,
    out_mass: Array,
) -> int:
    count = 0
    for block in range(len(rings.flag)):
        if rings.flag[block]:
            row = (block << BLOCK) // rings.stride
            # The one bucket >= `bucket` within the window that this row stands for.
            f = bucket + ((row - bucket) & ((1 << rings.shift) - 1))
            for cell in range(block << BLOCK, (block + 1) << BLOCK):
                if rings.ring[cell] > 0.0:
                    out_node[count], out_cost[count], out_mass[count] = cell - row * rings.stride, f, rings.ring[cell]
                    count += 1
    for row in range(rings.far.shape[0]):
        f = bucket + ((row - bucket) & (rings.far.shape[0] - 1))
        for i in range(rings.far.shape[1]):
            if rings.far[row, i] > 0.0:
                out_node[count], out_cost[count], out_mass[count] = rings.far_node[i], f, rings.far[row, i]
                count += 1
    for epoch in range(len(waiting.first)):
        entry = waiting.first[epoch]
        while entry >= 0:
            out_node[count], out_cost[count], out_mass[count] = waiting.node[entry], waiting.bucket[entry], waiting.mass[entry]
            count += 1
            entry = waiting.after[entry]
    numerator, denominator = unit
    for i in range(count):
        out_node[i] = name[out_node[i]]
        height = arrows.height[out_node[i]] if len(arrows.height) > 0 else 0.0
        out_cost[i] = (out_cost[i] - height) * numerator / denominator
    i, end = 0, count
    while i < end:
        if out_mass[i] >= least:
            out_mass[i] *= scale
            i += 1
        else:
            end -= 1
            out_node[i], out_node[end] = out_node[end], out_node[i]
            out_cost[i], out_cost[end] = out_cost[end], out_cost[i]
            out_mass[i], out_mass[end] = out_mass[end], out_mass[i]
    return end
