"""Expected totals of absorbing chains agree with fractions, by every method."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tailpath.certify.values import Bounds
from tailpath.dp import expected
from tailpath.dp.sweeps import Sweeps
from tests.dp.chains import Rates, Rows, arrays, chain_of, chains, exact_values


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


@pytest.mark.parametrize("method", ["elimination", expected.SWEEPS])
def test_a_variance_is_found_in_the_way_of_the_mean(
    method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A step at a cost of 2 until a coin shows heads: 8 = 4 * 2. Sweeps that were too slow for the
    mean are not tried again.
    """
    chain = chain_of([0, 2], [0, 1], [0.5, 0.5]).replaced(cost=np.array([2.0, 2.0]))
    asked = []
    run = Sweeps.run
    monkeypatch.setattr(Sweeps, "run", lambda *given: asked.append(given) or run(*given))
    mean = Bounds(np.array([4.0]), np.array([4.0]), np.array([4.0]), method)
    assert expected.variances(chain, mean) == pytest.approx([8.0], rel=1e-12)
    assert len(asked) == (method == expected.SWEEPS)
