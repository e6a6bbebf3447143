"""Writing UMB: the members that `umb.py` reads, in a tar file packed with gzip."""

from __future__ import annotations

import gzip
import json
from typing import Any

import numpy as np

from tailpath.formats.arrays import Array, BoolArray
from tailpath.formats.extras import action_words, extras_line
from tailpath.formats.files import write_bytes
from tailpath.formats.tar import write_tar
from tailpath.formats.umb import writable_action
from tailpath.model.interval import IntervalSSP
from tailpath.model.ssp import SSP
from tailpath.version import __version__


class _WithLoops:
    """Where choices and branches stand once every goal has a loop: each goal pushes what follows it
    by one choice and one branch.
    """

    def __init__(self, ssp: SSP) -> None:
        self.goals = np.flatnonzero(ssp.is_goal)
        self.before = np.concatenate(([0], np.cumsum(ssp.is_goal)))
        self.choice = np.arange(ssp.n_choices) + self.before[ssp.choice_state]
        self.branch = np.arange(ssp.n_outcomes) + self.before[ssp.choice_state[ssp.outcome_choice]]
        self.goal_choice = ssp.state_choices[self.goals] + self.before[self.goals]
        self.goal_branch = (
            ssp.choice_outcomes[ssp.state_choices[self.goals]] + self.before[self.goals]
        )

    def choices(self, values: Any, of_goals: Any, dtype: str) -> Array:
        """An array over choices from the values of the model's own and those of the loops."""
        array = np.empty(len(self.choice) + len(self.goals), dtype=dtype)
        array[self.choice], array[self.goal_choice] = values, of_goals
        return array

    def branches(self, values: Any, of_goals: Any, dtype: str) -> Array:
        array = np.empty(len(self.branch) + len(self.goals), dtype=dtype)
        array[self.branch], array[self.goal_branch] = values, of_goals
        return array


def write(model: SSP | IntervalSSP, path: str) -> None:
    """Write a UMB file, packed with gzip. The goal is the proposition `goal`, the costs are the
    reward `cost`; goals have a loop.
    """
    if isinstance(model, IntervalSSP):
        ssp, chances, kind = (
            model.inside,
            [model.low, model.high],
            {"type": "double-interval", "size": 128},
        )
    else:
        ssp, chances, kind = model, [model.outcome_probability], {"type": "double", "size": 64}
    first = ssp.choice_outcomes[:-1]
    uniform = np.array_equal(
        np.minimum.reduceat(ssp.outcome_cost, first), np.maximum.reduceat(ssp.outcome_cost, first)
    )
    rows = _WithLoops(ssp)
    actions, position, action = np.unique(ssp.choice_action, return_index=True, return_inverse=True)
    order = np.argsort(position)  # as they first appear
    strings = [
        b"",
        *map(str.encode, map(action_words(ssp, writable_action), actions[order].tolist())),
    ]  # the loops of the goals have no name
    lengths = rows.choices(np.diff(ssp.choice_outcomes), 1, "<u8")
    costs = (
        rows.choices(ssp.outcome_cost[first], 0.0, "<f8")
        if uniform
        else rows.branches(ssp.outcome_cost, 0.0, "<f8")
    )
    entity = "choices" if uniform else "branches"
    index = _index(ssp, len(lengths), int(lengths.sum()), len(strings), entity)
    index["transition-system"]["branch-probability-type"] = kind
    ends = [rows.branches(chance, 1.0, "<f8") for chance in chances]
    members = {
        "index.json": json.dumps(index, indent=1).encode(),
        "state-to-choices.bin": (ssp.state_choices + rows.before).astype("<u8").tobytes(),
        "state-is-initial.bin": _bitset(np.arange(ssp.n_states) == ssp.start_index),
        "choice-to-branches.bin": np.concatenate(([0], np.cumsum(lengths))).astype("<u8").tobytes(),
        "branch-to-target.bin": rows.branches(ssp.outcome_target, rows.goals, "<u8").tobytes(),
        "branch-to-probability.bin": np.stack(ends, axis=1).tobytes(),
        "actions/choices/values.bin": (
            rows.choices(1 + np.argsort(order)[action], 0, "<u4").tobytes()
        ),
        "actions/choices/string-mapping.bin": (
            np.cumsum([0, *map(len, strings)]).astype("<u8").tobytes()
        ),
        "actions/choices/strings.bin": b"".join(strings),
        "annotations/aps/goal/states/values.bin": _bitset(ssp.is_goal),
        f"annotations/rewards/cost/{entity}/values.bin": costs.tobytes(),
    }
    write_bytes(path, gzip.compress(write_tar(members), compresslevel=6, mtime=0))


def _bitset(mask: BoolArray) -> bytes:
    data = np.packbits(mask, bitorder="little").tobytes()
    return data + bytes(-len(data) % 8)


def _index(
    ssp: SSP, n_choices: int, n_branches: int, n_actions: int, entity: str
) -> dict[str, Any]:
    double = {"type": "double", "size": 64}
    return {
        "format-version": 1,
        "format-revision": 0,
        "model-data": {"comment": extras_line(ssp)},
        "file-data": {"tool": "tailpath", "tool-version": __version__},
        "transition-system": {
            "time": "discrete",
            "#players": 1,
            "#states": ssp.n_states,
            "#initial-states": 1,
            "#choices": n_choices,
            "#choice-actions": n_actions,
            "#branches": n_branches,
            "#branch-actions": 0,
            "#observations": 0,
        },
        "annotations": {
            "aps": {
                "goal": {
                    "alias": "goal",
                    "applies-to": ["states"],
                    "type": {"type": "bool", "size": 1},
                }
            },
            "rewards": {"cost": {"alias": "cost", "applies-to": [entity], "type": double}},
        },
    }
