"""What a foreign format has no place for: names of any kind, the exact cost unit, the geometry,
notes.

Our writers put them, as one line of JSON, where the tool that owns the format looks away: a
comment, or a free text field. Our readers take them back, so that a model passes through such a
file unchanged. A file without them is read as it stands.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from tailpath.errors import FormatError
from tailpath.formats.files import load_json
from tailpath.formats.names import (
    decode_geometry,
    decode_names,
    decode_notes,
    decode_unit,
    encode_geometry,
    encode_names,
    encode_unit,
)
from tailpath.model.ssp import SSP, Geometry, Name

#: The line begins with this word, after whatever marks a comment.
MARK = "tailpath"
_MEMBERS = ("states", "actions", "auxiliary", "cost_unit", "geometry", "notes")


@dataclass(frozen=True)
class Extras:
    """The members of such a line; none of them is there in a file of others."""

    where: str = ""
    states: Any = None
    actions: Any = None
    auxiliary: int = 0
    cost_unit: Any = None
    geometry: Any = None
    notes: tuple[str, ...] = ()

    @classmethod
    def parse(cls, text: str, where: str) -> Extras:
        """Read the line after its mark."""
        try:
            members = load_json(text, where)
            if not isinstance(members, dict) or not set(members) <= set(_MEMBERS):
                raise FormatError(
                    f"{where}: the {MARK} line must be an object with members among"
                    f" {', '.join(_MEMBERS)}"
                )
            auxiliary = members.get("auxiliary", 0)
            if type(auxiliary) is not int or auxiliary < 0:
                raise FormatError(f"{where}: auxiliary must be a whole number")
            notes = decode_notes(members.get("notes", []), f"{where}: notes")
        except RecursionError:
            raise FormatError(f"{where}: nested too deeply") from None
        return cls(where, **{**members, "auxiliary": auxiliary, "notes": notes})

    def state_names(self, n_states: int) -> Sequence[Name]:
        """The states' names, or their numbers."""
        return (
            range(n_states)
            if self.states is None
            else decode_names(self.states, n_states, f"{self.where}: states")
        )

    def action_names(self) -> Sequence[Name] | None:
        """The actions' names, in index order."""
        if self.actions is None:
            return None
        count = (
            len(self.actions)
            if isinstance(self.actions, list)
            else self.actions
            if type(self.actions) is int
            else -1
        )
        if not -1 <= count < 2**31:
            raise FormatError(f"{self.where}: actions says {count}")
        return decode_names(self.actions, count, f"{self.where}: actions")

    def unit(self) -> Fraction | None:
        return decode_unit(self.cost_unit, f"{self.where}: cost_unit")

    def located(self, n_states: int) -> Geometry | None:
        return decode_geometry(self.geometry, n_states, f"{self.where}: geometry")


def extras_line(ssp: SSP, auxiliary: int = 0) -> str:
    """The line for a model, without the comment mark of the format."""
    members: dict[str, Any] = {
        "states": encode_names(ssp.states),
        "actions": encode_names(ssp.actions),
        "auxiliary": auxiliary or None,
        "cost_unit": encode_unit(ssp.exact_unit),
        "geometry": encode_geometry(ssp.geometry),
        "notes": list(ssp.notes) or None,
    }
    return (
        f"{MARK} {json.dumps({key: value for key, value in members.items() if value is not None})}"
    )


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
