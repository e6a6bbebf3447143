"""Every kind of policy by every engine: the same distribution, also after a way through a file."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tailpath as tp
from tests import reference, strategies, textbook

ALPHAS = (1e-3, 0.05, 1.0)
SMALL = tp.SSP.from_outcomes(
    [
        ("s", "a", "s", 0.25, 1),
        ("s", "a", "t", 0.75, 2),
        ("s", "b", "g", 1, 9),
        ("t", "a", "g", 0.5, 0.5),
        ("t", "a", "s", 0.5, 0),
    ],
    "s",
    ["g"],
)
MODELS = {
    "gridworld": tp.domains.gridworld("5x5"),
    "river": tp.domains.river(rows=10, columns=3),
    "counter-example": textbook.counter_example().ssp,
    "free steps": tp.SSP.from_outcomes(
        [
            ("s", "risky", "t", 0.5, 0),
            ("s", "risky", "u", 0.5, 3),
            ("s", "safe", "u", 1, 4),
            ("t", "on", "g", 0.75, 0),
            ("t", "on", "s", 0.25, 7),
            ("u", "on", "t", 0.5, 0),
            ("u", "on", "g", 0.5, 1),
        ],
        "s",
        ["g"],
    ),
}


def budget_policies():
    for name, ssp in MODELS.items():
        best = tp.solve_cvar_exact(ssp, min(ALPHAS), lexicographic=True)
        for alpha in ALPHAS:
            yield pytest.param(ssp, best.policy(alpha), id=f"budget, {name}, {alpha}")


def atom_policies():
    for name in ("gridworld", "river", "counter-example"):
        plan = tp.solve_cvar_quantile(MODELS[name], tp.log_atoms(min(ALPHAS) / 2, 12))
        for alpha in ALPHAS:
            yield pytest.param(MODELS[name], plan.policy(alpha), id=f"atoms, {name}, {alpha}")


def assert_same(one, two, rel=1e-12):
    assert two.costs.tolist() == one.costs.tolist()
    assert two.probabilities == pytest.approx(one.probabilities, rel=rel, abs=0)
    assert two.mean == pytest.approx(one.mean, rel=rel)
    assert two.std == pytest.approx(one.std, rel=1e-9, abs=1e-9 * one.mean)
    assert two.unreached == one.unreached
    for alpha in (alpha for alpha in ALPHAS if alpha >= one.alpha):
        assert two.var(alpha) == one.var(alpha)
        assert two.cvar(alpha) == pytest.approx(one.cvar(alpha), rel=rel)
        assert max(one.bounds(alpha)[0], two.bounds(alpha)[0]) <= min(
            one.bounds(alpha)[1], two.bounds(alpha)[1]
        )


def up_to(found, cost):
    """The head up to a cost, for engines that go further than they need."""
    inside = found.costs <= cost
    return found.costs[inside].tolist(), found.probabilities[inside]


@pytest.mark.parametrize(("ssp", "policy"), [*budget_policies(), *atom_policies()])
def test_engines_agree_on_the_policies_of_planners(ssp, policy):
    lattice, queue = (
        tp.evaluate(ssp, policy, min(ALPHAS), engine=engine) for engine in ("lattice", "queue")
    )
    functions = tp.MemoryPolicy(policy.start, policy.action, policy.remember)
    product = tp.evaluate(ssp, functions, min(ALPHAS))
    assert_same(queue, product)
    # The short cut for budgets follows the budget to its end, which may lie beyond VaR.
    costs, probabilities = up_to(lattice, product.costs[-1])
    assert costs == product.costs.tolist()
    assert probabilities == pytest.approx(product.probabilities, rel=1e-12, abs=0)
    assert lattice.mean == pytest.approx(product.mean, rel=1e-12)
    assert lattice.std == pytest.approx(product.std, rel=1e-9)
    for alpha in ALPHAS:
        assert lattice.var(alpha) == product.var(alpha)
        assert lattice.cvar(alpha) == pytest.approx(product.cvar(alpha), rel=1e-12)
        assert lattice.bounds(alpha)[0] <= product.cvar(alpha) * (1 + 1e-12)
        assert lattice.bounds(alpha)[1] >= product.cvar(alpha) * (1 - 1e-12)


@given(strategies.solvable_models(), st.sampled_from([0.5, 0.1, 0.01]))
def test_budgets_on_random_models(model, alpha):
    """Followed level by level, on the product by the compiled engine, on the product in plain
    Python: run for run and digit for digit.
    """
    ssp = reference.to_ssp(model)
    policy = tp.solve_cvar_exact(ssp, alpha).policy(alpha)
    product = tp.MemoryPolicy(policy.start, policy.action, policy.remember)
    short, long, plain = (
        tp.evaluate(ssp, policy, alpha),
        tp.evaluate(ssp, product, alpha),
        tp.evaluate(ssp, product, alpha, engine="queue"),
    )
    assert_same(long, plain)
    assert short.var(alpha) == long.var(alpha)
    assert short.cvar(alpha) == pytest.approx(long.cvar(alpha), rel=1e-12)
    assert short.mean == pytest.approx(long.mean, rel=1e-12)
    assert short.std == pytest.approx(long.std, rel=1e-9, abs=1e-9 * long.mean)
    assert np.array_equal(tp.simulate(ssp, policy, 50, 3), tp.simulate(ssp, product, 50, 3))


@settings(max_examples=40)
@given(strategies.proper_models(max_states=4), st.sampled_from([0.5, 0.05]))
def test_atoms_on_random_models(model, alpha):
    ssp = reference.to_ssp(model)
    policy = tp.solve_cvar_quantile(ssp, tp.log_atoms(0.01, 4)).policy(alpha)
    exact = float(reference.cost_distribution(model, policy, alpha).cvar(alpha))
    for engine in ("lattice", "queue"):
        assert tp.evaluate(ssp, policy, alpha, engine=engine).cvar(alpha) == pytest.approx(
            exact, rel=1e-10
        )


@pytest.mark.parametrize("name", MODELS)
def test_the_optimum_is_what_its_policy_delivers(name):
    ssp = MODELS[name]
    best = tp.solve_cvar_exact(ssp, min(ALPHAS))
    for alpha in ALPHAS:
        found = tp.evaluate(ssp, best.policy(alpha), alpha)
        assert found.cvar(alpha) == pytest.approx(best.cvar(alpha), rel=1e-10)
        assert max(found.bounds(alpha)[0], best.bounds(alpha)[0]) <= min(
            found.bounds(alpha)[1], best.bounds(alpha)[1]
        )


POLICIES = {
    "markov": (SMALL, tp.MarkovPolicy({"s": "a", "t": "a"})),
    "randomised": (SMALL, tp.MarkovPolicy({"s": {"a": 0.7, "b": 0.3}, "t": "a"})),
    "memory": (
        SMALL,
        tp.MemoryPolicy(
            (0, "fresh"),
            {
                ("s", (0, "fresh")): "a",
                ("s", "tired"): {"a": 0.5, "b": 0.5},
                ("t", (0, "fresh")): "a",
                ("t", "tired"): "a",
            },
            {
                (memory, *step): after
                for memory in ((0, "fresh"), "tired")
                for step, after in {
                    ("s", "a", 1.0, "s"): "tired",
                    ("s", "a", 2.0, "t"): memory,
                    ("t", "a", 0.0, "s"): "tired",
                }.items()
            },
        ),
    ),
    "atoms": (
        MODELS["river"],
        tp.solve_cvar_quantile(MODELS["river"], tp.log_atoms(1e-3, 8)).policy(0.05),
    ),
    "budget": (MODELS["river"], tp.solve_cvar_exact(MODELS["river"], 1e-3).policy(0.01)),
    "solved": (MODELS["gridworld"], tp.solve_expected(MODELS["gridworld"]).policy),
}


@pytest.mark.parametrize("suffix", [".json", ".npz"])
@pytest.mark.parametrize("kind", POLICIES)
def test_a_policy_read_back_is_the_same_policy(kind, suffix, tmp_path):
    ssp, policy = POLICIES[kind]
    tp.write_policy(policy, tmp_path / f"policy{suffix}")
    tp.write(ssp, tmp_path / f"model{suffix}")
    again = tp.read(str(tmp_path / f"model{suffix}"))
    found = tp.evaluate(ssp, policy, min(ALPHAS))
    for model in (ssp, again):
        copy = tp.read_policy(tmp_path / f"policy{suffix}", model)
        for engine in ("lattice", "queue"):
            other = tp.evaluate(model, copy, min(ALPHAS), engine=engine)
            for alpha in ALPHAS:
                assert other.var(alpha) == found.var(alpha)
                assert other.cvar(alpha) == pytest.approx(found.cvar(alpha), rel=1e-12)
        assert np.array_equal(tp.simulate(model, copy, 500, 1), tp.simulate(ssp, policy, 500, 1))


def test_a_memory_that_grows_is_told(monkeypatch):
    """Somebody who waits for a history is told why, once, at the line that waits."""
    for name, value in {
        "policies.unrolling.MANY_PAIRS": 50,
        "evaluation.queue.PAUSE": 50,
        "evaluation.queue.SLOW_FROM": 50,
    }.items():
        monkeypatch.setattr(f"tailpath.{name}", value)
    ssp = tp.within(tp.domains.river(rows=5, columns=5), 9)
    east = tp.HistoryPolicy(lambda history: "E")
    evaluate = partial(tp.evaluate, alpha=0.05)
    for verb, what in ((tp.unroll, "more than 50 pairs .* one by one"), (evaluate, "MemoryPolicy")):
        with pytest.warns(tp.TailpathWarning, match=what) as found:
            verb(ssp, east)
        assert [each.filename for each in found] == [__file__]
