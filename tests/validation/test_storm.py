"""Storm as a witness: it reads what we write, we read what it writes, and both get the same costs.

Storm's exact mode works in rational numbers and its cost-bounded reachability computes P(cost <= k)
by a method of its own, so agreement at every threshold is agreement on the whole distribution.
"""

import contextlib
import os
import warnings

import numpy as np
import pytest

import tailpath as tp
from tailpath.errors import TailpathWarning
from tests.formats.models import differences, samples

stormpy = pytest.importorskip("stormpy", reason="the extra `validation` is not installed")
storm_io = pytest.importorskip("stormpy.io")
from tests.validation.storm import checked, rational  # noqa: E402 - needs stormpy

EXAMPLES = os.path.join(os.path.dirname(stormpy.__file__), "examples", "files")
LEAST = 'R{"cost"}min=? [F "goal"]'

#: A program, its constants, its goal and its reward structure.
PROGRAMS = [
    ("mdp/two_dice.nm", {}, "done", "coinflips"),
    ("dtmc/die.pm", {}, "done", "coin_flips"),
    ("mdp/coin2.nm", {"K": 2}, "finished", "steps"),
    ("mdp/csma2-2.nm", {}, "all_delivered", "time"),
    ("mdp/firewire3-0.5.nm", {}, "elected", "time"),
    ("dtmc/leader-3-5.pm", {}, "elected", "num_rounds"),
]


def built(path, exact=False):
    kind = stormpy.Rational if exact else float
    if str(path).endswith(".umb"):
        assert not exact
        return stormpy.build_model_from_umb(str(path))
    return stormpy.build_model_from_drn[kind](str(path))


@contextlib.contextmanager
def rounded_numbers_allowed():
    """Storm writes ten digits, so rows of thirds are scaled, with a warning that is not the point
    here.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TailpathWarning)
        yield


# ---------------------------------------------------------------------- expected costs


@pytest.mark.parametrize(
    "source",
    [
        "textbook:counter-example",
        "textbook:negative-binomial",
        "textbook:lottery",
        "textbook:gamblers-ruin",
    ],
)
def test_expected_costs_agree_with_the_exact_mode(source, tmp_path):
    ssp = tp.read(source)
    tp.write(ssp, tmp_path / "m.drn")
    low, high = tp.solve_expected(ssp).bounds
    exact = rational(checked(built(tmp_path / "m.drn", exact=True), LEAST))
    # The probabilities of these problems are exact in binary as in decimal, or differ by one
    # rounding.
    assert low * (1 - 1e-14) <= exact <= high * (1 + 1e-14)
    assert high - low <= 1e-9 * high


@pytest.mark.parametrize("source", ["gridworld:5x5", "gridworld:8x9", "river:10x3", "river:16x6"])
@pytest.mark.parametrize("suffix", ["drn", "drn.gz"])
def test_expected_costs_of_the_domains(source, suffix, tmp_path):
    ssp = tp.read(source)
    tp.write(ssp, tmp_path / f"m.{suffix}")
    exact = float(rational(checked(built(tmp_path / f"m.{suffix}", exact=True), LEAST)))
    assert tp.solve_expected(ssp).cost() == pytest.approx(exact, rel=1e-12)


def test_the_slippery_cliff_in_exact_numbers(tmp_path):
    pytest.importorskip("gymnasium")
    ssp = tp.read("gym:CliffWalkingSlippery-v1")
    tp.write(ssp, tmp_path / "m.drn")
    exact = float(rational(checked(built(tmp_path / "m.drn", exact=True), LEAST)))
    assert exact == pytest.approx(64.70917590996, abs=5e-12)
    assert tp.solve_expected(ssp).cost() == pytest.approx(exact, rel=1e-12)


# ---------------------------------------------------------------------- distributions


def chain_of(ssp, policy):
    """The model under a policy, as a model with one choice per state."""
    rows = []
    for outcome in range(ssp.n_outcomes):
        choice = int(ssp.outcome_choice[outcome])
        state = ssp.states[ssp.choice_state[choice]]
        if policy.decisions.get(state) == ssp.choice_name(choice):
            target = ssp.states[ssp.outcome_target[outcome]]
            rows.append(
                (state, "on", target, ssp.outcome_probability[outcome], ssp.outcome_cost[outcome])
            )
    return tp.SSP.from_outcomes(rows, ssp.start, ssp.goals)


def cheapest(ssp):
    return chain_of(ssp, tp.solve_expected(ssp).policy)


def two_costs():
    """Two costs to one successor, and a free way back: a loop that leaks within a level of cost."""
    rows = [
        ("a", 0.25, "a", 1),
        ("a", 0.25, "a", 3),
        ("a", 0.5, "b", 0),
        ("b", 0.5, "g", 2),
        ("b", 0.5, "a", 0),
    ]
    return tp.SSP.from_outcomes([(s, "on", t, p, c) for s, p, t, c in rows], "a", ["g"])


#: A chain, how many thresholds to try, and whether Storm is to compute in rational numbers.
CHAINS = {
    "gridworld": (lambda: cheapest(tp.read("gridworld:5x5")), 60, False),
    "cliff": (lambda: cheapest(tp.read("gym:CliffWalkingSlippery-v1")), 260, False),
    "negative binomial": (lambda: tp.read("textbook:negative-binomial"), 40, True),
    "coupons": (lambda: tp.read("textbook:coupon-collector"), 60, False),
    # In floating point Storm solves the free loop by iteration and is off by 1e-9.
    "two costs": (two_costs, 40, True),
}


@pytest.mark.parametrize("name", CHAINS)
def test_distributions_agree_at_every_threshold(name, tmp_path):
    if name == "cliff":
        pytest.importorskip("gymnasium")
    build, most, exact = CHAINS[name]
    chain = build()
    states = [(s, state) for s, state in enumerate(chain.states) if not chain.is_goal[s]]
    policy = tp.MarkovPolicy(
        {state: chain.choice_name(chain.state_choices[s]) for s, state in states}
    )
    costs = tp.evaluate(chain, policy, alpha=1e-6)
    tp.write(chain, tmp_path / "m.drn")
    model = built(tmp_path / "m.drn", exact)
    for threshold in range(most):
        witness = checked(model, f'Pmin=? [F{{"cost"}}<={threshold} "goal"]')
        assert costs.cdf(threshold) == pytest.approx(float(rational(witness)), abs=1e-13), threshold
    assert costs.cdf(most - 1) > 0.5, "the thresholds must reach into the distribution"


# ---------------------------------------------------------------------- Storm reads our files


@pytest.mark.parametrize("suffix", ["drn", "drn.gz", "drn.xz", "umb"])
@pytest.mark.parametrize("name", ["by choice", "gridworld", "river", "range"])
def test_storm_sees_the_same_model(name, suffix, tmp_path):
    ssp = samples()[name]
    tp.write(ssp, tmp_path / f"m.{suffix}")
    model = built(tmp_path / f"m.{suffix}")
    assert model.nr_states == ssp.n_states and model.initial_states == [ssp.start_index]
    assert list(model.labeling.get_states("goal")) == np.flatnonzero(ssp.is_goal).tolist()
    rewards = model.reward_models["cost"].state_action_rewards
    for state in range(ssp.n_states):
        first = model.nondeterministic_choice_indices[state]
        for position, choice in enumerate(
            range(ssp.state_choices[state], ssp.state_choices[state + 1])
        ):
            row = {
                entry.column: entry.value
                for entry in model.transition_matrix.get_row(first + position)
            }
            span = slice(*ssp.choice_outcomes[choice : choice + 2])
            assert row == dict(
                zip(
                    ssp.outcome_target[span].tolist(),
                    ssp.outcome_probability[span].tolist(),
                    strict=True,
                )
            )
            assert {rewards[first + position]} == set(ssp.outcome_cost[span].tolist())


def test_storm_reads_costs_per_outcome_from_umb(tmp_path):
    """As long as no two outcomes of a choice share their successor, which Storm does
    not support.
    """
    rows = [(0, "a", 1, 0.25, 7), (0, "a", 2, 0.75, 1), (1, "a", 2, 1, 2.5)]
    ssp = tp.SSP.from_outcomes(rows, 0, [2])
    tp.write(ssp, tmp_path / "m.umb")
    model = built(tmp_path / "m.umb")
    assert model.reward_models["cost"].has_transition_rewards
    assert checked(model, LEAST) == pytest.approx(0.25 * 9.5 + 0.75)


@pytest.mark.parametrize(
    ("name", "constants", "goal", "cost"), PROGRAMS, ids=[program[0] for program in PROGRAMS]
)
def test_the_worst_policy_costs_storms_maximum(name, constants, goal, cost):
    path = os.path.join(EXAMPLES, name)
    program = stormpy.parse_prism_program(path)
    if constants:
        program, _ = storm_io.instantiate_constants(program, constants)
    witness = checked(stormpy.build_model(program), f'R{{"{cost}"}}max=? [F "{goal}"]')
    ssp = tp.read(path, constants=constants, goal=goal, cost=cost)
    found = tp.solve(ssp, "mean", sense="max")
    assert found.value == pytest.approx(witness, rel=1e-6)
    if np.isfinite(found.value):
        low, high = found.bounds
        assert high - low <= 1e-9 * high
        assert found.risk("mean") == pytest.approx(found.value, rel=1e-9)


# ---------------------------------------------------------------------- we read Storm's files


@pytest.mark.parametrize(
    ("name", "constants", "goal", "cost"), PROGRAMS, ids=[program[0] for program in PROGRAMS]
)
def test_programs_and_what_storm_exports_are_one_model(name, constants, goal, cost, tmp_path):
    path = os.path.join(EXAMPLES, name)
    ssp = tp.read(path, constants=constants, goal=goal, cost=cost)
    program = stormpy.parse_prism_program(path)
    if constants:
        program, _ = storm_io.instantiate_constants(program, constants)
    model = stormpy.build_model(program)
    witness = checked(model, f'R{{"{cost}"}}min=? [F "{goal}"]')
    assert tp.solve_expected(ssp).cost() == pytest.approx(witness, rel=1e-6)
    for suffix, export in (("drn", storm_io.export_to_drn), ("umb", storm_io.export_to_umb)):
        export(model, str(tmp_path / f"m.{suffix}"))
        with rounded_numbers_allowed():
            again = tp.read(tmp_path / f"m.{suffix}", goal=goal, cost=cost)
        assert again.start_index == ssp.start_index and np.array_equal(again.is_goal, ssp.is_goal)
        assert np.array_equal(again.choice_outcomes, ssp.choice_outcomes) and np.array_equal(
            again.outcome_target, ssp.outcome_target
        )
        assert np.allclose(again.outcome_probability, ssp.outcome_probability, rtol=0, atol=1e-9)
        assert np.array_equal(again.outcome_cost, ssp.outcome_cost)


@pytest.mark.parametrize("name", ["by choice", "gridworld"])
def test_a_model_passes_through_storm(name, tmp_path):
    ssp = samples()[name]
    tp.write(ssp, tmp_path / "ours.umb")
    storm_io.export_to_umb(built(tmp_path / "ours.umb"), str(tmp_path / "theirs.umb"))
    again = tp.read(tmp_path / "theirs.umb")
    assert again.start_index == ssp.start_index and np.array_equal(again.is_goal, ssp.is_goal)
    assert [again.choice_name(choice) for choice in range(again.n_choices)] == [
        ssp.choice_name(choice) for choice in range(ssp.n_choices)
    ]
    # Storm sorts the outcomes of a choice by their target.
    assert again.choice_outcomes.tolist() == ssp.choice_outcomes.tolist()
    order = np.lexsort((ssp.outcome_target, ssp.outcome_choice))
    for array in ("outcome_target", "outcome_probability", "outcome_cost"):
        assert getattr(again, array).tolist() == getattr(ssp, array)[order].tolist()


def test_what_we_read_from_storm_we_can_write(tmp_path):
    ssp = tp.read(os.path.join(EXAMPLES, "mdp/two_dice.nm"), goal="done")
    for suffix in ("json", "npz", "drn", "umb", "tra"):
        tp.write(ssp, tmp_path / f"m.{suffix}")
        assert differences(ssp, tp.read(tmp_path / f"m.{suffix}")) == []
