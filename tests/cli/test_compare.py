"""`compare`, and `solve --method exact`, as users call them."""

import math
from fractions import Fraction

import pytest

import tailpath as tp
from tailpath.cli import compare
from tests.cli.running import refusal, run


def rows(record, method):
    return [row for row in record["rows"] if row["method"] == method]


def test_compare_for_programs(capsys):
    """Every number again from the library's own functions."""
    result = run(
        capsys,
        "compare",
        "gridworld:5x5",
        "--alpha",
        0.01,
        0.1,
        "--atoms",
        13,
        "--alpha0",
        1e-3,
        "--json",
    )
    assert (result.code, result.err) == (0, "")
    record, ssp = result.json, tp.domains.gridworld("5x5")
    assert [(row["alpha"], row["method"]) for row in record["rows"]] == [
        (alpha, method) for alpha in (0.01, 0.1) for method in ("expected", "quantile", "optimum")
    ]
    plan, best = tp.solve_cvar_quantile(ssp, tp.log_atoms(1e-3, 13)), tp.solve_cvar_exact(ssp, 0.01)
    for row in rows(record, "quantile"):
        alpha = row["alpha"]
        costs = tp.evaluate(ssp, plan.policy(alpha), alpha)
        assert (row["predicted"], row["deployed"]) == pytest.approx(
            (plan.cvar(alpha), costs.cvar(alpha))
        )
        assert (row["var"], row["mean"]) == pytest.approx((costs.var(alpha), costs.mean))
        assert row["gap"] == pytest.approx(costs.cvar(alpha) - plan.cvar(alpha))
        assert row["over"] == pytest.approx(costs.cvar(alpha) - best.cvar(alpha))
    for row in rows(record, "optimum"):
        assert row["predicted"] == pytest.approx(best.cvar(row["alpha"]), rel=1e-13)
        assert row["deployed"] == pytest.approx(best.cvar(row["alpha"]), rel=1e-12)
        assert row["over"] == 0
    neutral = tp.evaluate(ssp, tp.solve_expected(ssp).policy, 0.01)
    for row in rows(record, "expected"):
        assert (row["predicted"], row["gap"]) == (None, None)
        assert row["deployed"] == pytest.approx(neutral.cvar(row["alpha"]))
    assert all(row["seconds"] > 0 for row in record["rows"])
    for entry in record["optimum_bounds"]:
        low, high = entry["bounds"]
        assert low <= best.cvar(entry["alpha"]) <= high


def test_compare_for_people(capsys):
    result = run(
        capsys,
        "compare",
        "textbook:counter-example",
        "--alpha",
        0.5,
        "--alpha0",
        0.0625,
        "--atoms",
        5,
    )
    assert (result.code, result.err) == (0, "")
    lines = [line.split() for line in result.out.splitlines() if line.startswith("0.5")]
    assert [line[:4] for line in lines if line[1] == "quantile"] == [
        ["0.5", "quantile", "600", "700"]
    ]
    assert [line[:4] for line in lines if line[1] == "optimum"] == [
        ["0.5", "optimum", "650", "650"]
    ]
    assert max(map(len, result.out.splitlines())) <= 120


def test_default_alphas_and_the_planners_grid(capsys):
    record = run(capsys, "compare", "river:10x3", "--json").json
    assert sorted({row["alpha"] for row in record["rows"]}) == [0.001, 0.01, 0.1, 0.5]
    assert record["planners"]["quantile"]["note"].startswith("25 atoms from 0.0001")
    assert all(row["over"] >= -1e-12 for row in record["rows"])


@pytest.mark.parametrize(
    "words",
    [["--alpha", "0.5", "0.25"], ["--alpha=0.25,0.5"], ["--alpha", "0.5", "--alpha", "0.25"]],
)
def test_several_alphas(capsys, words):
    record = run(capsys, "compare", "textbook:lottery", *words, "--json").json
    assert [row["alpha"] for row in rows(record, "optimum")] == [0.25, 0.5]


def test_interpolation_on_request(capsys):
    record = run(
        capsys,
        "compare",
        "gridworld:5x5",
        "--alpha",
        0.1,
        "--atoms",
        7,
        "--interpolation",
        "--tolerance",
        1e-6,
        "--json",
    ).json
    (linear,), (merged,) = rows(record, "interpolation"), rows(record, "quantile")
    assert linear["predicted"] == pytest.approx(merged["predicted"], abs=1e-5)
    assert linear["over"] >= -1e-12


@pytest.fixture
def odd(tmp_path):
    """A model whose costs have no common unit."""
    path = tmp_path / "odd.json"
    tp.write(
        tp.SSP.from_outcomes(
            [("s", "try", "g", 0.5, math.pi), ("s", "try", "g", 0.5, 1), ("s", "pay", "g", 1, 3)],
            "s",
            ["g"],
        ),
        path,
    )
    return path


def test_a_model_without_a_cost_unit(capsys, odd):
    assert "--delta D (delta=), such as 0.001" in refusal(capsys, "compare", odd, "--alpha", 0.1)
    result = run(capsys, "compare", odd, "--alpha", 0.1, "--delta", "0.01", "--json")
    (entry,), (best,) = result.json["optimum_bounds"], rows(result.json, "optimum")
    assert entry["bounds"][0] <= 3 <= entry["bounds"][1]
    assert best["deployed"] == 3
    assert (
        "the optimum lies between"
        in run(capsys, "compare", odd, "--alpha", 0.1, "--delta", "0.01").out
    )
    advice = refusal(capsys, "page", odd, "--alpha", 0.1, "--out", odd.with_suffix(".html"))
    assert "--delta" in advice
    run(capsys, "page", odd, "--alpha", 0.1, "--delta", 1, "--out", odd.with_suffix(".html"))
    assert odd.with_suffix(".html").exists()


def test_the_mean_needs_no_cost_unit(odd):
    ssp = tp.read(odd)
    best = tp.solve(ssp, "mean")
    assert (
        best.value == pytest.approx((math.pi + 1) / 2)
        and best.bounds[0] <= best.value <= best.bounds[1]
    )
    with pytest.raises(tp.TailpathError, match="no common unit"):
        tp.solve(ssp, "mean", "late(3) <= 0.1")


@pytest.mark.parametrize(
    ("suffix", "mark"), [("png", b"\x89PNG"), ("pdf", b"%PDF"), ("svg", b"<?xml")]
)
def test_the_figure(capsys, tmp_path, suffix, mark):
    path = tmp_path / f"curves.{suffix}"
    assert (
        run(capsys, "compare", "textbook:counter-example", "--alpha", 0.5, "--plot", path).code == 0
    )
    assert path.read_bytes().startswith(mark)


def test_the_figure_shows_every_curve(capsys, tmp_path, monkeypatch):
    drawn = []
    original = compare.plot_comparison
    monkeypatch.setattr(
        compare,
        "plot_comparison",
        lambda curves, **options: drawn.append(original(curves, **options)) or drawn[-1],
    )
    run(capsys, "compare", "gridworld:5x5", "--alpha", 0.01, "--plot", tmp_path / "a.png")
    (axes,) = drawn
    assert [line.get_label() for line in axes.lines] == [
        "expected, deployed",
        "quantile, predicted",
        "quantile, deployed",
        "optimum",
    ]
    best = tp.solve_cvar_exact(tp.domains.gridworld("5x5"), 0.01)
    for alpha, value in zip(*axes.lines[-1].get_data(), strict=True):
        assert value == pytest.approx(best.cvar(alpha))
    assert axes.get_xscale() == "log"


def test_refusals(capsys, tmp_path):
    assert "0 does not lie in (0, 1]" in refusal(capsys, "compare", "river:10x3", "--alpha", 0)
    assert "requires an argument" in refusal(capsys, "compare", "river:10x3", "--alpha")
    assert "tiff2" in refusal(
        capsys, "compare", "textbook:lottery", "--alpha", 0.5, "--plot", tmp_path / "a.tiff2"
    )


def test_a_first_atom_that_is_too_large(capsys):
    result = run(capsys, "compare", "textbook:lottery", "--alpha", 0.1, "--alpha0", 0.1)
    assert result.code == 0
    assert (
        "alpha0 = 0.1 is not below alpha = 0.1; planners do poorly near their first atom"
        in result.err
    )


# ---------------------------------------------------------------------- solve --method exact


def test_solve_is_exact_by_default(capsys, tmp_path):
    path = tmp_path / "policy.json"
    record = run(capsys, "solve", "river:16x6", "--alpha", 0.001, "-o", path, "--json").json
    best = tp.solve_cvar_exact(tp.domains.river(rows=16, columns=6), 0.001)
    assert record["method"] == "exact"
    assert (record["cvar"], record["var"]) == pytest.approx((best.cvar(0.001), 18.5))
    assert record["bounds"] == list(best.bounds(0.001))
    ssp = tp.domains.river(rows=16, columns=6)
    assert tp.evaluate(ssp, tp.read_policy(path, ssp), 0.001).cvar(0.001) == pytest.approx(
        record["cvar"], rel=1e-12
    )


def test_solve_for_the_least_mean_of_all_that_are_best(capsys):
    record = run(capsys, "solve", "river:30x10", "--alpha", 0.001, "--lexicographic", "--json").json
    plain = run(capsys, "solve", "river:30x10", "--alpha", 0.001, "--json").json
    assert record["mean"] < plain["mean"] - 1


def test_solve_on_a_grid(capsys, odd):
    record = run(capsys, "solve", odd, "--alpha", 0.5, "--delta", "0.001", "--json").json
    assert record["cvar"] == pytest.approx(3)
    assert record["bounds"][0] <= 3 <= record["bounds"][1]
    assert "optimum between" in run(capsys, "solve", odd, "--alpha", 0.5, "--delta", "0.001").out
    record = run(capsys, "solve", odd, "--alpha", 1, "--delta", "0.1", "--json").json
    assert record["bounds"][1] == pytest.approx((math.pi + 1) / 2)  # no more than its policy costs


def test_solve_on_a_grid_where_the_policy_cannot_be_followed_to_the_end(capsys, tmp_path):
    tp.write(tp.domains.gridworld("5x5", obstacle_cost=100 / 3), tmp_path / "odd.json")
    result = run(
        capsys,
        "solve",
        tmp_path / "odd.json",
        "--alpha",
        0.001,
        "--delta",
        "0.5",
        "--max-nodes",
        10,
        "--json",
    )
    assert (result.code, result.json["cvar"]) == (0, None)
    assert "not evaluated to the end" in result.err
    low, high = result.json["bounds"]
    near = tp.solve_cvar_exact(
        tp.domains.gridworld("5x5", obstacle_cost=Fraction(100, 3)), 0.001
    ).cvar(0.001)
    assert low <= near <= high


def test_solve_needs_alpha(capsys):
    assert "--method exact needs --alpha" in refusal(capsys, "solve", "river:10x3")


def test_own_policies_beside_the_planners(capsys, tmp_path):
    ssp = tp.domains.gridworld("5x5")
    mine, other = tmp_path / "mine.json", tmp_path / "careful.npz"
    tp.write_policy(tp.solve_expected(ssp).policy, mine)
    tp.write_policy(tp.solve_cvar_exact(ssp, 0.1).policy(0.1), other)
    record = run(
        capsys,
        "compare",
        "gridworld:5x5",
        "--alpha",
        0.1,
        "--policy",
        mine,
        "--policy",
        other,
        "--method",
        "expected",
        "--json",
    ).json
    assert [row["method"] for row in record["rows"]] == ["mine", "careful", "expected", "optimum"]
    assert rows(record, "mine")[0]["deployed"] == rows(record, "expected")[0]["deployed"]
    assert rows(record, "careful")[0]["over"] == pytest.approx(0, abs=1e-9)
    assert "no such file" in refusal(
        capsys, "compare", "gridworld:5x5", "--policy", tmp_path / "none.json"
    )
    assert "two rows of the table would be called 'mine'" in refusal(
        capsys, "compare", "gridworld:5x5", "--policy", mine, "--policy", mine
    )
