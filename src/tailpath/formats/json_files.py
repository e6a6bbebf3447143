"""Our own `.json`: a model for people to read, write by hand and keep under version control.
Lossless; `docs/formats.md` has its members, and `files.py` says which names there are.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import cache
from typing import Any

import numpy as np

from tailpath.errors import FormatError, TailpathWarning
from tailpath.formats.files import parse_number, read_bytes, shorten, text_bytes, write_bytes
from tailpath.formats.headers import (
    ANYTHING,
    EXTRAS,
    LIST,
    SHARE,
    checked,
    decode_column,
    decode_members,
    decode_names,
    read_header,
)
from tailpath.formats.registry import Reading
from tailpath.formats.writing import (
    encode_members,
    encode_name,
    in_blocks,
    in_turn,
    probability_columns,
    share_texts,
)
from tailpath.graph import Array, BoolArray, FloatArray, first_of
from tailpath.model.cost_units import common_unit
from tailpath.model.interval import IntervalSSP, underlying_ssp
from tailpath.model.interval_builders import interval_model
from tailpath.model.outcomes import arrays_from_rows
from tailpath.model.ssp import SSP, Name
from tailpath.options import Progress

FORMAT = "tailpath model"
VERSION = 1
#: A file of this many bytes gets a warning that other formats are faster.
LARGE_JSON = 20_000_000
#: The rows that are read between two reports of progress.
_BLOCK = 2**14
_MEMBERS = {
    **dict.fromkeys(("format", "version", "start"), ANYTHING),
    "goals": LIST,
    **dict.fromkeys(("states", "actions"), ANYTHING.otherwise()),
    **EXTRAS,
    "confidence": SHARE.otherwise(),
    "outcomes": LIST,
}


#: The types of the five entries of a row: state, action, target, probability and cost.
_KINDS = (np.int32, np.int32, np.int32, np.float64, np.float64)


def read(path: str, reading: Reading) -> Any:
    data = text_bytes(path, read_bytes(path))
    if len(data) >= LARGE_JSON:
        what = f"{len(data) / 1e6:.0f} MB of JSON are slow to read"
        message = f"{path}: {what}; .npz and .umb are faster"
        warnings.warn(message, TailpathWarning, stacklevel=2)
    size, text = len(data), data.decode()
    del data
    document = checked(read_header(text, path, path, FORMAT, VERSION), _MEMBERS, f"{path}: ")
    del text
    return _Document(document, path).model(size, reading.progress)


class _Document:
    """The members of a document on their way to the fields of a model."""

    def __init__(self, document: dict[str, Any], path: str) -> None:
        self.document, self.path = document, path
        self.states, self.actions = map(self._declared, ("states", "actions"))
        n_states, n_rows = len(self.states.names), len(document["outcomes"])
        # Every state has an outcome or is a goal, so a larger number is wrong, and must not claim
        # memory.
        if n_states > n_rows + len(document["goals"]) and type(document["states"]) is int:
            raise FormatError(
                f"{path}: states is {n_states}, but there are fewer outcomes and goals"
            )
        self.intervals: dict[int, list[float]] = {}
        self.costs: set[Any] = set()

    def _declared(self, what: str) -> NameIndex:
        names = self.document.get(what)
        return NameIndex(
            what, None if names is None else decode_names(names, f"{self.path}: {what}")
        )

    def model(self, size: int, progress: Progress | None) -> Any:
        """The model, from a text of that size. Outcomes come before the goals and the start, so
        that names are numbered in order of appearance as in `SSP.from_outcomes`.
        """
        document, path = self.document, self.path
        columns = self._columns(size, progress)
        goals = self.states.numbers(document["goals"], lambda at: f"{path}: goals[{at}]")
        # A start that no outcome names is a state without choices, which the model will refuse.
        (start,) = self.states.numbers([document["start"]], lambda _: f"{path}: start")
        is_goal = np.zeros(len(self.states.names), dtype=np.bool_)
        is_goal[goals] = True
        of_goal = is_goal[columns[0]]
        self._check_goal_rows(columns, of_goal)
        if self.intervals:
            columns[3] = self._with_ends(columns[3])
        state, action, target, probability, cost = (column[~of_goal] for column in columns)
        fields = {
            **arrays_from_rows(state, action, target, probability, cost, len(is_goal), merge=False),
            "is_goal": is_goal,
            "start_index": start,
            "states": self.states.names,
            "actions": self.actions.names,
            **decode_members(document, len(is_goal), f"{path}: "),
        }
        if document.get("cost_unit") is None and str in set(map(type, self.costs)):
            fields["exact_unit"] = common_unit(self.costs)
        confidence = document["confidence"]
        if self.intervals:
            columns = fields["outcome_probability"]
            known = columns if not np.isnan(columns[:, 2]).any() else columns[:, :2]
            fields["outcome_probability"] = known  # with frequencies, or without
            return interval_model(IntervalSSP, fields, confidence)
        if confidence is not None:
            raise FormatError(f"{path}: confidence needs intervals, and the model has none")
        return SSP(**fields)

    def _columns(self, size: int, progress: Progress | None) -> list[Array]:
        rows = self.document["outcomes"]
        blocks: list[list[Array]] = [[np.zeros(0, kind)] for kind in _KINDS]
        for first in range(0, len(rows), _BLOCK):
            for column, kind, found in zip(blocks, _KINDS, self._block(rows, first)):
                column.append(np.array(found, kind))
            if progress is not None:
                share = min(first + _BLOCK, len(rows)) / len(rows)
                progress(round(share * size), share)
        return [np.concatenate(column) for column in blocks]

    def _block(self, rows: list[Any], first: int) -> tuple[Sequence[float], ...]:
        """The columns of some rows, in numbers."""
        for number, row in enumerate(rows[first : first + _BLOCK], start=first):
            if type(row) is not list or len(row) != 5:
                raise FormatError(
                    f"{self.path}: outcomes[{number}] is {shorten(repr(row))}; expected [state,"
                    " action, next state, probability, cost]"
                )

        def row_of(position: int) -> str:
            return f"{self.path}: outcomes[{first + position}]"

        state, action, target, probability, cost = zip(*rows[first : first + _BLOCK])
        pairs = [name for pair in zip(state, target) for name in pair]
        states = self.states.numbers(pairs, lambda position: row_of(position // 2))
        actions = self.actions.numbers(action, row_of)
        if list in set(map(type, probability)):
            probability = tuple(map(self._probability, probability, range(first, first + _BLOCK)))
        probabilities = _floats(probability, "probability", row_of)
        costs = _floats(cost, "cost", row_of)
        self.costs.update(cost)
        return states[::2], actions, states[1::2], probabilities, costs

    def _probability(self, value: Any, number: int) -> Any:
        """The probability of a row as it stands there, or 1 for an interval, which is stored."""
        if type(value) is not list:
            return value
        location = f"{self.path}: outcomes[{number}]"
        ends = _floats(value, "probability", lambda _: location)
        if len(ends) not in (2, 3):
            raise FormatError(
                f"{location}: probability {shorten(repr(value))} is neither a number nor [low,"
                " high] nor [low, high, frequency]"
            )
        self.intervals[number] = [*ends, np.nan][:3]
        return 1.0

    def _check_goal_rows(self, columns: list[Array], of_goal: BoolArray) -> None:
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


def _floats(values: Sequence[Any], what: str, location: Callable[[int], str]) -> Sequence[float]:
    """Numbers, and texts of numbers, as floats; `location` says where the one at a position is."""
    if set(map(type, values)) <= {float}:
        return values
    return [_float(value, what, location(position)) for position, value in enumerate(values)]


def _float(value: Any, what: str, location: str) -> float:
    if type(value) is str:
        return parse_number(value, f"{location}: {what}")
    if type(value) in (int, float):
        with suppress(OverflowError):
            return float(value)
    raise FormatError(f"{location}: {what} {shorten(repr(value))} is not a number")


def write(ssp: SSP | IntervalSSP, path: str) -> None:
    # Half a surrogate pair is no UTF-8, but its backslash escape is JSON.
    write_bytes(path, in_blocks(_pieces(ssp)))


def _pieces(model: SSP | IntervalSSP) -> Iterator[str]:
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
    yield "{\n  " + ",\n  ".join(members) + ',\n  "outcomes": ['
    state = [_text(encode_name(name)) for name in ssp.states]
    action = cache(lambda a: _text(encode_name(ssp.actions[a])))
    choice, comma = ssp.outcome_choice, "\n"
    columns = ssp.choice_state[choice], ssp.choice_action[choice], ssp.outcome_target
    shares = [*probability_columns(model).values(), getattr(model, "estimate", None)]
    texts = share_texts(np.stack([each for each in shares if each is not None], axis=1))
    for (s, a, t, cost), p in zip(in_turn(*columns, ssp.outcome_cost), texts):
        yield f"{comma}    [{state[s]}, {action(a)}, {state[t]}, {p}, {cost!r}]"
        comma = ",\n"
    yield "\n  ]\n}\n"


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


# ---------------------------------------------------------------------- names


class NameIndex:
    """Names with their numbers: only those declared, or all as they appear.

    Python treats true as 1 and false as 0, in tuples too; a file that has both means two names, and
    is refused.
    """

    def __init__(self, what: str, declared: Sequence[Name] | None = None) -> None:
        self.what, self.declared = what, declared
        given = () if declared is None or isinstance(declared, range) else declared
        self._index = {name: number for number, name in enumerate(dict.fromkeys(given))}
        self._has_truths = _has_truths(given)

    @property
    def names(self) -> Sequence[Name]:
        return tuple(self._index) if self.declared is None else self.declared

    def numbers(self, values: Sequence[Any], location: Callable[[int], str]) -> list[int]:
        """The number of each name, given as JSON; `location` says where the one at a position
        is.
        """
        names = decode_column(values, location)
        index, declared = self._index, self.declared
        if declared is None:
            found = [index.setdefault(name, len(index)) for name in names]
        elif isinstance(declared, range):
            found = [n if type(n) is int and 0 <= n < len(declared) else -1 for n in names]
        else:
            found = [index.get(name, -1) for name in names]
        for at in (found.index(-1),) if -1 in found else ():
            name = shorten(repr(names[at]))
            raise FormatError(f"{location(at)}: {name} is not among the {self.what}")
        self._has_truths = self._has_truths or _has_truths(names)
        if self._has_truths:
            self._tell_apart(names, found, location)
        return found

    def _tell_apart(
        self, names: Sequence[Name], found: list[int], location: Callable[[int], str]
    ) -> None:
        known = list(self._index)
        for position, (name, number) in enumerate(zip(names, found)):
            if _truths(name) != _truths(known[number]):
                both = f"{json.dumps(name)} and {json.dumps(known[number])}"
                raise FormatError(f"{location(position)}: the names {both} cannot be told apart")


def _has_truths(names: Sequence[Any]) -> bool:
    """Whether there may be truth values among names, or in tuples among them."""
    text = repr(names)
    return "True" in text or "False" in text


def _truths(name: Name) -> Any:
    """Where truth values stand in a name."""
    return list(map(_truths, name)) if isinstance(name, tuple) else isinstance(name, bool)
