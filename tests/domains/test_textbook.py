"""Closed forms against exact expansion of the chains in fractions (`tests.reference`), with
parameters that floats cannot hold.
"""

from fractions import Fraction as F

import pytest

from tailpath.errors import OptionError
from tailpath.policies.kinds import MarkovPolicy
from tests import textbook
from tests.reference import Model, cost_distribution, expected_cost, expected_optimum, from_ssp

ALPHAS = [F(1), F(99, 100), F(1, 2), F(1, 20), F(1, 1000), F(1, 10**6)]


def chain(rows, start, goals):
    """A model with one action, from {state: {next_state: probability}} and the cost of
    each step.
    """
    return Model(
        {s: {"x": [(t, F(p), F(c)) for t, p, c in outcomes]} for s, outcomes in rows.items()},
        start,
        frozenset(goals),
    )


CASES = {
    "geometric": (
        textbook.geometric(F(1, 3), F(2, 7)),
        chain({0: [(1, F(1, 3), F(2, 7)), (0, F(2, 3), F(2, 7))]}, 0, [1]),
    ),
    "sure geometric": (textbook.geometric(1), chain({0: [(1, 1, 1)]}, 0, [1])),
    "negative binomial": (
        textbook.negative_binomial(4, F(3, 5), F(1, 2)),
        chain({j: [(j + 1, F(3, 5), F(1, 2)), (j, F(2, 5), F(1, 2))] for j in range(4)}, 0, [4]),
    ),
    "chain": (
        textbook.deterministic_chain(7, F(1, 10)),
        chain({j: [(j + 1, 1, F(1, 10))] for j in range(7)}, 0, [7]),
    ),
    "lottery": (
        textbook.lottery(F(1, 20), F(3), F(50)),
        chain({0: [(1, F(1, 20), 50), (1, F(19, 20), 3)]}, 0, [1]),
    ),
    "certain lottery": (textbook.lottery(1, F(3), F(50)), chain({0: [(1, 1, 50)]}, 0, [1])),
    "lottery of one prize": (textbook.lottery(F(1, 4), 9, 9), chain({0: [(1, 1, 9)]}, 0, [1])),
    "fair game": (
        textbook.gamblers_ruin(2, 5),
        chain({x: [(x + 1, F(1, 2), 1), (x - 1, F(1, 2), 1)] for x in range(1, 5)}, 2, [0, 5]),
    ),
    "unfair game": (
        textbook.gamblers_ruin(4, 5, F(1, 3)),
        chain({x: [(x + 1, F(1, 3), 1), (x - 1, F(2, 3), 1)] for x in range(1, 5)}, 4, [0, 5]),
    ),
    "coupons": (
        textbook.coupon_collector(5),
        chain(
            {k: [(k + 1, F(5 - k, 5), 1)] + ([(k, F(k, 5), 1)] if k else []) for k in range(5)},
            0,
            [5],
        ),
    ),
    "one coupon": (textbook.coupon_collector(1), chain({0: [(1, 1, 1)]}, 0, [1])),
}


@pytest.mark.parametrize("name", CASES)
def test_answers_equal_exact_expansion_to_the_last_digit(name):
    problem, model = CASES[name]
    policy = MarkovPolicy(dict.fromkeys(model.choices, "x"))
    costs = cost_distribution(model, policy, ALPHAS[-1])
    assert problem.mean == float(costs.mean)
    for alpha in ALPHAS:
        assert (alpha, problem.var(alpha), problem.cvar(alpha)) == (
            alpha,
            float(costs.var(alpha)),
            float(costs.cvar(alpha)),
        )


@pytest.mark.parametrize("name", CASES)
def test_the_model_is_the_chain(name):
    problem, model = CASES[name]
    assert problem.ssp.n_states == len(model.choices) + len(model.goals)
    assert problem.mean == pytest.approx(
        float(expected_cost(from_ssp(problem.ssp), problem.policy)), rel=1e-13
    )


def test_geometric_far_out_in_the_tail():
    # P(Z > 40) = 2^-40, and beyond it two more trials are to be expected: CVaR at alpha = 2^-40 is
    # 42.
    problem = textbook.geometric(F(1, 2))
    assert (problem.var(2.0**-40), problem.cvar(2.0**-40)) == (40, 42)
    assert (problem.var(2.0**-41 * 1.0001), problem.var(2.0**-41 * 0.9999)) == (41, 42)


def test_var_at_alpha_1_is_the_least_possible_cost():
    assert [
        textbook.PROBLEMS[name]().var(1)
        for name in ("negative-binomial", "gamblers-ruin", "coupon-collector")
    ] == [3, 3, 8]


def test_counter_example():
    problem = textbook.counter_example()
    assert (problem.policy, problem.var, problem.ssp.cost_unit) == (None, None, 100)
    assert problem.mean == expected_optimum(from_ssp(problem.ssp))["s0"] == 450
    assert problem.cvar(0.5) == 650
    model = from_ssp(problem.ssp)
    for alpha in ALPHAS:
        each = [
            cost_distribution(
                model, MarkovPolicy({"s0": "go", "s1": action, "s2": "go"}), alpha
            ).cvar(alpha)
            for action in ("a1", "a2", "a3")
        ]
        assert problem.cvar(alpha) == float(min(each))


@pytest.mark.parametrize("n", [1, 2, 5, 20])
def test_haddad_monmege(n):
    problem = textbook.haddad_monmege(n)
    assert problem.ssp.n_states == 2 * n + 1
    assert set(problem.ssp.goals) == {0, 2 * n}
    assert problem.mean == expected_cost(from_ssp(problem.ssp), problem.policy)
    assert (problem.var, problem.cvar) == (None, None)


def test_haddad_monmege_known_value():
    assert textbook.haddad_monmege(20).mean == 1572862


def test_every_problem_has_its_name():
    assert {name: build().name for name, build in textbook.PROBLEMS.items()} == {
        name: name for name in textbook.PROBLEMS
    }


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: textbook.geometric(0), "p must lie in (0, 1], not 0"),
        (lambda: textbook.geometric(float("nan")), "p must lie in (0, 1], not nan"),
        (lambda: textbook.geometric(0.5, 0), "the cost must be positive and finite, not 0"),
        (lambda: textbook.negative_binomial(0), "r must be a whole number of at least 1, not 0"),
        (
            lambda: textbook.deterministic_chain(2.5),
            "n must be a whole number of at least 1, not 2.5",
        ),
        (lambda: textbook.lottery(0.5, -1), "the cost must be 0 or more and finite, not -1"),
        (
            lambda: textbook.gamblers_ruin(5, 5),
            "gamblers-ruin needs fortune < target and p < 1, not fortune 5, target 5 and p 1/2",
        ),
        (lambda: textbook.geometric().cvar(0), "alpha must lie in (0, 1], not 0"),
        (lambda: textbook.lottery().var(1.5), "alpha must lie in (0, 1], not 1.5"),
    ],
)
def test_bad_parameters(call, message):
    with pytest.raises(OptionError) as error:
        call()
    assert str(error.value) == message
