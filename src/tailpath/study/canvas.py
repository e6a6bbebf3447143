"""What all figures share: panels, signs that differ in black and white, files that repeat byte for byte."""

from __future__ import annotations

import math
import pathlib
from collections.abc import Sequence
from typing import Any

COLOURS = ("#0b4f8a", "#c8501e", "#3a8f5c", "#7a5195")
COLOUR_OF = {"quantile": COLOURS[0], "interpolation": COLOURS[1], "optimum": COLOURS[2]}
STYLE_OF = {"quantile": "-", "interpolation": "--", "optimum": ":"}
MARKERS = ("o", "s", "^", "D")
#: Line styles of series that differ in a number.
ORDINAL = ("-", "--", ":", "-.")
PERCENT = "above the optimum (%)"


def panels(titles: Sequence[str], columns: int = 2) -> tuple[Any, list[Any]]:
    """A figure with one panel per title, row by row."""
    from matplotlib.figure import Figure

    columns = min(columns, len(titles))
    rows = math.ceil(len(titles) / columns)
    figure = Figure(figsize=(4.6 * columns, 3.3 * rows), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False).ravel().tolist()
    for ax, text in zip(axes, titles):
        ax.set_title(text, fontsize=11)
        ax.grid(True, color="0.88", linewidth=0.6)
        ax.set_axisbelow(True)
    for ax in axes[len(titles) :]:
        ax.remove()
    return figure, axes[: len(titles)]


def legend_below(figure: Any, axes: Any, columns: int) -> None:
    """One legend for all panels, with the series of one of them."""
    handles, names = axes.get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=columns, fontsize=8.5, frameon=False, handlelength=3.5)


def tens(value: float) -> str:
    """A power of ten as mathematics writes it, other numbers as they are."""
    exponent = round(math.log10(value))
    return f"$10^{{{exponent}}}$" if math.isclose(value, 10.0**exponent) else f"{value:g}"


def save(figure: Any, stem: pathlib.Path) -> None:
    """Write PDF and PNG, without a date: equal rows give equal files."""
    figure.savefig(stem.with_suffix(".pdf"), metadata={"CreationDate": None})
    figure.set_layout_engine("none")  # the layout is found once
    figure.savefig(stem.with_suffix(".png"), dpi=150)
