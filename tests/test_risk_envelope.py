"""The three forms of CVaR against exact fractions, and their witnesses against the definitions."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailpath.errors import OptionError
from tests.risk_envelope import cvar_dual, cvar_primal, cvar_sorted

#: Costs repeat often, and probabilities of 1/16 make exact hits on alpha common.
distributions = st.integers(1, 7).flatmap(
    lambda n: st.tuples(
        st.lists(st.sampled_from([0, 1, 2, 2.5, 10, 100, -3]), min_size=n, max_size=n),
        st.lists(st.integers(0 if n > 1 else 1, 9), min_size=n, max_size=n).filter(any),
    )
)
tail_masses = st.sampled_from([1.0, 0.5, 0.25, 0.1, 1 / 3, 1e-3, 1e-9])


def exact(costs, weights, alpha):
    """VaR and CVaR by walking down from the worst cost, in fractions."""
    left, total, var = Fraction(alpha), Fraction(0), None
    for cost, weight in sorted(zip(costs, weights, strict=True), reverse=True):
        mass = min(Fraction(weight, sum(weights)), left)
        total += mass * Fraction(cost)
        left -= mass
    for level in sorted({c for c, w in zip(costs, weights, strict=True) if w}):
        if Fraction(
            sum(w for c, w in zip(costs, weights, strict=True) if c > level), sum(weights)
        ) <= Fraction(alpha):
            var = level
            break
    return var, total / Fraction(alpha)


@given(distributions, tail_masses)
def test_the_three_forms_agree_with_fractions(distribution, alpha):
    costs, weights = distribution
    p = np.array(weights) / sum(weights)
    var, cvar = exact(costs, weights, alpha)
    primal, dual, ordered = (
        cvar_primal(costs, p, alpha),
        cvar_dual(costs, p, alpha),
        cvar_sorted(costs, p, alpha),
    )
    for found in (primal.cvar, dual.cvar, ordered.cvar):
        assert found == pytest.approx(float(cvar), rel=1e-9, abs=1e-9)
    # Unless a tail mass hits alpha up to rounding, where two quantiles are as good as one.
    tails = [
        Fraction(sum(w for c, w in zip(costs, weights, strict=True) if c > level), sum(weights))
        for level in costs
    ]
    if all(tail == Fraction(alpha) or abs(tail - Fraction(alpha)) > 1e-9 * alpha for tail in tails):
        assert primal.threshold == ordered.var == var


@given(distributions, tail_masses)
def test_the_witnesses_lie_in_the_envelope_and_attain_the_value(distribution, alpha):
    costs, weights = np.array(distribution[0], dtype=float), distribution[1]
    p = np.array(weights) / sum(weights)
    for found in (cvar_dual(costs, p, alpha), cvar_sorted(costs, p, alpha)):
        assert np.sum(p * found.xi) == pytest.approx(1, abs=1e-9)
        assert np.all(found.xi >= 0)
        assert np.all(found.xi <= (1 + 1e-9) / alpha)
        assert np.sum(p * found.xi * costs) == pytest.approx(found.cvar, rel=1e-9, abs=1e-7)


@given(distributions, tail_masses)
def test_sorting_weighs_equal_costs_alike(distribution, alpha):
    costs, weights = np.array(distribution[0], dtype=float), distribution[1]
    xi = cvar_sorted(costs, np.array(weights) / sum(weights), alpha).xi
    for cost in costs:
        assert len(set(xi[costs == cost])) == 1


def test_the_mean_and_the_worst_case_are_the_ends():
    costs, p = [1.0, 4.0, 10.0], [0.5, 0.25, 0.25]
    assert cvar_sorted(costs, p, 1).cvar == cvar_primal(costs, p, 1).cvar == pytest.approx(4.0)
    assert cvar_sorted(costs, p, 1).var == 1.0
    assert cvar_dual(costs, p, 1e-6).cvar == pytest.approx(10.0)
    np.testing.assert_allclose(cvar_dual(costs, p, 1).xi, 1.0)


@pytest.mark.parametrize(
    "costs, p, alpha, message",
    [
        ([1, 2], [1.0], 0.5, "one length"),
        ([], [], 0.5, "one length"),
        ([1, np.inf], [0.5, 0.5], 0.5, "costs must be finite, not inf"),
        ([1, 2], [1.5, -0.5], 0.5, "probabilities must be 0 or more, not -0.5"),
        ([1, 2], [0.5, np.nan], 0.5, "probabilities must be 0 or more, not nan"),
        ([1, 2], [0.5, 0.4], 0.5, "sum to 0.9, not 1"),
        ([1, 2], [0.5, 0.5], 0.0, r"alpha must lie in \(0, 1\], not 0.0"),
        ([1, 2], [0.5, 0.5], float("nan"), "alpha must lie in"),
    ],
)
@pytest.mark.parametrize("form", [cvar_primal, cvar_dual, cvar_sorted])
def test_bad_input_is_refused(form, costs, p, alpha, message):
    with pytest.raises(OptionError, match=message):
        form(costs, p, alpha)
