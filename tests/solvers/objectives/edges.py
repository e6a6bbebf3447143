"""Requests whose limits stand at the edge of what can be kept, and their answers in fractions."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction

import tailpath as tp
from tailpath.errors import InfeasibleError
from tests.reference import to_ssp
from tests.solvers.objectives.lotteries import Asked, draw_model, least_under, policies

#: A limit is kept within 1e-12, relatively.
OFF = Fraction(1, 10**11)
#: So many policies have mixtures of three that can all be tried.
FEW = 60
TINY = (0.0, 0.0, 1e-300, 1e-20, 1e-16, 1e-13)
#: How far bounds may be apart, relatively; and where the answer is 0, which tables take everything
#: below this for.
GAP, VANISHED = 1e-9, 1e-250
MEASURES = {
    "mean": lambda at: tp.Mean(),
    "late": tp.Late,
    "shortfall": tp.Shortfall,
    "cvar": tp.CVaR,
}


def check(draw: random.Random, number: int) -> Iterator[str]:
    """One objective under one limit or two, in both orders; yields what was checked."""
    model = draw_model(number)
    known = policies(model)
    if len(known) > FEW:
        yield "too many policies"
        return
    scale = draw.choice([Fraction(1), Fraction(1), Fraction(1, 10), Fraction(1, 7)])
    choices = {
        s: {a: [(t, p, c * scale) for t, p, c in row] for a, row in rows.items()}
        for s, rows in model.choices.items()
    }
    ssp = to_ssp(replace(model, choices=choices))
    places = sorted(set().union(*known))

    def asked(kinds: tuple[str, ...]) -> Asked:
        kind = draw.choice(kinds)
        if kind == "cvar":
            return kind, Fraction(draw.choice([0.0625, 0.25, 0.5]))
        return kind, Fraction(draw.choice(places) if kind != "mean" else 0)

    objective = asked(("mean", "mean", "cvar", "late", "shortfall"))
    limits: list[tuple[Asked, float]] = []
    for _ in range(draw.choice([1, 2])):
        free = "cvar" not in {objective[0], *(measure[0] for measure, _ in limits)}
        measure = asked(("late", "shortfall", "cvar") if free else ("late", "shortfall"))
        limits.append((measure, _bound(draw, known, measure, limits, scale)))
    for order in (limits, limits[::-1])[: len(limits)]:
        yield _solved(ssp, known, objective, order, scale)


def _bound(
    draw: random.Random,
    known: list,
    measure: Asked,
    others: list[tuple[Asked, float]],
    scale: Fraction,
) -> float:
    """0 or next to it; or the least alone or under other limits, or a little more."""
    if draw.random() < 0.4:
        return draw.choice(TINY)
    exact = [(each, _in_units(each, bound, scale)) for each, bound in others]
    least = least_under(known, measure, exact if draw.random() < 0.7 else [])
    if math.isinf(least):
        return 0.0
    least *= scale if measure[0] in ("shortfall", "cvar") else 1
    return float(least * draw.choice([Fraction(1), Fraction(1), Fraction(21, 20)]))


def _in_units(measure: Asked, bound: float, scale: Fraction) -> Fraction:
    return Fraction(bound) / (scale if measure[0] in ("shortfall", "cvar") else 1)


def _solved(
    ssp: tp.SSP,
    known: list,
    objective: Asked,
    limits: list[tuple[Asked, float]],
    scale: Fraction,
) -> str:
    def measure(asked: Asked) -> tp.Measure:
        kind, at = asked
        return MEASURES[kind](float(at * (scale if kind in ("late", "shortfall") else 1)))

    def truth(off: Fraction) -> Fraction | float:
        exact = [(each, _in_units(each, bound, scale) * (1 + off)) for each, bound in limits]
        least = least_under(known, objective, exact)
        return least * (scale if objective[0] in ("mean", "shortfall", "cvar") else 1)

    words = [measure(each) <= bound for each, bound in limits]
    what = f"{measure(objective)} with {', '.join(map(str, words))}"
    loose, tight = truth(OFF), truth(-OFF)
    try:
        found = tp.solve(ssp, measure(objective), words)
    except InfeasibleError as error:
        assert math.isinf(tight), (what, str(error), float(tight))
        return "refused"
    low, high = found.bounds
    assert not math.isinf(loose), (what, found.value)
    assert low <= tight and loose <= high, (what, found.bounds, float(loose), float(tight))
    # What the limits are worth within what they are kept: on this side, where none is on the other.
    apart = float(loose - truth(2 * OFF) if math.isinf(tight) else tight - loose)
    assert high - low <= GAP * abs(high) + 2 * apart + VANISHED, (what, found.bounds, float(loose))
    for limit in words:
        kept = found.risk(limit.measure) <= limit.bound * (1 + 1e-9)
        assert kept or limit.bound == 0, (what, found.risk(limit.measure))
    return "kept"
