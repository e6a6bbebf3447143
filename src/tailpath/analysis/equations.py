"""Linear equations over the edges of a chain: x = constant + P x, by sparse elimination, once factored for many constants."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from tailpath.model.ssp import FloatArray


def equations(source: NDArray[Any], target: NDArray[Any], probability: FloatArray, n: int, ordered: bool = False) -> Any:
    """The factors of I - P for n nodes: `solve(constant)`, or with `trans="T"` for the transpose. Every target must be one of the nodes.

    `ordered`: the numbers follow the edges, so that hardly anything fills up. A singular matrix is a RuntimeError: some nodes are never left.
    """
    import scipy.sparse.linalg

    edges = scipy.sparse.csc_array((probability, (source, target)), shape=(n, n))
    whole = scipy.sparse.eye_array(n, format="csc")
    return scipy.sparse.linalg.splu((whole - edges).tocsc(), permc_spec="NATURAL" if ordered else "COLAMD")
