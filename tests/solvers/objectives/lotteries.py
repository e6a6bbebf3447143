"""One and two decisions between lotteries, and the least mean under a limit on CVaR, in exact
rationals.

All deterministic policies are enumerated, those included that look at the cost so far, and every
mixture of them is allowed for. For one budget w the limit CVaR <= b is linear in the weights, E (Z
- w)+ <= alpha (b - w), so the least mean lies on the lower hull of the points (E (Z - w)+, E Z) of
the policies; the answer is the least over all w. Nothing here is shared with the package.
"""

from __future__ import annotations

import itertools
import math
import random
from fractions import Fraction
from operator import le
from typing import Any

from tests.reference import Model

Lottery = list[tuple[Fraction, int]]
Costs = dict[int, Fraction]
ZERO, ONE = Fraction(0), Fraction(1)


def lottery(
    draw: random.Random, costs: list[int], sizes: tuple[int, ...] = (1, 2, 3, 3)
) -> Lottery:
    """Probabilities in twentieths and different costs."""
    picked = draw.sample(costs, min(draw.choice(sizes), len(costs)))
    cuts = sorted(draw.sample(range(1, 20), len(picked) - 1))
    return [(Fraction(b - a, 20), cost) for a, b, cost in zip([0, *cuts], [*cuts, 20], picked)]


def draw_model(seed: int) -> Model:
    """One decision, or two one after the other; costs small, from few values so that budgets tie
    and cross, or from many.
    """
    draw = random.Random(seed)
    costs = draw.choice(
        [
            list(range(1, 6)),
            list(range(1, 13)),
            list(range(10, 40)),
            [1, 2, 20, 40],
            [0, 3, 6, 9, 30],
        ]
    )
    count = draw.choice([2, 2, 3])
    if draw.random() < 0.4:
        return Model(
            {
                "s": {
                    i: [("g", p, Fraction(c)) for p, c in lottery(draw, costs)]
                    for i in range(count)
                }
            },
            "s",
            frozenset("g"),
        )
    last = {i: [("g", p, Fraction(c)) for p, c in lottery(draw, costs)] for i in range(2)}
    other = {i: [("g", p, Fraction(c)) for p, c in lottery(draw, costs, (1, 2))] for i in range(2)}
    first = {
        i: [(draw.choice("ttug"), p, Fraction(c)) for p, c in lottery(draw, costs, (1, 2, 3))]
        for i in range(count)
    }
    return Model({"s": first, "t": last, "u": other}, "s", frozenset("g"))


def policies(model: Model, state: Any = "s", spent: int = 0) -> list[Costs]:
    """The distribution of the total cost of every deterministic policy, by a walk over all
    histories.
    """
    if state in model.goals:
        return [{spent: ONE}]
    found = []
    for outcomes in model.choices[state].values():
        for parts in itertools.product(
            *(policies(model, to, spent + int(c)) for to, _, c in outcomes)
        ):
            total: Costs = {}
            for (_, p, _), part in zip(outcomes, parts):
                for cost, q in part.items():
                    total[cost] = total.get(cost, ZERO) + p * q
            found.append(total)
    return [dict(each) for each in {tuple(sorted(one.items())) for one in found}]


def mean(costs: Costs) -> Fraction:
    return sum((p * z for z, p in costs.items()), ZERO)


def excess(costs: Costs, w: int) -> Fraction:
    return sum((p * (z - w) for z, p in costs.items() if z > w), ZERO)


def late(costs: Costs, t: int) -> Fraction:
    return sum((p for z, p in costs.items() if z > t), ZERO)


def least_mixture(points: list[tuple[Fraction, ...]], limits: list[Fraction]) -> Fraction | float:
    """The least first coordinate of a mixture whose others keep one limit or two; infinite if there
    is none. Of as many points as limits are tight, and one more, every mixture is tried.
    """
    kept = _undominated(points)
    found = [p[0] for p in kept if all(x <= b for x, b in zip(p[1:], limits))]
    for size in range(1, len(limits) + 1):
        for members in itertools.combinations(kept, size + 1):
            for tight in itertools.combinations(range(len(limits)), size):
                weights = _tight_mixture(members, tight, limits)
                if weights is None or min(weights) < 0:
                    continue
                mixed = [
                    sum((w * x for w, x in zip(weights, part)), ZERO) for part in zip(*members)
                ]
                if all(x <= b for x, b in zip(mixed[1:], limits)):
                    found.append(mixed[0])
    return min(found, default=math.inf)


def _undominated(points: list[tuple[Fraction, ...]]) -> list[tuple[Fraction, ...]]:
    return [p for p in set(points) if not any(q != p and all(map(le, q, p)) for q in set(points))]


def _tight_mixture(
    members: tuple[tuple[Fraction, ...], ...], tight: tuple[int, ...], limits: list[Fraction]
) -> list[Fraction] | None:
    """The weights with which some limits are kept exactly, by Cramer's rule."""
    columns = [[ONE, *(member[i + 1] - limits[i] for i in tight)] for member in members]
    whole = _determinant(columns)
    if whole == 0:
        return None
    right = [ONE, *(ZERO for _ in tight)]
    return [
        _determinant([*columns[:k], right, *columns[k + 1 :]]) / whole for k in range(len(columns))
    ]


def _determinant(rows: list[list[Fraction]]) -> Fraction:
    if len(rows) == 1:
        return rows[0][0]
    return sum(
        (
            (-1) ** i * row[0] * _determinant([other[1:] for other in rows[:i] + rows[i + 1 :]])
            for i, row in enumerate(rows)
            if row[0]
        ),
        ZERO,
    )


Asked = tuple[str, Fraction]


def least_under(
    known: list[Costs], objective: Asked, limits: list[tuple[Asked, Fraction]]
) -> Fraction | float:
    """The least objective of all mixtures that keep the limits. ("cvar", alpha) may occur once: for
    every budget w it is a loss, and its limit CVaR <= b the limit E (Z - w)+ <= alpha (b - w).
    """
    tails = [at for kind, at in (objective, *(measure for measure, _ in limits)) if kind == "cvar"]
    budgets = range(max(map(max, known)) + 1) if tails else [0]

    def value(costs: Costs, asked: Asked, w: int) -> Fraction:
        kind, at = asked
        if kind == "cvar":
            return w + excess(costs, w) / at
        return {"mean": lambda: mean(costs), "late": lambda: late(costs, int(at))}.get(
            kind, lambda: excess(costs, int(at))
        )()

    return min(
        least_mixture(
            [
                (value(costs, objective, w), *(value(costs, each, w) for each, _ in limits))
                for costs in known
            ],
            [bound for _, bound in limits],
        )
        for w in budgets
    )


def lower_hull(points: list[tuple[Fraction, Fraction]]) -> list[tuple[Fraction, Fraction]]:
    """The corners of the lower left hull: rising risk, falling mean."""
    hull: list[tuple[Fraction, Fraction]] = []
    for x, y in sorted(points):
        if hull and y >= hull[-1][1]:
            continue
        while len(hull) > 1:
            (a, b), (c, d) = hull[-2:]
            if (d - b) * (x - a) < (y - b) * (c - a):
                break
            hull.pop()
        hull.append((x, y))
    return hull


class Curve:
    """The least mean against CVaR_alpha, exactly."""

    def __init__(self, model: Model, alpha: Fraction) -> None:
        self.costs = policies(model)
        most = max(max(costs) for costs in self.costs)
        self.hulls = [
            [
                (w + r / alpha, m)
                for r, m in lower_hull([(excess(costs, w), mean(costs)) for costs in self.costs])
            ]
            for w in range(most + 1)
        ]
        self.least_risk = min(hull[0][0] for hull in self.hulls)
        self.least_mean = min(mean(costs) for costs in self.costs)
        self.most_risk = min(hull[-1][0] for hull in self.hulls if hull[-1][1] == self.least_mean)

    def at(self, risk: Fraction) -> Fraction | float:
        """The least mean with a CVaR of at most `risk`; infinite if there is no policy."""
        return min((_height(hull, risk) for hull in self.hulls), default=math.inf)

    def places(self) -> list[Fraction]:
        """Where something may happen: corners and crossings of all hulls, and points between them,
        from the least risk to the largest.
        """
        pieces = [piece for hull in self.hulls for piece in itertools.pairwise(hull)]
        found = {x for hull in self.hulls for x, _ in hull}
        for ((a, b), (c, d)), ((e, f), (g, h)) in itertools.combinations(pieces, 2):
            one, two = (d - b) / (c - a), (h - f) / (g - e)
            if one != two and max(a, e) < min(c, g):
                found.add((f - b + one * a - two * e) / (one - two))
        inside = sorted(x for x in found if self.least_risk <= x <= self.most_risk)
        return sorted({*inside, *((a + b) / 2 for a, b in itertools.pairwise(inside))})


def _height(hull: list[tuple[Fraction, Fraction]], risk: Fraction) -> Fraction | float:
    if risk < hull[0][0]:
        return math.inf
    for (a, b), (c, d) in itertools.pairwise(hull):
        if risk < c:
            return b + (d - b) * (risk - a) / (c - a)
    return hull[-1][1]
