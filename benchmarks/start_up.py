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
FIRST_USES = {
    "tailpath evaluate, first use": ["-m", "tailpath", "evaluate", "gridworld:14x16", "expected", "--alpha", "0.01"],
    "tailpath compare, first use": ["-m", "tailpath", "compare", "gridworld:14x16", "--alpha", "0.01"],
    "tailpath solve, first use": ["-m", "tailpath", "solve", "gridworld:14x16", "--alpha", "0.01"],
    "tailpath simulate, first use": ["-m", "tailpath", "simulate", "gridworld:14x16", "expected", "--runs", "1000", "--alpha", "0.01"],
    "tailpath frontier, first use": ["-m", "tailpath", "frontier", "gridworld:14x16", "--risk", "cvar(0.01)"],
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
    for name, arguments in FIRST_USES.items():
        with tempfile.TemporaryDirectory() as cache:
            kept = {**plain, "NUMBA_CACHE_DIR": cache}
            print(f"{name:32} {wall(arguments, kept)[0]:.1f} s (compiles on two cores), then {wall(arguments, kept)[0]:.1f} s")
    with tempfile.TemporaryDirectory() as cache:
        environment = {**plain, "NUMBA_CACHE_DIR": cache}
        _, first = wall(["-c", EVALUATION], environment)
        _, second = wall(["-c", EVALUATION], environment)
    print(f"{'first evaluation, empty cache':32} {first} s (compiles on one core)")
    print(f"{'same in a second process':32} {second} s (loads from the cache)")
