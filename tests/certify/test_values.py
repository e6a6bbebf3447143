"""Bounds of V and V* in fractions: whatever values the certificate is shown, what it proves is
true.
"""

from __future__ import annotations

import random
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tailpath as tp
from tailpath.analysis.core import core_of
from tailpath.certify import values
from tailpath.certify.values import expected_total, least_total, value_bounds
from tailpath.dp import expected
from tailpath.dp.backup import best_rows
from tailpath.dp.expected import total
from tailpath.dp.optimum import optimum
from tailpath.errors import TailpathWarning
from tests.dp.chains import Rates, Rows, arrays, chain_of, chains, exact_values
from tests.reference import Model, expected_optimum, to_ssp
from tests.strategies import proper_models, solvable_models

#: By how much values are off, relatively, that are shown to the certificate.
NOISE = (0.0, 1e-16, 1e-12, 1e-6, 1e-2, 0.5)


def shaken(values: Any, noise: float, seed: int) -> Any:
    draw = random.Random(seed)
    return np.array([float(v) * (1 + draw.uniform(-noise, noise)) for v in values])


def assert_enclosed(found: Any, exact: Any) -> None:
    for low, truth, high in zip(found.lower.tolist(), exact, found.upper.tolist(), strict=True):
        assert low == -np.inf or Fraction(low) <= truth
        assert high == np.inf or truth <= Fraction(high)


@settings(max_examples=200, deadline=None)
@given(chains(), st.sampled_from(NOISE), st.sampled_from([0.0, 1e-3, 1.0]), st.integers(0, 9))
def test_what_is_proved_of_a_chain_is_true(
    chain: tuple[Rows, Rates], noise: float, rough: float, seed: int
) -> None:
    """Neither values nor the solver of slopes and low words need be right."""
    rows, rates = chain
    exact, given = exact_values(rows, rates), arrays(rows, rates)

    def solve(*some: Any) -> Any:
        return shaken(total(*some)[0], rough, seed)

    value = shaken(exact, noise, seed)
    found, _ = value_bounds(*given, value, np.arange(len(rows)), 0.0, solve)
    assert_enclosed(found, exact)
    if rough == 0.0 and noise <= 1e-6:
        assert found.width <= 4e-12


@settings(max_examples=200, deadline=None)
@given(st.one_of(proper_models(), solvable_models()), st.sampled_from(NOISE), st.integers(0, 9))
def test_what_is_proved_of_an_optimum_is_true(model: Model, noise: float, seed: int) -> None:
    """From below for every policy, from above for the one that is best for shaken values."""
    ssp, exact = to_ssp(model), expected_optimum(model)
    try:
        core = core_of(ssp)
    except tp.TailpathError:
        return
    rows = core.transitions
    value = shaken(core.to_nodes(np.array([float(exact[s]) for s in ssp.states])), noise, seed)
    truth = core.to_nodes(np.array([exact[s] for s in ssp.states], dtype=object)).tolist()
    chosen = best_rows(rows.columns(rows.rate), np.append(value, 0.0))
    found, _ = value_bounds(rows, rows.rate, value, chosen, 0.0, lambda *some: optimum(*some).value)
    assert_enclosed(found, truth)


def test_one_slope_proves_what_only_rounding_misses() -> None:
    """Where a step may cost nothing, values are no slope: weights are asked for, once."""
    rows: Rows = [{0: Fraction(2, 3), 2: Fraction(1, 3)}, {1: Fraction(1)}, {2: Fraction(1)}]
    rates, asked = [Fraction(1), Fraction(0), Fraction(4)], []

    def solve(*some: Any) -> Any:
        asked.append(some)
        return optimum(*some).value

    chain, rate = arrays(rows, rates)
    given = chain.replaced(first_row=np.array([0, 2, 3]))
    found, _ = value_bounds(given, rate, np.array([3.0, 4.0]), np.array([0, 2]), 0.0, solve)
    assert_enclosed(found, [3, 4])
    assert len(asked) == 1


def test_a_wrong_value_is_not_proved() -> None:
    """Steps of a fair coin, told as 3 instead of 2: bounds reach down to 2."""
    chain = arrays([{0: Fraction(1, 2), 1: Fraction(1, 2)}], [Fraction(1)])
    found, _ = value_bounds(*chain, np.array([3.0]), np.arange(1), 0.0, lambda *_: np.zeros(1))
    assert found.lower[0] <= 2 <= found.upper[0]


@settings(max_examples=100, deadline=None)
@given(chains())
def test_totals_have_narrow_bounds(chain: tuple[Rows, Rates]) -> None:
    rows, rates = chain
    found = expected_total(*arrays(rows, rates))
    assert_enclosed(found, exact_values(rows, rates))
    assert np.max(found.upper - found.lower) <= 1e-11 * max(float(np.max(found.value)), 1e-300)


@pytest.mark.parametrize("n", [4, 8, 20])
def test_a_ring_that_hardly_ends(n: int) -> None:
    """It restarts with probability 7/8 in every step: up to 8^20 of them."""
    p = Fraction(1, 8)
    rows = [{x + 1: p, 0: 1 - p} for x in range(n)]
    exact = exact_values(rows, [Fraction(1)] * n)
    found = least_total(*arrays(rows, [Fraction(1)] * n)).bounds
    assert_enclosed(found, exact)
    assert found.value == pytest.approx([float(v) for v in exact], rel=1e-12)


def unread(patch: pytest.MonkeyPatch) -> None:
    """Nothing for what probabilities are off from their decimals, and for operations."""
    patch.setattr(values, "PER_EDGE", 0)


@pytest.mark.parametrize("charged", [True, False])
def test_roundings_need_their_charge(charged: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without it, bounds of some of these chains exclude the truth."""
    monkeypatch.setattr(values, "residuals", values.residuals.plain)
    if not charged:
        unread(monkeypatch)
    excluded, draw = 0, random.Random(7)
    for _ in range(40):
        p, rate = (Fraction(draw.randint(1, 999), 1000) for _ in range(2))
        rows = [{1: p, 2: 1 - p}, {0: p, 2: 1 - p}]
        exact = exact_values(rows, [rate, Fraction(1, 3)])
        found = least_total(*arrays(rows, [rate, Fraction(1, 3)])).bounds
        excluded += any(
            not Fraction(low) <= truth <= Fraction(high)
            for low, truth, high in zip(found.lower.tolist(), exact, found.upper.tolist())
        )
    assert (excluded == 0) == charged


@pytest.mark.parametrize("charged", [True, False])
def test_what_vanishes_needs_its_charge(charged: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of all runs from 0 pass through 1, which costs 1e-73; they get there in some 1e251
    steps, each of which contributes less than any float. 0 is no value of 0.
    """
    monkeypatch.setattr(values, "residuals", values.residuals.plain)
    if not charged:
        monkeypatch.setattr(values, "VANISHED", 0.0)
    chain = chain_of(np.array([0, 3, 4]), [0, 1, 2, 2], [1.0, 1e-251, 1e-251, 1.0])
    rate = np.array([0.0, 1e-73])
    value = np.array([0.0, 1e-73])
    found, _ = value_bounds(chain, rate, value, np.arange(2), 0.0, lambda *some: total(*some)[0])
    assert (found.lower[0] <= 0.5e-73 <= found.upper[0]) == charged


def test_nothing_to_collect_is_exactly_nothing() -> None:
    found = expected_total(*arrays([{0: Fraction(1, 2), 1: Fraction(1, 2)}], [Fraction(0)]))
    assert (found.lower[0], found.value[0], found.upper[0]) == (0, 0, 0)


def test_probabilities_that_may_be_off_widen_the_bounds() -> None:
    """A coin that falls with 1/2, give or take a hundredth: 1 / p steps."""
    columns = arrays([{0: Fraction(1, 2), 1: Fraction(1, 2)}], [Fraction(1)])
    found = expected_total(*columns, 0.01)
    for p in (0.5 / 1.01, 0.5 * 1.01):
        assert found.lower[0] <= 1 / p <= found.upper[0]
    assert found.upper[0] - found.lower[0] < 0.2


def test_a_bound_that_is_not_proved_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """A ring that restarts with probability 1 - 2^-20 per step, where only sweeps are tried."""
    for limit in ("LARGEST_ELIMINATION", "LARGEST_FACTORS"):
        monkeypatch.setattr(expected, limit, 0)
    n, p = 8, Fraction(1, 2**20)
    with pytest.warns(TailpathWarning, match="no upper bound on an expected total could be proved"):
        found = expected_total(*arrays([{x + 1: p, 0: 1 - p} for x in range(n)], [Fraction(1)] * n))
    assert found.upper[0] == np.inf and 0 <= found.lower[0] <= found.value[0]


# ---------------------------------------------------------------------- the steps of a proof


def drawn_rows(draw: random.Random) -> tuple[Any, list[Any], Any, Any]:
    """Rows of several states with their rates, as arrays and as fractions, and two words of values
    by state and for the end; all are floats.
    """
    n = draw.randint(1, 4)
    first, rows = [0], []
    for _ in range(n):
        for _ in range(draw.randint(1, 3)):
            weights = [draw.randint(1, 64) for _ in range(draw.randint(1, 4))]
            share = [Fraction(w, 256) for w in weights]
            share[0] = 1 - sum(share[1:])
            rows.append(
                ([(draw.randint(0, n), p) for p in share], Fraction(draw.randint(-9, 40), 8))
            )
        first.append(len(rows))
    start = np.concatenate(([0], np.cumsum([len(row) for row, _ in rows])))
    edges = [edge for row, _ in rows for edge in row]
    columns = (
        np.array(first),
        start,
        np.array([y for y, _ in edges], dtype=np.int32),
        np.array([float(p) for _, p in edges]),
        np.array([float(r) for _, r in rows]),
    )
    value = np.array([draw.choice([0, 1, 2.5, draw.random() * 30]) for _ in range(n)] + [0.0])
    low = np.array([draw.choice([0.0, 0.0, draw.uniform(-1, 1) * 2e-15]) for _ in range(n)] + [0.0])
    return columns, rows, value, low


def test_residuals_and_drifts_are_told_from_below() -> None:
    """Beside fractions: residuals are off by no more than is told, drifts are no larger, and both
    charges are those of docs/bounds.md.
    """
    draw = random.Random(1)
    for off in (0.0, 2.0**-12):
        for _ in range(60):
            columns, rows, value, low = drawn_rows(draw)
            found, error, drift = values.residuals(columns, value, low, off)
            v = [Fraction(a) + Fraction(b) for a, b in zip(value, low)]
            for state in range(len(value) - 1):
                for row in range(columns[0][state], columns[0][state + 1]):
                    edges, rate = rows[row]
                    exact = rate + sum(p * (v[y] - v[state]) for y, p in edges)
                    assert abs(Fraction(found[row]) - exact) <= Fraction(error[row])
                    ahead = [(p, Fraction(value[y]) - Fraction(value[state])) for y, p in edges]
                    moves = [
                        (p, d, Fraction(low[y]) - Fraction(low[state]))
                        for (p, d), (y, _) in zip(ahead, edges)
                    ]
                    charge = Fraction(5 * (len(edges) + 2)) * Fraction(2.0**-53) + Fraction(off)
                    charge += Fraction(abs(float(np.sum([float(p) for p, _ in ahead])) - 1))
                    size = abs(rate) + sum(p * (abs(d) + abs(e)) for p, d, e in moves)
                    distance = sum(p * abs(d) for p, d in ahead)
                    tiny = values.VANISHED if any(d or e for _, d, e in moves) else 0.0
                    assert error[row] == pytest.approx(float(charge * size) + tiny, rel=1e-9, abs=0)
                    certain = -sum(p * d for p, d in ahead) - charge * distance
                    rounding = 1e-13 * float(distance) + 2 * tiny
                    assert certain - Fraction(rounding) <= Fraction(drift[row])
                    assert Fraction(drift[row]) <= certain + Fraction(rounding)
                    if off == 0.0:
                        assert Fraction(drift[row]) <= -sum(p * d for p, d in ahead)


def test_a_residual_of_rows_that_miss_1_is_charged() -> None:
    columns = (np.array([0, 1]), np.array([0, 1]), np.array([1]), np.array([0.75]), np.array([1.0]))
    found, error, drift = values.residuals(columns, np.array([4.0, 0.0]), np.zeros(2), 0.0)
    assert found[0] == 1 - 3 and error[0] == pytest.approx(0.25 * (1 + 3))
    assert drift[0] == pytest.approx(3 - 0.25 * 3)
    # Nothing vanishes where nothing is added.
    still = values.residuals(columns, np.zeros(2), np.zeros(2), 0.0)
    assert still[1][0] == pytest.approx(0.25, rel=1e-12) and still[2][0] == 0
    tiny = values.residuals(columns, np.array([1e-320, 0.0]), np.zeros(2), 0.0)
    assert tiny[2][0] <= -values.VANISHED / 2


def is_enough(share: Fraction, side: int, rows: list[Any]) -> bool:
    """Whether so much of the slope proves a bound, of rows with residuals, errors and drifts."""
    if side < 0:
        return all(d - off + share * f >= 0 for d, off, f in rows)
    return all(f > 0 and d + off <= share * f for d, off, f in rows)


def test_the_least_shares() -> None:
    """By fractions: they prove what they should, and nothing much smaller does."""
    draw = random.Random(2)
    seen = {"both": 0, "none": 0}
    for _ in range(400):
        count = draw.randint(1, 5)
        residual = np.array([draw.choice([0.0, draw.uniform(-1, 1)]) for _ in range(count)])
        error = np.array([draw.choice([0.0, draw.uniform(0, 0.4)]) for _ in range(count)])
        drift = np.array(
            [draw.choice([1.0, 0.25, 3.0, draw.uniform(-0.4, 1)]) for _ in range(count)]
        )
        chosen = np.array(sorted(draw.sample(range(count), draw.randint(1, count))))
        below, above = values.least_shares(residual, error, drift, chosen)
        triples = [tuple(map(Fraction, each)) for each in zip(residual, error, drift)]

        for side, share in ((-1, below), (1, above)):
            if share == np.inf:
                continue
            picked = triples if side < 0 else [triples[row] for row in chosen]
            assert is_enough(Fraction(share), side, picked) and share >= 0
            assert share == 0 or not is_enough(Fraction(share * (1 - 1e-12)), side, picked)
        if above == np.inf:
            assert any(f <= 0 for _, _, f in (triples[row] for row in chosen))
        if below == np.inf:  # a row without drift misses something, or one falls behind
            assert any(f <= 0 for _, _, f in triples)
            seen["none"] += 1
        seen["both"] += max(below, above) < np.inf
    assert min(seen.values()) > 20
    one = np.ones(1)
    assert values.least_shares(one, np.array([np.inf]), one, np.zeros(1, int)) == (np.inf, np.inf)
    assert values.least_shares(0 * one, 0 * one, 0 * one - 1, np.zeros(1, int)) == (0, np.inf)


def test_bounds_stand_as_far_off_as_is_proved() -> None:
    draw = random.Random(3)
    for _ in range(200):
        n = draw.randint(1, 3)
        value = np.array([draw.choice([0.0, draw.uniform(0, 9)]) for _ in range(n)])
        low = np.array([draw.choice([0.0, draw.uniform(-1, 1) * 1e-15]) for _ in range(n)])
        slope = np.array([draw.choice([0.0, draw.uniform(0, 9)]) for _ in range(n)])
        below, above = (draw.choice([0.0, 1e-12, 0.25, np.inf]) for _ in range(2))
        lower, upper = np.empty(n), np.empty(n)
        values.outwards(value, low, slope, below, above, lower, upper)
        for i in range(n):
            middle = Fraction(value[i]) + Fraction(low[i])
            for share, end, side in ((below, lower[i], -1), (above, upper[i], 1)):
                if share == np.inf:
                    assert end == side * np.inf
                elif share == 0 and not low.any():
                    assert end == value[i]
                else:
                    off = side * (Fraction(float(end)) - middle)
                    true = Fraction(share) * Fraction(slope[i])
                    assert true <= off
                    room = 1e-13 * float(true + abs(Fraction(low[i]))) + 5e-16 * abs(float(middle))
                    assert off <= true + Fraction(room + 3e-16 * float(true)) + Fraction(1, 2**1000)


def test_a_width_is_relative_to_what_is_bounded() -> None:
    """Beside 1000 a value of 0 may be off by as much as one of 1 alone."""
    of = lambda v, by: values.Bounds(np.array(v), np.array(v) - by, np.array(v) + by).width  # noqa: E731
    assert of([2.0**-20], 2.0**-30) == pytest.approx(2 * 2.0**-10 / 1.001)
    assert of([2.0**20], 2.0**10) == pytest.approx(2 * 2.0**-10 / 1.001)
    assert of([1000.0, 0.0], 1.0) == pytest.approx(2.0)
    assert of([-1000.0, 0.0], 1.0) == pytest.approx(2.0)
    assert of([0.0], 0.0) == 0 and of([], 0.0) == 0
    assert of([np.inf], 1.0) == np.inf


def test_what_is_added_to_bounds_is_rounded_outwards() -> None:
    ends = np.array([0.1, -0.3, 7.0, np.inf])
    by = np.array([0.2, 0.7, 0.0, 5.0])
    found = values.Bounds(ends, ends, ends).shifted(by)
    for i in range(2):
        exact = Fraction(ends[i]) + Fraction(by[i])
        size = abs(float(ends[i])) + float(by[i])
        assert Fraction(found.lower[i]) <= exact - Fraction(60 * 2.0**-53 * size)
        assert exact + Fraction(60 * 2.0**-53 * size) <= Fraction(found.upper[i])
        assert found.upper[i] - found.lower[i] <= 140 * 2.0**-53 * size
        assert found.value[i] == ends[i] + by[i]
    assert found.lower[2] == found.value[2] == found.upper[2] == 7
    assert found.lower[3] == found.value[3] == found.upper[3] == np.inf
    wide = values.Bounds(np.array([-0.5, 2.0]), np.array([-1.0, 1.0]), np.array([1.0, 3.0]))
    known = wide.positive()
    assert known.value.tolist() == [0, 2] and known.lower.tolist() == [0, 1]
    assert known.upper.tolist() == [1, 3]


@pytest.mark.parametrize("shift", [-40, -3, 30])
def test_costs_in_other_units_give_the_same_digits(shift: int) -> None:
    """Times a power of two every number is, bounds and all: nothing is compared with 1."""
    draw, scale = random.Random(4), Fraction(2) ** shift
    for _ in range(15):
        n = draw.randint(2, 5)
        rows: Rows = []
        for x in range(n):
            weights = {x + 1: draw.randint(1, 9), draw.randint(0, n): draw.randint(1, 9)}
            rows.append({y: Fraction(w, sum(weights.values())) for y, w in weights.items()})
        rates = [Fraction(draw.randint(0, 20), 4) for _ in range(n)]
        rates[-1] += 1
        one = least_total(*arrays(rows, rates)).bounds
        other = least_total(*arrays(rows, [scale * rate for rate in rates])).bounds
        for name in ("value", "lower", "upper"):
            assert (getattr(other, name) == float(scale) * getattr(one, name)).all()


def test_a_better_row_takes_the_place_of_one_that_is_worse() -> None:
    """A policy that takes 3, told as 3.001, where 2 will do: that of the bounds takes 2."""
    chain = chain_of(np.arange(3), [1, 1], [1.0, 1.0]).replaced(first_row=np.array([0, 2]))
    solve = lambda *some: optimum(*some).value  # noqa: E731
    rate = np.array([3.0, 2.0])
    found, chosen = value_bounds(chain, rate, np.array([3.001]), np.array([0]), 0.0, solve)
    assert chosen.tolist() == [1] and found.lower[0] <= 2 <= found.upper[0] <= 2 + 1e-12
    # Not where the other row is better by less than its rounding.
    rate = np.array([3.0, 3.0 - 2.0**-51])
    _, chosen = value_bounds(chain, rate, np.array([3.001]), np.array([0]), 0.0, solve)
    assert chosen.tolist() == [0]
