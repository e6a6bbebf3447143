"""Our own `.json`: a model for people to read, write by hand and keep under version control. Lossless.

    {
      "format": "tailpath model", "version": 1,
      "start": "home", "goals": ["work"],
      "outcomes": [
        ["home", "walk", "work", 1.0, 30.0],
        ["home", "drive", "work", 0.9, 10.0],
        ["home", "drive", "home", 0.1, 5.0]
      ]
    }

A row is state, action, next state, probability, cost; a probability or cost may be written as a string `"1/3"`. Optional members: `states`
and `actions` fix the order of the names (a number n stands for 0 .. n - 1; else names count in order of appearance), `cost_unit` is the
exact unit `"p/q"`, `geometry` places the states on a grid for drawing, `notes` are remarks. `names.py` says which names there are.

Large files whose outcomes stand last, one per line as we write them, are read by compiled loops (`scanning.py`), and every text is understood once.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tailpath.errors import FormatError
from tailpath.formats.files import load_json, parse_number, read_bytes, read_text, shorten, write_bytes
from tailpath.formats.names import (
    decode_geometry,
    decode_name,
    decode_names,
    decode_notes,
    decode_unit,
    encode_geometry,
    encode_name,
    encode_names,
    encode_unit,
    json_texts,
    truth_values,
)
from tailpath.formats.reading import Reading
from tailpath.formats.scanning import Book, OddError, is_large, lists_of
from tailpath.formats.writing import blocks, cut, encoded, joined, named, spelled
from tailpath.model.builders import arrays_from_rows
from tailpath.model.cost_units import common_unit
from tailpath.model.ssp import SSP, Name
from tailpath.options import Progress

FORMAT = "tailpath model"
VERSION = 1
_OUTCOMES = b'"outcomes": ['
_MEMBERS = ("format", "version", "start", "goals", "states", "actions", "cost_unit", "geometry", "notes", "outcomes")


#: State, action, target, probability and cost of every row.
Columns = tuple[NDArray[Any], ...]


def read(path: str, reading: Reading) -> SSP:
    """Read a model from our JSON."""
    data = read_bytes(path)
    try:
        found = _scanned(path, data, reading.progress) if is_large(data, reading, ascii_only=False) else None
        if found is None:
            document = _Document(load_json(read_text(path, data), path), path)
            found = document, document.columns()
        del data
        return found[0].model(found[1])
    except RecursionError:
        raise FormatError(f"{path}: nested too deeply") from None


def _scanned(path: str, data: bytes, progress: Progress | None) -> tuple[_Document, Columns] | None:
    """A large file and its rows, or `None` where something about it is odd or wrong. A word that nobody can foresee stands for the outcomes while
    the rest is read: it shows that they are where they seem to be."""
    begin, end, word = data.find(_OUTCOMES), data.rfind(b"]"), os.urandom(16).hex()
    if not 0 <= begin < end:
        return None
    try:
        book, texts = lists_of(data, *_inside(data, begin + len(_OUTCOMES), end), 5, progress)
        around = data[:begin] + _OUTCOMES + f'"{word}"'.encode() + data[end:]
        document = _Document(load_json(around.decode(), path), path, texts.shape[1])
        return (document, document.scanned_columns(book, texts)) if document.document["outcomes"] == [word] else None
    except (OddError, FormatError):
        return None


def _inside(data: bytes, begin: int, end: int) -> tuple[int, int]:
    """The same part of the data without the blanks around it."""
    while begin < end and data[begin] in b" \t\r\n":
        begin += 1
    while begin < end and data[end - 1] in b" \t\r\n":
        end -= 1
    return begin, end


def _check_members(document: Any, path: str) -> None:
    check_header(document, path, FORMAT, VERSION)
    for key in document:
        if key not in _MEMBERS:
            raise FormatError(f"{path}: unknown member {shorten(repr(key))}; known are {', '.join(_MEMBERS)}")
    for key in ("start", "goals", "outcomes"):
        if key not in document:
            raise FormatError(f"{path}: the member {key!r} is missing")
    for key in ("goals", "outcomes"):
        if not isinstance(document[key], list):
            raise FormatError(f"{path}: {key} must be a list")


def check_header(document: Any, path: str, name: str, version: int) -> None:
    """Every file of ours says what it is and in which version."""
    if not isinstance(document, dict) or not isinstance(document.get("format"), str):
        raise FormatError(f"{path}: this is no file of ours: the member 'format' is missing")
    if document["format"] != name:
        hint = "; read it with read_policy" if document["format"] == "tailpath policy" else ""
        raise FormatError(f"{path}: this is a {shorten(document['format'])!r} file, not a {name!r} file{hint}")
    if type(document.get("version")) is not int or document["version"] < 1:
        raise FormatError(f"{path}: the member 'version' must be a whole number")
    if document["version"] > version:
        raise FormatError(f"{path}: version {document['version']} is newer than this program, which reads version {version}")


class _Names:
    """A growing list of names, a fixed one, or the numbers 0 .. span - 1."""

    def __init__(self, value: Any, path: str, what: str) -> None:
        self.path, self.what = path, what
        self.fixed = value is not None
        self.span = -1
        names: list[Name] = []
        if type(value) is int and 0 <= value < 2**31:
            self.span = value
        elif isinstance(value, list):
            names = list(decode_names(value, len(value), f"{path}: {what}"))
        elif value is not None:
            raise FormatError(f"{path}: {what} must be a list of names or their number")
        self.index: dict[Name, int] = {name: number for number, name in enumerate(names)}
        self.first: dict[int, Name] = dict(enumerate(names))
        if len(self.index) < len(names):
            repeated = next(name for number, name in enumerate(names) if self.index[name] != number)
            raise FormatError(f"{path}: {what} has {repeated!r} twice")

    def __len__(self) -> int:
        return len(self.index) if self.span < 0 else self.span

    def number(self, value: Any, place: str) -> int:
        if self.span >= 0 and type(value) is int and 0 <= value < self.span:
            return value
        name = decode_name(value, f"{self.path}: {place}") if isinstance(value, (list, dict)) else value
        number = self.index.get(name, -1)
        if number >= 0 and (type(name) in (bool, tuple) or name == 0 or name == 1) and not self.alike(name, number):
            raise FormatError(
                f"{self.path}: {place}: {json.dumps(value)} and {json.dumps(encode_name(self.first[number]))} would be one name"
            )
        if number < 0:
            if self.fixed:
                raise FormatError(f"{self.path}: {place}: {shorten(repr(name))} is not among the {self.what}")
            number = self.index[name] = len(self.index)
            self.first[number] = name
        return number

    def alike(self, name: Name, number: int) -> bool:
        """Python takes true for 1 and false for 0, in tuples too; whoever writes both means two names."""
        return bool(truth_values(name) == truth_values(self.first[number]))

    def sequence(self) -> range | tuple[Name, ...]:
        return tuple(self.index) if self.span < 0 else range(self.span)


class _Document:
    """The rows of a document on their way to the arrays of a model."""

    def __init__(self, document: Any, path: str, n_rows: int | None = None) -> None:
        _check_members(document, path)
        self.document, self.path = document, path
        self.states = _Names(document.get("states"), path, "states")
        self.actions = _Names(document.get("actions"), path, "actions")
        # Every state has an outcome or is a goal, so a larger number is a wrong one; memory must not follow it.
        if self.states.span > (len(document["outcomes"]) if n_rows is None else n_rows) + len(document["goals"]):
            raise FormatError(f"{path}: states says {self.states.span}, more than there are outcomes and goals")
        self.exact: dict[Any, float] = {}

    def model(self, columns: Columns) -> SSP:
        """The model of these rows. They come before the goals and the start, so that names count in order of appearance as in `SSP.from_outcomes`."""
        document, path = self.document, self.path
        state, action, target, probability, cost = columns
        goals = [self.states.number(goal, f"goals[{number}]") for number, goal in enumerate(document["goals"])]
        # A start that no outcome names is a state of its own, which has no choices: the model will say so.
        start = self.states.number(document["start"], "start")
        is_goal = np.zeros(len(self.states), dtype=np.bool_)
        is_goal[goals] = True
        of_goal = is_goal[state]
        for number in np.flatnonzero(of_goal & ((target != state) | (cost != 0)))[:1].tolist():
            raise FormatError(f"{path}: outcomes[{number}]: a goal must be absorbing and free")
        for number in np.flatnonzero(of_goal & ~((probability >= 0) & (probability <= 1)))[:1].tolist():
            raise FormatError(f"{path}: outcomes[{number}]: the probability {probability[number]:g} of a goal's loop lies outside [0, 1]")
        if of_goal.any():
            state, action, target, probability, cost = (column[~of_goal] for column in columns)
        return SSP(
            **arrays_from_rows(state, action, target, probability, cost, len(is_goal), merge=False),
            is_goal=is_goal,
            start_index=start,
            states=self.states.sequence(),
            actions=self.actions.sequence(),
            exact_unit=self._unit(),
            geometry=decode_geometry(document.get("geometry"), len(is_goal), f"{path}: geometry"),
            notes=decode_notes(document.get("notes", []), f"{path}: notes"),
        )

    def columns(self) -> Columns:
        """The rows as they stand in the document."""
        rows = []
        for number, row in enumerate(self.document["outcomes"]):
            place = f"outcomes[{number}]"
            if type(row) is not list or len(row) != 5:
                raise FormatError(f"{self.path}: {place} is {shorten(repr(row))}; expected [state, action, next state, probability, cost]")
            source, action, target = (
                self.states.number(row[0], place),
                self.actions.number(row[1], place),
                self.states.number(row[2], place),
            )
            rows.append((source, action, target, self._number(row[3], f"{place}: probability"), self._cost(row[4], place)))
        kinds = (np.int64, np.int64, np.int64, np.float64, np.float64)
        return tuple(np.array(column, dtype=kind) for column, kind in zip(zip(*rows) if rows else [()] * 5, kinds))

    def scanned_columns(self, book: Book, texts: NDArray[Any]) -> Columns:
        """The same from the texts of the rows, by column. What is refused is read again, so places do not matter."""

        def numbered(items: NDArray[Any], understand: Callable[[Any, str], Any], kind: Any) -> NDArray[Any]:
            first, rank = book.distinct(items)
            values = (understand(value, "") for words in book.batches(first) for value in load_json(f"[{','.join(words)}]", self.path))
            return np.asarray(np.fromiter(values, kind, len(first))[rank[items]])

        states = numbered(texts[[0, 2]].T.ravel(), self.states.number, np.int32)
        columns = ((texts[1], self.actions.number, np.int32), (texts[3], self._number, np.float64), (texts[4], self._cost, np.float64))
        action, probability, cost = (numbered(*column) for column in columns)
        return states[::2], action, states[1::2], probability, cost

    def _cost(self, value: Any, place: str) -> float:
        if type(value) not in (float, int, str):
            raise FormatError(f"{self.path}: {place}: cost {shorten(repr(value))} is no number")
        if value not in self.exact:
            self.exact[value] = self._number(value, f"{place}: cost")
        return self.exact[value]

    def _number(self, value: Any, place: str) -> float:
        if type(value) is float:
            return value
        if type(value) is str:
            return parse_number(value, f"{self.path}: {place}")
        if type(value) is int:
            try:
                return float(value)
            except OverflowError:
                pass
        raise FormatError(f"{self.path}: {place} {shorten(repr(value))} is no number")

    def _unit(self) -> Fraction | None:
        if self.document.get("cost_unit") is None and any(type(value) is str for value in self.exact):
            return common_unit(Fraction(value) if type(value) is str else value for value in self.exact)
        return decode_unit(self.document.get("cost_unit"), f"{self.path}: cost_unit")


def write(ssp: SSP, path: str, progress: Progress | None = None) -> None:
    """Write a model as our JSON, one outcome per line."""
    # Half a surrogate pair is no UTF-8, but its backslash escape is JSON.
    write_bytes(path, _pieces(ssp, progress))


def _pieces(ssp: SSP, progress: Progress | None) -> Iterator[bytes]:
    """The text, some states at a time."""
    head: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "start": encode_name(ssp.start),
        "goals": [encode_name(goal) for goal in ssp.goals],
        "states": encode_names(ssp.states),
        "actions": encode_names(ssp.actions),
        "cost_unit": encode_unit(ssp.exact_unit),
        "geometry": encode_geometry(ssp.geometry),
        "notes": list(ssp.notes) or None,
    }
    members = [f"{_text(key)}: {_text(value)}" for key, value in head.items() if value is not None]
    yield encoded("{\n  " + ",\n  ".join(members) + ',\n  "outcomes": [\n')
    source, target = (named(f"{before}{text}, " for text in json_texts(ssp.states)) for before in (",\n    [", ""))
    for block in blocks(ssp, progress):
        choice = cut(ssp.outcome_choice, block.outcomes)
        rows = joined(
            source[ssp.choice_state[choice]],
            spelled(ssp.choice_action[choice], lambda action: f"{_text(encode_name(ssp.actions[action]))}, "),
            target[cut(ssp.outcome_target, block.outcomes)],
            spelled(cut(ssp.outcome_probability, block.outcomes), lambda value: f"{value!r}, "),
            spelled(cut(ssp.outcome_cost, block.outcomes), lambda value: f"{value!r}]"),
        )
        yield rows if block.outcomes.start else rows.removeprefix(b",\n")
    yield b"\n  ]\n}\n"


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
