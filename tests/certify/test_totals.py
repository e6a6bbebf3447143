"""The lemma of `certify/rounding.py` against fractions: what was found on either side encloses the
truth, and what is charged has a reason.
"""

from __future__ import annotations

import math
import pickle
import random
import sys
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import islice
from typing import Any

import numpy as np
import pytest

import tailpath as tp
from tailpath.certify import rounding, totals
from tailpath.certify.rounding import ROUNDOFF
from tailpath.certify.totals import Enclosure, mixed_enclosure, outwards
from tailpath.dp.totals import Totals
from tailpath.errors import PolicyError
from tests import reference

Rows = dict[str, list[tuple[str, Fraction, Fraction]]]
COSTS = {
    "whole": ["0", "1", "2", "3"],
    "decimals": ["0", "0.1", "0.3", "0.7"],
    "no unit": ["0", "0.3333333333333333", "1e-9", "3.14159265358979"],
}


def drawn(draw: random.Random, kind: str) -> Rows:
    """A chain of a few nodes whose numbers are decimals as written; steps may be free, also around
    a cycle, and some are much more likely than others.
    """
    n = draw.randint(1, 4)
    rows: Rows = {}
    for node in range(n):
        weights = [Fraction(draw.randint(1, 9)) for _ in range(draw.randint(2, 4))]
        weights[0] *= draw.choice([1, 1, 30])
        shares = [Fraction(repr(float(weight / sum(weights)))) for weight in weights]
        targets = [f"s{draw.randrange(n)}" for _ in weights[1:]] + ["g"]
        rows[f"s{node}"] = [
            (to, p, Fraction(draw.choice(COSTS[kind]))) for to, p in zip(targets, shares)
        ]
    return rows


def both(rows: Rows) -> tuple[tp.SSP, reference.Model]:
    """The model as the package reads it, and in fractions."""
    outcomes = [(s, "a", t, float(p), float(c)) for s, row in rows.items() for t, p, c in row]
    exact = {
        s: {"a": [(t, p / sum(q for _, q, _ in row), c) for t, p, c in row]}
        for s, row in rows.items()
    }
    return tp.SSP.from_outcomes(outcomes, "s0", ["g"]), reference.Model(
        exact, "s0", frozenset(["g"])
    )


def cases(kind: str, count: int, first: int = 0) -> Iterator[tuple[Any, Any, float]]:
    """Distributions as found and in fractions, of chains that are not too long for these."""

    def every() -> Iterator[tuple[Any, Any, float]]:
        for seed in range(first, 10**6):
            draw = random.Random(f"{kind} {seed}")
            ssp, model = both(drawn(draw, kind))
            policy = tp.MarkovPolicy(dict.fromkeys(model.choices, "a"))
            alpha, engine = draw.choice([1.0, 0.5, 0.1]), draw.choice(["auto", "queue"])
            try:
                exact = reference.cost_distribution(model, policy, Fraction(alpha), most_levels=200)
                found = tp.evaluate(ssp, policy, alpha, engine=engine)
            except (ValueError, PolicyError):
                continue
            yield found, exact, alpha

    return islice(every(), count)


def is_enclosed(found: Any, exact: Any, alpha: float) -> bool:
    """Whether all claims hold, of those that costs as floats do not blur."""
    known = found.enclosure
    claims = [
        (found.bounds(alpha), exact.cvar(Fraction(alpha))),
        (found.mean_bounds, exact.mean),
        (found.var_bounds(alpha), Fraction(float(exact.var(Fraction(alpha))))),
    ]
    if found.ssp.cost_unit is not None and len(exact.head) == len(found.costs):
        masses = zip(known.low.masses.tolist(), known.high.masses.tolist())
        claims += [(within, p) for within, (_, p) in zip(masses, exact.head)]
        tail = 1 - sum(p for _, p in exact.head)
        claims.append((known.tail_mass, tail))
    return all(Fraction(low) <= truth <= Fraction(high) for (low, high), truth in claims)


@pytest.mark.parametrize("kind", COSTS)
def test_every_mass_lies_between_its_two_sides(kind: str) -> None:
    for found, exact, alpha in cases(kind, 60):
        assert is_enclosed(found, exact, alpha)
        low, high = found.bounds(alpha)
        assert low <= found.cvar(alpha) <= high <= low + 1e-11 * (1 + high)
        for side, more in ((found.enclosure.low, -1), (found.enclosure.high, 1)):
            assert (more * (side.masses - found.probabilities) >= 0).all()


def test_a_step_that_rounds_nothing_proves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a unit roundoff of 0 both sides are the plain search, and exclude the truth."""
    monkeypatch.setattr(rounding, "ROUNDOFF", 0.0)
    monkeypatch.setattr(totals, "ROUNDOFF", 0.0)
    assert not all(is_enclosed(*case) for kind in COSTS for case in cases(kind, 20))


def test_a_row_that_misses_one_is_charged_by_its_edges(monkeypatch: pytest.MonkeyPatch) -> None:
    """60 ways that are equally likely, as 0.0166666666666665: their sum misses 1 by 90 roundings,
    which one edge more or less does not explain.
    """
    nodes = [f"s{i}" for i in range(1, 61)]
    share = Fraction("0.0166666666666665")
    rows = {"s0": [(node, share, Fraction(0)) for node in nodes]}
    rows |= {node: [("g", Fraction(1), Fraction(i))] for i, node in enumerate(nodes)}
    ssp, _ = both(rows)
    for charged in (True, False):
        if not charged:
            monkeypatch.setattr(rounding, "PER_EDGE", 0)
        known = tp.evaluate(ssp, dict.fromkeys(rows, "a"), 0.5).enclosure
        masses = zip(known.low.masses.tolist(), known.high.masses.tolist())
        assert all(low <= Fraction(1, 60) <= high for low, high in masses) == charged


def test_a_tail_close_to_alpha_has_two_ends() -> None:
    """P(Z > 3) = 0.3 + 2.5e-13 counts as 0.3, and is more: the VaR at 0.3 is 6."""
    more = Fraction("0.30000000000025")
    ssp, _ = both({"s0": [("g", 1 - more, Fraction(3)), ("g", more, Fraction(6))]})
    for alpha in (0.3, 0.1):
        found = tp.evaluate(ssp, {"s0": "a"}, alpha)
        assert found.var(0.3) == 3
        assert found.var_bounds(0.3)[0] == 3
        assert 6 <= found.var_bounds(0.3)[1] <= 6 * (1 + 1e-12)
        assert found.bounds(tp.VaR(0.3)) == found.var_bounds(0.3)
    assert found.var_bounds([0.1, 0.5]).tolist() == [[6, 6], [3, 3]]


def test_bounds_are_found_once_and_when_they_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    ssp = tp.domains.gridworld("5x5")
    found = tp.evaluate(ssp, tp.solve_expected(ssp).policy, 0.01)
    assert found.cvar(0.01) > found.mean > 0 and found.std > 0
    assert callable(found.proof), "nobody asked"
    bounds = found.bounds(0.01)
    assert isinstance(found.proof, totals.Enclosure)
    again = pickle.loads(pickle.dumps(found))
    assert again == found and isinstance(again.proof, totals.Enclosure)
    assert again.bounds(0.01) == bounds and again.mean_bounds == found.mean_bounds
    fresh = tp.evaluate(ssp, tp.solve_expected(ssp).policy, 0.01)
    assert pickle.loads(pickle.dumps(fresh)).bounds(0.01) == bounds


def test_free_cycles_with_a_discount_come_to_an_end() -> None:
    """Costs can be put off for ever in 2^t ways; what is unlikely counts with its mean. The truth
    lies between sums over all ways that have at least 1e-7, what is left paying nothing or as much
    as 1 / (1 - 0.9).
    """
    rows = [("0", "a", "1", 0.5, 0), ("0", "a", "g", 0.5, 1)]
    rows += [("1", "a", "0", 0.5, 1), ("1", "a", "1", 0.25, 0), ("1", "a", "g", 0.25, 1)]
    ssp = tp.SSP.from_outcomes(rows, "0", ["g"])
    found = tp.evaluate(ssp, {"0": "a", "1": "a"}, 0.2, gamma=0.9)
    by_state = {s: [(t, p, c) for x, _, t, p, c in rows if x == s] for s in "01"}
    open_, ends, left = [("0", 1.0, 0.0, 1.0)], [], 0.0
    while open_:
        state, mass, cost, factor = open_.pop()
        for to, p, c in by_state[state]:
            if to == "g":
                ends.append((cost + factor * c, mass * p))
            elif mass * p < 1e-7:
                left += mass * p
            else:
                open_.append((to, mass * p, cost + factor * c, factor * 0.9))
    low = min(w + sum(p * max(z - w, 0) for z, p in ends) / 0.2 for w in (1.5, 1.6, 1.7, 1.71, 1.8))
    cvar = found.cvar(0.2)
    assert low - 10 * left / 0.2 <= cvar <= low + 10 * left / 0.2
    assert found.bounds(0.2)[0] <= cvar <= found.bounds(0.2)[1] <= cvar + 1e-5
    assert left < 1e-3


def test_what_is_not_followed_may_arrive_before_the_last_cost() -> None:
    """Z = 0.9^k with probability 3^k / 4^(k+1): runs that wait for long are not followed, and cost
    next to nothing, where this loss is negative."""
    ssp = tp.SSP.from_outcomes([(0, "a", 0, 0.75, 0), (0, "a", "g", 0.25, 1)], 0, ["g"])
    truth = -5 * (1 - Fraction(1, 4) / (1 - Fraction(3, 4) * Fraction(9, 10)))
    low, high = tp.evaluate(ssp, {0: "a"}, 0.1, gamma=0.9).bounds(tp.Loss([(0, -5), (1, 0)]))
    assert low <= truth <= high
    assert high - low < 1e-8


@pytest.mark.parametrize("engine", ["queue", "lattice"])
def test_a_total_with_a_probability_next_to_nothing_may_be_left_out(engine: str) -> None:
    """A total of 3 has the probability 1e-302, and is not in the head: the checker is told."""
    rare = Fraction("1e-151")
    rows = [(0, "a", 1, rare, 1), (0, "a", "g", 1 - rare, 5), (1, "a", 2, rare, 1)]
    rows += [(1, "a", "g", 1 - rare, 3), (2, "a", "g", 1, 1)]
    ssp = tp.SSP.from_outcomes(rows, 0, ["g"])
    found = tp.evaluate(ssp, {0: "a", 1: "a", 2: "a"}, 0.1, engine=engine)
    assert 3.0 not in found.costs and found.enclosure.stray >= 1e-302
    found.verify()


def test_a_history_on_a_free_cycle() -> None:
    ssp = tp.SSP.from_outcomes([("s", "a", "s", 0.8, 0), ("s", "a", "g", 0.2, 1)], "s", ["g"])
    found = tp.evaluate(ssp, tp.HistoryPolicy(lambda history: "a"), 0.1)
    assert found.cvar(0.1) == pytest.approx(1, rel=1e-12) == found.mean
    assert found.bounds(0.1)[0] <= 1 and found.bounds(0.1)[1] == math.inf
    assert 0 < found.enclosure.missed[1] < 1e-12 and found.enclosure.missed[0] == 0


def test_the_only_action_is_taken_surely() -> None:
    """Weights of a policy are scaled to 1, also that of one action alone: E[Z | Z > 1] = 3."""
    ssp = tp.SSP.from_outcomes([("s", "a", "s", 0.5, 1), ("s", "a", "g", 0.5, 1)], "s", ["g"])
    found = tp.evaluate(ssp, tp.MarkovPolicy({"s": {"a": 0.9999999995}}), 0.5)
    assert found.bounds(0.5)[0] <= 3 <= found.bounds(0.5)[1]
    assert found.probabilities[0] == 0.5


@pytest.mark.parametrize("more", [-9e-10, 0.0, 9e-10])
def test_weights_of_a_mixture_are_scaled_to_1(more: float) -> None:
    ssp = tp.SSP.from_outcomes([("s", "a", "g", 1, 3), ("s", "b", "g", 1, 5)], "s", ["g"])
    members = tp.MarkovPolicy({"s": "a"}), tp.MarkovPolicy({"s": "b"})
    weights = Fraction(0.5), Fraction(0.5 + more)
    found = tp.evaluate(ssp, tp.MixedPolicy(members, tuple(map(float, weights))), 0.5)
    low, high = found.bounds(1.0)
    truth = (3 * weights[0] + 5 * weights[1]) / sum(weights)
    assert low <= truth <= high


def test_a_sum_is_charged_each_of_its_terms() -> None:
    """Added one by one to 1, terms of half a unit in the last place vanish, all of them."""
    terms = [1.0, *[rounding.ROUNDOFF] * 1000]
    found, exact = 0.0, sum(map(Fraction, terms))
    for term in terms:
        found += term
    assert found == 1
    assert 900 * rounding.ROUNDOFF < (exact - 1) / exact <= rounding.sum_error(len(terms))


@pytest.mark.parametrize("count", [3000, 20_000])
def test_many_rows_of_one_outcome_round_once(count: int) -> None:
    """Added up one by one, 3,000 times 0.0001 is off by 350 roundings, which a row of two outcomes
    is not charged for.
    """
    share = Fraction("0.00003")
    mass = count * share
    rows: list[Any] = [("s", "a", "g", float(share), 1)] * count
    rows.append(("s", "a", "g", float(1 - mass), 2))
    found = tp.evaluate(tp.SSP.from_outcomes(rows, "s", ["g"]), {"s": "a"}, 0.1)
    low, high = found.mean_bounds
    assert low <= mass + 2 * (1 - mass) <= high
    assert found.enclosure.low.masses[0] <= mass <= found.enclosure.high.masses[0]


def test_what_is_lost_little_by_little_counts() -> None:
    """Half of all runs are lost at once, and 2^-54 of the others at each of many steps, which a sum
    that is a half has no digits for.
    """
    arrive, leak = Fraction(1, 2**12), Fraction(repr(2.0**-54))
    rows = [(0, "a", 1, 0.5, 1), (0, "a", "lost", 0.5, 1), ("lost", "a", "lost", 1, 1)]
    rows += [(1, "a", 1, float(1 - arrive), 1), (1, "a", "g", float(arrive), 1)]
    ssp = tp.SSP.from_outcomes([*rows, (1, "a", "lost", float(leak), 1)], 0, ["g"])
    known = tp.evaluate(ssp, {0: "a", 1: "a", "lost": "a"}, 0.1, engine="lattice").enclosure
    truth = (1 + leak / (leak + arrive)) / 2
    assert known.low.dead_mass <= truth <= known.high.dead_mass


# ---------------------------------------------------------------------- by hand


def side_of(masses: list[float], rest: tuple[float, float, float], mean: float = 3.0) -> Any:
    """Costs 1, 2, ... with these masses; open and dead mass and the excess beyond the last."""
    costs = np.arange(1.0, len(masses) + 1)
    open_mass, dead_mass, excess = rest
    last = float(len(masses))
    return Totals(costs, np.array(masses), last, open_mass, dead_mass, excess, mean, dead_mass)


def test_a_cvar_by_hand() -> None:
    """Costs 1 and 2 with 1/2 and 1/4, and 1/4 beyond 2 that exceeds it by 2 in the mean."""
    side = side_of([0.5, 0.25], (0.25, 0.0, 0.5), mean=2.0)
    known = Enclosure(side, side)
    for alpha, truth in ((1.0, 2.0), (0.5, 3.0), (0.25, 4.0), (0.75, 7 / 3)):
        low, high = known.cvar(alpha)
        assert low <= truth <= high
        assert (low, high) == pytest.approx((truth, truth), rel=2e-14)
    # Below the tail's mass nothing is known but that it exceeds 2 by 2, or more.
    low, high = known.cvar(0.125)
    assert low == pytest.approx(4.0, rel=1e-13) and high == pytest.approx(6.0, rel=1e-13)
    # Costs that are off move both ends by as much.
    off = Enclosure(side, side, cost_error=0.25)
    assert off.cvar(0.5) == pytest.approx((2.25, 3.75), rel=1e-13)
    # Not below the mean, nor, of all runs, above it.
    off = Enclosure(replace(side, mean=1.75), replace(side, mean=2.25), cost_error=0.25)
    assert off.cvar(1.0) == (1.75, 2.25)
    off = Enclosure(replace(side, mean=2.75), replace(side, mean=2.75), cost_error=0.25)
    assert off.cvar(0.5)[0] == 2.75
    dead = side_of([0.5], (0.25, 0.25, math.inf), mean=math.inf)
    assert Enclosure(dead, dead).cvar(0.5) == (math.inf, math.inf)


def test_between_two_sides_a_cvar_has_both() -> None:
    low, high = (side_of([p, q], (r, 0.0, e), mean=m) for p, q, r, e, m in (
        (0.4375, 0.25, 0.125, 0.25, 1.5),
        (0.5625, 0.25, 0.25, 0.75, 2.5),
    ))  # fmt: skip
    found = Enclosure(low, high).cvar(0.5)
    # At 2 from below: 2 + 0.25 / 0.5; at 1: 1 + (0.25 + 0.375) / 0.5. From above 1 + 1.25 / 0.5.
    assert found == pytest.approx((2.25, 3.5), rel=1e-13)
    assert found[0] <= 2.25 and found[1] >= 3.5


def test_a_var_by_hand() -> None:
    low = side_of([0.5, 0.25, 0.125], (0.125, 0.0, 0.5))
    known = Enclosure(low, low)
    assert known.var(0.3) == (2, 2) and known.var(0.6) == (1, 1) and known.var(0.2) == (3, 3)
    # A tail of 1/4, give or take a few roundings, may or may not exceed an alpha of 1/4.
    assert known.var(0.25) == (2, 3) and known.var(0.25 * (1 - 1e-13)) == (2, 3)
    assert known.var(0.25 * (1 + 1e-13)) == (2, 2) and known.var(0.25 * (1 - 1e-11)) == (3, 3)
    assert known.var(0.25 / (1 + 1e-12) * (1 - 3e-15)) == (2, 3)
    # Beyond the head: no less than 3, no more than the CVaR.
    assert known.var(0.0625) == (3, known.cvar(0.0625)[1])
    # Costs that are off, but not by the few roundings of writing them down.
    assert Enclosure(low, low, cost_error=0.25).var(0.3) == (1.5, 2.5)
    assert Enclosure(low, low, cost_error=4 * ROUNDOFF).var(0.3) == (2, 2)
    assert Enclosure(low, low, cost_error=5 * ROUNDOFF).var(0.3) != (2, 2)
    assert Enclosure(low, low, cost_error=0.25).var(0.0625)[0] == 2.25
    dead = side_of([0.5], (0.0, 0.5, math.inf), mean=math.inf)
    assert Enclosure(dead, dead).var(0.25) == (math.inf, math.inf)
    assert Enclosure(dead, dead).var(0.5) == (1, math.inf)


def test_sides_are_moved_outwards_by_what_is_not_known() -> None:
    """With large numbers for what is usually small."""
    given: dict[str, Any] = {"dearest": 3.0, "paid": 2.0, "proved": False}
    side = side_of([0.5, 0.25], (0.25, 0.125, 0.5))
    above = outwards(replace(side), 1, dropped=0.125, of_costs=0.25, **given)
    assert above.masses.tolist() == [0.5, 0.25] and above.dead_mass == pytest.approx(0.125)
    assert above.open_mass == pytest.approx(0.375) and above.open_mass >= 0.375
    assert above.excess == pytest.approx(0.5 + 0.125 * 4 + 0.25 * 2) and above.excess >= 1.5
    total = above.sum_of_means
    assert above.mean == pytest.approx(total * 1.25) and above.mean >= total * 1.25
    assert above.missed == pytest.approx(0.25) and above.missed >= 0.25
    masses = side.masses.copy()
    below = outwards(replace(side, masses=masses), -1, dropped=0.125, of_costs=0.25, **given)
    assert below.masses.tolist() == [0.5, 0.25] and 0 < below.open_mass <= 0.25
    assert below.open_mass == pytest.approx(0.25) and below.dead_mass == pytest.approx(0.125)
    assert below.excess == pytest.approx(0.0, abs=1e-12) and below.missed == pytest.approx(0.125)
    assert below.dead_mass <= 0.125 and below.missed <= 0.125
    assert below.mean == pytest.approx(below.sum_of_means * 0.75)
    for side_, found in ((1, above), (-1, below)):
        sums = (2 * 2 + 64) * ROUNDOFF
        assert side_ * (found.mean - found.sum_of_means * (1 + side_ * 0.25)) >= 0
        assert abs(found.mean / found.sum_of_means - 1 - side_ * (0.25 + sums)) <= 4 * ROUNDOFF
    kept = outwards(replace(side), 1, dropped=0.125, of_costs=0.25, **given | {"proved": True})
    assert kept.mean == side.mean and kept.missed == side.missed
    # Nothing that arrives is missed, and nothing more is paid where nothing is dear.
    free = replace(side_of([0.5], (0.5, 0.0, 0.5)), missed=0.0)
    found = outwards(free, 1, dropped=0.5, of_costs=0.0, **given | {"dearest": 0.0})
    assert found.missed == 0 and found.excess == pytest.approx(0.5, rel=1e-12)
    endless = replace(side, mean=math.inf, excess=math.inf)
    found = outwards(endless, -1, dropped=0.0, of_costs=0.0, **given)
    assert found.mean == math.inf and found.excess == sys.float_info.max
    assert outwards(endless, 1, dropped=0.0, of_costs=0.0, **given).excess == math.inf
    tiny = outwards(side_of([2.0**-1020], (0.0, 0.0, 0.0)), -1, dropped=0.0, of_costs=0.0, **given)
    assert tiny.masses[0] == tiny.open_mass == 0


def test_a_mixture_is_enclosed_by_the_mixtures_of_its_sides() -> None:
    one, two = (
        side_of([p, 0.25], (0.75 - p, 0.0, 0.5), mean=m) for p, m in ((0.5, 2.0), (0.25, 3))
    )
    parts = [
        Enclosure(one, one, cost_error=0.25, stray=0.125),
        Enclosure(two, two, cost_error=0.125, stray=0.25),
    ]
    found = mixed_enclosure([0.75, 0.25], parts, one.costs, 2.0)
    masses = [0.75 * 0.5 + 0.25 * 0.25, 0.25]
    for side, more in ((found.low, -1), (found.high, 1)):
        assert side.masses == pytest.approx(masses, rel=1e-13)
        assert (more * (side.masses - masses) > 0).all()
        assert more * (side.mean - 2.25) > 0 and side.mean == pytest.approx(2.25, rel=1e-13)
    assert found.cost_error == 0.25 and found.stray == 0.375


def test_sums_beyond_the_head_may_be_off_like_those_in_it() -> None:
    """Of 10000 costs below 1, an excess of 0.5 beyond 1 is a sum with as many roundings, and the
    CVaR at 0.2, where all that lies beyond costs 3, may be less by as much.
    """
    n = 10_000
    costs, masses = np.arange(n) / n, np.full(n, 0.5 / n)
    mean = float(costs @ masses) + 0.5 * 1 + 0.5
    known = Totals(costs, masses, 1.0, 0.25, 0.0, 0.5, mean, 0.0)
    lower = Enclosure(known, known).cvar(0.2)[0]
    assert Fraction(lower) <= 1 + 2 * (1 - 2 * n * Fraction(ROUNDOFF))
    assert lower == pytest.approx(3, rel=1e-11)


def test_a_head_without_costs_has_its_least_value_at_0_too() -> None:
    """Half of all runs arrive at 0, which was not followed, and half at 10: the mean is 5."""
    low, high = (side_of([], (p, 0.0, 0.0), mean=5.0) for p in (0.5, 1.0))
    low, high = replace(low, last=10.0), replace(high, last=10.0)
    for alpha, truth in ((1.0, 5.0), (0.8, 6.25), (0.5, 10.0)):
        found = Enclosure(low, high, stray=0.5).cvar(alpha)
        assert found[0] <= truth <= found[1]
