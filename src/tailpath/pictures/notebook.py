"""What a notebook shows of a noun: its name, a few facts, a small table and a picture; never
arrays. Names are escaped.
"""

from __future__ import annotations

import base64
import html
from collections.abc import Callable
from typing import Any

from tailpath.pictures.states import plot_states
from tailpath.pictures.style import as_png, can_draw
from tailpath.texts import Content, Table, name, number

#: Cells of a map and states of a graph that a small picture still shows.
MAX_CELLS, MAX_NODES = 2_500, 40


def card(title: str, content: Content = (), draw: Callable[[], Any] | None = None) -> str:
    """A fragment of HTML: tables and sentences below a title, and the picture that `draw` makes, or
    nothing where there is no matplotlib.
    """
    parts = [f"<div><b>{_text(title)}</b>"]
    parts += [
        (
            _table(part)
            if isinstance(part, Table)
            else f"<p>{'<br>'.join(map(_text, part.splitlines()))}</p>"
        )
        for part in content
    ]
    axes = draw() if draw is not None and can_draw() else None
    if axes is not None:
        parts.append(
            f"<img alt='Picture of {_text(title)}' style='max-width:100%'"
            f" src='data:image/png;base64,{base64.b64encode(as_png(axes.figure)).decode()}'>"
        )
    return "".join([*parts, "</div>"])


def _table(table: Table) -> str:
    if not table.rows:
        return ""
    head = "".join(f"<th>{_text(each)}</th>" for each in table.headers)
    body = "".join(
        "<tr>" + "".join(_cell(cell, right=bool(head)) for cell in row) + "</tr>"
        for row in table.rows
    )
    title = f"<p>{_text(table.title)}</p>" if table.title else ""
    return f"{title}<table>{f'<tr>{head}</tr>' if head else ''}{body}</table>"


def _cell(value: Any, right: bool) -> str:
    align = (
        "" if right and isinstance(value, (int, float, type(None))) else " style='text-align:left'"
    )
    return f"<td{align}>{'–' if value is None else _text(value)}</td>"


def _text(value: Any) -> str:
    return html.escape(number(value) if isinstance(value, float) else name(value))


def model_card(ssp: Any) -> str:
    """A model: sizes, names, its map or, if it is small, its graph."""
    unit = "none" if ssp.cost_unit is None else str(ssp.cost_unit)
    goals = [name(goal) for goal in ssp.goals[:3]]
    facts = [
        ("states, choices, outcomes", f"{ssp.n_states}, {ssp.n_choices}, {ssp.n_outcomes}"),
        ("start", ssp.start),
        (
            "goals",
            ", ".join(goals) + (f", and {len(ssp.goals) - 3} more" if len(ssp.goals) > 3 else ""),
        ),
        (
            "costs",
            (
                f"{ssp.outcome_cost.min():g} to {ssp.outcome_cost.max():g}, unit {unit}"
                if ssp.n_outcomes
                else "none"
            ),
        ),
    ]
    drawn = ssp.n_states <= (MAX_CELLS if ssp.geometry is not None else MAX_NODES)
    draw = (lambda: plot_states(ssp)) if drawn else None
    return card("Stochastic shortest path problem", [Table((), facts)], draw)
