"""Policies on costs of any sign: against rationals, and what is refused."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tailpath as tp
from tailpath.errors import LimitExceededError, ModelError, OptionError, PolicyError
from tests.reference import cost_distribution, to_ssp, unreached
from tests.signed import gambler, signed_models, trader
from tests.strategies import (
    any_models,
    deterministic_policies,
    proper_models,
    randomised_policies,
)

F = Fraction
ALPHAS = (1.0, 0.5, 0.05)


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_every_policy_costs_what_it_costs_in_fractions(data: st.DataObject) -> None:
    plain, model, by = data.draw(signed_models(proper_models(dyadic=True)))
    policy = data.draw(st.one_of(deterministic_policies(model), randomised_policies(model)))
    ssp, truth = to_ssp(model), cost_distribution(plain, policy, F(1, 100))
    costs = tp.evaluate(ssp, policy, 0.01)
    known = [(z + by, p) for z, p in truth.head][: len(costs.costs)]
    assert costs.costs.tolist() == [float(z) for z, _ in known]
    assert costs.probabilities.tolist() == pytest.approx([float(p) for _, p in known], rel=1e-12)
    assert costs.mean_bounds[0] <= truth.mean + by <= costs.mean_bounds[1]
    for alpha in ALPHAS:
        low, high = costs.bounds(alpha)
        assert low <= truth.cvar(F(alpha)) + by <= high and low <= costs.cvar(alpha) <= high
        assert high - low <= 1e-8 * (1 + abs(high) + abs(float(by)))
        assert costs.var(alpha) == float(truth.var(F(alpha)) + by)
    middle = known[len(known) // 2][0]
    assert costs.cdf(float(middle)) == pytest.approx(float(truth.cdf(middle - by)), rel=1e-12)
    late, (low, high) = float(truth.tail(middle - by)), costs.bounds(tp.Late(float(middle)))
    assert (
        low <= late + 1e-15
        and late - 1e-15 <= high
        and tp.Late(float(middle))(costs) == pytest.approx(late, abs=1e-12)
    )
    unshifted = tp.evaluate(to_ssp(plain), policy, 0.01)
    assert costs.std == pytest.approx(unshifted.std, rel=1e-9, abs=1e-9)
    chain = tp.unroll(ssp, policy)
    if chain.n:
        assert (
            chain.expected_cost.lower[chain.start]
            <= truth.mean + by
            <= chain.expected_cost.upper[chain.start]
        )


@settings(max_examples=15, deadline=None)
@given(st.data())
def test_costs_are_verified_simulated_and_told(data: st.DataObject) -> None:
    plain, model, by = data.draw(signed_models(proper_models(max_states=3, dyadic=True)))
    policy = data.draw(st.one_of(deterministic_policies(model), randomised_policies(model)))
    ssp = to_ssp(model)
    costs = tp.evaluate(ssp, policy, 0.1)
    costs.verify()
    drawn, unshifted = tp.simulate(ssp, policy, 50, 7), tp.simulate(to_ssp(plain), policy, 50, 7)
    np.testing.assert_allclose(drawn, unshifted + float(by), rtol=1e-12, atol=1e-12)
    run = tp.trace(ssp, policy, 3)
    assert run.cost == pytest.approx(sum(step.cost for step in run), abs=1e-9)
    worst, before = tp.worst_runs(ssp, policy, 0.5, 3), tp.worst_runs(to_ssp(plain), policy, 0.5, 3)
    assert worst.var == pytest.approx(before.var + float(by), abs=1e-9)
    assert worst.chance == pytest.approx(before.chance, rel=1e-9, abs=1e-12)
    assert worst.excess == pytest.approx(before.excess, rel=1e-9, abs=1e-9)
    assert math.fsum(row.share for row in worst.blame) == pytest.approx(
        worst.excess, rel=1e-9, abs=1e-9
    )
    for one in worst:
        assert one.cost > worst.var and one.cost == pytest.approx(
            sum(step.cost for step in one), abs=1e-9
        )


def test_histories_are_told_the_costs_as_given() -> None:
    ssp = trader()

    def action(state: Any) -> str:
        return "sell" if state[1] > 0 or state[0] == 2 else "hold"

    def patient(history: tuple[Any, ...]) -> str:
        assert set(history[2::3]) <= {0.1}
        return action(history[-1])

    seen: set[float] = set()
    counting = tp.MemoryPolicy(
        0.0,
        lambda state, paid: action(state),
        lambda paid, s, a, cost, t: seen.add(cost) or paid + cost,
    )
    at_once = tp.evaluate(
        ssp, {state: action(state) for state in ssp.states if state != "sold"}, 0.1
    )
    for policy in (tp.HistoryPolicy(patient), counting):
        costs = tp.evaluate(ssp, policy, 0.1)
        assert costs.cvar(0.1) == pytest.approx(
            at_once.cvar(0.1), rel=1e-12
        ) and costs.mean == pytest.approx(at_once.mean, rel=1e-12)
        assert set(tp.simulate(ssp, policy, 50, 1)) <= set(tp.evaluate(ssp, policy, 1e-9).costs)
    assert seen == {0.1}


@settings(max_examples=30, deadline=None)
@given(st.data())
def test_what_arrives_costs_what_it_costs(data: st.DataObject) -> None:
    """Where the start itself may be trapped: the head and the probability of never arriving."""
    plain, model, by = data.draw(signed_models(any_models(dyadic=True)))
    policy = data.draw(deterministic_policies(model))
    missed = unreached(plain, policy)
    alpha = float(missed) + 0.0625
    if alpha > 1:
        return
    try:
        costs = tp.evaluate(to_ssp(model), policy, alpha)
    except PolicyError:  # a trap that costs nothing has no total cost
        return
    truth = cost_distribution(plain, policy, missed + F(1, 20))
    assert costs.unreached == pytest.approx(float(missed), rel=1e-9, abs=1e-300)
    assert costs.var(1.0) == float(truth.var(1) + by) and costs.var(alpha) == float(
        truth.var(F(alpha)) + by
    )
    if missed:
        assert costs.mean == costs.cvar(1.0) == math.inf


def test_goals_that_may_be_missed() -> None:
    rows = [
        ("a", "risk", "g", 0.5, -10),
        ("a", "risk", "lost", 0.5, -20),
        ("lost", "wait", "lost", 1, 1),
        ("a", "safe", "g", 1, -2),
    ]
    ssp = tp.SSP.from_outcomes(rows, "a", ["g"])
    assert tp.solve_expected(ssp).cost() == -2 and tp.solve_expected(ssp).value.tolist() == [
        -2,
        0,
        math.inf,
    ]
    assert tp.solve(ssp, "late(-10)").value == 0.5 and tp.solve(ssp, "late(-2)").value == 0
    ended = tp.give_up(ssp, -3)
    assert tp.solve_expected(ended).cost() == 0.5 * -10 + 0.5 * (-20 - 3)
    assert tp.solve_expected(tp.within(ssp, 1, otherwise=-7)).cost() == 0.5 * -10 + 0.5 * -27
    arriving = tp.given_arrival(
        tp.SSP.from_outcomes([row for row in rows if row[1] != "safe"], "a", ["g"])
    )
    assert tp.solve_expected(arriving).cost() == -10
    with pytest.raises(LimitExceededError) as caught:
        tp.evaluate(gambler(), tp.solve_expected(gambler()), 1e-9, max_nodes=3)
    assert caught.value.bounds[0] <= 1 <= caught.value.bounds[1]


def test_what_needs_costs_of_0_or_more_says_so() -> None:
    ssp = gambler()
    chosen = tp.solve_expected(ssp)
    refused: list[tuple[Callable[[], Any], str]] = [
        (lambda: tp.evaluate(ssp, chosen, 0.1, gamma=0.9), "a discount needs costs of 0 or more"),
        (
            lambda: tp.solve_cvar_quantile(ssp, gamma=0.9),
            "a planner with a discount needs costs of 0 or more",
        ),
        (lambda: tp.compare(ssp, methods=["nested"]), "needs costs of 0 or more"),
    ]
    for verb, said in refused:
        with pytest.raises((ModelError, OptionError), match=said):
            verb()
