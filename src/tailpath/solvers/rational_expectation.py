"""Policy iteration in exact rationals, for small cores on which floating point proves nothing useful.

Probabilities and costs are read as the decimals that they stand for, rows scaled to sum to 1; elimination is exact, so the last policy is optimal.
The bounds are its value, widened for rows that were scaled before: by the matrix-tree theorem (see `kernels/absorption.py`) a relative change of
eps in all probabilities moves the value of any policy on n nodes by at most (2 n + 2) eps, hence their minimum too.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tailpath.analysis.absorption import Bracket
from tailpath.analysis.core import Core
from tailpath.kernels.rounding import UNIT
from tailpath.model.cost_units import as_fraction

Row = dict[int, Fraction]


def solve_core_exactly(core: Core, chosen: NDArray[np.int64]) -> tuple[NDArray[np.int64], Bracket]:
    """The optimum of a core, from a proper policy on, with the bounds that rounded probabilities allow."""
    policy, value = rational_optimum(core, chosen)
    rounded = np.array([_float(v) for v in value])
    longest = int(np.diff(core.choice_outcomes).max(initial=0))
    doubt = (2 * core.n + 2) * (longest + 3) * UNIT
    return policy, Bracket(rounded, rounded * (1 - doubt), rounded * (1 + doubt), "rationals")


def _float(value: Fraction) -> float:
    """The nearest float, or infinity beyond them."""
    try:
        return float(value)
    except OverflowError:
        return math.inf


def rational_optimum(core: Core, chosen: NDArray[np.int64]) -> tuple[NDArray[np.int64], list[Fraction]]:
    """Improve a proper policy until no choice of any node is strictly better, in rationals."""
    rows, rates = _rational_choices(core)
    policy = chosen.tolist()
    while True:
        value = _evaluate(core.n, [rows[k] for k in policy], [rates[k] for k in policy])
        moved = False
        for node in range(core.n):
            first, last = int(core.state_choices[node]), int(core.state_choices[node + 1])
            costs = [rates[k] + sum((p * value[to] for to, p in rows[k].items()), Fraction(0)) for k in range(first, last)]
            best = min(costs)
            if best < costs[policy[node] - first]:
                policy[node] = first + costs.index(best)
                moved = True
        if not moved:
            return np.array(policy, dtype=np.int64), value


def _rational_choices(core: Core) -> tuple[list[Row], list[Fraction]]:
    rows: list[Row] = []
    rates: list[Fraction] = []
    for choice in range(len(core.choice_outcomes) - 1):
        outcomes = range(int(core.choice_outcomes[choice]), int(core.choice_outcomes[choice + 1]))
        weight = [as_fraction(float(core.probability[o])) for o in outcomes]
        total = sum(weight)
        row: Row = {}
        rate = Fraction(0)
        for outcome, w in zip(outcomes, weight):
            rate += w / total * as_fraction(float(core.ssp.outcome_cost[core.outcome[outcome]]))
            to = int(core.target[outcome])
            if to < core.n:
                row[to] = row.get(to, Fraction(0)) + w / total
        rows.append(row)
        rates.append(rate)
    return rows, rates


def _evaluate(n: int, rows: list[Row], rates: list[Fraction]) -> list[Fraction]:
    """Solve v = r + P v by elimination, last node first, then substitute forwards."""
    matrix: list[dict[int, Any]] = [dict(row) for row in rows]
    gain = list(rates)
    into: list[set[int]] = [set() for _ in range(n)]
    for i, row in enumerate(matrix):
        for j in row:
            into[j].add(i)
    for k in range(n - 1, -1, -1):
        scale = 1 / (1 - matrix[k].pop(k, Fraction(0)))
        matrix[k] = {j: p * scale for j, p in matrix[k].items()}
        gain[k] *= scale
        for i in [i for i in into[k] if i < k]:
            weight = matrix[i].pop(k)
            gain[i] += weight * gain[k]
            for j, p in matrix[k].items():
                matrix[i][j] = matrix[i].get(j, Fraction(0)) + weight * p
                into[j].add(i)
    for k in range(n):
        gain[k] += sum((p * gain[j] for j, p in matrix[k].items()), Fraction(0))
    return gain
