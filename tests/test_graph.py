"""Each operation on rows of transitions alone: on small graphs by hand, and on random ones against
plain dictionaries.
"""

from __future__ import annotations

import itertools
import math
import random
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tailpath import graph
from tailpath.errors import ModelError
from tailpath.graph import (
    Transitions,
    grouped,
    members_of,
    offsets_from_lengths,
    offsets_of,
    owners,
    positions,
)
from tailpath.kernels.graph import close_under_choices
from tailpath.kernels.jit import interpreter

Edge = tuple[int, float, float, int]
Rows = dict[int, list[Edge]]
#: A source of random numbers that hypothesis chooses, and shrinks.
DRAWS = given(draw=st.randoms(use_true_random=False))


#: The engine is the same for all that is drawn.
BY_ENGINE = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture(params=["plain", "compiled"])
def engine(request: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interpreter, "compiles", request.param == "compiled")


def drawn(draw: random.Random) -> Rows:
    """Rows with none to four edges each; some lead outside, under several numbers, some stay, some
    are alike.
    """
    n = draw.randint(1, 9)
    rows: Rows = {}
    for row in range(n):
        targets = [
            draw.choice([row, draw.randrange(n), draw.randrange(n), draw.randrange(n + 3)])
            for _ in range(draw.randint(0, 4))
        ]
        levels = [draw.choice((0, 0, 1, 2, 7, 100)) for _ in targets]
        rows[row] = [
            (target, draw.choice((0.25, draw.uniform(0.001, 1.0))), level / 4, level)
            for target, level in zip(targets, levels, strict=True)
        ]
    return rows


def made(rows: Rows) -> Transitions:
    edges = [edge for row in sorted(rows) for edge in rows[row]]
    target, probability, cost, level = (
        np.array([edge[column] for edge in edges]) for column in range(4)
    )
    lengths = np.array([len(rows[row]) for row in sorted(rows)])
    return Transitions(offsets_from_lengths(lengths), target, probability, cost, level)


def told(transitions: Transitions) -> Rows:
    level = np.full(len(transitions.target), -1) if transitions.level is None else transitions.level
    columns = transitions.target, transitions.probability, transitions.cost, level
    edges = list(zip(*(column.tolist() for column in columns), strict=True))
    bounds = transitions.row_start.tolist()
    return {row: edges[bounds[row] : bounds[row + 1]] for row in range(transitions.n)}


def reached(rows: Rows, start: int) -> set[int]:
    found, queue = {start}, [start]
    for node in queue:
        for target, *_ in rows[node]:
            if target in rows and target not in found:
                found.add(target)
                queue.append(target)
    return found


def cheapest(rows: Rows, price: int | None) -> dict[int, float]:
    """The cheapest way outside by column `price` of an edge, or the fewest edges: relaxed until
    nothing moves.
    """
    least = dict.fromkeys(rows, math.inf)
    while True:
        after = {
            node: min(
                (1 if price is None else edge[price]) + least.get(edge[0], 0.0) for edge in edges
            )
            if edges
            else math.inf
            for node, edges in rows.items()
        }
        if after == least:
            return least
        least = after


# ---------------------------------------------------------------------- the record


@DRAWS
def test_what_is_put_in_comes_out(draw: random.Random) -> None:
    rows = drawn(draw)
    transitions = made(rows)
    assert told(transitions) == rows
    assert transitions.n == len(rows)
    assert transitions.source.tolist() == [row for row, edges in rows.items() for _ in edges]


def test_arrays_are_of_one_kind_and_read_only() -> None:
    mine = np.array([0, 1, 1], dtype=np.int64)
    transitions = Transitions(
        np.array([0, 2, 3], dtype=np.int32), mine, np.ones(3), np.array([0, 1, 2]), None
    )
    kinds = [np.int64, np.int32, np.float64, np.float64, np.int32]
    arrays = [
        transitions.row_start,
        transitions.target,
        transitions.probability,
        transitions.cost,
        transitions.source,
    ]
    assert [array.dtype for array in arrays] == kinds
    assert not any(array.flags.writeable for array in arrays)
    assert mine.flags.writeable
    assert transitions.level is None


@pytest.mark.parametrize(
    "columns", [{"probability": [1.0]}, {"cost": [1.0]}, {"level": [1]}, {"row_start": []}]
)
def test_columns_that_do_not_agree_are_refused(columns: dict[str, Any]) -> None:
    transitions = made({0: [(0, 0.5, 1.0, 1), (1, 0.5, 1.0, 1)]})
    with pytest.raises(ModelError, match="2 transitions"):
        transitions.replaced(**{name: np.array(column) for name, column in columns.items()})


@DRAWS
def test_edges_in_any_order_become_rows(draw: random.Random) -> None:
    rows = drawn(draw)
    edges = [(row, *edge) for row in rows for edge in rows[row]]
    draw.shuffle(edges)
    source, *columns = (np.array([edge[column] for edge in edges]) for column in range(4))
    found = Transitions.from_edges(source.astype(np.int64), len(rows), *columns)
    expected = {row: [(*edge[1:4], -1) for edge in edges if edge[0] == row] for row in rows}
    assert told(found) == expected


@DRAWS
def test_sums_and_mean_costs_of_rows(draw: random.Random) -> None:
    rows = drawn(draw)
    transitions = made(rows)
    assert transitions.sums(transitions.cost).tolist() == [
        sum(cost for _, _, cost, _ in edges) for edges in rows.values()
    ]
    assert transitions.rate.tolist() == [
        sum(p * cost for _, p, cost, _ in edges) for edges in rows.values()
    ]


# ---------------------------------------------------------------------- groups


def test_groups_of_different_lengths() -> None:
    group = np.array([2, 0, 2, 2, 0])
    assert offsets_of(group, 4).tolist() == [0, 2, 2, 5, 5]
    assert offsets_from_lengths(np.array([2, 0, 3])).tolist() == [0, 2, 2, 5]
    assert owners(np.array([0, 2, 2, 5])).tolist() == [0, 0, 2, 2, 2]
    members, offsets = grouped(group, 4)
    assert (members.tolist(), offsets.tolist()) == ([1, 4, 0, 2, 3], [0, 2, 2, 5, 5])
    members, offsets = members_of(np.array([0, 2, 2, 5]), np.array([2, 0, 2]))
    assert (members.tolist(), offsets.tolist()) == ([2, 3, 4, 0, 1, 2, 3, 4], [0, 3, 5, 8])
    assert positions(np.array([False, True, False, True])).tolist() == [2, 0, 2, 1, 2]


@DRAWS
def test_grouping_is_the_same_by_sorting_and_by_counting(draw: random.Random) -> None:
    group = np.array([draw.randrange(5) for _ in range(draw.randrange(60))], dtype=np.int64)
    by_sorting = [part.tolist() for part in grouped(group, 5)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(graph, "SORTED_BY_NUMPY", 0)
        assert [part.tolist() for part in grouped(group, 5)] == by_sorting


# ---------------------------------------------------------------------- cutting, joining, numbering


@DRAWS
def test_restrict_by_numbers_in_any_order_and_by_mask(draw: random.Random) -> None:
    rows = drawn(draw)
    transitions = made(rows)
    picked = [draw.randrange(len(rows)) for _ in range(draw.randint(0, 6))]
    found = transitions.restrict(np.array(picked, dtype=np.int64))
    assert told(found) == {place: rows[row] for place, row in enumerate(picked)}
    assert (
        transitions.probability[transitions.edges(np.array(picked, dtype=np.int64))].tolist()
        == found.probability.tolist()
    )
    kept = np.array([draw.random() < 0.5 for _ in rows])
    assert told(transitions.restrict(kept)) == dict(
        enumerate(rows[row] for row in rows if kept[row])
    )


def test_restricting_to_all_rows_copies_nothing() -> None:
    transitions = made(drawn(random.Random(1)))
    assert transitions.restrict(np.ones(transitions.n, dtype=np.bool_)) is transitions
    assert transitions.only(np.ones(len(transitions.target), dtype=np.bool_)) is transitions


@DRAWS
def test_only_some_edges(draw: random.Random) -> None:
    rows = drawn(draw)
    transitions = made(rows)
    kept = np.array([draw.random() < 0.5 for _ in transitions.target], dtype=np.bool_)
    positions = iter(kept.tolist())
    assert told(transitions.only(kept)) == {
        row: [edge for edge in edges if next(positions)] for row, edges in rows.items()
    }


@DRAWS
def test_rows_are_joined_and_targets_renumbered(draw: random.Random) -> None:
    rows = drawn(draw)
    n = len(rows)
    first = sorted([0, n, *(draw.randint(0, n) for _ in range(2))])
    joined = {
        place: [edge for row in range(a, b) for edge in rows[row]]
        for place, (a, b) in enumerate(itertools.pairwise(first))
    }
    assert told(made(rows).joined(np.array(first))) == joined
    number = [draw.randrange(100) for _ in range(n + 3)]
    assert told(made(rows).renumber(np.array(number))) == {
        row: [(number[t], *rest) for t, *rest in rows[row]] for row in rows
    }


@DRAWS
def test_transpose(draw: random.Random) -> None:
    rows = drawn(draw)
    for n in (len(rows), draw.randint(0, 12)):
        expected: Rows = {target: [] for target in range(n + 1)}
        for row, edges in rows.items():
            for target, *rest in edges:
                expected[min(target, n)].append((row, *rest))
        assert told(made(rows).transpose(n)) == expected
    assert told(made(rows).transpose()) == told(made(rows).transpose(len(rows)))


@DRAWS
def test_collapse(draw: random.Random) -> None:
    rows = drawn(draw)
    group = [draw.randrange(4) for _ in rows]
    expected: Rows = {number: [] for number in range(4)}
    for row, edges in rows.items():
        expected[group[row]] += [
            (group[target] if target in rows else 4, *rest) for target, *rest in edges
        ]
    assert told(made(rows).collapse(np.array(group), 4)) == expected


def test_the_chance_of_staying_is_shared_out_where_floats_cannot_tell_it_from_one() -> None:
    """1 - p is 0 here."""
    rows = {
        0: [(0, 1.0, 2.0, 2), (1, 1e-20, 1.0, 1), (7, 3e-20, 1.0, 1)],
        1: [(0, 0.3, 1.0, 1), (7, 0.7, 1.0, 1)],
        2: [(2, 1.0, 1.0, 1)],
    }
    left = told(made(rows).without_self_loops())
    assert left[0] == [
        (1, pytest.approx(0.25, rel=1e-15), 1.0, 1),
        (7, pytest.approx(0.75, rel=1e-15), 1.0, 1),
    ]
    assert left[1] == rows[1]
    assert left[2] == []


@DRAWS
def test_without_some_self_loops(draw: random.Random) -> None:
    rows = drawn(draw)
    transitions = made(rows)
    some = np.array([draw.random() < 0.5 for _ in transitions.target], dtype=np.bool_)
    for marked, found in (
        (np.ones_like(some), transitions.without_self_loops()),
        (some, transitions.without_self_loops(some)),
    ):
        marks = iter(marked.tolist())
        for row, edges in rows.items():
            stays = [next(marks) and edge[0] == row for edge in edges]
            others = [edge for edge, loop in zip(edges, stays, strict=True) if not loop]
            total = math.fsum(p for _, p, _, _ in others) if any(stays) else 1.0
            expected = [
                (target, pytest.approx(p / total, rel=1e-14), *rest) for target, p, *rest in others
            ]
            assert told(found)[row] == expected


# ---------------------------------------------------------------------- searches


@BY_ENGINE
@DRAWS
def test_reachable(engine: None, draw: random.Random) -> None:
    rows = drawn(draw)
    transitions = made(rows)
    for start in rows:
        assert set(np.flatnonzero(transitions.reachable(start)).tolist()) == reached(rows, start)
    assert not transitions.reachable(transitions.n).any()


@BY_ENGINE
@DRAWS
def test_components_cycles_and_closed_classes(engine: None, draw: random.Random) -> None:
    rows = drawn(draw)
    transitions = made(rows)
    after = {row: reached(rows, row) for row in rows}
    component, count = transitions.components()
    label = component.tolist()
    assert set(label) == set(range(count))
    for x in rows:
        assert {y for y in rows if label[y] == label[x]} == {y for y in after[x] if x in after[y]}
        assert all(label[y] <= label[x] for y in after[x])
    inner = [
        target in rows and label[target] == label[row] for row in rows for target, *_ in rows[row]
    ]
    assert transitions.within(component).tolist() == inner
    again, cyclic = transitions.cycles()
    assert again.tolist() == label
    for x in rows:
        assert cyclic[label[x]] == any(
            x in reached(rows, target) for target, *_ in rows[x] if target in rows
        )
    again, closed = transitions.closed()
    assert again.tolist() == label
    for x in rows:
        leaves = any(
            target not in rows or label[target] != label[y]
            for y in rows
            if label[y] == label[x]
            for target, *_ in rows[y]
        )
        assert closed[label[x]] == (not leaves)


def test_rows_without_nodes(engine: None) -> None:
    nothing = made({})
    assert nothing.components()[1] == 0
    assert nothing.acyclic_order() is not None
    assert nothing.within(np.empty(0)).tolist() == nothing.steps().tolist() == []
    assert nothing.distances().least.tolist() == [0.0]


@BY_ENGINE
@DRAWS
def test_acyclic_order(engine: None, draw: random.Random) -> None:
    rows = drawn(draw)
    if draw.random() < 0.5:  # edges that only lead down
        rows = {
            row: [(draw.choice([99, *range(row)]), *rest) for _, *rest in edges]
            for row, edges in rows.items()
        }
    found = made(rows).acyclic_order()
    cycles = any(
        x in reached(rows, target) for x in rows for target, *_ in rows[x] if target in rows
    )
    assert (found is None) == cycles
    if found is not None:
        rank, longest = found
        assert sorted(rank.tolist()) == list(rows)
        assert all(rank[target] < rank[x] for x in rows for target, *_ in rows[x] if target in rows)

        def depth(x: int) -> int:
            return max((1 + depth(target) for target, *_ in rows[x] if target in rows), default=0)

        assert longest == max(map(depth, rows))


@DRAWS
def test_cheapest_ways_by_levels_and_by_costs(draw: random.Random) -> None:
    rows = drawn(draw)
    n = len(rows)
    counted = made(rows)
    far = {row: [(t, p, c, level << 16) for t, p, c, level in edges] for row, edges in rows.items()}
    for transitions, expected in (
        (counted, cheapest(rows, 3)),
        (counted.replaced(level=None), cheapest(rows, 2)),
        (made(far), cheapest(far, 3)),
    ):
        least, falling, place = transitions.distances()
        assert least.tolist() == [*expected.values(), 0.0]
        assert sorted(falling.tolist()) == [x for x in range(n + 1) if least[x] < math.inf]
        assert falling[-1] == n
        assert (np.diff(least[falling]) <= 0).all()
        assert place.tolist() == [
            falling.tolist().index(x) if least[x] < math.inf else -1 for x in range(n + 1)
        ]


@DRAWS
def test_fewest_steps(draw: random.Random) -> None:
    rows = drawn(draw)
    assert made(rows).steps().tolist() == [
        -1 if math.isinf(steps) else steps for steps in cheapest(rows, None).values()
    ]


def test_a_state_that_keeps_one_choice_stays():
    # State 0 may go to 2, which is outside, or stay; state 1 can only go to 2.
    into_start, into_choice = np.array([0, 1, 1, 3]), np.array([1, 0, 2])
    inside, allowed = np.array([True, True, False]), np.ones(3, dtype=np.bool_)
    close_under_choices(into_start, into_choice, np.array([0, 0, 1]), inside, allowed)
    assert inside.tolist() == [True, False, False]
    assert allowed.tolist() == [False, True, False]
