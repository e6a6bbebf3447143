"""CVaR policy iteration: never worse, always between the policy given and the optimum, and
sometimes stuck.
"""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tailpath as tp
from tailpath.errors import ModelError, OptionError, PolicyError
from tests.reference import Model, cost_distribution, to_ssp
from tests.strategies import policies, proper_models, solvable_models


@settings(max_examples=15)
@given(st.data(), st.sampled_from([1.0, 0.5, 0.25, 0.05]))
def test_never_worse_and_never_better_than_the_optimum(data: st.DataObject, alpha: float) -> None:
    model: Model = data.draw(
        st.one_of(
            proper_models(dyadic=True, max_states=4), solvable_models(dyadic=True, max_states=4)
        )
    )
    given_policy = data.draw(policies(model))
    ssp = to_ssp(model)
    try:
        before = tp.evaluate(ssp, given_policy, alpha).cvar(alpha)
    except PolicyError:  # a free cycle that is never left
        return
    result = tp.improve(ssp, given_policy, alpha)
    assert result.history[0] == before
    assert all(
        later < earlier for earlier, later in zip(result.history, result.history[1:], strict=False)
    )
    assert result.costs.cvar(alpha) == result.history[-1]
    assert result.history[-1] >= tp.solve_cvar_exact(ssp, alpha).cvar(alpha) * (1 - 1e-12)
    if math.isfinite(before):
        assert result.history[-1] <= before
    else:
        assert math.isfinite(result.history[-1])
    # The value is that of the policy returned, by fractions.
    if len(result.history) > 1:
        exact = cost_distribution(model, result.policy, alpha).cvar(alpha)
        assert result.history[-1] == pytest.approx(float(exact), rel=1e-11, abs=1e-300)
    else:
        assert result.policy is given_policy


def test_the_risk_neutral_policy_of_the_gridworld_gets_close_to_the_optimum() -> None:
    ssp = tp.domains.gridworld("8x9")
    neutral = tp.solve_expected(ssp).policy
    result = tp.improve(ssp, neutral, 0.01)
    optimum = tp.solve_cvar_exact(ssp, 0.01).cvar(0.01)
    assert result.history[0] > 1.1 * optimum
    assert optimum <= result.history[-1] * (1 + 1e-12)
    assert result.history[-1] < result.history[0]


def test_it_may_end_at_a_local_optimum() -> None:
    """At alpha = 0.1, `sure` costs 10 for certain; `bold` costs 0, or 120 with probability 0.1:
    CVaR 120, VaR 0.

    For the budget 0 the mean decides, and bold's 12 loses to 10: no trap there. With 80 instead of
    120 bold's mean is 8, so bold is best for its own budget 0, CVaR 80, although sure would be 10.
    """
    rows = [("s", "sure", "g", 1, 10), ("s", "bold", "g", 0.9, 0), ("s", "bold", "g", 0.1, 80)]
    ssp = tp.SSP.from_outcomes(rows, "s", ["g"])
    stuck = tp.improve(ssp, tp.MarkovPolicy({"s": "bold"}), 0.1)
    assert stuck.history == pytest.approx((80,))
    assert tp.solve_cvar_exact(ssp, 0.1).cvar(0.1) == 10
    assert tp.improve(ssp, tp.MarkovPolicy({"s": "sure"}), 0.1).history == (10,)


def test_refusals() -> None:
    ssp = tp.SSP.from_outcomes([("s", "go", "g", 1, math.pi), ("s", "on", "g", 1, 1)], "s", ["g"])
    with pytest.raises(ModelError, match="no common unit"):
        tp.improve(ssp, tp.MarkovPolicy({"s": "go"}), 0.1)
    with pytest.raises(OptionError, match="alpha"):
        tp.improve(ssp, tp.MarkovPolicy({"s": "go"}), 0)
