"""A discount on the command line: exact where it can be, one sentence elsewhere, and policy files
that can be used again.
"""

import json

import pytest

import tailpath as tp
from tests.cli.running import run

STAGES = tp.SSP.from_outcomes(
    [
        ("a", "wait", "b", 1, 1),
        ("a", "go", "b", 0.5, 2),
        ("a", "go", "end", 0.5, 4),
        ("b", "on", "c", 0.25, 8),
        ("b", "on", "end", 0.75, 0),
        ("c", "safe", "end", 1, 6),
        ("c", "bold", "end", 0.5, 0),
        ("c", "bold", "end", 0.5, 16),
    ],
    "a",
    ["end"],
)


@pytest.fixture
def stages(tmp_path):
    path = tmp_path / "stages.json"
    tp.write(STAGES, path)
    return str(path)


def test_the_expected_cost_and_its_policy_file(stages, capsys, tmp_path):
    policy = str(tmp_path / "policy.json")
    told = run(
        capsys,
        "solve",
        stages,
        "--method",
        "expected",
        "--gamma",
        "1/2",
        "--verify",
        "--json",
        "--output",
        policy,
    )
    record = json.loads(told.out)
    assert record["expected_cost"] == pytest.approx(
        tp.solve_expected(STAGES, gamma=0.5).cost(), rel=1e-15
    )
    assert record["gamma"] == 0.5 and any(
        "the least expected cost lies in" in line for line in record["proved"]
    )
    again = json.loads(
        run(capsys, "evaluate", stages, policy, "--gamma", "0.5", "--alpha", "0.5", "--json").out
    )
    assert again["mean"] == pytest.approx(record["expected_cost"], rel=1e-12)


def test_a_discounted_value_that_is_wrong_is_refuted():
    from dataclasses import replace

    found = tp.solve_expected(tp.domains.river(rows=5, columns=4), gamma=0.9)
    found.verify()
    for wrong in (replace(found, gamma=0.8), replace(found, gamma=1.0)):
        with pytest.raises(tp.TailpathError, match="expected cost"):
            wrong.verify()


def test_the_least_cvar_and_its_policy_file(stages, capsys, tmp_path):
    policy = str(tmp_path / "policy.npz")
    told = run(
        capsys, "solve", stages, "--alpha", "0.2", "--gamma", "0.5", "--json", "--output", policy
    )
    record = json.loads(told.out)
    assert record["cvar"] == pytest.approx(
        tp.solve_cvar_exact(STAGES, 0.2, gamma=0.5).cvar(0.2), rel=1e-12
    )
    assert "--within 3 --gamma 1/2" in told.err
    again = json.loads(
        run(
            capsys,
            "evaluate",
            stages,
            policy,
            "--within",
            "3",
            "--gamma",
            "1/2",
            "--alpha",
            "0.2",
            "--json",
        ).out
    )
    assert again["results"][0]["cvar"] == pytest.approx(record["cvar"], rel=1e-12)
    for command in (
        ["show", stages, policy],
        ["simulate", stages, policy, "--runs", "9", "--alpha", "0.5"],
    ):
        assert run(capsys, *command, "--within", "3", "--gamma", "0.5").code == 0


@pytest.mark.parametrize("method", ["exact", "expected", "quantile", "nested"])
def test_with_a_limit_of_steps_every_method_takes_it(stages, capsys, method):
    flags = [] if method == "expected" else ["--alpha", "0.5"]
    told = run(
        capsys,
        "solve",
        stages,
        "--method",
        method,
        *flags,
        "--within",
        "3",
        "--gamma",
        "0.5",
        "--json",
    )
    assert told.code == 0 and "multiplied by 0.5^t" in told.err
    if method == "exact":
        assert json.loads(told.out)["cvar"] == pytest.approx(
            tp.solve_cvar_exact(STAGES, 0.5, gamma=0.5).cvar(0.5), rel=1e-12
        )


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (
            ["solve", "river:5x5", "--alpha", "0.1", "--gamma", "0.9"],
            "discounted costs have no common unit",
        ),
        (
            ["solve", "river:5x5", "--alpha", "0.1", "--gamma", "0.9", "--method", "nested"],
            "with --within N to every method",
        ),
        (
            ["solve", "river:5x5", "--minimise", "mean", "--gamma", "0.9"],
            "give --within N",
        ),
        (
            ["info", "river:5x5", "--gamma", "0.9"],
            "give --within N",
        ),
        (["compare", "river:5x5", "--gamma", "0.9"], "give --within N"),
        (
            ["evaluate", "river:5x5", "expected", "--alpha", "0.1", "--gamma", "0"],
            "0 does not lie in (0, 1]",
        ),
        (
            ["solve", "river:5x5", "--method", "expected", "--gamma", "much"],
            "much does not lie in (0, 1]",
        ),
    ],
)
def test_elsewhere_a_sentence_says_why_not(capsys, command, message):
    told = run(capsys, *command)
    assert told.code == 2 and message in told.err and told.err.count("\n") == 1


def test_comparisons_are_of_costs_in_full():
    with pytest.raises(
        tp.TailpathError,
        match=r"discount.*tailpath\.within",
    ):
        tp.compare(STAGES, None, [0.5], gamma=0.5)
    table = tp.compare(tp.within(STAGES, 3, gamma=0.5), None, [0.5])
    assert table["optimum", 0.5].deployed == pytest.approx(
        tp.solve_cvar_exact(STAGES, 0.5, gamma=0.5).cvar(0.5), rel=1e-12
    )
