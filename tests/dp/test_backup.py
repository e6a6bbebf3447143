"""The backup of a row by hand: sums of any length, and what nature makes of intervals."""

from __future__ import annotations

import random
from fractions import Fraction
from itertools import permutations
from typing import Any

import numpy as np
import pytest

from tailpath.dp.backup import (
    ADVERSARIAL,
    COOPERATIVE,
    Slack,
    add_row_values,
    best_row,
    best_rows,
    extreme_value,
    improve_shares,
    ordered_value,
    row_value,
)
from tailpath.dp.elimination import eliminate_dense
from tests.dp.chains import chain_of
from tests.reference import solve

NATURES = pytest.mark.parametrize("nature", [ADVERSARIAL, COOPERATIVE])


def drawn(draw: random.Random, rows: int = 3) -> Any:
    """Rows of 0 to 10 outcomes, with dyadic numbers: sums of them are exact."""
    sizes = [draw.randint(0, 10) for _ in range(rows)]
    start = np.concatenate(([0], np.cumsum(sizes)))
    target = np.array([draw.randrange(6) for _ in range(start[-1])], dtype=np.int64)
    p = np.array([draw.randint(0, 16) / 64 for _ in target])
    value = np.array([draw.randint(0, 40) / 8 for _ in range(9)])
    return start, target, p, value


def test_the_value_of_a_row() -> None:
    draw = random.Random(1)
    for _ in range(80):
        start, target, p, value = drawn(draw)
        beside = np.array([[draw.randint(0, 40) / 8 for _ in range(3)] for _ in range(9)])
        for row in range(3):
            for first in (0, 3):
                within = range(start[row], start[row + 1])
                true = sum(p[k] * value[first + target[k]] for k in within)
                assert row_value(start, target, p, row, first, value) == true
                total = np.array([1.0, 2.0, 3.0])
                add_row_values(start, target, p, row, first, beside, total)
                several = sum((p[k] * beside[first + target[k]] for k in within), np.zeros(3))
                assert (total == np.array([1.0, 2.0, 3.0]) + several).all()


def intervals(draw: random.Random) -> Any:
    """A row with low probabilities, what each may have above them, and what is free."""
    size = draw.randint(1, 4)
    low = np.array([draw.randint(0, 8) / 64 for _ in range(size)])
    gap = np.array([draw.randint(0, 24) / 64 for _ in range(size)])
    free = draw.choice([0.0, float(gap.sum()), float(gap.sum()) * draw.randint(0, 8) / 8])
    start, target = np.array([0, size]), np.array(draw.sample(range(5), size))
    value = np.array([draw.randint(0, 40) / 8 for _ in range(8)])
    return start, target, low, Slack(gap, np.array([free])), value


def handed_out(order: Any, low: Any, slack: Slack, ahead: Any) -> tuple[Any, float, float]:
    """Shares in an order; the value, and that of the last outcome that gets any."""
    left, share, marginal = float(slack.free_mass[0]), np.zeros(len(low)), 0.0
    for k in order:
        share[k] = min(slack.gap[k], left)
        left -= share[k]
        marginal = ahead[k] if share[k] > 0 else marginal
    return share, float((low + share) @ ahead), marginal


@NATURES
def test_nature_hands_out_what_is_free(nature: int) -> None:
    """Its best of all orders, and the value of the last outcome that got any."""
    draw = random.Random(nature)
    for _ in range(150):
        start, target, low, slack, value = intervals(draw)
        for first in (0, 3):
            ahead = value[first + target]
            every = [
                handed_out(order, low, slack, ahead) for order in permutations(range(len(low)))
            ]
            best = max(nature * total for _, total, _ in every)
            copies = target.copy(), low.copy(), slack._replace(gap=slack.gap.copy())
            found, marginal = extreme_value(start, *copies, nature, 0, first, value)
            assert nature * found == best
            assert marginal in [m for _, total, m in every if nature * total == best]
            # What was put in another order are the same outcomes.
            before = sorted(zip(target, low, slack.gap))
            assert sorted(zip(*copies[:2], copies[2].gap)) == before
            if slack.free_mass[0] > 0:
                keys = nature * value[first + copies[0]]
                assert (np.diff(keys) <= 0).all()
                again = ordered_value(start, *copies, nature, 0, first, value)
                assert again == (found, marginal, False)


@NATURES
def test_a_row_without_free_mass_is_summed_as_it_stands(nature: int) -> None:
    """To the last bit, as a row whose probabilities are known."""
    draw = random.Random(5)
    for _ in range(50):
        low = np.array([draw.random() for _ in range(3)])
        value = np.array([draw.random() for _ in range(3)])
        start, target, slack = np.array([0, 3]), np.arange(3), Slack(np.zeros(3), np.zeros(1))
        plain = row_value(start, target, low, 0, 0, value)
        found = extreme_value(start, target.copy(), low.copy(), slack, nature, 0, 0, value)
        assert found == (plain, 0.0)


@NATURES
def test_nature_takes_other_shares_where_it_gains(nature: int) -> None:
    draw, moved = random.Random(nature), 0
    for _ in range(150):
        start, _, low, slack, _ = intervals(draw)
        size = len(low)
        worth = np.array([draw.randint(1, 40) / 8 for _ in range(size)])
        orders = list(permutations(range(size)))
        given = handed_out(draw.choice(orders), low, slack, worth)
        best = max(nature * handed_out(order, low, slack, worth)[1] for order in orders)
        probability = low + given[0]
        rows = start, np.arange(size), low.copy(), slack._replace(gap=slack.gap.copy()), nature
        gains = improve_shares(rows, worth, np.array([given[1]]), 1e-9, probability)
        if best > nature * given[1]:
            assert gains == 1 and nature * float(probability @ worth) == best
            assert ((low <= probability) & (probability <= low + slack.gap)).all()
            moved += 1
        else:
            assert gains == 0 and (probability == low + given[0]).all()
        # Not where it gains no more than the margin.
        few = improve_shares(rows, worth, np.array([given[1]]), 1e9, probability)
        assert few == 0
    assert moved > 10


def test_the_best_row_of_a_state() -> None:
    draw = random.Random(3)
    for _ in range(60):
        start, target, p, value = drawn(draw, 5)
        rate = np.array([draw.randint(0, 8) / 8 for _ in range(5)])
        first_row = np.array([0, draw.randint(0, 5), 5])
        totals = [
            rate[r] + sum(p[k] * value[target[k]] for k in range(start[r], start[r + 1]))
            for r in range(5)
        ]
        for state in range(2):
            rows = range(first_row[state], first_row[state + 1])
            best = min((totals[r] for r in rows), default=np.inf)
            row = next((r for r in rows if totals[r] == best), -1)
            assert best_row(first_row, start, target, p, rate, state, value) == (best, row)


def test_rows_that_differ_by_rounding_tie() -> None:
    """Beside a cost of 1 a gain of 2^-49 is none, and one of 2^-45 is."""
    rows = chain_of(np.arange(3), [1, 1], [1.0, 1.0]).replaced(first_row=np.array([0, 2]))
    for gain, row in ((0.0, 0), (2.0**-49, 0), (2.0**-45, 1)):
        columns = rows.columns(np.array([1.0, 1.0 - gain]))
        assert best_rows(columns, np.zeros(2)).tolist() == [row]
    # What lies ahead counts by its difference to the state: long ways are no excuse.
    rows = rows.replaced(target=np.array([1, 2], dtype=np.int32))
    value = np.array([2.0**40, 2.0**40 - 1, 2.0**40 - 1 - 2.0**-12])
    assert best_rows(rows.columns(np.ones(2)), value).tolist() == [1]


def test_elimination_in_fractions() -> None:
    """Chances of leaving of any size, and several problems at once."""
    draw = random.Random(4)
    for _ in range(60):
        m = draw.randint(1, 5)
        inner = [[Fraction(draw.choice([0, 0, 1, 3, 5]), 64) for _ in range(m)] for _ in range(m)]
        leave = [1 - sum(row) for row in inner]
        if draw.random() < 0.3:
            inner = [
                [p * 2**20 if i != j else p for j, p in enumerate(row)]
                for i, row in enumerate(inner)
            ]
            inner = [[p / (sum(row) + leave[i]) for p in row] for i, row in enumerate(inner)]
            leave = [1 - sum(row) for row in inner]
        gains = [[Fraction(draw.randint(0, 9)) for _ in range(2)] for _ in range(m)]
        found = np.array([[float(g) for g in row] for row in gains])
        matrix = np.array([[float(p) for p in row] for row in inner])
        assert eliminate_dense(matrix, np.array([float(p) for p in leave]), found)
        for c in range(2):
            each = list(zip(inner, (row[c] for row in gains)))
            true = solve(range(m), lambda i, each=each: (dict(enumerate(each[i][0])), each[i][1]))
            for i in range(m):
                assert found[i, c] == pytest.approx(float(true[i]), rel=1e-12)


def test_a_node_that_is_hardly_left_is_given_up() -> None:
    for leave, ends in ((1e-280, True), (1e-295, False)):
        assert eliminate_dense(np.array([[1.0]]), np.array([leave]), np.ones((1, 1))) == ends
