"""Small absorbing chains in rationals, and their exact totals."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from hypothesis import strategies as st

from tailpath.graph import Transitions
from tests.reference import solve

Rows = list[dict[int, Fraction]]
Rates = list[Fraction]


@st.composite
def chains(draw: st.DrawFn) -> tuple[Rows, Rates]:
    """Rows over nodes 0 .. n-1 and n (outside); every node may step on to the next, so absorption
    is sure.
    """
    n = draw(st.integers(1, 7))
    rows = []
    for x in range(n):
        weights = {x + 1: draw(st.integers(1, 9))}
        for y in draw(st.lists(st.integers(0, n), max_size=3)):
            weights[y] = weights.get(y, 0) + draw(st.integers(1, 9))
        rows.append({y: Fraction(w, sum(weights.values())) for y, w in weights.items()})
    return rows, [Fraction(draw(st.integers(0, 20)), 4) for _ in range(n)]


def arrays(rows: Rows, rates: Rates) -> tuple[Transitions, Any]:
    start = np.concatenate(([0], np.cumsum([len(row) for row in rows]))).astype(np.int64)
    target = [y for row in rows for y in row]
    probability = [float(p) for row in rows for p in row.values()]
    return chain_of(start, target, probability), np.array([float(r) for r in rates])


def chain_of(start: Any, target: Any, probability: Any) -> Transitions:
    """Rows that cost nothing by themselves."""
    columns = np.asarray(target, dtype=np.int32), np.asarray(probability, dtype=np.float64)
    return Transitions(start, *columns, np.zeros(len(columns[0])), None)


def exact_values(rows: Rows, rates: Rates) -> list[Fraction]:
    n = len(rows)
    found = solve(range(n), lambda x: ({y: p for y, p in rows[x].items() if y < n}, rates[x]))
    return [found[x] for x in range(n)]
