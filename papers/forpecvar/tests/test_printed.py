"""The printed ForPECVaR and `evaluate` agree wherever the print says something; and it expands
nodes again.
"""

import pytest

import tailpath as tp
from forpecvar.printed import create_extended_mdp, forpecvar, mdp_policy_evaluation

PROBLEMS = ("gridworld:5x5", "gridworld:8x9", "river:10x3", "river:16x6")


@pytest.mark.parametrize("problem", PROBLEMS)
@pytest.mark.parametrize("low", [1e-3, 1e-1])
def test_it_agrees_with_evaluate_at_every_atom_but_1(problem, low):
    ssp, atoms = tp.read(problem), tp.log_atoms(low, 7).tolist()
    plan = tp.solve_cvar_quantile(ssp, atoms)
    for alpha in atoms[:-1]:
        printed = forpecvar(ssp, plan.policy(alpha), alpha)
        costs = tp.evaluate(ssp, plan.policy(alpha), alpha)
        assert printed.cvar == pytest.approx(costs.cvar(alpha), rel=1e-9)
        assert printed.var == costs.var(alpha)


def test_a_policy_of_histories_is_followed():
    """The first way that breaks down is left for the other: by its history, or by two states."""
    rows = [
        ("home", "bus", "home", 0.5, 3),
        ("home", "bus", "work", 0.5, 1),
        ("home", "walk", "work", 0.75, 4),
        ("home", "walk", "work", 0.25, 8),
    ]
    ssp = tp.SSP.from_outcomes(rows, "home", ["work"])
    policy = tp.HistoryPolicy(lambda history: "bus" if len(history) == 1 else "walk")
    # 1 with 1/2, 7 with 3/8, 11 with 1/8: the worst quarter is half 11 and half 7.
    assert forpecvar(ssp, policy, 0.25)[:2] == (9.0, 7.0)


def test_algorithm_2_gives_the_values_of_the_chain():
    ssp = tp.read("gridworld:5x5")
    policy = tp.solve_cvar_quantile(ssp, tp.log_atoms(0.01, 7)).policy(0.01)
    found = mdp_policy_evaluation(create_extended_mdp(ssp, policy))
    start = (ssp.start, policy.start(ssp.start))
    chain = tp.unroll(ssp, policy)
    mean, least = chain.expected_cost.value[chain.start], chain.least_cost[chain.start]
    assert found[0][start] == pytest.approx(mean, rel=1e-12) and found[1][start] == least


def test_line_23_is_the_cvar_at_the_tails_of_the_distribution():
    """V(s0, y^X) by Theorem 2, for every cost X of the head that is left a tail."""
    ssp = tp.read("river:10x3")
    costs = tp.evaluate(ssp, tp.solve_expected(ssp).policy, 1e-3)
    head = 0.0
    for k, (X, p) in enumerate(zip(costs.costs.tolist(), costs.probabilities.tolist())):
        head += X * p
        if costs.tails[k] >= 1e-3:
            y = float(costs.tails[k])
            assert costs.cvar(y) == pytest.approx((costs.mean - head) / y, rel=1e-9)
    assert k > 5


def test_an_admissible_heuristic_need_not_be_consistent():
    """Every other state has V_min, the others 0: nodes are expanded again, to the same result."""
    ssp = tp.read("gridworld:5x5")
    policy = tp.solve_expected(ssp).policy
    chain = tp.unroll(ssp, policy)
    some = {
        ssp.states[s]: least if k % 2 else 0.0
        for k, (s, least) in enumerate(zip(chain.state.tolist(), chain.least_cost.tolist()))
    }
    of_state = lambda state: some.get(state, 0.0)  # noqa: E731
    printed = forpecvar(ssp, policy, 0.01, heuristic=lambda x: of_state(x[0]), ties="cost")
    costs = tp.evaluate(ssp, policy, 0.01)
    assert printed.cvar == pytest.approx(costs.cvar(0.01), rel=1e-9)
    assert printed.var == costs.var(0.01)
    once = forpecvar(ssp, policy, 0.01, ties="cost").expanded
    assert printed.expanded > 1.1 * once


def test_with_ties_in_the_order_of_insertion_the_heuristic_costs_expansions():
    """The paper's V_min expands nodes again: more than without a heuristic, on both domains."""
    for problem in ("gridworld:8x9", "river:30x10"):
        ssp = tp.read(problem)
        policy = tp.solve_cvar_quantile(ssp, tp.log_atoms(1e-3, 25)).policy(1e-3)
        printed = forpecvar(ssp, policy, 1e-3)
        without = forpecvar(ssp, policy, 1e-3, heuristic=lambda x: 0.0)
        by_cost = forpecvar(ssp, policy, 1e-3, ties="cost")
        assert printed.expanded > 1.4 * without.expanded > 1.1 * by_cost.expanded
        assert printed.cvar == pytest.approx(by_cost.cvar, rel=1e-9)
        # Taken by the smaller cost, every pair (augmented state, cost) is expanded once.
        once = tp.evaluate(ssp, policy, 1e-3, engine="queue").expanded
        assert by_cost.expanded == pytest.approx(once, rel=0.01)
