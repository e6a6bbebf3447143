"""Linear equations over the arrows of a chain: x = constant + P x, by sparse elimination, once factored for many constants, or by approach."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tailpath.model.ssp import FloatArray


def equations(source: NDArray[Any], target: NDArray[Any], probability: FloatArray, n: int, ordered: bool = False) -> Any:
    """The factors of I - P for n nodes: `solve(constant)`, or with `trans="T"` for the transpose. Every target must be one of the nodes.

    `ordered`: the numbers follow the arrows, so that hardly anything fills up. A singular matrix is a RuntimeError: some nodes are never left.
    """
    import scipy.sparse.linalg

    arrows = scipy.sparse.csc_array((probability, (source, target)), shape=(n, n))
    whole = scipy.sparse.eye_array(n, format="csc")
    return scipy.sparse.linalg.splu((whole - arrows).tocsc(), permc_spec="NATURAL" if ordered else "COLAMD")


def approached(
    product: Callable[[FloatArray], FloatArray], constant: FloatArray, first: FloatArray, gain: float, most: int
) -> FloatArray | None:
    """A rough solution of x = constant + P x, where `product` is P x: `first`, with its residual made smaller by the factor `gain`.

    By the stabilised method of biconjugate gradients (van der Vorst), which needs few products where the arrows mix well: None if it took more than
    `most` pairs of them, or broke down. Sums are numpy's own, the same whatever threads a library for matrices has.
    """
    x = first.copy()
    residual = constant + product(x) - x
    shadow, direction = residual.copy(), residual.copy()
    aligned = enough = _dot(residual, residual)
    enough *= gain * gain
    with np.errstate(all="ignore"):
        for _ in range(most):
            if _dot(residual, residual) <= enough:
                return x
            image = direction - product(direction)
            step = aligned / _dot(shadow, image)
            residual -= step * image
            turned = residual - product(residual)
            weight = _dot(turned, residual) / _dot(turned, turned)
            x += step * direction + weight * residual
            residual -= weight * turned
            before, aligned = aligned, _dot(residual, shadow)
            direction = residual + (aligned / before) * (step / weight) * (direction - weight * image)
    return None


def _dot(a: FloatArray, b: FloatArray) -> np.float64:
    return np.sum(a * b)
