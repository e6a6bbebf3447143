"""Mixtures of policies: evaluated, simulated, unrolled, written and read like any other."""

from __future__ import annotations

import pathlib
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tailpath as tp
from tailpath.errors import FormatError, PolicyError
from tests.reference import Model, cost_distribution, to_ssp
from tests.strategies import deterministic_policies, memory_policies, proper_models


@settings(max_examples=40)
@given(
    st.data(),
    proper_models(max_states=4, dyadic=True),
    st.sampled_from([0.25, 0.5, 0.875]),
    st.sampled_from([1.0, 0.25, 0.01]),
)
def test_the_distribution_is_the_mixture(
    data: st.DataObject, model: Model, weight: float, alpha: float
) -> None:
    ssp = to_ssp(model)
    members = (
        data.draw(deterministic_policies(model)),
        data.draw(st.one_of(deterministic_policies(model), memory_policies(model))),
    )
    mixed = tp.MixedPolicy(members, (weight, 1 - weight))
    costs = tp.evaluate(ssp, mixed, alpha)
    parts = [cost_distribution(model, member, 1e-6) for member in members]
    exact: dict[float, float] = {}
    for w, part in zip((weight, 1 - weight), parts):
        for x, q in part.head:
            exact[float(x)] = exact.get(float(x), 0.0) + w * float(q)
    for z, p in zip(costs.costs.tolist(), costs.probabilities.tolist(), strict=True):
        assert p == pytest.approx(exact[z], rel=1e-12)
    assert costs.mean == pytest.approx(
        sum(w * float(part.mean) for w, part in zip((weight, 1 - weight), parts)), rel=1e-12
    )
    # The memory machine without a coin is the same policy: unrolled as such it has the same
    # distribution.
    chain_costs = (
        tp.evaluate(ssp, _OnlyFunctions(mixed), alpha)
        if all(isinstance(m, tp.MarkovPolicy) for m in members)
        else costs
    )
    assert chain_costs.cvar(alpha) == pytest.approx(costs.cvar(alpha), rel=1e-12)
    assert chain_costs.std == pytest.approx(costs.std, rel=1e-9, abs=1e-9)
    low, high = costs.bounds(alpha)
    assert low <= costs.cvar(alpha) * (1 + 1e-13) and costs.cvar(alpha) * (1 - 1e-13) <= high


class _OnlyFunctions:
    """A policy known by its three functions alone."""

    def __init__(self, policy: Any) -> None:
        self.start, self.action, self.remember = policy.start, policy.action, policy.remember


def example() -> tuple[tp.SSP, tp.MixedPolicy]:
    ssp = tp.read("gridworld:8x9")
    policy = tp.solve(ssp, "mean", ["cvar(0.05) <= 40"]).policy
    assert isinstance(policy, tp.MixedPolicy)
    return ssp, policy


def test_runs_follow_the_coin() -> None:
    ssp, policy = example()
    runs = tp.simulate(ssp, policy, 200_000, seed=3)
    costs = tp.evaluate(ssp, policy, 0.05)
    assert abs(runs.mean() - costs.mean) < 5 * costs.std / np.sqrt(len(runs))
    assert np.array_equal(tp.simulate(ssp, policy, 1000, seed=3), runs[:1000])
    assert not np.array_equal(tp.simulate(ssp, policy, 1000, seed=4), runs[:1000])


@pytest.mark.parametrize("suffix", ["json", "npz"])
def test_files(tmp_path: pathlib.Path, suffix: str) -> None:
    ssp, policy = example()
    path = tmp_path / f"policy.{suffix}"
    tp.write_policy(policy, path)
    again = tp.read_policy(path, ssp)
    assert isinstance(again, tp.MixedPolicy) and again.weights == policy.weights
    assert tp.evaluate(ssp, again, 0.05).cvar(0.05) == tp.evaluate(ssp, policy, 0.05).cvar(0.05)
    names = tp.MixedPolicy([tp.solve_expected(ssp).policy, policy.members[0]], [0.5, 0.5])
    tp.write_policy(names, path)
    assert tp.read_policy(path, ssp).members[0] == names.members[0]
    with pytest.raises(PolicyError, match="made for"):
        tp.write_policy(policy, path)
        tp.read_policy(path, tp.read("gridworld:5x5"))


def test_broken_files(tmp_path: pathlib.Path) -> None:
    ssp, policy = example()
    path = tmp_path / "policy.json"
    tp.write_policy(policy, path)
    text = path.read_text()
    for old, new, message in (
        ('"weights": [', '"weights": [1, ', "one weight for each"),
        ('"weights": [', '"weights": ["x", ', "weights must be a list of numbers"),
        ('"kind": "budget steps"', '"kind": "mixed"', "not mixtures"),
        ('"0_first"', '"9_first"', "arrays.0_first"),
    ):
        path.write_text(text.replace(old, new))
        with pytest.raises((FormatError, PolicyError), match=message):
            tp.read_policy(path, ssp)


def test_what_is_no_mixture() -> None:
    one = tp.MarkovPolicy({"s": "go"})
    for members, weights in (
        ([], []),
        ([one], [0.5]),
        ([one, one], [1.0]),
        ([one, one], [1.5, -0.5]),
        ([one], ["x"]),
    ):
        with pytest.raises(PolicyError):
            tp.MixedPolicy(members, weights)
    mixed = tp.MixedPolicy([one, tp.MarkovPolicy({"s": "stay"})], [0.5, 0.5])
    assert mixed.action("s", mixed.start("s")) == {"go": 0.5, "stay": 0.5}
    assert len(mixed.remember(mixed.start("s"), "s", "go", 1.0, "s")) == 1
    with pytest.raises(PolicyError, match="no policy of the mixture"):
        mixed.remember(mixed.start("s"), "s", "fly", 1.0, "s")
    assert pickle.loads(pickle.dumps(mixed)) == mixed and "0.5" in repr(mixed)
