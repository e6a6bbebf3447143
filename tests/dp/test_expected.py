"""Expected totals of absorbing chains agree with fractions, by every method."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tailpath.dp import expected
from tailpath.dp.sweeps import Sweeps
from tests.dp.chains import Rates, Rows, arrays, chains, exact_values


@settings(max_examples=150, deadline=None)
@given(chains(), st.sampled_from(["sweeps", "elimination", "factorisation"]))
def test_every_method_finds_the_truth(chain: tuple[Rows, Rates], method: str) -> None:
    rows, rates = chain
    given = arrays(rows, rates)
    sweeps = Sweeps.of_chain(given[0])
    if method == "sweeps":
        found, _ = expected.total(*given)
    elif method == "elimination":
        found, _ = expected._eliminated(*given, sweeps)
    else:
        found, _ = expected.factorised(*given)
    assert found == pytest.approx([float(v) for v in exact_values(rows, rates)], rel=1e-12)


def test_elimination_where_sparse_lu_returns_garbage() -> None:
    """A ring that restarts with probability 1 - 2^-20 per step: LU sees 1 - 1, elimination never
    subtracts.
    """
    n, p = 8, Fraction(1, 2**20)
    rows = [{x + 1: p, 0: 1 - p} for x in range(n)]
    exact = exact_values(rows, [Fraction(1)] * n)
    value, how = expected.total(*arrays(rows, [Fraction(1)] * n), directly=True)
    assert how == "elimination"
    assert value[0] == pytest.approx(float(exact[0]), rel=1e-12)


def test_a_long_chain_that_mixes_slowly_is_factorised() -> None:
    """A symmetric walk on 0 .. n with a wall at 0: n^2 - x^2 steps, too many sweeps and too large
    for elimination.
    """
    n = 3_000
    rows = [{1: Fraction(1)}] + [
        {x - 1: Fraction(1, 2), x + 1: Fraction(1, 2)} for x in range(1, n)
    ]
    value, how = expected.total(*arrays(rows, [Fraction(1)] * n))
    assert how == "factorisation"
    assert value == pytest.approx([n * n - x * x for x in range(n)], rel=1e-10)
