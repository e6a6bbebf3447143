"""The planners as published: from V = 0, and with the factors xi = F(VaR) / y, beside today's defaults.

At a tie at the VaR the published formula gives all the mass there to every successor, so that sum P xi exceeds 1. The policy then believes in
larger tails than it has. With these factors the paper's observation on River comes out; with the mass shared it does not.
"""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings

import tailpath as tp
from tailpath.errors import OptionError, TailpathWarning
from tests.cli.running import run
from tests.reference import to_ssp
from tests.strategies import proper_models

PLANNERS = {
    "quantile": tp.solve_cvar_quantile,
    "greedy": lambda ssp, atoms, tolerance=1e-3, **options: tp.solve_cvar_interpolation(ssp, atoms, tolerance, "greedy", **options),
    "lp": lambda ssp, atoms, tolerance=1e-3, **options: tp.solve_cvar_interpolation(ssp, atoms, tolerance, "lp", **options),
}


def quietly(solve, *arguments, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TailpathWarning)
        return solve(*arguments, **options)


def literal_factors(model, plan):
    """F(VaR) / y at every state, atom and outcome, worked out successor by successor from the planner's values."""
    atoms, width = plan.atoms, np.diff(plan.atoms, prepend=0.0)
    slope = np.diff(plan.value * atoms, prepend=0.0, axis=1) / width  # VaR of each state on each step between atoms
    found = []
    for state, atom in np.argwhere(plan.choice >= 0):
        outcomes = range(*model.choice_outcomes[plan.choice[state, atom] : plan.choice[state, atom] + 2])
        reached = [model.outcome_cost[outcome] + slope[model.outcome_target[outcome]] for outcome in outcomes]
        found.append([width[steps >= plan.var[state, atom] - 1e-9].sum() / atoms[atom] for steps in reached])
    return found


def factors_of(model, plan):
    found = []
    for state, atom in np.argwhere(plan.choice >= 0):
        first, count = plan.xi_offset[state, atom], int(np.diff(model.choice_outcomes[plan.choice[state, atom] :])[0])
        found.append(plan.xi[first : first + count].tolist())
    return found


@pytest.mark.parametrize("name", PLANNERS)
def test_published_factors_are_those_of_the_formula(name):
    model = tp.domains.river(rows=10, columns=3)
    plan = quietly(PLANNERS[name], model, tp.log_atoms(1e-2, 7), 1e-9, factors="published")
    assert plan.detours == 0
    for ours, literal in zip(factors_of(model, plan), literal_factors(model, plan), strict=True):
        assert ours == pytest.approx(literal, abs=1e-9)


@pytest.mark.parametrize("factors", ["shared", "vertex"])
def test_other_factors_hand_out_the_whole_and_no_more(factors):
    model = tp.domains.river(rows=10, columns=3)
    for solve in PLANNERS.values():
        plan = solve(model, tp.log_atoms(1e-2, 7), factors=factors)
        assert plan.factor_sum == pytest.approx(1, abs=1e-9)
        sums = [
            np.dot(xi, model.outcome_probability[slice(*model.choice_outcomes[plan.choice[s, i] : plan.choice[s, i] + 2])])
            for xi, (s, i) in zip(factors_of(model, plan), np.argwhere(plan.choice >= 0), strict=True)
        ]
        assert sums == pytest.approx(np.ones(len(sums)), abs=1e-9)


def test_more_than_the_whole_is_warned_about():
    model = tp.domains.river(rows=10, columns=3)
    with pytest.warns(TailpathWarning, match=r"more than the whole tail at \d+ of \d+ pairs of state and atom: sum P xi is up to"):
        plan = tp.solve_cvar_quantile(model, tp.log_atoms(1e-2, 7), factors="published")
    assert plan.factor_sum > 1.1
    assert (plan.start, plan.factors) == ("neutral", "published")


@pytest.mark.parametrize("source", ["gridworld:5x5", "gridworld:8x9", "river:10x3", "river:16x6"])
def test_values_from_below_and_from_above_have_one_fixed_point(source):
    model, atoms = tp.read(source), tp.log_atoms(1e-3, 13)
    above, below = (tp.solve_cvar_quantile(model, atoms, 1e-10, start=start) for start in ("neutral", "zero"))
    assert below.value == pytest.approx(above.value, rel=1e-7, abs=1e-7)
    rough = tp.solve_cvar_quantile(model, atoms, start="zero")
    assert (rough.value <= above.value * (1 + 1e-9) + 1e-9).all()
    assert rough.sweeps > tp.solve_cvar_quantile(model, atoms).sweeps


@settings(max_examples=40, deadline=None)
@given(proper_models().map(to_ssp))
def test_one_fixed_point_on_random_models(model):
    above, below = (quietly(tp.solve_cvar_quantile, model, tp.log_atoms(0.1, 5), 1e-11, start=start) for start in ("neutral", "zero"))
    assert below.value == pytest.approx(above.value, rel=1e-6, abs=1e-6)


def test_linear_programs_from_zero():
    model, atoms = tp.domains.river(rows=10, columns=3), tp.log_atoms(0.1, 5)
    merged, programs = (PLANNERS[name](model, atoms, start="zero") for name in ("greedy", "lp"))
    assert programs.sweeps == merged.sweeps
    assert programs.value == pytest.approx(merged.value, abs=1e-6)
    assert programs.linear_programs == model.n_choices * 5 * (programs.sweeps + 1)


def test_only_with_the_published_factors_a_smaller_alpha0_does_not_help_on_river(capsys):
    """Finding 4 of docs/study.md, from the command line."""
    deployed = {}
    for variant in ("", "published"):
        for alpha0 in (1e-3, 1e-2):
            arguments = ["--method", "quantile", "--alpha", 0.01, "--alpha0", alpha0, "--variant", variant, "--json"]
            deployed[variant, alpha0] = run(capsys, "solve", "river:30x10", *arguments).json["deployed"]
    assert deployed["", 1e-3] < deployed["", 1e-2]
    assert deployed["published", 1e-3] > deployed["published", 1e-2]
    assert all(deployed["", alpha0] < deployed["published", alpha0] for alpha0 in (1e-3, 1e-2))
    assert [round(value, 2) for value in deployed.values()] == [26.76, 27.55, 28.97, 28.04]


def test_refusals():
    model = tp.domains.river(rows=10, columns=3)
    with pytest.raises(OptionError, match="unknown start 'one'; use 'neutral' or 'zero'"):
        tp.solve_cvar_quantile(model, start="one")
    with pytest.raises(OptionError, match="unknown factors 'all'; use 'shared', 'vertex' or 'published'"):
        tp.solve_cvar_interpolation(model, factors="all")
