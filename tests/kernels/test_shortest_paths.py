"""Searches over chains against each other and against brute force."""

from __future__ import annotations

import random

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tailpath.graph import Transitions, grouped, owners
from tailpath.kernels.graph import sweep_back
from tailpath.kernels.shortest_paths import dial, dijkstra
from tests.strategies import random_rows


@given(draw=st.randoms(use_true_random=False))
def test_cheapest_ways_by_lists_and_by_a_heap_are_the_same(draw: random.Random) -> None:
    start, target, _ = random_rows(draw)
    n = len(start) - 1
    level = np.array([draw.choice((0, 0, 1, 2, 7, 100)) for _ in target], dtype=np.int64)
    by_lists, by_heap = np.full((2, n + 1), np.inf)
    settled = np.full(n + 1, -1, dtype=np.int32)
    dial(start, target, level, 100, by_lists, settled)
    into, into_start = grouped(target, n + 1)
    dijkstra(into_start, owners(start, np.int32)[into], level[into].astype(np.float64), n, by_heap)
    assert by_lists.tolist() == by_heap.tolist()
    nothing = np.zeros(len(target))
    found = Transitions(start, target, nothing, nothing, level).distances()
    assert found.least.tolist() == by_heap.tolist()
    falling, position = found.falling, found.position
    assert sorted(falling.tolist()) == np.flatnonzero(np.isfinite(by_heap)).tolist()
    assert falling[-1] == n and (np.diff(by_heap[falling]) <= 0).all()
    assert falling.tolist() == settled[: len(falling)][::-1].tolist()
    assert position[falling].tolist() == list(range(len(falling)))
    assert (position[np.isinf(by_heap)] == -1).all()


@given(draw=st.randoms(use_true_random=False))
def test_sweeps_find_what_reaches_a_mark(draw: random.Random) -> None:
    start, target, _ = random_rows(draw)
    n = len(start) - 1
    marks = np.array([draw.random() < 0.3 for _ in range(n)])
    closed = set(np.flatnonzero(marks).tolist())
    while more := {
        x
        for x in range(n)
        if x not in closed and closed & set(target[start[x] : start[x + 1]].tolist())
    }:
        closed |= more
    for most in (1, 2, n + 2):
        reached = marks.copy()
        finished = sweep_back(start, target, most, reached)
        assert set(np.flatnonzero(reached).tolist()) <= closed
        assert not finished or set(np.flatnonzero(reached).tolist()) == closed
        assert finished or most < n + 2
