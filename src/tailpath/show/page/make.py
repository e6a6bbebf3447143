"""The page as text: the data, the drawing program and the style in one document. Names of a model
are data and never become markup.

`template.html` has the body `policies.html`, drawn by `policies.js`.
"""

from __future__ import annotations

import html
import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from tailpath.errors import OptionError
from tailpath.formats.files import refuse_unwritable, write_text
from tailpath.methods.comparison import Update
from tailpath.model.border import prepare
from tailpath.model.records import Record
from tailpath.model.ssp import SSP
from tailpath.options import check_alphas, check_named, takes_alpha, takes_model
from tailpath.show.page.data import ALPHAS, Asked, page_data
from tailpath.texts import name as name_in_words

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
    ssp: SSP,
    path: str | os.PathLike[str] | None = None,
    policies: Mapping[str, Any] | None = None,
    *,
    alphas: Sequence[float] = ALPHAS,
    methods: Sequence[str] = (),
    title: str = "",
    unit: str = "",
    delta: Any = None,
    positions: Any = None,
    progress: Update | None = None,
) -> Page:
    """Explain a model on one page of HTML: what its policies do for each alpha, and why.

    It shows the policy that is best on average, yours, and the optimum: decisions on a map or
    graph, distributions, CVaR against alpha, the worst runs step by step, blame, and in words what
    differs.

    Parameters
    ----------
    ssp : SSP
        The model.
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
        The unit of costs: `minutes`.
    delta : number, optional
        Costs are rounded up to its multiples, so that no number of the page is too small; for
        costs without a common unit.
    positions : mapping, table or path, optional
        Where the states of a graph stand: `{state: (x, y)}` with y up, or a table with a column of
        states and columns x and y, or lat and lon. By default they stand in columns, by their
        steps from the start.
    progress : callable, optional
        `progress(text)` is called with a description of the current step.

    Returns
    -------
    Page
        The page, which a notebook shows.

    Raises
    ------
    ModelError
        If the costs have no common unit and no `delta` is given.
    OptionError
        If two policies have the same name, a method is unknown, or the path is not a `.html` file.
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
    border = prepare(ssp)
    if border.uncertain:
        raise OptionError(
            "a page needs known probabilities; tailpath compare shows plans for a model with"
            " intervals"
        )
    ssp = border.given
    title = title or _title(ssp)
    asked = Asked(title, levels, policies, methods, unit, delta, positions)
    document = _document(title, page_data(ssp, asked, progress))
    if path is not None:
        write_text(path, document)
    return Page(title, document)


def _document(title: str, data: dict[str, Any]) -> str:
    """The template with its parts and the data."""

    def part(name: str) -> str:
        return HERE.joinpath(name).read_text(encoding="utf-8")

    text = json.dumps(_plain(data), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    document = part("template.html")
    # Inside a script element only "<" could end it; JSON may write it as an escape. The data come
    # last: what they hold is not looked at again.
    for mark, found in (
        ("@TITLE@", html.escape(title)),
        ("@STYLE@", part("page.css")),
        ("@BODY@", part("policies.html")),
        ("@PROGRAM@", part("draw.js") + part("policies.js")),
        ("@DATA@", text.replace("<", "\\u003c")),
    ):
        document = document.replace(mark, found, 1)
    return document


def _title(ssp: SSP) -> str:
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
