"""The same questions in exact rationals, and as linear programs over (state, cost so far); nothing
here is shared with the package.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from scipy.optimize import linprog

from tests.reference import Model, State, expected_optimum, sure_choices

ZERO, ONE = Fraction(0), Fraction(1)
END = ("end",)
SHIFT = Fraction(1000)
Loss = Callable[[Fraction], Fraction]


def _level(
    model: Model,
    actions: dict[State, list[Any]],
    later: Callable[[State, Fraction], Fraction],
    stay: Fraction,
    stuck: Any,
) -> Any:
    """One level of cost: outcomes that cost something, or arrive, end at the price of what follows;
    those who are stuck may stay at a price.
    """
    choices: dict[State, dict[Any, Any]] = {}
    for s, acts in actions.items():
        choices[s] = {
            a: [
                (t, p, ZERO) if c == 0 and t not in model.goals else (END, p, later(t, c))
                for t, p, c in model.choices[s][a]
            ]
            for a in acts
        }
        if s in stuck:
            choices[s]["stay"] = [(END, ONE, stay)]
    return expected_optimum(Model(choices, next(iter(choices)), frozenset([END])))


def reaching(model: Model) -> set[State]:
    """The states from which a goal can be reached at all."""
    found = set(model.goals)
    while True:
        more = {s for s, _, t, _, _ in model.rows() if t in found} - found
        if not more:
            return found
        found |= more


def exact_lateness(model: Model, unit: Fraction, units: int) -> list[Fraction]:
    """The least P(Z > t) over all policies, sure or not, for t = 0, 1, ..., units."""
    late: dict[tuple[State, int], Fraction] = {}
    everything = {s: list(actions) for s, actions in model.choices.items() if s not in model.goals}

    def later(state: State, left: int) -> Fraction:
        return ONE if left < 0 else ZERO if state in model.goals else late[state, left]

    for t in range(units + 1):
        found = _level(
            model, everything, lambda s, c, t=t: later(s, t - int(c / unit)), ONE, everything
        )
        late |= {(s, t): found[s] for s in everything}
    return [later(model.start, t) for t in range(units + 1)]


def exact_loss(model: Model, unit: Fraction, loss: Loss, slope: Fraction, units: int) -> Fraction:
    """The least E[h(Z)], h linear with `slope` from `units` on; with slope 0 never arriving is
    worth h at the end.

    Nobody cycles for ever at no cost where a goal can be reached. A loss may be negative, so all of
    it is shifted up for the while.
    """
    flat = slope == 0
    neutral = expected_optimum(model)
    actions = (
        {s: list(a) for s, a in model.choices.items() if s not in model.goals}
        if flat
        else sure_choices(model)
    )
    dead = [s for s in actions if s not in reaching(model)]
    worth: dict[tuple[State, int], Fraction] = {}

    def at(state: State, spent: int) -> Fraction:
        if state in model.goals:
            return loss(spent * unit)
        if spent >= units:
            return loss(spent * unit) + (ZERO if flat else slope * neutral[state])
        return worth[state, spent]

    for spent in range(units - 1, -1, -1):
        found = _level(
            model,
            actions,
            lambda s, c, spent=spent: at(s, spent + int(c / unit)) + SHIFT,
            loss(units * unit) + SHIFT,
            dead,
        )
        worth |= {(s, spent): found[s] - SHIFT for s in actions}
    return at(model.start, 0)


def least_under_limits(
    model: Model,
    unit: Fraction,
    losses: Sequence[Loss],
    slopes: Sequence[Fraction],
    bounds: Sequence[float],
    units: int,
) -> float:
    """The least E h_0 with E h_i <= b_i over all policies, randomised and with any memory: an
    occupation LP. Infinite if there is none.

    From `units` on all losses rise in a straight line, so the least expected rest is best for all
    of them.
    """
    neutral, safe = expected_optimum(model), sure_choices(model)
    if model.start in model.goals:
        return (
            float(losses[0](ZERO))
            if all(loss(ZERO) <= b for loss, b in zip(losses[1:], bounds))
            else math.inf
        )
    number = {(s, g): i for i, (s, g) in enumerate((s, g) for g in range(units) for s in safe)}
    columns = [(s, g, a) for g in range(units) for s in safe for a in safe[s]]
    flow = np.zeros((len(number), len(columns)))
    price = np.zeros((len(losses), len(columns)))
    for k, (s, g, a) in enumerate(columns):
        flow[number[s, g], k] += 1
        for t, p, c in model.choices[s][a]:
            spent = g + int(c / unit)
            if t in model.goals or spent >= units:
                rest = 0 if t in model.goals else float(neutral[t])
                price[:, k] += [
                    float(p) * (float(loss(spent * unit)) + float(slope) * rest)
                    for loss, slope in zip(losses, slopes)
                ]
            else:
                flow[number[t, spent], k] -= float(p)
    source = np.zeros(len(number))
    source[number[model.start, 0]] = 1
    options = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
    found = linprog(
        price[0],
        A_ub=price[1:] if len(bounds) else None,
        b_ub=bounds or None,
        A_eq=flow,
        b_eq=source,
        method="highs",
        options=options,
    )
    return float(found.fun) if found.status == 0 else math.inf
