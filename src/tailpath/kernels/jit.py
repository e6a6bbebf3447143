"""The only home of the compiler's options.

`kernel` compiles a function at its first call and caches the machine code on disk, so that a second process loads it in a fraction of a
second. The cache goes to the user's cache folder where the package's own folder cannot be written. Floating-point rules stay strict
(no fastmath): the error bounds rely on them.
"""

from __future__ import annotations

import os
import pathlib
from collections.abc import Callable
from typing import Any


def _cache_folder() -> None:
    """Point the compiler's cache at the user's cache folder, unless the user chose one or the package folder is writable."""
    here = pathlib.Path(__file__).parent
    if "NUMBA_CACHE_DIR" not in os.environ and not os.access(here, os.W_OK):
        home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
        os.environ["NUMBA_CACHE_DIR"] = os.path.join(home, "tailpath", "numba")


_cache_folder()

import numba  # noqa: E402  (the cache folder must be chosen first)


def kernel(function: Callable[..., Any] | None = None, *, parallel: bool = False) -> Any:
    """Compile with cache, without the interpreter lock; `parallel=True` lets `numba.prange` use all cores."""
    if function is None:
        return lambda inner: kernel(inner, parallel=parallel)
    return numba.njit(function, cache=True, nogil=True, parallel=parallel)
