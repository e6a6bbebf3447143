"""`info`, `solve --method expected` and `convert`, as users call them."""

import pytest

import tailpath as tp
from tests import measured
from tests.cli.running import refusal, run


@pytest.fixture
def trapped(tmp_path):
    """A model whose start cannot avoid a pit."""
    path = tmp_path / "trapped.json"
    rows = [("a", "go", "pit", 0.5, 1), ("a", "go", "end", 0.5, 1), ("pit", "wait", "pit", 1, 2)]
    tp.write(tp.SSP.from_outcomes(rows, "a", ["end"]), path)
    return path


def test_info_for_people(capsys):
    result = run(capsys, "info", "river:10x3")
    assert (result.code, result.err) == (0, "")
    assert dict(line.split("  ", 1) for line in result.out.splitlines()).keys() == {
        "model",
        "states",
        "choices",
        "outcomes",
        "costs",
        "cost unit",
        "start",
        "goals",
        "dead ends",
        "goal is certain",
        "every policy proper",
    }
    assert "30 on a grid of 10 rows and 3 columns" in result.out


def test_info_for_programs(capsys):
    result = run(capsys, "info", "gridworld:5x5", "--json")
    record = result.json
    assert (result.code, result.err) == (0, "")
    assert (record["states"], record["choices"], record["start"], record["goals"]) == (
        25,
        96,
        [4, 4],
        [[4, 0]],
    )
    assert (record["cost_unit"], record["dead_ends"], record["every_policy_is_proper"]) == (
        "1",
        [],
        True,
    )
    assert record["costs"] == {"min": 1.0, "least_paid": 1.0, "max": 100.0, "free_outcomes": 0}
    assert record["choices_per_state"] == {"min": 4, "mean": 4.0, "max": 4}
    assert record["grid"] == {"rows": 5, "columns": 5}


def test_info_tells_dead_ends(capsys, trapped):
    record = run(capsys, "info", trapped, "--json").json
    assert (
        record["dead_ends"],
        record["start_surely_reaches_a_goal"],
        record["every_policy_is_proper"],
    ) == (["pit"], False, False)
    assert "1: pit" in run(capsys, "info", trapped).out


def test_info_without_a_cost_unit(capsys, tmp_path):
    path = tmp_path / "odd.json"
    tp.write(
        tp.SSP.from_outcomes(
            [("a", "x", "b", 1, 3.14159265358979), ("b", "x", "end", 1, 1)], "a", ["end"]
        ),
        path,
    )
    assert run(capsys, "info", path, "--json").json["cost_unit"] is None
    assert "no usable common unit" in run(capsys, "info", path).out


def test_info_of_a_start_that_is_the_goal(capsys, tmp_path):
    path = tmp_path / "home.json"
    tp.write(tp.SSP.from_outcomes([], "home", ["home"]), path)
    record = run(capsys, "info", path, "--json").json
    assert (record["states"], record["costs"], record["choices_per_state"]) == (1, None, None)
    assert run(capsys, "info", path).code == 0


def test_notes_of_a_reader_are_said_once_each(capsys, tmp_path):
    path = tmp_path / "noted.json"
    ssp = tp.SSP.from_outcomes(
        [("a", "x", "end", 1, 1)],
        "a",
        ["end"],
        notes=("rewards were negated", "time limits do not count"),
    )
    tp.write(ssp, path)
    assert (
        run(capsys, "info", path).err
        == "tailpath: note: rewards were negated\ntailpath: note: time limits do not count\n"
    )


@pytest.mark.parametrize(("model", "value"), measured.EXPECTED.items())
def test_solve_expected(capsys, model, value):
    record = run(capsys, "solve", model, "--method", "expected", "--json").json
    low, high = record["bounds"]
    assert low <= record["expected_cost"] <= high
    assert record["expected_cost"] == pytest.approx(value, abs=5e-4)
    assert (record["model"], record["method"]) == (model, "expected")


def test_solve_for_people(capsys):
    result = run(capsys, "solve", "river:30x10", "--method", "expected")
    assert (result.code, result.err) == (0, "")
    assert "16.99033495" in result.out


def test_solve_saves_the_policy(capsys, tmp_path):
    path = tmp_path / "policy.json"
    assert run(capsys, "solve", "river:10x3", "--method", "expected", "-o", path).code == 0
    ssp = tp.domains.river(rows=10, columns=3)
    assert tp.read_policy(path, ssp).action((8, 0), None) == tp.solve_expected(ssp).policy.action(
        (8, 0), None
    )


def test_solve_refuses_a_trapped_start(capsys, trapped):
    assert "pit" in refusal(capsys, "solve", trapped, "--method", "expected")


def test_solve_refuses_options_of_other_methods(capsys):
    message = (
        "--delta does not apply to --method expected, only to exact (see 'tailpath solve --help')"
    )
    assert refusal(capsys, "solve", "river:10x3", "--method", "expected", "--delta", "1") == message
    assert "--alpha does not apply to --method expected" in refusal(
        capsys, "solve", "river:10x3", "--method", "expected", "--alpha", "0.1"
    )
    assert refusal(capsys, "solve", "river:10x3", "--method", "magic").startswith(
        "there is no method 'magic'; there are exact, expected,"
    )


def test_convert_there_and_back(capsys, tmp_path):
    there, back = tmp_path / "river.npz", tmp_path / "river.json"
    first = run(capsys, "convert", "river:10x3", there)
    assert (first.code, first.err) == (0, "")
    assert first.out == f"{there}: 30 states, 116 choices, 195 outcomes\n"
    assert run(capsys, "convert", there, back, "--json").json == {
        "model": str(there),
        "written": str(back),
        "states": 30,
        "choices": 116,
        "outcomes": 195,
    }
    ssp, again = tp.domains.river(rows=10, columns=3), tp.read(back)
    assert (again.outcome_probability == ssp.outcome_probability).all()
    assert (again.geometry, again.cost_unit, again.start) == (
        ssp.geometry,
        ssp.cost_unit,
        ssp.start,
    )


def test_convert_to_an_unknown_format(capsys, tmp_path):
    assert "unknown format" in refusal(capsys, "convert", "river:10x3", tmp_path / "river.xyz")
    assert "nowhere" in refusal(
        capsys, "convert", "river:10x3", tmp_path / "nowhere" / "river.json"
    )
