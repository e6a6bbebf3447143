"""Progress on standard error: one line, rewritten in place."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

PAUSE = 0.1  # seconds between two updates


@contextmanager
def progress_line() -> Iterator[Callable[[str], None]]:
    """Yields a function that shows a text; it does nothing if standard error is no terminal, and the line is gone at the end."""
    shown = [float("-inf"), 0.0]  # time of the last update, its length

    def update(text: str) -> None:
        now = time.monotonic()
        if now - shown[0] >= PAUSE:
            sys.stderr.write(f"\r\x1b[K{text}")
            sys.stderr.flush()
            shown[:] = [now, len(text)]

    if not sys.stderr.isatty():
        yield lambda text: None
        return
    try:
        yield update
    finally:
        if shown[1]:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
