"""Progress: one line, rewritten in place, on a terminal or below a notebook's cell."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Any

from tailpath.texts import count

PAUSE = 0.1  # seconds between two updates
CLEAR = "\r\x1b[K"  # back to the first column, and erase the line


@contextmanager
def progress_line(pause: float = PAUSE) -> Iterator[Callable[[str], None]]:
    """One line of progress, on a terminal or below a notebook's cell.

    Nothing is shown where nobody looks: standard error is no terminal, and there is no notebook.
    The line is gone at the end, also after an error or an interrupt.

    Parameters
    ----------
    pause : float
        The least time between two updates, in seconds.

    Yields
    ------
    callable
        It shows a text.

    Examples
    --------
    >>> with tp.pictures.progress_line() as update:
    ...     update("half of it is done")
    """
    write = _notebook() or _terminal()
    if write is None:
        yield lambda text: None
        return
    last = -pause

    def update(text: str) -> None:
        nonlocal last
        if monotonic() - last >= pause:
            write(text)
            last = monotonic()

    try:
        yield update
    finally:
        write("")


@contextmanager
def show_progress(what: str = "", pause: float = PAUSE) -> Iterator[Callable[[int, float], None]]:
    """Show on one line how far a computation has come: on a terminal, or below a notebook's cell.

    Parameters
    ----------
    what : str
        What is going on, in words.
    pause : float
        The least time between two updates, in seconds.

    Yields
    ------
    callable
        For the argument `progress=` of whatever takes one. It shows the steps taken so far and how
        far they have led; what these are, `tailpath.options.Progress` tells.

    Examples
    --------
    >>> with tp.show_progress("solving") as progress:
    ...     best = tp.solve_cvar_exact(ssp, 0.1, progress=progress)
    >>> best.cvar(0.1)
    30.0
    """
    with progress_line(pause) as update:
        yield lambda steps, reached: update(
            f"{what}{': ' if what else ''}{count(steps, 'step')}, at {reached:.6g}"
        )


def _terminal() -> Callable[[str], None] | None:
    if not sys.stderr.isatty():
        return None

    def write(text: str) -> None:
        # A line that goes on below could not be taken back.
        sys.stderr.write(CLEAR + text[: _columns() - 1])
        sys.stderr.flush()

    return write


def _columns() -> int:
    """The width of the terminal behind standard error; where it says none, that of most."""
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns or 80
    except (OSError, ValueError):
        return 80


def _notebook() -> Callable[[str], None] | None:
    """A line below the cell that runs, if this is a notebook: its kernel has loaded IPython long
    ago.
    """
    display: Any = sys.modules.get("IPython.display")
    shell: Any = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if display is None or not hasattr(shell, "kernel"):
        return None
    handle = display.display({"text/plain": ""}, raw=True, display_id=True)
    return lambda text: handle.update({"text/plain": text}, raw=True)
