"""Random models of kinds that once went wrong, each with a witness of its own.

- several goals, with outcomes that coincide once these are merged: both planners, against the same
  model with one goal and every outcome once, and against the optimum
- free cycles with a discount: the mean in fractions, CVaR between two distributions on a grid; a
  free loop before two payments, whose totals are known: losses of any sign, the probability of
  being late
- free cycles and others under a policy of histories, against the policy of states that does the
  same
- ends that are no goals, free or not: the least chance to be late under a limit on another one, or
  on the mean, which only policies that surely arrive keep
- parts of the model, written and read; parts of two models are not solved together
"""

from __future__ import annotations

import itertools
import math
import pathlib
import random
import tempfile
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np

import tailpath as tp
from tailpath.distributed.files import read_part, write_part
from tailpath.distributed.part import Part, whole_of
from tailpath.distributed.ranks import Alone
from tailpath.distributed.search import _check_fits as check_fits
from tailpath.errors import (
    GoalUnreachableError,
    InfeasibleError,
    LimitExceededError,
    ModelError,
)
from tests.distributed.models import Two
from tests.fuzz.objectives import OFF, inside
from tests.solvers.objectives.lotteries import lower_hull

#: By state and action the outcomes (next state, probability, cost).
Choices = dict[int, dict[str, list[tuple[Any, Fraction, int]]]]
#: A grid of discounted costs, and sweeps after which nothing is left to come.
STEP, SWEEPS = 1 / 256, 150


def attempt(number: int) -> Iterator[str]:
    draw = random.Random(f"corners {number}")
    yield from draw.choice([coinciding, discounted, waiting, remembered, stuck, in_parts])(draw)


def drawn(draw: random.Random, goals: str, costs: list[int], back: bool) -> Choices:
    """Up to four states; the first outcome of every action leads on, others back if they may."""
    n = draw.randint(1, 4)
    choices: Choices = {}
    for state in range(n):
        on = [*range(state + 1, n), *goals]
        anywhere = [*range(n), *goals] if back else on
        choices[state] = {}
        for action in "xyz"[: draw.randint(1, 3)]:
            weights = [draw.choice([1, 1, 2, 3, 5]) for _ in range(draw.randint(1, 4))]
            targets = [draw.choice(on), *(draw.choice(anywhere) for _ in weights[1:])]
            choices[state][action] = [
                (to, Fraction(weight, sum(weights)), draw.choice(costs))
                for to, weight in zip(targets, weights)
            ]
    return choices


def made(choices: Choices, goals: str) -> tp.SSP:
    rows = [
        (state, action, to, p, cost)
        for state, actions in choices.items()
        for action, row in actions.items()
        for to, p, cost in row
    ]
    return tp.SSP.from_outcomes(rows, 0, [*goals])


def coinciding(draw: random.Random) -> Iterator[str]:
    several = drawn(draw, "gef", [2, 5], back=draw.random() < 0.5)
    merged: Choices = {}
    for state, actions in several.items():
        merged[state] = {}
        for action, row in actions.items():
            sums: dict[tuple[Any, int], Fraction] = {}
            for to, p, cost in row:
                end = ("g" if isinstance(to, str) else to, cost)
                sums[end] = sums.get(end, Fraction(0)) + p
            merged[state][action] = [(to, p, cost) for (to, cost), p in sums.items()]
    atoms = draw.choice([[0.2, 0.6, 1.0], [1.0], [0.05, 0.1, 0.3, 1.0]])
    ssp, plain = made(several, "gef"), made(merged, "g")
    start = draw.choice(["neutral", "zero"])
    for solve, options in (
        (tp.solve_cvar_quantile, {"start": start}),
        (tp.solve_cvar_interpolation, {"start": start, "inner": "greedy"}),
        (tp.solve_cvar_interpolation, {"inner": "lp"}),
    ):
        plan, other = (solve(each, atoms, 1e-9, **options) for each in (ssp, plain))
        for alpha in atoms:
            found, wanted = plan.cvar(alpha), other.cvar(alpha)
            assert abs(found - wanted) <= 1e-6 * wanted, (solve.__name__, alpha, found, wanted)
            least = tp.solve_cvar_exact(plain, alpha).cvar(alpha)
            has = tp.evaluate(ssp, plan.policy(alpha), alpha).cvar(alpha)
            assert found <= least * (1 + 1e-6) and least <= has * (1 + 1e-9), (found, least, has)
    yield "goals that coincide"


def discounted(draw: random.Random) -> Iterator[str]:
    """The distribution of the discounted cost on a grid, rounded down from 0 and up from all that
    can still come, sweep by sweep: Z(s) = c + gamma Z(s').
    """
    choices, gamma = drawn(draw, "g", [0, 0, 1], back=True), draw.choice([0.5, 0.75, 0.9])
    policy = {state: draw.choice(sorted(rows)) for state, rows in choices.items()}
    alpha = draw.choice([1.0, 0.5, 0.2, 0.05])
    grid = np.arange(round(1 / (1 - gamma) / STEP) + 2) * STEP
    sides = []
    for rounded, first in ((np.floor, 0), (np.ceil, len(grid) - 1)):
        law = {state: np.eye(1, len(grid), first)[0] for state in choices}
        law["g"] = np.eye(1, len(grid), 0)[0]
        for _ in range(SWEEPS):
            new = {"g": law["g"]}
            for state in choices:
                new[state] = np.zeros(len(grid))
                for to, p, cost in choices[state][policy[state]]:
                    at = rounded((cost + gamma * grid) / STEP).astype(int).clip(0, len(grid) - 1)
                    new[state] += float(p) * np.bincount(at, law[to], len(grid))
            law = new
        sides.append(min(w + (law[0] @ np.maximum(grid - w, 0)) / alpha for w in grid[::8]))
    low, high = sides[0] - 8 * STEP / alpha, sides[1]
    try:
        found = tp.evaluate(made(choices, "g"), policy, alpha, gamma=gamma, max_nodes=20_000)
        cvar, bounds = found.cvar(alpha), found.bounds(alpha)
        assert low - 1e-9 <= cvar <= high + 1e-9, (low, cvar, high)
        yield inside("a discounted mean", found.bounds(tp.Mean()), mean(choices, policy, gamma))
    except LimitExceededError as error:
        bounds = error.bounds
    assert bounds[0] <= high + 1e-9 and low - 1e-9 <= bounds[1], (bounds, low, high)
    yield "a discounted CVaR"


def mean(choices: Choices, policy: dict[int, str], gamma: float) -> Fraction:
    """V = c + gamma P V by elimination, in fractions."""
    size, rate = len(choices), Fraction(gamma)
    rows = []
    for state in range(size):
        row = [Fraction(state == to) for to in range(size)] + [Fraction(0)]
        for to, p, cost in choices[state][policy[state]]:
            row[-1] += p * cost
            if not isinstance(to, str):
                row[to] -= rate * p
        rows.append(row)
    for k in reversed(range(size)):
        rows[k] = [each / rows[k][k] for each in rows[k]]
        for other in range(k):
            rows[other] = [a - rows[other][k] * b for a, b in zip(rows[other], rows[k])]
    return rows[0][-1]


def waiting(draw: random.Random) -> Iterator[str]:
    """Wait for free with probability p, then pay twice: gamma^k c + gamma^(k + 1) d."""
    p, gamma = draw.choice([0.25, 0.5, 0.75, 0.9]), draw.choice([0.5, 0.75, 0.9, 0.99])
    c, d = draw.choice([1, 2]), draw.choice([0, 1, 3])
    rows = [(0, "a", 0, p, 0), (0, "a", 1, 1 - p, c), (1, "a", "g", 1, d)]
    alpha = draw.choice([1.0, 0.5, 0.1, 1e-3])
    ssp = tp.SSP.from_outcomes(rows, 0, ["g"])
    found = tp.evaluate(ssp, {0: "a", 1: "a"}, alpha, gamma=gamma, max_nodes=200_000)
    often = math.ceil(math.log(1e-25) / math.log(p))
    law = [(p**k * (1 - p), gamma**k * c + gamma ** (k + 1) * d) for k in range(often)]
    first, step = draw.choice([-5.0, 0.0, 2.0]), draw.choice([0.3, 1.0, 2.5])
    last = draw.choice([0.0, first, 7.0])
    truth = math.fsum(q * (first + (last - first) * z / step if z < step else last) for q, z in law)
    low, high = found.bounds(tp.Loss([(0, first), (step, last)]))
    assert low - 1e-14 <= truth <= high + 1e-14, (low, truth, high)
    yield "a discounted loss"
    place = draw.choice([z for _, z in law[:40]]) * draw.choice([0.999, 1.001])
    truth = math.fsum(q for q, z in law if z > place)
    low, high = found.bounds(tp.Late(place))
    assert low - 1e-14 <= truth <= high + 1e-14, (low, truth, high)
    yield "a discounted lateness"


def remembered(draw: random.Random) -> Iterator[str]:
    choices = drawn(draw, "g", draw.choice([[0, 0, 1], [0, 1, 3]]), back=True)
    policy = {state: draw.choice(sorted(rows)) for state, rows in choices.items()}
    ssp, alpha = made(choices, "g"), draw.choice([1.0, 0.5, 0.1])
    gamma = draw.choice([1.0, 1.0, 0.5])
    try:
        twin = tp.evaluate(ssp, policy, alpha, gamma=gamma, max_nodes=20_000)
    except LimitExceededError:
        yield "a discount with too many ways"
        return
    history = tp.HistoryPolicy(lambda passed: policy[passed[-1]])
    try:
        found = tp.evaluate(ssp, history, alpha, gamma=gamma, max_nodes=5_000)
        bounds = found.bounds(alpha)
        assert abs(found.cvar(alpha) - twin.cvar(alpha)) <= 1e-6 * twin.cvar(alpha)
        yield "a history"
    except LimitExceededError as error:
        bounds = error.bounds
        yield "a history without end"
    low, high = twin.bounds(alpha)
    assert bounds[0] <= high and low <= bounds[1], (bounds, low, high)


def stuck(draw: random.Random) -> Iterator[str]:
    choices = drawn(draw, "gd", [0, 1, 1, 3], back=False)
    while len(known := totals(choices)) > 200:
        choices = drawn(draw, "gd", [0, 1, 1, 3], back=False)
    stay: Choices = {"d": {"stay": [("d", Fraction(1), draw.choice([0, 1]))]}}  # type: ignore[dict-item]
    ssp = made({**choices, **stay}, "g")
    t, other = draw.choice([0, 1, 2, 4]), draw.choice([0, 1, 3, 5])

    def late(law: dict[float, Fraction], place: int) -> Fraction:
        return sum((p for z, p in law.items() if z > place), Fraction(0))

    limit: Any = tp.Late(other)
    points = [(late(law, other), late(law, t)) for law in known]
    if draw.random() < 0.3:
        limit = tp.Mean()
        sure = [law for law in known if math.inf not in law]
        points = [
            (sum((p * Fraction(z) for z, p in law.items()), Fraction(0)), late(law, t))
            for law in sure
        ]
    hull = lower_hull(points)
    risks = sorted({risk for risk, _ in points})
    bound = draw.choice([Fraction(0), *risks, *((a + b) / 2 for a, b in itertools.pairwise(risks))])
    heights = [
        b + (d - b) * (bound - a) / (c - a)
        for (a, b), (c, d) in itertools.pairwise(hull)
        if a <= bound < c
    ]
    try:
        found = tp.solve(ssp, tp.Late(t), [limit <= float(bound)])
    except (InfeasibleError, GoalUnreachableError):
        assert not hull or bound <= hull[0][0] * (1 + OFF), (str(limit), float(bound))
        yield "a limit refused beside dead ends"
        return
    assert hull and hull[0][0] <= bound * (1 + OFF), (str(limit), float(bound), found.value)
    truth = float(heights[0] if heights else hull[-1][1] if bound >= hull[-1][0] else hull[0][1])
    low, high = found.bounds
    assert low - 1e-8 <= truth <= high + 1e-8, (str(limit), float(bound), found.bounds, truth)
    assert abs(found.value - truth) <= 1e-8, (str(limit), float(bound), found.value, truth)
    yield "a limit beside dead ends"


def totals(choices: Choices) -> list[dict[float, Fraction]]:
    """The laws of all policies with all of history, without cycles; infinite at a dead end."""
    known: dict[Any, list[dict[float, Fraction]]] = {
        "g": [{0: Fraction(1)}],
        "d": [{math.inf: Fraction(1)}],
    }
    for state in reversed(choices):
        found = {}
        for row in choices[state].values():
            for each in itertools.product(*(known[t] for t, _, _ in row)):
                law: dict[float, Fraction] = {}
                for (_, p, c), after in zip(row, each):
                    for z, q in after.items():
                        law[z + c] = law.get(z + c, Fraction(0)) + p * q
                found[frozenset(law.items())] = law
        known[state] = list(found.values())
    return known[0]


def in_parts(draw: random.Random) -> Iterator[str]:
    choices = drawn(draw, "g", [1, 2, 5], back=True)
    ssp = made(choices, "g")
    with tempfile.TemporaryDirectory() as folder:
        write_part(Part.of(ssp, 0, 1), pathlib.Path(folder))
        part = read_part(folder, 0, 1)
        low, high = tp.solve_cvar_exact(part, 1).bounds(1)
        assert low <= tp.solve_expected(ssp).cost() <= high
        assert tp.solve_expected(whole_of(Alone(), part)).cost() == tp.solve_expected(ssp).cost()
    yield "a part"
    state = draw.choice(sorted(choices))
    action = draw.choice(sorted(choices[state]))
    (to, p, cost), *others = choices[state][action]
    other = made({**choices, state: {**choices[state], action: [(to, p, cost + 1), *others]}}, "g")
    try:
        check_fits(Two(Part.of(other, 1, 2)), Part.of(ssp, 0, 2))
    except ModelError as error:
        assert "is not of the same model" in str(error)
        yield "parts of two models"
    else:
        raise AssertionError("parts of two models would be solved together")
