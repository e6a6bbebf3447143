"""The packages beside it are users of the library: they import public names, and those that
CONTRIBUTING.md shows.
"""

import ast
import inspect
import pathlib
import re

import pytest

import tailpath as tp

ROOT = pathlib.Path(__file__).parents[1]
FILES = sorted(
    path for home in ("papers/forpecvar", "cases") for path in (ROOT / home / "src").rglob("*.py")
)
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")


def imported(source: str) -> set[tuple[str, str]]:
    """Every (module, name) of the library that a source imports; "" for a module as a whole."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {(alias.name, "") for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {(str(node.module), alias.name) for alias in node.names}
    return {pair for pair in found if pair[0].partition(".")[0] == "tailpath"}


def allowed() -> set[tuple[str, str]]:
    found = {("tailpath", ""), *(("tailpath", name) for name in tp.__all__)}
    for name in tp.__all__:
        thing = getattr(tp, name)
        if inspect.ismodule(thing):
            found |= {(f"tailpath.{name}", one) for one in thing.__all__}
    shown = re.findall(r"^```python\n(.*?)^```", CONTRIBUTING, re.DOTALL | re.MULTILINE)
    refusals = {("tailpath.errors", kind.__name__) for kind in kinds_of(tp.TailpathError)}
    return found | refusals | {pair for code in shown for pair in imported(code)}


def kinds_of(kind: type) -> set[type]:
    return {kind}.union(*map(kinds_of, kind.__subclasses__()))


def breaches(source: str) -> set[str]:
    """What a source imports or reaches of the library that is not public."""
    found = {".".join(pair) for pair in imported(source) - allowed()}
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            inside = node.attr.startswith("_") and not node.attr.startswith("__")
            of_library = node.value.id in ("tailpath", "tp") and node.attr not in dir(tp)
            if (inside and node.value.id not in ("self", "os")) or (
                of_library and not node.attr.startswith("__")
            ):
                found.add(f"{node.value.id}.{node.attr}")
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_only_public_names_are_used(path):
    assert not breaches(path.read_text(encoding="utf-8"))


def test_a_breach_would_be_found():
    assert breaches("from tailpath.dp.backup import best_row") == {"tailpath.dp.backup.best_row"}
    assert breaches("import tailpath as tp\ntp.kernels") == {"tp.kernels"}
    assert breaches("import tailpath.graph") == {"tailpath.graph."}
    assert breaches("model._levels") == {"model._levels"}
    assert not breaches("from tailpath import evaluate\nfrom tailpath.errors import OptionError")
