"""Bounds of tables over budgets against the recursion in fractions, on models of unlike kinds; and
every constant against a model on which the bounds without it exclude the truth.
"""

from __future__ import annotations

import math
import pickle
import random
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import tailpath as tp
from tailpath.analysis.tables import BudgetTable, fill_table
from tailpath.certify import budgets as certify
from tailpath.certify.budgets import (
    Ends,
    Share,
    TableSides,
    early_bounds,
    table_share,
    table_sides,
)
from tailpath.certify.rounding import AFTERWARDS
from tailpath.dp.budget_model import EXCESS, LATE, MEAN
from tailpath.dp.budgets import fill
from tailpath.kernels.rounding import SAME_VALUE
from tailpath.solvers.exact.layout import layout_of
from tailpath.solvers.exact.pairs import fill_smaller
from tests.reference import Model, to_ssp
from tests.solvers.exact.fractions_table import ExactTable
from tests.solvers.objectives.witnesses import exact_lateness

ZERO, ONE = Fraction(0), Fraction(1)
LEVELS = 24
KINDS = ("plain", "ties", "free cycles", "joint blocks", "lotteries", "long walks")


def draw_model(kind: str, seed: int) -> Model:
    """A model of three states whose probabilities are no floats."""
    draw = random.Random(f"{kind} {seed}")
    names = ["a", "b", "c"]
    free = kind in ("free cycles", "joint blocks")
    choices: dict[Any, dict[str, list[tuple[Any, Fraction, Fraction]]]] = {}
    for state in names:
        choices[state] = {}
        for k in range(draw.randint(1, 3)):
            grain = draw.choice([7, 10, 30, 1000])
            if kind == "long walks":
                stay = Fraction(draw.randint(90, 98), 100) + Fraction(1, 1000 * grain)
                outcomes = [(state, stay, ONE), ("g", 1 - stay, Fraction(draw.randint(1, 3)))]
            elif kind == "lotteries":
                weights = [draw.randint(1, grain) for _ in range(draw.randint(2, 9))]
                outcomes = [
                    ("g", Fraction(each, sum(weights)), Fraction(draw.randint(1, 20)))
                    for each in weights
                ]
            else:
                p = Fraction(draw.randint(1, grain - 1), grain)
                cost = ZERO if free and draw.random() < 0.7 else Fraction(draw.randint(1, 3))
                outcomes = [
                    ("g", p, Fraction(draw.randint(0 if free else 1, 6))),
                    (draw.choice(names), 1 - p, cost),
                ]
            choices[state][f"x{k}"] = outcomes
        if kind == "ties":
            choices[state]["again"] = list(reversed(choices[state]["x0"]))
        if kind == "free cycles":
            choices[state]["move"] = [(draw.choice(names), ONE, ZERO)]
        if kind == "joint blocks":
            others = draw.sample(names, 2)
            choices[state]["drift"] = [
                (others[0], Fraction(1, 3), ZERO),
                (others[1], Fraction(1, 3), ZERO),
                ("g", Fraction(1, 3), Fraction(draw.randint(0, 5))),
            ]
    return Model(choices, "a", frozenset("g"))


def models(kind: str, count: int = 40) -> Iterator[tuple[Model, tp.SSP]]:
    for seed in range(count):
        model = draw_model(kind, seed)
        ssp = to_ssp(model)
        if ssp.cost_unit is not None:
            yield model, ssp


def excesses(model: Model, unit: Fraction, levels: int) -> list[Fraction]:
    """U(start, w) in units, for w = 0 .. levels units, in fractions."""
    table = ExactTable(model, ONE)
    for step in range(1, levels + 1):
        table.raise_to(step * unit)
    return [table.price_of(model.start, step * unit) / unit for step in range(levels + 1)]


def excluded(sides: TableSides, truth: list[Fraction]) -> list[int]:
    """The budgets whose bounds do not enclose the truth."""
    return [
        w
        for w, true in enumerate(truth)
        if not Fraction(float(sides.low[w])) <= true <= Fraction(float(sides.high[w, 0]))
    ]


def filled(ssp: tp.SSP, skip: str = "", **options: Any) -> BudgetTable:
    layout = layout_of(ssp, skip)
    criteria = options.pop("criteria", EXCESS)
    return fill_table(layout, layout.objective(criteria, limit=float(LEVELS), **options))


@pytest.mark.parametrize("kind", KINDS)
def test_bounds_enclose_the_least_excess(kind: str) -> None:
    seen = 0
    for model, ssp in models(kind):
        assert ssp.cost_unit is not None
        truth = excesses(model, ssp.cost_unit, LEVELS)
        for skip in ("", "excess"):
            table = filled(ssp, skip)
            sides = table.sides()
            assert not excluded(sides, truth)
            width = (sides.high[:, 0] - sides.low)[table.values[:, 0] > 0]
            assert np.all(width <= 1e-9 * table.values[table.values[:, 0] > 0, 0])
            seen += 1
        tied = filled(ssp, criteria=np.stack([EXCESS, MEAN]), tie=SAME_VALUE)
        assert not excluded(tied.sides(), truth)
    assert seen > 40


@pytest.mark.parametrize("kind", KINDS)
def test_bounds_enclose_the_least_lateness(kind: str) -> None:
    for model, ssp in models(kind, 20):
        assert ssp.cost_unit is not None
        truth = [ONE, *exact_lateness(model, ssp.cost_unit, LEVELS - 1)]
        assert not excluded(filled(ssp, "late", criteria=LATE).sides(), truth)


@pytest.mark.parametrize("kind", KINDS)
def test_bounds_over_pairs(kind: str) -> None:
    for model, ssp in models(kind, 20):
        assert ssp.cost_unit is not None
        layout = layout_of(ssp)
        table = fill_smaller(layout, layout.objective(EXCESS, 1.0, 10.0), pairs=True)
        if int(table.budgets[-1]) > LEVELS:
            continue
        truth = excesses(model, ssp.cost_unit, int(table.budgets[-1]))
        sides = table.sides()
        assert not excluded(sides, [truth[w] for w in table.budgets.tolist()])


@pytest.mark.parametrize("kind", KINDS)
def test_a_few_levels_of_a_few_models(kind: str) -> None:
    """Values, by either criterion, and both ends of them."""
    for model, ssp in models(kind, 3):
        assert ssp.cost_unit is not None
        layout = layout_of(ssp)
        excess = excesses(model, ssp.cost_unit, 6)
        late = [ONE, *exact_lateness(model, ssp.cost_unit, 5)]
        for criteria, truth in ((EXCESS, excess), (LATE, late)):
            for tie in (0.0, SAME_VALUE):
                several = np.stack([criteria, MEAN]) if tie else criteria
                table = fill_table(layout, layout.objective(several, limit=6.0, tie=tie))
                true = [float(each) for each in truth]
                assert table.values[:, 0] == pytest.approx(true, rel=1e-12, abs=1e-250)
                sides = table.sides()
                assert not excluded(sides, truth)
                assert (sides.high[:, 0] - sides.low <= 1e-11 * np.array(true) + 1e-260).all()


def test_the_upper_end_holds_for_the_policy() -> None:
    """Held are the choices of the table, though others may do as well within rounding."""
    for seed in range(20):
        ssp = to_ssp(draw_model("ties", seed))
        best = tp.solve_cvar_exact(ssp, 0.05, lexicographic=True)
        high = best.bounds(0.05)[1]
        assert tp.evaluate(ssp, best.policy(), 0.05).bounds(0.05)[0] <= high


def test_bounds_are_found_once_and_pickled() -> None:
    best = tp.solve_cvar_exact(tp.read("gridworld:5x5"), 0.1)
    again = pickle.loads(pickle.dumps(best))
    assert again == best and again.bounds(0.1) == best.bounds(0.1)
    assert best.sides.found is best.sides.found


# ---------------------------------------------------------------------- what each constant is for


def test_without_the_error_of_a_row_bounds_are_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    stay = Fraction(977, 1000)
    model = Model({"s": {"go": [("s", stay, ONE), ("g", 1 - stay, ONE)]}}, "s", frozenset("g"))
    layout = layout_of(to_ssp(model))
    table = fill_table(layout, layout.objective(LATE, limit=400.0))
    truth = [ONE, *(stay**w for w in range(400))]
    assert not excluded(table.sides(), truth)
    monkeypatch.setattr(certify, "row_error", lambda size, additions, error: 0.0 * size)
    assert excluded(table.sides(), truth)


def almost_tied() -> Model:
    """At a budget of 1 the second choice is better by 7e-14 of the excess, and by an eighth of that
    in one visit, too little for policy iteration; on average the first is.
    """
    q = Fraction(1, 2) * (1 - Fraction(7, 10**14))
    stay = Fraction(15, 16)
    two = {
        "bold": [("g", Fraction(1, 2), Fraction(3)), ("g", Fraction(1, 2), ZERO)],
        "safe": [("g", q, Fraction(3)), ("g", 1 - q, ONE)],
    }
    choices = {
        name: [(t, p * (1 - stay), c) for t, p, c in outcomes] + [("b", stay, ZERO)]
        for name, outcomes in two.items()
    }
    back = [("a", stay, ZERO), ("g", 1 - stay, ONE)]
    return Model({"a": choices, "b": {"back": back}}, "a", frozenset("g"))


def test_joint_blocks_need_more(monkeypatch: pytest.MonkeyPatch) -> None:
    model = almost_tied()
    ssp = to_ssp(model)
    assert ssp.cost_unit == 1 and layout_of(ssp).nodes.block_joint.any()
    truth = excesses(model, ONE, 1)
    assert not excluded(filled(ssp).sides(), truth)
    monkeypatch.setattr(certify, "JOINTLY", 0.0)
    assert excluded(filled(ssp).sides(), truth) == [1]


def test_what_is_taken_for_nothing_is_charged(monkeypatch: pytest.MonkeyPatch) -> None:
    ssp = tp.SSP.from_outcomes([("s", "go", "s", 0.5, 1), ("s", "go", "g", 0.5, 1)], "s", ["g"])
    layout = layout_of(ssp)
    table = fill_table(layout, layout.objective(EXCESS, limit=1050.0))
    truth = [Fraction(2, 2**w) for w in range(1051)]
    assert not excluded(table.sides(), truth)
    monkeypatch.setattr(certify, "TAKEN_FOR_ZERO", 0.0)
    assert excluded(table.sides(), truth)


def closed_forms(weight: Fraction) -> tuple[TableSides, list[Fraction]]:
    """Bounds where all budgets are left to closed forms that take 15/16 of V* off it, with V*
    itself as both ends; and the truth.
    """
    rows = [("s", "go", "g", 0.9375, 15), ("s", "go", "g", 0.0625, 31)]
    ssp = tp.SSP.from_outcomes(rows, "s", ["g"])
    layout, value = layout_of(ssp, "excess"), np.array([16.0])
    both = float(weight) * EXCESS + (1 - float(weight)) * MEAN
    table = fill_table(layout, layout.objective(both, limit=15.0))
    ends = Ends(value, value, (16.0, 16.0))
    sides = table_sides(layout, table.objective, ends, table.again, table.changes)
    of_excess = Fraction(float(weight))
    return sides, [16 * (1 - of_excess) + of_excess * (16 - w) for w in range(16)]


def test_closed_forms_subtract(monkeypatch: pytest.MonkeyPatch) -> None:
    weights = [Fraction(k, 1000) for k in range(1, 1000)]
    assert not any(excluded(*closed_forms(weight)) for weight in weights)
    monkeypatch.setattr(certify, "AFTERWARDS", 0.0)
    assert any(excluded(*closed_forms(weight)) for weight in weights)


def test_what_is_done_with_a_bound_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cost that is paid surely has bounds of no width, until they are written in units."""

    def true_bounds(cents: int) -> bool:
        rows = [("s", "go", "g", 1.0, cents / 100), ("t", "go", "g", 1.0, 0.01)]
        ssp = tp.SSP.from_outcomes(rows, "s", ["g"])
        low, high = tp.solve_cvar_exact(ssp, 0.3).bounds(0.3)
        return Fraction(low) <= Fraction(cents, 100) <= Fraction(high)

    assert all(map(true_bounds, range(1, 100)))
    monkeypatch.setattr(certify, "AFTERWARDS", 0.0)
    assert not all(map(true_bounds, range(1, 100)))


def test_what_cannot_be_proved_has_no_upper_end() -> None:
    ssp = tp.read("gridworld:5x5")
    layout = layout_of(ssp)
    table = filled(ssp)
    ends = layout.ends()
    unproved = ends._replace(high=np.full(layout.n, np.inf))
    sides = table_sides(layout, table.objective, unproved, table.again, table.changes)
    assert np.all(np.isinf(sides.high)) and np.array_equal(sides.low, table.sides().low)
    late = filled(ssp, criteria=LATE)
    proved = table_sides(layout, late.objective, unproved, late.again, late.changes)
    assert np.all(np.isfinite(proved.high)), "lateness needs no V*"


# ---------------------------------------------------------------------- tables as they are


def test_shares_of_values() -> None:
    share = Share(0.25, 2.0)
    assert share.below(16.0) == 10 and share.below(2.0) == 0 and share.above(12.0) == 18
    several = Share(np.array([0.0, 0.5, 1.0, 1.5]), 1.0)
    assert several.below(np.full(4, 4.0)).tolist() == [3, 1, 0, 0]
    assert several.above(np.full(4, 4.0)).tolist() == [5, 9, math.inf, math.inf]


def test_the_least_of_a_table() -> None:
    sides = TableSides(np.array([9.0, 4.0, 3.0]), np.array([[9.5], [4.5], [3.5]]))
    budgets = np.array([0, 2, 4])
    low, high = sides.total_bounds(budgets, 1.0, 2.0, 50.0, 1)
    assert low == pytest.approx(10, rel=1e-13) and low <= 10
    assert high == pytest.approx(11, rel=1e-13) and high >= 11
    assert sides.total_bounds(budgets, 1.0, 2.0, 8.0, 1)[0] == pytest.approx(8, rel=1e-13)


def walk() -> tp.SSP:
    """V* = 4 at the start: a step of 1 or 3, twice."""
    rows: list[Any] = [(s, "a", t, 0.5, c) for s, t in (("s", "t"), ("t", "g")) for c in (1, 3)]
    return tp.SSP.from_outcomes(rows, "s", ["g"])


def test_every_level_adds_a_share() -> None:
    layout = layout_of(walk())
    value = layout.nodes.value
    blocks = len(layout.nodes.block_joint)
    each = blocks * (5 * (2 + 2) * 2.0**-53)
    for levels in (1, 7, 1000):
        found = table_share(layout, None, levels)
        assert found.share == pytest.approx(levels * each + 64 * 2.0**-53, rel=1e-9, abs=0)
        assert 0 < found.slack < 1e-200
        against = table_share(layout, None, levels, marginal=3.0)
        assert against.share == pytest.approx(4 * levels * each + 64 * 2.0**-53, rel=1e-9, abs=0)
    exact = Ends(value, value, (4.0, 4.0))
    off = Ends(value, value, (4.0, 4.0), 2.0**-20)
    plain, more = (table_share(layout, ends, 3).share for ends in (exact, off))
    # In both of what a loop divided out left: 2 e / (1 - 2 e) is more than (1 + e) / (1 - e) - 1.
    assert more - plain == pytest.approx(blocks * 3 * 2 / (2.0**20 - 2), rel=1e-9)
    assert (more - plain) / (3 * blocks) >= (1 + 2.0**-20) / (1 - 2.0**-20) - 1


def test_what_values_are_off_by_counts_once() -> None:
    """From either side, as a share of what a closed form leaves of them, or as it is."""
    layout = layout_of(walk(), "excess")
    value = layout.nodes.value
    left = float(np.min(value - layout.nodes.unavoidable_cost))
    assert 0 < left < float(np.min(value))
    plain = table_share(layout, Ends(value, value, (4.0, 4.0)), 1)
    by = 2.0**-40
    for low, high in ((value - by, value), (value, value + by), (value - by, value + by / 2)):
        for slope in (0.0, 1.0):
            found = table_share(layout, Ends(low, high, (4.0, 4.0)), 1, slope)
            room = float(np.min(value - layout.nodes.unavoidable_cost * slope))
            rest = found.share - table_share(layout, Ends(value, value, (4.0, 4.0)), 1, slope).share
            assert rest == pytest.approx(by / room, rel=0.02, abs=0)
            assert found.slack == plain.slack
    for low, high in ((value - 0.5, value), (value, value + 0.5), (value - 0.5, value + 0.25)):
        found = table_share(layout, Ends(low, high, (4.0, 4.0)), 1)
        assert found.slack == pytest.approx(0.5, rel=1e-9) and found.slack >= 0.5
        assert found.share < plain.share + 1e-14


def test_a_sweep_that_ended_early() -> None:
    layout = layout_of(walk())
    value = layout.nodes.value
    ends = Ends(value, value, (4.0, 4.0))
    for price in (2.0, 10.0):
        objective = layout.objective(EXCESS, 1.0, price, floor=3.0)
        # Nothing was found yet: the mean from below, and what a budget of 0 costs from above.
        low, high = early_bounds(layout, objective, ends, 5, math.inf)
        assert (low, high) == pytest.approx((4, 4 * price), rel=1e-12)
        assert low <= 4 and high >= 4 * price
        # The best value so far, unless a budget beyond may do better: 5 + 3.
        for best, least in ((7.5, 7.5), (9.0, 8.0), (4.0, 4.0)):
            low, high = early_bounds(layout, objective, ends, 5, best)
            most = min(best, 4 * price)
            assert high == pytest.approx(most, rel=1e-12) and high >= most
            least = min(least, most)
            assert low == pytest.approx(least, rel=1e-12) and low <= least
    wide = Ends(value - 1, value + 1, (3.0, 5.0))
    objective = layout.objective(EXCESS, 1.0, 10.0, floor=3.0)
    low, high = early_bounds(layout, objective, wide, 20, 8.0)
    assert low == 3 * (1 - AFTERWARDS) and high == pytest.approx(8 + 10 * 1.0, rel=1e-9)
    low, high = early_bounds(layout, objective, wide, 20, 30.0)
    assert (low, high) == pytest.approx((20, 40), rel=1e-9)


def test_both_ends_of_a_table_are_as_far_away() -> None:
    """By what its levels may round, twice at most."""
    layout = layout_of(walk())
    value, limit = layout.nodes.value, 6.0
    for criteria in (EXCESS, LATE):
        objective = layout.objective(criteria, limit=limit)
        found = fill(layout, objective)
        ends = Ends(value, value, (4.0, 4.0))
        sides = table_sides(
            layout,
            objective,
            ends,
            lambda other, what, loss, held: fill(other, what, loss, held=held),
            found.changes,
        )
        true = found.values[:, 0]
        assert true.tolist() == [float(w) for w in truth_of(criteria)]
        for w in range(7):
            below, above = true[w] - sides.low[w], sides.high[w, 0] - true[w]
            assert below >= 0 and above >= 0
            if true[w] > 0:
                assert 1 / 1.5 <= above / below <= 1.5 and below <= 1e-13


def truth_of(criteria: Any) -> list[Fraction]:
    """E[(Z - w)+] or P(Z >= w), of Z = 2, 4 or 6 with 1/4, 1/2 and 1/4."""
    atoms = [(2, Fraction(1, 4)), (4, Fraction(1, 2)), (6, Fraction(1, 4))]
    if criteria is LATE:
        return [sum((p for z, p in atoms if z >= w), ZERO) for w in range(7)]
    return [sum((p * max(z - w, 0) for z, p in atoms), ZERO) for w in range(7)]
