"""Bounds on the CVaR of a discounted cost against all runs in fractions."""

from __future__ import annotations

import random
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from tailpath.certify import discounts
from tailpath.certify.discounts import enclosed
from tailpath.certify.values import Bounds
from tailpath.graph import Transitions

Rows = list[list[tuple[int, Fraction, Fraction]]]
ONE = Fraction(1)


def drawn(draw: random.Random, n: int) -> Rows:
    """Every node leads on to later ones, or to the end, node n: outcomes, probabilities, costs."""
    rows: Rows = []
    for x in range(n):
        cuts = sorted(draw.sample(range(1, 16), draw.randint(0, 2)))
        shares = [Fraction(b - a, 16) for a, b in zip([0, *cuts], [*cuts, 16])]
        rows.append([(draw.randint(x + 1, n), p, Fraction(draw.randint(0, 12), 4)) for p in shares])
    return rows


def given(rows: Rows) -> Transitions:
    edges = [edge for row in rows for edge in row]
    start = np.concatenate(([0], np.cumsum([len(row) for row in rows])))
    target = np.array([y for y, _, _ in edges], dtype=np.int32)
    return Transitions(
        start,
        target,
        np.array([float(p) for _, p, _ in edges]),
        np.array([float(c) for _, _, c in edges]),
        None,
    )


def means(rows: Rows, gamma: Fraction) -> list[Fraction]:
    value = [Fraction(0)] * (len(rows) + 1)
    for x in reversed(range(len(rows))):
        value[x] = sum((p * (c + gamma * value[y]) for y, p, c in rows[x]), Fraction(0))
    return value[:-1]


def runs(rows: Rows, gamma: Fraction) -> list[tuple[Fraction, Fraction]]:
    """All totals from node 0, with their probabilities."""
    found: dict[Fraction, Fraction] = {}
    todo = [(0, Fraction(0), ONE, ONE)]
    while todo:
        node, cost, mass, factor = todo.pop()
        for to, p, c in rows[node]:
            if to == len(rows):
                total = cost + factor * c
                found[total] = found.get(total, Fraction(0)) + mass * p
            else:
                todo.append((to, cost + factor * c, mass * p, factor * gamma))
    return sorted(found.items())


def cvar(atoms: list[tuple[Fraction, Fraction]], alpha: Fraction) -> Fraction:
    return min(w + sum(p * max(z - w, 0) for z, p in atoms) / alpha for w, _ in atoms)


def bounds_of(rows: Rows, gamma: Fraction, off: float = 0.0) -> Bounds:
    exact = np.array([float(v) for v in means(rows, gamma)])
    return Bounds(exact, exact * (1 - 1e-14 - 2 * off), exact * (1 + 1e-14 + 2 * off))


@pytest.mark.parametrize("gamma", [Fraction(1, 2), Fraction(3, 4)])
def test_a_discounted_cvar_is_enclosed(gamma: Fraction) -> None:
    draw = random.Random(1)
    for _ in range(60):
        rows = drawn(draw, draw.randint(1, 6))
        atoms = runs(rows, gamma)
        for alpha in (Fraction(1, 20), Fraction(1, 4), ONE):
            known = enclosed(
                given(rows),
                0,
                float(gamma),
                float(1 - gamma),
                float(alpha),
                bounds_of(rows, gamma),
                0.0,
            )
            low, high = known.cvar(float(alpha))
            truth = cvar(atoms, alpha)
            assert Fraction(low) <= truth <= Fraction(high)
            assert high - low <= 1e-11 * max(high, 1.0)


def test_what_probabilities_are_off_by_counts() -> None:
    """A step of one in two, or of 1 in 100 more or less than that."""
    half = Fraction(1, 2)
    for off in (Fraction(1, 100), Fraction(-1, 100)):
        rows = [
            [(1, half * (1 + off), ONE), (1, 1 - half * (1 + off), 3 * ONE)],
            [(2, ONE, 2 * ONE)],
        ]
        plain: Rows = [[(1, half, ONE), (1, half, 3 * ONE)], [(2, ONE, 2 * ONE)]]
        known = enclosed(given(plain), 0, 0.5, 0.5, 0.75, bounds_of(plain, half, 0.01), 0.01)
        low, high = known.cvar(0.75)
        assert Fraction(low) <= cvar(runs(rows, half), Fraction(3, 4)) <= Fraction(high)
        assert high - low < 0.5


def test_a_walk_without_an_end_is_followed_until_little_is_left() -> None:
    """A coin at each step, a cost of 1 with each: a CVaR at 1 is the mean, 4/3; and at 1/2 twice
    what is left to pay after the first step.
    """
    half = Fraction(1, 2)
    chain: Any = given([[(0, half, ONE), (1, half, ONE)]])
    to_go = Bounds(np.array([4 / 3]), np.array([4 / 3 - 1e-14]), np.array([4 / 3 + 1e-14]))
    low, high = enclosed(chain, 0, 0.5, 0.5, 1.0, to_go, 0.0).cvar(1.0)
    assert low <= 4 / 3 <= high <= 4 / 3 + 1e-13
    low, high = enclosed(chain, 0, 0.5, 0.5, 0.5, to_go, 0.0).cvar(0.5)
    assert low <= 5 / 3 <= high <= low + 1e-11


def test_what_is_still_to_come_keeps_its_digits_beside_what_is_paid(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A cost of 1, and then seldom one of C: the pair that is left has a mean just above 1. Its
    total is one of the two ends of the chord, so that the upper bound allows nothing.
    """
    monkeypatch.setattr(discounts, "MOST_STAGES", 1)
    half, rare, alpha = Fraction(1, 2), Fraction(1e-9), Fraction(1, 2**23)
    for k in range(40):
        most = Fraction(2**21 + 1237 * k)
        rows: Rows = [[(1, ONE, ONE)], [(2, rare, most), (2, 1 - rare, Fraction(0))]]
        exact = np.array([float(v) for v in means(rows, half)])
        to_go = Bounds(exact, exact * (1 - 1e-15), exact * (1 + 1e-15))
        low, high = enclosed(given(rows), 0, 0.5, 0.5, float(alpha), to_go, 0.0).cvar(float(alpha))
        assert Fraction(low) <= 1 + rare * most / 2 / alpha <= Fraction(high)
