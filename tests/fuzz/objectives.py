"""Random models whose answers are known in exact rationals, against every verb that claims bounds.

- decisions between lotteries, at costs from 1e-13 to 1e9: all objectives; limits that are tight,
  loose, and tighter than anybody can keep
- the same with limits of 0, of next to nothing and at the least, alone and two in both orders
- walks of up to 400 states that cost nothing and slip back: the chance of the arm that pays, in
  `solve_expected` and `evaluate`
- costs without a unit: lateness and shortfall at exact sums of decimals
- goals that may be missed: lateness, bounded losses, the probability of never arriving
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

import tailpath as tp
from tailpath.errors import InfeasibleError, OptionError
from tests.reference import to_ssp
from tests.solvers.objectives.edges import check
from tests.solvers.objectives.lotteries import (
    Costs,
    Curve,
    draw_model,
    excess,
    late,
    lower_hull,
    mean,
    policies,
)

#: What a limit may be off, relatively: it is a float, and kept within 1e-12.
OFF = Fraction(1, 10**9)
UNITLESS = [0.1, 0.2, 0.3, 1e-8, 3e6, 3.141592653589793, 1.3, 7.0]


def attempt(number: int) -> Iterator[str]:
    """Draw one of the kinds; yields what was checked."""
    draw = random.Random(f"objectives {number}")
    kind = draw.choices([lotteries, check, walk, unitless, missed], [5, 4, 1, 2, 2])[0]
    yield from kind(draw, number)


def inside(
    what: str, bounds: tuple[float, float], truth: Fraction, at_most: Fraction | None = None
) -> str:
    """Bounds that hold the truth, or what lies between two truths."""
    low, high = bounds
    assert low <= (truth if at_most is None else at_most), (what, bounds, float(truth))
    assert truth <= high, (what, bounds, float(truth))
    return what


def cvar(costs: Costs, alpha: Fraction) -> Fraction:
    return min(w + excess(costs, w) / alpha for w in (0, *costs))


def lotteries(draw: random.Random, number: int) -> Iterator[str]:
    model, scale = (
        draw_model(number),
        draw.choice(
            [Fraction(1), Fraction(1), Fraction(1, 10**13), Fraction(10**9), Fraction(1, 7)]
        ),
    )
    choices = {
        s: {a: [(t, p, c * scale) for t, p, c in row] for a, row in rows.items()}
        for s, rows in model.choices.items()
    }
    ssp, known = to_ssp(replace(model, choices=choices)), policies(model)
    alpha, t = Fraction(draw.choice([1, 1, 2, 6, 20]), 20), draw.choice(sorted(set().union(*known)))
    place = float(t * scale)
    yield inside("mean", tp.solve(ssp, tp.Mean()).bounds, scale * min(map(mean, known)))
    yield inside(
        "late", tp.solve(ssp, tp.Late(place)).bounds, min(late(costs, t) for costs in known)
    )
    yield inside(
        "shortfall",
        tp.solve(ssp, tp.Shortfall(place)).bounds,
        scale * min(excess(costs, t) for costs in known),
    )
    yield inside(
        "cvar",
        tp.solve(ssp, tp.CVaR(float(alpha))).bounds,
        scale * min(cvar(costs, alpha) for costs in known),
    )
    yield from limited(
        draw,
        ssp,
        tp.Late(place),
        [(late(costs, t), mean(costs)) for costs in known],
        Fraction(1),
        scale,
    )
    yield from limited(
        draw,
        ssp,
        tp.Shortfall(place),
        [(excess(costs, t), mean(costs)) for costs in known],
        scale,
        scale,
    )
    curve, measure = Curve(model, alpha), tp.CVaR(float(alpha))
    yield from kept(
        draw, ssp, measure, curve.at, [x for hull in curve.hulls for x, _ in hull], scale, scale
    )


def limited(
    draw: random.Random,
    ssp: tp.SSP,
    measure: Any,
    points: Any,
    of_risk: Fraction,
    of_mean: Fraction,
) -> Iterator[str]:
    """The least mean under a limit on a measure that is linear in the policies."""
    hull = lower_hull(points)

    def at(risk: Fraction) -> Any:
        heights = [
            b + (d - b) * (risk - a) / (c - a)
            for (a, b), (c, d) in itertools.pairwise(hull)
            if a <= risk < c
        ]
        return math.inf if risk < hull[0][0] else heights[0] if heights else hull[-1][1]

    yield from kept(draw, ssp, measure, at, [x for x, _ in hull], of_risk, of_mean)


def kept(
    draw: random.Random,
    ssp: tp.SSP,
    measure: Any,
    at: Any,
    risks: Any,
    of_risk: Fraction,
    of_mean: Fraction,
) -> Iterator[str]:
    """A limit at a corner, beside it, far above, or below all."""
    limit = draw.choice(sorted(risks)) * draw.choice(
        [
            Fraction(1),
            Fraction(1),
            Fraction(101, 100),
            Fraction(99, 100),
            Fraction(3, 2),
            Fraction(1, 3),
        ]
    )
    least, bound = min(risks), float(limit * of_risk)
    try:
        found = tp.solve(ssp, tp.Mean(), [measure <= bound])
    except (InfeasibleError, OptionError) as error:
        assert limit <= least * (1 + OFF), (
            str(measure),
            bound,
            float(least * of_risk),
            str(error),
        )
        yield "a limit refused"
        return
    assert limit >= least * (1 - OFF), (str(measure), bound, float(least * of_risk))
    easier, harder = at(max(limit * (1 + OFF), least)), at(max(limit * (1 - OFF), least))
    yield inside("a limit", found.bounds, easier * of_mean, harder * of_mean)
    risk = tp.evaluate(ssp, found.policy, 1e-9).bounds(measure)[0]
    assert risk <= bound * (1 + float(OFF)), (str(measure), bound, risk)
    yield "a policy keeps its limit"


def walk(draw: random.Random, number: int) -> Iterator[str]:
    """Two arms; every step goes on with p, and back to the start otherwise, at no cost. The end of
    the first arm pays 1.
    """
    p = Fraction(draw.choice(["0.5", "0.1", "0.01", "1e-20"]))
    first, shorter = draw.choice([2, 5, 20, 60, 200]), draw.choice([0, 0, 1, 2])
    lengths = (first, max(first - shorter, 1))
    rows: list[Any] = []
    for arm, length in enumerate(lengths):
        rows.append(("s", "go", (arm, 1), Fraction(1, 2), 0))
        for k in range(1, length + 1):
            rows.append(
                (
                    (arm, k),
                    "go",
                    (arm, k + 1) if k < length else "g",
                    p,
                    1 if k == length and arm == 0 else 0,
                )
            )
            rows.append(((arm, k), "go", "s", 1 - p, 0))
    ssp = tp.SSP.from_outcomes(rows, "s", ["g"])
    truth = p ** lengths[0] / (p ** lengths[0] + p ** lengths[1])
    expected = tp.solve_expected(ssp)
    yield inside("a walk's mean", expected.bounds, truth)
    found = tp.evaluate(ssp, expected.policy, 1.0)
    yield inside("a walk evaluated", found.bounds(tp.Mean()), truth)
    yield inside("a walk's lateness", found.bounds(tp.Late(0)), truth)


def decimals(
    costs: dict[Fraction, Fraction], found: tp.CostDistribution, never: Fraction = Fraction(0)
) -> Iterator[str]:
    """Lateness and shortfall at every total that a float can say, and beside it."""
    for total in costs:
        for place in {float(total), float(total) * 0.75, math.nextafter(float(total), 0)}:
            x = Fraction(repr(place))
            beyond = sum((p for z, p in costs.items() if z > x), never)
            yield inside("exact lateness", found.bounds(tp.Late(place)), beyond)
            if not never:
                yield inside(
                    "exact shortfall",
                    found.bounds(tp.Shortfall(place)),
                    sum((p * (z - x) for z, p in costs.items() if z > x), Fraction(0)),
                )
            flat = tp.Loss([(0, 0), (place, 0), (place, 1)]) if place else tp.Late(0)
            yield inside("exact loss", found.bounds(flat), beyond)
            weighted = found.bounds(0.7 * tp.Late(place) + 0.1 * flat)
            yield inside("exact sum", weighted, Fraction(8, 10) * beyond)


def unitless(draw: random.Random, number: int) -> Iterator[str]:
    """Two or three steps at costs that have no common unit, added up as they are written."""
    steps = [draw.sample(UNITLESS, draw.choice([1, 2])) for _ in range(draw.choice([2, 3]))]
    rows = [
        (k, "go", k + 1, Fraction(1, len(costs)), cost)
        for k, costs in enumerate(steps)
        for cost in costs
    ]
    ssp = tp.SSP.from_outcomes(rows, 0, [len(steps)])
    totals: dict[Fraction, Fraction] = {Fraction(0): Fraction(1)}
    for costs in steps:
        sums: dict[Fraction, Fraction] = {}
        for (total, p), cost in itertools.product(totals.items(), costs):
            sums[total + Fraction(repr(cost))] = sums.get(
                total + Fraction(repr(cost)), Fraction(0)
            ) + p / len(costs)
        totals = sums
    yield from decimals(totals, tp.evaluate(ssp, dict.fromkeys(range(len(steps)), "go"), 1e-9))


def missed(draw: random.Random, number: int) -> Iterator[str]:
    """A lottery that may end where the goal is out of reach, with a chance of any size."""
    lost = Fraction(draw.choice(["0.5", "0.001", "1e-9", "1e-13", "1e-16"]))
    costs = draw.sample(range(30), 3)
    chance = [(1 - lost) / 2, (1 - lost) / 4, (1 - lost) / 4]
    rows = [("s", "go", "g", p, c) for p, c in zip(chance, costs)] + [
        ("s", "go", "d", lost, 1),
        ("d", "stay", "d", 1, draw.choice([1, 3])),
    ]
    ssp = tp.SSP.from_outcomes(rows, "s", ["g"])
    found = tp.evaluate(ssp, {"s": "go", "d": "stay"}, draw.choice([0.1, 0.6, 1e-3]))
    assert found.mean == math.inf
    low, high = found.bounds(tp.Late(math.inf))
    assert low <= lost <= high, (low, high, float(lost))
    yield from decimals({Fraction(c): p for p, c in zip(chance, costs)}, found, lost)
    choices = [{"s": 0, "d": 1}.get(state, -1) for state in ssp.states]
    policy = tp.BudgetPolicy.from_table(ssp, [[choice] * 2 for choice in choices], choices)
    budget = draw.choice([1, 9, 50, 10**3, 10**4] * 3 + [2**61])
    found = tp.evaluate(ssp, policy.with_budget(budget), 0.1, max_nodes=10**6)
    yield inside("never arriving by budget", found.bounds(tp.Late(math.inf)), lost)
