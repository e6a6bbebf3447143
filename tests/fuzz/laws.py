"""Every law that a policy can make: small models without cycles are unfolded into the laws of all
policies with all of history, in fractions, and the same model is given to the verbs *in disguise*
(free loops, rooms between which one walks for nothing, several goals, outcomes in two halves),
which changes no answer.

- all objectives alone, their sums, the least VaR, every deadline of one table
- one or two limits, on the mean, CVaR, lateness or shortfall, by an exact linear program over laws
- frontiers between their corners
- the policies of the answers: their law, run by run, is what the answer says
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from typing import Any

import tailpath as tp
from tailpath.errors import InfeasibleError, OptionError
from tests.fuzz.objectives import inside

ZERO, ONE = Fraction(0), Fraction(1)
#: By total cost its probability.
Law = Mapping[int, Fraction]
Choices = dict[Any, dict[str, list[tuple[Any, Fraction, int]]]]
MOST = 200


def attempt(number: int) -> Iterator[str]:
    draw = random.Random(f"laws {number}")
    choices = drawn(draw)
    while (known := laws(choices)) is None:
        choices = drawn(draw)
    unit = draw.choice([ONE, ONE, Fraction(1, 2), Fraction(1, 10), Fraction(3)])
    hidden, goals = disguised(draw, choices)
    rows = [
        (s, a, t, p, c * unit)
        for s, actions in hidden.items()
        for a, row in actions.items()
        for t, p, c in row
    ]
    draw.shuffle(rows)
    asked = Asked(tp.SSP.from_outcomes(rows, 0, goals), known, unit, draw)
    plain = [
        (s, a, t, p, c * unit)
        for s, actions in choices.items()
        for a, row in actions.items()
        for t, p, c in row
    ]
    asked.plain, asked.choices = tp.SSP.from_outcomes(plain, 0, ["g"]), choices
    yield from asked.alone()
    yield from asked.deadlines()
    yield from asked.limited()
    yield from asked.trades()
    yield from asked.run()


def drawn(draw: random.Random) -> Choices:
    n = draw.randint(1, 4)
    costs = draw.choice([[0, 1, 2, 3], [0, 0, 1, 5], [-3, -1, 0, 1, 2, 4], [2, 3, 7]])
    whole = draw.choice([4, 8, 10, 20])
    choices: Choices = {}
    for state in range(n):
        choices[state] = {}
        for action in "xyz"[: draw.choice([1, 2, 2, 3])]:
            k = draw.choice([1, 2, 2, 3])
            cuts = sorted(draw.sample(range(1, whole), k - 1))
            weights = [b - a for a, b in itertools.pairwise([0, *cuts, whole])]
            row: dict[tuple[Any, int], Fraction] = {}
            for weight in weights:
                end = (draw.choice([*range(state + 1, n), "g"]), draw.choice(costs))
                row[end] = row.get(end, ZERO) + Fraction(weight, whole)
            choices[state][action] = [(t, p, c) for (t, c), p in row.items()]
    return choices


def laws(choices: Choices) -> list[Law] | None:
    """All laws of the cost from the start; None if there are too many."""
    known: dict[Any, list[Law]] = {"g": [{0: ONE}]}
    for state in reversed(choices):
        found: dict[frozenset[tuple[int, Fraction]], Law] = {}
        for row in choices[state].values():
            after = [known[t] for t, _, _ in row]
            if math.prod(map(len, after)) > MOST:
                return None
            for each in itertools.product(*after):
                total: dict[int, Fraction] = {}
                for (_, p, c), law in zip(row, each):
                    for z, q in law.items():
                        total[c + z] = total.get(c + z, ZERO) + p * q
                found.setdefault(frozenset(total.items()), total)
        known[state] = list(found.values())
    return known[0]


def disguised(draw: random.Random, choices: Choices) -> tuple[Choices, list[str]]:
    """A model with cycles that answers the same."""
    goals = draw.choice([["g"], ["g", "h"]])
    hidden: Choices = {}
    for state, actions in choices.items():
        hidden[state] = {}
        other = f"{state}'" if draw.random() < 0.3 else None
        if other is not None:
            hidden[other] = {"back": [(state, ONE, 0)]}
            hidden[state]["hop"] = [(other, ONE, 0)]
            if draw.random() < 0.3:
                hidden[state]["hop"] = [(other, Fraction(1, 2), 0), (state, Fraction(1, 2), 0)]
        for action, row in actions.items():
            place = state if other is None or draw.random() < 0.5 else other
            stay = draw.choice([ZERO, ZERO, Fraction(1, 2), Fraction(1, 4), Fraction(9, 10)])
            new = [(t, p * (1 - stay), c) for t, p, c in row]
            if stay:
                back = place if other is None or draw.random() < 0.7 else state
                # Whoever came back may choose again: all that is gained is a mixture of laws.
                new.append((back, stay, 0))
            if draw.random() < 0.3:
                t, p, c = new.pop(0)
                new += [(t, p / 2, c), (t, p / 2, c)]
            hidden[place][action] = [
                (draw.choice(goals) if t == "g" else t, p, c) for t, p, c in new
            ]
    return hidden, goals


def mean(law: Law) -> Fraction:
    return sum((p * z for z, p in law.items()), ZERO)


def excess(law: Law, w: int) -> Fraction:
    return sum((p * (z - w) for z, p in law.items() if z > w), ZERO)


def late(law: Law, t: int) -> Fraction:
    return sum((p for z, p in law.items() if z > t), ZERO)


def cvar(law: Law, alpha: Fraction) -> Fraction:
    return min(w + excess(law, w) / alpha for w in law)


def programme(
    cost: list[Fraction], limits: list[tuple[list[Fraction], Fraction]]
) -> Fraction | None:
    """The least cost of a mixture that keeps the limits, by the simplex method in fractions with
    Bland's rule; None if there is no such mixture.

    Shares sum to 1, so a limit says that the sum of share * (value - bound) plus a slack is 0: all
    slacks, with one artificial share in place of all, are a start. Its cost comes first.
    """
    n, m = len(cost), len(limits)
    unit = [[Fraction(i == k) for i in range(m + 1)] for k in range(m + 1)]
    rows = [[v - bound for v in values] for values, bound in limits] + [[ONE] * n]
    table = [[*row, *unit[k], Fraction(k == m)] for k, row in enumerate(rows)]
    basis = list(range(n, n + m + 1))
    prices = [
        [-x for x in table[m][:n]] + [ZERO] * (m + 1) + [-ONE],
        [*cost, *[ZERO] * (m + 2)],
    ]
    while True:
        enter = next((j for j in range(n + m) if (prices[0][j], prices[1][j]) < (0, 0)), None)
        if enter is None:
            return None if prices[0][-1] else -prices[1][-1]
        _, _, leave = min(
            (row[-1] / row[enter], basis[k], k) for k, row in enumerate(table) if row[enter] > 0
        )
        lead, basis[leave] = table[leave][enter], enter
        table[leave] = own = [x / lead for x in table[leave]]
        for row in (*table[:leave], *table[leave + 1 :], *prices):
            if factor := row[enter]:
                row[:] = [x - factor * y if y else x for x, y in zip(row, own)]


class TooMany(Exception):
    """More linear programs than this search takes the time for."""


class Asked:
    plain: tp.SSP
    choices: Choices

    def __init__(self, ssp: tp.SSP, known: list[Law], unit: Fraction, draw: random.Random) -> None:
        self.ssp, self.known, self.unit, self.draw = ssp, known, unit, draw
        self.totals = sorted(set().union(*known))
        self.alpha = Fraction(draw.choice([1, 1, 2, 4, 8, 16]), 16)
        self.negative = bool((ssp.outcome_cost < 0).any())
        self.answers: list[tuple[str, Any, Callable[[Law], Fraction], Fraction]] = []

    def measure(self, name: str) -> tuple[Any, Callable[[Law], Fraction]]:
        t, unit, alpha = self.draw.choice(self.totals), self.unit, self.alpha
        place = float(t * unit)
        return {
            "mean": (tp.Mean(), lambda law: mean(law) * unit),
            "cvar": (tp.CVaR(float(alpha)), lambda law: cvar(law, alpha) * unit),
            "late": (tp.Late(place), lambda law: late(law, t)),
            "shortfall": (tp.Shortfall(place), lambda law: excess(law, t) * unit),
        }[name]

    def alone(self) -> Iterator[str]:
        size = float(max(map(abs, self.totals)) * self.unit) + 1
        sums = [self.measure(name) for name in ("mean", "cvar", "late", "shortfall")]
        (one, of_one), (two, of_two) = self.draw.sample(sums, 2)
        sums.append((2 * one + 3 * two, lambda law: 2 * of_one(law) + 3 * of_two(law)))
        for measure, of in sums:
            found, truth = tp.solve(self.ssp, measure), min(map(of, self.known))
            yield inside(f"alone {type(measure).__name__}", found.bounds, truth)
            assert abs(found.value - truth) <= 1e-12 * size, (str(measure), found.value, truth)
            plain = tp.solve(self.plain, measure)
            yield inside("plain", plain.bounds, truth)
            self.answers.append((str(measure), plain.policy, of, truth))
        table = tp.solve_cvar_exact(self.ssp, 1 / 16)
        for k in (1, 2, 3, 5, 8, 13, 16):
            truth = min(cvar(law, Fraction(k, 16)) for law in self.known) * self.unit
            yield inside("optimum", table.bounds(k / 16), truth)
            assert abs(table.cvar(k / 16) - truth) <= 1e-12 * size, (k, table.cvar(k / 16), truth)
        for k in (1, 3, 8):
            alpha = Fraction(k, 16)
            truth = min(z for z in self.totals if any(late(law, z) <= alpha for law in self.known))
            found = tp.solve(self.ssp, tp.VaR(k / 16))
            place = float(truth * self.unit)
            # VaR jumps where a tail mass is alpha: bounds may name both ends.
            assert found.bounds[0] <= place <= found.bounds[1], (k, found.bounds, place)
            assert found.value == place, (k, found.value, place)
            yield "VaR"

    def deadlines(self) -> Iterator[str]:
        last = self.draw.choice([self.totals[-1], self.totals[len(self.totals) // 2]])
        table = tp.solve_on_time(self.ssp, float(last * self.unit))
        for t in range(self.totals[0] - 1, last + 1):
            if t < 0 and self.totals[0] >= 0:
                continue
            truth = min(late(law, t) for law in self.known)
            place = float(t * self.unit)
            yield inside("late", table.late_bounds(place), truth)
            yield inside("on time", table.bounds(place), 1 - truth)
            assert abs(table.probability(place) - (1 - truth)) <= 1e-13

    def limited(self) -> Iterator[str]:
        draw = self.draw
        for _ in range(3):
            objective, of = self.measure(draw.choice(["mean", "mean", "cvar", "late", "shortfall"]))
            names = draw.choices(["cvar", "late", "shortfall", "mean"], k=draw.choice([1, 2]))
            if names.count("cvar") + isinstance(objective, tp.CVaR) > 1:
                continue  # one CVaR at most may be in a question
            limits: list[tuple[Any, float, Fraction]] = []
            for name in names:
                measure, risk = self.measure(name)
                risks = sorted({risk(law) for law in self.known})
                kind = draw.choice(["least", "one", "between", "below", "zero"])
                bound = {
                    "least": risks[0],
                    "one": draw.choice(risks),
                    "between": (risks[0] + 2 * draw.choice(risks)) / 3,
                    "below": risks[0] - Fraction(1, 64),
                    "zero": ZERO,
                }[kind]
                limits.append((measure, float(bound), bound))
            yield from self.under(objective, of, limits)

    def under(self, objective: Any, of: Any, limits: Any) -> Iterator[str]:
        """Limits are floats, kept within a relative 1e-12: the truth lies between two."""
        size = max(1, max(map(abs, self.totals))) * self.unit
        try:
            easier, harder = (self.least(objective, limits, size * off) for off in (1, -1))
        except TooMany:
            yield "limits left out"
            return
        asked = [measure <= bound for measure, bound, _ in limits]
        what = (str(objective), [str(limit) for limit in asked])
        try:
            found = tp.solve(self.ssp, objective, asked)
        except (InfeasibleError, OptionError) as error:
            assert harder is None, (what, float(harder), str(error))
            yield "limits refused"
            return
        assert easier is not None, (what, found.value, found.bounds)
        low, high = found.bounds
        assert harder is None or low <= harder, (what, found.bounds, float(harder))
        assert easier <= high, (what, found.bounds, float(easier))
        top = found.value if harder is None else max(float(harder), 0) + abs(float(harder)) * 1e-9
        top += 1e-9 * float(size)
        assert float(easier) - 1e-9 * float(size) <= found.value <= top, (
            what,
            found.value,
            float(easier),
            harder and float(harder),
        )
        yield f"limits {len(asked)}"

    def least(self, objective: Any, limits: Any, off: Fraction) -> Fraction | None:
        """By every w of each CVaR, a linear programme."""
        alpha, unit = self.alpha, self.unit
        kinds: list[list[tuple[list[Fraction], Fraction]]] = []
        for measure, _, bound in limits:
            # A limit of 0 on what cannot be less is kept exactly.
            least = isinstance(measure, (tp.Late, tp.Shortfall)) or not self.negative
            near = bound + off * Fraction(1, 10**11) * (0 if bound == 0 and least else 1)
            if isinstance(measure, tp.CVaR):
                kinds.append(
                    [
                        ([w * unit + excess(law, w) * unit / alpha for law in self.known], near)
                        for w in self.totals
                    ]
                )
            else:
                kinds.append([([self.linear(measure, law) for law in self.known], near)])
        if isinstance(objective, tp.CVaR):
            costs = [
                [w * unit + excess(law, w) * unit / alpha for law in self.known]
                for w in self.totals
            ]
        else:
            costs = [[self.linear(objective, law) for law in self.known]]
        if len(costs) * math.prod(map(len, kinds)) > 60:
            raise TooMany
        values = [
            programme(cost, list(each)) for cost in costs for each in itertools.product(*kinds)
        ]
        return min((value for value in values if value is not None), default=None)

    def linear(self, measure: Any, law: Law) -> Fraction:
        if isinstance(measure, tp.Mean):
            return mean(law) * self.unit
        place = getattr(measure, "deadline", None)
        if place is not None:
            return late(law, round(Fraction(repr(place)) / self.unit))
        t = round(Fraction(repr(measure.budget)) / self.unit)
        return excess(law, t) * self.unit

    def trades(self) -> Iterator[str]:
        measure, risk = self.measure(self.draw.choice(["cvar", "late", "shortfall"]))
        found = tp.frontier(self.ssp, measure, tolerance=0)
        size = max(1, max(map(abs, self.totals))) * self.unit
        risks = sorted({risk(law) for law in self.known})
        least = min(risks)
        neutral = min(map(mean, self.known)) * self.unit
        assert abs(found[-1].mean - neutral) <= 1e-9 * size
        assert abs(found[0].risk - least) <= 1e-9 * size, (found[0].risk, float(least))
        for _ in range(3):
            at = (self.draw.choice(risks) * 2 + self.draw.choice(risks)) / 3
            try:
                easier, harder = (
                    self.least(tp.Mean(), [(measure, float(at), at)], size * off)
                    for off in (100, -100)
                )
            except TooMany:
                continue
            low, high = found.bounds(float(at))
            assert harder is None or low <= harder, (str(measure), low, float(harder), float(at))
            assert easier is not None and easier <= high, (str(measure), high, float(at), easier)
            if harder is not None:
                value = found.least_mean(float(at))
                wide = 1e-8 * float(size)
                assert float(easier) - wide <= value <= float(harder) + wide, (
                    str(measure),
                    float(at),
                    value,
                    float(easier),
                    float(harder),
                )
            yield "between corners"

    def run(self) -> Iterator[str]:
        """Every policy found, run by run on the plain model."""
        for what, policy, of, truth in self.answers:
            law = law_of(self.choices, policy, self.unit)
            if law is not None:
                assert of(law) == truth, (what, float(of(law)), float(truth))
                yield "run by run"


def law_of(choices: Choices, policy: Any, unit: Fraction) -> Law | None:
    """The law of a policy, by its three functions."""
    total: dict[int, Fraction] = {}
    waiting: list[tuple[Any, Any, int, Fraction]] = [(0, policy.start(0), 0, ONE)]
    while waiting:
        state, memory, paid, mass = waiting.pop()
        if state == "g":
            total[paid] = total.get(paid, ZERO) + mass
            continue
        decided = policy.action(state, memory)
        if isinstance(decided, Mapping):
            return None
        for t, p, c in choices[state][decided]:
            after = policy.remember(memory, state, decided, float(c * unit), t)
            waiting.append((t, after, paid + c, mass * p))
    return total
