"""The planners as published, from V = 0, and CVaRVIQ's formula xi = F(VaR) / y to the letter,
beside today's defaults.

The code of CVaRVIQ's authors shares the mass at the VaR among the successors that tie there, and so
do we. To the letter the formula gives all of it to each of them, so that sum P xi exceeds 1: the
policy then believes in larger tails than it has.
"""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings

import tailpath as tp
from tailpath.errors import OptionError, TailpathWarning
from tailpath.kernels.quantile import sweep_atoms
from tailpath.kernels.segments import AtomWork, new_scratch
from tailpath.solvers.published.solution import greedy_tables, make_arrive, solution_of
from tailpath.solvers.published.sweeps import Progression, Settings, augment
from tests.cli.running import run
from tests.reference import to_ssp
from tests.strategies import proper_models

PLANNERS = {
    "quantile": tp.solve_cvar_quantile,
    "greedy": lambda ssp, atoms, tolerance=1e-3, **options: tp.solve_cvar_interpolation(
        ssp, atoms, tolerance, "greedy", **options
    ),
    "lp": lambda ssp, atoms, tolerance=1e-3, **options: tp.solve_cvar_interpolation(
        ssp, atoms, tolerance, "lp", **options
    ),
}


def quietly(solve, *arguments, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TailpathWarning)
        return solve(*arguments, **options)


def steps_of(model, plan, state, atom):
    """(mass, outcome, slope) of every step of the successors' quantile functions, the largest
    first.
    """
    width = np.diff(plan.atoms, prepend=0.0)
    slope = (
        np.diff(plan.value * plan.atoms, prepend=0.0, axis=1) / width
    )  # VaR of each state on each step between atoms
    outcomes = range(
        *model.choice_outcomes[plan.choice[state, atom] : plan.choice[state, atom] + 2]
    )
    found = [
        (mass, place, model.outcome_cost[outcome] + step)
        for place, outcome in enumerate(outcomes)
        for mass, step in zip(
            model.outcome_probability[outcome] * width, slope[model.outcome_target[outcome]]
        )
    ]
    return sorted(found, key=lambda step: -step[2]), model.outcome_probability[outcomes]


def reaching(steps, y):
    """The VaR of the authors' code, `single_alpha_to_var`: the step that reaches mass y."""
    mass = 0.0
    for step in steps:
        mass += step[0]
        if mass >= y * (1 - 1e-12):
            return step[2]
    return steps[-1][2]


def authors_factors(steps, chances, y):
    """`single_var_yc_xis_from_t` of github.com/Silvicek/cvar-algorithms, for costs: what ties at
    the VaR shares the rest by mass.
    """
    var = reaching(steps, y)
    tied = [(mass, place) for mass, place, slope in steps if abs(slope - var) <= 1e-9]
    found, above = np.zeros(len(chances)), 0.0
    for mass, place, slope in steps:
        if slope > var + 1e-9:
            found[place] += mass
            above += mass
    for mass, place in tied:
        found[place] += (y - above) * mass / sum(mass for mass, _ in tied)
    return found / (chances * y)


def printed_factors(steps, chances, y):
    """F(VaR) / y: all the mass that each successor has at the VaR and above."""
    var, found = reaching(steps, y), np.zeros(len(chances))
    for mass, place, slope in steps:
        found[place] += mass if slope >= var - 1e-9 else 0.0
    return found / (chances * y)


def factors_of(model, plan):
    found = []
    for state, atom in np.argwhere(plan.choice >= 0):
        first, count = (
            plan.xi_offset[state, atom],
            int(np.diff(model.choice_outcomes[plan.choice[state, atom] :])[0]),
        )
        found.append(plan.xi[first : first + count].tolist())
    return found


@pytest.mark.parametrize("name", PLANNERS)
@pytest.mark.parametrize(
    ("factors", "literal"), [("shared", authors_factors), ("printed", printed_factors)]
)
def test_factors_are_those_of_the_code_and_of_the_formula(name, factors, literal):
    model = tp.domains.river(rows=10, columns=3)
    plan = quietly(PLANNERS[name], model, tp.log_atoms(1e-2, 7), 1e-9, factors=factors)
    assert plan.detours == 0
    for ours, (state, atom) in zip(
        factors_of(model, plan), np.argwhere(plan.choice >= 0), strict=True
    ):
        assert ours == pytest.approx(
            literal(*steps_of(model, plan, state, atom), plan.atoms[atom]), abs=1e-7
        ), (state, atom)


def test_a_sure_step_keeps_its_atom_in_either_reading():
    """The VaR is the step that reaches mass y, not the one after it."""
    model = tp.SSP.from_outcomes(
        [
            ("s", "a", "t", 1, 1),
            ("t", "a", "g", 0.9, 1),
            ("t", "a", "g", 0.05, 5),
            ("t", "a", "g", 0.05, 9),
        ],
        "s",
        ["g"],
    )
    for factors in ("shared", "printed"):
        plan = quietly(tp.solve_cvar_quantile, model, [0.05, 0.1, 0.5, 1], factors=factors)
        xi = dict(zip(map(tuple, np.argwhere(plan.choice >= 0).tolist()), factors_of(model, plan)))
        assert [xi[0, atom] for atom in range(2)] == [pytest.approx([1])] * 2


@pytest.mark.parametrize("factors", ["shared", "vertex"])
def test_other_factors_hand_out_the_whole_and_no_more(factors):
    model = tp.domains.river(rows=10, columns=3)
    for solve in PLANNERS.values():
        plan = solve(model, tp.log_atoms(1e-2, 7), factors=factors)
        assert plan.factor_sum == pytest.approx(1, abs=1e-9)
        sums = [
            np.dot(
                xi,
                model.outcome_probability[
                    slice(*model.choice_outcomes[plan.choice[s, i] : plan.choice[s, i] + 2])
                ],
            )
            for xi, (s, i) in zip(
                factors_of(model, plan), np.argwhere(plan.choice >= 0), strict=True
            )
        ]
        assert sums == pytest.approx(np.ones(len(sums)), abs=1e-9)


def test_more_than_the_whole_is_warned_about():
    model = tp.domains.river(rows=10, columns=3)
    with pytest.warns(
        TailpathWarning,
        match=r"more than the whole tail at \d+ of \d+ pairs of state and atom: sum P xi is up to",
    ):
        plan = tp.solve_cvar_quantile(model, tp.log_atoms(1e-2, 7), factors="printed")
    assert plan.factor_sum > 1.1
    assert (plan.start, plan.factor_rule) == ("neutral", "printed")


@pytest.mark.parametrize("source", ["gridworld:5x5", "gridworld:8x9", "river:10x3", "river:16x6"])
def test_values_from_below_and_from_above_have_one_fixed_point(source):
    model, atoms = tp.read(source), tp.log_atoms(1e-3, 13)
    above, below = (
        tp.solve_cvar_quantile(model, atoms, 1e-10, start=start) for start in ("neutral", "zero")
    )
    assert below.value == pytest.approx(above.value, rel=1e-7, abs=1e-7)
    rough = tp.solve_cvar_quantile(model, atoms, start="zero")
    assert (rough.value <= above.value * (1 + 1e-9) + 1e-9).all()
    assert rough.sweeps > tp.solve_cvar_quantile(model, atoms).sweeps


@settings(max_examples=40, deadline=None)
@given(proper_models().map(to_ssp))
def test_one_fixed_point_on_random_models(model):
    above, below = (
        quietly(tp.solve_cvar_quantile, model, tp.log_atoms(0.1, 5), 1e-11, start=start)
        for start in ("neutral", "zero")
    )
    assert below.value == pytest.approx(above.value, rel=1e-6, abs=1e-6)


def test_linear_programs_from_zero():
    model, atoms = tp.domains.river(rows=10, columns=3), tp.log_atoms(0.1, 5)
    merged, programs = (PLANNERS[name](model, atoms, start="zero") for name in ("greedy", "lp"))
    assert programs.sweeps == merged.sweeps
    assert programs.value == pytest.approx(merged.value, abs=1e-6)
    assert programs.linear_programs == model.n_choices * 5 * (programs.sweeps + 1)


def test_on_river_a_smaller_alpha0_helps_in_every_variant(capsys):
    """Finding 4 of papers/forpecvar/README.md, from the command line."""
    deployed = {}
    for variant in ("", "published", "printed"):
        for alpha0 in (1e-3, 1e-2):
            arguments = [
                "--method",
                "quantile",
                "--alpha",
                0.01,
                "--alpha0",
                alpha0,
                "--variant",
                variant,
                "--json",
            ]
            deployed[variant, alpha0] = run(capsys, "solve", "river:30x10", *arguments).json[
                "deployed"
            ]
    assert [round(value, 3) for value in deployed.values()] == [
        26.756,
        27.553,
        26.756,
        27.553,
        26.892,
        27.665,
    ]
    vertex = [
        tp.evaluate(model, plan.policy(0.01), 0.01).cvar(0.01)
        for model in [tp.read("river:30x10")]
        for plan in (PLANNERS["greedy"](model, tp.log_atoms(alpha0, 25)) for alpha0 in (1e-3, 1e-2))
    ]
    assert [round(value, 3) for value in vertex] == [26.756, 27.553]


def test_the_published_planner_differs_by_its_start_alone():
    method = tp.methods.find_method("quantile")
    assert method.variants["published"] == {"values_from": "zero"}
    assert method.variants["printed"] == {"values_from": "zero", "factors": "printed"}


def synchronous(ssp, atoms):
    """CVaRVIQ from zero as the papers write it: every state sees the values of the last sweep."""
    settings = Settings(1e-3, 1.0, 1000, "zero", "shared")
    augmented = augment(ssp, atoms, settings)
    model, new, scratch = augmented.model, augmented.work, new_scratch(augmented.model)
    moved, sweeps = np.inf, 0
    while moved > settings.tolerance:
        old, work = ([part.copy() for part in new] for _ in range(2))
        moved, sweeps = 0.0, sweeps + 1
        for node in range(augmented.n):
            moved = max(moved, sweep_atoms(model, AtomWork(*work), scratch, np.array([node])))
            for found, before, kept in zip(new, old, work):
                found[node], kept[node] = kept[node], before[node]
    tables = greedy_tables(augmented, settings.rule)
    make_arrive(augmented, tables, settings.rule)
    return solution_of(augmented, tables, Progression(sweeps, moved, True), settings, "quantile")


def test_the_order_of_sweeps_changes_their_number_and_no_choice():
    ssp, atoms = tp.read("river:30x10"), tp.log_atoms(1e-3, 25)
    ours, theirs = tp.solve_cvar_quantile(ssp, atoms, start="zero"), synchronous(ssp, atoms)
    assert (ours.sweeps, theirs.sweeps) == (38, 78)
    assert (ours.choice == theirs.choice).all()
    for alpha in (1e-3, 1e-2, 1e-1):
        deployed = [tp.evaluate(ssp, of.policy(alpha), alpha).cvar(alpha) for of in (ours, theirs)]
        assert deployed[0] == pytest.approx(deployed[1], rel=1e-12)


def test_refusals():
    model = tp.domains.river(rows=10, columns=3)
    with pytest.raises(OptionError, match="unknown start 'one'; use 'neutral' or 'zero'"):
        tp.solve_cvar_quantile(model, start="one")
    with pytest.raises(
        OptionError, match="unknown factors 'published'; use 'shared', 'vertex' or 'printed'"
    ):
        tp.solve_cvar_interpolation(model, factors="published")


def test_factors_are_told_by_successor():
    """Two ways in one step: the mass of the worst tenth is all of the second."""
    rows = [("s", "go", "a", 0.9, 0), ("s", "go", "b", 0.1, 0), ("a", "go", "g", 1, 1),
            ("b", "go", "g", 0.5, 10), ("b", "go", "g", 0.5, 30)]  # fmt: skip
    plan = tp.solve_cvar_quantile(tp.SSP.from_outcomes(rows, "s", ["g"]), [0.05, 0.1, 0.5, 1])
    assert plan.factors("s", 0.1) == pytest.approx({"a": 0.0, "b": 10.0})
    assert plan.factors("b", 0.5) == pytest.approx({("g", 10.0): 0.0, ("g", 30.0): 2.0})
    assert plan.factors("b", 1) == pytest.approx({("g", 10.0): 1.0, ("g", 30.0): 1.0})
    with pytest.raises(OptionError, match="no choice in state 'g'"):
        plan.factors("g", 1)
