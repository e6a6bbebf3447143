"""The policies of both planners: greedy, with risk factors in the envelope, ties included, and
certain to arrive.
"""

import warnings
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tailpath
from tailpath.errors import TailpathWarning
from tailpath.policies.atoms import AtomPolicy
from tests.reference import from_ssp, to_ssp, unroll
from tests.solvers.published.backup_reference import finite_values, knapsack
from tests.strategies import solvable_models

ATOMS = [Fraction(1, 8), Fraction(1, 4), Fraction(1, 2), Fraction(1)]
FEW = [float(y) for y in ATOMS]
PROBLEMS = [
    "gridworld:5x5",
    "gridworld:8x9",
    "gridworld:14x16",
    "river:10x3",
    "river:16x6",
    "river:30x10",
]


def quantile(ssp, atoms=FEW, **options):
    return tailpath.solve_cvar_quantile(ssp, atoms, **options)


def greedy(ssp, atoms=FEW, **options):
    return tailpath.solve_cvar_interpolation(ssp, atoms, inner="greedy", **options)


def programs(ssp, atoms=FEW, **options):
    return tailpath.solve_cvar_interpolation(ssp, atoms, inner="lp", **options)


PLANNERS = [quantile, greedy, programs]


def decisions(plan):
    """Every pair with a decision: state, atom, the outcomes of its choice as a slice, and their
    factors.
    """
    ssp = plan.ssp
    for s, i in np.argwhere(plan.choice >= 0).tolist():
        outcomes = slice(*ssp.choice_outcomes[plan.choice[s, i] : plan.choice[s, i] + 2].tolist())
        begin = plan.xi_offset[s, i]
        yield s, i, outcomes, plan.xi[begin : begin + outcomes.stop - outcomes.start]


def check_factors(plan, rounding):
    """sum P xi = 1 and 0 <= xi <= 1 / y at every pair."""
    ssp = plan.ssp
    for _, i, outcomes, xi in decisions(plan):
        assert abs(np.sum(ssp.outcome_probability[outcomes] * xi) - 1) <= rounding
        assert np.all(xi >= 0)
        assert np.all(xi * plan.atoms[i] <= 1 + rounding)


def check_greedy(plan, rounding=1e-9):
    """At every pair the factors attain the value of the choice, and no choice is better."""
    ssp = plan.ssp
    area = np.concatenate([np.zeros((ssp.n_states, 1)), plan.value * plan.atoms], axis=1)
    levels = np.append(0.0, plan.atoms)
    for s, i, outcomes, xi in decisions(plan):
        y = plan.atoms[i]
        targets = ssp.outcome_target[outcomes]
        later = [np.interp(y * x, levels, area[t]) for x, t in zip(xi, targets, strict=True)]
        attained = np.sum(
            ssp.outcome_probability[outcomes]
            * (xi * ssp.outcome_cost[outcomes] + np.array(later) / y)
        )
        assert attained == pytest.approx(plan.value[s, i], rel=rounding, abs=rounding)


def pairs_all_arrive(plan):
    """Follow the policy from every pair, by the policy's own functions."""
    ssp = plan.ssp
    after = {}
    for s, i, outcomes, _ in decisions(plan):
        policy = plan.policy(1.0)
        action = policy.action(ssp.states[s], i)
        after[s, i] = {
            (t, policy.remember(i, ssp.states[s], action, c, ssp.states[t]))
            for t, c in zip(
                ssp.outcome_target[outcomes].tolist(),
                ssp.outcome_cost[outcomes].tolist(),
                strict=True,
            )
        }
    arriving = {
        (s, i) for s in np.flatnonzero(ssp.is_goal).tolist() for i in range(len(plan.atoms))
    }
    while more := {
        pair for pair, targets in after.items() if pair not in arriving and targets & arriving
    }:
        arriving |= more
    return set(after) <= arriving


# ---------------------------------------------------------------------- laws


@given(solvable_models(dyadic=True))
def test_factors_lie_in_the_risk_envelope(model):
    ssp = to_ssp(model)
    check_factors(quantile(ssp), 1e-13)
    check_factors(greedy(ssp), 1e-13)


@settings(max_examples=20)
@given(solvable_models(max_states=3, dyadic=True))
def test_factors_of_linear_programs_lie_in_the_risk_envelope(model):
    check_factors(programs(to_ssp(model)), 1e-8)


@given(solvable_models())
def test_policies_are_greedy(model):
    for solve in (quantile, greedy):
        plan = solve(to_ssp(model), tolerance=1e-11)
        if plan.detours:
            continue
        check_greedy(plan)
        value = finite_values(plan)
        for s, i, _, _ in decisions(plan):
            name = plan.ssp.states[s]
            best = {
                a: knapsack(outcomes, ATOMS, value, ATOMS[i])
                for a, outcomes in model.choices[name].items()
                if all(t in value for t, _, _ in outcomes)
            }
            assert float(best[plan.policy(1.0).action(name, i)] - min(best.values())) <= 1e-9 * max(
                1.0, plan.value[s, i]
            )


@settings(max_examples=100)
@given(
    solvable_models(max_states=6),
    st.sampled_from([FEW, [1.0], [0.3, 1.0], tailpath.log_atoms(1e-4, 6)]),
    st.sampled_from([1e-9, 1e-1, 100.0]),
)
def test_policies_arrive(model, atoms, tolerance):
    """Also when the values are far from settled."""
    for solve in (quantile, greedy):
        assert pairs_all_arrive(solve(to_ssp(model), atoms, tolerance=tolerance))


@pytest.mark.parametrize("problem", PROBLEMS)
def test_policies_of_the_paper_s_problems_arrive(problem):
    for alpha0, n in ((1e-3, 25), (0.1, 7)):
        plan = quantile(tailpath.read(problem), tailpath.log_atoms(alpha0, n))
        assert plan.detours == 0
        check_factors(plan, 1e-12)
        for atom in range(n):
            chain = tailpath.unroll(
                plan.ssp,
                AtomPolicy(plan.ssp, plan.atoms, plan.choice, plan.xi_offset, plan.xi, atom),
            )
            assert chain.arrives.all()


# ---------------------------------------------------------------------- ties


def two_ways():
    """From s to a, which surely costs 10, or to b, which costs 0 or 10, with one half each."""
    rows = [
        ("s", "go", "a", 0.5, 0),
        ("s", "go", "b", 0.5, 0),
        ("a", "go", "g", 1, 10),
        ("b", "go", "g", 0.5, 0),
        ("b", "go", "g", 0.5, 10),
    ]
    return tailpath.SSP.from_outcomes(rows, "s", ["g"])


def test_mass_at_the_var_is_shared():
    """At y = 1/2 the tail holds only tens: 1/2 of them from a and 1/4 from b, so a gets 2/3 of the
    tail. F(VaR)/y would give 2 and 1.
    """
    plan = quantile(two_ways(), [0.5, 1.0])
    begin = plan.xi_offset[plan.ssp.start_index, 0]
    assert plan.xi[begin : begin + 2].tolist() == pytest.approx([4 / 3, 2 / 3])


def test_ties_are_ties_up_to_rounding():
    """0.1 + 0.2 and 0.3 are the same cost, though not the same float."""
    rows = [
        ("s", "go", "a", 0.5, 0.1),
        ("s", "go", "b", 0.5, 0.3),
        ("a", "go", "g", 1, 0.2),
        ("b", "go", "g", 1, 0),
    ]
    plan = quantile(tailpath.SSP.from_outcomes(rows, "s", ["g"]), [0.5, 1.0])
    assert 0.1 + 0.2 != 0.3
    begin = plan.xi_offset[plan.ssp.start_index, 0]
    assert plan.xi[begin : begin + 2].tolist() == pytest.approx([1, 1])


@pytest.mark.parametrize("problem", ["gridworld:5x5", "river:10x3"])
def test_atoms_may_lie_close_together(problem):
    """Then slopes are quotients of two small differences, and mostly rounding."""
    atoms = np.sort(
        np.concatenate(
            [
                np.array([0.02, 0.1, 0.3])[:, None] + 1e-12 * np.arange(5),
                [[0.9, 0.95, 0.97, 0.98, 1.0]],
            ],
            axis=None,
        )
    )
    plan = quantile(tailpath.read(problem), atoms)
    check_factors(plan, 1e-9)
    few = quantile(tailpath.read(problem), [0.02, 0.1, 0.3, 0.9, 0.95, 0.97, 0.98, 1.0])
    assert plan.cvar(few.atoms) == pytest.approx(few.cvar(few.atoms), rel=1e-4)


@pytest.mark.parametrize("solve", [greedy, programs])
def test_a_vertex_serves_one_after_the_other(solve):
    plan = solve(two_ways(), [0.5, 1.0])
    begin = plan.xi_offset[plan.ssp.start_index, 0]
    factors = plan.xi[begin : begin + 2].tolist()
    # Either a fills the whole tail, or b gives all of its 1/4 and a the rest: all else is no
    # vertex.
    assert factors == pytest.approx([2, 0]) or factors == pytest.approx([1, 1])
    if solve is greedy:
        assert factors == pytest.approx([2, 0])


@pytest.mark.parametrize("solve", PLANNERS)
@pytest.mark.parametrize("gap, action", [(0.0, "first"), (1e-14, "first"), (1e-9, "second")])
def test_tied_actions_go_to_the_lower_index(solve, gap, action):
    rows = [("s", "first", "g", 1, 1.0 + gap), ("s", "second", "g", 1, 1.0)]
    plan = solve(tailpath.SSP.from_outcomes(rows, "s", ["g"]))
    assert [plan.policy(1.0).action("s", i) for i in range(len(FEW))] == [action] * len(FEW)


# ---------------------------------------------------------------------- arriving


@pytest.mark.parametrize("solve", PLANNERS)
def test_walking_for_nothing_ends_where_it_pays_to_leave(solve):
    """a and b are free to walk; a leaves at 5 for sure, b at 3 or, with one chance in 4, 9: b is
    better at y = 1 only.
    """
    rows = [("s", "go", "a", 0.5, 1), ("s", "go", "g", 0.5, 0)]
    rows += [("a", "walk", "b", 0.5, 0), ("a", "walk", "a", 0.5, 0), ("b", "walk", "a", 1, 0)]
    rows += [("a", "leave", "g", 1, 5), ("b", "leave", "g", 0.75, 3), ("b", "leave", "g", 0.25, 9)]
    ssp = tailpath.SSP.from_outcomes(rows, "s", ["g"])
    plan = solve(ssp, [0.25, 0.5, 1.0])
    for state in ("a", "b"):
        assert plan.value[ssp.state_index(state)].tolist() == pytest.approx([5, 5, 4.5])
    assert plan.detours == 0
    policy = plan.policy(1.0)
    assert [policy.action("a", i) for i in range(3)] == ["leave", "leave", "walk"]
    assert [policy.action("b", i) for i in range(3)] == ["walk", "walk", "leave"]
    # Walking leaves y alone: it is no news.
    begin = plan.xi_offset[ssp.state_index("a"), 2]
    assert plan.xi[begin : begin + 2].tolist() == [1.0, 1.0]
    assert [policy.remember(2, "a", "walk", 0.0, to) for to in ("a", "b")] == [2, 2]
    assert policy.remember(0, "b", "walk", 0.0, "a") == 0
    assert pairs_all_arrive(plan)
    for alpha, exact in ((0.25, 6.0), (0.5, 5.5)):
        assert tailpath.evaluate(ssp, plan.policy(alpha), alpha).cvar(alpha) == pytest.approx(exact)


@pytest.mark.parametrize("solve", [quantile, greedy])
def test_with_a_discount_walking_for_nothing_is_worth_something(solve):
    """Every step halves what is still to pay, so the values go to nothing; but the policy must
    arrive.
    """
    rows = [("a", "walk", "b", 1, 0), ("b", "walk", "a", 1, 0), ("b", "leave", "g", 1, 8)]
    plan = solve(tailpath.SSP.from_outcomes(rows, "a", ["g"]), gamma=0.5, tolerance=1e-6)
    assert plan.cvar(0.5) <= 1e-5
    assert plan.detours == len(FEW)
    assert pairs_all_arrive(plan)


@pytest.mark.parametrize("solve", [quantile, greedy])
def test_a_policy_that_would_walk_in_circles_takes_a_detour(solve):
    """With gamma below 1 waiting for ever is cheaper than leaving. The policy must arrive all the
    same.
    """
    rows = [
        ("a", "wait", "b", 1, 1),
        ("b", "wait", "a", 1, 1),
        ("a", "leave", "g", 1, 100),
        ("b", "leave", "g", 1, 90),
    ]
    plan = solve(tailpath.SSP.from_outcomes(rows, "a", ["g"]), gamma=0.5, tolerance=1e-9)
    assert plan.cvar(0.5) == pytest.approx(2.0)
    assert plan.detours == len(FEW)
    policy = plan.policy(0.5)
    # The cheaper of the two ways out.
    assert [(policy.action("a", i), policy.action("b", i)) for i in range(len(FEW))] == [
        ("wait", "leave")
    ] * len(FEW)
    assert pairs_all_arrive(plan)


def test_values_that_are_not_settled_still_give_a_policy_that_arrives():
    ssp = tailpath.read("gridworld:8x9")
    for count in (1, 2, 4, 8):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", TailpathWarning)
            plan = quantile(ssp, tailpath.log_atoms(1e-3, 7), max_sweeps=count)
        assert pairs_all_arrive(plan)


def test_the_exact_reference_follows_the_policy_as_the_package_does():
    """`unroll` of the package goes over arrays, that of the reference over names."""
    ssp = tailpath.read("river:10x3")
    plan = quantile(ssp, tailpath.log_atoms(0.01, 5))
    for alpha in plan.atoms.tolist():
        chain = unroll(from_ssp(ssp), plan.policy(alpha))
        assert tailpath.unroll(ssp, plan.policy(alpha)).n == sum(
            pair not in chain.goals for pair in chain.outcomes
        )
