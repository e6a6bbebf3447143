"""How kernels are compiled: once for every kind of array, and not in silence."""

import os
import subprocess
import sys

PROGRAM = """
import numpy as np
from tailpath.kernels import graph, jit
jit.when_compiling(lambda: print("compiling"))
for repeat in range(2):
    length = np.zeros(2, dtype=np.int64)
    graph.longest_paths(np.array([0, 1, 1]), np.array([1]), np.array([1, 0]), length)
    print(length.tolist())
"""


def test_compilation_is_announced_once_and_never_from_the_cache(tmp_path):
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    first, second = (
        subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=True).stdout.split("\n")
        for _ in range(2)
    )
    assert first == ["compiling", "[1, 0]", "[1, 0]", ""]
    assert second == ["[1, 0]", "[1, 0]", ""]


ONCE = """
import sys
import tailpath as tp
from tailpath.cli.application import main
from tailpath.kernels import jit
folder = sys.argv[1]
for model in ("gridworld:5x5", "river:10x3"):
    policy = f"{folder}/policy.json"
    for command in (
        ["compare", model, "--alpha", "0.1"],
        ["solve", model, "--alpha", "0.1", "--output", policy],
        ["evaluate", model, policy, "--alpha", "0.1"],
        ["simulate", model, policy, "--runs", "10", "--alpha", "0.1"],
    ):
        assert main(command) == 0
for made in jit._MADE:
    print("made", made.py_func.__qualname__, len(made.signatures))
"""


def test_planning_and_evaluation_share_their_machine_code(tmp_path):
    """Read-only and writable arrays, int32 and int64, by row and by column: every mixture would be compiled anew, for seconds."""
    found = subprocess.run([sys.executable, "-c", ONCE, str(tmp_path)], capture_output=True, text=True, check=True).stdout
    made = [line.split()[1:] for line in found.splitlines() if line.startswith("made")]
    assert len(made) > 20
    assert [name for name, number in made if number != "1"] == []


GROWING = """
import numpy as np
from tailpath.kernels.jit import kernel

@kernel
def put(place, number, out):
    out[place] = number

@kernel
def count(out):
    place = 0
    while place < len(out):
        put(place, 0, out)
        put(place, place, out)
        place += 1

@kernel
def total(n):
    numbers = np.zeros(n)
    count(numbers)
    return numbers.sum()

if __name__ == "__main__":
    print(total(4), len(put.inner().signatures), put.allocates(), count.allocates(), total.allocates(), put)
"""


def test_kernels_that_kernels_call(tmp_path):
    """One version for the number 0 and for the numbers it grows to; references are counted where arrays are made; names stay what they are."""
    program = tmp_path / "growing.py"
    program.write_text(GROWING)
    found = subprocess.run([sys.executable, program], capture_output=True, text=True, check=True).stdout
    assert found.startswith("6.0 1 False False True <tailpath.kernels.jit.Kernel object")
