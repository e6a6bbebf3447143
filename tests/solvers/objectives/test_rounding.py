"""A coarser grid brackets what the costs as they are allow, and its policies keep their word on
them.
"""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tailpath as tp
from tailpath.errors import InfeasibleError, OptionError
from tests.reference import Model, to_ssp
from tests.strategies import proper_models, solvable_models

models = st.one_of(
    proper_models(max_states=4, dyadic=True), solvable_models(max_states=4, dyadic=True)
)
steps = st.sampled_from([Fraction(1, 2), Fraction(3, 2), Fraction(5, 3)])
HAIR = 1 + 1e-9
#: Grids wider than a step are tried on purpose.
pytestmark = pytest.mark.filterwarnings("ignore:delta = .* is more than the least cost")


@settings(max_examples=50)
@given(
    models,
    steps,
    st.sampled_from(
        ["mean", "cvar(0.25)", "var(0.25)", "late(3)", "shortfall(2.5)", "mean + 2 * late(2)"]
    ),
)
def test_optima_are_bracketed(model: Model, step: Fraction, objective: str) -> None:
    ssp = to_ssp(model)
    delta = step * ssp.cost_unit
    true, found = tp.solve(ssp, objective), tp.solve(ssp, objective, delta=delta)
    low, high = found.bounds
    assert low <= true.value * HAIR + 1e-12 and true.value <= high * HAIR + 1e-12
    assert found.risk(objective) == pytest.approx(found.value, rel=1e-9, abs=1e-12)
    assert low <= found.value * HAIR + 1e-12 and found.value <= high * HAIR + 1e-12


@settings(max_examples=30)
@given(models, steps, st.sampled_from([0.2, 0.6]))
def test_limits_are_kept_with_the_costs_as_they_are(
    model: Model, step: Fraction, share: float
) -> None:
    ssp = to_ssp(model)
    delta = step * ssp.cost_unit
    least, most = tp.solve(ssp, "cvar(0.25)").value, tp.solve(ssp, "mean").risk("cvar(0.25)")
    limit = tp.CVaR(0.25) <= least + share * (most - least) + 1e-6
    true = tp.solve(ssp, "mean", [limit])
    try:
        found = tp.solve(ssp, "mean", [limit], delta=delta)
    except InfeasibleError as error:
        assert "with costs rounded up" in str(error)
        return
    assert found.bounds[0] <= true.value * HAIR and true.value <= found.value * HAIR
    assert (
        found.risk("mean") <= found.value * HAIR and found.risk("cvar(0.25)") <= limit.bound * HAIR
    )


@settings(max_examples=30)
@given(models, steps, st.integers(0, 12))
def test_every_deadline_is_bracketed(model: Model, step: Fraction, units: int) -> None:
    ssp = to_ssp(model)
    t = float(units * ssp.cost_unit)
    true, found = tp.solve_on_time(ssp, t), tp.solve_on_time(ssp, t, delta=step * ssp.cost_unit)
    for at in range(units + 1):
        low, high = found.bounds(float(at * ssp.cost_unit))
        assert (
            low <= true.probability(float(at * ssp.cost_unit)) + 1e-12
            and true.probability(float(at * ssp.cost_unit)) <= high + 1e-12
        )
    costs = tp.evaluate(ssp, found.policy(t), 1e-9)
    assert costs.cdf(min(t, float(costs.costs[-1]))) >= found.probability(t) - 1e-8


@settings(max_examples=25)
@given(models, steps)
def test_the_frontier_is_bracketed(model: Model, step: Fraction) -> None:
    ssp = to_ssp(model)
    true, found = (
        tp.frontier(ssp, "cvar(0.25)"),
        tp.frontier(ssp, "cvar(0.25)", delta=step * ssp.cost_unit),
    )
    for risk in (*true.risk, *found.risk):
        low, high = found.bounds(float(risk))
        assert (
            low <= true.least_mean(float(risk)) * HAIR
            and true.least_mean(float(risk)) <= high * HAIR
        )
    for corner in found.corners[:4]:
        costs = tp.evaluate(ssp, corner.policy, 0.25)
        assert (
            costs.mean <= corner.mean * HAIR + 1e-12
            and costs.cvar(0.25) <= corner.risk * HAIR + 1e-12
        )


def test_costs_without_a_unit() -> None:
    rows = [
        ("s", "fast", "g", 0.8, math.pi),
        ("s", "fast", "s", 0.2, math.e),
        ("s", "slow", "g", 1, 5.123456789),
    ]
    ssp = tp.SSP.from_outcomes(rows, "s", ["g"])
    assert ssp.cost_unit is None
    found = tp.solve(ssp, "late(4)", delta=0.01)
    assert found.risk("late(4)") == pytest.approx(0.2) and found.bounds == pytest.approx((0.2, 0.2))
    surest = tp.solve_on_time(ssp, math.inf, delta="0.01")
    assert surest.policy(math.inf).action("s", 0) in ("fast", "slow")
    for wrong in (
        lambda: tp.solve(ssp, "late(4)"),
        lambda: tp.solve_on_time(ssp, 4),
        lambda: tp.frontier(ssp, "late(4)"),
    ):
        with pytest.raises(tp.TailpathError, match="give the width of a grid with --delta"):
            wrong()
    with pytest.raises(OptionError, match="falls somewhere"):
        tp.solve(ssp, "loss(1:3, 2:0)", delta=0.5)
    with pytest.raises(OptionError, match="delta must be positive"):
        tp.frontier(ssp, "late(4)", delta=-1)
