"""`tailpath frontier MODEL`: the least mean for every level of risk."""

from __future__ import annotations

from collections.abc import Iterator
from time import perf_counter
from typing import Any

import click

import tailpath
from tailpath.cli.common import ModelCommand, flags, out_file, refuse_same_file
from tailpath.cli.objectives import measure
from tailpath.cli.output import PICTURES, Output, reported, save_picture, terminal_width
from tailpath.model.records import MAX_ROWS
from tailpath.model.ssp import SSP
from tailpath.options import Flag
from tailpath.pictures.progress import progress_line
from tailpath.risk.measure import Measure
from tailpath.texts import count


@click.command(cls=ModelCommand)
@flags(
    Flag(
        "risk",
        measure,
        None,
        "The mean against cvar(A), late(T) or shortfall(B).",
        "MEASURE",
        required=True,
    ),
    Flag(
        "tolerance",
        click.FloatRange(min=0),
        None,
        "Stop this close to the frontier, relatively; 0 finds all corners.",
        "X",
    ),
    Flag("delta", str, None, "Round costs to multiples of D; the frontier is then bracketed.", "D"),
    Flag("everything", bool, False, "Print every corner, however many there are.", flag="--all"),
    Flag("plot", out_file(*PICTURES), None, "Draw the frontier (.png, .pdf or .svg).", "FILE"),
    Flag(
        "corner",
        int,
        None,
        "The corner whose policy is saved by --output, counted as in the table.",
        "N",
        least=1,
    ),
    Flag(
        "output",
        out_file(".json", ".npz"),
        None,
        "Save the policy of --corner (.json or .npz).",
        "FILE",
        flag="-o --output",
    ),
)
@reported
def command(
    ssp: SSP,
    source: str,
    risk: Measure,
    everything: bool,
    plot: str | None,
    corner: int | None,
    output: str | None,
    **options: Any,
) -> Output:
    """Show what safety costs: every corner of least mean against a risk, from the safest policy to
    the one that is best on average.
    """
    if (corner is None) != (output is None):
        raise click.UsageError(
            "--corner and --output go together: which corner's policy to save, and where"
        )
    refuse_same_file(output, source)
    begin = perf_counter()
    with progress_line() as update:
        found = tailpath.frontier(
            ssp,
            risk,
            **options,
            progress=lambda tables, corners: update(
                f"{count(tables, 'table')}, {count(int(corners), 'corner')}"
            ),
        )
    seconds = perf_counter() - begin
    if corner is not None and output is not None:
        if corner > len(found):
            raise click.UsageError(
                f"the frontier has {count(len(found), 'corner')}, so there is no corner {corner}"
            )
        tailpath.write_policy(found[corner - 1].policy, output)
    if plot is not None:
        save_picture(found.plot(), plot)
    columns = found._columns()
    lines = [dict(zip(columns, row)) for row in zip(*columns.values())]
    record = {
        "model": source,
        "risk": str(risk),
        "delta": options["delta"],
        "corners": lines,
        "gap": found.gap,
        "seconds": seconds,
    }
    text = found.as_text(terminal_width(), len(found) if everything else MAX_ROWS)
    notes = "\n".join(_notes(found, seconds, everything, options["delta"]))
    return record, f"least mean against {risk} of {source}\n\n{text}\n\n{notes}"


def _notes(found: Any, seconds: float, everything: bool, delta: str | None) -> Iterator[str]:
    """What is said below the table."""
    more = "" if everything or len(found) <= MAX_ROWS else "; --all shows all"
    yield f"{count(len(found), 'corner')} in {seconds:.3g} s{more}"
    if any(len(one.parts) > 1 for one in found):
        yield "policies: how many of them a coin, tossed once at the start, chooses among"
    if delta is not None:
        yield (
            f"costs are rounded up to multiples of {delta}; rounded down they give the mean that"
            " no policy with this risk falls below"
        )
