"""The least expected total by policies, on models on which each of its steps matters."""

from __future__ import annotations

import random
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

from tailpath.dp import optimum as by_policies
from tailpath.dp.expected import total
from tailpath.dp.optimum import VALUE_ITERATION, optimum
from tests.dp.chains import chain_of
from tests.reference import solve

States = list[list[tuple[dict[int, Fraction], Fraction]]]


def drawn(draw: random.Random, n: int) -> States:
    """Rows of some states, with rates; the first of each leads on, and may never do so."""
    states: States = []
    for x in range(n):
        rows = []
        for k in range(draw.randint(1, 3)):
            weights = {x + 1: draw.randint(1, 4)} if k == 0 else {draw.randint(0, n): 1}
            weights[draw.randint(0, n)] = draw.randint(1, 8)
            p = {y: Fraction(w, sum(weights.values())) for y, w in weights.items()}
            rows.append((p, Fraction(draw.randint(1, 24), 4)))
        states.append(rows)
    return states


def given(states: States) -> tuple[Any, Any]:
    rows = [row for state in states for row in state]
    start = np.concatenate(([0], np.cumsum([len(p) for p, _ in rows]))).astype(np.int64)
    chain = chain_of(
        start, [y for p, _ in rows for y in p], [float(q) for p, _ in rows for q in p.values()]
    )
    first = np.concatenate(([0], np.cumsum([len(state) for state in states])))
    return chain.replaced(first_row=first), np.array([float(rate) for _, rate in rows])


def values_of(states: States, policy: tuple[int, ...]) -> list[Fraction] | None:
    """In fractions; None if the policy may go round for ever."""
    n = len(states)
    rows = [states[x][k] for x, k in enumerate(policy)]
    ends = {n}
    while more := {x for x in range(n) if x not in ends and ends & set(rows[x][0])}:
        ends |= more
    if len(ends) <= n:
        return None
    found = solve(range(n), lambda x: ({y: p for y, p in rows[x][0].items() if y < n}, rows[x][1]))
    return [found[x] for x in range(n)]


@pytest.mark.parametrize("directly", [False, True])
def test_the_least_of_all_policies(directly: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """By policies from the first row of every state, or else by sweeps."""
    if directly:
        monkeypatch.setattr(by_policies, "best_rows", lambda rows, value: rows[0][:-1].copy())
    draw, several = random.Random(1), 0
    for _ in range(80):
        states = drawn(draw, draw.randint(1, 4))
        policies = product(*(range(len(rows)) for rows in states))
        every = [found for policy in policies if (found := values_of(states, policy))]
        best = [min(each) for each in zip(*every)]
        rows, rate = given(states)
        found = optimum(rows, rate, directly=directly)
        assert found.value == pytest.approx([float(v) for v in best], rel=1e-12)
        own = tuple(int(row - rows.state_rows[x]) for x, row in enumerate(found.chosen.tolist()))
        assert [float(v) for v in values_of(states, own) or []] == pytest.approx(
            [float(v) for v in best], rel=1e-12
        )
        if directly:
            assert found.how != VALUE_ITERATION and found.iterations >= 1
            several += found.iterations > 1
        else:
            assert found.how == VALUE_ITERATION and 0 <= found.iterations < 100
    assert several > 10 or not directly


def test_policies_are_counted() -> None:
    """One state: go, at a cost of 3, or wait for a quarter of a chance at a cost of 1."""
    chain = given([[({1: Fraction(1)}, Fraction(3))]])
    assert optimum(*chain, directly=True).iterations == 1
    rows, _ = given(
        [[({1: Fraction(1)}, Fraction(5)), ({0: Fraction(3, 4), 1: Fraction(1, 4)}, Fraction(1))]]
    )
    for cost, policies in ((5.0, 1), (3.0, 1)):
        found = optimum(rows, np.array([cost, 1.0]), directly=True)
        assert found.value[0] == pytest.approx(min(cost, 4.0), rel=1e-12)
        assert found.iterations == policies


def test_a_policy_that_never_ends_is_not_taken() -> None:
    """To go round costs nothing beside what to leave does, and comes first."""
    states: States = [
        [({1: Fraction(1)}, Fraction(1, 2**40)), ({2: Fraction(1)}, Fraction(10))],
        [({0: Fraction(1)}, Fraction(1, 2**40)), ({2: Fraction(1)}, Fraction(20))],
    ]
    for directly in (False, True):
        found = optimum(*given(states), directly=directly)
        assert found.value.tolist() == pytest.approx([10, 10], rel=1e-12)
        assert found.chosen.tolist() == [1, 2]


def test_a_policy_that_ends_from_some_states_alone_is_no_beginning(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Sweeps that were given up may leave two states that lead to one another."""
    monkeypatch.setattr(by_policies, "best_rows", lambda rows, value: rows[0][:-1].copy())
    states: States = [
        [({1: Fraction(1)}, Fraction(1)), ({3: Fraction(1)}, Fraction(10))],
        [({0: Fraction(1)}, Fraction(1)), ({3: Fraction(1)}, Fraction(11))],
        [({3: Fraction(1)}, Fraction(1))],
    ]
    found = optimum(*given(states), directly=True)
    assert found.value.tolist() == [10, 11, 1] and found.iterations == 1


def test_rewards_are_rates_below_0() -> None:
    """The largest probability of arriving is the least expected total of its negative."""
    states: States = [
        [
            ({1: Fraction(1, 4), 2: Fraction(3, 4)}, Fraction(-1, 4)),
            ({1: Fraction(1)}, Fraction(0)),
        ],
        [({2: Fraction(1)}, Fraction(-1, 2))],
    ]
    for directly in (False, True):
        found = optimum(*given(states), directly=directly)
        assert found.value.tolist() == pytest.approx([-0.5, -0.5], rel=1e-12)


def test_states_known_to_be_worth_nothing() -> None:
    states: States = [
        [({1: Fraction(1)}, Fraction(2))],
        [({1: Fraction(1, 2), 2: Fraction(1, 2)}, Fraction(0))],
    ]
    rows, rate = given(states)
    found = optimum(rows, rate, np.array([False, True]))
    assert found.value.tolist() == [2, 0]


def test_a_total_of_each_method_is_named() -> None:
    rows, rate = given([[({0: Fraction(1, 2), 1: Fraction(1, 2)}, Fraction(1))]])
    assert total(rows, rate)[1] == "sweeps"
    assert total(rows, rate, directly=True)[1] == "elimination"


@pytest.mark.parametrize("directly", [False, True])
def test_where_no_policy_ends_the_optimum_is_infinite(directly: bool) -> None:
    rows, rate = given([[({0: Fraction(1)}, Fraction(1))], [({2: Fraction(1)}, Fraction(1))] * 2])
    assert optimum(rows, rate, directly=directly).value[0] == np.inf
