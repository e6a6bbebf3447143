"""`tailpath split MODEL --parts N -o FOLDER`."""

from __future__ import annotations

import click

from tailpath.cli.common import ModelCommand, flags
from tailpath.cli.output import Output, reported
from tailpath.distributed.part import Part, write_part
from tailpath.model.ssp import SSP
from tailpath.options import Flag


@click.command(cls=ModelCommand)
@flags(
    Flag("parts", int, None, "One per rank.", "N", least=1, required=True),
    Flag("output", str, None, "Where the parts go.", "FOLDER", flag="-o --output", required=True),
)
@reported
def command(ssp: SSP, source: str, parts: int, output: str) -> Output:
    """Cut a MODEL into parts for as many ranks of MPI, one file each, in a FOLDER.

    The parts are then solved with mpiexec -n N tailpath solve FOLDER --alpha A --mpi, where no rank
    holds more than its own.
    """
    files = [str(write_part(Part.of(ssp, index, parts), output)) for index in range(parts)]
    record = {"model": source, "parts": files, "states": ssp.n_states}
    return record, f"{output}: {ssp.n_states} states in {parts} parts"
