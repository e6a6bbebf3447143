"""What a policy does by place and time: a line for each place, the clock to the right.

A dot is a time at which a run may be at a place, coloured by what is done there; lines lead to
where it may get, the bolder the more probable. States have a `place` and a `time` each; goals may
have none.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tailpath.pictures.style import look, own_axes
from tailpath.texts import name

#: Chances below which a line is not drawn.
FAINT = 1e-3


def has_schedule(ssp: Any) -> bool:
    """Whether the states of a model are places at a time."""
    return all(hasattr(ssp.start, part) for part in ("place", "time"))


def plot_schedule(
    ssp: Any, choices: NDArray[Any], visits: NDArray[Any], ax: Any, title: str
) -> Any:
    """Draw the choices of the states that are met; returns the Axes.

    `choices` is a choice index per state, -1 for none; `visits` how often each state is met.
    """
    met = [s for s in np.flatnonzero((visits > FAINT) & ~ssp.is_goal).tolist() if choices[s] >= 0]
    rows = _rows(ssp)
    ax = own_axes(ax, 8.0, 1.2 + 0.75 * len(rows))
    for number, action in enumerate(np.unique(ssp.choice_action[choices[met]]).tolist()):
        own = [s for s in met if ssp.choice_action[choices[s]] == action]
        colour, marker, _ = look(number)
        for state in own:
            _lines(ssp, state, int(choices[state]), float(visits[state]), rows, ax, number)
        at = ([ssp.states[s].time for s in own], [rows[ssp.states[s].place] for s in own])
        size = 14 + 90 * np.minimum(visits[own], 1.0)
        edge = {"edgecolors": "white", "linewidths": 0.6, "zorder": 2}
        named = name(ssp.actions[action])
        ax.scatter(*at, s=size, marker=marker, color=colour, label=named, **edge)
    ax.set_yticks(list(rows.values()), [name(place) for place in rows])
    ax.set_ylim(len(rows) - 0.5, -0.5)
    ax.set_xlabel("time")
    ax.grid(axis="y", color="0.9")
    legend = ax.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False)
    for handle in legend.legend_handles:
        handle.set_sizes([50])
    ax.set_title(title, fontsize=11)
    return ax


def _rows(ssp: Any) -> dict[Any, int]:
    """The line of each place: as they are found, goals last."""
    places = dict.fromkeys(state.place for state in ssp.states if hasattr(state, "place"))
    return {place: row for row, place in enumerate(dict.fromkeys([*places, *ssp.goals]))}


def _lines(
    ssp: Any, state: int, choice: int, visits: float, rows: dict[Any, int], ax: Any, number: int
) -> None:
    """From a state to wherever its choice may lead, the bolder the more probable."""
    here = ssp.states[state]
    for outcome in range(*ssp.choice_outcomes[choice : choice + 2].tolist()):
        chance = min(visits * float(ssp.outcome_probability[outcome]), 1.0)
        target = ssp.states[ssp.outcome_target[outcome]]
        if chance > FAINT:
            times = [here.time, here.time + ssp.outcome_cost[outcome]]
            lines = [rows[here.place], rows[getattr(target, "place", target)]]
            colour, _, line = look(number)
            drawn = {"color": colour, "linestyle": line, "alpha": 0.35 + 0.65 * chance}
            ax.plot(times, lines, linewidth=0.6 + 3 * chance, zorder=1, **drawn)
