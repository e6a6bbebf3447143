"""Curves: CVaR against alpha, the mean against the CVaR, and bands between two curves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from tailpath.pictures.style import COLOURS, look, own_axes, without_mathematics


class MethodCurve(NamedTuple):
    """CVaR against alpha of one method; `kind` is `predicted`, `deployed` or `optimum`."""

    method: str
    kind: str
    alphas: Sequence[float]
    values: Sequence[float]


#: Solid is what a planner predicts, dashed what its policy delivers, thick and dotted the optimum;
#: methods differ in colour and marker.
STYLES = {"predicted": "-", "deployed": "--", "optimum": ":"}


def plot_comparison(curves: Sequence[MethodCurve], ax: Any = None, title: str = "") -> Any:
    """CVaR against alpha for several methods, predicted and deployed, and the optimum. Returns the
    Axes.
    """
    ax = own_axes(ax, 7.0, 4.5)
    methods = list(dict.fromkeys(curve.method for curve in curves if curve.kind != "optimum"))
    for curve in curves:
        drawn: dict[str, Any] = {"color": "black", "linewidth": 2.2, "zorder": 3}
        if curve.kind != "optimum":
            own = look(methods.index(curve.method))
            drawn = {"color": own.colour, "linewidth": 1.4}
            if curve.kind == "deployed":
                every = max(1, len(curve.alphas) // 12)
                drawn |= {"marker": own.marker, "markersize": 4, "markevery": every}
        label = curve.method if curve.kind == "optimum" else f"{curve.method}, {curve.kind}"
        ax.plot(
            curve.alphas,
            curve.values,
            STYLES[curve.kind],
            label=without_mathematics(label),
            **drawn,
        )
    ax.set(
        xscale="log",
        xlabel="alpha, the mass of the worst tail",
        ylabel="CVaR of the total cost",
        title=without_mathematics(title),
    )
    least, most = ax.get_xlim()
    ax.xaxis.get_major_locator().set_params(subs=(1, 2, 5) if most < 2000 * least else (1,))
    ax.xaxis.set_major_formatter("{x:g}")
    ax.minorticks_off()
    ax.legend(frameon=False)
    return ax


def plot_bands(bands: Mapping[str, tuple[Any, Any]], step: str | None = None, **shape: Any) -> Any:
    """What lies between two ends, by name: abscissas (m,) and ends (m, 2); those beyond the axes
    end there. Returns the Axes, with whatever else `shape` sets.
    """
    ax = own_axes(None, 4.6, 3.0)
    ax.set(**shape)
    ax.minorticks_off()
    for k, (name, (x, ends)) in enumerate(bands.items()):
        low, high = np.minimum(ends, ax.get_ylim()[1]).T
        colour, _, line = look(k)
        drawn = {"facecolor": (colour, 0.18), "edgecolor": colour, "linestyle": line}
        ax.fill_between(x, low, high, step=step, label=name, gid=f"band-{name}", **drawn)
    ax.legend(frameon=False)
    return ax


def plot_frontier(frontier: Any, ax: Any = None) -> Any:
    """Least mean against risk, with the corners that are single policies, and both ends named."""
    ax = own_axes(ax)
    risk, mean = frontier.risk, frontier.mean
    single = [len(corner.parts) == 1 for corner in frontier]
    before = np.array([corner.before for corner in frontier])
    along = _in_pieces(risk[:-1], risk[1:]), _in_pieces(mean[:-1], before[1:])
    ax.plot(*along, "-", color=COLOURS[0], linewidth=1.6)
    jumps = _in_pieces(risk[1:], risk[1:]), _in_pieces(before[1:], mean[1:])
    ax.plot(*jumps, ":", color=COLOURS[0], linewidth=1.0)
    ax.plot(
        risk[single], mean[single], "o", color=COLOURS[0], markersize=3 if len(risk) > 60 else 5
    )
    offset = {"textcoords": "offset points"}
    safest = "safest" if len(risk) > 1 else "safest, and least mean"
    ax.annotate(safest, (risk[0], mean[0]), xytext=(8, 0), ha="left", **offset)
    if len(risk) > 1:
        ax.annotate("least mean", (risk[-1], mean[-1]), xytext=(-2, -14), ha="right", **offset)
    ax.set(xlabel=str(frontier.measure), ylabel="expected cost")
    ax.margins(0.08)
    return ax


def _in_pieces(begin: Any, end: Any) -> Any:
    """Where lines begin and end, one after the other, with a gap between two."""
    return np.stack((begin, end, np.full(len(begin), np.nan)), axis=1).ravel()
