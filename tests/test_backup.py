"""`dp/backup.py` is the only home of inner products with values: no other kernel sums probability
times value over outcomes.
"""

from __future__ import annotations

import ast
import pathlib
from collections.abc import Iterator

import tailpath

SOURCES = pathlib.Path(tailpath.__file__).parent
HOME = "dp/backup.py"
#: Kernels that still sum something times a probability themselves, and why.
EXCEPTIONS = {
    "certify/values.py residuals": "differences to the value of a state, with what they round",
    "dp/budgets.py set_constants": (
        "losses of the outcomes that end a run, which are no values of states"
    ),
    "dp/elimination.py eliminate": (
        "what waits outside of a component, each sum looked at for digits lost"
    ),
    "dp/forward.py _send_on": "forward: mass goes from a node to where it leads",
    "kernels/atom_policy.py factors": "a published planner: masses beside and at a quantile",
}


def kernels(tree: ast.AST) -> Iterator[ast.FunctionDef]:
    for found in ast.walk(tree):
        if isinstance(found, ast.FunctionDef):
            named = [
                mark.func if isinstance(mark, ast.Call) else mark for mark in found.decorator_list
            ]
            if any(isinstance(mark, ast.Name) and mark.id == "kernel" for mark in named):
                yield found


def is_chance(node: ast.AST, names: set[str]) -> bool:
    """Whether an expression is an entry of an array of probabilities, or a name that stands for
    one.
    """
    if isinstance(node, ast.Name):
        return node.id in names
    words = [getattr(part, "attr", getattr(part, "id", "")) for part in ast.walk(node)]
    return isinstance(node, ast.Subscript) and any("probability" in word for word in words)


def chances(function: ast.FunctionDef) -> set[str]:
    """The names that are given an entry of an array of probabilities."""
    names: set[str] = set()
    for assigned in ast.walk(function):
        if isinstance(assigned, ast.Assign):
            for target in assigned.targets:
                both = [(target, assigned.value)]
                if isinstance(target, ast.Tuple) and isinstance(assigned.value, ast.Tuple):
                    both = list(zip(target.elts, assigned.value.elts, strict=True))
                names |= {
                    name.id
                    for name, value in both
                    if isinstance(name, ast.Name) and is_chance(value, set())
                }
    return names


def sums(function: ast.FunctionDef) -> bool:
    """Whether a loop of a kernel adds up products with probabilities."""
    names = chances(function)
    for loop in (part for part in ast.walk(function) if isinstance(part, ast.For | ast.While)):
        for added in ast.walk(loop):
            grows = isinstance(added, ast.AugAssign) and isinstance(added.op, ast.Add)
            if (
                isinstance(added, ast.Assign)
                and isinstance(added.value, ast.BinOp)
                and isinstance(added.value.op, ast.Add)
            ):
                grows = ast.unparse(added.targets[0]) == ast.unparse(added.value.left)
            for product in ast.walk(added) if grows else ():
                times = isinstance(product, ast.BinOp) and isinstance(product.op, ast.Mult)
                if times and (is_chance(product.left, names) or is_chance(product.right, names)):
                    return True
    return False


def found_in(source: str) -> list[str]:
    return [function.name for function in kernels(ast.parse(source)) if sums(function)]


def test_only_the_backup_has_inner_products() -> None:
    found = set()
    for path in sorted(SOURCES.rglob("*.py")):
        where = path.relative_to(SOURCES).as_posix()
        found |= {f"{where} {name}" for name in found_in(path.read_text(encoding="utf-8"))}
    assert {name for name in found if name.startswith(HOME)} == {
        f"{HOME} row_value",
        f"{HOME} add_row_values",
    }
    assert {name for name in found if not name.startswith(HOME)} == EXCEPTIONS.keys(), (
        "an exception that is gone is taken out here"
    )


def test_inner_products_are_found_however_they_are_written() -> None:
    source = """
@kernel
def plain(start, target, probability, value):
    total = 0.0
    for k in range(start[0], start[1]):
        {line}
    return total
"""
    for line in (
        "total += probability[k] * value[target[k]]",
        "total += value[target[k]] * rows.probability[k]",
        "total = total + probability[k] * value[target[k]]",
        "to, p = target[k], probability[k]; total += p * (value[to] - value[0])",
    ):
        assert found_in(source.format(line=line)) == ["plain"]
    assert found_in(source.format(line="total += probability[k]")) == []
    assert found_in(source.format(line="total += value[target[k]] * value[k]")) == []
    assert found_in(
        source.replace("@kernel", "@kernel(inline=True)").format(
            line="total += probability[k] * value[k]"
        )
    ) == ["plain"]
