"""`tailpath report DIR`."""

from __future__ import annotations

import os

import click

from tailpath.cli.output import Output, reported
from tailpath.errors import FormatError
from tailpath.study.paper.report import write_report


def stored_study(text: str) -> str:
    """The type of an argument that takes the folder of a study."""
    if not os.path.isdir(text):
        raise FormatError(f"{text}: no such folder")
    return text


@click.command()
@click.argument("folder", metavar="DIR", type=stored_study)
@reported
def command(folder: str) -> Output:
    """Rebuild study.md, the figures and the tables of a study in DIR from its stored runs; nothing
    is solved or evaluated.

    Where DIR holds runs of several program versions, those of the version that wrote last are
    shown.
    """
    written = write_report(folder)
    record = {"files": [str(path) for path in written]}
    return record, f"{written[0]} and {len(written) - 1} more files written"
