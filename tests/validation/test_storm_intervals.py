"""Storm on models with intervals: it reads what we write, builds programs for us, and gets the same
means and step bounds.

Its robust value iteration stops when a sweep changes values by no more than its precision, here
1e-12, relatively: means are compared to 1e-9. Step bounds it computes exactly, up to rounding; they
are deadlines where every outcome costs 1.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import tailpath as tp
from tailpath.errors import FormatError
from tests.uncertain.models import coin, robot
from tests.uncertain.reference import random_model

stormpy = pytest.importorskip("stormpy", reason="the extra `validation` is not installed")
storm_io = pytest.importorskip("stormpy.io")
MODES = {
    "adversarial": stormpy.UncertaintyResolutionMode.ROBUST,
    "cooperative": stormpy.UncertaintyResolutionMode.COOPERATIVE,
}
PROGRAM = """mdp
const double d;
module robot
  s : [0..5] init 0;
  [east] s=0 -> 0.6:(s'=1) + 0.4:(s'=0);
  [south] s=0 -> 0.8:(s'=3) + 0.1:(s'=1) + 0.1:(s'=4);
  [east] s=1 -> [0.9-d,0.9]:(s'=2) + [0.1,0.1+d]:(s'=1);
  [south] s=1 -> [0.5-d,0.5+d]:(s'=4) + [0.5-d,0.5+d]:(s'=2);
  [east] s=4 -> 1:(s'=5);
  [west] s=4 -> 0.6:(s'=3) + 0.4:(s'=4);
  [north] s=5 -> 0.9:(s'=2) + 0.1:(s'=5);
  [west] s=5 -> 1:(s'=4);
endmodule
label "goal" = s=2 | s=3;
rewards "steps" true : 1; endrewards
"""


def grid(name: str, margin: float) -> tp.IntervalSSP:
    return tp.IntervalSSP.around(tp.read(name), margin)


def counted(seed: int) -> tp.IntervalSSP:
    """The intervals of 200 trips on each choice of a random model."""
    ssp, rng = random_model(seed).intervals().inside, np.random.default_rng(seed)
    rows = []
    for k in range(ssp.n_choices):
        span = slice(*ssp.choice_outcomes[k : k + 2])
        seen = rng.multinomial(200, ssp.outcome_probability[span]).tolist()
        state = ssp.states[ssp.choice_state[k]]
        rows += [
            (state, ssp.choice_name(k), ssp.states[t], n, c)
            for t, n, c in zip(
                ssp.outcome_target[span].tolist(),
                seen,
                ssp.outcome_cost[span].tolist(),
                strict=True,
            )
        ]
    return tp.IntervalSSP.from_counts(rows, ssp.start, ssp.goals)


MODELS = {
    "robot": lambda: robot({2, 3}),
    "coin": lambda: coin(2, 0.1),
    "5x5": lambda: grid("gridworld:5x5", 0.2),
    "8x9": lambda: grid("gridworld:8x9", 0.5),
    "14x16": lambda: grid("gridworld:14x16", 0.2),
    "river": lambda: grid("river:10x3", 0.3),
    "coupons": lambda: grid("textbook:coupon-collector", 0.1),
    "counts": lambda: counted(1),
    **{
        f"random {seed}": lambda seed=seed: random_model(seed, states=8, actions=3).intervals()
        for seed in range(4)
    },
}


def storms(model: tp.IntervalSSP, path):
    tp.write(model, path)
    return (
        stormpy.build_model_from_umb(str(path))
        if path.suffix == ".umb"
        else stormpy.build_model_from_drn[stormpy.Interval](str(path))
    )


def asked(model, formula: str, nature: str) -> float:
    prop = stormpy.parse_properties(formula)[0]
    environment = stormpy.Environment()
    environment.solver().min_max().precision = stormpy.Rational("1/1000000000000")
    found = stormpy.model_checking(
        model,
        prop,
        only_initial_states=True,
        uncertainty_resolution_mode=MODES[nature],
        environment=environment,
    )
    return found.get_value(model.initial_states[0])


@pytest.mark.parametrize("nature", MODES)
@pytest.mark.parametrize("name", MODELS)
def test_expected_costs_agree(name, nature, tmp_path):
    model = MODELS[name]()
    # Storm's rewards need outcomes that cannot be withheld.
    low = np.where(model.low > 0, model.low, model.inside.outcome_probability / 100)
    model = tp.IntervalSSP(model.inside, low, model.high)
    theirs = asked(storms(model, tmp_path / "m.drn"), 'R{"cost"}min=? [F "goal"]', nature)
    assert tp.solve_expected(model, nature=nature).cost() == pytest.approx(theirs, rel=1e-9)


@pytest.mark.parametrize("nature", MODES)
@pytest.mark.parametrize("name", MODELS)
def test_step_bounds_are_deadlines(name, nature, tmp_path):
    model = MODELS[name]()
    inside = replace(model.inside, outcome_cost=np.ones(model.n_outcomes), exact_unit=None)
    steps = tp.IntervalSSP(inside, model.low, model.high)
    storm = storms(steps, tmp_path / "m.umb")
    found = tp.solve_on_time(steps, 60, nature=nature)
    for bound in (1, 2, 5, 17, 60):
        theirs = asked(storm, f'Pmax=? [F<={bound} "goal"]', nature)
        assert found.probability(bound) == pytest.approx(theirs, abs=1e-12)


@pytest.mark.parametrize("nature", MODES)
def test_a_program_with_intervals(nature, tmp_path):
    path = tmp_path / "robot.prism"
    path.write_text(PROGRAM)
    with pytest.raises(FormatError, match="give the constants d a value"):
        tp.read(path)
    model = tp.read(path, constants={"d": 0.1})
    ours = tp.solve_expected(robot({2, 3}), nature=nature)
    assert model.n_uncertain == 2
    assert tp.solve_expected(model, nature=nature).cost() == pytest.approx(ours.cost(), rel=1e-14)
    assert tp.solve_expected(
        tp.read(path, constants={"d": 0.1}, goal="s=2|s=3|s=5")
    ).cost() == pytest.approx(98 / 80, rel=1e-14)
    with pytest.raises(FormatError, match=r"robot\.prism"):
        tp.read(path, constants={"d": 0.95})


@pytest.mark.parametrize("suffix", ["drn", "umb"])
def test_what_storm_exports_of_a_program(suffix, tmp_path):
    path, out = tmp_path / "robot.prism", tmp_path / f"m.{suffix}"
    path.write_text(PROGRAM)
    program = storm_io.instantiate_constants(stormpy.parse_prism_program(str(path)), "d=0.1")[0]
    model = stormpy.build_model[stormpy.Interval](program)
    (storm_io.export_to_drn if suffix == "drn" else storm_io.export_to_umb)(model, str(out))
    again = tp.read(out)
    assert again.n_uncertain == 2
    assert tp.solve_expected(again).cost() == pytest.approx(31 / 24, rel=1e-9)
