"""Adaptive atoms: where they end, no line misses the operator by more than was asked, by the
operator in fractions; and both planners find the same.
"""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tailpath as tp
from tailpath.errors import OptionError
from tests.reference import to_ssp
from tests.solvers.published.backup_reference import areas, knapsack
from tests.strategies import proper_models

FIRST = [0.25, 1.0]


def own_atoms(plan):
    """The atoms of every state, and its values there, as fractions."""
    rows = np.ones(plan.value.shape, dtype=bool) if plan.grids is None else plan.grids.rows()
    atoms, value = {}, {}
    for k, state in enumerate(plan.ssp.states):
        mine = np.ones_like(rows[k]) if plan.ssp.is_goal[k] else rows[k]
        atoms[state] = [Fraction(y) for y in plan.atoms[mine].tolist()]
        value[state] = [Fraction(v) for v in plan.value[k, mine].tolist()]
    return atoms, value


def line(atoms, values, y):
    """The area that the planner draws at y, below the first atom through the origin."""
    points, area = [Fraction(0), *atoms], areas(atoms, values)
    k = next(k for k in range(1, len(points)) if y <= points[k])
    part = (y - points[k - 1]) / (points[k] - points[k - 1])
    return area[k - 1] + part * (area[k] - area[k - 1])


@settings(max_examples=40, deadline=None)
@given(proper_models(zero_costs=False), st.sampled_from([0.5, 0.05]))
def test_no_line_misses_the_operator_by_more_than_asked(model, adapt):
    ssp = to_ssp(model)
    plan = tp.solve_cvar_quantile(ssp, FIRST, tolerance=1e-10, adapt=adapt)
    atoms, value = own_atoms(plan)
    for s in set(value) - model.goals:
        between = [a * Fraction(float(b / a) ** 0.5) for a, b in zip(atoms[s], atoms[s][1:])]
        for y in (atoms[s][0] / 10, *between):
            best = min(
                knapsack(outcomes, atoms, value, y) for outcomes in model.choices[s].values()
            )
            missing = float(best * y - line(atoms[s], value[s], y))
            assert missing <= adapt * max(float(y), FIRST[0]) * (1 + 1e-6) + 1e-9


@settings(max_examples=25, deadline=None)
@given(proper_models(max_states=3, zero_costs=False))
def test_predictions_rise_and_stay_below_the_optimum_and_both_planners_agree(model):
    ssp = to_ssp(model)
    plain = tp.solve_cvar_quantile(ssp, FIRST, tolerance=1e-10)
    plan = tp.solve_cvar_quantile(ssp, FIRST, tolerance=1e-10, adapt=0.1)
    best = tp.solve_cvar_exact(ssp, 0.25)
    for alpha in (0.25, 0.5, 1.0):
        assert plain.cvar(alpha) <= plan.cvar(alpha) * (1 + 1e-9) + 1e-9
        assert plan.cvar(alpha) <= best.cvar(alpha) * (1 + 1e-9) + 1e-9
    programs = tp.solve_cvar_interpolation(ssp, FIRST, 1e-9, adapt=0.1)
    assert programs.cvar(0.25) == pytest.approx(plan.cvar(0.25), rel=1e-6, abs=1e-6)
    assert programs.sweeps >= plain.sweeps


def test_only_states_that_need_atoms_get_them():
    """A sure walk has one value at every level; a wait that may go on for ever does not."""
    rows = [
        ("walk", "go", "wait", 1, 3),
        ("wait", "stay", "wait", 0.5, 1),
        ("wait", "stay", "sure", 0.5, 1),
        ("sure", "go", "goal", 1, 2),
    ]
    ssp = tp.SSP.from_outcomes(rows, "walk", ["goal"])
    plan = tp.solve_cvar_quantile(ssp, [0.1, 1], adapt=0.05)
    own = dict(zip(ssp.states, plan.grids.rows().sum(axis=1).tolist()))
    assert own["sure"] == 2 and own["wait"] > 8
    # Waiting takes k steps with probability 2^-k: the worst 1/8 waits 3 steps and 2 more.
    assert plan.cvar(0.125) == pytest.approx(3 + 5 + 2, abs=0.1)
    assert tp.solve_cvar_quantile(ssp, [0.1, 1]).cvar(0.125) < 3 + 5 + 2 - 0.5
    assert tp.evaluate(ssp, plan.policy(0.125), 0.125).cvar(0.125) == pytest.approx(10)


def test_a_model_with_signed_costs_and_a_free_walk_is_refined():
    rows = [
        ("a", "walk", "b", 1, 0),
        ("b", "walk", "a", 1, 0),
        ("b", "go", "b", 0.5, 2),
        ("b", "go", "c", 0.5, 2),
        ("c", "go", "goal", 1, -1),
    ]
    ssp = tp.SSP.from_outcomes(rows, "a", ["goal"])
    plan = tp.solve_cvar_quantile(ssp, [0.1, 1], tolerance=1e-9, adapt=0.01)
    assert plan.cvar(0.125) == pytest.approx(2 * 5 - 1, abs=0.05)
    assert plan.cvar(0.125, "b") == pytest.approx(plan.cvar(0.125))


def test_what_is_refused():
    ssp = tp.domains.river(rows=5, columns=3)
    for adapt in (0, -1.0, float("nan")):
        with pytest.raises(OptionError, match=r"^adapt must be positive, not "):
            tp.solve_cvar_quantile(ssp, adapt=adapt)
