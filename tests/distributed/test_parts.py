"""A model in parts, solved by one process without MPI, against the same model whole."""

import numpy as np
import pytest

import tailpath as tp
from tailpath.cli.ranks import solve_part
from tailpath.distributed.files import read_part, write_part
from tailpath.distributed.part import Part, whole_of
from tailpath.distributed.ranks import Alone
from tailpath.errors import ModelError, OptionError
from tests.distributed.models import FREE, models
from tests.distributed.parts import (
    ALPHA,
    check_agree,
    check_policy,
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
    check_policy(found)


@pytest.mark.parametrize("name", MODELS)
def test_a_policy_in_parts_costs_what_it_costs_gathered(name):
    """The library's own distribution."""
    ssp = MODELS[name]
    policy = tp.solve_cvar_exact(Part.of(ssp, 0, 1), ALPHA).policy(ALPHA)
    costs, whole = policy.evaluate(ALPHA), tp.evaluate(ssp, policy.gather(ssp), ALPHA)
    assert costs.var(ALPHA) == whole.var(ALPHA)
    assert costs.bounds(ALPHA) == whole.bounds(ALPHA)
    assert np.array_equal(costs.probabilities, whole.probabilities)


@pytest.mark.parametrize("name", MODELS)
def test_at_alpha_1_ranks_find_the_least_mean(name):
    best, least = (
        tp.solve_cvar_exact(Part.of(MODELS[name], 0, 1), 1),
        tp.solve_expected(MODELS[name]),
    )
    assert best.bounds(1)[0] <= least.cost() <= best.bounds(1)[1]
    assert best.policy(1).evaluate(1).mean == pytest.approx(least.cost(), rel=1e-12)


def test_the_command_line_writes_the_policy_of_parts(tmp_path, capsys):
    ssp, file = MODELS["grid"], tmp_path / "policy.json"
    asked = {"model": "grid", "alpha": ALPHA, "method": "exact", "output": str(file)}
    asked |= {"as_json": False, "verify": False, "minimise": None, "limits": (), "deadline": None}
    solve_part(Part.of(ssp, 0, 1), Alone(), asked)
    assert "least CVaR" in capsys.readouterr().out
    whole = whole_of(Alone(), Part.of(ssp, 0, 1))
    costs = tp.evaluate(whole, tp.read_policy(file, whole), ALPHA)
    best = tp.solve_cvar_exact(ssp, ALPHA).cvar(ALPHA)
    assert costs.cvar(ALPHA) == pytest.approx(best, rel=1e-12)
    with pytest.raises(OptionError, match="--method expected"):
        solve_part(Part.of(ssp, 0, 1), Alone(), {**asked, "method": "expected"})


def test_a_whole_model_over_ranks_is_parts_of_itself():
    ssp, comm = MODELS["river"], Alone()
    found, one = tp.solve_cvar_exact(ssp, ALPHA, comm=comm), tp.solve_cvar_exact(ssp, ALPHA)
    (low, high), (least, most) = found.bounds(ALPHA), one.bounds(ALPHA)
    assert max(low, least) <= min(high, most)
    assert repr(found.policy(ALPHA)).startswith("<PartPolicy on part 0 of 1")
    assert found.policy(ALPHA).gather(ssp).ssp is ssp


def test_what_ranks_cannot_solve_is_refused():
    free = tp.SSP.from_outcomes([*FREE, ("a", "w", "c", 1, 0)], "a", ["g"])
    with pytest.raises(ModelError, match="zero-cost"):
        tp.solve_cvar_exact(free, ALPHA, comm=Alone())
    with pytest.raises(OptionError, match="lexicographic"):
        tp.solve_cvar_exact(MODELS["river"], ALPHA, lexicographic=True, comm=Alone())
    rows = [("s", "go", "g", (0.2, 1), 1), ("s", "go", "s", (0, 0.8), 1)]
    with pytest.raises(ModelError, match="known probabilities"):
        tp.solve_cvar_exact(tp.IntervalSSP.from_outcomes(rows, "s", ["g"]), ALPHA, comm=Alone())


def test_what_is_no_communicator_is_refused():
    with pytest.raises(OptionError, match="comm must be a communicator"):
        tp.solve_cvar_exact(MODELS["river"], ALPHA, comm=3)


def test_names_that_are_tuples_pass_through_the_files_of_parts(tmp_path):
    rows = [("a", ("go", (1, 2)), "b", 1, 1), ("b", ("go", ()), "g", 1, 2)]
    ssp = tp.SSP.from_outcomes(rows, "a", ["g"])
    for index in range(2):
        write_part(Part.of(ssp, index, 2), tmp_path)
    parts = [read_part(tmp_path, index, 2) for index in range(2)]
    assert [part.actions for part in parts] == [ssp.actions] * 2
    write_part(Part.of(ssp, 0, 1), tmp_path)
    policy = tp.solve_cvar_exact(read_part(tmp_path, 0, 1), 1).policy(1).gather(ssp)
    assert policy.action("b", policy.start("b")) == ("go", ())
