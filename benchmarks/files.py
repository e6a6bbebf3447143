"""Large text files: ours written and read, and read by Storm, on the same files in the same run;
each reader in a process of its own.
"""

from __future__ import annotations

import importlib.util
import inspect
import pathlib
import subprocess
import sys
import tempfile
import time

import tailpath as tp
from benchmarks.measure import large_grid
from benchmarks.peers import installed

SIZES = (300, 500, 1000)
SUFFIXES = ("drn", "tra", "csv", "json")
READ = {
    "ours": "import tailpath, numba; work = lambda: tailpath.read(path)",
    "Storm": "import stormpy; work = lambda: stormpy.build_model_from_drn(path)",
}
#: Seconds of the processor, and the most memory that the process has had, less what it had before
#: it began to read.
PROGRAM = """
import time, sys
path = sys.argv[1]
{0}
{1}
before, begin = memory_of("VmRSS"), time.process_time()
kept = work()
print(time.process_time() - begin, memory_of("VmHWM") - before)
"""


def run(small: bool = False) -> None:
    installed("stormpy")
    for size in (20,) if small else SIZES:
        one_size(size, SUFFIXES[:1] if small else SUFFIXES)


def one_size(size: int, suffixes: tuple[str, ...] = SUFFIXES) -> None:
    """One grid in several formats."""
    ssp, other = large_grid(size), large_grid(min(size, 90))
    with tempfile.TemporaryDirectory() as folder:
        for suffix in suffixes:
            path = pathlib.Path(folder) / f"model.{suffix}"
            tp.write(other, path)  # compiles, or loads what was compiled
            seconds, clock, memory = write(ssp, path)
            megabytes = (
                sum(
                    file.stat().st_size
                    for file in path.parent.glob("model.*")
                    if written_for(file, suffix)
                )
                / 1e6
            )
            print(
                f"{size} x {size}, {suffix}, {megabytes:.0f} MB: written in {seconds:.2f} s"
                f" ({clock:.2f} s by the clock)",
                end="",
            )
            print(f", {memory / megabytes:.1f} times the file", end="", flush=True)
            for name in (
                "ours",
                *(["Storm"] if importlib.util.find_spec("stormpy") and suffix == "drn" else []),
            ):
                used, memory = read(name, path)
                print(
                    f"; read by {name} in {used:.2f} s, {memory / megabytes:.1f} times the file",
                    end="",
                    flush=True,
                )
            print(flush=True)


def write(ssp: tp.SSP, path: pathlib.Path) -> tuple[float, float, float]:
    """Processor seconds, seconds by the clock, and megabytes beside the model."""
    pathlib.Path("/proc/self/clear_refs").write_text("5")  # forgets what the process had at most
    before, wall, processor = memory_of("VmRSS"), time.perf_counter(), time.process_time()
    tp.write(ssp, path)
    return time.process_time() - processor, time.perf_counter() - wall, memory_of("VmHWM") - before


def memory_of(name: str) -> float:
    """Megabytes of this process, now or at most."""
    with open("/proc/self/status") as stream:
        return next(int(line.split()[1]) for line in stream if line.startswith(name)) / 1000


def written_for(file: pathlib.Path, suffix: str) -> bool:
    return file.suffix == f".{suffix}" or (
        suffix == "tra" and file.suffix in (".lab", ".srew", ".trew", ".sta")
    )


def read(name: str, path: pathlib.Path) -> tuple[float, float]:
    """Processor seconds and megabytes of one reader; the first of two runs has everything compiled
    and cached.
    """
    for _ in range(2 if name == "ours" else 1):
        done = subprocess.run(
            [
                sys.executable,
                "-c",
                PROGRAM.format(inspect.getsource(memory_of), READ[name]),
                str(path),
            ],
            capture_output=True,
            text=True,
            check=True,
        )
    seconds, memory = done.stdout.split()[-2:]
    return float(seconds), float(memory)
