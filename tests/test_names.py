"""A public name of the package's modules has one home, so that a reader who finds it knows it."""

import ast
import collections
import pathlib

import pytest

PACKAGE = pathlib.Path(__file__).parents[1] / "src" / "tailpath"
#: Names that several modules define by agreement, and the agreement.
BY_AGREEMENT = {
    "main": "where a process begins: the command line, and the worker that runs Storm",
    "read": "reads one format, or asks the register which; a field of a Format",
    "register": "adds to the register of methods, domains or formats",
    "writable_action": "whether a format can write the name of an action; a field of a Format",
    "write": "writes one format, or asks the register which; a field of a Format",
}


def public_names(source: str) -> set[str]:
    """The public functions and classes at the top level of a source."""
    return {
        node.name
        for node in ast.parse(source).body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        and not node.name.startswith("_")
    }


def shared(sources: dict[str, str]) -> dict[str, list[str]]:
    """The names that more than one module defines, with the modules."""
    homes = collections.defaultdict(list)
    for module, source in sources.items():
        for name in public_names(source):
            homes[name].append(module)
    return {name: modules for name, modules in homes.items() if len(modules) > 1}


SHARED = shared(
    {
        path.relative_to(PACKAGE).as_posix(): path.read_text(encoding="utf-8")
        for path in sorted(PACKAGE.rglob("*.py"))
    }
)


def test_a_public_name_has_one_home():
    assert {name: homes for name, homes in SHARED.items() if name not in BY_AGREEMENT} == {}


@pytest.mark.parametrize("name", BY_AGREEMENT)
def test_an_agreement_has_several_parties(name):
    assert name in SHARED


def test_a_second_home_would_be_found():
    sources = {"one.py": "class Row: ...", "other.py": "def Row(): ...\ndef _row(): ..."}
    assert shared(sources) == {"Row": ["one.py", "other.py"]}
