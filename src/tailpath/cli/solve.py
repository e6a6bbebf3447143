"""`tailpath solve MODEL`: one command, several methods. Each method is a file of `tailpath.cli.methods`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from tailpath.cli.common import json_option, show, takes_model
from tailpath.cli.methods import Method, available

if TYPE_CHECKING:
    from tailpath.model.ssp import SSP


class SolveCommand(click.Command):
    """Takes the options of all methods, each once, and refuses those that the chosen method has no use for."""

    def __init__(self, *args: Any, methods: Mapping[str, Method], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.takers: dict[str, list[str]] = {}
        for name, method in methods.items():
            for option in method.options:
                if option.opts[0] not in self.takers:
                    self.params.append(option)
                self.takers.setdefault(option.opts[0], []).append(name)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        left = super().parse_args(ctx, args)
        method = ctx.params.get("method")
        for param in self.params:
            takers = self.takers.get(param.opts[0])
            given = param.name is not None and ctx.get_parameter_source(param.name) is ParameterSource.COMMANDLINE
            if takers and given and method not in takers:
                raise click.UsageError(f"{param.opts[0]} does not apply to --method {method}, only to {', '.join(takers)}", ctx)
        return left


def build(methods: Mapping[str, Method]) -> click.Command:
    """The command over these methods; the first is the default."""

    @click.command(cls=SolveCommand, methods=methods)
    @takes_model
    @click.option("--method", type=click.Choice(list(methods)), default=next(iter(methods)), show_default=True, help="How to solve.")
    @click.option("-o", "--output", type=click.Path(), metavar="FILE", help="Save the policy (.json or .npz).")
    @json_option
    def solve(ssp: SSP, source: str, method: str, output: str | None, as_json: bool, **options: Any) -> None:
        """Find the best policy of a MODEL and what it costs."""
        chosen = methods[method]
        answer = chosen.run(ssp, **{option.name: options[option.name] for option in chosen.options if option.name})
        if output is not None:
            import tailpath

            tailpath.write_policy(answer.policy, output)
        show({"model": source, "method": method, **answer.record}, answer.text, as_json)

    return solve


command = build(available())
