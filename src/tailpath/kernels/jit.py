"""The only home of the compiler: `@kernel` marks a function that numba compiles when it is called.

Numba takes longer to import than small problems take to solve, so it is imported at the first call
of a kernel, and every module may import kernels at its top. Kernels call kernels. Machine code is
stored where numba stores it: in `NUMBA_CACHE_DIR`, beside the source, or in the user's cache.
`NUMBA_DISABLE_JIT=1` runs kernels as they are written, `NUMBA_BOUNDSCHECK=1` checks every index.
Floating-point rules stay strict (no fastmath): the error bounds rely on them.
"""

from __future__ import annotations

import functools
import hashlib
import pathlib
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any

from tailpath.errors import TailpathWarning

#: Where kernels and their constants live.
FOLDERS = ("dp", "kernels")
#: Every kernel, as modules were imported.
KERNELS: list[Kernel] = []
_LOCK = threading.RLock()


def _tell_session() -> None:
    """The first use takes seconds: say why, below a notebook's cell or at a prompt."""
    if hasattr(sys, "ps1"):
        text = "tailpath: compiling for the first use, which takes a few seconds"
        sys.stderr.write(f"{text}\n")


_notes: list[Callable[[], None]] = [_tell_session]
_warned: list[Exception] = []


class Kernel:
    """A function compiled when it is first called; `plain` is the function as it is written."""

    def __init__(self, function: FunctionType, inline: bool = False) -> None:
        functools.update_wrapper(self, function)
        self.plain = function
        self._inline = inline
        self._compiled: Any = None
        self._inner: Any = None
        KERNELS.append(self)

    def __call__(self, *arguments: Any) -> Any:
        compiled = self._compiled or self._compile(cache=True)
        try:
            return compiled(*arguments)
        except Exception as error:
            numba = _compiler()[0]
            if numba.config.DISABLE_JIT or isinstance(error, numba.core.errors.NumbaError):
                raise
            ready = tuple(map(numba.typeof, arguments)) in compiled.signatures
            if ready and not isinstance(error, (OSError, RuntimeError)):
                raise  # what the kernel itself ends in, such as a division by zero
            _warn(error)
        # It is compiled and could not be saved; or what was saved could not be loaded.
        return (compiled if ready else self._compile(cache=False))(*arguments)

    def inner(self) -> Any:
        """What stands for this kernel in others, whose machine code on disk includes it."""
        with _LOCK:
            if self._inner is None:
                self._inner = self._njit(no_cpython_wrapper=True, forceinline=self._inline)
            return self._inner

    def _compile(self, cache: bool) -> Any:
        with _LOCK:
            try:
                self._compiled = self._njit(cache=cache)
            except (OSError, RuntimeError) as error:  # no folder can be written
                _warn(error)
                self._compiled = self._njit()
            return self._compiled

    def _njit(self, **options: bool) -> Any:
        """Numba's function, which calls numba's functions where this one names kernels."""
        numba, function = _compiler()[0], self.plain
        code, names = function.__code__, dict(function.__globals__)
        for name in code.co_names:
            if isinstance(names.get(name), Kernel):
                names[name] = names[name].inner()
        linked = FunctionType(code, names, None, function.__defaults__, function.__closure__)
        linked.__qualname__ = f"{function.__qualname__}_{_digest()}"
        if numba.config.DISABLE_JIT:
            numpy: Any = sys.modules["numpy"]  # not imported above: `tailpath --help` does without
            return numpy.errstate(all="ignore")(linked)  # machine code does not warn either
        # Nobody calls kernels from C, and a wrapper for it takes long to compile.
        return numba.njit(linked, nogil=True, no_cfunc_wrapper=True, **options)


def kernel(function: Any = None, *, inline: bool = False) -> Any:
    """Mark a function to be compiled.

    `inline=True` puts it into the kernels that call it: to hand over arrays takes longer than a
    short loop. A variable that a loop raises from 0 and hands to another kernel begins as
    `np.int64(0)`: a plain 0 has a type of its own, for which the other kernel would be compiled,
    too.
    """
    return functools.partial(Kernel, inline=inline) if function is None else Kernel(function)


def frozen(*arrays: Any) -> Iterator[Any]:
    """The arrays as read-only views: numba would compile a kernel for each mixture it meets."""
    for array in arrays:
        if array.flags.writeable:
            array = array.view()
            array.flags.writeable = False
        yield array


def when_compiling(note: Callable[[], None]) -> None:
    """Call `note` when something is first compiled in this process, not loaded from the cache."""
    _notes[:] = [note]


def compiling_seconds() -> float:
    """How long this process has compiled; 0 where everything came from the cache."""
    timer = _compiler()[1] if compiler_loaded() else None
    return float(timer.duration) if timer is not None and timer.done else 0.0


def compiler_loaded() -> bool:
    """Whether numba has been imported, so that calling a kernel costs no import any more."""
    return "numba" in sys.modules


@functools.cache
def _compiler() -> tuple[Any, Any]:
    """Numba, and what listens to it from now on: how long it compiles."""
    import numba

    events: Any = numba.core.event

    class Listener(events.TimingListener):  # type: ignore[misc]
        def on_start(self, event: Any) -> None:
            if _notes:
                _notes.pop()()
            super().on_start(event)

    timer = Listener()
    events.register("numba:compile", timer)
    return numba, timer


@functools.cache
def _digest() -> str:
    """Of the sources of all kernels, in their names on disk: numba compares the file of a kernel
    with what it stored, but not the files of the kernels and constants that it names."""
    package = pathlib.Path(__file__).parents[1]
    sources = sorted(source for folder in FOLDERS for source in (package / folder).glob("*.py"))
    return hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()[:8]


def _warn(error: Exception) -> None:
    """Warn once that machine code cannot be stored, and name the remedy."""
    if not _warned:
        _warned.append(error)
        text = (
            "compiled code cannot be stored, so every run compiles again"
            f" ({type(error).__name__}: {error}): set NUMBA_CACHE_DIR to a folder that can be"
            " written"
        )
        warnings.warn(text, TailpathWarning, stacklevel=4)
