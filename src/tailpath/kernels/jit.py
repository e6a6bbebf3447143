"""The only home of the compiler: `@kernel` marks a function that numba compiles when it is called.

Numba takes longer to import than small problems take to solve, so it is imported at the first call
of a kernel, and every module may import kernels at its top. Kernels call kernels. Machine code is
stored where numba stores it: in `NUMBA_CACHE_DIR`, beside the source, or in the user's cache.
`NUMBA_DISABLE_JIT=1` runs kernels as they are written, `NUMBA_BOUNDSCHECK=1` checks every index.
Kernels return numbers and arrays, never named tuples: their class is Python's, a Ctrl-C that waits
for the end of the kernel is raised inside of it, and numba does not look (a segmentation fault).
Floating-point rules stay strict (no fastmath): the error bounds rely on them.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib
import pathlib
import sys
import threading
from collections.abc import Iterator
from types import FunctionType
from typing import TYPE_CHECKING, Any, TypeAlias

from tailpath.kernels.compile_time import listen, warn_unstored

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: An array of any kind, as kernels take them.
Array: TypeAlias = "NDArray[Any]"
#: Where kernels and their constants live.
FOLDERS = ("dp", "kernels")
#: Every kernel, as modules were imported.
KERNELS: list[Kernel] = []
_LOCK = threading.Lock()


class Kernel:
    """A function compiled when it is first called; `plain` is the function as it is written."""

    def __init__(self, function: FunctionType, inline: bool = False) -> None:
        functools.update_wrapper(self, function)
        self.plain, self._inline = function, inline
        self._compiled: Any = None
        self._inner: Any = None
        KERNELS.append(self)

    def __call__(self, *arguments: Any) -> Any:
        try:
            return (self._compiled or self._compile())(*arguments)
        except Exception as error:
            numba, made = _compiler(), self._compiled
            if numba.config.DISABLE_JIT or isinstance(error, numba.core.errors.NumbaError):
                raise
            ready = made is not None and tuple(map(numba.typeof, arguments)) in made.signatures
            if ready and not isinstance(error, (OSError, RuntimeError)):
                raise  # what the kernel itself ends in, such as a division by zero
            warn_unstored(error)
        # What was compiled could not be stored, or what was stored could not be loaded.
        return (made if ready else self._compile(cache=False))(*arguments)

    def _compile(self, cache: bool = True) -> Any:
        with _LOCK:
            if self._compiled is None or not cache:
                self._compiled = self._njit(cache=cache)
            return self._compiled

    def _called(self) -> Any:
        """What stands for this kernel in others, whose machine code on disk includes it."""
        self._inner = self._inner or self._njit(no_cpython_wrapper=True, forceinline=self._inline)
        return self._inner

    def _njit(self, **options: bool) -> Any:
        """Numba's function, which calls numba's functions where this one names kernels."""
        numba, function = _compiler(), self.plain
        code, names = function.__code__, dict(function.__globals__)
        for name in code.co_names:
            if isinstance(names.get(name), Kernel):
                names[name] = names[name]._called()
        linked = FunctionType(code, names, None, function.__defaults__, function.__closure__)
        linked.__qualname__ = f"{function.__qualname__}_{_digest()}"
        if numba.config.DISABLE_JIT:
            numpy: Any = sys.modules["numpy"]  # not imported above: `tailpath --help` does without
            return numpy.errstate(all="ignore")(linked)  # machine code does not warn either
        # Nobody calls kernels from C: a wrapper for it takes a twentieth of the compiler's time.
        return numba.njit(linked, nogil=True, no_cfunc_wrapper=True, **options)


def kernel(function: Any = None, *, inline: bool = False) -> Any:
    """Mark a function to be compiled; inline if to hand over arrays takes longer than its loop."""
    return functools.partial(Kernel, inline=inline) if function is None else Kernel(function)


def frozen(*arrays: Any) -> Iterator[Any]:
    """The arrays as read-only views: numba would compile a kernel for each mixture it meets."""
    for array in arrays:
        if array.flags.writeable:
            array = array.view()
            array.setflags(write=False)
        yield array


def _import_quietly(name: str) -> None:
    with contextlib.suppress(Exception):
        importlib.import_module(name)


@functools.cache
def _compiler() -> Any:
    """Numba, once it is needed."""
    # In a thread of its own: an import that Ctrl-C interrupts leaves half of numba behind.
    importing = threading.Thread(target=_import_quietly, args=("numba",))
    importing.start()
    importing.join()
    import numba  # which raises what failed there

    listen(numba.core.event)
    return numba


@functools.cache
def _digest() -> str:
    """Of the sources of all kernels, in their names on disk: numba compares the file of a kernel
    with what it stored, but not the files of the kernels and constants that it names."""
    package = pathlib.Path(__file__).parents[1]
    sources = sorted(source for folder in FOLDERS for source in (package / folder).glob("*.py"))
    return hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()[:8]
