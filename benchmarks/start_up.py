"""What a user waits for before anything runs: the commands that need no compiler, and compilation
with an empty and a warm cache.
"""

from __future__ import annotations

import contextlib
import io
import os
import resource
import subprocess
import sys
import tempfile
import time

from tailpath.cli import main

COMMANDS = {
    "tailpath --help": ["-m", "tailpath", "--help"],
    "tailpath info gridworld:14x16": ["-m", "tailpath", "info", "gridworld:14x16"],
}
FIRST_USES = {
    "tailpath evaluate, first use": [
        "-m",
        "tailpath",
        "evaluate",
        "gridworld:14x16",
        "expected",
        "--alpha",
        "0.01",
    ],
    "tailpath compare, first use": [
        "-m",
        "tailpath",
        "compare",
        "gridworld:14x16",
        "--alpha",
        "0.01",
    ],
    "tailpath solve, first use": ["-m", "tailpath", "solve", "gridworld:14x16", "--alpha", "0.01"],
    "tailpath simulate, first use": [
        "-m",
        "tailpath",
        "simulate",
        "gridworld:14x16",
        "expected",
        "--runs",
        "1000",
        "--alpha",
        "0.01",
    ],
    "tailpath frontier, first use": [
        "-m",
        "tailpath",
        "frontier",
        "gridworld:14x16",
        "--risk",
        "cvar(0.01)",
    ],
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
    """The seconds that a process takes, and what it prints."""
    begin = time.perf_counter()
    done = subprocess.run(
        [sys.executable, *arguments], env=environment, capture_output=True, text=True, check=True
    )
    return time.perf_counter() - begin, done.stdout.strip()


def processor() -> float:
    """The processor seconds of all processes started so far."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def run(small: bool = False) -> None:
    plain = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    if small:
        run_small(plain)
        return
    for name, arguments in COMMANDS.items():
        wall(arguments, plain)
        print(f"{name:32} {min(wall(arguments, plain)[0] for _ in range(5)):.3f} s")
    for name, arguments in FIRST_USES.items():
        with tempfile.TemporaryDirectory() as cache:
            kept = {**plain, "NUMBA_CACHE_DIR": cache}
            before = processor()
            clock, compiling = wall(arguments, kept)[0], processor() - before
            print(
                f"{name:32} {clock:.1f} s, {compiling:.1f} of the processor, then"
                f" {wall(arguments, kept)[0]:.1f} s"
            )
    with tempfile.TemporaryDirectory() as cache:
        environment = {**plain, "NUMBA_CACHE_DIR": cache}
        _, first = wall(["-c", EVALUATION], environment)
        _, second = wall(["-c", EVALUATION], environment)
    print(f"{'first evaluation, empty cache':32} {first} s")
    print(f"{'same in a second process':32} {second} s")


def run_small(environment: dict[str, str]) -> None:
    """The same commands on the smallest Gridworld in this process, which has its machine code, and
    the evaluation in another.
    """
    for name, arguments in {**COMMANDS, **FIRST_USES}.items():
        begin = time.perf_counter()
        with contextlib.redirect_stdout(io.StringIO()):
            code = main([argument.replace("14x16", "5x5") for argument in arguments[2:]])
        print(
            f"{name:32} {time.perf_counter() - begin:.3f} s in a process that runs, exit code"
            f" {code}"
        )
        assert code == 0
    print(f"{'evaluation in another process':32} {wall(['-c', EVALUATION], environment)[1]} s")
