"""How the arrows of a lattice are laid out for its search: cells of a ring for those that stay within it, and a list of the others."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tailpath.kernels.forward import LARGEST
from tailpath.kernels.jit import kernel
from tailpath.kernels.lattice_arrays import BLOCK, Arrows, Facts, Far, Near

Array = NDArray[Any]
#: A cell that is none.
NOWHERE = 2**32 - 1


@kernel
def lay_out_rows(arrows: Arrows, n: int, caps: tuple[int, int, int], all_rows: bool) -> tuple[Facts, Near, Far, Array, Array, Array]:
    """Look at the arrows, choose the rows of the ring, and part the arrows into those that stay within it and those that do not.

    The caps are the most rows and cells of the ring and the most rows of the second one. `all_rows` have a row among the far ones, or those that need
    one; also returned are these rows, the places that arrows beyond the ring lead to, and for every place its number among them, or -1.
    """
    ring_rows, ring_cells, far_rows = caps
    # A power of two may be twice what is wanted.
    rows, stride, cap = len(arrows.row), ((n >> BLOCK) + 1) << BLOCK, 2 * ring_rows
    cap = min(cap, NOWHERE // stride - 1)
    jumps, into = np.zeros(cap + 1, dtype=np.int64), np.zeros(n + 1, dtype=np.int32)
    near = Near(np.empty(rows + 1, dtype=np.uint32), np.empty(len(arrows.target), dtype=np.uint32), np.empty(len(arrows.target)))
    longest, shortest, least, most_out = _survey(arrows, stride, jumps, into, near)
    most_into, count, usual, passed = 0, 0, 0, jumps[0]
    for node in range(n):
        most_into = max(most_into, into[node])
    for jump in range(cap + 1):
        count += jumps[jump]
    while passed < 0.95 * count:
        usual += 1
        passed += jumps[usual]
    # Enough rows for nineteen jumps in twenty, within the caps. Very long jumps ask for more, so that there are not too many lists.
    wanted, most, shift = max(usual + 1, longest // far_rows, 2), min(ring_rows, max(2, ring_cells // (n + 1))), 1
    while (2 << shift) <= most if wanted > most else (1 << shift) < wanted:
        shift += 1
    n_near = 0
    for jump in range(1 << shift):
        n_near += jumps[jump]
    n_far = count - n_near
    far = Far(
        np.empty(rows + 1, dtype=np.uint32),
        np.empty(n_far, dtype=np.int32),
        np.empty(n_far),
        np.empty(n_far, dtype=np.int64),
        np.zeros(rows),
    )
    few, far_place = np.empty(rows, dtype=np.int64), np.full(n + 1, -1, dtype=np.int32)
    n_few = _part(arrows, np.uint32(stride), np.uint32(stride << shift), all_rows, near, far, few, far_place)
    places, far_node = 0, np.empty(min(n_far, n + 1), dtype=np.int64)
    for place in range(n + 1 if n_far > 0 else 0):
        if far_place[place] == 0:
            far_place[place], far_node[places] = places, place
            places += 1
    facts = Facts(longest, shortest, least, most_into, into[n], most_out, shift, stride)
    near = Near(near.row_start, near.cell[:n_near], near.probability[:n_near])
    return facts, near, far, few[:n_few], far_node[:places], far_place


@kernel
def _survey(arrows: Arrows, stride: int, out_jumps: Array, out_into: Array, out: Near) -> tuple[int, int, float, int]:
    """Give all arrows cells as if the ring had as many rows as jumps are counted, the last count for all longer ones.

    What leads nowhere gets the cell `NOWHERE`. Also counts the arrows into every place. Returns the longest jump, the shortest step that is not
    free, the least probability and the longest row.
    """
    cap, size = len(out_jumps) - 1, 0
    longest, shortest, least, most_out = 0, LARGEST, 1.0, 0
    out.row_start[0] = 0
    for i in range(len(arrows.row)):
        row = arrows.row[i]
        first, last = arrows.row_start[row], arrows.row_start[row + 1]
        most_out = max(most_out, last - first)
        for arrow in range(first, last):
            place, probability = arrows.place[arrows.target[arrow]], arrows.probability[arrow]
            cell = NOWHERE
            if place >= 0:
                jump = _jump(arrows, row, arrow)
                longest, least = max(longest, jump), min(least, probability)
                if arrows.level[arrow] > 0:
                    shortest = min(shortest, arrows.level[arrow])
                jump = min(jump, cap)
                out_jumps[jump] += 1
                out_into[place] += 1
                cell = jump * stride + place
            out.cell[size], out.probability[size] = cell, probability
            size += 1
        out.row_start[i + 1] = size
    return longest, shortest, least, most_out


@kernel
def _part(arrows: Arrows, stride: int, end: int, all_rows: bool, out_near: Near, out_far: Far, out_few: Array, out_far_place: Array) -> int:
    """Leave the arrows to cells before `end` in the near rows, move all others, and mark where they lead; returns how many rows have such arrows."""
    near, far, few, read = 0, 0, 0, 0
    out_far.row_start[0] = 0
    for i in range(len(arrows.row)):
        begin, last, leak = read, out_near.row_start[i + 1], 0.0
        while read < last:
            cell, probability = out_near.cell[read], out_near.probability[read]
            if cell < end:
                out_near.cell[near], out_near.probability[near] = cell, probability
                near += 1
            elif cell == NOWHERE:
                leak += probability
            else:
                row, place = arrows.row[i], cell % stride
                out_far.target[far], out_far.probability[far] = place, probability
                out_far.jump[far] = _jump(arrows, row, arrows.row_start[row] + read - begin)
                out_far_place[place] = 0
                far += 1
            read += 1
        out_near.row_start[i + 1] = near
        if all_rows or leak > 0.0 or far > out_far.row_start[few]:
            out_few[few], out_far.leak[few], out_far.row_start[few + 1] = i, leak, far
            few += 1
    return few


@kernel
def _jump(arrows: Arrows, row: int, arrow: int) -> int:
    if len(arrows.height) == 0:
        return int(arrows.level[arrow])
    return int(arrows.level[arrow] + arrows.height[arrows.target[arrow]] - arrows.height[row])
