"""From matrices, as pymdptoolbox and QuantEcon hold them, to the fields of a model. Nothing here
knows the SSP; it checks the rest.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import index
from typing import Any

import numpy as np

from tailpath.errors import ModelError, OptionError
from tailpath.graph import (
    Array,
    BoolArray,
    FloatArray,
    Transitions,
    first_of,
    offsets_of,
    owners,
)
from tailpath.model.outcomes import outcomes_of_rows


def fields_of_matrices(
    given: dict[str, Any],
    costs: Any,
    rewards: Any,
    start: int,
    goals: Iterable[int],
    *,
    s_indices: Any = None,
    a_indices: Any = None,
    layout: str = "auto",
) -> dict[str, Any]:
    """The fields of an `SSP` from the layouts of pymdptoolbox and QuantEcon; `SSP.from_arrays` has
    the table. Of the matrices `given` by name, the last says which outcomes there are. If there
    are several, `outcome_probability` has a column for each.
    """
    if (costs is None) == (rewards is None):
        raise OptionError("give either costs or rewards")
    if (s_indices is None) != (a_indices is None):
        raise OptionError("s_indices and a_indices go together")
    amounts, sign = (costs, 1.0) if rewards is None else (rewards, -1.0)
    if s_indices is not None:
        stacked = {name: _csr(P) for name, P in given.items()}
        shape = _one_shape({name: matrix.shape for name, matrix in stacked.items()})
        state, action, amounts = _of_pairs(shape, amounts, s_indices, a_indices)
    else:
        by_action = {name: _by_action(P, layout) for name, P in given.items()}
        shapes = {name: (len(P), *P[0].shape) for name, (P, _) in by_action.items()}
        n_actions, n_states, _ = _one_shape(shapes)
        stacked = {name: _stacked(P) for name, (P, _) in by_action.items()}
        state = np.tile(np.arange(n_states, dtype=np.int32), n_actions)
        action = np.repeat(np.arange(n_actions, dtype=np.int32), n_states)
        amounts = _costs_by_action(amounts, n_actions, n_states, by_action.popitem()[1][1])
    order = np.lexsort((action, state))
    matrices, amounts = [matrix[order] for matrix in stacked.values()], amounts[order]
    state, action = state[order], action[order]
    matrix, n_states = matrices[-1], matrices[-1].shape[1]
    is_goal = np.zeros(n_states, dtype=np.bool_)
    if not isinstance(goals, Iterable):
        raise ModelError(f"goals must be a collection of state indices; put {goals!r} in a list")
    is_goal[[_state_number(goal, "a goal", n_states) for goal in goals]] = True
    start = _state_number(start, "the start", n_states)

    # An infinite cost marks an action that the state does not have.
    feasible = np.ones(len(state), dtype=np.bool_)
    if isinstance(amounts, np.ndarray):
        feasible = sign * amounts != np.inf
        cost = sign * amounts[owners(matrix.indptr)]
    else:
        cost = sign * _values_at(matrix, amounts)
    rows = Transitions(matrix.indptr, matrix.indices, matrix.data, cost, None)
    _check_goals(rows, state, action, is_goal[state] & feasible)
    # A row that is left empty stays, and the model will refuse it.
    own = feasible & ~is_goal[state]
    there = np.flatnonzero((rows.probability != 0) & own[rows.source])
    kept = rows.only(rows.probability != 0).restrict(own)
    fields = outcomes_of_rows(kept)
    if len(matrices) > 1:
        columns = [_values_at(matrix, each, *given) for each in matrices]
        fields["outcome_probability"] = np.stack(columns, axis=1)[there]
    return {
        **fields,
        "state_choices": offsets_of(state[own], n_states),
        "choice_action": action[own],
        "is_goal": is_goal,
        "start_index": start,
        "states": range(n_states),
        "actions": range(int(action[own].max(initial=-1)) + 1),
    }


def _are_sparse(matrices: Any) -> bool:
    """Whether this is a list of matrices of which some are sparse."""
    return isinstance(matrices, (list, tuple)) and any(hasattr(m, "tocsr") for m in matrices)


def _one_shape(shapes: dict[str, tuple[int, ...]]) -> Any:
    first, *others = shapes.values()
    if any(shape != first for shape in others):
        raise ModelError(", and ".join(f"{name} has shape {s}" for name, s in shapes.items()))
    return first


def _check_goals(rows: Transitions, state: Array, action: Array, of_goal: BoolArray) -> None:
    """Refuse a goal that leads elsewhere or costs something."""
    leaves = (rows.target != state[rows.source]) | (rows.cost != 0)
    for outcome in first_of(of_goal[rows.source] & (rows.probability != 0) & leaves):
        row = int(rows.source[outcome])
        raise ModelError(
            f"goal {int(state[row])}, action {int(action[row])} leads to"
            f" {int(rows.target[outcome])} at cost {rows.cost[outcome]:g}: a goal must be"
            " absorbing and free"
        )


def _state_number(value: Any, what: str, n_states: int) -> int:
    try:
        if isinstance(value, np.bool_):  # which before numpy 2.2 is an index
            raise TypeError
        number = index(value)
    except TypeError:
        raise ModelError(f"{what} must be a state index, not {value!r}") from None
    if not 0 <= number < n_states:
        raise ModelError(f"{what} is state index {number}, outside 0..{n_states - 1}")
    return number


def _floats(values: Any, what: str) -> FloatArray:
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise ModelError(
            f"{what} must be an array of numbers, with all its rows of the same length"
        ) from None


def _csr(matrix: Any) -> Any:
    """A CSR matrix of floats with sorted columns; explicit zeros survive until the rows
    drop them.
    """
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


def _values_at(wanted: Any, matrix: Any, *names: str) -> FloatArray:
    """What a matrix has at the entries of another; where it has none, 0. With names, of the matrix
    and of the other, it must not have more.
    """
    from scipy.sparse import csr_matrix

    found = np.asarray(csr_matrix(matrix)[owners(wanted.indptr), wanted.indices]).ravel()
    stray = np.count_nonzero(matrix.data) - np.count_nonzero(found[wanted.data != 0])
    if names and stray:
        raise ModelError(f"{names[0]} has {stray} entries where {names[1]} is 0")
    return found


def _stacked(matrices: Sequence[Any]) -> Any:
    from scipy.sparse import vstack

    return vstack(matrices, format="csr")


def _of_pairs(
    shape: tuple[int, int], amounts: Any, s_indices: Any, a_indices: Any
) -> tuple[Array, Array, FloatArray]:
    """The state, the action and the cost of each row of a matrix."""
    state, action = np.asarray(s_indices), np.asarray(a_indices)
    vector, (length, n_states) = _floats(amounts, "costs"), shape
    if state.shape != (length,) or action.shape != (length,) or vector.shape != (length,):
        raise ModelError(
            f"P has {length} rows; s_indices, a_indices and costs must be of that length, not"
            f" {state.shape}, {action.shape}, {vector.shape}"
        )
    most = np.iinfo(np.int32).max
    for what, given, end in (("s_indices", state, n_states), ("a_indices", action, most)):
        if length and not (
            np.issubdtype(given.dtype, np.integer) and given.min() >= 0 and given.max() < end
        ):
            raise ModelError(f"{what} must be whole numbers in 0..{end - 1}")
    return state, action, vector


def _by_action(P: Any, layout: str) -> tuple[list[Any], bool]:
    """The matrix of every action, and whether `P` had the states first."""
    if layout not in ("auto", "mdptoolbox", "quantecon"):
        raise OptionError(f"unknown layout {layout!r}; use 'auto', 'mdptoolbox' or 'quantecon'")
    if hasattr(P, "tocsr"):
        raise ModelError(
            "a single sparse matrix needs s_indices and a_indices; for several actions give a list"
            " of matrices"
        )
    by_state = False
    if not _are_sparse(P):
        P = _floats(P, "P")
        if P.ndim != 3:
            raise ModelError(
                "P must have three axes, or be a list of matrices, or come with s_indices; its"
                f" shape is {P.shape}"
            )
        by_state = layout == "quantecon" or (
            layout == "auto" and P.shape[1] != P.shape[2] and P.shape[0] == P.shape[2]
        )
        P = P.transpose(1, 0, 2) if by_state else P
        if P.shape[1] != P.shape[2]:
            raise ModelError(f"P has shape {P.shape}; expected (A, S, S) or (S, A, S)")
    matrices = [_csr(matrix) for matrix in P]
    if not matrices or any(matrix.shape != (matrices[0].shape[1],) * 2 for matrix in matrices):
        raise ModelError(
            f"expected square matrices of one size, got {[matrix.shape for matrix in matrices]}"
        )
    return matrices, by_state


def _costs_by_action(amounts: Any, n_actions: int, n_states: int, by_state: bool) -> Any:
    """Costs in the order of the stacked rows: a vector where they do not depend on the outcome,
    else a sparse matrix.

    Of costs per outcome the shape says whether states come first; where there are as many actions
    as states, `by_state` does.
    """
    a, s = n_actions, n_states
    if not _are_sparse(amounts):
        amounts = _floats(amounts, "costs")
        if amounts.shape in ((s,), (s, a)):
            return np.broadcast_to(amounts.T, (a, s)).ravel()
        if amounts.shape == (s, a, s) and (by_state or a != s):
            amounts = amounts.transpose(1, 0, 2)
        if amounts.shape != (a, s, s):
            raise ModelError(
                f"costs have shape {amounts.shape}; expected ({s},), ({s}, {a}), ({a}, {s}, {s}) or"
                f" ({s}, {a}, {s})"
            )
    matrices = [_csr(matrix) for matrix in amounts]
    if len(matrices) != a or any(matrix.shape != (s, s) for matrix in matrices):
        raise ModelError(f"expected {a} cost matrices of shape ({s}, {s})")
    return _stacked(matrices)
