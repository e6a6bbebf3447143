"""Policies from anything: whatever form it is given in, the same policy comes out, and what is
wrong is named at once.
"""

import numpy as np
import pandas as pd
import pytest

import tailpath as tp
from tailpath import SSP, MarkovPolicy
from tailpath.errors import PolicyError

# Three ways from a; b has a free way back. Actions in the order of the model: go, jump, wait.
ROWS = [
    ("a", "go", "b", 0.5, 2),
    ("a", "go", "goal", 0.5, 6),
    ("a", "jump", "goal", 1, 10),
    ("b", "go", "goal", 1, 4),
    ("b", "wait", "a", 1, 1),
    ("c", "go", "goal", 1, 1),
    ("c", "wait", "a", 1, 1),
]
NAMED = SSP.from_outcomes(ROWS, "a", ["goal"])
NUMBER = {"a": 0, "b": 1, "goal": 2, "c": 3}
ACTION = {"go": 0, "jump": 1, "wait": 2}
NUMBERED = SSP.from_outcomes(
    [(NUMBER[s], ACTION[a], NUMBER[t], p, c) for s, a, t, p, c in ROWS], 0, [2]
)
WANTED = {"a": "go", "b": "go"}


class Agent:
    """As stable-baselines has them: a `policy` that is no policy of ours, and `predict`."""

    policy = "a network"

    def predict(self, observation, deterministic=False):
        assert deterministic
        return np.array(0), None


class Oracle:
    def predict(self, observation):
        return "go"


# States in index order: a, b, goal, c.
FORMS = {
    "policy": MarkovPolicy(WANTED),
    "names": ["go", "go", None, "go"],
    "array of names": np.array(["go", "go", "", "wait"]),
    "numbers": np.array([0, 0, -1, 0]),
    "floats": np.array([0.0, 0.0, np.nan, 0.0]),
    "masked": np.ma.masked_array([0, 0, 7, 9], [False, False, True, True]),
    "matrix": np.array([[1.0, 0, 0], [1, 0, 0], [0, 0, 0], [0, 0, 1]]),
    "lists": [[1.0, 0, 0], [1, 0, 0], [0, 0, 0], [0, 0, 1]],
    "dict": WANTED,
    "dict of numbers": {"a": 0, "b": 0},
    "distribution": {"a": {"go": 1.0}, "b": {"go": 1.0, "wait": 0.0}},
    "more than the model": {**WANTED, "nowhere": "fly"},
    "series": pd.Series(WANTED),
    "frame": pd.DataFrame({"go": [1.0, 1.0], "jump": [0.0, 0.0]}, index=["a", "b"]),
    "function": lambda state: "go",
    "function of numbers": lambda state: np.int64(0),
    "function of rows": lambda state: np.array([1.0, 0.0, 0.0]),
    "history": lambda history: "go",
    "state and history": lambda state, history: "go" if history[-1] == state else "jump",
    "agent": Agent(),
    "agent without options": Oracle(),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_is_the_same_policy(form):
    wanted = tp.evaluate(NAMED, MarkovPolicy(WANTED), 0.1)
    for given in (FORMS[form], tp.policy(NAMED, FORMS[form])):
        found = tp.evaluate(NAMED, given, 0.1)
        assert (found.costs.tolist(), found.probabilities.tolist()) == (
            wanted.costs.tolist(),
            wanted.probabilities.tolist(),
        )
        assert sorted(set(tp.simulate(NAMED, given, 50, 0))) == [6.0]


def test_numbers_are_names_where_states_have_numbers():
    shuffled = SSP.from_outcomes([(7, 3, 2, 1, 1), (2, 3, 9, 1, 1), (2, 5, 9, 1, 8)], 7, [9])
    pi = np.full(10, 3)
    assert tp.policy(shuffled, pi) == MarkovPolicy({7: 3, 2: 3})
    pi[2] = 5
    assert tp.evaluate(shuffled, pi, 1).mean == 9
    assert tp.evaluate(shuffled, dict(enumerate(pi)), 1).mean == 9
    with pytest.raises(
        PolicyError, match=r"^the policy takes action 4 in state 7, which only has 3$"
    ):
        tp.policy(shuffled, np.full(10, 4))
    # Too short to be numbered by name, but one for each state: in the order of the model, where 7
    # comes first.
    assert tp.evaluate(shuffled, np.array([3, 5, -1]), 1).mean == 9
    with pytest.raises(
        PolicyError,
        match=(
            r"^the policy has 5 entries; expected one for each of the 3 states, or more than 9, to"
            r" be read by"
        ),
    ):
        tp.policy(shuffled, np.zeros(5))


def test_what_is_wrong_where_it_never_comes_does_not_matter():
    assert tp.policy(NAMED, {**WANTED, "c": "fly"}) == MarkovPolicy(WANTED)


@pytest.mark.parametrize("numbered", [False, True])
def test_q_tables(numbered):
    ssp = NUMBERED if numbered else NAMED
    q = np.array([[3.0, 2.0, -9.0], [4.0, -9.0, 5.0], [0, 0, 0], [1, 1, 1]])
    least = tp.policy(ssp, q, minimise=True)
    most = tp.policy(ssp, q, minimise=False)
    states = [NUMBER[s] if numbered else s for s in "ab"]
    names = [
        [ACTION[a] if numbered else a for a in pair] for pair in (("jump", "go"), ("go", "wait"))
    ]
    assert [least.action(s) for s in states] == names[0]
    assert [most.action(s) for s in states] == names[1]
    nested = {
        s: {a: q[NUMBER[s], ACTION[a]] for a in ["go", "jump", "wait"][: 2 if s == "a" else 1]}
        for s in "ab"
    }
    flat = {(s, a): value for s, row in nested.items() for a, value in row.items()}
    for given in (nested, flat):
        assert tp.policy(NAMED, given, minimise=True) == MarkovPolicy({"a": "jump", "b": "go"})


def test_a_table_of_values_is_not_taken_for_probabilities():
    with pytest.raises(
        PolicyError,
        match=(
            r"^the policy takes action 'go' in state 'a' with probability 3.0; if these are values,"
            r" not prob"
        ),
    ):
        tp.policy(NAMED, np.array([[3.0, 2, 0], [1, 0, 0], [0, 0, 0], [0, 0, 1]]))


def test_solutions():
    expected, plan, best = (
        tp.solve_expected(NAMED),
        tp.solve_cvar_quantile(NAMED, [0.1, 1]),
        tp.solve_cvar_exact(NAMED, 0.1),
    )
    assert tp.policy(NAMED, expected) == expected.policy
    assert tp.policy(NAMED, best) == best.policy(0.1)
    assert tp.evaluate(NAMED, best, 0.5).cvar(0.5) == pytest.approx(best.cvar(0.5))
    assert tp.policy(NAMED, plan, alpha=0.1) == plan.policy(0.1)
    assert tp.evaluate(NAMED, plan, 0.1).cvar(0.1) == tp.evaluate(
        NAMED, plan.policy(0.1), 0.1
    ).cvar(0.1)
    with pytest.raises(
        PolicyError,
        match=(
            r"^this AtomSolution has a policy for every alpha; give alpha=, or its"
            r" .policy\(alpha\)$"
        ),
    ):
        tp.simulate(NAMED, plan, 5, 0)
    punctual = tp.solve_on_time(NAMED, 9)
    assert tp.policy(NAMED, punctual) == punctual.policy(9)
    assert tp.evaluate(NAMED, punctual, 0.1).cdf(9) == pytest.approx(punctual.probability(9)), (
        "alpha is no deadline"
    )
    limited = tp.solve(NAMED, tp.Mean(), subject_to=[tp.Late(9) <= 0.5])
    assert tp.policy(NAMED, limited) == limited.policy


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"a": "fly"},
            r"^the policy takes action 'fly' in state 'a', which only has 'go', 'jump'$",
        ),
        (
            {"a": "go"},
            (
                r"^the policy has no action for state 'b', which it can reach; expected one of"
                r" 'go', 'wait'$"
            ),
        ),
        (
            {"x": "go"},
            (
                r"^the policy decides in 'x' and other states, none of which the model has; its"
                r" states are 'a', 'b', 'goal', 'c'$"
            ),
        ),
        (
            {"a": {"go": 0.5, "jump": 0.2}},
            r"^the action probabilities of the policy in state 'a' sum to 0.7, not 1$",
        ),
        (
            np.array([0, -1, 0, 0]),
            (
                r"^the policy has no action for state 'b', which it can reach; expected one of"
                r" 'go', 'wait'$"
            ),
        ),
        (
            np.array([0, 5, 0, 0]),
            r"^the policy takes action 5 in state 'b', which only has 'go', 'wait'$",
        ),
        (np.array([0, 0]), r"^the policy has 2 entries; expected one for each of the 4 states$"),
        (
            np.zeros((4, 2)),
            (
                r"^the row of state 'a' has 2 numbers; expected one for each of 3 actions; if these"
                r" are values, not"
            ),
        ),
        (
            lambda state: None,
            (
                r"^the policy has no action for state 'a', which it can reach; expected one of"
                r" 'go', 'jump'$"
            ),
        ),
        (
            lambda state: [],
            r"^the policy takes action '\[\]' in state 'a', which only has 'go', 'jump'$",
        ),
        (
            lambda a, b, c: None,
            r"^a function that is a policy takes the state, the history or both, not a, b, c$",
        ),
        (7, r"^cannot make a policy of an int; give a policy, a solution, a mapping"),
    ],
)
def test_what_is_wrong_is_named_at_once(given, message):
    with pytest.raises(PolicyError, match=message):
        tp.policy(NAMED, given)


def test_a_constructor_refuses_what_it_cannot_use():
    with pytest.raises(
        PolicyError,
        match=(
            r"^a MarkovPolicy .*mapping of states to actions, not an ndarray;.* tailpath.policy"
        ),
    ):
        MarkovPolicy(np.array([0, 1]))


def test_minus_one_may_be_an_action():
    ssp = SSP.from_outcomes([(0, -1, 1, 1, 3), (0, 1, 1, 1, 5)], 0, [1])
    assert tp.evaluate(ssp, np.array([-1, 1]), 1).mean == 3


@pytest.mark.parametrize("name", ["CliffWalkingSlippery-v1", "CliffWalking-v1", "Taxi-v4"])
def test_arrays_for_gymnasium_need_no_care(name):
    env = pytest.importorskip("gymnasium").make(name)
    ssp = tp.read(env)
    best = tp.solve_expected(ssp)
    pi = np.zeros(env.observation_space.n, dtype=int)
    for state, action in best.policy.decisions.items():
        if isinstance(state, int):
            pi[state] = action
    for given in (pi, dict(enumerate(pi)), lambda state: pi[state], np.eye(env.action_space.n)[pi]):
        assert tp.evaluate(ssp, given, 1).mean == pytest.approx(best.cost(), rel=1e-12)


def test_what_is_no_policy_yet_says_what_to_do(tmp_path):
    ssp = tp.domains.river(rows=4, columns=3)
    with pytest.raises(
        PolicyError, match=r"^the policy has 3 axes; expected one, .* or two, states by actions$"
    ):
        tp.evaluate(ssp, np.zeros((2, 2, 2)), 0.1)
    for thing, kind in ((np.zeros(12), "an ndarray"), ({}, "a dict")):
        with pytest.raises(
            tp.TailpathError,
            match=rf"{kind} is not a policy yet; tailpath.policy\(ssp, ...\) makes one$",
        ):
            tp.write_policy(thing, tmp_path / "policy.json")


ROWS = [
    ("home", "bus", "stop", 0.5, 1),
    ("home", "bus", "home", 0.5, 2),
    ("home", "walk", "work", 1, 30),
]
ROWS += [
    ("stop", "walk", "work", 1, 3),
    ("stop", "ride", "work", 0.5, 1),
    ("stop", "ride", "stop", 0.5, 1),
]
ROAD = tp.SSP.from_outcomes(ROWS, "home", ["work"])
DECIDED = {"home": "bus", "stop": "ride"}
KINDS_OF_THE_MODEL = {
    "MarkovPolicy": tp.MarkovPolicy(DECIDED),
    "BudgetPolicy": tp.solve_cvar_exact(ROAD, 0.1).policy(0.1),
    "AtomPolicy": tp.solve_cvar_quantile(ROAD, [0.1, 0.5, 1]).policy(0.1),
    "MemoryPolicy": tp.MemoryPolicy(
        0, lambda state, n: DECIDED[state] if n < 2 else "walk", lambda n, *step: min(n + 1, 2)
    ),
    "HistoryPolicy": tp.HistoryPolicy(
        lambda history: DECIDED[history[-1]] if len(history) < 7 else "walk"
    ),
    "MixedPolicy": tp.MixedPolicy(
        [tp.MarkovPolicy(DECIDED), tp.solve_cvar_exact(ROAD, 0.1).policy(0.1)], [0.25, 0.75]
    ),
    "history": lambda history: DECIDED[history[-1]] if len(history) < 7 else "walk",
    "table": tp.MemoryPolicy(
        0,
        {(s, 0): a for s, a in DECIDED.items()},
        {
            (0, "home", "bus", 1.0, "stop"): 0,
            (0, "home", "bus", 2.0, "home"): 0,
            (0, "stop", "ride", 1.0, "stop"): 0,
            (0, "stop", "ride", 1.0, "work"): 0,
        },
    ),
}


@pytest.mark.parametrize("kind", KINDS_OF_THE_MODEL)
def test_a_limit_of_steps_understands_the_policies_of_the_model_of_every_kind(kind):
    mine = KINDS_OF_THE_MODEL[kind]
    plain = tp.evaluate(ROAD, mine, 1e-3)
    limited = tp.within(ROAD, 40, otherwise=0)
    own, twice = tp.policy(ROAD, mine), tp.policy(limited, tp.policy(limited, mine))
    for given in (mine, own, tp.policy(limited, mine), twice):
        assert tp.evaluate(limited, given, 1e-3).mean == pytest.approx(plain.mean, rel=1e-6)
        assert tp.evaluate(limited, given, 1e-3).cvar(0.1) == pytest.approx(
            plain.cvar(0.1), rel=1e-6
        )
    assert (
        tp.evaluate(tp.within(ROAD, 1), mine, 0.5).unreached == 1
    )  # a run out of time is asked nothing


def test_policies_of_the_pairs_stay_what_they_are():
    limited = tp.within(ROAD, 4, otherwise=5)
    best = tp.solve_cvar_exact(limited, 0.1).policy(0.1)
    assert tp.policy(limited, best) is best
    of_pairs = tp.solve_expected(limited).policy
    assert tp.policy(limited, of_pairs) is of_pairs


def test_the_pairs_of_a_bounded_model_may_be_named() -> None:
    rows = [("a", "go", "g", 0.5, 1), ("a", "go", "a", 0.5, 1), ("a", "slow", "g", 1, 5)]
    bounded = tp.within(tp.SSP.from_outcomes(rows, "a", ["g"]), 3, otherwise=10)
    by_step = {("a", 0): "go", ("a", 1): "slow", ("a", 2): "slow"}
    assert tp.evaluate(bounded, by_step, 0.1).mean == 3.5
    assert tp.evaluate(bounded, {**by_step, "a": "go"}, 0.1).mean == 3.5
    assert tp.evaluate(bounded, {"a": "go"}, 0.1).mean == 3.0
    with pytest.raises(tp.TailpathError, match="none of which the model has"):
        tp.evaluate(bounded, {("b", 0): "go"}, 0.1)
