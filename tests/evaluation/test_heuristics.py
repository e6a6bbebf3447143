"""ForPECVaR with a heuristic of the user's own, and from any start."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tailpath as tp
from tailpath.errors import LimitExceededError, OptionError
from tests import reference, strategies
from tests.reference import to_ssp

GRID = tp.domains.gridworld("5x5")
POLICY = tp.solve_cvar_quantile(GRID, tp.log_atoms(1e-2, 7)).policy(0.1)


def steps_to_goal(state):
    """Moves on the grid cost 1, and obstacles, which cost 100, end at the goal."""
    return 0.0 if state == GRID.goals[0] else 1.0


@pytest.mark.parametrize("kind", ["function", "mapping", "array"])
def test_any_consistent_heuristic_gives_the_same_distribution(kind):
    given = {
        "function": steps_to_goal,
        "mapping": {state: steps_to_goal(state) for state in GRID.states},
        "array": [steps_to_goal(state) for state in GRID.states],
    }[kind]
    plain, own = (
        tp.evaluate(GRID, POLICY, 0.01, engine="queue", heuristic="zero"),
        tp.evaluate(GRID, POLICY, 0.01, heuristic=given),
    )
    best = tp.evaluate(GRID, POLICY, 0.01, engine="queue")
    assert own.engine == "queue"
    assert (own.cvar(0.01), own.var(0.01)) == pytest.approx(
        (plain.cvar(0.01), plain.var(0.01)), rel=1e-12
    )
    assert best.expanded <= own.expanded <= plain.expanded


@settings(max_examples=40, deadline=None)
@given(strategies.proper_models().map(to_ssp))
def test_half_of_v_min_on_random_models(ssp):
    policy = tp.solve_expected(ssp).policy
    chain = tp.unroll(ssp, policy)
    unit = 1.0 if chain.unit is None else float(chain.unit)
    height = np.zeros(ssp.n_states)
    height[chain.state[: chain.n]] = 0.5 * unit * chain.least_cost[:-1]
    found, truth = tp.evaluate(ssp, policy, 0.1, heuristic=height), tp.evaluate(ssp, policy, 0.1)
    assert found.cvar(0.1) == pytest.approx(truth.cvar(0.1), rel=1e-9)


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_any_numbers_at_all_give_the_truth(data):
    """Inconsistent, or above V_min: nodes are expanded again, and nothing else changes. A search
    that stops early encloses the truth, too.
    """
    model = data.draw(strategies.proper_models())
    ssp, policy = to_ssp(model), data.draw(strategies.policies(model))
    exact = reference.cost_distribution(model, policy, 0.1)
    cvar, steps = exact.cvar(0.1), [0.0, 0.3, 1.0, 2.0, 5.0, 40.0]
    height = data.draw(
        st.lists(st.sampled_from(steps), min_size=ssp.n_states, max_size=ssp.n_states)
    )
    found = tp.evaluate(ssp, policy, 0.1, heuristic=height)
    assert found.cvar(0.1) == pytest.approx(float(cvar), rel=1e-12, abs=1e-300)
    assert found.var(0.1) == pytest.approx(float(exact.var(0.1)), rel=1e-15)
    low, high = found.bounds(0.1)
    assert low <= cvar <= high <= low + 1e-9 * high
    for most in (1, 3, 9):
        try:
            tp.evaluate(ssp, policy, 0.1, heuristic=height, max_nodes=most)
        except LimitExceededError as error:
            assert error.bounds[0] <= cvar <= error.bounds[1]


def test_what_is_no_heuristic_is_refused():
    for wrong, text in [
        ({GRID.start: 1.0}, "the heuristic has no value for state"),
        ([1.0, 2.0], "the heuristic has 2 values for 25 states"),
        (lambda state: -1.0, "the heuristic is -1 at state"),
        (lambda state: "far", "a heuristic gives a number for every state"),
        ("best", "unknown heuristic 'best'; use 'min', 'zero', or give your own by state"),
    ]:
        with pytest.raises(OptionError, match=text):
            tp.evaluate(GRID, POLICY, 0.1, heuristic=wrong)
    with pytest.raises(OptionError, match="needs gamma = 1"):
        tp.evaluate(GRID, POLICY, 0.1, heuristic=steps_to_goal, gamma=0.9)
    with pytest.raises(
        OptionError, match="the lattice engine cannot run here: the heuristic is your own"
    ):
        tp.evaluate(GRID, POLICY, 0.1, heuristic=steps_to_goal, engine="lattice")


@pytest.mark.parametrize("state", [(4, 4), (4, 0), (2, 3), (3, 4)])
def test_any_start(state):
    """As if the model started there, for every kind of policy that tables hold."""
    moved = replace(GRID, start_index=GRID.state_index(state))
    for policy in (
        POLICY,
        tp.solve_expected(GRID).policy,
        tp.solve_cvar_exact(GRID, 0.1).policy(0.1),
    ):
        assert tp.evaluate(GRID, policy, 0.1, start=state).cvar(0.1) == pytest.approx(
            tp.evaluate(moved, policy, 0.1).cvar(0.1), rel=1e-12
        )
    neutral = tp.evaluate(GRID, tp.solve_expected(GRID).policy, 0.1, start=state)
    assert neutral.mean == pytest.approx(tp.solve_expected(GRID).cost(state))


def test_an_unknown_start():
    with pytest.raises(tp.TailpathError, match="'nowhere'"):
        tp.evaluate(GRID, POLICY, 0.1, start="nowhere")
