"""The page as a document: its data are the library's, its names stay text, and it stands alone. `tests/browser` looks at it in a browser."""

import json
import re

import pytest

import tailpath as tp
from tailpath.show.page.make import page
from tests.cli.running import refusal, run

NASTY = "</script><script>window.hacked = 1</script>"


def data_of(text):
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL).group(1))


@pytest.fixture(scope="module")
def river():
    return tp.domains.river(rows=6, columns=5)


@pytest.fixture(scope="module")
def told(river):
    return data_of(page(river, "a river", (0.5, 0.05)))


def test_numbers_are_the_librarys(river, told):
    assert told["alphas"] == [0.5, 0.05]
    best = tp.solve_cvar_exact(river, 0.05)
    plan = tp.solve_cvar_quantile(river, tp.log_atoms(0.005, 25))
    for alpha, row in zip(told["alphas"], told["cases"]):
        for policy, case in zip((tp.solve_expected(river).policy, plan.policy(alpha), best.policy(alpha)), row):
            costs = tp.evaluate(river, policy, alpha)
            found = (case["mean"], case["var"], case["cvar"])
            assert found == pytest.approx((costs.mean, costs.var(alpha), costs.cvar(alpha)), rel=1e-8)
            worst = tp.worst_runs(river, policy, alpha, 3)
            assert [r["probability"] for r in case["runs"]] == pytest.approx([r.probability for r in worst], rel=1e-8)
            assert sum(share for _, _, share in case["blame"]) == pytest.approx(1 if worst.blame else 0, abs=1e-6)
            assert sum(setback for _, setback, _ in case["blame"]) == pytest.approx(1 if worst.blame else 0, abs=1e-6)


def test_decisions_are_the_policies(river, told):
    best = tp.solve_cvar_exact(river, 0.05).policy(0.05)
    for place, runs in zip(told["scene"]["places"], told["decisions"][2]):
        for budget in range(best.budget + 1):
            position = [at for since, at in runs if since <= budget][-1]
            choice = best.choice_at(place["state"], budget)
            assert position == (choice - river.state_choices[place["state"]] if choice >= 0 else -1)


def test_the_frontier_has_the_ends_it_must_have(river, told):
    for alpha, points in zip(told["alphas"], told["frontier"]):
        assert points[0][0] == pytest.approx(tp.solve_expected(river).cost(river.start), rel=1e-8)
        assert min(cvar for _, cvar in points) == pytest.approx(tp.solve_cvar_exact(river, alpha).cvar(alpha), rel=1e-8)
        assert [cvar for _, cvar in points] == sorted((cvar for _, cvar in points), reverse=True)


def test_words_say_what_the_numbers_say(river, told):
    words = " ".join(told["words"][-1])
    costs = tp.evaluate(river, tp.solve_expected(river).policy, 0.05)
    assert f"{costs.mean:.4g} on average" in words
    assert f"{costs.cvar(0.05):.4g}" in words
    assert "on waterfall every move leads to the start" in words
    assert "moves are sure" in words


def test_names_stay_text():
    ssp = tp.SSP.from_outcomes(
        [(NASTY, "<b>go</b>", "b", 0.5, 1), (NASTY, "<b>go</b>", "goal", 0.5, 1), ("b", "go", "goal", 1, 5)], NASTY, ["goal"]
    )
    text = page(ssp, NASTY, (0.5,))
    assert "<script>window" not in text
    assert data_of(text)["name"] == NASTY
    assert data_of(text)["scene"]["places"][0]["name"] == NASTY


def test_a_page_asks_no_one(told, river):
    text = page(river, "a river", (0.5,))
    assert not re.findall(r"(?:src|href)=\"(?!data:)", text)
    assert "http" not in text.replace("http-equiv", "").replace("http://www.w3.org/2000/svg", "")
    assert len(text) < 6_000_000


def test_models_too_large_to_draw_show_the_states_that_matter():
    ssp = tp.domains.river(rows=60, columns=50)
    scene = data_of(page(ssp, "large", (0.5,)))["scene"]
    assert scene["kind"] == "few"
    assert 2 <= len(scene["places"]) <= 10
    assert any(place["goal"] for place in scene["places"])


def test_a_start_at_the_goal_makes_a_page_too():
    ssp = tp.SSP.from_outcomes([("a", "go", "goal", 1, 3)], "goal", ["goal"])
    assert data_of(page(ssp, "done", (0.5,)))["cases"][0][2]["mean"] == 0


def test_the_command(capsys, tmp_path):
    out = tmp_path / "page.html"
    record = run(capsys, "page", "river:5x4", "--out", out, "--alpha", 0.1, "--title", "My river", "--json").json
    assert record["bytes"] == out.stat().st_size
    assert "<title>My river</title>" in out.read_text(encoding="utf-8")
    assert "out" in refusal(capsys, "page", "river:5x4")
    assert "no such file or folder" in refusal(capsys, "page", "river:5x4", "--alpha", 0.5, "--out", tmp_path / "no" / "page.html")
