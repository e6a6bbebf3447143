"""Certificates in fractions: whatever values they are shown, what they prove is true."""

from __future__ import annotations

import random
from fractions import Fraction
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import tailpath as tp
from tailpath.analysis.core import core_of
from tailpath.dp.certificates import lower_defect, proved, relative_bounds
from tailpath.dp.expected import chain_of
from tailpath.kernels.rounding import ROUNDOFF
from tests.dp.chains import Rates, Rows, arrays, chains, exact_values
from tests.reference import Model, expected_optimum, to_ssp
from tests.strategies import proper_models, solvable_models

#: By how much values are off, relatively, that are shown to a certificate.
NOISE = (0.0, 1e-16, 1e-12, 1e-6, 1e-2, 0.5)


def shaken(values: Any, noise: float, seed: int) -> Any:
    draw = random.Random(seed)
    return np.array([float(v) * (1 + draw.uniform(-noise, noise)) for v in values])


@settings(max_examples=200, deadline=None)
@given(chains(), st.sampled_from(NOISE), st.sampled_from([0.0, 1e-3, 1.0]), st.integers(0, 9))
def test_weights_prove_what_is_true(
    chain: tuple[Rows, Rates], noise: float, rough: float, seed: int
) -> None:
    """Neither values nor the solver need be right."""
    rows, rates = chain
    exact, n = exact_values(rows, rates), len(rows)
    matrix = np.array([[float(row.get(y, 0)) for y in range(n)] for row in rows])

    def solve(constant: Any, weight: Any) -> Any:
        return shaken(np.linalg.solve(np.eye(n) - matrix, constant), rough, seed)

    proof = proved(chain_of(*arrays(rows, rates)), shaken(exact, noise, seed), solve)
    if proof is None:
        assert rough > 0
        return
    for x, truth in enumerate(exact):
        middle, slack = (
            Fraction(float(proof.value[x])) + Fraction(float(proof.fine[x])),
            Fraction(float(proof.slack[x])),
        )
        assert middle - slack <= truth <= middle + slack
    if rough == 0:
        assert np.all(proof.slack <= 1e-13 * max(map(float, exact)) + noise * 1e-12)


@settings(max_examples=200, deadline=None)
@given(chains(), st.sampled_from(NOISE), st.integers(0, 9))
def test_shares_prove_what_is_true(chain: tuple[Rows, Rates], noise: float, seed: int) -> None:
    rows, rates = chain
    rates = [rate + Fraction(1, 8) for rate in rates]
    exact = exact_values(rows, rates)
    value = shaken(exact, noise, seed)
    below, above = relative_bounds(
        chain_of(*arrays(rows, rates)), np.append(value, 0.0), np.arange(len(rows))
    )
    for v, truth in zip(value.tolist(), exact, strict=True):
        assert Fraction(v) * (1 - Fraction(below)) <= truth
        assert above == np.inf or truth <= Fraction(v) * (1 + Fraction(above))
    # Rows of up to four: 24 units of the terms of a surplus, and what values of doubles are off,
    # each below and above.
    assert noise > 0 or below + above < 64 * ROUNDOFF * float(1 + 2 * max(exact) / min(rates))


@settings(max_examples=200, deadline=None)
@given(
    st.one_of(proper_models(), solvable_models()),
    st.sampled_from(NOISE),
    st.floats(0, 1),
    st.integers(0, 9),
)
def test_lower_bounds_hold_for_every_policy(
    model: Model, noise: float, share: float, seed: int
) -> None:
    """A share of the optimum, shaken: where the certificate accepts it, it lies below
    the optimum.
    """
    ssp, exact = to_ssp(model), expected_optimum(model)
    try:
        core = core_of(ssp)
    except tp.TailpathError:
        return
    finite = np.array([float(exact[s]) for s in ssp.states])
    value = shaken(share * core.to_nodes(finite), noise, seed)
    if lower_defect(core.decisions(), np.append(value, 0.0), np.zeros(core.n + 1)) <= 0:
        truth = core.to_nodes(np.array([exact[s] for s in ssp.states], dtype=object))
        assert all(
            Fraction(v) <= true for v, true in zip(value.tolist(), truth.tolist(), strict=True)
        )


def test_a_wrong_value_is_not_proved() -> None:
    """Steps of a fair coin, told as 3 instead of 2: the proof must reach down to 2, and a lower
    bound of 3 is refused.
    """
    chain = chain_of(*arrays([{0: Fraction(1, 2), 1: Fraction(1, 2)}], [Fraction(1)]))
    proof = proved(chain, np.array([3.0]), lambda constant, _: 2.0 * constant)
    assert (
        proof is not None
        and proof.value + proof.fine - proof.slack <= 2.0 <= proof.value + proof.fine + proof.slack
    )
    assert lower_defect(chain, np.array([3.0, 0.0]), np.zeros(2)) > 0
    assert lower_defect(chain, np.array([1.9, 0.0]), np.zeros(2)) < 0
    assert relative_bounds(chain, np.array([3.0, 0.0]), np.arange(1))[0] >= 1 / 3
