"""Searches over chains against brute force."""

from __future__ import annotations

import random

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tailpath.graph import Transitions, owners
from tests.strategies import random_rows


@given(draw=st.randoms(use_true_random=False))
def test_cheapest_ways_are_those_of_all_steps_tried_in_turn(draw: random.Random) -> None:
    start, target, _ = random_rows(draw)
    n = len(start) - 1
    level = np.array([draw.choice((0, 0, 1, 2, 7, 100)) for _ in target], dtype=np.int64)
    source, least = owners(start), np.append(np.full(n, np.inf), 0.0)
    for _ in range(n + 1):
        np.minimum.at(least, source, level + least[np.minimum(target, n)])
    nothing = np.zeros(len(target))
    found = Transitions(start, target, nothing, nothing, level).distances()
    assert found.least.tolist() == least.tolist()
    falling, position = found.farthest_first, found.position
    assert sorted(falling.tolist()) == np.flatnonzero(np.isfinite(least)).tolist()
    assert falling[-1] == n and (np.diff(least[falling]) <= 0).all()
    assert position[falling].tolist() == list(range(len(falling)))
    assert (position[np.isinf(least)] == -1).all()
