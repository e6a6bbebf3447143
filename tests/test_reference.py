"""The reference must be right before it may judge: hand-made answers, closed forms, and every
policy tried one by one.
"""

import math
from fractions import Fraction as F
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailpath.policies.kinds import HistoryPolicy, MarkovPolicy
from tests import textbook
from tests.reference import (
    Model,
    cost_distribution,
    expected_cost,
    expected_optimum,
    from_ssp,
    sure_choices,
    to_ssp,
    unreached,
)
from tests.strategies import any_models, memory_policies, policies, proper_models, solvable_models


def enumerated_optimum(model: Model):
    """The least expected cost from the start over all deterministic Markov policies."""
    states = list(model.choices)
    return min(
        expected_cost(model, MarkovPolicy(dict(zip(states, actions, strict=True))))
        for actions in product(*(list(model.choices[s]) for s in states))
    )


@given(any_models(max_states=3))
def test_policy_iteration_finds_the_best_of_all_policies(model):
    assert expected_optimum(model)[model.start] == enumerated_optimum(model)


@given(solvable_models())
def test_solvable_models_are_solvable(model):
    assert model.start in sure_choices(model)


@given(proper_models(), st.data())
def test_no_policy_of_a_proper_model_stays_away(model, data):
    assert unreached(model, data.draw(policies(model))) == 0


@given(any_models(dyadic=True))
def test_dyadic_models_survive_the_way_to_floats_and_back(model):
    merged = from_ssp(to_ssp(model))
    assert (
        sum(
            merged.choices[model.start]["a0"][k][1]
            for k in range(len(merged.choices[model.start]["a0"]))
        )
        == 1
    )
    assert expected_optimum(merged)[model.start] == expected_optimum(model)[model.start]


@given(any_models(max_states=3), st.data())
def test_head_and_open_mass_add_up(model, data):
    policy = data.draw(memory_policies(model))
    lost = unreached(model, policy)
    if lost == 1:
        assert cost_distribution(model, policy, 1).var(1) == math.inf
        return
    costs = cost_distribution(model, policy, lost + (1 - lost) / 8)
    still_arriving = 1 - lost - sum(p for _, p in costs.head)
    assert 0 <= still_arriving <= (1 - lost) / 8
    if lost == 0:
        assert still_arriving == sum(p for _, _, p in costs.open)
        assert costs.mean == sum(z * p for z, p in costs.head) + sum(
            (z + rest) * p for z, rest, p in costs.open
        )
        assert costs.cvar(1) == costs.mean


@pytest.mark.parametrize(
    "name",
    [
        "geometric",
        "negative-binomial",
        "deterministic-chain",
        "lottery",
        "gamblers-ruin",
        "coupon-collector",
    ],
)
@pytest.mark.parametrize("alpha", [1, 0.5, 0.05, 2.0**-20])
def test_closed_forms(name, alpha):
    problem = textbook.PROBLEMS[name]()
    costs = cost_distribution(from_ssp(problem.ssp), problem.policy, alpha)
    assert float(costs.mean) == problem.mean
    assert float(costs.var(alpha)) == problem.var(alpha)
    assert float(costs.cvar(alpha)) == problem.cvar(alpha)


def test_a_circle_of_free_outcomes_is_followed_to_its_end():
    half = F(1, 2)
    model = Model(
        {
            "a": {"go": [("b", F(1), F(0))]},
            "b": {"go": [("a", half, F(0)), ("end", half / 2, F(3)), ("end", half / 2, F(0))]},
        },
        "a",
        frozenset({"end"}),
    )
    costs = cost_distribution(model, MarkovPolicy({"a": "go", "b": "go"}), 0)
    assert costs.head == ((0, half), (3, half))


def test_a_free_circle_without_a_way_out_never_arrives():
    model = Model(
        {
            "a": {"go": [("a", F(1, 3), F(1)), ("b", F(1, 3), F(0)), ("end", F(1, 3), F(2))]},
            "b": {"go": [("b", F(1), F(0))]},
        },
        "a",
        frozenset({"end"}),
    )
    policy = MarkovPolicy({"a": "go", "b": "go"})
    assert unreached(model, policy) == F(1, 2)
    assert expected_cost(model, policy) == math.inf
    assert expected_optimum(model) == {"a": math.inf, "b": math.inf, "end": 0}
    costs = cost_distribution(model, policy, F(3, 5))
    assert (costs.var(F(2, 3)), costs.var(F(3, 5)), costs.var(F(2, 5)), costs.cvar(F(3, 5))) == (
        2,
        3,
        math.inf,
        math.inf,
    )
    with pytest.raises(ValueError, match="never arrives"):
        cost_distribution(model, policy, F(1, 4))


def test_unbounded_memory_is_refused():
    model = from_ssp(textbook.geometric().ssp)
    with pytest.raises(ValueError, match="remembers too much"):
        cost_distribution(model, HistoryPolicy(lambda history: "try"), 0.5)
