"""The states of a model with what is decided or found there: on its map; without one as a graph,
with a column for each number of steps from the start.

`ssp` is any model: its geometry, choices and outcomes are looked at and nothing else. `choices`
gives a choice index per state, -1 for none; `strength`, in [0, 1], how boldly to draw it; `heat` a
number per state that colours it. A graph may be drawn of some `states` alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tailpath.pictures.style import COLOURS, Axes, matplotlib, own_axes, without_mathematics
from tailpath.texts import name as name_in_words

#: Columns of a part of a model; states that are far from each other share one.
MAX_COLUMNS = 14
#: Times that the columns of a graph are put in order.
SWEEPS = 5
#: Grey levels and light colours of the kinds of cells that we know; others are nearly white.
KINDS = {
    "river": "#d5e8f5",
    "bridge": "#dcbf8e",
    "bank": "#f0e8d4",
    "waterfall": "#7c9cc6",
    "floor": "#f7f7f4",
    "obstacle": "#858993",
    "goal": "#9bd3a5",
    "hole": "#5b7fb0",
    "dead end": "#b9b3c6",
    "lava": "#e8825a",
    "cliff": "#a58a6f",
}
#: What can be told apart without colours, too: kinds of cells where a run is stopped or lost.
HATCHES = {
    "obstacle": "////",
    "waterfall": "...",
    "hole": "xx",
    "dead end": "xx",
    "lava": "xx",
    "cliff": "xx",
}
PLAIN = "#eef0f4"
CENTRED = {"ha": "center", "va": "center"}
#: States of a graph whose names can still be read.
NAMED = 60
#: Inches of a cell, and the least and the most of a picture.
CELL, LEAST = 0.32, 3.0
MOST = 9.0


def layers(ssp: Any, states: Sequence[int]) -> tuple[list[float], list[float], float, float]:
    """`x` and `y` of the states, 0 for others, with the width and the height they take. A state
    stands in a column near those that it leads to and that lead to it; goals in the last.
    """
    source, target = ssp.choice_state[ssp.outcome_choice], ssp.outcome_target
    shown = np.zeros(ssp.n_states, dtype=np.bool_)
    shown[list(states)] = True
    column = _columns(ssp, shown)
    near: dict[int, set[int]] = {state: set() for state in states}
    for one, other in zip(source[shown[source]].tolist(), target[shown[source]].tolist()):
        if shown[other] and column[one] != column[other]:
            near[one].add(other)
            near[other].add(one)
    by_column = [
        [s for s in states if column[s] == k]
        for k in range(max(map(column.__getitem__, states)) + 1)
    ]
    x, y, tallest = [0.0] * ssp.n_states, [0.0] * ssp.n_states, max(map(len, by_column))
    for sweep in range(SWEEPS):
        ahead = sweep % 2  # by those before, then by those behind, time and again
        for position in reversed(range(len(by_column))) if ahead else range(len(by_column)):
            own = by_column[position]
            sides = {
                s: [y[t] for t in near[s] if (column[t] > position) == bool(ahead)] for s in own
            }
            own.sort(key=lambda s: float(np.mean(sides[s])) if sides[s] else y[s])
            for rank, state in enumerate(own):
                x[state] = 0.9 + 2.2 * position
                # A little off the line, so that arrows along a row do not cover each other.
                y[state] = (rank + 0.5) * 1.8 * tallest / len(own) + 0.25 * (position % 2)
    return x, y, 2.2 * len(by_column) - 0.4, 0.25 + 1.8 * float(tallest)


def _columns(ssp: Any, shown: NDArray[np.bool_]) -> list[int]:
    """The column of every state: its steps from the start, without the numbers that no state of
    these has.
    """
    row_start, target = ssp.by_state.row_start.tolist(), ssp.outcome_target.tolist()
    steps = {ssp.start_index: 0}
    queue = [ssp.start_index]
    for state in queue:
        for after in target[row_start[state] : row_start[state + 1]]:
            if after not in steps:
                steps[after] = steps[state] + 1
                queue.append(after)
    far = max(steps.values())
    depth = np.array([steps.get(state, far + 1) for state in range(ssp.n_states)])
    depth[ssp.is_goal] = np.maximum(depth[ssp.is_goal], far)
    found, column = np.unique(np.where(shown, depth, 0), return_inverse=True)
    if len(found) > MAX_COLUMNS and not shown.all():
        column = column * (MAX_COLUMNS - 1) // (len(found) - 1)
    columns: list[int] = column.tolist()
    return columns


def plot_states(
    ssp: Any,
    choices: NDArray[Any] | None = None,
    strength: NDArray[Any] | None = None,
    heat: NDArray[Any] | None = None,
    ax: Axes | None = None,
    title: str = "",
    heat_label: str = "",
    states: Sequence[int] | None = None,
) -> Axes:
    """Draw the states; returns the Axes."""
    strength = np.ones(ssp.n_states) if strength is None else strength
    if ssp.geometry is not None:
        width, height = ssp.geometry.columns * CELL, ssp.geometry.rows * CELL
        factor = min(max(LEAST / min(width, height), 1.0), MOST / max(width, height))
        ax = own_axes(ax, max(width * factor, LEAST) + 1.2, height * factor + 0.8)
        _draw_map(ssp, choices, strength, heat, ax, heat_label)
    else:
        shown = range(ssp.n_states) if states is None else states
        x, y, width, height = layers(ssp, shown)
        ax = own_axes(ax, min(1.2 * width, 12.0), min(1.0 * height + 0.3, 9.0))
        _draw_graph(ssp, shown, choices, strength, ax, (np.array(x), np.array(y)))
        _draw_nodes(ssp, shown, choices, heat, ax, (np.array(x), np.array(y)), heat_label)
        ax.set(xlim=(0, width), ylim=(height, 0))
        ax.set_axis_off()
    ax.set_title(without_mathematics(title), fontsize=11)
    return ax


def plot_run(
    ssp: Any,
    visited: Sequence[int],
    ax: Axes | None = None,
    title: str = "",
    states: Sequence[int] | None = None,
) -> Axes:
    """Draw a run through these states, in order, on the map or the graph; returns the Axes. Steps
    to states that are not drawn are left out.
    """
    ax = plot_states(ssp, ax=ax, title=title, states=states)
    if ssp.geometry is not None:
        x, y = np.array(ssp.geometry.column) + 0.5, np.array(ssp.geometry.row) + 0.5
        drawn = set(np.flatnonzero(np.array(ssp.geometry.row) >= 0).tolist())
        shrink, bend = 0, 0.0
    else:
        drawn = set(range(ssp.n_states) if states is None else states)
        x, y = map(np.array, layers(ssp, sorted(drawn))[:2])
        shrink, bend = 9, 0.14
    steps = Counter((a, b) for a, b in pairwise(visited) if a != b and a in drawn and b in drawn)
    for (a, b), times in steps.items():
        look = {"color": COLOURS[1], "linewidth": 1.2 + min(np.log2(times), 4.0) / 2}
        ends = (x[a], y[a]), (x[b], y[b])
        _arrow(ax, *ends, bend, shrink, zorder=5, mutation_scale=11, **look)
    for state, times in Counter(visited).items():  # where it dwells: the area is how often
        if times > 1 and state in drawn:
            ax.scatter(
                x[state], y[state], s=30 * min(times, 20), color=COLOURS[1], alpha=0.4, zorder=4
            )
            ax.text(x[state] + 0.15, y[state] - 0.15, f"×{times}", fontsize=7, zorder=6)
    for state, mark in ((visited[0], "o"), (visited[-1], "s")):
        if state in drawn:
            edge: dict[str, Any] = {"markersize": 6, "markeredgecolor": "white", "zorder": 6}
            ax.plot(x[state], y[state], mark, color=COLOURS[1], **edge)
    return ax


def _arrow(
    ax: Any, begin: Any, end: Any, bend: float, shrink: int, zorder: int, **look: Any
) -> None:
    """An arrow that is bent, and ends a little before the middle of a node."""
    shape = {"arrowstyle": "-|>", "connectionstyle": f"arc3,rad={bend}"}
    ends = {"shrinkA": shrink, "shrinkB": shrink}
    ax.annotate("", end, begin, arrowprops={**shape, **ends, **look}, zorder=zorder)


def _draw_map(
    ssp: Any, choices: Any, strength: NDArray[Any], heat: NDArray[Any] | None, ax: Any, label: str
) -> None:
    shapes = matplotlib("patches")
    geometry = ssp.geometry
    if heat is not None:
        grid = np.zeros((geometry.rows, geometry.columns))
        row, column = np.array(geometry.row), np.array(geometry.column)
        grid[row[row >= 0], column[row >= 0]] = np.maximum(heat, 0.0)[row >= 0]
        drawn = ax.imshow(grid, cmap="Reds", extent=(0, geometry.columns, geometry.rows, 0))
        ax.figure.colorbar(drawn, ax=ax, shrink=0.7, label=label)
    for state in range(ssp.n_states):
        row, column = geometry.row[state], geometry.column[state]
        if row < 0:
            continue
        kind = geometry.kind[state] or ("goal" if ssp.is_goal[state] else "")
        fill = KINDS.get(kind, PLAIN) if heat is None else "none"
        edge: dict[str, Any] = {"edgecolor": "0.75", "linewidth": 0.4}
        if heat is not None and kind in HATCHES:
            edge["hatch"] = HATCHES[kind]
        ax.add_patch(shapes.Rectangle((column, row), 1, 1, facecolor=fill, **edge))
        if ssp.is_goal[state]:
            ax.text(column + 0.5, row + 0.5, "G", fontsize=9, fontweight="bold", **CENTRED)
        if state == ssp.start_index:
            frame: dict[str, Any] = {"fill": False, "edgecolor": "black", "linewidth": 1.8}
            ax.add_patch(shapes.Rectangle((column + 0.05, row + 0.05), 0.9, 0.9, zorder=4, **frame))
    if choices is not None:
        _arrows(ssp, choices, strength, ax)
    limits = {"xlim": (0, geometry.columns), "ylim": (geometry.rows, 0)}
    ax.set(xticks=[], yticks=[], aspect="equal", **limits)


def _arrows(ssp: Any, choices: NDArray[Any], strength: NDArray[Any], ax: Any) -> None:
    """An arrow in each cell towards where its choice most probably leads, its name where that is no
    one way; none where all choices are the same.
    """
    geometry = ssp.geometry
    from_, by = [], []
    bold = []
    for state in np.flatnonzero(choices >= 0).tolist():
        if geometry.row[state] < 0 or _no_choice(ssp, state):
            continue
        at = geometry.column[state] + 0.5, geometry.row[state] + 0.5
        move = _likeliest_move(ssp, state, int(choices[state]))
        if move is None:
            continue
        length = float(np.hypot(*move))
        if 0 < length < 3:
            from_.append(at)
            by.append((move[0] / length, move[1] / length))
            bold.append(float(strength[state]))
        else:
            named = _short(ssp.choice_name(int(choices[state])))
            ax.text(*at, named, fontsize=7, alpha=0.12 + 0.88 * float(strength[state]), **CENTRED)
    if from_:
        box, moves = np.array(from_), np.array(by)
        shade = [(0.0, 0.0, 0.0, 0.12 + 0.88 * each) for each in bold]
        size = {"angles": "xy", "scale_units": "xy", "scale": 1.5, "units": "xy", "width": 0.09}
        ax.quiver(*box.T, *moves.T, color=shade, pivot="mid", zorder=3, **size)


def _likeliest_move(ssp: Any, state: int, choice: int) -> tuple[float, float] | None:
    """Columns to the right and rows down, of the most probable move; the middle of those that are
    equally probable: ice slips to either side.
    """
    geometry, own = ssp.geometry, _members(ssp.choice_outcomes, choice)
    target, probability = ssp.outcome_target[own], ssp.outcome_probability[own]
    moves = np.bincount(target[target != state], weights=probability[target != state])
    likeliest = [
        t
        for t in np.flatnonzero(moves >= moves.max(initial=0) * (1 - 1e-9)).tolist()
        if moves[t] > 0 and geometry.row[t] >= 0
    ]
    steps = [
        (geometry.column[t] - geometry.column[state], geometry.row[t] - geometry.row[state])
        for t in likeliest
    ]
    return tuple(np.mean(steps, axis=0).tolist()) if steps else None


def _no_choice(ssp: Any, state: int) -> bool:
    """Whether all choices of a state do the same."""
    choices = _members(ssp.state_choices, state)
    columns = ssp.outcome_target, ssp.outcome_probability, ssp.outcome_cost
    outcomes = (_members(ssp.choice_outcomes, choice) for choice in choices)
    seen = {tuple(tuple(column[own]) for column in columns) for own in outcomes}
    return len(seen) == 1 and len(choices) > 1


def _members(offsets: NDArray[Any], k: int) -> range:
    """The choices of a state, or the outcomes of a choice."""
    return range(*offsets[k : k + 2].tolist())


def _draw_graph(
    ssp: Any,
    shown: Sequence[int],
    choices: Any,
    strength: NDArray[Any],
    ax: Any,
    box: tuple[Any, Any],
) -> None:
    """The edges between the states shown; those of the choices taken bold, by their probability."""
    x, y = box
    inside = set(shown)
    for choice in (choice for state in shown for choice in _members(ssp.state_choices, state)):
        source = int(ssp.choice_state[choice])
        chosen = choices is not None and choices[source] == choice
        for outcome in _members(ssp.choice_outcomes, choice):
            target = int(ssp.outcome_target[outcome])
            if target != source and target in inside:
                look = (
                    {"color": "black", "alpha": 0.15 + 0.85 * float(strength[source])}
                    if chosen
                    else {"color": "0.82"}
                )
                thick = 0.6 + 2.4 * float(ssp.outcome_probability[outcome]) if chosen else 0.7
                bend = 0.14 + 0.07 * (choice - int(ssp.state_choices[source]))
                ends = (x[source], y[source]), (x[target], y[target])
                _arrow(ax, *ends, bend, 9, zorder=2 if chosen else 1, linewidth=thick, **look)


def _draw_nodes(
    ssp: Any,
    shown: Sequence[int],
    choices: Any,
    heat: NDArray[Any] | None,
    ax: Any,
    box: tuple[Any, Any],
    label: str,
) -> None:
    """The states, with their names and what is done there where there are not too many."""
    x, y = (axis[list(shown)] for axis in box)
    colours = [
        KINDS["goal"] if ssp.is_goal[s] else "#fbe3a6" if s == ssp.start_index else PLAIN
        for s in shown
    ]
    inside: dict[str, Any] = (
        {"c": colours}
        if heat is None
        else {"c": np.maximum(heat, 0.0)[list(shown)], "cmap": "Reds"}
    )
    drawn = ax.scatter(x, y, s=240, edgecolors="0.3", linewidths=0.8, zorder=3, **inside)
    if heat is not None:
        ax.figure.colorbar(drawn, ax=ax, shrink=0.7, label=label)
    for state, across, down in zip(shown, x, y) if len(shown) <= NAMED else ():
        ax.text(across, down - 0.42, _short(ssp.states[state]), ha="center", fontsize=8, zorder=4)
        if choices is not None and choices[state] >= 0:
            done = _short(ssp.choice_name(int(choices[state])))
            ax.text(across, down + 0.55, done, ha="center", fontsize=7, style="italic", zorder=4)


def _short(named: Any) -> str:
    text = name_in_words(named)
    return without_mathematics(text if len(text) <= 18 else text[:16] + "…")
