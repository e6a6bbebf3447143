"""Measures: their text, their arithmetic, and their values against exact rationals."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tailpath as tp
from tailpath.errors import OptionError
from tailpath.evaluation.evaluate import evaluate_for
from tailpath.risk.curves import Curve, curve_of
from tailpath.risk.measure import REGISTER, Measure
from tailpath.risk.measures import parse, parse_limit
from tests.reference import cost_distribution, to_ssp
from tests.strategies import policies, proper_models

TEXTS = [
    "mean",
    "cvar(0.05)",
    "var(0.1)",
    "late(35)",
    "late(inf)",
    "shortfall(12.5)",
    "loss(0:0, 10:3, 10:5, slope 2)",
    "loss(3:-1)",
    "0.7 * mean + 0.3 * cvar(0.05)",
    "mean - 0.5 * late(3)",
    "2e-05 * mean + 1e+20 * late(3)",
]


@pytest.mark.parametrize("text", TEXTS)
def test_measures_print_as_they_are_written(text: str) -> None:
    assert str(parse(text)) == text
    assert parse(str(parse(text))) == parse(text)
    assert hash(parse(text)) == hash(parse(text))


def test_limits_in_text() -> None:
    assert parse_limit("late(35) <= 5%") == (tp.Late(35) <= 0.05)
    assert str(tp.CVaR(0.01) <= 40) == "cvar(0.01) <= 40"
    assert parse_limit("0.5*mean + 0.5 * CVaR(1%) <= 30").bound == 30
    assert parse("cvar( 5% )") == tp.CVaR(0.05)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "cannot read"),
        ("cvar", "cvar is written cvar(alpha), not cvar()"),
        ("cvar(0.05, 3)", "cvar is written cvar(alpha), not cvar(0.05, 3)"),
        ("cvar(a)", "'a' is not a number"),
        ("late(20", "the brackets of 'late(20' do not match"),
        ("cvar(2)", "alpha must lie in (0, 1], not 2"),
        ("cvr(0.05)", "unknown measure 'cvr'; did you mean 'cvar'?"),
        (
            "fast(3)",
            "unknown measure 'fast'; known are cvar, entropic, evar, expectile, late, loss, mean,"
            " meandeviation, shortfall, spectral, var, variance",
        ),
        ("0.05", "0.05 is no measure; write for example cvar(0.05)"),
        (" 5% ", "5% is no measure; write for example cvar(5%)"),
        ("30", "30 is no measure; write for example late(30)"),
        ("mean mean", "cannot read 'mean'"),
        ("mean + ", "cannot read '+'"),
        ("late(-inf)", "a deadline must be a number, not -inf"),
        ("late(nan)", "a deadline must be a number, not nan"),
        ("shortfall(inf)", "a budget must be a number and finite, not inf"),
        ("loss(3)", "a point of a loss is written cost:value, not '3'"),
        ("loss(3:1, 2:0)", "rising order"),
        ("loss(1:1, 1:2, 1:3)", "at most two points"),
        ("loss(1:1, slope -1)", "must be 0 or more"),
        ("loss()", "at least one point"),
        ("mean - cvar(0.1)", "must be 0 or more"),
        (
            "late(1e99999999)",
            "'1e99999999' is too large a number; for infinity, write inf",
        ),
        ("late(1e-99999999)", "'1e-99999999' is too small a number"),
        ("1e400 * mean", "'1e400' is too large a number"),
        ("1e-400 * mean", "'1e-400' is too small a number"),
        ("loss(0:0, 1:1e400)", "'1e400' is too large a number"),
    ],
)
def test_what_cannot_be_read(text: str, message: str) -> None:
    with pytest.raises(OptionError) as caught:
        parse(text)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    "make",
    [
        tp.Late,
        tp.Shortfall,
        tp.CVaR,
        tp.VaR,
        lambda value: tp.Mean() <= value,
        lambda value: value * tp.Mean(),
        lambda value: tp.Loss([(0, value)]),
    ],
)
@pytest.mark.parametrize("value", [10**400, -(10**400)])
def test_whole_numbers_beyond_the_floats_are_refused(make, value) -> None:
    with pytest.raises(OptionError):
        make(value)


@pytest.mark.parametrize("factor", [math.inf, -math.inf, math.nan])
def test_factors_are_finite(factor) -> None:
    with pytest.raises(OptionError, match="the factor of mean must be finite"):
        factor * tp.Mean()


def test_limits_that_are_none() -> None:
    for wrong in (
        "late(3)",
        "late(3) <= x",
        5,
        "late(3) >= 1",
        "mean <= 1e99999999",
        "late(3) <= 1e-400",
    ):
        with pytest.raises(OptionError):
            parse_limit(wrong)
    with pytest.raises(OptionError, match="upper bounds"):
        _ = tp.Mean() >= 3


@settings(max_examples=60)
@given(st.data(), proper_models(dyadic=True))
def test_values_agree_with_fractions(data: st.DataObject, model: Any) -> None:
    ssp = to_ssp(model)
    policy = data.draw(policies(model))
    unit = ssp.cost_unit
    x = data.draw(st.integers(1, 6))
    alpha = data.draw(st.sampled_from([0.5, 0.25, 0.0625]))
    place = float(x * unit)
    measures = [
        tp.Mean(),
        tp.CVaR(alpha),
        tp.VaR(alpha),
        tp.Late(place),
        tp.Shortfall(place),
        2 * tp.Mean() + tp.Late(place),
    ]
    measures.append(tp.Loss([(0, 1), (place, 3), (place, -2)], 0.5))
    costs = evaluate_for(ssp, policy, measures)
    exact = cost_distribution(
        model,
        policy,
        min(Fraction(costs.tail_mass) if costs.tail_mass else Fraction(1, 10**9), Fraction(alpha)),
    )
    while exact.head[-1][0] < x * unit and exact.open:
        exact = cost_distribution(model, policy, sum(p for *_, p in exact.open) / 16)
    every = [*exact.head, *((z + rest, p) for z, rest, p in exact.open)]
    late = sum((p for z, p in every if z > x * unit), Fraction(0))
    excess = sum((p * (z - x * unit) for z, p in every if z > x * unit), Fraction(0))
    before = sum((p * (1 + 2 * z / (x * unit)) for z, p in every if z <= x * unit), Fraction(0))
    bent = before + late * -2 + excess / 2
    wanted = [
        exact.mean,
        exact.cvar(alpha),
        exact.var(alpha),
        late,
        excess,
        2 * exact.mean + late,
        bent,
    ]
    for measure, value in zip(measures, wanted, strict=True):
        assert measure(costs) == pytest.approx(float(value), rel=1e-11, abs=1e-13)
        low, high = costs.bounds(measure)
        assert low * (1 - 1e-15) - 1e-15 <= float(value) <= high * (1 + 1e-15) + 1e-15
        # Where a tail is alpha exactly, floats cannot tell on which side of it.
        tied = isinstance(measure, tp.VaR) and np.any(np.abs(costs.tails - alpha) < 1e-12)
        assert tied or high - low <= 1e-8 * max(1.0, abs(high))


@settings(max_examples=80)
@given(st.data(), proper_models(dyadic=True))
def test_beyond_the_head_bounds_still_hold(data: st.DataObject, model: Any) -> None:
    """Half of the distribution is known; what lies behind is bracketed by its mass and excess, as
    exact rationals confirm.
    """
    ssp = to_ssp(model)
    policy = data.draw(policies(model))
    costs = tp.evaluate(ssp, policy, 0.5)
    x = data.draw(st.integers(1, 12)) * ssp.cost_unit
    exact = cost_distribution(model, policy, Fraction(1, 2))
    while exact.head[-1][0] < 2 * x and exact.open:
        exact = cost_distribution(model, policy, sum(p for *_, p in exact.open) / 16)
    every = [*exact.head, *((z + rest, p) for z, rest, p in exact.open)]
    y = 2 * x

    def bent(z: Fraction) -> Fraction:  # 1 until x, falls to -1 at 2 x, jumps to 4, rises by 1/2
        return Fraction(1) if z <= x else 1 - 2 * (z - x) / x if z <= y else 4 + (z - y) / 2

    measures = [
        tp.Late(float(x)),
        tp.Shortfall(float(x)),
        tp.Loss([(float(x), 1), (float(y), -1), (float(y), 4)], 0.5),
    ]
    losses = [lambda z: Fraction(z > x), lambda z: max(z - x, Fraction(0)), bent]
    measures.append(measures[0] - 2 * measures[1])
    losses.append(lambda z: (z > x) - 2 * max(z - x, Fraction(0)))
    for measure, loss in zip(measures, losses, strict=True):
        low, high = costs.bounds(measure)
        assert low - 1e-15 <= sum(p * loss(z) for z, p in every) <= high + 1e-15
    if costs.costs[-1] < x:
        low, high = costs.bounds(measures[0])
        assert (
            high
            <= min(costs.tail_mass, costs.tail_excess / (float(x) - costs.costs[-1])) * (1 + 1e-9)
            + 1e-12
        )
        low, high = costs.bounds(measures[1])
        assert high <= costs.tail_excess * (1 + 1e-9) + 1e-12
        assert low >= costs.tail_excess - costs.tail_mass * (float(x) - costs.costs[-1]) - 1e-9


def test_beyond_the_head_where_some_never_arrive() -> None:
    rows = [
        ("s", "go", "g", 0.5, 2),
        ("s", "go", "t", 0.25, 1),
        ("s", "go", "pit", 0.25, 1),
        ("pit", "wait", "pit", 1, 1),
        ("t", "go", "g", 1, 8),
    ]
    costs = tp.evaluate(
        tp.SSP.from_outcomes(rows, "s", ["g"]), {"s": "go", "t": "go", "pit": "wait"}, 0.5
    )
    assert costs.costs.tolist() == [2]
    low, high = costs.bounds(tp.Late(7))  # a quarter never arrives, another may or may not be late
    assert (low, high) == pytest.approx((0.25, 0.5), rel=1e-8)
    assert costs.bounds(tp.Shortfall(7)) == (math.inf, math.inf)
    low, high = costs.bounds(
        tp.Loss([(0, 0), (5, 8), (5, -8)])
    )  # 3.2 for the half at 2; then -8 to 8 for one quarter, -8 for the other
    assert (low, high) == pytest.approx((1.6 - 2 - 2, 1.6 + 2 - 2), rel=1e-8)


def test_never_arriving() -> None:
    ssp = tp.SSP.from_outcomes(
        [("s", "go", "g", 0.75, 2), ("s", "go", "pit", 0.25, 1), ("pit", "wait", "pit", 1, 1)],
        "s",
        ["g"],
    )
    costs = evaluate_for(ssp, {"s": "go", "pit": "wait"}, [tp.Late(10)])
    assert (tp.Late(math.inf)(costs), tp.Late(2)(costs), tp.Late(1)(costs), tp.Late(10)(costs)) == (
        0.25,
        0.25,
        1,
        0.25,
    )
    assert tp.Shortfall(1)(costs) == math.inf and tp.Mean()(costs) == math.inf
    assert tp.Loss([(0, 0), (2, 0), (2, 8)])(costs) == 2


def test_a_measure_of_ones_own_is_one_class() -> None:
    @dataclass(frozen=True)
    class Missed(Measure):
        """10 for every run beyond a deadline, and one more for every unit."""

        deadline: float
        word = "missed"

        @property
        def curve(self) -> Curve:
            return curve_of([(self.deadline, 0), (self.deadline, 10)], 1)

        @property
        def farthest_cost(self) -> float:
            return self.deadline

    try:
        ssp = tp.read("gridworld:5x5")
        found = tp.solve(ssp, "missed(9)")
        same = tp.solve(ssp, 10 * tp.Late(9) + tp.Shortfall(9))
        assert found.value == pytest.approx(same.value, rel=1e-12)
        assert found.risk("missed(9)") == pytest.approx(found.value, rel=1e-12)
        assert str(parse("0.5 * missed(9)")) == "0.5 * missed(9)"
    finally:
        del REGISTER.added["missed"]


@pytest.mark.parametrize("first", [0.1, 0.3, 0.7, 1 / 3, -0.7])
@pytest.mark.parametrize("second", [0.2, 0.7, 3.0, -0.1])
def test_bounds_of_a_sum_are_rounded_outwards(first: float, second: float) -> None:
    """Factors are what is written: 7/10 is no float, and a bound of 0.7 lies below it."""
    costs = tp.evaluate(tp.SSP.from_outcomes([("s", "a", "g", 1, 4)], "s", ["g"]), {"s": "a"}, 0.1)
    low, high = costs.bounds(first * tp.Late(1) + second * tp.Late(3))
    truth = Fraction(repr(first)) + Fraction(repr(second))
    assert low <= truth <= high and high - low < 1e-12


def test_a_sum_with_a_var_is_evaluated_but_not_minimised() -> None:
    rows = [("s", "safe", "g", 1, 3), ("s", "risky", "g", 0.9, 1), ("s", "risky", "g", 0.1, 9)]
    ssp, both = tp.SSP.from_outcomes(rows, "s", ["g"]), parse("mean + 2 * var(0.05)")
    costs = tp.evaluate(ssp, {"s": "risky"}, 0.05)
    assert both(costs) == pytest.approx(1.8 + 2 * 9, rel=1e-15)
    low, high = costs.bounds(both)
    assert low <= Fraction(99, 5) <= high <= low * (1 + 1e-12)
    for asked in ((both,), ("mean", [both <= 8])):
        with pytest.raises(OptionError, match=r"no solver .*mean \+ 2 \* var\(0.05\)"):
            tp.solve(ssp, *asked)


def test_bounds_of_a_sum_beyond_the_floats() -> None:
    costs = tp.evaluate(tp.SSP.from_outcomes([("s", "a", "g", 1, 4)], "s", ["g"]), {"s": "a"}, 0.1)
    low, high = costs.bounds(1e308 * tp.Mean())
    assert low < math.inf and high == math.inf
    low, high = costs.bounds(-1e308 * tp.Mean())
    assert low == -math.inf and high > -math.inf
