"""Variance, mean and deviation, expectiles and spectral measures, against the whole distribution in
fractions.
"""

import math
from fractions import Fraction

import numpy as np
import pytest

import tailpath as tp
from tailpath.errors import OptionError
from tailpath.risk import Measure
from tailpath.risk.measures import parse

Law = list[tuple[Fraction, Fraction]]


def random_law(seed: int) -> tuple[tp.CostDistribution, Law]:
    """A tree of two steps, whose costs may be negative and equal, and all that it may cost."""
    random = np.random.default_rng(seed)
    rows, law = [], []
    first = random.multinomial(60, [1 / 3] * 3) + 1
    for k, share in enumerate(first.tolist()):
        paid = int(random.integers(-5, 9))
        rows.append(("s", "a", k, Fraction(share, 63), paid))
        second = random.multinomial(97, [0.2, 0.79, 0.01]) + 1
        for part in second.tolist():
            cost = int(random.choice([0, 1, 3, 40, 1000]))
            rows.append((k, "a", "goal", Fraction(part, 100), cost))
            law.append((Fraction(share, 63) * Fraction(part, 100), Fraction(paid + cost)))
    ssp = tp.SSP.from_outcomes(rows, "s", ["goal"])
    return tp.evaluate(ssp, dict.fromkeys(["s", 0, 1, 2], "a"), 1e-6), law


def expectile(law: Law, tau: Fraction) -> Fraction:
    """Between two costs the condition is linear."""
    costs = sorted({z for _, z in law})
    for low, high in zip(costs, [*costs[1:], costs[-1]], strict=True):
        below = sum(p for p, z in law if z <= low)
        above = 1 - below
        of_below = sum(p * z for p, z in law if z <= low)
        of_above = sum(p * z for p, z in law if z > low)
        e = (tau * of_above + (1 - tau) * of_below) / (tau * above + (1 - tau) * below)
        if low <= e <= high:
            return e
    raise AssertionError


@pytest.mark.parametrize("seed", range(25))
def test_in_fractions(seed: int) -> None:
    costs, law = random_law(seed)
    mean = sum(p * z for p, z in law)
    variance = sum(p * (z - mean) ** 2 for p, z in law)
    cases: list[tuple[Measure, Fraction]] = [(tp.Variance(), variance)]
    for text in ("0.5", "0.6", "0.9", "0.99"):
        cases.append((tp.Expectile(float(text)), expectile(law, Fraction(text))))
    for measure, exact in cases:
        low, high = costs.bounds(measure)
        assert Fraction(low) <= exact <= Fraction(high), measure
        assert high - low <= 1e-8 * max(abs(high), 1)
        assert measure(costs) == pytest.approx(float(exact), rel=1e-9, abs=1e-9)
    measure = tp.MeanDeviation(1.5)
    low, high = costs.bounds(measure)
    assert low <= float(mean) + 1.5 * math.sqrt(variance) <= high
    assert low <= measure(costs) <= high


def test_spectral_measures_are_sums() -> None:
    costs, _ = random_law(0)
    mixed = tp.Spectral({1: 0.5, 0.1: 0.3, 0.5: 0.2})
    same = 0.5 * tp.Mean() + 0.3 * tp.CVaR(0.1) + 0.2 * tp.CVaR(0.5)
    assert mixed(costs) == same(costs)
    assert costs.bounds(mixed) == costs.bounds(same)
    assert parse(str(mixed)) == mixed
    assert (mixed + tp.Variance())(costs) == pytest.approx(same(costs) + costs.std**2, rel=1e-12)
    ssp = tp.read("gridworld:5x5")
    found = tp.solve(ssp, tp.Spectral({1: 0.5, 0.1: 0.5}))
    assert found.value == tp.solve(ssp, 0.5 * tp.Mean() + 0.5 * tp.CVaR(0.1)).value
    with pytest.raises(OptionError, match="CVaRs at several alphas"):
        tp.solve(ssp, mixed)
    for wrong in ({0.1: 0.5}, {0.1: 1.5, 1: -0.5}, {2: 1}, 3):
        with pytest.raises(OptionError):
            tp.Spectral(wrong)  # type: ignore[arg-type]


def test_variance_of_a_mixture_and_of_long_runs() -> None:
    rows = [("s", "a", "goal", 0.9, 20), ("s", "a", "goal", 0.1, 60), ("s", "b", "goal", 1, 30)]
    ssp = tp.SSP.from_outcomes(rows, "s", ["goal"])
    parts = tp.MarkovPolicy({"s": "a"}), tp.MarkovPolicy({"s": "b"})
    costs = tp.evaluate(ssp, tp.MixedPolicy(parts, (0.25, 0.75)), 0.5)
    law = [(Fraction(225, 1000), 20), (Fraction(25, 1000), 60), (Fraction(3, 4), 30)]
    mean = sum(p * z for p, z in law)
    low, high = costs.bounds(tp.Variance())
    assert Fraction(low) <= sum(p * (z - mean) ** 2 for p, z in law) <= Fraction(high)
    assert high - low < 1e-9
    p = 2.0**-20  # waiting has the variance (1 - p) / p^2
    rows = [("s", "a", "s", 1 - p, 1), ("s", "a", "goal", p, 1)]
    costs = tp.evaluate(tp.SSP.from_outcomes(rows, "s", ["goal"]), {"s": "a"}, 1)
    low, high = costs.bounds(tp.Variance())
    assert Fraction(low) <= (1 - Fraction(p)) / Fraction(p) ** 2 <= Fraction(high)
    assert high - low <= 1e-6 * high
    missed = [("s", "a", "goal", 0.9, 1), ("s", "a", "t", 0.1, 1), ("t", "a", "t", 1, 1)]
    ssp = tp.SSP.from_outcomes(missed, "s", ["goal"])
    never = tp.evaluate(ssp, dict.fromkeys("st", "a"), 0.5)
    for measure in (tp.Variance(), tp.MeanDeviation(1), tp.Expectile(0.9)):
        assert measure(never) == math.inf
        assert never.bounds(measure)[1] == math.inf
