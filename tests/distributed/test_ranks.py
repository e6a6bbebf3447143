"""One model over the ranks of MPI: 1, 2, 3 and 4 of them, oversubscribed on a small machine.

Processes take longer to start than to solve small models. So one start of four ranks does all that
needs nobody killed.
"""

import importlib.util
import json
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

from tailpath.distributed.ranks import world
from tailpath.errors import OptionError
from tests.cli.running import run
from tests.distributed.models import models
from tests.distributed.parts import check_agree, check_policy, in_one_process

ROOT = pathlib.Path(__file__).parents[2]
MPIEXEC = shutil.which(
    "mpiexec",
    path=os.pathsep.join([str(pathlib.Path(sys.executable).parent), os.environ.get("PATH", "")]),
)
needs_mpi = pytest.mark.skipif(
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
    python = [sys.executable, "-W", "ignore", "-m", module]
    return subprocess.run(
        [MPIEXEC, "-n", str(ranks), *python, *map(str, arguments)],
        env=settings,
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
        cwd=ROOT,
    )


@needs_mpi
def test_one_to_four_ranks_find_what_one_process_finds(capsys):
    wanted = wanted_of_parts()  # first: it compiles what four would
    done = launch(4)
    assert done.stdout, done.stderr
    first, _, rest = done.stdout.partition("\n")
    found, line = json.loads(first), json.loads(rest)
    assert list(found) == ["1", "2", "3", "4"]
    check_parts(found, wanted)
    alone = run(capsys, "solve", "river:8x4", "--alpha", "0.05", "--json").json
    check_line(line, alone)
    # At the end the part of a rank does not fit.
    assert done.returncode != 0
    assert "tailpath: rank 1 of 4: out of memory for part 1 of 4 (1" in done.stderr


def check_line(found, alone):
    """What the command line says on ranks is what it says in one process, within the bounds."""
    for one, other in ((found, alone), (alone, found)):
        assert one["bounds"][0] <= other["cvar"] <= one["bounds"][1]


def wanted_of_parts():
    """What one process finds of the whole model."""
    return {name: in_one_process(ssp)["bounded"] for name, ssp in models().items()}


def check_parts(found, wanted):
    """What ranks find of a model in parts lies within the bounds of one process that has the whole
    model, and the other way round; the same ranks find the same bits again."""
    for name, alone in wanted.items():
        for some in found.values():
            check_agree(some["parts"][name]["bounded"], alone)
            check_policy(some["parts"][name])
    assert found["4"]["again"] == found["4"]["parts"]["sparse"]


@needs_mpi
def test_parts_that_were_split_are_solved(tmp_path, capsys):
    assert run(capsys, "split", "river:8x4", "--parts", 2, "-o", tmp_path).code == 0
    asked = ("--alpha", "0.05", "--json")
    alone = run(capsys, "solve", "river:8x4", *asked).json
    found = json.loads(launch(2, "solve", tmp_path, *asked, "--mpi", module="tailpath").stdout)
    check_line(found, alone)


def test_without_mpi_one_line_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "mpi4py", None)
    with pytest.raises(OptionError, match=r"pip install 'tailpath\[mpi\]'") as told:
        world()
    assert "\n" not in str(told.value)
