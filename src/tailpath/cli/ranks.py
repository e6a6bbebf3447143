"""One model over the ranks of MPI: `tailpath solve MODEL --mpi`, which every rank runs while only
rank 0 prints, and `tailpath split MODEL`, which cuts a model into a folder of parts.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from typing import Any

import click

import tailpath
from tailpath.cli.common import ModelCommand, WholeNumber, timed
from tailpath.cli.output import Output, print_result, reported
from tailpath.errors import OptionError
from tailpath.methods import Method, find_method
from tailpath.methods.comparison import BEST
from tailpath.methods.method import all_methods, bounds_row
from tailpath.model.ssp import SSP
from tailpath.registers import module_of
from tailpath.texts import pairs


def require_alpha(method: Method, alpha: float | None) -> None:
    """Refuse to plan for a tail without its mass."""
    if method.risk and alpha is None:
        plain = solved_by(lambda each: not each.risk)
        raise click.UsageError(
            f"--method {method.name} needs --alpha, the mass of the worst tail; for the mean alone"
            f" use --method {plain}"
        )


def solved_by(wanted: Callable[[Method], Any]) -> str:
    """The methods that can do something, for a message."""
    return " and ".join(method.name for method in all_methods() if wanted(method))


def ranks(module: str) -> Any:
    """A module of `tailpath.distributed`, which is loaded only here."""
    return module_of(f"tailpath.distributed.{module}", "mpi")


def all_ranks() -> Any:
    """The communicator of `--mpi`. Only rank 0 prints."""
    comm = ranks("ranks").world()
    if comm.rank > 0:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115
    return comm


def solve_part(part: Any, comm: Any, asked: Mapping[str, Any], ssp: SSP | None = None) -> None:
    """Solve a model in parts, and show what was found at the start; `ssp` is the model, if every
    rank has it.
    """
    alpha, method = asked["alpha"], find_method(asked["method"])
    if method.name != BEST:
        raise OptionError(
            f"--method {method.name} runs on one process; on ranks use --method {BEST}, whose"
            " --alpha 1 is the mean"
        )
    require_alpha(method, alpha)
    options = {each.name: asked.get(each.name) for each in method.options}
    given = {name: value for name, value in options.items() if value is not None}
    best, seconds, _ = timed(tailpath.solve_cvar_exact, part, alpha, comm=comm, **given)
    cvar, bounds = best.cvar(alpha), best.bounds(alpha)
    record = {
        "model": asked["model"],
        "ranks": comm.size,
        "states": part.n_states,
        "alpha": alpha,
        "cvar": cvar,
        "bounds": list(bounds),
        "budget": best.budget(alpha),
        "seconds": seconds,
    }
    rows = {
        "states": f"{part.n_states} in {comm.size} parts",
        "alpha": f"{alpha:.6g}",
        "least CVaR": f"{cvar:.10g}",
        **bounds_row(bounds),
        "time": f"{seconds:.3g} s",
    }
    print_result(record, pairs(rows.items()), asked["as_json"])
    if asked["output"] is not None:
        gathered = best.policy(alpha).gather(ssp)
        if comm.rank == 0:
            tailpath.write_policy(gathered, asked["output"])


@click.command(cls=ModelCommand)
@click.option("--parts", type=WholeNumber(1), required=True, help="Number of parts, one per rank.")
@click.option("-o", "--output", metavar="FOLDER", required=True, help="Folder for the parts.")
@reported
def split_command(ssp: SSP, source: str, parts: int, output: str) -> Output:
    """Cut a MODEL into parts, one file for each rank of MPI, in a FOLDER.

    The parts are then solved with mpiexec -n N tailpath solve FOLDER --alpha A --mpi, where each
    rank holds only its own part.

    Examples
    --------
    tailpath split river:30x10 --parts 4 --output parts
    mpiexec -n 4 tailpath solve parts --alpha 0.05 --mpi
    """
    files = ranks("files").write_parts(ssp, parts, output)
    record = {"model": source, "parts": list(map(str, files)), "states": ssp.n_states}
    return record, f"{output}: {ssp.n_states} states in {parts} parts"
