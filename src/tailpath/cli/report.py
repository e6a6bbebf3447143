"""`tailpath report DIR`."""

from __future__ import annotations

import os

import click

from tailpath.cli.output import json_option, show
from tailpath.errors import FormatError
from tailpath.study.paper.report import write_report


def stored_study(text: str) -> str:
    """The type of an argument that takes the folder of a study."""
    if not os.path.isdir(text):
        raise FormatError(f"{text}: no such folder")
    return text


@click.command()
@click.argument("folder", metavar="DIR", type=stored_study)
@json_option
def command(folder: str, as_json: bool) -> None:
    """Rebuild study.md, the figures and the tables of a study in DIR from its stored runs; nothing
    is solved or evaluated.

    Where DIR holds runs of several program versions, those of the version that wrote last are
    shown.
    """
    written = write_report(folder)
    show(
        {"files": [str(path) for path in written]},
        f"{written[0]} and {len(written) - 1} more files written",
        as_json,
    )
