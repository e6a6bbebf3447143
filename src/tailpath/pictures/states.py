"""The states of a model with what is decided or found there: on its map, or, without one, as a graph.

`ssp` is any model: its geometry, choices and outcomes are looked at and nothing else. `choices` gives a choice index per state, -1 for none;
`strength`, in [0, 1], how boldly to draw it; `heat` a number per state that colours it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tailpath.pictures.layers import layers
from tailpath.pictures.style import own_axes, plain
from tailpath.texts import name as name_in_words

#: Grey levels and light colours of the kinds of cells that we know; others are nearly white.
KINDS = {
    "river": "#d5e8f5",
    "bridge": "#dcbf8e",
    "bank": "#f0e8d4",
    "waterfall": "#7c9cc6",
    "floor": "#f7f7f4",
    "obstacle": "#858993",
    "goal": "#9bd3a5",
}
PLAIN = "#eef0f4"
#: Inches of a cell, and the least and the most of a picture.
CELL, LEAST, MOST = 0.32, 3.0, 9.0


def plot_states(
    ssp: Any,
    choices: NDArray[Any] | None = None,
    strength: NDArray[Any] | None = None,
    heat: NDArray[Any] | None = None,
    ax: Any = None,
    title: str = "",
    heat_label: str = "",
) -> Any:
    """Draw the states; returns the Axes."""
    strength = np.ones(ssp.n_states) if strength is None else strength
    if ssp.geometry is not None:
        width, height = ssp.geometry.columns * CELL, ssp.geometry.rows * CELL
        factor = min(max(LEAST / min(width, height), 1.0), MOST / max(width, height))
        ax = own_axes(ax, max(width * factor, LEAST) + 1.2, height * factor + 0.8)
        _draw_map(ssp, choices, strength, heat, ax, heat_label)
    else:
        x, y, width, height = layers(ssp)
        ax = own_axes(ax, min(1.2 * width, 12.0), min(1.0 * height + 0.5, 9.0))
        _draw_graph(ssp, choices, strength, heat, ax, (np.array(x), np.array(y), width, height), heat_label)
    ax.set_title(plain(title), fontsize=11)
    return ax


def _colour_bar(ax: Any, drawn: Any, label: str) -> None:
    ax.figure.colorbar(drawn, ax=ax, shrink=0.7, label=label)


def _draw_map(ssp: Any, choices: Any, strength: NDArray[Any], heat: NDArray[Any] | None, ax: Any, label: str) -> None:
    import matplotlib.patches as shapes

    geometry = ssp.geometry
    if heat is not None:
        grid = np.zeros((geometry.rows, geometry.columns))
        grid[geometry.row, geometry.column] = np.maximum(heat, 0.0)
        _colour_bar(ax, ax.imshow(grid, cmap="Reds", extent=(0, geometry.columns, geometry.rows, 0)), label)
    for state in range(ssp.n_states):
        row, column, kind = geometry.row[state], geometry.column[state], geometry.kind[state]
        if row < 0:
            continue
        fill = KINDS.get(kind, PLAIN) if heat is None else "none"
        edge: dict[str, Any] = {"edgecolor": "0.75", "linewidth": 0.4}
        if heat is not None and kind in ("obstacle", "waterfall"):
            edge["hatch"] = "////" if kind == "obstacle" else "..."
        ax.add_patch(shapes.Rectangle((column, row), 1, 1, facecolor=fill, **edge))
        if ssp.is_goal[state]:
            ax.text(column + 0.5, row + 0.5, "G", ha="center", va="center", fontsize=9, fontweight="bold")
        if state == ssp.start_index:
            ax.add_patch(shapes.Rectangle((column + 0.05, row + 0.05), 0.9, 0.9, fill=False, edgecolor="black", linewidth=1.8, zorder=4))
    if choices is not None:
        _arrows(ssp, choices, strength, ax)
    ax.set_xlim(0, geometry.columns)
    ax.set_ylim(geometry.rows, 0)
    ax.set_aspect("equal")
    ax.set_xticks([])
    ax.set_yticks([])


def _arrows(ssp: Any, choices: NDArray[Any], strength: NDArray[Any], ax: Any) -> None:
    """An arrow in each cell towards where its choice most probably leads; none where all choices are the same."""
    geometry = ssp.geometry
    from_, by, bold = [], [], []
    for state in np.flatnonzero(choices >= 0).tolist():
        target = _likeliest_move(ssp, state, int(choices[state]))
        step = (geometry.column[target] - geometry.column[state], geometry.row[target] - geometry.row[state])
        length = float(np.hypot(*step))
        if 0 < length < 3 and not _no_choice(ssp, state):
            from_.append((geometry.column[state] + 0.5, geometry.row[state] + 0.5))
            by.append((step[0] / length, step[1] / length))
            bold.append(float(strength[state]))
    if from_:
        at, move = np.array(from_), np.array(by)
        shade = [(0.0, 0.0, 0.0, 0.12 + 0.88 * each) for each in bold]
        ax.quiver(*at.T, *move.T, color=shade, pivot="mid", angles="xy", scale_units="xy", scale=1.5, units="xy", width=0.09, zorder=3)


def _likeliest_move(ssp: Any, state: int, choice: int) -> int:
    span = slice(int(ssp.choice_outcomes[choice]), int(ssp.choice_outcomes[choice + 1]))
    target, probability = ssp.outcome_target[span], ssp.outcome_probability[span]
    return int(target[np.argmax(np.where(target == state, 0.0, probability))])


def _no_choice(ssp: Any, state: int) -> bool:
    """Whether all choices of a state do the same."""
    seen = set()
    for choice in range(int(ssp.state_choices[state]), int(ssp.state_choices[state + 1])):
        span = slice(int(ssp.choice_outcomes[choice]), int(ssp.choice_outcomes[choice + 1]))
        seen.add((tuple(ssp.outcome_target[span]), tuple(ssp.outcome_probability[span]), tuple(ssp.outcome_cost[span])))
    return len(seen) == 1 and ssp.state_choices[state + 1] - ssp.state_choices[state] > 1


def _draw_graph(
    ssp: Any, choices: Any, strength: NDArray[Any], heat: NDArray[Any] | None, ax: Any, places: tuple[Any, Any, float, float], label: str
) -> None:
    x, y, width, height = places
    for choice in range(ssp.n_choices):
        source = int(ssp.choice_state[choice])
        chosen = choices is not None and choices[source] == choice
        for outcome in range(int(ssp.choice_outcomes[choice]), int(ssp.choice_outcomes[choice + 1])):
            target = int(ssp.outcome_target[outcome])
            if target != source:
                look = {"color": "black", "alpha": 0.15 + 0.85 * float(strength[source])} if chosen else {"color": "0.82"}
                thick = 0.6 + 2.4 * float(ssp.outcome_probability[outcome]) if chosen else 0.7
                bend = 0.14 + 0.07 * (choice - int(ssp.state_choices[source]))
                arrow = {"arrowstyle": "-|>", "linewidth": thick, "connectionstyle": f"arc3,rad={bend}", "shrinkA": 9, "shrinkB": 9, **look}
                ax.annotate("", (x[target], y[target]), (x[source], y[source]), arrowprops=arrow, zorder=2 if chosen else 1)
    colours: Any = [KINDS["goal"] if ssp.is_goal[s] else "#fbe3a6" if s == ssp.start_index else PLAIN for s in range(ssp.n_states)]
    inside = {"c": colours} if heat is None else {"c": np.maximum(heat, 0.0), "cmap": "Reds"}
    drawn = ax.scatter(x, y, s=240, edgecolors="0.3", linewidths=0.8, zorder=3, **inside)
    if heat is not None:
        _colour_bar(ax, drawn, label)
    small = ssp.n_states <= 60
    for state in range(ssp.n_states) if small else ():
        ax.text(x[state], y[state] - 0.42, _short(ssp.states[state]), ha="center", fontsize=8, zorder=4)
        if choices is not None and choices[state] >= 0:
            ax.text(
                x[state], y[state] + 0.55, _short(ssp.choice_name(int(choices[state]))), ha="center", fontsize=7, style="italic", zorder=4
            )
    ax.set_xlim(-0.2, width + 0.2)
    ax.set_ylim(height, 0)
    ax.axis("off")


def _short(name: Any) -> str:
    text = name_in_words(name)
    return plain(text if len(text) <= 18 else text[:16] + "…")
