"""Pictures on disk."""

from __future__ import annotations

import io
import os
from typing import Any

from tailpath.formats.files import write_bytes

#: The kinds of pictures there are.
PICTURES = (".png", ".pdf", ".svg")


def save_picture(axes: Any, path: str) -> None:
    """Save the figure of these matplotlib Axes; the suffix decides the format."""
    content = io.BytesIO()
    kind = os.path.splitext(path)[1].removeprefix(".").lower()
    axes.figure.savefig(content, format=kind)
    write_bytes(path, content.getvalue())
