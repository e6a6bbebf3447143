"""The optimum by value iteration over Pareto sets (after Meggendorfer 2022).

For a threshold v the CVaR of a policy is v + (e - v p) / alpha with p = P(Z > v) and e = E[Z; Z >
v]. So with b of the threshold left, what matters of the future is a pair

    (p, e) = (P(Z > b), E[Z; Z > b]),        (1, V*(s)) once b < 0,   (0, 0) at the goal,

and all pairs that policies can have form a convex set. An outcome of cost c turns (p, e) of its
successor at b - c into (p, e + c p); a choice mixes the sets of its outcomes (a Minkowski sum: the
edges of all of them, in order of slope), and a state has the hull of its choices. Only the side of
the hull towards small e and large p can be of use.

The start weighs (p, e) by e - v p, and a step of cost c turns this into e - (v - c) p: with b left
the direction that counts is e - b p. Whole sets grow beyond all bounds, so only corners that are
best for a direction within `WINDOW` of that one are stored, which changes nothing (a window is
carried by the steps into the same window). As it narrows, one corner is left, U(s, b) = e - b p of
`solve_cvar_exact`. The two find the same optimum, and a test says so; the sets take longer, and
nothing is gained by them for CVaR alone.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from tailpath.analysis.core import Core
from tailpath.graph import FloatArray, IntArray, members
from tailpath.kernels.rounding import SAME_VALUE
from tailpath.model.ssp import SSP
from tailpath.options import Progress, check_invertible_alpha
from tailpath.policies.budget import BudgetPolicy
from tailpath.solvers.expectation import solve_expected
from tailpath.solvers.related.levels import rising_core_of

#: Directions e - x p with |x - b| up to this many units are stored.
WINDOW = 0.25
#: Chances p that differ by no more than this are equal but for rounding.
SAME_CHANCE = 1e-15
Vertex = tuple[float, float]
Vertices = list[Vertex]


def solve_by_pareto_sets(
    ssp: SSP, alpha: float, progress: Progress | None = None
) -> tuple[float, BudgetPolicy]:
    """The least CVaR at alpha, and a policy that has it."""
    alpha = check_invertible_alpha(alpha)
    core, unit = rising_core_of(ssp, "value iteration over Pareto sets")
    expected = solve_expected(ssp)
    start = int(core.node_of[ssp.start_index])
    value = np.append(core.to_nodes(expected.value), 0.0) / unit
    sets: list[list[Vertices]] = []
    picked: list[IntArray] = []
    best, at = float(value[start]) / alpha, 0
    while len(sets) <= best:
        b = len(sets)
        corners, choices = _layer(core, value, sets)
        sets.append(corners)
        picked.append(choices)
        found = b + min(e - b * p for p, e in corners[start]) / alpha
        if found < best * (1 - SAME_VALUE):
            best, at = found, b
        if progress is not None:
            progress(b, best * unit)
    table = np.full((ssp.n_states, at + 1), -1, dtype=np.int64)
    taken = core.choice[np.array(picked[: at + 1])]
    table[ssp.choice_state[taken[0]]] = taken.T
    return best * unit, BudgetPolicy.from_table(ssp, table, expected.choices)


def _layer(
    core: Core, value: FloatArray, sets: list[list[Vertices]]
) -> tuple[list[Vertices], IntArray]:
    """The sets of all nodes with one unit left more than in all sets so far, behind them that of
    the goal; and the choice that is best for e - b p.
    """
    b, rows = len(sets), core.transitions
    level = core.level
    corners: list[Vertices] = []
    choices = np.zeros(core.n, dtype=np.int64)
    for node in range(core.n):
        everything: Vertices = []
        least = np.inf
        for choice in members(core.state_choices, node):
            parts = []
            for o in members(rows.row_start, choice):
                target, cost = int(rows.target[o]), int(level[o])
                chance = float(rows.probability[o])
                there = [(1.0, float(value[target]))] if cost > b else sets[b - cost][target]
                parts.append([(chance * p, chance * (e + cost * p)) for p, e in there])
            mixed = _sum(parts)
            score = min(e - b * p for p, e in mixed)
            if score < least - SAME_VALUE * max(1.0, abs(least) if np.isfinite(least) else 1.0):
                least, choices[node] = score, choice
            everything += mixed
        corners.append(_within(_hull(everything), b - WINDOW, b + WINDOW))
    return [*corners, [(0.0, 0.0)]], choices


def _sum(parts: list[Vertices]) -> Vertices:
    """The Minkowski sum of lower hulls: all their edges in order of slope, from the sum of their
    first corners on.
    """
    p, e = sum(part[0][0] for part in parts), sum(part[0][1] for part in parts)
    edges = [(q - p0, f - e0) for part in parts for (p0, e0), (q, f) in pairwise(part)]
    found = [(p, e)]
    for dp, de in sorted(edges, key=lambda edge: edge[1] / edge[0]):
        p, e = p + dp, e + de
        found.append((p, e))
    return found


def _hull(points: Vertices) -> Vertices:
    """The lower hull, from the least p on; of equal p the least e."""
    hull: Vertices = []
    for point in sorted(points):
        while hull and point[0] - hull[-1][0] <= SAME_CHANCE and point[1] < hull[-1][1]:
            hull.pop()  # equal but for rounding, and the one before only came first
        if hull and point[0] - hull[-1][0] <= SAME_CHANCE:
            continue
        while len(hull) > 1 and _turns_down(hull[-2], hull[-1], point):
            hull.pop()
        hull.append(point)
    return hull


def _within(hull: Vertices, low: float, high: float) -> Vertices:
    """The corners that are best for e - x p with some x in [low, high]."""
    slopes = [-np.inf, *((f - e) / (q - p) for (p, e), (q, f) in pairwise(hull)), np.inf]
    return [
        corner
        for corner, before, after in zip(hull, slopes, slopes[1:])
        if after >= low and before <= high
    ]


def _turns_down(a: Vertex, b: Vertex, c: Vertex) -> bool:
    return (b[1] - a[1]) * (c[0] - a[0]) >= (c[1] - a[1]) * (b[0] - a[0])
