"""`tailpath page MODEL --out FILE`: one page of HTML that explains a model."""

from __future__ import annotations

from time import perf_counter

import click

from tailpath.cli.alphas import ManyAlphas, alphas_option
from tailpath.cli.common import json_option, number, out_file, show, takes_model
from tailpath.formats.files import write_text
from tailpath.model.ssp import SSP
from tailpath.pictures.progress import progress_line
from tailpath.show.page.data import ALPHAS
from tailpath.show.page.make import page


@click.command(cls=ManyAlphas)
@takes_model
@click.option("--out", type=out_file(".html", ".htm"), required=True, metavar="FILE", help="Where to write the page (.html).")
@alphas_option(default=ALPHAS)
@click.option("--title", metavar="TEXT", help="Title of the page.  [default: the model as typed]")
@json_option
def command(ssp: SSP, source: str, out: str, alphas: tuple[float, ...], title: str | None, as_json: bool) -> None:
    """Explain a MODEL on one page: what the average-best, the published planner's and the optimal policy do for each alpha, and why.

    The page is one HTML file that any browser shows, offline: decisions on a map or graph by budget left, distributions, CVaR against alpha, the
    worst runs step by step, blame, and in words what differs.
    """
    begin = perf_counter()
    with progress_line() as tell:
        text = page(ssp, title or source, alphas, tell)
    write_text(out, text)
    seconds = perf_counter() - begin
    size = len(text.encode())
    record = {"model": source, "file": out, "bytes": size, "seconds": seconds}
    show(record, f"{out}: {size / 1e6:.2g} MB, made in {number(seconds, 2)} s", as_json)
