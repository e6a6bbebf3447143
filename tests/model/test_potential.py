"""Costs of any sign as costs of 0 or more: the potential, the reduced model, and what
is refused.
"""

from __future__ import annotations

import pickle
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tailpath as tp
from tailpath.errors import ModelError, RefutedError
from tailpath.kernels.potentials import correct_labels
from tailpath.model.border import less, shifted, shifted_bounds, shifted_costs
from tailpath.verify.optimum import check_reduction
from tests.reference import Model, to_ssp
from tests.signed import gambler, signed_models
from tests.strategies import any_models, proper_models, solvable_models

F = Fraction
ROUND = [("a", "go", "b", 1, -2), ("b", "back", "a", 0.5, 1), ("b", "back", "g", 0.5, 1)]


def least_costs(model: Model) -> dict[object, Fraction | None]:
    """phi in fractions: as many rounds of Bellman and Ford as there are states."""
    phi: dict[object, Fraction | None] = dict.fromkeys(model.goals, F(0))
    for _ in range(len(model.choices) + 1):
        for s, _, t, _, c in model.rows():
            if phi.get(t) is not None and (phi.get(s) is None or c + phi[t] < phi[s]):
                phi[s] = c + phi[t]
    return phi


@settings(max_examples=60, deadline=None)
@given(signed_models(st.one_of(any_models(), solvable_models(), proper_models())))
def test_the_potential_is_the_least_cost_of_any_way(models: tuple[Model, Model, Fraction]) -> None:
    ssp, phi = to_ssp(models[1]), least_costs(models[1])
    assert ssp.signed
    assert [ssp.reduction.of(s) for s in range(ssp.n_states)] == [
        phi.get(name) or 0 for name in ssp.states
    ]
    assert ssp.shift == (phi.get(ssp.start) or 0)
    reduced = ssp.reduced
    assert not reduced.signed and reduced.reduced is reduced and reduced.shift == 0
    assert reduced.cost_unit is not None
    source, target = ssp.choice_state[ssp.outcome_choice].tolist(), ssp.outcome_target.tolist()
    for outcome, (s, t) in enumerate(zip(source, target)):
        given_cost = int(ssp.outcome_level[outcome]) * ssp.cost_unit
        kept = (
            given_cost + ssp.reduction.of(t) - ssp.reduction.of(s)
            if phi.get(ssp.states[t]) is not None
            else abs(given_cost)
        )
        assert int(reduced.outcome_level[outcome]) * reduced.cost_unit == kept >= 0
    assert reduced.observed is reduced.paid
    np.testing.assert_array_equal(reduced.observed, ssp.outcome_cost)
    check_reduction(ssp, ssp.reduction)


def test_costs_of_0_or_more_go_no_other_way() -> None:
    ssp = tp.domains.gridworld("5x5")
    assert (
        not ssp.signed
        and ssp.reduced is ssp
        and ssp.shift == 0
        and ssp.observed is ssp.outcome_cost
    )
    costs = np.array([0.1, 0.3])
    assert (
        shifted(0.1, F(0)) == 0.1
        and shifted_bounds((1.0, 2.0), F(0)) == (1.0, 2.0)
        and shifted_costs(costs, F(1, 10), F(0)) is costs
    )


def test_a_negative_cycle_is_named_and_a_limit_of_steps_helps() -> None:
    ssp = tp.SSP.from_outcomes(ROUND, "a", ["g"])
    first, last = (
        "'a' by 'go', 'b' by 'back', and back to 'a'",
        "'b' by 'back', 'a' by 'go', and back to 'b'",
    )
    helps = r"limit the steps with within\(ssp, n\) \(--within N\)"
    said = rf"^a cycle has a negative cost.*: ({first}|{last}) gains 1; {helps}"
    for verb in (
        lambda: ssp.reduced,
        lambda: tp.solve_expected(ssp),
        lambda: tp.solve_cvar_exact(ssp, 0.1),
        lambda: tp.evaluate(ssp, {"a": "go", "b": "back"}, 0.1),
        lambda: tp.simulate(ssp, {"a": "go", "b": "back"}, 3, 0),
        lambda: tp.solve(ssp, "late(3)"),
    ):
        with pytest.raises(ModelError, match=said):
            verb()
    limited = tp.within(ssp, 4, otherwise=0)
    # -1 after two steps with 1/2, else -2 after four with 1/4, else out of time at -2.
    costs = tp.evaluate(limited, {"a": "go", "b": "back"}, 0.01)
    assert dict(zip(costs.costs.tolist(), costs.probabilities.tolist())) == {-2.0: 0.5, -1.0: 0.5}
    assert tp.solve_expected(limited).cost() == -1.5


def test_a_long_cycle_is_cut_short() -> None:
    n = 30
    rows = [(s, "on", (s + 1) % n, 0.5, -1) for s in range(n)] + [
        (s, "on", "g", 0.5, 0) for s in range(n)
    ]
    with pytest.raises(ModelError, match=r"and 22 more, and back to \d+ gains 30;"):
        tp.solve_expected(tp.SSP.from_outcomes(rows, 0, ["g"]))


def test_negative_cycles_that_no_goal_follows_are_no_matter() -> None:
    rows = [
        ("a", "go", "g", 0.5, -3),
        ("a", "go", "lost", 0.5, -4),
        ("lost", "wait", "lost", 1, -1),
    ]
    ssp = tp.SSP.from_outcomes(rows, "a", ["g"])
    assert ssp.shift == -3 and ssp.reduced.outcome_cost.tolist() == [0, 4, 1]
    costs = tp.evaluate(ssp, {"a": "go", "lost": "wait"}, 0.5)
    assert (costs.unreached, costs.var(0.5), costs.mean) == (0.5, -3.0, np.inf)
    assert tp.solve_on_time(ssp, 0).probability(-3) == 0.5


def test_the_unit_is_that_of_the_reduced_costs() -> None:
    ssp = tp.SSP.from_outcomes(
        [("a", "x", "g", 0.5, "-0.3"), ("a", "x", "g", 0.5, "1.7"), ("a", "y", "g", 1, "0.7")],
        "a",
        ["g"],
    )
    assert (ssp.cost_unit, ssp.reduced.cost_unit, ssp.shift) == (F(1, 10), 1, F(-3, 10))
    assert tp.evaluate(ssp, {"a": "x"}, 0.1).costs.tolist() == [-0.3, 1.7]
    far = tp.SSP.from_outcomes(
        [("a", "x", "g", 0.5, -(10**12)), ("a", "x", "g", 0.5, 7 - 10**12)], "a", ["g"]
    )
    assert (far.cost_unit, far.reduced.cost_unit) == (None, 7)
    assert tp.solve_cvar_exact(far, 0.5).cvar(0.5) == 7 - 10**12


def test_costs_without_a_unit_are_the_nearest_floats_and_bounds_say_so() -> None:
    gain, ends = -0.1234567890123457, [0.3, -0.7654321098765431, 0.9876543210987654, 0.5]
    rows = [("a", "x", "b", 1, gain), *(("b", "x", "g", 0.25, end) for end in ends)]
    ssp = tp.SSP.from_outcomes(rows, "a", ["g"])
    assert ssp.cost_unit is None and not ssp.reduction.exact
    totals = sorted(F(repr(gain)) + F(repr(end)) for end in ends)
    assert ssp.shift == totals[0]
    costs = tp.evaluate(ssp, {"a": "x", "b": "x"}, 0.01)
    assert costs.mean_bounds[0] <= sum(totals) / 4 <= costs.mean_bounds[1]
    assert costs.bounds(0.5)[0] <= (totals[2] + totals[3]) / 2 <= costs.bounds(0.5)[1]
    assert costs.costs == pytest.approx([float(total) for total in totals], rel=1e-15, abs=0)
    for place, total in enumerate(totals):  # on which side of a jump a cost is, nobody can tell
        low, high = costs.bounds(tp.Late(float(total)))
        assert low <= (3 - place) / 4 <= high
    costs.verify()
    bracket = tp.solve_cvar_exact(ssp, 0.5, delta=0.001).bounds(0.5)
    assert bracket[0] <= (totals[2] + totals[3]) / 2 <= bracket[1]


def test_python_numbers_where_whole_ones_of_the_machine_are_too_small() -> None:
    ssp = tp.SSP.from_outcomes([("a", "x", "b", 1, -1e-30), ("b", "x", "g", 1, 1e10)], "a", ["g"])
    assert ssp.shift == 10**10 - F(1, 10**30)


@pytest.mark.parametrize(
    "search", [correct_labels, correct_labels.plain], ids=["compiled", "plain"]
)
def test_labels_are_corrected_as_often_as_it_takes(search: Any) -> None:
    """A staircase on which the cheapest way is the longest: labels are corrected again
    and again.
    """
    n = 40
    edges = [
        (s, t, -(2 ** (t - s)) if t == s + 1 else 0) for s in range(n - 1) for t in range(s + 1, n)
    ]
    edges.sort(key=lambda edge: edge[1])
    source, target, cost = (np.array(column, dtype=np.int64) for column in zip(*edges))
    least, edge = np.where(np.arange(n) == n - 1, 0, 2**40), np.full(n, -1)
    start = np.searchsorted(target, np.arange(n + 1))
    assert search(start, np.arange(len(edges)), source, cost, least, edge) == -1
    assert least.tolist() == [-2 * (n - 1 - s) for s in range(n)]


def test_a_wrong_potential_is_refuted() -> None:
    ssp = gambler()
    found = ssp.reduction
    wrong = found.level.copy()
    wrong[ssp.state_index(3)] += 1
    with pytest.raises(RefutedError, match="the reduced cost of state"):
        check_reduction(ssp, found._replace(level=wrong))
    wrong = found.level.copy()
    wrong[ssp.state_index("end")] = 1
    with pytest.raises(RefutedError, match=r"the potential of goal 'end' is 1.0, not 0"):
        check_reduction(ssp, found._replace(level=wrong))
    target = found.ssp.outcome_target.copy()
    target[0] = target[1]
    with pytest.raises(RefutedError, match="reduced model differs"):
        check_reduction(ssp, found._replace(ssp=replace(found.ssp, outcome_target=target)))


def test_bounds_are_shifted_outwards() -> None:
    low, high = shifted_bounds((0.1, 0.1), F(1, 3))
    assert F(low) <= F(0.1) + F(1, 3) <= F(high) and high - low <= 2**-52
    assert shifted_bounds((0.0, float("inf")), F(-5)) == (-5.0, float("inf"))
    assert shifted_costs(np.array([0.1, np.inf]), F(1, 10), F(2, 10)).tolist() == [0.3, np.inf]
    assert (
        less(0.7, F(-3, 10), F(1)) == 1
        and less(1 / 3, F(-1, 3), F(1, 3)) == F(2, 3)
        and less(0.25, F(-3, 10), None) == F(11, 20)
    )
    assert tp.Late(0.6).moved(F(-3, 10), F(1))[0] == tp.Late(0) and tp.Late(0.7).moved(
        F(-3, 10), F(1)
    )[0] == tp.Late(1)


def test_models_travel() -> None:
    ssp = gambler()
    assert pickle.loads(pickle.dumps(ssp)) == ssp
    assert pickle.loads(pickle.dumps(ssp.reduced)) == ssp.reduced
    found = tp.solve_cvar_exact(ssp, 0.4)
    again = pickle.loads(pickle.dumps(found))
    assert again.cvar(0.4) == found.cvar(0.4) and again.policy(0.4) == found.policy(0.4)
    costs = tp.evaluate(ssp, found, 0.4)
    assert pickle.loads(pickle.dumps(costs)).bounds(0.5) == costs.bounds(0.5)


def test_intervals_need_costs_of_0_or_more() -> None:
    with pytest.raises(
        ModelError,
        match=(
            r"^state 'a', action 'x' -> 'g' has the negative cost -1; a model with intervals needs"
            r" costs of 0"
        ),
    ):
        tp.IntervalSSP.from_outcomes(
            [("a", "x", "g", (0.2, 0.8), -1), ("a", "x", "g", (0.2, 0.8), 1)], "a", ["g"]
        )
