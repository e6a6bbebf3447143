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
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import repeat
from typing import Any, TypeVar

import numpy as np

from tailpath.errors import FormatError, TailpathWarning
from tailpath.formats.files import (
    load_json,
    parse_number,
    read_bytes,
    shorten,
    text_bytes,
    write_bytes,
)
from tailpath.formats.names import (
    NameIndex,
    check_header,
    decode_confidence,
    decode_members,
    decode_name,
    decode_names,
    encode_members,
    encode_name,
    json_texts,
    refuse_unknown,
)
from tailpath.formats.reading import Reading
from tailpath.formats.writing import blocks, encoded, joined_columns, text_column
from tailpath.graph import Array, BoolArray, FloatArray, first_of
from tailpath.model.builders import arrays_from_rows
from tailpath.model.cost_units import common_unit
from tailpath.model.interval import IntervalSSP, underlying_ssp
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
T = TypeVar("T")
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
    document = _Document(load_json(text, path), path)
    del text
    return document.model(document.columns(size, reading.progress))


def _check_members(document: Any, path: str) -> None:
    check_header(document, path, FORMAT, VERSION)
    refuse_unknown(document, _MEMBERS, f"{path}: ")
    for key in ("start", "goals", "outcomes"):
        if key not in document:
            raise FormatError(f"{path}: the member {key!r} is missing")
    for key in ("goals", "outcomes"):
        if not isinstance(document[key], list):
            raise FormatError(f"{path}: {key} must be a list")


class _DeclaredNames:
    """A growing list of names, a fixed one, or the numbers 0 .. span - 1."""

    def __init__(self, value: Any, path: str, what: str) -> None:
        self.what, self.fixed = what, value is not None
        self.span = -1
        names: Sequence[Name] = ()
        if type(value) is int and 0 <= value < 2**31:
            self.span = value
        elif isinstance(value, list):
            names = decode_names(value, len(value), f"{path}: {what}")
        elif value is not None:
            raise FormatError(f"{path}: {what} must be a list of names or their number")
        self.names = NameIndex()
        self.names.names.extend(names)
        self.names.index.update((name, number) for number, name in enumerate(names))

    def __len__(self) -> int:
        return len(self.names.names) if self.span < 0 else self.span

    def number(self, value: Any) -> int:
        """The number of a name, which is entered if it is new and may be."""
        if self.span >= 0 and type(value) is int and 0 <= value < self.span:
            return value
        name = decode_name(value, "") if isinstance(value, (list, dict)) else value
        if self.fixed and name not in self.names.index:
            raise FormatError(f": {shorten(repr(name))} is not among the {self.what}")
        return self.names.enter(name)

    def sequence(self) -> range | tuple[Name, ...]:
        return tuple(self.names.names) if self.span < 0 else range(self.span)


class _Document:
    """The rows of a document on their way to the arrays of a model. What is wrong with a value is
    said without its path, which is put before it."""

    def __init__(self, document: Any, path: str) -> None:
        _check_members(document, path)
        self.document, self.path = document, path
        self.states = _DeclaredNames(document.get("states"), path, "states")
        self.actions = _DeclaredNames(document.get("actions"), path, "actions")
        # Every state has an outcome or is a goal, so a larger number is a wrong one; memory must
        # not follow it.
        if self.states.span > len(document["outcomes"]) + len(document["goals"]):
            raise FormatError(
                f"{path}: states says {self.states.span}, more than there are outcomes and goals"
            )
        self.exact: dict[Any, float] = {}
        self.intervals: dict[int, tuple[float, float, float]] = {}

    def columns(self, size: int, progress: Progress | None) -> Columns:
        """The rows as they stand in the document, whose text has that size."""
        rows = self.document["outcomes"]
        blocks = []
        for first in range(0, max(len(rows), 1), _BLOCK):
            some = enumerate(rows[first : first + _BLOCK], start=first)
            found = [
                self._at(f"outcomes[{number}]", self._row, row, number) for number, row in some
            ]
            kinds = (np.int32, np.int32, np.int32, np.float64, np.float64)
            columns = zip(*found) if found else repeat(())
            blocks.append([np.array(column, kind) for column, kind in zip(columns, kinds)])
            if progress is not None and rows:
                share = min(first + _BLOCK, len(rows)) / len(rows)
                progress(round(share * size), share)
        return tuple(np.concatenate(column) for column in zip(*blocks))

    def model(self, columns: Columns) -> Any:
        """The model of these rows. They come before the goals and the start, so that names count in
        order of appearance as in `SSP.from_outcomes`.
        """
        document, path = self.document, self.path
        goals = [
            self._at(f"goals[{number}]", self.states.number, goal)
            for number, goal in enumerate(document["goals"])
        ]
        # A start that no outcome names is a state of its own, which has no choices: the model will
        # say so.
        start = self._at("start", self.states.number, document["start"])
        is_goal = np.zeros(len(self.states), dtype=np.bool_)
        is_goal[goals] = True
        of_goal = is_goal[columns[0]]
        self._check_goal_rows(columns, of_goal)
        state, action, target, probability, cost = (column[~of_goal] for column in columns)
        if self.intervals:
            probability = self._with_ends(columns[3])[~of_goal]
        fields = {
            **arrays_from_rows(state, action, target, probability, cost, len(is_goal), merge=False),
            "is_goal": is_goal,
            "start_index": start,
            "states": self.states.sequence(),
            "actions": self.actions.sequence(),
            **decode_members(document, len(is_goal), f"{path}: "),
        }
        if document.get("cost_unit") is None and any(type(value) is str for value in self.exact):
            fields["exact_unit"] = common_unit(self.exact)
        if self.intervals:
            low, high, frequency = fields["outcome_probability"].T
            estimate = None if np.isnan(frequency).any() else frequency
            said = decode_confidence(document.get("confidence"), f"{path}: confidence")
            return IntervalSSP.from_fields(fields, low, high, estimate=estimate, confidence=said)
        if document.get("confidence") is not None:
            raise FormatError(f"{path}: confidence is said of intervals, and there are none")
        return SSP(**fields)

    def _check_goal_rows(self, columns: Columns, of_goal: BoolArray) -> None:
        """A goal may have rows, which lead to itself at no cost."""
        state, _, target, probability, cost = columns
        for number in first_of(of_goal & ((target != state) | (cost != 0))):
            raise FormatError(f"{self.path}: outcomes[{number}]: a goal must be absorbing and free")
        for number in first_of(of_goal & ~((probability >= 0) & (probability <= 1))):
            raise FormatError(
                f"{self.path}: outcomes[{number}]: the probability {probability[number]:g} of a"
                " goal's loop lies outside [0, 1]"
            )

    def _with_ends(self, probability: FloatArray) -> FloatArray:
        """The low and the high end and the frequency of every row, (n, 3): those of its interval,
        or three times its probability.
        """
        ends = np.repeat(probability[:, None], 3, axis=1)
        ends[list(self.intervals)] = list(self.intervals.values())
        return ends

    def _at(self, position: str, read: Callable[..., T], *value: Any) -> T:
        """What is read from a value, whose position a refusal names."""
        try:
            return read(*value)
        except FormatError as error:
            raise FormatError(f"{self.path}: {position}{error}") from None

    def _row(self, row: Any, number: int) -> tuple[int, int, int, float, float]:
        if type(row) is not list or len(row) != 5:
            raise FormatError(
                f" is {shorten(repr(row))}; expected [state, action, next state, probability, cost]"
            )
        source, action, target = map(
            _DeclaredNames.number, (self.states, self.actions, self.states), row[:3]
        )
        probability = 1.0
        if type(row[3]) is list:
            self._interval(row[3], number)
        else:
            probability = self._number(row[3], "probability")
        return source, action, target, probability, self._cost(row[4])

    def _interval(self, value: list[Any], number: int) -> None:
        ends = [self._number(end, "probability") for end in value]
        if len(ends) not in (2, 3):
            raise FormatError(
                f": probability {shorten(repr(value))} is neither a number nor [low, high] nor"
                " [low, high, frequency]"
            )
        self.intervals[number] = ends[0], ends[1], ends[2] if len(ends) == 3 else np.nan

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
            with suppress(OverflowError):
                return float(value)
        raise FormatError(f": {what} {shorten(repr(value))} is not a number")


def write(ssp: SSP | IntervalSSP, path: str, progress: Progress | None = None) -> None:
    """Write a model as our JSON, one outcome per line."""
    # Half a surrogate pair is no UTF-8, but its backslash escape is JSON.
    write_bytes(path, _pieces(ssp, progress))


def _pieces(model: SSP | IntervalSSP, progress: Progress | None) -> Iterator[bytes]:
    """The text, some states at a time."""
    ssp = underlying_ssp(model)
    head: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "start": encode_name(ssp.start),
        "goals": [encode_name(goal) for goal in ssp.goals],
        **encode_members(ssp),
        "confidence": getattr(model, "confidence", None),
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
    for block in blocks(model, progress):
        rows = joined_columns(
            block.sources(source),
            block.actions(lambda action: f"{_text(encode_name(ssp.actions[action]))}, "),
            block.targets(target),
            *block.probabilities("", ", ", ", ", estimates=True),
            block.costs("{!r}]".format),
        )
        yield rows if block.outcomes.start else rows.removeprefix(b",\n")
    yield b"\n  ]\n}\n"


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
