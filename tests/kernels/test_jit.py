"""Machine code that cannot be kept, or was damaged, costs time and a note, and nothing else."""

import os
import pathlib
import subprocess
import sys

PROGRAM = """
import numpy as np
from tailpath.kernels.graph import forward_reach
reached = np.zeros(2, dtype=np.bool_)
forward_reach(np.array([0, 1, 1]), np.array([1]), 0, reached)
print(reached.tolist())
"""


def run(folder):
    """A process that calls one kernel, with its cache in a folder."""
    settings = {**os.environ, "NUMBA_CACHE_DIR": str(folder), "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, env=settings, timeout=300, check=False)


def test_a_folder_that_cannot_be_written(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("no folder")
    told = run(blocked / "cache")
    assert told.stdout == "[True, True]\n", told.stderr
    assert "machine code is not kept" in told.stderr or not told.stderr


def test_a_damaged_cache(tmp_path):
    assert run(tmp_path).stdout == "[True, True]\n"
    kept = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert kept, "the first run keeps its machine code"
    for content in (b"", b"nonsense", b"\x80"):
        for path in kept:
            pathlib.Path(path).write_bytes(content)
        told = run(tmp_path)
        assert told.stdout == "[True, True]\n", told.stderr
        for path in tmp_path.rglob("*"):
            if path.is_file() and path not in kept:
                path.unlink()
