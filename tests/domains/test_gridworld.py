from fractions import Fraction as F

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tailpath as tp
from tailpath.domains.paper import MAPS
from tailpath.errors import FormatError, OptionError
from tests.domains.slow_grids import in_floats, outcomes_of, slow_gridworld


@st.composite
def maps(draw):
    rows, columns = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    cells = draw(
        st.lists(
            st.sampled_from("..#"), min_size=max(2, rows * columns), max_size=max(2, rows * columns)
        )
    )
    columns = len(cells) // rows
    start, goal = draw(
        st.lists(st.integers(0, rows * columns - 1), min_size=2, max_size=2, unique=True)
    )
    cells[start], cells[goal] = "S", "G"
    return ["".join(cells[r * columns : (r + 1) * columns]) for r in range(rows)]


def check(ssp, rows, **options):
    outcomes, start, goal = slow_gridworld(rows, **options)
    assert outcomes_of(ssp) == in_floats(outcomes)
    assert (ssp.start, ssp.goals) == (start, (goal,))
    assert ssp.states == tuple((r, c) for r in range(len(rows)) for c in range(len(rows[0])))


@pytest.mark.parametrize("name", ["5x5", "8x9", "14x16"])
def test_bundled_maps_follow_the_definition(name):
    ssp = tp.domains.gridworld(name)
    rows = MAPS[name].strip().splitlines()
    assert [len(rows), len(rows[0])] == [int(side) for side in name.split("x")]
    check(ssp, rows)
    assert ssp.start == (len(rows) - 1, len(rows[0]) - 1), "bottom right"
    assert ssp.goals == ((len(rows) - 1, 0),), "bottom left"
    assert ssp.cost_unit == 1


@given(
    maps(),
    st.sampled_from([F(95, 100), F(0), F(1, 4), F(1)]),
    st.sampled_from([F(100), F(0), F(1, 3), F(5, 2)]),
)
def test_any_map_and_options_follow_the_definition(rows, success, obstacle_cost):
    ssp = tp.domains.gridworld("\n".join(rows), success=success, obstacle_cost=obstacle_cost)
    check(ssp, rows, success=success, obstacle_cost=obstacle_cost)


def test_a_float_stands_for_its_decimal():
    exact = tp.domains.gridworld("5x5", success=F(7, 10), obstacle_cost=F(1, 10))
    floats = tp.domains.gridworld("5x5", success=0.7, obstacle_cost=0.1)
    assert outcomes_of(floats) == outcomes_of(exact)
    assert floats.cost_unit == F(1, 10)


def test_without_obstacles_their_cost_does_not_count():
    assert tp.domains.gridworld("S.G", obstacle_cost=F(1, 7)).cost_unit == 1


def test_geometry():
    geometry = tp.domains.gridworld("S#\n.G").geometry
    assert (geometry.rows, geometry.columns) == (2, 2)
    assert (geometry.row, geometry.column) == ((0, 0, 1, 1), (0, 1, 0, 1))
    assert geometry.kind == ("floor", "obstacle", "floor", "goal")


def test_blanks_around_a_map_do_not_count():
    ssp = tp.domains.gridworld("\n\n   S.#\n   ..G  \n\n")
    assert (ssp.start, ssp.goals, ssp.n_states) == ((0, 0), ((1, 2),), 6)


def test_bundled_maps_are_listed_by_size():
    assert tuple(MAPS) == ("5x5", "8x9", "14x16")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the map is empty"),
        ("S.\n.G.", "map row 1 has 3 columns, row 0 has 2"),
        ("S..\n.x.\n..G", "map row 1, column 1 holds 'x'; a cell is one of . # S G"),
        ("S. .G", "map row 0, column 2 holds ' '; a cell is one of . # S G"),
        (
            "S..\n..S\nG..",
            "map row 1, column 2 holds a second 'S'; the first is at row 0, column 0",
        ),
        ("S.G\n.G.", "map row 1, column 1 holds a second 'G'; the first is at row 0, column 2"),
        ("...\n..G", "the map has no start: no cell of its 2 rows and 3 columns holds 'S'"),
        ("S..", "the map has no goal: no cell of its 1 rows and 3 columns holds 'G'"),
    ],
)
def test_bad_maps_name_row_and_column(text, message):
    with pytest.raises(FormatError) as error:
        tp.domains.gridworld(text)
    assert str(error.value) == message


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: tp.domains.gridworld("6x6"),
            "there is no bundled map '6x6'; the bundled maps are 5x5, 8x9, 14x16",
        ),
        (lambda: tp.domains.gridworld("5x5", success=1.5), "success must lie in [0, 1], not 1.5"),
        (
            lambda: tp.domains.gridworld("5x5", success=float("nan")),
            "success must be a number, not nan",
        ),
        (
            lambda: tp.domains.gridworld("5x5", success="high"),
            "success must be a number, not 'high'",
        ),
        (
            lambda: tp.domains.gridworld("5x5", obstacle_cost=-1),
            "obstacle_cost must be 0 or more, not -1",
        ),
        (
            lambda: tp.domains.gridworld("5x5", obstacle_cost=float("inf")),
            "obstacle_cost must be a number, not inf",
        ),
        (
            lambda: tp.domains.gridworld("5x5", obstacle_cost=10**400),
            "obstacle_cost must be a finite number",
        ),
    ],
)
def test_bad_options(call, message):
    with pytest.raises(OptionError) as error:
        call()
    assert str(error.value).startswith(message)
