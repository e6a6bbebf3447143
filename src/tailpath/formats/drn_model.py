"""The header of a DRN file, up to `@model`, and the model that the lines after it describe, which
is compared with the header.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from tailpath.formats import bulk
from tailpath.formats.extras import MARK, Extras
from tailpath.formats.files import shorten
from tailpath.formats.labelled import LabelledMDP, Labels, Lazy, Reward, labels_of_codes
from tailpath.formats.text import TextFile, lines_of
from tailpath.graph import Array, FloatArray, IntArray, owners

_LABEL = re.compile(r'\s+|"([^"]+)"(?=["\s]|$)|([^\s"]+)(?=\s|$)')
_SECTIONS = ("@parameters", "@reward_models", "@nr_states", "@nr_choices")

_VALUES = ("double", "rational", "double-interval", "rational-interval")


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
        """Read up to `@model`."""
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
        """Whether probabilities are intervals."""
        return self.sections.get("@value_type", ("", 0))[0].endswith("-interval")

    def labels(self, text: str) -> Iterator[str]:
        """The labels that stand after a state."""
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


# ---------------------------------------------------------------------- the model


UNNAMED = "__NOLABEL__"
STATE, ACTION, TRANSITION = range(3)

Rewards = tuple[float, ...]


def writable_action(word: str) -> bool:
    """Storm ends an action's name at the first blank, and takes a bracket for rewards."""
    plain = word.isprintable() and not any(c.isspace() for c in word)
    return plain and word != UNNAMED and not word.startswith("[")


class BodyColumns(NamedTuple):
    """The kind of each line that says something; codes for the lines of states and of actions, the
    same for equal ones; target and probability of each transition."""

    kinds: Array
    state_code: Array
    action_code: Array
    target: Array
    probability: FloatArray


class ParsedBody(NamedTuple):
    """A body: its columns; rewards and labels of each different state, rewards and name of each
    different action."""

    columns: BodyColumns
    states: Sequence[tuple[Rewards, tuple[str, ...]]]
    actions: Sequence[tuple[Rewards, str]]


def build_model(header: Header, body: ParsedBody) -> LabelledMDP:
    """The model. A choice begins with an action, or with a transition that follows a state."""
    kinds, state_code, action_code, target, probability = body.columns
    starts_choice = kinds == ACTION
    starts_choice[1:] |= (kinds[1:] == TRANSITION) & (kinds[:-1] == STATE)
    n_states, n_choices = len(state_code), int(np.count_nonzero(starts_choice))
    header.check_count("@nr_states", n_states)
    header.check_count("@nr_choices", n_choices)
    if target.size and (farthest := int(target.max())) >= n_states:
        line = next(
            line
            for line, text in enumerate(lines_of(header.file.data), start=1)
            if re.match(rf"\s*0*{farthest}\s*:", text)
        )
        raise header.file.error(f"state {farthest} lies outside 0..{n_states - 1}", line)
    choices_before = np.cumsum(starts_choice, dtype=np.int32)
    state_choices = np.append(choices_before[kinds == STATE], n_choices).astype(np.int64)
    if header.is_dtmc and (np.diff(state_choices) > 1).any():
        raise bulk.IrregularError  # line by line it was refused before
    is_transition = kinds == TRANSITION
    transitions_before = np.cumsum(is_transition, dtype=np.int32) - is_transition
    choice_code = np.full(n_choices, -1, dtype=np.int32)
    choice_code[kinds[starts_choice] == ACTION] = action_code
    choice_action, actions = _choice_actions(
        [name for _, name in body.actions],
        choice_code,
        state_choices,
        positions_are_unnamed=not header.extras.has("actions"),
    )
    return LabelledMDP(
        path=header.file.path,
        state_choices=state_choices,
        choice_branches=np.append(transitions_before[starts_choice], len(target)).astype(np.int64),
        target=target,
        probability=probability,
        choice_action=choice_action,
        actions=actions,
        labels=_labels(body.states, state_code),
        rewards=_reward_models(header, body, choice_code),
        can_write_action=writable_action,
        extras=header.extras,
    )


def _choice_actions(
    names: Sequence[str],
    choice_code: Array,
    state_choices: IntArray,
    positions_are_unnamed: bool,
) -> tuple[IntArray, list[str]]:
    """The number of each choice's action, -1 where it has no name, and the actions as they appear.

    Storm writes the position of a choice that has no name: with `positions_are_unnamed`, such a
    name is none.
    """
    numbers: dict[str, int] = {}
    action_of_code = [*(numbers.setdefault(name, len(numbers)) for name in names), -1]
    action, actions = np.array(action_of_code)[choice_code], list(numbers)
    positions = [-1] * len(actions)
    if positions_are_unnamed:
        positions = [int(name) if _is_position(name) else -1 for name in actions]
    position = np.arange(len(action)) - state_choices[owners(state_choices)]
    unnamed = np.array([*positions, -1])[action] == position
    action = np.where(unnamed | (action == numbers.get(UNNAMED, -1)), -1, action)
    return action, actions


def _is_position(name: str) -> bool:
    return name.isascii() and name.isdigit() and len(name) < 18 and name == str(int(name))


def _labels(
    states: Sequence[tuple[Rewards, tuple[str, ...]]],
    state_code: Array,
) -> Labels:
    carried: dict[str, list[int]] = {}
    for number, (_, labels) in enumerate(states):
        for label in labels:
            carried.setdefault(label, []).append(number)
    return labels_of_codes(carried, state_code)


def _reward_models(header: Header, body: ParsedBody, choice_code: Array) -> Lazy[Reward]:
    """The reward structures. Those that the header does not name are called rew0, rew1 and so on,
    as Storm does."""
    text, line = header.sections.get("@reward_models", ("", 0))
    names = text.split()
    if len(set(names)) < len(names):
        raise header.file.error(f"a reward model is named twice in {shorten(text)!r}", line)
    of_states = [rewards for rewards, _ in body.states]
    of_actions = [rewards for rewards, _ in body.actions]
    of_actions.append(())  # of a choice without a line, whose number counts from the end
    width = max(map(len, of_states + of_actions))
    names += [f"rew{at}" for at in range(len(names), width)]

    def column(lists: Sequence[Rewards], numbers: Array, at: int) -> FloatArray:
        values = np.array([row[at] if at < len(row) else 0.0 for row in lists], np.float64)
        return np.asarray(values[numbers])

    def reward_model(name: str) -> Reward:
        at, state_code = names.index(name), body.columns.state_code
        return Reward(column(of_states, state_code, at), column(of_actions, choice_code, at))

    return Lazy(names, reward_model)
