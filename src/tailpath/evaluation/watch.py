"""Who watches a search: the user's progress function, and Ctrl-C.

An interrupt at a random moment would leave a node half expanded and its probability counted in part. So while a long search runs, a first Ctrl-C
is only noted, and the search stops at the next point where its numbers are sound; what it knows then still gives bounds. A second
Ctrl-C interrupts at once.
"""

from __future__ import annotations

import signal
import threading
from typing import Any

from tailpath.options import Progress


class Watch:
    """`with watch:` around a search; `stop` turns true once the search should end."""

    def __init__(self, progress: Progress | None) -> None:
        self._progress = progress
        self._before: Any = None
        self.stop = False

    def tell(self, expanded: int, arrived: float) -> None:
        """Tell the user how far the search has come; he may raise KeyboardInterrupt to stop it."""
        if self._progress is not None:
            try:
                self._progress(expanded, arrived)
            except KeyboardInterrupt:
                self.stop = True

    def _note(self, *_: Any) -> None:
        if self.stop:
            raise KeyboardInterrupt
        self.stop = True

    def __enter__(self) -> Watch:
        # Elsewhere than in the main thread, or under a handler of the user's own, Ctrl-C is not ours to take.
        plain = signal.getsignal(signal.SIGINT) is signal.default_int_handler
        if plain and threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGINT, self._note)
        return self

    def __exit__(self, *_: Any) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)
            self._before = None
