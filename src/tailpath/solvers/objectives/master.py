"""The best mixture of some policies under limits, by the simplex method in exact arithmetic.

Policy k is a column (1, r_k1 - b_1, r_k2 - b_2, ..) with the cost c_k: its losses r less the limits
b. The least sum of x_k c_k with x >= 0, all x together 1 and every other row at most 0 is a linear
program with a handful of rows. Limits of 0, limits that only one policy keeps, and limits of 1e-20
beside others of 5 are then limits like all others: floats are rationals, nothing is rounded, and
the multipliers prove the value, also where a policy that just misses a limit has the weight 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from tailpath.graph import FloatArray

#: Multipliers and values are floats again; none is larger.
MOST = Fraction(10) ** 250
Vector = Sequence[Fraction]


class Mixture(NamedTuple):
    """The best mixture of columns: `weights` per column, `multipliers` >= 0 per limit, and the
    value.
    """

    weights: FloatArray
    multipliers: FloatArray
    value: float


def best_mixture(cost: FloatArray, rows: FloatArray, limits: FloatArray) -> Mixture | None:
    """Minimise `cost @ x` over mixtures x (non-negative, summing to 1) with `rows @ x <= limits`;
    None if no mixture keeps the limits. No more columns have a weight than there are limits, and
    one more.
    """
    bounds, one = [Fraction(limit) for limit in limits.tolist()], Fraction(1)
    columns: list[Vector] = [
        [one, *(Fraction(loss) - bound for loss, bound in zip(losses, bounds))]
        for losses in rows.T.tolist()
    ]
    size, n = len(bounds) + 1, len(cost)
    # Behind the policies what is left of each limit; last what is missing of the sum, and has to
    # vanish first.
    columns += [[Fraction(i == row) for i in range(size)] for row in (*range(1, size), 0)]
    missing, basis = n + size - 1, [n + size - 1, *range(n, n + size - 1)]
    if _descend(columns, [Fraction(0)] * missing + [one], basis, missing)[missing] > 0:
        return None
    costs = [Fraction(each) for each in cost.tolist()] + [Fraction(0)] * size
    weights = _descend(columns, costs, basis, missing)
    multipliers = _solve([columns[k] for k in basis], [costs[k] for k in basis])[1:]
    return Mixture(
        np.array([float(weight) for weight in weights[:n]]),
        np.array([float(min(-each, MOST)) for each in multipliers]),
        float(sum((c * x for c, x in zip(costs, weights)), Fraction(0))),
    )


def _descend(columns: list[Vector], cost: Vector, basis: list[int], missing: int) -> list[Fraction]:
    """Exchange columns of the basis until no other lowers the cost; the weight of every column.
    Always the first that does, by Bland's rule: it does not go round in circles.
    """
    while True:
        prices = _solve([columns[k] for k in basis], [cost[k] for k in basis])
        enters = next(
            (
                k
                for k in range(missing)
                if cost[k] < sum(price * entry for price, entry in zip(prices, columns[k]) if price)
            ),
            None,
        )
        inside = list(zip(*(columns[k] for k in basis)))
        weight = _solve(inside, [Fraction(i == 0) for i in range(len(basis))])
        if enters is None:
            weights = [Fraction(0)] * len(columns)
            for k, share in zip(basis, weight):
                weights[k] = share
            return weights
        loses = _solve(inside, columns[enters])
        # What is missing stays away once it has gone.
        leaves = min(
            (
                (share / loss if loss > 0 else Fraction(0), k, position)
                for position, (k, share, loss) in enumerate(zip(basis, weight, loses))
                if loss > 0 or (loss < 0 and k == missing and share == 0)
            )
        )
        basis[leaves[2]] = enters


def _solve(rows: Sequence[Vector], right: Vector) -> list[Fraction]:
    """x with `rows @ x = right`."""
    lines = [[*row, end] for row, end in zip(rows, right)]
    for i in range(len(lines)):
        pivot = next(j for j in range(i, len(lines)) if lines[j][i])
        lines[i], lines[pivot] = lines[pivot], lines[i]
        lines[i] = [each / lines[i][i] for each in lines[i]]
        for j, line in enumerate(lines):
            if j != i and line[i]:
                lines[j] = [a - line[i] * b if b else a for a, b in zip(line, lines[i])]
    return [line[-1] for line in lines]
