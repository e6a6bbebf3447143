"""Our own `.json`: a model for people to read, write by hand and keep under version control.
Lossless.

    {
      "format": "tailpath model", "version": 1,
      "start": "home", "goals": ["work"],
      "outcomes": [
        ["home", "walk", "work", 1.0, 30.0],
        ["home", "drive", "work", 0.9, 10.0],
        ["home", "drive", "home", 0.1, 5.0]
      ]
    }

A row is state, action, next state, probability, cost; a probability or cost may be written as a
string `"1/3"`. With `[low, high]` for some probability the model is one with intervals; a third
number is the frequency counted, and the member `confidence` how sure it is that all intervals hold.
Optional members: `states` and `actions` fix the order of the names (a number n stands for 0 .. n -
1; else names count in order of appearance), `cost_unit` is the exact unit `"p/q"`, `geometry`
places the states on a grid for drawing, `notes` are remarks. `names.py` says which names there are.

For models of a million outcomes there is `.npz`; whoever reads them from JSON is told so.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np

from tailpath.errors import FormatError, TailpathWarning
from tailpath.formats.arrays import Array
from tailpath.formats.files import (
    load_json,
    parse_number,
    read_bytes,
    shorten,
    text_bytes,
    write_bytes,
)
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
from tailpath.formats.writing import (
    Block,
    Texts,
    blocks,
    encoded,
    entries_of,
    joined_columns,
    spelled,
    text_column,
)
from tailpath.model.builders import arrays_from_rows
from tailpath.model.cost_units import common_unit
from tailpath.model.interval import IntervalSSP
from tailpath.model.ssp import SSP, Name
from tailpath.options import Progress

FORMAT = "tailpath model"
VERSION = 1
#: From this many bytes on somebody should say that there are other formats.
LARGE = 20_000_000
#: The rows that are read between two reports of progress.
_BLOCK = 2**14
_MEMBERS = (
    "format",
    "version",
    "start",
    "goals",
    "states",
    "actions",
    "cost_unit",
    "geometry",
    "notes",
    "confidence",
    "outcomes",
)


#: State, action, target, probability and cost of every row.
Columns = tuple[Array, ...]


def read(path: str, reading: Reading) -> Any:
    """Read a model from our JSON."""
    data = text_bytes(path, read_bytes(path))
    if len(data) >= LARGE:
        what = f"{len(data) / 1e6:.0f} MB of JSON take a while to read"
        message = f"{path}: {what}; .npz and .umb are made for size"
        warnings.warn(message, TailpathWarning, stacklevel=2)
    size, text = len(data), data.decode()
    del data
    try:
        document = _Document(load_json(text, path), path)
        del text
        return document.model(document.columns(size, reading.progress))
    except RecursionError:
        raise FormatError(f"{path}: nested too deeply") from None


def _check_members(document: Any, path: str) -> None:
    check_header(document, path, FORMAT, VERSION)
    for key in document:
        if key not in _MEMBERS:
            raise FormatError(
                f"{path}: unknown member {shorten(repr(key))}; known are {', '.join(_MEMBERS)}"
            )
    for key in ("start", "goals", "outcomes"):
        if key not in document:
            raise FormatError(f"{path}: the member {key!r} is missing")
    for key in ("goals", "outcomes"):
        if not isinstance(document[key], list):
            raise FormatError(f"{path}: {key} must be a list")


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

    def number(self, value: Any) -> int:
        """The number of a name, which is entered if it is new and may be."""
        if self.span >= 0 and type(value) is int and 0 <= value < self.span:
            return value
        name = decode_name(value, "") if isinstance(value, (list, dict)) else value
        number = self.index.get(name, -1)
        if (
            number >= 0
            and (type(name) in (bool, tuple) or name == 0 or name == 1)
            and not self.alike(name, number)
        ):
            raise FormatError(
                f": {json.dumps(value)} and {json.dumps(encode_name(self.first[number]))} would be"
                " one name"
            )
        if number < 0:
            if self.fixed:
                raise FormatError(f": {shorten(repr(name))} is not among the {self.what}")
            number = self.index[name] = len(self.index)
            self.first[number] = name
        return number

    def alike(self, name: Name, number: int) -> bool:
        """Python takes true for 1 and false for 0, in tuples too; whoever writes both means two
        names.
        """
        return bool(truth_values(name) == truth_values(self.first[number]))

    def sequence(self) -> range | tuple[Name, ...]:
        return tuple(self.index) if self.span < 0 else range(self.span)


class _Document:
    """The rows of a document on their way to the arrays of a model. What is wrong with a value is
    said without its path, which is put before it."""

    def __init__(self, document: Any, path: str) -> None:
        _check_members(document, path)
        self.document, self.path = document, path
        self.states = _Names(document.get("states"), path, "states")
        self.actions = _Names(document.get("actions"), path, "actions")
        # Every state has an outcome or is a goal, so a larger number is a wrong one; memory must
        # not follow it.
        if self.states.span > len(document["outcomes"]) + len(document["goals"]):
            raise FormatError(
                f"{path}: states says {self.states.span}, more than there are outcomes and goals"
            )
        self.exact: dict[Any, float] = {}
        self.ends: dict[int, tuple[float, float, float]] = {}

    def model(self, columns: Columns) -> Any:
        """The model of these rows. They come before the goals and the start, so that names count in
        order of appearance as in `SSP.from_outcomes`.
        """
        document, path = self.document, self.path
        state, action, target, probability, cost = columns
        goals = [
            self._state(goal, f"goals[{number}]") for number, goal in enumerate(document["goals"])
        ]
        # A start that no outcome names is a state of its own, which has no choices: the model will
        # say so.
        start = self._state(document["start"], "start")
        is_goal = np.zeros(len(self.states), dtype=np.bool_)
        is_goal[goals] = True
        of_goal = is_goal[state]
        for number in np.flatnonzero(of_goal & ((target != state) | (cost != 0)))[:1].tolist():
            raise FormatError(f"{path}: outcomes[{number}]: a goal must be absorbing and free")
        for number in np.flatnonzero(of_goal & ~((probability >= 0) & (probability <= 1)))[
            :1
        ].tolist():
            raise FormatError(
                f"{path}: outcomes[{number}]: the probability {probability[number]:g} of a goal's"
                " loop lies outside [0, 1]"
            )
        number = np.flatnonzero(~of_goal)
        if of_goal.any():
            state, action, target, probability, cost = (column[~of_goal] for column in columns)
        if self.ends:  # their numbers stand for the probabilities, and show where each went
            probability = number + 1.0
        fields = {
            **arrays_from_rows(state, action, target, probability, cost, len(is_goal), merge=False),
            "is_goal": is_goal,
            "start_index": start,
            "states": self.states.sequence(),
            "actions": self.actions.sequence(),
            "exact_unit": self._unit(),
            "geometry": decode_geometry(
                document.get("geometry"), len(is_goal), f"{path}: geometry"
            ),
            "notes": decode_notes(document.get("notes", []), f"{path}: notes"),
        }
        if self.ends:
            return self._intervals(fields, columns[3])
        if document.get("confidence") is not None:
            raise FormatError(f"{path}: confidence is said of intervals, and there are none")
        return SSP(**fields)

    def _intervals(self, fields: dict[str, Any], probability: Array) -> IntervalSSP:
        """The model with intervals: those of rows that have one, and points for all others."""
        position = np.rint(fields["outcome_probability"]).astype(np.int64) - 1
        low, high, seen = (probability.copy() for _ in range(3))
        for number, ends in self.ends.items():
            low[number], high[number], seen[number] = ends
        confidence = self.document.get("confidence")
        if confidence is not None and not (isinstance(confidence, float) and 0 < confidence < 1):
            raise FormatError(f"{self.path}: confidence must be a number in (0, 1)")
        counted = not np.isnan(seen).any()
        more = {"estimate": seen[position] if counted else None, "confidence": confidence}
        return IntervalSSP.from_fields(fields, low[position], high[position], **more)

    def columns(self, size: int, progress: Progress | None) -> Columns:
        """The rows as they stand in the document, whose text has that size."""
        rows = self.document["outcomes"]
        blocks = []
        for first in range(0, max(len(rows), 1), _BLOCK):
            blocks.append(self._block(rows, first))
            if progress is not None and rows:
                share = min(first + _BLOCK, len(rows)) / len(rows)
                progress(round(share * size), share)
        return tuple(np.concatenate(column) for column in zip(*blocks))

    def _block(self, rows: list[Any], first: int) -> Columns:
        found = []
        for number, row in enumerate(rows[first : first + _BLOCK], start=first):
            try:
                found.append(self._row(row, number))
            except FormatError as error:
                raise FormatError(f"{self.path}: outcomes[{number}]{error}") from None
        kinds = (np.int32, np.int32, np.int32, np.float64, np.float64)
        return tuple(
            np.array(column, dtype=kind)
            for column, kind in zip(zip(*found) if found else [()] * 5, kinds)
        )

    def _row(self, row: Any, number: int) -> tuple[int, int, int, float, float]:
        if type(row) is not list or len(row) != 5:
            raise FormatError(
                f" is {shorten(repr(row))}; expected [state, action, next state, probability, cost]"
            )
        source, action = self.states.number(row[0]), self.actions.number(row[1])
        if type(row[3]) is list:
            self._interval(row[3], number)
        target, probability = (
            self.states.number(row[2]),
            1.0 if type(row[3]) is list else self._number(row[3], "probability"),
        )
        return source, action, target, probability, self._cost(row[4])

    def _interval(self, value: list[Any], number: int) -> None:
        ends = [self._number(end, "probability") for end in value]
        if len(ends) not in (2, 3):
            raise FormatError(
                f": probability {shorten(repr(value))} is neither a number nor [low, high] nor"
                " [low, high, frequency]"
            )
        self.ends[number] = ends[0], ends[1], ends[2] if len(ends) == 3 else np.nan

    def _state(self, value: Any, position: str) -> int:
        try:
            return self.states.number(value)
        except FormatError as error:
            raise FormatError(f"{self.path}: {position}{error}") from None

    def _cost(self, value: Any) -> float:
        if type(value) not in (float, int, str):
            raise FormatError(f": cost {shorten(repr(value))} is not a number")
        if value not in self.exact:
            self.exact[value] = self._number(value, "cost")
        return self.exact[value]

    def _number(self, value: Any, what: str) -> float:
        if type(value) is float:
            return value
        if type(value) is str:
            return parse_number(value, f": {what}")
        if type(value) is int:
            try:
                return float(value)
            except OverflowError:
                pass
        raise FormatError(f": {what} {shorten(repr(value))} is not a number")

    def _unit(self) -> Fraction | None:
        if self.document.get("cost_unit") is None and any(
            type(value) is str for value in self.exact
        ):
            return common_unit(self.exact)
        return decode_unit(self.document.get("cost_unit"), f"{self.path}: cost_unit")


def write(ssp: SSP | IntervalSSP, path: str, progress: Progress | None = None) -> None:
    """Write a model as our JSON, one outcome per line."""
    # Half a surrogate pair is no UTF-8, but its backslash escape is JSON.
    write_bytes(path, _pieces(ssp, progress))


def _pieces(model: SSP | IntervalSSP, progress: Progress | None) -> Iterator[bytes]:
    """The text, some states at a time."""
    ssp = model.inside if isinstance(model, IntervalSSP) else model
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
        "confidence": model.confidence if isinstance(model, IntervalSSP) else None,
    }
    members = [
        f"{_text(key)}: {_text(value)}"
        for key, value in head.items()
        if value is not None or key == "start"
    ]
    yield encoded("{\n  " + ",\n  ".join(members) + ',\n  "outcomes": [\n')
    source, target = (
        text_column(f"{before}{text}, " for text in json_texts(ssp.states))
        for before in (",\n    [", "")
    )
    for block in blocks(ssp, progress):
        choice = entries_of(ssp.outcome_choice, block.outcomes)
        rows = joined_columns(
            source[ssp.choice_state[choice]],
            spelled(
                ssp.choice_action[choice],
                lambda action: f"{_text(encode_name(ssp.actions[action]))}, ",
            ),
            target[entries_of(ssp.outcome_target, block.outcomes)],
            *_chances(model, block),
            spelled(entries_of(ssp.outcome_cost, block.outcomes), lambda value: f"{value!r}]"),
        )
        yield rows if block.outcomes.start else rows.removeprefix(b",\n")
    yield b"\n  ]\n}\n"


def _chances(model: SSP | IntervalSSP, block: Block) -> list[Texts]:
    """The columns of the probabilities."""
    if not isinstance(model, IntervalSSP):
        return [
            spelled(
                entries_of(model.outcome_probability, block.outcomes), lambda value: f"{value!r}, "
            )
        ]
    ends = [
        spelled(entries_of(model.low, block.outcomes), lambda value: f"[{value!r}, "),
        spelled(entries_of(model.high, block.outcomes), lambda value: f"{value!r}"),
    ]
    if model.estimate is not None:
        ends.append(
            spelled(entries_of(model.estimate, block.outcomes), lambda value: f", {value!r}")
        )
    return [*ends, text_column(["], "])[np.zeros(len(block.outcomes), dtype=np.int64)]]


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
