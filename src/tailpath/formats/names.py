"""Names of states and actions, and the other things of a model that are not numbers, as JSON; and
what every file of ours begins with.

A name is a string, a number, a truth value, null, or a tuple of names; a tuple, named or not, is
written as a list, which no name can be. So `1`, `"1"`, `[1]` and `["1"]` stay four different names.
Names that are simply 0, 1, .., n - 1 are written as the number n.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from itertools import chain
from typing import Any

import numpy as np

from tailpath.errors import FormatError
from tailpath.formats.files import shorten
from tailpath.model.ssp import SSP, Geometry, Name

_FRACTION = re.compile(r"([0-9]{1,400})/([0-9]{1,400})")
_NESTED, _TRUTHS = frozenset((list, dict)), frozenset((bool, tuple))


def encode_name(name: Name) -> Any:
    """A name as JSON can hold it; refuses what would come back as something else."""
    if isinstance(name, np.generic):
        name = name.item()
    if (
        name is None
        or type(name) in (str, bool, int)
        or (type(name) is float and math.isfinite(name))
    ):
        return name
    if isinstance(name, tuple):  # a named one is equal to the plain one that comes back
        return [encode_name(part) for part in name]
    raise FormatError(
        f"the name {name!r} cannot be written: use strings, numbers or tuples of them, named"
        " ones too"
    )


def decode_name(value: Any, location: str) -> Name:
    """The name that a piece of JSON stands for."""
    if isinstance(value, list):
        return (
            tuple(value)
            if _NESTED.isdisjoint(map(type, value))
            else tuple(decode_name(part, location) for part in value)
        )
    if isinstance(value, dict):
        raise FormatError(f"{location}: {shorten(repr(value))} is not a name")
    name: Name = value
    return name


def truth_values(name: Name) -> Any:
    """Where truth values stand in a name: what tells names apart that Python takes for equal."""
    if not isinstance(name, tuple) or _TRUTHS.isdisjoint(map(type, name)):
        return isinstance(name, bool)
    return [truth_values(part) for part in name]


class NameIndex:
    """Names with their numbers, as they appear."""

    def __init__(self) -> None:
        self.index: dict[Name, int] = {}
        self.names: list[Name] = []

    def enter(self, name: Name) -> int:
        """The number of a name.

        Python takes true for 1 and false for 0, in tuples too; whoever writes both means two names,
        and is refused, with a text that stands after a position.
        """
        number = self.index.setdefault(name, len(self.names))
        if number == len(self.names):
            self.names.append(name)
        elif (type(name) in _TRUTHS or name == 0 or name == 1) and (
            truth_values(name) != truth_values(self.names[number])
        ):
            both = (json.dumps(encode_name(each)) for each in (name, self.names[number]))
            raise FormatError(f": {' and '.join(both)} would be one name")
        return number


def all_integers(names: Sequence[Name]) -> bool:
    """Whether all names are tuples of whole numbers, as those of cells are: JSON takes these as
    they are.
    """
    tuples: Any = names
    if set(map(type, tuples)) != {tuple}:
        return False
    return set(map(type, chain.from_iterable(tuples))) == {int} and all(tuples)


def json_texts(names: Sequence[Name]) -> list[str]:
    """Every name as JSON."""
    if all_integers(names):
        return [f"[{part}]" for part in json.dumps(names)[2:-2].split("], [")]
    return [json.dumps(encode_name(name), ensure_ascii=False) for name in names]


def encode_names(names: Sequence[Name]) -> int | list[Any]:
    """All names in index order; 0 .. n - 1 as the number n."""
    if isinstance(names, range) and names == range(len(names)):
        return len(names)
    simple = {str, bool, int}  # floats may be infinite
    return [
        (
            list(name)
            if type(name) is tuple and simple.issuperset(map(type, name))
            else encode_name(name)
        )
        for name in names
    ]


def decode_names(value: Any, count: int, location: str) -> Sequence[Name]:
    """The names of `count` things. A declared number must equal the real one: a range is free, but
    a wrong one is a wrong file.
    """
    if type(value) is int:
        if value != count:
            raise FormatError(f"{location} says {value}, the arrays say {count}")
        return range(count)
    if not isinstance(value, list):
        raise FormatError(f"{location} must be a list of names or their number")
    if len(value) != count:
        raise FormatError(f"{location} has {len(value)} names, the arrays say {count}")
    # Most names are simple, or lists of simple ones; a million of them should not wait for the
    # message about one that is not.
    if _NESTED.isdisjoint(map(type, value)):
        return tuple(value)
    if set(map(type, value)) == {list} and _NESTED.isdisjoint(
        map(type, chain.from_iterable(value))
    ):
        return tuple(map(tuple, value))
    return tuple(decode_name(entry, f"{location}[{index}]") for index, entry in enumerate(value))


def decode_own_names(value: Any, location: str) -> Sequence[Name]:
    """The names of things that only this list counts."""
    count = len(value) if isinstance(value, list) else value
    if type(count) is int and not 0 <= count < 2**31:
        raise FormatError(f"{location} says {count}")
    return decode_names(value, count, location)


def encode_members(ssp: SSP) -> dict[str, Any]:
    """What a model has besides numbers, by the names of members; None where it has nothing."""
    return {
        "states": encode_names(ssp.states),
        "actions": encode_names(ssp.actions),
        "cost_unit": encode_unit(ssp.exact_unit),
        "geometry": encode_geometry(ssp.geometry),
        "notes": list(ssp.notes) or None,
    }


def decode_members(members: Mapping[str, Any], n_states: int, location: str) -> dict[str, Any]:
    """The same back, but for names, as fields of a model."""
    return {
        "exact_unit": decode_unit(members.get("cost_unit"), f"{location}cost_unit"),
        "geometry": decode_geometry(members.get("geometry"), n_states, f"{location}geometry"),
        "notes": decode_notes(members.get("notes", []), f"{location}notes"),
    }


def check_header(document: Any, path: str, name: str, version: int) -> None:
    """Every file of ours says what it is and in which version."""
    if not isinstance(document, dict) or not isinstance(document.get("format"), str):
        raise FormatError(f"{path}: this is not a file of tailpath: the member 'format' is missing")
    if document["format"] != name:
        hint = "; read it with read_policy" if document["format"] == "tailpath policy" else ""
        raise FormatError(
            f"{path}: this is a {shorten(document['format'])!r} file, not a {name!r} file{hint}"
        )
    if type(document.get("version")) is not int or document["version"] < 1:
        raise FormatError(f"{path}: the member 'version' must be a whole number")
    if document["version"] > version:
        raise FormatError(
            f"{path}: version {document['version']} is newer than this program, which reads version"
            f" {version}"
        )


def refuse_unknown(members: Iterable[str], known: Sequence[str], location: str) -> None:
    """Refuse the first member of a file that none of this kind has."""
    for member in members:
        if member not in known:
            raise FormatError(
                f"{location}unknown member {shorten(repr(member))}; known are {', '.join(known)}"
            )


def decode_confidence(value: Any, location: str) -> float | None:
    """How sure all intervals are to hold."""
    if value is not None and not (isinstance(value, float) and 0 < value < 1):
        raise FormatError(f"{location} must be a number in (0, 1)")
    return value


def encode_unit(unit: Fraction | None) -> str | None:
    """The exact cost unit as `p/q`."""
    return None if unit is None else f"{unit.numerator}/{unit.denominator}"


def decode_unit(value: Any, location: str) -> Fraction | None:
    """The exact cost unit; the model compares it with the costs."""
    found = None if value is None else positive_fraction(value)
    if value is not None and found is None:
        raise FormatError(f"{location}: {shorten(repr(value))} is not a positive fraction 'p/q'")
    return found


def positive_fraction(value: Any) -> Fraction | None:
    """What is written as `p/q`, if it is."""
    match = _FRACTION.fullmatch(value) if isinstance(value, str) else None
    top, bottom = map(int, match.groups()) if match else (0, 0)
    return Fraction(top, bottom) if top and bottom else None


def encode_geometry(geometry: Geometry | None) -> dict[str, Any] | None:
    """Geometry for people: the kinds of the cells by name."""
    if geometry is None:
        return None
    cells = {key: list(map(int, getattr(geometry, key))) for key in ("row", "column")}
    return {
        "rows": geometry.rows,
        "columns": geometry.columns,
        **cells,
        "kind": list(geometry.kind),
    }


def decode_geometry(value: Any, n_states: int, location: str) -> Geometry | None:
    """The geometry, one entry per state, every cell on the grid or at -1."""
    if value is None:
        return None
    if not isinstance(value, dict) or set(value) != {"rows", "columns", "row", "column", "kind"}:
        raise FormatError(f"{location} must have rows, columns, row, column and kind")
    if not all(type(value[key]) is int and value[key] > 0 for key in ("rows", "columns")):
        raise FormatError(f"{location}: rows and columns must be positive whole numbers")
    for key, kind, end in (
        ("row", int, value["rows"]),
        ("column", int, value["columns"]),
        ("kind", str, 0),
    ):
        entries = value[key]
        if (
            not isinstance(entries, list)
            or len(entries) != n_states
            or set(map(type, entries)) != {kind}
        ):
            raise FormatError(
                f"{location}.{key} must be a list of {n_states} entries, one per state"
            )
        for entry in (min(entries), max(entries)) if end else ():
            if not -1 <= entry < end:
                raise FormatError(
                    f"{location}.{key}[{entries.index(entry)}] is {entry}, outside -1..{end - 1}"
                )
        value = {**value, key: tuple(entries)}
    return Geometry(**value)


def decode_notes(value: Any, location: str) -> tuple[str, ...]:
    """The notes, a list of strings."""
    if not isinstance(value, list) or any(type(note) is not str for note in value):
        raise FormatError(f"{location} must be a list of strings")
    return tuple(value)
