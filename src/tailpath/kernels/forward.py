"""Loops over chains, breadth first and by cost."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tailpath.kernels.jit import kernel

Array = NDArray[Any]


@kernel
def fewest_steps(into_start: Array, into_source: Array, out_steps: Array) -> None:
    """Breadth-first search against the arrows from the last node (the goals): the least number of steps to it, -1 where there is no way."""
    n = len(out_steps)
    queue = np.empty(n, dtype=np.int32)
    queue[0] = n - 1
    out_steps[n - 1] = 0
    head, tail = 0, 1
    while head < tail:
        node = queue[head]
        head += 1
        for position in range(into_start[node], into_start[node + 1]):
            source = into_source[position]
            if out_steps[source] < 0:
                out_steps[source] = out_steps[node] + 1
                queue[tail] = source
                tail += 1


@kernel
def cheapest_way(into_start: Array, into_source: Array, into_cost: Array, begin: int, out_least: Array) -> None:
    """Dijkstra against the arrows from the node `begin`; `out_least` comes in infinite.

    A binary heap with lazy deletion: an arrow may enter the heap once, so it never holds more than there are arrows.
    """
    key = np.empty(len(into_source) + 1)
    item = np.empty(len(into_source) + 1, dtype=np.int32)
    out_least[begin] = 0.0
    key[0], item[0] = 0.0, begin
    size = 1
    while size > 0:
        least, node = key[0], item[0]
        size -= 1
        _sift_down(key, item, size, key[size], item[size])
        if least > out_least[node]:
            continue
        for position in range(into_start[node], into_start[node + 1]):
            source = into_source[position]
            cost = least + into_cost[position]
            if cost < out_least[source]:
                out_least[source] = cost
                hole = size
                size += 1
                while hole > 0 and key[(hole - 1) // 2] > cost:
                    key[hole], item[hole] = key[(hole - 1) // 2], item[(hole - 1) // 2]
                    hole = (hole - 1) // 2
                key[hole], item[hole] = cost, source


@kernel
def cheapest_levels(row_start: Array, target: Array, level: Array, longest: int, out_least: Array) -> None:
    """As `cheapest_way` to the last node, for whole costs up to `longest`: nodes wait in lists by their cost, `longest` + 1 of them in turns."""
    goal = len(out_least) - 1
    into_start = np.zeros(goal + 2, dtype=np.int64)
    for to in target:
        into_start[to + 1] += 1
    for node in range(goal + 1):
        into_start[node + 1] += into_start[node]
    source, price = np.empty(len(target), dtype=np.int32), np.empty(len(target), dtype=np.int64)
    place = into_start[:-1].copy()
    for node in range(goal):
        for arrow in range(row_start[node], row_start[node + 1]):
            to = target[arrow]
            source[place[to]], price[place[to]] = node, level[arrow]
            place[to] += 1

    unknown = np.iinfo(np.int64).max
    least = np.full(goal + 1, unknown)
    head = np.full(longest + 1, -1, dtype=np.int32)
    after, before = np.empty(goal + 1, dtype=np.int32), np.empty(goal + 1, dtype=np.int32)
    head[0], least[goal], after[goal], before[goal] = goal, 0, -1, -1
    waiting, cost, turn = 1, 0, 0
    while waiting > 0:
        while head[turn] < 0:
            cost += 1
            turn = turn + 1 if turn < longest else 0
        node = head[turn]
        head[turn] = after[node]
        if after[node] >= 0:
            before[after[node]] = -1
        waiting -= 1
        out_least[node] = cost
        for position in range(into_start[node], into_start[node + 1]):
            near = source[position]
            there = cost + price[position]
            if there >= least[near]:
                continue
            if least[near] < unknown:  # it waits elsewhere
                if before[near] >= 0:
                    after[before[near]] = after[near]
                else:
                    head[least[near] % (longest + 1)] = after[near]
                if after[near] >= 0:
                    before[after[near]] = before[near]
                waiting -= 1
            least[near] = there
            slot = there % (longest + 1)
            after[near], before[near] = head[slot], -1
            if head[slot] >= 0:
                before[head[slot]] = near
            head[slot] = near
            waiting += 1


@kernel
def _sift_down(key: Array, item: Array, size: int, moved_key: float, moved_item: int) -> None:
    """Put an entry into the empty root of a heap of `size` entries and let it sink."""
    hole = 0
    while True:
        child = 2 * hole + 1
        if child >= size:
            break
        if child + 1 < size and key[child + 1] < key[child]:
            child += 1
        if key[child] >= moved_key:
            break
        key[hole], item[hole] = key[child], item[child]
        hole = child
    key[hole], item[hole] = moved_key, moved_item
