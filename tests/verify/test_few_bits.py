"""The checker with 4 bits instead of hundreds: every rounding is then as large as a digit that
people read, and one in the wrong direction excludes the truth.
"""

import math
from fractions import Fraction

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tailpath.model.ssp import SSP
from tailpath.verify import chain, distribution, excess, intervals, optimum
from tests import reference, strategies

BITS = 4


@pytest.fixture
def few_bits(monkeypatch):
    one = 1 << BITS
    for module, names in (
        (chain, {"BITS": BITS, "ONE": one, "SHARE": BITS}),
        (distribution, {"BITS": BITS, "TOTAL_BITS": BITS, "FINE": 2 * BITS}),
        (excess, {"ONE": one, "NEVER": one << 4000}),
        (optimum, {"ONE": one, "BETTER": 2}),
        (intervals, {"ONE": one}),
    ):
        for name, value in names.items():
            monkeypatch.setattr(module, name, value)


def holds(low, truth, high):
    return low <= truth <= high


settled = settings(
    max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None
)


@settled
@given(st.data(), st.sampled_from([Fraction(1, 2), Fraction(1, 10)]))
def test_a_distribution(few_bits, data, alpha):
    """Masses, what lies beyond, the mean and CVaR, for costs up to the VaR."""
    ssp = reference.to_ssp(data.draw(strategies.proper_models(max_states=4, dyadic=True)))
    model = reference.from_ssp(ssp)
    policy = data.draw(strategies.policies(model))
    exact = reference.cost_distribution(model, policy, alpha)
    found = distribution.enclose(ssp, policy, Fraction(exact.var(alpha)))
    scale = 1 << BITS
    for level, (low, high) in found.head.items():
        assert holds(low, dict(exact.head).get(level * found.unit, 0) * scale, high)
    beyond = exact.tail(found.last * found.unit)
    assert holds(found.tail[0], beyond * scale, found.tail[1])
    low, high = found.total(found.mean)
    assert holds(low, reference.expected_cost(model, policy), high)
    low, high = found.cvar(alpha)
    assert holds(low, exact.cvar(alpha), high)


@settled
@given(st.data())
def test_what_never_arrives(few_bits, data):
    ssp = reference.to_ssp(data.draw(strategies.any_models(max_states=4, dyadic=True)))
    model = reference.from_ssp(ssp)
    policy = data.draw(strategies.policies(model))
    low, high = distribution.enclose(ssp, policy, Fraction(0)).missed
    assert holds(low, reference.unreached(model, policy) * (1 << BITS), high)


@settled
@given(st.data(), st.booleans())
def test_totals_in_rationals_and_by_inequalities(few_bits, monkeypatch, data, guessed):
    """Both ways to enclose an expected total."""
    if not guessed:
        monkeypatch.setattr(chain, "_guessed", lambda rows, rates: None)
    ssp = reference.to_ssp(data.draw(strategies.proper_models(max_states=4, dyadic=True)))
    model = reference.from_ssp(ssp)
    policy = data.draw(strategies.deterministic_policies(model))
    rows = chain.exact_chain(ssp, policy)
    means = reference.chain_means(reference.unroll(model, policy))
    totals = chain.enclosed_totals(rows.rows, [chain.rate(row) for row in rows.rows])
    low, high = totals[rows.start]
    truth = next(mean for (state, _), mean in means.items() if state == ssp.start)
    assert holds(low, truth / rows.unit * (1 << BITS), high)


def least_excess(model, to_go, state, left):
    """The least E[(Z - w)+] in fractions, where every outcome costs something."""
    if state in model.goals:
        return max(-left, Fraction(0))
    if left <= 0:
        return to_go[state] - left
    return min(
        sum(p * least_excess(model, to_go, to, left - cost) for to, p, cost in outcomes)
        for outcomes in model.choices[state].values()
    )


@settings(settled, max_examples=400)
@given(st.data(), st.integers(0, 3))
def test_bounds_that_follow_from_any_guess(few_bits, monkeypatch, data, share):
    """Whatever is guessed, of one node that is left with probability 1 / k, the bounds that its
    inequalities prove hold: the total is k times the rate.
    """
    monkeypatch.setattr(chain, "SHARE", share)
    k, rate = data.draw(st.integers(1, 5)), Fraction(data.draw(st.integers(1, 20)), 7)
    rows = [(k, [(0, k - 1, 0), (chain.GOAL, 1, 0)])]
    value, steps = data.draw(st.integers(0, 400)), data.draw(st.integers(1, 40))
    found = chain._proved(rows, [rate], [value], [steps])
    if found is not None:
        low, high = found[0]
        assert holds(low, k * rate * (1 << BITS), high)


def test_a_policy_that_is_not_the_best_proves_no_lower_bound(few_bits):
    """Of ways that cost 3 and 2 the first is said to be the best; the least is 2 all the same."""
    ssp = SSP.from_outcomes([("s", "a", "g", 1, 3), ("s", "b", "g", 1, 2)], "s", ["g"])
    least, most, _ = optimum.risk_neutral_bounds(ssp, [0, -1])
    assert holds(least[0], 2 << BITS, most[0])


@settled
@given(st.data(), st.booleans())
def test_the_tables_of_the_least_excess(few_bits, monkeypatch, data, enclosed):
    """What is least from the start lies below the truth, and the least expected cost between its
    bounds.
    """
    ssp = reference.to_ssp(
        data.draw(strategies.proper_models(max_states=3, dyadic=True, zero_costs=False))
    )
    model = reference.from_ssp(ssp)
    to_go = reference.expected_optimum(model)
    if not enclosed:
        monkeypatch.setattr(optimum, "_lowered", lambda rows, options: None)
    # Any policy may be said to be the best: what is proved holds all the same.
    decisions = data.draw(strategies.deterministic_policies(model)).decisions
    chosen = [
        ssp.choice_index(state, decisions[name]) if name in decisions else -1
        for state, name in enumerate(ssp.states)
    ]
    least, most, unit = optimum.risk_neutral_bounds(ssp, chosen)
    for state, (low, high) in enumerate(zip(least, most)):
        assert holds(low, to_go[ssp.states[state]] / unit * (1 << BITS), high)
    rows = [
        (excess.Choice(whole, [w for _, w, _ in row], [], 0), [(to, c) for to, _, c in row])
        for whole, row in chain.rows_of(ssp)[0]
    ]
    tables = excess.Below(ssp, rows, least)
    last = min(6, math.ceil(to_go[ssp.start] / unit))
    for level, (value,) in tables.table((excess.WHOLE,), tables.budgets(last)[1]):
        truth = least_excess(model, to_go, ssp.start, (level + 1) * unit)
        assert value <= truth / unit * (1 << BITS)
