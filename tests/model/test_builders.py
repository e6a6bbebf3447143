"""Arrays as pymdptoolbox and QuantEcon hold them: every layout of one problem is the same model."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import coo_array, csc_array, csr_array, csr_matrix

from tailpath import SSP
from tailpath.errors import ModelError, OptionError

# Two states and a goal; every state has both actions; the costs differ by outcome.
P = np.array([[[0.5, 0.25, 0.25], [0, 0.5, 0.5], [0, 0, 1]], [[0, 0, 1.0], [1, 0, 0], [0, 0, 1]]])
COST = np.array(
    [[[1.0, 2, 4], [9, 3, 5], [9, 9, 0]], [[9, 9, 10.0], [0, 9, 9], [9, 9, 0]]]
)  # 9 is never paid
COST_SA = np.array([[1.0, 10], [3, 0], [0, 0]])


def rows_of(ssp):
    """All outcomes with their places, as sets: the order within a choice is free."""
    return {
        (int(ssp.choice_state[k]), ssp.choice_name(k)): {
            (
                int(ssp.outcome_target[o]),
                float(ssp.outcome_probability[o]),
                float(ssp.outcome_cost[o]),
            )
            for o in range(ssp.choice_outcomes[k], ssp.choice_outcomes[k + 1])
        }
        for k in range(ssp.n_choices)
    }


def wanted(cost):
    """The same from loops over the arrays; `cost(a, s, t)`."""
    return {
        (s, a): {(t, P[a, s, t], cost(a, s, t)) for t in range(3) if P[a, s, t]}
        for s in range(2)
        for a in range(2)
    }


PER_OUTCOME = wanted(lambda a, s, t: COST[a, s, t])
PER_CHOICE = wanted(lambda a, s, t: COST_SA[s, a])
PER_STATE = wanted(lambda a, s, t: [7.0, 8.0, 0.0][s])

PAIRS = [(s, a) for s in range(2) for a in range(2)]
Q = np.array([P[a, s] for s, a in PAIRS])
S_INDICES, A_INDICES = [s for s, _ in PAIRS], [a for _, a in PAIRS]
PAIR_COST = np.array([COST_SA[s, a] for s, a in PAIRS])


@pytest.mark.parametrize(
    ("given_P", "options", "model"),
    [
        (P, {"costs": COST}, PER_OUTCOME),
        (P, {"rewards": -COST}, PER_OUTCOME),
        (P, {"costs": COST_SA}, PER_CHOICE),
        (P, {"costs": [7.0, 8.0, 0.0]}, PER_STATE),
        (P.tolist(), {"costs": COST.tolist()}, PER_OUTCOME),
        (list(P), {"costs": list(COST)}, PER_OUTCOME),
        ([csr_array(p) for p in P], {"costs": COST}, PER_OUTCOME),
        ([csr_matrix(p) for p in P], {"costs": [csr_matrix(c) for c in COST]}, PER_OUTCOME),
        ([coo_array(P[0]), P[1]], {"costs": [csc_array(COST[0]), COST[1]]}, PER_OUTCOME),
        (tuple(csc_array(p) for p in P), {"costs": COST_SA}, PER_CHOICE),
        (P.transpose(1, 0, 2), {"costs": COST_SA}, PER_CHOICE),
        (P.transpose(1, 0, 2), {"costs": COST_SA, "layout": "quantecon"}, PER_CHOICE),
        (P, {"costs": COST_SA, "layout": "mdptoolbox"}, PER_CHOICE),
        (P.transpose(1, 0, 2), {"costs": COST.transpose(1, 0, 2)}, PER_OUTCOME),
        (
            P.transpose(1, 0, 2),
            {"rewards": -COST.transpose(1, 0, 2), "layout": "quantecon"},
            PER_OUTCOME,
        ),
        (P, {"costs": COST.transpose(1, 0, 2)}, PER_OUTCOME),
        ([csr_array(p) for p in P], {"costs": COST.transpose(1, 0, 2)}, PER_OUTCOME),
        (Q, {"costs": PAIR_COST, "s_indices": S_INDICES, "a_indices": A_INDICES}, PER_CHOICE),
        (
            csr_array(Q),
            {"rewards": -PAIR_COST, "s_indices": S_INDICES, "a_indices": A_INDICES},
            PER_CHOICE,
        ),
        (
            coo_array(Q[::-1]),
            {"costs": PAIR_COST[::-1], "s_indices": S_INDICES[::-1], "a_indices": A_INDICES[::-1]},
            PER_CHOICE,
        ),
    ],
)
def test_every_layout_is_the_same_model(given_P, options, model):
    ssp = SSP.from_arrays(given_P, goals=[2], start=0, **options)
    assert rows_of(ssp) == model
    assert (ssp.start, ssp.goals, list(ssp.states)) == (0, (2,), [0, 1, 2])


@st.composite
def products(draw):
    """Random (A, S, S) arrays; the last state is the goal."""
    n_actions, n_states = draw(st.integers(1, 3)), draw(st.integers(2, 4))
    weights = draw(
        st.lists(
            st.integers(0, 3), min_size=n_actions * n_states**2, max_size=n_actions * n_states**2
        )
    )
    array = np.array(weights, dtype=float).reshape(n_actions, n_states, n_states)
    array[:, :, -1] += array.sum(axis=2) == 0
    array[:, -1, :] = np.eye(n_states)[-1]
    cost = np.array(
        draw(st.lists(st.integers(0, 9), min_size=array.size, max_size=array.size)), dtype=float
    ).reshape(array.shape)
    cost[:, -1, :] = 0
    return array / array.sum(axis=2, keepdims=True), cost


@given(products())
def test_dense_and_sparse_agree_with_rows_one_by_one(arrays):
    chances, costs = arrays
    n_actions, n_states, _ = chances.shape
    rows = [
        (s, a, t, chances[a, s, t], costs[a, s, t])
        for s in range(n_states - 1)
        for a in range(n_actions)
        for t in range(n_states)
    ]
    by_rows = SSP.from_outcomes(
        [*((s, 0, s, 0, 0) for s in range(n_states)), *rows], 0, [n_states - 1]
    )
    dense = SSP.from_arrays(
        chances, costs=costs, goals=[n_states - 1], start=0, layout="mdptoolbox"
    )
    sparse = SSP.from_arrays(
        [csr_array(p) for p in chances],
        costs=[csr_array(c) for c in costs],
        goals=[n_states - 1],
        start=0,
    )
    # As many actions as states, and the layout of P decides that of the costs.
    by_state = [array.transpose(1, 0, 2) for array in arrays]
    states_first = SSP.from_arrays(
        by_state[0], costs=by_state[1], goals=[n_states - 1], start=0, layout="quantecon"
    )
    assert rows_of(dense) == rows_of(sparse) == rows_of(states_first)
    assert rows_of(dense) == rows_of(by_rows)
    assert dense.cost_unit == by_rows.cost_unit


def test_an_infinite_cost_marks_a_missing_action():
    cost = np.where(COST_SA == 10, np.inf, COST_SA)
    for rewards in ({"costs": cost}, {"rewards": -cost}):
        ssp = SSP.from_arrays(P.transpose(1, 0, 2), goals=[2], start=0, **rewards)
        assert rows_of(ssp) == {key: value for key, value in PER_CHOICE.items() if key != (0, 1)}


def test_a_missing_action_may_have_an_empty_row():
    chances = P.transpose(1, 0, 2).copy()
    chances[0, 1] = 0
    ssp = SSP.from_arrays(
        chances, costs=np.where(COST_SA == 10, np.inf, COST_SA), goals=[2], start=0
    )
    assert (0, 1) not in rows_of(ssp)


def test_the_rows_of_a_goal_may_be_empty():
    chances = P.copy()
    chances[:, 2] = 0
    assert rows_of(SSP.from_arrays(chances, costs=COST, goals=[2], start=0)) == PER_OUTCOME


def test_explicit_zeros_and_repeated_entries_of_sparse_matrices():
    # (0, 2) is stored as 0.25 + 0.75, and (0, 1) as an explicit zero.
    matrix = csr_array(
        (np.array([0.25, 0.0, 0.75]), np.array([2, 1, 2]), np.array([0, 3])), shape=(1, 3)
    )
    pair = csr_array(np.vstack([matrix.toarray(), [[0, 0, 1.0]]]))
    ssp = SSP.from_arrays(
        pair, costs=[5.0, 6.0], s_indices=[0, 1], a_indices=[0, 0], goals=[2], start=0
    )
    assert rows_of(ssp) == {(0, 0): {(2, 1.0, 5.0)}, (1, 0): {(2, 1.0, 6.0)}}


def test_the_model_does_not_change_with_the_callers_arrays():
    matrix = csr_array(Q)
    cost = PAIR_COST.copy()
    ssp = SSP.from_arrays(
        matrix, costs=cost, s_indices=S_INDICES, a_indices=A_INDICES, goals=[2], start=0
    )
    matrix.data[:] = 7
    cost[:] = 7
    assert rows_of(ssp) == PER_CHOICE


def test_a_cost_per_outcome_is_not_averaged():
    ssp = SSP.from_arrays(P, costs=COST, goals=[2], start=0)
    assert {cost for _, _, cost in rows_of(ssp)[0, 0]} == {1.0, 2.0, 4.0}


def good(**changed):
    options = {"costs": COST_SA, "goals": [2], "start": 0, **changed}
    given_P = options.pop("P", P)
    return SSP.from_arrays(
        given_P, **{name: value for name, value in options.items() if value is not None}
    )


PAIRED = {"P": Q, "costs": PAIR_COST, "s_indices": S_INDICES, "a_indices": A_INDICES}


@pytest.mark.parametrize(
    ("changed", "error", "message"),
    [
        ({"rewards": COST_SA}, OptionError, "give either costs or rewards"),
        ({"costs": None}, OptionError, "give either costs or rewards"),
        ({"s_indices": [0]}, OptionError, "s_indices and a_indices go together"),
        (
            {"layout": "matlab"},
            OptionError,
            "unknown layout 'matlab'; use 'auto', 'mdptoolbox' or 'quantecon'",
        ),
        ({"goals": 2}, ModelError, "goals must be a collection of state indices; put 2 in a list"),
        ({"goals": [3]}, ModelError, "the model has no state 3 to use as a goal"),
        ({"goals": ["end"]}, ModelError, "the model has no state 'end' to use as a goal"),
        (
            {"goals": np.array([False, False, True])},
            ModelError,
            "the model has no state np.False_ to use as a goal",
        ),
        ({"goals": []}, ModelError, "the model has no goals"),
        ({"start": -1}, ModelError, "the model has no state -1 to use as the start"),
        ({"start": 0.5}, ModelError, "the model has no state 0.5 to use as the start"),
        (
            {"goals": [1]},
            ModelError,
            "goal 1, action 0 leads to 1 at cost 3: a goal must be absorbing and free",
        ),
        (
            {"goals": [1], "costs": COST_SA * 0},
            ModelError,
            "goal 1, action 0 leads to 2 at cost 0: a goal must be absorbing and free",
        ),
        (
            {"P": csr_array(Q)},
            ModelError,
            (
                "a single sparse matrix needs s_indices and a_indices; for several actions give a"
                " list of matrices"
            ),
        ),
        (
            {"P": P[0]},
            ModelError,
            (
                "P must have three axes, or be a list of matrices, or come with s_indices; it"
                " has shape (3, 3)"
            ),
        ),
        ({"P": P[:, :2]}, ModelError, "P must have square matrices of the same size"),
        (
            {"P": [csr_array(P[0]), csr_array(P[1][:2])]},
            ModelError,
            "it has [(3, 3), (2, 3)]",
        ),
        (
            {"P": [[["x"]]]},
            ModelError,
            "P must be an array of numbers, with all its rows of the same length",
        ),
        (
            {"costs": [[1, 2], [3]]},
            ModelError,
            "costs must be an array of numbers, with all its rows of the same length",
        ),
        (
            {"costs": [1.0, 2.0]},
            ModelError,
            "costs have shape (2,); expected (3,), (3, 2), (2, 3, 3) or (3, 2, 3)",
        ),
        ({"costs": [csr_array(COST[0])]}, ModelError, "expected 2 cost matrices of shape (3, 3)"),
        ({"P": P * 0.5}, ModelError, "the probabilities of state 0, action 0 sum to 0.5, not 1"),
        (
            {**PAIRED, "costs": [1.0]},
            ModelError,
            (
                "P has 4 rows; s_indices, a_indices and costs must be of that length, not (4,),"
                " (4,), (1,)"
            ),
        ),
        (
            {**PAIRED, "s_indices": [0, 0, 1, 3]},
            ModelError,
            "s_indices must be whole numbers in 0..2",
        ),
        (
            {**PAIRED, "s_indices": [0, 0, 1, 0.5]},
            ModelError,
            "s_indices must be whole numbers in 0..2",
        ),
        (
            {**PAIRED, "a_indices": [0, -1, 0, 1]},
            ModelError,
            "a_indices must be whole numbers in 0..2147483646",
        ),
        ({**PAIRED, "a_indices": [0, 0, 0, 1]}, ModelError, "state 0, action 0 is given twice"),
        ({**PAIRED, "P": Q[0]}, ModelError, "expected a matrix, got an array of shape (3,)"),
    ],
)
def test_bad_arrays(changed, error, message):
    with pytest.raises(error) as refusal:
        good(**changed)
    assert message in str(refusal.value)


def test_a_negative_probability_cannot_hide_in_a_sum():
    rows = [("s", "a", "g", -0.5, 1), ("s", "a", "g", 1.5, 1)]
    with pytest.raises(ModelError, match=r"state 's', action 'a' -> 'g' has probability -0\.5"):
        SSP.from_outcomes(rows, "s", ["g"])
