"""Models with intervals, answered slowly in rationals, or by linear programs, by code that shares
nothing with the package.

A `Model` has, for each state that is no goal and each action, outcomes `(next_state, low, high,
cost)`. What nature can do with a choice is a polytope; the least and the greatest of anything
linear is at one of its vertices, and all of these are listed.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property
from typing import Any

import numpy as np
from scipy.optimize import linprog

from tailpath.model.interval import IntervalSSP
from tests.reference import solve

ZERO, ONE = Fraction(0), Fraction(1)
Outcome = tuple[Any, Fraction, Fraction, int]
WORST, BEST = max, min


@cache
def vertices(intervals: tuple[tuple[Fraction, Fraction], ...]) -> tuple[tuple[Fraction, ...], ...]:
    """All vertices of the probabilities in some intervals: at most one of them is neither low nor
    high.
    """
    found = set()
    for free in range(len(intervals)):
        others = [interval for i, interval in enumerate(intervals) if i != free]
        for ends in itertools.product(*others):
            rest = ONE - sum(ends)
            if intervals[free][0] <= rest <= intervals[free][1]:
                found.add((*ends[:free], rest, *ends[free:]))
    return tuple(sorted(found))


@dataclass(frozen=True)
class Model:
    choices: Mapping[Any, Mapping[Any, Sequence[Outcome]]]
    start: Any
    goals: frozenset[Any]

    def rows(self) -> list[tuple[Any, Any, Any, Any, int]]:
        return [
            (s, a, t, (lo, hi), c)
            for s, acts in self.choices.items()
            for a, outs in acts.items()
            for t, lo, hi, c in outs
        ]

    def intervals(self) -> IntervalSSP:
        return IntervalSSP.from_outcomes(self.rows(), self.start, self.goals)

    def natures(self, state: Any, action: Any) -> tuple[tuple[Fraction, ...], ...]:
        return vertices(tuple((lo, hi) for _, lo, hi, _ in self.choices[state][action]))

    def extreme(self, ext: Any, state: Any, action: Any, worth: Any) -> Fraction:
        """The extreme over nature of the expected worth of `(next_state, cost)`."""
        values = [worth(t, c) for t, _, _, c in self.choices[state][action]]
        return ext(
            sum((p * v for p, v in zip(nature, values, strict=True)), ZERO)
            for nature in self.natures(state, action)
        )


@dataclass(frozen=True)
class Answers:
    """The recursions of a model for one nature, `max` or `min`; the player minimises, or has one
    action per state.
    """

    model: Model
    ext: Any

    @cached_property
    def value(self) -> dict[Any, Fraction]:
        """V: the least over all stationary policies of the extreme over all stationary natures."""
        states = [s for s in self.model.choices if s not in self.model.goals]
        best: dict[Any, Fraction] = {}
        for policy in itertools.product(*(self.model.choices[s] for s in states)):
            extreme = self._policy_value(dict(zip(states, policy, strict=True)))
            best = {s: min(best.get(s, v), v) for s, v in extreme.items()}
        return best

    def _policy_value(self, policy: Mapping[Any, Any]) -> dict[Any, Fraction]:
        found: dict[Any, Fraction] = {}
        for natures in itertools.product(*(self.model.natures(s, a) for s, a in policy.items())):
            given = dict(zip(policy, natures, strict=True))

            def equation(
                s: Any, given: Mapping[Any, Any] = given
            ) -> tuple[dict[Any, Fraction], Fraction]:
                factor: dict[Any, Fraction] = {}
                constant = ZERO
                for (t, _, _, c), p in zip(self.model.choices[s][policy[s]], given[s], strict=True):
                    constant += p * c
                    if t not in self.model.goals:
                        factor[t] = factor.get(t, ZERO) + p
                return factor, constant

            values = solve(list(policy), equation)
            found = {s: self.ext(found.get(s, v), v) for s, v in values.items()}
        return found

    def excess(self, state: Any, w: Fraction) -> Fraction:
        """U(s, w), the least E(Z - w)+; costs must be positive."""
        return self._excess(state, Fraction(w))

    @cached_property
    def _excess(self) -> Any:
        @cache
        def excess(state: Any, w: Fraction) -> Fraction:
            if state in self.model.goals:
                return max(-w, ZERO)
            if w <= 0:
                return self.value[state] - w
            return min(
                self.model.extreme(self.ext, state, a, lambda t, c: excess(t, w - c))
                for a in self.model.choices[state]
            )

        return excess

    def late(self, state: Any, t: int) -> Fraction:
        """The least probability of a cost above t."""
        return self._late(state, t)

    @cached_property
    def _late(self) -> Any:
        @cache
        def late(state: Any, t: int) -> Fraction:
            if t < 0:
                return ONE
            if state in self.model.goals:
                return ZERO
            return min(
                self.model.extreme(self.ext, state, a, lambda s, c: late(s, t - c))
                for a in self.model.choices[state]
            )

        return late


def random_model(seed: int, states: int = 3, actions: int = 2, acyclic: bool = False) -> Model:
    """Every choice may lead to a goal, with a positive low probability, so that
    arriving is sure.
    """
    rng = random.Random(seed)
    choices: dict[Any, dict[Any, list[Outcome]]] = {}
    for s in range(states):
        choices[s] = {}
        for a in range(actions):
            ahead = range(s + 1, states) if acyclic else range(states)
            targets = ["g", *rng.sample(list(ahead), min(len(ahead), rng.randint(1, 2)))]
            if rng.random() < 0.3:
                targets.append("g")
            parts = [rng.randint(1, 6) for _ in targets]
            rows = []
            for t, part in zip(targets, parts, strict=True):
                p = Fraction(part, sum(parts))
                lo, hi = (
                    p * Fraction(rng.randint(3, 10), 10),
                    min(p * Fraction(rng.randint(10, 20), 10), ONE),
                )
                if t != "g" and rng.random() < 0.3:
                    lo = ZERO
                rows.append((t, lo, hi, rng.randint(1, 4)))
            merged: dict[tuple[Any, int], tuple[Fraction, Fraction]] = {}
            for t, lo, hi, c in rows:
                before = merged.get((t, c), (ZERO, ZERO))
                merged[t, c] = (before[0] + lo, min(before[1] + hi, ONE))
            choices[s][f"a{a}"] = [(t, lo, hi, c) for (t, c), (lo, hi) in merged.items()]
    return Model(choices, 0, frozenset({"g"}))


def cvar_by_programme(model: Model, policy: Mapping[Any, Any], alpha: float, sense: Any) -> float:
    """The extreme CVaR of a policy on an acyclic model: one linear programme over the tree of
    histories.

    x(h) is the probability of a history, between low and high times that of its parent; the worst
    tail is leaf weights y <= x of sum alpha, so that the greatest CVaR is the greatest sum of y
    times cost, divided by alpha. The least CVaR is that of w + (cost - w)+ / alpha over w and x.
    """
    low: list[tuple[int, int, float, float]] = []
    leaves: list[tuple[int, float]] = []
    count = 1
    queue: list[tuple[int, Any, int]] = [(0, model.start, 0)]
    children: dict[int, list[int]] = {}
    while queue:
        node, state, paid = queue.pop()
        if state in model.goals:
            leaves.append((node, float(paid)))
            continue
        for t, lo, hi, c in model.choices[state][policy[state]]:
            low.append((node, count, float(lo), float(hi)))
            children.setdefault(node, []).append(count)
            queue.append((count, t, paid + c))
            count += 1
    equal = [({0: 1.0}, 1.0)] + [
        ({parent: -1.0, **dict.fromkeys(kids, 1.0)}, 0.0) for parent, kids in children.items()
    ]
    less = [({parent: lo, child: -1.0}, 0.0) for parent, child, lo, _ in low]
    less += [({parent: -hi, child: 1.0}, 0.0) for parent, child, _, hi in low]
    if sense is WORST:
        size = count + len(leaves)
        less += [({count + i: 1.0, leaf: -1.0}, 0.0) for i, (leaf, _) in enumerate(leaves)]
        equal.append(({count + i: 1.0 for i in range(len(leaves))}, alpha))
        cost = {count + i: -paid / alpha for i, (_, paid) in enumerate(leaves)}
        return -_programme(size, cost, less, equal)
    # Between two costs at which runs arrive it is a line in w, and concave over nature: one
    # programme for each of them.
    return min(
        w
        + _programme(
            count, {leaf: max(paid - w, 0.0) / alpha for leaf, paid in leaves}, less, equal
        )
        for w in {paid for _, paid in leaves}
    )


def _programme(
    size: int, cost: Mapping[int, float], less: Sequence[Any], equal: Sequence[Any]
) -> float:
    def matrix(rows: Sequence[Any]) -> tuple[Any, Any]:
        table = np.zeros((len(rows), size))
        for i, (row, _) in enumerate(rows):
            for j, factor in row.items():
                table[i, j] += factor
        return table, np.array([bound for _, bound in rows])

    c = np.zeros(size)
    for j, price in cost.items():
        c[j] += price
    (a, b), (d, e) = matrix(less), matrix(equal)
    found = linprog(c, A_ub=a, b_ub=b, A_eq=d, b_eq=e, bounds=(0, None))
    assert found.status == 0
    return float(found.fun) if math.isfinite(found.fun) else math.nan
