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

Array = NDArray[Any]
BLOCK = 6
FINISHED, PAUSED, NEED_HEAD, NEED_LISTS, LIMIT, EXHAUSTED, NO_ACTION = 0, 1, 2, 3, 4, 5, 6
# Slots of the integer and the float state that survives between calls.
BUCKET, N_HEAD, EXPANDED, N_WAITING, FREE, N_FLAGS, N_FAR = 0, 1, 2, 3, 4, 5, 6
BASE, SINCE, LOST = 0, 1, 2


@kernel
def search(
    row_start: Array,
    target: Array,
    probability: Array,
    jump: Array,
    leak: Array,
    budget: int,
    first_choice: Array,
    neutral: Array,
    table_row: Array,
    table: Array,
    shift: int,
    ring: Array,
    flag: Array,
    far: Array,
    far_node: Array,
    far_place: Array,
    list_head: Array,
    entry_next: Array,
    entry_bucket: Array,
    entry_node: Array,
    entry_mass: Array,
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

    `whole` and `real` carry the state from call to call. `real[BASE]` is an exactly summed open mass and `real[SINCE]` what reached the
    goal since, so that the cheap difference is trusted only while it is a fair share of the base.

    With a `budget` >= 0 rows belong to choices, not to nodes, and a node picks its choice by the budget left in the bucket: `table` while
    there is any, `neutral` after. V_min is 0 then, a bucket is an accumulated level, and the search does not stop before the budget is
    spent.
    """
    by_budget = budget >= 0
    n = ring.shape[1] - 1
    width = 1 << shift
    mask = width - 1
    n_epochs = len(list_head)
    n_blocks = flag.shape[1]
    first_expanded = whole[EXPANDED]
    while True:
        f = whole[BUCKET]
        nothing_near = whole[N_FLAGS] == 0 and whole[N_FAR] == 0
        if nothing_near and (f & mask) != 0:
            f = ((f >> shift) + 1) << shift
        if (f & mask) == 0:
            if nothing_near:
                if whole[N_WAITING] == 0:
                    whole[BUCKET] = f
                    return EXHAUSTED
                while list_head[(f >> shift) % n_epochs] < 0:
                    f += width
            _take_in(f, shift, ring, flag, list_head, entry_next, entry_bucket, entry_node, entry_mass, whole)
        whole[BUCKET] = f
        if whole[N_HEAD] >= len(out_level):
            return NEED_HEAD
        if len(entry_next) - whole[N_WAITING] < n_listed:
            return NEED_LISTS
        if whole[EXPANDED] > limit:
            return LIMIT
        if whole[EXPANDED] - first_expanded > pause:
            return PAUSED

        row = f & mask
        if whole[N_FAR] > 0:
            far_row = f & (far.shape[0] - 1)
            for i in range(len(far_node)):
                if far[far_row, i] > 0.0:
                    ring[row, far_node[i]] += far[far_row, i]
                    far[far_row, i] = 0.0
                    whole[N_FAR] -= 1
                    if flag[row, far_node[i] >> BLOCK] == 0:
                        flag[row, far_node[i] >> BLOCK] = 1
                        whole[N_FLAGS] += 1
        expanded = 0
        for block in range(n_blocks):
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
                real[LOST] += mass * leak[node]
                row_of_node = node
                if by_budget:
                    row_of_node = neutral[node]
                    if f < budget and table_row[node] >= 0:
                        row_of_node = first_choice[node] + table[table_row[node], budget - f]
                    if row_of_node < 0:
                        return NO_ACTION
                for edge in range(row_start[row_of_node], row_start[row_of_node + 1]):
                    to = target[edge]
                    there = f + jump[edge]
                    if jump[edge] < width:
                        ring[there & mask, to] += mass * probability[edge]
                        if flag[there & mask, to >> BLOCK] == 0:
                            flag[there & mask, to >> BLOCK] = 1
                            whole[N_FLAGS] += 1
                    elif jump[edge] < far.shape[0]:
                        if far[there & (far.shape[0] - 1), far_place[to]] == 0.0:
                            whole[N_FAR] += 1
                        far[there & (far.shape[0] - 1), far_place[to]] += mass * probability[edge]
                    else:
                        _wait(
                            there, to, mass * probability[edge], shift, list_head, entry_next, entry_bucket, entry_node, entry_mass, whole
                        )
            if block << BLOCK <= n < (block + 1) << BLOCK and ring[row, n] > 0.0:
                out_level[whole[N_HEAD]] = f
                out_mass[whole[N_HEAD]] = ring[row, n]
                whole[N_HEAD] += 1
                real[SINCE] += ring[row, n]
                ring[row, n] = 0.0
            # Cleared only now: arrows within the block mark it again while it is worked on.
            flag[row, block] = 0
            whole[N_FLAGS] -= 1
        whole[EXPANDED] += expanded
        whole[BUCKET] = f + 1

        rest = real[BASE] - real[SINCE]
        if whole[N_HEAD] > 0 and f + 1 >= budget and (rest <= alpha * (1 + 1e-9) or rest < 0.25 * real[BASE]):
            rest = _open_mass(ring, flag, far, list_head, entry_next, entry_mass) + real[LOST]
            real[BASE], real[SINCE] = rest, 0.0
            if rest <= alpha * (1 + 1e-12):
                return FINISHED


@kernel
def _wait(
    bucket: int,
    node: int,
    mass: float,
    shift: int,
    list_head: Array,
    entry_next: Array,
    entry_bucket: Array,
    entry_node: Array,
    entry_mass: Array,
    whole: Array,
) -> None:
    """Put an entry on the list of its epoch."""
    entry = whole[FREE]
    whole[FREE] = entry_next[entry]
    epoch = (bucket >> shift) % len(list_head)
    entry_bucket[entry] = bucket
    entry_node[entry] = node
    entry_mass[entry] = mass
    entry_next[entry] = list_head[epoch]
    list_head[epoch] = entry
    whole[N_WAITING] += 1


@kernel
def _take_in(
    f: int,
    shift: int,
    ring: Array,
    flag: Array,
    list_head: Array,
    entry_next: Array,
    entry_bucket: Array,
    entry_node: Array,
    entry_mass: Array,
    whole: Array,
) -> None:
    """Move the entries of the epoch that starts at f into the ring."""
    mask = (1 << shift) - 1
    epoch = (f >> shift) % len(list_head)
    entry = list_head[epoch]
    list_head[epoch] = -1
    while entry >= 0:
        after = entry_next[entry]
        row, node = entry_bucket[entry] & mask, entry_node[entry]
        ring[row, node] += entry_mass[entry]
        if flag[row, node >> BLOCK] == 0:
            flag[row, node >> BLOCK] = 1
            whole[N_FLAGS] += 1
        entry_next[entry] = whole[FREE]
        whole[FREE] = entry
        whole[N_WAITING] -= 1
        entry = after


@kernel
def _open_mass(ring: Array, flag: Array, far: Array, list_head: Array, entry_next: Array, entry_mass: Array) -> float:
    total = 0.0
    for row in range(ring.shape[0]):
        for block in range(flag.shape[1]):
            if flag[row, block]:
                part = 0.0
                for node in range(block << BLOCK, min((block + 1) << BLOCK, ring.shape[1])):
                    part += ring[row, node]
                total += part
    for row in range(far.shape[0]):
        part = 0.0
        for i in range(far.shape[1]):
            part += far[row, i]
        total += part
    for epoch in range(len(list_head)):
        entry = list_head[epoch]
        while entry >= 0:
            total += entry_mass[entry]
            entry = entry_next[entry]
    return total


@kernel
def frontier(
    shift: int,
    ring: Array,
    flag: Array,
    far: Array,
    far_node: Array,
    list_head: Array,
    entry_next: Array,
    entry_bucket: Array,
    entry_node: Array,
    entry_mass: Array,
    bucket: int,
    out_node: Array,
    out_bucket: Array,
    out_mass: Array,
) -> int:
    """List what is still open as (node, bucket, mass); with arrays of length 0 only count it. Open buckets are `bucket` and above."""
    mask = (1 << shift) - 1
    count = 0
    for row in range(ring.shape[0]):
        # The one bucket >= `bucket` within the window that this row stands for.
        f = bucket + ((row - bucket) & mask)
        for block in range(flag.shape[1]):
            if flag[row, block]:
                for node in range(block << BLOCK, min((block + 1) << BLOCK, ring.shape[1])):
                    if ring[row, node] > 0.0:
                        if len(out_node) > 0:
                            out_node[count], out_bucket[count], out_mass[count] = node, f, ring[row, node]
                        count += 1
    for row in range(far.shape[0]):
        for i in range(far.shape[1]):
            if far[row, i] > 0.0:
                if len(out_node) > 0:
                    f = bucket + ((row - bucket) & (far.shape[0] - 1))
                    out_node[count], out_bucket[count], out_mass[count] = far_node[i], f, far[row, i]
                count += 1
    for epoch in range(len(list_head)):
        entry = list_head[epoch]
        while entry >= 0:
            if len(out_node) > 0:
                out_node[count], out_bucket[count], out_mass[count] = entry_node[entry], entry_bucket[entry], entry_mass[entry]
            count += 1
            entry = entry_next[entry]
    return count


@kernel
def wait_all(
    bucket: Array,
    node: Array,
    mass: Array,
    shift: int,
    list_head: Array,
    entry_next: Array,
    entry_bucket: Array,
    entry_node: Array,
    entry_mass: Array,
    whole: Array,
) -> None:
    """Queue the entries a search starts from; the pool has room for them."""
    for i in range(len(bucket)):
        _wait(bucket[i], node[i], mass[i], shift, list_head, entry_next, entry_bucket, entry_node, entry_mass, whole)
