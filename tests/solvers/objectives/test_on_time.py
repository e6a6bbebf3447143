"""Deadlines: every t against exact rationals, the paper's problems, goals that are not sure, and
questions the table cannot answer.
"""

from __future__ import annotations

import math
import pickle
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tailpath as tp
from tailpath.errors import LimitExceededError, OptionError
from tests.reference import Model, to_ssp, unroll
from tests.solvers.objectives.witnesses import exact_lateness
from tests.strategies import any_models, proper_models, solvable_models


@settings(max_examples=100)
@given(
    st.one_of(proper_models(dyadic=True), solvable_models(dyadic=True), any_models(dyadic=True)),
    st.integers(0, 20),
)
def test_every_deadline_agrees_with_fractions(model: Model, units: int) -> None:
    ssp = to_ssp(model)
    exact = exact_lateness(model, ssp.cost_unit, units)
    found = tp.solve_on_time(ssp, float(units * ssp.cost_unit))
    for t, late in enumerate(exact):
        at = float(t * ssp.cost_unit)
        assert found.late(at) == pytest.approx(float(late), rel=1e-12, abs=1e-250)
        low, high = found.bounds(at)
        assert low <= 1 - late <= high and high - low < 1e-9
    for alpha in (0.5, 0.25, 0.05):
        enough = [t for t, late in enumerate(exact) if late <= alpha]
        if enough:
            assert found.var(alpha) == float(enough[0] * ssp.cost_unit)
            assert tp.solve(ssp, tp.VaR(alpha)).value == found.var(alpha)


@settings(max_examples=60)
@given(st.one_of(solvable_models(dyadic=True), any_models(dyadic=True)), st.integers(0, 12))
def test_the_policy_delivers(model: Model, units: int) -> None:
    """The policy alone, as a model with one action, is on time as often as promised."""
    ssp = to_ssp(model)
    t = float(units * ssp.cost_unit)
    found = tp.solve_on_time(ssp, t)
    chain = unroll(model, found.policy(t))
    alone = Model(
        {x: {"go": rows} for x, rows in chain.outcomes.items() if rows}, chain.start, chain.goals
    )
    delivered = exact_lateness(alone, ssp.cost_unit, units)[-1]
    assert float(delivered) == pytest.approx(found.late(t), rel=1e-11, abs=1e-14)


PAPER = {
    "gridworld:14x16": ([20, 23, 39, 46, 53], 0.990780, 0.999189),
    "gridworld:8x9": ([8, 10, 12, 26, 32], 0.991806, 0.999172),
    "gridworld:5x5": ([6, 8, 10, 102, 103], 0.997657, 0.999562),
    "river:30x10": ([14.5, 19, 20.5, 23.5, 27], 0.991462, 0.999025),
    "river:16x6": ([8, 11.5, 12.5, 15, 18], 0.992544, 0.999111),
    "river:10x3": ([3, 4, 5, 7, 9], 0.995029, 0.999562),
}


@pytest.mark.parametrize("name", PAPER)
def test_the_papers_problems(name: str) -> None:
    """Values of an independent prototype."""
    ssp = tp.read(name)
    times, at_99, at_999 = PAPER[name]
    found = tp.solve_on_time(ssp, times[-1])
    assert [found.var(alpha) for alpha in (0.5, 0.1, 0.05, 0.01, 0.001)] == times
    assert found.probability(times[3]) == pytest.approx(at_99, abs=5e-7)
    assert found.probability(times[4]) == pytest.approx(at_999, abs=5e-7)
    for t in times:
        costs = tp.evaluate(ssp, found.policy(t), 1e-5)
        assert costs.cdf(t) == pytest.approx(found.probability(t), rel=1e-12)
        # Nobody is more often on time: not the risk-neutral policy, not the one with the least
        # CVaR.
        for other in (tp.solve_expected(ssp).policy, tp.solve_cvar_exact(ssp, 0.05).policy(0.05)):
            assert tp.evaluate(ssp, other, 1e-5).cdf(t) <= found.probability(t) * (1 + 1e-12)


def test_a_late_policy_stops_hurrying() -> None:
    """Driving fast costs 1 and may fail; with nothing to gain the slow way, 3 for sure, is cheaper
    on average than 4 tries.
    """
    rows = [("s", "fast", "g", 0.25, 1), ("s", "fast", "s", 0.75, 1), ("s", "slow", "g", 1, 3)]
    ssp = tp.SSP.from_outcomes(rows, "s", ["g"])
    found = tp.solve_on_time(ssp, 5)
    assert found.probability(2) == 1 - 0.75**2
    policy = found.policy(2)
    memory = policy.start("s")
    assert policy.action("s", memory) == "fast"
    for _ in range(3):
        memory = policy.remember(memory, "s", "fast", 1.0, "s")
    assert policy.action("s", memory) == "slow"
    assert found.policy(5).action("s", found.policy(5).start("s")) == "slow"


def test_goals_need_not_be_sure() -> None:
    """The short way may end in a pit; with time it is better to go round, in a hurry it is not.
    Both may be asked, and for ever, too.
    """
    rows = [
        ("s", "jump", "g", 0.9, 1),
        ("s", "jump", "pit", 0.1, 1),
        ("s", "round", "g", 0.95, 5),
        ("s", "round", "pit", 0.05, 5),
        ("pit", "wait", "pit", 1, 1),
    ]
    ssp = tp.SSP.from_outcomes(rows, "s", ["g"])
    found = tp.solve_on_time(ssp, math.inf)
    assert [found.probability(t) for t in (0, 1, 4, 5, 50, math.inf)] == pytest.approx(
        [0, 0.9, 0.9, 0.95, 0.95, 0.95]
    )
    assert (found.var(0.1), found.var(0.05), found.var(0.01)) == (1, 5, math.inf)
    assert tp.solve(ssp, "late(4)").value == pytest.approx(0.1)
    surest = tp.solve(ssp, tp.Late(math.inf))
    assert surest.value == pytest.approx(0.05) and surest.risk("late(inf)") == pytest.approx(0.05)
    # However dear the surer way is.
    dear = [*rows, ("s", "crawl", "g", 0.9501, 10**6), ("s", "crawl", "pit", 0.0499, 10**6)]
    assert tp.solve(tp.SSP.from_outcomes(dear, "s", ["g"]), tp.Late(math.inf)).risk(
        "late(inf)"
    ) == pytest.approx(0.0499)
    assert tp.evaluate(ssp, tp.solve_on_time(ssp, 4).policy(4), 0.2).cdf(1) == pytest.approx(0.9)


def test_a_start_that_is_a_goal_or_a_trap() -> None:
    ssp = tp.SSP.from_outcomes([("s", "go", "g", 1, 1)], "g", ["g"])
    assert tp.solve_on_time(ssp, 3).probability(0) == 1
    trapped = tp.SSP.from_outcomes([("s", "stay", "s", 1, 1), ("t", "go", "g", 1, 1)], "s", ["g"])
    found = tp.solve_on_time(trapped, 3)
    assert found.probability(3) == 0 and found.var(0.5) == math.inf


def test_the_var_at_one_is_the_least_possible_cost() -> None:
    """However improbable it is: here too improbable to be told from impossible by the time that is
    left.
    """
    ssp = tp.read("gridworld:5x5")
    assert tp.solve(ssp, tp.VaR(1.0)).value == tp.solve_on_time(ssp, 50).var(1.0) == 6
    rows: list[Any] = [
        ("s", "luck", "g", 1e-14, 1),
        ("s", "luck", "t", 1 - 1e-14, 9),
        ("s", "sure", "t", 1, 4),
        ("t", "on", "g", 1, 0.5),
    ]
    lottery = tp.SSP.from_outcomes(rows, "s", ["g"])
    found = tp.solve(lottery, tp.VaR(1.0))
    assert found.value == found.risk("var(1)") == 1 and tp.solve_on_time(lottery, 20).var(1.0) == 1
    trapped = tp.SSP.from_outcomes([("s", "stay", "s", 1, 1), ("t", "go", "g", 1, 1)], "s", ["g"])
    assert tp.solve_on_time(trapped, 3).var(1.0) == math.inf


def test_a_var_far_out() -> None:
    """2^-50 is the first power of two below 1e-15."""
    ssp = tp.SSP.from_outcomes([("s", "try", "g", 0.5, 1), ("s", "try", "s", 0.5, 1)], "s", ["g"])
    assert tp.solve(ssp, tp.VaR(1e-15)).value == 50


def test_the_surest_policy_is_sure() -> None:
    """A small chance to be lost is dear at any price of going round."""
    pit: list[Any] = [
        ("s", "risky", "g", 1 - 1e-5, 1),
        ("s", "risky", "pit", 1e-5, 1),
        ("pit", "wait", "pit", 1, 1),
    ]
    found = tp.solve(
        tp.SSP.from_outcomes([*pit, ("s", "safe", "g", 1, 10)], "s", ["g"]), tp.Late(math.inf)
    )
    assert found.value == found.risk("late(inf)") == 0
    surer: list[Any] = [("s", "safe", "g", 1 - 1e-6, 10**5), ("s", "safe", "pit", 1e-6, 10**5)]
    found = tp.solve(tp.SSP.from_outcomes([*pit, *surer], "s", ["g"]), tp.Late(math.inf))
    assert found.value == pytest.approx(1e-6, rel=1e-9) and found.risk(
        "late(inf)"
    ) == pytest.approx(1e-6, rel=1e-9)


def test_deadlines_beyond_every_run() -> None:
    """What nobody can be late for needs no table, and a table that would be too large is refused
    before it is made.
    """
    ssp = tp.read("gridworld:5x5")
    found = tp.solve_on_time(ssp, 2e9, max_bytes=10**8)
    assert (
        len(found.lateness) < 10_000
        and found.late(2e9) < 1e-250
        and found.bounds(2e9) == pytest.approx((1, 1), abs=1e-15)
    )
    assert found.late(50) == tp.solve_on_time(ssp, 50).late(50)
    assert tp.evaluate(ssp, found.policy(2e9), 1e-3).mean == pytest.approx(
        tp.solve_expected(ssp).cost(), rel=1e-12
    )
    slow = tp.SSP.from_outcomes(
        [("s", "try", "g", 1e-6, 1), ("s", "try", "s", 1 - 1e-6, 1)], "s", ["g"]
    )
    with pytest.raises(LimitExceededError, match="cost levels need more than"):
        tp.solve_on_time(slow, 2e9, max_bytes=10**6)


def test_questions_the_table_cannot_answer() -> None:
    ssp = tp.read("gridworld:5x5")
    found = tp.solve_on_time(ssp, 10)
    with pytest.raises(OptionError, match="deadlines up to 10"):
        found.probability(11)
    with pytest.raises(OptionError, match="lies beyond the deadline 10"):
        found.var(0.001)
    with pytest.raises(OptionError, match="0 or more"):
        tp.solve_on_time(ssp, -1)
    assert pickle.loads(pickle.dumps(found)) == found and "within 10" in repr(found)


@pytest.mark.parametrize("zero_cost", [False, True])
def test_what_a_tie_gives_away_is_in_the_bounds(zero_cost):
    """Chances that differ by less than rounding may hide are told apart by the mean; the bounds
    know the least of them."""
    early = 5e-14
    rows = [
        ("s", "try", "g", early, 1),
        ("s", "try", "g", 1 - early, 9),
        ("s", "easy", "g", 1, 5),
    ]
    if zero_cost:  # s and t are solved together
        rows += [("s", "easy", "t", 0, 0), ("s", "turn", "t", 1, 0), ("t", "back", "s", 0.5, 0)]
        rows += [("t", "back", "g", 0.5, 20)]
        rows = [row for row in rows if row[3]]
    ssp = tp.SSP.from_outcomes(rows, "s", ["g"])
    low, high = tp.solve_on_time(ssp, 3).late_bounds(3)
    truth = 1 - Fraction(str(early))
    assert low <= truth <= high and high - low < 1e-11


@pytest.mark.parametrize(("more", "truth"), [("2.5e-13", 6), ("-2.5e-13", 3), ("1e-9", 6)])
def test_a_least_var_beside_a_tie_has_both_ends(more, truth):
    """P(Z > 3) is 0.3 and a little more or less, within the tolerance of ties or not."""
    p = Fraction("0.3") + Fraction(more)
    ssp = tp.SSP.from_outcomes([(0, "a", "g", 1 - p, 3), (0, "a", "g", p, 6)], 0, ["g"])
    found = tp.solve(ssp, tp.VaR(0.3))
    low, high = found.bounds
    assert low <= truth <= high and low <= found.value <= high
    if abs(Fraction(more)) > 1e-10:
        assert low == high == found.value
    unsure = [(0, "b", "g", (0.1, 0.2), 9), (0, "b", "g", (0.8, 0.9), 9)]
    rows = [(0, "a", "g", 1 - p, 3), (0, "a", "g", p, 6), *unsure]
    low, high = tp.solve(tp.IntervalSSP.from_outcomes(rows, 0, ["g"]), tp.VaR(0.3)).bounds
    assert low <= truth <= high
