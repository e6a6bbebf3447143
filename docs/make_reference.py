"""`python docs/make_reference.py`: write docs/python.rst (public names), docs/commands.md and
docs/modules.md.

All are made anew by every build of the site, from docstrings and from `--help`, and are not kept.
"""

from __future__ import annotations

import ast
import inspect
import pathlib
import re
import types
import typing
from collections.abc import Iterator
from typing import Any

import click

import tailpath as tp
from tailpath import errors
from tailpath.cli.application import group
from tailpath.graph import Transitions
from tailpath.model.records import Record
from tailpath.risk.curves import Curve

HERE = pathlib.Path(__file__).parent
SOURCE = HERE.parent / "src" / "tailpath"
#: What these classes do is for the inside.
INSIDE = (Record, Transitions, Curve)
#: The public names by what they are for; those that no topic names come last.
TOPICS = {
    "Models": "SSP ImplicitSSP IntervalSSP read write durations clock give_up given_arrival within",
    "Policies": (
        "policy Policy MarkovPolicy BudgetPolicy AtomPolicy MemoryPolicy HistoryPolicy MixedPolicy"
        " read_policy write_policy"
    ),
    "Evaluating": "evaluate CostDistribution CostBand unroll CostChain simulate estimate Estimate",
    "Solving": (
        "solve solve_expected solve_cvar_exact solve_cvar_lazy solve_on_time solve_arrival frontier"
        " improve"
    ),
    "Measures of risk": (
        "Mean CVaR VaR Late Shortfall Loss Entropic EVaR Expectile Spectral MeanDeviation Variance"
    ),
    "Published planners": "solve_cvar_quantile solve_cvar_interpolation log_atoms",
    "Comparing and showing": "compare trace worst_runs differences page plot_tails show_progress",
    "Refusals and warnings": "TailpathError TailpathWarning",
}
PYTHON = """Python
======

Every public name, from its docstring. They are a contract; everything else may change. The examples
go on from this one, and the tests run them:

>>> import tailpath as tp
>>> ssp = tp.SSP.from_outcomes([("home", "road", "work", 0.9, 20),
...                             ("home", "road", "work", 0.1, 60),
...                             ("home", "train", "work", 1, 30)], "home", ["work"])
>>> costs = tp.evaluate(ssp, {"home": "road"}, 0.05)

.. currentmodule:: tailpath
"""
COMMANDS = """# Commands

A MODEL is a path or a string such as `river:30x10` ([formats](formats.md)). Results go to standard
output, notes and progress to standard error. The exit code is 0, 2 for bad input, 130 when
interrupted. `--json` is for programs.
"""
MODULES = """# Modules

Every file of the source, by the first sentence of its docstring. [Architecture](architecture.md) is
the plan behind them.
"""


def main() -> None:
    (HERE / "python.rst").write_text(python(), encoding="utf-8")
    (HERE / "commands.md").write_text(commands(), encoding="utf-8")
    (HERE / "modules.md").write_text(modules(), encoding="utf-8")


def python() -> str:
    """The page of the public names: a table for each topic, and a page for each name."""
    names = [name for name in tp.__all__ if name != "__version__"]
    modules = [name for name in names if inspect.ismodule(getattr(tp, name))]
    topics = {
        topic: [name for name in text.split() if name in names] for topic, text in TOPICS.items()
    }
    known = {*modules, *(name for found in topics.values() for name in found)}
    topics["More"] = [name for name in names if name not in known]
    kinds = {
        kind.__name__: kind
        for name in names
        for kind in returned(getattr(tp, name))
        if kind.__name__ not in names
    }
    topics["Results"] = [
        f"~{kinds[name].__module__}.{name}".replace("~tailpath.", "~") for name in sorted(kinds)
    ]
    topics["Kinds of refusals"] = [
        f"~errors.{name}"
        for name, kind in vars(errors).items()
        if not name.startswith("_") and is_refusal(kind, names)
    ]
    for name in modules:
        members = {one: getattr(getattr(tp, name), one) for one in getattr(tp, name).__all__}
        own = [
            one
            for one, thing in members.items()
            if not inspect.ismodule(thing) and one not in names
        ]
        topics[f"Names of tp.{name}"] = [f"{name}.{one}" for one in own]
    parts = [PYTHON]
    for topic, found in topics.items():
        if found:
            rows = "\n".join(f"   {name}" for name in found)
            parts += [
                f"{topic}\n{'-' * len(topic)}\n",
                f".. autosummary::\n   :toctree: api\n\n{rows}\n",
            ]
    return "\n".join(parts)


def is_refusal(kind: Any, names: list[str]) -> bool:
    return (
        inspect.isclass(kind)
        and issubclass(kind, (tp.TailpathError, KeyboardInterrupt))
        and kind.__name__ not in names
    )


def commands() -> str:
    """The page of the commands; help is folded at 90 columns, as on a terminal."""
    top = click.Context(group, info_name="tailpath", max_content_width=90, terminal_width=90)
    parts = [COMMANDS, f"```\n{top.get_help()}\n```"]
    for name in group.list_commands(top):
        command = group.get_command(top, name)
        if command is not None and not command.hidden:
            text = click.Context(command, top, info_name=name).get_help()
            parts.append(f"## tailpath {name}\n```\n{text}\n```")
    return "\n\n".join(part.strip() for part in parts) + "\n"


def modules() -> str:
    """The page of the files of the source: the first sentence of each."""
    parts = [MODULES]
    for folder in sorted({file.parent for file in SOURCE.rglob("*.py")}):
        files = [file for file in sorted(folder.glob("*.py")) if file.name != "__init__.py"]
        name = "/".join(folder.relative_to(SOURCE.parent).parts)
        rows = "\n".join(f"| `{file.stem}` | {sentence(file)} |" for file in files)
        about = sentence(folder / "__init__.py")
        parts.append(f"## {name}\n{about}\n\n| module | |\n| --- | --- |\n{rows}")
    return "\n\n".join(part.strip() for part in parts) + "\n"


def sentence(file: pathlib.Path) -> str:
    """The first sentence of a module, as a cell of a table."""
    text = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""
    paragraph = " ".join(text.partition("\n\n")[0].split())
    return re.split(r"(?<=[.:;])\s(?=[A-Z`])", paragraph)[0].rstrip(":;").replace("|", "\\|")


def returned(function: Any) -> Iterator[type]:
    """The classes of ours that a function returns."""
    if not inspect.isfunction(function):
        return
    hint = typing.get_type_hints(function).get("return")
    for found in typing.get_args(hint) or (hint,):
        ours = inspect.isclass(found) and found.__module__.startswith("tailpath.")
        if ours and found not in INSIDE:
            yield found


def members(kind: type) -> Iterator[tuple[str, Any]]:
    """Public methods and properties of a class and its bases, each once."""
    seen = set()
    for base in kind.__mro__:
        if base.__module__.startswith("tailpath.") and base not in INSIDE:
            for member, thing in vars(base).items():
                shown = isinstance(
                    thing, (types.FunctionType, classmethod, staticmethod, property)
                ) or hasattr(thing, "attrname")
                if shown and not member.startswith("_") and member not in seen:
                    seen.add(member)
                    yield member, thing


if __name__ == "__main__":
    main()
