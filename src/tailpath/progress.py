"""Progress: one line, rewritten in place, on a terminal or below a notebook's cell.

There is one line at a time, which nested computations share. After two seconds every computation
has one; if it is silent, the line shows how long it has run.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from time import monotonic
from typing import Any

from tailpath.texts import count

PAUSE = 0.1  # seconds between two updates
AFTER = 2.0  # seconds until a line is shown without being asked for
BEAT = 1.0  # seconds of silence after which the time is shown
CLEAR = "\r\x1b[K"  # back to the first column, and erase the line


@dataclass
class _Line:
    """The line of a computation: its last text, its start, and when it was last shown."""

    write: Callable[[str], None]
    text: str
    began: float
    pause: float = PAUSE
    after: float = 0.0
    shown: float | None = None

    def update(self, text: str) -> None:
        self.text, now = text, monotonic()
        soon = self.shown is not None and now - self.shown < self.pause
        if now - self.began >= self.after and not soon:
            self.show(text, now)

    def beat(self, now: float) -> None:
        """Show how long it has taken, if nothing else was shown."""
        since = max(self.began + max(self.after, AFTER) - BEAT, self.shown or self.began)
        if now - since >= BEAT:
            self.show(f"{self.text or 'working'}, {now - self.began:.0f} s", now)

    def show(self, text: str, now: float) -> None:
        with _lock:
            if _current is self:
                self.write(text)
                self.shown = now


_lock = threading.RLock()
_current: _Line | None = None
_heart: threading.Thread | None = None


def _in_a_new_process() -> None:
    """A fork copies a line that others write on, and a lock that they may hold."""
    global _lock, _current, _heart
    _lock = threading.RLock()
    _current = _heart = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_a_new_process)


def _beat() -> None:
    while True:
        time.sleep(BEAT / 2)
        line = _current
        if line is not None:
            line.beat(monotonic())


@contextmanager
def progress_line(
    what: str = "", pause: float = PAUSE, after: float = 0.0
) -> Iterator[Callable[[str], None]]:
    """One line of progress, on a terminal or below a notebook's cell.

    Nothing is shown if standard error is not a terminal and there is no notebook. The line is
    removed at the end, also after an error or an interrupt.

    Parameters
    ----------
    what : str
        What is running, in words.
    pause : float
        The least time between two updates, in seconds.
    after : float
        The seconds before anything is shown.

    Yields
    ------
    callable
        It shows a text.

    Examples
    --------
    >>> with tp.pictures.progress_line() as update:
    ...     update("half of it is done")
    """
    global _current, _heart
    outer, own_thread = _current, threading.current_thread() is threading.main_thread()
    if outer is not None and own_thread:
        yield outer.update
        return
    write = _writer() if own_thread else None
    if write is None:
        yield lambda text: None
        return
    _current = line = _Line(write, what, monotonic(), pause, after)
    if _heart is None:
        _heart = threading.Thread(target=_beat, daemon=True)
        _heart.start()
    try:
        yield line.update
    finally:
        end_line()


def end_line() -> None:
    """Remove the line for good: a result follows."""
    global _current
    with _lock:
        line, _current = _current, None
    if line is not None and line.shown is not None:
        line.write("")


@contextmanager
def show_progress(what: str = "", pause: float = PAUSE) -> Iterator[Callable[[int, float], None]]:
    """Show the progress of a computation on one line: on a terminal, or below a notebook cell.

    Parameters
    ----------
    what : str
        What is running, in words.
    pause : float
        The least time between two updates, in seconds.

    Yields
    ------
    callable
        For the argument `progress=` of a verb. It shows the steps taken so far and how far they
        have led, as `tailpath.options.Progress` lists them.

    Examples
    --------
    >>> with tp.show_progress("solving") as progress:
    ...     best = tp.solve_cvar_exact(ssp, 0.1, progress=progress)
    >>> best.cvar(0.1)
    30.0
    """
    with progress_line(what, pause) as update:
        yield lambda steps, reached: update(
            f"{what}{': ' if what else ''}{count(steps, 'step')}, at {reached:.6g}"
        )


def _writer() -> Callable[[str], None] | None:
    return _notebook() or (_on_terminal if _is_terminal() else None)


def _is_terminal() -> bool:
    return sys.stderr is not None and not sys.stderr.closed and sys.stderr.isatty()


def _on_terminal(text: str) -> None:
    # A line that wraps could not be removed.
    sys.stderr.write(CLEAR + text[: _columns() - 1])
    sys.stderr.flush()


def _columns() -> int:
    """The width of the terminal behind standard error, or 80 if it is unknown."""
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
    handles: list[Any] = []

    def write(text: str) -> None:
        if not handles:  # silent computations leave no empty line
            handles.append(display.display({"text/plain": text}, raw=True, display_id=True))
        else:
            handles[0].update({"text/plain": text}, raw=True)

    return write
