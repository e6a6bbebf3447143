"""Writing UMB: the members that `umb.py` reads, in a tar file packed with gzip."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from tailpath.formats.archives import packed_tar
from tailpath.formats.extras import action_words, extras_line
from tailpath.formats.files import write_bytes
from tailpath.formats.umb import writable_action
from tailpath.formats.writing import choice_costs, probability_columns
from tailpath.graph import BoolArray
from tailpath.model.interval import IntervalSSP, underlying_ssp
from tailpath.model.ssp import SSP
from tailpath.version import __version__


def write(model: SSP | IntervalSSP, path: str) -> None:
    """Write a UMB file, packed with gzip. The goal is the proposition `goal`, the costs are the
    reward `cost`; goals have a loop.
    """
    ssp, kind = underlying_ssp(model), {"type": "double", "size": 64}
    if isinstance(model, IntervalSSP):
        kind = {"type": "double-interval", "size": 128}
    probabilities = probability_columns(model).values()
    goals = np.flatnonzero(ssp.is_goal)
    loop = ssp.state_choices[goals]  # the choice that each goal's loop comes before
    loop_branch = ssp.choice_outcomes[loop]
    least, mixed = choice_costs(ssp)
    entity, costs = "branches", np.insert(ssp.outcome_cost, loop_branch, 0.0)
    if not mixed.any():
        entity, costs = "choices", np.insert(least, loop, 0.0)
    actions, position, action = np.unique(ssp.choice_action, return_index=True, return_inverse=True)
    order = np.argsort(position)  # as they first appear
    words = map(action_words(ssp, writable_action), actions[order].tolist())
    strings = [b"", *map(str.encode, words)]  # the loops of the goals have no name
    lengths = np.insert(np.diff(ssp.choice_outcomes), loop, 1)
    index = _index(ssp, len(lengths), int(lengths.sum()), len(strings), entity)
    index["transition-system"]["branch-probability-type"] = kind
    arrays: dict[str, tuple[Any, str]] = {
        "state-to-choices": (ssp.state_choices + np.append(0, np.cumsum(ssp.is_goal)), "<u8"),
        "choice-to-branches": (np.append(0, np.cumsum(lengths)), "<u8"),
        "branch-to-target": (np.insert(ssp.outcome_target, loop_branch, goals), "<u8"),
        "branch-to-probability": (
            np.stack([np.insert(p, loop_branch, 1.0) for p in probabilities], axis=1),
            "<f8",
        ),
        "actions/choices/values": (np.insert(1 + np.argsort(order)[action], loop, 0), "<u4"),
        "actions/choices/string-mapping": (np.cumsum([0, *map(len, strings)]), "<u8"),
        f"annotations/rewards/cost/{entity}/values": (costs, "<f8"),
    }
    members = {
        "index.json": json.dumps(index, indent=1).encode(),
        **{f"{name}.bin": array.astype(kind).tobytes() for name, (array, kind) in arrays.items()},
        "state-is-initial.bin": _bitset(np.arange(ssp.n_states) == ssp.start_index),
        "actions/choices/strings.bin": b"".join(strings),
        "annotations/aps/goal/states/values.bin": _bitset(ssp.is_goal),
    }
    write_bytes(path, packed_tar(members, "gz"))


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
