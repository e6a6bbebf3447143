"""The frontier: its corners are policies, nothing lies below it, and every weighted optimum is one
of its corners.
"""

from __future__ import annotations

import math
import pickle
import random
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import tailpath as tp
from tailpath.errors import OptionError
from tailpath.evaluation.evaluate import evaluate_for
from tests.reference import Model, to_ssp
from tests.strategies import proper_models, solvable_models


@settings(max_examples=40)
@given(
    st.one_of(proper_models(max_states=4, dyadic=True), solvable_models(max_states=4, dyadic=True)),
    st.sampled_from([0.5, 0.25, 0.1]),
)
def test_every_weighted_optimum_is_a_corner(model: Model, alpha: float) -> None:
    ssp = to_ssp(model)
    found = tp.frontier(ssp, tp.CVaR(alpha), tolerance=0)
    risk, mean = found.risk, found.mean
    assert np.all(np.diff(risk) > 0) and np.all(np.diff(mean) < 0)
    for weight in (0.0, 0.1, 0.3, 0.5, 0.8, 0.95, 1.0):
        best = tp.solve(ssp, (1 - weight) * tp.Mean() + weight * tp.CVaR(alpha)).value
        assert np.min((1 - weight) * mean + weight * risk) == pytest.approx(
            best, rel=1e-9, abs=1e-12
        )
    for corner in found.corners[:6]:
        costs = tp.evaluate(ssp, corner.policy, alpha)
        assert (costs.mean, costs.cvar(alpha)) == pytest.approx(
            (corner.mean, corner.risk), rel=1e-9, abs=1e-12
        )
    # Between the corners it is what `solve` finds under a limit.
    if len(found) > 1:
        for share in (0.3, 0.8):
            bound = float(risk[0] + share * (risk[-1] - risk[0]))
            assert tp.solve(ssp, "mean", [tp.CVaR(alpha) <= bound]).value == pytest.approx(
                found.least_mean(bound), rel=1e-8
            )


@pytest.mark.filterwarnings("ignore:delta = .* is more than the least cost")
@settings(max_examples=120)
@given(
    st.one_of(proper_models(max_states=5), solvable_models(max_states=5)),
    st.sampled_from(["cvar(0.5)", "cvar(0.1)", "late(3)", "shortfall(2)"]),
    st.sampled_from([0.3, 0.03, 1e-3, "a coarser grid"]),
)
def test_a_bracket_holds_the_frontier_of_all_corners(
    model: Model, measure: str, tolerance: Any
) -> None:
    ssp = to_ssp(model)
    assume(measure[0] != "s" or (2 / ssp.cost_unit).denominator == 1)
    exact = tp.frontier(ssp, measure, tolerance=0)
    if tolerance == "a coarser grid":
        found = tp.frontier(ssp, measure, tolerance=0.03, delta=ssp.cost_unit * 2)
    else:
        found = tp.frontier(ssp, measure, tolerance=tolerance)
        assert found.gap in (tolerance, 0)
    ends = exact.risk[[0, -1]].tolist()
    for risk in {*exact.risk.tolist(), *found.risk.tolist(), *np.linspace(*ends, 40).tolist()}:
        low, high = found.bounds(risk)
        least, most = exact.bounds(risk)
        assert low <= most and least <= high
        if found.floor is None and risk >= found.risk[0]:
            means, risks = np.ptp(exact.mean), np.ptp(exact.risk)
            later = exact.bounds(risk - found.gap * risks)[1]
            assert high <= later + found.gap * means + 1e-9 * (1 + abs(means))
    if found.floor is None:
        for corner in found.corners[:: max(len(found) // 3, 1)]:
            costs = evaluate_for(ssp, corner.policy, [found.measure])
            assert costs.mean == pytest.approx(corner.mean, rel=1e-9, abs=1e-12)
            assert found.measure(costs) <= corner.risk * (1 + 1e-9) + 1e-12


def roads(places: int) -> tp.SSP:
    """Minutes with two decimals: motorways with jams, and country roads."""
    draw = random.Random(1)
    at = [(draw.random(), draw.random()) for _ in range(places)]
    first, *between, last = sorted(range(places), key=lambda k: sum(at[k]))
    rows: list[Any] = []
    for i in (first, *between):
        for j in sorted(set(range(places)) - {i}, key=lambda j: math.dist(at[i], at[j]))[:3]:
            far = 60 * math.dist(at[i], at[j])
            kinds = {
                "motorway": [(0.8, 0.75), (0.15, 1.4), (0.05, draw.uniform(3, 8))],
                "country": [(0.7, draw.uniform(1, 1.2)), (0.3, draw.uniform(1.2, 1.4))],
            }
            for kind in draw.choice([("motorway", "country"), ("motorway",), ("country",)]):
                rows += [
                    (i, f"{kind} to {j}", j, p, round(far * slow + 0.5, 2))
                    for p, slow in kinds[kind]
                ]
    return tp.SSP.from_outcomes(rows, first, [last])


def test_costs_with_decimals_take_a_few_tables() -> None:
    """Thousands of budgets, each with a curve of its own, take no more than a hundred tables."""
    ssp, told = roads(12), []
    assert ssp.cost_unit == Fraction(1, 100)
    found = tp.frontier(ssp, "cvar(0.05)", tolerance=1e-3, progress=lambda *at: told.append(at))
    assert found.gap == 1e-3 and told[-1][0] <= 100 and len(found) > 10
    quick = tp.frontier(ssp, "cvar(0.05)", tolerance=1e-2, delta=1)
    assert quick.floor is not None
    for risk in np.linspace(found.risk[0], found.risk[-1], 20).tolist():
        low, high = quick.bounds(risk)
        assert low <= found.bounds(risk)[1] and found.bounds(risk)[0] <= high


#: Three curves meet in one place, and the one that goes on from there belongs to another budget
#: than the corner.
MEETING = {
    "s": {
        "go": [("u", 1, 0)],
        "safe": [("g", 3 / 8, 5), ("g", 3 / 8, 3), ("g", 1 / 16, 4), ("g", 3 / 16, 2)],
    },
    "t": {"go": [("g", 1 / 16, 0), ("u", 5 / 16, 0), ("u", 5 / 8, 5)]},
    "u": {
        "risky": [("g", 5 / 8, 0), ("t", 3 / 8, 3)],
        "on": [("g", 1 / 4, 5), ("s", 3 / 8, 3), ("g", 3 / 8, 1)],
    },
}
#: A curve has its last corner just before another one begins below it.
STEP = {
    "s": {
        "a": [("t", 3 / 16, 1), ("s", 3 / 16, 35), ("t", 9 / 16, 3), ("g", 1 / 16, 0)],
        "b": [("g", 1 / 16, 35), ("t", 1 / 2, 2), ("s", 5 / 16, 3), ("t", 1 / 8, 35)],
    },
    "t": {"a": [("g", 1 / 4, 4), ("t", 1 / 16, 2), ("g", 5 / 8, 3), ("s", 1 / 16, 0)]},
}


@pytest.mark.parametrize(
    ("choices", "alpha"), [(MEETING, 0.1), (STEP, 0.25)], ids=["meeting", "step"]
)
def test_between_its_corners_it_is_what_limits_allow(choices: Any, alpha: float) -> None:
    rows = [
        (s, a, to, p, cost)
        for s, actions in choices.items()
        for a, outcomes in actions.items()
        for to, p, cost in outcomes
    ]
    ssp = tp.SSP.from_outcomes(rows, "s", ["g"])
    found = tp.frontier(ssp, tp.CVaR(alpha), tolerance=0)
    for bound in np.linspace(found.risk[0], found.risk[-1], 25)[1:-1].tolist():
        assert tp.solve(ssp, "mean", [tp.CVaR(alpha) <= bound]).value == pytest.approx(
            found.least_mean(bound), rel=1e-9
        )


@pytest.mark.parametrize("measure", ["late(20)", "shortfall(10)"])
def test_other_measures(measure: str) -> None:
    ssp = tp.read("gridworld:8x9")
    found = tp.frontier(ssp, measure)
    assert found.mean[-1] == pytest.approx(tp.solve_expected(ssp).cost())
    assert found.risk[0] == pytest.approx(tp.solve(ssp, measure).value, rel=1e-9)
    middle = float(found.risk[0] + found.risk[-1]) / 2
    assert tp.solve(ssp, "mean", [f"{measure} <= {middle!r}"]).value == pytest.approx(
        found.least_mean(middle), rel=1e-6
    )
    for corner in (found[0], found[len(found) // 2], found[-1]):
        costs = tp.evaluate(ssp, corner.policy, 1e-4)
        assert (costs.mean, found.measure(costs)) == pytest.approx(
            (corner.mean, corner.risk), rel=1e-9
        )


def test_the_ends_and_the_words() -> None:
    ssp = tp.read("river:16x6")
    found = tp.frontier(ssp, "cvar(0.05)")
    best = tp.solve_cvar_exact(ssp, 0.05, lexicographic=True)
    assert (found.risk[0], found.mean[0]) == pytest.approx(
        (best.cvar(0.05), best.mean(0.05)), rel=1e-9
    )
    assert found.mean[-1] == pytest.approx(tp.solve_expected(ssp).cost())
    again = pickle.loads(pickle.dumps(found))
    assert again == found and f"{len(found)} corners" in repr(found) and "mean" in repr(found[0])
    assert found.least_mean(found.risk[0] - 1) == np.inf and found.least_mean(1e9) == found.mean[-1]
    assert found.gap <= 1e-3


def test_one_policy_only() -> None:
    rows: list[Any] = [("s", "go", "g", 0.5, 1), ("s", "go", "g", 0.5, 3)]
    found = tp.frontier(tp.SSP.from_outcomes(rows, "s", ["g"]), "cvar(0.5)")
    assert [(corner.mean, corner.risk) for corner in found] == [(2, 3)]
    found = tp.frontier(tp.SSP.from_outcomes(rows, "g", ["g"]), "late(2)")
    assert [(corner.mean, corner.risk) for corner in found] == [(0, 0)]


def test_refusals() -> None:
    ssp = tp.read("gridworld:5x5")
    for measure in (
        "mean",
        "var(0.1)",
        "late(inf)",
        "2 * cvar(0.1)",
        "loss(3:1)",
        "shortfall(2.5)",
    ):
        with pytest.raises(OptionError):
            tp.frontier(ssp, measure)


def test_it_tells_how_far_it_has_come():
    told = []
    found = tp.frontier(
        tp.read("river:5x5"), "cvar(0.05)", progress=lambda *given: told.append(given)
    )
    tables, pieces = zip(*told)
    assert list(tables) == sorted(tables) and tables[-1] > 0 and max(pieces) >= len(found) - 1


def test_a_budget_that_arithmetic_moved_is_the_multiple_meant():
    rows = [("a", "go", "g", 0.5, 0.1), ("a", "go", "g", 0.5, 0.8), ("a", "wait", "g", 1, 0.6)]
    ssp = tp.SSP.from_outcomes(rows, "a", ["g"])
    assert 7 * 0.1 != 0.7
    moved, meant = (tp.frontier(ssp, tp.Shortfall(budget)) for budget in (7 * 0.1, 0.7))
    for found in (moved, meant):
        assert found.mean == pytest.approx([0.6, 0.45])
        assert found.risk == pytest.approx([0, 0.05], abs=1e-15)
    with pytest.raises(OptionError, match=r"multiple of the cost unit 0\.1"):
        tp.frontier(ssp, tp.Shortfall(0.75))
