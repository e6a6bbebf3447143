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
    graph.longest_paths(np.array([1, 0]), np.array([0, 1, 1]), np.array([1]), length)
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


TWICE = """
import tailpath as tp
from tailpath.kernels import bellman, forward, graph, lattice
for name in ("gridworld:5x5", "river:10x3"):
    ssp = tp.read(name)
    for policy in (tp.solve_expected(ssp).policy, tp.solve_cvar_exact(ssp, 0.1).policy(0.1)):
        tp.evaluate(ssp, policy, 0.1)
for kernel in (bellman.fold, bellman.least_values, bellman.relative_bounds, forward.cheapest_way, graph.strong_components, lattice.search):
    print(len(getattr(kernel, "signatures", None) or kernel.compiled().signatures))
"""


def test_planning_and_evaluation_share_their_machine_code():
    """Read-only and writable arrays, int32 and int64: every mixture would be compiled anew, for seconds."""
    found = subprocess.run([sys.executable, "-c", TWICE], capture_output=True, text=True, check=True).stdout
    assert found.split() == ["1"] * 6
