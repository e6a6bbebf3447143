"""Other authors' algorithms against ours: equal where that is proved, on the right side where it is
not.
"""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tailpath as tp
from tailpath.errors import ModelError
from tailpath.methods.method import REGISTER
from tailpath.solvers.related import solve_nested_cvar
from tests.cli.running import refusal, run
from tests.reference import to_ssp
from tests.strategies import proper_models

MODELS = proper_models(zero_costs=False).map(to_ssp)
ALPHAS = st.sampled_from([0.05, 0.25, 0.5, 0.9, 1.0])
few = settings(max_examples=30, deadline=None)


@few
@given(MODELS, ALPHAS)
def test_theorem_2_the_cvar_from_the_mean_and_the_head(ssp, alpha):
    """The paper subtracts the head from the mean, where `evaluate` adds up the tail."""
    costs = tp.evaluate(ssp, tp.solve_expected(ssp).policy, alpha)
    var = costs.var(alpha)
    head = [(z, p) for z, p in zip(costs.costs.tolist(), costs.probabilities.tolist()) if z <= var]
    within = sum(p for _, p in head)
    tail = costs.mean - sum(z * p for z, p in head) + var * (within - (1 - alpha))
    assert tail / alpha == pytest.approx(costs.cvar(alpha), rel=1e-9)


@few
@given(MODELS, ALPHAS)
def test_nested_cvar_is_never_below_the_mean(ssp, alpha):
    value, policy, _ = solve_nested_cvar(ssp, alpha)
    nested = float(value[ssp.start_index])
    assert nested >= tp.evaluate(ssp, policy, alpha).mean * (1 - 1e-9)
    if alpha == 1:
        assert nested == pytest.approx(tp.solve_expected(ssp).cost(), rel=1e-9)


def test_nested_cvar_may_lie_below_the_cvar_of_the_whole_run():
    """All runs that begin with 7 end with 8; of those that begin with 2 a tenth end with 10, and
    the first step's tail has none of them.
    """
    rows = [
        ("s", "a", "m", 0.8, 7),
        ("s", "a", "t", 0.2, 2),
        ("t", "a", "g", 0.9, 3),
        ("t", "a", "m", 0.1, 7),
        ("m", "a", "g", 1, 1),
    ]
    ssp = tp.SSP.from_outcomes(rows, start="s", goals=["g"])
    value, policy, _ = solve_nested_cvar(ssp, 0.2)
    assert value[ssp.start_index] == pytest.approx(8.0)
    assert tp.evaluate(ssp, policy, 0.2).cvar(0.2) == pytest.approx(8.2)


def test_nested_cvar_is_infinite_where_the_adversary_can_stop_every_run():
    geometric = tp.SSP.from_outcomes(
        [("s", "try", "g", 0.25, 1), ("s", "try", "s", 0.75, 1)], "s", ["g"]
    )
    assert math.isinf(solve_nested_cvar(geometric, 0.75)[0][geometric.start_index])
    # With alpha = 0.8 the adversary gives 0.75 / 0.8 to trying again: 1 / (1 - 0.9375) tries.
    assert solve_nested_cvar(geometric, 0.8)[0][geometric.start_index] == pytest.approx(16)


def test_free_steps_and_odd_costs_are_refused():
    free = tp.read("textbook:counter-example")
    odd = tp.SSP.from_outcomes(
        [("s", "go", "g", 0.5, math.pi), ("s", "go", "g", 0.5, 1)], "s", ["g"]
    )
    with pytest.raises(ModelError, match="costs nothing and does not arrive"):
        solve_nested_cvar(free, 0.5)
    with pytest.raises(ModelError, match="no common unit"):
        solve_nested_cvar(odd, 0.5)


def test_compare_shows_all_of_them(capsys, monkeypatch):
    monkeypatch.setattr(REGISTER, "added", {})  # other tests register toys
    result = run(capsys, "compare", "river:10x3", "--alpha", 0.1, "--all", "--atoms", 5, "--json")
    rows = {row["method"]: row for row in result.json["rows"]}
    best = rows["optimum"]["deployed"]
    assert rows.keys() >= {
        "expected",
        "quantile",
        "quantile, published",
        "interpolation",
        "nested",
    }
    assert all(row["deployed"] >= best * (1 - 1e-9) for row in rows.values())


def test_what_refuses_a_model_is_left_out(capsys):
    result = run(
        capsys, "compare", "textbook:counter-example", "--alpha", 0.5, "--all", "--atoms", 3
    )
    assert result.code == 0
    assert "tailpath: note: nested is left out: an outcome of state" in result.err
    assert "costs nothing and does not arrive" in refusal(
        capsys, "compare", "textbook:counter-example", "--alpha", 0.5, "--method", "nested"
    )
