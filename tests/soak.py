"""`python -m tests.soak [--seconds S] [--seed N]`: hours of ordinary use, all kinds at once.

Rounds of threads that share models, pools of processes, interrupted scripts, a study that is ended
and resumed, and one notebook that is interrupted again and again. Every number must be that of the
first round to the last bit; after a round no process may be left, workers of those that were ended
included; and the memory of this process and of the notebook must stay flat.
"""

from __future__ import annotations

import argparse
import csv
import ctypes
import json
import multiprocessing
import os
import pathlib
import queue
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import Any

import tailpath as tp
from tests.long_verbs import VERBS

#: How much a process may grow after the first third of the time, in MiB: caches that fill.
GROWTH = 40
#: Seconds that a worker may need to see that its study has ended, and that anything else may take
#: on a busy machine.
GRACE, WAIT = 60, 1800
#: Of Linux: who loses its parent becomes a child of this process, which can then see it.
PR_SET_CHILD_SUBREAPER = 36
NAMES = re.findall(r'^    "(.*)": lambda', VERBS, re.MULTILINE)
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
    """Two verbs: their numbers after a Ctrl-C at a random moment."""
    found = {}
    for name in draw.sample(NAMES, 2):
        command = [sys.executable, "-c", SCRIPT, name, str(draw.uniform(0.05, 2))]
        done = subprocess.run(command, capture_output=True, text=True, timeout=WAIT)
        assert done.returncode == 0, (name, done.returncode, done.stderr[-500:])
        found[name] = done.stdout.strip()
    return found


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
            assert first.wait(WAIT) in (0, 143, -signal.SIGTERM)
            subprocess.run(command, check=True, stdout=log, stderr=log, timeout=WAIT)
        with open(pathlib.Path(folder) / "points.csv", newline="") as points:
            kept = ("alpha", "predicted", "deployed", "var", "mean", "expanded")
            return sorted([row[name] for name in kept] for row in csv.DictReader(points))


class Notebook:
    """A kernel that lives as long as the soak."""

    def __init__(self, manager: Any, client: Any) -> None:
        self.manager, self.client, self.lost = manager, client, 0

    @property
    def process(self) -> int:
        return int(self.manager.provisioner.pid)

    def in_a_notebook(self, draw: random.Random) -> object:
        """Interrupted in a long call, and asked again."""
        client = self.client
        # After an error a kernel may drop what it is asked next.
        asked = "from tests.soak import answers\nwhile True: answers(3)"
        running = client.execute(asked, stop_on_error=False)
        time.sleep(draw.uniform(3, 6))
        self.manager.interrupt_kernel()
        try:
            try:
                reply = self._reply(running, GRACE)
            except queue.Empty:
                self.lost += 1
                print(f"a Ctrl-C was lost in the notebook, which said {self._said()!r}", flush=True)
                self.manager.interrupt_kernel()
                reply = self._reply(running, WAIT)
            assert reply["content"]["ename"] == "KeyboardInterrupt", reply["content"]
            asked = client.execute("print(answers(3))")
            while True:
                message = client.get_iopub_msg(timeout=WAIT)
                mine = message["parent_header"].get("msg_id") == asked
                if mine and message["msg_type"] == "stream":
                    return json.loads(message["content"]["text"])
        except queue.Empty:
            raise AssertionError("the kernel does not answer") from None

    def _reply(self, to: str, seconds: float) -> Any:
        while (reply := self.client.get_shell_msg(timeout=seconds))["parent_header"].get(
            "msg_id"
        ) != to:
            pass
        return reply

    def _said(self) -> str:
        """What the kernel has printed, such as exceptions that Python ignores."""
        texts = []
        with suppress(queue.Empty):
            while True:
                texts.append(self.client.get_iopub_msg(timeout=1)["content"].get("text", ""))
        return "".join(texts)[-2000:]


@contextmanager
def notebook() -> Iterator[Notebook]:
    from jupyter_client.manager import start_new_kernel

    manager, client = start_new_kernel(stderr=subprocess.DEVNULL)
    try:
        yield Notebook(manager, client)
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


USES: tuple[Callable[[random.Random], object], ...] = (
    in_threads,
    in_processes,
    interrupted,
    studied,
)


def memory(process: int | str = "self") -> float:
    """MiB of a process in use."""
    pages = int(pathlib.Path(f"/proc/{process}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGESIZE") / 2**20


def children() -> dict[int, str]:
    """Processes that this one, or one that has ended, started and that still run."""
    found = {}
    for task in pathlib.Path("/proc/self/task").glob("*/children"):
        for number in map(int, task.read_text().split()):
            with suppress(OSError):  # gone meanwhile
                place = pathlib.Path(f"/proc/{number}")
                state = (place / "stat").read_text().rpartition(")")[2].split()[0]
                if state == "Z":
                    with suppress(ChildProcessError):
                        os.waitpid(number, os.WNOHANG)
                else:
                    words = (place / "cmdline").read_bytes().replace(b"\0", b" ")
                    found[number] = words.decode(errors="replace")[:120]
    return found


def left_behind(ours: set[int | None]) -> dict[int, str]:
    """What runs beside our own, after a while."""
    end = time.monotonic() + GRACE
    while (left := {one: name for one, name in children().items() if one not in ours}) and (
        time.monotonic() < end
    ):
        time.sleep(1)
    return left


def tracker() -> int | None:
    """Python's own process that cleans up behind pools."""
    from multiprocessing import resource_tracker

    return resource_tracker._resource_tracker._pid  # type: ignore[attr-defined,no-any-return]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=3600)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    # In the background a shell has Ctrl-C ignored, and children would inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    draw, begin = random.Random(options.seed), time.monotonic()
    first: dict[str, object] = {}
    rounds, spent, settled = 0, 0.0, [0.0, 0.0]
    with notebook() as kernel:
        while spent < options.seconds:
            for use in (*USES, kernel.in_a_notebook):
                found = use(draw)
                each = found if isinstance(found, dict) else {use.__name__: found}
                for name, number in each.items():
                    assert first.setdefault(name, number) == number, f"{name}: {number}"
            left = left_behind({kernel.process, tracker()})
            assert not left, f"processes left: {left}"
            rounds, spent = rounds + 1, time.monotonic() - begin
            taken = [memory(), memory(kernel.process)]
            if spent < options.seconds / 3 or rounds == 1:
                settled = [max(pair) for pair in zip(settled, taken)]
            flat = all(now <= before + GROWTH for now, before in zip(taken, settled))
            assert flat, f"{settled} MiB grew to {taken}"
            print(
                f"{spent:6.0f} s, round {rounds}: {taken[0]:.0f} and {taken[1]:.0f} MiB", flush=True
            )
    left = left_behind({tracker()})
    assert not left, f"processes left: {left}"
    assert not kernel.lost, f"{kernel.lost} of {rounds} Ctrl-C were lost in the notebook"
    print(f"{rounds} rounds, the same {len(first)} numbers, no process left, {memory():.0f} MiB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
