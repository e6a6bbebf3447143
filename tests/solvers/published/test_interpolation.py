"""CVaRVILI: linear programs, their closed form and CVaRVIQ find the same values."""

import numpy as np
import pytest
from hypothesis import given, settings

import tailpath
from tailpath.errors import OptionError, TailpathWarning
from tailpath.external.linear_programs import TailPrograms
from tailpath.solvers.published.planners import program_sweep
from tailpath.solvers.published.sweeps import (
    Settings,
    augment,
    iterate,
    merge_sweep,
    start_from_risk_neutral,
)
from tests import textbook
from tests.reference import to_ssp
from tests.strategies import solvable_models


def programs_in_a_sweep(ssp, atoms):
    return ssp.n_choices * len(atoms)


PROBLEMS = ["gridworld:5x5", "gridworld:8x9", "river:10x3", "river:16x6"]


@pytest.mark.parametrize("problem", PROBLEMS)
def test_linear_programs_and_quantiles_agree_at_the_end(problem):
    ssp, atoms = tailpath.read(problem), tailpath.log_atoms(1e-3, 7)
    programs = tailpath.solve_cvar_interpolation(ssp, atoms, tolerance=1e-7)
    quantiles = tailpath.solve_cvar_quantile(ssp, atoms, tolerance=1e-7)
    np.testing.assert_allclose(programs.value, quantiles.value, rtol=0, atol=1e-6)
    assert programs.inner == "lp"
    # Every sweep, and once more for the policy.
    assert programs.linear_programs == (programs.sweeps + 1) * programs_in_a_sweep(ssp, atoms)
    assert programs.lp_seconds > 0
    deployed = [
        tailpath.evaluate(ssp, plan.policy(0.01), 0.01).cvar(0.01) for plan in (programs, quantiles)
    ]
    assert deployed[0] == pytest.approx(deployed[1], rel=1e-6)


@pytest.mark.parametrize("problem", PROBLEMS)
def test_the_values_of_quantiles_are_a_fixed_point_of_the_linear_programs(problem):
    """With 13 atoms, one sweep of programs over the settled values of CVaRVIQ: to let the programs
    settle on their own takes long.
    """
    n = 13
    augmented = augment(
        tailpath.read(problem),
        tailpath.log_atoms(1e-3, n),
        Settings(1e-3, 1.0, 10, "neutral", "vertex"),
    )
    start_from_risk_neutral(augmented, 1e-9)
    iterate(merge_sweep(augmented), 1e-9, 10_000, None)
    settled = augmented.work.value.copy()
    programs = TailPrograms()
    assert program_sweep(augmented, programs)() <= 1e-6
    np.testing.assert_allclose(augmented.work.value, settled, rtol=0, atol=1e-6)
    assert programs.solved == len(augmented.core.choice) * n


@pytest.mark.parametrize("unit", [1e-12, 1e-200, 1e200])
def test_linear_programs_do_not_mind_the_size_of_costs(unit):
    """Below the solver's absolute tolerances any vertex was good enough: 1 at costs of 1e-12.
    Beyond 1e100 it gave up.
    """
    ssp = tailpath.SSP.from_outcomes(
        [("s", "a", "g", 0.75, 1 * unit), ("s", "a", "g", 0.25, 4 * unit)], start="s", goals=["g"]
    )
    plan = tailpath.solve_cvar_interpolation(ssp, [0.1, 0.5, 1], tolerance=1e-9 * unit)
    assert plan.value[ssp.start_index] / unit == pytest.approx([4, 2.5, 1.75], rel=1e-12)


@settings(max_examples=15)
@given(solvable_models(max_states=3))
def test_all_three_agree_on_random_models(model):
    ssp, atoms = to_ssp(model), [0.05, 0.4, 1.0]
    programs, closed = (
        tailpath.solve_cvar_interpolation(ssp, atoms, tolerance=1e-8, inner=inner)
        for inner in ("lp", "greedy")
    )
    quantiles = tailpath.solve_cvar_quantile(ssp, atoms, tolerance=1e-8)
    np.testing.assert_allclose(programs.value, quantiles.value, rtol=1e-7, atol=1e-7)
    np.testing.assert_array_equal(closed.value, quantiles.value)
    finite = np.isfinite(quantiles.var)
    np.testing.assert_allclose(programs.var[finite], quantiles.var[finite], rtol=1e-5, atol=1e-5)


def test_the_closed_form_solves_no_programs():
    plan = tailpath.solve_cvar_interpolation(tailpath.read("river:16x6"), inner="greedy")
    assert (plan.inner, plan.linear_programs, plan.lp_seconds) == ("greedy", 0, 0.0)


@pytest.mark.parametrize("inner", ["lp", "greedy"])
def test_the_counter_example_predicts_600_and_delivers_700(inner):
    ssp = textbook.counter_example().ssp
    plan = tailpath.solve_cvar_interpolation(ssp, [0.25, 0.5, 1.0], inner=inner)
    assert plan.cvar(0.5) == pytest.approx(600)
    assert tailpath.evaluate(ssp, plan.policy(0.5), 0.5).cvar(0.5) == pytest.approx(700)


def test_discounted_programs():
    ssp = tailpath.read("river:10x3")
    programs, quantiles = (
        solve(ssp, [0.1, 0.5, 1.0], tolerance=1e-8, gamma=0.9)
        for solve in (tailpath.solve_cvar_interpolation, tailpath.solve_cvar_quantile)
    )
    np.testing.assert_allclose(programs.value, quantiles.value, rtol=0, atol=1e-6)


def test_running_out_of_sweeps_is_said():
    ssp = tailpath.read("gridworld:5x5")
    with pytest.warns(TailpathWarning, match="no convergence within 2 sweeps"):
        plan = tailpath.solve_cvar_interpolation(ssp, [0.1, 1.0], max_sweeps=2)
    assert (plan.converged, plan.sweeps) == (False, 2)
    assert plan.residual > plan.tolerance
    assert plan.linear_programs == 3 * programs_in_a_sweep(ssp, plan.atoms)


@pytest.mark.parametrize(
    "options, message",
    [
        ({"inner": "simplex"}, "unknown inner problem solver 'simplex'; use 'lp' or 'greedy'"),
        ({"atoms": [0.1, 0.5]}, "the last atom must be 1"),
        ({"tolerance": -1.0}, "tolerance must be positive"),
        ({"gamma": 2.0}, "gamma must lie in"),
        ({"max_sweeps": 0}, "max_sweeps must be 1 or more"),
    ],
)
def test_bad_options_are_refused(options, message):
    with pytest.raises(OptionError, match=message):
        tailpath.solve_cvar_interpolation(tailpath.read("river:10x3"), **options)
