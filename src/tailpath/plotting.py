"""Pictures, as matplotlib Axes for the caller to finish, save or show.

Every picture reads in black and white: what differs in colour also differs in line style, hatching or brightness. Without `ax` a figure of its own is
made that belongs to nobody's window; `axes.figure.savefig("file.pdf")` saves it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray


class Distribution(Protocol):
    """What is drawn of a `CostDistribution`."""

    @property
    def costs(self) -> NDArray[np.float64]: ...

    @property
    def probabilities(self) -> NDArray[np.float64]: ...

    @property
    def tail_mass(self) -> float: ...

    @property
    def mean(self) -> float: ...

    @property
    def unreached(self) -> float: ...

    def var(self, alpha: float) -> float: ...

    def cvar(self, alpha: float) -> float: ...


#: More bars than this across the axes would be thinner than the eye can see, and are drawn as lines.
MOST_BARS = 300
INSIDE, BEYOND = "0.75", "0.25"


def own_axes(ax: Any, width: float = 7.0, height: float = 4.0) -> Any:
    """The axes given, or those of a new figure without a window."""
    if ax is not None:
        return ax
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained").subplots()


def plot_distribution(distribution: Distribution, alpha: float, ax: Any = None) -> Any:
    """The probability of every known total cost, with mean, VaR and CVaR at `alpha` marked. Returns the Axes.

    Costs above VaR are dark. Beyond the last known cost, hatched, only the probability is known, and is noted.
    """
    var, cvar = distribution.var(alpha), distribution.cvar(alpha)
    ax = own_axes(ax)
    marks = [("mean", distribution.mean, ":"), ("VaR", var, "--"), ("CVaR", cvar, "-")]
    left, right = _span(distribution, [value for _, value, _ in marks if math.isfinite(value)])
    _draw_head(distribution, var, right - left, ax)
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
        _note_tail(distribution, right, ax)
    ax.set_xlim(left, right)
    ax.set_ylim(bottom=0)
    ax.set_xlabel("total cost")
    ax.set_ylabel("probability")
    # Above the axes, where it hides nothing.
    ax.legend(title=f"alpha = {alpha:g}", loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2, frameon=False)
    return ax


def _span(distribution: Distribution, marked: list[float]) -> tuple[float, float]:
    """The costs to show: from 0, unless everything lies far from it."""
    costs = distribution.costs
    highest = max([*marked, *costs[-1:].tolist(), 0.0]) or 1.0
    lowest = float(costs[0]) if len(costs) > 1 else 0.0
    if lowest < 0.3 * highest:
        return 0.0, 1.05 * highest
    return lowest - 0.05 * (highest - lowest), highest + 0.05 * (highest - lowest)


def _draw_head(distribution: Distribution, var: float, width: float, ax: Any) -> None:
    costs, probabilities = distribution.costs, distribution.probabilities
    gap = float(np.min(np.diff(costs), initial=width / 20))
    for part, colour in ((costs <= var, INSIDE), (costs > var, BEYOND)):
        if part.any() and gap * MOST_BARS >= width:
            ax.bar(costs[part], probabilities[part], 0.8 * gap, color=colour, edgecolor="black", linewidth=0.4)
        elif part.any():
            ax.vlines(costs[part], 0, probabilities[part], color=colour, linewidth=1)


def _note_tail(distribution: Distribution, right: float, ax: Any) -> None:
    """Hatch what lies beyond the last known cost, and say how much it is."""
    last = float(distribution.costs[-1]) if distribution.costs.size else 0.0
    missed = f", never arriving {distribution.unreached:.3g}" if distribution.unreached > 0 else ""
    label = f"beyond {last:g}: probability {distribution.tail_mass:.3g}{missed}"
    ax.axvspan(last, right, facecolor="none", edgecolor="0.7", hatch="//", linewidth=0, zorder=0, label=label)


class Curve(NamedTuple):
    """CVaR against alpha of one method; `kind` is `predicted`, `deployed` or `optimum`."""

    method: str
    kind: str
    alphas: Sequence[float]
    values: Sequence[float]


#: Solid is what a planner predicts, dashed what its policy delivers, thick and dotted the optimum; methods differ in colour and marker.
STYLES = {"predicted": "-", "deployed": "--", "optimum": ":"}
LOOKS = (("#0072b2", "o"), ("#d55e00", "s"), ("#009e73", "^"), ("#cc79a7", "D"))


def plot_comparison(curves: Sequence[Curve], ax: Any = None, title: str = "") -> Any:
    """CVaR against alpha for several methods, predicted and deployed, and the optimum. Returns the Axes."""
    ax = own_axes(ax, 7.0, 4.5)
    methods = list(dict.fromkeys(curve.method for curve in curves if curve.kind != "optimum"))
    for curve in curves:
        look: dict[str, Any] = {"color": "black", "linewidth": 2.2, "zorder": 3}
        if curve.kind != "optimum":
            colour, marker = LOOKS[methods.index(curve.method) % len(LOOKS)]
            look = {"color": colour, "linewidth": 1.4}
            if curve.kind == "deployed":
                look |= {"marker": marker, "markersize": 4, "markevery": max(1, len(curve.alphas) // 12)}
        label = curve.method if curve.kind == "optimum" else f"{curve.method}, {curve.kind}"
        ax.plot(curve.alphas, curve.values, STYLES[curve.kind], label=label, **look)
    ax.set_xscale("log")
    ax.set_xlabel("alpha, the mass of the worst tail")
    ax.set_ylabel("CVaR of the total cost")
    ax.set_title(title)
    ax.legend(frameon=False)
    return ax


def plot_frontier(frontier: Any, ax: Any = None) -> Any:
    """Least mean against risk, with the corners that are single policies, and both ends named."""
    ax = own_axes(ax)
    risk, mean = frontier.risk, frontier.mean
    single = [len(corner.parts) == 1 for corner in frontier]
    for a, b in zip(frontier.corners, frontier.corners[1:]):
        ax.plot([a.risk, b.risk], [a.mean, b.before], color="#1b6ca8", linewidth=1.6)
        ax.plot([b.risk, b.risk], [b.before, b.mean], color="#1b6ca8", linewidth=1.0, linestyle=":")
    ax.plot(risk[single], mean[single], "o", color="#1b6ca8", markersize=3 if len(risk) > 60 else 5)
    for place, text, side, at in ((0, "safest", "left", (8, 0)), (-1, "least mean", "right", (-2, -14))):
        ax.annotate(text, (risk[place], mean[place]), textcoords="offset points", xytext=at, ha=side)
    ax.set_xlabel(str(frontier.measure))
    ax.set_ylabel("expected cost")
    ax.margins(0.08)
    return ax
