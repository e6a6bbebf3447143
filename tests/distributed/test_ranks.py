"""One model over the ranks of MPI: 1, 2, 3 and 4 of them, oversubscribed on a small machine."""

import importlib.util
import json
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[2]
MPIEXEC = shutil.which(
    "mpiexec",
    path=os.pathsep.join([str(pathlib.Path(sys.executable).parent), os.environ.get("PATH", "")]),
)
pytestmark = pytest.mark.skipif(
    MPIEXEC is None or importlib.util.find_spec("mpi4py") is None,
    reason="no MPI: `make tools` installs one",
)


def launch(ranks, *arguments, module="tests.distributed.program"):
    """Run a module on so many ranks."""
    settings = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)]),
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "OMPI_MCA_mpi_yield_when_idle": "1",
        "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
    }
    program = [
        MPIEXEC,
        "-n",
        str(ranks),
        sys.executable,
        "-W",
        "ignore",
        "-m",
        module,
        *map(str, arguments),
    ]
    return subprocess.run(
        program, env=settings, capture_output=True, text=True, check=False, timeout=300, cwd=ROOT
    )


def answer(ranks, *arguments):
    done = launch(ranks, *arguments)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.strip().splitlines()[-1])


@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
def test_a_model_that_every_rank_has_is_solved_as_by_one_process(ranks):
    """Also where every neighbour is on another rank, a rank has no boundary, or nothing at all."""
    assert answer(ranks, "whole") == {"checked": 8}


def test_the_number_of_parts_changes_no_bit():
    one = answer(1, "parts")
    for ranks in (2, 3, 4):
        found = answer(ranks, "parts")
        assert found.keys() == one.keys()
        assert [name for name in one if found[name] != one[name]] == []


def test_models_are_made_alike_in_any_number_of_parts():
    assert answer(1, "made") == answer(3, "made")


@pytest.mark.kill
def test_a_killed_job_goes_on_and_finds_the_same_bits(tmp_path):
    plain = answer(2, "resumed", tmp_path / "plain", -1)
    for level in (11, 40):
        killed = launch(2, "resumed", tmp_path / "killed", level)
        assert killed.returncode != 0
        assert "signal 9" in killed.stderr
    assert list((tmp_path / "killed").glob("*complete.json"))
    assert answer(2, "resumed", tmp_path / "killed", -1) == plain


def test_a_part_that_is_too_large_is_named():
    done = launch(2, "too_large")
    assert done.returncode != 0
    assert "tailpath: rank 1 of 2: out of memory with part 1 of 2 (25 states" in done.stderr


def test_the_command_line_says_what_one_process_says(tmp_path):
    asked = ("solve", "river:8x4", "--alpha", "0.05", "--json")
    one, two = (
        launch(ranks, *asked, *more, module="tailpath")
        for ranks, more in ((1, ()), (2, ("--mpi",)))
    )
    first, second = (json.loads(done.stdout) for done in (one, two))
    assert first.pop("seconds") > 0 and second.pop("seconds") > 0
    assert first == second
    launch(1, "split", "river:8x4", "--parts", 2, "-o", tmp_path, module="tailpath")
    done = launch(2, "solve", tmp_path, "--alpha", "0.05", "--mpi", "--json", module="tailpath")
    found = json.loads(done.stdout)
    assert found["cvar"] == pytest.approx(first["cvar"], rel=1e-12)
    assert found["bounds"][0] <= first["bounds"][1] and first["bounds"][0] <= found["bounds"][1]
