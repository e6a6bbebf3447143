"""Small programs of our own, in the spirit of the benchmark sets, against Storm in its exact mode.

Storm computes the least expected cost of the source in rational numbers, which our bounds must
hold; and, on the chain of the policy that we found, the distribution of the total cost at
thresholds, which ours must equal. Its bounds over all policies hold ours between them.
"""

import pathlib
from fractions import Fraction

import pytest

import tailpath as tp

stormpy = pytest.importorskip("stormpy", reason="the extra `validation` is not installed")
from tests.validation.storm import checked, rational  # noqa: E402 - needs stormpy

MODELS = sorted((pathlib.Path(__file__).parent / "models").glob("*.*"))
#: A condition where no label names the goal; a start where there are several.
GOALS = {"wlan": "s=3"}
STARTS = {"herman": "x=0 & y=0 & z=1"}


def described(path):
    """Storm's exact model of the source, and our model of it."""
    if path.suffix == ".jani":
        program = stormpy.parse_jani_model(str(path))[0]
    else:
        program = stormpy.parse_prism_program(str(path))
    options = {
        key: value[path.stem]
        for key, value in (("goal", GOALS), ("start", STARTS))
        if path.stem in value
    }
    return stormpy.build_model[stormpy.Rational](program), tp.read(path, cost="cost", **options)


def of_condition(path, goal):
    """The least expected cost until a condition holds, for which Storm needs the program."""
    program = stormpy.parse_prism_program(str(path))
    formula = stormpy.parse_properties(f'R{{"cost"}}min=? [F ({goal})]', program)[0]
    model = stormpy.build_model[stormpy.Rational](program, [formula])
    return rational(
        stormpy.model_checking(model, formula, only_initial_states=True).get_value(
            model.initial_states[0]
        )
    )


def chain_of(ssp, policy):
    """The model under a policy, as a model with one choice per state."""
    rows = []
    for outcome in range(ssp.n_outcomes):
        choice = int(ssp.outcome_choice[outcome])
        state = ssp.states[ssp.choice_state[choice]]
        if policy.decisions.get(state) == ssp.choice_name(choice):
            target = ssp.states[ssp.outcome_target[outcome]]
            rows.append(
                (
                    state,
                    "on",
                    target,
                    ssp.outcome_probability[outcome],
                    Fraction(int(ssp.outcome_level[outcome])) * ssp.cost_unit,
                )
            )
    return tp.SSP.from_outcomes(rows, ssp.start, ssp.goals)


def test_there_are_enough_of_them():
    assert len(MODELS) >= 20 and {path.suffix for path in MODELS} == {".prism", ".jani"}


@pytest.mark.parametrize("path", MODELS, ids=lambda path: path.name)
def test_the_least_expected_cost_is_storms(path):
    model, ssp = described(path)
    low, high = tp.solve_expected(ssp).bounds
    if path.stem in STARTS:
        exact = Fraction(4)  # whatever the start, every throw of three coins ends it with 1/4
    elif path.stem in GOALS:
        exact = of_condition(path, GOALS[path.stem])
    else:
        exact = rational(checked(model, 'R{"cost"}min=? [F "goal"]'))
    assert low * (1 - 1e-14) <= exact <= high * (1 + 1e-14), float(exact)
    assert high - low <= 1e-9 * high


@pytest.mark.parametrize(
    "path", [path for path in MODELS if path.stem != "thirds"], ids=lambda path: path.name
)
def test_the_distribution_of_the_total_cost_is_storms(path, tmp_path):
    _, ssp = described(path)
    chain = chain_of(ssp, tp.solve_expected(ssp).policy)
    costs = tp.evaluate(ssp, tp.solve_expected(ssp).policy, alpha=1e-13)
    tp.write(chain, tmp_path / "m.drn")
    model = stormpy.build_model_from_drn[stormpy.Rational](str(tmp_path / "m.drn"))
    found = []
    for threshold in range(0, 24, 3):
        witness = float(rational(checked(model, f'Pmin=? [F{{"cost"}}<={threshold} "goal"]')))
        assert costs.cdf(threshold) == pytest.approx(witness, abs=1e-13), threshold
        found.append(witness)
    assert found[-1] > 0.2 and found[0] < 1, "the thresholds must reach into the distribution"


WITH_CHOICE = [
    path
    for path in MODELS
    if path.stem in ("retry", "robot", "job_shop", "exploding", "elevators", "triangle", "firewire")
]


@pytest.mark.parametrize("path", WITH_CHOICE, ids=lambda path: path.name)
def test_the_risk_of_a_policy_lies_between_storms_extremes(path):
    """Whatever the policy: the probability to have paid at most k is at least the least of all
    policies, and at most the most.
    """
    model, ssp = described(path)
    policies = [tp.solve_expected(ssp).policy, tp.solve_cvar_exact(ssp, 0.05).policy(0.05)]
    widest = 0.0
    for threshold in range(2, 20, 3):
        low, high = (
            float(rational(checked(model, f'P{way}=? [F{{"cost"}}<={threshold} "goal"]')))
            for way in ("min", "max")
        )
        widest = max(widest, high - low)
        for policy in policies:
            assert (
                low - 1e-12 <= tp.evaluate(ssp, policy, alpha=1e-12).cdf(threshold) <= high + 1e-12
            )
    assert widest > 0.05, "the choice must matter"


def test_thirds_are_counted_exactly():
    ssp = tp.read(next(path for path in MODELS if path.stem == "thirds"), cost="cost")
    assert ssp.cost_unit == Fraction(1, 21)
