"""Room for large tables: in memory while they fit, on disk beyond that.

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


class Pieces:
    """Hands out tables, some rows at a time.

    On disk several of them share a file, and each file has twice the rows of the one before: a process may not hold many files open.
    """

    def __init__(self, width: int, dtype: Any) -> None:
        self._width, self._dtype = width, dtype
        self._rows = 0
        self._spare = zeros((0, width), dtype, False)

    def take(self, rows: int, on_disk: bool) -> NDArray[Any]:
        """A table of zeros with so many rows."""
        if not on_disk:
            return zeros((rows, self._width), self._dtype, False)
        if len(self._spare) < rows:
            self._rows = max(rows, 2 * self._rows)
            self._spare = zeros((self._rows, self._width), self._dtype, True)
        piece, self._spare = self._spare[:rows], self._spare[rows:]
        return piece


def free_disk() -> int:
    """How many bytes the folder for temporary files has left."""
    return shutil.disk_usage(tempfile.gettempdir()).free
