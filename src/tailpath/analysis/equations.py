"""Linear equations over the edges of a chain: x = constant + P x, by sparse elimination, once
factored for many constants.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tailpath.graph import offsets_of
from tailpath.kernels.inverse import Factors, inverse_diagonal
from tailpath.kernels.jit import frozen
from tailpath.model.ssp import FloatArray


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
    factors keep to the diagonal, which is large enough here, and `own_visits` takes them. A
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


def own_visits(factors: Any) -> FloatArray | None:
    """How often a run that begins at a node is there, itself included: the diagonal of the inverse
    of I - P, shape (n,).

    None where the factors do not keep to the diagonal.
    """
    if not np.array_equal(factors.perm_r, factors.perm_c):
        return None
    pivot = factors.U.diagonal()
    below, right = _off_diagonal(factors.L), _off_diagonal(factors.U.tocsr())
    upper = right[2] / np.repeat(pivot, np.diff(right[0]))
    diagonal = np.zeros(len(pivot))
    scratch = (
        np.zeros(len(pivot), dtype=np.int8),
        np.zeros(len(pivot)),
        np.zeros(len(below[1])),
        np.zeros(len(upper)),
    )
    inverse_diagonal(Factors(*frozen(*below, *right[:2], upper, pivot)), *scratch, diagonal)
    found: FloatArray = diagonal[factors.perm_c]
    return found


def _off_diagonal(part: Any) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Where the rows or columns of a factor begin, and the places and values of their entries
    behind the diagonal, in order.
    """
    part.sort_indices()
    owner = np.repeat(np.arange(len(part.indptr) - 1), np.diff(part.indptr))
    kept = part.indices > owner
    return offsets_of(owner[kept], len(part.indptr) - 1), part.indices[kept], part.data[kept]
