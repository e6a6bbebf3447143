"""What the compiler is spared changes nothing for those who use it for other things, and a compiler that is not known is left alone."""

import os
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba.core.compiler import Flags

from tailpath.kernels import lean

lean.compare_what_is_set()
#: Other users of the compiler, in a process whose kernels have been compiled: functions taught before and after, closures, lists, whole arrays.
OTHERS = """
import operator
import numba
import numpy as np
from numba.extending import overload
if {unknown}:
    numba.version_info = (99, 0, 0)
from tailpath.kernels.graph import forward_reach
reached = np.zeros(2, dtype=np.bool_)
forward_reach(np.array([0, 1, 1]), np.array([1]), 0, reached)
from tailpath.kernels import jit
print(reached.tolist(), jit._pipelines == ({{}}, {{}}))

@numba.njit
def first(a, b):
    return a + b, a[0] * 2

def twice(x):
    pass

print(first(np.arange(2.0), np.ones(2)))

@overload(twice)
def _twice(x):
    if isinstance(x, numba.types.Integer):
        return lambda x: 2 * x

@numba.njit
def second(n):
    shift = 3
    add = lambda x: x + shift
    return [add(twice(k)) for k in range(n)], {{1: 2.5}}, (1, 2.0, "c")[2]

print(second(3))

@overload(twice)
def _twice_float(x):
    if isinstance(x, numba.types.Float):
        return lambda x: 4 * x

@numba.njit
def third(x):
    try:
        if x > 5:
            raise ValueError("large", x)
    except Exception:
        return -1.0
    return twice(x) + twice(1) + np.sum(np.linspace(0.0, x, 3) ** 2)

print(third(1.0), third(6.0))
"""

#: What `evaluate` and `compare` call, in a process that has nothing: how many functions the compiler makes for them.
COUNT = """
import numba
from numba.core import event
import tailpath as tp
ssp, alpha = tp.read("gridworld:5x5"), 0.1
with event.install_recorder("numba:compile") as made:
    tp.evaluate(ssp, tp.solve_expected(ssp).policy, alpha)
    print(len(made.buffer) // 2)
    tp.evaluate(ssp, tp.solve_cvar_quantile(ssp, tp.log_atoms(alpha, 3)).policy(alpha), alpha)
    tp.evaluate(ssp, tp.solve_cvar_exact(ssp, alpha).policy(alpha), alpha)
    print(len(made.buffer) // 2)
"""


def run(folder, program):
    places = {**os.environ, "NUMBA_CACHE_DIR": str(folder), "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=places, check=False)


def test_a_first_use_compiles_few_functions(tmp_path):
    """A user waits for every one of them. Branches that a kernel's constants rule out are not compiled, nor is a kernel for two kinds of array."""
    told = run(tmp_path, COUNT)
    evaluate, compare = (int(count) for count in told.stdout.split())
    assert 40 < evaluate <= 90 and 60 < compare <= 120, told.stderr


@pytest.mark.parametrize("unknown", [False, True])
def test_others_use_the_compiler_as_before(tmp_path, unknown):
    told = run(tmp_path, OTHERS.format(unknown=unknown))
    assert told.stdout.splitlines() == [
        f"[True, True] {unknown}",
        "(array([1., 2.]), 0.0)",
        "([3, 5, 7], DictType[int64,float64]<iv=None>({1: 2.5}), 'c')",
        "7.25 -1.0",
    ], told.stderr


@settings(max_examples=50, deadline=None)
@given(*[st.dictionaries(st.sampled_from(["nrt", "no_compile", "release_gil", "error_model"]), st.booleans()) for _ in range(2)])
def test_options_are_equal_where_all_their_values_are(one, other):
    """Set to its default an option is what it is when it is not set."""
    flags = Flags(), Flags()
    for made, values in zip(flags, (one, other), strict=True):
        for name, value in values.items():
            setattr(made, name, ("numpy" if value else "python") if name == "error_model" else value)
    assert (flags[0] == flags[1]) == (flags[0].values() == flags[1].values())
    assert (flags[0] != flags[1]) == (flags[0].values() != flags[1].values())
    assert flags[0] != flags[1] or hash(flags[0]) == hash(flags[1])
    assert flags[0] != "flags"
