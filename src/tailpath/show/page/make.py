"""The page as text: the data, the drawing program and the style in one document. Names of a model
are data and never become markup.

A model with intervals has a page of its own: plans side by side, for the probabilities in the
middle, for the worst nature and for the best; both sides in one sentence, the bands of the three
plans, and which probabilities hurt most. Its pictures are SVG: nothing moves, and it needs no
program.
"""

from __future__ import annotations

import html
import json
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, NamedTuple

import numpy as np

from tailpath.analysis.reachability import NATURES
from tailpath.errors import OptionError
from tailpath.evaluation.band import CostBand, evaluate_band
from tailpath.formats.files import refuse_unwritable, write_text
from tailpath.methods.comparison import Update
from tailpath.model.interval import IntervalSSP
from tailpath.model.records import Record
from tailpath.model.ssp import SSP
from tailpath.options import check_alphas, check_named, takes_alpha, takes_model
from tailpath.pictures.distributions import plot_bands
from tailpath.pictures.style import as_svg
from tailpath.policies.budget import BudgetPolicy
from tailpath.show.page.data import ALPHAS, Asked, page_data
from tailpath.solvers.exact.solver import solve_cvar_exact
from tailpath.texts import name as name_in_words
from tailpath.texts import number

HERE = files("tailpath.show.page")
#: Pixels of the frame in which a notebook shows a page.
HEIGHT = 900


@dataclass(frozen=True, eq=False, repr=False)
class Page(Record):
    """A page of HTML that any browser shows, offline; a notebook shows it at once.

    Attributes
    ----------
    title : str
        Its title.
    html : str
        The document.

    Examples
    --------
    >>> tp.page(ssp).html.startswith("<!doctype html>")
    True
    """

    title: str
    html: str

    def __repr__(self) -> str:
        return f"<Page {self.title!r}, {len(self.html.encode()) / 1e6:.2g} MB>"

    def _repr_html_(self) -> str:
        # A document of its own: its style and its program must not meet those of the notebook.
        return (
            f"<iframe srcdoc='{html.escape(self.html)}'"
            f" style='width:100%;height:{HEIGHT}px;border:0'"
            f" title='{html.escape(self.title)}'></iframe>"
        )


@takes_model
@takes_alpha
def page(
    ssp: SSP | IntervalSSP,
    path: str | os.PathLike[str] | None = None,
    policies: Mapping[str, Any] | None = None,
    *,
    alphas: Sequence[float] = ALPHAS,
    methods: Sequence[str] = (),
    title: str = "",
    unit: str = "",
    progress: Update | None = None,
) -> Page:
    """Explain a model on one page of HTML: what its policies do for each alpha, and why.

    It shows the policy that is best on average, yours, and the optimum: decisions on a map or
    graph, distributions, CVaR against alpha, the worst runs step by step, blame, and in words what
    differs.

    Parameters
    ----------
    ssp : SSP or IntervalSSP
        The model; one with intervals is shown with its robust plans, and takes no policies.
    path : str or path, optional
        Where to write it, a file `.html`; without one it is only returned.
    policies : mapping, optional
        `{name: policy}`, of anything that `tailpath.policy` takes.
    alphas : sequence of float in (0, 1]
        Masses of the worst tail, for the slider.
    methods : sequence of str
        Planners to show beside them, by the names of `tailpath solve`: `quantile` is CVaRVIQ.
    title : str
        The title; by default where runs begin and end.
    unit : str
        What costs are counted in: `minutes`.
    progress : callable, optional
        `progress(text)` is called with what is going on.

    Returns
    -------
    Page
        The page, which a notebook shows.

    Raises
    ------
    ModelError
        If the costs have no common unit.
    OptionError
        If two policies have one name, a method is unknown, or the path is no `.html`.
    PolicyError
        If a policy does not fit the model.

    Examples
    --------
    >>> tp.page(ssp, "commute.html", {"by road": {"home": "road"}}, unit="minutes").title
    'From home to work'
    """
    if path is not None and not os.fsdecode(path).lower().endswith((".html", ".htm")):
        raise OptionError(f"{os.fsdecode(path)}: a page is a file that ends with .html")
    if path is not None:
        refuse_unwritable(os.fsdecode(path))
    progress = progress or (lambda text: None)
    levels, policies = check_alphas(alphas), check_named(policies, "policies")
    if isinstance(methods, str):
        methods = [methods]
    if isinstance(ssp, IntervalSSP) and ssp.is_certain:
        ssp = ssp.inside
    title = title or _title(ssp)
    if isinstance(ssp, SSP):
        document = _document(ssp, Asked(title, levels, policies, methods, unit), progress)
    elif policies or methods or unit:
        raise OptionError(
            "the page of a model with intervals shows its robust plans alone; evaluate(model,"
            " policy, alpha) gives the band of a policy"
        )
    else:
        document = band_page(ssp, title, levels, progress)
    if path is not None:
        write_text(path, document)
    return Page(title, document)


def _document(ssp: SSP, asked: Asked, progress: Update) -> str:
    data = json.dumps(
        _plain(page_data(ssp, asked, progress)),
        ensure_ascii=False,
        allow_nan=False,
        separators=(",", ":"),
    )
    document = HERE.joinpath("template.html").read_text(encoding="utf-8")
    # Inside a script element only "<" could end it; JSON may write it as an escape. The data come
    # last: what they hold is not looked at again.
    for mark, text in (
        ("@TITLE@", html.escape(asked.title)),
        ("@STYLE@", HERE.joinpath("page.css").read_text(encoding="utf-8")),
        ("@PROGRAM@", HERE.joinpath("page.js").read_text(encoding="utf-8")),
        ("@DATA@", data.replace("<", "\\u003c")),
    ):
        document = document.replace(mark, text, 1)
    return document


def _title(ssp: SSP | IntervalSSP) -> str:
    goal = name_in_words(ssp.goals[0]) if len(ssp.goals) == 1 else f"one of {len(ssp.goals)} goals"
    return f"From {name_in_words(ssp.start)} to {goal}"


def _plain(value: Any) -> Any:
    """Numbers that JSON has: infinite ones become None, and nine digits are more than an eye can
    tell.
    """
    if isinstance(value, float):
        return float(f"{value:.9g}") if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _plain(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(entry) for entry in value]
    return value


# ---------------------------------------------------------------------- models with intervals


class PlanLine(NamedTuple):
    """What a plan for one alpha expects, None for a given policy, and what its policy may really
    cost.
    """

    alpha: float
    plan: str
    predicted: float | None
    band: CostBand


def planned_lines(
    model: IntervalSSP, alphas: Sequence[float], given: Mapping[str, Any]
) -> list[PlanLine]:
    """Every plan at every alpha: `nominal`, `adversarial`, `cooperative`, and policies that are
    given.
    """
    least, nominal = min(alphas), model.nominal()
    plain = solve_cvar_exact(nominal, least)
    found: dict[str, Any] = {
        nature: solve_cvar_exact(model, least, nature=nature) for nature in NATURES
    }
    lines = []
    for alpha in alphas:
        plans: list[tuple[str, float | None, Any]] = [
            ("nominal", plain.cvar(alpha), _on(model, nominal, plain.policy(alpha)))
        ]
        plans += [(nature, each.cvar(alpha), each.policy(alpha)) for nature, each in found.items()]
        plans += [(name, None, policy) for name, policy in given.items()]
        lines += [
            PlanLine(alpha, name, predicted, evaluate_band(model, policy, alpha))
            for name, predicted, policy in plans
        ]
    return lines


def _on(model: IntervalSSP, nominal: SSP, policy: Any) -> Any:
    """A policy for the nominal model on the model with intervals, which may have outcomes that were
    never seen.
    """
    inside = model.inside
    if nominal is inside:
        return policy
    steps = policy.budget, policy.first, policy.from_budget, policy.choice, policy.risk_neutral
    return BudgetPolicy(inside, *steps, inside.outcome_level, inside.cost_unit)


#: Outcomes and choices listed, open choices for which the model is solved again, points of a curve.
MOST, AGAIN = 8, 40
POINTS = 200


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
    style = HERE.joinpath("page.css").read_text(encoding="utf-8")
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
            *map(name_in_words, (o.state, o.action, o.next_state)),
            *(number(value, 3) for value in (o.low, o.high, o.worst, o.harm)),
        )
        for o in band.nature[:MOST]
    )
    return _table(["at", "doing", "ends in", "low", "high", "worst", "adds to the mean"], rows)


def _data(best: Any, alpha: float) -> str:
    rows = (
        (name_in_words(each.state), name_in_words(each.action), each.cvar, each.gain)
        for each in best.more_data(alpha)[:MOST]
    )
    return _table(["at", "doing", "CVaR if half as wide", "less by"], rows)


def _distributions(lines: Sequence[PlanLine]) -> str:
    """The distribution function of every plan as a band: the worst nature at each cost below, the
    best above.
    """
    ends = [end for line in lines for end in line.band.var(line.alpha) if math.isfinite(end)]
    unit = float(lines[0].band.model.cost_unit or 1)
    last = 1.1 * max(ends, default=64 * unit) + unit
    costs = np.unique(np.floor(np.linspace(0.0, last / unit, POINTS))) * unit
    bands = {
        line.plan: (costs, np.array([line.band.cdf(cost) for cost in costs.tolist()]))
        for line in lines
    }
    axes = plot_bands(
        bands,
        step="post",
        xlim=(0.0, last),
        ylim=(0.0, 1.02),
        xlabel="total cost z",
        ylabel="probability of at most z",
    )
    return as_svg(axes)


def _curves(lines: Sequence[PlanLine]) -> str:
    """CVaR of every plan over alpha, as a band."""
    bands = {}
    for plan in dict.fromkeys(line.plan for line in lines):
        own = [line for line in lines if line.plan == plan]
        ends = np.array([line.band.cvar(line.alpha) for line in own])
        bands[plan] = np.array([line.alpha for line in own]), ends
    every = np.concatenate([ends.ravel() for _, ends in bands.values()])
    top = 1.05 * float(np.max(every, where=np.isfinite(every), initial=0.0)) or 1.0
    alphas = list(dict.fromkeys(line.alpha for line in lines))
    axes = plot_bands(
        bands,
        xscale="log",
        xticks=alphas,
        xticklabels=[f"{alpha:g}" for alpha in alphas],
        ylim=(0.0, top),
        xlabel="alpha",
        ylabel="CVaR",
    )
    return as_svg(axes)
