"""What a user waits for before anything runs: the commands that need no compiler, and compilation with an empty and a warm cache."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time

COMMANDS = {
    "tailpath --help": ["-m", "tailpath", "--help"],
    "tailpath info gridworld:14x16": ["-m", "tailpath", "info", "gridworld:14x16"],
}
EVALUATION = """
import time, tailpath as tp
ssp = tp.domains.gridworld("14x16")
begin = time.perf_counter()
policy = tp.solve_expected(ssp).policy
tp.evaluate(ssp, policy, 1e-3)
print(f"{time.perf_counter() - begin:.3f}")
"""


def wall(arguments: list[str], environment: dict[str, str]) -> tuple[float, str]:
    begin = time.perf_counter()
    done = subprocess.run([sys.executable, *arguments], env=environment, capture_output=True, text=True, check=True)
    return time.perf_counter() - begin, done.stdout.strip()


def run() -> None:
    plain = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    for name, arguments in COMMANDS.items():
        wall(arguments, plain)
        print(f"{name:32} {min(wall(arguments, plain)[0] for _ in range(5)):.3f} s")
    with tempfile.TemporaryDirectory() as cache:
        environment = {**plain, "NUMBA_CACHE_DIR": cache}
        _, first = wall(["-c", EVALUATION], environment)
        _, second = wall(["-c", EVALUATION], environment)
    print(f"{'first evaluation, empty cache':32} {first} s (compiles)")
    print(f"{'same in a second process':32} {second} s (loads from the cache)")
