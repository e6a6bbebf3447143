"""What a notebook shows: small tables and a picture, with names escaped, and no arrays."""

import re

import pytest

import tailpath as tp

RIVER = tp.domains.river(rows=6, columns=5)
EXACT = tp.solve_cvar_exact(RIVER, 0.01)
NASTY = "<script>alert(1)</script>"
NAMED = tp.SSP.from_outcomes(
    [(NASTY, "<go>", "goal", 0.5, 1), (NASTY, "<go>", "b", 0.5, 1), ("b", "on", "goal", 1, 3)],
    NASTY,
    ["goal"],
)

SHOWN = {
    "model": (RIVER, ["states, choices, outcomes", "30, 116,"], True),
    "named model": (NAMED, ["&lt;script&gt;"], True),
    "distribution": (tp.evaluate(RIVER, EXACT.policy(0.01), 0.01), ["VaR", "CVaR", "mean"], True),
    "expected": (tp.solve_expected(RIVER), ["expected cost"], True),
    "optimum": (EXACT, ["VaR", "0.05"], True),
    "planner": (tp.solve_cvar_quantile(RIVER, tp.log_atoms(0.01, 6)), ["predicted CVaR"], False),
    "budget policy": (EXACT.policy(0.01), ["left", "visits"], True),
    "Markov policy": (tp.MarkovPolicy({NASTY: "<go>", "b": "on"}), ["&lt;go&gt;"], False),
    "atom policy": (
        tp.solve_cvar_quantile(RIVER, tp.log_atoms(0.01, 6)).policy(0.1),
        ["y = "],
        True,
    ),
    "history policy": (tp.HistoryPolicy(lambda history: "N"), ["HistoryPolicy"], False),
}


@pytest.mark.parametrize("kind", SHOWN)
def test_what_a_notebook_shows(kind):
    thing, words, picture = SHOWN[kind]
    shown = thing._repr_html_()
    for word in words:
        assert word in shown
    assert ("data:image/png;base64," in shown) == picture
    text = re.sub(r"src='data:[^']*'", "", shown)
    assert "<script" not in text
    assert "array(" not in text
    assert len(text) < 4_000


def test_large_models_have_no_picture():
    rows = [(k, "on", k + 1, 1, 1) for k in range(500)]
    assert "<img" not in tp.SSP.from_outcomes(rows, 0, [500])._repr_html_()
