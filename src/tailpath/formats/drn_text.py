"""The text of a DRN file: its header, up to `@model`, and its body, lines of three kinds: states,
actions and transitions.

Most lines are transitions. The text after the number of a state, and the lines of actions, repeat:
each different one is parsed once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import compress
from typing import Generic, NamedTuple, TypeVar

import numpy as np

from tailpath.formats.files import shorten
from tailpath.formats.text_files import TextFile, joined_ends
from tailpath.formats.writing import MARK, Extras
from tailpath.graph import Array, FloatArray, first_of

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
#: The kind of a line by its first character.
_KINDS = np.full(256, -1, dtype=np.int8)
_KINDS[[ord("s"), ord("a")]] = STATE, ACTION
_KINDS[ord("0") : ord("9") + 1] = TRANSITION

StoredRewards = tuple[float, ...]
T = TypeVar("T")


class Header:
    """The sections by name, each with its line, and the comments between them."""

    def __init__(self, file: TextFile) -> None:
        self.file = file
        self.sections: dict[str, tuple[str, int]] = {}
        self.extras = Extras()
        self._read(file.lines())

    def _read(self, lines: Iterator[str]) -> None:
        for text in lines:
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
            raise self.file.error(f"the section {name} is given twice", line)
        self.sections[name] = (value, line)
        if name == "@type" and value.upper() not in ("MDP", "DTMC"):
            raise self.file.error(f"the type {shorten(value)!r} is neither MDP nor DTMC", line)
        if name == "@value_type" and value not in _VALUES:
            raise self.file.error(
                f"the value type {shorten(value)!r} is not one of {', '.join(_VALUES)}", line
            )
        if name == "@parameters" and value:
            raise self.file.error(
                "parametric models are not supported; substitute values for the parameters first",
                line,
            )

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


class ParsedBody(NamedTuple):
    """The number and the kind of each line with content; codes for the lines of states and of
    actions, equal for equal lines; target and probability of each transition (for intervals `low`
    has the low ends and `probability` the high ones); rewards and labels of each different state,
    rewards and name of each different action.
    """

    lines: Array
    kinds: Array
    state_code: Array
    action_code: Array
    target: Array
    probability: FloatArray
    low: FloatArray | None
    states: Sequence[tuple[StoredRewards, tuple[str, ...]]]
    actions: Sequence[tuple[StoredRewards, str]]


class _ParsedOnce(dict[str, int], Generic[T]):
    """The number of each different text; each is parsed once."""

    def __init__(self, parse: Callable[[str], T]) -> None:
        self.parse = parse
        self.parsed: list[T] = []

    def __missing__(self, text: str) -> int:
        self.parsed.append(self.parse(text))
        self[text] = len(self.parsed) - 1
        return self[text]

    def of(self, texts: Iterable[str]) -> Array:
        return np.fromiter(map(self.__getitem__, texts), np.int32)


class Body:
    """The lines after `@model`; `n_states` counts the states so far."""

    def __init__(self, header: Header) -> None:
        self.header, self.file = header, header.file
        self.states, self.actions = _ParsedOnce(self._after_state), _ParsedOnce(self._action)
        self.n_states = 0

    def _after_state(self, text: str) -> tuple[StoredRewards, tuple[str, ...]]:
        """The rewards of a state, and its labels."""
        match = _AFTER_STATE.fullmatch(text)
        assert match is not None  # anything does
        rewards = self._rewards(match[1])
        if match[2].startswith("["):
            raise self.file.error("the rewards have no closing bracket")
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
        low, high = self.file.interval(text)
        if low != high:
            raise self.file.error(f"the reward {text} is an interval; only probabilities may be")
        return high

    def read(self) -> ParsedBody:
        parts = [(np.zeros(0, np.int32), self._block([])), *self.file.blocks(self._block)]
        *columns, ends = zip(*((lines, *columns) for lines, columns in parts))
        lines, kinds, state, action, target = map(np.concatenate, columns)
        low, high = joined_ends(ends)
        if low is None and self.header.intervals:
            low = high.copy()
        states, actions = self.states.parsed, self.actions.parsed
        return ParsedBody(lines, kinds, state, action, target, high, low, states, actions)

    def _block(self, texts: Sequence[str]) -> tuple[Array, ...]:
        begins = "".join([text[0] for text in texts]).encode("ascii", "replace")
        kinds = _KINDS[np.frombuffer(begins, np.uint8)]
        for at in first_of(kinds < 0):
            raise self._unexpected("a state, an action or a transition", texts[at])
        if not self.n_states and len(kinds) and kinds[0] != STATE:
            raise self.file.error("an action or transition stands before the first state")
        states, actions, transitions = (
            list(compress(texts, (kinds == kind).tolist())) for kind in range(3)
        )
        codes = self.states.of(self._after_numbers(states)), self.actions.of(actions)
        target, ends, _ = self.file.columns(transitions, 1, separator=":")
        self.n_states += len(states)
        return kinds, *codes, target[0], ends

    def _after_numbers(self, texts: Sequence[str]) -> Iterator[str]:
        """The texts after the numbers of states, which have no gaps."""
        for state, text in enumerate(texts, start=self.n_states):
            match = _STATE_LINE.fullmatch(text)
            if match is None:
                raise self._unexpected("'state <id> [rewards] labels'", text)
            if match[1] != str(state) and (found := self.file.integer(match[1])) != state:
                expected = f"expected state {state}, not {found}"
                raise self.file.error(f"{expected}: states are numbered without gaps")
            yield match[2]
