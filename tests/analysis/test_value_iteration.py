"""The order of the sweeps against brute force, and components played in halves by one thread or two."""

from __future__ import annotations

import random
from typing import Any

import numba
import numpy as np
import pytest

import tailpath as tp
from tailpath.analysis import reachability
from tailpath.analysis.core import core_of
from tailpath.analysis.equations import approached
from tailpath.analysis.value_iteration import first_sweeps
from tailpath.kernels.bellman import Decisions, linked_blocks
from tailpath.kernels.graph import sweep_back
from tailpath.kernels.order import outward_order
from tests.strategies import random_rows


def random_decisions(draw: random.Random) -> Decisions:
    """Nodes with one to three choices; all of them lead on to a lower number or out now and then, so that every goal is reached."""
    n = draw.randint(1, 12)
    state_choices, choice_outcomes, target, probability = [0], [0], [], []
    for node in range(n):
        for _ in range(draw.randint(1, 3)):
            others = draw.sample(range(n), min(n, draw.randint(0, 3)))
            target += [node - 1 if node else n, *others]
            probability += [1 / (len(others) + 1)] * (len(others) + 1)
            choice_outcomes.append(len(target))
        state_choices.append(len(choice_outcomes) - 1)
    rate = np.array([draw.choice((0.0, 1.0, 2.5)) for _ in choice_outcomes[1:]])
    return Decisions(np.array(state_choices), np.array(choice_outcomes), np.array(target, dtype=np.int32), np.array(probability), rate)


@pytest.mark.parametrize("seed", range(100))
def test_nodes_stand_behind_the_next_on_their_cheapest_way(seed: int) -> None:
    draw = random.Random(seed)
    given = random_decisions(draw)
    n = len(given.state_choices) - 1
    extra = 0.125
    arrows = [
        (node, int(given.target[o]), (given.rate[k] + extra) / given.probability[o])
        for node in range(n)
        for k in range(given.state_choices[node], given.state_choices[node + 1])
        for o in range(given.choice_outcomes[k], given.choice_outcomes[k + 1])
    ]
    least = [float("inf")] * n + [0.0]
    for _ in range(n):
        for source, to, length in arrows:
            least[source] = min(least[source], least[to] + length)
    found, order = np.full(n + 1, np.inf), np.empty(n, dtype=np.int64)
    outward_order(given, extra, 1e300, draw.choice((1, 2, 100)), found, order)
    assert found == pytest.approx(least, rel=1e-12)
    assert sorted(order.tolist()) == list(range(n))
    place = {int(node): k for k, node in enumerate(order)} | {n: -1}
    for node in range(n):
        assert any(
            place[to] < place[node] and least[to] + length <= least[node] * (1 + 1e-12) for source, to, length in arrows if source == node
        )


@pytest.mark.parametrize("seed", range(100))
def test_sweeps_find_what_reaches_a_mark(seed: int) -> None:
    draw = random.Random(seed)
    start, target, _ = random_rows(draw)
    n = len(start) - 1
    marks = np.array([draw.random() < 0.3 for _ in range(n)])
    closed = set(np.flatnonzero(marks).tolist())
    while more := {x for x in range(n) if x not in closed and closed & set(target[start[x] : start[x + 1]].tolist())}:
        closed |= more
    for most in (1, 2, n + 2):
        reached = marks.copy()
        finished = sweep_back(start, target, most, reached)
        assert set(np.flatnonzero(reached).tolist()) <= closed
        assert not finished or set(np.flatnonzero(reached).tolist()) == closed
        assert finished or most < n + 2


@pytest.mark.parametrize("seed", range(100))
def test_one_component_is_never_feigned(seed: int) -> None:
    start, target, _ = random_rows(random.Random(seed))
    assert reachability.is_one_component(start, target) <= (reachability.strong_components(start, target)[1] == 1)


def test_a_circle_is_one_component() -> None:
    assert reachability.is_one_component(np.array([0, 1, 2, 3]), np.array([1, 2, 0], dtype=np.int32))
    assert not reachability.is_one_component(np.array([0, 1, 2, 3]), np.array([1, 2, 2], dtype=np.int32))


def large_model() -> tp.SSP:
    """Targets anywhere, one choice in ten may arrive: one component that is played in halves."""
    n, draw = 110_000, np.random.default_rng(5)
    targets = draw.integers(0, n, size=(2 * n, 3))
    targets[::10, 0] = n
    return tp.SSP(
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


def test_threads_change_nothing_in_large_components() -> None:
    found: list[Any] = []
    for threads in (1, numba.config.NUMBA_NUM_THREADS):
        before = numba.get_num_threads()
        numba.set_num_threads(threads)
        try:
            found.append(tp.solve_expected(large_model()))
        finally:
            numba.set_num_threads(before)
    one, all_of_them = found
    sweeps = first_sweeps(core_of(one.ssp))[0]
    assert linked_blocks(sweeps.folded(core_of(one.ssp).decisions()), 0, one.ssp.n_states - 1)[0][-1] < 0, "played in halves"
    for name in ("value", "lower", "upper", "choices"):
        assert np.array_equal(getattr(one, name), getattr(all_of_them, name))
    ssp, value = one.ssp, np.zeros(one.ssp.n_states)
    rate = ssp.outcome_cost[::3]
    for _ in range(400):
        value[:-1] = (rate + (ssp.outcome_probability * value[ssp.outcome_target]).reshape(-1, 3).sum(axis=1)).reshape(-1, 2).min(axis=1)
    assert one.value == pytest.approx(value, rel=1e-9)
    assert np.all(one.upper - one.lower <= 1e-10 * one.upper)


@pytest.mark.parametrize("seed", range(20))
def test_equations_are_approached(seed: int) -> None:
    draw = np.random.default_rng(seed)
    matrix = draw.random((30, 30))
    matrix *= 0.99 / matrix.sum(axis=1, keepdims=True)
    constant = draw.random(30)
    found = approached(lambda x: matrix @ x, constant, np.zeros(30), 1e-10, 60)
    assert found == pytest.approx(np.linalg.solve(np.eye(30) - matrix, constant), rel=1e-7)


def test_equations_without_a_solution_are_given_up() -> None:
    """Two nodes that lead to each other for ever."""
    assert approached(lambda x: x[::-1], np.ones(2), np.zeros(2), 1e-10, 60) is None
