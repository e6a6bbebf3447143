"""The methods of `tailpath solve`, one file each.

A file `tailpath.cli.methods.<name>` defines

    METHOD = Method(options, run)

with the click options it takes besides `--method`, `--output` and those of the model, and the function `run(ssp, **options) -> Answer`.
Options that several methods take (`ALPHA`) are declared once, here. A method whose file is missing is not offered.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import click

from tailpath.cli.common import alpha

#: In order of preference: the first one there is the default.
NAMES = ("exact", "expected", "quantile", "interpolation")

ALPHA = click.Option(["--alpha"], type=alpha, metavar="A", help="Mass of the worst tail, in (0, 1].")


@dataclass(frozen=True)
class Answer:
    """What a method found: a record for programs, a text for people, and the policy to save."""

    record: Mapping[str, Any]
    text: str
    policy: Any


@dataclass(frozen=True)
class Method:
    """One method: the options it takes, and the function that gets them."""

    options: tuple[click.Option, ...]
    run: Callable[..., Answer]


def available() -> dict[str, Method]:
    """The methods there are, the default first."""
    found = (name for name in NAMES if find_spec(f"{__name__}.{name}") is not None)
    return {name: importlib.import_module(f"{__name__}.{name}").METHOD for name in found}
