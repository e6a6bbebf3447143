"""`solve`: losses against exact rationals, limits against an occupation LP, mixtures evaluated,
refusals.
"""

from __future__ import annotations

import itertools
import math
import pathlib
import pickle
import random
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import tailpath as tp
from tailpath.errors import InfeasibleError, LimitExceededError, OptionError
from tailpath.risk.measure import REGISTER
from tailpath.solvers.exact.solver import _filled
from tests.reference import Model, to_ssp
from tests.solvers.objectives.witnesses import exact_loss, least_under_limits
from tests.strategies import proper_models, solvable_models

ZERO = Fraction(0)
models = st.one_of(
    proper_models(max_states=4, dyadic=True), solvable_models(max_states=4, dyadic=True)
)


@st.composite
def losses(draw: st.DrawFn) -> tuple[list[tuple[int, int]], int]:
    """Points in rising order, jumps among them, and a last slope; in units of the model."""
    places = sorted(draw(st.lists(st.integers(0, 8), min_size=1, max_size=4)))
    assume(all(places.count(x) <= 2 for x in places))
    return [(x, draw(st.integers(-3, 6))) for x in places], draw(st.integers(0, 2))


def as_function(points: list[tuple[Fraction, Fraction]], slope: Fraction) -> Any:
    """h as the documentation defines it, in fractions."""

    def h(z: Fraction) -> Fraction:
        if z <= points[0][0]:
            return points[0][1]
        for (x0, y0), (x1, y1) in itertools.pairwise(points):
            if x0 < z <= x1:
                return y0 + (y1 - y0) * (z - x0) / (x1 - x0)
        return points[-1][1] + slope * (z - points[-1][0])

    return h


@settings(max_examples=120)
@given(models, losses())
def test_losses_agree_with_fractions(model: Model, loss: tuple[list[tuple[int, int]], int]) -> None:
    ssp = to_ssp(model)
    unit = ssp.cost_unit
    points = [(x * unit, Fraction(y)) for x, y in loss[0]]
    slope = Fraction(loss[1])
    exact = exact_loss(model, unit, as_function(points, slope), slope, loss[0][-1][0] + 1)
    measure = tp.Loss([(float(x), float(y)) for x, y in points], float(slope))
    found = tp.solve(ssp, measure)
    scale = 1e-11 * max(1.0, *(abs(float(y)) for _, y in points), abs(float(exact)))
    assert found.value == pytest.approx(float(exact), abs=scale)
    assert found.bounds[0] - 1e-15 * scale <= exact <= found.bounds[1] + 1e-15 * scale
    if slope > 0:
        assert found.risk(measure) == pytest.approx(float(exact), abs=scale)


@st.composite
def limited(draw: st.DrawFn) -> tuple[Model, list[Any]]:
    """A model with one to three limits: `(kind, place in units, share)`, the share between the
    safest and the risk-neutral value.
    """
    kinds = draw(st.lists(st.sampled_from(["late", "shortfall", "cvar"]), min_size=1, max_size=3))
    assume(kinds.count("cvar") <= 1)
    share = st.sampled_from([0.1, 0.25, 0.5, 0.8])
    places = {
        "late": st.integers(0, 9),
        "shortfall": st.integers(1, 9),
        "cvar": st.sampled_from([0.5, 0.25, 0.1]),
    }
    return draw(models), [(kind, draw(places[kind]), draw(share)) for kind in kinds]


def measure_of(kind: str, place: Any, unit: Fraction) -> Any:
    return (
        tp.CVaR(place)
        if kind == "cvar"
        else (tp.Late if kind == "late" else tp.Shortfall)(float(place * unit))
    )


def as_losses(
    kind: str, place: Any, unit: Fraction, bound: float, w: int
) -> tuple[Any, Fraction, float]:
    if kind == "late":
        return lambda z: Fraction(z > place * unit), ZERO, bound
    if kind == "shortfall":
        return lambda z: max(z - place * unit, ZERO), Fraction(1), bound
    return lambda z: max(z - w * unit, ZERO), Fraction(1), place * (bound - float(w * unit))


def check_limits(model: Model, asked: list[Any]) -> None:
    """The optimum under limits equals the LP's, and its mixture delivers; where the LP has none, it
    is refused.
    """
    ssp = to_ssp(model)
    unit = ssp.cost_unit
    neutral = tp.solve(ssp, "mean")
    limits, bounds = [], []
    for kind, place, share in asked:
        measure = measure_of(kind, place, unit)
        least, most = tp.solve(ssp, measure), neutral.risk(measure)
        if (
            kind != "cvar" and kind != "shortfall"
        ):  # the least lateness may need policies that never arrive
            least = tp.solve(ssp, 1e-9 * tp.Mean() + measure) if share else least
        value = least.risk(measure) if kind == "late" else least.value
        bounds.append(value + share * (most - value) + 1e-7 * abs(most))
        limits.append(measure <= bounds[-1])
    identity = (lambda z: z, Fraction(1), 0.0)
    cvar = next((i for i, (kind, _, _) in enumerate(asked) if kind == "cvar"), None)
    budgets = range(int(bounds[cvar] / float(unit)) + 1) if cvar is not None else range(1)
    assume(len(budgets) <= 40)
    witness = float("inf")
    for w in budgets:
        rows = [
            identity,
            *(as_losses(kind, place, unit, b, w) for (kind, place, _), b in zip(asked, bounds)),
        ]
        units = max([w, *(place + 1 for kind, place, _ in asked if kind != "cvar"), 1])
        witness = min(
            witness,
            least_under_limits(
                model,
                unit,
                [r[0] for r in rows],
                [r[1] for r in rows],
                [r[2] for r in rows[1:]],
                units,
            ),
        )
    if witness == float("inf"):
        with pytest.raises(InfeasibleError):
            tp.solve(ssp, tp.Mean(), limits)
        return
    found = tp.solve(ssp, tp.Mean(), limits)
    assert found.value == pytest.approx(witness, rel=1e-8, abs=1e-8)
    assert (
        found.bounds[0] <= witness * (1 + 1e-8) + 1e-12 and found.gap <= 1e-9 * found.value + 1e-12
    )
    assert len(getattr(found.policy, "members", [0])) <= len(limits) + 1
    assert found.risk("mean") == pytest.approx(found.value, rel=1e-9)
    for limit in limits:
        assert found.risk(limit.measure) <= limit.bound + 1e-9 * max(1.0, abs(limit.bound))


@pytest.mark.parametrize("scale", [1, 0.1, 1e-13])
def test_of_policies_with_the_same_mean_one_that_keeps_the_limit_is_taken(scale):
    """Both cost 8.95 on average; the worst 0.3 cost 82 / 3 by `a` and 20 by `b`."""
    rows = [("a", 0.15, 2), ("a", 0.2, 40), ("a", 0.65, 1)]
    rows += [("b", 0.4, 20), ("b", 0.25, 1), ("b", 0.35, 2)]
    outcomes = [("s", action, "g", p, cost * scale) for action, p, cost in rows]
    ssp, risk = tp.SSP.from_outcomes(outcomes, "s", ["g"]), tp.CVaR(0.3)
    found = tp.solve(ssp, tp.Mean(), [risk <= 25 * scale])
    assert found.value == pytest.approx(8.95 * scale, rel=1e-12)
    corners = list(tp.frontier(ssp, risk))
    assert len(corners) == 1 and corners[0].risk == pytest.approx(20 * scale, rel=1e-12)
    for policy in (found.policy, corners[0].policy):
        assert isinstance(policy, tp.BudgetPolicy)
        costs = tp.evaluate(ssp, policy, 0.3)
        assert costs.mean == pytest.approx(8.95 * scale, rel=1e-12)
        assert costs.cvar(0.3) == pytest.approx(20 * scale, rel=1e-12)


@pytest.mark.parametrize("turned", [False, True])
def test_limits_that_rounding_of_one_another_would_refuse_are_kept(turned):
    """One policy keeps both, with nothing to spare; 5e-17 of one limit are 1e-9 of the other."""
    rows = [
        ("s", "a", "m", "3/5", "-1/2"),
        ("s", "a", "m", "2/5", 2),
        ("m", "a", "g", "1/2", "-1/2"),
        ("m", "a", "g", "1/2", "-5/2"),
        ("m", "b", "g", "1/100000", 0),
        ("m", "b", "g", "99999/100000", "-3/2"),
    ]
    ssp = tp.SSP.from_outcomes(
        [(s, a, t, Fraction(p), Fraction(c)) for s, a, t, p, c in rows], "s", ["g"]
    )
    best = tp.solve(ssp, tp.CVaR(1e-3))
    asked = [tp.Shortfall(-0.5), tp.CVaR(1e-3)]
    limits = [measure <= best.risk(measure) for measure in asked]
    found = tp.solve(ssp, tp.Mean(), limits[::-1] if turned else limits)
    assert found.value == pytest.approx(best.risk(tp.Mean()), rel=1e-9)


def test_limits_that_one_policy_keeps_exactly_are_kept():
    """Three times 0.1 is more than 0.3 in floats, and nothing is left of the limit on CVaR."""
    rows = [("s", "dear", "g", 1, 1), ("s", "cheap", "g", 1, 0.3)]
    ssp = tp.SSP.from_outcomes([*rows, ("u", "far", "g", 1, 0.1)], "s", ["g"])
    found = tp.solve(ssp, "mean", ["late(0.9) <= 1", "cvar(0.001) <= 0.3"])
    assert found.value == pytest.approx(0.3) and found.risk("cvar(0.001)") == pytest.approx(0.3)
    rows = [("s", "safe", "g", 1, 0.3), ("s", "risky", "g", 0.5, 0), ("s", "risky", "g", 0.5, 0.4)]
    ssp = tp.SSP.from_outcomes(rows, "s", ["g"])
    found = tp.solve(ssp, "mean", ["late(0.3) <= 0.1", "cvar(0.001) <= 0.3"])
    low, high = found.bounds
    assert found.risk("late(0.3)") == 0 and low <= 0.3 <= high and high - low < 1e-12


@settings(max_examples=60)
@given(limited())
def test_optima_under_limits_equal_an_occupation_lp(problem: tuple[Model, list[Any]]) -> None:
    check_limits(*problem)


@pytest.mark.parametrize("seed", range(12))
def test_bounds_under_limits_are_rounded_outwards(seed: int) -> None:
    """One choice, so that the truth is a sum of decimals; the bound above was the value as a float,
    in five of these below it, by 1e-15.
    """
    draw = random.Random(seed)
    outcomes = [(Fraction(tenths, 10), draw.randint(1, 40)) for tenths in (1, 3, 6)]
    ssp = tp.SSP.from_outcomes([("s", "a", "g", p, cost) for p, cost in outcomes], "s", ["g"])
    mean, late = (draw.randint(1, 9) / 10 for _ in range(2))
    low, high = tp.solve(
        ssp, mean * tp.Mean() + late * tp.Late(7), [tp.Shortfall(3) <= 1000]
    ).bounds
    truth = sum(
        p * (Fraction(repr(mean)) * cost + Fraction(repr(late)) * (cost > 7))
        for p, cost in outcomes
    )
    assert low <= truth <= high < low + 1e-8


def test_a_start_that_is_a_goal_keeps_every_limit() -> None:
    ssp = tp.SSP.from_outcomes([("s", "a", "g", 1, 1)], "g", ["g"])
    for limits in ([tp.CVaR(0.1) <= 1], [tp.CVaR(0.1) <= 0, tp.Late(3) <= 0.5]):
        found = tp.solve(ssp, tp.Mean(), limits)
        assert (found.value, *found.bounds) == (0, 0, 0)
    assert [(corner.mean, corner.risk) for corner in tp.frontier(ssp, tp.CVaR(0.1))] == [(0, 0)]


def test_the_road_back_from_the_mean_to_the_cvar() -> None:
    """Minimising CVaR under a limit on the mean is the same trade, seen from the other side."""
    ssp = tp.read("gridworld:8x9")
    there = tp.solve(ssp, tp.Mean(), [tp.CVaR(0.05) <= 40])
    back = tp.solve(ssp, tp.CVaR(0.05), [tp.Mean() <= there.value])
    assert back.value == pytest.approx(40, rel=1e-8)
    assert there.words[0].startswith("one unit more in cvar(0.05) <= 40 saves 0.")
    assert repr(there).endswith("with cvar(0.05) <= 40, by a mixture of 2 policies>")
    assert repr(there.policy).startswith("<MixedPolicy of 2 policies: ")
    assert "coin" not in repr(tp.solve(ssp, tp.Mean()))
    more = tp.solve(ssp, tp.Mean(), [tp.CVaR(0.05) <= 40 + 1e-4])
    assert (there.value - more.value) / 1e-4 == pytest.approx(there.multipliers[0], rel=1e-4)


def test_sums() -> None:
    ssp = tp.read("gridworld:8x9")
    mixed = tp.solve(ssp, 0.7 * tp.Mean() + 0.3 * tp.CVaR(0.05))
    assert mixed.risk("0.7 * mean + 0.3 * cvar(0.05)") == pytest.approx(mixed.value, rel=1e-11)
    with_deadline = tp.solve(ssp, tp.CVaR(0.05) + 10 * tp.Late(20))
    assert with_deadline.risk(with_deadline.objective) == pytest.approx(
        with_deadline.value, rel=1e-10
    )
    for rival in (tp.solve(ssp, "cvar(0.05)"), tp.solve(ssp, "late(20)"), tp.solve(ssp, "mean")):
        assert rival.risk(with_deadline.objective) >= with_deadline.value * (1 - 1e-10)


def test_a_limit_on_var_is_a_limit_on_lateness() -> None:
    ssp = tp.read("river:16x6")
    one = tp.solve(ssp, "mean", ["var(0.05) <= 13"])
    other = tp.solve(ssp, "mean", ["late(13) <= 0.05"])
    assert one.value == pytest.approx(other.value, rel=1e-12) and one.risk("var(0.05)") <= 13
    least = tp.solve(ssp, "var(0.05)", ["mean <= 10"])
    assert least.risk("var(0.05)") <= least.value and least.risk("mean") <= 10 * (1 + 1e-9)
    assert least.value >= tp.solve(ssp, "var(0.05)").value


@pytest.mark.parametrize(
    ("objective", "limits", "kind", "text"),
    [
        (
            "mean",
            ["cvar(0.01) <= 30"],
            InfeasibleError,
            r"no policy keeps cvar\(0\.01\) <= 30: cvar\(0\.01\) is at least 35\.",
        ),
        ("mean", ["late(10) <= 0.01"], InfeasibleError, r"late\(10\) is at least 0\."),
        (
            "cvar(0.1)",
            ["mean <= 12.16", "late(25) <= 0.0183"],
            InfeasibleError,
            r"late\(25\) <= 0\.0183 .*mean <= 12\.16.* at least 0\.0365",
        ),
        ("cvar(0.1)", ["cvar(0.01) <= 60"], OptionError, "at most one CVaR"),
        ("mean", ["cvar(0.01)"], OptionError, "a limit is written like"),
        (
            "speed",
            [],
            OptionError,
            "unknown measure 'speed'; known are cvar, entropic, evar, expectile, late, loss, mean,"
            " meandeviation, shortfall, spectral, var, variance$",
        ),
        ("mean", ["late(inf) <= 0.1"], OptionError, "never arriving"),
        ("mean - 2 * shortfall(3)", [], OptionError, "falls without bound"),
    ],
)
def test_refusals(objective: str, limits: list[str], kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=text):
        tp.solve(tp.read("gridworld:8x9"), objective, limits)


def test_policies_found_at_a_price_can_be_written_and_read(tmp_path: pathlib.Path) -> None:
    """Every decision in the table is one of its state's, those for pairs that no run meets
    included.
    """
    ssp = tp.read("river:10x3")
    least, most = tp.solve(ssp, "cvar(0.01)").value, tp.solve(ssp, "mean").risk("cvar(0.01)")
    found = tp.solve(ssp, "mean", [tp.CVaR(0.01) <= (least + most) / 2])
    tp.write_policy(found.policy, tmp_path / "mixed.json")
    again = tp.read_policy(tmp_path / "mixed.json", ssp)
    assert tp.evaluate(ssp, again, 0.01).mean == found.risk("mean")


def test_solutions_are_plain_data() -> None:
    ssp = tp.read("gridworld:5x5")
    found = tp.solve(ssp, "mean", "late(10) <= 0.06")
    again = pickle.loads(pickle.dumps(found))
    assert again == found and again.risk("late(10)") == found.risk("late(10)")
    assert len(repr(found)) < 100


def test_more_of_a_probability_is_told_by_percentage_points() -> None:
    ssp = tp.SSP.from_outcomes(
        [("s", "a", "g", 0.9, 1), ("s", "a", "g", 0.1, 9), ("s", "b", "g", 1, 5)], "s", ["g"]
    )
    found = tp.solve(ssp, "mean", "late(5) <= 0.05")
    assert found.multipliers[0] == pytest.approx(32)  # 5 - 1.8 for 0.1
    assert found.words == ("one percentage point more in late(5) <= 0.05 saves 0.32 of mean",)


@pytest.mark.parametrize(
    "text",
    ["1e308 * mean", "1e308 * cvar(0.1)", "mean + 1e308 * shortfall(2)", "loss(0:0, slope 1e308)"],
)
@pytest.mark.filterwarnings("error")
def test_factors_beyond_the_floats_are_refused(text: str) -> None:
    rows = [("s", "a", "g", 0.5, 1), ("s", "a", "s", 0.5, 3)]
    ssp = tp.SSP.from_outcomes(rows, "s", ["g"])
    with pytest.raises(OptionError, match="too large to compute with; take smaller factors"):
        tp.solve(ssp, text)
    with pytest.raises(OptionError, match="too large to compute with; take smaller factors"):
        tp.solve(ssp, "mean", [f"{text} <= 1e306"])


def test_no_coin_is_tossed_where_one_policy_just_keeps_the_limit():
    """0.2 * 0.1 is a little more than 0.02 in floats."""
    rows = [
        ("home", "highway", "junction", 0.8, 12.5),
        ("home", "highway", "junction", 0.2, 31.25),
        ("home", "ring", "junction", 1, 19),
        ("junction", "tunnel", "work", 0.9, 8),
        ("junction", "tunnel", "work", 0.1, 45),
        ("junction", "quay", "work", 1, 16),
    ]
    ssp = tp.SSP.from_outcomes(rows, "home", ["work"])
    found = tp.solve(ssp, "mean", subject_to=["late(45) <= 2%"])
    assert "coin" not in repr(found) and not isinstance(found.policy, tp.MixedPolicy)
    assert found.risk("late(45)") == pytest.approx(0.02, rel=1e-15)
    assert found.bounds[0] <= tp.evaluate(ssp, found.policy, 1).mean <= found.bounds[1]


def test_a_measure_from_outside_brings_its_own_solver(monkeypatch):
    """The largest cost of all runs, least: nothing here knows it by name."""
    monkeypatch.setattr(REGISTER, "added", {})

    @dataclass(frozen=True)
    class Worst(tp.risk.Measure):
        word = "worst"

        def __call__(self, costs):
            return float(costs.costs[-1])

        def bounds_of(self, costs):
            return self(costs), self(costs)

        def solved(self, ssp):
            found = tp.solve_cvar_exact(ssp, 1e-6)
            return found.cvar(1e-6), lambda: found.bounds(1e-6), found.policy(1e-6)

    rows = [("s", "safe", "g", 1, 3), ("s", "risky", "g", 0.9, 1), ("s", "risky", "g", 0.1, 9)]
    ssp = tp.SSP.from_outcomes(rows, "s", ["g"])
    for objective in (Worst(), "worst"):
        found = tp.solve(ssp, objective)
        assert (found.value, found.risk(objective)) == (3, 3)
        assert found.bounds == pytest.approx((3, 3), rel=1e-12)
    held = tp.solve(ssp, Worst(), [tp.Mean() <= 4])
    assert held.value == 3 and held.words == ("mean <= 4 holds anyway",)
    with pytest.raises(OptionError, match="can only be minimised alone"):
        tp.solve(ssp, Worst(), [tp.Mean() <= 2])


def test_bounds_of_a_var_under_limits_name_both_sides_of_a_near_tie():
    """5e-14 more than alpha is late at 1, which the search counts as alpha: the truth is 5."""
    rows = [("s", "a", "g", 0.89999999999995, 1), ("s", "a", "g", 0.10000000000005, 5)]
    rows += [("s", "b", "g", 0.9, 0), ("s", "b", "g", 0.1, 100)]
    found = tp.solve(tp.SSP.from_outcomes(rows, "s", ["g"]), "var(0.1)", ["mean <= 2"])
    assert found.bounds == (1, 5)


def test_a_var_that_is_infinite_for_every_policy_under_limits():
    rows = [("s", "a", "g", 0.5, 1), ("s", "a", "lost", 0.5, 1), ("lost", "wait", "lost", 1, 1)]
    rows += [("s", "b", "g", 0.45, 0), ("s", "b", "lost", 0.55, 0)]
    found = tp.solve(tp.SSP.from_outcomes(rows, "s", ["g"]), "var(0.1)", ["late(0) <= 0.6"])
    assert (found.value, found.bounds) == (math.inf, (math.inf, math.inf))
    assert found.risk("late(0)") <= 0.6 * (1 + 1e-12)


def test_bounds_of_an_early_end_are_those_of_costs_as_given(monkeypatch):
    rows = [("s", "a", "t", 1, -5), ("t", "a", "t", 0.9, 3), ("t", "a", "g", 0.1, 3)]
    ssp = tp.SSP.from_outcomes(rows, "s", ["g"])
    truth = tp.solve(ssp, "cvar(0.05)").value
    monkeypatch.setitem(_filled.__kwdefaults__, "max_bytes", 1_000)
    with pytest.raises(LimitExceededError) as caught:
        tp.solve(ssp, "cvar(0.05)")
    low, high = caught.value.bounds
    assert low <= truth <= high and low == pytest.approx(tp.solve_expected(ssp).cost(), rel=1e-12)


@pytest.mark.parametrize("stay", [0, 1])
def test_limits_where_some_policies_never_arrive(stay):
    """With cost 0 the objective's own policy has no total cost; the limits may rule it out."""
    rows = [("s", "a", "g", 0.5, 1), ("s", "a", "d", 0.5, 0), ("s", "b", "g", 1, 3)]
    ssp = tp.SSP.from_outcomes([*rows, ("d", "stay", "d", 1, stay)], "s", ["g"])
    late = tp.Late(1)
    for limit, truth in (
        (late <= 0.6, 0.5),
        (tp.Late(3) <= 0.25, 0.75),
        (tp.Late(3) <= 0, 1),
        (tp.Mean() <= 3, 1),
        (tp.Shortfall(1) <= 2, 1),
    ):
        found = tp.solve(ssp, late, [limit])
        assert found.bounds[0] <= truth <= found.bounds[1] < truth + 1e-9, str(limit)
    with pytest.raises(InfeasibleError, match="none that does surely arrives, so mean would be"):
        tp.solve(ssp, tp.Mean(), [tp.Late(2) <= 0.9])
