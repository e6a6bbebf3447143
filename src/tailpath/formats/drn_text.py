"""The text of a DRN file: its header, up to `@model`, and its body, lines of three kinds: states,
actions and transitions.

Transitions are most of the text. What stands after the number of a state, and the lines of actions,
are mostly the same few: each is parsed once. Large files are read by way of pyarrow, all else in
small blocks of lines; both fill the same columns.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Generic, NamedTuple, TypeVar

import numpy as np

from tailpath.formats import text_files
from tailpath.formats.files import shorten
from tailpath.formats.text_files import TextFile
from tailpath.formats.writing import MARK, Extras
from tailpath.graph import Array, FloatArray
from tailpath.model.outcome_columns import Categorical

_SECTIONS = ("@parameters", "@reward_models", "@nr_states", "@nr_choices")
_VALUES = ("double", "rational", "double-interval", "rational-interval")
_LABEL = re.compile(r'\s+|"([^"]+)"(?=["\s]|$)|([^\s"]+)(?=\s|$)')
_STATE_LINE = re.compile(r"state\s+(\S+)(.*)")
#: Rewards in brackets; those of a model with intervals may be intervals themselves.
_REWARDS = r"(?:\[((?:[^\[\]]|\[[^\[\]]*\])*)\])?"
_AFTER_STATE = re.compile(rf"\s*{_REWARDS}(.*)")
_ACTION_LINE = re.compile(rf"action\s+(\S+)\s*{_REWARDS}")
_COMMA = re.compile(r",(?![^\[]*\])")
#: The same as `_STATE_LINE` to pyarrow, whose lines have their ends.
_PLAIN_STATE = r"^[ \t]*state[ \t]+(?P<number>[0-9]{1,9})(?P<rest>\s(?s:.*))$"
STATE, ACTION, TRANSITION = range(3)

Rewards = tuple[float, ...]
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
            if not self.file.is_content(text):
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
    states: Sequence[tuple[Rewards, tuple[str, ...]]]
    actions: Sequence[tuple[Rewards, str]]


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
    """The lines after `@model`; of the states so far, how many there are
    and how many choices the last one has."""

    def __init__(self, header: Header) -> None:
        self.header, self.file = header, header.file
        self.interval_ids: dict[tuple[float, float], int] = {}
        self.states, self.actions = _ParsedOnce(self._after_state), _ParsedOnce(self._action)
        self.n_states, self.n_choices = 0, 0

    def _after_state(self, text: str) -> tuple[Rewards, tuple[str, ...]]:
        """The rewards of a state, and its labels."""
        match = _AFTER_STATE.fullmatch(text)
        assert match is not None  # anything does
        rewards = self._rewards(match[1])
        if match[2].startswith("["):
            raise self.file.error("the rewards have no end")
        return rewards, tuple(self.header.labels(match[2]))

    def _action(self, text: str) -> tuple[Rewards, str]:
        """The rewards of an action, and its name."""
        match = _ACTION_LINE.fullmatch(text)
        if match is None:
            raise self._unexpected("'action <name> [rewards]'", text)
        return self._rewards(match[2]), match[1]

    def _unexpected(self, expected: str, text: str) -> Exception:
        return self.file.error(f"expected {expected}, not {shorten(text)!r}")

    def _rewards(self, text: str | None) -> Rewards:
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
        parts = (part for _, part in self.file.blocks(self.file.rows(), self._block))
        return self._joined([self._block([]), *parts])

    def _block(self, texts: Sequence[str]) -> BodyColumns:
        kinds, n_states = bytearray(), self.n_states
        n_choices = self.n_choices
        states, actions = [], []
        transitions = []
        for text in texts:
            if text[0].isdigit():
                kind = TRANSITION
                transitions.append(text.partition(":"))
            elif text.startswith("state"):
                kind = STATE
                states.append(self._rest_of_state(text, n_states))
                n_states += 1
            elif text.startswith("action"):
                kind = ACTION
                actions.append(text)
            else:
                raise self._unexpected("a state, an action or a transition", text)
            if not n_states:
                raise self.file.error("an action or a transition before the first state")
            n_choices = 0 if kind == STATE else n_choices + (kind == ACTION or n_choices == 0)
            if n_choices > 1 and self.header.is_dtmc:
                raise self.file.error("a state of a DTMC has one action")
            kinds.append(kind)
        if not all(colon for _, colon, _ in transitions):
            raise self.file.error("expected 'target : probability'")
        probabilities = Categorical.from_cells([text for _, _, text in transitions])
        columns = BodyColumns(
            np.frombuffer(kinds, dtype=np.uint8),
            self.states.of(Categorical.from_cells(states)),
            self.actions.of(Categorical.from_cells(actions)),
            self.file.integers([target.rstrip() for target, _, _ in transitions]),
            probabilities.map(self._probabilities),
        )
        self.n_states, self.n_choices = n_states, n_choices
        return columns

    def _rest_of_state(self, text: str, state: int) -> str:
        match = _STATE_LINE.fullmatch(text)
        if match is None:
            raise self._unexpected("'state <id> [rewards] labels'", text)
        if self.file.integer(match[1]) != state:
            expected = f"expected state {state}, not {shorten(match[1])}"
            raise self.file.error(f"{expected}: states are numbered without gaps")
        return match[2]

    def read_bulk(self, at: int) -> ParsedBody:
        """Plain lines from a position on, many at a time."""
        extract = text_files.arrow(".compute").extract_regex
        n_states = 0
        parts = []
        for lines in text_files.pieces(self.file.data, at, self.file.progress):
            first = lines.first()
            byte = lines.text[first]
            is_state, is_action = byte == ord("s"), byte == ord("a")
            is_transition = (ord("0") <= byte) & (byte <= ord("9"))
            is_content = is_state | is_action | is_transition
            after_it = lines.text[np.minimum(first + 1, len(lines.text) - 1)]
            is_comment = (byte == ord("/")) & (after_it == ord("/"))
            if not (is_content | is_comment | (byte == ord("\n"))).all():
                raise text_files.IrregularError
            state = extract(lines.chosen(is_state), _PLAIN_STATE)
            number = text_files.numbers(state.field("number").cast("int64"), np.int64)
            if state.null_count or not np.array_equal(number, n_states + np.arange(len(state))):
                raise text_files.IrregularError
            n_states += len(state)
            kinds = ACTION * is_action.view(np.uint8) + TRANSITION * is_transition.view(np.uint8)
            target, probability = lines.columns(is_transition, ":", ("integer", "word"))
            parts.append(
                BodyColumns(
                    kinds[is_content],
                    self.states.of(text_files.categorical(state.field("rest"))),
                    self.actions.of(text_files.categorical(lines.chosen(is_action))),
                    target,
                    probability.map(self._probabilities),
                )
            )
        if not parts or parts[0].kinds[:1] != STATE:
            raise text_files.IrregularError
        return self._joined(parts)
