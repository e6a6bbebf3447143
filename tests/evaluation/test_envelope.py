"""VaR by its definition, the integral and the derivative that tie it to CVaR (the paper's Eqs. 12
and 13), and the density that attains CVaR's dual form (Eqs. 6 and 7), against fractions.
"""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tailpath as tp
from tailpath.errors import OptionError
from tests.risk_envelope import cvar_dual

LEAST = Fraction(1, 64)
#: Costs and weights of one step; masses are multiples of 1/64, so that alphas are hit exactly.
steps = st.lists(
    st.tuples(st.integers(0, 12), st.integers(1, 9)),
    min_size=1,
    max_size=6,
    unique_by=lambda t: t[0],
)
alphas = st.sampled_from([Fraction(k, 64) for k in (1, 3, 8, 16, 31, 32, 48, 63, 64)])


def distribution(drawn):
    """Costs and exact probabilities, and what `evaluate` makes of them."""
    total = sum(weight for _, weight in drawn)
    masses = {cost: Fraction(64 * weight // total, 64) for cost, weight in drawn}
    first = next(iter(masses))
    masses[first] += 1 - sum(masses.values())
    masses = {cost: mass for cost, mass in masses.items() if mass}
    rows = [("s", "go", "g", float(mass), cost) for cost, mass in masses.items()]
    ssp = tp.SSP.from_outcomes(rows, "s", ["g"])
    return masses, tp.evaluate(ssp, {"s": "go"}, float(LEAST))


def var(masses, alpha):
    """The least z with P(Z <= z) >= 1 - alpha."""
    return min(
        z for z in masses if sum(mass for cost, mass in masses.items() if cost <= z) >= 1 - alpha
    )


def integral_of_var(masses, alpha):
    """Of the worst `alpha`, the costs piece by piece: VaR is a step function of the mass."""
    left, total = alpha, Fraction(0)
    for cost in sorted(masses, reverse=True):
        taken = min(left, masses[cost])
        left, total = left - taken, total + taken * cost
    return total


@given(steps, alphas)
def test_var_is_the_least_cost_that_is_not_exceeded_with_probability_1_minus_alpha(drawn, alpha):
    masses, costs = distribution(drawn)
    assert costs.var(float(alpha)) == var(masses, alpha)


@given(steps, alphas)
def test_alpha_times_cvar_is_the_integral_of_var_and_var_its_derivative(drawn, alpha):
    masses, costs = distribution(drawn)
    a, h = float(alpha), Fraction(1, 1024)
    assert a * costs.cvar(a) == pytest.approx(float(integral_of_var(masses, alpha)), abs=1e-12)
    if alpha < 1:  # to the right there is no step, as masses are multiples of 1/64
        slope = (integral_of_var(masses, alpha + h) - integral_of_var(masses, alpha)) / h
        assert costs.var(a) == slope


@given(steps, alphas)
def test_the_envelope_attains_the_value_of_the_dual(drawn, alpha):
    masses, costs = distribution(drawn)
    a = float(alpha)
    xi, p = costs.envelope(a), costs.probabilities
    assert ((xi >= 0) & (xi <= 1 / a * (1 + 1e-12))).all()
    assert xi @ p + costs.tail_mass / a == pytest.approx(1, rel=1e-12)
    beyond = sum(m * z for z, m in masses.items() if z > costs.costs[-1])
    value = xi @ (p * costs.costs) + float(beyond) / a
    assert value == pytest.approx(float(integral_of_var(masses, alpha) / alpha), abs=1e-12)
    z, m = zip(*masses.items())
    assert value == pytest.approx(cvar_dual(z, [float(mass) for mass in m], a).cvar, abs=1e-9)


def test_no_other_density_of_the_envelope_costs_more():
    costs = tp.evaluate(
        tp.read("gridworld:5x5"), tp.solve_expected(tp.read("gridworld:5x5")).policy, 1e-6
    )
    p, z, random = costs.probabilities, costs.costs, np.random.default_rng(1)
    best = costs.envelope(0.1) @ (p * z)
    for _ in range(50):
        xi = np.minimum(random.exponential(size=len(p)), 10.0)
        xi = np.minimum(xi / (xi @ p), 10.0)
        xi += (1 - xi @ p) * (10.0 - xi) / ((10.0 - xi) @ p)
        assert xi.max() <= 10 + 1e-9 and xi @ p == pytest.approx(1)
        assert xi @ (p * z) <= best * (1 + 1e-5)


def test_an_alpha_below_the_one_evaluated_is_refused():
    _, costs = distribution([(1, 1), (2, 1)])
    with pytest.raises(OptionError, match=r"alpha >= 0\.015625"):
        costs.envelope(0.001)
