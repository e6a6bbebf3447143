"""`tailpath solve MODEL --alpha A --lazy`: models that are not listed, between two bounds."""

from __future__ import annotations

from itertools import chain
from typing import Any

import click

import tailpath
from tailpath.cli.common import timed
from tailpath.cli.output import print_result
from tailpath.formats import read_implicit
from tailpath.progress import progress_line
from tailpath.texts import count, pairs

#: Options of `solve` that go with `--lazy`.
TAKEN = {"model", "alpha", "lazy", "gap", "max_states", "give_up", "as_json", "method", "constants"}


def solve_lazily(ctx: click.Context) -> None:
    """Solve the MODEL of a command line by lazy expansion, and print the bracket."""
    asked = ctx.params
    for param in ctx.command.get_params(ctx):
        given = ctx.get_parameter_source(param.name or "") is click.core.ParameterSource.COMMANDLINE
        if given and param.name not in TAKEN:
            raise click.UsageError(f"{param.opts[0]} cannot be combined with --lazy", ctx)
    if asked["alpha"] is None:
        raise click.UsageError("--lazy needs --alpha, the mass of the worst tail", ctx)
    found, seconds, _ = timed(_solved, asked)
    low, high = found.bounds()
    record = {
        "model": asked["model"],
        "alpha": asked["alpha"],
        "bounds": [low, high],
        "expanded": found.expanded,
        "found": found.found,
        "stopped": found.stopped,
        "assumed": found.assumed,
        "seconds": seconds,
    }
    rows = {
        "least CVaR": f"at least {low:.10g}, at most {high:.10g}",
        "alpha": f"{asked['alpha']:.6g}",
        "states": f"{count(found.expanded, 'state')} expanded, {found.found} found",
        "ended": found.stopped,
        "trusted": found.assumed,
        "time": f"{seconds:.3g} s",
    }
    print_result(record, pairs(rows.items()), asked["as_json"])


def _solved(asked: dict[str, Any]) -> Any:
    constants = dict(chain.from_iterable(asked["constants"] or ()))
    functions = read_implicit(asked["model"], constants)
    model = functions or tailpath.read(asked["model"], constants=constants)
    limits = {name: asked[name] for name in ("gap", "max_states") if asked[name] is not None}
    with progress_line() as update:
        return tailpath.solve_cvar_lazy(
            model,
            asked["alpha"],
            give_up=asked["give_up"],
            progress=lambda states, gap: update(f"{states} states expanded, gap {gap:.3g}"),
            **limits,
        )
