"""Each charge of `certify/` against a model on which bounds without it exclude the truth."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import tailpath as tp
from tailpath.certify import (
    budgets,
    games,
    losses,
    products,
    rounding,
    searches,
    totals,
    values,
)
from tailpath.certify.rounding import ROUNDOFF, compounded
from tailpath.dp.forward import LEAST_MASS
from tailpath.errors import RefutedError
from tailpath.evaluation import lattice, queue
from tailpath.evaluation.engine import Request
from tailpath.evaluation.evaluate import engine_for
from tailpath.model.border import Border
from tailpath.model.cost_units import as_fraction
from tests.certify.charging import CHARGED, holds

#: Less than half a unit in the last place of 0.9: added to it, it vanishes. So many of them come
#: out of a tree of this depth.
SPECK, DEPTH = 5e-17, 12


def evaluated(rows: list[Any], alpha: float, **options: Any) -> Any:
    ssp = tp.SSP.from_outcomes(rows, 0, ["g"])
    return tp.evaluate(ssp, dict.fromkeys(set(ssp.states) - {"g"}, "a"), alpha, **options)


def with_specks(to: Any, cost: int, leaf: Any) -> tuple[list[Any], Fraction, Fraction]:
    """Rows in which 0.9 goes to a node at a cost and 4,096 specks get out of a tree, each as its
    `leaf(k)` says, by target and cost; all rows are short. And the probabilities of both.
    """
    share = as_fraction(SPECK * 2**DEPTH)
    rest = as_fraction(float(Fraction(1, 10) - share))
    rows: list[Any] = [(0, "a", to, 0.9, cost), (0, "a", (0, 0), float(share), 0)]
    rows.append((0, "a", "g", float(rest), 0))
    for depth in range(DEPTH):
        for k in range(2 ** (depth + 1)):
            rows.append(((depth, k // 2), "a", (depth + 1, k), 0.5, 0))
    rows += [((DEPTH, k), "a", *leaf(k)) for k in range(2**DEPTH)]
    total = Fraction(9, 10) + share + rest
    return rows, Fraction(9, 10) / total, share / 2**DEPTH / total


@CHARGED
def test_additions_into_a_cell(charged: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The specks enter the node that holds 0.9 already, and none of them moves it."""
    if not charged:
        plain = rounding.scaled
        once = lambda rows, side, _, *rest: plain(rows, side, 1, *rest)  # noqa: E731
        monkeypatch.setattr(lattice, "scaled", once)
    rows, most, speck = with_specks("t", 1, lambda k: ("t", 1.0, 1))
    known = evaluated([*rows, ("t", "a", "g", 1.0, 1)], 0.5).enclosure
    within = known.low.masses[-1], known.high.masses[-1]
    assert holds(within, most + 2**DEPTH * speck) == charged


@CHARGED
def test_sums_over_the_head(charged: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The specks arrive at 4,096 costs, all below the one that 0.9 pays."""
    if not charged:
        monkeypatch.setattr(totals, "sum_error", lambda terms: rounding.AFTERWARDS)
    share, dearest = as_fraction(SPECK * 2**DEPTH), 2**DEPTH + 1
    rest = as_fraction(float(Fraction(1, 10) - share))
    rows = [(0, "a", "g", 0.9, dearest), (0, "a", "g", float(rest), 0)]
    rows.append((0, "a", 1, float(share), 1))
    for bit in range(DEPTH):
        to = bit + 2 if bit < DEPTH - 1 else "g"
        rows += [(bit + 1, "a", to, 0.5, 0), (bit + 1, "a", to, 0.5, 2**bit)]
    found = evaluated(rows, 0.01)
    mean = Fraction(9, 10) * dearest + share * Fraction(2**DEPTH + 1, 2)
    mean /= Fraction(9, 10) + share + rest
    assert len(found.costs) == 2**DEPTH + 2
    assert holds(found.bounds(0.95), mean / Fraction(0.95)) == charged


@CHARGED
def test_masses_below_the_normal_doubles(charged: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two rare steps, one after the other, have digits for one in a thousand of their product."""
    if not charged:
        monkeypatch.setattr(totals, "VANISHED", 0.0)
    true = []
    for digit in range(1, 10):
        rare, rarer = Fraction(digit, 10**290), Fraction(3, 10**31)
        rows = [(0, "a", 1, float(rare), 1), (0, "a", "g", 1.0, 9)]
        rows += [(1, "a", "g", float(rarer), 1), (1, "a", "g", 1.0, 2)]
        found = evaluated(rows, 0.5, engine="lattice")
        truth = rare / (1 + rare) * rarer / (1 + rarer)
        true.append(Fraction(float(found.enclosure.low.masses[0])) <= truth)
    assert found.costs[0] == 2
    assert all(true) == charged


@CHARGED
def test_masses_that_vanish_may_be_anywhere(charged: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """No float is as small as the probability of a total of 2."""
    if not charged:
        monkeypatch.setattr(searches, "VANISHED", 0.0)
    rows = [(0, "a", 1, 1e-290, 1), (0, "a", "g", 1.0, 9)]
    rows += [(1, "a", "g", 1e-40, 1), (1, "a", "g", 1.0, 2)]
    stray = evaluated(rows, 0.5, engine="lattice").enclosure.stray
    assert (Fraction(stray) >= Fraction(1, 10**331)) == charged


@CHARGED
def test_what_was_too_little_to_follow(charged: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """1e-301 of all runs pay 1e300, and all others nothing."""
    if not charged:
        searched = lattice.LatticeEngine.search

        def nothing_dropped(*arguments: Any) -> Any:
            return searched(*arguments)._replace(dropped=0.0)

        monkeypatch.setattr(lattice.LatticeEngine, "search", nothing_dropped)
    rows = [(0, "a", 1, 1e-301, 0), (0, "a", "g", 1.0, 0), (1, "a", "g", 1.0, 1e300)]
    found = evaluated(rows, 0.5, heuristic="zero")
    assert holds(found.bounds(0.5), Fraction(1, 5) / (1 + Fraction(1, 10**301))) == charged


def ruin(n: int, p: Fraction) -> tuple[list[Any], Fraction]:
    """A free walk on 0 .. n - 1, to the right with probability p: it ends on the left at a cost of
    1, or on the right at a cost of 2, with this probability.
    """
    rows: list[Any] = []
    for node in range(n):
        rows.append((node, "a", *((node - 1, float(1 - p), 0) if node else ("g", float(1 - p), 1))))
        rows.append((node, "a", *((node + 1, float(p), 0) if node < n - 1 else ("g", float(p), 2))))
    odds = as_fraction(float(1 - p)) / as_fraction(float(p))
    return rows, (odds - 1) / (odds ** (n + 1) - 1)


@CHARGED
def test_free_cycles_that_are_solved_beforehand(
    charged: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of 200 nodes adds to what the odds of ruin are off by, since 0.1 is no float."""
    if not charged:
        monkeypatch.setattr(rounding, "exit_error", lambda rows, *_: np.zeros(rows.n))
    rows, truth = ruin(200, Fraction(1, 10))
    known = evaluated(rows, 1e-250).enclosure
    assert holds((known.low.masses[-1], known.high.masses[-1]), truth) == charged


@CHARGED
def test_a_free_loop_doubles_what_probabilities_are_off_by(
    charged: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not charged:
        monkeypatch.setattr(rounding, "exit_error", lambda rows, *_: np.zeros(rows.n))
    rows = [(0, "a", 0, 0.5, 0), (0, "a", "g", 0.001, 1), (0, "a", "g", 0.499, 2)]
    ssp = tp.SSP.from_outcomes(rows, 0, ["g"])
    ssp = ssp.trusted(**ssp.__getstate__() | {"probability_error": 0.01})
    known = tp.evaluate(ssp, {0: "a"}, 0.5).enclosure
    more, less = Fraction(101, 100), Fraction(99, 100)
    one, two = Fraction(1, 1000), Fraction(499, 1000)
    within = known.low.masses[0], known.high.masses[0]
    assert holds(within, one * more / (one * more + two * less)) == charged
    assert holds(within, one * less / (one * less + two * more)) == charged


@pytest.mark.filterwarnings("ignore:no upper bound on an expected total")
def test_what_probabilities_of_a_free_walk_are_off_by_compounds() -> None:
    """1.01 / 0.99 for each of 20 nodes is more than twice 20 hundredths."""
    rows, _ = ruin(20, Fraction(1, 10))
    ssp = tp.SSP.from_outcomes(rows, 0, ["g"])
    ssp = ssp.trusted(**ssp.__getstate__() | {"probability_error": 0.01})
    known = tp.evaluate(ssp, dict.fromkeys(range(20), "a"), 1e-30).enclosure
    for right in (Fraction(101, 99), Fraction(99, 101)):
        odds = 9 / right
        assert holds((known.low.masses[-1], known.high.masses[-1]), (odds - 1) / (odds**21 - 1))


@CHARGED
def test_a_loop_that_is_divided_out_of_a_table(
    charged: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What probabilities are off by counts in what leaves the loop and in the sum of it."""
    if not charged:
        row_error = budgets.row_error
        once = lambda size, additions, error: row_error(size, additions, error / 2)  # noqa: E731
        monkeypatch.setattr(budgets, "row_error", once)
    rows = [(0, "a", 0, 0.5, 0), (0, "a", "g", 0.001, 2), (0, "a", "g", 0.499, 1)]
    ssp = tp.SSP.from_outcomes(rows, 0, ["g"])
    ssp = ssp.trusted(**ssp.__getstate__() | {"probability_error": 0.01})
    late = tp.solve_on_time(ssp, 1).late_bounds(1)
    more, less = Fraction(101, 100), Fraction(99, 100)
    assert holds(late, more / (more + 499 * less)) == charged
    assert holds(late, less / (less + 499 * more)) == charged


@pytest.mark.parametrize(("one", "two"), [(3.3e-320, 7e-318), (1.23456e-315, 5e-310)])
def test_probabilities_with_fewer_digits(one: float, two: float) -> None:
    """Where a free loop is left by these alone, they are all that counts."""
    rows = [("s", "a", "s", 1.0, 0), ("s", "a", "g", one, 1), ("s", "a", "g", two, 2)]
    ssp = tp.SSP.from_outcomes(rows, "s", ["g"])
    truth = as_fraction(one) / (as_fraction(one) + as_fraction(two))
    known = tp.evaluate(ssp, {"s": "a"}, 0.5).enclosure
    assert holds((known.low.masses[0], known.high.masses[0]), truth)
    assert holds(tp.solve_on_time(ssp, 1).bounds(1), truth)


@pytest.mark.parametrize("step_error", [20 * ROUNDOFF, 1e-6, 0.05, 0.5])
@pytest.mark.parametrize("steps", [1, 7, 300])
def test_steps_compound(step_error: float, steps: int) -> None:
    low, high = (Fraction(compounded(step_error, steps, side)) for side in (-1, 1))
    assert low <= (1 - Fraction(step_error)) ** steps
    assert high >= (1 + Fraction(step_error)) ** steps


def test_steps_that_may_lose_everything() -> None:
    assert compounded(2.0, 1, -1) == compounded(0.05, 10**6, -1) == 0
    assert compounded(0.05, 10**6, 1) >= 1 / LEAST_MASS


@CHARGED
def test_what_is_done_with_two_sides(charged: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A VaR of 10^6, to which a third of a thousandth is added: the sum rounds by more than the
    rows that it was found from.
    """
    if not charged:
        monkeypatch.setattr(totals, "AFTERWARDS", 0.0)
    true = []
    for k in range(1, 10):
        more = Fraction(k, 1000)
        rows = [(0, "a", "g", float(1 - more), 10**6), (0, "a", "g", float(more), 10**6 + 1)]
        true.append(holds(evaluated(rows, 0.3).bounds(0.3), 10**6 + more / Fraction(0.3)))
    assert all(true) == charged


@CHARGED
def test_an_early_end_is_charged_for_every_step(
    charged: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """0.9 is no float, and 0.9^300 is off by 300 times as much."""
    if not charged:
        monkeypatch.setattr(searches, "compounded", lambda *_: 1.0)
    rows: list[Any] = [(k, "a", "g", 0.1, 1) for k in range(400)]
    rows += [(k, "a", k + 1 if k < 399 else "g", 0.9, 1) for k in range(400)]
    ssp = tp.SSP.from_outcomes(rows, 0, ["g"])
    policy = tp.MarkovPolicy(dict.fromkeys(range(400), "a"))
    engine = engine_for(Request(Border(ssp), policy, "lattice", 1e-30, limit=300))
    found = engine.search(0)
    assert found.stopped
    known = engine.early_bounds(found)
    masses = zip(known.low.masses.tolist(), known.high.masses.tolist())
    true = [holds(each, Fraction(9**k, 10 ** (k + 1))) for k, each in enumerate(masses)]
    assert len(true) > 250 and all(true) == charged


@pytest.mark.parametrize("engine", ["lattice", "queue"])
def test_an_early_end_is_charged_for_what_it_did_not_follow(engine: str) -> None:
    """A hundred steps, each off by a hundredth, lead to what is too little to follow."""
    rows: list[Any] = [(k, "a", k + 1 if k < 150 else "g", 0.9, 1) for k in range(151)]
    rows += [(k, "a", "g", 0.1, 1) for k in range(151) if k != 99]
    rows += [(99, "a", "rare", 1e-297, 1), (99, "a", "g", 0.1, 1), ("rare", "a", "g", 1, 9)]
    ssp = tp.SSP.from_outcomes(rows, 0, ["g"])
    ssp = ssp.trusted(**ssp.__getstate__() | {"probability_error": 0.01})
    policy = tp.MarkovPolicy(dict.fromkeys([*range(151), "rare"], "a"))
    search = engine_for(Request(Border(ssp), policy, engine, 1e-305, limit=120))
    found = search.search(0)
    assert found.stopped and 0 < found.dropped + found.alone < LEAST_MASS
    truth = Fraction(9, 10) ** 99 / 10**297 * Fraction(101, 100) ** 100
    assert truth <= search.early_bounds(found).stray


@CHARGED
def test_costs_that_floats_do_not_have(charged: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A total of two tenths is another float than the one that counts for it, which the checker
    refuses unless it is told how far costs are off.
    """
    if not charged:
        search = lattice.LatticeEngine.search
        exact = lambda *arguments: search(*arguments)._replace(roundings=0)  # noqa: E731
        monkeypatch.setattr(lattice.LatticeEngine, "search", exact)
    rows = [(k, "a", k + 1 if k < 9 else "g", 0.9, 0.1) for k in range(10)]
    found = evaluated(rows + [(k, "a", "g", 0.1, 0.3) for k in range(10)], 0.01, engine="lattice")
    if charged:
        found.verify()
    else:
        with pytest.raises(RefutedError):
            found.verify()


@CHARGED
def test_discounted_costs_round_with_every_step(
    charged: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """0.9995 is no float, and its powers are off by as many roundings."""
    if not charged:
        search = queue.QueueEngine.search
        exact = lambda *arguments: search(*arguments)._replace(roundings=0)  # noqa: E731
        monkeypatch.setattr(queue.QueueEngine, "search", exact)
    n, gamma = 4000, Fraction(9995, 10000)
    rows = [(k, "a", k + 1 if k < n - 1 else "g", 1, 0.1) for k in range(n)]
    found = evaluated(rows, 0.5, gamma=0.9995)
    assert holds(found.bounds(0.5), Fraction(1, 10) * (1 - gamma**n) / (1 - gamma)) == charged


@CHARGED
def test_steps_that_multiply(charged: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not charged:
        monkeypatch.setattr(products, "row_error", lambda size, *_: 0.0 * size)
    factor, true = Fraction(3, 4), []
    for k in range(1, 20):
        stay = Fraction(k, 20)
        rows = [(0, "a", 0, float(stay), 1), (0, "a", "g", float(1 - stay), 1)]
        chain = tp.unroll(tp.SSP.from_outcomes(rows, 0, ["g"]), {0: "a"})
        found = chain.expected_product(np.full(2, float(factor)))
        truth = factor * (1 - stay) / (1 - factor * stay)
        true.append(holds((found.lower[0], found.upper[0]), truth))
    assert all(true) == charged


@CHARGED
def test_what_is_added_to_values_rounds(charged: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A gain of a million, and then a few cents to pay."""
    if not charged:
        monkeypatch.setattr(values, "AFTERWARDS", 0.0)
    true = []
    for k in range(1, 10):
        gain = 10**6 + Fraction(k, 10)
        rows = [(0, "a", 1, 1.0, -float(gain)), (1, "a", "g", 0.7, 0.1), (1, "a", "g", 0.3, 0.2)]
        chain = tp.unroll(tp.SSP.from_outcomes(rows, 0, ["g"]), {0: "a", 1: "a"})
        found = chain.expected_cost
        true.append(holds((found.lower[0], found.upper[0]), Fraction(13, 100) - gain))
    assert all(true) == charged


@CHARGED
def test_losses_are_differences(charged: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """1000.1 is no float, and what is left of a cost beyond it has its error."""
    if not charged:
        monkeypatch.setattr(losses, "AFTERWARDS", 0.0)
    true = []
    for k in range(1, 10):
        found = evaluated([(0, "a", "g", 0.7, 1000 + k), (0, "a", "g", 0.3, 1)], 0.01)
        loss = tp.Shortfall(1000.1).curve
        true.append(holds(found.loss_bounds(loss), Fraction(7, 10) * (k - Fraction(1, 10))))
    assert all(true) == charged


@CHARGED
def test_factors_are_powers(charged: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """3/4, as something that is off by 40 roundings finds it."""
    if not charged:
        monkeypatch.setattr(products, "AFTERWARDS", 0.0)
    chain = tp.unroll(tp.SSP.from_outcomes([(0, "a", "g", 1, 1)], 0, ["g"]), {0: "a"})
    found = chain.expected_product(np.array([0.75 * (1 + 40 * ROUNDOFF)]))
    assert holds((found.lower[0], found.upper[0]), Fraction(3, 4)) == charged


def waiting(stay: Fraction) -> tp.IntervalSSP:
    """A step costs 1, and is not the last with a probability of up to `stay`."""
    least = stay - Fraction(1, 20)
    rows = [(0, "a", 0, (float(least), float(stay)), 1)]
    rows += [(0, "a", "g", (float(1 - stay), float(1 - least)), 1)]
    return tp.IntervalSSP.from_outcomes(rows, 0, ["g"])


@CHARGED
def test_a_backup_against_nature_rounds(charged: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(games, "extreme_holds", games.extreme_holds.plain)
    if not charged:
        monkeypatch.setattr(games, "PER_EDGE", 0)
    stays = [Fraction(k, 1000) for k in range(900, 1000, 3)]
    true = [holds(tp.solve_expected(waiting(stay)).bounds, 1 / (1 - stay)) for stay in stays]
    assert all(true) == charged


@CHARGED
def test_a_table_against_nature_rounds(charged: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not charged:
        monkeypatch.setattr(budgets, "row_error", lambda size, *_: 0.0 * size)
    stays = [Fraction(k, 1000) for k in range(905, 1000, 5)]
    late = [tp.solve_on_time(waiting(stay), 300).late_bounds(299) for stay in stays]
    assert all(holds(*each) for each in zip(late, (stay**299 for stay in stays))) == charged
