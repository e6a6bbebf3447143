"""Discounted costs against a plain enumeration by stages."""

import math

import numpy as np
import pytest

import tailpath as tp
from tailpath.errors import LimitExceededError
from tailpath.evaluation.discount import DiscountEngine
from tailpath.evaluation.engine import MAX_NODES, Request, Search
from tailpath.model.border import Border


def by_stages(ssp, policy, gamma, stages=600):
    """{cost: probability}, stage by stage; costs that agree in 12 digits are one."""
    done, here = {}, {(ssp.start, 0.0): 1.0}
    for stage in range(stages):
        there = {}
        for (state, cost), mass in here.items():
            index = ssp.state_index(state)
            k = ssp.choice_index(index, policy.action(state))
            for o in range(ssp.choice_outcomes[k], ssp.choice_outcomes[k + 1]):
                target = ssp.states[ssp.outcome_target[o]]
                total = float(f"{cost + gamma**stage * ssp.outcome_cost[o]:.12g}")
                into, key = (done, total) if target in ssp.goals else (there, (target, total))
                into[key] = into.get(key, 0.0) + mass * ssp.outcome_probability[o]
        here = {key: mass for key, mass in there.items() if mass > 1e-25}
    assert not here
    return done


@pytest.mark.parametrize("gamma", [0.5, 0.9, 0.99])
def test_a_grid(gamma):
    """Costs pile up below 1 / (1 - gamma), where rounding must not make the search expand a node
    for each of its paths.
    """
    ssp = tp.domains.gridworld("5x5")
    policy = tp.solve_expected(ssp).policy
    costs = by_stages(ssp, policy, gamma)
    found = tp.evaluate(ssp, policy, 0.01, gamma=gamma, max_nodes=100_000)
    mean = math.fsum(z * p for z, p in costs.items())
    assert found.mean == pytest.approx(mean, rel=1e-10)
    assert found.std == pytest.approx(
        math.sqrt(math.fsum(p * (z - mean) ** 2 for z, p in costs.items())), rel=1e-9
    )
    for alpha in (0.01, 0.05, 0.3, 1.0):
        tail = lambda x: math.fsum(p for z, p in costs.items() if z > x)  # noqa: E731
        var = min(x for x in costs if tail(x) <= alpha)
        assert found.var(alpha) == pytest.approx(var, rel=1e-10)
        cvar = var + math.fsum(p * (z - var) for z, p in costs.items() if z > var) / alpha
        assert found.cvar(alpha) == pytest.approx(cvar, rel=1e-9)
        assert found.bounds(alpha)[0] <= cvar * (1 + 1e-9)
        assert found.bounds(alpha)[1] >= cvar * (1 - 1e-9)


def test_no_discount_is_the_limit():
    ssp = tp.domains.river(rows=10, columns=3)
    policy = tp.solve_expected(ssp).policy
    plain = tp.evaluate(ssp, policy, 0.05)
    nearly = tp.evaluate(ssp, policy, 0.05, gamma=1 - 1e-9)
    assert nearly.mean == pytest.approx(plain.mean, rel=1e-7)
    assert nearly.std == pytest.approx(plain.std, rel=1e-6)
    assert nearly.cvar(0.05) == pytest.approx(plain.cvar(0.05), rel=1e-7)


def test_a_start_that_is_a_goal():
    ssp = tp.SSP.from_outcomes([("s", "a", "g", 1, 1)], "g", ["g"])
    found = tp.evaluate(ssp, tp.MarkovPolicy({"s": "a"}), 0.5, gamma=0.5)
    assert (found.mean, found.std, found.var(0.5), found.cvar(0.5)) == (0, 0, 0, 0)


def test_a_policy_that_may_not_arrive():
    """Half of all runs cycle for ever at 1 a step: with a discount of 1/2 that sums to 2, but no
    finite search sees it.
    """
    rows = [("s", "a", "g", 0.5, 1), ("s", "a", "t", 0.5, 1), ("t", "a", "t", 1, 1)]
    ssp = tp.SSP.from_outcomes(rows, "s", ["g"])
    policy = tp.MarkovPolicy({"s": "a", "t": "a"})
    with pytest.raises(tp.TailpathError, match=r"misses the goal with probability 0\.5"):
        tp.evaluate(ssp, policy, 0.1, gamma=0.5)
    found = tp.evaluate(ssp, policy, 0.6, gamma=0.5)
    assert found.mean == pytest.approx(1.5)
    assert found.var(0.6) == 1
    assert found.cvar(0.6) == pytest.approx((0.5 * 2 + 0.1 * 1) / 0.6)


def test_probabilities_stay_a_distribution():
    ssp = tp.domains.gridworld("5x5")
    found = tp.evaluate(ssp, tp.solve_expected(ssp).policy, 1e-3, gamma=0.9)
    assert np.all(found.probabilities > 0)
    assert np.all(np.diff(found.costs) > 0)
    assert found.probabilities.sum() + found.tail_mass == pytest.approx(1, rel=1e-12)


def test_costs_that_double_with_every_step_are_refused_soon_with_true_bounds():
    """One state, a cost of 0 or 1 in every step: 2^t costs after t steps. On a grid, rounded down
    from 0 and up from 2, the most that can come: Z = c + gamma Z'.
    """
    rows = [("s", "a", "s", 0.5, 0), ("s", "a", "s", 0.4, 1), ("s", "a", "g", 0.1, 1)]
    ssp, policy, alpha = tp.SSP.from_outcomes(rows, "s", ["g"]), {"s": "a"}, 0.05
    with pytest.raises(LimitExceededError, match=r"limit of 5000 .*max_nodes") as refused:
        tp.evaluate(ssp, policy, alpha, gamma=0.5, max_nodes=5_000)
    assert MAX_NODES["discount"] <= 1_000_000, "half a minute"
    step, sides = 2.0**-14, []
    grid = np.arange(2 / step + 1) * step
    for rounded, first in ((np.floor, 0), (np.ceil, -1)):
        law = np.zeros(len(grid))
        law[first] = 1.0
        for _ in range(400):
            goes, stays = rounded((1 + 0.5 * grid) / step), rounded(0.5 * grid / step)
            new = 0.4 * np.bincount(goes.astype(int).clip(0, len(grid) - 1), law, len(grid))
            new += 0.5 * np.bincount(stays.astype(int), law, len(grid))
            new[round(1 / step)] += 0.1
            law = new
        sides.append(min(w + law @ np.maximum(grid - w, 0) / alpha for w in grid[::16]))
    low, high = refused.value.bounds
    assert low <= sides[1] and sides[0] - 16 * step / alpha <= high


def test_what_was_not_followed_may_cost_the_most_of_all():
    """From the start 1 + 16 / 2 on average, from the second state 16, and nothing at the goal."""
    ssp = tp.SSP.from_outcomes([("s", "a", "t", 1, 1), ("t", "a", "g", 1, 16)], "s", ["g"])
    chain = tp.unroll(ssp, {"s": "a", "t": "a"})
    policy = tp.MarkovPolicy({"s": "a", "t": "a"})
    engine = DiscountEngine(Request(Border(ssp), policy, "queue", 0.1, gamma=0.5), chain)
    assert engine.dearest(Search(), -1) <= 16 <= engine.dearest(Search(), 1) < 16.001
    assert engine.dearest(Search(), -1) > 15.999
