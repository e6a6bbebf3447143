"""`tailpath solve --method quantile|interpolation`: prediction and exact value side by side."""

import pytest

import tailpath
from tests.cli.running import refusal, run


@pytest.mark.parametrize("method", ["quantile", "interpolation"])
def test_prediction_exact_value_and_gap(capsys, method):
    found = run(
        capsys,
        "solve",
        "textbook:counter-example",
        "--method",
        method,
        "--alpha",
        0.5,
        "--atoms",
        3,
        "--alpha0",
        0.25,
        "--json",
    )
    assert (found.code, found.err) == (0, "")
    record = found.json
    assert record["predicted"] == pytest.approx(600)
    assert record["deployed"] == pytest.approx(700)
    assert record["gap"] == record["deployed"] - record["predicted"]
    low, high = record["deployed_bounds"]
    assert low <= 700 <= high
    assert (record["method"], record["alpha"], record["atoms"], record["alpha0"]) == (
        method,
        0.5,
        3,
        0.25,
    )
    assert record["converged"] is True
    assert (record["linear_programs"] > 0) == (method == "interpolation")


def test_the_text_for_people(capsys):
    found = run(
        capsys, "solve", "river:10x3", "--method", "interpolation", "--alpha", 0.1, "--atoms", 3
    )
    assert found.code == 0
    for what in (
        "CVaR predicted by the planner",
        "CVaR of its policy, exact",
        "gap",
        "3, from 0.01",
        "residual",
        "linear programs",
    ):
        assert what in found.out
    assert "optimal" not in found.out


def test_a_tenth_of_alpha_and_25_atoms_are_the_default(capsys):
    record = run(
        capsys, "solve", "river:10x3", "--method", "quantile", "--alpha", 0.2, "--json"
    ).json
    assert record["alpha0"] == pytest.approx(0.02)
    assert record["atoms"] == 25
    ssp = tailpath.read("river:10x3")
    plan = tailpath.solve_cvar_quantile(ssp, tailpath.log_atoms(0.02, 25))
    assert record["predicted"] == plan.cvar(0.2)


@pytest.mark.parametrize("alpha0", [0.1, 0.5])
def test_a_first_atom_that_is_not_below_alpha_is_warned_about(capsys, alpha0):
    found = run(
        capsys, "solve", "river:10x3", "--method", "quantile", "--alpha", 0.1, "--alpha0", alpha0
    )
    assert found.code == 0
    assert (
        found.err
        == f"tailpath: warning: alpha0 = {alpha0:g} is not below alpha = 0.1; planners do poorly"
        " near their first atom\n"
    )


def test_the_policy_is_saved_with_what_it_needs(capsys, tmp_path):
    path = tmp_path / "policy.json"
    record = run(
        capsys,
        "solve",
        "gridworld:5x5",
        "--method",
        "quantile",
        "--alpha",
        0.1,
        "-o",
        path,
        "--json",
    ).json
    again = run(capsys, "evaluate", "gridworld:5x5", path, "--alpha", 0.1, "--json").json
    assert again["results"][0]["cvar"] == record["deployed"]


def test_running_out_of_sweeps_is_said(capsys):
    found = run(
        capsys, "solve", "gridworld:5x5", "--method", "quantile", "--alpha", 0.1, "--max-sweeps", 2
    )
    assert found.code == 0
    assert "not converged" in found.out
    assert found.err.startswith("tailpath: warning: no convergence within 2 sweeps")


def test_discounting(capsys):
    record = run(
        capsys,
        "solve",
        "river:10x3",
        "--method",
        "quantile",
        "--alpha",
        1,
        "--alpha0",
        0.1,
        "--gamma",
        0.9,
        "--json",
    ).json
    assert record["predicted"] == pytest.approx(record["deployed"], rel=1e-3)
    assert record["deployed"] < 3.15


@pytest.mark.parametrize(
    "arguments, message",
    [
        ([], "--method quantile needs --alpha, the mass of the worst tail"),
        (["--alpha", 0], "0 does not lie in (0, 1]"),
        (["--alpha", 0.1, "--atoms", 0], "--atoms"),
        (
            ["--alpha", 0.1, "--alpha0", 1],
            "cannot place 25 different atoms between alpha0 = 1 and 1",
        ),
        (["--alpha", 0.1, "--tolerance", 0], "tolerance must be positive, not 0.0"),
        (["--alpha", 0.1, "--gamma", 2], "2 does not lie in (0, 1]"),
        (
            ["--alpha", 0.1, "--inner", "lp"],
            "--inner does not apply to --method quantile, only to interpolation",
        ),
    ],
)
def test_bad_arguments(capsys, arguments, message):
    assert message in refusal(capsys, "solve", "river:10x3", "--method", "quantile", *arguments)


def test_the_first_values_and_the_start_of_the_model_are_two_things(capsys, tmp_path):
    path = tmp_path / "roads.csv"
    path.write_text("state,action,next_state,probability,cost\na,go,b,1,1\nb,go,c,1,2\n")
    options = ("--alpha", 0.5, "--json")
    assert run(capsys, "solve", path, "--start", "b", *options).json["cvar"] == 2
    sweeps = [
        run(
            capsys,
            "solve",
            "gridworld:5x5",
            "--method",
            "quantile",
            "--values-from",
            first,
            *options,
        ).json["sweeps"]
        for first in ("neutral", "zero")
    ]
    assert sweeps[0] < sweeps[1]
