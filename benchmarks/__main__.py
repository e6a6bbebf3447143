"""`python -m benchmarks [--small] [NAME ...]`: all tables, or the ones named; what is printed is
kept in build/benchmarks.txt, too.

`--small` takes the smallest models, which shows in seconds that everything still runs.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import pathlib
import platform
import resource
import sys
import time
from typing import Any

NAMES = [
    *("start_up", "ground", "shapes", "evaluation", "planners", "exact", "objectives"),
    *("intervals", "coverage", "files", "peers", "baseline"),
]


KEPT = pathlib.Path(__file__).parents[1] / "build" / "benchmarks.txt"


class Both:
    """A stream that writes to two."""

    def __init__(self, *streams: Any) -> None:
        self.streams = streams

    def write(self, text: str) -> None:
        for stream in self.streams:
            stream.write(text)

    def flush(self) -> None:
        for stream in self.streams:
            stream.flush()


def main(names: list[str]) -> None:
    small, names = "--small" in names, [name for name in names if name != "--small"]
    unknown = [name for name in names if name not in NAMES]
    if unknown:
        sys.exit(f"unknown benchmark {unknown[0]!r}; there are {', '.join(NAMES)}")
    KEPT.parent.mkdir(exist_ok=True)
    with KEPT.open("w") as kept, contextlib.redirect_stdout(Both(sys.stdout, kept)):  # type: ignore[type-var]
        print(
            f"Python {platform.python_version()}, {os.cpu_count()} cores, {platform.machine()}",
            flush=True,
        )
        for name in names or NAMES:
            print(f"\n== {name}", flush=True)
            begin = time.perf_counter()
            importlib.import_module(f"benchmarks.{name}").run(small)
            memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
            print(
                f"-- {time.perf_counter() - begin:.0f} s in all; peak memory of the process so far"
                f" {memory:.1f} GB",
                flush=True,
            )


if __name__ == "__main__":
    main(sys.argv[1:])
