"""Which tests run which lines, and how long they take: each test is run once, and watched.

Twice, as kernels are compiled, which nobody can watch, and as they are written, which takes long,
if it calls kernels of the packages that are changed: then for `INTERPRETED` seconds at most.
What is found is kept in `build/mutation`; of tests that changed alone, only those are run again.
"""

from __future__ import annotations

import ast
import contextlib
import hashlib
import json
import pathlib
import signal
import time
from collections.abc import Iterable, Iterator
from typing import Any

import coverage
import pytest
from _pytest.runner import runtestprotocol
from hypothesis import settings

from tailpath.kernels.jit import KERNELS, Kernel
from tests.mutation.applying import called, codes, interpret
from tests.mutation.changes import PACKAGE, ROOT, Mutant

#: Seconds of the processor that a test may take, as kernels are compiled, and as they are written.
COMPILED, INTERPRETED = 4.0, 4.0
#: And as they are run first, since machine code may have to be made.
COMPILING = 30.0
#: Of the processor that the tests of a file may take in either way; and how much longer by the
#: clock, since a test may wait for a lock that nobody holds after a fork.
FILE, WAITING = 30.0, 20.0
#: Random examples of a test with kernels as they are written.
EXAMPLES = 20
#: Kernels of these packages may be changed; those of the others are always compiled.
CHANGED = ("certify", "dp")


class Lines:
    """What was found: of every test its seconds, and of every line the tests that run it."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.folder = folder
        self.sources = sources()
        #: Seconds with compiled kernels, and as they are written.
        self.seconds: dict[str, float] = {}
        self.written: dict[str, float] = {}
        self.tests: dict[tuple[str, int], set[str]] = {}
        self.called: set[int] = set()
        #: Tests that ran once, so that their kernels are compiled.
        self.ran: set[str] = set()

    def load(self, path: pathlib.Path) -> bool:
        """What is known of a file of tests; whether that is all."""
        entries = self._entries(path)
        for entry in entries:
            if "seconds" in entry:
                known = self.written if entry["written"] else self.seconds
                known[entry["name"]] = entry["seconds"]
                for source, numbers in entry["lines"].items():
                    for number in numbers:
                        self.tests.setdefault((source, number), set()).add(entry["name"])
        return bool(entries) and "complete" in entries[-1]

    def _entries(self, path: pathlib.Path) -> list[dict[str, Any]]:
        """What was kept of a file of tests, if it and the package are as they were then."""
        kept = self._kept(path)
        if not kept.exists():
            return []
        entries = list(map(json.loads, kept.read_text(encoding="utf-8").splitlines()))
        return entries if entries and entries[0] == self._state(path) else []

    def _kept(self, path: pathlib.Path) -> pathlib.Path:
        name = path.relative_to(ROOT).with_suffix(".jsonl").as_posix()
        return self.folder / name.replace("/", ".")

    def _state(self, path: pathlib.Path) -> dict[str, str]:
        return {"sources": self.sources, "digest": digest(path)}

    def watch(self, path: pathlib.Path, items: list[pytest.Item]) -> None:
        """Run tests of a file, and keep what each runs. A test that takes too long ends this
        process; asked again, it is left out.
        """
        entries, kept = self._entries(path), self._kept(path)
        kept.parent.mkdir(parents=True, exist_ok=True)
        begun = {entry["name"] for entry in entries if "name" in entry}
        passed = {entry["name"] for entry in entries if "seconds" in entry}
        spent = sum(entry.get("seconds", 0.0) for entry in entries)
        spent += COMPILED * len(begun - passed)
        with open(kept, "a" if entries else "w", encoding="utf-8") as book:

            def keep(entry: dict[str, Any]) -> None:
                book.write(json.dumps(entry) + "\n")
                book.flush()

            if not entries:
                keep(self._state(path))
            for item in items:
                if item.nodeid in begun or spent > FILE:
                    continue
                keep({"name": item.nodeid})
                for written in (False, True):
                    with fewer_examples(item, written):
                        found = self._watched(item, written)
                        if found and not written and found["seconds"] > 1.0:
                            found = self._watched(item, written)  # once more without the compiler
                    if found is not None:
                        spent += found["seconds"]
                        keep({"name": item.nodeid, "written": written, **found})
                    if found is None or not self.called & changeable():
                        break
            keep({"complete": True})

    def _watched(self, item: pytest.Item, written: bool) -> dict[str, Any] | None:
        """Seconds and lines of a test; None if it does not pass. `called` has its kernels."""
        interpret(set(changeable()) if written else set())
        run, calls = Kernel.__call__, set[int]()

        def noted(self: Kernel, *arguments: Any) -> Any:
            calls.add(id(self))
            return run(self, *arguments)

        Kernel.__call__ = noted  # type: ignore[method-assign]
        self.called = calls
        limit = INTERPRETED if written else COMPILED
        limit = limit if written or item.nodeid in self.ran else COMPILING
        self.ran.add(item.nodeid)
        tracer = coverage.Coverage(data_file=None, source=[str(PACKAGE)], config_file=False)
        begin = time.process_time()
        signal.setitimer(signal.ITIMER_PROF, limit)
        signal.setitimer(signal.ITIMER_REAL, WAITING * COMPILED)
        tracer.start()
        reports = runtestprotocol(item, log=False, nextitem=None)
        tracer.stop()
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        if len(reports) != 3 or not all(report.passed for report in reports):
            return None
        data, seconds = tracer.get_data(), round(time.process_time() - begin, 4)
        lines = {
            pathlib.Path(path).relative_to(ROOT).as_posix(): sorted(data.lines(path) or ())
            for path in data.measured_files()
        }
        return {"seconds": seconds, "lines": lines}

    def of(self, mutant: Mutant) -> tuple[dict[str, float], bool]:
        """Tests that run what is changed, with the seconds they take then; empty if none does. And
        whether it is in a kernel.
        """
        names: set[str] = set()
        written = False
        for path, first, last, kernel in reached(mutant):
            written = written or kernel
            for number in range(first, last + 1):
                names |= self.tests.get((path, number), set())
        seconds = self.written if written else self.seconds
        return {name: seconds[name] for name in names if name in seconds}, written


@contextlib.contextmanager
def fewer_examples(item: pytest.Item, written: bool) -> Iterator[None]:
    """Of a test with random examples only the first few, where kernels run as they are written."""
    function: Any = getattr(item, "obj", None)
    function = getattr(function, "__func__", function)
    before = getattr(function, "_hypothesis_internal_use_settings", None)
    if not written or before is None or before.max_examples <= EXAMPLES:
        yield
        return
    function._hypothesis_internal_use_settings = settings(before, max_examples=EXAMPLES)
    try:
        yield
    finally:
        function._hypothesis_internal_use_settings = before


def changeable() -> set[int]:
    """Kernels that may be changed, and those that call them, as far as they are made: versions of a
    sweep are made when they are first asked for.
    """
    return closure(k for k in KERNELS if k.plain.__module__.split(".")[1] in CHANGED)


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
    outer = [node for node in tree.body if node.lineno <= mutant.first <= (node.end_lineno or 0)]
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
