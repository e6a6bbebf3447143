"""What the ranks of a test run: `python -m tests.distributed.program`.

Rank 0 prints one line of JSON; the test, in a process of its own, compares it.
"""

import json
import sys

from mpi4py import MPI

import tailpath as tp
from tailpath.cli import main
from tailpath.distributed import solving
from tailpath.distributed.fill import fill_part
from tailpath.distributed.part import Part
from tests.distributed.models import models
from tests.distributed.parts import in_parts
from tests.distributed.patient import Patient

COMM = Patient(MPI.COMM_WORLD)


def found_by(comm, share):
    """All that so many ranks find; a share of the models where others take the rest."""
    first, step = share
    parts = dict(list(models().items())[first::step])
    return {
        "parts": {
            name: in_parts(ssp, Part.of(ssp, *place(comm)), comm) for name, ssp in parts.items()
        },
        "again": in_parts(models()["sparse"], Part.of(models()["sparse"], *place(comm)), comm),
    }


def place(comm):
    return comm.rank, comm.size


def agree() -> None:
    """4 ranks; then 3 and, beside them, 1; then 2 and 2, which share the models. Then the command
    line; and in the end the part of rank 1 does not fit.
    """
    rank, found = COMM.rank, [found_by(COMM, (0, 1))]
    for color, share in ((rank // 3, (0, 1)), (rank // 2, (rank // 2, 2))):
        found.append(found_by(Patient(MPI.COMM_WORLD.Split(color, rank)), share))
    every = COMM.allgather(found)
    if rank == 0:
        four, three, pair = every[0]
        two = {"parts": {**pair["parts"], **every[2][2]["parts"]}}
        print(json.dumps({1: every[3][1], 2: two, 3: three, 4: four}), flush=True)
    main(["solve", "river:8x4", "--alpha", "0.05", "--json", "--mpi"])
    sys.stdout.flush()
    COMM.Barrier()
    solving.fill_part = out_of_memory
    tp.solve_cvar_exact(tp.domains.river(rows=10, columns=5), 0.05, comm=COMM)


def out_of_memory(part, *asked, **options):
    if COMM.rank == 1:
        raise MemoryError("Unable to allocate 1. TiB")
    return fill_part(part, *asked, **options)


if __name__ == "__main__":
    agree()
