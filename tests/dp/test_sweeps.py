"""The order of the sweeps against brute force, and what they settle to."""

from __future__ import annotations

import random
from itertools import pairwise

import numpy as np
import pytest

import tailpath as tp
from tailpath.dp.backup import Decisions, best_row, row_value
from tailpath.dp.expected import chain_of, total
from tailpath.dp.sweeps import MAX_ROUNDS, Sweeps, incoming_edges
from tailpath.kernels.rounding import SETTLED
from tailpath.kernels.shortest_paths import dijkstra


def random_decisions(draw: random.Random, longest: int = 12) -> Decisions:
    """Nodes with one to three choices; all of them lead on to a lower number or out now and then,
    so that every goal is reached.
    """
    n = draw.randint(1, longest)
    state_choices, choice_outcomes, target, probability = [0], [0], [], []
    for node in range(n):
        for _ in range(draw.randint(1, 3)):
            others = draw.sample(range(n), min(n, draw.randint(0, 3)))
            target += [node - 1 if node else n, *others]
            probability += [1 / (len(others) + 1)] * (len(others) + 1)
            choice_outcomes.append(len(target))
        state_choices.append(len(choice_outcomes) - 1)
    rate = np.array([draw.choice((0.0, 1.0, 2.5)) for _ in choice_outcomes[1:]])
    return Decisions(
        np.array(state_choices),
        np.array(choice_outcomes),
        np.array(target, dtype=np.int32),
        np.array(probability),
        rate,
    )


@pytest.mark.parametrize("seed", range(100))
def test_the_backup_by_hand(seed: int) -> None:
    draw = random.Random(seed)
    given = random_decisions(draw)
    n = len(given.state_choices) - 1
    value = np.append([draw.uniform(0, 9) for _ in range(n)], 0.0)
    for state in range(n):
        rows = range(given.state_choices[state], given.state_choices[state + 1])
        worth = []
        for row in rows:
            outcomes = slice(given.choice_outcomes[row], given.choice_outcomes[row + 1])
            ahead = float(np.sum(given.probability[outcomes] * value[given.target[outcomes]]))
            assert row_value(*given[1:4], row, 0, value) == pytest.approx(
                ahead, rel=1e-14, abs=1e-300
            )
            worth.append(given.rate[row] + ahead)
        best, row = best_row(*given[:5], state, value)
        assert best == pytest.approx(min(worth), rel=1e-14, abs=1e-300)
        assert worth[row - rows[0]] == pytest.approx(min(worth), rel=1e-14, abs=1e-300)


def test_of_rows_that_tie_the_first_is_best() -> None:
    tied = Decisions(
        np.array([0, 3]),
        np.arange(4),
        np.ones(3, dtype=np.int32),
        np.ones(3),
        np.array([2.0, 1.0, 1.0]),
    )
    assert best_row(*tied[:5], 0, np.zeros(2)) == (1.0, 1)
    none = Decisions(
        np.array([0, 0]),
        np.zeros(1, dtype=np.int64),
        np.zeros(0, dtype=np.int32),
        np.zeros(0),
        np.zeros(0),
    )
    assert best_row(*none[:5], 0, np.zeros(2)) == (np.inf, -1)


@pytest.mark.parametrize("seed", range(100))
def test_states_stand_behind_the_next_on_their_cheapest_way(seed: int) -> None:
    draw = random.Random(seed)
    given = random_decisions(draw)
    n = len(given.state_choices) - 1
    extra = 0.125
    edges = [
        (node, int(given.target[o]), (given.rate[k] + extra) / given.probability[o])
        for node in range(n)
        for k in range(given.state_choices[node], given.state_choices[node + 1])
        for o in range(given.choice_outcomes[k], given.choice_outcomes[k + 1])
    ]
    least = [float("inf")] * n + [0.0]
    for _ in range(n):
        for source, to, length in edges:
            least[source] = min(least[source], least[to] + length)
    found = np.full(n + 1, np.inf)
    order = dijkstra(*incoming_edges(given, extra), n, found)[1:]
    assert found == pytest.approx(least, rel=1e-12)
    assert sorted(order.tolist()) == list(range(n))
    assert np.all(np.diff(found[order]) >= 0)
    sweeps, first = Sweeps.outwards(given)
    for begin, end in pairwise(sweeps.component_start.tolist()):
        key = [(first[state], state) for state in sweeps.order[begin:end].tolist()]
        assert key == sorted(key)


@pytest.mark.parametrize("seed", range(100))
def test_sweeps_settle_where_plain_value_iteration_does(seed: int) -> None:
    given = random_decisions(random.Random(seed), 40)
    n = len(given.state_choices) - 1
    given = given._replace(rate=given.rate + 0.5)
    sweeps, first = Sweeps.outwards(given)
    assert np.all(np.diff(sweeps.component_start) > 0) and sorted(sweeps.order.tolist()) == list(
        range(n)
    )
    value, rounds = sweeps.run(given, first, SETTLED)
    assert rounds <= MAX_ROUNDS
    plain = np.zeros(n + 1)
    for _ in range(20_000):
        ahead = given.rate + np.add.reduceat(
            given.probability * plain[given.target], given.choice_outcomes[:-1]
        )
        after = np.append(np.minimum.reduceat(ahead, given.state_choices[:-1]), 0.0)
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
    given = chain_of(np.arange(n + 1) * 3, target.reshape(-1), probability, np.ones(n))
    value, _ = Sweeps.outwards(given)[0].run(given, np.zeros(n), SETTLED)
    assert value == pytest.approx(1 / leave, rel=1e-7)


def test_a_chain_that_mixes_slowly_is_given_up() -> None:
    """A walk without drift on 5,000 nodes."""
    n = 5_000
    target = np.column_stack([np.maximum(np.arange(n) - 1, 0), np.arange(n) + 1]).astype(np.int32)
    chain = chain_of(np.arange(n + 1) * 2, target.reshape(-1), np.full(2 * n, 0.5), np.ones(n))
    assert Sweeps.of_chain(*chain[1:3]).run(chain, np.zeros(n))[1] > MAX_ROUNDS
    assert total(chain)[1] == "factorisation"


def test_a_node_that_no_float_leaves_has_no_total() -> None:
    chain = chain_of(np.array([0, 1]), np.array([0], dtype=np.int32), np.ones(1), np.ones(1))
    assert not np.isfinite(total(chain)[0]).any()


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
