"""Wherever a model can be listed, the bracket holds the exact optimum, at every moment of the
search, and the policy costs no more than its upper end.
"""

import random

import pytest

import tailpath as tp
from tests.lazy.models import bounds_from, model_of, truth

ALPHAS = (0.02, 0.1, 0.35, 1.0)
SLACK = 1e-9


def check(found, ssp, exact, alphas, about):
    for a in alphas:
        low, high = found.bounds(a)
        own = exact.bounds(a)
        assert low <= own[1] * (1 + SLACK) + SLACK, about
        assert own[0] <= high * (1 + SLACK) + SLACK, about
        if high < float("inf"):
            costs = tp.evaluate(ssp, found.policy(a), a)
            assert costs.cvar(a) <= high * (1 + SLACK) + SLACK, about


@pytest.mark.parametrize("seed", range(300))
def test_the_bracket_holds_the_exact_optimum(seed):
    model, rnd = model_of(seed)
    ssp = tp.SSP.from_functions(model)
    given = bounds_from(rnd, truth(model, ssp))
    alpha = rnd.choice(ALPHAS)
    alphas = [a for a in ALPHAS if a >= alpha]
    exact = tp.solve_cvar_exact(ssp, alpha)
    about = f"seed {seed}, {model.start}, {sorted(given)}"
    found = tp.solve_cvar_lazy(model, alpha, max_states=rnd.choice([1, 2, 5]), gap=1e-6, **given)
    check(found, ssp, exact, alphas, about)
    found = found.refine(1e-6)
    check(found, ssp, exact, alphas, about)
    low, high = found.bounds()
    assert high - low <= 2e-6 * max(1, exact.cvar(alpha)), about


@pytest.mark.parametrize("seed", range(0, 300, 4))
def test_giving_up_is_one_more_choice(seed):
    model, rnd = model_of(seed)
    ssp = tp.SSP.from_functions(model)
    price = rnd.choice([3, 8, 25, 1000])
    ssp = tp.give_up(ssp, price)
    alpha = rnd.choice(ALPHAS)
    exact = tp.solve_cvar_exact(ssp, alpha)
    for most in (1, 4, 10**5):
        found = tp.solve_cvar_lazy(model, alpha, give_up=price, max_states=most, gap=1e-6)
        low, high = found.bounds()
        assert low <= exact.bounds(alpha)[1] * (1 + SLACK)
        assert exact.bounds(alpha)[0] <= high * (1 + SLACK)
        assert high <= price * (1 + SLACK)
    assert high - low <= 1e-5


@pytest.mark.parametrize("seed", range(0, 300, 5))
def test_a_run_goes_on_from_any_state_and_budget(seed):
    model, rnd = model_of(seed)
    ssp = tp.SSP.from_functions(model)
    given = bounds_from(rnd, truth(model, ssp))
    found = tp.solve_cvar_lazy(model, 0.1, max_states=3, **given)
    runner, drawn = found.policy().start_run() if found.above else None, random.Random(seed)
    state, budget = model.start, found.below.budget(0.1)
    for _ in range(4):
        if model.is_goal(state):
            break
        later = found.after(state, budget, gap=1e-6)
        low, high = later.bounds
        assert high - low <= 1e-5
        from_there = tp.SSP.from_functions(state, model.actions, model.outcomes, model.is_goal)
        left = float(budget * found.unit)
        assert low - SLACK <= least_excess(from_there, left) <= high + SLACK
        policy = later.policy()
        costs = tp.evaluate(from_there, policy, 1e-12)
        assert tp.Shortfall(left)(costs) <= high + SLACK
        action = policy.action(state)
        _, target, cost = drawn.choice([row for row in model.outcomes(state, action) if row[0]])
        budget = policy.remember(policy.start(state), state, action, float(cost), target)
        state = target
        if isinstance(budget, str):
            break
    assert runner is None or runner.action(model.start) is not None


def least_excess(ssp, left):
    return tp.solve(ssp, tp.Shortfall(left)).value
