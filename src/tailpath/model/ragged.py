"""Ragged arrays: groups of different lengths, one after the other, with the place where each begins.

State -> choices -> outcomes, node -> arrows, component -> members: all of it is an array of members and an array of `n + 1` offsets.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tailpath.kernels.graph import place_members
from tailpath.kernels.jit import compiler_loaded, frozen

IntArray = NDArray[np.int64]
#: Up to this many members sorting is faster than loading the compiler.
SMALL = 20_000


def offsets_of(group: NDArray[Any], n_groups: int) -> IntArray:
    """Where each group starts in an array that lists, in order, the group of every member; one entry more than groups."""
    return offsets_from_lengths(np.bincount(group, minlength=n_groups))


def offsets_from_lengths(length: NDArray[Any]) -> IntArray:
    """Where each group starts if the groups have these lengths; one entry more than groups."""
    return np.concatenate(([0], np.cumsum(length))).astype(np.int64)


def members_of(offsets: NDArray[Any], groups: NDArray[Any]) -> tuple[IntArray, IntArray]:
    """The members of some groups, one group after the other, and the offsets of the groups in that list."""
    length = np.diff(offsets)[groups]
    start = offsets_from_lengths(length)
    return np.repeat(offsets[groups] - start[:-1], length) + np.arange(start[-1]), start


def owners(offsets: NDArray[Any], dtype: Any = np.int64) -> NDArray[Any]:
    """The group of every member."""
    return np.repeat(np.arange(len(offsets) - 1, dtype=dtype), np.diff(offsets))


def grouped(group: NDArray[Any], n_groups: int) -> tuple[NDArray[Any], IntArray]:
    """The members of each group, one group after the other, for an array that lists the group of every member in any order; and the offsets."""
    offsets = offsets_of(group, n_groups)
    if len(group) <= SMALL and not compiler_loaded():
        return np.argsort(group, kind="stable"), offsets
    members = np.empty(len(group), dtype=np.int32)
    place_members(*frozen(group.astype(np.int32, copy=False)), offsets[:-1].copy(), members)
    return members, offsets
