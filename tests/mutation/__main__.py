"""Mutation testing: does some test fail when one operator or constant of the source is changed?

    python -m tests.mutation [--count 200] [--seed 1] [--workers 2] [FOLDER_OR_FILE ...]

Mutants are drawn at random from the files named, by default those of certify, evaluation and dp.
Each is written into a copy of the project, and the tests of its package run there, kernels as they
are written (`NUMBA_DISABLE_JIT=1`: to compile them for every mutant would take longer). Prints the
mutants that survive, and the share that was caught.
"""

from __future__ import annotations

import argparse
import ast
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from queue import SimpleQueue

ROOT = pathlib.Path(__file__).parents[2]
PACKAGE = pathlib.Path("src/tailpath")
FOLDERS = ("certify", "evaluation", "dp")
#: Tests of each package, those most likely to fail first.
TESTS = {
    "certify": ["tests/certify", "tests/dp", "tests/evaluation", "tests/solvers"],
    "evaluation": ["tests/evaluation", "tests/any_sign", "tests/certify", "tests/risk"],
    "dp": ["tests/dp", "tests/certify", "tests/evaluation", "tests/solvers"],
}
#: A mutant that takes longer has been caught: it does not end.
SECONDS = 900

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


def is_caught(mutant: Mutant, copy: pathlib.Path) -> bool:
    """Whether a test fails, or none can run."""
    changed, package = copy / mutant.path, mutant.path.relative_to(PACKAGE).parts[0]
    original = changed.read_text(encoding="utf-8")
    own = f"tests/{package}/test_{mutant.path.stem}.py"
    tests = [own, *TESTS.get(package, ["tests"])] if (copy / own).exists() else TESTS[package]
    tests = [test for test in tests if (copy / test).exists()]
    environment = os.environ | {"NUMBA_DISABLE_JIT": "1", "PYTHONPATH": str(copy / "src")}
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests]
    try:
        changed.write_text(mutant.source(), encoding="utf-8")
        run = subprocess.run(
            command, cwd=copy, env=environment, capture_output=True, timeout=SECONDS
        )
        return run.returncode != 0
    except subprocess.TimeoutExpired:
        return True
    finally:
        changed.write_text(original, encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__)
    parser.add_argument("paths", nargs="*", default=[f"{PACKAGE}/{name}" for name in FOLDERS])
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--workers", type=int, default=2)
    asked = parser.parse_args()
    files = [
        file.relative_to(ROOT)
        for path in map(ROOT.joinpath, asked.paths)
        for file in ([path] if path.suffix == ".py" else sorted(path.rglob("*.py")))
    ]
    everything = mutants(files)
    drawn = random.Random(asked.seed).sample(everything, min(asked.count, len(everything)))
    copies: SimpleQueue[pathlib.Path] = SimpleQueue()
    with tempfile.TemporaryDirectory() as folder:
        for worker in range(asked.workers):
            copy = pathlib.Path(folder) / str(worker)
            ignored = shutil.ignore_patterns(".git", ".venv", "build", "__pycache__")
            shutil.copytree(ROOT, copy, ignore=ignored)
            copies.put(copy)

        def tried(mutant: Mutant) -> bool:
            copy = copies.get()
            try:
                caught = is_caught(mutant, copy)
            finally:
                copies.put(copy)
            print("caught  " if caught else "SURVIVED", mutant.path, mutant.text, flush=True)
            return caught

        with ThreadPoolExecutor(asked.workers) as pool:
            caught = sum(pool.map(tried, drawn))
    print(f"{caught} of {len(drawn)} mutants caught ({caught / len(drawn):.1%}), seed {asked.seed}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
