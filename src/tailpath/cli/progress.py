"""Progress on standard error: one line, rewritten in place."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread
from time import monotonic

PAUSE = 0.1  # seconds between two updates
PATIENCE = 3.0  # seconds after which loading must be compiling
CLEAR = "\r\x1b[K"  # back to the first column, and erase the line


@contextmanager
def compiling() -> Iterator[Callable[[], float]]:
    """Says `compiling, once` while what runs inside takes longer than loading machine code does; yields a function that tells how long it took.

    The first run of a version compiles its loops, which takes many seconds; later ones load them in a moment, and say nothing.
    """
    begin = monotonic()
    done = Event()
    speaker = Thread(target=_speak, args=(done, begin), daemon=True)
    speaker.start()
    end = begin
    try:
        yield lambda: end - begin
    finally:
        end = monotonic()
        done.set()
        speaker.join()


def _speak(done: Event, begin: float) -> None:
    shown = sys.stderr is not None and sys.stderr.isatty()
    said = False
    while not done.wait(PATIENCE if not said else 1.0):
        if shown:
            sys.stderr.write(f"{CLEAR}compiling, once: {monotonic() - begin:.0f} s")
            sys.stderr.flush()
        elif not said:
            print("tailpath: note: compiling, once", file=sys.stderr, flush=True)
        said = True
    if said and shown:
        sys.stderr.write(CLEAR)
        sys.stderr.flush()


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
