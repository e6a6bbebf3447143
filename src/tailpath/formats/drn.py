"""Storm's DRN, `.drn`, and packed as `.drn.gz` or `.drn.xz`: Storm packs a tar file with the text
as its one member.

    header sections, each at most once, then @model, then
      state <id> [state rewards] labels
        action <name> [choice rewards]
          <target> : <probability>

State and choice rewards both count on leaving the state. `init` marks the start; the goal is a
label of the user's choice. DRN has no rewards on branches. Where the outcomes of a choice differ in
cost we write one auxiliary state per (target, cost): the outcome enters it at no cost, and its only
choice pays the cost and goes on to the target. Probabilities stay as they are, the total cost has
the same distribution, and our own reader takes the auxiliary states out again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from tailpath.errors import FormatError
from tailpath.formats.archives import is_tar, packed_tar, tar_members, unpacked
from tailpath.formats.drn_model import UNNAMED, writable_action
from tailpath.formats.drn_text import parse_drn
from tailpath.formats.extras import MARK, action_words, extras_line
from tailpath.formats.files import read_bytes, text_bytes, write_bytes
from tailpath.formats.labelled import LabelledMDP, Lazy, Reward, to_ssp
from tailpath.formats.registry import Reading
from tailpath.formats.writing import (
    blocks,
    choice_costs,
    encoded,
    formatted,
    joined_columns,
    put_before,
    text_column,
)
from tailpath.graph import Array
from tailpath.model.interval import IntervalSSP, underlying_ssp
from tailpath.model.ssp import SSP
from tailpath.options import Progress


def read(path: str, reading: Reading) -> Any:
    """Read a DRN file."""
    return to_ssp(_without_auxiliary_states(_labelled(path, reading)), reading)


def _labelled(path: str, reading: Reading) -> LabelledMDP:
    data = unpacked(path, read_bytes(path))
    if is_tar(data):
        members = tar_members(path, data)
        if len(members) != 1:
            raise FormatError(f"{path}: a packed DRN file holds one file, not {len(members)}")
        data = bytes(*members.values())
    return parse_drn(path, text_bytes(path, data), reading.progress)


# ---------------------------------------------------------------------- auxiliary states


def _without_auxiliary_states(model: LabelledMDP) -> LabelledMDP:
    """Undo the auxiliary states of our own writer, which are the last states of the file."""
    count = model.extras.auxiliary
    if count == 0:
        return model
    n_states = model.n_states - count
    message = (
        f"{model.path}: the {MARK} line speaks of {count} auxiliary states, which the file does"
        " not have as we write them"
    )
    if n_states < 1 or len(model.rewards) != 1:
        raise FormatError(message)
    name, reward = next(iter(model.rewards.items()))
    if reward.choice is None:
        raise FormatError(message)
    n_choices = int(model.state_choices[n_states])
    n_branches = int(model.choice_branches[n_choices])
    choice_cost = reward.choice[:n_choices]
    auxiliary_target, auxiliary_cost = model.target[n_branches:], reward.choice[n_choices:]
    if not (
        len(auxiliary_cost) == len(auxiliary_target) == count
        and (np.diff(model.state_choices[n_states:]) == 1).all()
        and (auxiliary_target < n_states).all()
    ):
        raise FormatError(message)
    target, branch_cost = model.target[:n_branches].copy(), np.zeros(n_branches)
    is_auxiliary = target >= n_states
    auxiliary = target[is_auxiliary] - n_states
    target[is_auxiliary] = auxiliary_target[auxiliary]
    branch_cost[is_auxiliary] = auxiliary_cost[auxiliary]
    return replace(
        model,
        state_choices=model.state_choices[: n_states + 1],
        choice_branches=model.choice_branches[: n_choices + 1],
        target=target,
        probability=model.probability[:n_branches],
        low=None if model.low is None else model.low[:n_branches],
        choice_action=model.choice_action[:n_choices],
        labels=Lazy(model.labels, lambda label: model.labels[label][:n_states]),
        rewards=Lazy([name], lambda _: Reward(choice=choice_cost, branch=branch_cost)),
    )


# ---------------------------------------------------------------------- writing


def write(ssp: SSP | IntervalSSP, path: str, progress: Progress | None = None) -> None:
    """Write a DRN file, packed if its name ends with `.gz` or `.xz`. Labels are `init` and `goal`,
    the reward structure is `cost`.
    """
    pieces = _pieces(ssp, progress)
    if path.lower().endswith((".gz", ".xz")):
        write_bytes(path, packed_tar({"model.drn": b"".join(pieces)}, path[-2:].lower()))
    else:
        write_bytes(path, pieces)


def _pieces(model: SSP | IntervalSSP, progress: Progress | None) -> Iterator[bytes]:
    """The text, some states at a time."""
    ssp = underlying_ssp(model)
    target, choice_cost, auxiliary = _without_branch_costs(ssp)
    n_states = ssp.n_states + len(auxiliary)
    n_choices = ssp.n_choices + int(np.count_nonzero(ssp.is_goal)) + len(auxiliary)
    yield encoded(f"// Written by tailpath\n//{extras_line(ssp, len(auxiliary))}\n")
    kind = "double-interval" if isinstance(model, IntervalSSP) else "double"
    yield encoded(f"@type: MDP\n@value_type: {kind}\n@parameters\n\n@reward_models\ncost\n")
    yield encoded(f"@nr_states\n{n_states}\n@nr_choices\n{n_choices}\n@model\n")
    number, word = text_column(map(str, range(n_states))), action_words(ssp, writable_action)
    for block in blocks(model, progress):
        # What stands before a target: two tabs, or the line of the choice and those of states as
        # well. At last, the lines after all targets.
        heads = np.full(len(block.outcomes) + 1, "\t\t", dtype=object)
        action = formatted(
            block.of_choices(ssp.choice_action), lambda action: f"\taction {word(action)}"
        )
        rewards = formatted(block.of_choices(choice_cost), " [{!r}]\n\t\t".format)
        heads[block.of_choices(ssp.choice_outcomes) - block.outcomes.start] = action + rewards
        heads[-1] = ""
        first_choice = ssp.state_choices[block.states.start : block.states.stop]
        position = ssp.choice_outcomes[first_choice] - block.outcomes.start
        put_before(heads, position.tolist(), _state_lines(ssp, block.states))
        yield joined_columns(
            heads[:-1], number[block.of_outcomes(target)], *block.probabilities(" : ", ", ", "\n")
        )
        yield encoded(heads[-1])
    for state, (end, cost) in enumerate(auxiliary, start=ssp.n_states):
        yield encoded(f"state {state} [0]\n\taction {UNNAMED} [{cost!r}]\n\t\t{end} : 1\n")


def _state_lines(ssp: SSP, states: range) -> Iterator[str]:
    """The line of every state, and for a goal those of its loop."""
    for state in states:
        init = " init" if state == ssp.start_index else ""
        loop = f" goal\n\taction {UNNAMED} [0]\n\t\t{state} : 1" if ssp.is_goal[state] else ""
        yield f"state {state} [0]{init}{loop}\n"


def _without_branch_costs(ssp: SSP) -> tuple[Array, Array, list[tuple[int, float]]]:
    """Targets, choice costs and auxiliary states (target, cost) that carry the same total costs."""
    least, mixed = choice_costs(ssp)
    outcome = np.flatnonzero(mixed[ssp.outcome_choice] & (ssp.outcome_cost != 0))
    auxiliary: dict[tuple[int, float], int] = {}
    pairs = zip(ssp.outcome_target[outcome].tolist(), ssp.outcome_cost[outcome].tolist())
    target, n_states = ssp.outcome_target.copy(), ssp.n_states
    target[outcome] = [auxiliary.setdefault(pair, n_states + len(auxiliary)) for pair in pairs]
    return target, np.where(mixed, 0.0, least), list(auxiliary)
