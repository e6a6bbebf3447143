"""A discount where it can be exact: expected costs by a chance to end, CVaR over a bounded number
of steps; a reason elsewhere.
"""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tailpath as tp
from tailpath.certify.values import discounted_total
from tailpath.errors import OptionError
from tailpath.model.endings import ending_chance
from tests import reference
from tests.strategies import any_models


def least(model, gamma, sweeps=2000):
    """Discounted value iteration in floats, on the reference's own rows."""
    value = dict.fromkeys([*model.choices, *model.goals], 0.0)
    for _ in range(sweeps):
        value |= {
            s: min(
                sum(float(p) * (float(c) + gamma * value[t]) for t, p, c in row)
                for row in actions.values()
            )
            for s, actions in model.choices.items()
        }
    return value


@settings(max_examples=40, deadline=None)
@given(any_models(max_states=4), st.sampled_from([0.5, 0.9, 0.25]))
def test_expected_costs(model, gamma):
    ssp = reference.to_ssp(model)
    found, wanted = tp.solve_expected(ssp, gamma=gamma), least(model, gamma)
    for state in ssp.states:
        assert found.cost(state) == pytest.approx(wanted[state], rel=1e-9, abs=1e-12)
        index = ssp.state_index(state)
        assert (
            found.lower[index] <= wanted[state] * (1 + 1e-9) + 1e-12
            and found.upper[index] >= wanted[state] * (1 - 1e-9) - 1e-12
        )


@pytest.mark.parametrize("gamma", ["0.999999999", "0.99999", "0.9"])
def test_a_discount_is_the_decimal_that_was_written(gamma):
    rows = [("s", "stay", "s", 1, 1), ("t", "go", "goal", 1, 1)]
    found = tp.solve_expected(tp.SSP.from_outcomes(rows, "s", ["goal"]), gamma=float(gamma))
    low, high = found.bounds
    assert Fraction(low) <= 1 / (1 - Fraction(gamma)) <= Fraction(high) <= low * (1 + 1e-13)
    assert found.verify()
    mixed = [("s", "try", "s", 0.5, 1), ("s", "try", "goal", 0.5, 1)]
    ssp = tp.SSP.from_outcomes(mixed, "s", ["goal"])
    low, high = tp.evaluate(ssp, {"s": "try"}, 1, gamma=float(gamma)).mean_bounds
    assert Fraction(low) <= 1 / (1 - Fraction(gamma) / 2) <= Fraction(high)


def test_evaluation_takes_the_discount_as_written():
    # A loop that is left with probability 1e-9 runs for as long as the discount lets it.
    gamma, leave = Fraction("0.999999999"), Fraction("0.000000001")
    rows = [("s", "try", "s", 1 - float(leave), 1), ("s", "try", "goal", float(leave), 1)]
    ssp = tp.SSP.from_outcomes(rows, "s", ["goal"])
    chain = tp.unroll(ssp, {"s": "try"})
    found = discounted_total(chain, chain.cost, float(gamma), ending_chance(float(gamma)), 0.0)
    truth = 1 / (1 - gamma * (1 - leave))
    assert Fraction(found.lower[0]) <= truth <= Fraction(found.upper[0])


def test_the_policy_is_one_for_the_model_itself():
    ssp = tp.domains.river(rows=6, columns=4)
    found = tp.solve_expected(ssp, gamma=0.9)
    assert found is tp.solve_expected(ssp, gamma=0.9)
    assert tp.evaluate(ssp, found.policy, 0.9, gamma=0.9).mean == pytest.approx(
        found.cost(), rel=1e-9
    )
    assert tp.solve_expected(ssp).cost() > found.cost()


STAGES = tp.SSP.from_outcomes(
    [
        ("a", "wait", "b", 1, 1),
        ("a", "go", "c", 0.5, 2),
        ("a", "go", "end", 0.5, 4),
        ("b", "go", "c", 0.25, 8),
        ("b", "go", "end", 0.75, 0),
        ("c", "safe", "end", 1, 6),
        ("c", "bold", "end", 0.5, 0),
        ("c", "bold", "end", 0.5, 16),
    ],
    "a",
    ["end"],
)


def least_excess(state, step, budget, gamma):
    if state == "end":
        return max(-budget, Fraction(0))
    ways = []
    index = STAGES.state_index(state)
    for k in range(STAGES.state_choices[index], STAGES.state_choices[index + 1]):
        span = range(STAGES.choice_outcomes[k], STAGES.choice_outcomes[k + 1])
        ways.append(
            sum(
                Fraction(float(STAGES.outcome_probability[o]))
                * least_excess(
                    STAGES.states[STAGES.outcome_target[o]],
                    step + 1,
                    budget - Fraction(float(STAGES.outcome_cost[o])) * gamma**step,
                    gamma,
                )
                for o in span
            )
        )
    return min(ways)


@pytest.mark.parametrize("alpha", [0.5, 0.2, 0.05])
def test_cvar_over_a_bounded_number_of_steps(alpha):
    gamma = Fraction(1, 2)
    costs = {
        sum((Fraction(c) * gamma**t for t, c in enumerate(run)), Fraction(0)) for run in runs()
    }
    wanted = min(w + least_excess("a", 0, w, gamma) / Fraction(alpha) for w in costs)
    for discount in (gamma, 0.5, "1/2"):
        assert tp.solve_cvar_exact(STAGES, alpha, gamma=discount).cvar(alpha) == pytest.approx(
            float(wanted), rel=1e-12
        )
    limited = tp.within(STAGES, 3, gamma=gamma)
    solution = tp.solve_cvar_exact(limited, alpha)
    assert tp.evaluate(limited, solution, alpha).cvar(alpha) == pytest.approx(
        float(wanted), rel=1e-12
    )
    plain = tp.solve_expected(STAGES).policy.decisions
    assert tp.evaluate(limited, plain, alpha).cvar(alpha) == pytest.approx(
        tp.evaluate(STAGES, plain, alpha, gamma=0.5).cvar(alpha), rel=1e-12
    )


def runs():
    found, waiting = [], [("a", ())]
    while waiting:
        state, paid = waiting.pop()
        if state == "end":
            found.append(paid)
            continue
        index = STAGES.state_index(state)
        for k in range(STAGES.state_choices[index], STAGES.state_choices[index + 1]):
            for o in range(STAGES.choice_outcomes[k], STAGES.choice_outcomes[k + 1]):
                waiting.append(
                    (
                        STAGES.states[STAGES.outcome_target[o]],
                        (*paid, float(STAGES.outcome_cost[o])),
                    )
                )
    return found


def test_why_not_elsewhere():
    with pytest.raises(
        OptionError,
        match=(
            r"^discounted costs .* limit the steps, within\(ssp, n,"
            r" gamma=gamma\)"
        ),
    ):
        tp.solve_cvar_exact(tp.domains.river(rows=5, columns=5), 0.1, gamma=0.9)
    for gamma in (0, 1.5, "x", np.nan):
        with pytest.raises(OptionError, match=r"^gamma must lie in \(0, 1\], not "):
            tp.within(STAGES, 3, gamma=gamma)
