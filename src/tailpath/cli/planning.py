"""Flags made from the options of planning methods."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import click
from click.shell_completion import CompletionItem

import tailpath
from tailpath.cli.common import flag
from tailpath.kernels.compile_time import compiling_seconds
from tailpath.methods import Method
from tailpath.methods.method import all_methods, method_names

#: A problem and settings so small that solving it is nothing but loading what a method needs.
TINY, TINY_ALPHA = "textbook:geometric", 0.5
TINY_SETTINGS = {"atoms": 3, "alpha0": 0.1}


@dataclass(frozen=True)
class Solved:
    """What `solve` found: a policy, a record for programs, rows for people and words below them;
    what can be verified; the seconds of compiling; and the costs of the policy, or their mean
    alone, which may be told as gains. The notes go with the policy when it is saved.
    """

    policy: Any
    record: Mapping[str, Any]
    rows: Mapping[str, str]
    checks: Sequence[Callable[[], Any]] = ()
    words: Sequence[str] = ()
    compiling: float = 0.0
    mean: float | None = None
    costs: tailpath.CostDistribution | None = None
    notes: Sequence[str] = ()


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


def load_methods(methods: Sequence[Method]) -> dict[str, float]:
    """Load, or on the first run compile, what the methods need; the seconds of compiling, for the
    method that first needed it.
    """
    tiny, found = tailpath.read(TINY), {}
    for method in methods:
        before = compiling_seconds()
        tailpath.evaluate(
            tiny, method.make(tiny, TINY_ALPHA, TINY_SETTINGS).policy(TINY_ALPHA), TINY_ALPHA
        )
        found[method.label] = compiling_seconds() - before
    return found


def solved_by(wanted: Callable[[Method], Any]) -> str:
    """The methods that can do something, for a message."""
    return " and ".join(method.name for method in all_methods() if wanted(method))


def complete_method(
    ctx: click.Context, param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """What the shell offers for a method."""
    return [CompletionItem(name) for name in method_names() if name.startswith(incomplete)]
