"""What people read in the first minutes: plurals, near names, what a problem is."""

from __future__ import annotations

import pytest

import tailpath as tp
from tests.cli.running import run

ROWS = [
    ("home", "train", "work", 1.0, 30.0),
    ("home", "road", "work", 0.9, 20.0),
    ("home", "road", "work", 0.1, 60.0),
]
SSP = tp.SSP.from_outcomes(ROWS, "home", ["work"])


def test_one_is_no_plural():
    sure = tp.SSP.from_outcomes(ROWS[:1], "home", ["work"])
    assert "1 corner," in repr(tp.frontier(sure, "cvar(0.1)")) and "2 corners," in repr(
        tp.frontier(SSP, "cvar(0.1)")
    )
    assert repr(tp.MarkovPolicy({"home": "road"})) == "<MarkovPolicy 1 decision>"
    assert "1 run beyond" in repr(tp.worst_runs(SSP, {"home": "road"}, 0.2))
    assert "<Trace 1 step," in repr(tp.trace(SSP, {"home": "train"}, seed=0))


def test_a_start_that_is_not_there_is_asked_about():
    columns = dict(zip(("state", "action", "next", "probability", "cost"), map(list, zip(*ROWS))))
    for read in (
        lambda: tp.SSP.from_outcomes(ROWS, "hoem", ["work"]),
        lambda: tp.SSP.from_table(columns, start="hoem"),
    ):
        with pytest.raises(tp.TailpathError, match=r"'hoem'.*; did you mean 'home'\?"):
            read()


def test_a_start_of_a_file_is_asked_about(capsys, tmp_path):
    tp.write(SSP, tmp_path / "m.csv")
    assert "did you mean 'home'?" in run(capsys, "info", tmp_path / "m.csv", "--start", "hoem").err


def test_info_says_what_a_textbook_problem_is(capsys):
    text = run(capsys, "info", "textbook:lottery").out
    assert (
        "what it is" in text
        and "One step that costs high with probability p, else low (p = 1/8, low = 1, high = 100)"
        in text
    )
    for name in tp.domains.textbook.PROBLEMS:
        said = run(capsys, "info", f"textbook:{name}", "--json").json["about"]
        assert said and "`" not in said
    assert run(capsys, "info", "river:5x5", "--json").json["about"] is None


def test_info_tells_costs_from_what_is_free(capsys, tmp_path):
    tp.write(
        tp.SSP.from_outcomes(
            [("a", "go", "b", 0.5, 0), ("a", "go", "b", 0.5, 4), ("b", "go", "g", 1, 40)],
            "a",
            ["g"],
        ),
        tmp_path / "m.json",
    )
    found = run(capsys, "info", tmp_path / "m.json")
    (line,) = (line for line in found.out.splitlines() if line.startswith("costs"))
    assert line.split("  ")[-1].strip() == "4 to 40, 1 outcome free"
