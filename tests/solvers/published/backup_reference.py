"""The Bellman operator of the CVaR planners, two slow ways: a knapsack in fractions, and the
textbook linear program by a generic solver.

Values are `{state: [V(s, y) for y in atoms]}`, goals included with zeros. `atoms` is one list, or a
list for every state.
"""

from fractions import Fraction

import numpy as np
from scipy.optimize import linprog

from tests.reference import Model


def of(atoms, state):
    """The atoms of a state."""
    return atoms[state] if isinstance(atoms, dict) else atoms


def areas(atoms, values):
    """The points (y, y V), the origin first."""
    return [Fraction(0), *(y * v for y, v in zip(atoms, values, strict=True))]


def knapsack(outcomes, atoms, value, y, gamma=1):
    """max over xi of sum P xi (c + gamma V(s', y xi)): segments sorted by slope, the steepest
    first, until the mass y is full.
    """
    segments = []
    for target, p, cost in outcomes:
        own = of(atoms, target)
        area = areas(own, value[target])
        for low, high, before, after in zip([Fraction(0), *own], own, area, area[1:], strict=False):
            segments.append((cost + gamma * (after - before) / (high - low), p * (high - low)))
    left, total = y, Fraction(0)
    for slope, mass in sorted(segments, reverse=True):
        total += slope * min(mass, left)
        left -= min(mass, left)
    return total / y


def linear_program(outcomes, atoms, value, y, gamma=1.0):
    """The same maximum as Chow et al. write it: variables xi and t per outcome, t below every line
    of the interpolation.
    """
    n = len(outcomes)
    rows, right = [], []
    for k, (target, _, cost) in enumerate(outcomes):
        own = of(atoms, target)
        area = [float(a) for a in areas(own, value[target])]
        points = [0.0, *map(float, own)]
        for j in range(len(own)):
            slope = (area[j + 1] - area[j]) / (points[j + 1] - points[j])
            row = np.zeros(2 * n)
            row[n + k], row[k] = 1.0, -(float(cost) + gamma * slope)
            rows.append(row)
            right.append(gamma * (area[j] - slope * points[j]) / float(y))
    chance = np.array([float(p) for _, p, _ in outcomes])
    found = linprog(
        np.concatenate([np.zeros(n), -chance]),
        A_ub=np.array(rows),
        b_ub=np.array(right),
        A_eq=np.concatenate([chance, np.zeros(n)])[None, :],
        b_eq=[1.0],
        bounds=[(0.0, 1.0 / float(y))] * n + [(None, None)] * n,
        method="highs-ds",
    )
    assert found.status == 0
    return -found.fun


def finite_values(solution):
    """A solution's values as fractions, by state name, where they are finite."""
    rows = zip(solution.ssp.states, solution.value.tolist(), strict=True)
    return {s: [Fraction(v) for v in values] for s, values in rows if np.isfinite(values[0])}


def exact_values(model: Model, order, atoms):
    """The fixed point on a model without cycles, states given in an order in which outcomes only
    lead forward.
    """
    value = {g: [Fraction(0)] * len(of(atoms, g)) for g in model.goals}
    for s in reversed(order):
        value[s] = [
            min(knapsack(outcomes, atoms, value, y) for outcomes in model.choices[s].values())
            for y in of(atoms, s)
        ]
    return value
