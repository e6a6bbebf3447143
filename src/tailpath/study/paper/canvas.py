"""What all figures share: panels, signs that differ in black and white, legends that fit, files
that repeat byte for byte.
"""

from __future__ import annotations

import io
import math
import pathlib
from collections.abc import Sequence
from typing import Any

from tailpath.formats.files import write_bytes
from tailpath.pictures.style import MARKERS, without_mathematics
from tailpath.study.results import Key, title

COLOURS = ("#0b4f8a", "#c8501e", "#3a8f5c", "#7a5195", "#8a6d0b", "#555555")
PERCENT = "above the optimum (%)"
OPTIMUM = {"linestyle": ":", "color": "black", "linewidth": 2.2, "label": "optimum"}
#: Inches of a panel; and of a legend's entry: its line, and each letter of its name.
WIDTH, HEIGHT = 4.6, 3.3
LINE, LETTER = 0.75, 0.075


def panels(titles: Sequence[str], columns: int = 2) -> tuple[Any, list[Any]]:
    """A figure with one panel per title, row by row; a single one is wider, to have room for its
    legend.
    """
    from matplotlib.figure import Figure

    columns = max(1, min(columns, len(titles)))
    rows = math.ceil(len(titles) / columns)
    width = WIDTH * columns if columns > 1 else 1.35 * WIDTH
    figure = Figure(figsize=(width, HEIGHT * rows), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False).ravel().tolist()
    for ax, text in zip(axes, titles):
        ax.set_title(text, fontsize=11)
        ax.grid(True, color="0.88", linewidth=0.6)
        ax.set_axisbelow(True)
    for ax in axes[len(titles) :]:
        ax.remove()
    return figure, axes[: len(titles)]


def problem_panels(problems: Sequence[Key], columns: int = 2, rows: int = 1) -> Any:
    """The same with a panel for each problem; for several rows of them, a row for all problems."""
    titles = [without_mathematics(title(problem)) for problem in problems] * rows
    return panels(titles, columns if rows == 1 else len(problems))


def style(k: int) -> dict[str, Any]:
    """Marker and colour of the k-th of several series."""
    return {"marker": MARKERS[k % len(MARKERS)], "color": COLOURS[k % len(COLOURS)]}


def legend_below(figure: Any, axes: Sequence[Any], columns: int) -> None:
    """One legend for all panels, with the series of all of them, each once, in as many columns as
    the figure has room for.
    """
    entries: dict[str, Any] = {}
    for ax in axes:
        for handle, name in zip(*ax.get_legend_handles_labels()):
            entries.setdefault(name, handle)
    if not entries:
        return
    widest = LINE + LETTER * max(
        len(name.replace("$", "").replace("\\alpha_0", "a0")) for name in entries
    )
    fitting = max(1, int(figure.get_size_inches()[0] / widest))
    figure.legend(
        list(entries.values()),
        list(entries),
        loc="outside lower center",
        ncols=min(columns, fitting, len(entries)),
        fontsize=8.5,
        frameon=False,
        handlelength=3.5,
    )


def integer_ticks(ax: Any, numbers: Sequence[int]) -> None:
    """The numbers of atoms on the horizontal axis, and no others."""
    ax.set_xticks(list(numbers), [str(n) for n in numbers])
    ax.set_xlabel("number of atoms |Y|")
    if len(numbers) == 1:
        ax.set_xlim(numbers[0] - 1, numbers[0] + 1)


def tens(value: float) -> str:
    """A power of ten as mathematics writes it, other numbers as they are."""
    exponent = round(math.log10(value))
    return f"$10^{{{exponent}}}$" if math.isclose(value, 10.0**exponent) else f"{value:g}"


def save(figure: Any, stem: pathlib.Path) -> None:
    """Write PDF and PNG, without a date: equal rows give equal files."""
    pdf, png = io.BytesIO(), io.BytesIO()
    figure.savefig(pdf, format="pdf", metadata={"CreationDate": None})
    figure.set_layout_engine(None)  # the layout is found once
    figure.savefig(png, format="png", dpi=150)
    for suffix, content in ((".pdf", pdf), (".png", png)):
        write_bytes(str(stem.with_suffix(suffix)), content.getvalue())
