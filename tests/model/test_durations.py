"""Laws of durations: exact shares, and brackets around what is known in closed form."""

import math
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import tailpath as tp
from tailpath.errors import OptionError
from tailpath.model.durations import shares_of_law

SIDES = ("down", "up")


def chain(law, count, unit, side):
    """`count` roads one after the other, all of one law."""
    outcomes = tp.durations(law, unit, side)
    rows = [(place, "drive", place + 1, p, c) for place in range(count) for p, c in outcomes]
    return tp.SSP.from_outcomes(rows, 0, [count])


def measured(law, count, unit, side):
    """Mean, VaR and CVaR at some alphas, and the chance to be there by some hour."""
    ssp = chain(law, count, unit, side)
    costs = tp.evaluate(ssp, tp.solve_expected(ssp), alpha=1e-6)
    ahead = [costs.var(a) for a in ALPHAS] + [costs.cvar(a) for a in ALPHAS]
    return np.array(
        [costs.mean, *ahead, *(-costs.cdf(part * count * law.mean()) for part in PARTS)]
    )


ALPHAS = (0.5, 0.1, 0.01)
#: Deadlines, as parts of the mean.
PARTS = (0.9, 1.1)


def sum_of_exponentials(count, scale):
    total, longer = stats.gamma(count, scale=scale), stats.gamma(count + 1, scale=scale)
    var = [total.isf(a) for a in ALPHAS]
    cvar = [count * scale * longer.sf(x) / a for a, x in zip(ALPHAS, var, strict=True)]
    return np.array(
        [count * scale, *var, *cvar, *(-total.cdf(part * total.mean()) for part in PARTS)]
    )


def sum_of_normals(count, mean, std):
    total = stats.norm(count * mean, math.sqrt(count) * std)
    cvar = [total.mean() + total.std() * stats.norm.pdf(stats.norm.isf(a)) / a for a in ALPHAS]
    return np.array(
        [
            total.mean(),
            *(total.isf(a) for a in ALPHAS),
            *cvar,
            *(-total.cdf(part * total.mean()) for part in PARTS),
        ]
    )


@pytest.mark.parametrize(
    ("law", "count", "truth"),
    [
        (stats.expon(scale=2.0), 1, sum_of_exponentials(1, 2.0)),
        (stats.expon(scale=2.0), 5, sum_of_exponentials(5, 2.0)),
        (stats.norm(3.0, 0.4), 1, sum_of_normals(1, 3.0, 0.4)),
        (stats.norm(3.0, 0.4), 4, sum_of_normals(4, 3.0, 0.4)),
    ],
)
def test_closed_forms_lie_in_every_bracket_and_brackets_shrink(law, count, truth):
    width = np.inf
    for unit in (1, 0.5, "0.25", Fraction(1, 8)):
        low, high = (measured(law, count, unit, side) for side in SIDES)
        assert (low <= truth).all() and (truth <= high).all()
        assert (high - low <= count * float(Fraction(unit)) + 1e-6)[: 1 + 2 * len(ALPHAS)].all()
        assert high[0] - low[0] < width
        width = high[0] - low[0]
    assert (high - low).max() < np.max(
        np.subtract(*reversed([measured(law, count, 1, side) for side in SIDES]))
    )


def test_the_optimum_of_two_roads_lies_between():
    """Alone at the end, so that the least CVaR is the lesser of two in closed form."""
    laws = {"town": stats.norm(20, 3), "ring": stats.norm(24, 1)}
    for alpha in (0.9, 0.05):
        truth = min(
            law.mean() + law.std() * stats.norm.pdf(stats.norm.isf(alpha)) / alpha
            for law in laws.values()
        )
        found = {}
        for side in SIDES:
            rows = [
                ("home", road, "work", p, c)
                for road, law in laws.items()
                for p, c in tp.durations(law, 0.25, side)
            ]
            found[side] = tp.solve_cvar_exact(
                tp.SSP.from_outcomes(rows, "home", ["work"]), alpha
            ).cvar(alpha)
        assert found["down"] <= truth <= found["up"] <= found["down"] + 0.25 + 1e-9


laws_of_scipy = [
    stats.lognorm(0.5, scale=12),
    stats.gamma(2.5, scale=4),
    stats.uniform(5, 10),
    stats.weibull_min(1.7, scale=9),
    stats.poisson(6),
    stats.geom(0.2),
    stats.binom(7, 0.3),
    stats.rv_discrete(values=([3, 5, 40], [0.5, 0.25, 0.25])),
    stats.rv_histogram(np.histogram([1, 2, 2, 3, 8], bins=4)),
]


@pytest.mark.parametrize("law", laws_of_scipy)
def test_no_mass_is_left_out_and_the_mean_lies_between(law):
    for unit in (0.5, 2):
        mean = {}
        for side in SIDES:
            found = tp.durations(law, unit, side)
            assert math.isclose(sum(p for p, _ in found), 1, abs_tol=1e-12)
            assert [c for _, c in found] == sorted({c for _, c in found})
            assert all(Fraction(c) % Fraction(unit) == 0 for _, c in found)
            mean[side] = math.fsum(p * c for p, c in found)
        assert mean["down"] <= law.mean() + 1e-9 and law.mean() <= mean["up"] + 1e-9
        assert mean["up"] - mean["down"] <= unit + 1e-6


@pytest.mark.parametrize("law", laws_of_scipy)
def test_every_quantile_lies_between(law):
    up, down = (tp.durations(law, 0.5, side) for side in ("up", "down"))
    for q in (0.001, 0.05, 0.3, 0.5, 0.77, 0.95, 0.999):
        below, above = (
            next(
                c
                for n, (_, c) in enumerate(found)
                if math.fsum(p for p, _ in found[: n + 1]) >= q - 1e-12
            )
            for found in (down, up)
        )
        assert below <= law.ppf(q) + 1e-9 and law.ppf(q) <= above + 1e-9


def test_what_is_beyond_the_cut():
    """An exponential has no memory: beyond any end it exceeds it by its mean."""
    law = stats.expon(scale=10.0)
    up, down = (tp.durations(law, 1, side, cut=1e-3) for side in ("up", "down"))
    last = math.ceil(law.isf(1e-3))
    assert down[-1] == (pytest.approx(law.sf(last), rel=1e-12), last)
    assert up[-1][1] in (last + 10, last + 11) and up[-1][0] == pytest.approx(
        law.sf(last), rel=1e-12
    )
    assert up[-2][1] == last
    discrete = stats.geom(0.1)
    last = discrete.isf(1e-3)
    assert tp.durations(discrete, 1, "up", cut=1e-3)[-1][1] in (last + 10, last + 11)


@pytest.mark.skipif(not hasattr(stats, "Binomial"), reason="this scipy has no such distributions")
def test_the_newer_distributions_of_scipy():
    for newer, older in (
        (lambda: stats.Normal(mu=20, sigma=2), stats.norm(20, 2)),
        (lambda: stats.Binomial(n=7, p=0.3), stats.binom(7, 0.3)),
    ):
        for side in SIDES:
            found, wanted = (tp.durations(law, 0.5, side) for law in (newer(), older))
            assert [c for _, c in found] == [c for _, c in wanted]
            assert [p for p, _ in found] == pytest.approx(
                [p for p, _ in wanted], rel=1e-9, abs=1e-15
            )


# ---------------------------------------------------------------------- samples and weights


@given(st.lists(st.integers(0, 60), min_size=1, max_size=12))
def test_samples_by_counting(samples):
    wanted = [(samples.count(value) / len(samples), value) for value in sorted(set(samples))]
    for law in (
        samples,
        np.array(samples),
        pd.Series(samples),
        ";".join(map(str, samples)),
        {v: samples.count(v) for v in samples},
    ):
        assert tp.durations(law) == tp.durations(law, unit=1, side="down") == wanted
    assert sum(shares_of_law(samples).values()) == 1


def test_samples_are_rounded_exactly():
    samples = [0.1, 0.2, 0.3, 0.7]  # 0.3 is three tenths, and 0.1 * 3 in floats is more
    assert tp.durations(samples, 0.1) == [(0.25, 0.1), (0.25, 0.2), (0.25, 0.3), (0.25, 0.7)]
    assert tp.durations(samples, 0.5) == [(0.75, 0.5), (0.25, 1)]
    assert tp.durations(samples, 0.5, "down") == [(0.75, 0), (0.25, 0.5)]
    assert tp.durations([1, 2], Fraction(2, 3)) == [(0.5, Fraction(4, 3)), (0.5, 2)]
    assert tp.durations(7) == [(1.0, 7)] and tp.durations("1/3;1/3") == [(1.0, Fraction(1, 3))]


def test_weights_and_histograms():
    assert (
        tp.durations({12: 3, 40: 1})
        == tp.durations("12:3; 40:1")
        == tp.durations("12:2;12:1;40:1")
        == [(0.75, 12), (0.25, 40)]
    )
    counts, edges = np.histogram([1, 2, 3, 9], bins=[0, 4, 8, 12])
    assert tp.durations((counts, edges)) == [(0.75, 4), (0.25, 12)]
    assert tp.durations((counts, edges), 3, "down") == [(0.75, 0), (0.25, 6)]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: tp.durations([]), "^a law of durations needs at least one value"),
        (lambda: tp.durations(""), "^a law of durations needs at least one value"),
        (lambda: tp.durations({1: 0}), "^a law of durations needs at least one value"),
        (lambda: tp.durations([1, math.nan]), "^a duration must be a number, not nan$"),
        (lambda: tp.durations("12;fast"), "^a duration must be a number, not 'fast'$"),
        (
            lambda: tp.durations("12:1;13"),
            "^'12:1;13' is neither samples, a;b;c, nor values with weights",
        ),
        (lambda: tp.durations([-1]), "^a duration must be 0 or more, not -1$"),
        (lambda: tp.durations({1: -1}), "^a weight must be 0 or more, not -1$"),
        (lambda: tp.durations([1], 0), "^the unit must be positive, not 0$"),
        (lambda: tp.durations([1], 1, "left"), "^side must be 'up' or 'down', not 'left'$"),
        (lambda: tp.durations([[1]]), r"^a duration must be a number, not \[1\]$"),
        (lambda: tp.durations(([1, 2], [0, 1])), "^a histogram of 2 counts needs 3 edges, not 2$"),
        (
            lambda: tp.durations(stats.norm(1, 1), 1),
            "^the law is below 0 with probability 0.158655; a duration is not: cut it off",
        ),
        (lambda: tp.durations(stats.expon()), "^a continuous law needs a grid: give unit=$"),
        (lambda: tp.durations(stats.expon(), 1e-9), "^a unit of 1e-09 is too fine"),
        (lambda: tp.durations(stats.halfcauchy(), 1e6), "^the law has no finite mean"),
        (
            lambda: tp.durations(stats.rv_discrete(values=([0.5, 1.2], [0.5, 0.5])), 1),
            "^the masses of the law sum to 0.5, not 1; give weights by value",
        ),
        (lambda: tp.durations(stats.expon(), 1, cut=0), "^cut must lie between 0 and 0.5, not 0$"),
        (lambda: tp.durations(stats.expon(scale=-1), 1), "^the law has no quantiles"),
    ],
)
def test_what_is_refused(make, message):
    with pytest.raises(OptionError, match=message):
        make()
