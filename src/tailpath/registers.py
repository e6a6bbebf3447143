"""Registers: things by name that others may add to, one file and one line each.

A register has three sources: a table of places in this package, `register` in a running program, and entry points `name = "package.module:THING"`
of one group in installed packages, which are found without being asked for. What was registered comes first, and our table wins over entry
points. A thing is loaded when it is first asked for.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping
from typing import Any, Generic, TypeVar

from tailpath.errors import OptionError

Thing = TypeVar("Thing")


class Register(Generic[Thing]):
    """Things of one kind: `places` gives each name its "module:attribute", `group` is that of the entry points, `taken` are names nobody may use."""

    def __init__(self, kind: type[Thing], group: str, places: Mapping[str, str], taken: Iterable[str] = ()) -> None:
        self.kind, self.group, self.places, self.taken = kind, group, dict(places), {*places, *taken}
        self.added: dict[str, Thing] = {}

    def add(self, name: str, thing: Thing) -> None:
        """Make a thing known to this process; added again, it replaces the one before."""
        if name in self.taken:
            raise OptionError(f"the {self._word} {name} is there already")
        self.added[name] = thing

    def names(self) -> list[str]:
        """The names of all things, those of our table first."""
        return list(dict.fromkeys([*self.places, *installed(self.group), *self.added]))

    def find(self, name: str) -> Thing | None:
        """The thing of a name, or None."""
        if name in self.added:
            return self.added[name]
        place = self.places.get(name) or installed(self.group).get(name)
        if place is None:
            return None
        thing = loaded(place, self._word, self.group)
        if not isinstance(thing, self.kind):
            raise OptionError(f"{place} of the group {self.group} is no {self.group}.{self.kind.__name__}")
        return thing

    @property
    def _word(self) -> str:
        return self.kind.__name__.lower()


def installed(group: str) -> dict[str, str]:
    """The places that installed packages name in a group of entry points, by name."""
    from importlib.metadata import entry_points  # slow to import, and only needed for what our tables lack

    return {point.name: point.value for point in entry_points(group=group)}


def loaded(place: str, what: str, group: str) -> Any:
    """What stands at "module:attribute"."""
    module, _, attribute = place.partition(":")
    try:
        return getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise OptionError(f"the {what} {place} of the group {group} cannot be loaded: {error}") from None
