"""Pictures on disk."""

from __future__ import annotations

from typing import Any

import click

#: The kinds of pictures there are.
PICTURES = (".png", ".pdf", ".svg")


def save_picture(axes: Any, path: str) -> None:
    """Save the figure of these matplotlib Axes; the suffix decides the format."""
    try:
        axes.figure.savefig(path)
    except ValueError as error:  # matplotlib's word for a suffix it does not know
        raise click.ClickException(f"{path}: {error}") from None
