"""`evaluate` and `simulate`, as users call them."""

import os
import signal
import subprocess
import sys

import pytest

import tailpath as tp
from tests import textbook
from tests.cli.running import refusal, run


@pytest.fixture
def leaky(tmp_path):
    """A model that misses its goal with probability 1/4, and its only policy."""
    rows = [("a", "go", "pit", 0.25, 1), ("a", "go", "end", 0.75, 1), ("pit", "wait", "pit", 1, 2)]
    tp.write(tp.SSP.from_outcomes(rows, "a", ["end"]), tmp_path / "leaky.json")
    tp.write_policy(tp.MarkovPolicy({"a": "go", "pit": "wait"}), tmp_path / "policy.json")
    return tmp_path / "leaky.json", tmp_path / "policy.json"


def test_evaluate_for_programs(capsys):
    result = run(
        capsys,
        "evaluate",
        "textbook:geometric",
        "expected",
        "--alpha",
        "0.25",
        "--alpha",
        "1e-9",
        "--json",
    )
    assert (result.code, result.err) == (0, "")
    problem = textbook.geometric()
    assert [entry["alpha"] for entry in result.json["results"]] == [1e-9, 0.25]
    for entry in result.json["results"]:
        assert entry["var"] == problem.var(entry["alpha"])
        assert entry["cvar"] == pytest.approx(problem.cvar(entry["alpha"]), rel=1e-12)
        assert entry["bounds"][0] <= problem.cvar(entry["alpha"]) <= entry["bounds"][1]
    assert result.json["mean"] == pytest.approx(4, rel=1e-12)
    assert result.json["std"] == pytest.approx(12**0.5, rel=1e-12)
    assert (result.json["unreached"], result.json["engine"], result.json["gamma"]) == (
        0,
        "lattice",
        1,
    )
    assert result.json["expanded"] == problem.var(1e-9)


def test_evaluate_for_people(capsys):
    result = run(capsys, "evaluate", "river:10x3", "expected", "--alpha", "0.1", "1")
    assert (result.code, result.err) == (0, "")
    lines = result.out.splitlines()
    assert lines[0].split("  ")[0] == "alpha"
    assert [line.split()[:3] for line in lines[2:4]] == [["0.1", "4", "5.356"], ["1", "2", "3.15"]]
    facts = dict(line.split("  ", 1) for line in lines[5:])
    assert facts["standard deviation"].strip() == "0.9656603958"
    assert facts["never arrives"].strip() == "0"
    assert facts["engine"].strip().startswith("lattice, ")


@pytest.mark.parametrize(
    "options",
    [
        ["--engine", "queue"],
        ["--engine", "lattice", "--heuristic", "zero"],
        ["--engine", "queue", "--heuristic", "zero"],
    ],
)
def test_engines_and_heuristics(capsys, options):
    plain = run(capsys, "evaluate", "gridworld:5x5", "expected", "--alpha", "0.01", "--json").json
    other = run(
        capsys, "evaluate", "gridworld:5x5", "expected", "--alpha", "0.01", "--json", *options
    ).json
    assert other["engine"] == options[1]
    assert other["results"][0]["cvar"] == pytest.approx(plain["results"][0]["cvar"], rel=1e-12)
    assert other["expanded"] >= plain["expanded"]


def test_a_discount(capsys):
    """Costs 1, 1/2, 1/4, ... until the first success of probability 1/4: the mean is 1
    / (1 - 3/8).
    """
    record = run(
        capsys,
        "evaluate",
        "textbook:geometric",
        "expected",
        "--alpha",
        "0.5",
        "--gamma",
        "0.5",
        "--json",
    ).json
    assert (record["engine"], record["gamma"]) == ("queue", 0.5)
    assert record["mean"] == pytest.approx(1.6, rel=1e-12)


def test_a_policy_from_a_file(capsys, tmp_path):
    ssp = tp.read("river:10x3")
    policy = tp.solve_cvar_exact(ssp, 0.01).policy(0.01)
    for name in ("policy.json", "policy.npz"):
        tp.write_policy(policy, tmp_path / name)
        record = run(
            capsys, "evaluate", "river:10x3", tmp_path / name, "--alpha", "0.01", "--json"
        ).json
        assert record["results"][0]["cvar"] == tp.evaluate(ssp, policy, 0.01).cvar(0.01)
        costs = run(
            capsys,
            "simulate",
            "river:10x3",
            tmp_path / name,
            "--alpha",
            "0.01",
            "--runs",
            "50",
            "--json",
        ).json
        assert costs["mean"] == pytest.approx(tp.simulate(ssp, policy, 50, 0).mean())


def test_an_improper_policy(capsys, leaky):
    result = run(capsys, "evaluate", *leaky, "--alpha", "0.1", "0.25", "--json")
    assert result.code == 0
    assert result.err.startswith(
        "tailpath: note: the goal is missed with probability 0.25; runs get stuck in, for example,"
        " state 'pit'; "
    )
    assert [(entry["var"], entry["cvar"]) for entry in result.json["results"]] == [
        ("inf", "inf"),
        (1.0, "inf"),
    ]
    assert (result.json["unreached"], result.json["mean"], result.json["std"]) == (
        0.25,
        "inf",
        "inf",
    )
    record = run(capsys, "simulate", *leaky, "--alpha", "0.5", "--runs", "1000", "--json").json
    assert record["unreached"] == pytest.approx(0.25, abs=0.06)
    assert (record["mean"], record["results"][0]["var"], record["results"][0]["cvar"]) == (
        "inf",
        1.0,
        "inf",
    )


def test_a_picture(capsys, tmp_path):
    for suffix, first_bytes in ((".png", b"\x89PNG"), (".pdf", b"%PDF"), (".svg", b"<?xml")):
        path = tmp_path / f"picture{suffix}"
        assert (
            run(
                capsys, "evaluate", "river:10x3", "expected", "--alpha", "0.01", "--plot", path
            ).code
            == 0
        )
        assert path.read_bytes().startswith(first_bytes)
    result = run(
        capsys,
        "evaluate",
        "river:10x3",
        "expected",
        "--alpha",
        "0.01",
        "--plot",
        tmp_path / "picture.doc",
    )
    assert (result.code, result.err.count("\n")) == (2, 1)
    assert "picture.doc: the file name must end with .png or .pdf or .svg" in result.err
    assert result.out == "", "it is said before the work"


def test_simulate(capsys):
    plain = [
        "simulate",
        "textbook:geometric",
        "expected",
        "--runs",
        "20000",
        "--seed",
        "7",
        "--alpha",
        "0.05,0.5",
    ]
    arguments = [*plain, "--confidence", "0.999"]
    record = run(capsys, *arguments, "--json").json
    assert (record["runs"], record["seed"], record["confidence"], record["unreached"]) == (
        20000,
        7,
        0.999,
        0,
    )
    problem = textbook.geometric()
    costs = tp.simulate(problem.ssp, problem.policy, 20000, 7)
    assert record["mean"] == pytest.approx(costs.mean(), rel=1e-12)
    for entry in record["results"]:
        low, high = entry["cvar_interval"]
        assert low <= problem.cvar(entry["alpha"]) <= high
        low, high = entry["var_interval"]
        assert low <= entry["var"] <= high
        assert low <= problem.var(entry["alpha"]) <= high
    text = run(capsys, *arguments).out
    assert "20000 with seed 7" in text
    assert text.splitlines()[2].split()[0] == "0.05"
    narrower = run(capsys, *plain, "--confidence", "0.9", "--json").json
    assert (
        record["mean_interval"][0]
        < narrower["mean_interval"][0]
        < narrower["mean_interval"][1]
        < record["mean_interval"][1]
    )


# ---------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["evaluate", "river:10x3", "expected"], "Missing option '--alpha'"),
        (["evaluate", "river:10x3"], "Missing argument 'POLICY'"),
        (["evaluate", "river:10x3", "expected", "--alpha", "0"], "does not lie in (0, 1]"),
        (
            ["evaluate", "river:10x3", "expected", "--alpha", "0.1", "--gamma", "2"],
            "2 does not lie in (0, 1]",
        ),
        (
            [
                "evaluate",
                "river:10x3",
                "expected",
                "--alpha",
                "0.1",
                "--gamma",
                "0.5",
                "--engine",
                "lattice",
            ],
            "gamma is below 1",
        ),
        (
            ["evaluate", "river:10x3", "expected", "--alpha", "0.1", "--engine", "warp"],
            "'warp' is not one of",
        ),
        (
            ["evaluate", "river:10x3", "expected", "--alpha", "0.1", "--max-nodes", "0"],
            "--max-nodes",
        ),
        (
            ["evaluate", "river:10x3", "exspected", "--alpha", "0.1"],
            "exspected: not a policy; give a .json or .npz file made by `tailpath solve --output`,"
            " or the word expected",
        ),
        (["evaluate", "river:10x3", "missing.json", "--alpha", "0.1"], "missing.json"),
        (["simulate", "river:10x3", "expected", "--alpha", "0.1"], "Missing option '--runs'"),
        (["simulate", "river:10x3", "expected", "--alpha", "0.1", "--runs", "-5"], "--runs"),
        (
            ["simulate", "river:10x3", "expected", "--alpha", "0.1", "--runs", "5", "--seed", "-5"],
            "--seed",
        ),
        (
            [
                "simulate",
                "river:10x3",
                "expected",
                "--alpha",
                "0.1",
                "--runs",
                "5",
                "--confidence",
                "1",
            ],
            "--confidence",
        ),
    ],
)
def test_bad_arguments(capsys, arguments, message):
    assert message in refusal(capsys, *arguments)


def test_policies_that_do_not_fit(capsys, leaky, tmp_path):
    model, _ = leaky
    tp.write_policy(tp.MarkovPolicy({"a": "fly"}), tmp_path / "flying.json")
    assert "'fly' in state 'a'" in refusal(
        capsys, "evaluate", model, tmp_path / "flying.json", "--alpha", "0.1"
    )
    tp.write_policy(tp.MarkovPolicy({"a": "go"}), tmp_path / "short.json")
    assert "no action for state 'pit', which it can reach" in refusal(
        capsys, "evaluate", model, tmp_path / "short.json", "--alpha", "0.1"
    )
    tp.write_policy(tp.MarkovPolicy({"moon": "go"}), tmp_path / "lost.json")
    assert "'moon'" in refusal(
        capsys, "simulate", model, tmp_path / "lost.json", "--alpha", "0.1", "--runs", "5"
    )
    (tmp_path / "rubbish.json").write_text("{")
    assert "rubbish.json" in refusal(
        capsys, "simulate", model, tmp_path / "rubbish.json", "--alpha", "0.1", "--runs", "5"
    )
    assert "'pit'" in refusal(capsys, "evaluate", model, "expected", "--alpha", "0.1")


def test_a_node_budget(capsys):
    message = refusal(
        capsys, "evaluate", "gridworld:8x9", "expected", "--alpha", "1e-6", "--max-nodes", "500"
    )
    assert "limit of 500 nodes" in message
    assert "lies in [" in message


# ---------------------------------------------------------------------- a long search


@pytest.fixture(scope="module")
def endless(tmp_path_factory):
    """A random walk on a grid, whose tail of 10^-9 takes minutes."""
    path = tmp_path_factory.mktemp("endless") / "walk.npz"
    rows = [list("." * 60) for _ in range(60)]
    rows[59][0], rows[0][59] = "G", "S"
    tp.write(tp.domains.gridworld("\n".join("".join(row) for row in rows), success=0.25), path)
    return path


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="needs a terminal")
@pytest.mark.parametrize("engine", ["lattice", "queue"])
@pytest.mark.kill
def test_an_interrupt_tells_the_bounds_so_far(endless, engine):
    """On a terminal: wait for the line of progress, press Ctrl-C, and read what is certain."""
    terminal, standard_error = os.openpty()
    command = [
        sys.executable,
        "-m",
        "tailpath",
        "evaluate",
        str(endless),
        "expected",
        "--alpha",
        "1e-9",
        "--engine",
        engine,
    ]
    plain = {**os.environ, "NO_COLOR": "1"}
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=standard_error, text=True, env=plain
    )
    os.close(standard_error)
    said = ""
    try:
        while "has arrived" not in said:
            said += os.read(terminal, 1000).decode()
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=120)
        while True:
            try:
                more = os.read(terminal, 1000)
            except OSError:  # how Linux says that the other end is closed
                break
            if not more:
                break
            said += more.decode()
    finally:
        process.kill()
        process.wait()
        os.close(terminal)
    assert (process.returncode, out) == (130, "")
    assert "Traceback" not in said
    last = said.replace("\r", "").splitlines()[-1]
    assert "tailpath: error: interrupted with " in last
    low, high = (float(end) for end in last.rpartition("[")[2].rstrip("]").split(","))
    assert 0 < low < high


@pytest.mark.kill
def test_an_interrupt_before_the_search_is_plain(endless):
    code = (
        "import os, signal, sys; from tailpath.cli import main; import tailpath.policies.unrolling"
        " as c\n"
    )
    code += "c.unroll = lambda *a, **k: os.kill(os.getpid(), signal.SIGINT)\n"
    code += (
        f"sys.exit(main(['simulate', {str(endless)!r}, 'expected', '--alpha', '0.1', '--runs',"
        " '5']))"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=120
    )
    assert result.returncode == 130
    assert result.stderr.strip() == "tailpath: error: interrupted"


def test_another_start(capsys):
    found = run(
        capsys,
        "evaluate",
        "gridworld:5x5",
        "expected",
        "--alpha",
        0.1,
        "--from",
        "(3, 4)",
        "--json",
    ).json
    ssp = tp.read("gridworld:5x5")
    assert found["mean"] == pytest.approx(tp.solve_expected(ssp).cost((3, 4)))
    assert (
        refusal(capsys, "evaluate", "gridworld:5x5", "expected", "--alpha", 0.1, "--from", "home")
        == "the model has no state 'home'; its start is (4, 4)"
    )
