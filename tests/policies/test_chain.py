"""Unrolling against slow plain Python, and the chain's own values against rationals and brute
force.
"""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import tailpath as tp
from tailpath.errors import LimitExceededError, ModelError, PolicyError
from tailpath.model.checks import same_numbering
from tests import reference, strategies, textbook

GOAL = "the goal"


def rows_of(chain):
    """{pair: {(next pair, cost in units): probability}} of a chain, by names; goals
    have one name.
    """
    names = [
        (chain.ssp.states[s], None if chain.memory is None else chain.memory[x])
        for x, s in enumerate(chain.state.tolist())
    ]
    names.append(GOAL)
    rows = {name: {} for name in names[:-1]}
    for x, name in enumerate(names[:-1]):
        for edge in range(chain.row_start[x], chain.row_start[x + 1]):
            key = (names[chain.target[edge]], int(chain.level[edge]) * chain.unit)
            rows[name][key] = rows[name].get(key, 0.0) + chain.probability[edge]
    return rows


def slow_rows(slow):
    rows = {}
    for pair, outcomes in slow.outcomes.items():
        if pair not in slow.goals:
            rows[pair] = {}
            for after, p, cost in outcomes:
                key = (GOAL if after in slow.goals else after, cost)
                rows[pair][key] = rows[pair].get(key, 0) + p
    return rows


def assert_same_rows(found, wanted):
    assert found.keys() == wanted.keys(), "reachable pairs, and no others"
    for pair, row in wanted.items():
        assert found[pair].keys() == row.keys()
        for key, p in row.items():
            assert found[pair][key] == pytest.approx(float(p), rel=1e-15, abs=0)


@given(data=st.data())
def test_unrolling_any_policy(data):
    model = data.draw(strategies.any_models())
    policy = data.draw(strategies.policies(model))
    slow = reference.unroll(model, policy)
    chain = tp.unroll(reference.to_ssp(model), policy)
    assert_same_rows(rows_of(chain), slow_rows(slow))
    assert rows_of(chain).keys() == set() or (
        chain.ssp.states[chain.state[chain.start]] == model.start
    )
    ssp, outcome = chain.ssp, chain.outcome
    assert np.array_equal(ssp.choice_state[ssp.outcome_choice[outcome]], chain.state[chain.source])
    assert np.array_equal(ssp.outcome_level[outcome], chain.level)
    inner = chain.target < chain.n
    assert np.array_equal(ssp.outcome_target[outcome[inner]], chain.state[chain.target[inner]])


def test_a_start_that_is_a_goal_has_no_pairs():
    ssp = tp.SSP.from_outcomes([("s", "a", "g", 1, 1)], "g", ["g"])
    for policy in (
        tp.MarkovPolicy({"s": "a"}),
        tp.HistoryPolicy(lambda h: "a"),
        tp.MemoryPolicy(0, {}, {}),
    ):
        chain = tp.unroll(ssp, policy)
        assert (chain.n, chain.start) == (0, 0)


# ---------------------------------------------------------------------- atoms


class SlowAtoms:
    """CreateExtendedMDP in plain Python: the atom nearest in log distance to y * xi, the smaller of
    two at the same distance.
    """

    def __init__(self, policy, ssp):
        self.policy, self.ssp = policy, ssp
        self.close_calls = 0

    def start(self, state):
        return self.policy.start_atom

    def action(self, state, atom):
        return self.ssp.choice_name(int(self.policy.choice[self.ssp.state_index(state), atom]))

    def remember(self, atom, state, action, cost, next_state):
        s = self.ssp.state_index(state)
        k = self.ssp.choice_index(s, action)
        outcomes = range(self.ssp.choice_outcomes[k], self.ssp.choice_outcomes[k + 1])
        within = [
            i
            for i, o in enumerate(outcomes)
            if self.ssp.states[self.ssp.outcome_target[o]] == next_state
            and self.ssp.outcome_cost[o] == cost
        ]
        y = self.policy.atoms[atom] * self.policy.xi[self.policy.xi_offset[s, atom] + within[0]]
        if y == 0:
            return 0
        distances = [abs(math.log(y) - math.log(other)) for other in self.policy.atoms]
        nearest = min(distances)
        self.close_calls += sum(d < nearest + 1e-9 for d in distances) - 1
        return distances.index(nearest)


@st.composite
def atom_policies(draw, ssp):
    """Any choice and any factors, from 0 to far above 1."""
    atoms = tp.log_atoms(draw(st.sampled_from([0.5, 0.01, 1e-4])), draw(st.integers(2, 6)))
    choice = np.full((ssp.n_states, len(atoms)), -1, dtype=np.int32)
    offset, xi = np.zeros(choice.shape, dtype=np.int64), []
    for s in np.flatnonzero(~ssp.is_goal).tolist():
        for i in range(len(atoms)):
            choice[s, i] = k = draw(
                st.integers(int(ssp.state_choices[s]), int(ssp.state_choices[s + 1]) - 1)
            )
            offset[s, i] = len(xi)
            n = int(ssp.choice_outcomes[k + 1] - ssp.choice_outcomes[k])
            xi += draw(
                st.lists(st.one_of(st.just(0.0), st.floats(1e-6, 1e4)), min_size=n, max_size=n)
            )
    return tp.AtomPolicy(
        ssp,
        atoms,
        choice,
        offset,
        np.array(xi, dtype=np.float64),
        draw(st.integers(0, len(atoms) - 1)),
    )


@given(data=st.data())
def test_unrolling_atoms(data):
    model = data.draw(strategies.any_models())
    ssp = reference.to_ssp(model)
    policy = data.draw(atom_policies(ssp))
    slow = SlowAtoms(policy, ssp)
    wanted = slow_rows(reference.unroll(model, slow))
    assume(slow.close_calls == 0)
    assert_same_rows(rows_of(tp.unroll(ssp, policy)), wanted)
    # The policy's own functions say the same as its tables.
    assert_same_rows(
        rows_of(tp.unroll(ssp, tp.MemoryPolicy(policy.start, policy.action, policy.remember))),
        wanted,
    )


def test_ties_between_atoms_go_to_the_smaller():
    """Atoms 1/16, 1/4, 1; y = 1/4 with factors 2, 1/2 and 0 lands on 1/2, 1/8 and 0."""
    ssp = tp.SSP.from_outcomes(
        [
            ("s", "a", "t", 0.5, 1),
            ("s", "a", "u", 0.25, 1),
            ("s", "a", "v", 0.25, 1),
            *((x, "a", "g", 1, 1) for x in "tuv"),
        ],
        "s",
        ["g"],
    )
    choice = np.array([[k] * 3 if k < 4 else [-1] * 3 for k in range(5)], dtype=np.int32)
    offset = np.array([[0] * 3, [3] * 3, [3] * 3, [3] * 3, [0] * 3], dtype=np.int64)
    policy = tp.AtomPolicy(
        ssp, np.array([1 / 16, 1 / 4, 1]), choice, offset, np.array([2.0, 0.5, 0.0, 1.0]), 1
    )
    assert sorted(rows_of(tp.unroll(ssp, policy))) == [("s", 1), ("t", 1), ("u", 0), ("v", 0)]


# ---------------------------------------------------------------------- tables on another model


def river_rows():
    ssp = tp.domains.river(rows=10, columns=3)
    return ssp, [
        (
            ssp.states[s],
            ssp.choice_name(k),
            ssp.states[ssp.outcome_target[o]],
            float(ssp.outcome_probability[o]),
            float(ssp.outcome_cost[o]),
        )
        for s in range(ssp.n_states)
        for k in range(ssp.state_choices[s], ssp.state_choices[s + 1])
        for o in range(ssp.choice_outcomes[k], ssp.choice_outcomes[k + 1])
    ]


@pytest.mark.parametrize("kind", ["atom", "budget"])
def test_a_table_follows_the_names(kind):
    """The same model with its states in another order: the numbers of the table mean other states
    there, the names do not.
    """
    ssp, rows = river_rows()
    if kind == "atom":
        policy = tp.solve_cvar_quantile(ssp, tp.log_atoms(1e-3, 10)).policy(0.05)
    else:
        policy = tp.solve_cvar_exact(ssp, 0.05).policy(0.05)
    turned = tp.SSP.from_outcomes(rows[::-1], ssp.start, ssp.goals)
    assert not same_numbering(ssp, turned)
    here, there = tp.evaluate(ssp, policy, 0.01), tp.evaluate(turned, policy, 0.01)
    assert there.costs.tolist() == here.costs.tolist()
    assert there.cvar(0.01) == pytest.approx(here.cvar(0.01), rel=1e-12)
    assert np.mean(tp.simulate(turned, policy, 20_000, 1)) == pytest.approx(
        here.mean, abs=5 * here.std / math.sqrt(20_000)
    )
    other = tp.domains.gridworld("14x16")
    for use in (
        lambda: tp.evaluate(other, policy, 0.01),
        lambda: tp.simulate(other, policy, 10, 0),
    ):
        with pytest.raises((PolicyError, ModelError)):
            use()


def test_a_layout_is_numbers_and_names():
    ssp, rows = river_rows()
    again = tp.SSP.from_outcomes(rows, ssp.start, ssp.goals)
    dearer = tp.SSP.from_outcomes([(*row[:4], 2 * row[4]) for row in rows], ssp.start, ssp.goals)
    assert same_numbering(again, again)
    assert same_numbering(again, dearer)
    renamed = tp.SSP.from_outcomes(
        [((row[0], "x"), row[1], (row[2], "x"), *row[3:]) for row in rows],
        (ssp.start, "x"),
        [(g, "x") for g in ssp.goals],
    )
    assert not same_numbering(again, renamed)


# ---------------------------------------------------------------------- values of the chain


def cheapest(slow):
    """The least cost to a goal by repeated relaxation, in fractions; infinite in traps."""
    least = {pair: Fraction(0) if pair in slow.goals else math.inf for pair in slow.outcomes}
    while True:
        after = {
            pair: least[pair]
            if pair in slow.goals
            else min((c + least[y] for y, _, c in slow.outcomes[pair]), default=math.inf)
            for pair in slow.outcomes
        }
        if after == least:
            return least
        least = after


@given(data=st.data())
def test_values_against_rationals(data):
    model = data.draw(strategies.any_models(dyadic=True))
    policy = data.draw(strategies.policies(model))
    slow = reference.unroll(model, policy)
    chain = tp.unroll(reference.to_ssp(model), policy)
    least, means, arriving = (
        cheapest(slow),
        reference.chain_means(slow),
        reference.arrival_probability(slow),
    )
    cost, missed = chain.expected_cost, chain.unreached
    for x in range(chain.n):
        pair = (chain.ssp.states[chain.state[x]], None if chain.memory is None else chain.memory[x])
        assert (
            least[pair] if least[pair] == math.inf else least[pair] / chain.unit
        ) == chain.least_cost[x]
        assert chain.arrives[x] == (arriving[pair] > 0)
        assert missed.lower[x] <= 1 - arriving[pair] <= missed.upper[x]
        assert missed.value[x] == pytest.approx(float(1 - arriving[pair]), rel=1e-12, abs=0)
        assert cost.lower[x] <= means[pair] <= cost.upper[x]
        assert cost.value[x] == pytest.approx(float(means[pair]), rel=1e-12, abs=0)
    assert chain.least_cost[chain.n] == 0


def test_costs_without_a_unit():
    ssp = tp.SSP.from_outcomes(
        [("s", "a", "t", 0.5, math.pi), ("s", "a", "g", 0.5, 100), ("t", "a", "g", 1, math.e)],
        "s",
        ["g"],
    )
    chain = tp.unroll(ssp, tp.MarkovPolicy({"s": "a", "t": "a"}))
    assert (chain.level, chain.unit) == (None, None)
    assert chain.least_cost.tolist() == [math.pi + math.e, math.e, 0]


# ---------------------------------------------------------------------- refusals


LOOP = tp.SSP.from_outcomes(
    [("s", "a", "s", 0.5, 1), ("s", "a", "g", 0.5, 1), ("s", "b", "s", 1, 0)], "s", ["g"]
)


def test_a_memory_that_does_not_end():
    for policy in (
        tp.HistoryPolicy(lambda h: "a"),
        tp.MemoryPolicy(0, lambda s, m: "a", lambda m, *step: m + 1),
    ):
        with pytest.raises(
            LimitExceededError, match="more than 100 pairs of state and memory"
        ) as caught:
            tp.unroll(LOOP, policy, max_nodes=100)
        assert caught.value.bounds == (0, math.inf)


def test_a_memory_that_cannot_be_hashed():
    with pytest.raises(PolicyError, match=r"memory \[1\] cannot be hashed"):
        tp.unroll(LOOP, tp.MemoryPolicy(0, lambda s, m: "a", lambda m, *step: [1]))


@pytest.mark.parametrize(
    ("decision", "message"),
    [
        ("fly", "takes action 'fly' in state 's', which only has 'a', 'b'"),
        ({"a": 0.5, "fly": 0.5}, "takes action 'fly' in state 's', which only has 'a', 'b'"),
        ({"a": 0.5}, r"in state 's' sum to 0\.5, not 1"),
        ({}, "in state 's' sum to 0, not 1"),
        ({"a": 1.5, "b": -0.5}, r"action 'a' in state 's' with probability 1\.5"),
        ({"a": math.nan}, "with probability nan"),
    ],
)
def test_decisions_that_are_none(decision, message):
    for policy in (
        tp.MarkovPolicy({"s": decision}),
        tp.MemoryPolicy(0, lambda s, m: decision, lambda m, *step: 0),
        tp.HistoryPolicy(lambda h: decision),
    ):
        with pytest.raises(PolicyError, match=message):
            tp.unroll(LOOP, policy, max_nodes=10)


def test_mixtures_are_scaled_to_one():
    chain = tp.unroll(LOOP, tp.MarkovPolicy({"s": {"a": 1 / 3, "b": 0.6666666666}}))
    assert chain.probability.sum() == pytest.approx(1, rel=1e-15)


def test_a_free_trap_is_named():
    chain = tp.unroll(LOOP, tp.MarkovPolicy({"s": "b"}))
    with pytest.raises(
        PolicyError, match="a cycle that costs nothing and never reaches a goal: state 's'"
    ):
        chain.refuse_zero_cost_traps()
    tp.unroll(LOOP, tp.MarkovPolicy({"s": "a"})).refuse_zero_cost_traps()
    with_memory = tp.unroll(LOOP, tp.MemoryPolicy("m", lambda s, m: "b", lambda m, *step: m))
    with pytest.raises(PolicyError, match="state 's' with memory 'm'"):
        with_memory.refuse_zero_cost_traps()


@pytest.mark.parametrize(
    "changes",
    [
        {"target": [9]},
        {"target": [-1]},
        {"start": 7},
        {"row_start": [0, 2, 2]},
        {"cost": [1.0]},
        {"state": [0, 0]},
    ],
)
def test_a_chain_built_by_hand_is_checked(changes):
    """Its kernels would read beside the arrays."""
    chain = tp.unroll(tp.read("textbook:lottery"), textbook.lottery().policy)
    values = {
        name: np.array(value) if isinstance(value, list) else value
        for name, value in changes.items()
    }
    if "target" in changes:
        values["target"] = np.full(len(chain.target), changes["target"][0])
    with pytest.raises(ModelError, match="chain"):
        replace(chain, **values)


def test_named_actions_are_found_whatever_their_order():
    rows = [
        ("a", "x", "b", 1, 1),
        ("a", "y", "b", 1, 2),
        ("b", "y", "g", 1, 3),
        ("b", "x", "g", 1, 4),
        ("b", "z", "g", 1, 5),
    ]
    ssp = tp.SSP.from_outcomes(rows, "a", ["g"])
    for first in "xy":
        for second in "xyz":
            chain = tp.unroll(ssp, tp.MarkovPolicy({"b": second, "a": first}))
            costs = {("a", "x"): 1, ("a", "y"): 2, ("b", "y"): 3, ("b", "x"): 4, ("b", "z"): 5}
            assert sorted(chain.cost.tolist()) == sorted([costs["a", first], costs["b", second]])
    with pytest.raises(PolicyError, match="takes action 'z' in state 'a', which only has 'x', 'y'"):
        tp.unroll(ssp, tp.MarkovPolicy({"b": "x", "a": "z"}))
