"""What all pictures share.

Every picture reads in black and white: what differs in colour also differs in line style, marker,
hatching or brightness. Without `ax` a figure of its own is made that belongs to nobody's window;
`axes.figure.savefig("file.pdf")` saves it, and a notebook shows it.
"""

from __future__ import annotations

import io
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, NamedTuple

from tailpath.registers import module_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes as Axes
else:  # hints are looked up for the reference, where matplotlib need not be loaded
    Axes = Any

#: Colours, markers and line styles of series that stand beside each other.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#8a6d0b", "#555555")
MARKERS = ("o", "s", "^", "D", "v", "P")
LINES = ("-", "--", ":", "-.", (0, (5, 1)), (0, (1, 1)))


class Look(NamedTuple):
    """How one of several series is told from the others, with and without colours.

    It has a `colour`, a `marker` and a `line`, as matplotlib takes them.

    Examples
    --------
    >>> tp.pictures.look(1).marker
    's'
    """

    colour: str
    marker: str
    line: Any


def look(number: int) -> Look:
    """The look of the series of a number, from 0 on.

    Parameters
    ----------
    number : int
        The place of the series among those of the picture.

    Returns
    -------
    Look
        Colour, marker and style of line.

    Examples
    --------
    >>> tp.pictures.look(0)
    Look(colour='#0072b2', marker='o', line='-')
    """
    k = number % len(COLOURS)  # there are as many of each
    return Look(COLOURS[k], MARKERS[k], LINES[k])


def without_mathematics(text: str) -> str:
    """A name as it is written: between two dollar signs it would be mathematics."""
    return text.replace("$", r"\$")


def own_axes(ax: Axes | None, width: float = 7.0, height: float = 4.0) -> Axes:
    """The axes given, or those of a new figure without a window, which a notebook shows."""
    return ax if ax is not None else sheet(1, 1, width, height)[0]


def sheet(rows: int, columns: int, width: float, height: float) -> list[Any]:
    """The axes of a new figure, row by row; a notebook shows the figure for each of them."""
    figure = matplotlib().Figure(figsize=(width, height), layout="constrained")
    axes: list[Any] = figure.subplots(rows, columns, squeeze=False).ravel().tolist()
    for each in axes:
        # What IPython asks an object for; an Axes of no window has none.
        each._repr_png_ = lambda: as_png(figure)
    return axes


def matplotlib(part: str = "figure") -> Any:
    """A part of matplotlib, which comes with the extra `plot`. It takes long to import, and most
    that is computed is never drawn.
    """
    return module_of(f"matplotlib.{part}", "plot")


def can_draw() -> bool:
    """Whether there is a matplotlib, without importing it."""
    return find_spec("matplotlib") is not None


def as_png(figure: Any) -> bytes:
    """A figure as the bytes of a PNG file."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=110)
    return buffer.getvalue()
