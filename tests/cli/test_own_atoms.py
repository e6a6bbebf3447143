"""Atoms per state on the command line."""

import json

import pytest

import tailpath as tp
from tests.cli.running import refusal, run

TABLE = {
    "atoms": [0.01, 0.1, 1],
    "states": {"(3, 0)": {"alpha0": 0.001, "atoms": 25}, "(3, 1)": [0.05, 0.2, 1]},
}
TOML = """atoms = [0.01, 0.1, 1]
[states]
"(3, 0)" = { alpha0 = 0.001, atoms = 25 }
"(3, 1)" = [0.05, 0.2, 1]
"""


def test_a_file_and_its_policy(capsys, tmp_path):
    (tmp_path / "own.json").write_text(json.dumps(TABLE))
    (tmp_path / "own.toml").write_text(TOML)
    river, policy = tp.read("river:5x5"), str(tmp_path / "policy.json")
    own = {(3, 0): tp.log_atoms(0.001, 25), (3, 1): [0.05, 0.2, 1]}
    wanted = tp.solve_cvar_quantile(river, lambda state: own.get(state, [0.01, 0.1, 1]))
    for name in ("own.json", "own.toml"):
        told = run(
            capsys,
            "solve",
            "river:5x5",
            "--method",
            "quantile",
            "--alpha",
            "0.1",
            "--own-atoms",
            str(tmp_path / name),
            "--json",
            "-o",
            policy,
        )
        found = json.loads(told.out)
        assert found["predicted"] == wanted.cvar(0.1) and found["atoms"] == len(wanted.atoms)
        again = json.loads(
            run(capsys, "evaluate", "river:5x5", policy, "--alpha", "0.1", "--json").out
        )
        assert again["results"][0]["cvar"] == found["deployed"]


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (
            {"states": {"(9, 9)": [1]}},
            "own atoms: the model has no state '(9, 9)'; its start is (3, 0)",
        ),
        ({"state": {}}, "own atoms: unknown key 'state'; there are atoms and states"),
        ({"states": [1]}, "own atoms: states must be a table of states and their atoms"),
        (
            {"atoms": 25},
            (
                "own atoms: atoms must be a list of atoms, or alpha0 and atoms for log-spaced ones,"
                " not 25"
            ),
        ),
        ({"states": {"(3, 0)": [0.5]}}, "state (3, 0): the last atom must be 1, not 0.5"),
        ([1], "this must be a table, not a list"),
    ],
)
def test_what_is_refused(capsys, tmp_path, table, message):
    path = tmp_path / "own.json"
    path.write_text(json.dumps(table))
    assert message in refusal(
        capsys,
        "solve",
        "river:5x5",
        "--method",
        "quantile",
        "--alpha",
        "0.1",
        "--own-atoms",
        str(path),
    )


def test_a_file_that_is_none(capsys, tmp_path):
    asked = ("solve", "river:5x5", "--method", "quantile", "--alpha", "0.1", "--own-atoms")
    assert "no such file" in refusal(capsys, *asked, str(tmp_path / "nothing.toml"))
    (tmp_path / "broken.toml").write_text("atoms = [")
    assert "broken.toml: Invalid value" in refusal(capsys, *asked, str(tmp_path / "broken.toml"))
