"""Goals that are not sure, on the command line."""

import json

import pytest

import tailpath as tp
from tests.cli.running import run

ROWS = [
    ("ice", "go", "home", 0.5, 1),
    ("ice", "go", "hole", 0.25, 1),
    ("ice", "go", "ice", 0.25, 1),
    ("hole", "stay", "hole", 1, 1),
]


@pytest.fixture
def lake(tmp_path):
    path = tmp_path / "lake.json"
    tp.write(tp.SSP.from_outcomes(ROWS, "ice", ["home"]), path)
    return str(path)


def test_info_says_how_surely_and_what_can_be_done(lake, capsys):
    told = run(capsys, "info", lake)
    assert "no: with probability 0.666667 at most" in told.out
    assert "--give-up C, --given-arrival, --within N" in told.out
    record = json.loads(run(capsys, "info", lake, "--json").out)
    assert record["largest_probability_of_arriving"] == pytest.approx(2 / 3)
    assert record["dead_ends"] == ["hole"]
    assert (
        json.loads(run(capsys, "info", "river:5x5", "--json").out)[
            "largest_probability_of_arriving"
        ]
        == 1
    )


def test_a_refusal_names_the_flags_in_one_line(lake, capsys):
    told = run(capsys, "solve", lake, "--alpha", "0.1")
    assert told.code == 2 and told.err.count("\n") == 1
    for flag in ("--give-up C", "--given-arrival", "--within N"):
        assert flag in told.err


@pytest.mark.parametrize(
    ("flags", "cost"),
    [
        (["--give-up", "20"], 8.0),
        (["--give-up", "41/2"], 1 / 0.75 + 20.5 / 3),
        (["--given-arrival"], 4 / 3),
        (["--within", "2", "--otherwise", "10"], 0.5 + 0.25 * 12 + 0.25 * (0.5 * 2 + 0.5 * 12)),
        (["--within", "1", "--give-up", "7"], 0.5 + 0.5 * 8),
    ],
)
def test_every_way_on(lake, capsys, flags, cost):
    told = run(capsys, "solve", lake, "--method", "expected", *flags, "--json")
    assert told.code == 0
    assert json.loads(told.out)["expected_cost"] == pytest.approx(cost, rel=1e-12)
    assert "tailpath: note: " in told.err


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--give-up", "much"], "the price of giving up must be a number, not 'much'"),
        (["--give-up", "-1"], "the price of giving up must be 0 or more, not '-1'"),
        (["--within", "0"], "0 is not in the range"),
        (["--otherwise", "3"], "--otherwise is the cost of being late, and needs --within N"),
    ],
)
def test_what_is_refused(lake, capsys, flags, message):
    told = run(capsys, "info", lake, *flags)
    assert told.code == 2 and message in told.err and told.err.count("\n") == 1


def test_a_policy_for_a_model_that_has_changed(lake, capsys, tmp_path):
    sure = [(s, a, t, p, c + 1) for s, a, t, p, c in ROWS if s == "ice"]
    old, new, policy = (str(tmp_path / name) for name in ("old.json", "new.json", "policy.json"))
    tp.write(tp.SSP.from_outcomes([*sure, ("hole", "climb", "ice", 1, 5)], "ice", ["home"]), old)
    tp.write(tp.SSP.from_outcomes([*sure, ("hole", "climb", "ice", 1, 6)], "ice", ["home"]), new)
    assert run(capsys, "solve", old, "--alpha", "0.1", "--output", policy).code == 0
    refused = run(capsys, "evaluate", new, policy, "--alpha", "0.1")
    assert refused.code == 2 and "costs differ" in refused.err


def test_a_policy_that_may_miss_the_goal_gets_the_ways_on(lake, capsys, tmp_path):
    policy = tmp_path / "p.json"
    tp.write_policy(tp.MarkovPolicy({"ice": "go", "hole": "stay"}), policy)
    told = run(capsys, "evaluate", lake, str(policy), "--alpha", "0.5")
    assert (
        told.code == 0
        and "missed with probability 0.333333" in told.err
        and "--give-up C" in told.err
    )
    assert run(capsys, "evaluate", lake, str(policy), "--alpha", "0.5", "--within", "3").code == 0
