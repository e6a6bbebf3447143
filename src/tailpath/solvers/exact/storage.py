"""Room for the decisions: in memory while they fit, on disk beyond that.

A table on disk is an unnamed temporary file mapped into memory: it reads and writes like any array, the system keeps in memory what is being
used, and the file vanishes with the last array that looks at it, also when the process is killed.
"""

from __future__ import annotations

import shutil
import tempfile
from typing import Any

import numpy as np
from numpy.typing import NDArray


def zeros(shape: tuple[int, int], dtype: Any, on_disk: bool) -> NDArray[Any]:
    """An array of zeros. Pages that are never written take neither memory nor disk."""
    if not on_disk or 0 in shape:
        return np.zeros(shape, dtype=dtype)
    with tempfile.TemporaryFile(prefix="tailpath-") as file:
        return np.asarray(np.memmap(file, dtype=dtype, mode="w+", shape=shape))


def free_disk() -> int:
    """How many bytes the folder for temporary files has left."""
    return shutil.disk_usage(tempfile.gettempdir()).free
