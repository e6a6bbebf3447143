"""Transitions laid out for the forward search (`forward.py`), and what it leaves open read off.

The search numbers nodes anew: 0 .. n - 1 can be left, n is the goal and n + 1 all dead ends. Its
*ring* holds the buckets f .. f + 2^shift - 1, with `stride` cells each, one for each node. A
transition *jumps* so many buckets, and so many cells further lies the cell that it enters; what
jumps over the ring waits in an *overflow* of lists.

Indices of the inner loops are unsigned: the compiler asks of others whether they count from the
end.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tailpath.graph import Transitions, offsets_from_lengths
from tailpath.kernels.jit import Array, frozen, kernel

#: log2 of the cells that share a mark of being in use.
BLOCK = 6
U = np.uint64
BITS, ONE = U(BLOCK), U(1)
#: Lists of the overflow at most; epochs that are as far apart share one.
MAX_LISTS = 1 << 14
#: log2 of the recent entries of each target beyond the ring.
RECENT = 3
#: What transitions beyond the ring are if there are none.
_NOTHING_FAR = tuple(np.empty(0, kind) for kind in (np.int32, np.int64, np.int64, np.float64))


class RingRows(NamedTuple):
    """Transitions by row, parted into those that stay within the ring and those that leave it.

    There are R rows, T near and F far transitions. `near_cell` is jump * stride + target: how far
    the cell that is entered lies behind the first cell of the bucket that is left.
    """

    near_start: Array  # int64 (R + 1,)
    near_cell: Array  # uint32 (T,)
    near_probability: Array  # float64 (T,)
    far_start: Array  # int64 (R + 1,)
    far_target: Array  # int32 (F,)
    far_recent: Array  # int64 (F,), where `Overflow.recent` has entries of the same target
    far_jump: Array  # int64 (F,)
    far_probability: Array  # float64 (F,)


class Ring(NamedTuple):
    """Probabilities by bucket and node; `in_use` marks the blocks of 2^BLOCK cells that hold any.
    Other blocks hold what they held last, or anything: they are cleared when they are next used.
    """

    n: int
    shift: int
    stride: int
    mass: Array  # float64 (stride << shift,)
    in_use: Array  # uint8 (stride << shift >> BLOCK,)


class Overflow(NamedTuple):
    """Entries beyond the ring: `first[epoch % E]` is an entry or -1, `after` the next in its list.

    Unused entries have mass 0 and form a list of their own. `recent` has the last entries of every
    target, by the last bits of the bucket: what comes to the same place is added.
    """

    first: Array  # int64 (E,)
    recent: Array  # int64 (targets << RECENT,)
    after: Array  # int64 (W,)
    bucket: Array  # int64 (W,)
    node: Array  # int32 (W,)
    mass: Array  # float64 (W,)


def lay_out(
    rows: Transitions,
    row: Array,
    position: Array,
    heuristic: Array,
    n: int,
    dead_end_row: bool,
    most_cells: int,
) -> tuple[RingRows, Ring, Overflow]:
    """Some rows laid out for a search among n nodes, with an empty ring of about so many cells at
    most, and an empty overflow.

    `position` has the new number of every target, -1 at dead ends. An edge from x to y jumps its
    level and heuristic[y] - heuristic[x] more; without a heuristic it jumps its level, and rows
    need not be nodes. With `dead_end_row` there is one row more, which leads to the dead ends.
    """
    stride = ((n + 1 >> BLOCK) + 1) << BLOCK
    start = np.zeros(len(row) + dead_end_row + 1, dtype=np.int64)
    most = len(rows.target) + dead_end_row
    cell, probability = np.empty(most, dtype=np.uint64), np.empty(most)
    columns = frozen(rows.row_start, rows.target, rows.level, rows.probability)
    numbers = frozen(row, position, heuristic)
    longest = _cells(*columns, *numbers, n, stride, dead_end_row, start, cell, probability)
    cell, probability = cell[: start[-1]], probability[: start[-1]]
    shift = _ring_shift(cell, stride, longest + 1, most_cells)
    if longest < 1 << shift:
        n_targets, far_start = 0, np.zeros_like(start)
        parted = RingRows(start, cell.astype(np.uint32), probability, far_start, *_NOTHING_FAR)
    else:
        near = cell < stride << shift
        near_start, far_cell = offsets_from_lengths(near)[start], cell[~near]
        target = far_cell % stride
        targets, number = np.unique(target, return_inverse=True)
        n_targets = len(targets)
        parted = RingRows(
            near_start,
            cell[near].astype(np.uint32),
            probability[near],
            start - near_start,
            target.astype(np.int32),
            number << RECENT,
            (far_cell // stride).astype(np.int64),
            probability[~near],
        )
    cells = stride << shift
    ring = Ring(n, shift, stride, np.empty(cells), np.zeros(cells >> BLOCK, np.uint8))
    lists = np.full(min((longest >> shift) + 3, MAX_LISTS), -1)
    recent = np.zeros((n_targets + 1) << RECENT, np.int64)
    return parted, ring, Overflow(lists, recent, *entries(0))


def entries(size: int) -> tuple[Array, Array, Array, Array]:
    """Arrays for entries of the overflow: after, bucket, node, mass."""
    integers = np.empty(size, dtype=np.int64), np.empty(size, dtype=np.int64)
    return *integers, np.empty(size, dtype=np.int32), np.zeros(size)


@kernel
def _cells(
    row_start: Array,
    target: Array,
    level: Array,
    probability: Array,
    row: Array,
    position: Array,
    heuristic: Array,
    n: int,
    cells: int,
    dead_end_row: bool,
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
    if dead_end_row:
        out_cell[size], out_probability[size] = dead_end, 1.0
        out_start[len(row) + 1] = size + ONE
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


def open_pairs(
    ring: Ring, overflow: Overflow, bucket: int, node: Array, heuristic: Array
) -> tuple[Array, Array, Array]:
    """What is open from a bucket on, in the ring and beyond it: nodes in the caller's numbers,
    levels, and masses.
    """
    most = (int(np.count_nonzero(ring.in_use)) << BLOCK) + len(overflow.mass)
    out = np.empty(most, dtype=np.int64), np.empty(most, dtype=np.int64), np.empty(most)
    size = _fill_open(ring, overflow, bucket, *frozen(node, heuristic), *out)
    return out[0][:size], out[1][:size], out[2][:size]


@kernel
def _fill_open(
    ring: Ring,
    overflow: Overflow,
    bucket: int,
    node: Array,
    heuristic: Array,
    out_node: Array,
    out_level: Array,
    out_mass: Array,
) -> int:
    """How many pairs are open. Filled are their nodes, levels and masses."""
    width, size = 1 << ring.shift, U(0)
    has_heuristic = len(heuristic) > 0
    for block in range(U(len(ring.in_use))):
        if ring.in_use[block]:
            row = (block << BITS) // U(ring.stride)
            there = bucket + ((np.int64(row) - bucket) & (width - 1))
            for cell in range(block << BITS, (block + ONE) << BITS):
                if ring.mass[cell] > 0.0:
                    x = node[cell - row * U(ring.stride)]
                    out_node[size], out_mass[size] = x, ring.mass[cell]
                    out_level[size] = there - (np.int64(heuristic[U(x)]) if has_heuristic else 0)
                    size += ONE
    for entry in range(U(len(overflow.mass))):
        if overflow.mass[entry] > 0.0:
            x = node[U(overflow.node[entry])]
            out_node[size], out_mass[size] = x, overflow.mass[entry]
            out_level[size] = overflow.bucket[entry] - (
                np.int64(heuristic[U(x)]) if has_heuristic else 0
            )
            size += ONE
    return int(size)
