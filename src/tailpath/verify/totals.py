"""Expected totals of an absorbing chain, enclosed in integer multiples of 2^-BITS.

The total V of a rate r >= 0 solves v = r + P v. Floats guess v and the expected steps t, and each
residual, taken exactly, corrects v, until v is good to some forty digits. Then one look at every
node proves it: if v + e t >= r + P (v + e t) everywhere, V lies below; and above v - e t likewise.
Where floats are of no help, a small chain is solved in rationals instead.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from tailpath.errors import OptionError
from tailpath.verify.chain import GOAL, IntegerRow, Walk, eliminate_exactly, leading_to, moves_of

BITS = 400
ONE = 1 << BITS
LARGEST_EXACT = 120
#: The share e of the expected steps counts 2^-SHARE.
SHARE = 500


def rate(row: IntegerRow) -> Fraction:
    """The expected cost of a step."""
    return Fraction(sum(w * cost for _, w, cost in row[1]), row[0])


def enclosed_totals(rows: list[IntegerRow], rates: list[Fraction]) -> list[tuple[int, int]]:
    """Lower and upper bound on the expected total from every node, in units of 2^-BITS. All rows
    must lead to the goal surely.
    """
    if not rows:
        return []
    # Everywhere else nothing is ever to pay, and the total is 0 exactly.
    paying = leading_to((node for node, rate in enumerate(rates) if rate > 0), moves_of(rows))
    if len(paying) < len(rows):
        position = {node: k for k, node in enumerate(sorted(paying))}
        remaining = [
            (rows[node][0], [(position.get(to, GOAL), w, c) for to, w, c in rows[node][1]])
            for node in position
        ]
        inner = enclosed_totals(remaining, [rates[node] for node in position])
        return [inner[position[k]] if k in paying else (0, 0) for k in range(len(rows))]
    guess = _guessed(rows, rates)
    if guess is not None:
        value, steps = guess
        bounds = _proved(rows, rates, value, steps)
        if bounds is not None:
            return bounds
    if len(rows) > LARGEST_EXACT:
        raise OptionError(
            f"the checker cannot enclose the expected costs of {len(rows)} nodes: the chain mixes"
            " too slowly for its size"
        )
    exact = solved(rows, rates)
    return [(_floor(v), -_floor(-v)) for v in exact]


def _floor(value: Fraction) -> int:
    return (value.numerator << BITS) // value.denominator


def _guessed(rows: list[IntegerRow], rates: list[Fraction]) -> tuple[list[int], list[int]] | None:
    from scipy.sparse import csc_array, eye_array
    from scipy.sparse.linalg import splu

    n = len(rows)
    entries = [
        (node, to, w / denominator)
        for node, (denominator, edges) in enumerate(rows)
        for to, w, _ in edges
        if to != GOAL
    ]
    source, target, p = zip(*entries) if entries else ((), (), ())
    matrix = eye_array(n, format="csc") - csc_array(
        (np.array(p, dtype=float), (source, target)), shape=(n, n)
    )
    try:
        factors = splu(matrix.tocsc())
        steps = factors.solve(np.ones(n))
        first = factors.solve(np.array([float(r) for r in rates]))
    except (RuntimeError, OverflowError):
        return None
    if not (np.all(np.isfinite(steps)) and np.all(np.isfinite(first)) and steps.min() >= 0.5):
        return None
    value = [_floor(Fraction(v)) for v in first.tolist()]
    integer_rates = [_floor(r) for r in rates]
    for _ in range(12):
        residual = [
            integer_rates[node] - value[node] + _ahead(rows[node], value) for node in range(n)
        ]
        worst = max(abs(r) for r in residual)
        if worst <= 1 << 40:
            break
        scale = max(worst.bit_length() - 60, 0)
        change: Any = factors.solve(np.array([float(r >> scale) for r in residual]))
        if not np.all(np.isfinite(change)):
            return None
        value = [v + (int(c) << scale) for v, c in zip(value, change.tolist())]
    return value, [_floor(Fraction(1.01 * t)) for t in steps.tolist()]


def _ahead(row: IntegerRow, value: list[int]) -> int:
    """P v at one node, rounded down."""
    denominator, edges = row
    return sum(w * value[to] for to, w, _ in edges if to != GOAL) // denominator


def _proved(
    rows: list[IntegerRow], rates: list[Fraction], value: list[int], steps: list[int]
) -> list[tuple[int, int]] | None:
    """Bounds v - e t and v + e t with the least e that the exact inequalities allow, or None."""
    share = 0
    for node, row in enumerate(rows):
        drift = steps[node] - _ahead(row, steps) - 1
        if drift <= 0:
            return None
        n, d = rates[node].numerator, rates[node].denominator
        defect = abs((value[node] - _ahead(row, value)) * d - n * ONE) + d
        share = max(share, -((-defect << SHARE) // (d * drift)))
    up = [-((-share * t) >> SHARE) for t in steps]
    return [(max(v - d, 0), v + d) for v, d in zip(value, up)]


def solved(rows: list[IntegerRow], rates: list[Fraction]) -> list[Fraction]:
    """Elimination in rationals; the rate is what every step comes to besides."""
    walk: Walk = {}
    for node, (denominator, edges) in enumerate(rows):
        walk[node] = {GOAL: rates[node]}
        for to, w, _ in edges:
            if to != GOAL:
                walk[node][to] = walk[node].get(to, Fraction(0)) + Fraction(w, denominator)
    eliminate_exactly(walk)
    return [row[GOAL] for row in walk.values()]
