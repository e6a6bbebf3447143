"""`--alpha` with several values, for commands that answer for many: `--alpha 0.1 0.01`, `--alpha
0.1,0.01`, or the option repeated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import click

from tailpath.cli.common import ModelCommand, alpha


class ManyAlphas(ModelCommand):
    """A command whose `--alpha` may be followed by several numbers."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, list(_one_each(args)))


def alphas_option(default: Sequence[float] = (), **settings: Any) -> Callable[..., Any]:
    """The option; the command, a `ManyAlphas`, gets `alphas`: a tuple of numbers in (0, 1], each
    once, smallest first.
    """

    def distinct(
        ctx: click.Context, param: click.Parameter, value: tuple[float, ...]
    ) -> tuple[float, ...]:
        return tuple(sorted(set(value)))

    help_ = "Masses of the worst tail, in (0, 1], one or more."
    return click.option(
        "--alpha",
        "alphas",
        type=alpha,
        multiple=True,
        metavar="A...",
        help=help_,
        callback=distinct,
        default=default,
        show_default=bool(default),
        **settings,
    )


def _one_each(args: list[str]) -> Iterator[str]:
    """Repeat `--alpha` before each number of its list."""
    position = 0
    while position < len(args):
        arg, position = args[position], position + 1
        if arg != "--alpha" and not arg.startswith("--alpha="):
            yield arg
            continue
        values = (
            [arg.removeprefix("--alpha=")] if arg != "--alpha" else args[position : position + 1]
        )
        position += arg == "--alpha"
        while position < len(args) and _is_list(args[position]):
            values.append(args[position])
            position += 1
        if not values:
            yield arg  # the parser says what is missing
        for number in ",".join(values).split(",") if values else ():
            yield from ("--alpha", number)


def _is_list(text: str) -> bool:
    """Whether a word is a number, or several with commas between."""
    try:
        return all(float(part.removesuffix("%")) is not None for part in text.split(","))
    except ValueError:
        return False
