"""What people read in the first minutes: plurals, near names, what a problem is."""

from __future__ import annotations

import pytest

import tailpath as tp
from tailpath import texts
from tailpath.errors import OptionError
from tailpath.texts import fitted
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
    assert repr(sure) == "<SSP 2 states, 1 choice, 1 outcome, start 'home'>"
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


def test_sentences_keep_to_the_width():
    text = (
        "what it is  a long walk to the goal and back again\ncosts       1\n\n"
        "method  value\n------  -----\nx           1\n\n"
        "one percentage point more saves something of the mean"
    )
    assert fitted(text, None) == fitted(text, 80) == text
    *tables, sentence = text.split("\n\n")
    assert fitted(text, 30).split("\n\n") == [*tables, sentence.replace(" saves", "\nsaves")]


def test_what_is_misspelt_is_asked_about():
    for call, near in (
        (lambda: tp.read("textbook:lotteryy"), "lottery"),
        (lambda: tp.methods.find_method("quantil"), "quantile"),
        (lambda: tp.read("rivr:30x10"), "river:"),
    ):
        with pytest.raises(tp.TailpathError, match=rf"; did you mean '{near}'\?$"):
            call()


def test_what_is_given_by_name_is_told_from_what_is_not():
    ssp = tp.read("textbook:counter-example")
    for given in ([0, 1], {"s1": "a1"}.items(), tp.solve_expected(ssp).policy):
        with pytest.raises(OptionError, match=r"^policies are given by name, \{'mine': "):
            tp.compare(ssp, given)
        with pytest.raises(OptionError, match=r"^policies are given by name, \{'mine': "):
            tp.page(ssp, policies=given)
    with pytest.raises(OptionError, match=r"^policies are given by name, .*; 'a1' is not a policy"):
        tp.compare(ssp, {"s1": "a1"})
    one = tp.compare(ssp, None, 0.5, methods="expected")
    assert [line.method for line in one.lines] == ["expected", "optimum"]
    assert tp.page(ssp, alphas=0.5, methods="quantile").html.count("alpha") > 0
    axes = tp.plot_tails(tp.evaluate(ssp, {"s1": "a1"}, 0.1), 0.1)
    assert len(axes.get_lines()) > 0


def test_textbook_problems_say_all_of_what_they_are(capsys):
    said = run(capsys, "info", "textbook:haddad-monmege").out
    assert "the expected number of steps is 3 * 2^(n-1) - 2 (n = 20)" in said


def test_spare_columns_go_before_digits():
    headers, rows = ("method", "cost", "gap", "seconds"), [("exact", 12.3456, 0.123456, 0.5)]
    whole = texts.table(headers, rows, spare=("seconds", "gap"))
    assert whole == texts.table(headers, rows) == texts.table(headers, rows, 6, 80, ("gap",))
    wide = max(map(len, whole.splitlines()))
    shown = texts.table(headers, rows, 6, wide - 1, ("seconds", "gap"))
    assert "12.3456" in shown and "0.123456" in shown and "seconds\n" not in shown
    assert shown.endswith("\nno room for seconds")
    shown = texts.table(headers, rows, 6, 15, ("seconds", "gap"))
    assert "12.3456" in shown and shown.endswith("\nno room for seconds, gap")


def test_long_names_in_messages_are_cut():
    state = " & ".join(f"x{k}={k}" for k in range(60))
    short = texts.with_short_names(f"from state {state!r} no policy arrives; give up at a price")
    assert len(short) < 140 and short.startswith("from state 'x0=0 & x1=1")
    assert short.endswith(" & x58=58 & x59=59' no policy arrives; give up at a price")
    plain = "state 'x=1 & y=2', action 'go'"
    assert texts.with_short_names(plain) == plain
