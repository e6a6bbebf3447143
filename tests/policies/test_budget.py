"""Policies by budget as step functions: against plain lists of decisions, and followed in every way
there is.
"""

import pickle
import random
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tailpath as tp
from tailpath.kernels.steps import step_choice
from tailpath.policies.budget import steps_of
from tailpath.policies.unrolling import _unroll_any
from tailpath.solvers.exact.layout import layout_of
from tests import reference, strategies
from tests.reference import to_ssp

#: The largest budget that a policy may have, or name.
FAR = 2**62 - 1


def rows_of(policy, budgets):
    """The choices of every state at some budgets, each looked up alone."""
    return [
        [policy.choice_at(state, budget) for budget in budgets]
        for state in range(policy.ssp.n_states)
    ]


def risk_neutral_choices(ssp, draw=None):
    """A choice for every state that has some, the first or any; -1 for the others."""
    pick = (
        range
        if draw is None
        else lambda first, end: [draw.randrange(first, end)] if end > first else []
    )
    return [
        next(iter(pick(int(first), int(end))), -1)
        for first, end in zip(ssp.state_choices[:-1], ssp.state_choices[1:])
    ]


@st.composite
def tables(draw, ssp, most=12):
    """A table of choices, -1 for the risk-neutral one, its risk-neutral choices, and the same
    decisions as plain lists.
    """
    chance = random.Random(draw(st.integers(0, 2**32)))
    neutral = risk_neutral_choices(ssp, chance)
    table, plain = [], []
    for state in range(ssp.n_states):
        own = range(int(ssp.state_choices[state]), int(ssp.state_choices[state + 1]))
        row = [-1]
        for _ in range(draw(st.just(most)) - 1):
            row.append(row[-1] if chance.random() < 0.6 else chance.choice([-1, *own]))
        table.append(row)
        plain.append(
            [neutral[state], *(choice if choice >= 0 else neutral[state] for choice in row[1:])]
        )
    return table, neutral, plain


# ---------------------------------------------------------------------- what they say


@given(st.data())
def test_a_table_and_its_steps_say_the_same(data):
    ssp = to_ssp(data.draw(strategies.any_models()))
    table, neutral, plain = data.draw(tables(ssp, data.draw(st.integers(1, 12))))
    dtype, width = data.draw(st.sampled_from([np.int8, np.int64])), len(table[0])
    policy = tp.BudgetPolicy.from_table(ssp, np.array(table, dtype=dtype), neutral)
    assert (policy.budget, policy.unit) == (width - 1, ssp.cost_unit)
    assert rows_of(policy, range(width)) == plain
    states, budgets = (
        np.repeat(np.arange(ssp.n_states), width),
        np.tile(np.arange(width), ssp.n_states),
    )
    assert policy.choices_at(states, budgets).tolist() == [
        choice for row in plain for choice in row
    ]
    # A step is a change and nothing else, and they rise.
    changes = [[b for b in range(1, width) if row[b] != row[b - 1]] for row in plain]
    assert [
        policy.from_budget[policy.first[s] : policy.first[s + 1]].tolist()
        for s in range(ssp.n_states)
    ] == changes
    assert policy.step_at(states, budgets).tolist() == [
        sum(b <= left for b in row) for row in changes for left in range(width)
    ]
    for lookup in (step_choice, step_choice.plain):
        assert [
            [lookup(policy.steps(), s, left) for left in range(width)] for s in range(ssp.n_states)
        ] == plain
    # The way back, by the table or by its changes in any order, with some that change nothing.
    assert tp.BudgetPolicy.from_table(ssp, np.array(plain), neutral) == policy
    entries = [
        (s, b, row[b]) for s, row in enumerate(plain) for b in range(1, width) if row[b] >= 0
    ]
    random.Random(1).shuffle(entries)
    again = steps_of(*np.array(entries, dtype=np.int64).reshape(-1, 3).T, np.array(neutral))
    assert {name: array.tolist() for name, array in again.items()} == {
        name: getattr(policy, name).tolist() for name in again
    }


@given(st.data())
def test_budgets_beside_the_table(data):
    """Below 1 the choice is the risk-neutral one, beyond the table the last, and a broken unit does
    not count.
    """
    ssp = to_ssp(data.draw(strategies.any_models()))
    table, neutral, plain = data.draw(tables(ssp))
    policy = tp.BudgetPolicy.from_table(ssp, table, neutral)
    for left in (-FAR, -3, -0.5, 0, 0.5, Fraction(7, 8)):
        assert [row[0] for row in rows_of(policy, [left])] == neutral
        assert policy.step_at(np.arange(ssp.n_states), left).tolist() == [0] * ssp.n_states
    for left in (12, 99, 1e300, FAR):
        assert [row[0] for row in rows_of(policy, [left])] == [row[-1] for row in plain]
    for left in (3.5, Fraction(7, 2), np.float64(3.999)):
        assert [row[0] for row in rows_of(policy, [left])] == [row[3] for row in plain]
    for left in (12, 99, FAR):
        assert policy.choices_at(np.arange(ssp.n_states), left).tolist() == [
            row[-1] for row in plain
        ]


def test_states_without_a_step():
    """In front, between and behind the others, and a policy without any."""
    rows = [(s, action, "g", 1, cost) for s in "abcd" for action, cost in (("x", 1), ("y", 2))]
    ssp = tp.SSP.from_outcomes(rows, "a", ["g"])
    neutral = risk_neutral_choices(ssp)
    for with_steps in ("bd", "ac", "a", "d", ""):
        table = np.full((ssp.n_states, 8), -1)
        for name in with_steps:
            state = ssp.state_index(name)
            table[state, 3:6] = neutral[state] + 1
        policy = tp.BudgetPolicy.from_table(ssp, table, neutral)
        assert len(policy.choice) == 2 * len(with_steps)
        assert policy.choices_at(*np.indices((ssp.n_states, 8))).tolist() == rows_of(
            policy, range(8)
        )
        assert [policy.action(s, 4) for s in "abcd"] == [
            "y" if s in with_steps else "x" for s in "abcd"
        ]
        assert tp.evaluate(ssp, policy, 0.5).mean == (1 if policy.budget != 4 else 2)
        assert tp.evaluate(ssp, policy.with_budget(4), 0.5).mean == (2 if "a" in with_steps else 1)


def test_huge_budgets_do_not_overflow():
    """Products of a state and a budget would: 500 states, and steps up to the largest number there
    may be.
    """
    ssp = tp.read("gridworld:14x16")
    neutral = np.array(risk_neutral_choices(ssp))
    state = np.flatnonzero(np.diff(ssp.state_choices) > 1)
    other = ssp.state_choices[state] + 1
    changes = (
        np.append(state, state),
        np.repeat([FAR - 1, FAR], len(state)),
        np.append(other, neutral[state]),
    )
    policy = tp.BudgetPolicy(
        ssp,
        FAR,
        risk_neutral=neutral,
        level=ssp.outcome_level,
        unit=ssp.cost_unit,
        **steps_of(*changes, neutral),
    )
    for left in (1, FAR - 2, FAR - 1, FAR, 2**63 - 1):
        wanted = other if left == FAR - 1 else neutral[state]
        assert policy.choices_at(state, left).tolist() == wanted.tolist()
        assert [policy.choice_at(s, left) for s in state.tolist()] == wanted.tolist()
        assert [
            int(step_choice(policy.steps(), s, left)) for s in state.tolist()
        ] == wanted.tolist()


def test_another_budget_shares_the_steps():
    policy = tp.solve_cvar_exact(tp.read("gridworld:14x16"), 0.01).policy(0.01)
    less = policy.with_budget(3)
    assert (
        less.budget == 3
        and less.from_budget is policy.from_budget
        and less.with_budget(policy.budget) == policy
    )
    copy = pickle.loads(pickle.dumps(less))
    assert copy == less and copy != policy
    assert repr(less) == "<BudgetPolicy budget of 3 units of 1, 121 steps in 224 states>"


def test_on_another_model_with_the_same_numbers():
    ssp = tp.read("gridworld:5x5")
    policy = tp.solve_cvar_exact(ssp, 0.05).policy(0.05)
    dearer = replace(ssp, outcome_cost=ssp.outcome_cost * 2, exact_unit=None)
    moved = policy.on(dearer)
    assert moved.ssp is dearer and rows_of(moved, range(20)) == rows_of(policy, range(20)), (
        "budgets count as before"
    )
    assert tp.evaluate(dearer, moved, 0.05).cvar(0.05) == pytest.approx(
        2 * tp.evaluate(ssp, policy, 0.05).cvar(0.05), rel=1e-12
    )
    with pytest.raises(tp.TailpathError, match="first must have the shape"):
        policy.on(tp.read("river:6x4"))


# ---------------------------------------------------------------------- few steps


@pytest.mark.parametrize("alpha", [0.05, 0.01, 0.001])
def test_there_are_few_steps_and_they_rise(alpha):
    ssp = tp.read("gridworld:14x16")
    policy = tp.solve_cvar_exact(ssp, alpha).largest
    labels = layout_of(ssp).entries(policy.budget)
    assert 0 < 20 * len(policy.choice) < labels
    before = policy.risk_neutral.copy()
    for state in range(ssp.n_states):
        own = slice(int(policy.first[state]), int(policy.first[state + 1]))
        assert (np.diff(policy.from_budget[own]) > 0).all() and (policy.from_budget[own] > 0).all()
        assert (np.diff(np.append(before[state], policy.choice[own])) != 0).all(), (
            "every step is a change"
        )
    assert policy.from_budget.max() <= policy.budget


# ---------------------------------------------------------------------- followed in every way

ZERO_CYCLES = [
    ("hall", "over", "porch", 1, 0),
    ("hall", "door", "yard", 0.5, 1),
    ("hall", "door", "hall", 0.5, 0),
    ("porch", "back", "hall", 0.5, 0),
    ("porch", "back", "yard", 0.5, 2),
    ("yard", "jump", "goal", 0.75, 1),
    ("yard", "jump", "hall", 0.25, 3),
    ("yard", "walk", "goal", 1, 4),
]
FAR_APART = [
    (i, action, i + 1, p, c)
    for i in range(8)
    for action, p, c in (("a", 0.75, 1), ("a", 0.25, 1_000_003), ("b", 1, 60_000))
]


def random_policy(ssp, seed, budget, most=2):
    """Some steps to every choice, near 0, near the budget, or anywhere between."""
    draw = random.Random(seed)
    neutral = risk_neutral_choices(ssp, draw)
    changes = {}
    for choice in [*range(ssp.n_choices)] * most:
        left = draw.choice(
            [draw.randint(1, 4), draw.randint(1, budget), max(budget - draw.randint(0, 4), 1)]
        )
        changes[int(ssp.choice_state[choice]), left] = choice
    steps = steps_of(*np.array(list(changes)).T, list(changes.values()), neutral)
    return tp.BudgetPolicy(
        ssp, budget, risk_neutral=neutral, level=ssp.outcome_level, unit=ssp.cost_unit, **steps
    )


def by_functions(policy):
    return tp.MemoryPolicy(policy.start, policy.action, policy.remember)


def assert_followed_alike(ssp, policy, alpha, runs=300):
    """The compiled loops on the steps, against the policy asked step by step."""
    chain, slowly = tp.unroll(ssp, policy), _unroll_any(ssp, policy, 10**6)
    assert list(zip(chain.state.tolist(), list(chain.memory))) == list(
        zip(slowly.state.tolist(), slowly.memory)
    )
    for name in ("row_start", "target", "probability", "cost", "level"):
        assert np.array_equal(getattr(chain, name), getattr(slowly, name)), name
    short, queue, product = (
        tp.evaluate(ssp, policy, alpha),
        tp.evaluate(ssp, policy, alpha, engine="queue"),
        tp.evaluate(ssp, by_functions(policy), alpha),
    )
    for found in (queue, product):
        assert found.var(alpha) == short.var(alpha)
        assert found.unreached == pytest.approx(short.unreached, rel=1e-12)
        assert found.cvar(alpha) == pytest.approx(short.cvar(alpha), rel=1e-12)
        assert found.mean == pytest.approx(short.mean, rel=1e-12)
        assert found.std == pytest.approx(short.std, rel=1e-9, abs=1e-9 * short.mean)
        low, high = short.bounds(alpha)
        assert low <= found.cvar(alpha) * (1 + 1e-12) and found.cvar(alpha) <= high * (1 + 1e-12)
    assert np.array_equal(
        tp.simulate(ssp, policy, runs, 3), tp.simulate(ssp, by_functions(policy), runs, 3)
    )


@settings(max_examples=60)
@given(st.data())
def test_random_steps_on_random_models(data):
    """Against the distribution in fractions as well."""
    model = data.draw(strategies.proper_models(dyadic=True))
    ssp, alpha = to_ssp(model), data.draw(st.sampled_from([0.5, 0.1, 0.01]))
    table, neutral, _ = data.draw(tables(ssp, data.draw(st.integers(1, 30))))
    policy = tp.BudgetPolicy.from_table(ssp, table, neutral)
    assert_followed_alike(ssp, policy, alpha, runs=30)
    truth = reference.cost_distribution(model, policy, alpha)
    found = tp.evaluate(ssp, policy, alpha)
    assert found.cvar(alpha) == pytest.approx(float(truth.cvar(alpha)), rel=1e-10)
    assert found.var(alpha) == pytest.approx(float(truth.var(alpha)), rel=1e-15)


@pytest.mark.parametrize("budget", [1, 7, 40, 10**9, 2**60])
@pytest.mark.parametrize("seed", range(3))
def test_any_budget_on_models_that_end(seed, budget):
    """However large the budget, no more pairs are met than runs can reach."""
    ssp = tp.SSP.from_outcomes(FAR_APART, 0, [8])
    assert_followed_alike(ssp, random_policy(ssp, seed, budget), 0.05)


@pytest.mark.parametrize("budget", [1, 2, 7, 40])
@pytest.mark.parametrize("seed", range(4))
def test_cycles_that_cost_nothing(seed, budget):
    ssp = tp.SSP.from_outcomes(ZERO_CYCLES, "hall", ["goal"])
    policy = random_policy(ssp, seed, budget)
    assert_followed_alike(ssp, policy, 0.05)


@pytest.mark.parametrize("budget", [10**5, 10**9, 2**44])
def test_a_chain_of_100_000_steps(budget):
    """Every state counts what is left, and takes the ferry from the last 10 units on."""
    n = 100_000
    rows = [(i, "on", i + 1, 1.0, 1) for i in range(n)] + [
        (i, "ferry", n, 1.0, 5) for i in range(n - 5, n)
    ]
    ssp = tp.SSP.from_outcomes(rows, 0, [n])
    neutral = np.array([ssp.choice_index(s, "on") if s < n else -1 for s in range(n + 1)])
    ferry = ssp.choice_index(n - 5, "ferry")
    steps = steps_of([n - 5], [budget - n + 5], [ferry], neutral)
    policy = tp.BudgetPolicy(
        ssp, budget, risk_neutral=neutral, level=ssp.outcome_level, unit=ssp.cost_unit, **steps
    )
    chain = tp.unroll(ssp, policy)
    assert list(chain.memory) == list(range(budget, budget - n + 4, -1))
    assert tp.evaluate(ssp, policy, 0.05).cvar(0.05) == n
    assert tp.evaluate(ssp, policy, 0.05, engine="queue").cvar(0.05) == n
    assert set(tp.simulate(ssp, policy, 3, 1).tolist()) == {n}
    less = policy.with_budget(budget - 1)
    assert tp.unroll(ssp, less).n == n, "the ferry left"


def test_levels_near_the_largest_number():
    """A budget long spent stays spent, however often the largest cost is paid again."""
    rows = [
        ("s", "a", "g", 0.5, 1),
        ("s", "a", "s", 0.5, 1),
        ("s", "b", "g", 0.125, 7),
        ("s", "b", "s", 0.875, 7),
    ]
    ssp = tp.SSP.from_outcomes(rows, "s", ["g"])
    level = np.full(4, 2**62 - 1)
    policy = tp.BudgetPolicy.from_table(
        ssp, [[-1, 0, 0, 0], [-1] * 4], [1, -1], level, Fraction(1, 2**60)
    )
    assert_followed_alike(ssp, policy, 0.05)
    assert_followed_alike(ssp, policy.with_budget(FAR), 0.05)


def test_a_policy_that_meets_too_many_pairs_is_stopped():
    ssp = tp.SSP.from_outcomes([("s", "a", "s", 0.5, 1), ("s", "a", "g", 0.5, 1)], "s", ["g"])
    policy = tp.BudgetPolicy.from_table(ssp, [[-1], [-1]], [0, -1]).with_budget(10**15)
    with pytest.raises(tp.TailpathError, match="reaches more than 1000 pairs of state and memory"):
        tp.unroll(ssp, policy, max_nodes=1000)
    assert tp.unroll(ssp, policy.with_budget(999), max_nodes=1000).n == 1000


@pytest.mark.parametrize("budget", [100, 2_000, 10_000, 10**15])
def test_a_budget_that_no_run_comes_to_the_end_of(budget):
    """Masses vanish long before it is spent; what they would still cost was taken to be
    infinite.
    """
    ssp = tp.SSP.from_outcomes([("s", "a", "s", 0.5, 1), ("s", "a", "g", 0.5, 1)], "s", ["g"])
    policy = tp.BudgetPolicy.from_table(ssp, [[-1], [-1]], [0, -1]).with_budget(budget)
    for engine in ("auto", "queue"):
        found = tp.evaluate(ssp, policy, 0.05, engine=engine)
        assert found.var(0.05) == 5
        assert found.mean == pytest.approx(2, rel=1e-12)
        assert found.cvar(0.05) == pytest.approx(6.25, rel=1e-12)
        assert found.bounds(0.05)[0] <= 6.25 * (1 + 1e-15) and found.bounds(0.05)[1] >= 6.25


def test_a_state_without_an_action_is_named_wherever_it_is_met():
    """State t has a choice with two units left or more, and none below."""
    ssp = tp.SSP.from_outcomes(
        [("s", "go", "t", 0.5, 1), ("s", "go", "t", 0.5, 3), ("t", "go", "g", 1, 1)], "s", ["g"]
    )
    policy = tp.BudgetPolicy.from_table(
        ssp, [[-1] * 6, [-1, -1, 1, 1, 1, 1], [-1] * 6], [0, -1, -1]
    )
    assert tp.evaluate(ssp, policy, 0.5).mean == 3
    for follow in (
        lambda lost: tp.unroll(ssp, lost),
        lambda lost: tp.evaluate(ssp, lost, 0.5),
        lambda lost: tp.evaluate(ssp, lost, 0.5, engine="queue"),
        lambda lost: tp.simulate(ssp, lost, 50, 1),
    ):
        with pytest.raises(tp.TailpathError, match="the policy has no action for state 't'"):
            follow(policy.with_budget(4))
