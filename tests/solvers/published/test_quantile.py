"""CVaRVIQ's values: the published table, an operator in fractions, a generic linear program, closed
forms.
"""

import math
import warnings
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tailpath
from tailpath.errors import GoalUnreachableError, ModelError, OptionError, TailpathWarning
from tests import measured, textbook
from tests.reference import Model, expected_optimum, to_ssp
from tests.solvers.published.backup_reference import (
    exact_values,
    finite_values,
    knapsack,
    linear_program,
)
from tests.strategies import proper_models, solvable_models

HALVES = [Fraction(1, 8), Fraction(1, 4), Fraction(1, 2), Fraction(1)]
FEW = [float(y) for y in HALVES]

#: (problem, alpha, predicted, deployed).
TABLE = [row[:4] for row in measured.CVAR]


def solve_quietly(ssp, *args, **options):
    """Also when the sweeps run out."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TailpathWarning)
        return tailpath.solve_cvar_quantile(ssp, *args, **options)


def chain_of(*costs):
    """A line of states, each step with its cost and no risk."""
    rows = [(k, "go", k + 1, 1, cost) for k, cost in enumerate(costs)]
    return tailpath.SSP.from_outcomes(rows, 0, [len(costs)])


# ---------------------------------------------------------------------- the published values


@pytest.mark.parametrize("problem, alpha, predicted, deployed", TABLE)
def test_the_table_of_the_paper_s_problems(problem, alpha, predicted, deployed):
    ssp = tailpath.read(problem)
    plan = tailpath.solve_cvar_quantile(ssp, tailpath.log_atoms(1e-3, 25), tolerance=1e-6)
    assert plan.converged
    assert plan.detours == 0
    assert plan.cvar(alpha) == pytest.approx(predicted, abs=1e-3)
    assert tailpath.evaluate(ssp, plan.policy(alpha), alpha).cvar(alpha) == pytest.approx(
        deployed, abs=1e-3
    )


def test_the_counter_example_predicts_600_and_delivers_700():
    problem = textbook.counter_example()
    plan = tailpath.solve_cvar_quantile(problem.ssp, [0.25, 0.5, 1.0], tolerance=1e-9)
    assert plan.cvar(0.5) == pytest.approx(600)
    assert tailpath.evaluate(problem.ssp, plan.policy(0.5), 0.5).cvar(0.5) == pytest.approx(700)
    assert problem.cvar(0.5) == pytest.approx(650)
    finer = tailpath.solve_cvar_quantile(problem.ssp, np.arange(1, 201) / 200, tolerance=1e-9)
    assert finer.cvar(0.5) == pytest.approx(600)


# ---------------------------------------------------------------------- the operator


@settings(max_examples=100)
@given(solvable_models())
def test_values_are_a_fixed_point_of_the_operator_in_fractions(model):
    plan = tailpath.solve_cvar_quantile(to_ssp(model), FEW, tolerance=1e-9)
    value, optimum = finite_values(plan), expected_optimum(model)
    assert set(value) == {s for s in plan.ssp.states if math.isfinite(optimum[s])}
    for s in value:
        # At y = 1 nothing can be reweighted: the last atom is the least expected cost.
        assert float(value[s][-1]) == pytest.approx(float(optimum[s]), rel=1e-7, abs=1e-7)
    for s in set(value) - model.goals:
        safe = [
            outcomes
            for outcomes in model.choices[s].values()
            if all(t in value for t, _, _ in outcomes)
        ]
        for y, v in zip(HALVES, value[s], strict=True):
            best = min(knapsack(outcomes, HALVES, value, y) for outcomes in safe)
            assert abs(float(best - v)) <= 1e-9 * max(1.0, float(v)) + 1e-9


@given(proper_models(dyadic=True))
def test_values_are_exact_where_costs_flow_one_way(model):
    order = sorted(model.choices)
    forward = {s: set(order[k + 1 :]) | model.goals for k, s in enumerate(order)}
    choices = {
        s: {
            a: [(t if t in forward[s] else sorted(model.goals)[0], p, c) for t, p, c in outcomes]
            for a, outcomes in actions.items()
        }
        for s, actions in model.choices.items()
    }
    acyclic = Model(choices, model.start, model.goals)
    plan = tailpath.solve_cvar_quantile(to_ssp(acyclic), FEW, tolerance=1e-12)
    exact = exact_values(acyclic, order, HALVES)
    for s in order:
        if s in plan.ssp.states:
            np.testing.assert_allclose(
                plan.value[plan.ssp.state_index(s)], [float(v) for v in exact[s]], rtol=1e-13
            )


@settings(max_examples=25)
@given(solvable_models(max_states=3), st.sampled_from([1.0, 0.8]))
def test_values_are_a_fixed_point_of_the_linear_program(model, gamma):
    plan = tailpath.solve_cvar_quantile(to_ssp(model), FEW, tolerance=1e-9, gamma=gamma)
    value = finite_values(plan)
    for s in set(value) - model.goals:
        safe = [
            outcomes
            for outcomes in model.choices[s].values()
            if all(t in value for t, _, _ in outcomes)
        ]
        for y, v in zip(HALVES, value[s], strict=True):
            best = min(linear_program(outcomes, HALVES, value, y, gamma) for outcomes in safe)
            assert best == pytest.approx(float(v), rel=1e-6, abs=1e-6)


def test_parallel_outcomes_are_two_items():
    """1 or 9 with one half each, to the same state: merged to 5 the risk would be gone."""
    ssp = tailpath.SSP.from_outcomes(
        [("s", "a", "t", 0.5, 1), ("s", "a", "t", 0.5, 9), ("t", "a", "g", 1, 1)], "s", ["g"]
    )
    plan = tailpath.solve_cvar_quantile(ssp, [0.5, 1.0])
    assert plan.value[ssp.state_index("s")].tolist() == pytest.approx([10.0, 6.0])
    assert plan.var[ssp.state_index("s")].tolist() == pytest.approx([2.0, 2.0])


def test_many_outcomes():
    """A fair die with 100 sides: the mean of the worst y is in closed form."""
    ssp = tailpath.SSP.from_outcomes(
        [("s", "roll", "g", Fraction(1, 100), k) for k in range(1, 101)], "s", ["g"]
    )
    plan = tailpath.solve_cvar_quantile(ssp, [0.01, 0.05, 0.1, 0.5, 1.0])
    assert plan.value[ssp.start_index].tolist() == pytest.approx(
        [100, 98, 95.5, 75.5, 50.5], rel=1e-12
    )
    assert plan.var[ssp.start_index].tolist() == pytest.approx([99, 95, 90, 50, 1])


def test_more_atoms_predict_more_and_never_too_much():
    """With one action per state the prediction interpolates a concave curve from below."""
    problem = textbook.geometric(Fraction(1, 4))
    predicted = [
        tailpath.solve_cvar_quantile(problem.ssp, tailpath.log_atoms(1e-3, n), tolerance=1e-9).cvar(
            0.05
        )
        for n in (4, 7, 25, 97)
    ]
    assert predicted == sorted(predicted)
    assert predicted[-1] <= problem.cvar(0.05)
    assert predicted[-1] == pytest.approx(problem.cvar(0.05), rel=0.01)


def test_discounting():
    ssp = chain_of(1, 1, 1, 1)
    assert tailpath.solve_cvar_quantile(ssp, gamma=0.5).cvar(0.3) == pytest.approx(1.875)
    plan = tailpath.solve_cvar_quantile(tailpath.read("river:10x3"), tolerance=1e-9, gamma=0.9)
    exact = tailpath.evaluate(plan.ssp, plan.policy(1.0), 1.0, gamma=0.9)
    assert plan.cvar(1.0) == pytest.approx(exact.mean, rel=1e-8)


# ---------------------------------------------------------------------- sweeps


@given(solvable_models())
def test_values_fall(model):
    """From those of the risk-neutral policy, whose own mean they never leave at y = 1."""
    ssp = to_ssp(model)
    final = tailpath.solve_cvar_quantile(ssp, FEW, tolerance=1e-10).value
    before, finite = np.full(final.shape, np.inf), np.isfinite(final)
    for count in (1, 2, 3, 5, 9):
        plan = solve_quietly(ssp, FEW, tolerance=1e-10, max_sweeps=count)
        rounding = 1e-8 * (1 + final[finite])
        assert np.all(plan.value[finite] <= before[finite] + rounding)
        assert np.all(plan.value[finite] >= final[finite] - rounding)
        np.testing.assert_allclose(
            plan.value[finite[:, -1], -1], final[finite[:, -1], -1], rtol=1e-7, atol=1e-7
        )
        before = plan.value


def test_a_policy_stopped_early_is_no_worse_than_the_risk_neutral_one():
    """Values from below would send it round in cycles."""
    ssp = tailpath.read("gridworld:8x9")
    neutral = tailpath.evaluate(ssp, tailpath.solve_expected(ssp).policy, 0.1).cvar(0.1)
    for count in (1, 2, 4):
        plan = solve_quietly(ssp, tailpath.log_atoms(0.01, 13), max_sweeps=count)
        assert tailpath.evaluate(ssp, plan.policy(0.1), 0.1).cvar(0.1) <= neutral


def test_running_out_of_sweeps_is_said():
    ssp = tailpath.read("gridworld:5x5")
    with pytest.warns(
        TailpathWarning, match="no convergence within 3 sweeps: the last one still moved a value by"
    ):
        plan = tailpath.solve_cvar_quantile(ssp, max_sweeps=3)
    assert not plan.converged
    assert plan.sweeps == 3
    assert plan.residual > plan.tolerance
    done = tailpath.solve_cvar_quantile(ssp)
    assert done.converged
    assert done.residual <= done.tolerance == 1e-3


def test_progress_is_told_after_every_sweep():
    told = []
    plan = tailpath.solve_cvar_quantile(
        tailpath.read("river:10x3"), progress=lambda count, residual: told.append((count, residual))
    )
    assert [count for count, _ in told] == list(range(1, plan.sweeps + 1))
    assert told[-1][1] == plan.residual


@pytest.mark.parametrize("step", [Fraction(1, 10**6), Fraction(1, 100), 1])
def test_a_circle_cheaper_than_the_tolerance_does_not_fool_the_sweeps(step):
    """Waiting costs next to nothing, and leaving, sooner or later, 12 or with one chance in 20 as
    much as 206.
    """
    rows = [
        ("a", "wait", "b", 1, step),
        ("b", "wait", "a", 1, step),
        ("a", "leave", "g", 0.95, 12),
        ("a", "leave", "g", 0.05, 206),
    ]
    ssp = tailpath.SSP.from_outcomes(rows, "a", ["g"])
    plan = tailpath.solve_cvar_quantile(ssp, [0.01, 0.05, 0.1, 1.0])
    assert plan.value[ssp.state_index("a")].tolist() == pytest.approx(
        [206, 206, 109, 21.7], rel=1e-9
    )
    assert plan.value[ssp.state_index("b")] == pytest.approx(
        plan.value[ssp.state_index("a")] + float(step), rel=1e-9
    )
    assert plan.sweeps < 10


# ---------------------------------------------------------------------- asking the solution


def test_between_atoms_areas_are_linear():
    ssp = tailpath.read("gridworld:5x5")
    plan = tailpath.solve_cvar_quantile(ssp, [0.1, 0.4, 1.0])
    low, middle, high = plan.value[ssp.start_index]
    assert plan.cvar(0.1) == pytest.approx(low)
    assert plan.cvar(0.003) == pytest.approx(low)
    assert plan.cvar(0.4) == pytest.approx(middle)
    assert plan.cvar(0.7) == pytest.approx((0.4 * middle + high) / 2 / 0.7)
    assert plan.cvar(1.0) == pytest.approx(high)
    np.testing.assert_allclose(plan.cvar([0.1, 0.7]), [plan.cvar(0.1), plan.cvar(0.7)])
    assert plan.cvar(0.4, state=ssp.goals[0]) == 0.0
    assert plan.cvar(0.4, state=(0, 0)) == pytest.approx(plan.value[ssp.state_index((0, 0)), 1])
    with pytest.raises(ValueError, match="read-only"):
        plan.value[0, 0] = 1.0


@pytest.mark.parametrize(
    "alpha, atom", [(1.0, 2), (0.5, 1), (0.07, 0), (0.1, 0), (0.3, 1), (1e-9, 0)]
)
def test_a_policy_starts_at_the_nearest_atom(alpha, atom):
    plan = tailpath.solve_cvar_quantile(tailpath.read("river:10x3"), [0.1, 0.4, 1.0])
    assert plan.policy(alpha).start(plan.ssp.start) == atom


def test_a_goal_as_start_costs_nothing():
    ssp = tailpath.SSP.from_outcomes([("s", "a", "g", 1, 1)], "g", ["g"])
    plan = tailpath.solve_cvar_quantile(ssp)
    assert plan.cvar(0.1) == 0.0
    assert plan.converged
    only = tailpath.SSP.from_outcomes([], "g", ["g"])
    assert tailpath.solve_cvar_quantile(only).cvar(0.1) == 0.0


# ---------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    "options, message",
    [
        ({"atoms": [0.5, 0.1, 1.0]}, "atoms must increase: 0.5 is followed by 0.1"),
        ({"atoms": [0.5, 0.5, 1.0]}, "atoms must increase"),
        ({"atoms": [0.0, 1.0]}, r"atoms must lie in \(0, 1\], not 0.0"),
        ({"atoms": [0.5, 2.0]}, r"atoms must lie in \(0, 1\], not 2.0"),
        ({"atoms": [float("nan"), 1.0]}, "atoms must lie in"),
        ({"atoms": [0.1, 0.5]}, "the last atom must be 1, not 0.5"),
        ({"atoms": []}, "non-empty"),
        ({"tolerance": 0.0}, "tolerance must be positive, not 0.0"),
        ({"tolerance": float("nan")}, "tolerance must be positive, not nan"),
        ({"gamma": 0.0}, r"gamma must lie in \(0, 1\], not 0.0"),
        ({"gamma": 1.01}, "gamma must lie in"),
        ({"max_sweeps": 0}, "max_sweeps must be 1 or more, not 0"),
    ],
)
def test_bad_options_are_refused(options, message):
    with pytest.raises(OptionError, match=message):
        tailpath.solve_cvar_quantile(chain_of(1, 2), **options)


@pytest.mark.parametrize("alpha", [0.0, -1.0, 1.5, float("nan")])
def test_alpha_outside_its_range_is_refused(alpha):
    plan = tailpath.solve_cvar_quantile(chain_of(1, 2))
    with pytest.raises(OptionError, match=r"alpha must lie in \(0, 1\]"):
        plan.cvar(alpha)
    with pytest.raises(OptionError, match=r"alpha must lie in \(0, 1\]"):
        plan.policy(alpha)
    with pytest.raises(ModelError, match="no state 'nowhere'"):
        plan.cvar(0.5, state="nowhere")


def test_a_start_that_cannot_surely_arrive_is_refused():
    ssp = tailpath.SSP.from_outcomes(
        [("s", "a", "g", 0.9, 1), ("s", "a", "pit", 0.1, 1), ("pit", "stay", "pit", 1, 1)],
        "s",
        ["g"],
    )
    with pytest.raises(GoalUnreachableError, match="'pit'"):
        tailpath.solve_cvar_quantile(ssp)


def test_a_dead_end_that_can_be_avoided_is_never_entered():
    rows = [
        ("s", "short", "g", 0.9, 1),
        ("s", "short", "pit", 0.1, 1),
        ("s", "long", "g", 1, 50),
        ("pit", "stay", "pit", 1, 0),
    ]
    ssp = tailpath.SSP.from_outcomes(rows, "s", ["g"])
    plan = tailpath.solve_cvar_quantile(ssp)
    assert plan.cvar(0.01) == 50.0
    assert plan.policy(0.01).action("s", 0) == "long"
    assert plan.cvar(0.5, state="pit") == math.inf
    assert np.all(plan.var[ssp.state_index("pit")] == math.inf)
    assert np.all(plan.choice[ssp.state_index("pit")] == -1)


@pytest.mark.parametrize("scale", [1.0, 1e-13, 1e-250])
@pytest.mark.parametrize("solve", [tailpath.solve_cvar_quantile, tailpath.solve_cvar_interpolation])
def test_small_costs_are_told_apart(solve, scale):
    """Ties had a floor of 1: at costs of 1e-13 the first action was as good as any."""
    rows = [("s", "dear", "g", 1, 3 * scale), ("s", "cheap", "g", 1, scale)]
    rows += [
        ("t", "dear", "g", 0.5, 5 * scale),
        ("t", "dear", "s", 0.5, 0),
        ("t", "cheap", "s", 1, 0),
    ]
    ssp = tailpath.SSP.from_outcomes(rows, "t", ["g"])
    plan = solve(ssp, tailpath.log_atoms(0.1, 3))
    policy = plan.policy(0.1)
    assert policy.action("t", policy.start("t")) == policy.action("s", policy.start("s")) == "cheap"
    assert (
        tailpath.evaluate(ssp, policy, 0.1).cvar(0.1)
        == pytest.approx(plan.cvar(0.1), rel=1e-9)
        == pytest.approx(scale, rel=1e-9)
    )
