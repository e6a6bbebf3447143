"""`tailpath show`, `diff` and `explain`: what they print is what the library says, and what they
refuse takes one line.
"""

import pytest

import tailpath as tp
from tests.cli.running import refusal, run

MODEL = "river:6x4"


@pytest.fixture(scope="module")
def ssp():
    return tp.read(MODEL)


@pytest.fixture(scope="module")
def policy_file(ssp, tmp_path_factory):
    path = tmp_path_factory.mktemp("policies") / "best.json"
    tp.write_policy(tp.solve_cvar_exact(ssp, 0.01).policy(0.01), path)
    return path


def test_show_tells_the_table(capsys, ssp, policy_file):
    rows = run(capsys, "show", MODEL, policy_file, "--alpha", 0.1, "--json").json["rows"]
    table = tp.read_policy(policy_file, ssp).table(ssp, 0.1, most=41)
    assert [(r["memory"], r["action"], r["visits"], r["mean"], r["cvar"]) for r in rows] == [
        (r.memory, r.action, r.visits, r.mean, r.cvar) for r in table
    ]
    text = run(capsys, "show", MODEL, policy_file, "--alpha", 0.1).out
    assert "CVaR to go at 0.1" in text.splitlines()[0]
    assert "memory" not in run(capsys, "show", MODEL, "expected").out.splitlines()[0]


def test_show_cuts_and_picks(capsys):
    cut = run(capsys, "show", MODEL, "expected", "--most", 2)
    assert "the 2 most visited rows" in cut.out
    picked = run(capsys, "show", MODEL, "expected", "--state", "(4, 0)").out
    assert len(picked.splitlines()) == 3
    assert "no state 'nowhere'" in refusal(capsys, "show", MODEL, "expected", "--state", "nowhere")


def test_diff_tells_the_partings(capsys, ssp, policy_file):
    record = run(capsys, "diff", MODEL, "expected", policy_file, "--alpha", 0.1, "--json").json
    found = tp.differences(
        ssp, tp.solve_expected(ssp).policy, tp.read_policy(policy_file, ssp), 0.1
    )
    assert record["probability"] == found.probability > 0
    assert [part["probability"] for part in record["partings"]] == [
        part.probability for part in found
    ]
    text = run(capsys, "diff", MODEL, "expected", policy_file).out
    assert "they part with probability" in text
    assert "never decide differently" in run(capsys, "diff", MODEL, "expected", "expected").out


def test_explain_tells_runs_and_blame(capsys, ssp):
    record = run(capsys, "explain", MODEL, "expected", "--alpha", 0.05, "--runs", 2, "--json").json
    found = tp.worst_runs(ssp, tp.solve_expected(ssp).policy, 0.05, 2)
    assert [entry["probability"] for entry in record["runs"]] == [
        entry.probability for entry in found
    ]
    assert sum(row["share"] for row in record["blame"]) == pytest.approx(record["excess"])
    text = run(capsys, "explain", MODEL, "expected", "--alpha", 0.05, "--runs", 1).out
    for words in ("worst run 1", "where runs turn bad", "where the excess is paid", "paid so far"):
        assert words in text


def test_explain_says_why_blame_exceeds_the_whole(capsys, tmp_path):
    """A bad start is worth 46 % chance of 10 more, and a good second step was not enough."""
    rows = [("a", "go", "b", 0.5, 0), ("a", "go", "c", 0.5, 10)]
    rows += [
        ("b", "go", "g", 0.9, 1),
        ("b", "go", "g", 0.1, 30),
        ("c", "go", "g", 0.5, 5),
        ("c", "go", "g", 0.5, 25),
    ]
    tp.write(tp.SSP.from_outcomes(rows, "a", ["g"]), tmp_path / "m.json")
    found = tp.worst_runs(tp.read(tmp_path / "m.json"), {"a": "go"}, 0.6)
    assert (
        sum(row.setback for row in found.blame if row.setback > 0) > found.excess > 0
    )  # what is to be explained
    text = run(capsys, "explain", tmp_path / "m.json", "expected", "--alpha", 0.6).out
    assert (
        text.count("more than 100 % in all: ") == 1
        and "the same runs better, though not enough" in text
    )


def test_explain_where_nothing_is_worse(capsys):
    assert (
        "no run costs more than VaR: the worst 1e-07 % all cost "
        in run(capsys, "explain", "textbook:counter-example", "expected", "--alpha", 1e-9).out
    )


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["show", MODEL, "missing.json"], "missing.json"),
        (["show", MODEL, "expected", "--alpha", "0"], "(0, 1]"),
        (["explain", MODEL, "expected"], "--alpha"),
        (["diff", MODEL, "expected"], "SECOND"),
    ],
)
def test_refusals(capsys, arguments, words):
    assert words in refusal(capsys, *arguments)


def test_explain_tells_the_shape_of_a_run_that_is_too_long_to_be_told(capsys, tmp_path):
    rows = [(i, "go", j, 0.5, 1) for i in range(30) for j in (i + 1, max(i - 1, 0))]
    tp.write(tp.SSP.from_outcomes(rows, 0, [30]), tmp_path / "walk.json")
    text = run(capsys, "explain", tmp_path / "walk.json", "expected", "--alpha", 0.05).out
    assert "their probabilities underflow" in text and "no runs requested" not in text
    assert (
        "a typical run beyond VaR: cost " in text
        and "its beginning" in text
        and "most often in 0 (" in text
    )
    record = run(
        capsys, "explain", tmp_path / "walk.json", "expected", "--alpha", 0.05, "--json"
    ).json["typical"]
    assert record["cost"] == record["length"] > 1100 and len(record["beginning"]) == 10
    assert (
        "no runs requested"
        in run(
            capsys, "explain", tmp_path / "walk.json", "expected", "--alpha", 0.05, "--runs", 0
        ).out
    )
