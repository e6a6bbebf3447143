"""`tailpath page MODEL --out FILE`: one page of HTML that explains a model."""

from __future__ import annotations

import os
from time import perf_counter
from typing import Any

import click

import tailpath
from tailpath.cli.alphas import ManyAlphas, alphas_option
from tailpath.cli.common import LOOSE, flags, out_file
from tailpath.cli.compare import POLICIES, own_policies
from tailpath.cli.output import Output, reported
from tailpath.cli.planning import complete_method
from tailpath.model.ssp import SSP
from tailpath.options import Flag
from tailpath.pictures.progress import progress_line
from tailpath.show.page.data import ALPHAS
from tailpath.texts import number


@click.command(cls=ManyAlphas)
@flags(
    Flag(
        "out",
        out_file(".html", ".htm"),
        None,
        "Where to write the page (.html).",
        "FILE",
        required=True,
    ),
)
@alphas_option(default=ALPHAS)
@flags(
    POLICIES,
)
@click.option(
    "--method",
    "methods",
    multiple=True,
    metavar="NAME",
    shell_complete=complete_method,
    help="Also this planner (repeatable).",
)
@flags(
    Flag(
        "title", str, None, "Title of the page.  [default: the model, without its folder]", "TEXT"
    ),
    Flag("unit", str, "", "What costs are counted in, e.g. minutes.", "TEXT"),
    LOOSE,
)
@reported
def command(
    ssp: SSP,
    source: str,
    out: str,
    files: tuple[str, ...],
    title: str | None,
    loose: bool,
    **options: Any,
) -> Output:
    """Explain a MODEL on one page: what the average-best policy, yours, and the optimal one do for
    each alpha, and why.

    The page is one HTML file that any browser shows, offline: decisions on a map or graph by budget
    left, distributions, CVaR against alpha, the worst runs step by step, blame, and in words what
    differs.
    """
    begin = perf_counter()
    mine = {row.name: row.policy(1.0) for row in own_policies(ssp, files, loose, [])}
    title = title or (os.path.basename(source) if os.path.isfile(source) else source)
    with progress_line() as update:
        made = tailpath.page(ssp, out, mine, title=title, progress=update, **options)
    seconds = perf_counter() - begin
    size = len(made.html.encode())
    record = {"model": source, "file": out, "bytes": size, "seconds": seconds}
    return record, f"{out}: {size / 1e6:.2g} MB, made in {number(seconds, 2)} s"
