"""The body of a DRN file: lines of three kinds, for states, actions and transitions.

Transitions are most of the text. What stands after the number of a state, and the lines of actions,
are mostly the same few: each is understood once. Large files are cut by `bulk.py`, all else is read
line by line; both fill the same columns.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from tailpath.formats import bulk
from tailpath.formats.drn_header import Header, Lines
from tailpath.formats.drn_model import (
    ACTION,
    STATE,
    TRANSITION,
    BodyColumns,
    ParsedBody,
    Rewards,
    assembled,
)
from tailpath.formats.files import shorten
from tailpath.formats.labelled import Labelled
from tailpath.formats.text import BLOCK, NumberParser, after, lines_of
from tailpath.options import Progress

_STATE_LINE = re.compile(r"state\s+(\S+)(.*)")
#: Rewards in brackets; those of a model with intervals may be intervals themselves.
_REWARDS = r"(?:\[((?:[^\[\]]|\[[^\[\]]*\])*)\])?"
_AFTER_STATE = re.compile(rf"\s*{_REWARDS}(.*)")
_ACTION_LINE = re.compile(rf"action\s+(\S+)\s*{_REWARDS}")
_FIRST_CHANCE = re.compile(rb"^[ \t]*[0-9]+[ \t]*:[ \t]*(.)", re.MULTILINE)
_COMMA = re.compile(r",(?![^\[]*\])")
#: The same as `_STATE_LINE` to pyarrow, whose lines have their ends.
_PLAIN_STATE = r"^[ \t]*state[ \t]+(?P<number>[0-9]{1,9})(?P<rest>\s(?s:.*))$"

T = TypeVar("T")


def parse_drn(path: str, data: bytes, progress: Progress | None = None) -> Labelled:
    """The model that a text describes; `path` is for messages."""
    lines = enumerate(lines_of(data, progress), start=1)
    header = Header(path)
    body = after(data, header.read(lines))
    chance = _FIRST_CHANCE.search(data, body)
    header.assume(intervals=chance is not None and chance[1] == b"[")
    found = bulk.attempt(data, lambda: Body(header).cut(data, body, progress))
    return found or Body(header).read(lines)


class _Understood(Generic[T]):
    """Texts by number, and what they say: each is understood once."""

    def __init__(self, understand: Callable[[str, int], T]) -> None:
        self.understand = understand
        self.numbers: dict[str, int] = {}
        self.values: list[T] = []

    def number(self, text: str, line: int) -> int:
        if text not in self.numbers:
            self.values.append(self.understand(text, line))
            self.numbers[text] = len(self.values) - 1
        return self.numbers[text]

    def of(self, words: bulk.Words) -> NDArray[Any]:
        """The numbers of a column, (n,); of which line does not matter, refusals are read again."""

        def parse(texts: list[str]) -> NDArray[np.int32]:
            return np.array([self.number(text, 0) for text in texts], dtype=np.int32)

        return words.understood(parse)


class Body:
    """The lines after `@model`, on their way to a model."""

    def __init__(self, header: Header) -> None:
        self.header = header
        self.ends: dict[tuple[float, float], int] = {}
        self.states, self.actions = _Understood(self._after_state), _Understood(self._action)

    def _after_state(self, text: str, line: int) -> tuple[Rewards, tuple[str, ...]]:
        """The rewards of a state, and its labels."""
        match = _AFTER_STATE.fullmatch(text)
        assert match is not None  # anything does
        rewards = self._rewards(match[1], line)
        if match[2].startswith("["):
            raise self.header.fail(line, "the rewards have no end")
        return rewards, tuple(self.header.labels(match[2], line))

    def _action(self, text: str, line: int) -> tuple[Rewards, str]:
        """The rewards of an action, and its name."""
        match = _ACTION_LINE.fullmatch(text)
        if match is None:
            expected = "expected 'action <name> [rewards]'"
            raise self.header.fail(line, f"{expected}, not {shorten(text)!r}")
        return self._rewards(match[2], line), match[1]

    def _rewards(self, text: str | None, line: int) -> Rewards:
        parts = () if text is None else _COMMA.split(text)
        return tuple(self._reward(part.strip(), line) for part in parts)

    def _reward(self, text: str, line: int) -> float:
        if not (self.header.intervals and text.startswith("[")):
            return self.header.value(text, line)
        low, high = self.header.interval(text, line)
        if low != high:
            raise self.header.fail(
                line, f"the reward {text} is an interval; only probabilities may be"
            )
        return high

    def _probabilities(
        self,
        texts: Sequence[str],
        lines: Sequence[int] = (),
    ) -> NDArray[np.float64]:
        """Numbers, or placeholders for them; where lines do not matter there are none."""
        lines = lines or [0] * len(texts)
        if self.header.intervals:  # their numbers stand for them
            return np.array(
                [
                    self.ends.setdefault(self.header.interval(*each), len(self.ends))
                    for each in zip(texts, lines)
                ],
                np.float64,
            )
        if self.header.placeholders:
            values = map(self.header.value, texts, lines)
            return np.fromiter(values, np.float64, len(texts))
        return NumberParser(self.header.path).numbers(texts, lines)

    def _model(self, columns: BodyColumns, line_of_farthest: int = 0) -> Labelled:
        states, actions = self.states.values, self.actions.values
        if not self.header.intervals:
            return assembled(self.header, ParsedBody(columns, states, actions, line_of_farthest))
        low, high = np.array(list(self.ends)).reshape(-1, 2)[columns.probability.astype(np.int64)].T
        columns = columns._replace(probability=high)
        return replace(
            assembled(self.header, ParsedBody(columns, states, actions, line_of_farthest)), low=low
        )

    def read(self, lines: Lines) -> Labelled:
        """The model, line by line."""
        kinds, transitions = bytearray(), _Transitions(self)
        of_state: list[int] = []
        of_action: list[int] = []
        n_choices = 0  # of the last state
        for line, raw in lines:
            text = raw.strip()
            if text[:1].isdigit():
                kind = TRANSITION
                transitions.add(text, line)
            elif text.startswith("state"):
                kind = STATE
                transitions.flush(BLOCK)
                rest = self._rest_of_state(text, len(of_state), line)
                of_state.append(self.states.number(rest, line))
            elif text.startswith("action"):
                kind = ACTION
                of_action.append(self.actions.number(text, line))
            elif not text or text.startswith("//"):
                continue
            else:
                expected = "expected a state, an action or a transition"
                raise self.header.fail(line, f"{expected}, not {shorten(text)!r}")
            if kind != STATE and not of_state:
                raise self.header.fail(line, "an action or a transition before the first state")
            n_choices = 0 if kind == STATE else n_choices + (kind == ACTION or n_choices == 0)
            if n_choices > 1 and self.header.deterministic:
                raise self.header.fail(line, "a state of a DTMC has one action")
            kinds.append(kind)
        transitions.flush()
        target, probability = (np.concatenate(column) for column in zip(*transitions.blocks))
        states, actions = np.array(of_state, dtype=np.int64), np.array(of_action, dtype=np.int64)
        kind_of_line = np.frombuffer(kinds, dtype=np.uint8)
        columns = BodyColumns(kind_of_line, states, actions, target, probability)
        return self._model(columns, transitions.line_of_farthest)

    def _rest_of_state(self, text: str, state: int, line: int) -> str:
        match = _STATE_LINE.fullmatch(text)
        if match is None:
            expected = "expected 'state <id> [rewards] labels'"
            raise self.header.fail(line, f"{expected}, not {shorten(text)!r}")
        if NumberParser(self.header.path).integer(match[1], line) != state:
            expected = f"expected state {state}, not {shorten(match[1])}"
            raise self.header.fail(line, f"{expected}: states are numbered without gaps")
        return match[2]

    def cut(self, data: bytes, at: int, progress: Progress | None) -> Labelled:
        """The model of plain lines, many at a time."""
        extract = bulk.arrow(".compute").extract_regex
        n_states = 0
        parts = []
        for lines in bulk.pieces(data, at, progress):
            first = lines.first()
            byte = lines.text[first]
            is_state, is_action = byte == ord("s"), byte == ord("a")
            is_transition = (ord("0") <= byte) & (byte <= ord("9"))
            is_content = is_state | is_action | is_transition
            after_it = lines.text[np.minimum(first + 1, len(lines.text) - 1)]
            is_comment = (byte == ord("/")) & (after_it == ord("/"))
            if not (is_content | is_comment | (byte == ord("\n"))).all():
                raise bulk.OddError
            state = extract(lines.chosen(is_state), _PLAIN_STATE)
            number = bulk.numbers(state.field("number").cast("int64"), np.int64)
            if state.null_count or not np.array_equal(number, n_states + np.arange(len(state))):
                raise bulk.OddError
            n_states += len(state)
            kinds = ACTION * is_action.view(np.uint8) + TRANSITION * is_transition.view(np.uint8)
            of_state = self.states.of(bulk.Words.of(state.field("rest")))
            of_action = self.actions.of(bulk.Words.of(lines.chosen(is_action)))
            target, chance = lines.columns(is_transition, ":", ("integer", "word"))
            probability = chance.understood(self._probabilities)
            parts.append(BodyColumns(kinds[is_content], of_state, of_action, target, probability))
        if not parts or parts[0].kinds[:1] != STATE:
            raise bulk.OddError
        columns = BodyColumns(*(np.concatenate(column) for column in zip(*parts)))
        del parts
        return self._model(columns)


class _Transitions:
    """Lines `target : probability`, held as text until there are enough of them for a sweep."""

    def __init__(self, body: Body) -> None:
        self.body = body
        self.texts: list[str] = []
        self.lines: list[int] = []
        self.blocks: list[tuple[NDArray[np.int64], NDArray[np.float64]]] = []
        self.farthest, self.line_of_farthest = -1, 0

    def add(self, text: str, line: int) -> None:
        self.texts.append(text)
        self.lines.append(line)

    def flush(self, least: int = 0) -> None:
        """Turn the text into numbers, if there is that much of it."""
        if len(self.texts) < least:
            return
        header = self.body.header
        parts = [text.partition(":") for text in self.texts]
        for (_, colon, _), line in zip(parts, self.lines):
            if not colon:
                raise header.fail(line, "expected 'target : probability'")
        target = NumberParser(header.path).integers(
            [part[0].rstrip() for part in parts], self.lines
        )
        probability = self.body._probabilities([part[2].strip() for part in parts], self.lines)
        if target.size and target.max() > self.farthest:
            self.farthest = int(target.max())
            self.line_of_farthest = self.lines[int(target.argmax())]
        self.blocks.append((target, probability))
        self.texts.clear()
        self.lines.clear()
