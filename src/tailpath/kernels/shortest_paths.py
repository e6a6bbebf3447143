"""Shortest paths through a graph, by a heap (Dijkstra)."""

from __future__ import annotations

from typing import Any

import numpy as np

from tailpath.kernels.jit import Array, frozen, kernel


def dijkstra(
    into_start: Array, into_source: Array, into_cost: Array, root: int, out_distance: Array
) -> Array:
    """Distances against the edges to the node `root`; `out_distance` comes in infinite. Returns the
    nodes in the order in which they are settled; behind them -1.
    """
    order, predecessor = np.full((2, len(out_distance)), -1, dtype=np.int32)
    dijkstra_tree(into_start, into_source, into_cost, root, out_distance, order, predecessor)
    return order


def dijkstra_tree(
    into_start: Array,
    into_source: Array,
    into_cost: Array,
    root: int,
    out_distance: Array,
    out_order: Array,
    out_predecessor: Array,
) -> None:
    """As `dijkstra`, with the order in which nodes are settled, and the node before each on its
    shortest path from `root`.
    """
    out_distance[root] = 0.0
    columns = frozen(into_start, into_source, into_cost, np.array([root]))
    dijkstra_from_several(*columns, out_distance, out_order, out_predecessor)


def update_distances(
    into_start: Array, into_source: Array, into_cost: Array, roots: Array, out_distance: Array
) -> None:
    """Go on with `dijkstra` from nodes whose entry of `out_distance` has fallen: what follows from
    that falls, too, and nothing else is looked at.
    """
    order, predecessor = np.empty((2, len(out_distance)), dtype=np.int32)
    edges = frozen(into_start, into_source, into_cost, roots)
    dijkstra_from_several(*edges, out_distance, order, predecessor)


@kernel
def dijkstra_from_several(
    into_start: Array,
    into_source: Array,
    into_cost: Array,
    roots: Array,
    out_distance: Array,
    out_order: Array,
    out_predecessor: Array,
) -> None:
    """As `dijkstra_tree`, from several nodes with the costs that `out_distance` has for them.

    A binary heap with lazy deletion: an edge may enter the heap once, so it never holds more than
    there are edges and roots. Unsigned indices are quicker.
    """
    one = np.uint64(1)
    key = np.empty(len(into_source) + len(roots))
    item = np.empty(len(into_source) + len(roots), dtype=np.int32)
    size: Any = np.uint64(0)
    settled: Any = np.uint64(0)
    for root in roots:
        _sift_up(key, item, size, out_distance[root], root)
        size += one
    while size > 0:
        distance, node = key[0], np.uint64(item[0])
        size -= one
        _sift_down(key, item, size, key[size], item[size])
        if distance > out_distance[node]:
            continue
        out_order[settled] = node
        settled += one
        for position in range(np.uint64(into_start[node]), np.uint64(into_start[node + one])):
            source = np.uint64(into_source[position])
            cost = distance + into_cost[position]
            if cost < out_distance[source]:
                out_distance[source], out_predecessor[source] = cost, node
                _sift_up(key, item, size, cost, source)
                size += one


@kernel(inline=True)
def _sift_up(key: Array, item: Array, size: int, new_key: float, new_item: int) -> None:
    """Put an entry behind the last of a heap of `size` entries and let it rise."""
    one = np.uint64(1)
    hole: Any = size
    while hole > 0:
        parent = (hole - one) >> one
        if key[parent] <= new_key:
            break
        key[hole], item[hole] = key[parent], item[parent]
        hole = parent
    key[hole], item[hole] = new_key, new_item


@kernel
def _sift_down(key: Array, item: Array, size: int, moved_key: float, moved_item: int) -> None:
    """Put an entry into the empty root of a heap of `size` entries and let it sink."""
    one = np.uint64(1)
    hole: Any = np.uint64(0)
    while True:
        child = (hole << one) + one
        if child >= size:
            break
        if child + one < size and key[child + one] < key[child]:
            child += one
        if key[child] >= moved_key:
            break
        key[hole], item[hole] = key[child], item[child]
        hole = child
    key[hole], item[hole] = moved_key, moved_item
