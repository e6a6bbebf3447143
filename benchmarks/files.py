"""Large text files: ours written and read, and read by Storm, on the same files in the same run; each reader in a process of its own."""

from __future__ import annotations

import functools
import pathlib
import subprocess
import sys
import tempfile

import tailpath as tp
from benchmarks.measure import best_of, large_grid
from benchmarks.peers import installed

SIZES = (300, 500, 1000)
SUFFIXES = ("drn", "tra", "csv", "json")
READ = {
    "ours": "import tailpath, numba; work = lambda: tailpath.read(path)",
    "Storm": "import stormpy; work = lambda: stormpy.build_model_from_drn(path)",
}
#: Seconds of the processor, and the most memory that the process has had, less what it had before it began to read.
PROGRAM = """
import time, sys
path = sys.argv[1]
def status(name):
    with open("/proc/self/status") as stream:
        return next(int(line.split()[1]) for line in stream if line.startswith(name)) / 1000
{0}
before, begin = status("VmRSS"), time.process_time()
kept = work()
print(time.process_time() - begin, status("VmHWM") - before)
"""


def run(small: bool = False) -> None:
    storm = installed("stormpy")
    for size in (20,) if small else SIZES:
        ssp = large_grid(size)
        with tempfile.TemporaryDirectory() as folder:
            for suffix in SUFFIXES[:1] if small else SUFFIXES:
                path = pathlib.Path(folder) / f"model.{suffix}"
                seconds, _ = best_of(functools.partial(tp.write, ssp, path), 1)
                megabytes = sum(file.stat().st_size for file in path.parent.glob("model.*") if written_for(file, suffix)) / 1e6
                print(f"{size} x {size}, {suffix}, {megabytes:.0f} MB: written in {seconds:.1f} s", end="", flush=True)
                for name in ("ours", *(["Storm"] if storm and suffix == "drn" else [])):
                    used, memory = read(name, path)
                    print(f"; read by {name} in {used:.1f} s, {memory / megabytes:.1f} times the file", end="", flush=True)
                print(flush=True)


def written_for(file: pathlib.Path, suffix: str) -> bool:
    return file.suffix == f".{suffix}" or (suffix == "tra" and file.suffix in (".lab", ".srew", ".trew", ".sta"))


def read(name: str, path: pathlib.Path) -> tuple[float, float]:
    """Processor seconds and megabytes of one reader; the first of two runs has everything compiled and cached."""
    for _ in range(2 if name == "ours" else 1):
        done = subprocess.run([sys.executable, "-c", PROGRAM.format(READ[name]), str(path)], capture_output=True, text=True, check=True)
    seconds, memory = done.stdout.split()[-2:]
    return float(seconds), float(memory)
