"""A model in parts, solved by one process without MPI, against the same model whole."""

import numpy as np
import pytest

import tailpath as tp
from tailpath.cli.planning import solve_part
from tailpath.distributed.files import read_part, write_part
from tailpath.distributed.part import Part, whole_of
from tailpath.distributed.policies import PartMarkovPolicy
from tailpath.distributed.ranks import Alone, Job
from tailpath.errors import ModelError, OptionError
from tests.distributed.models import CYCLE, models
from tests.distributed.parts import (
    ALPHA,
    check_agree,
    check_policies,
    in_one_process,
    in_parts,
)

MODELS = models()


@pytest.mark.parametrize("name", MODELS)
def test_what_is_found_in_parts_is_what_one_process_finds(name):
    """Each within the bounds that the other proves: V* of all states, and the tables."""
    ssp = MODELS[name]
    found = in_parts(ssp, Part.of(ssp, 0, 1))
    check_agree(found["bounded"], in_one_process(ssp)["bounded"])
    check_policies(found)


@pytest.mark.parametrize("name", MODELS)
def test_policies_in_parts_cost_what_they_cost_gathered(name):
    """By budget, and of least mean: the library's own distribution."""
    ssp = MODELS[name]
    part = Part.of(ssp, 0, 1)
    best, least = tp.solve_cvar_exact(part, ALPHA).policy(ALPHA), tp.solve_expected(part).policy
    for policy in (best, least):
        costs, whole = policy.evaluate(ALPHA), tp.evaluate(ssp, policy.gather(ssp), ALPHA)
        assert costs.var(ALPHA) == whole.var(ALPHA)
        assert costs.bounds(ALPHA) == whole.bounds(ALPHA)
        assert np.array_equal(costs.probabilities, whole.probabilities)


def test_a_markov_policy_in_parts():
    """State 2 never arrives under the policy, which never gets there."""
    rows = [
        (0, "short", 1, 1, 2), (0, "long", 2, 1, 1), (1, "on", 3, 0.5, 1), (1, "on", 0, 0.5, 4),
        (2, "stay", 2, 1, 1), (2, "go", 3, 1, 9),
    ]  # fmt: skip
    part = Part.of(tp.SSP.from_outcomes(rows, 0, [3]), 0, 1)
    policy = PartMarkovPolicy(Alone(), part, np.array([0, 2, 3, -1]))
    # Each round costs 3 or, one time in two, 6 and another round: m = 3 / 2 + (6 + m) / 2.
    assert policy.evaluate(0.5).mean == pytest.approx(9.0, rel=1e-14)
    assert policy.evaluate(0.5).var(0.5) == 3.0
    stays = PartMarkovPolicy(Alone(), part, np.array([1, 2, 3, -1]))
    assert stays.evaluate(0.5).unreached == 1.0


@pytest.mark.parametrize(("method", "says"), [("exact", "CVaR"), ("expected", "expected cost")])
def test_the_command_line_writes_the_policy_of_parts(method, says, tmp_path, capsys):
    ssp, file = MODELS["grid"], tmp_path / "policy.json"
    asked = {"model": "grid", "alpha": ALPHA, "method": method, "output": str(file)}
    asked |= {"as_json": False, "verify": False, "minimise": None, "limits": (), "deadline": None}
    solve_part(Part.of(ssp, 0, 1), Job.of(None), asked)
    assert f"least {says}" in capsys.readouterr().out
    whole = whole_of(Alone(), Part.of(ssp, 0, 1))
    costs = tp.evaluate(whole, tp.read_policy(file, whole), ALPHA)
    best = {
        "exact": (costs.cvar(ALPHA), tp.solve_cvar_exact(ssp, ALPHA).cvar(ALPHA)),
        "expected": (costs.mean, tp.solve_expected(ssp).cost()),
    }
    assert best[method][0] == pytest.approx(best[method][1], rel=1e-12)


def test_a_whole_model_over_ranks_is_parts_of_itself():
    ssp, comm = MODELS["river"], Job(Alone())
    found, one = tp.solve_cvar_exact(ssp, ALPHA, comm=comm), tp.solve_cvar_exact(ssp, ALPHA)
    (low, high), (least, most) = found.bounds(ALPHA), one.bounds(ALPHA)
    assert max(low, least) <= min(high, most)
    assert repr(found.policy(ALPHA)).startswith("<PartPolicy on part 0 of 1")
    assert found.policy(ALPHA).gather(ssp).ssp is ssp
    assert tp.solve_expected(ssp, comm=comm).bounds[0] <= tp.solve_expected(ssp).cost()


def test_what_ranks_cannot_solve_is_refused():
    cycle = tp.SSP.from_outcomes(CYCLE, "a", ["g"])
    with pytest.raises(ModelError, match="free outcomes lead in a cycle"):
        tp.solve_cvar_exact(cycle, ALPHA, comm=Job(Alone()))
    with pytest.raises(OptionError, match="lexicographic needs one process"):
        tp.solve_cvar_exact(MODELS["river"], ALPHA, lexicographic=True, comm=Job(Alone()))
    rows = [("s", "go", "g", (0.2, 1), 1), ("s", "go", "s", (0, 0.8), 1)]
    with pytest.raises(ModelError, match="known probabilities"):
        tp.solve_cvar_exact(
            tp.IntervalSSP.from_outcomes(rows, "s", ["g"]), ALPHA, comm=Job(Alone())
        )


def test_what_is_no_communicator_is_refused():
    with pytest.raises(OptionError, match="comm must be a communicator"):
        Job.of(3)


def test_names_that_are_tuples_pass_through_the_files_of_parts(tmp_path):
    rows = [("a", ("go", (1, 2)), "b", 1, 1), ("b", ("go", ()), "g", 1, 2)]
    ssp = tp.SSP.from_outcomes(rows, "a", ["g"])
    for index in range(2):
        write_part(Part.of(ssp, index, 2), tmp_path)
    parts = [read_part(tmp_path, index, 2) for index in range(2)]
    assert [part.actions for part in parts] == [ssp.actions] * 2
    write_part(Part.of(ssp, 0, 1), tmp_path)
    policy = tp.solve_expected(read_part(tmp_path, 0, 1)).policy.gather(ssp)
    assert policy.action("b") == ("go", ())
