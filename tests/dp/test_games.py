"""Games against nature by brute force over both sides."""

from __future__ import annotations

import random
from fractions import Fraction
from itertools import permutations, product
from typing import Any

import numpy as np
import pytest

from tailpath.certify.games import solve_game
from tailpath.dp.backup import ADVERSARIAL, COOPERATIVE, Slack
from tailpath.dp.games import Game, game_optimum
from tailpath.graph import Transitions
from tests.reference import solve

Row = list[tuple[int, Fraction, Fraction, Fraction]]  # target, low, gap, cost


def drawn(draw: random.Random) -> list[list[Row]]:
    """Every outcome may be the end's, so that every policy ends whatever nature does."""
    n = draw.randint(1, 2)
    return [
        [
            [(n, Fraction(1, 4), Fraction(draw.randint(0, 2), 4), Fraction(draw.randint(1, 9)))]
            + [
                (draw.randrange(n), Fraction(draw.randint(0, 1), 8), Fraction(1), Fraction(c))
                for c in draw.sample(range(1, 9), draw.randint(1, 2))
            ]
            for _ in range(draw.randint(1, 2))
        ]
        for _ in range(n)
    ]


def free_of(row: Row) -> Fraction:
    return 1 - sum((low for _, low, _, _ in row), Fraction(0))


def game_of(states: list[list[Row]], nature: int) -> Game:
    rows = [row for state in states for row in state]
    edges = [edge for row in rows for edge in row]
    start = np.concatenate(([0], np.cumsum([len(row) for row in rows])))
    low = np.array([float(low) for _, low, _, _ in edges])
    gap = np.array([float(gap) for _, _, gap, _ in edges])
    shares = [q for row in rows for q in probabilities(row, range(len(row)))]
    chain = Transitions(
        start,
        np.array([to for to, *_ in edges], dtype=np.int32),
        np.array([float(q) for q in shares]),
        np.array([float(cost) for *_, cost in edges]),
        None,
    )
    first = np.concatenate(([0], np.cumsum([len(state) for state in states])))
    free = np.array([float(free_of(row)) for row in rows])
    chain = chain.replaced(first_row=first)
    return Game(chain, low, Slack(gap, free), nature)


def probabilities(row: Row, order: Any) -> list[Fraction]:
    left, found = free_of(row), [low for _, low, _, _ in row]
    for k in order:
        share = min(row[k][2], left)
        found[k] += share
        left -= share
    return found


def value_of(states: list[list[Row]], nature: int) -> list[Fraction]:
    """All policies against all orders in which nature may hand out what is free."""
    n = len(states)
    options = [
        [
            [probabilities(row, order) for order in set(permutations(range(len(row))))]
            for row in state
        ]
        for state in states
    ]

    def fixed(policy: Any, answer: Any) -> list[Fraction]:
        def of(x: int) -> Any:
            row, p = states[x][policy[x]], options[x][policy[x]][answer[x]]
            ahead: dict[int, Fraction] = {}
            for (to, _, _, _), q in zip(row, p):
                if to < n:
                    ahead[to] = ahead.get(to, Fraction(0)) + q
            return ahead, sum((q * cost for (*_, cost), q in zip(row, p)), Fraction(0))

        found = solve(range(n), of)
        return [found[x] for x in range(n)]

    outer = []
    for policy in product(*(range(len(state)) for state in states)):
        answers = product(*(range(len(options[x][policy[x]])) for x in range(n)))
        every = [fixed(policy, answer) for answer in answers]
        pick = max if nature == ADVERSARIAL else min
        outer.append([pick(each) for each in zip(*every)])
    return [min(each) for each in zip(*outer)]


@pytest.mark.parametrize("nature", [ADVERSARIAL, COOPERATIVE])
def test_the_value_of_a_game(nature: int) -> None:
    draw, several = random.Random(nature), 0
    for _ in range(25):
        states = drawn(draw)
        truth = value_of(states, nature)
        game = game_of(states, nature)
        found, probability = game_optimum(game)
        assert found.value == pytest.approx([float(v) for v in truth], rel=1e-12)
        worth = game.worth(found.value)
        of_rows = game.rows.sums(probability * worth)[found.chosen]
        assert of_rows == pytest.approx(found.value, rel=1e-12)
        assert 1 <= found.iterations < 20
        several += found.iterations > 1
        bounds = solve_game(game).bounds
        for low, true, high in zip(bounds.lower.tolist(), truth, bounds.upper.tolist()):
            assert Fraction(low) <= true <= Fraction(high)
            assert high - low <= 1e-12 * float(true)
    assert several > 5


def test_strategies_are_counted() -> None:
    """Shares that are nature's best from the beginning, and such that are not."""
    best = [
        (1, Fraction(1, 4), Fraction(1, 2), Fraction(3)),
        (1, Fraction(1, 4), Fraction(1, 2), Fraction(1)),
    ]
    assert game_optimum(game_of([[best]], ADVERSARIAL))[0].iterations == 1
    found, _ = game_optimum(game_of([[best]], COOPERATIVE))
    assert found.iterations == 2 and found.value[0] == 1.5
