"""What the writers of all formats share. Texts are written line by line, a block at a time, so that
little text is in memory, whatever the model. Names, and what else a model has besides numbers,
are written as JSON, which `files.py` decodes.

A foreign format has no place for names of any kind, the exact cost unit, the geometry and notes.
Our writers put them, as one line of JSON, where other tools ignore it: a comment, or a free text
field. Our readers take them back, so that a model passes through such a
file unchanged (`Extras`). A file without them is read as it stands.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import islice
from typing import Any

import numpy as np

from tailpath.errors import FormatError
from tailpath.formats.files import load_json
from tailpath.formats.headers import (
    ANYTHING,
    EXTRAS,
    WHOLE,
    checked,
    decode_members,
    decode_names,
)
from tailpath.graph import Array, FloatArray
from tailpath.model.interval import IntervalSSP
from tailpath.model.ssp import SSP, Geometry, Name

#: Lines per block, about as many as fit into the processor's cache.
BLOCK = 10_000


def in_turn(*columns: Array) -> Iterator[tuple[Any, ...]]:
    """The entries of columns side by side, as numbers of Python."""
    for first in range(0, len(columns[0]), BLOCK):
        yield from zip(*(column[first : first + BLOCK].tolist() for column in columns))


def in_blocks(lines: Iterable[str]) -> Iterator[bytes]:
    """Lines as bytes, many at a time; what UTF-8 cannot hold is written as an escape."""
    lines = iter(lines)
    while block := "".join(islice(lines, BLOCK)):
        yield block.encode("utf-8", "backslashreplace")


def share_texts(shares: FloatArray, between: str = ", ") -> Iterator[str]:
    """Probabilities, (n, 1); more columns, such as the ends of intervals, in brackets."""
    if shares.shape[1] == 1:
        return (repr(p) for (p,) in in_turn(shares[:, 0]))
    return (f"[{between.join(map(repr, row))}]" for row in in_turn(*shares.T))


def probability_columns(model: SSP | IntervalSSP) -> dict[str, FloatArray]:
    """The probability of each outcome, or the ends of its interval, by column name."""
    if isinstance(model, IntervalSSP):
        return {"low": model.low, "high": model.high}
    return {"probability": model.outcome_probability}


# ---------------------------------------------------------------------- as JSON


def encode_name(name: Name) -> Any:
    """A name as JSON; a name that would be read back as another is refused."""
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
        f"the name {name!r} cannot be written: use strings, numbers, or plain or named tuples of"
        " them"
    )


def encode_names(names: Sequence[Name]) -> int | list[Any]:
    """All names in index order; 0 .. n - 1 as the number n."""
    if isinstance(names, range) and names == range(len(names)):
        return len(names)
    return list(map(encode_name, names))


def encode_members(ssp: SSP) -> dict[str, Any]:
    """The parts of a model besides numbers, by member; None for those it does not have."""
    return {
        "states": encode_names(ssp.states),
        "actions": encode_names(ssp.actions),
        "cost_unit": encode_unit(ssp.exact_unit),
        "geometry": encode_geometry(ssp.geometry),
        "notes": list(ssp.notes) or None,
    }


def encode_unit(unit: Fraction | None) -> str | None:
    return None if unit is None else f"{unit.numerator}/{unit.denominator}"


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


# ---------------------------------------------------------------------- in files of others


#: The line begins with this word, after whatever marks a comment.
MARK = "tailpath"
_MEMBERS = {
    **dict.fromkeys(("states", "actions"), ANYTHING.otherwise()),
    "auxiliary": WHOLE.otherwise(0),
    **EXTRAS,
}


@dataclass(frozen=True)
class Extras:
    """The members of such a line, and where it stands; a file of others has none."""

    location: str = ""
    members: Mapping[str, Any] = field(default_factory=dict)
    auxiliary: int = 0

    @classmethod
    def parse(cls, text: str, location: str) -> Extras:
        members = checked(load_json(text, location), _MEMBERS, f"{location}: the {MARK} line: ")
        return cls(location, members, members["auxiliary"])

    def has(self, member: str) -> bool:
        return self.members.get(member) is not None

    def names(self, what: str, count: int | None = None) -> Sequence[Name] | None:
        """The names of states or actions, if the line has them."""
        if not self.has(what):
            return None
        return decode_names(self.members[what], f"{self.location}: {what}", count)

    def fields(self, n_states: int) -> dict[str, Any]:
        """Unit, geometry and notes, as fields of a model."""
        return decode_members(self.members, n_states, f"{self.location}: ")


def extras_line(ssp: SSP, auxiliary: int = 0) -> str:
    """The line for a model, without the comment mark of the format."""
    members = {**encode_members(ssp), "auxiliary": auxiliary or None}
    present = {key: value for key, value in members.items() if value is not None}
    return f"{MARK} {json.dumps(present)}"


def written_actions(actions: Sequence[Name], can_write: Callable[[str], bool]) -> dict[str, int]:
    """A different word for each action, the same on writing and on reading: its name where the
    format can hold it. Words to indices.
    """
    words: dict[str, int] = {}
    for index, name in enumerate(actions):
        word = name if isinstance(name, str) else str(name) if type(name) is int else ""
        if not word or word in words or not can_write(word):
            word = f"action{index}"
            while word in words:
                word += "_"
        words[word] = index
    return words


def action_words(ssp: SSP, can_write: Callable[[str], bool]) -> Callable[[int], str]:
    """The word of each action, by its number."""
    if isinstance(ssp.actions, range):  # of which there may be many more than choices
        return str
    return list(written_actions(ssp.actions, can_write)).__getitem__
