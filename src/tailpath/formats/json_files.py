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
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np

from tailpath.cost_units import common_unit
from tailpath.errors import FormatError
from tailpath.formats.files import load_json, parse_number, read_text, shorten, write_bytes
from tailpath.formats.names import (
    decode_geometry,
    decode_name,
    decode_notes,
    decode_unit,
    encode_geometry,
    encode_name,
    encode_names,
    encode_unit,
)
from tailpath.layouts import offsets_of
from tailpath.model import SSP, Name

FORMAT = "tailpath model"
VERSION = 1
_MEMBERS = ("format", "version", "start", "goals", "states", "actions", "cost_unit", "geometry", "notes", "outcomes")


def read(path: str) -> SSP:
    """Read a model from our JSON."""
    document = load_json(read_text(path), path)
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
    try:
        return _Rows(document, path).model()
    except RecursionError:
        raise FormatError(f"{path}: nested too deeply") from None


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
    """A growing or a fixed list of names, and their numbers."""

    def __init__(self, value: Any, where: str, what: str, spare: int) -> None:
        self.where, self.what = where, what
        self.fixed = value is not None
        self.span: int | None = None
        names: list[Name] = []
        if type(value) is int:
            # Every state or action but an unreached goal takes a row of its own, so a larger number is a wrong one.
            if not 0 <= value <= spare:
                raise FormatError(f"{where}: {what} says {value}, but the outcomes cannot hold that many")
            self.span = value
            names = list(range(value))
        elif isinstance(value, list):
            names = [decode_name(entry, f"{where}: {what}[{index}]") for index, entry in enumerate(value)]
        elif value is not None:
            raise FormatError(f"{where}: {what} must be a list of names or their number")
        self.index: dict[Name, int] = {name: number for number, name in enumerate(names)}
        if len(self.index) < len(names):
            repeated = next(name for number, name in enumerate(names) if self.index[name] != number)
            raise FormatError(f"{where}: {what} has {repeated!r} twice")

    def number(self, value: Any, place: str) -> int:
        name = decode_name(value, f"{self.where}: {place}")
        if name not in self.index:
            if self.fixed:
                raise FormatError(f"{self.where}: {place}: {name!r} is not among the {self.what}")
            self.index[name] = len(self.index)
        return self.index[name]

    def sequence(self) -> range | tuple[Name, ...]:
        return tuple(self.index) if self.span is None else range(self.span)


class _Rows:
    """The rows of a document on their way to the arrays of a model."""

    def __init__(self, document: dict[str, Any], path: str) -> None:
        self.document, self.path = document, path
        spare = len(document["outcomes"]) + len(document["goals"])
        self.states = _Names(document.get("states"), path, "states", 2 * spare)
        self.actions = _Names(document.get("actions"), path, "actions", spare)
        self.exact: dict[Any, float] = {}

    def model(self) -> SSP:
        document, path = self.document, self.path
        # Numbered before the goals and the start, so that names count in order of appearance as in `SSP.from_outcomes`.
        rows = list(self._rows())
        goals = [self.states.number(goal, f"goals[{number}]") for number, goal in enumerate(document["goals"])]
        start = self._start()
        is_goal = np.zeros(len(self.states.index), dtype=np.bool_)
        is_goal[goals] = True
        choices: dict[tuple[int, int], int] = {}
        for number, (state, action, target, _, cost) in enumerate(rows):
            if is_goal[state]:
                if target != state or cost != 0:
                    raise FormatError(f"{path}: outcomes[{number}]: a goal must be absorbing and free")
            else:
                choices.setdefault((state, action), len(choices))
        keep = [row for row in rows if not is_goal[row[0]] and row[3] != 0]
        pairs = np.array(list(choices), dtype=np.int64).reshape(len(choices), 2)
        order = np.argsort(pairs[:, 0], kind="stable")
        rank = np.empty(len(choices), dtype=np.int64)
        rank[order] = np.arange(len(choices))
        choice = rank[np.fromiter((choices[row[0], row[1]] for row in keep), np.int64, len(keep))]
        by_choice = np.argsort(choice, kind="stable")
        costs = np.fromiter((row[4] for row in keep), np.float64, len(keep))[by_choice]
        return SSP(
            state_choices=offsets_of(pairs[order, 0], len(is_goal)),
            choice_outcomes=offsets_of(choice, len(choices)),
            outcome_target=np.fromiter((row[2] for row in keep), np.int32, len(keep))[by_choice],
            outcome_probability=np.fromiter((row[3] for row in keep), np.float64, len(keep))[by_choice],
            outcome_cost=costs,
            choice_action=pairs[order, 1].astype(np.int32),
            is_goal=is_goal,
            start_index=start,
            states=self.states.sequence(),
            actions=self.actions.sequence(),
            exact_unit=self._unit(costs),
            geometry=decode_geometry(document.get("geometry"), len(is_goal), f"{path}: geometry"),
            notes=decode_notes(document.get("notes", []), f"{path}: notes"),
        )

    def _rows(self) -> Iterator[tuple[int, int, int, float, float]]:
        for number, row in enumerate(self.document["outcomes"]):
            place = f"outcomes[{number}]"
            if type(row) is not list or len(row) != 5:
                raise FormatError(f"{self.path}: {place} is {shorten(repr(row))}; expected [state, action, next state, probability, cost]")
            probability = self._number(row[3], f"{place}: probability")
            yield (
                self.states.number(row[0], place),
                self.actions.number(row[1], place),
                self.states.number(row[2], place),
                probability,
                self._cost(row[4], place),
            )

    def _start(self) -> int:
        name = decode_name(self.document["start"], f"{self.path}: start")
        if name not in self.states.index:
            raise FormatError(f"{self.path}: the start {name!r} is not a state of the model")
        return self.states.index[name]

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

    def _unit(self, cost: Any) -> Fraction | None:
        if self.document.get("cost_unit") is None and any(type(value) is str for value in self.exact):
            return common_unit(Fraction(value) if type(value) is str else value for value in self.exact)
        return decode_unit(self.document.get("cost_unit"), cost, f"{self.path}: cost_unit")


def write(ssp: SSP, path: str) -> None:
    """Write a model as our JSON, one outcome per line."""
    states, actions = encode_names(ssp.states), encode_names(ssp.actions)
    state_text = [_text(encode_name(name)) for name in ssp.states]
    action_text = [_text(encode_name(name)) for name in ssp.actions]
    head: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "start": encode_name(ssp.start),
        "goals": [encode_name(goal) for goal in ssp.goals],
        "states": states,
        "actions": actions,
        "cost_unit": encode_unit(ssp.exact_unit),
        "geometry": encode_geometry(ssp.geometry),
        "notes": list(ssp.notes) or None,
    }
    members = [f"{_text(key)}: {_text(value)}" for key, value in head.items() if value is not None]
    rows = ",\n".join(
        f"    [{state_text[s]}, {action_text[a]}, {state_text[t]}, {p!r}, {c!r}]"
        for s, a, t, p, c in zip(
            ssp.choice_state[ssp.outcome_choice].tolist(),
            ssp.choice_action[ssp.outcome_choice].tolist(),
            ssp.outcome_target.tolist(),
            ssp.outcome_probability.tolist(),
            ssp.outcome_cost.tolist(),
        )
    )
    text = "{\n  " + ",\n  ".join(members) + ',\n  "outcomes": [\n' + rows + "\n  ]\n}\n"
    # Half a surrogate pair is no UTF-8, but its backslash escape is JSON.
    write_bytes(path, text.encode("utf-8", "backslashreplace"))


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
