"""The only home of the compiler: `@kernel` marks a function that numba compiles.

Small work is not compiled. Numba takes longer to import than a small problem takes to solve, so
kernels run as they are written, on short arrays, until they have taken a second in all; then
numba is imported for those that had a share in it, and each of the others has a moment of its own,
on very short arrays, before it is compiled. Loops that may go on for long have pauses
(`steps_until_pause`), after which the rest is compiled. Both ways give the same bits.

Kernels call kernels. Machine code is stored where numba stores it: in `NUMBA_CACHE_DIR`, beside the
source, or in the user's cache. `NUMBA_DISABLE_JIT=1` compiles nothing, `TAILPATH_COMPILE=1`
everything, and `NUMBA_BOUNDSCHECK=1` checks every index.
Kernels return numbers and arrays, never named tuples: their class is Python's, a Ctrl-C that waits
for the end of the kernel is raised inside of it, and numba does not look (a segmentation fault).
Floating-point rules stay strict (no fastmath): the error bounds rely on them.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import pathlib
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import TYPE_CHECKING, Any, TypeAlias

from tailpath.kernels.compile_time import listen, warn_unstored

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: An array of any kind, as kernels take them.
Array: TypeAlias = "NDArray[Any]"
#: Where kernels and their constants live.
FOLDERS = ("certify", "dp", "kernels")
#: Every kernel, as modules were imported.
KERNELS: list[Kernel] = []
#: Arrays up to this length are small, and so many steps of a loop; kernels as they are written may
#: take so much processor time in all: about as much as it takes to import the compiler and to load
#: what it made, and a fraction of the time in which it makes it.
SMALL_ARRAY, STEPS_INTERPRETED, ALLOWED_SECONDS = 20_000, 2_000, 1.0
#: Afterwards each kernel may take so much of its own, on arrays and in loops so much shorter:
#: little beside what it takes to load the compiler, and nothing beside what it takes to compile.
OWN_SECONDS, SHORTER = 0.03, 20
_LOCK = threading.RLock()
#: Of numba's locks, those that a fork holds.
_held: list[Any] = []


class Kernel:
    """A function that runs as it is written on little, and is compiled for more; `plain` is the
    function itself.

    On arrays of more than `small` numbers it is always compiled.
    """

    def __init__(
        self, function: FunctionType, inline: bool = False, small: int = SMALL_ARRAY
    ) -> None:
        functools.update_wrapper(self, function)
        self.plain, self._inline, self.small = function, inline, small
        self._compiled: Any = None
        self._inner: Any = None
        self.is_compiled = False
        self.seconds = 0.0  # as it is written
        KERNELS.append(self)

    def __call__(self, *arguments: Any) -> Any:
        if interpreter.takes(self, arguments):
            return interpreter.run(self, arguments)
        try:
            if self.is_compiled:
                return self._compiled(*arguments)
            with held_signals():
                return self._first(arguments)
        except SystemError as error:
            # A Ctrl-C that came while the kernel ran was raised while its arrays were handed over:
            # Python calls it an error of each function that it passed.
            raised: BaseException = error
            while isinstance(raised, SystemError) and raised.__cause__ is not None:
                raised = raised.__cause__
            raise raised from None

    def _first(self, arguments: tuple[Any, ...]) -> Any:
        """The first call, for which machine code is loaded or made. No signal may be raised here:
        what it ends in would count as a fault of the cache, and the kernel run again.
        """
        try:
            found = self._compile()(*arguments)
        except Exception as error:
            numba, made = _compiler(), self._compiled
            if numba.config.DISABLE_JIT or isinstance(error, numba.core.errors.NumbaError):
                raise
            ready = made is not None and tuple(map(numba.typeof, arguments)) in made.signatures
            if ready and not isinstance(error, (OSError, RuntimeError)):
                raise  # what the kernel itself ends in, such as a division by zero
            warn_unstored(error)
            # What was compiled could not be stored, or what was stored could not be loaded.
            found = (made if ready else self._compile(cache=False))(*arguments)
        self.is_compiled = True
        return found

    @functools.cached_property
    def interpreted(self) -> Any:
        """The function as it is written, and the kernels that it names likewise."""
        return self._linked(lambda inner: inner.interpreted)

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
        numba = _compiler()
        linked = self._linked(Kernel._called)
        linked.__qualname__ = f"{self.plain.__qualname__}_{_digest()}"
        # Nobody calls kernels from C: a wrapper for it takes a twentieth of the compiler's time.
        return numba.njit(linked, nogil=True, no_cfunc_wrapper=True, **options)

    def _linked(self, called: Callable[[Kernel], Any]) -> FunctionType:
        """The function with something else in the place of every kernel that it names."""
        function, names = self.plain, dict(self.plain.__globals__)
        for name in function.__code__.co_names:
            if isinstance(names.get(name), Kernel):
                names[name] = called(names[name])
        return FunctionType(
            function.__code__, names, None, function.__defaults__, function.__closure__
        )


class Interpreter:
    """Who runs kernels as they are written, for how long in all. `compiles` is None where that
    depends on how much there is to do.
    """

    def __init__(self) -> None:
        self.seconds = 0.0
        self.compiles: bool | None = None
        if os.environ.get("NUMBA_DISABLE_JIT", "0") != "0":
            self.compiles = False
        elif os.environ.get("TAILPATH_COMPILE", "0") != "0":
            self.compiles = True

    @property
    def _all_have_time(self) -> bool:
        return self.seconds < ALLOWED_SECONDS and "numba" not in sys.modules

    def has_time(self, kernel: Kernel) -> bool:
        """Whether little work of this kernel is still run as it is written."""
        return self._all_have_time or kernel.seconds < OWN_SECONDS

    def most(self, size: int) -> int:
        """How much still counts as little, where at first it is this size."""
        return size if self._all_have_time else size // SHORTER

    def takes(self, kernel: Kernel, arguments: tuple[Any, ...]) -> bool:
        if self.compiles is not None:
            return not self.compiles
        return self.has_time(kernel) and _longest(arguments) <= self.most(kernel.small)

    def run(self, kernel: Kernel, arguments: tuple[Any, ...]) -> Any:
        numpy: Any = sys.modules["numpy"]  # not imported above: `tailpath --help` does without
        begin = time.thread_time()  # a busy machine is no reason to compile
        with numpy.errstate(all="ignore"):  # machine code does not warn either
            found = kernel.interpreted(*arguments)
        seconds = time.thread_time() - begin
        kernel.seconds += seconds
        self.seconds += seconds
        return found


interpreter = Interpreter()


def _longest(arguments: tuple[Any, ...]) -> int:
    """The length of the longest array that is read, which is how much there is to do."""
    longest = 0
    for argument in arguments:
        if isinstance(argument, tuple):
            longest = max(longest, _longest(argument))
        elif hasattr(argument, "flags") and not argument.flags.writeable:
            longest = max(longest, argument.size)
    return longest


def steps_until_pause(loop: Kernel, compiled: int) -> int:
    """After how many steps a long loop pauses: fewer while it runs as it is written, so that what
    turns out not to be small goes on compiled.
    """
    if interpreter.compiles is not None or not interpreter.has_time(loop):
        return compiled
    return interpreter.most(STEPS_INTERPRETED)


def kernel(function: Any = None, *, inline: bool = False, small: int = SMALL_ARRAY) -> Any:
    """Mark a function to be compiled; inline if to hand over arrays takes longer than its loop.
    Where its time grows faster than its arrays, `small` says how long these may be uncompiled.
    """
    if function is None:
        return functools.partial(Kernel, inline=inline, small=small)
    return Kernel(function)


def frozen(*arrays: Any) -> Iterator[Any]:
    """The arrays as read-only views: numba would compile a kernel for each mixture it meets."""
    for array in arrays:
        if array.flags.writeable:
            array = array.view()
            array.setflags(write=False)
        yield array


@contextlib.contextmanager
def held_signals() -> Iterator[None]:
    """Ctrl-C, and what else has a handler, waits for the end of the block. Inside numba it might be
    raised in a callback of LLVM, where Python prints and forgets it, or in an import, of which half
    would be left behind.
    """
    caught: list[tuple[int, Any]] = []
    handlers: dict[int, Any] = {}
    if threading.current_thread() is threading.main_thread():
        found = {number: signal.getsignal(number) for number in signal.valid_signals()}
        handlers = {number: handler for number, handler in found.items() if callable(handler)}
    for number in handlers:
        signal.signal(number, lambda *signalled: caught.append(signalled))
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        if caught:
            handlers[caught[0][0]](*caught[0])


@functools.cache
def _compiler() -> Any:
    """Numba, once it is needed; asked for while signals are held."""
    import numba

    listen(numba.core.event)
    return numba


@functools.cache
def _digest() -> str:
    """Of the sources of all kernels, in their names on disk: numba compares the file of a kernel
    with what it stored, but not the files of the kernels and constants that it names."""
    package = pathlib.Path(__file__).parents[1]
    sources = sorted(source for folder in FOLDERS for source in (package / folder).glob("*.py"))
    return hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()[:8]


def _before_fork() -> None:
    """A fork waits until no thread compiles: its child would wait for that thread for ever."""
    _LOCK.acquire()
    numba = sys.modules.get("numba.core.compiler_lock")
    if lock := getattr(numba, "global_compiler_lock", None):
        lock.acquire()
        _held.append(lock)


def _after_fork() -> None:
    while _held:
        _held.pop().release()
    _LOCK.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork
    )
