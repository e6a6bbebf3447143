"""The diagonal of the inverse of a sparse matrix, from its factors: Takahashi's equations.

With A = L D U, L and U of unit diagonal, and Z the inverse of A,

    Z = D^-1 L^-1 + (I - U) Z = U^-1 D^-1 + Z (I - L).

Read from the last row on, they give every entry of Z that lies on the pattern of the factors'
transpose by others that do (Erisman and Tinney 1975), at about the cost of the factors themselves,
where solving for every column takes n times a solve. For I - P, P without negative entries, all
terms have one sign: nothing cancels.
"""

from __future__ import annotations

from typing import NamedTuple

from tailpath.kernels.jit import Array, kernel


class Factors(NamedTuple):
    """The entries off the diagonal of L by column and of U by row, and D. Shapes: (n + 1,), (l,),
    (l,), (n + 1,), (u,), (u,), (n,).
    """

    below_start: Array
    below: Array
    lower: Array
    right_start: Array
    right: Array
    upper: Array
    pivot: Array


@kernel
def inverse_diagonal(
    factors: Factors,
    member: Array,
    total: Array,
    out_across: Array,
    out_down: Array,
    out_diagonal: Array,
) -> None:
    """Fill Z[j, below[e]] into `out_across[e]`, Z[right[e], j] into `out_down[e]`, and Z[j, j].

    `member` and `total` are scratch, shape (n,); `member` holds zeros.
    """
    below_start, below, lower, right_start, right, upper, pivot = factors
    for j in range(len(pivot) - 1, -1, -1):
        first, last = below_start[j], below_start[j + 1]
        begin, end = right_start[j], right_start[j + 1]
        # Z[j, i] = - sum U[j, k] Z[k, i] for i in the column of L.
        for e in range(first, last):
            member[below[e]] = 1
            total[below[e]] = 0.0
        for f in range(begin, end):
            k = right[f]
            if member[k] == 1:
                total[k] -= upper[f] * out_diagonal[k]
            for e in range(below_start[k], below_start[k + 1]):
                if member[below[e]] == 1:
                    total[below[e]] -= upper[f] * out_across[e]
        for f in range(begin, end):
            member[right[f]] += 2
        for e in range(first, last):
            i = below[e]
            for f in range(right_start[i], right_start[i + 1]):
                if member[right[f]] >= 2:
                    total[i] -= _entry(begin, end, right, upper, right[f]) * out_down[f]
            out_across[e] = total[i]
        # Z[i, j] = - sum Z[i, k] L[k, j] for i in the row of U.
        for f in range(begin, end):
            total[right[f]] = 0.0
        for e in range(first, last):
            k = below[e]
            if member[k] >= 2:
                total[k] -= lower[e] * out_diagonal[k]
            for f in range(right_start[k], right_start[k + 1]):
                if member[right[f]] >= 2:
                    total[right[f]] -= lower[e] * out_down[f]
        own = 1.0 / pivot[j]
        for f in range(begin, end):
            i = right[f]
            for e in range(below_start[i], below_start[i + 1]):
                if member[below[e]] == 1 or member[below[e]] == 3:
                    total[i] -= _entry(first, last, below, lower, below[e]) * out_across[e]
            out_down[f] = total[i]
            own -= upper[f] * total[i]
        out_diagonal[j] = own
        for e in range(first, last):
            member[below[e]] = 0
        for f in range(begin, end):
            member[right[f]] = 0


@kernel(inline=True)
def _entry(first: int, last: int, index: Array, value: Array, wanted: int) -> float:
    """The value at an index; the indices rise."""
    while first < last:
        middle = (first + last) >> 1
        if index[middle] < wanted:
            first = middle + 1
        else:
            last = middle
    return float(value[first])


@kernel
def inverse_entry(factors: Factors, column: int, flow: Array, other: Array) -> float:
    """The entry `column` of the product of a row and the inverse, from the few places where the row
    is not 0 on; `flow`, the row, and `other`, zeros, are zeros afterwards.
    """
    below_start, below, lower, right_start, right, upper, pivot = factors
    other[column] = 1.0
    found = 0.0
    for j in range(len(pivot)):
        if other[j] != 0.0:  # L^-1 applied to the column
            for e in range(below_start[j], below_start[j + 1]):
                other[below[e]] -= lower[e] * other[j]
        if flow[j] != 0.0:  # the row times U^-1
            for e in range(right_start[j], right_start[j + 1]):
                flow[right[e]] -= upper[e] * flow[j]
            found += flow[j] * other[j] / pivot[j]
        flow[j] = other[j] = 0.0
    return found
