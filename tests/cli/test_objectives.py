"""Measures, limits and the frontier on the command line."""

import pathlib
from fractions import Fraction

import pytest

import tailpath as tp
from tests.cli.running import refusal, run

MODEL = "gridworld:8x9"


def test_limits(capsys, tmp_path: pathlib.Path):
    path = tmp_path / "policy.json"
    arguments = (
        "solve",
        MODEL,
        "--minimise",
        "mean",
        "--subject-to",
        "cvar(0.05) <= 40",
        "-o",
        path,
    )
    text = run(capsys, *arguments)
    assert (
        text.code == 0
        and text.out.startswith("least mean")
        and "one unit more in cvar(0.05) <= 40 saves" in text.out
    )
    record = run(capsys, *arguments, "--json").json
    assert record["members"] == 2 and record["risks"]["cvar(0.05)"] == pytest.approx(40)
    ssp = tp.read(MODEL)
    assert tp.evaluate(ssp, tp.read_policy(path, ssp), 0.05).cvar(0.05) == pytest.approx(40)
    by_default = run(capsys, "solve", MODEL, "--subject-to", "cvar(0.05) <= 40", "--json").json
    assert by_default["objective"] == "mean" and by_default["value"] == record["value"]


def test_a_deadline(capsys):
    record = run(capsys, "solve", MODEL, "--deadline", 12, "--json").json
    assert record["objective"] == "late(12)" and record["value"] == pytest.approx(
        tp.solve(tp.read(MODEL), "late(12)").value
    )


def test_the_frontier(capsys, tmp_path: pathlib.Path):
    picture, policy = tmp_path / "frontier.png", tmp_path / "policy.npz"
    text = run(
        capsys,
        "frontier",
        MODEL,
        "--risk",
        "late(20)",
        "--plot",
        picture,
        "--corner",
        1,
        "-o",
        policy,
    )
    assert (
        text.code == 0
        and "least mean against late(20)" in text.out
        and picture.stat().st_size > 1000
    )
    record = run(capsys, "frontier", MODEL, "--risk", "late(20)", "--json").json
    ssp = tp.read(MODEL)
    costs = tp.evaluate(ssp, tp.read_policy(policy, ssp), 1e-3)
    assert costs.mean == pytest.approx(record["corners"][0]["mean"]) and 1 - costs.cdf(
        20
    ) == pytest.approx(record["corners"][0]["risk"])


def test_the_frontier_says_what_a_mixture_is(capsys):
    coin = "policies: how many are mixed at a corner"
    assert coin in run(capsys, "frontier", "river:5x5", "--risk", "cvar(5%)").out
    assert coin not in run(capsys, "frontier", "river:10x3", "--risk", "late(6)").out


def test_compare_shows_measures(capsys):
    record = run(
        capsys,
        "compare",
        MODEL,
        "--alpha",
        0.05,
        "--measure",
        "late(20)",
        "--measure",
        "shortfall(20)",
        "--json",
    ).json
    late = {line["method"]: line["late(20)"] for line in record["measures"]}
    assert set(late) == {
        "expected",
        "quantile",
        "optimum",
        "least VaR",
        "least late(20)",
        "least shortfall(20)",
    }
    assert min(late.values()) == late["least late(20)"] < late["expected"] < late["optimum"]


def test_a_grid_brackets(capsys, tmp_path: pathlib.Path):
    tp.write(tp.domains.gridworld("5x5", obstacle_cost=100 / 3), tmp_path / "odd.json")
    odd = tmp_path / "odd.json"
    assert "--delta" in refusal(capsys, "solve", odd, "--deadline", 12) and "--delta" in refusal(
        capsys, "frontier", odd, "--risk", "late(12)"
    )
    true = tp.solve(tp.domains.gridworld("5x5", obstacle_cost=Fraction(100, 3)), "late(12)")
    record = run(capsys, "solve", odd, "--deadline", 12, "--delta", "0.5", "--json").json
    assert record["delta"] == "0.5" and record["bounds"][0] <= true.value <= record["bounds"][1]
    assert record["risks"]["late(12)"] == pytest.approx(true.value, rel=1e-9)
    given_up = run(capsys, "solve", odd, "--deadline", 12, "--delta", "0.5", "--max-nodes", 10)
    assert (
        given_up.code == 0
        and "not evaluated to the end" in given_up.err
        and "optimum between" in given_up.out
    )
    corners = run(capsys, "frontier", odd, "--risk", "cvar(0.1)", "--delta", "0.5", "--json").json[
        "corners"
    ]
    assert all(corner["mean at least"] <= corner["mean"] for corner in corners)
    assert (
        "mean at least" in run(capsys, "frontier", odd, "--risk", "cvar(0.1)", "--delta", "0.5").out
    )
    measures = run(
        capsys,
        "compare",
        odd,
        "--alpha",
        0.5,
        "--method",
        "expected",
        "--delta",
        "0.5",
        "--measure",
        "late(12)",
        "--json",
    ).json["measures"]
    assert {line["method"]: line["late(12)"] for line in measures}[
        "least late(12)"
    ] == pytest.approx(true.value, rel=1e-9)


def test_confidence_is_told_from_tail_mass(capsys):
    found = run(capsys, "solve", MODEL, "--alpha", 0.95)
    assert (
        found.code == 0
        and "alpha is the mass of the worst tail; for 95 % confidence say 0.05" in found.err
    )
    assert run(capsys, "solve", MODEL, "--alpha", 0.5).err == ""


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("solve", MODEL, "--minimise", "cvar(2)"), "alpha must lie in (0, 1]"),
        (("solve", MODEL, "--minimise", "speed"), "unknown measure 'speed'"),
        (("solve", MODEL, "--subject-to", "late(3)"), "a limit is written like 'late(35) <= 0.05'"),
        (
            ("solve", MODEL, "--minimise", "mean", "--alpha", 0.1),
            "--alpha cannot be combined with --minimise",
        ),
        (
            ("solve", MODEL, "--minimise", "mean", "--deadline", 3),
            "give either --minimise or --deadline",
        ),
        (("solve", MODEL, "--subject-to", "cvar(0.01) <= 3"), "cvar(0.01) is at least 35.0116"),
        (
            (
                "solve",
                MODEL,
                "--subject-to",
                "cvar(0.05) <= 40",
                "--subject-to",
                "late(20) <= 0.05",
            ),
            "late(20) is then at least 0.",
        ),
        (("frontier", MODEL), "--risk"),
        (
            ("frontier", MODEL, "--risk", "mean"),
            "cvar, late or shortfall, not mean",
        ),
        (
            ("frontier", MODEL, "--risk", "late(20)", "--corner", 1),
            "--corner and --output go together",
        ),
    ],
)
def test_refusals(capsys, arguments, text):
    assert text in refusal(capsys, *arguments)


def test_the_worst_policy(capsys, tmp_path: pathlib.Path):
    path = tmp_path / "policy.json"
    text = run(capsys, "solve", "textbook:lottery", "--maximise", "-o", path)
    assert text.code == 0 and text.out.startswith("worst policy: mean  13.375\n")
    ssp = tp.read("textbook:lottery")
    assert tp.evaluate(ssp, tp.read_policy(path, ssp), 1).mean == 13.375
    for options, objective in (
        (["--alpha", "0.3"], "cvar(0.3)"),
        (["--deadline", "3"], "late(3)"),
        (["--minimise", "var(0.3)"], "var(0.3)"),
    ):
        record = run(capsys, "solve", "textbook:lottery", "--maximise", *options, "--json").json
        assert record["objective"] == objective and record["sense"] == "max"
        assert record["value"] == tp.solve(ssp, objective, sense="max").value
    text = run(capsys, "solve", "river:5x5", "--maximise")
    assert text.code == 0 and "a policy may stay for ever at (0, 0) by 'N'" in text.out
    limited = "solve", "textbook:lottery", "--maximise", "--subject-to", "late(3) <= 1"
    assert "without limits" in refusal(capsys, *limited)
