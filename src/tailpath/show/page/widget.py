"""The page as a widget of Jupyter, VS Code and Colab, by anywidget (the extra `widget`)."""

from __future__ import annotations

from importlib.resources import files

import anywidget
import traitlets


class PageWidget(anywidget.AnyWidget):  # type: ignore[misc]
    """A page whose controls can be read, set and observed from Python.

    Attributes
    ----------
    html : str
        The text of a page: `tailpath.page(ssp).html`.
    height : int
        Pixels of the frame that shows it.
    alpha : float or None
        The mass of the worst tail on its slider; what is set becomes the nearest there is.
    policy : str
        The name of the policy on the picture.
    budget : int
        What is left of the budget, in cost units, or the atom that is remembered.
    run, step : int
        Which of the bad runs is shown, and how far it has got.
    """

    _esm = files("tailpath.show.page").joinpath("widget.js").read_text(encoding="utf-8")
    html = traitlets.Unicode().tag(sync=True)
    height = traitlets.Int(900).tag(sync=True)
    alpha = traitlets.Float(None, allow_none=True).tag(sync=True)
    policy = traitlets.Unicode("").tag(sync=True)
    budget = traitlets.Int(0).tag(sync=True)
    run = traitlets.Int(0).tag(sync=True)
    step = traitlets.Int(0).tag(sync=True)
