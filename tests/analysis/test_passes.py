"""The order of the passes over a chain, and the cheapest ways by lists of nodes of equal cost."""

from __future__ import annotations

import random

import numpy as np
import pytest

from tailpath.analysis.absorption import swept
from tailpath.kernels.absorption import Chain
from tailpath.kernels.forward import cheapest_levels, cheapest_way
from tailpath.kernels.passes import likeliest_first, room_for
from tailpath.model.ragged import grouped, owners
from tests.strategies import random_rows


@pytest.mark.parametrize("seed", range(200))
def test_every_node_follows_its_likeliest_successor(seed: int) -> None:
    start, target, probability = random_rows(random.Random(seed))
    n = len(start) - 1
    chain = Chain(start, target, probability, np.ones(n), np.zeros(n))
    room = room_for(chain)
    likeliest_first(chain, room)
    place, order = np.empty(n, dtype=np.int64), room.order
    assert sorted(order.tolist()) == list(range(n))
    place[order] = np.arange(n)
    following = {}
    for node in range(n):
        others = [(probability[a], -a) for a in range(start[node], start[node + 1]) if target[a] != node]
        following[node] = int(target[-max(others)[1]]) if others else n
    behind = 0
    for node in range(n):
        if following[node] < n and place[following[node]] > place[node]:
            behind += 1
    # One node of each circle of likeliest ways has to come before its successor, and no other.
    circles = set()
    for node in range(n):
        way = [node]
        while way[-1] < n and following[way[-1]] not in way:
            way.append(following[way[-1]] if way[-1] < n else n)
        if way[-1] < n:
            circles.add(frozenset(way[way.index(following[way[-1]]) :]))
    assert behind == len(circles)


def test_a_chain_that_mixes_slowly_is_given_up() -> None:
    """Two nodes that send almost everything to each other."""
    stay = 1 - 1e-9
    chain = Chain(np.array([0, 1, 2]), np.array([1, 0], dtype=np.int32), np.array([stay, stay]), np.ones(2), np.full(2, 1e-9))
    assert not swept(chain, 1e-15)[1]


def test_a_node_that_no_float_leaves_is_not_settled() -> None:
    chain = Chain(np.array([0, 1]), np.array([0], dtype=np.int32), np.ones(1), np.ones(1), np.zeros(1))
    assert not swept(chain, 1e-15)[1]


@pytest.mark.parametrize("seed", range(200))
def test_cheapest_ways_by_lists_and_by_a_heap_are_the_same(seed: int) -> None:
    draw = random.Random(seed)
    start, target, _ = random_rows(draw)
    n = len(start) - 1
    level = np.array([draw.choice((0, 0, 1, 2, 7, 100)) for _ in target], dtype=np.int64)
    by_lists, by_heap = np.empty(n + 1), np.full(n + 1, np.inf)
    falling, place = np.empty(n + 1, dtype=np.int64), np.empty(n + 1, dtype=np.int64)
    begin = cheapest_levels(start, target, level, 101, by_lists, falling, place)
    into, into_start = grouped(target, n + 1)
    cheapest_way(into_start, owners(start, np.int32)[into], level[into].astype(np.float64), n, by_heap)
    assert by_lists.tolist() == by_heap.tolist()
    in_order = falling[begin:]
    assert sorted(in_order.tolist()) == np.flatnonzero(np.isfinite(by_heap)).tolist()
    assert in_order[-1] == n and (np.diff(by_heap[in_order]) <= 0).all()
    assert place[in_order].tolist() == list(range(len(in_order))) and (place[np.isinf(by_heap)] == -1).all()
    assert int(level.max()) == 0 or cheapest_levels(start, target, level, int(level.max()), by_lists, falling, place) == -1
