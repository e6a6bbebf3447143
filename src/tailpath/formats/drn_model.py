"""From the lines of a DRN file to the model that they describe, compared with the file's header."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tailpath.formats import bulk
from tailpath.formats.drn_header import Header
from tailpath.formats.files import shorten
from tailpath.formats.labelled import LabelledMDP, Labels, Lazy, Reward, labels_of_codes
from tailpath.formats.text import lines_of
from tailpath.graph import Array, FloatArray, IntArray, owners

UNNAMED = "__NOLABEL__"
STATE, ACTION, TRANSITION = range(3)

Rewards = tuple[float, ...]


def writable_action(word: str) -> bool:
    """Storm ends an action's name at the first blank, and takes a bracket for rewards."""
    plain = word.isprintable() and not any(c.isspace() for c in word)
    return plain and word != UNNAMED and not word.startswith("[")


class BodyColumns(NamedTuple):
    """The kind of each line that says something; which of the different lines each state has, and
    each action; target and probability of each transition."""

    kinds: Array
    state_line: Array
    action_line: Array
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
    kinds, state_line, action_line, target, probability = body.columns
    starts_choice = kinds == ACTION
    starts_choice[1:] |= (kinds[1:] == TRANSITION) & (kinds[:-1] == STATE)
    n_states, n_choices = len(state_line), int(np.count_nonzero(starts_choice))
    header.check_count("@nr_states", n_states)
    header.check_count("@nr_choices", n_choices)
    if target.size and (farthest := int(target.max())) >= n_states:
        line = next(
            line
            for line, text in enumerate(lines_of(header.file.data), start=1)
            if re.match(rf"\s*0*{farthest}\s*:", text)
        )
        raise header.error(f"state {farthest} lies outside 0..{n_states - 1}", line)
    choices_before = np.cumsum(starts_choice, dtype=np.int32)
    state_choices = np.append(choices_before[kinds == STATE], n_choices).astype(np.int64)
    if header.is_dtmc and (np.diff(state_choices) > 1).any():
        raise bulk.IrregularError  # line by line it was refused before
    is_transition = kinds == TRANSITION
    transitions_before = np.cumsum(is_transition, dtype=np.int32) - is_transition
    choice_line = np.full(n_choices, -1, dtype=np.int32)
    choice_line[kinds[starts_choice] == ACTION] = action_line
    choice_action, actions = _choice_actions(
        [name for _, name in body.actions],
        choice_line,
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
        labels=_labels(body.states, state_line),
        rewards=_reward_models(header, body, choice_line),
        can_write_action=writable_action,
        extras=header.extras,
    )


def _choice_actions(
    names: Sequence[str],
    choice_line: Array,
    state_choices: IntArray,
    positions_are_unnamed: bool,
) -> tuple[IntArray, list[str]]:
    """The number of each choice's action, -1 where it has no name, and the actions as they appear.

    Storm writes the position of a choice that has no name: with `positions_are_unnamed`, such a
    name is none.
    """
    numbers: dict[str, int] = {}
    action_of_line = [*(numbers.setdefault(name, len(numbers)) for name in names), -1]
    action, actions = np.array(action_of_line)[choice_line], list(numbers)
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
    state_line: Array,
) -> Labels:
    carried: dict[str, list[int]] = {}
    for number, (_, labels) in enumerate(states):
        for label in labels:
            carried.setdefault(label, []).append(number)
    return labels_of_codes(carried, state_line)


def _reward_models(header: Header, body: ParsedBody, choice_line: Array) -> Lazy[Reward]:
    """The reward structures. Those that the header does not name are called rew0, rew1 and so on,
    as Storm does."""
    text, line = header.sections.get("@reward_models", ("", 0))
    names = text.split()
    if len(set(names)) < len(names):
        raise header.error(f"a reward model is named twice in {shorten(text)!r}", line)
    of_states = [rewards for rewards, _ in body.states]
    of_actions = [rewards for rewards, _ in body.actions]
    of_actions.append(())  # of a choice without a line, whose number counts from the end
    width = max(map(len, of_states + of_actions))
    names += [f"rew{at}" for at in range(len(names), width)]

    def column(lists: Sequence[Rewards], numbers: Array, at: int) -> FloatArray:
        values = np.array([row[at] if at < len(row) else 0.0 for row in lists], np.float64)
        return np.asarray(values[numbers])

    def reward_model(name: str) -> Reward:
        at, state_line = names.index(name), body.columns.state_line
        return Reward(column(of_states, state_line, at), column(of_actions, choice_line, at))

    return Lazy(names, reward_model)
