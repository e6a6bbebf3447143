"""The forward search: probabilities move from node to node, cheapest total costs first.

A pair (node x, level g) holds the probability of being in x with g cost units paid. It waits in the
bucket f = g + h(x), where h is a consistent lower bound on the cost to go, in units:
h(x) <= c + h(y) for every transition. A transition *jumps* c + h(y) - h(x) >= 0 buckets ahead, and
nodes are numbered so that one that jumps 0 buckets leads to a higher number. So one pass over a
bucket finishes it, and what reaches the goal in bucket f costs f.

    node 0 .. n - 1   can be left; the *goal* is node n, and node n + 1 all dead ends
    row               the transitions of a node or, where nodes choose by budget, of a choice
    ring              the next buckets (`ring.py`)
    overflow          what jumps over the ring waits in lists, one for each 2^shift buckets (epoch)

A budget w makes nodes choose: at level g (h is 0 then) w - g is left. That only falls, so that a
pointer into the steps of each node moves down as levels rise.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tailpath.dp.ring import BITS, BLOCK, ONE, RECENT, Overflow, Ring, RingRows, U
from tailpath.kernels.jit import Array, kernel


class RowSteps(NamedTuple):
    """Which row a node takes: `row[k]` from the budget `from_budget[k]` on; k moves down.

    `at_step` is the last step of every node at first, and the first one holds for every budget.
    `taken` becomes its row. Without steps all are empty, and node x takes row x.
    """

    at_step: Array  # int64 (n,) or (0,)
    from_budget: Array  # int64 (K,), rising within a node
    row: Array  # int64 (K,), -1 where there is no action
    taken: Array  # int64 (n,) or (0,)


class Limits(NamedTuple):
    """The search ends in bucket `until` or later, once P(Z > f) <= `alpha`, which any f does for an
    alpha above 1; or with more than `expanded` pairs; or, to be looked at, after `pause` of them.
    Nodes that choose had the `budget` at first.
    """

    alpha: float
    until: int
    budget: int
    expanded: int
    pause: int


#: What survives between two calls of the search: the next bucket; how many costs were found since
#: somebody took them, and the last of them, or -1; pairs expanded; entries of the overflow, and the
#: first unused one; blocks in use; a node without action, or -1; a sum of all that had not arrived,
#: and what arrived since; what is in dead ends; and what was dropped.
STATE = np.dtype(
    (
        np.record,
        [(name, np.int64) for name in ("bucket", "n_found", "last", "expanded", "n_overflow")]
        + [(name, np.int64) for name in ("unused", "n_in_use", "no_action")]
        + [(name, np.float64) for name in ("open_mass", "arrived", "dead_end_mass", "dropped")],
    )
)
#: A smaller mass is dropped: products with it would lose digits, and slow every operation down.
LEAST_MASS = 1e-300


#: Why the search returned.
FINISHED, PAUSED, ARRAYS_FULL, AT_LIMIT, NO_ACTION = range(5)


@kernel
def search(
    rows: RingRows,
    steps: RowSteps,
    ring: Ring,
    overflow: Overflow,
    limits: Limits,
    state: Any,
    out_level: Array,
    out_mass: Array,
) -> int:
    """Work through buckets until P(Z > f) <= alpha or nothing is open, or until a limit is reached.

    P(Z > f) is what was open less what arrived since, with nearly full relative accuracy while that
    is a fair share; the sum is taken anew when it no longer is. A tail that cannot be told from
    alpha counts as equal.
    """
    begin, width = state.expanded, 1 << ring.shift
    stride = U(ring.stride)
    near = rows.near_start, rows.near_cell, rows.near_probability
    enough = limits.alpha > 1
    while state.n_in_use > 0 or state.n_overflow > 0:
        if state.n_in_use == 0 or state.bucket % width == 0:
            _begin_epoch(ring, overflow, state)
        if enough and state.bucket >= limits.until:
            return FINISHED
        room = len(overflow.after) - state.n_overflow
        if state.n_found >= len(out_level) or room < len(rows.far_jump):
            return ARRAYS_FULL
        if state.expanded > limits.expanded:
            return AT_LIMIT
        if state.expanded - begin > limits.pause:
            return PAUSED
        first = U(state.bucket % width) * stride
        goal = first + U(ring.n)
        cells = first, goal, first + stride
        expanded, new_blocks, dropped, state.no_action = _send_on(
            near, steps, ring.mass, ring.in_use, cells, limits.budget - state.bucket
        )
        state.expanded += expanded
        state.n_in_use += new_blocks
        state.dropped += dropped
        # What few nodes need has a loop of its own: the first is an addition and little else.
        if len(rows.far_jump) > 0:
            _leave_ring(rows, steps.taken, ring, overflow, first, state)
        if state.no_action >= 0:
            return NO_ACTION
        _close_bucket(ring, first, goal, state, out_level, out_mass)
        state.bucket += 1
        tail = state.open_mass - state.arrived
        if tail < 0.25 * state.open_mass:
            tail = _open_mass(ring, overflow) + state.dead_end_mass + state.dropped
            state.open_mass, state.arrived = tail, 0.0
        enough = limits.alpha > 1 or (tail <= limits.alpha * (1 + 5e-13) and state.last >= 0)
    return FINISHED


@kernel(inline=True)
def _close_bucket(
    ring: Ring, first: int, goal: int, state: Any, out_level: Array, out_mass: Array
) -> None:
    """Put down what has arrived in a bucket that was sent on, and clear it."""
    arrived = ring.mass[goal] if ring.in_use[goal >> BITS] else 0.0
    if arrived > 0.0:
        out_level[state.n_found], out_mass[state.n_found] = state.bucket, arrived
        state.n_found += 1
        state.last = state.bucket
        state.arrived += arrived
    if ring.in_use[(goal + ONE) >> BITS]:
        state.dead_end_mass += ring.mass[goal + ONE]
    for block in range(first >> BITS, (first + U(ring.stride)) >> BITS):
        state.n_in_use -= ring.in_use[block]
        ring.in_use[block] = 0


@kernel
def use_block(mass: Array, in_use: Array, block: int) -> None:
    """Clear a block of the ring, and mark it."""
    in_use[block] = 1
    for cell in range(block << BITS, (block + ONE) << BITS):
        mass[cell] = 0.0


@kernel(inline=True)
def _begin_epoch(ring: Ring, overflow: Overflow, state: Any) -> None:
    """Move on to the epoch that begins here or, if the ring is empty, to the next that holds any.

    Its entries move from the overflow into the ring.
    """
    epoch = -((-state.bucket) >> ring.shift)
    while True:
        slot = epoch % len(overflow.first)
        entry = overflow.first[slot]
        overflow.first[slot] = -1
        while entry >= 0:
            after = overflow.after[entry]
            if overflow.bucket[entry] >> ring.shift == epoch:
                row = overflow.bucket[entry] - (epoch << ring.shift)
                cell = U(row * ring.stride + overflow.node[entry])
                if ring.in_use[cell >> BITS] == 0:
                    use_block(ring.mass, ring.in_use, cell >> BITS)
                    state.n_in_use += 1
                ring.mass[cell] += overflow.mass[entry]
                overflow.mass[entry] = 0.0
                overflow.after[entry] = state.unused
                state.unused = entry
                state.n_overflow -= 1
            else:  # of a later epoch that shares the list
                overflow.after[entry] = overflow.first[slot]
                overflow.first[slot] = entry
            entry = after
        if state.n_in_use > 0:
            break
        epoch += 1
    state.bucket = epoch << ring.shift


@kernel
def _send_on(
    rows: tuple[Array, Array, Array],
    steps: RowSteps,
    cell_mass: Array,
    in_use: Array,
    bucket: tuple[int, int, int],
    remaining: int,
) -> tuple[int, int, float, int]:
    """Send on, within the ring, what the nodes of a bucket hold; it stays there, too.

    Returns how many were expanded, the blocks that came into use, the mass that was dropped, and a
    node without action, or -1.
    """
    row_start, row_cell, probability = rows
    first, goal, end = bucket
    taken, chooses = steps.taken, len(steps.taken) > 0
    n_cells, n_rows = U(len(cell_mass)), U(len(row_start) - 1)
    expanded, new_blocks = 0, 0
    dropped, no_action = 0.0, -1
    for block in range(first >> BITS, end >> BITS):
        if in_use[block] == 0 or no_action >= 0:
            continue
        last: Any = min((block + ONE) << BITS, goal)
        if chooses:
            _choose_rows(steps, (block << BITS) - first, last - first, remaining)
        for here in range(block << BITS, last):
            mass = cell_mass[here]
            row: Any = here - first
            if mass < LEAST_MASS:
                dropped += mass
                continue
            expanded += 1
            if chooses:
                row = U(taken[row])
                if row >= n_rows:
                    no_action = int(here - first)
                    break
            for t in range(U(row_start[row]), U(row_start[row + ONE])):
                cell = first + row_cell[t]
                if cell >= n_cells:
                    cell -= n_cells
                if in_use[cell >> BITS] == 0:
                    use_block(cell_mass, in_use, cell >> BITS)
                    new_blocks += 1
                cell_mass[cell] += mass * probability[t]
    return expanded, new_blocks, dropped, no_action


@kernel
def _choose_rows(steps: RowSteps, first: int, last: int, remaining: int) -> None:
    """The rows that some nodes take with so much of the budget left."""
    for node in range(first, last):
        step = steps.at_step[node]
        while steps.from_budget[step] > remaining:
            step -= 1
        steps.at_step[node], steps.taken[node] = step, steps.row[step]


@kernel
def _leave_ring(
    rows: RingRows, taken: Array, ring: Ring, overflow: Overflow, first: int, state: Any
) -> None:
    """Send on what jumps over the ring from the nodes of a bucket."""
    bucket, chooses = state.bucket, len(taken) > 0
    for here in range(first, first + U(ring.n)):
        mass = ring.mass[here]
        row: Any = here - first
        if ring.in_use[here >> BITS] == 0 or mass < LEAST_MASS:
            continue
        row = U(taken[row]) if chooses else row
        for t in range(U(rows.far_start[row]), U(rows.far_start[row + ONE])):
            there, target = bucket + rows.far_jump[t], rows.far_target[t]
            recent = U(rows.far_recent[t] + (there & ((1 << RECENT) - 1)))
            entry = U(overflow.recent[recent])
            if (
                overflow.bucket[entry] == there
                and overflow.node[entry] == target
                and overflow.mass[entry] > 0.0
            ):
                overflow.mass[entry] += mass * rows.far_probability[t]
                continue
            entry = U(state.unused)
            slot = U((there >> ring.shift) % len(overflow.first))
            state.unused = overflow.after[entry]
            overflow.recent[recent] = entry
            overflow.bucket[entry] = there
            overflow.node[entry] = target
            overflow.mass[entry] = mass * rows.far_probability[t]
            overflow.after[entry] = overflow.first[slot]
            overflow.first[slot] = entry
            state.n_overflow += 1


@kernel
def _open_mass(ring: Ring, overflow: Overflow) -> float:
    """The sum of all that is open, block by block so that roundings do not pile up."""
    total = 0.0
    for block in range(len(ring.in_use)):
        if ring.in_use[block]:
            part = 0.0
            for cell in range(block << BLOCK, (block + 1) << BLOCK):
                part += ring.mass[cell]
            total += part
    for begin in range(0, len(overflow.mass), 1 << BLOCK):
        part = 0.0
        for entry in range(begin, min(begin + (1 << BLOCK), len(overflow.mass))):
            part += overflow.mass[entry]
        total += part
    return total
