"""Linear equations over the edges of a chain: x = constant + P x, by sparse elimination, once
factored for many constants.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tailpath.graph import offsets_of, owners
from tailpath.kernels.inverse import Factors, inverse_diagonal
from tailpath.kernels.jit import frozen
from tailpath.model.ssp import FloatArray

_NONE, _FIRST = np.zeros(0, dtype=np.int32), np.zeros(1, dtype=np.int64)
#: The factors of nothing.
NO_FACTORS = Factors(*frozen(_FIRST, _NONE, np.zeros(0), _FIRST, _NONE, np.zeros(0), np.zeros(0)))


def equations(
    source: NDArray[Any],
    target: NDArray[Any],
    probability: FloatArray,
    n: int,
    ordered: bool = False,
    diagonal: bool = False,
) -> Any:
    """The factors of I - P for n nodes: `solve(constant)`, or with `trans="T"` for the transpose.
    Every target must be one of the nodes.

    `ordered`: the numbers follow the edges, so that hardly anything fills up. `diagonal`: the
    factors keep to the diagonal, which is large enough here, for `diagonal_factors`. A
    singular matrix is a RuntimeError: some nodes are never left.
    """
    import scipy.sparse.linalg

    edges = scipy.sparse.csc_array((probability, (source, target)), shape=(n, n))
    matrix = (scipy.sparse.eye_array(n, format="csc") - edges).tocsc()
    if diagonal:
        return scipy.sparse.linalg.splu(
            matrix,
            permc_spec="MMD_AT_PLUS_A",
            diag_pivot_thresh=0.0,
            options={"SymmetricMode": True},
        )
    return scipy.sparse.linalg.splu(matrix, permc_spec="NATURAL" if ordered else "COLAMD")


def diagonal_factors(factors: Any) -> Factors | None:
    """The factors of `equations` by rows and columns; None where they do not keep to the
    diagonal.
    """
    if not np.array_equal(factors.perm_r, factors.perm_c):
        return None
    pivot = factors.U.diagonal()
    below, right = _off_diagonal(factors.L), _off_diagonal(factors.U.tocsr())
    upper = right[2] / np.repeat(pivot, np.diff(right[0]))
    return Factors(*frozen(*below, *right[:2], upper, pivot))


def own_visits(factors: Factors) -> FloatArray:
    """How often a run that begins at a node is there, itself included: the diagonal of the inverse
    of I - P, shape (n,), in the order of the factors.
    """
    diagonal = np.zeros(len(factors.pivot))
    scratch = (
        np.zeros(len(diagonal), dtype=np.int8),
        np.zeros(len(diagonal)),
        np.zeros(len(factors.below)),
        np.zeros(len(factors.right)),
    )
    inverse_diagonal(factors, *scratch, diagonal)
    return diagonal


def _off_diagonal(part: Any) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Where the rows or columns of a factor begin, and the positions and values of their entries
    behind the diagonal, in order.
    """
    part.sort_indices()
    owner = owners(part.indptr)
    mask = part.indices > owner
    return offsets_of(owner[mask], len(part.indptr) - 1), part.indices[mask], part.data[mask]
