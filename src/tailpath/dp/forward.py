"""The forward search: probabilities move from node to node, cheapest total costs first.

A pair (node x, level g) holds the probability of being in x with g cost units paid. It waits in the
bucket f = g + h(x), where h is a consistent lower bound on the cost to go, in units:
h(x) <= c + h(y) for every transition. A transition *jumps* c + h(y) - h(x) >= 0 buckets ahead, and
nodes are numbered so that one that jumps 0 buckets leads to a higher number. So one pass over a
bucket finishes it, and what reaches the goal in bucket f costs f.

    node 0 .. n - 1   can be left; the *goal* is node n, and node n + 1 all dead ends
    row               the transitions of a node or, where nodes choose by budget, of a choice
    ring              the buckets f .. f + 2^shift - 1, with a cell for every node
    overflow          what jumps over the ring waits in lists, one for each 2^shift buckets (epoch)

A budget w makes nodes choose: at level g (h is 0 then) w - g is left, which decides the row.

Indices of the inner loops are unsigned: the compiler asks of others whether they count from the
end.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tailpath.graph import Transitions, owners
from tailpath.kernels.jit import Array, frozen, kernel
from tailpath.kernels.rounding import SAME_MASS
from tailpath.kernels.steps import NO_STEPS, Steps, step_choice

#: log2 of the cells that share a mark of being in use.
BLOCK = 6
U = np.uint64
BITS, ONE = U(BLOCK), U(1)
#: Lists of the overflow at most; epochs that are as far apart share one.
MAX_LISTS = 1 << 14
#: A smaller mass is dropped: products with it would lose digits, and slow every operation down.
LEAST_MASS = 1e-300
#: A tail that is more than alpha by this share counts as equal to it. It is half of what a quantile
#: is looked for with, so that a search that ends has found it.
SAME_TAIL = SAME_MASS / 2
#: What a node does that never arrives: nothing once its budget is spent, or nothing at all.
ONCE_SPENT, ALWAYS = 1, 2
#: Why the search returned.
FINISHED, PAUSED, ARRAYS_FULL, AT_LIMIT, NO_ACTION = range(5)
#: What survives between two calls of the search. Its limits: it ends in bucket `until` or later,
#: once P(Z > f) <= `alpha`, which any f does for an alpha above 1; or with more than `limit` pairs
#: expanded; or, to be looked at, after `pause` of them. Then the next bucket; how many levels were
#: found, in how many runs, and the last of them, or -1; pairs expanded; entries of the overflow,
#: and the first unused one; blocks in use; a node without action, and one where the goal was out of
#: reach, or -1; a sum of all that had not arrived, and what arrived since; what never arrives, what
#: rounding took off that sum, and what was dropped.
STATE = np.dtype(
    (
        np.record,
        [(name, np.int64) for name in ("until", "limit", "pause", "bucket", "n_found", "n_runs")]
        + [(name, np.int64) for name in ("last", "expanded", "n_overflow", "unused", "n_in_use")]
        + [(name, np.int64) for name in ("no_action", "trapped")]
        + [(name, np.float64) for name in ("alpha", "open_mass", "arrived", "dead_mass")]
        + [("dead_rest", np.float64), ("dropped", np.float64)],
    )
)


class Space(NamedTuple):
    """What is searched: some `row`s of transitions, in the order of their nodes.

    `node[x]` is the caller's number of node x, and `position` the other way round, -1 at dead ends;
    `heuristic` is by the caller's number, or empty. With `steps` nodes choose their row by budget,
    and `trapped` says which of them never arrive.
    """

    rows: Transitions
    row: Array  # int64 (R,)
    node: Array  # int64 (n + 1,)
    position: Array  # int64
    heuristic: Array = np.empty(0)
    steps: Steps = NO_STEPS
    trapped: Array = np.empty(0, np.uint8)  # (n,)


class Ring(NamedTuple):
    """Rows, and the probabilities that are open, by bucket and node.

    `cell` is jump * stride + target: how far the cell that is entered lies behind the first cell of
    the bucket that is left; `n_far` of them jump over the ring, those from `near_end` of a row on.
    `in_use` marks the blocks of 2^BLOCK cells that hold any mass. Other blocks hold what they held
    last, or anything: they are cleared when they are next used.

    In the overflow `first[epoch % E]` is an entry or -1, and `after` the next in its list. Unused
    entries have mass 0 and form a list of their own.
    """

    n: int
    shift: int
    stride: int
    n_far: int
    node: Array  # int64 (n + 1,)
    row_start: Array  # int64 (R + 1,)
    near_end: Array  # int64 (R,)
    cell: Array  # uint64 (T,)
    probability: Array  # float64 (T,)
    trapped: Array  # uint8 (n,) or (0,)
    mass: Array  # float64 (stride << shift,)
    in_use: Array  # uint8 (stride << shift >> BLOCK,)
    first: Array  # int64 (E,)
    after: Array  # int64 (W,)
    far_bucket: Array  # int64 (W,)
    far_node: Array  # int32 (W,)
    far_mass: Array  # float64 (W,)


def lay_out(space: Space, start: int, most_cells: int) -> tuple[Ring, Any]:
    """A search from a node of the space, with a ring of at most about `most_cells`, and a record of
    `STATE` without limits.
    """
    rows, n = space.rows, len(space.node) - 1
    stride = ((n + 1 >> BLOCK) + 1) << BLOCK
    row_start = np.zeros(len(space.row) + 1, dtype=np.int64)
    cell, probability = np.empty(len(rows.target), dtype=U), np.empty(len(rows.target))
    columns = frozen(rows.row_start, rows.target, rows.level, rows.probability)
    numbers = frozen(space.row, space.position, space.heuristic)
    longest = _fill_cells(*columns, *numbers, n, stride, row_start, cell, probability)
    cell, probability = cell[: row_start[-1]], probability[: row_start[-1]]
    shift = _ring_shift(cell, stride, longest + 1, most_cells)
    cells = stride << shift
    n_far, near_end = 0, row_start[1:]
    if longest >= 1 << shift:
        far, source = cell >= U(cells), owners(row_start)
        order = np.argsort(2 * source + far, kind="stable")
        cell, probability = cell[order], probability[order]
        n_far = int(np.count_nonzero(far))
        near_end = near_end - np.bincount(source[far], minlength=len(near_end))
    masses = np.empty(cells), np.zeros(cells >> BLOCK, np.uint8)
    fixed = frozen(space.node, row_start, near_end, cell, probability, space.trapped)
    overflow = np.full(min((longest >> shift) + 3, MAX_LISTS), -1), *_unused(0)
    ring = Ring(n, shift, stride, n_far, *fixed, *masses, *overflow)  # type: ignore[call-arg]
    state: Any = np.zeros(1, STATE)[0]
    state["unused"] = state["no_action"] = state["trapped"] = state["last"] = -1
    state["open_mass"] = state["n_in_use"] = 1
    if space.heuristic.size:
        state["bucket"] = int(space.heuristic[space.node[start]])
    begin = (int(state["bucket"]) & ((1 << shift) - 1)) * stride + start
    ring.mass[begin >> BLOCK << BLOCK :][: 1 << BLOCK] = 0.0
    ring.mass[begin], ring.in_use[begin >> BLOCK] = 1.0, 1
    return enlarged(ring, state) if n_far else ring, state


def enlarged(ring: Ring, state: Any) -> Ring:
    """The ring with as many unused entries of the overflow more as there are, and `n_far` at least;
    what jumps over it from one bucket needs no more.
    """
    old = len(ring.after)
    after, bucket, node, mass = _unused(old + max(old, ring.n_far))
    after[:old], bucket[:old] = ring.after, ring.far_bucket
    node[:old], mass[:old] = ring.far_node, ring.far_mass
    after[old:] = np.append(np.arange(old + 1, len(after)), state["unused"])
    state["unused"] = old
    return ring._replace(after=after, far_bucket=bucket, far_node=node, far_mass=mass)


def _unused(size: int) -> tuple[Array, Array, Array, Array]:
    integers = np.empty(size, dtype=np.int64), np.empty(size, dtype=np.int64)
    return *integers, np.empty(size, dtype=np.int32), np.zeros(size)


@kernel
def _fill_cells(
    row_start: Array,
    target: Array,
    level: Array,
    probability: Array,
    row: Array,
    position: Array,
    heuristic: Array,
    n: int,
    cells: int,
    out_start: Array,
    out_cell: Array,
    out_probability: Array,
) -> int:
    """The longest jump. Filled are where rows start, the cells that their edges enter, and their
    probabilities.
    """
    stride, dead_end = U(cells), U(n + 1)
    size = U(0)
    has_heuristic, here = len(heuristic) > 0, 0
    longest = 0
    for i in range(U(len(row))):
        r = U(row[i])
        here = int(heuristic[r]) if has_heuristic else 0
        for edge in range(U(row_start[r]), U(row_start[r + ONE])):
            jump, to_node = level[edge], dead_end
            to = U(target[edge])
            if position[to] < 0:
                jump = 0
            else:
                to_node = U(position[to])
                if has_heuristic:
                    jump += int(heuristic[to]) - here
            longest = max(longest, jump)
            out_cell[size] = U(jump) * stride + to_node
            out_probability[size] = probability[edge]
            size += ONE
        out_start[i + ONE] = size
    return int(longest)


def _ring_shift(cell: Array, stride: int, rows_needed: int, most: int) -> int:
    """log2 of the rows of the ring: enough for all but one jump in a thousand or, where these are
    many, for nineteen in twenty.
    """
    least, enough = 1, (rows_needed - 1).bit_length()
    while stride << least < 1 << 13:
        least += 1

    def holds(share: float, shift: int) -> bool:
        near = len(cell) if shift >= enough else np.count_nonzero(cell < stride << shift)
        return bool(near >= share * len(cell))

    largest = least
    for share, cells in ((0.999, most >> 2), (0.95, most)):
        largest = max(least, (cells // stride).bit_length() - 1)
        shift = min(max(enough, least), largest)
        if holds(share, shift):
            while shift > least and holds(share, shift - 1):
                shift -= 1
            return shift
    return largest


@kernel
def search(ring: Ring, steps: Steps, state: Any, out_runs: Array, out_mass: Array) -> int:
    """Work through buckets until P(Z > f) <= alpha or nothing is open, or until a limit is reached.

    P(Z > f) is what was open less what arrived since, with nearly full relative accuracy while that
    is a fair share; the sum is taken anew when it no longer is. A tail that cannot be told from
    alpha counts as equal.

    Levels that are found stand in runs without a gap, since long heads have every level: a run
    (i, d) begins with the mass number i, and mass k of it is that of level k + d.
    """
    begin, width = state.expanded, 1 << ring.shift
    enough = state.alpha > 1
    buckets = 0  # empty ones take time, too
    while state.n_in_use > 0 or state.n_overflow > 0:
        if state.n_in_use == 0 or state.bucket % width == 0:
            _begin_epoch(ring, state)
        if enough and state.bucket >= state.until:
            return FINISHED
        room = len(ring.after) - state.n_overflow
        if state.n_found >= len(out_mass) or state.n_runs >= len(out_runs) or room < ring.n_far:
            return ARRAYS_FULL
        if state.expanded > state.limit:
            return AT_LIMIT
        if state.expanded - begin + buckets > state.pause:
            return PAUSED
        buckets += 1
        _send_on(ring, steps, state)
        if state.no_action >= 0:
            return NO_ACTION
        _close_bucket(ring, state, out_runs, out_mass)
        tail = state.open_mass - state.arrived
        if tail < 0.25 * state.open_mass:
            tail = _open_mass(ring) + state.dead_mass + state.dropped
            state.open_mass, state.arrived = tail, 0.0
        enough = state.alpha > 1 or (tail <= state.alpha * (1 + SAME_TAIL) and state.last >= 0)
    return FINISHED


@kernel(inline=True)
def _close_bucket(ring: Ring, state: Any, out_runs: Array, out_mass: Array) -> None:
    """Put down what has arrived in a bucket that was sent on, clear it, and go on to the next."""
    first = U(state.bucket % (1 << ring.shift)) * U(ring.stride)
    goal = first + U(ring.n)
    arrived = ring.mass[goal] if ring.in_use[goal >> BITS] else 0.0
    if arrived > 0.0:
        if state.last < 0 or state.bucket > state.last + 1:
            out_runs[state.n_runs, 0] = state.n_found
            out_runs[state.n_runs, 1] = state.bucket - state.n_found
            state.n_runs += 1
        out_mass[state.n_found] = arrived
        state.n_found += 1
        state.last = state.bucket
        state.arrived += arrived
    if ring.in_use[(goal + ONE) >> BITS]:
        _add_dead(state, ring.mass[goal + ONE])
    for block in range(first >> BITS, (first + U(ring.stride)) >> BITS):
        state.n_in_use -= ring.in_use[block]
        ring.in_use[block] = 0
    state.bucket += 1


@kernel(inline=True)
def _add_dead(state: Any, mass: float) -> None:
    """Add to what never arrives: small masses may be many, and each rounds the sum."""
    total = state.dead_mass + mass
    larger, smaller = max(state.dead_mass, mass), min(state.dead_mass, mass)
    state.dead_rest += smaller - (total - larger)
    state.dead_mass = total


@kernel
def use_block(mass: Array, in_use: Array, block: int) -> None:
    """Clear a block of the ring, and mark it."""
    in_use[block] = 1
    for cell in range(block << BITS, (block + ONE) << BITS):
        mass[cell] = 0.0


@kernel(inline=True)
def _begin_epoch(ring: Ring, state: Any) -> None:
    """Move on to the epoch that begins here or, if the ring is empty, to the next that holds any.

    Its entries move from the overflow into the ring.
    """
    epoch = -((-state.bucket) >> ring.shift)
    while True:
        slot = epoch % len(ring.first)
        entry = ring.first[slot]
        ring.first[slot] = -1
        while entry >= 0:
            after = ring.after[entry]
            if ring.far_bucket[entry] >> ring.shift == epoch:
                row = ring.far_bucket[entry] - (epoch << ring.shift)
                cell = U(row * ring.stride + ring.far_node[entry])
                if ring.in_use[cell >> BITS] == 0:
                    use_block(ring.mass, ring.in_use, cell >> BITS)
                    state.n_in_use += 1
                ring.mass[cell] += ring.far_mass[entry]
                ring.far_mass[entry] = 0.0
                ring.after[entry] = state.unused
                state.unused = entry
                state.n_overflow -= 1
            else:  # of a later epoch that shares the list
                ring.after[entry] = ring.first[slot]
                ring.first[slot] = entry
            entry = after
        if state.n_in_use > 0:
            break
        epoch += 1
    state.bucket = epoch << ring.shift


@kernel
def _send_on(ring: Ring, steps: Steps, state: Any) -> None:
    """Send on what the nodes of a bucket hold; it stays there, too."""
    row_start, near_end = ring.row_start, ring.near_end
    row_cell, probability = ring.cell, ring.probability
    cell_mass, in_use = ring.mass, ring.in_use
    stride, n_cells = U(ring.stride), U(len(cell_mass))
    first = U(state.bucket % (1 << ring.shift)) * stride
    goal, end = first + U(ring.n), first + stride
    chooses, remaining = steps.budget >= 0, max(steps.budget - state.bucket, 0)
    trap = ALWAYS if remaining > 0 else ONCE_SPENT
    expanded, new_blocks = 0, 0
    dropped = 0.0
    for block in range(first >> BITS, end >> BITS):
        if in_use[block] == 0:
            continue
        last: Any = min((block + ONE) << BITS, goal)
        for here in range(block << BITS, last):
            mass = cell_mass[here]
            row: Any = here - first
            if mass < LEAST_MASS:
                dropped += mass
                continue
            expanded += 1
            if chooses:
                if ring.trapped[row] >= trap:
                    _add_dead(state, mass)
                    state.trapped = row
                    continue
                chosen = step_choice(steps, ring.node[row], remaining)
                if chosen < 0:
                    state.no_action = row
                    return
                row = U(chosen)
            for t in range(U(row_start[row]), U(near_end[row])):
                cell = first + row_cell[t]
                if cell >= n_cells:
                    cell -= n_cells
                if in_use[cell >> BITS] == 0:
                    use_block(cell_mass, in_use, cell >> BITS)
                    new_blocks += 1
                cell_mass[cell] += mass * probability[t]
    state.expanded += expanded
    state.n_in_use += new_blocks
    state.dropped += dropped
    # Even a call that is never made slows down the loop around it.
    if ring.n_far > 0:
        _leave_ring(ring, steps, state, first, remaining, trap)


@kernel
def _leave_ring(
    ring: Ring, steps: Steps, state: Any, first: int, remaining: int, trap: int
) -> None:
    """Send on what jumps over the ring from the nodes of a bucket."""
    for node in range(U(ring.n)):
        here = first + node
        row: Any = node
        if ring.in_use[here >> BITS] == 0 or ring.mass[here] < LEAST_MASS:
            continue
        if steps.budget >= 0:
            if ring.trapped[node] >= trap:
                continue
            row = U(step_choice(steps, ring.node[node], remaining))
        for t in range(U(ring.near_end[row]), U(ring.row_start[row + ONE])):
            bucket = state.bucket + np.int64(ring.cell[t] // U(ring.stride))
            entry, slot = state.unused, (bucket >> ring.shift) % len(ring.first)
            state.unused = ring.after[entry]
            ring.far_bucket[entry], ring.far_node[entry] = bucket, ring.cell[t] % U(ring.stride)
            ring.far_mass[entry] = ring.mass[here] * ring.probability[t]
            ring.after[entry] = ring.first[slot]
            ring.first[slot] = entry
            state.n_overflow += 1


@kernel
def _open_mass(ring: Ring) -> float:
    """The sum of all that is open, block by block so that roundings do not pile up."""
    total = 0.0
    for block in range(len(ring.in_use)):
        if ring.in_use[block]:
            part = 0.0
            for cell in range(block << BLOCK, (block + 1) << BLOCK):
                part += ring.mass[cell]
            total += part
    for begin in range(0, len(ring.far_mass), 1 << BLOCK):
        part = 0.0
        for entry in range(begin, min(begin + (1 << BLOCK), len(ring.far_mass))):
            part += ring.far_mass[entry]
        total += part
    return total


def levels_of(runs: Array, begin: int, end: int) -> Array:
    """The levels of some masses, by number."""
    number = np.arange(begin, end)
    run = np.searchsorted(runs[:, 0], number, side="right") - 1
    return np.asarray(number + runs[run, 1])


@kernel
def _open_cells(
    in_use: Array,
    cell_mass: Array,
    stride: int,
    last_row: int,
    node: Array,
    bucket: int,
    out_node: Array,
    out_level: Array,
    out_mass: Array,
) -> int:
    """What the ring holds from a bucket on: nodes, levels and masses; how many."""
    count = U(0)
    for block in range(U(len(in_use))):
        if in_use[block] == 0:
            continue
        for cell in range(block << BITS, (block + ONE) << BITS):
            if cell_mass[cell] > 0.0:
                row = np.int64(cell // U(stride))
                out_node[count] = node[cell - U(row * stride)]
                out_level[count] = bucket + ((row - bucket) & last_row)
                out_mass[count] = cell_mass[cell]
                count += ONE
    return int(count)


def open_pairs(ring: Ring, bucket: int, heuristic: Array) -> tuple[Array, Array, Array]:
    """What is open from a bucket on, in the ring and beyond it: nodes in the caller's numbers,
    levels, and masses.
    """
    most = np.count_nonzero(ring.in_use) << BLOCK
    node, level, mass = np.empty(most, np.int64), np.empty(most, np.int64), np.empty(most)
    cells = *frozen(ring.in_use, ring.mass), ring.stride, (1 << ring.shift) - 1
    count = _open_cells(*cells, ring.node, bucket, node, level, mass)
    node, level, mass = node[:count], level[:count], mass[:count]
    if ring.n_far:
        entry = np.flatnonzero(ring.far_mass > 0)
        node = np.append(node, ring.node[ring.far_node[entry]])
        level = np.append(level, ring.far_bucket[entry])
        mass = np.append(mass, ring.far_mass[entry])
    if heuristic.size:
        level -= heuristic[node].astype(np.int64)
    return node, level, mass
