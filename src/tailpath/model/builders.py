"""From rows or matrices, as users hold them, to the arrays of a model. Nothing here knows the SSP; it checks the rest."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from fractions import Fraction
from operator import index
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tailpath.errors import ModelError, OptionError
from tailpath.model.cost_units import common_unit
from tailpath.model.ragged import offsets_of

Name = Hashable


class ModelArrays(NamedTuple):
    """The fields of an SSP that a layout determines."""

    state_choices: NDArray[Any]
    choice_outcomes: NDArray[Any]
    outcome_target: NDArray[Any]
    outcome_probability: NDArray[Any]
    outcome_cost: NDArray[Any]
    choice_action: NDArray[Any]
    is_goal: NDArray[Any]
    start_index: int
    states: Sequence[Name]
    actions: Sequence[Name]
    exact_unit: Fraction | None = None


def arrays_from_outcomes(outcomes: Iterable[tuple[Name, Name, Name, Any, Any]], start: Name, goals: Iterable[Name]) -> ModelArrays:
    """Number the names in order of appearance, group rows by choice, add up rows that agree in all but the probability."""
    state_index: dict[Name, int] = {}
    action_index: dict[Name, int] = {}
    choice_index: dict[tuple[int, int], int] = {}
    exact_costs: dict[Any, float] = {}
    choice: list[int] = []
    target: list[int] = []
    probability: list[float] = []
    cost: list[float] = []
    goal_names = _goal_names(goals)
    for number, row in enumerate(outcomes):
        try:
            state, action, next_state, p, c = row
            hash((state, action, next_state, c))
        except (TypeError, ValueError):
            raise ModelError(f"outcome {number} is {row!r}; expected hashable (state, action, next_state, probability, cost)") from None
        if state in goal_names:
            _check_goal_row(state, action, next_state, p, c)
            state_index.setdefault(state, len(state_index))
            continue
        source = state_index.setdefault(state, len(state_index))
        p_float = _number(p, "probability", state, action, next_state)
        # Before equal rows are added up: a negative one could hide in the sum.
        if not 0 <= p_float < np.inf:
            raise ModelError(f"state {state!r}, action {action!r} -> {next_state!r} has probability {p_float}")
        key = (source, action_index.setdefault(action, len(action_index)))
        row_choice = choice_index.setdefault(key, len(choice_index))
        if p_float == 0:
            state_index.setdefault(next_state, len(state_index))
            continue
        choice.append(row_choice)
        target.append(state_index.setdefault(next_state, len(state_index)))
        probability.append(p_float)
        if c not in exact_costs:
            exact_costs[c] = _number(c, "cost", state, action, next_state)
        cost.append(exact_costs[c])
    for goal in goal_names:
        state_index.setdefault(goal, len(state_index))
    if start not in state_index:
        raise ModelError(f"the start {start!r} is not a state of the model")
    states = tuple(state_index)
    n_states, n_choices = len(states), len(choice_index)

    pairs = np.array(list(choice_index), dtype=np.int64).reshape(n_choices, 2)
    order = np.argsort(pairs[:, 0], kind="stable")
    new_number = np.empty(n_choices, dtype=np.int64)
    new_number[order] = np.arange(n_choices)
    merged = merge_equal_outcomes(
        new_number[np.array(choice, dtype=np.int64)], np.array(target, np.int32), np.array(probability), np.array(cost)
    )
    is_goal = np.zeros(n_states, dtype=np.bool_)
    is_goal[[state_index[goal] for goal in goal_names]] = True
    finite = all(np.isfinite(value) for value in exact_costs.values())
    return ModelArrays(
        state_choices=offsets_of(pairs[order, 0], n_states),
        choice_outcomes=offsets_of(merged[0], n_choices),
        outcome_target=merged[1],
        outcome_probability=merged[2],
        outcome_cost=merged[3],
        choice_action=pairs[order, 1],
        is_goal=is_goal,
        start_index=state_index[start],
        states=states,
        actions=tuple(action_index),
        exact_unit=common_unit(exact_costs) if finite and exact_costs else None,
    )


def merge_equal_outcomes(
    choice: NDArray[Any], target: NDArray[Any], probability: NDArray[Any], cost: NDArray[Any]
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Sort outcomes by choice, keeping their order within it, and add up those with the same choice, target and cost."""
    by_content = np.lexsort((cost, target, choice))
    c, t, k = choice[by_content], target[by_content], cost[by_content]
    first = np.ones(len(c), dtype=np.bool_)
    first[1:] = (np.diff(c) != 0) | (np.diff(t) != 0) | (k[1:] != k[:-1])
    if first.all():
        order = np.argsort(choice, kind="stable")
        return choice[order], target[order], probability[order], cost[order]
    group = np.cumsum(first) - 1
    total = np.bincount(group, weights=probability[by_content])
    # lexsort is stable, so the first of a group is its first appearance; sorting those restores the order given.
    seen = by_content[first]
    order = np.lexsort((seen, choice[seen]))
    kept = seen[order]
    return choice[kept], target[kept], total[order], cost[kept]


def _goal_names(goals: Iterable[Name]) -> dict[Name, None]:
    if isinstance(goals, str) or not isinstance(goals, Iterable):
        raise ModelError(f"goals must be a collection of state names; put {goals!r} in a list")
    names = dict.fromkeys(goals)
    if not names:
        raise ModelError("the model has no goals")
    return names


def _check_goal_row(state: Name, action: Name, next_state: Name, probability: Any, cost: Any) -> None:
    if next_state != state or cost != 0:
        raise ModelError(f"goal {state!r}, action {action!r} leads to {next_state!r} at cost {cost!r}: a goal must be absorbing and free")
    if not 0 <= _number(probability, "probability", state, action, next_state) <= 1:
        raise ModelError(f"goal {state!r}, action {action!r} has probability {probability!r}")


def _number(value: Any, what: str, state: Name, action: Name, next_state: Name) -> float:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise ModelError(f"state {state!r}, action {action!r} -> {next_state!r} has {what} {value!r}, which is no number") from None


# ---------------------------------------------------------------------- matrices


def arrays_from_matrices(
    P: Any, costs: Any, rewards: Any, s_indices: Any, a_indices: Any, layout: str, start: int, goals: Iterable[int]
) -> ModelArrays:
    """The layouts of pymdptoolbox and QuantEcon; `SSP.from_arrays` has the table."""
    if (costs is None) == (rewards is None):
        raise OptionError("give either costs or rewards")
    if (s_indices is None) != (a_indices is None):
        raise OptionError("s_indices and a_indices go together")
    price, sign = (costs, 1.0) if rewards is None else (rewards, -1.0)
    if s_indices is not None:
        matrix, state, action, price = _from_pairs(P, price, s_indices, a_indices)
    else:
        matrix, state, action, price = _from_actions(P, price, layout)
    n_states = matrix.shape[1]
    is_goal = np.zeros(n_states, dtype=np.bool_)
    if not isinstance(goals, Iterable):
        raise ModelError(f"goals must be a collection of state indices; put {goals!r} in a list")
    is_goal[[_state_number(goal, "a goal", n_states) for goal in goals]] = True
    start = _state_number(start, "the start", n_states)

    order = np.lexsort((action, state))
    if not np.array_equal(order, np.arange(len(order))):
        matrix, state, action = matrix[order], state[order], action[order]
        price = price[order]
    return _assemble(matrix, state, action, price, sign, is_goal, start)


def _state_number(value: Any, what: str, n_states: int) -> int:
    try:
        number = index(value)
    except TypeError:
        raise ModelError(f"{what} must be a state index, not {value!r}") from None
    if not 0 <= number < n_states:
        raise ModelError(f"{what} is state index {number}, outside 0..{n_states - 1}")
    return number


def _assemble(
    matrix: Any,
    state: NDArray[Any],
    action: NDArray[Any],
    price: Any,
    sign: float,
    is_goal: NDArray[np.bool_],
    start: int,
) -> ModelArrays:
    """One sparse row per choice, sorted by state; `price` is a vector (one per row) or a sparse matrix of the same shape."""
    n_states = matrix.shape[1]
    length = np.diff(matrix.indptr)
    if isinstance(price, np.ndarray):
        cost = np.repeat(sign * price, length)
    else:
        cost = sign * _values_at(price, matrix)
    probability, target = matrix.data, matrix.indices

    feasible = np.ones(len(state), dtype=np.bool_)
    if isinstance(price, np.ndarray):
        feasible = ~(sign * price == np.inf)
    goal_row = is_goal[state]
    if goal_row.any():
        row_of = np.repeat(np.arange(len(state)), length)
        bad = goal_row[row_of] & (probability != 0) & ((target != state[row_of]) | (cost != 0)) & feasible[row_of]
        for outcome in np.flatnonzero(bad)[:1].tolist():
            row = int(row_of[outcome])
            raise ModelError(
                f"goal {int(state[row])}, action {int(action[row])} leads to {int(target[outcome])} at cost {cost[outcome]:g}:"
                " a goal must be absorbing and free"
            )
        feasible &= ~goal_row
    keep = (probability != 0) if feasible.all() else (probability != 0) & np.repeat(feasible, length)
    if not (keep.all() and feasible.all()):
        row_of = np.repeat(np.arange(len(state)), length)[keep]
        target, probability, cost = target[keep], probability[keep], cost[keep]
        kept_length = np.bincount(row_of, minlength=len(state))
        # An infeasible action may be an empty row; a feasible one may not, and the model will say so.
        length, state, action = kept_length[feasible], state[feasible], action[feasible]
    return ModelArrays(
        state_choices=offsets_of(state, n_states),
        choice_outcomes=np.concatenate(([0], np.cumsum(length))).astype(np.int64),
        outcome_target=target,
        outcome_probability=probability,
        outcome_cost=cost,
        choice_action=action,
        is_goal=is_goal,
        start_index=start,
        states=range(n_states),
        actions=range(int(action.max()) + 1 if len(action) else 0),
    )


def _floats(values: Any, what: str) -> NDArray[np.float64]:
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise ModelError(f"{what} must be an array of numbers, with all its rows of one length") from None


def _csr(matrix: Any) -> Any:
    """A CSR matrix of floats with sorted columns; explicit zeros survive until `_assemble` drops them."""
    from scipy.sparse import csr_array, issparse

    if not issparse(matrix):
        matrix = _floats(matrix, "a matrix")
        if matrix.ndim != 2:
            raise ModelError(f"expected a matrix, got an array of shape {matrix.shape}")
    result = csr_array(matrix, dtype=np.float64)
    if not result.has_canonical_format:
        result = result.copy()
        result.sum_duplicates()
    return result


def _values_at(price: Any, matrix: Any) -> NDArray[np.float64]:
    """The entries of one sparse matrix at the stored positions of another; absent entries are 0."""
    if np.array_equal(price.indptr, matrix.indptr) and np.array_equal(price.indices, matrix.indices):
        return np.asarray(price.data)
    n_columns = matrix.shape[1]

    def keys(m: Any) -> Any:
        return np.repeat(np.arange(m.shape[0], dtype=np.int64), np.diff(m.indptr)) * n_columns + m.indices

    wanted, present = keys(matrix), keys(price)
    position = np.minimum(np.searchsorted(present, wanted), max(len(present) - 1, 0))
    found = present[position] == wanted if len(present) else np.zeros(len(wanted), dtype=np.bool_)
    return np.where(found, price.data[position] if len(present) else 0.0, 0.0)


def _from_pairs(P: Any, price: Any, s_indices: Any, a_indices: Any) -> tuple[Any, NDArray[Any], NDArray[Any], Any]:
    matrix = _csr(P).copy()  # the model must not change with the caller's matrix
    state, action = np.asarray(s_indices), np.asarray(a_indices)
    vector = _floats(price, "costs")
    length = matrix.shape[0]
    if state.shape != (length,) or action.shape != (length,) or vector.shape != (length,):
        raise ModelError(
            f"P has {length} rows; s_indices, a_indices and costs must be of that length, not {state.shape}, {action.shape}, {vector.shape}"
        )
    for what, given, end in (("s_indices", state, matrix.shape[1]), ("a_indices", action, np.iinfo(np.int32).max)):
        if length and not (np.issubdtype(given.dtype, np.integer) and given.min() >= 0 and given.max() < end):
            raise ModelError(f"{what} must be whole numbers in 0..{end - 1}")
    return matrix, state, action, vector


def _from_actions(P: Any, price: Any, layout: str) -> tuple[Any, NDArray[Any], NDArray[Any], Any]:
    """One matrix per action, stacked action by action."""
    from scipy.sparse import issparse, vstack

    if layout not in ("auto", "mdptoolbox", "quantecon"):
        raise OptionError(f"unknown layout {layout!r}; use 'auto', 'mdptoolbox' or 'quantecon'")
    if issparse(P):
        raise ModelError("a single sparse matrix needs s_indices and a_indices; for several actions give a list of matrices")
    if not isinstance(P, (list, tuple)) or not any(issparse(matrix) for matrix in P):
        P = _split_dense(_floats(P, "P"), layout)
    matrices = [_csr(matrix) for matrix in P]
    if not matrices or any(matrix.shape != (matrices[0].shape[1],) * 2 for matrix in matrices):
        raise ModelError(f"expected square matrices of one size, got {[matrix.shape for matrix in matrices]}")
    n_actions, n_states = len(matrices), matrices[0].shape[0]
    state = np.tile(np.arange(n_states, dtype=np.int32), n_actions)
    action = np.repeat(np.arange(n_actions, dtype=np.int32), n_states)
    return vstack(matrices, format="csr"), state, action, _price_by_action(price, n_actions, n_states)


def _split_dense(P: NDArray[Any], layout: str) -> list[NDArray[Any]]:
    if P.ndim != 3:
        raise ModelError(f"P must have three axes, or be a list of matrices, or come with s_indices; its shape is {P.shape}")
    if layout == "quantecon" or (layout == "auto" and P.shape[1] != P.shape[2] and P.shape[0] == P.shape[2]):
        P = P.transpose(1, 0, 2)
    if P.shape[1] != P.shape[2]:
        raise ModelError(f"P has shape {P.shape}; expected (A, S, S) or (S, A, S)")
    return list(P)


def _price_by_action(price: Any, n_actions: int, n_states: int) -> Any:
    """Costs in the order of the stacked rows: a vector where they do not depend on the outcome, else a sparse matrix."""
    from scipy.sparse import issparse, vstack

    if isinstance(price, (list, tuple)) and any(issparse(matrix) for matrix in price):
        stacked = [_csr(matrix) for matrix in price]
    else:
        array = _floats(price, "costs")
        if array.shape == (n_states,):
            return np.tile(array, n_actions)
        if array.shape == (n_states, n_actions):
            return array.T.ravel()
        if array.shape != (n_actions, n_states, n_states):
            raise ModelError(
                f"costs have shape {array.shape}; expected ({n_states},), ({n_states}, {n_actions}) or ({n_actions}, {n_states}, {n_states})"
            )
        stacked = [_csr(matrix) for matrix in array]
    if len(stacked) != n_actions or any(matrix.shape != (n_states, n_states) for matrix in stacked):
        raise ModelError(f"expected {n_actions} cost matrices of shape ({n_states}, {n_states})")
    return vstack(stacked, format="csr")
