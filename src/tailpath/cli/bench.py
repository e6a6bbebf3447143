"""`tailpath bench`."""

from __future__ import annotations

import pathlib
import subprocess
import sys

import click

import tailpath


@click.command(context_settings={"ignore_unknown_options": True})
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def command(arguments: tuple[str, ...]) -> int:
    """Run the benchmarks of a checkout; ARGUMENTS are handed on to them."""
    root = pathlib.Path(tailpath.__file__).resolve().parents[2]
    if not (root / "benchmarks" / "__main__.py").is_file():
        raise click.ClickException(
            "the benchmarks are part of the repository, not of the installed package: run this from"
            " a checkout"
        )
    return subprocess.run(
        [sys.executable, "-m", "benchmarks", *arguments], cwd=root, check=False
    ).returncode
