"""`tailpath convert MODEL TARGET`."""

from __future__ import annotations

import click

import tailpath
from tailpath.cli.common import ModelCommand, out_file
from tailpath.cli.output import Output, reported
from tailpath.model.ssp import SSP
from tailpath.pictures.progress import progress_line


@click.command(cls=ModelCommand)
@click.argument("target", type=out_file())
@reported
def command(ssp: SSP, source: str, target: str) -> Output:
    """Read a MODEL and write it to the file TARGET, whose suffix decides the format; an existing
    file is replaced.

    What the format of TARGET cannot hold is refused, and nothing is written.
    """
    with progress_line() as update:
        tailpath.write(
            ssp,
            target,
            progress=lambda outcomes, share: update(
                f"writing {target}: {share:.0%}, {outcomes} outcomes"
            ),
        )
    sizes = {"states": ssp.n_states, "choices": ssp.n_choices, "outcomes": ssp.n_outcomes}
    text = ", ".join(f"{size} {what}" for what, size in sizes.items())
    return {"model": source, "written": target, **sizes}, f"{target}: {text}"
