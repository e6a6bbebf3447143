"""Bounds on expected products along a chain: of rows q, the probabilities times a factor by edge,
which may sum to more than 1.

With b the part of a row that ends the run, the expected product is the least v >= 0 with
v = b + q v, and it is finite where the powers of q fall to 0. Let T > 0 be numbers by node.

- q T < T proves that they do.
- b + q w <= w then proves v <= w, since v is the limit of 0, b, b + q b, ...
- b + q w >= w proves v >= w, since w <= b + q b + ... + q^K w for every K.

All three are checked on q (1 + d) or q (1 - d), where d is more than a step may round
(`rounding.py`), at w = v + e T and w = v - e T of a v that was found in plain doubles.
"""

from __future__ import annotations

import numpy as np

from tailpath.certify.rounding import AFTERWARDS, row_error
from tailpath.certify.values import Bounds
from tailpath.dp.expected import factorised
from tailpath.errors import LimitExceededError
from tailpath.graph import FloatArray, Transitions

#: Of values below this, products may vanish: nothing is proved. Slopes fall by as much at least.
LEAST = 1e-250


def expected_product(rows: Transitions, end: FloatArray, off: float) -> Bounds:
    """The least v >= 0 with v = end + q v, by node, q being the `probability` of rows; infinite if
    there is none. `off` is what probabilities are off by, relatively; factors may be off by what a
    power or an exponential is.
    """
    if rows.n == 0:
        return Bounds(end, end, end)
    if (found := factorised(rows, end)) is None:
        raise LimitExceededError("the chain is too large for expected products", (0.0, np.inf))
    value, how = found
    never = np.full(rows.n, np.inf)
    slopes = factorised(rows, np.maximum(value, LEAST))
    # Where the powers of q grow, what solves the equations is negative somewhere.
    if slopes is None or (value < 0).any() or not (slopes[0] > 0).all():
        return Bounds(never, np.zeros(rows.n), never, how)
    slope, size = slopes[0], np.diff(rows.row_start)
    step = row_error(size, size, off + AFTERWARDS)

    def stepped(values: FloatArray, side: int, ends: FloatArray | float = end) -> FloatArray:
        ahead = np.append(values, 0.0)[rows.target]
        return np.asarray((ends + rows.sums(rows.probability * ahead)) * (1 + side * step))

    falls = slope - stepped(slope, 1, 0.0)
    if not (falls > 0).all() or (value < LEAST).any():
        return Bounds(value, np.zeros(rows.n), never, how)
    high, low = stepped(value, 1), stepped(value, -1)
    share = max(float(np.max((high - value) / falls, initial=0.0)), 0.0)
    less = max(float(np.max((value - low) / falls, initial=0.0)), 0.0)
    upper, lower = value + 2 * share * slope, np.maximum(value - 2 * less * slope, 0.0)
    above, below = stepped(upper, 1) <= upper, stepped(lower, -1) >= lower
    return Bounds(
        value,
        lower if below.all() else np.zeros(rows.n),
        upper if above.all() else never,
        how,
    )
