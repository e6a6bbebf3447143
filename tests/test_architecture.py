"""The plan of `docs/architecture.md` and the tables of `docs/decisions/packages.md` hold: who may
import whom, and who imports which library.
"""

import ast
import functools
import graphlib
import pathlib
import re

import pytest

from tailpath.methods.method import ADDRESSES

ROOT = pathlib.Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "tailpath"
PLAN = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
TABLES = (ROOT / "docs" / "decisions" / "packages.md").read_text(encoding="utf-8")
PUBLIC = "public names"


def table(page: str, *headers: str) -> list[list[str]]:
    """The rows of the table of a page that has these headers."""
    lines = page.splitlines()
    first = lines.index("| " + " | ".join(headers) + " |") + 2
    rows = []
    for line in lines[first:]:
        if not line.startswith("|"):
            return rows
        rows.append([cell.strip().replace("\\", "") for cell in line.strip("|").split("|")])
    return rows


def listed(cell: str) -> list[str]:
    return [entry.strip() for entry in cell.split(",") if entry.strip()]


PACKAGES = table(TABLES, "package", "may import", "never")
MAY_IMPORT = {
    package: [] if allowed == "nothing of ours" else listed(allowed)
    for package, allowed, _ in PACKAGES
}
EXTERNAL = [
    (library, listed(modules))
    for libraries, modules in table(TABLES, "library", "imported only by")
    for library in listed(libraries)
]

FILES = sorted(PACKAGE.rglob("*.py"))
#: The file of the public names imports everything; the table is about all others.
INSIDE = [path for path in FILES if path != PACKAGE / "__init__.py"]
SUBMODULES = {path.stem for path in PACKAGE.iterdir()} - {"__init__", "__pycache__", "py"}


def module_of(path: pathlib.Path) -> str:
    """The module of the first level that a file belongs to: `solvers` for
    `solvers/expectation.py`.
    """
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


@functools.cache
def imports(source: str, package: str) -> set[tuple[str, str]]:
    """All (module, name) that a source imports anywhere, with relative imports resolved; `name` is
    empty for plain imports.
    """
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {(alias.name, "") for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = (
                ".".join(package.split(".")[: len(package.split(".")) - node.level + 1])
                if node.level
                else ""
            )
            module = ".".join(part for part in (base, node.module or "") if part)
            found |= {(module, alias.name) for alias in node.names}
    return found


def ours(source: str, package: str) -> set[str]:
    """The modules of the first level that a source imports; the package itself counts as the public
    names.
    """
    found = set()
    for module, name in imports(source, package):
        root, _, rest = module.partition(".")
        if root == "tailpath":
            inner = rest.split(".")[0] if rest else (name if name in SUBMODULES else "")
            found.add(inner or PUBLIC)
    return found


def breaches(module: str, source: str, package: str) -> list[str]:
    return sorted(ours(source, package) - {module, *MAY_IMPORT[module]})


def package_of(path: pathlib.Path) -> str:
    return ".".join(("tailpath", *path.relative_to(PACKAGE).parts[:-1]))


def test_the_table_has_a_row_for_every_package_and_no_other():
    assert MAY_IMPORT.keys() == {module_of(path) for path in INSIDE} | {PUBLIC}
    assert {target for allowed in MAY_IMPORT.values() for target in allowed} <= MAY_IMPORT.keys()
    assert {module for _, modules in EXTERNAL for module in modules} <= MAY_IMPORT.keys()


def test_the_table_has_no_cycle():
    assert list(graphlib.TopologicalSorter(MAY_IMPORT).static_order())


def test_a_cycle_would_be_found():
    with pytest.raises(graphlib.CycleError):
        list(
            graphlib.TopologicalSorter(
                {**MAY_IMPORT, "model": [*MAY_IMPORT["model"], "evaluation"]}
            ).static_order()
        )


def test_the_public_names_live_in_the_packages_of_their_row():
    source = (PACKAGE / "__init__.py").read_text(encoding="utf-8")
    assert ours(source, "tailpath") - {PUBLIC} <= set(MAY_IMPORT[PUBLIC])


def test_the_plan_names_every_package():
    named = {name for row in table(PLAN, "package", "what it is") for name in listed(row[0])}
    beside = set(re.findall(r"`(\w+)`", PLAN.partition("Beside them stand")[2].partition("## ")[0]))
    assert named | beside == SUBMODULES - {"__main__"}


def test_test_modules_do_not_import_each_other():
    """What several of them need lives in a module of its own, which pytest does not collect."""
    found = {
        (str(path.relative_to(ROOT)), module)
        for path in (ROOT / "tests").rglob("*.py")
        for module, _ in imports(path.read_text(encoding="utf-8"), "tests")
        if module.rpartition(".")[2].startswith("test_")
    }
    assert not found


@pytest.mark.parametrize("path", INSIDE, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_stay_within_the_table(path):
    found = breaches(module_of(path), path.read_text(encoding="utf-8"), package_of(path))
    assert not found, f"{module_of(path)} may not import {', '.join(found)}"


def test_nothing_imports_the_packages_beside_it():
    """The paper and the problems that come with data are users of the library."""
    assert not [path for path in FILES if libraries(path) & {"forpecvar", "tailpath_cases"}]


def libraries(path: pathlib.Path) -> set[str]:
    """What a file imports, by the first word."""
    found = imports(path.read_text(encoding="utf-8"), package_of(path))
    return {module.partition(".")[0] for module, _ in found}


#: What only a register finds, by name, and who lists its public names.
LEAVES = {
    "tailpath.distributed": set(),
}


@pytest.mark.parametrize("leaf", LEAVES)
def test_leaves_are_imported_by_nobody(leaf):
    folder = leaf.replace(".", "/")
    users = {
        path.relative_to(PACKAGE).as_posix()
        for path in FILES
        if not path.relative_to(PACKAGE.parent).as_posix().startswith(folder)
        for module, name in imports(path.read_text(encoding="utf-8"), package_of(path))
        if f"{module}.{name}".startswith(leaf)
    }
    assert users == LEAVES[leaf]


def names_of_methods(source: str) -> set[str]:
    """The names of planning methods that a source has as texts."""
    return {
        node.value
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    } & ADDRESSES.keys()


@pytest.mark.parametrize(
    "path",
    [path for path in INSIDE if module_of(path) == "cli"],
    ids=lambda path: str(path.relative_to(PACKAGE)),
)
def test_commands_know_no_method_by_name(path):
    assert not names_of_methods(path.read_text(encoding="utf-8"))


def test_a_method_by_name_would_be_found():
    assert names_of_methods("if method == 'exact' or method in ('all', 'expected'): ...") == {
        "exact",
        "expected",
    }


@pytest.mark.parametrize(("library", "modules"), EXTERNAL)
def test_libraries_are_imported_in_one_place(library, modules):
    users = {
        module_of(path)
        for path in FILES
        for module, _ in imports(path.read_text(encoding="utf-8"), package_of(path))
        if module.partition(".")[0] == library
    }
    assert users <= set(modules)


@pytest.mark.parametrize(
    "path",
    [path for path in INSIDE if module_of(path) in ("solvers", "evaluation", "kernels")],
    ids=lambda path: path.name,
)
def test_algorithms_neither_print_nor_open_files(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    called = {
        node.func.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }
    assert not called & {"print", "open", "input"}


@pytest.mark.parametrize(
    ("module", "source", "found"),
    [
        ("policies", "from tailpath.evaluation.evaluate import evaluate", ["evaluation"]),
        (
            "policies",
            "def late():\n    from tailpath.evaluation.queue import search",
            ["evaluation"],
        ),
        ("evaluation", "import tailpath.solvers.expectation", ["solvers"]),
        ("kernels", "from tailpath.model.ssp import SSP", ["model"]),
        ("model", "from tailpath import policies", ["policies"]),
        ("solvers", "from tailpath import SSP", [PUBLIC]),
        ("policies", "from ..evaluation import queue", ["evaluation"]),
        ("policies", "from .. import evaluation", ["evaluation"]),
        ("solvers", "from .expectation import solve_expected", []),
        ("cli", "import tailpath", []),
        ("cli", "from tailpath.solvers.expectation import solve_expected", ["solvers"]),
    ],
)
def test_a_breach_would_be_found(module, source, found):
    assert breaches(module, source, f"tailpath.{module}") == found


#: `certify` is the only home of error terms.
PLAIN = [
    path.relative_to(PACKAGE).as_posix()
    for folder in ("dp", "evaluation", "policies")
    for path in sorted((PACKAGE / folder).glob("*.py"))
]


def error_terms(source: str) -> set[str]:
    """The names in a source that say what rounding may do."""
    tree = ast.parse(source)
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    names |= {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    names |= {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    accounting = {"ROUNDOFF", "error_bound", "row_error"}
    return {name for name in names if name in accounting or name.endswith("_error")}


@pytest.mark.parametrize("path", PLAIN)
def test_what_computes_knows_no_error_terms(path):
    assert not error_terms((PACKAGE / path).read_text(encoding="utf-8"))


def test_error_terms_would_be_found():
    assert error_terms("def f(step_error):\n    return step_error * ROUNDOFF") == {
        "step_error",
        "ROUNDOFF",
    }
