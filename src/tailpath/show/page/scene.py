"""Where the states of a model are drawn: on its own map, as a graph in layers, or, where there are
too many, only those that matter.

A scene is plain data: `places` (per state shown: index, x, y, name, kind), and for each of them its
choices: the action's name and its outcomes, the likeliest move first.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tailpath.model.ssp import SSP, FloatArray
from tailpath.pictures.layers import layers
from tailpath.policies.drawing import met_most
from tailpath.texts import name as name_in_words

#: Cells of a map and states of a graph that can still be told apart on a screen, and states of
#: those that are too large.
MOST_CELLS, MOST_NODES, MOST_MET = 2_500, 250, 30


def scene_of(ssp: SSP, weight: FloatArray) -> dict[str, Any]:
    """The scene of all states, or, where there are too many, of those with the most `weight`."""
    geometry = ssp.geometry
    if geometry is not None and ssp.n_states <= MOST_CELLS:
        placed = [state for state in range(ssp.n_states) if geometry.row[state] >= 0]
        places = [
            _place(ssp, state, geometry.column[state] + 0.5, geometry.row[state] + 0.5)
            for state in placed
        ]
        return {
            "kind": "map",
            "width": geometry.columns,
            "height": geometry.rows,
            "places": places,
            "choices": _choices(ssp, placed),
        }
    every = ssp.n_states <= MOST_NODES
    states = list(range(ssp.n_states)) if every else met_most(ssp, weight, MOST_MET)
    x, y, width, height = layers(ssp, states)
    places = [_place(ssp, state, x[state], y[state]) for state in states]
    kind = "graph" if every else "part"
    return {
        "kind": kind,
        "width": width,
        "height": height,
        "places": places,
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
        for k in range(int(ssp.state_choices[state]), int(ssp.state_choices[state + 1])):
            outcomes = range(int(ssp.choice_outcomes[k]), int(ssp.choice_outcomes[k + 1]))
            rows = [
                [
                    int(ssp.outcome_target[o]),
                    float(ssp.outcome_probability[o]),
                    float(ssp.outcome_cost[o]),
                ]
                for o in outcomes
            ]
            rows.sort(key=lambda row: (row[0] == state, -row[1]))
            choices.append({"name": name_in_words(ssp.choice_name(k)), "outcomes": rows})
        found.append(choices)
    return found
