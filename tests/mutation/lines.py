"""Which tests run which lines, and how long they take: each test is run once, and watched.

Twice, as kernels are compiled, which nobody can watch, and as they are written, which takes long:
then only tests that call kernels of the packages that are changed, for `INTERPRETED` seconds each.
What is found is kept in `build/mutation`; of tests that changed alone, only those are run again.
"""

from __future__ import annotations

import ast
import hashlib
import json
import pathlib
import signal
import time
from collections.abc import Iterable, Iterator
from typing import Any

import coverage
import pytest
from _pytest.runner import SetupState, runtestprotocol

from tailpath.kernels.jit import KERNELS, Kernel
from tests.mutation.applying import called, codes, interpret
from tests.mutation.changes import PACKAGE, ROOT, Mutant

#: Seconds of the processor that a test may take, as kernels are compiled, and as they are written.
COMPILED, INTERPRETED = 6.0, 2.0
#: Of the processor that the tests of a file may take in either way; and how much longer by the
#: clock, since a test may wait for a lock that nobody holds after a fork.
FILE, WAITING = 20.0, 20.0
#: Kernels of these packages may be changed; those of the others are always compiled.
CHANGED = ("certify", "dp")


class TooSlow(BaseException):
    """Not an Exception: whoever expects one must not catch it."""


def too_slow(*_: Any) -> None:
    raise TooSlow


class Lines:
    """What was found: of every test its seconds, and of every line the tests that run it."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.folder = folder
        self.sources = sources()
        #: Seconds with compiled kernels, and as they are written.
        self.seconds: dict[str, float] = {}
        self.written: dict[str, float] = {}
        self.tests: dict[tuple[str, int], set[str]] = {}

    def load(self, path: pathlib.Path) -> bool:
        """What is known of a file of tests, if it and the package are as they were then."""
        kept = self._kept(path)
        if not kept.exists():
            return False
        found = json.loads(kept.read_text(encoding="utf-8"))
        if (found["sources"], found["digest"]) != (self.sources, digest(path)):
            return False
        for name, (seconds, written, lines) in found["tests"].items():
            self.seconds[name] = seconds
            if written is not None:
                self.written[name] = written
            for source, numbers in lines.items():
                for number in numbers:
                    self.tests.setdefault((source, number), set()).add(name)
        return True

    def watch(self, path: pathlib.Path, items: list[pytest.Item]) -> None:
        """Run the tests of a file, and keep what they run."""
        tests = self._watched(items)
        found = {"sources": self.sources, "digest": digest(path), "tests": tests}
        kept = self._kept(path)
        kept.parent.mkdir(parents=True, exist_ok=True)
        part = kept.with_suffix(".part")
        part.write_text(json.dumps(found), encoding="utf-8")
        part.replace(kept)

    def _kept(self, path: pathlib.Path) -> pathlib.Path:
        name = path.relative_to(ROOT).with_suffix(".json").as_posix()
        return self.folder / name.replace("/", ".")

    def _watched(self, items: list[pytest.Item]) -> dict[str, Any]:
        """Tests that pass, with their seconds in both ways, and the lines of both."""
        compiled = self._watch(items, COMPILED, set())
        changed = closure(
            kernel for kernel in KERNELS if kernel.plain.__module__.split(".")[1] in CHANGED
        )
        again = [
            item for item in items if item.nodeid in compiled and compiled[item.nodeid][2] & changed
        ]
        written = self._watch(again, INTERPRETED, changed)
        return {
            name: (
                seconds,
                written[name][0] if name in written else None,
                merged(lines, written[name][1] if name in written else {}),
            )
            for name, (seconds, lines, _) in compiled.items()
        }

    def _watch(self, items: list[pytest.Item], limit: float, plain: set[int]) -> dict[str, Any]:
        interpret(plain)
        run, calls = Kernel.__call__, set[int]()

        def noted(self: Kernel, *arguments: Any) -> Any:
            calls.add(id(self))
            return run(self, *arguments)

        Kernel.__call__ = noted  # type: ignore[method-assign]
        tracer = coverage.Coverage(data_file=None, source=[str(PACKAGE)], config_file=False)
        tracer.start()
        signal.signal(signal.SIGPROF, too_slow)
        signal.signal(signal.SIGALRM, too_slow)
        started = time.process_time()
        passed: dict[str, tuple[float, dict[str, list[int]], set[int]]] = {}
        for item, following in zip(items, [*items[1:], None]):
            calls.clear()
            tracer.switch_context(item.nodeid)
            begin = time.process_time()
            if begin - started > FILE:
                break
            signal.setitimer(signal.ITIMER_PROF, limit, limit)
            signal.setitimer(signal.ITIMER_REAL, WAITING * limit, WAITING * limit)
            try:
                reports = runtestprotocol(item, log=False, nextitem=following)
            except BaseException:  # whatever a plug-in makes of a test that was ended
                item.session._setupstate = SetupState()
                continue
            finally:
                signal.setitimer(signal.ITIMER_PROF, 0.0)
                signal.setitimer(signal.ITIMER_REAL, 0.0)
            if all(report.passed for report in reports) and len(reports) == 3:
                seconds = round(time.process_time() - begin, 4)
                passed[item.nodeid] = (seconds, {}, set(calls))
        tracer.switch_context("")
        tracer.stop()
        data = tracer.get_data()
        for path in data.measured_files():
            name = pathlib.Path(path).relative_to(ROOT).as_posix()
            for number, contexts in data.contexts_by_lineno(path).items():
                for context in contexts:
                    if context in passed:
                        passed[context][1].setdefault(name, []).append(number)
        return passed

    def of(self, mutant: Mutant) -> dict[str, float]:
        """Tests that run what is changed, with the seconds they take then; empty if none does."""
        names: set[str] = set()
        written = False
        for path, first, last, kernel in reached(mutant):
            written = written or kernel
            for number in range(first, last + 1):
                names |= self.tests.get((path, number), set())
        return {
            name: self.written[name] if written else self.seconds[name]
            for name in names
            if not written or name in self.written
        }


def merged(lines: dict[str, list[int]], more: dict[str, list[int]]) -> dict[str, list[int]]:
    return {path: sorted({*lines.get(path, ()), *more.get(path, ())}) for path in {*lines, *more}}


def closure(kernels: Iterable[Kernel]) -> set[int]:
    """These, and all kernels that call them."""
    found = {id(kernel) for kernel in kernels}
    while more := {
        id(kernel)
        for kernel in KERNELS
        if id(kernel) not in found and any(id(inner) in found for inner in called(kernel))
    }:
        found |= more
    return found


def reached(mutant: Mutant) -> Iterator[tuple[str, int, int, bool]]:
    """Where a change is run: its lines, or, of a constant, the functions that name it; of what
    else stands outside functions the whole file. And whether that is in a kernel.
    """
    kernels = {
        (kernel.plain.__code__.co_filename, kernel.plain.__name__): kernel for kernel in KERNELS
    }
    tree = ast.parse(mutant.file.read_text(encoding="utf-8"))
    outer = [node for node in tree.body if node.lineno <= mutant.first <= node.end_lineno]
    inside = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef)
        and node.body[0].lineno <= mutant.first <= (node.end_lineno or 0)
    ]
    if inside:
        kernel = any((str(mutant.file), node.name) in kernels for node in inside)
        yield mutant.path, mutant.first, mutant.last, kernel
        return
    names = {
        inner.id
        for node in outer
        if isinstance(node, ast.Assign | ast.AnnAssign)
        for inner in ast.walk(node)
        if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store)
    }
    if not names:
        yield mutant.path, 1, tree.body[-1].end_lineno or 1, False
        return
    for path in PACKAGE.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        if not any(name in text for name in names):
            continue
        for code in codes(compile(text, str(path), "exec")):
            if names & set(code.co_names) and code.co_flags & 0x2:
                lines = [line for *_, line in code.co_lines() if line]
                kernel = (str(path), code.co_name) in kernels
                name = path.relative_to(ROOT).as_posix()
                yield name, code.co_firstlineno + 1, max(lines), kernel


def digest(path: pathlib.Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]


def sources() -> str:
    """Of the package, and of all that tests share."""
    shared = [path for path in (ROOT / "tests").rglob("*.py") if "test_" not in path.name]
    shared = [path for path in shared if path.parent.name not in ("mutation", "fuzz", "ledger")]
    paths = sorted(PACKAGE.rglob("*.py")) + sorted(shared)
    return hashlib.sha256(b"".join(path.read_bytes() for path in paths)).hexdigest()
