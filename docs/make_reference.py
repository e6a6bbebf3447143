"""`python docs/make_reference.py`: write docs/reference.md, the public names and what their docstrings say first."""

from __future__ import annotations

import dataclasses
import inspect
import pathlib
import re
import types
import typing
from collections.abc import Iterator
from typing import Any

import tailpath as tp
from tailpath.graph import Transitions
from tailpath.model.records import Record

PAGE = pathlib.Path(__file__).with_name("reference.md")
#: What these bases do is for the inside.
INSIDE = (Record, Transitions)
HEAD = """# Reference

The public names, with the first sentence of each docstring; `help(tp.evaluate)` has the rest. They are a contract; everything else may change.
This page is written by `docs/make_reference.py`: change the docstrings, and run it.
"""


def main() -> None:
    PAGE.write_text(page(), encoding="utf-8")


def page() -> str:
    """The text of the page."""
    things = {name: getattr(tp, name) for name in sorted(set(tp.__all__) - {"__version__"}, key=str.lower)}
    functions = {name: thing for name, thing in things.items() if inspect.isfunction(thing)}
    classes = {name: thing for name, thing in things.items() if inspect.isclass(thing)}
    modules = {name: thing for name, thing in things.items() if inspect.ismodule(thing)}
    results = {found.__name__: found for thing in functions.values() for found in returned(thing)}
    parts = [HEAD, "## Functions", table((call(name, thing), thing) for name, thing in functions.items())]
    parts += ["## Classes", *(described(name, thing) for name, thing in classes.items())]
    parts += ["## Results", "What the functions return, where it is none of the classes above."]
    parts += [described(name, results[name]) for name in sorted(results.keys() - classes.keys())]
    for name, module in modules.items():
        members = [(call(f"{name}.{one}", getattr(module, one)), getattr(module, one)) for one in module.__all__]
        parts += [f"## Names of `tp.{name}`", table(members)]
    return "\n\n".join(part.strip() for part in parts) + "\n"


def returned(function: Any) -> Iterator[type]:
    """The classes of ours that a function returns."""
    hint = typing.get_type_hints(function).get("return")
    for found in typing.get_args(hint) or (hint,):
        if inspect.isclass(found) and found.__module__.startswith("tailpath."):
            yield found


def described(name: str, kind: type) -> str:
    """A class: its first sentence, its fields, its methods and properties."""
    text = f"### `{name}`\n{sentence(kind)}\n"
    fields = [field.name for field in dataclasses.fields(kind) if field.init] if dataclasses.is_dataclass(kind) else []
    if fields:
        text += f"\nFields: {', '.join(f'`{field}`' for field in fields if not field.startswith('_'))}.\n"
    found = [(member, thing) for member, thing in members(kind) if member not in fields]
    return text + ("\n" + table((call(f".{member}", thing), thing) for member, thing in found) if found else "")


def members(kind: type) -> Iterator[tuple[str, Any]]:
    """Public methods and properties of a class and its bases, each once."""
    seen = set()
    for base in kind.__mro__:
        if base.__module__.startswith("tailpath.") and base not in INSIDE:
            for member, thing in vars(base).items():
                shown = isinstance(thing, (types.FunctionType, classmethod, staticmethod, property)) or hasattr(thing, "attrname")
                if shown and not member.startswith("_") and member not in seen:
                    seen.add(member)
                    yield member, thing


def call(name: str, thing: Any) -> str:
    """How a thing is written: a function with its arguments and their defaults."""
    function = getattr(thing, "__func__", thing)
    if not inspect.isfunction(function):
        return name
    parameters = [one.replace(annotation=one.empty) for one in inspect.signature(function).parameters.values()]
    if name.startswith(".") and not isinstance(thing, staticmethod):
        parameters = parameters[1:]
    return name + str(inspect.Signature(parameters))


def sentence(thing: Any) -> str:
    """The first sentence of a docstring, on one line."""
    text = inspect.getdoc(getattr(thing, "func", thing)) or ""
    paragraph = " ".join(text.split("\n\n")[0].split())
    return re.split(r"(?<=[.!?]) +(?=[A-Z`])", paragraph)[0].replace("|", "\\|")


def table(rows: Any) -> str:
    lines = [f"| `{left}` | {sentence(thing)} |" for left, thing in rows]
    return "\n".join(["| name | what it is |", "| --- | --- |", *lines])


if __name__ == "__main__":
    main()
