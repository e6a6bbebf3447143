"""Storm's DRN, `.drn`, and packed as `.drn.gz` or `.drn.xz`: Storm packs a tar file with the text as its one member.

    header sections, each at most once, then @model, then
      state <id> [state rewards] labels
        action <name> [choice rewards]
          <target> : <probability>

State and choice rewards both count on leaving the state. `init` marks the start; the goal is a label of the user's choice. DRN has no rewards
on branches. Where the outcomes of a choice differ in cost we write one auxiliary state per (target, cost): the outcome enters it free, and
its only choice pays the cost and goes on to the target. Probabilities stay as they are, the total cost has the same distribution, and our
own reader folds the auxiliary states back.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from tailpath.errors import FormatError
from tailpath.formats.costs import CostRule
from tailpath.formats.drn_text import UNNAMED, parse, writable_action
from tailpath.formats.extras import MARK, action_words, extras_line
from tailpath.formats.files import read_bytes, read_text, unpacked, write_bytes
from tailpath.formats.labelled import Labelled, Lazy, Reward, to_ssp
from tailpath.formats.reading import Reading
from tailpath.formats.tar import is_tar, tar_members, write_tar
from tailpath.model.ssp import SSP


def read(path: str, reading: Reading) -> SSP:
    """Read a DRN file."""
    rule = CostRule.from_options(1, reading)
    data = unpacked(path, read_bytes(path))
    if is_tar(data):
        members = tar_members(path, data)
        if len(members) != 1:
            raise FormatError(f"{path}: a packed DRN file holds one file, not {len(members)}")
        data = bytes(*members.values())
    return to_ssp(_folded(parse(path, read_text(path, data))), reading, rule)


# ---------------------------------------------------------------------- auxiliary states


def _folded(model: Labelled) -> Labelled:
    """Undo the auxiliary states of our own writer, which are the last states of the file."""
    count = model.extras.auxiliary
    if count == 0:
        return model
    n_states = model.n_states - count
    message = f"{model.where}: the {MARK} line speaks of {count} auxiliary states, which the file does not have as we write them"
    if n_states < 1 or len(model.rewards) != 1:
        raise FormatError(message)
    name, reward = next(iter(model.rewards.items()))
    if reward.choice is None:
        raise FormatError(message)
    n_choices = int(model.state_choices[n_states])
    n_branches = int(model.choice_branches[n_choices])
    onward, paid_at_once, paid = model.target[n_branches:], reward.choice[:n_choices], reward.choice[n_choices:]
    if not (len(paid) == len(onward) == count and (np.diff(model.state_choices[n_states:]) == 1).all() and (onward < n_states).all()):
        raise FormatError(message)
    target = model.target[:n_branches]
    through = target >= n_states
    branch = np.zeros(n_branches)
    branch[through] = paid[target[through] - n_states]
    return replace(
        model,
        state_choices=model.state_choices[: n_states + 1],
        choice_branches=model.choice_branches[: n_choices + 1],
        target=np.where(through, onward[np.where(through, target - n_states, 0)], target),
        probability=model.probability[:n_branches],
        choice_action=model.choice_action[:n_choices],
        labels=Lazy(model.labels, lambda label: model.labels[label][:n_states]),
        rewards=Lazy([name], lambda _: Reward(choice=paid_at_once, branch=branch)),
        initial=model.initial[:n_states],
    )


# ---------------------------------------------------------------------- writing


def write(ssp: SSP, path: str) -> None:
    """Write a DRN file, packed if its name ends with `.gz` or `.xz`. Labels are `init` and `goal`, the reward structure is `cost`."""
    data = ("\n".join(_lines(ssp)) + "\n").encode("utf-8", "backslashreplace")
    if path.lower().endswith(".gz"):
        data = gzip.compress(write_tar({"model.drn": data}), compresslevel=6, mtime=0)
    elif path.lower().endswith(".xz"):
        import lzma

        data = lzma.compress(write_tar({"model.drn": data}))
    write_bytes(path, data)


def _lines(ssp: SSP) -> Iterator[str]:
    target, choice_cost, extra = _without_branch_costs(ssp)
    words = action_words(ssp, writable_action)
    yield "// Written by tailpath"
    yield f"//{extras_line(ssp, len(extra))}"
    yield "@type: MDP\n@value_type: double\n@parameters\n\n@reward_models\ncost\n@nr_states"
    n_goals = int(np.count_nonzero(ssp.is_goal))
    yield f"{ssp.n_states + len(extra)}\n@nr_choices\n{ssp.n_choices + n_goals + len(extra)}\n@model"
    probability = ssp.outcome_probability.tolist()
    choices, outcomes = ssp.state_choices.tolist(), ssp.choice_outcomes.tolist()
    is_goal = ssp.is_goal.tolist()
    for state in range(ssp.n_states):
        labels = (" init" if state == ssp.start_index else "") + (" goal" if is_goal[state] else "")
        yield f"state {state} [0]{labels}"
        if is_goal[state]:
            yield f"\taction {UNNAMED} [0]\n\t\t{state} : 1"
        for choice in range(choices[state], choices[state + 1]):
            yield f"\taction {words[choice]} [{choice_cost[choice]!r}]"
            for outcome in range(outcomes[choice], outcomes[choice + 1]):
                yield f"\t\t{target[outcome]} : {probability[outcome]!r}"
    for number, (onward, cost) in enumerate(extra):
        yield f"state {ssp.n_states + number} [0]\n\taction {UNNAMED} [{cost!r}]\n\t\t{onward} : 1"


def _without_branch_costs(ssp: SSP) -> tuple[list[int], list[float], list[tuple[int, float]]]:
    """Targets, choice costs and auxiliary states (target, cost) that carry the same total costs."""
    first = ssp.choice_outcomes[:-1]
    low, high = np.minimum.reduceat(ssp.outcome_cost, first), np.maximum.reduceat(ssp.outcome_cost, first)
    mixed = low != high
    detour = np.flatnonzero(mixed[ssp.outcome_choice] & (ssp.outcome_cost != 0))
    extra: dict[tuple[int, float], int] = {}
    target = ssp.outcome_target.tolist()
    for outcome, pair in zip(detour.tolist(), zip(ssp.outcome_target[detour].tolist(), ssp.outcome_cost[detour].tolist())):
        target[outcome] = extra.setdefault(pair, ssp.n_states + len(extra))
    return target, np.where(mixed, 0.0, low).tolist(), list(extra)
