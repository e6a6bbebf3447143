"""The text of a DRN file, in one pass over its lines: first the header up to `@model`, then states, choices and transitions.

The header fixes what the body is checked against. Of the body, transitions are most of the text: they are held as text and turned into
numbers many at a time; all else is read line by line.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tailpath.errors import FormatError
from tailpath.formats.extras import MARK, Extras
from tailpath.formats.files import shorten
from tailpath.formats.labelled import Labelled, Lazy, Reward, marked
from tailpath.formats.text import BLOCK, Numbers, lines_of
from tailpath.options import Progress

UNNAMED = "__NOLABEL__"
_STATE = re.compile(r"state\s+(\S+)\s*(?:\[([^\]]*)\])?(.*)")
_ACTION = re.compile(r"action\s+(\S+)\s*(?:\[([^\]]*)\])?")
_LABEL = re.compile(r'\s+|"([^"]+)"(?=["\s]|$)|([^\s"]+)(?=\s|$)')
_SECTIONS = ("@parameters", "@reward_models", "@nr_states", "@nr_choices")

Lines = Iterator[tuple[int, str]]


def writable_action(word: str) -> bool:
    """Storm ends an action's name at the first blank, and takes a bracket for rewards."""
    return word != UNNAMED and not word.startswith("[") and word.isprintable() and not any(c.isspace() for c in word)


def parse(path: str, text: str, progress: Progress | None = None) -> Labelled:
    """The model that a text describes; `path` is for messages."""
    lines = enumerate(lines_of(text, progress), start=1)
    header = Header(path)
    header.read(lines)
    body = Body(header)
    body.read(lines)
    return body.model()


@dataclass
class Header:
    """The sections by name, each with its line, and what stands between them."""

    path: str
    sections: dict[str, tuple[str, int]] = field(default_factory=dict)
    placeholders: dict[str, float] = field(default_factory=dict)
    extras: Extras = field(default_factory=Extras)

    def read(self, lines: Lines) -> None:
        """Read up to `@model`."""
        line = 0
        for line, raw in lines:
            text = raw.strip()
            if text == "@placeholders":
                line, text = self._read_placeholders(lines, line)
            if text.startswith(f"//{MARK} "):
                self.extras = Extras.parse(text[len(MARK) + 3 :], f"{self.path}:{line}")
            elif not text or text.startswith("//"):
                continue
            elif text == "@model":
                for section in ("@type", "@nr_states"):
                    if section not in self.sections:
                        raise self.fail(line, f"the section {section} is missing")
                return
            elif text in _SECTIONS:
                self._add(text, next(lines, (0, ""))[1].strip(), line)
            elif text.startswith(("@type:", "@value_type:")):
                name, _, value = text.partition(":")
                self._add(name, value.strip(), line)
            else:
                raise self.fail(line, f"unknown header line {shorten(text)!r}")
        raise self.fail(line, "the section @model is missing")

    def _add(self, name: str, value: str, line: int) -> None:
        if name in self.sections:
            raise self.fail(line, f"a second section {name}")
        self.sections[name] = (value, line)
        if name == "@type" and value.upper() not in ("MDP", "DTMC"):
            raise self.fail(line, f"the type {shorten(value)!r} is neither MDP nor DTMC")
        if name == "@value_type" and value not in ("double", "rational"):
            raise self.fail(line, f"the value type {shorten(value)!r} is neither double nor rational")
        if name == "@parameters" and value:
            raise self.fail(line, "a model with parameters has no numbers yet: instantiate it first")

    def _read_placeholders(self, lines: Lines, line: int) -> tuple[int, str]:
        """Read `$name : value` up to the next section, whose line is returned."""
        for line, raw in lines:
            text = raw.strip()
            if text.startswith("@"):
                return line, text
            name, colon, value = text.partition(":")
            if not colon or not name.startswith("$"):
                raise self.fail(line, "expected a placeholder '$name : value'")
            self.placeholders[name.strip()] = Numbers(self.path).number(value, line)
        return line, ""

    def value(self, text: str, line: int) -> float:
        """A number, or the placeholder that stands for one."""
        if "$" in text:
            if text.strip() not in self.placeholders:
                raise self.fail(line, f"unknown placeholder {shorten(text.strip())!r}")
            return self.placeholders[text.strip()]
        return Numbers(self.path).number(text, line)

    def labels(self, text: str, line: int) -> Iterator[str]:
        """The labels that stand after a state."""
        position = 0
        while position < len(text):
            label = _LABEL.match(text, position)
            if label is None:
                raise self.fail(line, f"cannot read the labels {shorten(text.strip())!r}")
            position = label.end()
            if label[1] or label[2]:
                yield label[1] or label[2]

    def compare(self, section: str, found: int) -> None:
        text, line = self.sections.get(section, (str(found), 0))
        if Numbers(self.path).whole(text, line) != found:
            raise self.fail(line, f"{section} says {text.strip()}, the file has {found}")

    @property
    def deterministic(self) -> bool:
        return self.sections["@type"][0].upper() == "DTMC"

    def fail(self, line: int, message: str) -> FormatError:
        return FormatError(f"{self.path}:{line}: {message}")


class _Transitions:
    """Lines `target : probability`, held as text until there are enough of them to be worth a sweep."""

    def __init__(self, header: Header) -> None:
        self.header = header
        self.texts: list[str] = []
        self.lines: list[int] = []
        self.blocks: list[tuple[NDArray[np.int64], NDArray[np.float64]]] = []
        self.n_before = 0
        self.farthest = (-1, 0)

    def __len__(self) -> int:
        return self.n_before + len(self.texts)

    def add(self, text: str, line: int) -> None:
        self.texts.append(text)
        self.lines.append(line)

    def flush(self, least: int = 0) -> None:
        """Turn the text into numbers, if there is that much of it."""
        if len(self.texts) < least:
            return
        parts = [text.partition(":") for text in self.texts]
        for (_, colon, _), line in zip(parts, self.lines):
            if not colon:
                raise self.header.fail(line, "expected 'target : probability'")
        numbers = Numbers(self.header.path)
        target = numbers.wholes([part[0].rstrip() for part in parts], self.lines)
        values = [part[2].strip() for part in parts]
        if self.header.placeholders:
            probability = np.array([self.header.value(value, line) for value, line in zip(values, self.lines)], dtype=np.float64)
        else:
            probability = numbers.numbers(values, self.lines)
        if target.size and target.max() > self.farthest[0]:
            self.farthest = (int(target.max()), self.lines[int(target.argmax())])
        self.blocks.append((target, probability))
        self.n_before += len(self.texts)
        self.texts.clear()
        self.lines.clear()


class Rewards:
    """Lists of rewards, as states and choices have them. A list that is repeated is understood once; its number stands for it."""

    def __init__(self, header: Header) -> None:
        self.header = header
        self.known: dict[str | None, int] = {None: 0}
        self.lists: list[tuple[float, ...]] = [()]

    def parse(self, text: str | None, line: int) -> int:
        if text is not None and text not in self.known:
            self.lists.append(tuple(self.header.value(part, line) for part in text.split(",")))
            self.known[text] = len(self.lists) - 1
        return self.known[text]

    def structures(self, of_states: ArrayLike, of_choices: ArrayLike) -> Lazy[Reward]:
        """The reward structures, from the number of each state's and each choice's list.

        Those that the header does not name are called rew0, rew1 and so on, as Storm does.
        """
        text, line = self.header.sections.get("@reward_models", ("", 0))
        names = text.split()
        if len(set(names)) < len(names):
            raise self.header.fail(line, f"a reward model is named twice in {shorten(text)!r}")
        width = max(map(len, self.lists))
        position = {name: at for at, name in enumerate(names + [f"rew{at}" for at in range(len(names), width)])}

        def column(numbers: ArrayLike, at: int) -> NDArray[np.float64]:
            values = np.array([row[at] if at < len(row) else 0.0 for row in self.lists], dtype=np.float64)
            return np.asarray(values[np.asarray(numbers, dtype=np.int64)])

        return Lazy(position, lambda name: Reward(column(of_states, position[name]), column(of_choices, position[name])))


class Body:
    """States with their labels, choices with their actions: where those of each begin."""

    def __init__(self, header: Header) -> None:
        self.header = header
        self.transitions, self.rewards = _Transitions(header), Rewards(header)
        self.state_choices: list[int] = []
        self.state_rewards: list[int] = []
        self.choice_branches: list[int] = []
        self.choice_rewards: list[int] = []
        self.choice_action: list[int] = []
        self.actions: dict[str, int] = {}
        self.labels: dict[str, list[int]] = {}
        self.choice_open = False

    def read(self, lines: Lines) -> None:
        for line, raw in lines:
            text = raw.strip()
            if text[:1].isdigit():
                if not self.choice_open:
                    self._new_choice(None, 0, line)
                self.transitions.add(text, line)
            elif text.startswith("state"):
                self.transitions.flush(BLOCK)
                self._read_state(text, line)
            elif text.startswith("action"):
                match = _ACTION.fullmatch(text)
                if match is None:
                    raise self.header.fail(line, f"expected 'action <name> [rewards]', not {shorten(text)!r}")
                self._new_choice(match[1], self.rewards.parse(match[2], line), line)
            elif text and not text.startswith("//"):
                raise self.header.fail(line, f"expected a state, an action or a transition, not {shorten(text)!r}")
        self.transitions.flush()

    def _read_state(self, text: str, line: int) -> None:
        match = _STATE.fullmatch(text)
        if match is None:
            raise self.header.fail(line, f"expected 'state <id> [rewards] labels', not {shorten(text)!r}")
        state = len(self.state_choices)
        if Numbers(self.header.path).whole(match[1], line) != state:
            raise self.header.fail(line, f"expected state {state}, not {shorten(match[1])}: states are numbered without gaps")
        self.state_choices.append(len(self.choice_branches))
        self.state_rewards.append(self.rewards.parse(match[2], line))
        self.choice_open = False
        if match[3].startswith("["):
            raise self.header.fail(line, "the rewards have no end")
        for label in self.header.labels(match[3], line):
            self.labels.setdefault(label, []).append(state)

    def _new_choice(self, name: str | None, rewards: int, line: int) -> None:
        if not self.state_choices:
            raise self.header.fail(line, "an action or a transition before the first state")
        position = len(self.choice_branches) - self.state_choices[-1]
        if position and self.header.deterministic:
            raise self.header.fail(line, "a state of a DTMC has one action")
        self.choice_branches.append(len(self.transitions))
        self.choice_rewards.append(rewards)
        self.choice_open = True
        # Storm writes the position where a choice has no name.
        unnamed = name is None or name == UNNAMED or (name == str(position) and self.header.extras.actions is None)
        self.choice_action.append(-1 if unnamed or name is None else self.actions.setdefault(name, len(self.actions)))

    def model(self) -> Labelled:
        target, probability = (np.concatenate(column) for column in zip(*self.transitions.blocks))
        farthest, line = self.transitions.farthest
        return assembled(
            self.header,
            np.array([*self.state_choices, len(self.choice_branches)], dtype=np.int64),
            np.array([*self.choice_branches, len(target)], dtype=np.int64),
            target,
            probability,
            (np.array(self.choice_action, dtype=np.int64), list(self.actions)),
            self.labels,
            lambda: self.rewards.structures(self.state_rewards, self.choice_rewards),
            farthest,
            line,
        )


def assembled(
    header: Header,
    state_choices: NDArray[Any],
    choice_branches: NDArray[Any],
    target: NDArray[Any],
    probability: NDArray[np.float64],
    choices: tuple[NDArray[Any], list[str]],
    members: Mapping[str, Sequence[int] | NDArray[Any]],
    rewards: Callable[[], Lazy[Reward]],
    farthest: int,
    line: int,
) -> Labelled:
    """The model, compared with what the header says of it. `choices` are the number of each choice's action and the actions; `farthest` is the
    largest target, and stands on that line.
    """
    n_states, n_choices = len(state_choices) - 1, len(choice_branches) - 1
    header.compare("@nr_states", n_states)
    header.compare("@nr_choices", n_choices)
    if farthest >= n_states:
        raise header.fail(line, f"state {farthest} lies outside 0..{n_states - 1}")
    labels = marked(members, n_states)
    return Labelled(
        where=header.path,
        state_choices=state_choices,
        choice_branches=choice_branches,
        target=target,
        probability=probability,
        choice_action=choices[0],
        actions=choices[1],
        labels=labels,
        rewards=rewards(),
        initial=labels["init"] if "init" in labels else np.zeros(n_states, dtype=np.bool_),
        can_write_action=writable_action,
        extras=header.extras,
    )
