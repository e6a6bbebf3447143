"""The page as text: the data, the drawing program and the style in one document. Names of a model are data and never become markup."""

from __future__ import annotations

import html
import json
import math
from collections.abc import Sequence
from importlib.resources import files
from typing import Any

from tailpath.model.ssp import SSP
from tailpath.show.page.data import ALPHAS, Tell, page_data, silent

HERE = files("tailpath.show.page")


def page(ssp: SSP, name: str = "a model", alphas: Sequence[float] = ALPHAS, tell: Tell = silent) -> str:
    """One HTML document about a model: what its best policies do for each alpha, why they differ, and their worst runs."""
    data = json.dumps(_plain(page_data(ssp, name, alphas, tell)), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    document = HERE.joinpath("template.html").read_text(encoding="utf-8")
    # Inside a script element only "<" could end it; JSON may write it as an escape. The data come last: what they hold is not looked at again.
    for place, text in (
        ("@TITLE@", html.escape(name)),
        ("@STYLE@", HERE.joinpath("page.css").read_text(encoding="utf-8")),
        ("@PROGRAM@", HERE.joinpath("page.js").read_text(encoding="utf-8")),
        ("@DATA@", data.replace("<", "\\u003c")),
    ):
        document = document.replace(place, text, 1)
    return document


def _plain(value: Any) -> Any:
    """Numbers that JSON has: infinite ones become None, and nine digits are more than an eye can tell."""
    if isinstance(value, float):
        return float(f"{value:.9g}") if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _plain(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(entry) for entry in value]
    return value
