"""What is told of the compiler: that it is at work, for how long, that nothing can be stored."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from typing import Any

from tailpath.errors import TailpathWarning


def _tell_session() -> None:
    """The first use takes seconds: say why, below a notebook's cell or at a prompt."""
    if hasattr(sys, "ps1"):
        sys.stderr.write("tailpath: compiling for the first use, which takes a few seconds\n")


_notes: list[Callable[[], None]] = [_tell_session]
_timers: list[Any] = []
_warned: list[Exception] = []


def when_compiling(note: Callable[[], None]) -> None:
    """Call `note` when something is first compiled in this process, not loaded from the cache."""
    _notes[:] = [note]


def compiling_seconds() -> float:
    """How long this process has compiled; 0 where everything came from the cache."""
    return float(sum(timer.duration for timer in _timers if timer.done))


def listen(event: Any) -> None:
    """Listen to numba, whose module of events this is, from now on."""

    class Listener(event.TimingListener):  # type: ignore[misc]
        def on_start(self, started: Any) -> None:
            if _notes:
                _notes.pop()()
            super().on_start(started)

    _timers.append(Listener())
    event.register("numba:compile", _timers[-1])


def warn_unstored(error: Exception) -> None:
    """Warn once that machine code cannot be stored, and name the remedy."""
    if not _warned:
        _warned.append(error)
        text = (
            "compiled code cannot be stored, so every run compiles again"
            f" ({type(error).__name__}: {error}): set NUMBA_CACHE_DIR to a folder that can be"
            " written"
        )
        warnings.warn(text, TailpathWarning, stacklevel=4)
