"""Limits of 0, limits of next to nothing, and limits at the least that can be had: against every
mixture of all policies, in fractions.
"""

import itertools
import math
import random
from fractions import Fraction

import pytest

import tailpath as tp
from tailpath.errors import InfeasibleError
from tests.solvers.objectives.edges import check

FORBIDDEN = [
    ("s", "y", "g", 0.9, 4),
    ("s", "y", "g", 0.1, 5),
    ("s", "x", "t", 1, 3),
    ("t", "x", "g", 0.98, 1),
    ("t", "x", "g", 0.02, 3),
    ("t", "y", "g", 1, 2),
]


@pytest.mark.parametrize("bound", [0, 1e-300, 1e-20, 1e-17])
@pytest.mark.parametrize("forbids", [tp.Late(5), tp.Shortfall(5)])
def test_what_is_forbidden_is_not_done(forbids, bound):
    """y costs 4.1, x then y always 5, and x then x, 4.04, is late in 2 of 100 runs."""
    ssp, tail = tp.SSP.from_outcomes(FORBIDDEN, "s", ["g"]), tp.CVaR(0.2)
    for objective, limits, truth in [
        (tp.Mean(), [forbids <= bound], 4.1),
        (tail, [forbids <= bound], 4.5),
        (tp.Mean(), [forbids <= bound, tail <= 4.6], 4.1),
        (tp.Mean(), [tail <= 4.6, forbids <= bound], 4.1),
    ]:
        found = tp.solve(ssp, objective, limits)
        assert found.value == pytest.approx(truth, rel=1e-12)
        assert found.bounds[0] <= truth <= found.bounds[1] <= truth * (1 + 1e-12)
        assert found.risk(forbids) <= bound


@pytest.mark.parametrize("number", range(80))
def test_limits_at_the_edge(number):
    assert list(check(random.Random(number), number))


def test_a_forbidden_cost_that_cannot_be_avoided_is_refused():
    ssp = tp.SSP.from_outcomes(FORBIDDEN, "s", ["g"])
    with pytest.raises(InfeasibleError, match="no policy keeps late\\(4\\) <= 0"):
        tp.solve(ssp, "mean", ["late(4) <= 0"])


def test_what_is_forbidden_is_not_done_however_seldom_it_happens():
    """Both lateness and shortfall of a are below all floats, and yet it may be late."""
    rare = 1e-200
    rows = [
        ("s", "a", "t", 1 - rare, 1),
        ("s", "a", "u", rare, 1),
        ("t", "a", "g", 1, 1),
        ("u", "a", "g", 1 - rare, 1),
        ("u", "a", "g", rare, 9),
        ("s", "b", "g", 1, 5),
    ]
    ssp = tp.SSP.from_outcomes(rows, "s", ["g"])
    for limits in (
        ["late(5) <= 0"],
        ["shortfall(5) <= 0"],
        ["late(5) <= 0", "cvar(0.5) <= 5"],
        ["cvar(0.5) <= 5", "shortfall(5) <= 0"],
    ):
        found = tp.solve(ssp, "mean", limits)
        assert found.value == 5 and found.bounds == pytest.approx((5, 5), rel=1e-12)
        assert found.bounds[0] <= 5 <= found.bounds[1]
        assert tp.evaluate(ssp, found.policy, 0.5).costs.tolist() == [5]
    rows = [("s", "a", "s", 0.4, 1), ("s", "a", "g", 0.6, 1)]
    with pytest.raises(InfeasibleError, match="with some probability"):
        tp.solve(tp.SSP.from_outcomes(rows, "s", ["g"]), "mean", ["late(1000) <= 0"])


def least_mean_on_time(rows, deadline):
    """The least mean of all policies of (state, spent) that are never late, in fractions, by
    looking at each of them; infinite if there is none.
    """
    states = sorted({row[0] for row in rows})
    pairs = [(s, spent) for s in states for spent in range(deadline + 1)]
    actions = [sorted({row[1] for row in rows if row[0] == s}) for s, _ in pairs]
    best = math.inf
    for chosen in itertools.product(*actions):
        policy, met, late, todo = dict(zip(pairs, chosen)), {("s", 0)}, False, [("s", 0)]
        while todo and not late:
            state, spent = todo.pop()
            for s, a, t, _, c in rows:
                if (s, a) == (state, policy[state, spent]):
                    late |= spent + c > deadline
                    if t != "g" and not late and (t, spent + c) not in met:
                        met.add((t, spent + c))
                        todo.append((t, spent + c))
        if not late:
            best = min(best, mean_of(rows, policy, sorted(met)))
    return best


def mean_of(rows, policy, met):
    """The expected cost of a policy, by elimination; infinite if it may stay for ever."""
    number = {pair: i for i, pair in enumerate(met)}
    lines = [[Fraction(i == j) for j in range(len(met))] + [Fraction(0)] for i in range(len(met))]
    for pair, i in number.items():
        for s, a, t, p, c in rows:
            if (s, a) == (pair[0], policy[pair]):
                lines[i][-1] += p * c
                if t != "g":
                    lines[i][number[t, pair[1] + c]] -= p
    for i in range(len(met)):
        pivot = next((j for j in range(i, len(met)) if lines[j][i]), None)
        if pivot is None:
            return math.inf
        lines[i], lines[pivot] = lines[pivot], lines[i]
        lines[i] = [each / lines[i][i] for each in lines[i]]
        for j in range(len(met)):
            if j != i:
                lines[j] = [a - lines[j][i] * b for a, b in zip(lines[j], lines[i])]
    return lines[number["s", 0]][-1]


@pytest.mark.parametrize("number", range(60))
def test_what_is_forbidden_is_not_done_on_free_cycles(number):
    """Two states that free steps join are solved together, and yet nobody may be late."""
    draw, rows = random.Random(number), []
    for state, other in (("s", "u"), ("u", "s")):
        for action in "ab":
            p = Fraction(draw.randint(1, 3), 4)
            rows.append((state, action, other, p, draw.choice([0, 0, 0, 1])))
            rows.append((state, action, "g", 1 - p, draw.choice([0, 1, 2, 3])))
        rows.append((state, "c", "g", Fraction(1), draw.randint(1, 3)))
    ssp, deadline = tp.SSP.from_outcomes(rows, "s", ["g"]), draw.randint(1, 2)
    truth = least_mean_on_time(rows, deadline)
    for forbids in (tp.Late(deadline), tp.Shortfall(deadline)):
        if math.isinf(truth):
            with pytest.raises(InfeasibleError, match="no policy keeps"):
                tp.solve(ssp, "mean", [forbids <= 0])
            continue
        found = tp.solve(ssp, "mean", [forbids <= 0])
        assert found.value == pytest.approx(float(truth), rel=1e-12)
        assert Fraction(found.bounds[0]) <= truth <= Fraction(found.bounds[1])
        assert tp.evaluate(ssp, found.policy, 0.01).costs.max() <= deadline


def test_a_chance_below_all_floats_is_forbidden_on_free_cycles():
    rare = 1e-200
    rows = [
        ("s", "a", "u", 0.5, 0),
        ("s", "a", "g", 0.5, 1),
        ("u", "a", "s", 1 - rare, 0),
        ("u", "a", "v", rare, 1),
        ("v", "a", "g", 1 - rare, 1),
        ("v", "a", "g", rare, 9),
        ("s", "b", "g", 1, 5),
    ]
    ssp = tp.SSP.from_outcomes(rows, "s", ["g"])
    for limit in ("late(5) <= 0", "shortfall(5) <= 0"):
        assert tp.solve(ssp, "mean", [limit]).value == 5
