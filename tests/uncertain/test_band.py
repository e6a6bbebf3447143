"""Bands: what nature can make of a policy, against linear programmes, and against chains drawn
inside the intervals.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

import tailpath as tp
from tailpath.errors import OptionError
from tests.uncertain.reference import BEST, WORST, Answers, Model, cvar_by_programme, random_model

SEEDS = range(10)


def first_actions(model: Model) -> dict:
    return {s: next(iter(actions)) for s, actions in model.choices.items()}


def restricted(model: Model, policy: dict) -> Model:
    return Model(
        {s: {policy[s]: actions[policy[s]]} for s, actions in model.choices.items()},
        model.start,
        model.goals,
    )


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("alpha", [0.5, 0.15])
def test_cvar_is_that_of_the_programme_over_histories(seed, alpha):
    model = random_model(seed, states=4, acyclic=True)
    policy = first_actions(model)
    band = tp.evaluate(model.intervals(), policy, 0.05)
    least, most = band.cvar(alpha)
    assert most == pytest.approx(cvar_by_programme(model, policy, alpha, WORST), rel=1e-7)
    assert least == pytest.approx(cvar_by_programme(model, policy, alpha, BEST), rel=1e-7)
    low, high = band.bounds(alpha)
    assert low <= least <= most <= high


@pytest.mark.parametrize("seed", SEEDS)
def test_means_and_distributions_are_those_of_the_recursions(seed):
    model = random_model(seed)
    policy = first_actions(model)
    band, one = tp.evaluate(model.intervals(), policy, 0.05), restricted(model, policy)
    worst, best = Answers(one, WORST), Answers(one, BEST)
    assert band.mean == pytest.approx((float(best.value[0]), float(worst.value[0])), rel=1e-12)
    for x in range(10):
        assert band.cdf(x) == pytest.approx(
            (1 - float(worst.late(0, x)), 1 - float(best.late(0, x))), abs=1e-12
        )
    for alpha in (0.5, 0.1):
        assert band.var(alpha) == tuple(
            next(t for t in range(200) if side.late(0, t) <= alpha) for side in (best, worst)
        )


@pytest.mark.parametrize("seed", SEEDS)
def test_every_truth_lies_in_the_band(seed):
    model = random_model(seed).intervals()
    policy = tp.solve_cvar_exact(model, 0.1).policy(0.1)
    band, costs = tp.evaluate(model, policy, 0.1), tp.evaluate(model.inside, policy, 0.1)
    for (low, high), value in (
        (band.mean_bounds, costs.mean),
        (band.bounds(0.1), costs.cvar(0.1)),
        (band.var(0.2), costs.var(0.2)),
        (band.cdf(5), 1 - costs.probabilities[costs.costs > 5].sum() - costs.tail_mass),
    ):
        assert low - 1e-12 <= value <= high + 1e-12


@pytest.mark.parametrize("seed", SEEDS)
def test_the_policy_of_the_optimum_has_the_cvar_that_it_promises(seed):
    model = random_model(seed).intervals()
    for nature, side in (("adversarial", 1), ("cooperative", 0)):
        found = tp.solve_cvar_exact(model, 0.1, nature=nature)
        for alpha in (0.5, 0.1):
            assert tp.evaluate(model, found.policy(alpha), 0.1).cvar(alpha)[side] == pytest.approx(
                found.cvar(alpha), rel=2e-6
            )


def test_the_policy_between_two_whole_budgets():
    rows = [
        *(("s", "go", "B", (0, 1), 0), ("s", "go", "A", (0, 1), 0), ("B", "on", "g", 1, 5)),
        *(("A", "on", "g", 1 / 3, 10), ("A", "on", "g", 2 / 3, 0)),
    ]
    band = tp.evaluate(
        tp.IntervalSSP.from_outcomes(rows, "s", ["g"]), {"s": "go", "A": "on", "B": "on"}, 0.5
    )
    assert band.cvar(0.5) == pytest.approx((5, 7.5), rel=1e-12)


def test_what_hurts_most_comes_first():
    model = random_model(4).intervals()
    band = tp.evaluate(model, tp.solve_expected(model), 0.1)
    assert band.nature[0].harm == max(row.harm for row in band.nature)
    for row in band.nature:
        assert row.low - 1e-12 <= row.worst <= row.high + 1e-12


def test_harm_by_hand():
    rows = [("s", "a", "g", (0.5, 1), 1), ("s", "a", "g", (0, 0.5), 5)]
    band = tp.evaluate(tp.IntervalSSP.from_outcomes(rows, "s", ["g"]), {"s": "a"}, 0.1)
    # Inside lies (0.75, 0.25), and the worst is (0.5, 0.5).
    assert [(row.cost, row.worst, row.harm) for row in band.nature] == [
        (5, 0.5, 1.25),
        (1, 0.5, -0.25),
    ]
    assert sum(row.harm for row in band.nature) == pytest.approx(band.mean[1] - 2)


def test_a_policy_that_draws_its_actions():
    rows = [
        ("s", "a", "g", (0.5, 1), 1),
        ("s", "a", "g", (0, 0.5), 5),
        ("s", "b", "g", (0.2, 0.6), 2),
        ("s", "b", "g", (0.4, 0.8), 3),
    ]
    model = tp.IntervalSSP.from_outcomes(rows, "s", ["g"])
    band = tp.evaluate(model, tp.MarkovPolicy({"s": {"a": 0.25, "b": 0.75}}), 0.1)
    assert band.mean == pytest.approx((0.25 * 1 + 0.75 * 2.4, 0.25 * 3 + 0.75 * 2.8))
    assert band.cdf(2) == pytest.approx((0.25 * 0.5 + 0.75 * 0.2, 0.25 + 0.75 * 0.6))
    assert {row.action for row in band.nature} == {"a", "b"}


def test_a_policy_that_nature_may_keep_for_ever():
    rows = [("s", "go", "t", (0, 1), 1), ("s", "go", "s", (0, 1), 1), ("t", "on", "g", 1, 1)]
    band = tp.evaluate(tp.IntervalSSP.from_outcomes(rows, "s", ["g"]), {"s": "go", "t": "on"}, 0.1)
    assert band.mean == (2, math.inf)
    assert band.cvar(0.2) == (2, math.inf)
    assert band.var(0.2) == (2, math.inf)
    assert band.cdf(3) == (0, 1)


def test_a_var_far_away_counts_in_costs_and_not_in_units():
    """1 in 5 or 10 never arrives; for all others 100 steps, each of which may cost nothing, cost
    2.5. Until all states were visited nobody knows that nothing more will arrive.
    """
    rows = [(k, "go", k + 1, 1, 2.5 if k else 0) for k in range(1, 100)]
    rows += [(100, "go", 101, 1, 0.5), ("pit", "go", "pit", 1, 0.5)]
    rows += [(0, "go", 1, (0.8, 0.9), 2.5), (0, "go", "pit", (0.1, 0.2), 0.5)]
    model = tp.IntervalSSP.from_outcomes(rows, 0, [101])
    band = tp.evaluate(model, {state: "go" for state in model.states if state != 101}, 0.1)
    assert band.var(0.5) == (250.5, 250.5)
    assert band.var(0.15) == (250.5, math.inf)


def test_a_band_says_what_it_is():
    rows = [("s", "a", "g", (0.5, 1), 1), ("s", "a", "g", (0, 0.5), 5)]
    band = tp.evaluate(tp.IntervalSSP.from_outcomes(rows, "s", ["g"]), {"s": "a"}, 0.5)
    assert repr(band) == "<CostBand mean 1 to 3, CVaR at 0.5 1 to 5>"


def test_a_start_that_is_a_goal_costs_nothing():
    rows = [("s", "go", "g", (0.5, 1), 1), ("s", "go", "g", (0, 0.5), 2)]
    model = tp.IntervalSSP.from_outcomes(rows, "g", ["g"])
    assert tp.solve_cvar_exact(model, 0.1).cvar(0.1) == 0
    assert tp.solve_on_time(model, 3).probability(0) == 1
    assert tp.solve(model, "shortfall(2)").value == 0
    band = tp.evaluate(model, {"s": "go"}, 0.1)
    assert (band.mean, band.cvar(0.1), band.cdf(0)) == ((0, 0), (0, 0), (1, 1))


def test_the_band_is_drawn():
    model = random_model(1).intervals()
    band = tp.evaluate(model, tp.solve_expected(model), 0.1)
    axes = band.plot()
    assert axes.get_xlabel().startswith("total cost")
    low, high = (np.asarray(line.get_ydata()) for line in axes.lines[:2])
    assert (low <= high + 1e-15).all()
    assert low[-1] >= 0.9
    with pytest.raises(OptionError, match=r"alpha >= 0\.1"):
        band.cvar(0.05)
