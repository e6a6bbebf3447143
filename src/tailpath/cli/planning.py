"""Flags made from the options of planning methods."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable
from typing import Any

import click
from click.shell_completion import CompletionItem

from tailpath.cli.common import alpha as tail_mass
from tailpath.errors import FormatError
from tailpath.formats.files import load_json, read_text
from tailpath.methods import Method, Option
from tailpath.methods.register import all_methods, method_names


def flag(option: Option) -> click.Option:
    """The flag of an option. Its value is None where the user says nothing, and the method then
    takes its default.
    """
    words: dict[str, Any] = {"help": option.help} | (
        {"metavar": option.word} if option.word else {}
    )
    name = f"--{option.name.replace('_', '-')}"
    if option.kind is bool:
        return click.Option([name], is_flag=True, default=None, **words)
    kind: Any = tail_mass if option.mass else table_file if option.kind is dict else option.kind
    if option.choices:
        kind = click.Choice(option.choices)
    elif option.least is not None:
        kind = click.IntRange(min=option.least)
    if option.default is not None:
        words["help"] += f"  [default: {option.default}]"
    return click.Option([name], type=kind, default=None, **words)


def table_file(path: str) -> dict[str, Any]:
    """The type of an option that takes a table from a file, in TOML or JSON."""
    text = read_text(path)
    try:
        found = tomllib.loads(text) if path.lower().endswith(".toml") else load_json(text, path)
    except tomllib.TOMLDecodeError as error:
        raise FormatError(f"{path}: {error}") from None
    if not isinstance(found, dict):
        raise FormatError(f"{path}: this must be a table, not a {type(found).__name__}")
    return found


def flags_of(methods: Iterable[Method]) -> dict[str, tuple[click.Option, list[str]]]:
    """The flags of all options of these methods, each once, with the names of the methods that take
    it.
    """
    found: dict[str, tuple[click.Option, list[str]]] = {}
    for method in methods:
        for option in method.options:
            if option.name not in found:
                found[option.name] = (flag(option), [])
            found[option.name][1].append(method.name)
    return found


def require_alpha(method: Method, alpha: float | None) -> None:
    """Refuse to plan for a tail without its mass."""
    if method.risk and alpha is None:
        plain = " or ".join(f"--method {each.name}" for each in all_methods() if not each.risk)
        raise click.UsageError(
            f"--method {method.name} needs --alpha, the mass of the worst tail; for the mean alone"
            f" use {plain}"
        )


def solved_by(wanted: Callable[[Method], Any]) -> str:
    """The methods that can do something, for a message."""
    return " and ".join(method.name for method in all_methods() if wanted(method))


def complete_method(
    ctx: click.Context, param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """What the shell offers for a method."""
    return [CompletionItem(name) for name in method_names() if name.startswith(incomplete)]
