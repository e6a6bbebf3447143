"""Where the states of a model are drawn: on its own map, as a graph in layers, or, where there are too many, only those that matter.

A scene is plain data: `places` (per state shown: index, x, y, name, kind), and for each of them its choices: the action's name and its
outcomes, the likeliest move first.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from tailpath.model.ssp import SSP
from tailpath.policies.words import name_in_words

#: Cells of a map and states of a graph that can still be told apart on a screen.
MOST_CELLS, MOST_NODES = 2_500, 250
#: States that stand for a model too large to draw.
FEW = 10


def can_be_drawn(ssp: SSP) -> bool:
    """Whether all states fit the picture."""
    return ssp.n_states <= (MOST_NODES if ssp.geometry is None else MOST_CELLS)


def scene_of(ssp: SSP, matter: Iterable[int] = ()) -> dict[str, Any]:
    """The scene of all states, or of those that matter where the model is too large."""
    geometry = ssp.geometry
    if not can_be_drawn(ssp):
        kept = sorted(dict.fromkeys([ssp.start_index, *matter]))
        places = [_place(ssp, state, 1.0 + 2.5 * (k % 2), 0.7 + 1.0 * k) for k, state in enumerate(kept)]
        return {"kind": "few", "width": 5, "height": 1.0 * len(kept) + 0.6, "places": places, "choices": _choices(ssp, kept)}
    states = list(range(ssp.n_states))
    if geometry is not None:
        placed = [state for state in states if geometry.row[state] >= 0]
        places = [_place(ssp, state, geometry.column[state] + 0.5, geometry.row[state] + 0.5) for state in placed]
        return {"kind": "map", "width": geometry.columns, "height": geometry.rows, "places": places, "choices": _choices(ssp, placed)}
    x, y, width, height = layers(ssp)
    places = [_place(ssp, state, x[state], y[state]) for state in states]
    return {"kind": "graph", "width": width, "height": height, "places": places, "choices": _choices(ssp, states)}


def _place(ssp: SSP, state: int, x: float, y: float) -> dict[str, Any]:
    kind = "goal" if ssp.is_goal[state] else "start" if state == ssp.start_index else ""
    if ssp.geometry is not None and ssp.geometry.kind[state]:
        kind = ssp.geometry.kind[state]
    return {"state": state, "x": x, "y": y, "name": name_in_words(ssp.states[state]), "kind": kind, "goal": bool(ssp.is_goal[state])}


def _choices(ssp: SSP, states: Iterable[int]) -> list[list[dict[str, Any]]]:
    """Per state its choices in order: name and outcomes `[target, probability, cost]`, the likeliest move first."""
    found = []
    for state in states:
        choices = []
        for k in range(int(ssp.state_choices[state]), int(ssp.state_choices[state + 1])):
            outcomes = range(int(ssp.choice_outcomes[k]), int(ssp.choice_outcomes[k + 1]))
            rows = [[int(ssp.outcome_target[o]), float(ssp.outcome_probability[o]), float(ssp.outcome_cost[o])] for o in outcomes]
            rows.sort(key=lambda row: (row[0] == state, -row[1]))
            choices.append({"name": name_in_words(ssp.choice_name(k)), "outcomes": rows})
        found.append(choices)
    return found


def layers(ssp: SSP) -> tuple[list[float], list[float], float, float]:
    """Places for a graph: a column for each number of steps from the start, each column ordered by where its states are reached from."""
    following: list[set[int]] = [set() for _ in range(ssp.n_states)]
    for source, target in zip(ssp.choice_state[ssp.outcome_choice].tolist(), ssp.outcome_target.tolist()):
        following[source].add(target)
    column = {ssp.start_index: 0}
    queue = [ssp.start_index]
    for state in queue:
        for after in sorted(following[state]):
            if after not in column:
                column[after] = column[state] + 1
                queue.append(after)
    last = max(column.values())
    for state in range(ssp.n_states):
        column.setdefault(state, last + 1)
        if ssp.is_goal[state]:
            column[state] = max(column[state], last)
    x, y = [0.0] * ssp.n_states, [0.0] * ssp.n_states
    tallest = max(np.bincount(list(column.values())))
    for place in range(max(column.values()) + 1):
        members = [state for state in range(ssp.n_states) if column[state] == place]
        members.sort(key=lambda state: np.mean([y[s] for s in range(ssp.n_states) if state in following[s] and column[s] < place] or [0.0]))
        for rank, state in enumerate(members):
            x[state] = 1.0 + 2.2 * place
            # A little off the line, so that arrows along a row do not cover each other.
            y[state] = 0.6 + (rank + 0.5) * 1.8 * tallest / len(members) + 0.25 * (place % 2)
    return x, y, 2.0 + 2.2 * max(column.values()), 1.7 + 1.8 * float(tallest)
