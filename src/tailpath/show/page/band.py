"""The page of a model with intervals: both sides in one sentence, the bands of three plans, and
which probabilities hurt most.

Everything is drawn here, as SVG: nothing moves, and the page needs no program.
"""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Sequence
from importlib.resources import files
from typing import Any

import numpy as np

from tailpath.evaluation.band import CostBand
from tailpath.model.interval import IntervalSSP
from tailpath.show.plans import PlanLine, planned_lines
from tailpath.solvers.exact.solver import solve_cvar_exact
from tailpath.texts import name, number

#: Outcomes and choices listed, open choices for which the model is solved again, points of a curve.
MOST, AGAIN = 8, 40
POINTS = 200
COLOURS = {"nominal": "#d55e00", "adversarial": "#0072b2", "cooperative": "#7a5fb5"}
WIDTH, HEIGHT = 420, 270
LEFT, RIGHT = 54, 12
TOP, BOTTOM = 10, 44


def band_page(model: IntervalSSP, title: str, alphas: Sequence[float], progress: Any) -> str:
    """One HTML document about a model of which something is open."""
    progress("plans for the worst and the best nature")
    alphas = sorted(alphas, reverse=True)
    lines = planned_lines(model, alphas, {})
    best: Any = solve_cvar_exact(model, alphas[-1])
    last = [line for line in lines if line.alpha == alphas[-1]]
    words = [best.words(alpha) for alpha in alphas]
    sentences = "".join(f"<p>{html.escape(text[0].upper() + text[1:])}.</p>" for text in words)
    safe = next(line.band for line in last if line.plan == "adversarial")
    cards = [
        ("In one sentence", sentences),
        (f"What a run may cost, plans for alpha {alphas[-1]:g}", _distributions(last)),
        ("CVaR against alpha: what each plan may really cost", _curves(lines)),
        ("Which probabilities hurt the plan for the worst nature most", _harms(safe)),
    ]
    if model.n_uncertain <= AGAIN:
        progress("where more data would help")
        cards.append((f"Where more data would help, alpha {alphas[-1]:g}", _data(best, alphas[-1])))
    confidence = (
        ""
        if model.confidence is None
        else f", which hold with {100 * model.confidence:g} % confidence"
    )
    lead = (
        f"{model.n_states} states, {model.n_choices} choices, of which {model.n_uncertain} have"
        f" intervals{confidence}."
    )
    style = files("tailpath.show.page").joinpath("page.css").read_text(encoding="utf-8")
    articles = "".join(
        f"<article><h2>{html.escape(head)}</h2>{body}</article>" for head, body in cards
    )
    title, lead = html.escape(title), html.escape(lead)
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy"
 content="default-src 'none'; style-src 'unsafe-inline'; img-src data:">
<title>{title}</title>
<link rel="icon" href="data:,">
<style>
{style}</style>
</head>
<body>
<header><h1>{title}</h1><p class="lead">{lead}</p></header>
<section class="numbers">{_numbers(lines)}</section>
<main>{articles}</main>
<footer>predicted: what the plan expects. Least and most: what its policy may really cost, over all
that the intervals allow. nominal: planned for the probabilities counted, or in the middle.</footer>
</body>
</html>
"""


def _table(head: Iterable[str], rows: Iterable[Iterable[Any]]) -> str:
    cells = [f"<tr>{''.join(f'<th>{html.escape(text)}</th>' for text in head)}</tr>"]
    for row in rows:
        shown = (number(cell, 6) if isinstance(cell, float) else str(cell) for cell in row)
        cells.append(f"<tr>{''.join(f'<td>{html.escape(text)}</td>' for text in shown)}</tr>")
    return f"<table>{''.join(cells)}</table>"


def _numbers(lines: Sequence[PlanLine]) -> str:
    head = [
        "planned for",
        "alpha",
        "predicted",
        "least CVaR",
        "most CVaR",
        "least mean",
        "most mean",
    ]
    return _table(
        head,
        (
            (each.plan, each.alpha, each.predicted, *each.band.cvar(each.alpha), *each.band.mean)
            for each in lines
        ),
    )


def _harms(band: CostBand) -> str:
    if not all(map(math.isfinite, band.mean)):
        return "<p>Some nature keeps this policy from arriving.</p>"
    rows = (
        (
            *map(name, (o.state, o.action, o.next_state)),
            *(number(value, 3) for value in (o.low, o.high, o.worst, o.harm)),
        )
        for o in band.nature[:MOST]
    )
    return _table(["at", "doing", "ends in", "low", "high", "worst", "adds to the mean"], rows)


def _data(best: Any, alpha: float) -> str:
    rows = (
        (name(each.state), name(each.action), each.cvar, each.gain)
        for each in best.more_data(alpha)[:MOST]
    )
    return _table(["at", "doing", "CVaR if half as wide", "less by"], rows)


# ---------------------------------------------------------------------- charts


def _distributions(lines: Sequence[PlanLine]) -> str:
    """The distribution function of every plan as a band: the worst nature at each cost below, the
    best above.
    """
    ends = [end for line in lines for end in line.band.var(line.alpha) if math.isfinite(end)]
    unit = float(lines[0].band.model.cost_unit or 1)
    last = 1.1 * max(ends, default=64 * unit) + unit
    costs = np.unique(np.floor(np.linspace(0.0, last / unit, POINTS))) * unit
    bands = {
        line.plan: np.array([line.band.cdf(cost) for cost in costs.tolist()]) for line in lines
    }
    steps = {
        plan: (np.repeat(costs, 2)[1:], np.repeat(found, 2, axis=0)[:-1])
        for plan, found in bands.items()
    }
    return _chart(steps, (0.0, last), (0.0, 1.02), "total cost z", "probability of at most z")


def _curves(lines: Sequence[PlanLine]) -> str:
    """CVaR of every plan over alpha, as a band."""
    plans = dict.fromkeys(line.plan for line in lines)
    bands = {
        plan: [
            (math.log10(each.alpha), each.band.cvar(each.alpha))
            for each in lines
            if each.plan == plan
        ]
        for plan in plans
    }
    found = {
        plan: (np.array([x for x, _ in rows]), np.array([pair for _, pair in rows]))
        for plan, rows in bands.items()
    }
    tops = [
        top for _, pairs in found.values() for top in pairs.ravel().tolist() if math.isfinite(top)
    ]
    x = [at for rows in bands.values() for at, _ in rows]
    return _chart(
        found,
        (min(x) - 0.05, max(x) + 0.05),
        (0.0, 1.05 * max(tops, default=1.0)),
        "alpha",
        "CVaR",
        log=True,
    )


def _chart(
    bands: dict[str, Any],
    x: tuple[float, float],
    y: tuple[float, float],
    xlabel: str,
    ylabel: str,
    log: bool = False,
) -> str:
    """Bands by plan: abscissas (m,), and low and high ends (m, 2)."""

    def at(across: float, up: float) -> str:
        right = LEFT + (WIDTH - LEFT - RIGHT) * (across - x[0]) / (x[1] - x[0])
        down = HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (min(up, y[1]) - y[0]) / (y[1] - y[0])
        return f"{right:.1f},{down:.1f}"

    parts = []
    for across, shown in _ticks(*x, log):
        left, low = at(across, y[0]).split(",")
        parts.append(
            f'<text x="{left}" y="{float(low) + 15:.0f}" font-size="11"'
            f' text-anchor="middle">{shown}</text>'
        )
    for up, shown in _ticks(*y):
        _, high = at(x[0], up).split(",")
        parts.append(
            f'<text x="{LEFT - 6}" y="{float(high) + 4:.0f}" font-size="11"'
            f' text-anchor="end">{shown}</text>'
        )
        parts.append(
            f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{high}" y2="{high}" stroke="#e6e9ef"/>'
        )
    for plan, (abscissas, ends) in bands.items():
        edge = [at(a, low) for a, low in zip(abscissas.tolist(), ends[:, 0].tolist())]
        edge += [at(a, high) for a, high in zip(abscissas[::-1].tolist(), ends[::-1, 1].tolist())]
        colour = COLOURS[plan]
        parts.append(
            f'<polygon points="{" ".join(edge)}" fill="{colour}" fill-opacity="0.18"'
            f' stroke="{colour}" stroke-width="1.2"><title>{plan}</title></polygon>'
        )
    parts.append(
        f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 6}" font-size="12"'
        f' text-anchor="middle">{xlabel}</text>'
    )
    middle = (TOP + HEIGHT - BOTTOM) / 2
    parts.append(
        f'<text x="13" y="{middle}" font-size="12" text-anchor="middle" transform="rotate(-90 13'
        f' {middle})">{ylabel}</text>'
    )
    legend = "".join(
        f'<span><span class="swatch" style="background:{COLOURS[plan]}"></span>{plan}</span>'
        for plan in bands
    )
    picture = (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" width="100%" role="img" aria-label="{ylabel} against'
        f' {xlabel}">{"".join(parts)}</svg>'
    )
    return f'{picture}<p class="legend">{legend}</p>'


def _ticks(low: float, high: float, log: bool = False) -> list[tuple[float, str]]:
    """Round numbers from low to high, and how they are written; with `log` the ends are powers."""
    if log:
        powers = range(math.floor(low), math.ceil(high) + 1)
        values = [factor * 10.0**power for power in powers for factor in (1, 2, 5)]
        ticks = [(math.log10(value), f"{value:.12g}") for value in values]
        decades = ticks[::3] if high - low > 1.5 else ticks
        return [tick for tick in decades if low <= tick[0] <= high]
    rough = (high - low) / 5
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= rough)
    return [
        (k * step, f"{k * step:.6g}")
        for k in range(math.ceil(low / step), math.floor(high / step) + 1)
    ]
