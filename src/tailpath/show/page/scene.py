"""Where the states of a model are drawn: on its own map, as a graph in layers, or, where there are
too many, only those that matter.

A scene is plain data: `places` (per state shown: index, x, y, name, kind), and for each of them its
choices: the action's name and its outcomes, the likeliest move first.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tailpath.graph import FloatArray, members
from tailpath.model.ssp import SSP
from tailpath.pictures.states import layers
from tailpath.policies.display import met_most
from tailpath.texts import name as name_in_words

#: Cells of a map and states of a graph that can still be told apart on a screen, and states of
#: those that are too large.
MAX_CELLS, MAX_NODES = 2_500, 250
MAX_MET = 30


def scene_of(ssp: SSP, weight: FloatArray) -> dict[str, Any]:
    """The scene of all states, or, where there are too many, of those with the most `weight`."""
    geometry = ssp.geometry
    every = ssp.n_states <= MAX_NODES
    if geometry is not None and ssp.n_states <= MAX_CELLS:
        kind, states = "map", [s for s in range(ssp.n_states) if geometry.row[s] >= 0]
        x, y = ([cell + 0.5 for cell in cells] for cells in (geometry.column, geometry.row))
        size: tuple[float, float] = geometry.columns, geometry.rows
    else:
        kind, states = "graph", list(range(ssp.n_states))
        if not every:
            kind, states = "part", met_most(ssp, weight, MAX_MET)
        x, y, width, height = layers(ssp, states)
        size = width, height
    return {
        "kind": kind,
        "width": size[0],
        "height": size[1],
        "places": [_place(ssp, state, x[state], y[state]) for state in states],
        "choices": _choices(ssp, states),
    }


def _place(ssp: SSP, state: int, x: float, y: float) -> dict[str, Any]:
    kind = "goal" if ssp.is_goal[state] else "start" if state == ssp.start_index else ""
    if ssp.geometry is not None and ssp.geometry.kind[state]:
        kind = ssp.geometry.kind[state]
    return {
        "state": state,
        "x": x,
        "y": y,
        "name": name_in_words(ssp.states[state]),
        "kind": kind,
        "goal": bool(ssp.is_goal[state]),
    }


def _choices(ssp: SSP, states: Iterable[int]) -> list[list[dict[str, Any]]]:
    """Per state its choices in order: name and outcomes `[target, probability, cost]`, the
    likeliest move first.
    """
    found = []
    for state in states:
        choices = []
        for k in members(ssp.state_choices, state):
            span = slice(*ssp.choice_outcomes[k : k + 2].tolist())
            columns = ssp.outcome_target, ssp.outcome_probability, ssp.outcome_cost
            rows = [list(row) for row in zip(*(column[span].tolist() for column in columns))]
            rows.sort(key=lambda row: (row[0] == state, -row[1]))
            choices.append({"name": name_in_words(ssp.choice_name(k)), "outcomes": rows})
        found.append(choices)
    return found
