"""The order of the sweeps against brute force, and what they settle to."""

from __future__ import annotations

import random
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import tailpath as tp
from tailpath.dp.backup import best_row, row_value
from tailpath.dp.expected import total
from tailpath.dp.sweeps import MAX_ROUNDS, Sweeps, incoming_edges
from tailpath.graph import Transitions
from tailpath.kernels.rounding import SETTLED
from tailpath.kernels.shortest_paths import dijkstra
from tests.dp.chains import chain_of


def random_rows(draw: random.Random, longest: int = 12) -> tuple[Transitions, Any]:
    """Nodes with one to three choices; all of them lead on to a lower number or out now and then,
    so that every goal is reached.
    """
    n = draw.randint(1, longest)
    first_row, row_start, target, probability = [0], [0], [], []
    for node in range(n):
        for _ in range(draw.randint(1, 3)):
            others = draw.sample(range(n), min(n, draw.randint(0, 3)))
            target += [node - 1 if node else n, *others]
            probability += [1 / (len(others) + 1)] * (len(others) + 1)
            row_start.append(len(target))
        first_row.append(len(row_start) - 1)
    rate = np.array([draw.choice((0.0, 1.0, 2.5)) for _ in row_start[1:]])
    return chain_of(row_start, target, probability).replaced(first_row=np.array(first_row)), rate


@pytest.mark.parametrize("seed", range(100))
def test_the_backup_by_hand(seed: int) -> None:
    draw = random.Random(seed)
    given, rate = random_rows(draw)
    columns, n = given.columns(rate), len(given.state_rows) - 1
    value = np.append([draw.uniform(0, 9) for _ in range(n)], 0.0)
    for state in range(n):
        rows = range(given.state_rows[state], given.state_rows[state + 1])
        worth = []
        for row in rows:
            outcomes = slice(given.row_start[row], given.row_start[row + 1])
            ahead = float(np.sum(given.probability[outcomes] * value[given.target[outcomes]]))
            assert row_value(*columns[1:4], row, 0, value) == pytest.approx(
                ahead, rel=1e-14, abs=1e-300
            )
            worth.append(rate[row] + ahead)
        best, row = best_row(*columns, state, value)
        assert best == pytest.approx(min(worth), rel=1e-14, abs=1e-300)
        assert worth[row - rows[0]] == pytest.approx(min(worth), rel=1e-14, abs=1e-300)


def test_of_rows_that_tie_the_first_is_best() -> None:
    tied = chain_of(np.arange(4), np.ones(3), np.ones(3)).replaced(first_row=np.array([0, 3]))
    assert best_row(*tied.columns(np.array([2.0, 1.0, 1.0])), 0, np.zeros(2)) == (1.0, 1)
    none = chain_of(np.zeros(1), [], []).replaced(first_row=np.array([0, 0]))
    assert best_row(*none.columns(np.zeros(0)), 0, np.zeros(2)) == (np.inf, -1)


def test_a_walk_that_gains_less_than_a_digit_in_many_rounds_is_given_up() -> None:
    """40 steps either way, equally likely: 48 rounds gain less than a digit, again and again,
    though 400 would be enough.
    """
    n = 40
    target = [node for x in range(n) for node in (max(x - 1, 0), x + 1)]
    walk, rate = chain_of(2 * np.arange(n + 1), target, np.full(2 * n, 0.5)), np.ones(n)
    assert Sweeps.of_chain(walk).run(walk, rate, np.zeros(n))[1] > MAX_ROUNDS
    value, method = total(walk, rate)
    assert method == "elimination" and value[0] == pytest.approx(n * (n + 1), rel=1e-12)


@pytest.mark.parametrize("seed", range(100))
def test_states_stand_behind_the_next_on_their_cheapest_way(seed: int) -> None:
    draw = random.Random(seed)
    given, rate = random_rows(draw)
    n = len(given.state_rows) - 1
    extra = 0.125
    edges = [
        (node, int(given.target[o]), (rate[k] + extra) / given.probability[o])
        for node in range(n)
        for k in range(given.state_rows[node], given.state_rows[node + 1])
        for o in range(given.row_start[k], given.row_start[k + 1])
    ]
    least = [float("inf")] * n + [0.0]
    for _ in range(n):
        for source, to, length in edges:
            least[source] = min(least[source], least[to] + length)
    found = np.full(n + 1, np.inf)
    order = dijkstra(*incoming_edges(given, rate, extra), n, found)[1:]
    assert found == pytest.approx(least, rel=1e-12)
    assert sorted(order.tolist()) == list(range(n))
    assert np.all(np.diff(found[order]) >= 0)
    sweeps, first = Sweeps.outwards(given, rate)
    for begin, end in pairwise(sweeps.component_start.tolist()):
        key = [(first[state], state) for state in sweeps.order[begin:end].tolist()]
        assert key == sorted(key)


@pytest.mark.parametrize("seed", range(100))
def test_sweeps_settle_where_plain_value_iteration_does(seed: int) -> None:
    given, rate = random_rows(random.Random(seed), 40)
    n = len(given.state_rows) - 1
    rate = rate + 0.5
    sweeps, first = Sweeps.outwards(given, rate)
    assert np.all(np.diff(sweeps.component_start) > 0) and sorted(sweeps.order.tolist()) == list(
        range(n)
    )
    value, rounds = sweeps.run(given, rate, first, SETTLED)
    assert rounds <= MAX_ROUNDS
    plain = np.zeros(n + 1)
    for _ in range(20_000):
        ahead = rate + given.sums(given.probability * plain[given.target])
        after = np.append(np.minimum.reduceat(ahead, given.state_rows[:-1]), 0.0)
        if np.array_equal(after, plain):
            break
        plain = after
    assert value == pytest.approx(plain[:-1], rel=1e-11)


@pytest.mark.parametrize("leave", [2.0**-10, 2.0**-17, 2.0**-24])
def test_a_rare_exit_is_found_by_leaps(leave: float) -> None:
    """Every node jumps anywhere and leaves with a small chance: plain sweeps would need millions.
    The rest is the same from everywhere.
    """
    n, draw = 2_000, np.random.default_rng(1)
    target = np.column_stack([np.full(n, n), draw.integers(0, n, (n, 2))]).astype(np.int32)
    probability = np.tile([leave, 0.5, 0.5 - leave], n)
    given, rate = chain_of(np.arange(n + 1) * 3, target.reshape(-1), probability), np.ones(n)
    value, _ = Sweeps.outwards(given, rate)[0].run(given, rate, np.zeros(n), SETTLED)
    assert value == pytest.approx(1 / leave, rel=1e-7)


def test_a_chain_that_mixes_slowly_is_given_up() -> None:
    """A walk without drift on 5,000 nodes."""
    n = 5_000
    target = np.column_stack([np.maximum(np.arange(n) - 1, 0), np.arange(n) + 1]).astype(np.int32)
    chain = chain_of(np.arange(n + 1) * 2, target.reshape(-1), np.full(2 * n, 0.5))
    assert Sweeps.of_chain(chain).run(chain, np.ones(n), np.zeros(n))[1] > MAX_ROUNDS
    assert total(chain, np.ones(n))[1] == "factorisation"


def test_a_node_that_no_float_leaves_has_no_total() -> None:
    chain = chain_of(np.array([0, 1]), [0], [1])
    assert not np.isfinite(total(chain, np.ones(1))[0]).any()


def test_targets_anywhere() -> None:
    """A large model without any order: one component, as plain value iteration has it."""
    n, draw = 110_000, np.random.default_rng(5)
    targets = draw.integers(0, n, size=(2 * n, 3))
    targets[::10, 0] = n
    ssp = tp.SSP(
        state_choices=np.append(np.arange(n + 1) * 2, 2 * n),
        choice_outcomes=np.arange(2 * n + 1) * 3,
        outcome_target=targets.reshape(-1),
        outcome_probability=np.tile([0.5, 0.25, 0.25], 2 * n),
        outcome_cost=np.repeat(draw.integers(1, 10, 2 * n).astype(np.float64), 3),
        choice_action=np.tile(np.arange(2, dtype=np.int32), n),
        is_goal=np.append(np.zeros(n, dtype=np.bool_), True),
        start_index=0,
        states=range(n + 1),
        actions=["a", "b"],
    )
    found = tp.solve_expected(ssp)
    value = np.zeros(n + 1)
    rate = ssp.outcome_cost[::3]
    for _ in range(400):
        value[:-1] = (
            (
                rate
                + (ssp.outcome_probability * value[ssp.outcome_target]).reshape(-1, 3).sum(axis=1)
            )
            .reshape(-1, 2)
            .min(axis=1)
        )
    assert found.value == pytest.approx(value, rel=1e-9)
    assert np.all(found.upper - found.lower <= 1e-10 * found.upper)


def test_leaps_do_not_go_too_far() -> None:
    """A grid on which several slow errors add up: a leap by the direction of one went far below 0,
    and the sweeps never came back.
    """
    ssp = tp.domains.river(rows=300, columns=300)
    found = tp.solve_expected(ssp)
    low, high = found.bounds
    assert found.method == "value iteration" and high - low <= 1e-12 * low
