"""Transitions laid out for the forward search (`forward.py`), and what it leaves open read off.

The search numbers nodes anew: 0 .. n - 1 can be left, n is the goal and n + 1 all dead ends. Its
*ring* holds the buckets f .. f + 2^shift - 1, with `stride` cells each, one for each node. A
transition *jumps* so many buckets, and so many cells further lies the cell that it enters; what
jumps over the ring waits in an *overflow* of lists.

Indices of the inner loops are unsigned: the compiler asks of others whether they count from the
end.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tailpath.graph import offsets_from_lengths
from tailpath.kernels.jit import Array, kernel
from tailpath.kernels.shortest_paths import LARGEST

#: log2 of the cells that share a mark of being in use.
BLOCK = 6
U = np.uint64
BITS, ONE = U(BLOCK), U(1)
#: log2 of the recent entries of each target beyond the ring.
RECENT = 3
#: What transitions beyond the ring are if there are none.
_NOTHING_FAR = tuple(np.empty(0, kind) for kind in (np.int32, np.int64, np.int64, np.float64))


class SearchSpace(NamedTuple):
    """Transitions in the caller's numbers, and which of their rows are searched, in which order.

    A transition from x to y jumps its level and heuristic[y] - heuristic[x] more. Without a
    heuristic it jumps its level, and rows need not be nodes.
    """

    row_start: Array  # int64
    target: Array  # int32
    level: Array  # int64
    probability: Array  # float64
    row: Array  # int64 (R,)
    position: Array  # int64, the new number of every target; -1 at dead ends
    heuristic: Array  # float64, integers, by row and by target; or (0,)


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


class RowStatistics(NamedTuple):
    """The shape of the ring, and the extremes of the transitions, which bound its errors."""

    shift: int
    stride: int
    max_jump: int
    min_level: int  # that is not 0
    min_probability: float
    max_out_degree: int  # of a row
    max_in_degree: int  # of a node
    max_absorbed: int  # the same of the goal and of dead ends
    far_targets: int


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


def lay_out_rows(
    space: SearchSpace, n: int, dead_end_row: bool, most_cells: int
) -> tuple[RowStatistics, RingRows]:
    """Lay out the rows for a search among n nodes, in a ring of about so many cells at most.

    With `dead_end_row` there is one row more, which leads to the dead ends.
    """
    stride = ((n + 1 >> BLOCK) + 1) << BLOCK
    start, cell, probability, extremes = _cells(space, n, stride, dead_end_row)
    rows_needed = int(extremes[0]) + 1  # by the longest jump
    shift = _ring_shift(cell, stride, rows_needed, most_cells)
    if rows_needed <= 1 << shift:
        n_targets, far_start = 0, np.zeros_like(start)
        rows = start, cell.astype(np.uint32), probability, far_start, *_NOTHING_FAR
    else:
        near = cell < stride << shift
        near_start, far_cell = offsets_from_lengths(near)[start], cell[~near]
        target = far_cell % stride
        targets, number = np.unique(target, return_inverse=True)
        n_targets = len(targets)
        rows = (
            near_start,
            cell[near].astype(np.uint32),
            probability[near],
            start - near_start,
            target.astype(np.int32),
            number << RECENT,
            (far_cell // stride).astype(np.int64),
            probability[~near],
        )
    statistics: tuple[Any, ...] = shift, stride, *extremes, n_targets
    return RowStatistics(*statistics), RingRows(*rows)


@kernel
def _cells(
    space: SearchSpace, n: int, cells: int, dead_end_row: bool
) -> tuple[Array, Array, Array, tuple[int, int, float, int, int, int]]:
    """Where rows start, the cells that their transitions enter, their probabilities, and the
    extremes of `RowStatistics`.
    """
    row_start, target = space.row_start, space.target
    level, position = space.level, space.position
    heuristic = space.heuristic
    more, stride = 1 if dead_end_row else 0, U(cells)
    rows, count = U(len(space.row)), more
    for i in range(rows):
        count += row_start[U(space.row[i]) + ONE] - row_start[U(space.row[i])]
    start, into = (
        np.empty(len(space.row) + more + 1, dtype=np.int64),
        np.empty(n + 2, dtype=np.int64),
    )
    cell, probability = np.empty(count, dtype=np.uint64), np.empty(count)
    for node in range(n + 2):
        into[node] = 0
    has_heuristic, here = len(heuristic) > 0, 0
    dead_end = U(n + 1)
    max_jump, min_level = 0, LARGEST
    min_probability, size = 1.0, U(0)
    max_out_degree: Any = 0
    start[0] = 0
    for i in range(rows):
        row = U(space.row[i])
        first, last = U(row_start[row]), U(row_start[row + ONE])
        here = int(heuristic[row]) if has_heuristic else 0
        for edge in range(first, last):
            jump, to_node = level[edge], dead_end
            to = U(target[edge])
            if jump > 0:
                min_level = min(min_level, jump)
            if position[to] < 0:
                jump = 0
            else:
                to_node = U(position[to])
                if has_heuristic:
                    jump += int(heuristic[to]) - here
            max_jump = max(max_jump, jump)
            min_probability = min(min_probability, space.probability[edge])
            into[to_node] += 1
            cell[size], probability[size] = U(jump) * stride + to_node, space.probability[edge]
            size += ONE
        max_out_degree = max(max_out_degree, row_start[row + ONE] - row_start[row])
        start[i + ONE] = size
    if dead_end_row:
        cell[size], probability[size] = dead_end, 1.0
        into[dead_end] += 1
        start[rows + ONE] = size + ONE
    max_in_degree = 0
    for node in range(n):
        max_in_degree = max(max_in_degree, into[node])
    min_level = min_level if min_level < LARGEST else 1
    max_absorbed = max(into[n], into[n + 1])
    degrees = max_out_degree, max_in_degree, max_absorbed
    return start, cell, probability, (max_jump, min_level, min_probability, *degrees)


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
def open_pairs(
    ring: Ring, overflow: Overflow, bucket: int, paid: int, node: Array, heuristic: Array
) -> tuple[Array, Array, Array]:
    """What is open from a bucket on, in the ring and beyond it: nodes in the caller's numbers,
    levels less `paid`, and masses.
    """
    most, width = len(overflow.mass), 1 << ring.shift
    for block in range(U(len(ring.in_use))):
        most += ring.in_use[block] << BLOCK
    out_node, out_level = np.empty(most, dtype=np.int64), np.empty(most, dtype=np.int64)
    out_mass, size = np.empty(most), U(0)
    has_heuristic = len(heuristic) > 0
    for block in range(U(len(ring.in_use))):
        if ring.in_use[block]:
            row = (block << BITS) // U(ring.stride)
            there = bucket + ((np.int64(row) - bucket) & (width - 1)) - paid
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
            out_level[size] = (
                overflow.bucket[entry] - paid - (np.int64(heuristic[U(x)]) if has_heuristic else 0)
            )
            size += ONE
    return out_node[:size], out_level[:size], out_mass[:size]
