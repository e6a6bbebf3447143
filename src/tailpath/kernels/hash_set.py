"""A set of integers in the order in which they were inserted, by a table of open addressing.

The table holds positions in the list, or -1, and is as large as a power of two.
"""

from __future__ import annotations

import numpy as np

from tailpath.kernels.jit import Array, kernel

#: An odd number near 2^64 / golden ratio: its multiples spread over the upper bits.
SPREAD = np.uint64(0x9E3779B97F4A7C15)
#: The first size of a list, as a power of two.
FIRST_SIZE = 1024


@kernel
def find_cell(table: Array, key: Array, wanted: int) -> int:
    """The cell of a number in the table, or the empty one where it belongs."""
    mask = len(table) - 1
    cell = np.int64((np.uint64(wanted) * SPREAD) >> np.uint64(20)) & mask
    while table[cell] >= 0 and key[table[cell]] != wanted:
        cell = (cell + 1) & mask
    return int(cell)


@kernel
def insert(table: Array, key: Array, count: int, wanted: int) -> int:
    """The count of the numbers once this one is among them. The list must be long enough."""
    cell = find_cell(table, key, wanted)
    if table[cell] < 0:
        table[cell], key[count] = count, wanted
        count += 1
    return count


@kernel
def enlarge(key: Array, count: int, more: int) -> tuple[Array, Array]:
    """A table and a list of the same numbers, long enough for `more` others."""
    size = FIRST_SIZE
    while size < count + more:
        size *= 2
    enlarged_key, table = np.empty(size, dtype=np.int64), np.full(2 * size, -1, dtype=np.int32)
    for i in range(count):
        enlarged_key[i] = key[i]
        table[find_cell(table, enlarged_key, key[i])] = i
    return table, enlarged_key
