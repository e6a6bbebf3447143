"""The body of a DRN file: lines of three kinds, for states, actions and transitions.

Transitions are most of the text. What stands after the number of a state, and the lines of actions,
are mostly the same few: each is parsed once. Large files are read by `bulk.py`, all else in small
blocks of lines; both fill the same columns.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Generic, TypeVar

import numpy as np

from tailpath.formats import bulk
from tailpath.formats.drn_model import (
    ACTION,
    STATE,
    TRANSITION,
    BodyColumns,
    DRNFile,
    Header,
    ParsedBody,
    Rewards,
    build_model,
)
from tailpath.formats.files import shorten
from tailpath.formats.labelled import LabelledMDP
from tailpath.formats.text import Categorical, after
from tailpath.graph import Array, FloatArray
from tailpath.options import Progress

_STATE_LINE = re.compile(r"state\s+(\S+)(.*)")
#: Rewards in brackets; those of a model with intervals may be intervals themselves.
_REWARDS = r"(?:\[((?:[^\[\]]|\[[^\[\]]*\])*)\])?"
_AFTER_STATE = re.compile(rf"\s*{_REWARDS}(.*)")
_ACTION_LINE = re.compile(rf"action\s+(\S+)\s*{_REWARDS}")
_FIRST_PROBABILITY = re.compile(rb"^[ \t]*[0-9]+[ \t]*:[ \t]*(.)", re.MULTILINE)
_COMMA = re.compile(r",(?![^\[]*\])")
#: The same as `_STATE_LINE` to pyarrow, whose lines have their ends.
_PLAIN_STATE = r"^[ \t]*state[ \t]+(?P<number>[0-9]{1,9})(?P<rest>\s(?s:.*))$"

T = TypeVar("T")


def parse_drn(path: str, data: bytes, progress: Progress | None = None) -> LabelledMDP:
    """The model that a text describes; `path` is for messages."""
    file = DRNFile(path, data, progress, comment="//")
    header = Header(file)
    begin = after(data, file.line)
    first = _FIRST_PROBABILITY.search(data, begin)
    header.default_value_type(intervals=first is not None and first[1] == b"[")
    found = bulk.attempt(data, lambda: Body(header).read_bulk(begin))
    return found or Body(header).read()


class _ParsedOnce(Generic[T]):
    """Different texts by number, each parsed once."""

    def __init__(self, parse: Callable[[str], T]) -> None:
        self.parse = parse
        self.numbers: dict[str, int] = {}
        self.values: list[T] = []

    def of(self, words: Categorical) -> Array:
        """The numbers of a column, (n,)."""
        return words.map(lambda texts: np.array(list(map(self._number, texts)), np.int32))

    def _number(self, text: str) -> int:
        if text not in self.numbers:
            self.values.append(self.parse(text))
            self.numbers[text] = len(self.values) - 1
        return self.numbers[text]


class Body:
    """The lines after `@model`, on their way to a model; of the states so far, how many there are
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

    def _model(self, parts: list[BodyColumns]) -> LabelledMDP:
        columns = BodyColumns(*(np.concatenate(column) for column in zip(*parts)))
        parts.clear()  # which need not wait for the model
        low = None
        if self.header.intervals:
            ends = np.array(list(self.interval_ids)).reshape(-1, 2)
            low, high = ends[columns.probability.astype(np.int64)].T
            columns = columns._replace(probability=high)
        body = ParsedBody(columns, self.states.values, self.actions.values)
        return replace(build_model(self.header, body), low=low)

    def read(self) -> LabelledMDP:
        """The model, of a few lines at a time."""
        return self._model(
            [
                self._block([]),
                *(part for _, part in self.file.blocks(self.file.rows(), self._block)),
            ]
        )

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
        probabilities = Categorical.from_texts([text for _, _, text in transitions])
        columns = BodyColumns(
            np.frombuffer(kinds, dtype=np.uint8),
            self.states.of(Categorical.from_texts(states)),
            self.actions.of(Categorical.from_texts(actions)),
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

    def read_bulk(self, at: int) -> LabelledMDP:
        """The model of plain lines from a position on, many at a time."""
        extract = bulk.arrow(".compute").extract_regex
        n_states = 0
        parts = []
        for lines in bulk.pieces(self.file.data, at, self.file.progress):
            first = lines.first()
            byte = lines.text[first]
            is_state, is_action = byte == ord("s"), byte == ord("a")
            is_transition = (ord("0") <= byte) & (byte <= ord("9"))
            is_content = is_state | is_action | is_transition
            after_it = lines.text[np.minimum(first + 1, len(lines.text) - 1)]
            is_comment = (byte == ord("/")) & (after_it == ord("/"))
            if not (is_content | is_comment | (byte == ord("\n"))).all():
                raise bulk.IrregularError
            state = extract(lines.chosen(is_state), _PLAIN_STATE)
            number = bulk.numbers(state.field("number").cast("int64"), np.int64)
            if state.null_count or not np.array_equal(number, n_states + np.arange(len(state))):
                raise bulk.IrregularError
            n_states += len(state)
            kinds = ACTION * is_action.view(np.uint8) + TRANSITION * is_transition.view(np.uint8)
            target, probability = lines.columns(is_transition, ":", ("integer", "word"))
            parts.append(
                BodyColumns(
                    kinds[is_content],
                    self.states.of(bulk.categorical(state.field("rest"))),
                    self.actions.of(bulk.categorical(lines.chosen(is_action))),
                    target,
                    probability.map(self._probabilities),
                )
            )
        if not parts or parts[0].kinds[:1] != STATE:
            raise bulk.IrregularError
        return self._model(parts)
