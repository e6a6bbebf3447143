"""`tailpath solve --method interpolation`: CVaRVILI."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import click

from tailpath.cli.methods import Answer, Method
from tailpath.cli.methods.published import OPTIONS, plan

if TYPE_CHECKING:
    from tailpath.model.ssp import SSP

INNER = click.Option(
    ["--inner"],
    type=click.Choice(["lp", "greedy"]),
    default="lp",
    show_default=True,
    help="Inner problems: linear programs by HiGHS, or their closed form.",
)


def run(ssp: SSP, inner: str, **options: Any) -> Answer:
    import tailpath

    return plan(ssp, partial(tailpath.solve_cvar_interpolation, inner=inner), **options)


METHOD = Method((*OPTIONS, INNER), run)
