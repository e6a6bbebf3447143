"""Atoms per state, Y(s): the same numbers where all states have the same, the operator in fractions
and as a linear program where they differ.
"""

import warnings
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tailpath as tp
from tailpath.errors import OptionError, PolicyError, TailpathWarning
from tailpath.policies.atoms import Grids, nearest_own
from tests.reference import to_ssp
from tests.solvers.published.backup_reference import exact_values, knapsack, linear_program
from tests.strategies import acyclic_models, proper_models

ATOMS = [Fraction(1, 16), Fraction(1, 8), Fraction(1, 4), Fraction(1, 2), Fraction(1)]


def grids(model):
    """For every state some of the atoms, and always 1."""
    some = st.sets(st.sampled_from(ATOMS[:-1]), max_size=3).map(
        lambda found: [*sorted(found), Fraction(1)]
    )
    return st.fixed_dictionaries(dict.fromkeys([*model.choices, *model.goals], some))


def floats(atoms, ssp):
    return {s: [float(y) for y in own] for s, own in atoms.items() if s in ssp.states}


def at_own_atoms(plan, atoms):
    """The values of a solution at every state's own atoms, as fractions."""
    place = {y: i for i, y in enumerate(plan.atoms.tolist())}
    goals = [
        [Fraction(0)] * len(atoms[s]) if goal else None
        for s, goal in zip(plan.ssp.states, plan.ssp.is_goal.tolist(), strict=True)
    ]
    return {
        s: goals[k] or [Fraction(float(plan.value[k, place[float(y)]])) for y in atoms[s]]
        for k, s in enumerate(plan.ssp.states)
    }


@settings(max_examples=40, deadline=None)
@given(proper_models(zero_costs=False), st.sampled_from(["quantile", "greedy", "lp"]))
def test_the_same_atoms_everywhere_change_nothing(model, inner):
    ssp, few = to_ssp(model), [float(y) for y in ATOMS]

    def solve(atoms):
        if inner == "quantile":
            return tp.solve_cvar_quantile(ssp, atoms, tolerance=1e-9)
        return tp.solve_cvar_interpolation(ssp, atoms, 1e-6, inner)

    plain = solve(few)
    assert solve(dict.fromkeys(ssp.states, few)) == plain
    assert solve(lambda state: few) == plain
    assert plain.grids is None


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_values_are_a_fixed_point_of_the_operator_in_fractions(data):
    model = data.draw(proper_models(zero_costs=False))
    atoms, gamma = data.draw(grids(model)), data.draw(st.sampled_from([1, Fraction(1, 2)]))
    ssp = to_ssp(model)
    plan = tp.solve_cvar_quantile(ssp, floats(atoms, ssp), tolerance=1e-10, gamma=float(gamma))
    value = at_own_atoms(plan, atoms)
    for s in set(value) - model.goals:
        for y, v in zip(atoms[s], value[s], strict=True):
            best = min(
                knapsack(outcomes, atoms, value, y, gamma) for outcomes in model.choices[s].values()
            )
            assert abs(float(best - v)) <= 1e-9 * max(1.0, float(v)) + 1e-9


@settings(max_examples=15, deadline=None)
@given(st.data())
def test_both_planners_and_the_textbook_linear_program_agree(data):
    model = data.draw(proper_models(max_states=3, zero_costs=False))
    atoms = data.draw(grids(model))
    ssp = to_ssp(model)
    plan = tp.solve_cvar_interpolation(ssp, floats(atoms, ssp), 1e-9)
    closed = tp.solve_cvar_quantile(ssp, floats(atoms, ssp), tolerance=1e-9)
    np.testing.assert_allclose(plan.value, closed.value, rtol=1e-8, atol=1e-8)
    value = at_own_atoms(plan, atoms)
    for s in set(value) - model.goals:
        for y, v in zip(atoms[s], value[s], strict=True):
            best = min(
                linear_program(outcomes, atoms, value, y) for outcomes in model.choices[s].values()
            )
            assert best == pytest.approx(float(v), rel=1e-8, abs=1e-8)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_values_are_exact_where_costs_flow_one_way(data):
    model = data.draw(acyclic_models())
    atoms = data.draw(grids(model))
    ssp = to_ssp(model)
    plan = tp.solve_cvar_quantile(ssp, floats(atoms, ssp), tolerance=1e-12)
    exact = exact_values(model, sorted(model.choices), atoms)
    for s, found in at_own_atoms(plan, atoms).items():
        np.testing.assert_allclose(
            [float(v) for v in found], [float(v) for v in exact[s]], rtol=1e-13, atol=1e-13
        )


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_the_policy_remembers_atoms_of_the_state_it_is_in(data):
    """Unrolled over arrays it does what its three functions do, and visits no atom that a state
    does not have.
    """
    model = data.draw(proper_models())
    atoms = data.draw(grids(model))
    ssp = to_ssp(model)
    alpha = data.draw(st.sampled_from([0.05, 0.2, 0.7]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TailpathWarning)
        plan = tp.solve_cvar_quantile(
            ssp, floats(atoms, ssp), factors=data.draw(st.sampled_from(["shared", "printed"]))
        )
    policy = plan.policy(alpha)
    same = tp.MemoryPolicy(policy.start, policy.action, policy.remember)
    one, other = tp.evaluate(ssp, policy, 0.01), tp.evaluate(ssp, same, 0.01)
    assert one.mean == pytest.approx(other.mean, rel=1e-12) and one.cvar(0.01) == pytest.approx(
        other.cvar(0.01), rel=1e-12
    )
    if plan.grids is not None:
        chain = tp.unroll(ssp, policy)
        for state, memory in zip(chain.state.tolist(), chain.memory, strict=True):
            assert plan.grids.rows()[state, memory]


BUS = tp.SSP.from_outcomes(
    [
        ("home", "walk", "work", 1, 30),
        ("home", "bus", "work", 0.9, 10),
        ("home", "bus", "stop", 0.1, 10),
        ("stop", "wait", "work", 0.5, 20),
        ("stop", "wait", "stop", 0.5, 20),
    ],
    "home",
    ["work"],
)
OWN = {"home": [0.05, 1], "stop": [0.3, 0.6, 1]}


def test_what_a_state_s_own_atoms_are(tmp_path):
    plan = tp.solve_cvar_quantile(BUS, OWN, tolerance=1e-9)
    assert plan.atoms.tolist() == [0.05, 0.3, 0.6, 1.0]
    assert {s: plan.atoms[plan.grids.rows()[BUS.state_index(s)]].tolist() for s in OWN} == OWN
    policy = plan.policy(0.2)
    assert plan.atoms[policy.start("home")] == 0.05 and plan.atoms[policy.start("stop")] == 0.3
    for suffix in (".json", ".npz"):
        path = tmp_path / f"policy{suffix}"
        tp.write_policy(policy, path)
        assert tp.read_policy(path, BUS) == policy
    runner = policy.start_run()
    assert runner.action("home") == policy.action("home", policy.start("home"))
    runner.observe(99, "stop")
    assert runner.action("stop") == "wait"


def test_the_nearest_own_atom():
    atoms = np.array([0.01, 0.1, 0.5, 1.0])
    own = Grids(
        np.array([[True, False, True, True], [False, True, False, True]]),
        np.array([0, 1], dtype=np.int32),
    )
    levels = (0.0, 0.02, 0.2, 0.9, 1.0)
    assert [nearest_own(atoms, own, 0, y) for y in levels] == [0, 0, 2, 3, 3]
    assert [nearest_own(atoms, own, 1, y) for y in levels] == [1, 1, 1, 3, 3]
    assert nearest_own(atoms, None, 1, 0.2) == 1


@pytest.mark.parametrize(
    ("atoms", "error", "message"),
    [
        ({"hom": [0.1, 1]}, tp.TailpathError, "'hom'"),
        ({"home": [0.1]}, OptionError, r"^state 'home': the last atom must be 1, not 0.1$"),
        (lambda state: [1, 0.1], OptionError, r"^state 'home': atoms must increase"),
        ({"stop": 0.5}, OptionError, r"^state 'stop': atoms must be a non-empty list of numbers$"),
    ],
)
def test_what_is_refused(atoms, error, message):
    with pytest.raises(error, match=message):
        tp.solve_cvar_quantile(BUS, atoms)


@pytest.mark.parametrize(
    ("own", "of_state", "message"),
    [
        (
            [[True, False]],
            [0, 0, 0],
            "own must mark some of 2 atoms for every grid, and the last one always",
        ),
        ([[True, True, True]], [0, 0, 0], "own must mark some of 2 atoms"),
        ([[True, True]], [0, 0, 1], "of_state must name one of 1 grids for each of 3 states"),
        ([[True, True]], [0, 0], "of_state must have the shape 3, not 2"),
    ],
)
def test_grids_that_do_not_fit(own, of_state, message):
    plan = tp.solve_cvar_quantile(BUS, [0.1, 1])
    with pytest.raises(PolicyError, match=message):
        tp.AtomPolicy(
            BUS,
            plan.atoms,
            plan.choice,
            plan.xi_offset,
            plan.xi,
            0,
            Grids(np.array(own), np.array(of_state, dtype=np.int32)),
        )


def test_atoms_that_differ_by_rounding_are_one():
    """0.001 ** (16 / 24) is not quite 0.01: between the two there is no slope but rounding."""
    fine, coarse = tp.log_atoms(1e-3, 25), [0.01, 0.1, 1]
    assert 0 < np.abs(fine - 0.01).min() < 1e-15
    river = tp.domains.river(rows=5, columns=5)
    plan = tp.solve_cvar_quantile(
        river, lambda state: fine if state == river.start else coarse, tolerance=1e-9
    )
    assert len(plan.atoms) == 25
    assert plan.atoms[plan.grids.rows()[0]] == pytest.approx(coarse, rel=1e-6)
    again = tp.solve_cvar_interpolation(
        river, lambda state: fine if state == river.start else coarse, 1e-3
    )
    assert again.sweeps < 30
    np.testing.assert_allclose(again.value, plan.value, atol=0.01)
