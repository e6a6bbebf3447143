"""Sums over what is open, against fractions."""

from __future__ import annotations

import random
from fractions import Fraction

import numpy as np
import pytest

from tailpath.dp.forward import open_sums
from tailpath.kernels.rounding import ROUNDOFF


@pytest.mark.parametrize("seed", range(60))
def test_sums_over_open_nodes_are_within_twenty_roundings(seed: int) -> None:
    """Masses of any size; `n` is the goal, whose cost to go is 0."""
    draw = random.Random(seed)
    n, m = draw.randint(1, 9), draw.randint(0, 400)
    value = np.array([draw.randint(0, 50) / 4 for _ in range(n)])
    lower, upper = value * 0.5, value * 2.0
    node = np.array([draw.randint(0, n) for _ in range(m)], dtype=np.int64)
    ahead = np.array([float(draw.randint(-40, 59)) for _ in range(m)])
    mass = np.array([draw.random() * 2.0 ** -draw.randint(0, 300) for _ in range(m)])
    found = open_sums(node, ahead, mass, value, lower, upper)
    exact = [Fraction(0)] * 5
    for x, paid, p in zip(
        node.tolist(), map(Fraction, ahead.tolist()), map(Fraction, mass.tolist())
    ):
        low, mid, high = ((Fraction(v[x]) if x < n else Fraction(0)) for v in (lower, value, upper))
        exact[0] += p
        for k, v in ((1, mid), (2, low), (3, high)):
            exact[k] += p * max(paid + v, 0)
        exact[4] += p * (abs(paid) + high)
    for ours, true in zip(found, exact):
        assert abs(Fraction(ours) - true) <= 20 * Fraction(ROUNDOFF) * true


def test_no_upper_bound_stays_none() -> None:
    value = np.ones(1)
    mass, now, low, high, parts = open_sums(
        np.zeros(40, dtype=np.int64), np.ones(40), np.ones(40), value, value, np.array([np.inf])
    )
    assert (mass, now, low, high, parts) == (40.0, 80.0, 80.0, np.inf, 40.0)
