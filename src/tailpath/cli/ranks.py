"""`tailpath solve MODEL --mpi`: every rank of MPI runs the command, and rank 0 speaks for all;
and `tailpath split`, which cuts a model into parts.

A MODEL in parts is a folder made by `tailpath split`, or `parts:` and one of `gridworld:300x400`,
`river:300x400` and `sparse:100000`, of which every rank makes its own part.
"""

from __future__ import annotations

import os
import pathlib
import sys
from dataclasses import replace
from functools import partial
from time import perf_counter
from typing import Any

import click

import tailpath
from tailpath.cli.common import ModelCommand, flags
from tailpath.cli.output import Output, print_result, reported
from tailpath.cli.planning import require_alpha, solved_by
from tailpath.distributed.generate import part_called
from tailpath.distributed.part import Part, read_part, write_part
from tailpath.distributed.ranks import SECONDS, Job, together, world
from tailpath.errors import OptionError
from tailpath.methods import Found, Method, find_method
from tailpath.model.ssp import SSP
from tailpath.options import Flag
from tailpath.texts import pairs

#: The scheme of models that are made in parts.
PARTS = "parts:"
#: The flags of a command that runs on all ranks of MPI.
OPTIONS = (
    Flag("mpi", bool, False, "Run on all ranks of MPI, under mpiexec."),
    Flag("checkpoint", str, None, "With --mpi, save progress here, and resume it.", "FOLDER"),
    Flag("every", float, None, "Seconds between two checkpoints.", "S"),
)


def job_of(options: dict[str, Any]) -> Job | None:
    """What the flags ask for; ranks but the first fall silent."""
    mpi, folder, every = (options.pop(name) for name in ("mpi", "checkpoint", "every"))
    if not mpi:
        if folder is not None or every is not None:
            raise click.UsageError("--checkpoint and --every go with --mpi")
        return None
    comm = world()
    if comm.rank > 0:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115
    return (
        Job(comm)
        if folder is None
        else Job(comm).saving(folder, SECONDS if every is None else every)
    )


def part_of(model: str, job: Job) -> Part | None:
    """The part of this rank of a model that comes in parts; None of others."""
    comm = job.comm
    if pathlib.Path(model).is_dir():
        return together(comm, lambda: read_part(model, comm.rank, comm.size))
    if not model.startswith(PARTS):
        return None
    found = together(comm, lambda: part_called(model.removeprefix(PARTS), comm.rank, comm.size))
    if found is None:
        forms = "gridworld:ROWSxCOLUMNS, river:ROWSxCOLUMNS or sparse:STATES"
        raise OptionError(f"{model}: after {PARTS} write {forms}")
    return found


def solve_part(part: Part, job: Job, asked: dict[str, Any]) -> None:
    """Solve a model in parts, and show what was found at the start."""
    begin, alpha = perf_counter(), asked["alpha"]
    comm = job.comm
    method = find_method(asked["method"])
    if method.in_parts is None:
        able = solved_by(lambda method: method.in_parts)
        raise OptionError(
            f"--method {method.name} needs the whole model; models in parts are solved by {able}"
        )
    require_alpha(method, alpha)
    plan = on_ranks(method, job).make(part, alpha, asked)
    policy: Any = plan.policy(1.0 if alpha is None else alpha)
    found = method.in_parts(Found(plan, alpha, policy, None, perf_counter() - begin))
    seconds = perf_counter() - begin
    record = {"model": asked["model"], "ranks": comm.size, "states": part.n_states}
    rows = {"states": f"{part.n_states} in {comm.size} parts", **found.rows}
    print_result(
        {**record, **found.record, "seconds": seconds},
        pairs([*rows.items(), ("time", f"{seconds:.3g} s")]),
        asked["as_json"],
    )
    if asked["output"] is not None:
        gathered = policy.gather()
        if comm.rank == 0:
            tailpath.write_policy(gathered, asked["output"])


def on_ranks(method: Method, job: Job | None) -> Method:
    """The method on all ranks of a job, if there is one and the method knows how."""
    if job is None or method.in_parts is None:
        return method
    return replace(method, plan=partial(method.plan, comm=job))


@click.command(cls=ModelCommand)
@flags(
    Flag("parts", int, None, "One per rank.", "N", least=1, required=True),
    Flag("output", str, None, "Where the parts go.", "FOLDER", flag="-o --output", required=True),
)
@reported
def split_command(ssp: SSP, source: str, parts: int, output: str) -> Output:
    """Cut a MODEL into parts for as many ranks of MPI, one file each, in a FOLDER.

    The parts are then solved with mpiexec -n N tailpath solve FOLDER --alpha A --mpi, where no rank
    holds more than its own.
    """
    files = [str(write_part(Part.of(ssp, index, parts), output)) for index in range(parts)]
    record = {"model": source, "parts": files, "states": ssp.n_states}
    return record, f"{output}: {ssp.n_states} states in {parts} parts"
