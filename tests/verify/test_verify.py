"""The checker accepts what is true, on random models and on known ones, and refuses what was tampered with."""

import pickle
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tailpath as tp
from tailpath.errors import OptionError, RefutedError
from tailpath.policies.kinds import MarkovPolicy
from tailpath.verify.distribution import enclose
from tests import reference, strategies
from tests.fuzz import models

GRID = tp.domains.gridworld("5x5")
EXPECTED = tp.solve_expected(GRID)
COSTS = tp.evaluate(GRID, EXPECTED.policy, 0.01)
BEST = tp.solve_cvar_exact(GRID, 0.05)


@settings(max_examples=40)
@given(st.data(), st.sampled_from([0.5, 0.1, 0.01]))
def test_the_enclosure_is_the_truth(data, alpha):
    """The checker itself, against the reference in fractions."""
    model = data.draw(strategies.proper_models(max_states=4))
    policy = data.draw(strategies.policies(model))
    exact = reference.cost_distribution(model, policy, alpha)
    found = enclose(reference.to_ssp(model), policy, Fraction(exact.var(alpha)))
    low, high = found.cvar(Fraction(alpha))
    # The floats of the model stand for decimals, not for the sevenths that were written.
    assert abs(low - exact.cvar(alpha)) <= Fraction(1, 10**12) * (1 + exact.cvar(alpha))
    assert 0 <= high - low <= Fraction(1, 10**60) * (1 + high)


@pytest.mark.filterwarnings("ignore::tailpath.TailpathWarning", "ignore::RuntimeWarning")
@pytest.mark.parametrize("number", range(40))
def test_random_models_with_extreme_numbers(number):
    assert list(models.attempt(number)), "something was looked at"


def test_what_was_proved_is_said():
    proof = COSTS.verify()
    assert "CVaR at alpha 0.01 lies in" in str(proof)
    assert 0 < proof.width < 1e-10
    assert "no policy has a CVaR below" in str(BEST.verify())
    assert f"from all {GRID.n_states} states" in str(EXPECTED.verify())
    assert BEST.verify(0.5).width < 1e-10


def moved(array, at, by):
    changed = np.array(array)
    changed[at] += by
    return changed


@pytest.mark.parametrize(
    "change",
    [
        {"mean": COSTS.mean + 1e-6},
        {"mean_bounds": (COSTS.mean_bounds[0] + 1e-6, COSTS.mean_bounds[1] + 1e-6)},
        {"mean_bounds": (COSTS.mean_bounds[1], COSTS.mean_bounds[1])},
        {"tail_excess": COSTS.tail_excess * (1 + 1e-6)},
        {"tail_excess_bounds": (COSTS.tail_excess_bounds[0] * (1 + 1e-6), COSTS.tail_excess_bounds[1] * (1 + 2e-6))},
        {"tail_mass": COSTS.tail_mass * (1 + 1e-6)},
        {"probabilities": moved(COSTS.probabilities, 2, 1e-6)},
        {"costs": moved(COSTS.costs, 1, 1e-6)},
        {"costs": np.delete(COSTS.costs, 1), "probabilities": np.delete(COSTS.probabilities, 1)},
        {"policy": MarkovPolicy({**EXPECTED.policy.decisions, GRID.start: "E"})},
    ],
    ids=lambda change: ", ".join(change),
)
def test_a_tampered_distribution_is_refused(change):
    with pytest.raises(RefutedError):
        replace(COSTS, **change).verify()


@pytest.mark.parametrize("field", ["lower", "upper", "value"])
def test_a_tampered_expectation_is_refused(field):
    sign = {"lower": 1, "upper": -1, "value": 1}[field]
    with pytest.raises(RefutedError):
        replace(EXPECTED, **{field: moved(getattr(EXPECTED, field), GRID.start_index, sign * 1e-6)}).verify()


def test_a_tampered_optimum_is_refused():
    w = BEST.budget(0.05)
    for by in (1e-6, -1e-6):
        with pytest.raises(RefutedError):
            replace(BEST, excess=moved(BEST.excess, slice(w, w + 1), by)).verify()
    with pytest.raises(RefutedError):
        replace(BEST, decisions=replace(BEST.decisions, neutral=_other_choice(BEST.decisions.neutral))).verify()


def _other_choice(neutral):
    """Every choice replaced by the next one of the same state."""
    changed = np.array(neutral)
    for state in range(GRID.n_states):
        first, end = GRID.state_choices[state], GRID.state_choices[state + 1]
        if end - first > 1:
            changed[state] = first + (changed[state] - first + 1) % (end - first)
    return changed


def test_a_pickle_leaves_functions_behind():
    ssp = tp.SSP.from_outcomes([("s", "a", "s", 0.5, 1), ("s", "a", "g", 0.5, 1)], "s", ["g"])
    copy = pickle.loads(pickle.dumps(tp.evaluate(ssp, tp.MarkovPolicy({"s": "a"}), 0.1)))
    assert copy.verify().width < 1e-10
    functions = tp.MemoryPolicy(0, lambda s, m: "a", lambda m, *step: m)
    found = tp.evaluate(ssp, functions, 0.1)
    assert found.verify().width < 1e-10
    with pytest.raises(OptionError, match="stayed behind"):
        pickle.loads(pickle.dumps(found)).verify()
