"""The headers of our own files, of models and of policies, declared: what each member must be, and
its default if it is missing; and names and other parts of a model as JSON.

A name is a string, a number, a truth value, null, or a tuple of names; a tuple, named or not, is
written as a list, which no name can be. So `1`, `"1"`, `[1]` and `["1"]` stay four different names.
Names that are simply 0, 1, .., n - 1 are written as the number n.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from tailpath.errors import FormatError
from tailpath.formats.files import load_json, shorten
from tailpath.model.ssp import Geometry, Name

_FRACTION = re.compile(r"([0-9]{1,400})/([0-9]{1,400})")


class MemberKind(NamedTuple):
    """What a member must be, in words and as a test; a missing one has the value `default`."""

    what: str
    fits: Callable[[Any], bool]
    default: Any = None
    needed: bool = True

    def otherwise(self, default: Any = None) -> MemberKind:
        return self._replace(default=default, needed=False)


def _list_of(*kinds: type) -> Callable[[Any], bool]:
    return lambda value: type(value) is list and set(map(type, value)) <= set(kinds)


def positive_fraction(value: Any) -> Fraction | None:
    """What is written as `p/q`, if it is."""
    match = _FRACTION.fullmatch(value) if isinstance(value, str) else None
    top, bottom = map(int, match.groups()) if match else (0, 0)
    return Fraction(top, bottom) if top and bottom else None


ANYTHING = MemberKind("given", lambda value: True)
TRUTH = MemberKind("true or false", lambda value: type(value) is bool)
WHOLE = MemberKind("a whole number", lambda value: type(value) is int and 0 <= value < 2**62)
SIZE = MemberKind(
    "a whole number below 2^31", lambda value: type(value) is int and 0 <= value < 2**31
)
POSITIVE = MemberKind("a positive whole number", lambda value: type(value) is int and value > 0)
SHARE = MemberKind("a number in (0, 1)", lambda value: type(value) is float and 0 < value < 1)
OBJECT = MemberKind("an object", lambda value: isinstance(value, dict))
LIST = MemberKind("a list", lambda value: isinstance(value, list))
NUMBERS = MemberKind("a list of numbers", _list_of(int, float))
TEXTS = MemberKind("a list of strings", _list_of(str))
UNIT = MemberKind("a positive fraction 'p/q'", lambda value: positive_fraction(value) is not None)
#: Parts of a model besides names and numbers, and where its states lie.
EXTRAS = {
    "cost_unit": UNIT.otherwise(),
    "geometry": OBJECT.otherwise(),
    "notes": TEXTS.otherwise([]),
}
GEOMETRY = {"rows": POSITIVE, "columns": POSITIVE, "row": LIST, "column": LIST, "kind": TEXTS}


def checked(document: Any, schema: Mapping[str, MemberKind], location: str) -> dict[str, Any]:
    """The members of an object by name; messages begin with `location`."""
    if not isinstance(document, dict):
        raise FormatError(f"{location.rstrip(': ')} must be an object with {', '.join(schema)}")
    refuse_unknown(document, schema, location)
    return {name: member_of(document, name, kind, location) for name, kind in schema.items()}


def refuse_unknown(members: Iterable[str], known: Iterable[str], location: str) -> None:
    for name in sorted(set(members) - set(known)):
        raise FormatError(
            f"{location}unknown member {shorten(repr(name))}; known are {', '.join(known)}"
        )


def member_of(document: Mapping[str, Any], name: str, kind: MemberKind, location: str) -> Any:
    """One member of an object that may have others."""
    if name not in document and kind is ANYTHING:
        raise FormatError(f"{location}the member {name!r} is missing")
    if document.get(name) is None and not kind.needed:
        return kind.default
    value = document.get(name)
    if not kind.fits(value):
        raise FormatError(f"{location}{name} must be {kind.what}, not {shorten(repr(value))}")
    return value


def read_header(text: str, location: str, path: str, name: str, version: int) -> dict[str, Any]:
    """A header: the kind of the file, and its version."""
    found = load_json(text, location)
    if not isinstance(found, dict) or not isinstance(found.get("format"), str):
        raise FormatError(f"{path}: not a tailpath file: the member 'format' is missing")
    if found["format"] != name:
        hint = "; read it with read_policy" if found["format"] == "tailpath policy" else ""
        raise FormatError(
            f"{path}: this is a {shorten(found['format'])!r} file, not a {name!r} file{hint}"
        )
    if member_of(found, "version", POSITIVE, f"{path}: ") > version:
        raise FormatError(
            f"{path}: version {found['version']} is newer than this program, which reads version"
            f" {version}; upgrade tailpath"
        )
    return found


# ---------------------------------------------------------------------- what they hold


def decode_name(value: Any, location: str) -> Name:
    if isinstance(value, list):
        return tuple(decode_name(part, location) for part in value)
    if isinstance(value, dict):
        raise FormatError(f"{location}: {shorten(repr(value))} is not a name")
    name: Name = value
    return name


def decode_names(value: Any, location: str, count: int | None = None) -> Sequence[Name]:
    """The names of `count` things, or without it of as many as the file declares. A declared number
    must equal the real one: a range is free, but a wrong one is a wrong file.
    """
    if type(value) is int and 0 <= value < 2**31:
        if count not in (None, value):
            raise FormatError(f"{location} is {value}, but the arrays have {count}")
        return range(value)
    if not isinstance(value, list):
        raise FormatError(f"{location} must be a list of names or their number")
    if count not in (None, len(value)):
        raise FormatError(f"{location} has {len(value)} names, but the arrays have {count}")
    return decode_column(value, lambda position: f"{location}[{position}]")


def decode_column(values: Sequence[Any], location: Callable[[int], str]) -> tuple[Name, ...]:
    """The names that pieces of JSON stand for; `location` says where the one at a position is."""
    return tuple(
        decode_name(value, location(position)) if type(value) in (list, dict) else value
        for position, value in enumerate(values)
    )


def decode_members(members: Mapping[str, Any], n_states: int, location: str) -> dict[str, Any]:
    """What a model has besides names and numbers, as its fields."""
    found = {name: member_of(members, name, kind, location) for name, kind in EXTRAS.items()}
    return {
        "exact_unit": positive_fraction(found["cost_unit"]),
        "geometry": decode_geometry(found["geometry"], n_states, f"{location}geometry"),
        "notes": tuple(found["notes"]),
    }


def decode_geometry(value: Any, n_states: int, location: str) -> Geometry | None:
    """The geometry, one entry per state, every cell on the grid or at -1."""
    if value is None:
        return None
    found = checked(value, GEOMETRY, f"{location}.")
    for key, end in (("row", found["rows"]), ("column", found["columns"]), ("kind", 0)):
        entries = found[key]
        if len(entries) != n_states or (end and set(map(type, entries)) != {int}):
            raise FormatError(
                f"{location}.{key} must be a list of {n_states} entries, one per state"
            )
        for entry in (min(entries), max(entries)) if end else ():
            if not -1 <= entry < end:
                raise FormatError(
                    f"{location}.{key}[{entries.index(entry)}] is {entry}, outside -1..{end - 1}"
                )
        found[key] = tuple(entries)
    return Geometry(**found)
