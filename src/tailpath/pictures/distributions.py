"""Distributions of the total cost: their bars, bands where probabilities are intervals, and the
tails of several side by side; and curves: CVaR against alpha, the mean against the CVaR, and bands
between two of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tailpath.options import answering, takes_alpha
from tailpath.pictures.style import COLOURS, Axes, look, own_axes, without_mathematics

#: A `CostDistribution`, of which costs, probabilities, mean, VaR and CVaR are looked at.
Distribution = Any
#: Of a policy that may never arrive, costs are shown until so little of what arrives is left.
LEFT_OUT = 1e-3
#: More bars than this across the axes would be thinner than the eye can see: costs that are closer
#: are gathered in bins, as many as the second number.
MAX_BARS, BINS = 300, 150
INSIDE, BEYOND = "0.75", "0.25"
#: Solid is what a planner predicts, dashed what its policy delivers, thick and dotted the optimum;
#: methods differ in colour and marker.
STYLES = {"predicted": "-", "deployed": "--", "optimum": ":"}


def plot_distribution(distribution: Distribution, alpha: float, ax: Axes | None = None) -> Axes:
    """The probability of every known total cost, with mean, VaR and CVaR at `alpha` marked. Returns
    the Axes.

    Costs above VaR are dark. Beyond the last known cost, hatched, only the probability is known,
    and is noted.
    """
    var, cvar = distribution.var(alpha), distribution.cvar(alpha)
    ax = own_axes(ax)
    others = ax.get_xlim() if ax.has_data() else ()
    marks = [("mean", distribution.mean, ":"), ("VaR", var, "--"), ("CVaR", cvar, "-")]
    finite = [value for _, value, _ in marks if math.isfinite(value)]
    costs = distribution.costs[: _shown(distribution, finite)]
    left, right = _span(costs, finite)
    _draw_head(costs, distribution.probabilities[: len(costs)], var, right - left, ax)
    for name, value, style in marks:
        drawn = [value] if math.isfinite(value) else []
        ax.plot(
            np.repeat(drawn, 2),
            [0, 1][: 2 * len(drawn)],
            style,
            color="black",
            label=f"{name} {value:.6g}",
            transform=ax.get_xaxis_transform(),
        )
    if distribution.tail_mass > 0:
        _note_tail(distribution, len(costs), right, ax)
    # Both are seen beside another distribution.
    ax.set_xlim(min([left, *others[:1]]), max([right, *others[1:]]))
    ax.autoscale(axis="y")
    ax.set(ylim=(0, None), xlabel="total cost", ylabel=ax.get_ylabel() or "probability")
    # Above the axes, where it hides nothing.
    ax.legend(
        title=f"alpha = {alpha:g}",
        loc="lower center",
        bbox_to_anchor=(0.5, 1.0),
        ncols=2,
        frameon=False,
    )
    return ax


def _shown(distribution: Distribution, marked: list[float]) -> int:
    """How many of the costs to show: all, unless some runs never arrive. What of the others is
    known then reaches so far that nothing could be seen.
    """
    if distribution.unreached == 0:
        return len(distribution.costs)
    reached = np.cumsum(distribution.probabilities)
    enough = np.searchsorted(reached, (1 - LEFT_OUT) * (1 - distribution.unreached)) + 1
    return int(max(enough, np.searchsorted(distribution.costs, max(marked, default=0.0)) + 1))


def _span(costs: NDArray[np.float64], marked: list[float]) -> tuple[float, float]:
    """The costs to show: from 0, unless everything lies far from it, or some lie below."""
    least = min([*marked, *costs[:1].tolist()], default=0.0)
    most = max([*marked, *costs[-1:].tolist()], default=0.0)
    if least < 0:
        margin = 0.05 * (most - least) or 0.05 * abs(least)
        return least - margin, most + margin
    highest = max(most, 0.0) or 1.0
    lowest = float(costs[0]) if len(costs) > 1 else 0.0
    if lowest < 0.3 * highest:
        return 0.0, 1.05 * highest
    margin = 0.05 * (highest - lowest)
    return lowest - margin, highest + margin


def _left(distributions: Iterable[Distribution]) -> float:
    """Where the costs to show begin: at 0, or a little below the least of them."""
    heads = [costs for each in distributions if (costs := each.costs).size]
    least = min((float(costs[0]) for costs in heads), default=0.0)
    most = max((float(costs[-1]) for costs in heads), default=0.0)
    return least - 0.05 * (most - least) if least < 0 else 0.0


def _draw_head(
    costs: NDArray[np.float64],
    probabilities: NDArray[np.float64],
    var: float,
    width: float,
    ax: Any,
) -> None:
    gap = float(np.min(np.diff(costs), initial=width / 20))
    if gap * MAX_BARS < width and len(costs) > BINS:
        probabilities, edges = np.histogram(costs, BINS, weights=probabilities)
        costs, gap = (edges[:-1] + edges[1:]) / 2, float(edges[1] - edges[0]) / 0.8
        ax.set_ylabel(f"probability of each {0.8 * gap:.3g}")
    thick, edge = max(0.8 * gap, width / MAX_BARS), {"edgecolor": "black", "linewidth": 0.4}
    for part, colour in ((costs <= var, INSIDE), (costs > var, BEYOND)):
        ax.bar(costs[part], probabilities[part], thick, color=colour, **edge)


def _note_tail(distribution: Distribution, shown: int, right: float, ax: Any) -> None:
    """Hatch what lies beyond the last cost that is shown, and say how much it is."""
    last = float(distribution.costs[shown - 1]) if shown else 0.0
    beyond = distribution.tail_mass + float(distribution.probabilities[shown:].sum())
    missed = f", never arriving {distribution.unreached:.3g}" if distribution.unreached > 0 else ""
    label = f"beyond {last:g}: probability {beyond:.3g}{missed}"
    drawn = {"facecolor": "none", "edgecolor": "0.7", "hatch": "//", "linewidth": 0}
    ax.axvspan(last, right, zorder=0, label=label, **drawn)


def plot_band(
    costs: NDArray[np.float64],
    band: NDArray[np.float64],
    cvars: Iterable[float],
    alpha: float,
    ax: Axes | None = None,
) -> Axes:
    """The least and the most P(Z <= z) at every cost, columns of `band`, as a band, and where the
    least and the most CVaR are. Returns the Axes.
    """
    ax = own_axes(ax)
    least, most = band.T
    steps: dict[str, Any] = {"color": "black", "where": "post"}
    ax.fill_between(
        costs, least, most, step="post", color="0.8", label="all that the intervals allow"
    )
    ax.step(costs, least, linewidth=1.2, label="worst nature at each cost", **steps)
    ax.step(costs, most, linewidth=0.8, linestyle=":", label="best nature at each cost", **steps)
    for value in filter(math.isfinite, cvars):
        ax.axvline(value, color="0.4", linewidth=0.8, linestyle="--")
    ax.set(
        xlabel=f"total cost (dashed: CVaR at {alpha:g}, least and most)",
        ylabel="probability of at most that",
    )
    ax.legend(frameon=False, loc="lower right")
    return ax


@answering
@takes_alpha
def plot_tails(
    distributions: Mapping[str, Distribution], alpha: float, ax: Axes | None = None
) -> Axes:
    """Draw P(Z > z) of several policies on a logarithmic axis, each with its VaR and CVaR.

    Parameters
    ----------
    distributions : mapping
        `{name: CostDistribution}`, or a single one.
    alpha : float in (0, 1]
        The mass of the worst tail: VaR is a marker on each line, CVaR one on the axis.
    ax : matplotlib Axes, optional
        Where to draw; by default a new figure, without a window.

    Returns
    -------
    matplotlib Axes
        `.figure.savefig("tails.pdf")` saves it, and a notebook shows it.

    Examples
    --------
    >>> axes = tp.plot_tails({"road": costs}, 0.1)
    >>> axes.get_ylabel()
    'probability of more than z'
    """
    if not isinstance(distributions, Mapping):
        distributions = {"costs": distributions}
    ax = own_axes(ax, 7.0, 4.5)
    floor, left = 1.0, _left(distributions.values())
    for k, (name, distribution) in enumerate(distributions.items()):
        colour, marker, line = look(k)
        costs = distribution.costs
        var, cvar = distribution.var(alpha), distribution.cvar(alpha)
        tails = distribution.tails
        floor = min(floor, float(np.min(tails[tails > 0], initial=alpha)))
        label = f"{without_mathematics(name)}: VaR {var:.5g}, CVaR {cvar:.5g}"
        ax.step(
            np.append(left, costs),
            np.append(1.0, tails),
            line,
            where="post",
            color=colour,
            label=label,
            linewidth=1.6,
        )
        drawn: dict[str, Any] = {"color": colour, "markersize": 7}
        if math.isfinite(var):
            height = max(float(tails[np.searchsorted(costs, var)]), floor)
            ax.plot(var, height, marker, markeredgecolor="white", **drawn)
        if math.isfinite(cvar):
            below = ax.get_xaxis_transform()
            ax.plot(cvar, 0, marker, clip_on=False, transform=below, zorder=5, **drawn)
    ax.axhline(alpha, color="0.4", linewidth=0.8, linestyle=(0, (1, 3)))
    ax.annotate(
        f"alpha = {alpha:g}",
        (0.01, alpha),
        xycoords=("axes fraction", "data"),
        textcoords="offset points",
        xytext=(0, 3),
        fontsize=8,
    )
    ax.set(
        yscale="log",
        ylim=(floor / 2, 1.3),
        xlim=(left, None),
        xlabel="total cost z (markers on the axis: CVaR)",
        ylabel="probability of more than z",
    )
    ax.legend(frameon=False, loc="lower center", bbox_to_anchor=(0.5, 1.0))
    return ax


def plot_dominance(
    points: NDArray[np.float64],
    curves: Mapping[str, NDArray[np.float64]],
    number: str,
    witness: float | None,
    words: str,
    ax: Axes | None = None,
) -> Axes:
    """A number of several distributions at costs, steps if it is P(Z > x), and where one of them
    fails to be no worse.
    """
    ax = own_axes(ax)
    for k, (name, heights) in enumerate(curves.items()):
        colour, _, line = look(k)
        style = "steps-post" if number.startswith("P") else "default"
        ax.plot(points, heights, color=colour, linestyle=line, drawstyle=style, label=name)
    if witness is not None and math.isfinite(witness):
        ax.axvline(witness, color="0.4", linestyle=":", label=words)
    ax.set(xlabel="total cost x", ylabel=number)
    ax.legend(frameon=False, loc="lower center", bbox_to_anchor=(0.5, 1.0))
    return ax


class MethodCurve(NamedTuple):
    """CVaR against alpha of one method; `kind` is `predicted`, `deployed` or `optimum`."""

    method: str
    kind: str
    alphas: Sequence[float]
    values: Sequence[float]


def plot_comparison(curves: Sequence[MethodCurve], title: str = "") -> Any:
    """CVaR against alpha for several methods, predicted and deployed, and the optimum. Returns the
    Axes.
    """
    ax = own_axes(None, 7.0, 4.5)
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
    locator: Any = ax.xaxis.get_major_locator()  # of a logarithmic axis
    locator.set_params(subs=(1, 2, 5) if most < 2000 * least else (1,))
    ax.xaxis.set_major_formatter("{x:g}")
    ax.minorticks_off()
    ax.legend(frameon=False)
    return ax


def plot_frontier(frontier: Any, ax: Axes | None = None) -> Axes:
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
    offset: dict[str, Any] = {"textcoords": "offset points"}
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
