"""Matrices, as pymdptoolbox and QuantEcon hold them, as a table with one row per outcome."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from tailpath.errors import ModelError, OptionError
from tailpath.graph import Array, FloatArray, owners
from tailpath.model.cells import Categorical, Faults, OutcomeTable
from tailpath.model.outcomes import describe_outcome


class Matrices(OutcomeTable):
    """The entries of matrices as rows; `SSP.from_arrays` has the layouts. Goals are absorbing and
    free, and states keep their numbers.
    """

    title, strict = "the model", True
    fixed = ("state", "action", "next_state", "probability", "cost")

    def __init__(
        self,
        P: Any,
        costs: Any,
        rewards: Any,
        goals: Iterable[int],
        s_indices: Any,
        a_indices: Any,
        layout: str,
    ) -> None:
        from scipy.sparse import vstack

        if (costs is None) == (rewards is None):
            raise OptionError("give either costs or rewards")
        if (s_indices is None) != (a_indices is None):
            raise OptionError("s_indices and a_indices go together")
        if not isinstance(goals, Iterable):
            raise ModelError(
                f"goals must be a collection of state indices; put {goals!r} in a list"
            )
        amounts, never = (costs, np.inf) if rewards is None else (rewards, -np.inf)
        if s_indices is not None:
            chances = _csr(P)
            state, action, amounts = _of_pairs(chances.shape, amounts, s_indices, a_indices)
        else:
            if hasattr(P, "tocsr"):
                raise ModelError(
                    "a single sparse matrix needs s_indices and a_indices; for several actions give"
                    " a list of matrices"
                )
            by_state = _states_first(P, layout)
            matrices = _by_action(P, "P", by_state)
            n_actions, n_states = len(matrices), matrices[0].shape[0]
            chances = vstack(matrices, format="csr")
            state = np.tile(np.arange(n_states), n_actions)
            action = np.repeat(np.arange(n_actions), n_states)
            amounts = _costs_by_action(amounts, n_actions, n_states, by_state)
        self.goals, self.first = list(goals), range(chances.shape[1])
        row, target = owners(chances.indptr), chances.indices
        by_row = isinstance(amounts, np.ndarray)
        cost = amounts[row] if by_row else np.asarray(amounts[row, target]).ravel()
        # A row without entries is a choice nonetheless, which the model will refuse.
        empty = np.flatnonzero(np.diff(chances.indptr) == 0)
        row, none = np.append(row, empty), np.zeros(len(empty))
        columns = (
            *(state[row], action[row], np.append(target, state[empty])),
            *(np.append(chances.data, none), np.append(cost, none)),
        )
        order = np.lexsort((action[row], state[row]))
        if by_row:  # An infinite cost marks an action that the state does not have.
            order = order[amounts[row[order]] != never]
        self.cells = {name: column[order] for name, column in zip(self.fixed, columns)}

    def columns(self, called: Mapping[str, Any], faults: Faults) -> dict[str, Categorical]:
        found = {}
        for name, column in self.cells.items():
            if name in ("state", "next_state"):
                found[name] = Categorical(column, list(self.first))
            else:
                different, codes = np.unique(column, return_inverse=True)
                found[name] = Categorical(codes, different.tolist())
        return found

    def known(self, given: Any) -> Iterable[Any]:
        """A number; not a truth, which a mask of the goals would have."""
        return () if isinstance(given, (bool, np.bool_)) else (given,)

    def row(self, row: int) -> str:
        ends = ("state", "action", "next_state")
        return describe_outcome(*(int(self.cells[name][row]) for name in ends))


def _are_sparse(matrices: Any) -> bool:
    """Whether this is a list of matrices of which some are sparse."""
    return isinstance(matrices, (list, tuple)) and any(hasattr(m, "tocsr") for m in matrices)


def _floats(values: Any, what: str) -> FloatArray:
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise ModelError(
            f"{what} must be an array of numbers, with all its rows of the same length"
        ) from None


def _csr(matrix: Any) -> Any:
    """A CSR matrix of floats of its own, whose entries are sorted and not 0."""
    from scipy.sparse import csr_array, csr_matrix, issparse

    if not issparse(matrix):
        matrix = _floats(matrix, "a matrix")
        if matrix.ndim != 2:
            raise ModelError(f"expected a matrix, got an array of shape {matrix.shape}")
    result = csr_matrix(csr_array(matrix, dtype=np.float64, copy=True))
    result.sum_duplicates()
    result.eliminate_zeros()
    return result


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
    key = state.astype(np.int64) * (int(action.max(initial=0)) + 1) + action
    _, first, times = np.unique(key, return_index=True, return_counts=True)
    for k in first[times > 1][:1]:
        raise ModelError(f"state {state[k]}, action {action[k]} is given twice")
    return state, action, vector


def _states_first(P: Any, layout: str) -> bool:
    """Whether an array of three axes has the states before the actions."""
    if layout not in ("auto", "mdptoolbox", "quantecon"):
        raise OptionError(f"unknown layout {layout!r}; use 'auto', 'mdptoolbox' or 'quantecon'")
    if layout != "auto" or _are_sparse(P):
        return layout == "quantecon"
    shape = _floats(P, "P").shape
    return len(shape) == 3 and shape[1] != shape[2] and shape[0] == shape[2]


def _by_action(given: Any, what: str, by_state: bool) -> list[Any]:
    """The matrix of every action; of an array `by_state`, the states come first."""
    if not _are_sparse(given):
        given = _floats(given, what)
        if given.ndim != 3:
            raise ModelError(
                f"{what} must have three axes, or be a list of matrices, or come with s_indices; it"
                f" has shape {given.shape}"
            )
        given = given.transpose(1, 0, 2) if by_state else given
    matrices = [_csr(matrix) for matrix in given]
    if not matrices or any(matrix.shape != (matrices[0].shape[1],) * 2 for matrix in matrices):
        raise ModelError(
            f"{what} must have square matrices of the same size, one for every action, or the axes"
            f" (S, A, S); it has {[matrix.shape for matrix in matrices]}"
        )
    return matrices


def _costs_by_action(amounts: Any, n_actions: int, n_states: int, by_state: bool) -> Any:
    """Costs in the order of the stacked rows: a vector if they do not depend on the outcome, and
    otherwise a sparse matrix.

    If there are as many actions as states, `by_state` says which come first.
    """
    from scipy.sparse import vstack

    a, s = n_actions, n_states
    if not _are_sparse(amounts):
        amounts = _floats(amounts, "costs")
        if amounts.shape in ((s,), (s, a)):
            return np.broadcast_to(amounts.T, (a, s)).ravel()
        if amounts.shape not in ((s, a, s), (a, s, s)):
            raise ModelError(
                f"costs have shape {amounts.shape}; expected ({s},), ({s}, {a}), ({a}, {s}, {s}) or"
                f" ({s}, {a}, {s})"
            )
        by_state = by_state if a == s else amounts.shape == (s, a, s)
    matrices = _by_action(amounts, "costs", by_state)
    if len(matrices) != a or matrices[0].shape != (s, s):
        raise ModelError(f"expected {a} cost matrices of shape ({s}, {s})")
    return vstack(matrices, format="csr")
