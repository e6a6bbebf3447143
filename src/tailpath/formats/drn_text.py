"""The text of a DRN file: its header, up to `@model`, and its body, lines of three kinds: states,
actions and transitions.

Transitions are most of the text. What stands after the number of a state, and the lines of actions,
are mostly the same few: each is parsed once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Generic, NamedTuple, TypeVar

import numpy as np

from tailpath.formats.files import shorten
from tailpath.formats.text_files import TextFile
from tailpath.formats.writing import MARK, Extras
from tailpath.graph import Array, FloatArray, first_of
from tailpath.model.cells import Categorical

_SECTIONS = ("@parameters", "@reward_models", "@nr_states", "@nr_choices")
_VALUES = ("double", "rational", "double-interval", "rational-interval")
_LABEL = re.compile(r'\s+|"([^"]+)"(?=["\s]|$)|([^\s"]+)(?=\s|$)')
_STATE_LINE = re.compile(r"state\s+(\S+)(.*)")
#: StoredRewards in brackets; those of a model with intervals may be intervals themselves.
_REWARDS = r"(?:\[((?:[^\[\]]|\[[^\[\]]*\])*)\])?"
_AFTER_STATE = re.compile(rf"\s*{_REWARDS}(.*)")
_ACTION_LINE = re.compile(rf"action\s+(\S+)\s*{_REWARDS}")
_COMMA = re.compile(r",(?![^\[]*\])")
STATE, ACTION, TRANSITION = range(3)
#: The kind of a line that does not begin with a digit, by its first letter.
_KINDS = {"s": STATE, "a": ACTION}

StoredRewards = tuple[float, ...]
T = TypeVar("T")


class DRNFile(TextFile):
    """The text, in which placeholders `$name` may stand for numbers."""

    placeholders: dict[str, float]

    def number(self, text: str) -> float:
        if "$" not in text:
            return super().number(text)
        if text.strip() not in self.placeholders:
            raise self.error(f"unknown placeholder {shorten(text.strip())!r}")
        return self.placeholders[text.strip()]

    def line_of(self, row: int) -> int:
        """The number of a row of the body, counted from 0: found when there is something to say."""
        again = TextFile(self.path, self.data, comment=self.comment)
        next(text for text in again.lines() if text == "@model")
        next(islice(again.rows(), row, None))
        return again.line


class Header:
    """The sections by name, each with its line, and what stands between them."""

    def __init__(self, file: DRNFile) -> None:
        self.file = file
        self.sections: dict[str, tuple[str, int]] = {}
        file.placeholders = {}
        self.extras = Extras()
        self._read(file.lines())

    def _read(self, lines: Iterator[str]) -> None:
        for text in lines:
            if text == "@placeholders":
                text = self._read_placeholders(lines)
            if not self.file.is_content(text, self.file.line):
                if text.startswith(f"//{MARK} "):
                    self.extras = self.file.extras()
                continue
            line = self.file.line
            if text == "@model":
                for section in ("@type", "@nr_states"):
                    if section not in self.sections:
                        raise self.file.error(f"the section {section} is missing")
                return
            if text in _SECTIONS:
                self._add(text, next(lines, ""), line)
            elif text.startswith(("@type:", "@value_type:")):
                name, _, value = text.partition(":")
                self._add(name, value.strip(), line)
            else:
                raise self.file.error(f"unknown header line {shorten(text)!r}")
        raise self.file.error("the section @model is missing")

    def _add(self, name: str, value: str, line: int) -> None:
        if name in self.sections:
            raise self.file.error(f"a second section {name}", line)
        self.sections[name] = (value, line)
        if name == "@type" and value.upper() not in ("MDP", "DTMC"):
            raise self.file.error(f"the type {shorten(value)!r} is neither MDP nor DTMC", line)
        if name == "@value_type" and value not in _VALUES:
            raise self.file.error(
                f"the value type {shorten(value)!r} is none of {', '.join(_VALUES)}", line
            )
        if name == "@parameters" and value:
            raise self.file.error(
                "a model with parameters has no numbers yet: instantiate it first", line
            )

    def _read_placeholders(self, lines: Iterator[str]) -> str:
        """Read `$name : value` up to the next section, which is returned."""
        for text in lines:
            if text.startswith("@"):
                return text
            name, colon, value = text.partition(":")
            if not colon or not name.startswith("$"):
                raise self.file.error("expected a placeholder '$name : value'")
            # A number, not another placeholder.
            self.file.placeholders[name.strip()] = TextFile.number(self.file, value)
        return ""

    def default_value_type(self, intervals: bool) -> None:
        """What probabilities are where the header does not say; files of older versions do not."""
        self.sections.setdefault("@value_type", ("double-interval" if intervals else "double", 0))

    @property
    def intervals(self) -> bool:
        return self.sections.get("@value_type", ("", 0))[0].endswith("-interval")

    def labels(self, text: str) -> Iterator[str]:
        position = 0
        while position < len(text):
            label = _LABEL.match(text, position)
            if label is None:
                raise self.file.error(f"cannot read the labels {shorten(text.strip())!r}")
            position = label.end()
            if label[1] or label[2]:
                yield label[1] or label[2]

    def check_count(self, section: str, found: int) -> None:
        text, self.file.line = self.sections.get(section, (str(found), 0))
        if self.file.integer(text) != found:
            raise self.file.error(f"{section} says {text.strip()}, the file has {found}")

    @property
    def is_dtmc(self) -> bool:
        return self.sections["@type"][0].upper() == "DTMC"


# ---------------------------------------------------------------------- the body


class BodyColumns(NamedTuple):
    """The kind of each line that says something; codes for the lines of states and of actions, the
    same for equal ones; target and probability of each transition."""

    kinds: Array
    state_code: Array
    action_code: Array
    target: Array
    probability: FloatArray


class ParsedBody(NamedTuple):
    """A body: its columns; of intervals, the low ends; rewards and labels of each different state,
    rewards and name of each different action."""

    columns: BodyColumns
    low: FloatArray | None
    states: Sequence[tuple[StoredRewards, tuple[str, ...]]]
    actions: Sequence[tuple[StoredRewards, str]]


class _ParsedOnce(Generic[T]):
    """Different texts by number, each parsed once."""

    def __init__(self, parse: Callable[[str], T]) -> None:
        self.parse = parse
        self.numbers: dict[str, int] = {}
        self.values: list[T] = []

    def of(self, words: Categorical) -> Array:
        return words.map(lambda texts: np.array(list(map(self._number, texts)), np.int32))

    def _number(self, text: str) -> int:
        if text not in self.numbers:
            self.values.append(self.parse(text))
            self.numbers[text] = len(self.values) - 1
        return self.numbers[text]


class Body:
    """The lines after `@model`; `n_states` counts the states so far."""

    def __init__(self, header: Header) -> None:
        self.header, self.file = header, header.file
        self.interval_ids: dict[tuple[float, float], int] = {}
        self.states, self.actions = _ParsedOnce(self._after_state), _ParsedOnce(self._action)
        self.n_states = 0

    def _after_state(self, text: str) -> tuple[StoredRewards, tuple[str, ...]]:
        """The rewards of a state, and its labels."""
        match = _AFTER_STATE.fullmatch(text)
        assert match is not None  # anything does
        rewards = self._rewards(match[1])
        if match[2].startswith("["):
            raise self.file.error("the rewards have no end")
        return rewards, tuple(self.header.labels(match[2]))

    def _action(self, text: str) -> tuple[StoredRewards, str]:
        """The rewards of an action, and its name."""
        match = _ACTION_LINE.fullmatch(text)
        if match is None:
            raise self._unexpected("'action <name> [rewards]'", text)
        return self._rewards(match[2]), match[1]

    def _unexpected(self, expected: str, text: str) -> Exception:
        return self.file.error(f"expected {expected}, not {shorten(text)!r}")

    def _rewards(self, text: str | None) -> StoredRewards:
        parts = () if text is None else _COMMA.split(text)
        return tuple(self._reward(part.strip()) for part in parts)

    def _reward(self, text: str) -> float:
        if not (self.header.intervals and text.startswith("[")):
            return self.file.number(text)
        low, high = self.file.interval(text)
        if low != high:
            raise self.file.error(f"the reward {text} is an interval; only probabilities may be")
        return high

    def _probabilities(self, texts: Sequence[str]) -> FloatArray:
        """Numbers; of intervals, the ids that stand for them."""
        if self.header.intervals:
            known, ends = self.interval_ids, map(self.file.interval, texts)
            return np.array([known.setdefault(each, len(known)) for each in ends], float)
        return self.file.numbers(texts)

    def _joined(self, parts: list[BodyColumns]) -> ParsedBody:
        columns = BodyColumns(*(np.concatenate(column) for column in zip(*parts)))
        parts.clear()  # which need not wait for the model
        low = None
        if self.header.intervals:
            ends = np.array(list(self.interval_ids)).reshape(-1, 2)
            low, high = ends[columns.probability.astype(np.int64)].T
            columns = columns._replace(probability=high)
        return ParsedBody(columns, low, self.states.values, self.actions.values)

    def read(self) -> ParsedBody:
        return self._joined([self._block([]), *(part for _, part in self.file.blocks(self._block))])

    def _block(self, texts: Sequence[str]) -> BodyColumns:
        kinds = [TRANSITION if text[0].isdigit() else _KINDS.get(text[0], -1) for text in texts]
        if -1 in kinds:
            text = texts[kinds.index(-1)]
            raise self._unexpected("a state, an action or a transition", text)
        if not self.n_states and kinds and kinds[0] != STATE:
            raise self.file.error("an action or a transition before the first state")
        lines = [[t for t, k in zip(texts, kinds) if k == kind] for kind in range(3)]
        states = self._after_numbers(lines[STATE])
        targets, colons, probabilities = list(
            zip(*(text.partition(":") for text in lines[TRANSITION]))
        ) or ((), (), ())
        if not all(colons):
            raise self.file.error("expected 'target : probability'")
        columns = BodyColumns(
            np.array(kinds, dtype=np.uint8),
            self.states.of(Categorical.from_cells(states)),
            self.actions.of(Categorical.from_cells(lines[ACTION])),
            self.file.integers([target.rstrip() for target in targets]),
            Categorical.from_cells(probabilities).map(self._probabilities),
        )
        self.n_states += len(states)
        return columns

    def _after_numbers(self, texts: Sequence[str]) -> list[str]:
        """What stands after the numbers of states, which have no gaps."""
        matches = list(map(_STATE_LINE.fullmatch, texts))
        if None in matches:
            text = texts[matches.index(None)]
            raise self._unexpected("'state <id> [rewards] labels'", text)
        numbers = self.file.integers([match[1] for match in matches if match])
        for state in first_of(numbers != self.n_states + np.arange(len(numbers))):
            expected = f"expected state {self.n_states + state}, not {numbers[state]}"
            raise self.file.error(f"{expected}: states are numbered without gaps")
        return [match[2] for match in matches if match]
