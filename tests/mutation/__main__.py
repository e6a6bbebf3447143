"""Mutation testing: does some test fail when one operator or constant of the source is changed?

    python -m tests.mutation [--count 200] [--seed 1] [--workers 2] [FOLDER_OR_FILE ...]
    python -m tests.mutation --chosen [PART_OF_A_PATH ...]

Mutants are drawn at random from the files named, by default those of certify, evaluation and dp, or
are those of `chosen.py`. Each is written into a copy of the project, and the tests of its package
run there. Where kernels may have changed they run as they are written (`NUMBA_DISABLE_JIT=1`: to
compile them for every mutant would take longer); elsewhere compiled ones are stored with the copy.

The tests are run on the unchanged copy first: those that fail there, or, for drawn mutants, take
longer than `--slow` seconds, are left out. A mutant with which the others take ten times as long
does not end, and is caught. Prints the mutants that survive, and the share that was caught.
"""

from __future__ import annotations

import argparse
import ast
import math
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from queue import SimpleQueue
from typing import NamedTuple
from xml.etree import ElementTree

from tests.mutation.chosen import CHOSEN

ROOT = pathlib.Path(__file__).parents[2]
PACKAGE = pathlib.Path("src/tailpath")
FOLDERS = ("certify", "evaluation", "dp")
#: Tests of each package, those most likely to fail first.
TESTS = {
    "certify": ["tests/certify", "tests/dp", "tests/evaluation", "tests/solvers"],
    "evaluation": ["tests/evaluation", "tests/any_sign", "tests/certify", "tests/risk"],
    "dp": ["tests/dp", "tests/certify", "tests/evaluation", "tests/solvers"],
}
SOURCES = ("src", "papers/forpecvar/src")
#: The first run of the tests, on what is unchanged, may take this many seconds, and reports.
FIRST, REPORT = 7200.0, "--junitxml=report.xml"

SWAPPED: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.And: ast.Or,
    ast.Or: ast.And,
    ast.USub: ast.UAdd,
}
NAMES = {"min": "max", "max": "min", "minimum": "maximum", "maximum": "minimum"}
NAMES |= {"floor": "ceil", "ceil": "floor", "any": "all", "all": "any"}


@dataclass(frozen=True)
class Mutant:
    """One change: the file, the place of the node and of its part, and what stands there then."""

    path: pathlib.Path
    node: int
    part: int
    text: str

    def source(self) -> str:
        tree = ast.parse((ROOT / self.path).read_text(encoding="utf-8"))
        for number, (node, part, _) in enumerate(places(tree)):
            if number == self.node and part == self.part:
                change(node, part)
        return ast.unparse(tree)

    def tests(self) -> tuple[str, ...]:
        """Those of its package, and of those that use it."""
        package = self.path.relative_to(PACKAGE).parts[0]
        return tuple(TESTS.get(package, [f"tests/{package}"]))


def places(tree: ast.AST) -> Iterator[tuple[ast.AST, int, str]]:
    """Everything that can be changed, in the order of the source: a node and its part."""
    hidden = {
        id(inner)
        for node in ast.walk(tree)
        for part in ("annotation", "returns")
        if getattr(node, part, None) is not None
        for inner in ast.walk(getattr(node, part))
    }
    for node in ast.walk(tree):
        if id(node) in hidden:
            continue
        where = f"line {getattr(node, 'lineno', 0)}"
        if isinstance(node, ast.Compare):
            for part, operator in enumerate(node.ops):
                if type(operator) in SWAPPED:
                    yield node, part, f"{where}: {ast.unparse(node)}"
        elif isinstance(node, ast.BinOp | ast.BoolOp | ast.UnaryOp | ast.AugAssign):
            if type(node.op) in SWAPPED and not is_text(node):
                yield node, 0, f"{where}: {ast.unparse(node)}"
        elif isinstance(node, ast.Constant) and type(node.value) in (int, float):
            yield node, 0, f"{where}: {node.value!r}"
        elif isinstance(node, ast.Name) and node.id in NAMES:
            yield node, 0, f"{where}: {node.id}"
        elif isinstance(node, ast.Attribute) and node.attr in NAMES:
            yield node, 0, f"{where}: .{node.attr}"


def is_text(node: ast.AST) -> bool:
    return any(
        isinstance(inner, ast.JoinedStr)
        or (isinstance(inner, ast.Constant) and isinstance(inner.value, str))
        for inner in ast.walk(node)
    )


def change(node: ast.AST, part: int) -> None:
    """Change the node in place: another operator, another function, or another number."""
    match node:
        case ast.Compare():
            node.ops[part] = SWAPPED[type(node.ops[part])]()  # type: ignore[assignment, call-overload]
        case ast.BinOp() | ast.BoolOp() | ast.UnaryOp() | ast.AugAssign():
            node.op = SWAPPED[type(node.op)]()  # type: ignore[assignment]
        case ast.Constant(value=int() as value):
            node.value = value + 1
        case ast.Constant(value=float() as value):
            node.value = 0.0 if value else 1.0
        case ast.Name():
            node.id = NAMES[node.id]
        case ast.Attribute():
            node.attr = NAMES[node.attr]


def mutants(paths: list[pathlib.Path]) -> list[Mutant]:
    found = []
    for path in paths:
        tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
        numbered = enumerate(places(tree))
        found += [Mutant(path, number, part, text) for number, (_, part, text) in numbered]
    return found


@dataclass
class Copy:
    """A copy of the project, and which tests can be run there, by what they are named by."""

    folder: pathlib.Path
    slow: float
    known: dict[tuple[str, bool], tuple[list[str], float]] = field(default_factory=dict)

    def run(self, tests: list[str], interpreted: bool, seconds: float) -> int | None:
        """What pytest ends with; None if it takes longer."""
        paths = os.pathsep.join(str(self.folder / part) for part in SOURCES)
        environment = os.environ | {"PYTHONPATH": paths}
        environment["NUMBA_CACHE_DIR"] = str(self.folder / "compiled")
        if interpreted:
            environment["NUMBA_DISABLE_JIT"] = "1"
        listed = self.folder / "listed.txt"
        listed.write_text("\n".join(tests), encoding="utf-8")
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-n", "0", "-p", "no:cacheprovider"]
        try:
            return subprocess.run(
                [*command, f"@{listed}", *(["--maxfail=1000", REPORT] if seconds == FIRST else [])],
                cwd=self.folder,
                env=environment,
                capture_output=True,
                timeout=seconds,
            ).returncode
        except subprocess.TimeoutExpired:
            return None

    def tests(self, asked: tuple[str, ...], interpreted: bool) -> tuple[list[str], float]:
        """Tests that pass and are quick on what is unchanged, and the time they take together."""
        key = " ".join(asked), interpreted
        if key not in self.known:
            there = [test for test in asked if (self.folder / test).exists()]
            self.run(there, interpreted, FIRST)
            cases = ElementTree.parse(self.folder / "report.xml").iter("testcase")
            quick = [
                (f"{case.get('classname', '').replace('.', '/')}.py::{case.get('name')}", seconds)
                for case in cases
                if not len(case) and (seconds := float(case.get("time", 0))) <= self.slow
            ]
            self.known[key] = [name for name, _ in quick], sum(seconds for _, seconds in quick)
        return self.known[key]

    def catches(
        self, path: pathlib.Path, source: str, asked: tuple[str, ...], interpreted: bool
    ) -> bool:
        """Whether a test fails, or none can run, with this source in the place of a file's; the
        tests of this file come first.
        """
        tests, seconds = self.tests(asked, interpreted)
        tests = sorted(tests, key=lambda test: f"test_{path.stem}.py" not in test)
        if not tests:
            raise SystemExit(f"no test of {' '.join(asked)} passes on the unchanged source")
        changed = self.folder / path
        original = changed.read_bytes()
        try:
            changed.write_text(source, encoding="utf-8")
            return self.run(tests, interpreted, 60 + 10 * seconds) != 0
        finally:
            changed.write_bytes(original)


class Trial(NamedTuple):
    """A file with another source, what was changed, and the tests that may see it."""

    path: pathlib.Path
    text: str
    source: str
    tests: tuple[str, ...]

    @property
    def interpreted(self) -> bool:
        return self.path.relative_to(PACKAGE).parts[0] in ("dp", "kernels")


def drawn_trials(paths: list[str], count: int, seed: int) -> list[Trial]:
    files = [
        file.relative_to(ROOT)
        for path in map(ROOT.joinpath, paths or [f"{PACKAGE}/{name}" for name in FOLDERS])
        for file in ([path] if path.suffix == ".py" else sorted(path.rglob("*.py")))
    ]
    everything = mutants(files)
    drawn = random.Random(seed).sample(everything, min(count, len(everything)))
    return [Trial(each.path, each.text, each.source(), each.tests()) for each in drawn]


def chosen_trials(parts: list[str]) -> list[Trial]:
    found = []
    for each in CHOSEN:
        path = PACKAGE / each.path
        source = (ROOT / path).read_text(encoding="utf-8") if (ROOT / path).exists() else ""
        if parts and not any(part in each.path for part in parts):
            continue
        if source.count(each.before) != 1:
            raise SystemExit(f"{path} has not one place with {each.before!r}: mend chosen.py")
        text = f"{each.before} -> {each.after}"
        changed = source.replace(each.before, each.after)
        found.append(Trial(path, text, changed, tuple(each.tests.split())))
    return found


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__)
    parser.add_argument("paths", nargs="*")
    parser.add_argument("--chosen", action="store_true")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--slow", type=float, default=20.0)
    asked = parser.parse_args()
    trials = (
        chosen_trials(asked.paths)
        if asked.chosen
        else drawn_trials(asked.paths, asked.count, asked.seed)
    )
    copies: SimpleQueue[Copy] = SimpleQueue()
    with tempfile.TemporaryDirectory() as folder:
        for worker in range(asked.workers):
            place = pathlib.Path(folder) / str(worker)
            ignored = shutil.ignore_patterns(".git", ".venv", "build", "__pycache__")
            shutil.copytree(ROOT, place, ignore=ignored)
            copies.put(Copy(place, math.inf if asked.chosen else asked.slow))

        def tried(trial: Trial) -> bool:
            copy = copies.get()
            try:
                caught = copy.catches(trial.path, trial.source, trial.tests, trial.interpreted)
            finally:
                copies.put(copy)
            print("caught  " if caught else "SURVIVED", trial.path, trial.text, flush=True)
            return caught

        with ThreadPoolExecutor(asked.workers) as pool:
            caught = sum(pool.map(tried, trials))
    how = "chosen" if asked.chosen else f"seed {asked.seed}"
    print(f"{caught} of {len(trials)} mutants caught ({caught / len(trials):.1%}), {how}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
