"""`tailpath frontier MODEL`: the least mean for every level of risk."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click

import tailpath
from tailpath.cli.common import (
    ModelCommand,
    WholeNumber,
    flag_of,
    measure,
    picture,
    policy_output,
    refuse_same_file,
    timed,
    under,
)
from tailpath.cli.output import Output, reported, save_picture, terminal_width
from tailpath.methods.optimal import DELTA
from tailpath.model.records import MAX_ROWS
from tailpath.model.ssp import SSP
from tailpath.progress import progress_line
from tailpath.risk.measure import Measure
from tailpath.texts import count


@click.command(cls=ModelCommand)
@click.option(
    "--risk", type=measure, required=True, help="Such as cvar(0.05), late(30) or shortfall(30)."
)
@click.option(
    "--tolerance",
    type=click.FloatRange(min=0),
    help="Stop this close to the frontier, as a share of its range; 0 finds all corners.",
)
@flag_of(DELTA)
@under(
    "Output",
    click.option("--all", "everything", is_flag=True, help="Print every corner."),
    click.option("--plot", type=picture, help="Draw the frontier."),
    click.option("--corner", type=WholeNumber(1), help="The corner whose policy --output saves."),
    policy_output("Save the policy of --corner (.json or .npz)."),
)
@reported
def frontier_command(
    ssp: SSP,
    source: str,
    risk: Measure,
    everything: bool,
    plot: str | None,
    corner: int | None,
    output: str | None,
    **options: Any,
) -> Output:
    """Show what safety costs: the least mean for each level of a risk, from the safest policy to
    the one with the least mean.

    Examples
    --------
    tailpath frontier river:5x5 --risk 'cvar(0.05)'
    tailpath frontier river:5x5 --risk 'late(30)' --corner 2 --output safe.json
    """
    if (corner is None) != (output is None):
        raise click.UsageError(
            "--corner and --output go together: the corner whose policy to save, and the file"
        )
    refuse_same_file(output, source)
    with progress_line() as update:
        found, seconds, _ = timed(
            tailpath.frontier,
            ssp,
            risk,
            **options,
            progress=lambda tables, corners: update(
                f"{count(tables, 'table')}, {count(int(corners), 'corner')}"
            ),
        )
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
    more = "" if everything or len(found) <= MAX_ROWS else "; --all shows all"
    yield f"{count(len(found), 'corner')} in {seconds:.3g} s{more}"
    if any(len(one.parts) > 1 for one in found):
        yield "policies: how many are mixed at a corner"
    if delta is not None:
        yield (
            f"costs are rounded up to multiples of {delta}; rounded down they give a lower bound"
            " on the mean of every policy with this risk"
        )
