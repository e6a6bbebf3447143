"""Policies as memory machines: what each kind starts with, decides and remembers."""

import pickle

import numpy as np
import pytest

from tailpath import (
    SSP,
    AtomPolicy,
    BudgetPolicy,
    HistoryPolicy,
    MarkovPolicy,
    MemoryPolicy,
    Policy,
)
from tailpath.errors import PolicyError

# Choices in index order: (a, go) (a, jump) (b, go). Costs 2, 6, 10, 0, 4, unit 2.
SMALL = SSP.from_outcomes(
    [
        ("a", "go", "b", 0.5, 2),
        ("a", "go", "goal", 0.5, 6),
        ("a", "jump", "goal", 1, 10),
        ("b", "go", "a", 0.25, 0),
        ("b", "go", "goal", 0.75, 4),
    ],
    "a",
    ["goal"],
)


def atom_policy(start_atom=1):
    """Atoms 1/16, 1/4, 1; at the smallest atom state a jumps. In a, y doubles on the way to b and
    vanishes at the goal.
    """
    return AtomPolicy(
        ssp=SMALL,
        atoms=np.array([1 / 16, 1 / 4, 1.0]),
        choice=np.array([[1, 0, 0], [2, 2, 2], [-1, -1, -1]], dtype=np.int32),
        xi_offset=np.array([[0, 1, 3], [5, 7, 9], [0, 0, 0]], dtype=np.int64),
        xi=np.array([1.0, 4.0, 0.0, 0.25, 1.0, 8.0, 0.5, 1.0, 1.0, 1.0, 1.0]),
        start_atom=start_atom,
    )


def budget_policy():
    """A budget of 3 units of 2. With 2 or more units left state a goes, otherwise it jumps; b has
    one choice.
    """
    return BudgetPolicy(
        ssp=SMALL,
        budget=3,
        first=np.array([0, 1, 1, 1]),
        from_budget=np.array([2]),
        choice=np.array([0], dtype=np.int32),
        risk_neutral=np.array([1, 2, -1], dtype=np.int32),
        level=SMALL.outcome_level,
        unit=SMALL.cost_unit,
    )


def controller():
    return MemoryPolicy(
        "fresh",
        {("a", "fresh"): "go", ("a", "burnt"): {"go": 0.25, "jump": 0.75}, ("b", "burnt"): "go"},
        {("fresh", "a", "go", 2.0, "b"): "burnt", ("fresh", "a", "go", 6.0, "goal"): "done"},
    )


@pytest.mark.parametrize(
    "policy", [MarkovPolicy({}), atom_policy(), budget_policy(), controller(), HistoryPolicy(len)]
)
def test_every_kind_is_a_policy(policy):
    assert isinstance(policy, Policy)


def test_markov():
    policy = MarkovPolicy({"a": "go", "b": {"go": 1.0}})
    memory = policy.start("a")
    assert (memory, policy.action("a", memory), policy.action("b", memory)) == (
        None,
        "go",
        {"go": 1.0},
    )
    assert policy.remember(memory, "a", "go", 2.0, "b") is None
    with pytest.raises(PolicyError, match=r"^the policy has no action for state 'c'$"):
        policy.action("c", memory)


def test_markov_from_choice_indices():
    policy = MarkovPolicy.from_choices(SMALL, np.array([1, 2, -1]))
    assert policy == MarkovPolicy({"a": "jump", "b": "go"})


def test_atom_policy_moves_to_the_nearest_atom():
    policy = atom_policy()
    assert policy.start("a") == 1
    assert [policy.action("a", atom) for atom in range(3)] == ["jump", "go", "go"]
    assert policy.remember(1, "a", "go", 2.0, "b") == 2, "y * xi = 1/4 * 4"
    assert policy.remember(1, "a", "go", 6.0, "goal") == 0, "y * xi = 0 goes to the first atom"
    assert policy.remember(2, "a", "go", 2.0, "b") == 1, "y * xi = 1 * 1/4"
    assert policy.remember(0, "b", "go", 0.0, "a") == 1, (
        "1/16 * 8 = 1/2 lies as far from 1/4 as from 1: the smaller atom"
    )
    with pytest.raises(
        PolicyError, match=r"^the policy has no action for state 'goal' at y = 0.25$"
    ):
        policy.action("goal", 1)
    with pytest.raises(
        PolicyError, match=r"^the policy did not choose 'jump' in state 'a' at y = 0.25$"
    ):
        policy.remember(1, "a", "jump", 10.0, "goal")
    with pytest.raises(
        PolicyError, match=r"^state 'a', action 'go' has no outcome 'b' at cost 3.0$"
    ):
        policy.remember(1, "a", "go", 3.0, "b")


def test_budget_policy_pays_its_budget_down():
    policy = budget_policy()
    assert policy.start("a") == 3
    assert [policy.action("a", left) for left in range(4)] == ["jump", "jump", "go", "go"]
    assert policy.action("a", 99) == "go", "the last step has no end"
    assert policy.remember(3, "a", "go", 2.0, "b") == 2
    assert policy.remember(3, "b", "go", 0.0, "a") == 3
    assert policy.remember(2, "a", "go", 6.0, "goal") == 0, "spent, never negative"
    with pytest.raises(PolicyError, match=r"^the policy has no action for state 'goal'$"):
        policy.action("goal", 0)
    for action, cost in (("fly", 2.0), ("go", 5.0)):
        with pytest.raises(
            PolicyError, match=f"^state 'a', action '{action}' has no outcome 'b' at cost {cost}$"
        ):
            policy.remember(3, "a", action, cost, "b")


def test_memory_policy_of_tables():
    policy = controller()
    assert policy.start("a") == "fresh"
    assert (policy.action("a", "fresh"), policy.action("a", "burnt")) == (
        "go",
        {"go": 0.25, "jump": 0.75},
    )
    assert policy.remember("fresh", "a", "go", 2.0, "b") == "burnt"
    with pytest.raises(
        PolicyError, match=r"^the policy has no action for state 'b' with memory 'fresh'$"
    ):
        policy.action("b", "fresh")
    with pytest.raises(
        PolicyError,
        match=r"^the policy does not say what to remember after \('burnt', 'b', 'go', 0.0, 'a'\)$",
    ):
        policy.remember("burnt", "b", "go", 0.0, "a")


def test_memory_policy_of_functions():
    policy = MemoryPolicy(
        lambda state: 0.0,
        lambda state, paid: "jump" if paid > 3 else "go",
        lambda paid, s, a, cost, t: paid + cost,
    )
    paid = policy.remember(policy.start("a"), "a", "go", 2.0, "b")
    assert (paid, policy.action("a", paid), policy.action("a", paid + 2)) == (2.0, "go", "jump")


def test_history_policy_sees_everything():
    seen = []
    policy = HistoryPolicy(lambda history: seen.append(history) or "go")
    history = policy.start("a")
    history = policy.remember(history, "a", "go", 2.0, "b")
    assert policy.action("b", history) == "go"
    assert seen == [("a", "go", 2.0, "b")]


@pytest.mark.parametrize(
    "policy", [MarkovPolicy({"a": "go"}), atom_policy(), budget_policy(), controller()]
)
def test_policies_travel_between_processes(policy):
    copy = pickle.loads(pickle.dumps(policy))
    memory = copy.start("a")
    assert (memory, copy.action("a", memory)) == (policy.start("a"), policy.action("a", memory))
