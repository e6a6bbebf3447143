"""Tables of names in policy files: rows of JSON, each some names and what is decided or remembered
after them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from tailpath.errors import FormatError
from tailpath.formats.files import shorten
from tailpath.formats.names import decode_name, encode_name
from tailpath.model.ssp import Name
from tailpath.policies.policy import Decision


def decision_rows(table: Mapping[Any, Decision]) -> dict[str, list[list[Any]]]:
    """Sure decisions and mixed ones in two tables: a list could be a tuple of an action's name as
    well as a distribution.
    """
    rows: dict[str, list[list[Any]]] = {"decisions": [], "mixed": []}
    for key, decision in table.items():
        names = [encode_name(part) for part in key]
        if isinstance(decision, Mapping):
            rows["mixed"].extend(
                [*names, encode_name(action), float(share)] for action, share in decision.items()
            )
        else:
            rows["decisions"].append([*names, encode_name(decision)])
    return rows


def read_decisions(
    header: Mapping[str, Any], width: int, path: str
) -> dict[tuple[Name, ...], Decision]:
    """The decisions of both tables, by the names that stand before each."""
    table = read_table(header, "decisions", width, "decision", path)
    mixed: dict[tuple[Name, ...], dict[Name, float]] = {}
    for location, key, (named, share) in _rows(header, "mixed", width, 2, path):
        action = decode_name(named, location)
        if type(share) not in (int, float) or not 0 <= share <= 1:
            raise FormatError(f"{location}: {shorten(repr(share))} is not a probability")
        if key in table or action in mixed.get(key, ()):
            raise FormatError(f"{location}: a second decision for {key!r}")
        mixed.setdefault(key, {})[action] = float(share)
    for key, shares in mixed.items():
        total = math.fsum(shares.values())
        if abs(total - 1) > 1e-9:
            raise FormatError(f"{path}: the probabilities for {key!r} sum to {total:.12g}, not 1")
    return {**table, **mixed}


def read_table(
    header: Mapping[str, Any], member: str, width: int, what: str, path: str
) -> dict[tuple[Name, ...], Name]:
    """The last name of each row by the names before it."""
    table: dict[tuple[Name, ...], Name] = {}
    for location, key, (value,) in _rows(header, member, width, 1, path):
        if key in table:
            raise FormatError(f"{location}: a second {what} for {key!r}")
        table[key] = decode_name(value, location)
    return table


def _rows(
    header: Mapping[str, Any], member: str, width: int, more: int, path: str
) -> Iterator[tuple[str, tuple[Name, ...], list[Any]]]:
    """Where each row of a table stands, the `width` names it begins with, and what follows them."""
    rows = header.get(member, [])
    if not isinstance(rows, list):
        raise FormatError(f"{path}: {member} must be a list")
    for number, row in enumerate(rows):
        location = f"{path}: {member}[{number}]"
        if not isinstance(row, list) or len(row) != width + more:
            raise FormatError(
                f"{location} must be a list of {width + more}, not {shorten(repr(row))}"
            )
        yield location, tuple(decode_name(part, location) for part in row[:width]), row[width:]
