"""The worst policy against brute force in fractions: over all histories of short models, over all
stationary policies for the mean, and level by level for lateness and excess on models with cycles.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from contextlib import suppress
from fractions import Fraction
from functools import cache
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import tailpath as tp
from tailpath.errors import ModelError, OptionError, PolicyError
from tests.reference import Model, expected_cost, to_ssp
from tests.solvers.objectives.lotteries import (
    Costs,
    draw_model,
    excess,
    late,
    mean,
    policies,
)
from tests.strategies import acyclic_models, proper_models, solvable_models

ZERO, ONE = Fraction(0), Fraction(1)
ALPHAS = (Fraction(1, 20), Fraction(1, 4), Fraction(3, 5), Fraction(9, 10))


def largest_cvar(known: list[Costs], alpha: Fraction) -> Fraction:
    """The largest CVaR of any mixture: min over real w of max over policies of w + E (Z - w)+ /
    alpha, by every crossing of two policies between two whole budgets.
    """

    def at(w: Fraction) -> Fraction:
        return w + max(excess(costs, w) for costs in known) / alpha

    most = max(max(costs) for costs in known)
    places = {Fraction(w) for w in range(most + 1)}
    for k in range(most):
        lines = {(excess(costs, k), excess(costs, k + 1)) for costs in known}
        for (a, b), (c, d) in itertools.combinations(lines, 2):
            if a - b != c - d and 0 < (share := (a - c) / ((a - b) - (c - d))) < 1:
                places.add(k + share)
    return min(at(w) for w in places)


def largest_var(known: list[Costs], alpha: Fraction) -> int:
    return max(min(t for t in [0, *costs] if late(costs, t) <= alpha) for costs in known)


def worst(ssp: tp.SSP, measure: Any) -> Any:
    return tp.solve(ssp, measure, sense="max")


def check(found: Any, exact: Fraction | float, scale: float = 1.0) -> None:
    """The value and its bounds, and that the policy attains it."""
    assert found.value == pytest.approx(float(exact), rel=1e-10, abs=1e-12 * scale)
    low, high = found.bounds
    assert low <= exact + abs(exact) / 10**14 and high >= exact - abs(exact) / 10**14
    assert high - low <= 1e-9 * max(float(abs(exact)), scale)
    assert found.risk(found.objective) == pytest.approx(float(exact), rel=1e-10, abs=1e-12 * scale)


@pytest.mark.parametrize("seed", range(60))
def test_lotteries_over_all_histories(seed: int) -> None:
    model = draw_model(seed)
    ssp, known = to_ssp(model), policies(model)
    check(worst(ssp, "mean"), max(map(mean, known)))
    for t in {0, 1, 3, 11, max(map(max, known)) - 1}:
        check(worst(ssp, tp.Late(t)), max(late(costs, t) for costs in known))
    for alpha in ALPHAS:
        check(worst(ssp, tp.CVaR(float(alpha))), largest_cvar(known, alpha))
        assert worst(ssp, tp.VaR(float(alpha))).value == largest_var(known, alpha)
    check(worst(ssp, tp.Shortfall(4)), max(excess(costs, 4) for costs in known))


@settings(max_examples=60)
@given(acyclic_models(), st.sampled_from(ALPHAS))
def test_short_models_over_all_histories(model: Model, alpha: Fraction) -> None:
    ssp = to_ssp(model)
    unit = ssp.cost_unit or ONE
    whole = {
        s: {a: [(t, p, c / unit) for t, p, c in row] for a, row in actions.items()}
        for s, actions in model.choices.items()
    }
    count = math.prod(
        len(a) ** sum(len(r) for x in model.choices.values() for r in x.values())
        for a in model.choices.values()
    )
    assume(count < 10**6)
    known = policies(Model(whole, model.start, model.goals), model.start)
    check(worst(ssp, tp.CVaR(float(alpha))), unit * largest_cvar(known, alpha), float(unit))
    found = worst(ssp, tp.VaR(float(alpha)))
    assert found.value == pytest.approx(float(unit * largest_var(known, alpha)))
    assert found.risk(found.objective) == found.value
    for t in (0, 2, 5):
        check(worst(ssp, tp.Late(float(t * unit))), max(late(costs, t) for costs in known))


def stationary(model: Model) -> list[dict[Any, Any]]:
    states = [s for s in model.choices if s not in model.goals]
    return [
        dict(zip(states, actions))
        for actions in itertools.product(*(model.choices[s] for s in states))
    ]


@settings(max_examples=80)
@given(solvable_models(max_states=4, dyadic=True))
def test_the_mean_over_all_stationary_policies(model: Model) -> None:
    assume(len(stationary(model)) <= 300)
    ssp = to_ssp(model)
    exact = max(expected_cost(model, tp.MarkovPolicy(each)) for each in stationary(model))
    found = worst(ssp, "mean")
    if math.isinf(exact):
        assert found.value == math.inf and found.bounds == (math.inf, math.inf)
        assert "for ever" in found.words[0]
        with suppress(PolicyError):  # it costs nothing to stay
            assert tp.evaluate(ssp, found.policy, 1e-6).unreached > 0
    else:
        check(found, exact)


def by_level(model: Model, spent: Callable[[Any, Fraction], Fraction]) -> Callable[..., Fraction]:
    """The largest expectation by (state, budget left): of `spent` once no budget is left, and of 0
    where a run arrives before.
    """

    @cache
    def value(state: Any, left: Fraction) -> Fraction:
        if state in model.goals and left >= 0:
            return ZERO
        if left <= 0:
            return spent(state, left)
        return max(
            sum((p * value(t, left - c) for t, p, c in row), ZERO)
            for row in model.choices[state].values()
        )

    return value


@settings(max_examples=60)
@given(proper_models(max_states=4, dyadic=True, zero_costs=False), st.sampled_from(ALPHAS))
def test_cycles_level_by_level(model: Model, alpha: Fraction) -> None:
    assume(len(stationary(model)) <= 200)
    ssp = to_ssp(model)
    unit = ssp.cost_unit or ONE
    lateness = by_level(model, lambda s, left: ONE)
    for t in (0, 3, 8):
        # With half a unit more than t left, nobody is ever left with nothing.
        exact = lateness(model.start, (t + Fraction(1, 2)) * unit)
        check(worst(ssp, tp.Late(float(t * unit))), exact)
    most = {
        s: max(
            expected_cost(Model(model.choices, s, model.goals), tp.MarkovPolicy(each))
            for each in stationary(model)
        )
        for s in model.choices
    }
    most |= dict.fromkeys(model.goals, ZERO)
    over = by_level(model, lambda s, left: most[s] - left)
    w = 4 * unit
    check(worst(ssp, tp.Shortfall(float(w))), over(model.start, w), float(unit))
    found = worst(ssp, tp.CVaR(float(alpha)))
    low, high = found.bounds
    around = [w * unit / 4 for w in range(60)]
    assert low <= min(w + over(model.start, w) / alpha for w in around) * (1 + Fraction(1, 10**13))
    assert found.risk(found.objective) == pytest.approx(high, rel=1e-9)


@settings(max_examples=60)
@given(solvable_models(max_states=4, dyadic=True), st.sampled_from(ALPHAS))
def test_runs_that_never_arrive_are_late(model: Model, alpha: Fraction) -> None:
    ssp = to_ssp(model)
    unit = ssp.cost_unit or ONE
    lateness = by_level(model, lambda s, left: ONE)
    for t in (0, 4):
        try:
            found = worst(ssp, tp.Late(float(t * unit)))
        except ModelError as error:
            assert "zero-cost cycles" in str(error)
            return
        check(found, lateness(model.start, (t + Fraction(1, 2)) * unit))
    found = worst(ssp, tp.VaR(float(alpha)))
    if math.isinf(found.value):
        assert lateness(model.start, 50 * unit) > alpha
        assert found.risk(found.objective) == math.inf
    else:
        half = Fraction(1, 2)
        level = round(Fraction(found.value) / unit)
        assert lateness(model.start, (level + half) * unit) <= alpha
        assert level == 0 or lateness(model.start, (level - half) * unit) > alpha
        assert found.risk(found.objective) == found.value


def test_a_corner_needs_a_mixture() -> None:
    rows = [
        ("s", "often", "g", 0.5, 6),
        ("s", "often", "g", 0.5, 0),
        ("s", "far", "g", 0.1, 12),
        ("s", "far", "g", 0.9, 0),
    ]
    ssp = tp.SSP.from_outcomes(rows, "s", ["g"])
    found = tp.solve(ssp, tp.CVaR(0.25), sense="max")
    assert isinstance(found.policy, tp.MixedPolicy)
    assert found.value > max(
        tp.evaluate(ssp, {"s": action}, 0.25).cvar(0.25) for action in ("often", "far")
    )
    assert found.risk("cvar(0.25)") == pytest.approx(found.value, rel=1e-12)


def test_rewards_are_maximised_where_a_cycle_gains() -> None:
    rows = [("s", "stay", "s", 0.75, 1), ("s", "stay", "g", 0.25, 1), ("s", "go", "g", 1, 2)]
    gains = tp.SSP.from_outcomes([(*row[:4], -row[4]) for row in rows], "s", ["g"])
    with pytest.raises(ModelError, match="sense='max'"):
        tp.solve(gains, "mean")
    found = tp.solve(tp.SSP.from_outcomes(rows, "s", ["g"]), "mean", sense="max")
    assert found.value == 4 and found.policy.action("s") == "stay"
    assert repr(found) == "<RiskSolution worst policy: mean = 4>"


def test_costs_of_any_sign() -> None:
    rows = [("s", "a", "t", 1, -3), ("s", "b", "t", 0.5, 5), ("s", "b", "g", 0.5, -1)]
    rows += [("t", "c", "g", 0.5, 2), ("t", "c", "g", 0.5, -2), ("t", "d", "g", 1, -1)]
    ssp = tp.SSP.from_outcomes(rows, "s", ["g"])
    check(worst(ssp, "mean"), 2)
    check(worst(ssp, "cvar(0.25)"), 7)
    check(worst(ssp, "late(3)"), Fraction(1, 2))
    check(worst(ssp, "late(4)"), Fraction(1, 4))
    check(worst(ssp, "var(0.4)"), 4)
    assert worst(ssp, "var(0.5)").value == -1


@pytest.mark.parametrize("seed", range(12))
def test_a_grid_brackets_the_largest_value(seed: int) -> None:
    model = draw_model(seed)
    ssp, known = to_ssp(model), policies(model)
    exact = {
        tp.Mean(): max(map(mean, known)),
        tp.CVaR(0.25): largest_cvar(known, Fraction(1, 4)),
        tp.Late(6): max(late(costs, 6) for costs in known),
    }
    for measure, largest in exact.items():
        for delta in (2, 7):
            found = tp.solve(ssp, measure, sense="max", delta=delta)
            assert found.bounds[0] <= largest <= found.bounds[1]
            assert found.risk(measure) == pytest.approx(found.value)
            assert found.bounds[0] <= found.value * (1 + 1e-12)


def test_costs_without_a_unit() -> None:
    rows = [("s", "a", "g", 0.5, math.pi), ("s", "a", "g", 0.5, 1), ("s", "b", "g", 1, math.e)]
    ssp = tp.SSP.from_outcomes(rows, "s", ["g"])
    assert worst(ssp, "mean").value == pytest.approx(math.e)
    with pytest.raises(ModelError, match="delta"):
        worst(ssp, "cvar(0.5)")
    found = tp.solve(ssp, "cvar(0.5)", sense="max", delta=0.001)
    assert found.value == pytest.approx(math.pi) and found.gap < 0.01


def test_the_cycle_is_named() -> None:
    rows = [("s", "go", "g", 1, 2), ("s", "on", "t", 1, 1)]
    rows += [("t", "back", "u", 1, 1), ("u", "back", "t", 1, 1), ("u", "go", "g", 1, 1)]
    found = worst(tp.SSP.from_outcomes(rows, "s", ["g"]), "cvar(0.1)")
    assert found.value == math.inf and found.gap == 0
    assert found.words == ("a policy may stay for ever at 't' by 'back', 'u' by 'back'",)
    assert found.risk("late(100)") == 1


@pytest.mark.parametrize(
    ("objective", "options", "text"),
    [
        ("mean", {"subject_to": ["late(3) <= 0.1"]}, "limits"),
        ("mean + cvar(0.1)", {}, "no solver maximises"),
        ("mean - 2 * var(0.1)", {}, "no solver maximises"),
        ("-1 * mean", {}, "falls"),
        ("mean", {"sense": "worst"}, "'min' or 'max'"),
    ],
)
def test_refusals(objective: str, options: dict[str, Any], text: str) -> None:
    ssp = tp.SSP.from_outcomes([("s", "a", "g", 0.5, 1), ("s", "a", "g", 0.5, 2)], "s", ["g"])
    with pytest.raises(OptionError, match=text):
        tp.solve(ssp, objective, **{"sense": "max", **options})


def test_intervals_are_refused() -> None:
    ssp = tp.SSP.from_outcomes([("s", "a", "g", 0.5, 1), ("s", "a", "g", 0.5, 2)], "s", ["g"])
    with pytest.raises(OptionError, match="intervals"):
        worst(tp.IntervalSSP.around(ssp, 0.5), "mean")
