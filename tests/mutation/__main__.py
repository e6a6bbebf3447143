"""Mutation testing: does some test fail when one operator or constant of the source is changed?

    python -m tests.mutation [--count 200] [--seed 1] [--workers 2] [WHERE ...]
    python -m tests.mutation --chosen [PART_OF_A_PATH ...]

Mutants are drawn at random from certify, evaluation and dp, or WHERE: folders, files, and
`FILE.py:20-30` for some lines of one; `left_out.py` says of what none is drawn. Or they are those
of `chosen.py`. One process imports everything and collects the tests once; for each
mutant it forks, changes the code in place, and runs the tests that run the changed line, the
quickest first, until one fails. `lines.py` finds out which these are, once for every state of the
source.

A mutant whose tests take ten times as long does not end, and is caught. Mutants that survive are
printed with their change as they come, and everything is kept in `build/mutation`: the same command
goes on where it was ended, and asks again for what survived. `--unchanged` changes nothing: then
every mutant has to survive. Tests run where they stand: do not edit the source meanwhile.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import pathlib
import resource
import select
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

import pytest
from _pytest.runner import runtestprotocol
from hypothesis import Phase, settings

from tests.mutation.applying import apply
from tests.mutation.changes import ROOT, Mutant, chosen, drawn
from tests.mutation.chosen import Chosen
from tests.mutation.lines import WAITING, Lines, fewer_examples

KEPT = ROOT / "build" / "mutation"
#: Tests that may catch a mutant. Those of commands start processes, in which nothing is changed.
TESTS = (
    *("certify", "dp", "evaluation", "policies", "risk", "solvers", "uncertain", "any_sign"),
    "analysis",
    *("test_backup.py", "test_graph.py", "kernels", "verify"),
)
#: Of these a drawn mutant asks none: they are about other packages, and take long.
LEFT_OUT = ("tests/solvers/published", "tests/solvers/related", "tests/kernels", "tests/verify")
#: So many cases of a test with parameters are asked, evenly chosen.
CASES = 3
#: Bytes that the tests of a mutant may take.
MEMORY = 8 << 30
OUTPUT = os.dup(1)
SCRATCH = tempfile.mkdtemp(prefix="tailpath-mutation-")


def say(text: str) -> None:
    os.write(OUTPUT, f"{text}\n".encode())


@dataclass
class Child:
    """A forked process, its end of a pipe, and when it will be ended."""

    pid: int
    pipe: int
    until: float
    done: Callable[[str], None]
    heard: bytes = b""


class Children:
    """Functions run in forked processes, so many at a time."""

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self.running: list[Child] = []

    def start(self, work: Callable[[], str], seconds: float, done: Callable[[str], None]) -> None:
        while len(self.running) >= self.workers:
            self.wait()
        read, write = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(read)
            os.setpgid(0, 0)
            code = 1
            try:
                os.write(write, work().encode())
                code = 0
            finally:
                os._exit(code)
        os.close(write)
        self.running.append(Child(pid, read, time.monotonic() + seconds, done))

    def wait(self) -> None:
        """Until one says something, or its time is over."""
        first = min(child.until for child in self.running)
        pipes = [child.pipe for child in self.running]
        ready = select.select(pipes, [], [], max(0.0, first - time.monotonic()))[0]
        for child in list(self.running):
            over = time.monotonic() >= child.until
            if child.pipe in ready:
                said = os.read(child.pipe, 1 << 16)
                child.heard += said
                if said:
                    continue
            elif not over:
                continue
            self.running.remove(child)
            if over and child.pipe not in ready:
                os.killpg(child.pid, signal.SIGKILL)
            os.close(child.pipe)
            status = os.waitpid(child.pid, 0)[1]
            heard = child.heard.decode()
            child.done(heard or ("took too long" if over else f"ended with status {status}"))

    def finish(self) -> None:
        while self.running:
            self.wait()


class Session:
    """A plug-in of pytest that runs mutants in the place of the tests."""

    def __init__(self, asked: argparse.Namespace, mutants: list[Mutant]) -> None:
        self.asked, self.mutants = asked, mutants
        self.children = Children(asked.workers)
        self.lines = Lines(KEPT / "lines")
        self.counts: Counter[str] = Counter()
        #: Tests that failed on a mutant, and pass on what is unchanged.
        self.trusted: set[str] = set()
        self.known = {} if asked.unchanged else known()

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self) -> None:
        # What fails need not become small: that takes minutes.
        quick = settings(settings.default, phases=(Phase.explicit, Phase.generate))
        settings.register_profile("mutation", quick, report_multiple_bugs=False)
        settings.load_profile("mutation")

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        warm()
        items = [item for item in session.items if not item.get_closest_marker("kill")]
        self.items = {item.nodeid: item for item in items}
        if not self.asked.chosen:
            self.watch(some(items))
        for mutant in self.mutants:
            self.ask(mutant)
        self.children.finish()
        return True

    def watch(self, items: list[pytest.Item]) -> None:
        files: dict[pathlib.Path, list[pytest.Item]] = {}
        for item in items:
            files.setdefault(item.path, []).append(item)
        todo = [path for path in files if not self.lines.load(path)]
        tries: Counter[pathlib.Path] = Counter()
        while todo:
            path = todo.pop(0)

            def work(path: pathlib.Path = path) -> str:
                alone(files[path])
                self.lines.watch(path, files[path])
                return "done"

            def done(said: str, path: pathlib.Path = path) -> None:
                if said == "done" and self.lines.load(path):
                    say(f"{path.relative_to(ROOT)}: {len(files[path])} tests, known by line")
                elif tries[path] < len(files[path]):  # one of its tests took too long
                    tries[path] += 1
                    todo.append(path)

            self.children.start(work, 1800.0, done)
            if not todo:
                self.children.finish()

    def ask(self, mutant: Mutant) -> None:
        key = identity(mutant)
        if self.known.get(key, {}).get("caught"):
            self.counts["caught"] += 1
            return
        if isinstance(mutant.place, Chosen):
            folders = tuple(mutant.place.tests.split())
            every = {name: 6.0 for name in self.items if name.startswith(folders)}
            written = False
        else:
            every, written = self.lines.of(mutant)
        near = f"test_{mutant.file.stem}.py"

        def late(name: str) -> float:
            """Tests of the module come early, and so do those that caught a mutant before."""
            sooner = (0.3 if near in name else 1.0) * (0.3 if name in self.trusted else 1.0)
            return every[name] * sooner

        order = sorted(every, key=late)
        tests, total = [], 0.0
        for name in order:
            total += every[name]
            if name in self.items and (self.asked.chosen or total <= self.asked.seconds):
                tests.append(name)

        def done(said: str) -> None:
            result = json.loads(said) if said.startswith("{") else {"caught": said}
            result |= {"mutant": str(mutant), "key": key, "of": len(every)}
            name = result["caught"]
            if name not in self.items or name in self.trusted or self.asked.unchanged:
                self.tell(mutant, result)
                return

            def confirmed(said: str) -> None:
                if json.loads(said)["caught"] if said.startswith("{") else True:
                    say(f"{name} fails on what is unchanged, too: it is left out")
                    del self.items[name]
                    self.ask(mutant)
                else:
                    self.trusted.add(name)
                    self.tell(mutant, result)

            def again() -> str:
                return json.dumps(self.tried(None, [name], {name: 120.0}, written))

            self.children.start(again, 600.0, confirmed)

        if not tests:
            done(json.dumps({"caught": "", "ran": 0}))
            return

        def work() -> str:
            limits = {name: 10.0 * every[name] + 10.0 for name in tests}
            return json.dumps(self.tried(mutant, tests, limits, written))

        self.children.start(work, 300.0 + 20.0 * sum(every[name] for name in tests), done)

    def tried(
        self, mutant: Mutant | None, tests: list[str], limits: dict[str, float], written: bool
    ) -> dict[str, Any]:
        """What the tests say of a mutant, or of what is unchanged: the first that fails."""
        items = [self.items[name] for name in tests]
        alone(items)
        if mutant and not self.asked.unchanged and not apply(mutant):
            return {"caught": "", "ran": 0, "nothing changed": True}
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        for number, (item, following) in enumerate(zip(items, [*items[1:], None])):
            signal.setitimer(signal.ITIMER_PROF, limits[item.nodeid])
            signal.setitimer(signal.ITIMER_REAL, WAITING * limits[item.nodeid])
            with fewer_examples(item, written):
                reports = runtestprotocol(item, log=False, nextitem=following)
            signal.setitimer(signal.ITIMER_PROF, 0.0)
            signal.setitimer(signal.ITIMER_REAL, 0.0)
            if any(report.failed for report in reports):
                return {"caught": item.nodeid, "ran": number + 1}
        return {"caught": "", "ran": len(items)}

    def tell(self, mutant: Mutant, result: dict[str, Any]) -> None:
        how = "caught" if result["caught"] else "survived"
        if result.get("nothing changed"):
            how = "changed nothing"
        self.counts[how] += 1
        if not self.asked.unchanged:
            KEPT.mkdir(parents=True, exist_ok=True)
            with open(KEPT / "results.jsonl", "a", encoding="utf-8") as kept:
                kept.write(json.dumps(result) + "\n")
        done = self.counts.total()
        if how != "caught":
            tests = f"{result['ran']} of {result['of']} tests"
            say(f"{how.upper()} after {tests}: {mutant}\n{mutant.diff()}")
        if how != "caught" or done % 10 == 0:
            say(f"[{done} of {len(self.mutants)}: {self.figure()}]")

    def figure(self) -> str:
        tried = self.counts["caught"] + self.counts["survived"]
        share = self.counts["caught"] / tried if tried else 1.0
        return f"{self.counts['caught']} of {tried} mutants caught ({share:.1%})"


def some(items: list[pytest.Item]) -> list[pytest.Item]:
    """Those of the packages that are changed, with a few cases of each."""
    functions: dict[str, list[pytest.Item]] = {}
    for item in items:
        if not item.nodeid.startswith(LEFT_OUT):
            functions.setdefault(item.nodeid.partition("[")[0], []).append(item)
    several = [cases[:: -(-len(cases) // CASES)] for cases in functions.values()]
    # One case of every function before the second of any: time may be over before all were run.
    return [item for cases in zip_longest(*several) for item in cases if item]


def warm() -> None:
    """Load the machine code of what tests call most, once for all that are forked."""
    import tailpath as tp
    from tailpath.kernels.jit import interpreter

    interpreter.compiles = True
    ssp = tp.domains.gridworld("5x5")
    best = tp.solve_cvar_exact(ssp, 0.1)
    best.bounds(0.1)
    tp.evaluate(ssp, best.policy(0.1), 0.1).bounds(0.1)
    interpreter.compiles = None


def alone(items: list[pytest.Item]) -> None:
    """A temporary folder of its own, and nothing on the terminal."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    factory = items[0].config._tmp_path_factory  # type: ignore[attr-defined]
    factory._basetemp = pathlib.Path(tempfile.mkdtemp(dir=SCRATCH))
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)


def identity(mutant: Mutant) -> str:
    """Of the change and of the function around it, as far as its file tells."""
    text = f"{mutant.path} {mutant.text} {mutant.place} {mutant.file.read_text(encoding='utf-8')}"
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def known() -> dict[str, dict[str, Any]]:
    """Results of earlier runs, the last of each."""
    if not (KEPT / "results.jsonl").exists():
        return {}
    lines = (KEPT / "results.jsonl").read_text(encoding="utf-8").splitlines()
    return {result["key"]: result for result in map(json.loads, lines)}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__)
    parser.add_argument("paths", nargs="*")
    parser.add_argument("--chosen", action="store_true")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--unchanged", action="store_true")
    asked = parser.parse_args()
    mutants = chosen(asked.paths) if asked.chosen else drawn(asked.paths, asked.count, asked.seed)
    session = Session(asked, mutants)
    os.chdir(ROOT)
    tests = [f"tests/{name}" for name in TESTS]
    options = ["-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:cov", "-o", "addopts="]
    try:
        code = pytest.main([*options, "-q", "--no-summary", *tests], plugins=[session])
    finally:
        shutil.rmtree(SCRATCH, ignore_errors=True)
    if not session.counts:
        say(f"no mutant was tried: pytest ended with {code}")
        return 2
    how = "chosen" if asked.chosen else f"drawn with seed {asked.seed}"
    say(f"{session.figure()}, {how}; {session.counts['changed nothing']} changed nothing")
    return 0


if __name__ == "__main__":
    sys.exit(main())
