"""Text files written block by block: what is held as text is a few megabytes, whatever the model.

A block is some columns of texts side by side. Equal numbers are formatted once. Names, and what
else a model has besides numbers, are written as JSON, which `files.py` decodes.

A foreign format has no place for names of any kind, the exact cost unit, the geometry and notes.
Our writers put them, as one line of JSON, where the tool that owns the format looks away: a
comment, or a free text field. Our readers take them back, so that a model passes through such a
file unchanged (`Extras`). A file without them is read as it stands.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

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
from tailpath.graph import Array, BoolArray, FloatArray
from tailpath.model.interval import IntervalSSP, underlying_ssp
from tailpath.model.ssp import SSP, Geometry, Name

#: The outcomes of a block, about: as many as the processor has at hand.
BLOCK = 10_000
Texts = NDArray[np.object_]


class Block:
    """Some states in a row of a model, with their choices and outcomes, as ranges; and columns of
    texts, one for each outcome.
    """

    def __init__(self, model: SSP | IntervalSSP, states: range) -> None:
        self.model, self.ssp = model, underlying_ssp(model)
        self.states = states
        self.choices = _between(self.ssp.state_choices, states)
        self.outcomes = _between(self.ssp.choice_outcomes, self.choices)
        self.choice = self.of_outcomes(self.ssp.outcome_choice)

    def of_outcomes(self, array: Array) -> Array:
        """Those entries of an array over outcomes that belong to the block."""
        return array[self.outcomes.start : self.outcomes.stop]

    def of_choices(self, array: Array) -> Array:
        return array[self.choices.start : self.choices.stop]

    def sources(self, table: Texts) -> Texts:
        return np.asarray(table[self.ssp.choice_state[self.choice]])

    def targets(self, table: Texts) -> Texts:
        return np.asarray(table[self.of_outcomes(self.ssp.outcome_target)])

    def actions(self, to_text: Callable[[int], str]) -> Texts:
        return formatted(self.ssp.choice_action[self.choice], to_text)

    def costs(self, to_text: Callable[[float], str]) -> Texts:
        return formatted(self.of_outcomes(self.ssp.outcome_cost), to_text)

    def probabilities(
        self, before: str, between: str, after: str, estimates: bool = False
    ) -> Iterator[Texts]:
        """Their probabilities; intervals in brackets, perhaps with what was estimated."""
        columns = list(probability_columns(self.model).values())
        if isinstance(self.model, IntervalSSP):
            before, after = f"{before}[", f"]{after}"
            if estimates and self.model.estimate is not None:
                columns.append(self.model.estimate)
        for position, column in enumerate(columns):
            first = before if position == 0 else between
            last = after if position == len(columns) - 1 else ""
            yield formatted(self.of_outcomes(column), f"{first}{{!r}}{last}".format)


def probability_columns(model: SSP | IntervalSSP) -> dict[str, FloatArray]:
    """The probability of each outcome, or the ends of its interval, by the names that columns of
    them have.
    """
    if isinstance(model, IntervalSSP):
        return {"low": model.low, "high": model.high}
    return {"probability": model.outcome_probability}


def choice_costs(ssp: SSP) -> tuple[FloatArray, BoolArray]:
    """The least cost of each choice, and whether its outcomes have different ones."""
    least, most = (
        extreme.reduceat(ssp.outcome_cost, ssp.choice_outcomes[:-1])
        for extreme in (np.minimum, np.maximum)
    )
    return least, least != most


def _between(offsets: Array, part: range) -> range:
    return range(int(offsets[part.start]), int(offsets[part.stop]))


def blocks(model: SSP | IntervalSSP) -> Iterator[Block]:
    """The states of a model, some at a time."""
    ssp, first = underlying_ssp(model), 0
    first_outcome = ssp.choice_outcomes[ssp.state_choices]
    while first < ssp.n_states:
        last = int(np.searchsorted(first_outcome, first_outcome[first] + BLOCK, side="right")) - 1
        last = min(max(last, first + 1), first + BLOCK, ssp.n_states)
        yield Block(model, range(first, last))
        first = last


def encoded(text: str) -> bytes:
    """Text as bytes; what UTF-8 cannot hold is written as an escape."""
    return text.encode("utf-8", "backslashreplace")


def text_column(texts: Iterable[str]) -> Texts:
    """Texts as a table: `table[numbers]` is a column."""
    return np.array(list(texts), dtype=object)


def formatted(values: Array, to_text: Callable[[Any], str]) -> Texts:
    """A column: the text of every value, (n,). Equal ones are formatted once."""
    different, number = np.unique(values, return_inverse=True)
    return text_column(map(to_text, different.tolist()))[number]


def joined_columns(*columns: Texts) -> bytes:
    parts = [""] * (len(columns) * len(columns[0]))
    for position, column in enumerate(columns):
        parts[position :: len(columns)] = column.tolist()
    return encoded("".join(parts))


def put_before(heads: Texts, positions: Iterable[int], lines: Iterable[str]) -> None:
    """Put each line before the text at its position; lines of one position stay in their order."""
    found: dict[int, list[str]] = {}
    for position, line in zip(positions, lines):
        found.setdefault(position, []).append(line)
    for position, some in found.items():
        heads[position] = "".join([*some, heads[position]])


# ---------------------------------------------------------------------- as JSON


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


def encode_names(names: Sequence[Name]) -> int | list[Any]:
    """All names in index order; 0 .. n - 1 as the number n."""
    if isinstance(names, range) and names == range(len(names)):
        return len(names)
    return list(map(encode_name, names))


def encode_members(ssp: SSP) -> dict[str, Any]:
    """What a model has besides numbers, by the names of members; None where it has nothing."""
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
    """The members of such a line; none of them is there in a file of others."""

    location: str = ""
    members: Mapping[str, Any] = field(default_factory=dict)
    auxiliary: int = 0

    @classmethod
    def parse(cls, text: str, location: str) -> Extras:
        members = checked(load_json(text, location), _MEMBERS, f"{location}: the {MARK} line: ")
        return cls(location, members, members["auxiliary"])

    @property
    def is_ours(self) -> bool:
        """Whether the file has such a line: our own writer wrote it."""
        return bool(self.location)

    def has(self, member: str) -> bool:
        return self.members.get(member) is not None

    def state_names(self, n_states: int) -> Sequence[Name]:
        if not self.has("states"):
            return range(n_states)
        return decode_names(self.members["states"], f"{self.location}: states", n_states)

    def action_names(self) -> Sequence[Name] | None:
        if not self.has("actions"):
            return None
        return decode_names(self.members["actions"], f"{self.location}: actions")

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
