"""Messages about the compiler: that it runs, for how long, and that nothing can be stored."""

from __future__ import annotations

import sys
import time
import warnings
from typing import Any

from tailpath.errors import TailpathWarning

#: Brings a terminal's cursor back to the start of its line, and clears that.
CLEAR_LINE = "\r\x1b[K"
_seconds: list[float] = []
_warned: list[Exception] = []


def compiling_seconds() -> float:
    """How long this process has compiled; 0 where everything came from the cache."""
    return sum(_seconds)


def listen(event: Any) -> None:
    """Listen to numba, whose module of events this is, from now on."""

    class Listener(event.Listener):  # type: ignore[misc]
        depth, begin, note = 0, 0.0, ""  # a kernel compiles the kernels that it calls

        def on_start(self, started: Any) -> None:
            if self.depth == 0:
                self.begin = time.perf_counter()
                name = started.data["dispatcher"].py_func.__name__
                self.note = f"tailpath: compiling {name} for the first use ..."
                _tell(CLEAR_LINE, self.note)
            self.depth += 1

        def on_end(self, ended: Any) -> None:
            self.depth -= 1
            if self.depth == 0:
                _seconds.append(time.perf_counter() - self.begin)
                # On a terminal a line of progress may have been written over it.
                _tell(CLEAR_LINE + self.note, f" {_seconds[-1]:.1f} s\n")

    event.register("numba:compile", Listener())


def _tell(control: str, text: str) -> None:
    """To whoever is watching: on a terminal, at a prompt, below the cell of a notebook."""
    if sys.stderr is not None and (sys.stderr.isatty() or hasattr(sys, "ps1")):
        sys.stderr.write(control + text if sys.stderr.isatty() else text)
        sys.stderr.flush()


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
