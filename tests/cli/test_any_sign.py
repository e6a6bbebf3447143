"""Costs of any sign on the command line: signs shown as given, gains told in a sentence, a negative
cycle refused.
"""

import pytest

from tests.cli.running import run

BETS = "from,action,to,p,gain\ns,bet,end,0.5,10\ns,bet,end,0.5,-5\ns,pass,end,1,1\n"
ROUND = "from,action,to,p,cost\na,go,b,1,-2\nb,back,a,0.5,1\nb,back,end,0.5,1\n"


@pytest.fixture
def bets(tmp_path):
    (tmp_path / "bets.csv").write_text(BETS)
    return tmp_path / "bets.csv", "--column", "cost=gain", "--rewards"


def test_gains_are_told_in_a_sentence(capsys, bets, tmp_path):
    solved = run(capsys, "solve", *bets, "--alpha", "0.5", "-o", tmp_path / "p.json")
    assert (
        "in gains, where a cost is minus a gain: the worst 50 % of runs win at least 1 on average,"
        " all others at least 1 each, all together 1" in solved.out
    )
    assert "note: costs are minus the rewards" in solved.err
    evaluated = run(capsys, "evaluate", bets[0], "expected", *bets[1:], "--alpha", "0.25")
    assert (
        "the worst 25 % of runs win at least -5 on average, all others at least -5 each, all"
        " together 2.5 on average" in evaluated.out
    )
    assert (
        "in gains, where a cost is minus a gain: all together 2.5 on average"
        in run(capsys, "solve", *bets, "--method", "expected").out
    )
    assert "in gains" not in run(capsys, "solve", *bets[:-1], "--method", "expected").out


def test_numbers_are_those_of_costs_as_given(capsys, bets, tmp_path):
    record = run(capsys, "solve", *bets, "--alpha", "0.5", "--verify", "--json").json
    assert record["cvar"] == -1 and record["proved"][0].startswith(
        "every run that arrives costs -10 more than"
    )
    assert any("the least CVaR at alpha 0.5 lies in [-1.0000" in line for line in record["proved"])
    assert run(capsys, "solve", *bets, "--deadline", "-5", "--json").json["value"] == 0.5
    assert run(capsys, "info", *bets, "--json").json["costs"]["min"] == -10
    assert "costs                -10 to 5" in run(capsys, "info", *bets).out
    told = run(capsys, "explain", bets[0], "expected", *bets[1:], "--alpha", "0.6").out
    assert "cost 5" in told and "-10" in told
    assert run(capsys, "page", *bets, "--alpha", "0.5", "-o", tmp_path / "page.html").code == 0
    assert run(capsys, "convert", *bets, tmp_path / "bets.json").code == 0
    assert run(capsys, "info", tmp_path / "bets.json", "--json").json["costs"]["min"] == -10


def test_a_negative_cycle_is_refused_and_a_limit_of_steps_helps(capsys, tmp_path):
    path = tmp_path / "round.csv"
    path.write_text(ROUND)
    code = run(capsys, "solve", path, "--method", "expected")
    assert (
        code.code == 2 and "a cycle has a negative cost" in code.err and "(--within N)" in code.err
    )
    limited = run(
        capsys, "solve", path, "--method", "expected", "--within", "4", "--otherwise", "0", "--json"
    ).json
    assert limited["expected_cost"] == -1.5
    assert "some costs are negative, and nested CVaR needs costs of 0 or more" in refusal_of(
        capsys, tmp_path
    )


def refusal_of(capsys, tmp_path):
    (tmp_path / "bets.csv").write_text(BETS)
    result = run(
        capsys,
        "solve",
        tmp_path / "bets.csv",
        "--column",
        "cost=gain",
        "--method",
        "nested",
        "--alpha",
        "0.5",
    )
    assert result.code == 2
    return result.err
