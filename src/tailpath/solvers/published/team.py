"""Threads that share the work of a sweep."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any


class Team:
    """Threads that share work by parts; a team of one is the calling thread alone, and starts
    nothing.
    """

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self._pool = ThreadPoolExecutor(threads - 1) if threads > 1 else None

    def __enter__(self) -> Team:
        return self

    def __exit__(self, *exception: object) -> None:
        if self._pool is not None:
            self._pool.shutdown()

    def share(self, last: int, parts: int, function: Callable[[int, int, int], Any]) -> list[Any]:
        """Call `function(first, last, part)` on equal parts of 0 .. last - 1, which must not need
        each other; returns what they return.
        """
        todo = deque((last * k // parts, last * (k + 1) // parts, k) for k in range(parts))
        results: list[Any] = [None] * parts

        def work() -> None:
            while True:
                try:
                    part = todo.popleft()
                except IndexError:
                    return
                results[part[2]] = function(*part)

        others = (
            [self._pool.submit(work) for _ in range(self.threads - 1)]
            if self._pool is not None
            else []
        )
        work()
        for other in others:
            other.result()
        return results
