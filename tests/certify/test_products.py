"""Bounds on expected products against fractions."""

from __future__ import annotations

import random
from fractions import Fraction
from typing import Any

import numpy as np

from tailpath.certify.products import expected_product
from tests.dp.chains import chain_of
from tests.reference import solve

Rows = list[dict[int, Fraction]]


def drawn(draw: random.Random) -> tuple[Rows, list[Fraction]]:
    """Rows q over some nodes, dyadic, that sum to less than 1 or to a little more; and what ends
    there.
    """
    n = draw.randint(1, 5)
    rows = []
    for x in range(n):
        targets = sorted(draw.sample(range(n), draw.randint(0, n)))
        if x + 1 < n and draw.random() < 0.2:  # a factor of more than 1, and on to what ends
            rows.append({x + 1: Fraction(draw.randint(65, 200), 64)})
        else:
            rows.append({y: Fraction(draw.randint(1, 48), 64 * n) for y in targets})
    return rows, [Fraction(draw.randint(1, 40), 16) for _ in range(n)]


def given(rows: Rows, ends: list[Fraction]) -> tuple[Any, Any]:
    start = np.concatenate(([0], np.cumsum([len(row) for row in rows]))).astype(np.int64)
    chain = chain_of(
        start, [y for r in rows for y in r], [float(q) for r in rows for q in r.values()]
    )
    return chain, np.array([float(b) for b in ends])


def exact(rows: Rows, ends: list[Fraction], scale: Fraction = Fraction(1)) -> list[Fraction]:
    found = solve(
        range(len(rows)), lambda x: ({y: q * scale for y, q in rows[x].items()}, ends[x] * scale)
    )
    return [found[x] for x in range(len(rows))]


def encloses(found: Any, truth: list[Fraction]) -> bool:
    return all(
        Fraction(low) <= true and (high == np.inf or true <= Fraction(high))
        for low, true, high in zip(found.lower.tolist(), truth, found.upper.tolist(), strict=True)
    )


def test_products_are_enclosed() -> None:
    draw = random.Random(1)
    seen = 0
    for _ in range(150):
        rows, ends = drawn(draw)
        truth = exact(rows, ends)
        found = expected_product(*given(rows, ends), 0.0)
        if min(truth) < 0:  # they grow without end
            assert not np.isfinite(found.upper).all()
            continue
        assert encloses(found, truth)
        assert (found.upper - found.lower <= 1e-10 * max(map(float, truth))).all()
        assert (found.lower <= found.value).all() and (found.value <= found.upper).all()
        seen += 1
    assert seen > 100


def test_what_probabilities_are_off_by_counts() -> None:
    draw, off = random.Random(2), Fraction(1, 512)
    for _ in range(60):
        rows, ends = drawn(draw)
        most = exact(rows, ends, 1 + off)
        if min(most) < 0:
            continue
        found = expected_product(*given(rows, ends), float(off))
        assert encloses(found, most) and encloses(found, exact(rows, ends, 1 - off))
        if max(most) < 40:
            truth = exact(rows, ends)
            width = max(b - a for a, b in zip(truth, most))
            assert (found.upper - found.lower <= 12 * float(width) + 1e-9).all()


def test_products_that_grow_have_no_bound() -> None:
    for factor in (Fraction(33, 32), Fraction(3, 2)):
        found = expected_product(*given([{0: factor}], [Fraction(1)]), 0.0)
        assert found.upper[0] == found.value[0] == np.inf and found.lower[0] == 0


def test_products_too_small_to_prove_anything() -> None:
    chain, _ = given([{0: Fraction(1, 2)}], [Fraction(1)])
    found = expected_product(chain, np.array([1e-260]), 0.0)
    assert found.lower[0] == 0 and found.upper[0] == np.inf
    found = expected_product(chain, np.array([1e-240]), 0.0)
    assert found.lower[0] > 0 and found.upper[0] < 1e-230


def test_no_nodes_no_products() -> None:
    chain = chain_of(np.zeros(1, np.int64), [], [])
    found = expected_product(chain, np.empty(0), 0.0)
    assert len(found.value) == len(found.lower) == len(found.upper) == 0
