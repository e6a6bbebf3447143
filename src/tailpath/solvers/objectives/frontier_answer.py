"""The frontier as it was found: its corners, and the least mean at every risk between them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from tailpath.graph import FloatArray
from tailpath.model.border import Border
from tailpath.model.records import Record, Series, Shown
from tailpath.model.ssp import SSP
from tailpath.pictures.distributions import plot_frontier
from tailpath.pictures.style import Axes
from tailpath.policies.policy import Policy, on_model
from tailpath.risk.measure import Measure
from tailpath.solvers.objectives.chords import SAME
from tailpath.solvers.objectives.least_means import Trade
from tailpath.solvers.objectives.tables import Axis, MeanRisk, Member
from tailpath.texts import Content, Table, count


@dataclass(frozen=True, eq=False, repr=False)
class Corner(Record):
    """A corner of the frontier: the least `mean` at this `risk`.

    Attributes
    ----------
    ssp : SSP
        The model; with `delta`, with the costs rounded up, and reduced where some are negative.
    measure : Measure
        The risk.
    mean, risk : float
        Of the policy. A CVaR is counted with the budget at which the corner was found; where the
        frontier has a `gap`, another one may show a little less.
    parts : tuple of (weight, price, budget in units)
        What the policy is mixed of; one for a single policy.
    before : float
        The least mean just below this risk: larger than `mean` where the frontier falls in a step,
        otherwise the same.
    true : SSP or None
        With `delta`, or where some cost is negative, the model as it is.
    """

    ssp: SSP
    measure: Measure
    mean: float
    risk: float
    parts: tuple[Member, ...]
    before: float
    axis: Axis = field(repr=False, compare=False)
    true: SSP | None = None

    @cached_property
    def policy(self) -> Policy:
        """The policy of the corner, found again when it is first asked for."""
        policy = MeanRisk(self.ssp, self.axis).mixed(self.parts)
        return policy if self.true is None else on_model(policy, self.true)

    def __repr__(self) -> str:
        return (
            f"<Corner mean {self.mean:.6g}, {self.measure}"
            f" {self.risk:.6g}{', mixed' if len(self.parts) > 1 else ''}>"
        )


@dataclass(frozen=True, eq=False, repr=False)
class Frontier(Shown, Series[Corner]):
    """The least mean for every level of risk, as a sequence of corners from the safest policy on.

    Between two neighbours it is a straight line of mixtures, up to a step where the next corner has
    one (`before`): some risk lets a cheaper kind of policy in. All corners are real policies.

    Attributes
    ----------
    corners : tuple of Corner
        Each has a `mean`, a `risk` and a `policy`.
    measure : Measure
        The risk.
    gap : float
        How closely the search caught the frontier: its mean lies below these lines by this share
        of the range of means at most, at a risk larger by this share of the range of risks. 0 if
        all corners were found.
    trade : Trade
        What `bounds` are proved with, in cost units: chords, the prices asked, and the model whose
        costs are 0 or more.
    floor : Trade or None
        With `delta`, the same for the costs rounded down.
    given : SSP or None
        The model as it was given.

    Examples
    --------
    >>> found = tp.frontier(ssp, "cvar(0.1)")
    >>> found.risk, found.mean, found[0].policy.action("home")
    (array([30., 60.]), array([30., 24.]), 'train')
    """

    corners: tuple[Corner, ...]
    measure: Measure
    gap: float
    trade: Trade = field(compare=False)
    floor: Trade | None = field(compare=False, default=None)
    given: SSP | None = None

    @property
    def risk(self) -> FloatArray:
        """The risk of every corner, rising: an array of float64, shape (n,)."""
        return np.array([corner.risk for corner in self.corners])

    @property
    def mean(self) -> FloatArray:
        """The mean of every corner, falling: an array of float64, shape (n,)."""
        return np.array([corner.mean for corner in self.corners])

    def least_mean(self, risk: float) -> float:
        """The least mean at a given risk.

        Parameters
        ----------
        risk : float
            A level of the measure; within rounding of a corner's it counts as that.

        Returns
        -------
        float
            Infinite below the safest policy.

        Examples
        --------
        >>> round(tp.frontier(ssp, "cvar(0.1)").least_mean(45), 6)
        27.0
        """
        return self._at(risk + SAME * abs(risk) + 2 * math.ulp(risk) * self._border.moves)

    def bounds(self, risk: float) -> tuple[float, float]:
        """Between which means the least mean at a given risk lies.

        Within rounding of a step these are its two sides. The least risk, or one that rounding
        cannot tell from it, can be kept.

        Parameters
        ----------
        risk : float
            A level of the measure.

        Returns
        -------
        tuple (low, high)
            The lower one is the frontier less its gap, or, with `delta`, that for costs rounded
            down.

        Examples
        --------
        >>> low, high = tp.frontier(ssp, "cvar(0.1)").bounds(45)
        >>> low <= 27 <= high
        True
        """
        border = self._border
        more = self.measure.moved(border.shift, None)[1] if border.moves else Fraction(0)
        return border.bounds(self.trade.bounds(risk, more, self.floor))

    @property
    def _border(self) -> Border:
        return Border(self.corners[0].ssp if self.given is None else self.given)

    def _at(self, risk: float) -> float:
        point = int(np.searchsorted(self.risk, risk, side="right")) - 1
        if point < 0 or point + 1 == len(self.corners):
            return math.inf if point < 0 else self.corners[-1].mean
        a, b = self.corners[point], self.corners[point + 1]
        return a.mean + (b.before - a.mean) * min(
            max((risk - a.risk) / (b.risk - a.risk), 0.0), 1.0
        )

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the frontier as a picture to choose from.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; by default a new figure, without a window.

        Returns
        -------
        matplotlib Axes
            `.figure.savefig("frontier.pdf")` saves it, and a notebook shows it.

        Examples
        --------
        >>> tp.frontier(ssp, "cvar(0.1)").plot().get_xlabel()
        'cvar(0.1)'
        """
        return plot_frontier(self, ax)

    def _content(self, most: int) -> Content:
        """The corners, or some of them where there are many, with both ends."""
        columns, last, most = self._columns(), len(self) - 1, max(most, 2)
        shown = [last * k // (most - 1) for k in range(most)] if last >= most else range(last + 1)
        every = ("corner", "risk", "mean at least", "mean", "policies")
        used = [key for key in every if key in columns]
        notes = []
        if len(shown) < len(self):
            notes.append(f"{len(shown)} of {count(len(self), 'corner')}")
        if self.gap > 0:
            notes.append(
                f"exact to {100 * self.gap:.3g} % of the range of means and risks; tolerance 0"
                " finds all corners"
            )
        headers = [str(self.measure) if key == "risk" else key for key in used]
        table = Table(headers, [[columns[key][point] for key in used] for point in shown])
        return [table, *(["\n".join(notes)] if notes else [])]

    def _columns(self) -> Mapping[str, Sequence[Any]]:
        each = {
            "corner": list(range(1, len(self) + 1)),
            "risk": self.risk.tolist(),
            "mean": self.mean.tolist(),
            "before": [corner.before for corner in self],
            "policies": [len(corner.parts) for corner in self],
        }
        if self.floor is None:
            return each
        return {**each, "mean at least": [self.bounds(corner.risk)[0] for corner in self]}

    def _drawn(self) -> Any:
        return self.plot()

    def __repr__(self) -> str:
        ends = (
            f"{self.corners[0].risk:.6g} at mean {self.corners[0].mean:.6g} to"
            f" {self.corners[-1].risk:.6g} at {self.corners[-1].mean:.6g}"
        )
        return f"<Frontier of {self.measure}: {count(len(self.corners), 'corner')}, {ends}>"
