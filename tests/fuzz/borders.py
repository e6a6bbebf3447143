"""Random models without cycles, costs of any sign, whose answers follow by recursion in rationals,
asked where answers change: at the totals themselves, and at limits that a policy keeps exactly.

- probabilities down to 1e-300, whose products no float holds; dead ends; units such as 1/10 and 1/3
- every objective alone; limits of a policy's own risk, with a second limit beside them, with
  mixtures and without; frontiers at their own corners
- the policy found must have what it is said to have
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cache
from typing import Any, NamedTuple

import tailpath as tp
from tailpath.evaluation.evaluate import evaluate_for
from tests.fuzz.objectives import inside

ZERO, ONE = Fraction(0), Fraction(1)
UNITS = [ONE, ONE, Fraction(1, 2), Fraction(1, 10), Fraction(1, 3), Fraction(7), Fraction(10**6)]
TINY = [Fraction(text) for text in ("1e-5", "1e-12", "1e-17", "1e-40", "1e-300")]
#: What values and limits may be off by, relatively to the largest cost.
CLOSE = 1e-9


class Drawn(NamedTuple):
    """By state and action the outcomes (next state, probability, cost in units)."""

    choices: dict[Any, dict[str, list[tuple[Any, Fraction, int]]]]
    unit: Fraction
    size: float

    def ssp(self) -> tp.SSP:
        rows = [
            (s, a, t, p, c * self.unit)
            for s, actions in self.choices.items()
            for a, outcomes in actions.items()
            for t, p, c in outcomes
        ]
        return tp.SSP.from_outcomes(rows, 0, ["g"])

    def least(self, loss: Callable[[int], Fraction]) -> Fraction:
        """The least E h(Z) over all policies."""

        @cache
        def value(state: Any, paid: int) -> Fraction:
            if state == "g":
                return loss(paid)
            return min(
                sum((p * value(t, paid + c) for t, p, c in outcomes), ZERO)
                for outcomes in self.choices[state].values()
            )

        return value(0, 0)

    def totals(self) -> list[int]:
        """Every total that some policy may have."""

        @cache
        def of(state: Any) -> frozenset[int]:
            rows = self.choices.get(state, {}).values()
            ends = {c + z for outcomes in rows for t, _, c in outcomes for z in of(t)}
            return frozenset(ends) if state != "g" else frozenset([0])

        return sorted(of(0))


def draw_model(draw: random.Random) -> Drawn:
    n, extreme, signed = draw.choice([1, 2, 3, 4]), draw.random() < 0.3, draw.random() < 0.5
    costs = list(range(-6, 7)) if signed else [0, 0, 1, 1, 2, 3, 5, 10, 37]
    choices: dict[Any, dict[str, list[tuple[Any, Fraction, int]]]] = {}
    for state in range(n):
        choices[state] = {}
        for action in "ab"[: draw.choice([1, 2, 2])]:
            k = draw.choice([1, 2, 2, 3])
            weights = [Fraction(draw.randint(1, 9)) for _ in range(k)]
            if extreme and k > 1 and draw.random() < 0.5:
                weights = [draw.choice(TINY) for _ in range(k - 1)]
                weights.append(1 - sum(weights))
            choices[state][action] = [
                (draw.choice([*range(state + 1, n), "g"]), p / sum(weights), draw.choice(costs))
                for p in weights
            ]
    unit = draw.choice(UNITS)
    size = n * max(abs(c) for rows in choices.values() for row in rows.values() for _, _, c in row)
    return Drawn(choices, unit, float(size * unit))


def attempt(number: int) -> Iterator[str]:
    draw = random.Random(f"borders {number}")
    drawn = draw_model(draw)
    ssp, alpha = drawn.ssp(), draw.choice([1.0, 0.5, 0.3, 0.1, 0.05, 0.01, 1e-3])
    yield from alone(draw, drawn, ssp, alpha)
    yield from possible_cost(drawn, ssp, alpha)
    if all(p > 1e-6 for rows in drawn.choices.values() for row in rows.values() for _, p, _ in row):
        yield from limited(draw, drawn, ssp, alpha)
    yield from never(draw, drawn)


def alone(draw: random.Random, drawn: Drawn, ssp: tp.SSP, alpha: float) -> Iterator[str]:
    """Every objective without limits, at a total that may happen and beside it."""
    unit, totals, tail = drawn.unit, drawn.totals(), Fraction(alpha)
    excess = {w: drawn.least(lambda z, w=w: Fraction(max(z - w, 0))) for w in totals}
    z = draw.choice([*totals, totals[0] - 1])
    asked: list[tuple[Any, Fraction]] = [
        (tp.Mean(), drawn.least(lambda total: total * unit)),
        (tp.CVaR(alpha), min(w + excess[w] / tail for w in totals) * unit),
    ]
    place = float(z * unit)
    if Fraction(repr(place)) == z * unit:
        asked += [
            (tp.Late(place), drawn.least(lambda total: Fraction(total > z))),
            (tp.Shortfall(place), drawn.least(lambda total: max(total - z, 0) * unit)),
            (
                2 * tp.Mean() + 3 * tp.Late(place),
                drawn.least(lambda total: 2 * total * unit + 3 * (total > z)),
            ),
            (
                tp.Loss([(place, 0), (place, 1)]),
                drawn.least(lambda total: Fraction(total > z)),
            ),
        ]
    for measure, truth in asked:
        found = tp.solve(ssp, measure)
        yield inside(str(type(measure).__name__), found.bounds, truth)
        assert found.bounds[0] <= found.value <= found.bounds[1], (str(measure), found.value)
        delivered(ssp, found.policy, measure, found.bounds[1], drawn.size)


def possible_cost(drawn: Drawn, ssp: tp.SSP, alpha: float) -> Iterator[str]:
    """The least VaR: one of the totals, unless masses cannot be told from alpha."""
    least = {z: drawn.least(lambda total, z=z: Fraction(total > z)) for z in drawn.totals()}
    if all(abs(mass - Fraction(alpha)) > 1e-10 for mass in least.values()):
        truth = min(z for z, mass in least.items() if mass < alpha) * drawn.unit
        found = tp.solve(ssp, tp.VaR(alpha))
        assert found.bounds == (float(truth), float(truth)), (found.bounds, float(truth))
        assert found.value == float(truth)
        assert late_mass(ssp, found.policy, float(truth)) <= alpha * (1 + CLOSE)
        yield "the least VaR"


def late_mass(ssp: tp.SSP, policy: Any, cost: float) -> float:
    return float(evaluate_for(ssp, policy, [tp.Late(cost)]).bounds(tp.Late(cost))[0])


def delivered(ssp: tp.SSP, policy: Any, measure: Any, claim: float, size: float) -> float:
    """A policy has no more than is claimed for it."""
    low, _ = evaluate_for(ssp, policy, [measure]).bounds(measure)
    assert low <= claim + CLOSE * max(size, abs(claim)), (str(measure), low, claim)
    return float(low)


def limited(draw: random.Random, drawn: Drawn, ssp: tp.SSP, alpha: float) -> Iterator[str]:
    """Limits that a policy known keeps exactly: it shows that they can be kept, and what the mean
    is at most."""
    size, late = drawn.size, float(draw.choice(drawn.totals()) * drawn.unit)
    policy = draw.choice([tp.solve_expected(ssp).policy, tp.solve(ssp, tp.CVaR(alpha)).policy])
    asked = [tp.CVaR(alpha), tp.Late(late), tp.Shortfall(late), tp.Mean()]
    costs = evaluate_for(ssp, policy, asked)
    risks = {measure: measure(costs) for measure in draw.sample(asked[:3], draw.choice([1, 2]))}
    limits = [measure <= risk for measure, risk in risks.items()]
    found = tp.solve(ssp, tp.Mean(), limits)
    assert found.bounds[0] <= costs.mean + CLOSE * size, (found.bounds, costs.mean)
    assert found.bounds[0] <= found.value <= found.bounds[1] + CLOSE * size
    for limit in limits:
        delivered(ssp, found.policy, limit.measure, limit.bound, size)
    delivered(ssp, found.policy, tp.Mean(), found.value, size)
    yield "limits kept exactly"
    if draw.random() < 0.5:
        corners = tp.frontier(ssp, asked[0])
        for corner in corners:
            low, high = corners.bounds(corner.risk)
            assert low <= corner.mean + CLOSE * size and corner.mean <= high + CLOSE * size
            delivered(ssp, corner.policy, asked[0], corner.risk, size)
            delivered(ssp, corner.policy, tp.Mean(), corner.mean, size)
        yield "a frontier at its corners"


def never(draw: random.Random, drawn: Drawn) -> Iterator[str]:
    """The same model where some outcomes lead to a dead end: the probability of never arriving,
    of a policy and of the surest."""
    lost = {
        state: {
            action: [("d" if draw.random() < 0.2 else t, p, abs(c)) for t, p, c in row]
            for action, row in rows.items()
        }
        for state, rows in drawn.choices.items()
    }
    lost["d"] = {"z": [("d", ONE, 1)]}
    given = {state: draw.choice(sorted(rows)) for state, rows in lost.items()}

    def missed(state: Any, among: Callable[[Any], list[str]]) -> Fraction:
        if state in ("g", "d"):
            return Fraction(state == "d")
        rows = [lost[state][action] for action in among(state)]
        return min(sum((p * missed(t, among) for t, p, _ in row), ZERO) for row in rows)

    ssp = Drawn(lost, drawn.unit, drawn.size).ssp()
    found = tp.evaluate(ssp, given, draw.choice([1.0, 0.5, 0.1]))
    truth = missed(0, lambda state: [given[state]])
    bounds = found.bounds(tp.Late(math.inf))
    assert (found.unreached > 0) == (truth > 0) and bounds[0] <= found.unreached <= bounds[1]
    yield inside("never arriving", bounds, truth)
    low, high = found.bounds(tp.Late(float(drawn.unit)))
    assert 0 <= low <= high <= 1 and truth <= high, (low, high)
    surest = tp.solve(ssp, tp.Late(math.inf))
    yield inside("the surest", surest.bounds, missed(0, lambda state: list(lost[state])))
