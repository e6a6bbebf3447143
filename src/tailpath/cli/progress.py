"""Progress on standard error: one line, rewritten in place."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic

PAUSE = 0.1  # seconds between two updates
CLEAR = "\r\x1b[K"  # back to the first column, and erase the line


@contextmanager
def progress_line() -> Iterator[Callable[[str], None]]:
    """Yields a function that shows a text, at most ten times a second.

    Nothing is shown if standard error is no terminal. The line is gone at the end, also after an error or an interrupt.
    """
    if not sys.stderr.isatty():
        yield lambda text: None
        return
    last = -PAUSE

    def update(text: str) -> None:
        nonlocal last
        if monotonic() - last >= PAUSE:
            sys.stderr.write(CLEAR + text)
            sys.stderr.flush()
            last = monotonic()

    try:
        yield update
    finally:
        sys.stderr.write(CLEAR)
        sys.stderr.flush()
