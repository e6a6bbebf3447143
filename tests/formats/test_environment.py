"""Models as environments of Gymnasium: they pass its checker, and runs in them cost what the model
says, with and without a budget to look at.
"""

import warnings

import numpy as np
import pytest

import tailpath as tp
from tailpath.errors import ModelError, OptionError, PolicyError

gymnasium = pytest.importorskip("gymnasium")

ROWS = [
    ("home", "road", "work", 0.9, 20),
    ("home", "road", "work", 0.1, 60),
    ("home", "train", "work", 1, 30),
]
ROADS = tp.SSP.from_outcomes(ROWS, "home", ["work"])


@pytest.mark.parametrize("budget", [None, 12])
@pytest.mark.parametrize("name", ["river:4x4", "textbook:geometric", "gridworld:5x5"])
def test_the_checker_of_gymnasium_passes(name, budget):
    from gymnasium.utils.env_checker import check_env

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of spec and rendering, which only registered ones have
        check_env(tp.read(name).to_gym(budget=budget, max_steps=50), skip_render_check=True)


def episodes(env, policy, count, seed):
    """The costs of some runs of an agent, and the sums of their rewards."""
    costs, returns = [], []
    env.reset(seed=seed)
    for _ in range(count):
        observed, _ = env.reset()
        cost = gained = 0.0
        over = False
        while not over:
            observed, reward, arrived, late, info = env.step(policy(observed))
            cost, gained, over = cost + info["cost"], gained + reward, arrived or late
        costs.append(cost)
        returns.append(gained)
    return np.array(costs), np.array(returns)


def test_runs_cost_what_the_model_says():
    """4,000 runs of the optimum in the environment, within five standard errors of its exact mean,
    and each sum of rewards is minus what the run costs beyond the budget.
    """
    ssp = tp.read("gridworld:5x5")
    best = tp.solve_cvar_exact(ssp, 0.1)
    policy, budget = best.policy(0.1), best.var(0.1)
    env = ssp.to_gym(budget=budget)

    def act(observed):
        state, left = observed.tolist()
        return int(ssp.choice_action[policy.choice_at(state, left)])

    costs, returns = episodes(env, act, 4_000, seed=1)
    exact = tp.evaluate(ssp, policy, 0.01)
    assert abs(costs.mean() - exact.mean) < 5 * costs.std() / len(costs) ** 0.5
    assert np.allclose(-returns, np.maximum(costs - float(budget), 0))
    # As an agent it is the same policy, and costs the same exactly.
    agent = tp.evaluate(ssp, env.policy(act), 0.01)
    assert agent.costs.tolist() == exact.costs.tolist()
    assert agent.cvar(0.1) == pytest.approx(best.cvar(0.1), rel=1e-12)


class Greedy:
    """A Q-table with the interface of Stable-Baselines3."""

    def __init__(self, q):
        self.q = q

    def predict(self, observation, deterministic=False):
        return np.argmax(self.q[tuple(np.atleast_1d(observation))]), None


def test_an_agent_that_learns_with_the_budget_finds_the_least_cvar():
    """Road: mean 24, CVaR 60 at 0.1; train: 30 both. Without the budget it takes the road."""
    for budget, cvar in ((None, 60), (30, 30)):
        env = ROADS.to_gym(budget=budget)
        sizes = [2] if budget is None else env.observation_space.nvec.tolist()
        q, random = np.zeros((*sizes, 2)), np.random.default_rng(0)
        observed, _ = env.reset(seed=0)
        for _ in range(4_000):
            key, action = tuple(np.atleast_1d(observed)), int(random.integers(2))
            observed, reward, arrived, _, _ = env.step(action)
            q[(*key, action)] += 0.01 * (reward - q[(*key, action)])
            if arrived:
                observed, _ = env.reset()
        assert tp.evaluate(ROADS, env.policy(Greedy(q)), 0.1).cvar(0.1) == cvar


def test_actions_that_a_state_does_not_have():
    rows = [*ROWS, ("work", "walk", "home", 1, 5), ("home", "fly", "moon", 1, 7)]
    ssp = tp.SSP.from_outcomes(rows, "home", ["moon"])
    env = ssp.to_gym(max_steps=2)
    _, info = env.reset(seed=0)
    assert dict(zip(ssp.actions, info["action_mask"].tolist())) == {
        "road": 1,
        "train": 1,
        "walk": 0,
        "fly": 1,
    }
    walk = ssp.actions.index("walk")
    assert env.step(walk)[:4] == (ssp.start_index, -60.0, False, False)
    assert env.step(walk)[3], "truncated after two steps"
    with pytest.raises(PolicyError, match="'walk' in state 'home'"):
        tp.evaluate(ssp, env.policy(lambda state: walk), 0.1)
    with pytest.raises(PolicyError, match=r"action 9, outside 0\.\.3"):
        tp.evaluate(ssp, env.policy(lambda state: 9), 0.1)
    with pytest.raises(PolicyError, match="agent with predict, not 3"):
        env.policy(3)


def test_a_budget_that_cannot_be():
    for budget in (-1, "much", float("nan")):
        with pytest.raises(OptionError, match="the budget must be "):
            ROADS.to_gym(budget=budget)
    gains = tp.SSP.from_outcomes([("s", "a", "g", 1, -1)], "s", ["g"])
    with pytest.raises(OptionError, match="costs of 0 or more"):
        gains.to_gym(budget=1)
    with pytest.raises(OptionError, match="max_steps"):
        ROADS.to_gym(max_steps=0)
    with pytest.raises(OptionError, match="ansi"):
        ROADS.to_gym(render_mode="human")
    start_is_goal = tp.SSP.from_outcomes(ROWS, "work", ["work"])
    assert start_is_goal.to_gym().step(0)[:3] == (1, 0.0, True)


def test_other_names():
    named = ROADS.renamed(states=["A", "B"], actions={"road": "motorway"})
    assert (named.states, named.actions, named.start) == (("A", "B"), ("motorway", "train"), "A")
    assert tp.solve_expected(named).cost() == 24
    assert ROADS.renamed(states=str.upper).goals == ("WORK",)
    with pytest.raises(OptionError, match=r"no action 'raod'.*'road'"):
        ROADS.renamed(actions={"raod": "motorway"})
    with pytest.raises(ModelError):
        ROADS.renamed(states=["A"])
