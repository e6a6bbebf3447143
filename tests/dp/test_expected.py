"""Bounds on the expected totals of absorbing chains contain the exact value, by every method."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tailpath.dp import expected
from tailpath.dp.rational import eliminated
from tailpath.dp.sweeps import Sweeps
from tailpath.errors import TailpathWarning
from tests.dp.chains import Rates, Rows, arrays, chains, exact_values


@settings(max_examples=150, deadline=None)
@given(chains(), st.sampled_from(["sweeps", "elimination", "factorisation", "decimals"]))
def test_every_method_bounds_the_truth(chain: tuple[Rows, Rates], method: str) -> None:
    rows, rates = chain
    given = expected.chain_of(*arrays(rows, rates))
    sweeps = Sweeps.of_chain(given.choice_outcomes, given.target, given.probability)
    if method == "sweeps":
        found = expected._by_sweeps(given, 0.0)[0]
    elif method == "elimination":
        found = expected.by_elimination(given, sweeps)
    elif method == "factorisation":
        found = expected.by_factorisation(given)[0]
    else:
        found = eliminated(given)
    for x, exact in enumerate(exact_values(rows, rates)):
        assert found.lower[x] <= exact <= found.upper[x]
        assert found.value[x] == pytest.approx(float(exact), rel=1e-12)
    assert np.max(found.upper - found.lower) <= 1e-11 * max(float(np.max(found.value)), 1e-300)


def test_elimination_where_sparse_lu_returns_garbage() -> None:
    """A ring that restarts with probability 1 - 2^-20 per step: LU sees 1 - 1, elimination never
    subtracts.
    """
    n, p = 8, Fraction(1, 2**20)
    rows = [{x + 1: p, 0: 1 - p} for x in range(n)]
    exact = exact_values(rows, [Fraction(1)] * n)
    found = expected.expected_total(*arrays(rows, [Fraction(1)] * n))
    assert found.method == "elimination"
    assert found.value[0] == pytest.approx(float(exact[0]), rel=1e-12)
    assert found.lower[0] <= exact[0] <= found.upper[0]


def test_a_long_chain_that_mixes_slowly_is_factorised() -> None:
    """A symmetric walk on 0 .. n with a wall at 0: n^2 - x^2 steps, too many sweeps and too large
    for elimination.
    """
    n = 3_000
    rows = [{1: Fraction(1)}] + [
        {x - 1: Fraction(1, 2), x + 1: Fraction(1, 2)} for x in range(1, n)
    ]
    found = expected.expected_total(*arrays(rows, [Fraction(1)] * n))
    assert found.method == "factorisation"
    for x in (0, 1500, n - 1):
        assert found.lower[x] <= n * n - x * x <= found.upper[x]
        assert found.upper[x] - found.lower[x] <= 1e-9 * (n * n - x * x)


def hub(n: int, p: Fraction, share: Fraction) -> tuple[Rows, Rates]:
    """Node 0 begins one of two rows of n nodes; each of them goes on with p, or back. Who gets
    through the first row has collected 1.
    """
    rows: Rows = [{1: share, n + 1: 1 - share}]
    rows += [{(x + 1 if x % n else 2 * n + 1): p, 0: 1 - p} for x in range(1, 2 * n + 1)]
    return rows, [p if x == n else Fraction(0) for x in range(2 * n + 1)]


@pytest.mark.parametrize(
    ("n", "p", "share"),
    [
        (160, "1/100", "1/100"),
        (330, "1/10", "1/10"),
        (36, f"1/{10**20}", "1/10"),
        (400, "1/100", "1/2"),
        (2000, "1/10", "1/3"),
        (2, f"1/{10**200}", "1/7"),
    ],
)
def test_what_falls_below_the_doubles_is_not_lost(n: int, p: str, share: str) -> None:
    """The chance to get through is p^n at each attempt, far below the smallest double; the first
    row is as likely as it is entered.
    """
    rows, rates = hub(n, Fraction(p), Fraction(share))
    found = expected.expected_total(*arrays(rows, rates))
    assert found.lower[0] <= Fraction(share) <= found.upper[0]
    assert found.upper[0] - found.lower[0] <= 1e-10 * float(Fraction(share))


@st.composite
def long_rows(draw: st.DrawFn) -> tuple[Rows, Rates, list[tuple[int, Fraction, Fraction, int]]]:
    """Rows of nodes behind a hub, each with an extreme probability to go on, and what each is: its
    length, that probability and its weight as floats stand for them, and what is collected by who
    gets through.
    """
    rows: Rows = [{}]
    rates: list[Fraction] = [Fraction(0)]
    kinds = []
    for _ in range(draw(st.integers(1, 3))):
        first, length = len(rows), draw(st.integers(1, 40))
        p, weight = (
            Fraction(1, 10 ** draw(st.sampled_from([1, 2, 20, 100, 200, 290]))),
            Fraction(draw(st.integers(1, 7)), 8),
        )
        collected = draw(st.sampled_from([0, 1, 5]))
        for x in range(first, first + length):
            rows.append({(x + 1 if x + 1 < first + length else -1): p, 0: 1 - p})
            rates.append(Fraction(0))
        rates[-1] = p * collected
        rows[0][first] = weight
        back = Fraction(repr(float(1 - p)))
        kinds.append((length, p / (p + back), weight, collected))
    whole = sum(rows[0].values())
    rows[0] = {first: weight / whole for first, weight in rows[0].items()}
    return (
        [{(len(rows) if y == -1 else y): q for y, q in row.items()} for row in rows],
        rates,
        kinds,
    )


@settings(max_examples=100, deadline=None)
@given(long_rows())
def test_long_rows_with_extreme_probabilities(chain: Any) -> None:
    """In closed form: each row is got through as often as its weight times p^length, and what it
    collects is lost only as floats lose it.
    """
    rows, rates, kinds = chain
    found = expected.expected_total(*arrays(rows, rates))
    through = [weight * p**length for length, p, weight, _ in kinds]
    exact = sum(
        share * collected for share, (*_, collected) in zip(through, kinds, strict=True)
    ) / sum(through)
    assert Fraction(float(found.lower[0])) <= exact
    assert found.upper[0] == np.inf or exact <= Fraction(float(found.upper[0]))
    assert found.upper[0] - found.lower[0] <= 1e-10 * float(found.upper[0]) or exact < Fraction(
        1, 10**300
    )


def test_nothing_to_collect_is_exactly_nothing() -> None:
    found = expected.expected_total(
        *arrays([{0: Fraction(1, 2), 1: Fraction(1, 2)}], [Fraction(0)])
    )
    assert (found.lower[0], found.value[0], found.upper[0]) == (0, 0, 0)


def test_probabilities_that_may_be_off_widen_the_bounds() -> None:
    """A coin that falls with 1/2, give or take a hundredth: 1 / p steps."""
    start, target, probability, rate = arrays(
        [{0: Fraction(1, 2), 1: Fraction(1, 2)}], [Fraction(1)]
    )
    found = expected.expected_total(start, target, probability, rate, 0.01)
    for p in (0.5 / 1.01, 0.5 * 1.01):
        assert found.lower[0] <= 1 / p <= found.upper[0]
    assert found.upper[0] - found.lower[0] < 0.2


def test_a_bound_that_is_not_proved_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """A ring that restarts with probability 1 - 2^-20 per step, where nothing but
    sweeps is tried.
    """
    for limit in ("LARGEST_ELIMINATION", "LARGEST_FACTORS", "LARGEST_DECIMALS"):
        monkeypatch.setattr(expected, limit, 0)
    n, p = 8, Fraction(1, 2**20)
    with pytest.warns(TailpathWarning, match="no upper bound on an expected total could be proved"):
        found = expected.expected_total(
            *arrays([{x + 1: p, 0: 1 - p} for x in range(n)], [Fraction(1)] * n)
        )
    assert found.upper[0] == np.inf and 0 <= found.lower[0] <= found.value[0]
