import os
import subprocess
import sys
import tracemalloc
from fractions import Fraction as F

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tailpath as tp
from tailpath.domains import grids
from tailpath.errors import OptionError
from tests.domains.slow_grids import in_floats, outcomes_of, slow_river


def check(rows, columns):
    ssp = tp.domains.river(rows=rows, columns=columns)
    outcomes, start, goal = slow_river(rows, columns)
    assert outcomes_of(ssp) == in_floats(outcomes)
    assert (ssp.start, ssp.goals) == (start, (goal,))


@pytest.mark.parametrize(("rows", "columns"), [(10, 3), (16, 6), (30, 10)])
def test_the_papers_sizes_follow_the_definition(rows, columns):
    check(rows, columns)
    assert tp.domains.river(rows=rows, columns=columns).cost_unit == F(1, 2)


@given(st.integers(2, 7), st.integers(2, 7))
def test_any_size_follows_the_definition(rows, columns):
    check(rows, columns)


def test_without_water_there_are_no_half_costs():
    assert tp.domains.river(rows=2, columns=5).cost_unit == 1


def test_south_may_move_two_rows():
    ssp = tp.domains.river(rows=6, columns=3)
    assert outcomes_of(ssp)[(2, 1), "S"] == {
        ((2, 1), F(1, 2)): 0.16,
        ((3, 1), F(1, 2)): 0.68,
        ((4, 1), F(1, 2)): 0.16,
    }


def test_geometry():
    geometry = tp.domains.river(rows=3, columns=4).geometry
    assert (geometry.rows, geometry.columns) == (3, 4)
    assert (geometry.row[5], geometry.column[5]) == (1, 1)
    assert geometry.kind == (
        *("bank", "bridge", "bridge", "bank"),
        *("bank", "river", "river", "bank"),
        *("bank", "waterfall", "waterfall", "goal"),
    )


@pytest.mark.parametrize(
    ("rows", "columns", "message"),
    [
        (1, 5, "rows must be a whole number of at least 2, not 1"),
        (5, 0, "columns must be a whole number of at least 2, not 0"),
        (5.5, 5, "rows must be a whole number of at least 2, not 5.5"),
        (5, "5", "columns must be a whole number of at least 2, not '5'"),
    ],
)
def test_bad_sizes(rows, columns, message):
    with pytest.raises(OptionError) as error:
        tp.domains.river(rows=rows, columns=columns)
    assert str(error.value) == message


def test_a_grid_beyond_the_memory_is_refused_before_it_is_built(monkeypatch):
    """A trillion states: whoever began to build them would not come to an end."""
    with pytest.raises(
        OptionError,
        match=(
            r"a grid of 999999 x 999999 has 999998000001 states and takes about 1\.\d+e\+06 GiB to"
            r" build; .* GiB of memory"
        ),
    ):
        tp.read("river:999999x999999")
    monkeypatch.setattr(grids, "available_bytes", lambda: 1000 * grids.BYTES_PER_CELL)
    assert tp.domains.river(rows=50, columns=20).n_states == 1000
    for build in (
        lambda: tp.domains.river(rows=50, columns=21),
        lambda: tp.domains.gridworld("S" + "." * 1000 + "G"),
    ):
        with pytest.raises(OptionError, match="GiB of memory is available"):
            build()
    monkeypatch.setattr(grids, "available_bytes", lambda: None)
    assert tp.domains.river(rows=50, columns=21).n_states == 1050


def test_a_cell_takes_no_more_memory_than_is_said():
    tp.domains.river(rows=5, columns=5)
    tracemalloc.start()
    try:
        tp.domains.river(rows=200, columns=200)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 200 * 200 * grids.BYTES_PER_CELL


def test_the_limit_of_the_process_counts():
    pytest.importorskip("resource", reason="memory is limited on Unix only")
    code = (
        "import resource, tailpath; resource.setrlimit(resource.RLIMIT_AS, (2**31, 2**31));"
        " tailpath.read('river:3000x3000')"
    )
    told = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert (
        "a grid of 3000 x 3000 has 9000000 states and takes about 9.22 GiB to build" in told.stderr
    )


def test_a_waterfall_that_nobody_leaves():
    """From the middle of 3x3 the best is to swim right: .8 to arrive, .16 to stay where one is,
    .04 to fall, so 20/21; the rest of the model is the paper's.
    """
    falls = tp.domains.river(rows=3, columns=3, dead_end=True)
    chance = tp.solve_arrival(falls)
    assert chance.probability((1, 1)) == pytest.approx(20 / 21, rel=1e-12)
    assert (chance.probability((2, 1)), chance.probability((1, 0))) == (0.0, 1.0)
    usual = tp.domains.river(rows=3, columns=3)
    changed = falls.outcome_target != usual.outcome_target
    assert {falls.states[k] for k in falls.choice_state[falls.outcome_choice[changed]]} == {(2, 1)}
    assert (falls.outcome_target[changed] == falls.state_index((2, 1))).all()
    assert tp.evaluate(usual, tp.solve_expected(usual).policy, 0.1).unreached == 0
