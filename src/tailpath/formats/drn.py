"""Storm's DRN, `.drn`, and packed as `.drn.gz` or `.drn.xz`: Storm packs a tar file with the text
as its one member.

    header sections, each at most once, then @model, then
      state <id> [state rewards] labels
        action <name> [choice rewards]
          <target> : <probability>

DRN has no rewards on branches; `outgoing.py` says what we write instead.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Any

import numpy as np

from tailpath.errors import FormatError
from tailpath.formats.archives import is_tar, packed_tar, tar_members, unpacked
from tailpath.formats.drn_text import (
    ACTION,
    STATE,
    TRANSITION,
    Body,
    Header,
    ParsedBody,
    StoredRewards,
)
from tailpath.formats.files import read_bytes, shorten, text_bytes, write_bytes
from tailpath.formats.labelled import LabelledMDP, Labels, Reward, Rewards, labels_of_codes, to_ssp
from tailpath.formats.outgoing import Outgoing, outgoing
from tailpath.formats.registry import Reading
from tailpath.formats.text_files import TextFile
from tailpath.formats.writing import in_blocks, in_turn, share_texts
from tailpath.graph import Array, FloatArray, IntArray, first_of, owners
from tailpath.model.interval import IntervalSSP
from tailpath.model.ssp import SSP

UNNAMED = "__NOLABEL__"


def read(path: str, reading: Reading) -> Any:
    return to_ssp(_labelled(path, reading), reading)


def _labelled(path: str, reading: Reading) -> LabelledMDP:
    data = unpacked(path, read_bytes(path))
    if is_tar(data):
        members = tar_members(path, data)
        if len(members) != 1:
            raise FormatError(f"{path}: a packed DRN file holds one file, not {len(members)}")
        data = bytes(*members.values())
    data = text_bytes(path, data)
    file = TextFile(path, data, reading.progress, comment="//")
    header = Header(file)
    found = _model(header, Body(header).read())
    file.data = b""  # which nobody needs to wait for
    return found


def _model(header: Header, body: ParsedBody) -> LabelledMDP:
    """The model. A choice begins with an action, or with a transition that follows a state."""
    lines, kinds, state_code, action_code, target, probability, low = body[:7]
    starts_choice = kinds == ACTION
    starts_choice[1:] |= (kinds[1:] == TRANSITION) & (kinds[:-1] == STATE)
    n_states, n_choices = len(state_code), int(np.count_nonzero(starts_choice))
    header.check_count("@nr_states", n_states)
    header.check_count("@nr_choices", n_choices)
    if target.size and (farthest := int(target.max())) >= n_states:
        line = lines[np.flatnonzero(kinds == TRANSITION)[target.argmax()]]
        raise header.file.error(f"state {farthest} lies outside 0..{n_states - 1}", line)
    choices_before = np.cumsum(starts_choice, dtype=np.int32)
    state_choices = np.append(choices_before[kinds == STATE], n_choices).astype(np.int64)
    for state in first_of(np.diff(state_choices) > 1) if header.is_dtmc else ():
        second = np.flatnonzero(starts_choice)[state_choices[state] + 1]
        raise header.file.error(f"state {state} of a DTMC has more than one action", lines[second])
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
        low=low,
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
) -> tuple[Array, list[str]]:
    """The number of each choice's action, -1 where it has no name, and the actions as they appear.

    Storm writes the position of a choice that has no name: with `positions_are_unnamed`, such a
    name is none.
    """
    numbers: dict[str, int] = {}
    action_of_code = [*(numbers.setdefault(name, len(numbers)) for name in names), -1]
    action, actions = np.array(action_of_code, np.int32)[choice_code], list(numbers)
    positions = [-1] * len(actions)
    if positions_are_unnamed:
        positions = [int(name) if _is_position(name) else -1 for name in actions]
    position = np.arange(len(action)) - state_choices[owners(state_choices)]
    unnamed = np.array([*positions, -1])[action] == position
    action[unnamed | (action == numbers.get(UNNAMED, -1))] = -1
    return action, actions


def _is_position(name: str) -> bool:
    return name.isascii() and name.isdigit() and len(name) < 18 and name == str(int(name))


def _labels(
    states: Sequence[tuple[StoredRewards, tuple[str, ...]]],
    state_code: Array,
) -> Labels:
    carried: dict[str, list[int]] = {}
    for number, (_, labels) in enumerate(states):
        for label in labels:
            carried.setdefault(label, []).append(number)
    return labels_of_codes(carried, state_code)


def _reward_models(header: Header, body: ParsedBody, choice_code: Array) -> Rewards:
    """The reward structures. Those that the header does not name are called rew0, rew1 and so on,
    as Storm does."""
    text, line = header.sections.get("@reward_models", ("", 0))
    names = text.split()
    if len(set(names)) < len(names):
        raise header.file.error(f"a reward model is named twice in {shorten(text)!r}", line)
    of_states = [rewards for rewards, _ in body.states]
    of_actions = [rewards for rewards, _ in body.actions]
    of_actions.append(())  # of a choice without a line, whose number counts from the end
    state_code, width = body.state_code, max(map(len, of_states + of_actions))
    names += [f"rew{at}" for at in range(len(names), width)]

    def column(lists: Sequence[StoredRewards], numbers: Array, at: int) -> FloatArray:
        values = np.array([row[at] if at < len(row) else 0.0 for row in lists], np.float64)
        return np.asarray(values[numbers])

    def reward_model(at: int) -> Reward:
        return Reward(column(of_states, state_code, at), column(of_actions, choice_code, at))

    return {name: partial(reward_model, at) for at, name in enumerate(names)}


# ---------------------------------------------------------------------- writing


def writable_action(word: str) -> bool:
    """Storm ends an action's name at the first blank, and takes a bracket for rewards."""
    plain = word.isprintable() and not any(c.isspace() for c in word)
    return plain and word != UNNAMED and not word.startswith("[")


def write(model: SSP | IntervalSSP, path: str, *, dtmc: bool = False) -> None:
    """Write a DRN file, packed if its name ends with `.gz` or `.xz`. Labels are `init` and `goal`,
    the reward structure is `cost`.
    """
    pieces = in_blocks(_lines(outgoing(model, writable_action, UNNAMED), dtmc))
    if path.lower().endswith((".gz", ".xz")):
        write_bytes(path, packed_tar({"model.drn": b"".join(pieces)}, path[-2:].lower()))
    else:
        write_bytes(path, pieces)


def _lines(model: Outgoing, dtmc: bool) -> Iterator[str]:
    kind = "double-interval" if model.shares.shape[1] > 1 else "double"
    yield f"// Written by tailpath\n//{model.line}\n@type: {'DTMC' if dtmc else 'MDP'}\n"
    yield f"@value_type: {kind}\n@parameters\n\n@reward_models\ncost\n"
    yield f"@nr_states\n{model.n_states}\n@nr_choices\n{model.n_choices}\n@model\n"
    choices = in_turn(model.choice_action, model.choice_cost, np.diff(model.choice_branches))
    branches = zip(in_turn(model.target), share_texts(model.shares))
    for state, (size,) in enumerate(in_turn(np.diff(model.state_choices))):
        yield " ".join([f"state {state} [0]", *model.labels.get(state, ())]) + "\n"
        for action, cost, n_branches in islice(choices, size):
            yield f"\taction {model.word(action)} [{cost!r}]\n"
            yield from (f"\t\t{end} : {p}\n" for (end,), p in islice(branches, n_branches))
