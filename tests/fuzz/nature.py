"""Models whose probabilities are intervals, against all that policies and nature can do: every
policy with all of history, and against each of them every law that nature makes with a vertex at
every visit, in fractions.

- bands of a policy: mean, CVaR, VaR, distribution function; the worst CVaR is that of a mixture of
  laws, which is a least point of the largest of convex functions
- least CVaR and every deadline, against either nature
- least expected cost with cycles: every stationary policy and every vertex
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

import tailpath as tp
from tests.fuzz.laws import Law, cvar, excess, late, mean
from tests.fuzz.objectives import inside
from tests.reference import solve

ZERO, ONE = Fraction(0), Fraction(1)
#: Next state, low, high, cost.
Row = list[tuple[Any, Fraction, Fraction, int]]
Choices = dict[Any, dict[str, Row]]
MOST = 150
ALPHAS = (Fraction(1), Fraction(1, 2), Fraction(3, 16), Fraction(1, 16))


def attempt(number: int) -> Iterator[str]:
    draw = random.Random(f"nature {number}")
    yield from draw.choice([histories, histories, cycles])(draw)


def drawn(draw: random.Random, back: bool) -> Choices:
    n, whole = draw.randint(1, 3), draw.choice([8, 10])
    # Free cycles are refused in models with intervals.
    costs = draw.choice([[1, 2, 3], [1, 2, 6]] if back else [[0, 1, 2, 3], [0, 0, 1, 5], [1, 2, 6]])
    choices: Choices = {}
    for state in range(n):
        choices[state] = {}
        for action in "xy"[: draw.choice([1, 2])]:
            ends = {
                (draw.choice([*range(0 if back else state + 1, n), "g"]), draw.choice(costs))
                for _ in range(draw.choice([1, 2, 2, 3]))
            }
            if back:  # every choice may arrive, and does so with a tenth at least
                ends.add(("g", draw.choice(costs)))
            places = sorted(ends, key=str)
            cuts = sorted(draw.sample(range(1, whole), len(places) - 1))
            row = []
            for (t, c), a, b in zip(places, [0, *cuts], [*cuts, whole], strict=True):
                low = max(b - a - draw.choice([0, 1, 2, 9]), 1 if back and t == "g" else 0)
                high = min(b - a + draw.choice([0, 1, 2, 9]), whole)
                row.append((t, Fraction(min(low, b - a), whole), Fraction(high, whole), c))
            choices[state][action] = row
    return choices


def vertices(row: Row) -> list[tuple[Fraction, ...]]:
    """Probabilities between the ends: all but one at an end."""
    found = set()
    for free in range(len(row)):
        for ends in itertools.product(*({low, high} for _, low, high, _ in row)):
            rest = ONE - sum(ends) + ends[free]
            if row[free][1] <= rest <= row[free][2]:
                found.add((*ends[:free], rest, *ends[free + 1 :]))
    return sorted(found)


def model(choices: Choices) -> tp.IntervalSSP:
    rows = [
        (s, a, t, (low, high), c)
        for s, actions in choices.items()
        for a, row in actions.items()
        for t, low, high, c in row
    ]
    return tp.IntervalSSP.from_outcomes(rows, 0, ["g"])


Laws = frozenset[frozenset[tuple[int, Fraction]]]
POINT: Laws = frozenset([frozenset([(0, ONE)])])


def made(row: Row, after: Sequence[Laws]) -> Laws | None:
    """The laws that nature can make of a choice where a law of each of `after` follows."""
    corners = vertices(row)
    if len(corners) * math.prod(map(len, after)) > MOST:
        return None
    found = set()
    for chance in corners:
        for each in itertools.product(*after):
            total: dict[int, Fraction] = {}
            for (_, _, _, c), p, law in zip(row, chance, each, strict=True):
                for z, q in law:
                    if p * q:
                        total[c + z] = total.get(c + z, ZERO) + p * q
            found.add(frozenset(total.items()))
    return frozenset(found)


def against(choices: Choices) -> list[Laws] | None:
    """For every policy of histories from the start, the laws that nature can make of it."""
    known: dict[Any, list[Laws]] = {"g": [POINT]}
    for state in reversed(choices):
        found: set[Laws] = set()
        for row in choices[state].values():
            after = [known[t] for t, *_ in row]
            if math.prod(map(len, after)) > MOST:
                return None
            for each in itertools.product(*after):
                laws = made(row, each)
                if laws is None:
                    return None
                found.add(laws)
        known[state] = list(found)
    return known[0]


def worst_cvar(laws: Sequence[Law], alpha: Fraction) -> Fraction:
    """The least w + max E(Z - w)+ / alpha over all real w: between two costs it is the largest of
    lines, so it is least at a cost or where two lines cross."""
    places = sorted(set().union(*laws, [0]))
    tried = {Fraction(z) for z in places}
    for a, b in itertools.pairwise(places):
        lines = {(excess(law, a), excess(law, b)) for law in laws}
        for (p, q), (r, s) in itertools.combinations(lines, 2):
            if (p - r) * (q - s) < 0:
                tried.add(a + (b - a) * (p - r) / ((p - r) - (q - s)))
    return min(w + max(excess(law, w) for law in laws) / alpha for w in tried)  # type: ignore[arg-type]


def close(found: float, truth: Fraction, what: Any) -> None:
    assert abs(found - truth) <= 2e-6 * max(1, abs(truth)), (what, found, float(truth))


def histories(draw: random.Random) -> Iterator[str]:
    while True:
        choices = drawn(draw, back=False)
        sides = against(choices)
        if sides is not None and sum(map(len, sides)) <= 3 * MOST:
            break
    ssp = model(choices)
    every = [[dict(law) for law in laws] for laws in sides]
    totals = sorted({z for laws in every for law in laws for z in law})
    for nature, choose in (("adversarial", max), ("cooperative", min)):
        table = tp.solve_cvar_exact(ssp, 1 / 16, nature=nature)
        for alpha in ALPHAS:
            if nature == "adversarial":
                truth = min(worst_cvar(laws, alpha) for laws in every)
            else:
                truth = min(cvar(law, alpha) for laws in every for law in laws)
            yield inside(f"{nature} optimum", table.bounds(float(alpha)), truth)
            close(table.cvar(float(alpha)), truth, (nature, alpha))
            band = tp.evaluate(ssp, table.policy(float(alpha)), 1 / 16)
            close(band.cvar(float(alpha))[nature == "adversarial"], truth, ("its policy", alpha))
        times = tp.solve_on_time(ssp, totals[-1], nature=nature)
        for t in totals:
            truth = min(choose(late(law, t) for law in laws) for laws in every)
            yield inside(f"{nature} deadline", times.bounds(t), 1 - truth)
            assert abs(times.probability(t) - (1 - truth)) <= 1e-12
        least = min(choose(map(mean, laws)) for laws in every)
        found = tp.solve_expected(ssp, nature=nature)
        assert abs(found.cost() - least) <= 1e-12 * max(1, least), (nature, found.cost(), least)
        yield f"{nature} mean"
    yield from band_of(draw, choices, ssp)


def band_of(draw: random.Random, choices: Choices, ssp: tp.IntervalSSP) -> Iterator[str]:
    policy = {state: draw.choice(sorted(actions)) for state, actions in choices.items()}
    held = against({state: {a: choices[state][a]} for state, a in policy.items()})
    assert held is not None and len(held) == 1
    laws = [dict(law) for law in held[0]]
    band = tp.evaluate(ssp, policy, 1 / 16)
    for side, truth in zip(band.mean, (min(map(mean, laws)), max(map(mean, laws)))):
        assert abs(side - truth) <= 1e-12 * max(1, truth), (band.mean, float(truth))
    low, high = band.mean_bounds
    assert low <= min(map(mean, laws)) and max(map(mean, laws)) <= high
    for alpha in ALPHAS:
        least, most = min(cvar(law, alpha) for law in laws), worst_cvar(laws, alpha)
        found, (low, high) = band.cvar(float(alpha)), band.bounds(float(alpha))
        assert low <= least and most <= high, (alpha, low, float(least), float(most), high)
        close(found[0], least, ("least of a band", alpha))
        close(found[1], most, ("most of a band", alpha))
        places = sorted(set().union(*laws))
        vars_ = tuple(
            next(z for z in places if choose(late(law, z) for law in laws) <= alpha)
            for choose in (min, max)
        )
        near = any(abs(late(law, z) / alpha - 1) < 1e-9 for law in laws for z in places)
        assert near or band.var(float(alpha)) == vars_, (alpha, band.var(float(alpha)), vars_)
        yield "a band"
    for t in sorted(set().union(*laws)):
        truth = tuple(1 - choose(late(law, t) for law in laws) for choose in (max, min))
        found = band.cdf(t)
        assert all(abs(a - b) <= 1e-12 for a, b in zip(found, truth)), (t, found, truth)


def cycles(draw: random.Random) -> Iterator[str]:
    """Costs of 0 or more; every choice arrives with a tenth at least."""
    while True:
        choices = drawn(draw, back=True)
        corners = {
            s: {a: vertices(row) for a, row in actions.items()} for s, actions in choices.items()
        }
        most = math.prod(sum(map(len, of.values())) for of in corners.values())
        if most <= 4 * MOST:
            break

    def value(policy: dict[Any, str], chance: dict[Any, tuple[Fraction, ...]]) -> Fraction:
        def equation(s: Any) -> tuple[dict[Any, Fraction], Fraction]:
            factor: dict[Any, Fraction] = {}
            constant = ZERO
            for (t, _, _, c), p in zip(choices[s][policy[s]], chance[s], strict=True):
                constant += p * c
                if t != "g":
                    factor[t] = factor.get(t, ZERO) + p
            return factor, constant

        return solve(list(policy), equation)[0]

    ssp = model(choices)
    by_policy: list[list[Fraction]] = []
    for actions in itertools.product(*choices.values()):
        policy = dict(zip(choices, actions))
        states = list(choices)
        values = [
            value(policy, dict(zip(states, chance)))
            for chance in itertools.product(*(corners[s][policy[s]] for s in states))
        ]
        by_policy.append(values)
        if draw.random() < 0.3:
            band = tp.evaluate(ssp, policy, 0.5)
            low, high = band.mean_bounds
            assert low <= min(values) and max(values) <= high, (band.mean_bounds, policy)
            close(band.mean[0], min(values), "least mean of a band")
            close(band.mean[1], max(values), "most mean of a band")
            yield "a band with cycles"
    for nature, choose in (("adversarial", max), ("cooperative", min)):
        truth = min(map(choose, by_policy))
        found = tp.solve_expected(ssp, nature=nature)
        assert abs(found.cost() - truth) <= 1e-12 * max(1, truth), (nature, found.cost(), truth)
        yield inside(
            f"{nature} mean with cycles",
            tp.solve_cvar_exact(ssp, 1, nature=nature).bounds(1),
            truth,
        )
