"""Optima on costs of any sign: against rationals, and against all policies one by one."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tailpath as tp
from tailpath.errors import LimitExceededError, OptionError
from tailpath.risk.curves import Curve, curve_of
from tailpath.risk.measure import Measure
from tests.reference import Model, expected_optimum, to_ssp
from tests.signed import gambler, signed_models, trader, turned
from tests.solvers.exact.listing import acyclic_models, all_distributions, cvar_by_sorting
from tests.strategies import (
    proper_models,
    solvable_models,
)

F = Fraction
Total = frozenset[tuple[Fraction, Fraction]]


@settings(max_examples=40, deadline=None)
@given(signed_models(solvable_models()))
def test_least_expected_costs_agree_with_fractions(models: tuple[Model, Model, Fraction]) -> None:
    ssp, truth = to_ssp(models[1]), expected_optimum(models[1])
    found = tp.solve_expected(ssp)
    for state, name in enumerate(ssp.states):
        assert found.lower[state] <= truth[name] <= found.upper[state], name
        assert found.lower[state] <= found.value[state] <= found.upper[state]
    found.verify()


@st.composite
def signed_acyclic(draw: st.DrawFn) -> Model:
    """Few enough policies to try them all, without a word about potentials."""
    model = draw(acyclic_models())
    moved = draw(
        st.lists(st.integers(-9, 5), min_size=len(model.rows()), max_size=len(model.rows()))
    )
    by = iter(moved)
    choices = {
        s: {a: [(t, p, c + next(by)) for t, p, c in ways] for a, ways in actions.items()}
        for s, actions in model.choices.items()
    }
    choices["s0"]["a"] = [(t, p, c - 1 - abs(c)) for t, p, c in choices["s0"]["a"]]
    return Model(choices, model.start, model.goals)


def measured(total: Total, h: Callable[[Fraction], Fraction]) -> Fraction:
    return sum((p * h(z) for z, p in total), F(0))


def var_by_sorting(total: Total, alpha: Fraction) -> Fraction:
    """The least cost z with P(Z > z) <= alpha."""
    beyond = F(0)
    for z, p in sorted(total, reverse=True):
        var, beyond = z, beyond + p
        if beyond > alpha:
            break
    return var


@settings(max_examples=25, deadline=None)
@given(signed_acyclic(), st.integers(-20, 4))
def test_the_best_of_all_policies_one_by_one(model: Model, t: int) -> None:
    every, ssp = all_distributions(model, model.start), to_ssp(model)
    best = tp.solve_cvar_exact(ssp, 0.0625)
    for alpha in (1.0, 0.75, 0.25, 0.0625):
        least = min(cvar_by_sorting(total, F(alpha)) for total in every)
        low, high = best.bounds(alpha)
        assert low <= least <= high and best.cvar(alpha) == pytest.approx(
            float(least), rel=1e-12, abs=1e-12
        )
        costs = tp.evaluate(ssp, best.policy(alpha), alpha)
        assert costs.cvar(alpha) == pytest.approx(float(least), rel=1e-12, abs=1e-12) and costs.var(
            alpha
        ) == best.var(alpha)
        var = min(var_by_sorting(total, F(alpha)) for total in every)
        assert tp.solve(ssp, tp.VaR(alpha)).value == var
    best.verify(0.25)
    curve = {
        "late": lambda z: F(z > t),
        "shortfall": lambda z: max(z - t, F(0)),
        "loss": lambda z: F(3 * (z > t)) + 2 * max(z - t - 2, F(0)),
    }
    texts = {
        "late": f"late({t})",
        "shortfall": f"shortfall({t})",
        "loss": f"loss({t}:0, {t}:3, {t + 2}:3, slope 2)",
    }
    for name, h in curve.items():
        least = min(measured(total, h) for total in every)
        found = tp.solve(ssp, texts[name])
        assert found.bounds[0] <= least <= found.bounds[1] and found.value == pytest.approx(
            float(least), rel=1e-12, abs=1e-12
        )
        assert found.risk(texts[name]) == pytest.approx(float(least), rel=1e-12, abs=1e-12)
    on_time = tp.solve_on_time(ssp, t)
    assert on_time.probability(t) == pytest.approx(
        float(1 - min(measured(total, curve["late"]) for total in every)), abs=1e-12
    )
    assert (
        on_time.bounds(t)[0]
        <= 1 - min(measured(total, curve["late"]) for total in every)
        <= on_time.bounds(t)[1]
    )
    both = min(measured(total, lambda z: z) + cvar_by_sorting(total, F(1, 4)) for total in every)
    found = tp.solve(ssp, "mean + cvar(0.25)")
    assert found.bounds[0] <= both <= found.bounds[1] and found.value == pytest.approx(
        float(both), rel=1e-12, abs=1e-12
    )


@settings(max_examples=12, deadline=None)
@given(signed_models(proper_models(max_states=3, dyadic=True)))
def test_limits_and_frontiers_are_those_of_the_model_with_costs_of_0_or_more(
    models: tuple[Model, Model, Fraction],
) -> None:
    plain, model, by = models
    first, second, more = to_ssp(plain), to_ssp(model), float(by)
    for risk in ("cvar(0.25)", "late({})", "shortfall({})"):
        level = (
            F(
                round(
                    tp.evaluate(first, tp.solve_expected(first), 0.5).var(0.5)
                    / float(first.cost_unit)
                )
            )
            * first.cost_unit
        )
        unmoved, moved = (
            tp.frontier(ssp, risk.format(float(level + at)))
            for ssp, at in ((first, F(0)), (second, by))
        )
        away = more if "cvar" in risk else 0.0
        assert len(moved) == len(unmoved)
        np.testing.assert_allclose(moved.mean, unmoved.mean + more, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(moved.risk, unmoved.risk + away, rtol=1e-9, atol=1e-9)
        middle = float(unmoved.risk[0] + unmoved.risk[-1]) / 2
        assert moved.least_mean(middle + away) == pytest.approx(
            unmoved.least_mean(middle) + more, rel=1e-8, abs=1e-8
        )
        low, high = moved.bounds(middle + away)
        assert low <= high + 1e-12
        for corner in moved:
            costs = tp.evaluate(second, corner.policy, 0.01)
            assert costs.mean == pytest.approx(corner.mean, rel=1e-9, abs=1e-9)
        text = risk.format(float(level + by))
        kept = tp.solve(second, "mean", [f"{text} <= {middle + away:.17g}"])
        assert kept.risk(text) <= middle + away + 1e-9 * (1 + abs(middle + away))
        assert kept.value == pytest.approx(moved.least_mean(middle + away), rel=1e-7, abs=1e-7)


@settings(max_examples=10, deadline=None)
@given(signed_models(proper_models(max_states=4, dyadic=True)))
def test_planners_are_moved_by_as_much(models: tuple[Model, Model, Fraction]) -> None:
    plain, model, by = models
    atoms = [0.1, 0.5, 1]
    for plan in (
        tp.solve_cvar_quantile,
        lambda *given: tp.solve_cvar_interpolation(*given, inner="greedy"),
    ):
        before, after = plan(to_ssp(plain), atoms, 1e-9), plan(to_ssp(model), atoms, 1e-9)
        for alpha in atoms:
            assert after.cvar(alpha) == pytest.approx(
                before.cvar(alpha) + float(by), rel=1e-6, abs=1e-6
            )
            costs = tp.evaluate(to_ssp(model), after.policy(alpha), alpha)
            assert costs.cvar(alpha) >= tp.solve_cvar_exact(to_ssp(model), alpha).bounds(alpha)[0]


def test_a_potential_of_ones_own_changes_nothing() -> None:
    """Costs that are moved back and forth are the costs, and so are their answers,
    digit by digit.
    """
    river = tp.domains.river(rows=6, columns=4)
    model = Model(
        {
            river.states[s]: {
                river.choice_name(k): [
                    (
                        river.states[river.outcome_target[o]],
                        F(repr(float(river.outcome_probability[o]))),
                        F(repr(float(river.outcome_cost[o]))),
                    )
                    for o in range(river.choice_outcomes[k], river.choice_outcomes[k + 1])
                ]
                for k in range(river.state_choices[s], river.state_choices[s + 1])
            }
            for s in range(river.n_states)
            if not river.is_goal[s]
        },
        river.start,
        frozenset(river.goals),
    )
    psi = {state: F(-3 * row - column) for state in model.choices for row, column in [state]}
    signed = to_ssp(turned(model, psi))
    assert signed.signed
    by = float(psi[river.start])
    best, moved = tp.solve_cvar_exact(river, 0.01), tp.solve_cvar_exact(signed, 0.01)
    for alpha in (0.01, 0.1, 1.0):
        assert moved.cvar(alpha) == pytest.approx(best.cvar(alpha) + by, rel=1e-12)
        assert moved.var(alpha) == best.var(alpha) + by
    costs = tp.evaluate(signed, moved.policy(0.01), 0.01)
    assert costs.engine == "lattice" and costs.reason == "", "a policy by budgets is not unrolled"
    drawn = tp.simulate(signed, moved.policy(0.01), 20_000, 1)
    low, high = tp.estimate(drawn, 0.1, 0.999).mean_interval
    assert low <= costs.mean <= high
    assert tp.estimate(drawn[:3], 0.5).var_interval[0] == -math.inf, (
        "nobody knows how little a run may cost"
    )
    assert tp.estimate(drawn[:3], 0.5, least=float(signed.shift)).var_interval[0] == float(
        signed.shift
    )


def test_a_grid_brackets_the_optimum() -> None:
    ssp = trader()
    best, every = tp.solve_cvar_exact(ssp, 0.1), tp.solve_cvar_exact(ssp, 0.1, delta=F(3, 10))
    low, high = every.bounds(0.1)
    assert low <= best.cvar(0.1) <= high and low < high < low + 3
    assert tp.evaluate(ssp, every.policy(0.1), 0.1).cvar(0.1) <= high
    on_time, rounded = tp.solve_on_time(ssp, 0), tp.solve_on_time(ssp, 0, delta=0.3)
    for t in (-7, -5.5, -4, 0):
        low, high = rounded.bounds(t)
        assert low <= on_time.probability(t) <= high
    for asked in ("cvar(0.1)", "late(-5)", "shortfall(-5)"):
        found = tp.solve(ssp, asked, delta=0.3)
        assert found.bounds[0] <= tp.solve(ssp, asked).value <= found.bounds[1]
    corners, around = tp.frontier(ssp, "cvar(0.1)"), tp.frontier(ssp, "cvar(0.1)", delta=0.3)
    middle = (corners.risk[0] + corners.risk[-1]) / 2
    low, high = around.bounds(middle)
    assert low <= corners.least_mean(middle) <= high


def test_too_little_memory_and_progress_are_told_in_costs_as_given() -> None:
    ssp = gambler()
    with pytest.raises(LimitExceededError) as caught:
        tp.solve_cvar_exact(ssp, 0.1, max_bytes=200)
    low, high = caught.value.bounds
    assert low <= -1 <= high and low < -1
    told: list[float] = []
    tp.solve_cvar_exact(ssp, 0.1, progress=lambda budget, best: told.append(best))
    assert all(best >= -1 - 1e-9 for best in told)


def test_a_measure_of_ones_own() -> None:
    """What a curve says is all that is needed."""

    @dataclass(frozen=True)
    class Penalty(Measure):
        deadline: float
        price: float

        @property
        def curve(self) -> Curve:
            return curve_of([(self.deadline, 0), (self.deadline, self.price)], 1)

        @property
        def farthest_cost(self) -> float:
            return self.deadline

        def __str__(self) -> str:
            return "penalty"

    found = tp.solve(trader(), Penalty(-5, 2))
    same = tp.solve(trader(), 2 * tp.Late(-5) + tp.Shortfall(-5))
    assert found.value == pytest.approx(same.value, rel=1e-12) == found.risk(Penalty(-5, 2))
    with pytest.raises(OptionError, match=r"^shy needs costs of 0 or more"):
        tp.solve(trader(), Shy())


class Shy(Measure):
    """A measure that does not say anything."""

    def __str__(self) -> str:
        return "shy"


def test_discounts_over_a_bounded_number_of_steps() -> None:
    ssp, factor = trader(), F(9, 10)
    limited = tp.within(ssp, 3, gamma=factor)
    assert tp.solve_expected(ssp, gamma=0.9).cost() == pytest.approx(
        tp.solve_expected(limited).cost(), rel=1e-12
    )
    best = tp.solve_cvar_exact(ssp, 0.1, gamma=factor)
    assert best.cvar(0.1) == pytest.approx(tp.solve_cvar_exact(limited, 0.1).cvar(0.1), rel=1e-12)
    # Selling at once is not discounted.
    assert best.cvar(0.1) <= -5 and best.cvar(1) == pytest.approx(
        tp.solve_expected(limited).cost(), rel=1e-12
    )


@pytest.mark.parametrize("cost, step", [(-0.4, 0), (-0.7, 0.3), (-0.1, -0.2), (-1e6, 0.1)])
def test_the_risk_of_a_corner_can_be_kept_where_costs_are_negative(cost, step):
    """Little is left of a risk in the reduced model, and rounding is not little there."""
    rows = [("s", "go", "t", 1, cost), ("t", "go", "g", 1, step), ("s", "late", "g", 1, cost + 5)]
    ssp = tp.SSP.from_outcomes(rows, "s", ["g"])
    truth = Fraction(repr(cost)) + Fraction(repr(step))
    for alpha in (0.05, 0.3, 1.0):
        found = tp.frontier(ssp, tp.CVaR(alpha))
        for risk in (found[0].risk, float(truth), math.nextafter(float(truth), -math.inf)):
            low, high = found.bounds(risk)
            assert low <= truth <= high and high - low <= 1e-9 * abs(cost)
            assert found.least_mean(risk) == pytest.approx(float(truth), rel=1e-12)
            limited = tp.solve(ssp, "mean", [tp.CVaR(alpha) <= risk])
            assert limited.value == pytest.approx(float(truth), rel=1e-12)


def test_the_least_var_is_a_possible_cost() -> None:
    """0.9 of the reduced model and -9/10 are 0, which 0.9 as a float is not."""
    rows = [
        ("s", "a", "t", 0.5, Fraction(-3, 10)),
        ("s", "a", "t", 0.5, Fraction(4, 10)),
        ("t", "a", "g", 0.5, Fraction(-6, 10)),
        ("t", "a", "g", 0.5, Fraction(-4, 10)),
    ]
    ssp = tp.SSP.from_outcomes(rows, "s", ["g"])
    found = tp.solve(ssp, tp.VaR(0.1))
    assert found.value == 0 and found.bounds == (0, 0)
    assert tp.solve_on_time(ssp, 1).var(0.1) == 0


@pytest.mark.parametrize(
    ("p", "costs", "after"), [(0.25, (0.8, -0.1), -0.8), (0.1, (-0.9, -0.8), 0.8)]
)
def test_a_frontier_begins_at_a_risk_of_0_that_rounds_to_more(p, costs, after):
    """What is left of a shift is some 1e-17 and not 0, and 0 can be asked for."""
    rows = [(0, "a", 1, p, costs[0]), (0, "a", 1, 1 - p, costs[1]), (1, "a", "g", 1, after)]
    found = tp.frontier(tp.SSP.from_outcomes(rows, 0, ["g"]), "cvar(0.0625)")
    assert found.least_mean(0.0) == pytest.approx(p * costs[0] + (1 - p) * costs[1] + after)
