"""Bounds of V and V* in fractions: whatever values the certificate is shown, what it proves is
true.
"""

from __future__ import annotations

import random
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tailpath as tp
from tailpath.analysis.core import core_of
from tailpath.certify import values
from tailpath.certify.values import expected_total, least_total, value_bounds
from tailpath.dp import expected
from tailpath.dp.backup import best_rows
from tailpath.dp.expected import total
from tailpath.dp.optimum import optimum
from tailpath.errors import TailpathWarning
from tests.dp.chains import Rates, Rows, arrays, chain_of, chains, exact_values
from tests.reference import Model, expected_optimum, to_ssp
from tests.strategies import proper_models, solvable_models

#: By how much values are off, relatively, that are shown to the certificate.
NOISE = (0.0, 1e-16, 1e-12, 1e-6, 1e-2, 0.5)


def shaken(values: Any, noise: float, seed: int) -> Any:
    draw = random.Random(seed)
    return np.array([float(v) * (1 + draw.uniform(-noise, noise)) for v in values])


def assert_enclosed(found: Any, exact: Any) -> None:
    for low, truth, high in zip(found.lower.tolist(), exact, found.upper.tolist(), strict=True):
        assert low == -np.inf or Fraction(low) <= truth
        assert high == np.inf or truth <= Fraction(high)


@settings(max_examples=200, deadline=None)
@given(chains(), st.sampled_from(NOISE), st.sampled_from([0.0, 1e-3, 1.0]), st.integers(0, 9))
def test_what_is_proved_of_a_chain_is_true(
    chain: tuple[Rows, Rates], noise: float, rough: float, seed: int
) -> None:
    """Neither values nor the solver of slopes and low words need be right."""
    rows, rates = chain
    exact, given = exact_values(rows, rates), arrays(rows, rates)

    def solve(*some: Any) -> Any:
        return shaken(total(*some)[0], rough, seed)

    value = shaken(exact, noise, seed)
    found, _ = value_bounds(*given, value, np.arange(len(rows)), 0.0, solve)
    assert_enclosed(found, exact)
    if rough == 0.0 and noise <= 1e-6:
        assert found.width <= 4e-12


@settings(max_examples=200, deadline=None)
@given(st.one_of(proper_models(), solvable_models()), st.sampled_from(NOISE), st.integers(0, 9))
def test_what_is_proved_of_an_optimum_is_true(model: Model, noise: float, seed: int) -> None:
    """From below for every policy, from above for the one that is best for shaken values."""
    ssp, exact = to_ssp(model), expected_optimum(model)
    try:
        core = core_of(ssp)
    except tp.TailpathError:
        return
    rows = core.transitions
    value = shaken(core.to_nodes(np.array([float(exact[s]) for s in ssp.states])), noise, seed)
    truth = core.to_nodes(np.array([exact[s] for s in ssp.states], dtype=object)).tolist()
    chosen = best_rows(rows.columns(rows.rate), np.append(value, 0.0))
    found, _ = value_bounds(rows, rows.rate, value, chosen, 0.0, lambda *some: optimum(*some).value)
    assert_enclosed(found, truth)


def test_a_wrong_value_is_not_proved() -> None:
    """Steps of a fair coin, told as 3 instead of 2: bounds reach down to 2."""
    chain = arrays([{0: Fraction(1, 2), 1: Fraction(1, 2)}], [Fraction(1)])
    found, _ = value_bounds(*chain, np.array([3.0]), np.arange(1), 0.0, lambda *_: np.zeros(1))
    assert found.lower[0] <= 2 <= found.upper[0]


@settings(max_examples=100, deadline=None)
@given(chains())
def test_totals_have_narrow_bounds(chain: tuple[Rows, Rates]) -> None:
    rows, rates = chain
    found = expected_total(*arrays(rows, rates))
    assert_enclosed(found, exact_values(rows, rates))
    assert np.max(found.upper - found.lower) <= 1e-11 * max(float(np.max(found.value)), 1e-300)


@pytest.mark.parametrize("n", [4, 8, 20])
def test_a_ring_that_hardly_ends(n: int) -> None:
    """It restarts with probability 7/8 in every step: up to 8^20 of them."""
    p = Fraction(1, 8)
    rows = [{x + 1: p, 0: 1 - p} for x in range(n)]
    exact = exact_values(rows, [Fraction(1)] * n)
    found = least_total(*arrays(rows, [Fraction(1)] * n)).bounds
    assert_enclosed(found, exact)
    assert found.value == pytest.approx([float(v) for v in exact], rel=1e-12)


def unread(patch: pytest.MonkeyPatch) -> None:
    """Nothing for what probabilities are off from their decimals, and for operations."""
    patch.setattr(values, "PER_EDGE", 0)


@pytest.mark.parametrize("charged", [True, False])
def test_roundings_need_their_charge(charged: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without it, bounds of some of these chains exclude the truth."""
    monkeypatch.setattr(values, "residuals", values.residuals.plain)
    if not charged:
        unread(monkeypatch)
    excluded, draw = 0, random.Random(7)
    for _ in range(40):
        p, rate = (Fraction(draw.randint(1, 999), 1000) for _ in range(2))
        rows = [{1: p, 2: 1 - p}, {0: p, 2: 1 - p}]
        exact = exact_values(rows, [rate, Fraction(1, 3)])
        found = least_total(*arrays(rows, [rate, Fraction(1, 3)])).bounds
        excluded += any(
            not Fraction(low) <= truth <= Fraction(high)
            for low, truth, high in zip(found.lower.tolist(), exact, found.upper.tolist())
        )
    assert (excluded == 0) == charged


@pytest.mark.parametrize("charged", [True, False])
def test_what_vanishes_needs_its_charge(charged: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of all runs from 0 pass through 1, which costs 1e-73; they get there in some 1e251
    steps, each of which contributes less than any float. 0 is no value of 0.
    """
    monkeypatch.setattr(values, "residuals", values.residuals.plain)
    if not charged:
        monkeypatch.setattr(values, "VANISHED", 0.0)
    chain = chain_of(np.array([0, 3, 4]), [0, 1, 2, 2], [1.0, 1e-251, 1e-251, 1.0])
    rate = np.array([0.0, 1e-73])
    value = np.array([0.0, 1e-73])
    found, _ = value_bounds(chain, rate, value, np.arange(2), 0.0, lambda *some: total(*some)[0])
    assert (found.lower[0] <= 0.5e-73 <= found.upper[0]) == charged


def test_nothing_to_collect_is_exactly_nothing() -> None:
    found = expected_total(*arrays([{0: Fraction(1, 2), 1: Fraction(1, 2)}], [Fraction(0)]))
    assert (found.lower[0], found.value[0], found.upper[0]) == (0, 0, 0)


def test_probabilities_that_may_be_off_widen_the_bounds() -> None:
    """A coin that falls with 1/2, give or take a hundredth: 1 / p steps."""
    columns = arrays([{0: Fraction(1, 2), 1: Fraction(1, 2)}], [Fraction(1)])
    found = expected_total(*columns, 0.01)
    for p in (0.5 / 1.01, 0.5 * 1.01):
        assert found.lower[0] <= 1 / p <= found.upper[0]
    assert found.upper[0] - found.lower[0] < 0.2


def test_a_bound_that_is_not_proved_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """A ring that restarts with probability 1 - 2^-20 per step, where only sweeps are tried."""
    for limit in ("LARGEST_ELIMINATION", "LARGEST_FACTORS"):
        monkeypatch.setattr(expected, limit, 0)
    n, p = 8, Fraction(1, 2**20)
    with pytest.warns(TailpathWarning, match="no upper bound on an expected total could be proved"):
        found = expected_total(*arrays([{x + 1: p, 0: 1 - p} for x in range(n)], [Fraction(1)] * n))
    assert found.upper[0] == np.inf and 0 <= found.lower[0] <= found.value[0]
