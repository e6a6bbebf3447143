"""The command line on models with intervals."""

from __future__ import annotations

import pytest

import tailpath as tp
from tests.cli.running import run

ROAD = [
    *(
        ("home", "bridge", "town", 190, 10),
        ("home", "bridge", "jam", 10, 15),
        ("home", "ring", "town", 300, 18),
    ),
    *(("jam", "wait", "town", 8, 10), ("jam", "wait", "town", 2, 40)),
]
#: What commands say that take no intervals: who takes them, and nothing of Python.
KNOWN = "info, solve, evaluate, compare and convert accept"


@pytest.fixture
def road(tmp_path):
    path = tmp_path / "road.json"
    tp.write(tp.IntervalSSP.from_counts(ROAD, "home", ["town"]), path)
    return path


def test_info(capsys, road):
    shown = run(capsys, "info", road)
    assert (shown.code, shown.err) == (0, "")
    assert "3, of which 2 have intervals" in shown.out
    assert "95 % that all intervals hold" in shown.out
    assert "yes (adversarial nature), yes (cooperative nature)" in shown.out
    assert run(capsys, "info", road, "--json").json["uncertain_choices"] == 2


def test_counts_and_logs_in_tables(capsys, tmp_path):
    counts, log = tmp_path / "counts.csv", tmp_path / "log.csv"
    counts.write_text(
        "state,action,next_state,count,cost\n"
        + "".join(f"{s},{a},{t},{n},{c}\n" for s, a, t, n, c in ROAD)
    )
    log.write_text(
        "state,action,cost,next_state\n"
        + "".join(f"{s},{a},{c},{t}\n" * n for s, a, t, n, c in ROAD)
    )
    best = tp.solve_cvar_exact(tp.IntervalSSP.from_counts(ROAD, "home", ["town"], 0.8), 0.5)
    for path in (counts, log):
        shown = run(capsys, "solve", path, "--alpha", "0.5", "--confidence", "0.8")
        assert shown.code == 0
        assert best.words(0.5) in shown.out
        assert "with 80 % confidence" in shown.out
    assert "95 % that all intervals hold" in run(capsys, "info", counts).out
    counts.write_text(counts.read_text() + "home,bridge,lost,0,60\nlost,on,town,1,5\n")
    shown = run(capsys, "info", counts)
    assert shown.err.count("never seen") == 1
    wrong = run(capsys, "info", "gridworld:5x5", "--confidence", "0.9")
    assert (wrong.code, "confidence does not apply" in wrong.err) == (2, True)
    # Of random runs it is the confidence of the estimates.
    assert (
        run(
            capsys,
            "simulate",
            "gridworld:5x5",
            "expected",
            "--runs",
            "9",
            "--alpha",
            "0.5",
            "--confidence",
            "0.5",
        ).code
        == 0
    )


def test_solve_evaluate_and_compare(capsys, road, tmp_path):
    model, policy = tp.read(road), tmp_path / "policy.json"
    best = tp.solve_cvar_exact(model, 0.5)
    shown = run(capsys, "solve", road, "--alpha", "0.5", "-o", policy)
    assert best.words(0.5) in shown.out
    found = run(capsys, "solve", road, "--alpha", "0.5", "--nature", "cooperative", "--json").json
    assert found["value"] == tp.solve_cvar_exact(model, 0.5, nature="cooperative").cvar(0.5)
    late = run(capsys, "solve", road, "--deadline", "20", "--json").json
    assert (late["value"], late["words"]) == (
        tp.solve(model, tp.Late(20)).value,
        tp.solve(model, tp.Late(20)).words[0],
    )
    assert (
        run(capsys, "solve", road, "--method", "expected", "--json").json["value"]
        == tp.solve_expected(model).cost()
    )
    band = tp.evaluate(model, best.policy(0.5), 0.5)
    shown = run(
        capsys,
        "evaluate",
        road,
        policy,
        "--alpha",
        "0.5",
        "--plot",
        tmp_path / "band.png",
        "--json",
    ).json
    assert shown["results"][0]["cvar"] == list(band.cvar(0.5))
    assert shown["mean"] == list(band.mean)
    assert (tmp_path / "band.png").stat().st_size > 1000
    assert "hurts most" in run(capsys, "evaluate", road, "expected", "--alpha", "0.5").out
    rows = run(capsys, "compare", road, "--alpha", "0.5", "--policy", policy, "--json").json["rows"]
    assert [row["policy"] for row in rows] == ["nominal", "adversarial", "cooperative", str(policy)]
    assert rows[0]["predicted"] == tp.solve_cvar_exact(model.nominal(), 0.5).cvar(0.5)
    assert rows[1]["most"] == pytest.approx(rows[1]["predicted"])
    assert all(row["least"] <= row["most"] for row in rows)


def test_a_page_needs_known_probabilities(capsys, road, tmp_path):
    with pytest.raises(tp.TailpathError, match="known probabilities"):
        tp.page(tp.read(road))
    page = tmp_path / "road.html"
    assert KNOWN in run(capsys, "page", road, "--out", page).err
    assert not page.exists()


def test_results_are_verified(capsys, road):
    best = tp.solve_cvar_exact(tp.read(road), 0.5)
    shown = run(capsys, "solve", road, "--alpha", "0.5", "--verify", "--json").json
    proof = best.verify(0.5)
    width = f"the widest of these bounds has a relative width of {proof.width:.1e}"
    assert shown["proved"] == [*proof.proved, width] and len(proof.proved) == 2
    assert (
        "adversarial nature, lies in ["
        in run(capsys, "solve", road, "--method", "expected", "--verify").out
    )


def test_a_policy_for_the_frequencies_where_something_was_never_seen(capsys, tmp_path):
    rows, path = [*ROAD, ("home", "bridge", "town", 0, 90)], tmp_path / "road.json"
    with pytest.warns(tp.TailpathWarning, match="never seen"):
        tp.write(tp.IntervalSSP.from_counts(rows, "home", ["town"]), path)
    found = run(capsys, "compare", path, "--alpha", "0.5", "--json").json["rows"]
    assert found[0]["most"] > found[0]["predicted"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("solve", "--method", "quantile", "--alpha", "0.1"), "needs known probabilities"),
        (("solve", "--deadline", "20", "--verify"), "--verify"),
        (("solve", "--alpha", "0.1", "--delta", "2"), "--gamma and --delta"),
        (
            ("solve", "--minimise", "mean", "--subject-to", "late(20) <= 0.1"),
            "limits need known probabilities",
        ),
        (("simulate", "expected", "--runs", "3", "--alpha", "0.1"), KNOWN),
        (("compare", "--all"), "nominal, adversarial and cooperative"),
        (("compare", "--plot", "curve.png"), "nominal, adversarial and cooperative"),
        (("frontier", "--risk", "cvar(0.1)"), "nominal()"),
        (("show", "expected"), KNOWN),
        (("explain", "expected", "--alpha", "0.1"), KNOWN),
        (("diff", "expected", "expected"), KNOWN),
    ],
)
def test_what_is_refused_says_why(capsys, road, arguments, said):
    command, *rest = arguments
    shown = run(capsys, command, road, *rest)
    assert shown.code == 2
    assert said in shown.err
    assert shown.out == ""


def test_intervals_that_are_points(capsys, tmp_path):
    """All that is known of a model is said by the same commands."""
    path, ssp = tmp_path / "points.npz", tp.read("textbook:lottery")
    tp.write(tp.IntervalSSP(ssp, ssp.outcome_probability, ssp.outcome_probability), path)
    assert "of which 0 have intervals" in run(capsys, "info", path).out
    found = run(capsys, "solve", path, "--alpha", "0.5", "--json").json
    assert found["value"] == tp.solve_cvar_exact(ssp, 0.5).cvar(0.5)
    assert run(capsys, "evaluate", path, "expected", "--alpha", "0.5").code == 0
    assert run(capsys, "compare", path, "--alpha", "0.5").code == 0
    assert run(capsys, "page", path, "--out", tmp_path / "points.html", "--alpha", "0.5").code == 0


def test_nature_is_for_intervals(capsys):
    assert (
        "--nature is for models with intervals"
        in run(capsys, "solve", "gridworld:5x5", "--alpha", "0.1", "--nature", "adversarial").err
    )
