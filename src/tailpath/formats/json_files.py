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
from fractions import Fraction
from typing import Any

import numpy as np

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
    truth_values,
)
from tailpath.model.builders import arrays_from_rows
from tailpath.model.cost_units import common_unit
from tailpath.model.ssp import SSP, Name

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
        return _Document(document, path).model()
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
    """A growing list of names, a fixed one, or the numbers 0 .. span - 1."""

    def __init__(self, value: Any, path: str, what: str) -> None:
        self.path, self.what = path, what
        self.fixed = value is not None
        self.span = -1
        names: list[Name] = []
        if type(value) is int and 0 <= value < 2**31:
            self.span = value
        elif isinstance(value, list):
            names = [decode_name(entry, f"{path}: {what}[{index}]") for index, entry in enumerate(value)]
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

    def __init__(self, document: dict[str, Any], path: str) -> None:
        self.document, self.path = document, path
        self.states = _Names(document.get("states"), path, "states")
        self.actions = _Names(document.get("actions"), path, "actions")
        # Every state has an outcome or is a goal, so a larger number is a wrong one; memory must not follow it.
        if self.states.span > len(document["outcomes"]) + len(document["goals"]):
            raise FormatError(f"{path}: states says {self.states.span}, more than there are outcomes and goals")
        self.exact: dict[Any, float] = {}
        self.state: list[int] = []
        self.action: list[int] = []
        self.target: list[int] = []
        self.probability: list[float] = []
        self.cost: list[float] = []

    def model(self) -> SSP:
        document, path = self.document, self.path
        # The rows come before the goals and the start, so that names count in order of appearance as in `SSP.from_outcomes`.
        self._read_rows()
        goals = [self.states.number(goal, f"goals[{number}]") for number, goal in enumerate(document["goals"])]
        # A start that no outcome names is a state of its own, which has no choices: the model will say so.
        start = self.states.number(document["start"], "start")
        is_goal = np.zeros(len(self.states), dtype=np.bool_)
        is_goal[goals] = True
        state, action, target = (np.array(column, dtype=np.int64) for column in (self.state, self.action, self.target))
        probability, cost = np.array(self.probability, dtype=np.float64), np.array(self.cost, dtype=np.float64)
        of_goal = is_goal[state]
        for number in np.flatnonzero(of_goal & ((target != state) | (cost != 0)))[:1].tolist():
            raise FormatError(f"{path}: outcomes[{number}]: a goal must be absorbing and free")
        for number in np.flatnonzero(of_goal & ~((probability >= 0) & (probability <= 1)))[:1].tolist():
            raise FormatError(f"{path}: outcomes[{number}]: the probability {probability[number]:g} of a goal's loop lies outside [0, 1]")
        keep = ~of_goal
        return SSP(
            **arrays_from_rows(state[keep], action[keep], target[keep], probability[keep], cost[keep], len(is_goal), merge=False),
            is_goal=is_goal,
            start_index=start,
            states=self.states.sequence(),
            actions=self.actions.sequence(),
            exact_unit=self._unit(),
            geometry=decode_geometry(document.get("geometry"), len(is_goal), f"{path}: geometry"),
            notes=decode_notes(document.get("notes", []), f"{path}: notes"),
        )

    def _read_rows(self) -> None:
        for number, row in enumerate(self.document["outcomes"]):
            place = f"outcomes[{number}]"
            if type(row) is not list or len(row) != 5:
                raise FormatError(f"{self.path}: {place} is {shorten(repr(row))}; expected [state, action, next state, probability, cost]")
            self.state.append(self.states.number(row[0], place))
            self.action.append(self.actions.number(row[1], place))
            self.target.append(self.states.number(row[2], place))
            self.probability.append(self._number(row[3], f"{place}: probability"))
            self.cost.append(self._cost(row[4], place))

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


def write(ssp: SSP, path: str) -> None:
    """Write a model as our JSON, one outcome per line."""
    states, actions = encode_names(ssp.states), encode_names(ssp.actions)
    state_text = [_text(encode_name(name)) for name in ssp.states]
    action_text = {index: _text(encode_name(ssp.actions[index])) for index in np.unique(ssp.choice_action).tolist()}
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
