"""The charges for rounding are those that are counted in docs/bounds.md, and hardly more."""

from __future__ import annotations

import random
from fractions import Fraction

import numpy as np
import pytest

from tailpath.certify.rounding import (
    ROUNDOFF,
    VANISHED,
    compounded,
    exit_error,
    row_error,
    row_factor,
    scaled,
    sum_error,
)
from tests.dp.chains import chain_of


def test_a_rounding_is_half_a_unit_in_the_last_place() -> None:
    assert Fraction(ROUNDOFF) == Fraction(1, 2**53)
    assert 1.0 + ROUNDOFF == 1.0 < 1.0 + 1.01 * ROUNDOFF


def test_a_step_of_a_row() -> None:
    """3 k + 5 roundings for probabilities, k for the mean cost, k for what lies ahead, and 5 more:
    (k + 2) times 5; and one for each addition.
    """
    for size in range(1, 9):
        counted = (3 * size + 5) + size + size + 5
        for additions in (0, 1, 7):
            assert row_error(size, additions) == (counted + additions) * ROUNDOFF
            assert row_error(size, additions, 0.25) == (counted + additions) * ROUNDOFF + 0.25


def test_a_sum_of_products() -> None:
    for terms in (0, 1, 10, 1000):
        assert sum_error(terms) == (2 * terms + 64) * ROUNDOFF


def test_what_may_vanish_is_more_than_a_million_million_million_products() -> None:
    assert 2.0**60 * 2.0**-1074 <= VANISHED <= 2.0**-1000


def test_rows_are_scaled_once() -> None:
    for size, off in ((1, 0.0), (5, 0.0), (3, 0.125)):
        step = (5 * (size + 2) + 1) * ROUNDOFF + off
        assert row_factor(size, 1, off) == 1 + step
        assert row_factor(size, -1, off) == 1 - step
        assert row_factor(size, 0, off) == 1


def test_every_probability_is_scaled_by_what_its_row_may_round() -> None:
    draw = random.Random(1)
    for off in (0.0, 2.0**-10):
        sizes = [draw.randint(1, 5) for _ in range(6)]
        start = np.concatenate(([0], np.cumsum(sizes)))
        p = np.array([draw.random() for _ in range(start[-1])])
        rows = chain_of(start, [draw.randrange(7) for _ in p], p)
        additions = np.array([draw.randint(1, 9) for _ in p])
        assert scaled(rows, 0, additions, off) is rows
        for side in (-1, 1):
            found = scaled(rows, side, additions, off).probability
            for edge, q in enumerate(found.tolist()):
                step = Fraction(5 * (sizes[rows.source[edge]] + 2) + int(additions[edge]))
                step = step * Fraction(ROUNDOFF) + Fraction(off)
                exact = Fraction(p[edge]) * (1 + side * step)
                assert abs(Fraction(q) - exact) <= 3 * Fraction(ROUNDOFF) * exact
        assert (scaled(rows, -1, additions, 2.0).probability == 0).all()


def test_free_cycles_that_were_solved() -> None:
    """2 m times what a row may be off, compounded, and the roundings of elimination by node."""
    component = np.array([0, 0, -1, 1, 0, 1, 2])
    sizes = [2, 4, 9, 1, 3, 2, 1]
    start = np.concatenate(([0], np.cumsum(sizes)))
    rows = chain_of(start, [7] * start[-1], np.full(start[-1], 0.1))
    for error in (0.0, 2.0**-20):
        found = exit_error(rows, component, error)
        assert found[2] == 0
        for nodes in ((0, 1, 4), (3, 5), (6,)):
            m, longest = len(nodes), max(sizes[node] for node in nodes)
            off = Fraction((5 * (longest + 2) + longest) * ROUNDOFF + error)
            of_rows = ((1 + off) / (1 - off)) ** m - 1
            steps = sum((2 * k + 1) * (k + 3) + 2 * k + 3 for k in range(m)) * ROUNDOFF
            for node in nodes:
                assert Fraction(found[node]) >= of_rows + Fraction(steps)
                assert Fraction(found[node]) <= of_rows * (1 + 2 * off) + Fraction(1.2 * steps)
    # The longest row of the free cycles counts, and is handed on to the rows that replace them.
    short = chain_of(np.arange(8), [7] * 7, np.full(7, 0.1))
    more = scaled(short, 1, 1, 0.0, (rows, component)).probability / 0.1 - 1
    known = exit_error(rows, component, 0.0) + row_error(np.array(sizes), 1)
    assert more == pytest.approx(known, rel=0.05, abs=0)


@pytest.mark.parametrize("step_error", [1e-15, 1e-9, 1e-3, 0.25])
@pytest.mark.parametrize("steps", [0, 1, 40])
def test_steps_one_after_the_other(step_error: float, steps: int) -> None:
    low, high = compounded(step_error, steps, -1), compounded(step_error, steps, 1)
    exact = (1 - Fraction(step_error)) ** steps, (1 + Fraction(step_error)) ** steps
    assert Fraction(low) <= exact[0] and exact[1] <= Fraction(high)
    assert low == pytest.approx(float(exact[0]), rel=1e-13)
    assert high == pytest.approx(float(np.exp(step_error * steps)), rel=1e-13)
    assert compounded(1.0, 10**6, 1) < np.inf and compounded(2.0, 3, -1) == 0
