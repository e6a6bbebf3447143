"""What a notebook shows of a noun: its name, a few facts, a small table and a picture; never arrays. Names are escaped."""

from __future__ import annotations

import base64
import html
from collections.abc import Iterable, Sequence
from typing import Any

from tailpath.pictures.states import plot_states
from tailpath.pictures.style import as_png
from tailpath.texts import name

#: Cells of a map and states of a graph that a small picture still shows.
MOST_CELLS, MOST_NODES = 2_500, 40


def card(
    title: str, facts: Iterable[tuple[str, Any]] = (), headers: Sequence[str] = (), rows: Iterable[Sequence[Any]] = (), axes: Any = None
) -> str:
    """A fragment of HTML. `axes` is what a picture function returned."""
    parts = [f"<div><b>{_text(title)}</b>"]
    told = "".join(f"<tr><td>{_text(what)}</td><td style='text-align:left'>{_text(value)}</td></tr>" for what, value in facts)
    if told:
        parts.append(f"<table>{told}</table>")
    if headers:
        head = "".join(f"<th>{_text(each)}</th>" for each in headers)
        body = "".join("<tr>" + "".join(f"<td>{_text(cell)}</td>" for cell in row) + "</tr>" for row in rows)
        parts.append(f"<table><tr>{head}</tr>{body}</table>")
    if axes is not None:
        parts.append(f"<img alt='' style='max-width:100%' src='data:image/png;base64,{base64.b64encode(as_png(axes.figure)).decode()}'>")
    return "".join([*parts, "</div>"])


def _text(value: Any) -> str:
    return html.escape(f"{value:.6g}" if isinstance(value, float) else name(value))


def model_card(ssp: Any) -> str:
    """A model: sizes, names, its map or, if it is small, its graph."""
    unit = "none" if ssp.cost_unit is None else str(ssp.cost_unit)
    goals = [name(goal) for goal in ssp.goals[:3]]
    facts = [
        ("states, choices, outcomes", f"{ssp.n_states}, {ssp.n_choices}, {ssp.n_outcomes}"),
        ("start", ssp.start),
        ("goals", ", ".join(goals) + (f", and {len(ssp.goals) - 3} more" if len(ssp.goals) > 3 else "")),
        ("costs", f"{ssp.outcome_cost.min(initial=0.0):g} to {ssp.outcome_cost.max(initial=0.0):g}, unit {unit}"),
    ]
    drawn = ssp.n_states <= (MOST_CELLS if ssp.geometry is not None else MOST_NODES)
    return card("Stochastic shortest path problem", facts, axes=plot_states(ssp) if drawn else None)
