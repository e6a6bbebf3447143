"""What a foreign format has no place for: names of any kind, the exact cost unit, the geometry,
notes.

Our writers put them, as one line of JSON, where the tool that owns the format looks away: a
comment, or a free text field. Our readers take them back, so that a model passes through such a
file unchanged. A file without them is read as it stands.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tailpath.errors import FormatError
from tailpath.formats.files import decode_members, decode_names, decode_notes, load_json
from tailpath.formats.writing import encode_members
from tailpath.model.ssp import SSP, Name

#: The line begins with this word, after whatever marks a comment.
MARK = "tailpath"
_MEMBERS = ("states", "actions", "auxiliary", "cost_unit", "geometry", "notes")


@dataclass(frozen=True)
class Extras:
    """The members of such a line; none of them is there in a file of others."""

    location: str = ""
    members: Mapping[str, Any] = field(default_factory=dict)
    auxiliary: int = 0

    @classmethod
    def parse(cls, text: str, location: str) -> Extras:
        """Read the line after its mark."""
        members = load_json(text, location)
        if not isinstance(members, dict) or not set(members) <= set(_MEMBERS):
            raise FormatError(
                f"{location}: the {MARK} line must be an object with members among"
                f" {', '.join(_MEMBERS)}"
            )
        auxiliary = members.get("auxiliary", 0)
        if type(auxiliary) is not int or auxiliary < 0:
            raise FormatError(f"{location}: auxiliary must be a whole number")
        decode_notes(members.get("notes", []), f"{location}: notes")
        return cls(location, members, auxiliary)

    @property
    def is_ours(self) -> bool:
        """Whether the file has such a line: our own writer wrote it."""
        return bool(self.location)

    def has(self, member: str) -> bool:
        return self.members.get(member) is not None

    def state_names(self, n_states: int) -> Sequence[Name]:
        """The states' names, or their numbers."""
        if not self.has("states"):
            return range(n_states)
        return decode_names(self.members["states"], f"{self.location}: states", n_states)

    def action_names(self) -> Sequence[Name] | None:
        """The actions' names, in index order."""
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
