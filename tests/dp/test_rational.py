"""Elimination in numbers of any kind, and policy iteration in rationals, against the reference."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings

import tailpath as tp
from tailpath.analysis.core import core_of
from tailpath.dp import rational
from tailpath.dp.backup import Decisions
from tailpath.dp.elimination import eliminate_dense
from tailpath.dp.optimum import _proper_policy
from tailpath.dp.rational import eliminate_rows, eliminated_exits, long_decimals, rational_optimum
from tests.dp.chains import Rates, Rows, chains, exact_values
from tests.reference import Model, expected_optimum, to_ssp
from tests.strategies import solvable_models


@settings(max_examples=150, deadline=None)
@given(chains())
def test_elimination_in_rationals_is_exact(chain: tuple[Rows, Rates]) -> None:
    rows, rates = chain
    found = eliminate_rows(rows, [{0: rate, 7: 3 * rate} for rate in rates], len(rows))
    assert found is not None
    for x, exact in enumerate(exact_values(rows, rates)):
        assert found[x] == {0: exact, 7: 3 * exact}


@settings(max_examples=60, deadline=None)
@given(chains())
def test_elimination_in_decimals(chain: tuple[Rows, Rates]) -> None:
    rows, rates = chain
    with long_decimals():
        long = [{y: Decimal(p.numerator) / p.denominator for y, p in row.items()} for row in rows]
        found = eliminate_rows(
            long, [{0: Decimal(rate.numerator) / rate.denominator} for rate in rates], len(rows)
        )
    assert found is not None
    for x, exact in enumerate(exact_values(rows, rates)):
        assert abs(Fraction(found[x][0]) - exact) <= exact / 10**40


@settings(max_examples=60, deadline=None)
@given(chains())
def test_exits_in_decimals_and_in_doubles(chain: tuple[Rows, Rates]) -> None:
    """The exit of node x is column x: it is left there as often as its row says."""
    rows, n = chain[0], len(chain[0])
    steps = [(x, y, float(p)) for x, row in enumerate(rows) for y, p in row.items() if y < n]
    exits = [(x, x, float(row[n])) for x, row in enumerate(rows) if n in row]
    columns = [
        tuple(np.array(column) for column in zip(*table, strict=True)) or (np.zeros(0, int),) * 3
        for table in (steps, exits)
    ]
    leave = np.empty((n, n))
    assert eliminated_exits(*columns, leave)
    walk, doubles = np.zeros((n, n)), np.zeros((n, n))
    for x, y, p in steps:
        walk[x, y] += p
    for x, y, p in exits:
        doubles[x, y] += p
    error, faded = eliminate_dense(walk, doubles.sum(axis=1), doubles)
    assert error < 1e-12 and not faded
    for column in range(n):
        exact = exact_values(
            rows,
            [row.get(n, Fraction(0)) if x == column else Fraction(0) for x, row in enumerate(rows)],
        )
        for x in range(n):
            assert leave[x, column] == pytest.approx(float(exact[x]), rel=1e-14)
            assert doubles[x, column] == pytest.approx(float(exact[x]), rel=1e-13)


def test_doubles_that_fade_are_given_up() -> None:
    """Two steps of 1e-200 each, or one to collect 1e-200 with 1e-200."""
    walk = np.array([[0.0, 1e-200], [1.0, 0.0]])
    assert eliminate_dense(walk.copy(), np.array([0.0, 1e-200]), np.ones((2, 1)))[1]
    error, faded = eliminate_dense(walk.copy(), np.array([0.5, 0.5]), np.ones((2, 1)))
    assert error < 1e-13 and not faded
    assert eliminate_dense(walk.copy(), np.array([0.5, 0.5]), np.array([[0.0], [1e-200]]))[1]
    assert eliminate_dense(np.ones((1, 1)), np.zeros(1), np.ones((1, 1))) == (math.inf, True), (
        "never left"
    )


def test_too_many_products_are_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rational, "MAX_PRODUCTS", 3)
    rows = [{y: Fraction(1, 5) for y in range(5)} for _ in range(4)]
    assert eliminate_rows(rows, [{0: Fraction(1)}] * 4, 4) is None


def test_no_exact_row_is_built_where_it_would_not_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """A dense model of 300 states fills its rows up; a row of 300 states does not."""
    rng = np.random.default_rng(0)
    n = 300
    ways = [sorted({int(t) for t in rng.integers(0, n, 40)}) for _ in range(n)]
    dense = [(s, "go", t, 0.9 / len(way), 1) for s, way in enumerate(ways) for t in way]
    for s in range(n):
        dense += [(s, "go", "home", 0.06, 1), (s, "go", "lost", 0.04, 1)]
    trap = ("lost", "stay", "lost", 1, 1)
    asked: list[int] = []
    exact_rows = rational.exact_rows

    def watched(given: Decisions) -> list[rational.Row]:
        asked.append(len(given.rate))
        return exact_rows(given)

    monkeypatch.setattr(rational, "exact_rows", watched)
    found = tp.solve_arrival(tp.SSP.from_outcomes([*dense, trap], 0, ["home"]))
    assert not asked
    low, high = found.bounds
    assert low <= 0.6 <= high and high - low < 1e-12
    line = [(s, "go", s + 1, 0.99, 1) for s in range(n)]
    line += [(s, "go", "lost", 0.01, 1) for s in range(n)]
    found = tp.solve_arrival(tp.SSP.from_outcomes([*line, trap], 0, [n]))
    assert asked
    assert found.probability() == pytest.approx(0.99**n, rel=1e-14)


THIRD, SIXTEENTH = Fraction(1, 3), Fraction(1, 16)
#: 48 attempts, each of which costs a third.
THIRDS = {
    "s": {"go": [("t", 3 * THIRD, THIRD)]},
    "t": {"go": [("u", SIXTEENTH, 0 * THIRD), ("s", 15 * SIXTEENTH, 0 * THIRD)]},
    "u": {"go": [("g", THIRD, 0 * THIRD), ("s", 2 * THIRD, 0 * THIRD)]},
}


@settings(max_examples=100, deadline=None)
@given(model=solvable_models())
@example(Model(THIRDS, "s", frozenset("g")))
def test_policy_iteration_in_rationals(model: Model) -> None:
    exact, core = expected_optimum(model), core_of(to_ssp(model))
    if core.n == 0:
        return
    found = rational_optimum(
        core.decisions(), core.exact_rates(), _proper_policy(core.decisions()), 0.0
    )
    assert found is not None
    truth = core.to_nodes(np.array([exact[s] for s in core.ssp.states], dtype=object))
    for x in range(core.n):
        assert Fraction(float(found[1].lower[x])) <= truth[x] <= Fraction(float(found[1].upper[x]))
        assert found[1].value[x] == pytest.approx(float(truth[x]), rel=1e-15)
