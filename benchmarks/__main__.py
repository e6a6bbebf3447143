"""`python -m benchmarks [NAME ...]`: all tables, or the ones named."""

from __future__ import annotations

import importlib
import os
import platform
import sys

NAMES = ["start_up", "ground", "evaluation", "planners", "exact", "objectives", "files", "peers"]


def main(names: list[str]) -> None:
    unknown = [name for name in names if name not in NAMES]
    if unknown:
        sys.exit(f"unknown benchmark {unknown[0]!r}; there are {', '.join(NAMES)}")
    print(f"Python {platform.python_version()}, {os.cpu_count()} cores, {platform.machine()}", flush=True)
    for name in names or NAMES:
        print(f"\n== {name}", flush=True)
        importlib.import_module(f"benchmarks.{name}").run()


if __name__ == "__main__":
    main(sys.argv[1:])
