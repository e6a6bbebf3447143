"""How kernels are compiled, and when: the only home of the compiler and its options.

`@kernel` marks a function; the compiler itself, which takes longer to import than small problems take to solve, is loaded at the first
*call* of any kernel. So every module may import kernels at its top, and `tailpath info` on a small model never meets the compiler. The
machine code is cached on disk, so that a second process loads it in a fraction of a second. The cache goes to the user's cache folder
where the package's own folder cannot be written. Floating-point rules stay strict (no fastmath): the error bounds rely on them.

The compiler takes two seconds for one assignment between arrays (`a[0] = b`, `a[i:j] = b`), and a third of one for `np.searchsorted`: a loop is
compiled in no time. An index that varies must not be negative: only constants count from the end. (`NUMBA_BOUNDSCHECK=1` with a `NUMBA_CACHE_DIR`
of its own makes a run check every index.) In a kernel, `prange` from this module is a plain `range` until the kernel is compiled, and then the
compiler's parallel one.
"""

from __future__ import annotations

import functools
import gc
import importlib
import os
import pathlib
import pickle
import sys
import threading
import warnings
from collections.abc import Callable, Container, Iterator
from time import monotonic
from types import FunctionType
from typing import Any

#: Stands for the compiler's parallel range; put in place when a kernel that names it is compiled.
prange = range

_LOCK = threading.RLock()
#: What reading a damaged cache ends in; no kernel ends so by itself.
BROKEN = (EOFError, pickle.UnpicklingError, ImportError, IndexError, AttributeError, ValueError)
#: A kernel is large if it takes more than this share of what there is to compile.
LARGE = 0.1
#: What makes arrays in kernels. (One that is missing here is an error of the compiler, not of the result.)
MAKERS = frozenset({"empty", "zeros", "ones", "full"})
_MADE: list[Any] = []
_tell: Callable[[], None] | None = None
_wait: Callable[[str], object] = str
_LOADED = threading.Lock()
_begun: list[float] = []
_spent = 0.0
_keeps = True
_rehearsal: Rehearsal | None = None
#: How kernels are compiled, and those that only others call.
_pipelines: tuple[dict[str, Any], dict[str, Any]] = {}, {}


class Kernel:
    """A function that is compiled when it is first called. `plain` is the function as written, for inputs too small for a compiler."""

    def __init__(self, function: FunctionType, parallel: bool, inline: bool = False) -> None:
        functools.update_wrapper(self, function)
        self.plain = function
        self._parallel, self._inline = parallel, inline
        self._compiled: Callable[..., Any] | None = None
        self._inner: Callable[..., Any] | None = None
        self._ready = False

    def __call__(self, *arguments: Any) -> Any:
        if self._ready:
            return self._compiled(*arguments)  # type: ignore[misc]
        if _rehearsal is not None:
            return _rehearsal.play(self, arguments)
        _wait(self.plain.__qualname__)
        try:
            result = self.compiled()(*arguments)
        except BROKEN:
            _renew_cache()
            result = self.compiled()(*arguments)
        self._ready = True
        return result

    def compiled(self) -> Callable[..., Any]:
        """The compiled function. The kernels it calls are compiled with it, and what is kept is kept of all together."""
        with _LOCK:
            if self._compiled is None:
                self._compiled = _kept(_compiler(), self._linked(), self._options())
            return self._compiled

    def inner(self) -> Callable[..., Any]:
        """What stands for this kernel in others: without the door for Python's objects, which takes as long to make as a small kernel."""
        with _LOCK:
            if self._inner is None:
                made = _compiler().njit(self._linked(), no_cpython_wrapper=True, forceinline=self._inline, **self._options(inner=True))
                self._inner = _without_literals(_compiler(), made)
            return self._inner

    def allocates(self) -> bool:
        """Whether it makes arrays, or a kernel that it calls does."""
        return not MAKERS.isdisjoint(self.plain.__code__.co_names) or any(called.allocates() for called in self._calls().values())

    def beyond_python(self) -> bool:
        """Whether it uses instructions that only the compiler knows."""
        return any(called.beyond_python() for called in self._calls().values())

    def size(self) -> int:
        """How much there is to compile: its instructions, and those of all kernels that it calls."""
        inside: set[Kernel] = set()
        found = [self]
        while found:
            if (here := found.pop()) not in inside:
                inside.add(here)
                found.extend(here._calls().values())
        return sum(len(member.plain.__code__.co_code) for member in inside)

    def _calls(self) -> dict[str, Kernel]:
        """The kernels that it names."""
        names = self.plain.__globals__
        return {name: names[name] for name in self.plain.__code__.co_names if isinstance(names.get(name), Kernel)}

    def _options(self, inner: bool = False) -> dict[str, Any]:
        """Where no arrays are made no references are counted: every array that is taken from a tuple or handed on would be counted, in memory that
        all threads share, which takes most of the time in short loops, and a good part of the compiler's."""
        options = {"nogil": True, "no_cfunc_wrapper": True, "parallel": self._parallel, "_nrt": self.allocates() or self._parallel}
        return options if self._parallel else {**options, **_pipelines[inner]}

    def _linked(self) -> FunctionType:
        """The function as the compiler shall see it: compiled kernels in the places of those it names."""
        function = self.plain
        names = {**function.__globals__, **{name: called.inner() for name, called in self._calls().items()}}
        names.update({name: _compiler().prange for name in function.__code__.co_names if names.get(name) is range})
        linked = FunctionType(function.__code__, names, function.__name__, function.__defaults__, function.__closure__)
        functools.update_wrapper(linked, function)
        return linked


class Instruction(Kernel):
    """A word that the compiler is taught: the function as written, given the compiler, makes what it takes for the word."""

    def inner(self) -> Callable[..., Any]:
        """What stands for the word in kernels."""
        with _LOCK:
            if self._inner is None:
                self._inner = self.plain(_compiler())
            return self._inner

    def allocates(self) -> bool:
        return False

    def beyond_python(self) -> bool:
        return True


class Rehearsal:
    """Runs kernels as they are written and notes what they were called with, so that they can be compiled without being run.

    `tell` hears the name of what is being compiled, and nothing ("") when that is done.
    """

    def __init__(self, tell: Callable[[str], None]) -> None:
        self.calls: dict[tuple[Kernel, tuple[Any, ...]], None] = {}
        self._tell = tell
        self._inside = False

    def __enter__(self) -> Rehearsal:
        global _rehearsal
        _rehearsal = self
        return self

    def __exit__(self, *error: object) -> None:
        global _rehearsal
        _rehearsal = None

    def play(self, played: Kernel, arguments: tuple[Any, ...]) -> Any:
        """Run a kernel; those that it calls are part of it. What only the machine can do is compiled at once."""
        if self._inside:
            return played.plain(*arguments)
        kinds = tuple(_compiler().typeof(argument) for argument in arguments)
        if played.beyond_python() or any(isinstance(kind, _compiler().types.Record) for kind in kinds):
            self._compile(played, kinds)
            return played.compiled()(*arguments)
        self.calls[played, kinds] = None
        self._inside = True
        try:
            return played.plain(*arguments)
        finally:
            self._inside = False

    def compile_last_first(self, but: Container[str] = ()) -> None:
        """Compile what was called, beginning at the end, and keep it for others; leave out what is named in `but` by then.

        Those that take long come before all others, the longest first, lest at the end everybody waits for one of them.
        """
        sizes = {played: played.size() for played, _ in self.calls}
        large = LARGE * sum(sizes.values())
        calls = list(reversed(self.calls))
        calls.sort(key=lambda call: -sizes[call[0]] if sizes[call[0]] > large else 0)
        for played, kinds in calls:
            if played.plain.__qualname__ not in but:
                self._compile(played, kinds)

    def _compile(self, played: Kernel, kinds: tuple[Any, ...]) -> None:
        self._tell(played.plain.__qualname__)
        played.compiled().compile(kinds)  # type: ignore[attr-defined]
        self._tell("")


def _kept(numba: Any, function: FunctionType, options: dict[str, bool]) -> Any:
    """Compiled with a cache, or without where no folder can be written."""
    try:
        made = numba.njit(function, cache=True, **options)
    except (RuntimeError, OSError):
        global _keeps
        _keeps = False
        _note("no folder for it can be written")
        made = numba.njit(function, **options)
    _MADE.append(made)
    return made


def _without_literals(numba: Any, made: Any) -> Any:
    """Have kernels call this one as one: the compiler would make another for `size = 0` than for the size that it grows to."""
    template, plain = made.get_call_template, numba.core.types.unliteral
    made.get_call_template = lambda arguments, names: template([plain(argument) for argument in arguments], names)
    return made


def _renew_cache() -> None:
    """Let what this process uses be compiled anew, and kept: files were damaged, or were made by another version of the program."""
    for made in _MADE:
        try:
            made._cache.flush()
        except OSError:
            _note("what was kept cannot be read, and not be replaced")
            made._cache = _compiler().core.caching.NullCache()


def _note(why: str) -> None:
    """Say once that kernels are compiled in every process."""
    warnings.warn(f"machine code is not kept, and every run waits for the compiler: {why}", RuntimeWarning, stacklevel=4)


def kernel(function: Any = None, *, parallel: bool = False, inline: bool = False) -> Any:
    """Compile at the first call, with cache, without the interpreter lock; `parallel=True` lets `prange` use all cores.

    `inline=True` puts it into the kernels that call it: to hand over arrays takes longer than a short loop.
    """
    if function is None:
        return lambda inner: Kernel(inner, parallel, inline)
    return Kernel(function, parallel, inline)


def instruction(function: Any) -> Any:
    """Mark a function that makes an instruction for kernels (`lanes.py`); it is called when a kernel that names it is compiled."""
    return Instruction(function, parallel=False)


def frozen(*arrays: Any) -> Iterator[Any]:
    """The arrays as read-only views. The compiler tells these from others, and would compile a kernel once for each mixture it meets."""
    for array in arrays:
        if array.flags.writeable:
            array = array.view()
            array.flags.writeable = False
        yield array


def when_compiling(tell: Callable[[], None]) -> None:
    """Call this once, when something is first compiled in this process, which takes seconds; what comes from the cache does not count."""
    global _tell
    _tell = tell


def before_compiling(wait: Callable[[str], object]) -> None:
    """Call this with the name of a kernel before its machine code is looked for: another process may be about to keep it."""
    global _wait
    _wait = wait


def compiling_seconds() -> float:
    """How long this process has compiled since `when_compiling` was called; 0 where everything came from the cache."""
    return _spent


def keeps_code() -> bool:
    """Whether what was compiled so far is kept for other processes."""
    return _keeps


def compiler_loaded() -> bool:
    """Whether a kernel has been called, so that others cost no import any more."""
    return "numba" in sys.modules


def cores() -> int:
    """How many cores a parallel kernel spreads its work over."""
    return int(_compiler().get_num_threads())


def _compiler() -> Any:
    """Import the compiler, after pointing its cache at the user's cache folder where the package's own cannot be written."""
    here = pathlib.Path(__file__).parent
    if "NUMBA_CACHE_DIR" not in os.environ and not os.access(here, os.W_OK):
        home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
        os.environ["NUMBA_CACHE_DIR"] = os.path.join(home, "tailpath", "numba")
    import numba

    if "numba.np.arraymath" not in sys.modules:
        _load_without_blas()
    if _LOADED.acquire(blocking=False):
        _spare()
        _listen(numba)
    return numba


def _spare() -> None:
    """Have the compiler leave out what kernels do not need."""
    global _pipelines
    lean: Any = importlib.import_module("tailpath.kernels.lean")
    if lean.known():
        lean.compare_what_is_set()
        lean.remember_kinds()
        lean.trust_indices()
        _pipelines = {"pipeline_class": lean.Kernels}, {"pipeline_class": lean.InnerKernels}


def _load_without_blas() -> None:
    """Load what the compiler knows of arrays without scipy's linear algebra, which it would load only to see that it is there.

    That takes a third of a first call's time. Kernels of others that multiply matrices still load it, when they are compiled.
    """
    linalg: Any = importlib.import_module("numba.np.linalg")
    look, linalg.ensure_blas = linalg.ensure_blas, lambda: None
    try:
        importlib.import_module("numba.np.arraymath")
    finally:
        linalg.ensure_blas = look


def _listen(numba: Any) -> None:
    """Have the compiler report the first time it compiles, and how long all of it takes, and spare it the search for garbage meanwhile."""
    event = numba.core.event

    class Listener(event.Listener):  # type: ignore[misc, name-defined]
        def on_start(self, started: Any) -> None:
            global _tell
            if not _begun:
                self.collecting = gc.isenabled()
                gc.disable()
            _begun.append(monotonic())
            if _tell is not None:
                tell, _tell = _tell, None
                tell()

        def on_end(self, ended: Any) -> None:
            global _spent
            begun = _begun.pop()
            # A kernel that calls others is compiled with them; the outermost counts.
            if not _begun:
                _spent += monotonic() - begun
                if self.collecting:
                    gc.enable()

    event.register("numba:compile", Listener())
