"""Textbook problems against their closed forms, down to tails of 10^-12.

A closed form takes the model's decimals at their word (p = 0.1 is 1/10), the program their floats,
which differ by 10^-16; at a tail of 10^-12 both give the same to 12 digits.
"""

from fractions import Fraction

import pytest

import tailpath as tp
from tests import textbook

PROBLEMS = {
    "geometric 1/4": textbook.geometric(),
    "geometric 0.85, cost 0.1": textbook.geometric(0.85, 0.1),
    "geometric 1/100": textbook.geometric(Fraction(1, 100), Fraction(7, 3)),
    "negative binomial 3": textbook.negative_binomial(),
    "negative binomial 12": textbook.negative_binomial(12, 0.35, 2.5),
    "gambler's ruin, fair": textbook.gamblers_ruin(),
    "gambler's ruin, unfair": textbook.gamblers_ruin(4, 11, Fraction(3, 7)),
    "coupon collector 8": textbook.coupon_collector(),
    "coupon collector 15": textbook.coupon_collector(15),
    "lottery": textbook.lottery(),
    "deterministic chain": textbook.deterministic_chain(5, 0.3),
}
ALPHAS = [1.0, 0.5, 0.1, 1e-3, 1e-6, 1e-9, 1e-12]


@pytest.mark.parametrize("engine", ["lattice", "queue"])
@pytest.mark.parametrize("name", PROBLEMS)
def test_closed_forms(name, engine):
    problem = PROBLEMS[name]
    found = tp.evaluate(problem.ssp, problem.policy, min(ALPHAS), engine=engine)
    assert found.engine == engine
    assert found.mean == pytest.approx(problem.mean, rel=1e-12, abs=0)
    assert found.mean_bounds[0] <= problem.mean <= found.mean_bounds[1]
    for alpha in ALPHAS:
        assert found.var(alpha) == pytest.approx(problem.var(alpha), rel=1e-15, abs=0), alpha
        assert found.cvar(alpha) == pytest.approx(problem.cvar(alpha), rel=1e-12, abs=0), alpha
        low, high = found.bounds(alpha)
        assert low <= problem.cvar(alpha) <= high, alpha
        assert high - low <= 1e-10 * high, alpha


@pytest.mark.parametrize("name", PROBLEMS)
def test_each_alpha_on_its_own_agrees_with_one_run_for_all(name):
    problem = PROBLEMS[name]
    for alpha in ALPHAS:
        found = tp.evaluate(problem.ssp, problem.policy, alpha)
        assert found.var(alpha) == pytest.approx(problem.var(alpha), rel=1e-15, abs=0)
        assert found.cvar(alpha) == pytest.approx(problem.cvar(alpha), rel=1e-12, abs=0)


def test_a_dyadic_tail_is_met_exactly():
    """p = 1/2: P(Z > k) = 2^-k is a float, and VaR must not slip to the next cost."""
    problem = textbook.geometric(Fraction(1, 2))
    found = tp.evaluate(problem.ssp, problem.policy, 2.0**-40)
    for k in range(1, 41):
        assert (found.var(2.0**-k), found.cvar(2.0**-k)) == (k, k + 2)


def test_a_decimal_tail_is_met_within_rounding():
    """p = 9/10: P(Z > k) = 10^-k is no float, nor is alpha; a difference in the 12th digit must not
    move VaR.
    """
    problem = textbook.geometric(Fraction(9, 10))
    found = tp.evaluate(problem.ssp, problem.policy, 1e-12)
    for k in range(1, 13):
        assert found.var(10.0**-k) == problem.var(Fraction(1, 10**k)) == k
        assert found.cvar(10.0**-k) == pytest.approx(
            problem.cvar(Fraction(1, 10**k)), rel=1e-12, abs=0
        )


@pytest.mark.parametrize("n", [5, 20, 35])
def test_a_chain_that_needs_a_power_of_two_steps(n):
    """The mean is 3 * 2^(n-1) - 2; half of all runs are much longer than any sweep is patient."""
    problem = textbook.haddad_monmege(n)
    found = tp.evaluate(problem.ssp, problem.policy, 1.0)
    assert found.cvar(1.0) == pytest.approx(problem.mean, rel=1e-12, abs=0)
    assert found.bounds(1.0)[0] <= problem.mean <= found.bounds(1.0)[1]


@pytest.mark.parametrize("heuristic", ["zero", "min"])
def test_a_jump_exactly_as_long_as_the_ring(heuristic):
    """A long chain leads back to its first node at a cost of 16, once in a while.

    Of 1,400 outcomes this one alone does not fit into the 16 levels that the search keeps.
    """
    rows = [(x, "a", x + 1, 0.5, cost) for x in range(700) if x != 350 for cost in (1, 2)]
    rows += [(350, "a", 351, 0.5, 1), (350, "a", 0, 0.5, 16)]
    ssp = tp.SSP.from_outcomes(rows, 0, [700])
    costs = tp.evaluate(ssp, dict.fromkeys(range(700), "a"), 1e-3, heuristic=heuristic)
    # 350 steps of 1.5, and then as often back as forth.
    mean = 525 + 2 * (0.5 * (1 + 349 * 1.5) + 0.5 * (16 + 525))
    assert costs.mean == pytest.approx(mean, rel=1e-13)
    assert costs.totals.sum_of_means == pytest.approx(mean, rel=1e-12)
