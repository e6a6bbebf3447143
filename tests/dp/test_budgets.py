"""The sweep over budgets against the recursion written down in fractions, for windows of any size,
dear outcomes, losses and several prices.
"""

from __future__ import annotations

import random
from dataclasses import replace
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tailpath as tp
from tailpath.analysis.tables import fill_table
from tailpath.dp import layout as layouts
from tailpath.dp.budget_model import EXCESS, LATE, MEAN
from tailpath.dp.budgets import node_values
from tailpath.dp.layout_builders import chain_layout, first_levels
from tailpath.errors import ModelError
from tailpath.kernels.rounding import SAME_VALUE
from tailpath.policies.unrolling import unroll
from tailpath.solvers.exact.layout import layout_of
from tests.dp.chains import chain_of
from tests.reference import Model, expected_optimum, to_ssp
from tests.strategies import proper_models, solvable_models

models = st.one_of(proper_models(dyadic=True, zero_costs=False), solvable_models(dyadic=True))
COUNTED = {"excess": EXCESS, "late": LATE}


def least_risk(model: Model, start: Any, budget: int, unit: Fraction, kind: str) -> Fraction | None:
    """The least E[(Z - w)+] or P(Z >= w), in units, in fractions; None where zero-cost moves keep
    the recursion from ending.
    """
    value = expected_optimum(model)

    @cache
    def least(state: Any, left: int) -> Fraction:
        if left <= 0:
            return Fraction(1) if kind == "late" else value[state] / unit - left
        if state in model.goals:
            return Fraction(0)
        found = []
        for outcomes in model.choices[state].values():
            if all(target in value for target, _, _ in outcomes):
                found.append(
                    sum(
                        (
                            p * least(target, left - int(cost / unit))
                            for target, p, cost in outcomes
                        ),
                        Fraction(0),
                    )
                )
        return min(found)

    try:
        return least(start, budget)
    except RecursionError:
        return None


@settings(max_examples=80)
@given(models, st.integers(1, 25), st.sampled_from(["late", "excess"]))
def test_values_in_fractions(model: Model, levels: int, kind: str) -> None:
    ssp = to_ssp(model)
    if ssp.is_goal[ssp.start_index] or ssp.cost_unit is None:
        return
    layout = layout_of(ssp, "late" if kind == "late" else "")
    found = fill_table(layout, layout.objective(COUNTED[kind], limit=float(levels))).values[:, 0]
    true = least_risk(model, ssp.start, levels, ssp.cost_unit, kind)
    if true is not None:
        assert found[levels] == pytest.approx(float(true), rel=1e-12, abs=1e-14)


@settings(max_examples=60)
@given(models, st.integers(1, 25), st.sampled_from([LATE, EXCESS]), st.sampled_from([1, 2**12]))
def test_a_window_of_any_size(model: Model, levels: int, risk: Any, room: int) -> None:
    ssp = to_ssp(model)
    if ssp.is_goal[ssp.start_index] or ssp.cost_unit is None:
        return
    layout = layout_of(ssp)
    objective = layout.objective(np.stack([risk, MEAN]), limit=float(levels), tie=SAME_VALUE)
    wide = fill_table(layout, objective)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(layouts, "WINDOW", room)
        narrow = fill_table(layout, objective)
    assert np.array_equal(wide.values, narrow.values)
    assert all(np.array_equal(one, other) for one, other in zip(wide.changes, narrow.changes))
    assert wide.changes.budget.max(initial=1) <= levels and wide.changes.budget.min(initial=1) >= 1


@settings(max_examples=60)
@given(
    models,
    st.integers(1, 25),
    st.sampled_from([LATE, EXCESS]),
    st.lists(st.floats(0, 20), min_size=2, max_size=17),
)
def test_several_prices(model: Model, levels: int, risk: Any, prices: list[float]) -> None:
    ssp = to_ssp(model)
    if ssp.is_goal[ssp.start_index] or ssp.cost_unit is None:
        return
    layout = layout_of(ssp)
    if layout.nodes.block_joint.any():
        return
    both = np.stack([MEAN, risk])
    fast = fill_table(layout, layout.objective(both, prices=np.array(prices), limit=float(levels)))
    for lane, price in enumerate(prices):
        alone = fill_table(
            layout,
            layout.objective(np.stack([MEAN + price * risk, MEAN, risk]), limit=float(levels)),
        )
        priced = fast.values[:, 0, lane] + price * fast.values[:, 1, lane]
        assert priced == pytest.approx(alone.values[:, 0], rel=1e-12)
        # A price gives the same digits whatever stands beside it.
        again = fill_table(
            layout, layout.objective(both, prices=np.array([price, price]), limit=float(levels))
        )
        assert np.array_equal(again.values[:, :, 0], fast.values[:, :, lane])


def test_many_outcomes_and_zero_cost_cycles() -> None:
    wide: list[Any] = [("s", "try", f"t{i}", 1 / 32, 1) for i in range(32)] + [
        (f"t{i}", "go", "g", 1, i + 1) for i in range(32)
    ]
    assert tp.solve_on_time(tp.SSP.from_outcomes(wide, "s", ["g"]), 17).probability(17) == 0.5
    cycle: list[Any] = [
        ("a", "on", "b", 0.5, 0),
        ("a", "on", "g", 0.5, 1),
        ("b", "on", "a", 1, 0),
        ("a", "out", "g", 1, 3),
    ]
    assert tp.solve_on_time(tp.SSP.from_outcomes(cycle, "a", ["g"]), 1).probability(1) == 1


@settings(max_examples=60)
@given(models, st.integers(1, 25), st.sampled_from(sorted(COUNTED)), st.integers(1, 30))
def test_every_node_of_a_chain_by_some_levels_at_a_time(
    model: Model, levels: int, kind: str, piece: int
) -> None:
    """The only policy of a model with one choice a state."""
    first = {state: dict([next(iter(choices.items()))]) for state, choices in model.choices.items()}
    model = Model(first, model.start, model.goals)
    ssp = to_ssp(model)
    if (
        ssp.is_goal[ssp.start_index]
        or ssp.cost_unit is None
        or tp.solve_arrival(ssp).value[ssp.start_index] != 1.0
    ):
        return
    chain = unroll(
        ssp, tp.MarkovPolicy({state: next(iter(choices)) for state, choices in first.items()})
    )
    if not chain.proper.all():
        return
    layout, order = chain_layout(
        chain, chain.expected_cost.value / float(ssp.cost_unit), start=chain.start
    )
    pieces = node_values(layout, layout.objective(COUNTED[kind], limit=float(levels)), piece)
    found = np.concatenate([values.copy() for values in pieces])
    assert found.shape == (levels, chain.n)
    for place, node in enumerate(order.tolist()):
        true = least_risk(model, ssp.states[int(chain.state[node])], levels, ssp.cost_unit, kind)
        if true is not None:
            assert found[-1, place] == pytest.approx(float(true), rel=1e-12, abs=1e-14)


def test_no_value_where_the_start_cannot_bring_a_budget() -> None:
    """It takes 3 to get to the second node, so that of 6 at most 3 are left there."""
    chain = chain_of([0, 1, 2], [1, 2], [1.0, 1.0]).replaced(level=np.array([3, 5]))
    layout, order = chain_layout(chain, np.array([8.0, 5.0]), cost_from_start=np.array([0.0, 3.0]))
    for piece in (2, 6):
        pieces = node_values(layout, layout.objective(EXCESS, limit=6.0), piece)
        found = np.concatenate([values.copy() for values in pieces])[:, np.argsort(order)]
        assert found[:, 0].tolist() == [7, 6, 5, 4, 3, 2]
        assert found[:3, 1].tolist() == [4, 3, 2] and np.isnan(found[3:, 1]).all()


def test_levels_are_computed_from_the_first_that_is_read() -> None:
    """The second node is read 1 and the third 4 below the node before, if that is not below what
    they read themselves.
    """
    chain = chain_of([0, 1, 2, 3], [1, 2, 3], np.ones(3)).replaced(level=np.array([1, 4, 6]))
    for unavoidable, first in (([10, 9, 5], [1, 10, 6]), ([10, 12, 9], [1, 10, 9])):
        found = first_levels(chain, np.array([0.0, 1.0, 5.0]), np.array(unavoidable))
        assert found.tolist() == first


def test_a_table_that_is_too_large_for_its_indices_is_refused() -> None:
    chain = chain_of([0, 1, 2], [1, 2], [1.0, 1.0]).replaced(level=np.array([2**30 - 2, 1]))
    layout, _ = chain_layout(chain, np.array([2.0**30 - 1, 1.0]))
    layout.up_to(2.0**31)
    larger = replace(layout, level=layout.level + 1)
    with pytest.raises(ModelError, match="2 states with costs of up to 1073741823 units"):
        larger.up_to(2.0**31)


def tied_means(model: Model, levels: int) -> list[tuple[Fraction, Fraction, Fraction]]:
    """By budget the least lateness of the start, and of the actions that tie there the least mean
    and the largest.
    """
    value = expected_optimum(model)

    @cache
    def least(state: Any, left: int) -> tuple[Fraction, Fraction, Fraction]:
        if left <= 0:
            return Fraction(1), value[state], value[state]
        if state in model.goals:
            return Fraction(0), Fraction(0), Fraction(0)
        found = []
        for outcomes in model.choices[state].values():
            ahead = [(p, c, least(t, left - int(c))) for t, p, c in outcomes]
            late = sum((p * each[0] for p, _, each in ahead), Fraction(0))
            found.append((late, sum((p * (c + each[1]) for p, c, each in ahead), Fraction(0))))
        tied = [mean for late, mean in found if late == min(found)[0]]
        return *min(found), max(tied)

    return [least(model.start, left) for left in range(levels + 1)]


def small_model(seed: int) -> Model:
    """Two states with three actions each, and dyadic probabilities."""
    draw, names = random.Random(seed), ["a", "b"]
    choices: dict[Any, Any] = {}
    for state in names:
        choices[state] = {}
        for k in range(3):
            p = Fraction(draw.choice([1, 2, 3, 4]), 4)
            to, cost = draw.choice([*names, "g"]), Fraction(draw.choice([1, 2, 3]))
            outcomes = [("g", p, Fraction(draw.choice([1, 2, 4])))]
            choices[state][k] = outcomes + ([(to, 1 - p, cost)] if p < 1 else [])
    return Model(choices, "a", frozenset("g"))


def test_of_values_that_tie_the_least_mean_counts() -> None:
    """In fractions, so that ties are exact."""
    better = 0
    for seed in range(40):
        model = small_model(seed)
        layout = layout_of(to_ssp(model))
        objective = layout.objective(np.stack([LATE, MEAN]), limit=9.0, tie=SAME_VALUE)
        values = fill_table(layout, objective).values
        for w, (late, mean, worse) in enumerate(tied_means(model, 9)):
            assert values[w, 0] == pytest.approx(float(late), rel=1e-13, abs=1e-15)
            assert values[w, 1] == pytest.approx(float(mean), rel=1e-13)
            better += mean < worse
    assert better > 20


def priced(model: Model, levels: int, price: Fraction) -> list[Fraction]:
    """By budget the least mean + price * lateness."""
    value = expected_optimum(model)

    @cache
    def least(state: Any, left: int) -> Fraction:
        if left <= 0:
            return value[state] + price
        if state in model.goals:
            return Fraction(0)
        return min(
            sum((p * (c + least(t, left - int(c))) for t, p, c in outcomes), Fraction(0))
            for outcomes in model.choices[state].values()
        )

    return [least(model.start, left) for left in range(levels + 1)]


def test_prices_side_by_side() -> None:
    """Each in fractions, with the mean and the lateness that make it up."""
    prices = [Fraction(0), Fraction(1, 4), Fraction(3), Fraction(64)]
    for seed in range(12):
        model = small_model(seed)
        layout = layout_of(to_ssp(model))
        given = np.array([float(price) for price in prices])
        objective = layout.objective(np.stack([MEAN, LATE]), prices=given, limit=7.0)
        values = fill_table(layout, objective).values
        for lane, price in enumerate(prices):
            mean, late = values[:, 0, lane], values[:, 1, lane]
            true = [float(each) for each in priced(model, 7, price)]
            assert mean + float(price) * late == pytest.approx(true, rel=1e-13)
            assert (np.diff(late) <= 0).all() and ((late >= 0) & (late <= 1)).all()
        # A larger price buys less lateness, at a higher mean.
        assert (np.diff(values[:, 1], axis=1) <= 1e-15).all()
        assert (np.diff(values[:, 0], axis=1) >= -1e-12).all()
        least = [float(late) for late, _, _ in tied_means(model, 7)]
        assert (values[:, 1, -1] >= np.array(least) - 1e-15).all()


def test_a_tie_among_other_actions_than_the_risk_neutral_one() -> None:
    """With a budget of 5 both are late 1 in 4 times, and the second is better on average."""
    rows: list[Any] = [
        *(("s", "neutral", "g", 0.5, 1), ("s", "neutral", "g", 0.5, 9)),
        *(("s", "dear", "g", 0.75, 4), ("s", "dear", "g", 0.25, 20)),
        *(("s", "cheap", "g", 0.75, 4), ("s", "cheap", "g", 0.25, 16)),
    ]
    layout = layout_of(tp.SSP.from_outcomes(rows, "s", ["g"]))
    for tie, mean in ((SAME_VALUE, 7.0), (0.0, 8.0)):
        objective = layout.objective(np.stack([LATE, MEAN]), limit=6.0, tie=tie)
        values = fill_table(layout, objective).values
        assert values[5].tolist() == [0.25, mean]
