"""Tables in a rectangle agree with those of the general recursion: any window, dear outcomes, several prices, threads, and what does not fit."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tailpath as tp
from tailpath.kernels.rounding import SAME_VALUE
from tailpath.solvers.exact.layout import layout_of
from tailpath.solvers.exact.table import EXCESS, LATE, MEAN, fill_table
from tailpath.solvers.objectives import padding
from tests.reference import Model, to_ssp
from tests.strategies import proper_models, solvable_models

models = st.one_of(proper_models(dyadic=True), solvable_models(dyadic=True))


def both(ssp: tp.SSP, levels: int) -> Any:
    """The rectangle and the general layout; nothing where the model does not fit."""
    expected = tp.solve_expected(ssp)
    if ssp.is_goal[ssp.start_index]:
        return None
    model = padding.padded_layout(ssp, expected, levels)
    return None if model is None else (model, layout_of(ssp, expected))


@settings(max_examples=60)
@given(models, st.integers(1, 25), st.sampled_from([LATE, EXCESS]), st.sampled_from([1, 3, 25]))
def test_ties_and_windows(model: Model, levels: int, risk: Any, rows: int) -> None:
    found = both(to_ssp(model), levels)
    if found is None:
        return
    accounts = np.stack([risk, MEAN])
    general = fill_table(found[1], found[1].aim(limit=float(levels), tie=SAME_VALUE), accounts)
    fast = padding.fill_lexicographic(found[0], accounts, levels, rows=rows)
    assert fast.values == pytest.approx(general.values, rel=1e-12, abs=1e-14)
    assert fast.changes.budget.max(initial=1) <= levels and fast.changes.budget.min(initial=1) >= 1


@settings(max_examples=60)
@given(models, st.integers(1, 25), st.sampled_from([LATE, EXCESS]), st.lists(st.floats(0, 20), min_size=1, max_size=8))
def test_several_prices(model: Model, levels: int, risk: Any, prices: list[float]) -> None:
    found = both(to_ssp(model), levels)
    if found is None:
        return
    fast = padding.fill_priced(found[0], np.stack([MEAN, risk]), np.array(prices), levels)
    for lane, price in enumerate(prices):
        alone = fill_table(found[1], found[1].aim(limit=float(levels)), np.stack([MEAN + price * risk, MEAN, risk]))
        priced = fast.values[:, 0, lane] + price * fast.values[:, 1, lane]
        assert priced == pytest.approx(alone.values[:, 0], rel=1e-12)
        # A lane gives the same digits alone.
        again = padding.fill_priced(found[0], np.stack([MEAN, risk]), np.array([price]), levels, keep=True)
        assert np.array_equal(again.values[:, :, 0], fast.values[:, :, lane])


def test_all_cores_agree_with_one() -> None:
    ssp = tp.read("river:16x6")
    model, _ = both(ssp, 60)
    accounts, prices = np.stack([MEAN, EXCESS]), np.geomspace(0.1, 10, 8)
    once = padding.fill_priced(model, accounts, prices, 60), padding.fill_lexicographic(model, accounts[::-1].copy(), 60)
    assert not model.threads
    model = replace(model, threads=True)
    twice = padding.fill_priced(model, accounts, prices, 60), padding.fill_lexicographic(model, accounts[::-1].copy(), 60)
    assert all(np.array_equal(a.values, b.values) for a, b in zip(once, twice))


def test_what_does_not_fit() -> None:
    """Cycles of free moves, and one choice with many more outcomes than all others, take the general way, to the same answers."""
    wide: list[Any] = [("s", "try", f"t{i}", 1 / 32, 1) for i in range(32)] + [(f"t{i}", "go", "g", 1, i + 1) for i in range(32)]
    ssp = tp.SSP.from_outcomes(wide, "s", ["g"])
    assert both(ssp, 10) is None
    assert tp.solve_on_time(ssp, 17).probability(17) == 0.5
    circle: list[Any] = [("a", "on", "b", 0.5, 0), ("a", "on", "g", 0.5, 1), ("b", "on", "a", 1, 0), ("a", "out", "g", 1, 3)]
    ssp = tp.SSP.from_outcomes(circle, "a", ["g"])
    assert both(ssp, 10) is None
    assert tp.solve_on_time(ssp, 1).probability(1) == 1
