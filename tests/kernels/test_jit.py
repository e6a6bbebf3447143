"""Machine code that cannot be kept costs time and a note; damaged, it is made anew."""

import os
import pathlib
import shutil
import subprocess
import sys

import numba
import numpy as np

import tailpath
from tailpath.kernels.graph import forward_reach

PROGRAM = """
import numpy as np
from tailpath.kernels.graph import forward_reach
from tailpath.kernels.jit import keeps_code
reached = np.zeros(2, dtype=np.bool_)
forward_reach(np.array([0, 1, 1]), np.array([1]), 0, reached)
print(reached.tolist(), keeps_code())
"""


ALGEBRA = """
import sys
print("scipy.linalg" in sys.modules)
import numba
@numba.njit
def product(matrix):
    return np.dot(matrix, matrix)
print(product(2.0 * np.eye(2)).tolist())
"""


def run(folder, package="", program=PROGRAM, **places):
    """A process that calls one kernel, with its cache in a folder; of the package found there, if it is given."""
    settings = {**os.environ, **places, "NUMBA_CACHE_DIR": str(folder), "PYTHONPATH": os.pathsep.join([str(package), *sys.path])}
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=settings, timeout=300, check=False)


def test_a_folder_that_cannot_be_written(tmp_path):
    """The compiler would keep its code in the folder given, beside the source, or in the user's home: a file stands in every place."""
    blocked = tmp_path / "file"
    blocked.write_text("no folder")
    package = tmp_path / "package"
    shutil.copytree(pathlib.Path(tailpath.__file__).parent, package / "tailpath", ignore=shutil.ignore_patterns("__pycache__"))
    (package / "tailpath" / "kernels" / "__pycache__").write_text("no folder")
    told = run(blocked / "cache", package, HOME=str(blocked / "home"), XDG_CACHE_HOME=str(blocked / "cache"))
    assert told.stdout == "[True, True] False\n", told.stderr
    assert "machine code is not kept" in told.stderr and "no folder for it can be written" in told.stderr


def test_linear_algebra_is_loaded_by_those_who_use_it(tmp_path):
    told = run(tmp_path, program=PROGRAM + ALGEBRA)
    assert told.stdout == "[True, True] True\nFalse\n[[4.0, 0.0], [0.0, 4.0]]\n", told.stderr


def test_a_damaged_cache(tmp_path):
    assert run(tmp_path).stdout == "[True, True] True\n"
    kept = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert kept, "the first run keeps its machine code"
    for content in (b"", b"nonsense", b"\x80"):
        for path in kept:
            pathlib.Path(path).write_bytes(content)
        for _ in range(2):
            told = run(tmp_path)
            assert (told.stdout, told.stderr) == ("[True, True] True\n", "")
        assert any(path.is_file() and path.stat().st_size > 100 for path in tmp_path.rglob("*.nbi")), "it is kept again"
        for path in tmp_path.rglob("*"):
            if path.is_file() and path not in kept:
                path.unlink()


def test_indices_count_from_the_end_in_functions_of_others():
    """Kernels are compiled on the understanding that theirs do not."""
    forward_reach(np.array([0, 1, 1]), np.array([1]), 0, np.zeros(2, dtype=np.bool_))

    @numba.njit
    def from_the_end(array, i):
        return array[i]

    assert [from_the_end(np.arange(5), i) for i in (-1, -5, 2)] == [4, 0, 2]
