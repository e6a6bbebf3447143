"""Registers of things by name, to which others may add: one file and one line each.

Methods, domains, formats and measures each have one, with three sources: a table of addresses in
this package, `add` in a running program, and entry points `name = "package.module:THING"` of one
group in installed packages. A thing is loaded when it is first needed.

There is one rule for names: those of this package, in capital or small letters, cannot be added
again. Any other name can, as when a cell of a notebook runs again; the last one counts, before
entry points.
"""

from __future__ import annotations

import ast
import importlib
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Generic, TypeVar

from tailpath.errors import OptionError

Thing = TypeVar("Thing")


class Register(Generic[Thing]):
    """Things of one kind by their names.

    `addresses` has the "module:attribute" of each name of the package, `group` is that of the entry
    points, and `taken` has further names that others cannot use. `checked(thing)` returns the thing
    at an address, or None if it is not `wanted`; messages call it a `noun`.
    """

    def __init__(
        self,
        noun: str,
        wanted: str,
        group: str,
        addresses: Mapping[str, str],
        checked: Callable[[Any], Thing | None],
        taken: Iterable[str] = (),
    ) -> None:
        self.noun, self.wanted = noun, wanted
        self.group, self.checked = group, checked
        self.addresses, self.taken = dict(addresses), {*addresses, *taken}
        self.added: dict[str, Thing] = {}

    def add(self, thing: Thing, *names: str) -> None:
        """Add a thing under these names to this process, in place of an earlier one."""
        for name in names:
            if name.lower() in self.taken:
                raise OptionError(f"a {self.noun} named {name!r} is already registered")
        self.added |= dict.fromkeys(names, thing)

    def names(self) -> list[str]:
        """The names of all things, those of the package first."""
        return list(dict.fromkeys([*self.addresses, *installed(self.group), *self.added]))

    def find(self, name: str) -> Thing | None:
        if name in self.added:
            return self.added[name]
        # The entry point `abc` serves the suffix `.abc` and the scheme `abc:` alike.
        address = self.addresses.get(name) or installed(self.group).get(name.strip(".:"))
        if address is None:
            return None
        thing = self.checked(loaded(address, self.noun, self.group))
        if thing is None:
            raise OptionError(f"{address} of the group {self.group} is not a {self.wanted}")
        return thing


def instance_of(kind: type[Thing]) -> Callable[[Any], Thing | None]:
    return lambda thing: thing if isinstance(thing, kind) else None


@cache
def public_names() -> dict[str, str]:
    """The module of every public name, as the stub beside this file imports them."""
    loader: Any = __spec__.loader
    stub = ast.parse(loader.get_data(str(Path(__file__).with_name("__init__.pyi"))))
    imports = [node for node in stub.body if isinstance(node, ast.ImportFrom)]
    return {alias.name: str(node.module) for node in imports for alias in node.names}


def installed(group: str) -> dict[str, str]:
    """The addresses that installed packages name in a group of entry points, by name."""
    # Slow to import, and only needed for names that the tables lack.
    from importlib.metadata import entry_points

    return {point.name: point.value for point in entry_points(group=group)}


def loaded(address: str, noun: str, group: str) -> Any:
    module, _, attribute = address.partition(":")
    try:
        return getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise OptionError(
            f"the {noun} {address} of the group {group} cannot be loaded: {error}"
        ) from None


def folder_of(package: str, extra: str) -> Path:
    """The folder of an installed package whose files are read without importing it; an error names
    the extra that installs it.
    """
    found = find_spec(package)
    if found is None or found.origin is None:
        raise OptionError(
            f"the package {package} is not installed: pip install 'tailpath[{extra}]'"
        )
    return Path(found.origin).parent


def module_of(name: str, extra: str) -> Any:
    """A module of a package that an extra installs."""
    folder_of(name.partition(".")[0], extra)
    return importlib.import_module(name)
