"""The forward search on integer cost levels.

Nodes stand in the order of falling V_min (ties: along free arrows), so that in the bucket f = level + V_min every arrow that stays in the
bucket leads forward: one pass over a bucket finishes it. `jump` = cost + V_min(target) - V_min(node) >= 0 is how many buckets an arrow
skips. Bucket f of node x holds the probability of being in x with accumulated level f - V_min(x). Node n is the goal; what arrives there
in bucket f costs f.

Buckets f .. f + width - 1 live in a ring of rows; arrows that jump further wait in lists by epoch (f // width), so a jump of 10^6 levels
costs one entry and not 10^6 rows. `flag` marks blocks of 64 nodes that hold anything, so that empty regions are passed over.
"""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from tailpath.kernels.jit import kernel
from tailpath.kernels.lattice_arrays import (
    BASE,
    BLOCK,
    BUCKET,
    EXHAUSTED,
    EXPANDED,
    FINISHED,
    FREE,
    LIMIT,
    LOST,
    N_FAR,
    N_FLAGS,
    N_HEAD,
    N_WAITING,
    NEED_HEAD,
    NEED_LISTS,
    NO_ACTION,
    PAUSED,
    SINCE,
    Arrows,
    BudgetRows,
    Rings,
    Waiting,
)

Array = NDArray[Any]


@kernel
def search(
    arrows: Arrows,
    by_budget: BudgetRows,
    rings: Rings,
    waiting: Waiting,
    n_listed: int,
    alpha: float,
    flush: float,
    limit: int,
    pause: int,
    out_level: Array,
    out_mass: Array,
    whole: Array,
    real: Array,
) -> int:
    """Work through buckets until P(Z > f) <= alpha, `limit` expansions in all, or `pause` expansions in this call.

    `whole` and `real` carry the state from call to call. `real[BASE]` is a summed open mass and `real[SINCE]` what reached the goal since; the
    difference is P(Z > f) with nearly full relative accuracy while it is a fair share of the base, and the sum is taken anew when it no
    longer is. A tail that cannot be told from alpha counts as equal.

    With a budget >= 0 rows belong to choices, not to nodes, and a node picks its choice by the budget left in the bucket: `table` while
    there is any, `neutral` after. V_min is 0 then, a bucket is an accumulated level, and the search does not stop before the budget is
    spent. `n_listed` arrows at most put an entry on a list in one bucket.
    """
    n = rings.ring.shape[1] - 1
    first_expanded = whole[EXPANDED]
    while True:
        if not _next_bucket(rings, waiting, whole):
            return EXHAUSTED
        f = whole[BUCKET]
        if whole[N_HEAD] >= len(out_level):
            return NEED_HEAD
        if len(waiting.after) - whole[N_WAITING] < n_listed:
            return NEED_LISTS
        if whole[EXPANDED] > limit:
            return LIMIT
        if whole[EXPANDED] - first_expanded > pause:
            return PAUSED

        _take_in_far(f, rings, whole)
        if whole[N_FLAGS] > 0 and not _expand_bucket(f, arrows, by_budget, rings, waiting, flush, whole, real):
            return NO_ACTION
        arrived = rings.ring[f & ((1 << rings.shift) - 1), n]
        if arrived > 0.0:
            out_level[whole[N_HEAD]], out_mass[whole[N_HEAD]] = f, arrived
            whole[N_HEAD] += 1
            real[SINCE] += arrived
            rings.ring[f & ((1 << rings.shift) - 1), n] = 0.0
        whole[BUCKET] = f + 1

        rest = real[BASE] - real[SINCE]
        if rest < 0.25 * real[BASE]:
            rest = _open_mass(rings, waiting) + real[LOST]
            real[BASE], real[SINCE] = rest, 0.0
        if whole[N_HEAD] > 0 and f + 1 >= by_budget.budget and rest <= alpha * (1 + 5e-13):
            return FINISHED


@kernel
def _next_bucket(rings: Rings, waiting: Waiting, whole: Array) -> bool:
    """Move on to the next bucket that may hold anything, taking in the entries of each epoch that starts; False if nothing is left."""
    width = 1 << rings.shift
    f = whole[BUCKET]
    nothing_near = whole[N_FLAGS] == 0 and whole[N_FAR] == 0
    if nothing_near and (f & (width - 1)) != 0:
        f = ((f >> rings.shift) + 1) << rings.shift
    if (f & (width - 1)) == 0:
        if nothing_near:
            if whole[N_WAITING] == 0:
                whole[BUCKET] = f
                return False
            while waiting.first[(f >> rings.shift) % len(waiting.first)] < 0:
                f += width
        _take_in_epoch(f, rings, waiting, whole)
    whole[BUCKET] = f
    return True


@kernel
def _expand_bucket(
    f: int, arrows: Arrows, by_budget: BudgetRows, rings: Rings, waiting: Waiting, flush: float, whole: Array, real: Array
) -> bool:
    """Send on what the nodes hold in bucket f; False if one of them has no action. What arrives at the goal stays there.

    One call per bucket: handing these groups of arrays over costs more than expanding a block.
    """
    ring, flag, far = rings.ring, rings.flag, rings.far
    n = ring.shape[1] - 1
    width = 1 << rings.shift
    row = f & (width - 1)
    n_far_rows = far.shape[0]
    expanded, new_flags, new_far, lost = 0, 0, 0, 0.0
    for block in range(flag.shape[1]):
        if flag[row, block] == 0:
            continue
        for node in range(block << BLOCK, min((block + 1) << BLOCK, n)):
            mass = ring[row, node]
            if mass == 0.0:
                continue
            ring[row, node] = 0.0
            # Masses at the edge of underflow change nothing and would slow every operation down.
            if mass < flush:
                continue
            expanded += 1
            lost += mass * arrows.leak[node]
            chosen = node
            if by_budget.budget >= 0:
                chosen = by_budget.neutral[node]
                if f < by_budget.budget and by_budget.table_row[node] >= 0:
                    chosen = by_budget.first_choice[node] + by_budget.table[by_budget.table_row[node], by_budget.budget - f]
                if chosen < 0:
                    return False
            for arrow in range(arrows.row_start[chosen], arrows.row_start[chosen + 1]):
                to = arrows.target[arrow]
                jump = arrows.jump[arrow]
                share = mass * arrows.probability[arrow]
                if jump < width:
                    there = (f + jump) & (width - 1)
                    ring[there, to] += share
                    if flag[there, to >> BLOCK] == 0:
                        flag[there, to >> BLOCK] = 1
                        new_flags += 1
                elif jump < n_far_rows:
                    there = (f + jump) & (n_far_rows - 1)
                    if far[there, rings.far_place[to]] == 0.0:
                        new_far += 1
                    far[there, rings.far_place[to]] += share
                else:
                    wait(f + jump, to, share, rings.shift, waiting, whole)
        # Cleared only now: arrows within the block mark it again while it is worked on.
        flag[row, block] = 0
        new_flags -= 1
    whole[EXPANDED] += expanded
    whole[N_FLAGS] += new_flags
    whole[N_FAR] += new_far
    real[LOST] += lost
    return True


@kernel
def wait(bucket: int, node: int, mass: float, shift: int, waiting: Waiting, whole: Array) -> None:
    """Put an entry on the list of its epoch; the pool has room for it."""
    entry = whole[FREE]
    whole[FREE] = waiting.after[entry]
    epoch = (bucket >> shift) % len(waiting.first)
    waiting.bucket[entry] = bucket
    waiting.node[entry] = node
    waiting.mass[entry] = mass
    waiting.after[entry] = waiting.first[epoch]
    waiting.first[epoch] = entry
    whole[N_WAITING] += 1


@kernel
def _put(row: int, node: int, mass: float, rings: Rings, whole: Array) -> None:
    """Add mass to the ring and flag its block."""
    rings.ring[row, node] += mass
    if rings.flag[row, node >> BLOCK] == 0:
        rings.flag[row, node >> BLOCK] = 1
        whole[N_FLAGS] += 1


@kernel
def _take_in_far(f: int, rings: Rings, whole: Array) -> None:
    """Move what the second ring holds for bucket f into the first."""
    if whole[N_FAR] == 0:
        return
    row = f & ((1 << rings.shift) - 1)
    far_row = f & (rings.far.shape[0] - 1)
    for i in range(len(rings.far_node)):
        if rings.far[far_row, i] > 0.0:
            _put(row, rings.far_node[i], rings.far[far_row, i], rings, whole)
            rings.far[far_row, i] = 0.0
            whole[N_FAR] -= 1


@kernel
def _take_in_epoch(f: int, rings: Rings, waiting: Waiting, whole: Array) -> None:
    """Move the entries of the epoch that starts at f into the ring."""
    epoch = (f >> rings.shift) % len(waiting.first)
    entry = waiting.first[epoch]
    waiting.first[epoch] = -1
    while entry >= 0:
        after = waiting.after[entry]
        _put(waiting.bucket[entry] & ((1 << rings.shift) - 1), waiting.node[entry], waiting.mass[entry], rings, whole)
        waiting.after[entry] = whole[FREE]
        whole[FREE] = entry
        whole[N_WAITING] -= 1
        entry = after


@kernel
def _open_mass(rings: Rings, waiting: Waiting) -> float:
    """The sum of everything still open, block by block so that roundings do not pile up."""
    total = 0.0
    for row in range(rings.ring.shape[0]):
        for block in range(rings.flag.shape[1]):
            if rings.flag[row, block]:
                part = 0.0
                for node in range(block << BLOCK, min((block + 1) << BLOCK, rings.ring.shape[1])):
                    part += rings.ring[row, node]
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
def frontier(rings: Rings, waiting: Waiting, bucket: int, out_node: Array, out_bucket: Array, out_mass: Array) -> int:
    """List what is still open as (node, bucket, mass); with arrays of length 0 only count it. Open buckets are `bucket` and above."""
    listing = len(out_node) > 0
    count = 0
    for row in range(rings.ring.shape[0]):
        # The one bucket >= `bucket` within the window that this row stands for.
        f = bucket + ((row - bucket) & (rings.ring.shape[0] - 1))
        for block in range(rings.flag.shape[1]):
            if rings.flag[row, block]:
                for node in range(block << BLOCK, min((block + 1) << BLOCK, rings.ring.shape[1])):
                    if rings.ring[row, node] > 0.0:
                        if listing:
                            out_node[count], out_bucket[count], out_mass[count] = node, f, rings.ring[row, node]
                        count += 1
    for row in range(rings.far.shape[0]):
        f = bucket + ((row - bucket) & (rings.far.shape[0] - 1))
        for i in range(rings.far.shape[1]):
            if rings.far[row, i] > 0.0:
                if listing:
                    out_node[count], out_bucket[count], out_mass[count] = rings.far_node[i], f, rings.far[row, i]
                count += 1
    for epoch in range(len(waiting.first)):
        entry = waiting.first[epoch]
        while entry >= 0:
            if listing:
                out_node[count], out_bucket[count], out_mass[count] = waiting.node[entry], waiting.bucket[entry], waiting.mass[entry]
            count += 1
            entry = waiting.after[entry]
    return count
