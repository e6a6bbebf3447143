"""What the lattice search works on, in named groups. Free of the compiler, so that the search can be set up before it loads."""

from __future__ import annotations

from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


class Arrows(NamedTuple):
    """Rows of arrows and how they are laid out: row i of the search is `row[i]` of these, whose targets stand in the places `place` (-1: nowhere).

    Costs are levels, and an arrow skips level + height of its target - height of its row buckets; without heights, its level. Heights are whole.
    """

    row_start: NDArray[np.int64]
    target: NDArray[np.int32]
    probability: NDArray[np.float64]
    level: NDArray[np.int64]
    row: NDArray[np.int64]
    place: NDArray[np.int64]
    height: NDArray[np.float64]


class Near(NamedTuple):
    """The arrows that stay within the ring, by rows: `cell` is how far the target's cell lies behind the first cell of the row that is left."""

    row_start: NDArray[np.uint32]
    cell: NDArray[np.uint32]
    probability: NDArray[np.float64]


class Far(NamedTuple):
    """The arrows that jump over the ring, by rows, and what leaks: leads to where the goal is out of reach."""

    row_start: NDArray[np.uint32]
    target: NDArray[np.int32]
    probability: NDArray[np.float64]
    jump: NDArray[np.int64]
    leak: NDArray[np.float64]


class FarNodes(NamedTuple):
    """The nodes that may need a row of `Far`, in ascending order. Row i is that of `node[i]`, or, if nodes choose, node x has `taken[x]`."""

    node: NDArray[np.int64]
    taken: NDArray[np.int64]


class Facts(NamedTuple):
    """Of the arrows: the longest jump and the shortest step that is not free, the least probability, the most into a node, into the goal, and out of
    a row. Of the ring: log2 of its rows, and its `stride`.
    """

    longest: int
    shortest: int
    least: float
    into: int
    arriving: int
    out: int
    shift: int
    stride: int


class Rings(NamedTuple):
    """Masses by bucket and node: `ring` has 2^shift rows of `stride` cells, one after the other, `far` more rows for the nodes `far_node` alone.

    `flag` marks blocks of cells in use; a row is whole blocks, and the goal is node n.
    """

    n: int
    shift: int
    stride: int
    ring: NDArray[np.float64]
    flag: NDArray[np.uint8]
    far: NDArray[np.float64]
    far_node: NDArray[np.int64]
    far_place: NDArray[np.int32]


class Aside(NamedTuple):
    """Masses too small to be followed, by node, and the last bucket in which there were any."""

    mass: NDArray[np.float64]
    bucket: NDArray[np.int64]


class Waiting(NamedTuple):
    """Entries that wait in lists by epoch: `first[epoch]` is an entry or -1, `after[entry]` the next one, also of the free list."""

    first: NDArray[np.int64]
    after: NDArray[np.int64]
    bucket: NDArray[np.int64]
    node: NDArray[np.int32]
    mass: NDArray[np.float64]


#: What survives between two calls of the search: the bucket to do next, the sizes of the head and of the lists, the first free entry, the marked
#: blocks and the occupied cells of the second ring; a summed open mass, what arrived since, what fell into traps, and what was put aside.
STANDING = np.dtype(
    [
        ("bucket", np.int64),
        ("n_head", np.int64),
        ("expanded", np.int64),
        ("n_waiting", np.int64),
        ("free", np.int64),
        ("n_flags", np.int64),
        ("n_small", np.int64),
        ("n_far", np.int64),
        ("summed", np.float64),
        ("since", np.float64),
        ("lost", np.float64),
        ("aside", np.float64),
    ]
)


def standing() -> Any:
    """A record of `STANDING`, all zeros: kernels change it in place."""
    return np.zeros(1, dtype=STANDING).view(np.recarray)[0]


class Stop(IntEnum):
    """Why the search returned."""

    FINISHED = 0
    PAUSED = 1
    NEED_HEAD = 2
    NEED_LISTS = 3
    LIMIT = 4
    EXHAUSTED = 5
    NO_ACTION = 6


#: log2 of the cells that share a flag.
BLOCK = 6
