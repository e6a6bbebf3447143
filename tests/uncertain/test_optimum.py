"""Optima against and with nature: rationals, public numbers, and what must hold of any of them."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import tailpath as tp
from tailpath.errors import GoalUnreachableError, ModelError, OptionError, RefutedError
from tests.uncertain.models import BRANCH, coin, robot
from tests.uncertain.reference import BEST, WORST, Answers, Model, random_model

NATURES = [("adversarial", WORST), ("cooperative", BEST)]
SEEDS = range(12)


def claim(best, found):
    """Let a solution say that this is the best that it found."""
    vars(best)["_best"] = lambda a: found


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("nature", "ext"), NATURES)
def test_expected_costs_are_those_of_all_policies_and_natures(seed, nature, ext):
    model = random_model(seed)
    found, true = tp.solve_expected(model.intervals(), nature=nature), Answers(model, ext).value
    for state, value in true.items():
        index = found.ssp.inside.state_index(state)
        assert Fraction(float(found.lower[index])) <= value <= Fraction(float(found.upper[index]))
        assert found.upper[index] - found.lower[index] < 1e-11 * float(value)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("nature", "ext"), NATURES)
def test_lateness_is_that_of_the_recursion(seed, nature, ext):
    model = random_model(seed)
    found, true = tp.solve_on_time(model.intervals(), 12, nature=nature), Answers(model, ext)
    for t in range(13):
        low, high = found.late_bounds(t)
        assert Fraction(low) <= true.late(0, t) <= Fraction(high)
        assert high - low < 1e-12


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("nature", "ext"), NATURES)
@pytest.mark.parametrize("alpha", [1.0, 0.5, 0.2, 0.05])
def test_cvar_is_the_least_over_real_budgets(seed, nature, ext, alpha):
    model = random_model(seed)
    found, true = tp.solve_cvar_exact(model.intervals(), 0.05, nature=nature), Answers(model, ext)
    (low, high), exact = found.bounds(alpha), Fraction(alpha)
    assert high - low <= 1.1e-6 * high

    def total(w: Fraction) -> Fraction:
        return w + true.excess(0, w) / exact

    best = Fraction(found.budget(alpha)).limit_denominator(10**6)
    assert Fraction(low) <= total(best) <= Fraction(high) * (1 + Fraction(1, 10**9))
    assert all(Fraction(low) <= total(Fraction(k, 6)) for k in range(6 * int(high) + 7))


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(("nature", "ext"), NATURES)
def test_costs_beyond_every_budget_that_matters(seed, nature, ext):
    """Rare outcomes that cost more than VaR: the tables have no levels for them."""
    plain = random_model(seed)
    rare = {
        s: {
            a: (
                [(t, lo * Fraction(9, 10), hi, c) for t, lo, hi, c in outs]
                + [("g", Fraction(0), Fraction(1, 50), 60 + s)]
            )
            for a, outs in of.items()
        }
        for s, of in plain.choices.items()
    }
    model = Model(rare, plain.start, plain.goals)
    found, true = tp.solve_cvar_exact(model.intervals(), 0.2, nature=nature), Answers(model, ext)
    assert found._problem.layout.longest >= 60 or ext is BEST
    for alpha in (1.0, 0.5, 0.2):
        low, high = found.bounds(alpha)
        assert high - low <= 1.1e-6 * high
        totals = [k + true.excess(0, Fraction(k)) / Fraction(alpha) for k in range(int(high) + 2)]
        assert Fraction(low) <= min(totals)
        best = Fraction(found.budget(alpha)).limit_denominator(10**6)
        assert best + true.excess(0, best) / Fraction(alpha) <= Fraction(high) * (
            1 + Fraction(1, 10**9)
        )


def test_the_best_budget_may_lie_between_two_whole_ones():
    model = tp.IntervalSSP.from_outcomes(BRANCH, "s", ["g"])
    found = tp.solve_cvar_exact(model, 0.5)
    assert found.cvar(0.5) == pytest.approx(7.5, rel=1e-12)
    assert found.budget(0.5) == pytest.approx(2.5, rel=1e-12)
    assert found.bounds(0.5)[0] > 7.5 - 1e-5
    # Costs in units of 1 make the whole budgets 2 and 3, of which the best is 7 2/3.
    finer = tp.IntervalSSP.from_outcomes([*BRANCH, ("B", "dear", "g", 1, 6)], "s", ["g"])
    assert tp.solve_cvar_exact(finer, 0.5).cvar(0.5) == pytest.approx(7.5, rel=1e-12)


def test_the_numbers_of_prism():
    assert tp.solve_expected(robot({2, 3})).cost() == pytest.approx(31 / 24, rel=1e-14)
    assert tp.solve_expected(robot({2, 3, 5})).cost() == pytest.approx(98 / 80, rel=1e-14)


@pytest.mark.parametrize(
    ("steps", "adversarial", "cooperative"), [(2, 8 / 25, 9 / 20), (4, 0.6528, 0.81)]
)
def test_the_step_bounds_of_storm(steps, adversarial, cooperative):
    """What Storm's own tests expect of tiny-bounded.drn, a chain."""
    rows = [
        (0, 0, 0, (0.4, 0.6), 1),
        (0, 0, 1, (0.2, 0.5), 1),
        (1, 0, 0, (0.1, 0.2), 1),
        (1, 0, 2, (0.8, 1), 1),
    ]
    model = tp.IntervalSSP.from_outcomes(rows, 0, [2])
    assert tp.solve_on_time(model, steps).probability(steps) == pytest.approx(
        adversarial, rel=1e-14
    )
    assert tp.solve_on_time(model, steps, nature="cooperative").probability(steps) == pytest.approx(
        cooperative, rel=1e-14
    )


@pytest.mark.parametrize(
    ("nature", "steps", "within"),
    [("adversarial", 48, 0.9041842818260193), ("cooperative", 280 / 9, 0.9852687856874977)],
)
def test_the_coin_of_prism(nature, steps, within):
    model = coin(2, 0.1)
    assert tp.solve_expected(model, nature=nature).cost() == pytest.approx(steps, rel=1e-12)
    assert tp.solve_on_time(model, 100, nature=nature).probability(100) == pytest.approx(
        within, rel=1e-12
    )


@pytest.mark.parametrize(
    ("nature", "numbers"),
    [
        ("adversarial", [1.583333, 2.458333, 2.916667, 3.322222, 4.211111]),
        ("cooperative", [1.555556, 2.388889, 2.777778, 3.244444, 4.122222]),
    ],
)
def test_the_robot_at_every_alpha(nature, numbers):
    found = tp.solve_cvar_exact(robot({2, 3}), 0.01, nature=nature)
    assert found.curve([0.5, 0.2, 0.1, 0.05, 0.01]) == pytest.approx(numbers, abs=1e-6)


def test_points_give_what_a_model_without_intervals_gives():
    ssp = tp.domains.gridworld("5x5")
    points = tp.IntervalSSP(ssp, ssp.outcome_probability, ssp.outcome_probability)
    assert points.is_certain
    assert np.array_equal(tp.solve_expected(points).value, tp.solve_expected(ssp).value)
    one, other = tp.solve_cvar_exact(points, 0.01), tp.solve_cvar_exact(ssp, 0.01)
    assert one.curve([0.5, 0.1, 0.01]).tolist() == other.curve([0.5, 0.1, 0.01]).tolist()
    assert (
        tp.solve_on_time(points, 30).lateness.tolist()
        == tp.solve_on_time(ssp, 30).lateness.tolist()
    )
    assert tp.solve(points, "var(0.1)").value == tp.solve(ssp, "var(0.1)").value


def test_one_open_choice_elsewhere_changes_nothing_but_rounding():
    rows = [
        ("s", "go", "t", 0.5, 1),
        ("s", "go", "s", 0.5, 2),
        ("t", "on", "g", 1, 1),
        ("s", "far", "u", 1, 9),
    ]
    open_ = tp.IntervalSSP.from_outcomes(
        [*rows, ("u", "x", "g", (0.1, 0.9), 1), ("u", "x", "t", (0.1, 0.9), 1)], "s", ["g"]
    )
    closed = tp.SSP.from_outcomes(
        [*rows, ("u", "x", "g", 0.5, 1), ("u", "x", "t", 0.5, 1)], "s", ["g"]
    )
    alphas = [0.5, 0.1, 0.01]
    assert tp.solve_cvar_exact(open_, 0.01).curve(alphas) == pytest.approx(
        tp.solve_cvar_exact(closed, 0.01).curve(alphas), rel=1e-12
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_wider_intervals_never_help_against_an_adversary_nor_hurt_with_a_friend(seed):
    ssp = random_model(seed).intervals().inside
    cvar = {
        nature: [
            tp.solve_cvar_exact(tp.IntervalSSP.around(ssp, margin), 0.1, nature=nature).cvar(0.1)
            for margin in (0.0, 0.1, 0.3, 1.0)
        ]
        for nature in ("adversarial", "cooperative")
        if seed % 3 or nature == "cooperative"
    }
    for nature, values in cvar.items():
        steps = np.diff(values) / values[0]
        assert (steps >= -2e-6).all() if nature == "adversarial" else (steps <= 2e-6).all()


def test_a_game_of_two_players_is_a_model_with_intervals():
    """A second player's choice is an interval [0, 1] on each of its successors."""
    rows = [
        *(("s", a, f"{a}{i}", (0, 1), 1) for a in "xy" for i in (0, 1)),
        *(("x0", "on", "g", p, c) for p, c in ((0.5, 1), (0.5, 5))),
        *(("x1", "on", "g", p, c) for p, c in ((0.9, 1), (0.1, 12))),
        *(("y0", "on", "g", p, c) for p, c in ((1, 4),)),
        *(("y1", "on", "g", p, c) for p, c in ((0.75, 2), (0.25, 7))),
    ]
    found = tp.solve_expected(tp.IntervalSSP.from_outcomes(rows, "s", ["g"]))
    assert found.cost() == pytest.approx(1 + min(max(3, 2.1), max(4, 3.25)))
    with_help = tp.solve_expected(
        tp.IntervalSSP.from_outcomes(rows, "s", ["g"]), nature="cooperative"
    )
    assert with_help.cost() == pytest.approx(1 + 2.1)
    laws = {
        "x": ([(0.5, 1), (0.5, 5)], [(0.9, 1), (0.1, 12)]),
        "y": ([(1, 4)], [(0.75, 2), (0.25, 7)]),
    }

    def tail(law: list[tuple[float, float]], alpha: float) -> float:
        """CVaR by the definition: the mean of the worst share."""
        left, total = alpha, 0.0
        for p, cost in sorted(law, key=lambda each: -each[1]):
            total, left = total + min(p, left) * cost, left - min(p, left)
        return total / alpha

    steps, alpha = 2000, 0.2
    best = tp.solve_cvar_exact(tp.IntervalSSP.from_outcomes(rows, "s", ["g"]), alpha).cvar(alpha)
    # The second player may also draw, which pays against CVaR; all draws in 2000ths, for each move
    # of the first.
    each = [
        max(
            tail(
                [(q / steps * p, c) for p, c in one] + [((1 - q / steps) * p, c) for p, c in other],
                alpha,
            )
            for q in range(steps + 1)
        )
        for one, other in laws.values()
    ]
    assert 1 + min(each) - 1e-9 <= best <= 1 + min(each) + 12 / alpha / steps


@pytest.mark.parametrize(
    "measure",
    ["late(4)", "shortfall(3)", tp.Loss(((2, 0), (4, 3)), 1), "var(0.2)", "cvar(0.2)", "mean"],
)
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_measures_lie_on_both_sides_of_every_truth(measure, seed):
    model = random_model(seed).intervals()
    adversarial, cooperative = (
        tp.solve(model, measure, nature=nature) for nature in ("adversarial", "cooperative")
    )
    truth = tp.solve(model.inside, measure)
    assert cooperative.bounds[0] <= truth.bounds[1]
    assert truth.bounds[0] <= adversarial.bounds[1]
    # What the policy promises holds on the truth.
    costs = tp.evaluate(model.inside, adversarial.policy, 1e-3)
    assert costs.bounds(tp.solve(model.inside, measure).objective)[0] <= adversarial.bounds[1] * (
        1 + 1e-12
    )


def test_shortfall_is_the_excess_of_the_recursion():
    model = random_model(3)
    for nature, ext in NATURES:
        low, high = tp.solve(model.intervals(), "shortfall(3)", nature=nature).bounds
        assert Fraction(low) <= Answers(model, ext).excess(0, Fraction(3)) <= Fraction(high)


def test_an_outcome_that_nature_can_withhold_is_named():
    rows = [("s", "go", "t", (0, 1), 1), ("s", "go", "s", (0, 1), 1), ("t", "on", "g", 1, 1)]
    model = tp.IntervalSSP.from_outcomes(rows, "s", ["g"])
    with pytest.raises(
        GoalUnreachableError,
        match=r"in state 's', action 'go', .* outcome 't' is 0",
    ):
        tp.solve_expected(model)
    assert tp.solve_expected(model, nature="cooperative").cost() == 2
    assert tp.solve_on_time(model, 5).probability(5) == 0
    assert tp.solve_on_time(model, 5, nature="cooperative").probability(5) == 1


def test_highs_that_sum_to_one_but_for_rounding_withhold_the_rest():
    rows = [
        ("s", "go", "g", (0, 1), 1),
        *(("s", "go", "s", (0, p), c) for p, c in ((0.7, 1), (0.2, 2), (0.1, 3))),
    ]
    assert 0.7 + 0.2 + 0.1 < 1
    with pytest.raises(GoalUnreachableError):
        tp.solve_expected(tp.IntervalSSP.from_outcomes(rows, "s", ["g"]))


def test_a_friend_keeps_away_from_dead_ends():
    rows = [
        ("s", "go", "g", (0.1, 1), 1),
        ("s", "go", "trap", (0, 0.9), 1),
        ("s", "wait", "g", 1, 7),
        ("trap", "stay", "trap", 1, 1),
    ]
    model = tp.IntervalSSP.from_outcomes(rows, "s", ["g"])
    assert tp.solve_expected(model).cost() == 7
    assert tp.solve_expected(model, nature="cooperative").cost() == 1
    assert tp.solve_on_time(model, 3).probability(3) == pytest.approx(0.1)


def test_the_mean_needs_no_cost_unit():
    """Everything else does, and is told what helps: `delta` is not for intervals."""
    rows = [("s", "a", "g", (0.4, 0.6), 1.0), ("s", "a", "g", (0.4, 0.6), 2**0.5)]
    model = tp.IntervalSSP.from_outcomes(rows, "s", ["g"])
    assert model.cost_unit is None
    assert tp.solve(model, "mean").value == tp.solve_expected(model).cost()
    for measure in ("cvar(0.1)", "var(0.1)", "late(1)", "shortfall(1)"):
        with pytest.raises(ModelError, match=r"round them to a grid first$"):
            tp.solve(model, measure)


def test_what_is_refused_says_why():
    model = robot({2, 3})
    with pytest.raises(OptionError, match="nature would not be the same"):
        tp.solve_cvar_exact(model, 0.1, lexicographic=True)
    with pytest.raises(OptionError, match="limits need known probabilities"):
        tp.solve(model, "mean", ["cvar(0.1) <= 3"])
    with pytest.raises(OptionError, match="limits need known probabilities"):
        tp.solve(model, "mean", tp.CVaR(0.1) <= 3)
    with pytest.raises(OptionError, match="frontier"):
        tp.frontier(model, "cvar(0.1)")
    with pytest.raises(OptionError, match="adversarial"):
        tp.solve_expected(model, nature="indifferent")
    with pytest.raises(OptionError, match="nominal"):
        tp.solve_cvar_quantile(model, tp.log_atoms(0.1, 4))
    loop = tp.IntervalSSP.from_outcomes(
        [("s", "go", "s", (0, 0.5), 0), ("s", "go", "g", (0.5, 1), 1)], "s", ["g"]
    )
    with pytest.raises(ModelError, match="zero-cost outcomes lead back"):
        tp.solve_expected(loop)


def test_a_var_beyond_what_doubles_tell_is_not_claimed_to_be_infinite():
    """At worst a run leaves with 1e-18 a step: half of all runs take some 7e17 steps."""
    rows = [("s", "go", "s", (0, 1), 1), ("s", "go", "goal", (1e-18, 1), 1)]
    with pytest.warns(tp.TailpathWarning, match="mixes too slowly"):
        found = tp.solve(tp.IntervalSSP.from_outcomes(rows, "s", ["goal"]), "var(0.5)")
    assert 0 < found.bounds[0] < 6e17 and found.bounds[1] == math.inf


@pytest.mark.parametrize("least", [0, 0.5])
def test_a_var_at_1_counts_no_cost_that_nature_may_withhold(least):
    rows = [("s", "go", "g", (0, 1), 1), ("s", "go", "g", (least, 1), 5)]
    model = tp.IntervalSSP.from_outcomes(rows, "s", ["g"])
    for nature, truth in (("adversarial", 5), ("cooperative", 1)):
        found = tp.solve(model, "var(1)", nature=nature)
        assert found.bounds[0] <= truth == found.value <= found.bounds[1]
    assert tp.evaluate(model, {"s": "go"}, 1).var(1) == (1, 5)


def test_the_least_expected_cost_shows_in_a_notebook():
    assert "Least expected cost" in tp.solve_expected(robot({2, 3}))._repr_html_()


def test_the_sentence_has_both_sides():
    words = tp.solve_cvar_exact(robot({2, 3}), 0.1).words(0.1)
    assert (
        words
        == "if all intervals hold the least CVaR at 0.1 lies in [2.77778, 2.91667], and this policy"
        " costs at most 2.91667"
    )


def test_sentences_about_other_measures():
    model = robot({2, 3})
    low, high = (
        tp.solve_expected(model, nature=nature).cost() for nature in ("cooperative", "adversarial")
    )
    said = f"if all intervals hold the least mean lies in [{low:.6g}, {high:.6g}]"
    assert (
        tp.solve_expected(model).words()
        == tp.solve(model, "mean").words[0]
        == f"{said}, and this policy costs at most {high:.6g}"
    )
    assert tp.solve_expected(model, nature="cooperative").words() == said
    assert tp.solve(model, "cvar(0.1)").words[0] == tp.solve_cvar_exact(model, 0.1).words(0.1)
    assert (
        tp.solve(model, "late(3)").words[0]
        == "if all intervals hold the least late(3) lies in [0.011, 0.014], and this policy has at"
        " most 0.014"
    )
    held = [("s", "go", "t", (0, 1), 1), ("s", "go", "s", (0, 1), 1), ("t", "on", "g", 1, 1)]
    hopes = tp.solve_expected(tp.IntervalSSP.from_outcomes(held, "s", ["g"]), nature="cooperative")
    assert hopes.words() == "if all intervals hold the least mean lies in [2, inf]"


def test_giving_up_and_a_limit_of_steps_make_the_goal_sure():
    rows = [
        ("s", "go", "t", (0.1, 1), 1),
        ("s", "go", "s", (0, 0.9), 1),
        ("t", "on", "g", (0, 1), 1),
        ("t", "on", "t", (0, 1), 1),
    ]
    model = tp.IntervalSSP.from_outcomes(rows, "s", ["g"])
    with pytest.raises(GoalUnreachableError):
        tp.solve_expected(model)
    # Nature keeps the run in s until giving up is as cheap, and in t for ever.
    assert tp.solve_expected(tp.give_up(model, 5)).cost() == pytest.approx(5)
    assert tp.solve_expected(tp.give_up(model, 5), nature="cooperative").cost() == pytest.approx(2)
    limited = tp.within(model, 4, otherwise=10)
    assert tp.solve_expected(limited).cost() == pytest.approx(14)
    assert tp.solve_expected(limited, nature="cooperative").cost() == pytest.approx(2)
    assert limited.n_uncertain == 4 + 3
    ordered = tp.give_up(random_model(0).intervals(), 100)
    assert tp.solve_expected(ordered).cost() == pytest.approx(
        tp.solve_expected(random_model(0).intervals()).cost(), rel=1e-12
    )


def test_a_limit_of_steps_is_a_deadline_for_unit_costs():
    model = robot({2, 3})
    for nature in ("adversarial", "cooperative"):
        within = tp.solve_on_time(tp.within(model, 5), 5, nature=nature).probability(5)
        assert within == pytest.approx(
            tp.solve_on_time(model, 5, nature=nature).probability(5), rel=1e-12
        )


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("nature", ["adversarial", "cooperative"])
def test_the_checker_proves_what_is_right_and_refutes_what_is_not(seed, nature):
    model = random_model(seed).intervals()
    expected, best = (
        tp.solve_expected(model, nature=nature),
        tp.solve_cvar_exact(model, 0.1, nature=nature),
    )
    assert "lies in" in str(expected.verify())
    for alpha in (0.5, 0.1):
        assert f"at most {best.bounds(alpha)[1]:.15g}" in str(best.verify(alpha))
    value = expected.value * (1 - 1e-9)
    with pytest.raises(RefutedError, match="at most"):
        replace(expected, upper=value).verify()
    with pytest.raises(RefutedError, match="at least"):
        replace(expected, lower=expected.value * (1 + 1e-9)).verify()
    infinite = np.where(
        np.arange(len(value)) == expected.ssp.inside.start_index, np.inf, expected.value
    )
    with pytest.raises(RefutedError, match=r"bounds of .* nature$"):
        replace(expected, lower=infinite, upper=infinite).verify()
    found = best._best(0.1)
    claim(best, found._replace(high=found.value * (1 - 1e-9)))
    with pytest.raises(RefutedError, match="outside of its own bounds"):
        best.verify(0.1)
    less = found.value * (1 - 1e-9)
    claim(best, found._replace(low=less, value=less, high=less))
    with pytest.raises(RefutedError, match="CVaR of at most"):
        best.verify(0.1)
    lie = found.high * (1 + 1e-9)
    claim(best, found._replace(low=lie, value=lie, high=found.high * (1 + 1e-8)))
    with pytest.raises(RefutedError, match="no lower bound of"):
        best.verify(0.1)


@pytest.mark.parametrize("nature", ["adversarial", "cooperative"])
@pytest.mark.parametrize(
    "build",
    [
        lambda: robot({2, 3}),
        lambda: coin(2, 0.1),
        lambda: tp.IntervalSSP.around(tp.read("gridworld:5x5"), 0.2),
    ],
)
def test_the_checker_proves_the_optima_of_larger_models(build, nature):
    best = tp.solve_cvar_exact(build(), 0.1, nature=nature)
    low, high = best.bounds(0.1)
    proof = best.verify(0.1)
    assert proof.proved[0].startswith(f"no policy has a CVaR below {low:.15g} at alpha 0.1")
    assert proof.width == (high - low) / high < 1.1e-6


def test_the_checker_knows_what_nature_can_withhold():
    rows = [
        ("s", "go", "t", (0, 1), 1),
        ("s", "go", "s", (0, 1), 1),
        ("s", "on", "g", 1, 9),
        ("t", "on", "g", 1, 1),
    ]
    rows += [("u", "go", "g", (0, 1), 1), ("u", "go", "u", (0, 1), 1), ("s", "far", "u", 1, 1)]
    model = tp.IntervalSSP.from_outcomes(rows, "s", ["g"])
    for nature, cost in (("adversarial", 9), ("cooperative", 2)):
        found = tp.solve_expected(model, nature=nature)
        assert found.cost() == cost
        assert np.isinf(found.cost("u")) == (nature == "adversarial")
        assert found.verify() and tp.solve_cvar_exact(model, 0.5, nature=nature).verify()


def test_the_checker_proves_a_budget_between_two_whole_ones():
    best = tp.solve_cvar_exact(
        tp.IntervalSSP.from_outcomes([*BRANCH, ("B", "dear", "g", 1, 6)], "s", ["g"]), 0.5
    )
    assert "at most 7.5" in str(best.verify())
    found = best._best(0.5)
    # 7 2/3 is the best of whole budgets.
    claim(best, found._replace(low=7.6, value=7.6, high=7.7))
    with pytest.raises(
        RefutedError, match=r"no lower bound of 7\.6 .*: the budget 2\.5 allows 7\.5"
    ):
        best.verify()


@pytest.mark.parametrize("nature", ["adversarial", "cooperative"])
def test_a_whole_budget_of_thirds_is_proved(nature):
    """5/3 is no float, and at a budget that is a hair less the CVaR is a hundred hairs more."""
    rows = [("s", "go", "g", 1, Fraction(5, 3)), ("t", "go", "g", (0, 1), Fraction(1, 3))]
    model = tp.IntervalSSP.from_outcomes([*rows, ("t", "go", "g", (0, 1), 0)], "s", ["g"])
    best = tp.solve_cvar_exact(model, 0.001, nature=nature)
    for alpha in (0.05, 0.01, 0.001):
        assert best.budget(alpha) == 5 / 3 and best.verify(alpha).width < 1e-12
        assert best.bounds(alpha)[0] <= Fraction(5, 3) <= best.bounds(alpha)[1]


def test_the_lower_bound_is_rounded_down_where_no_budget_is_worth_it():
    rows = [
        ("s", "go", "g", ("63/170", "77/170"), 1),
        ("s", "go", "g", (0, 1), 0),
        ("s", "go", "g", (0, "8/17"), 1),
    ]
    best = tp.solve_cvar_exact(tp.IntervalSSP.from_outcomes(rows, "s", ["g"]), 1)
    low, high = best.bounds(1)
    assert low <= Fraction(157, 170) <= high and high - low < 1e-12
    assert "no policy has a CVaR below" in str(best.verify(1))


def test_a_measure_that_knows_no_intervals_is_refused_in_a_sentence():
    """One from outside, with neither a loss nor a tail; this was an AssertionError."""

    class Odd(tp.risk.Measure):
        def __str__(self) -> str:
            return "odd"

    rows = [("s", "go", "g", (0, 1), 1), ("s", "go", "g", (0, 1), 2)]
    with pytest.raises(OptionError, match=r"^odd needs known probabilities; .*nominal\(\)"):
        tp.solve(tp.IntervalSSP.from_outcomes(rows, "s", ["g"]), Odd())
