"""The exact optimum on random small models, against the recursion in exact rational arithmetic and
against every policy there is.

Every test runs on the full table, which small models have, on the one without budgets that are sure
to be exceeded, which large ones have, and on the table of pairs.
"""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tailpath.model.border import prepare
from tailpath.solvers.exact.solver import least_weighted, solve_prepared
from tests.reference import Model, State, cost_distribution, to_ssp
from tests.solvers.exact.fractions_table import ExactTable
from tests.solvers.exact.listing import acyclic_models, all_distributions, cvar_by_sorting
from tests.strategies import proper_models, solvable_models

TABLES = {
    "full": {"pairs": False, "skip": False},
    "skipping": {"pairs": False, "skip": True},
    "pairs": {"pairs": True},
}


@pytest.fixture(params=list(TABLES), scope="module")
def table(request: pytest.FixtureRequest) -> dict[str, bool]:
    return TABLES[request.param]


ZERO = Fraction(0)
ALPHAS = [1.0, 0.75, 0.5, 0.25, 0.125, 0.05, 0.01]


def exact_optimum(
    model: Model, unit: Fraction, alpha: float, weight: Fraction = Fraction(1), most: int = 60
) -> tuple[Fraction, Fraction, Fraction]:
    """(objective, least best budget, least mean of a best policy) by trying every budget that can
    matter.
    """
    tail = Fraction(alpha)
    table = ExactTable(model, weight / tail, 1 - weight)
    start = model.start
    found = [(table.price_of(start, ZERO), table.neutral[start], ZERO)]
    floor = (1 - weight) * table.neutral[start]
    for step in itertools.count(1):
        w = step * unit
        if weight * w + floor > min(found)[0]:
            break
        assume(step <= most)
        if start not in model.goals:
            table.raise_to(w)
        found.append((weight * w + table.price_of(start, w), table.mean_of(start, w), w))
    best = min(found)[0]
    return (
        best,
        min(w for value, _, w in found if value == best),
        min(mean for value, mean, _ in found if value == best),
    )


@st.composite
def free_models(draw: st.DrawFn) -> Model:
    """Most moves are free and many are certain, so that sets which can be walked for ever at no
    cost are common; every state has an exit.
    """
    names = [f"s{i}" for i in range(draw(st.integers(2, 4)))]
    cost = st.sampled_from([0, 0, 0, 1, 2]).map(Fraction)
    choices: dict[State, dict[str, list[tuple[State, Fraction, Fraction]]]] = {}
    for state in names:
        p = Fraction(draw(st.integers(1, 7)), 8)
        choices[state] = {
            "exit": [
                ("g", p, draw(st.integers(0, 6).map(Fraction))),
                (draw(st.sampled_from(names)), 1 - p, draw(cost)),
            ]
        }
        for k in range(draw(st.integers(1, 2))):
            choices[state][f"move{k}"] = [(draw(st.sampled_from(names)), Fraction(1), ZERO)]
        if draw(st.booleans()):
            choices[state]["drift"] = [
                (draw(st.sampled_from(names)), Fraction(1, 2), draw(cost)) for _ in range(2)
            ]
    return Model(choices, names[0], frozenset("g"))


@settings(max_examples=200)
@given(
    st.one_of(proper_models(dyadic=True), solvable_models(dyadic=True), free_models()),
    st.sampled_from(ALPHAS),
)
def test_the_optimum_agrees_with_fractions(
    table: dict[str, bool], model: Model, alpha: float
) -> None:
    ssp = to_ssp(model)
    objective, budget, _ = exact_optimum(model, ssp.cost_unit, alpha)
    best = solve_prepared(prepare(ssp), alpha, **table)
    low, high = best.bounds(alpha)
    assert best.cvar(alpha) == pytest.approx(float(objective), rel=1e-12, abs=1e-300)
    assert Fraction(low) <= objective <= Fraction(high)
    assert high - low <= 1e-9 * high + 1e-200
    if budget > 0:
        assert best.var(alpha) == float(budget)
    # The policy delivers what was promised, by a distribution worked out in fractions.
    delivered = cost_distribution(model, best.policy(alpha), Fraction(alpha))
    assert float(delivered.cvar(Fraction(alpha))) == pytest.approx(
        float(objective), rel=1e-11, abs=1e-300
    )
    assert float(delivered.var(Fraction(alpha))) == best.var(alpha)


@settings(max_examples=80)
@given(
    st.one_of(solvable_models(max_states=4, dyadic=True), free_models()),
    st.sampled_from([0.5, 0.25, 0.05]),
)
def test_lexicographic_has_the_least_mean_of_all_optimal_policies(
    table: dict[str, bool], model: Model, alpha: float
) -> None:
    ssp = to_ssp(model)
    objective, _, mean = exact_optimum(model, ssp.cost_unit, alpha, most=40)
    best = solve_prepared(prepare(ssp), alpha, **table, lexicographic=True)
    delivered = cost_distribution(model, best.policy(alpha), Fraction(alpha))
    assert float(delivered.cvar(Fraction(alpha))) == pytest.approx(
        float(objective), rel=1e-11, abs=1e-300
    )
    assert float(delivered.mean) == pytest.approx(float(mean), rel=1e-11, abs=1e-300)
    assert best.mean(alpha) == pytest.approx(float(mean), rel=1e-11, abs=1e-300)
    plain = solve_prepared(prepare(ssp), alpha, **table)
    assert best.mean(alpha) <= plain.mean(alpha) * (1 + 1e-12)


@settings(max_examples=60)
@given(
    st.one_of(solvable_models(max_states=4, dyadic=True), free_models()),
    st.sampled_from([0.5, 0.25, 0.05]),
    st.sampled_from([Fraction(k, 8) for k in range(1, 8)]),
)
def test_weighted_sums_agree_with_fractions(
    table: dict[str, bool], model: Model, alpha: float, weight: Fraction
) -> None:
    ssp = to_ssp(model)
    objective, _, _ = exact_optimum(model, ssp.cost_unit, alpha, weight, most=40)
    value, bounds, policy = least_weighted(ssp, alpha, float(weight), **table)
    low, high = bounds()
    assert value == pytest.approx(float(objective), rel=1e-12, abs=1e-300)
    assert Fraction(low) <= objective <= Fraction(high)
    delivered = cost_distribution(model, policy, Fraction(alpha))
    assert (1 - float(weight)) * float(delivered.mean) + float(weight) * float(
        delivered.cvar(Fraction(alpha))
    ) == pytest.approx(value, rel=1e-11, abs=1e-300)


# ---------------------------------------------------------------------- brute force


@settings(max_examples=40)
@given(acyclic_models(), st.sampled_from([0.75, 0.5, 0.25, 0.0625]))
def test_no_history_dependent_policy_does_better(
    table: dict[str, bool], model: Model, alpha: float
) -> None:
    least = min(cvar_by_sorting(d, Fraction(alpha)) for d in all_distributions(model, model.start))
    assert solve_prepared(prepare(to_ssp(model)), alpha, **table).cvar(alpha) == pytest.approx(
        float(least), rel=1e-13, abs=1e-300
    )


@settings(max_examples=25)
@given(
    acyclic_models(),
    st.sampled_from([0.5, 0.25]),
    st.sampled_from([Fraction(1, 100), Fraction(1, 4), Fraction(5, 8)]),
)
def test_no_policy_has_a_better_weighted_sum(
    table: dict[str, bool], model: Model, alpha: float, weight: Any
) -> None:
    def score(d: frozenset[tuple[Fraction, Fraction]]) -> Fraction:
        return (1 - weight) * sum(z * p for z, p in d) + weight * cvar_by_sorting(
            d, Fraction(alpha)
        )

    least = min(score(d) for d in all_distributions(model, model.start))
    value, _, _ = least_weighted(to_ssp(model), alpha, float(weight), **table)
    assert value == pytest.approx(float(least), rel=1e-13, abs=1e-300)


@settings(max_examples=40)
@given(
    acyclic_models(),
    st.sampled_from([0.5, 0.25]),
    st.sampled_from([Fraction(3, 2), Fraction(7, 10), Fraction(1, 10), Fraction(3)]),
)
def test_a_grid_brackets_the_optimum(
    table: dict[str, bool], model: Model, alpha: float, delta: Fraction
) -> None:
    ssp = to_ssp(model)
    exact = solve_prepared(prepare(ssp), alpha, **table).cvar(alpha)
    coarse = solve_prepared(prepare(ssp, delta=delta), alpha, **table)
    low, high = coarse.bounds(alpha)
    assert low <= exact * (1 + 1e-12) and exact * (1 - 1e-12) <= high
    assert (
        high - low <= 2 * 3 * float(delta) + 1e-9
    )  # three steps, each rounded by less than delta either way
    delivered = cost_distribution(model, coarse.policy(alpha), Fraction(alpha)).cvar(
        Fraction(alpha)
    )
    assert exact * (1 - 1e-12) <= float(delivered) <= high
