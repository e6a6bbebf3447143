"""`python -m tests.soak [--seconds S] [--seed N]`: hours of ordinary use, all kinds at once.

Rounds of threads that share models, pools of processes, interrupted scripts, a study that is ended
and resumed, and a notebook kernel that is interrupted. Every number must be that of the first
round to the last bit, no process may be left, and memory must stay flat.
"""

from __future__ import annotations

import argparse
import csv
import json
import multiprocessing
import os
import pathlib
import queue
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import tailpath as tp
from tests.long_verbs import VERBS

#: How much a process may grow after the first third of the time, in MiB: caches that fill.
GROWTH = 40
STUDY = [
    "--only",
    "gridworld/5x5",
    "--atoms",
    "7",
    "--alpha0",
    "0.1",
    "--lp",
    "none",
    "--no-simulation",
    "--export",
    "csv",
]
SCRIPT = (
    VERBS
    + """
import sys
name, after = sys.argv[1], float(sys.argv[2])
threading.Timer(after, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    while True:
        VERBS[name]()
except KeyboardInterrupt:
    pass
print(repr(VERBS[name]()))
"""
)


def answers(number: int) -> list[float]:
    """What one model answers: the mean, the optimum, what its policy costs, simulated runs."""
    draw = random.Random(number)
    n = draw.randint(5, 40)
    rows = [
        (state, action, min(state + draw.randint(1, 3), n), share, draw.randint(1, 30))
        for state in range(n)
        for action in range(2)
        for share in (0.5, 0.25, 0.25)
    ]
    ssp = tp.SSP.from_outcomes(rows, start=0, goals=[n])
    best = tp.solve_cvar_exact(ssp, 0.05)
    costs = tp.evaluate(ssp, best.policy(0.05), 0.05)
    runs = tp.simulate(ssp, best.policy(0.05), 500, seed=number)
    return [
        tp.solve_expected(ssp).cost(),
        best.cvar(0.05),
        costs.cvar(0.05),
        *costs.bounds(0.05),
        float(runs.sum()),
    ]


def in_threads(draw: random.Random) -> object:
    with ThreadPoolExecutor(8) as pool:
        return list(pool.map(answers, range(16)))


def in_processes(draw: random.Random) -> object:
    context = multiprocessing.get_context(draw.choice(["fork", "spawn"]))
    with ProcessPoolExecutor(2, mp_context=context) as pool:
        return list(pool.map(answers, range(8)))


def interrupted(draw: random.Random) -> object:
    """Each verb once, in turn: its number after a Ctrl-C at a random moment."""
    name = draw.choice(["solve_cvar_exact", "evaluate", "frontier", "solve", "solve_on_time"])
    command = [sys.executable, "-c", SCRIPT, name, str(draw.uniform(0.1, 3))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, (name, done.returncode, done.stderr[-500:])
    return {name: done.stdout.strip()}


def studied(draw: random.Random) -> object:
    """A study, ended by SIGTERM at a random moment and resumed: what its runs found."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "tailpath", "study", "--out", folder, *STUDY]
        with open(pathlib.Path(folder) / "log", "wb") as log:
            first = subprocess.Popen(command, stdout=log, stderr=log)
            try:
                first.wait(draw.uniform(1, 8))
            except subprocess.TimeoutExpired:
                first.terminate()
            assert first.wait(60) in (0, 143, -signal.SIGTERM)
            subprocess.run(command, check=True, stdout=log, stderr=log, timeout=600)
        with open(pathlib.Path(folder) / "points.csv", newline="") as points:
            kept = ("alpha", "predicted", "deployed", "var", "mean", "expanded")
            return sorted([row[name] for name in kept] for row in csv.DictReader(points))


def in_a_notebook(draw: random.Random) -> object:
    """A kernel that is interrupted in a long call, and asked again."""
    from jupyter_client.manager import start_new_kernel

    manager, client = start_new_kernel()
    try:
        running = client.execute("from tests.soak import answers\nwhile True: answers(3)")
        time.sleep(draw.uniform(3, 6))
        manager.interrupt_kernel()
        while (reply := client.get_shell_msg(timeout=120))["parent_header"]["msg_id"] != running:
            pass
        assert reply["content"]["ename"] == "KeyboardInterrupt", reply["content"]
        asked = client.execute("print(answers(3))")
        while True:
            message = client.get_iopub_msg(timeout=120)
            if message["parent_header"].get("msg_id") != asked:
                continue
            if message["msg_type"] == "stream":
                return json.loads(message["content"]["text"])
    except queue.Empty:
        raise AssertionError("the kernel does not answer") from None
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


USES: tuple[Callable[[random.Random], object], ...] = (
    in_threads,
    in_processes,
    interrupted,
    studied,
    in_a_notebook,
)


def memory() -> float:
    """MiB of this process in use."""
    pages = int(pathlib.Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGESIZE") / 2**20


def children() -> list[int]:
    """Processes that this one started and that still run."""
    tasks = pathlib.Path("/proc/self/task").glob("*/children")
    return [int(number) for task in tasks for number in task.read_text().split()]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=3600)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    draw, begin = random.Random(options.seed), time.monotonic()
    first: dict[str, object] = {}
    rounds, settled = 0, 0.0
    while (spent := time.monotonic() - begin) < options.seconds:
        for use in USES:
            found = use(draw)
            each = found if isinstance(found, dict) else {use.__name__: found}
            for name, number in each.items():
                assert first.setdefault(name, number) == number, f"{name}: {number}"
        rounds += 1
        if spent < options.seconds / 3:
            settled = max(settled, memory())
        print(f"{spent:6.0f} s, round {rounds}: {memory():.0f} MiB", flush=True)
    left = [one for one in children() if one not in tracker()]
    assert not left, f"processes left: {left}"
    assert memory() <= settled + GROWTH, f"{settled:.0f} MiB grew to {memory():.0f}"
    print(f"{rounds} rounds, the same numbers, no process left, {memory():.0f} MiB")
    return 0


def tracker() -> set[int | None]:
    """Python's own process that cleans up behind pools."""
    from multiprocessing import resource_tracker

    return {resource_tracker._resource_tracker._pid}  # type: ignore[attr-defined]


if __name__ == "__main__":
    sys.exit(main())
