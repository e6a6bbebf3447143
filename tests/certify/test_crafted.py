"""Each charge of `certify/` that no whole model shows, against numbers made for it: without the
charge, what the function claims of them is wrong.
"""

from __future__ import annotations

from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tailpath as tp
from tailpath.certify import budgets, games, losses, searches, totals, values
from tailpath.certify.rounding import ROUNDOFF, VANISHED
from tailpath.certify.totals import Enclosure
from tailpath.dp.backup import ADVERSARIAL, Slack
from tailpath.dp.budget_model import TO_GO
from tailpath.dp.forward import LEAST_MASS
from tailpath.dp.totals import Totals
from tailpath.evaluation.engine import Engine, Search
from tests.certify.charging import CHARGED, holds

EMPTY = np.empty(0)


def known(costs: Any, masses: Any, open_mass: float = 0.0) -> Totals:
    """A distribution with these masses in its head, and so much beyond it."""
    costs, masses = np.asarray(costs, dtype=float), np.asarray(masses, dtype=float)
    return Totals(costs, masses, float(costs.max(initial=0.0)), open_mass, 0.0, 0.0, 1.0, 0.0)


@CHARGED
def test_shares_are_quotients(charged: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """e F makes up for what is missing, in fractions: 1 of a drift of k."""
    if not charged:
        monkeypatch.setattr(values, "AFTERWARDS", 0.0)
    true, one = [], np.ones(1)
    for k in range(1, 20):
        shares = values.least_shares.plain(0 * one, one, k * one, np.array([0]))
        true += [Fraction(share) * k >= 1 for share in shares]
    assert all(true) == charged


@CHARGED
def test_a_row_that_falls_has_a_residual_to_spare(
    charged: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of a drift of -k has e k, but for a rounding."""
    if not charged:
        monkeypatch.setattr(values, "AFTERWARDS", 0.0)
    true, error = [], np.array([1.0, 0.0])
    for k in range(1, 20):
        drift, first = np.array([3.0, -k]), np.array([0])
        share = values.least_shares.plain(np.zeros(1), error[:1], drift[:1], first)[0]
        spare = share * k
        below = values.least_shares.plain(np.array([0.0, spare]), error, drift, first)[0]
        true.append(below == np.inf or Fraction(spare) >= Fraction(below) * k)
    assert all(true) == charged


@CHARGED
def test_a_slope_times_a_share_rounds(charged: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nearly all of it is taken back by the low word."""
    if not charged:
        monkeypatch.setattr(values, "AFTERWARDS", 0.0)
    true, low, high = [], np.empty(1), np.empty(1)
    for k in range(1, 20):
        share, slope = (1 + 2.0**-20) / k, float(k) / 3
        for side, end in ((-1, low), (1, high)):
            word = -side * share * slope * (1 - 2.0**-20)
            words = np.zeros(1), np.array([word]), np.array([slope])
            values.outwards.plain(*words, share, share, low, high)
            truth = Fraction(word) + side * Fraction(share) * Fraction(slope)
            true.append(side * (Fraction(end.item()) - truth) >= 0)
    assert all(true) == charged


@CHARGED
def test_a_sum_over_open_nodes_rounds(charged: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not charged:
        monkeypatch.setattr(totals, "AFTERWARDS", 0.0)
    true = []
    for n in range(1, 100):
        found = known(EMPTY, EMPTY, float(np.sum(np.full(n, 0.001))))
        low, high = (
            totals.outwards(
                found, side, dropped=0, dearest=0, paid=0, of_costs=0, proved=True
            ).open_mass
            for side in (-1, 1)
        )
        true.append(holds((low, high), n * Fraction(0.001)))
    assert all(true) == charged


@CHARGED
def test_a_mixture_is_a_sum(charged: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of members that all pay 1, each a tenth."""
    if not charged:
        monkeypatch.setattr(totals, "sum_error", lambda terms: 0.0)
    true, part = [], Enclosure(known([1], [1]), known([1], [1]))
    for n in range(1, 11):
        found = totals.mixed_enclosure([0.1] * n, [part] * n, np.ones(1), 1.0)
        within = found.low.masses[0], found.high.masses[0]
        true.append(holds(within, n * Fraction(0.1)))
    assert all(true) == charged


def test_what_is_dropped_is_added_up_one_by_one() -> None:
    """Each of 2^23 masses is cut by nearly half a unit in the last place of the sum, and the sum
    without its factor is less than they are.
    """
    mass = 2.0**-997 * (1 + 2.0**-31 - 2.0**-52)
    dropped, truth = float(np.cumsum(np.full(2**23, mass))[-1]), 2**23 * Fraction(mass)
    engine = SimpleNamespace(
        largest_factor=lambda: 1.0,
        totals=lambda found, side: known(EMPTY, EMPTY),
        dearest=lambda found, side: 0.0,
        sums=False,
        request=SimpleNamespace(gamma=1),
    )
    assert mass < LEAST_MASS
    assert dropped + VANISHED < truth
    assert truth <= searches.early_bounds(engine, Search(dropped=dropped)).stray


@CHARGED
def test_the_factor_of_an_early_end_is_a_quotient(
    charged: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """300 steps of 17 roundings, read off probabilities with and without them."""
    if not charged:
        monkeypatch.setattr(searches, "AFTERWARDS", 0.0)
    true, off = [], 17 * ROUNDOFF
    for k in range(1, 10):
        engine = SimpleNamespace(
            largest_factor=lambda p=k / 10: p * (1 + off) / p,
            totals=lambda found, side: known(found.costs, found.masses),
            dearest=lambda found, side: 0.0,
            sums=False,
            request=SimpleNamespace(gamma=1),
        )
        found = Search(costs=np.ones(1), masses=np.ones(1), last=1.0, steps=300)
        mass = searches.early_bounds(engine, found).high.masses[0]
        true.append(Fraction(float(mass)) >= (1 + Fraction(off)) ** 300)
    assert all(true) == charged


@CHARGED
def test_what_the_head_is_off_by_is_a_sum(charged: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """All costs may lie beyond the deadline, so that all masses count."""
    if not charged:
        monkeypatch.setattr(totals, "sum_error", lambda terms: 0.0)
    true, loss = [], tp.Late(1000).curve
    for n in range(1, 60):
        part = known(1000 - np.arange(n)[::-1] * 2.0**-42, np.full(n, 0.007))
        _, slack = losses._head(Enclosure(part, part), loss, True, 1e-9)
        true.append(Fraction(slack) >= n * Fraction(0.007))
    assert all(true) == charged


@CHARGED
def test_errors_of_losses_are_shares(charged: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A loss that is off by 1 of k, and a mean of a tenth."""
    if not charged:
        monkeypatch.setattr(losses, "AFTERWARDS", 0.0)
    true = []
    for k in range(2, 30):
        of = np.array([float(k)]), np.ones(1)
        low, high = (losses.with_error(0.1, side, *of) for side in (-1, 1))
        true.append(Fraction(low) <= Fraction(0.1) * (1 - Fraction(1, k)))
        true.append(Fraction(high) >= Fraction(0.1) * (1 + Fraction(1, k)))
    assert all(true) == charged


@CHARGED
def test_sums_of_losses_round(charged: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not charged:
        monkeypatch.setattr(losses, "sum_error", lambda terms: 0.0)
    true = []
    for k in range(1, 20):
        loss, weights = np.array([[0.1, 0.2, k / 10]]), np.array([0.7, 0.1, 0.3])
        exact = sum(Fraction(h) * Fraction(w) for h, w in zip(loss[0].tolist(), weights.tolist()))
        off = losses.terminal_error(loss, 0 * loss, weights)[0]
        true.append(abs(Fraction(float((loss @ weights)[0])) - exact) <= Fraction(float(off)))
    assert all(true) == charged


@CHARGED
def test_what_a_price_takes_off_rounds(charged: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A million, of which next to nothing is left."""
    if not charged:
        monkeypatch.setattr(losses, "AFTERWARDS", 0.0)
    true = []
    for k in range(1, 20):
        risk, factor, price, low = Fraction(10**7 * k, 3), Fraction(1, 3), 0.1 / k, 10.0**6 + 1
        found = losses.dual_bounds(
            np.zeros(1), np.array([[low]]), np.array([price]), np.array([7]), risk, factor
        )
        truth = Fraction(low) - Fraction(price) * (risk - 7) / factor
        true.append(Fraction(float(found[0])) <= max(truth, 0))
    assert all(true) == charged


def table(value: float = 0.0, joint: int = 0) -> Any:
    """As much of a layout of one node and one edge as is asked for."""
    nodes = SimpleNamespace(block_joint=[0], value=np.array([value]), unavoidable_cost=np.zeros(1))
    inside = SimpleNamespace(inner_target=np.empty(joint))
    return SimpleNamespace(row_size=np.ones(1), nodes=nodes, joint=inside)


@CHARGED
def test_shares_of_a_table_round(charged: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of 15 roundings for each of so many levels, and an error of V* as it is."""
    if not charged:
        monkeypatch.setattr(budgets, "AFTERWARDS", 0.0)
    true = []
    for k in range(1, 30):
        value, share = 1 + k / 10, k * 15 * Fraction(ROUNDOFF)
        found = budgets.table_share(table(), None, k)
        true.append(Fraction(float(found.below(value))) <= Fraction(value) * (1 - share))
        true.append(Fraction(float(found.above(value))) >= Fraction(value) / (1 - share))
        ends = budgets.Ends(np.array([value]), np.array([value + 10 / 3]), (0.0, 0.0))
        slack = budgets.table_share(table(k / 7), ends, 1).slack
        true.append(Fraction(slack) >= Fraction(value + 10 / 3) - Fraction(k / 7))
    assert all(true) == charged


@CHARGED
def test_an_early_end_of_a_table_rounds(charged: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """V* lies between k and 2 k, in units of a tenth, and counts 0.7 times a price."""
    if not charged:
        monkeypatch.setattr(budgets, "AFTERWARDS", 0.0)
    true, criteria = [], np.zeros((1, 4))
    criteria[0, TO_GO] = 0.7
    for k in range(1, 30):
        start = k / 0.1, 2 * k / 0.1
        ends = budgets.Ends(np.array(start[:1]), np.array(start[1:]), start)
        objective: Any = SimpleNamespace(price=1 / k, criteria=criteria)
        low, most = budgets.early_bounds(table(joint=1), objective, ends, 1, np.inf)
        true.append(Fraction(low) <= min(10 * k, Fraction(most)))
        true.append(Fraction(most) >= Fraction(1 / k) * Fraction(0.7) * Fraction(start[1]))
    assert all(true) == charged


@pytest.mark.parametrize("side", [-1, 1])
def test_a_row_against_nature_is_charged_for_every_outcome(side: int) -> None:
    """Sums of many products: the nearest value of which something is claimed lies beyond them."""
    draw, count = np.random.default_rng(7), 60
    start = np.array([0, count])
    for _ in range(60):
        low, worth = draw.random(count) / count, draw.random(count)
        slack = Slack(np.zeros(count), np.zeros(1))
        products = (Fraction(p) * Fraction(v) for p, v in zip(low.tolist(), worth.tolist()))
        truth = sum(products, Fraction(0))
        rows = start, np.arange(count), low, slack, ADVERSARIAL
        counted = np.array([0]), np.array([1])
        value = float(truth)
        for _ in range(400):
            if games.extreme_holds(rows, worth, counted, np.array([value]), side):
                break
            value = float(np.nextafter(value, side * np.inf))
        assert side * (Fraction(value) - truth) > Fraction(count, 2**53) * truth


def test_a_mass_that_vanished_may_owe_what_nothing_bounds() -> None:
    """0 times infinity is no number; the bound from above is infinite, and nothing else is."""
    one, nothing = np.ones(1), np.zeros(1)
    found: Any = SimpleNamespace(
        overshoot=nothing, mass=nothing, dead_mass=0.0, costs=one, masses=one, last=1.0
    )
    engine: Any = SimpleNamespace(
        missed=lambda *_: 0.0, cost_to_go=lambda *_: np.array([np.inf]), sums=True
    )
    above = {"dropped": 0.0, "dearest": np.inf, "paid": 0.0, "of_costs": 0.0, "proved": False}
    for side in (-1, 0, 1):
        assert Engine.totals(engine, found, side).excess == 0.0
    assert totals.outwards(Engine.totals(engine, found, 1), 1, **above).excess == np.inf
