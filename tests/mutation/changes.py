"""What is changed: one operator, function or constant of a source file, at random or chosen."""

from __future__ import annotations

import ast
import copy
import pathlib
import random
from collections.abc import Iterator
from dataclasses import dataclass
from types import CodeType

from tests.mutation.chosen import CHOSEN, Chosen
from tests.mutation.left_out import is_left_out

ROOT = pathlib.Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "tailpath"
FOLDERS = ("certify", "evaluation", "dp")

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
    """A change of a file: a place in its syntax tree, or a text that stands there once."""

    path: str
    first: int
    last: int
    text: str
    place: tuple[int, int] | Chosen

    @property
    def file(self) -> pathlib.Path:
        return ROOT / self.path

    def __str__(self) -> str:
        return f"{self.path}:{self.first}: {self.text}"

    def diff(self) -> str:
        """The change as a reader sees it, below the line of the source."""
        if isinstance(self.place, Chosen):
            return f"- {self.place.before}\n+ {self.place.after}"
        line = self.file.read_text(encoding="utf-8").splitlines()[self.first - 1].strip()
        before, _, after = self.text.partition(" -> ")
        return f"  {line}\n- {before}\n+ {after}"

    def compiled(self) -> CodeType:
        source = self.file.read_text(encoding="utf-8")
        if isinstance(self.place, Chosen):
            source = source.replace(self.place.before, self.place.after)
            return compile(source, str(self.file), "exec", dont_inherit=True)
        tree = ast.parse(source)
        node, part = list(places(tree))[self.place[0]]
        change(node, part)
        return compile(tree, str(self.file), "exec", dont_inherit=True)


def places(tree: ast.AST) -> Iterator[tuple[ast.AST, int]]:
    """Everything that can be changed: a node and its part. Not types, which nobody runs, nor
    decorators, which say how a function is run.
    """
    hidden = {id(inner) for outer in unused(tree) for inner in ast.walk(outer)}
    for node in ast.walk(tree):
        if id(node) in hidden:
            continue
        match node:
            case ast.Compare():
                for part, operator in enumerate(node.ops):
                    if type(operator) in SWAPPED:
                        yield node, part
            case ast.BinOp() | ast.BoolOp() | ast.UnaryOp() | ast.AugAssign():
                if type(node.op) in SWAPPED and not is_text(node):
                    yield node, 0
            case ast.Constant(value=value) if type(value) in (int, float):
                yield node, 0
            case ast.Name(id=name) if name in NAMES:
                yield node, 0
            case ast.Attribute(value=ast.Name(id="np" | "math"), attr=name) if name in NAMES:
                yield node, 0


def unused(tree: ast.AST) -> Iterator[ast.AST]:
    for node in ast.walk(tree):
        for part in ("annotation", "returns"):
            if getattr(node, part, None) is not None:
                yield getattr(node, part)
        yield from getattr(node, "decorator_list", ())


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
            node.ops[part] = SWAPPED[type(node.ops[part])]()  # type: ignore[call-overload]
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


def mutants(path: pathlib.Path) -> list[Mutant]:
    """All that can be changed in a file, but for what is left out."""
    source = path.read_text(encoding="utf-8")
    tree, text_of = ast.parse(source), source.splitlines()
    statements = {id(inner): lines for lines, inner in by_statement(tree)}
    around = names_around(tree)
    found, name = [], path.relative_to(ROOT).as_posix()
    for number, (node, part) in enumerate(list(places(tree))):
        first, last = statements[id(node)]
        text = f"{ast.unparse(node)} -> {changed(node, part)}"
        line = text_of[first - 1].strip()
        if is_left_out(name, around.get(id(node), frozenset()), line, text):
            continue
        found.append(Mutant(name, first, last, text, (number, part)))
    return found


def names_around(tree: ast.Module) -> dict[int, frozenset[str]]:
    """By node inside of functions and classes, or of constants, the names of these."""
    named: list[tuple[str, ast.AST]] = [
        (node.name, node)
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.ClassDef)
    ]
    for node in tree.body:
        match node:
            case ast.Assign(targets=[ast.Tuple(elts=names)], value=ast.Tuple(elts=values)):
                pairs = list(zip(names, values))
            case ast.Assign(targets=[target], value=value):
                pairs = [(target, value)]
            case _:
                pairs = []
        named += [(name.id, value) for name, value in pairs if isinstance(name, ast.Name)]
    found: dict[int, frozenset[str]] = {}
    for text, outer in named:
        for inner in ast.walk(outer):
            found[id(inner)] = found.get(id(inner), frozenset()) | {text}
    return found


def changed(node: ast.AST, part: int) -> str:
    """The text of the node after the change."""
    copied = copy.deepcopy(node)
    change(copied, part)
    return ast.unparse(copied)


def by_statement(tree: ast.AST) -> Iterator[tuple[tuple[int, int], ast.AST]]:
    """Every node with the lines of the innermost statement around it; of those with a body, the
    lines of the expression.
    """
    for statement in ast.walk(tree):
        if not isinstance(statement, ast.stmt):
            continue
        plain = not hasattr(statement, "body")
        for part in ast.iter_child_nodes(statement):
            if isinstance(part, ast.stmt | ast.ExceptHandler | ast.match_case):
                continue
            around = statement if plain else part
            first = getattr(around, "lineno", statement.lineno)
            last = getattr(around, "end_lineno", None) or first
            for inner in ast.walk(part):
                yield (first, last), inner
        if plain:
            yield (statement.lineno, statement.end_lineno or statement.lineno), statement


def drawn(paths: list[str], count: int, seed: int) -> list[Mutant]:
    everything = [mutant for path in paths or FOLDERS for mutant in mutants_of(path)]
    return random.Random(seed).sample(everything, min(count, len(everything)))


def mutants_of(path: str) -> list[Mutant]:
    """Those of a folder of the package, or of a file, `path.py:20` or `path.py:20-30` of some of
    its lines.
    """
    name, _, lines = path.partition(":")
    if not name.endswith(".py"):
        folder = PACKAGE / name if name in FOLDERS else ROOT / name
        return [mutant for file in sorted(folder.rglob("*.py")) for mutant in mutants(file)]
    found = mutants(ROOT / name)
    if lines:
        first, _, last = lines.partition("-")
        within = range(int(first), int(last or first) + 1)
        found = [mutant for mutant in found if mutant.first in within]
    return found


def chosen(parts: list[str]) -> list[Mutant]:
    found = []
    for each in CHOSEN:
        path = PACKAGE / each.path
        if parts and not any(part in each.path for part in parts):
            continue
        source = path.read_text(encoding="utf-8") if path.exists() else ""
        if source.count(each.before) != 1:
            raise SystemExit(f"{path} has not one place with {each.before!r}: mend chosen.py")
        first = source[: source.index(each.before)].count("\n") + 1
        last = first + each.before.count("\n")
        text = f"{each.before} -> {each.after}"
        found.append(Mutant(path.relative_to(ROOT).as_posix(), first, last, text, each))
    return found
