"""The frontier: the least mean for every level of risk, from the risk-neutral policy to the safest.
Its corners are policies; between two of them lie their mixtures (`least_means.py`).
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from tailpath.dp.budget_model import EXCESS, LATE
from tailpath.errors import OptionError
from tailpath.evaluation.evaluate import evaluate_for
from tailpath.graph import FloatArray
from tailpath.model.border import Border, less, require_unit, rounded_both_ways, shifted
from tailpath.model.cost_units import in_units
from tailpath.model.records import Record, Series, Shown
from tailpath.model.ssp import SSP
from tailpath.options import Progress, takes_alpha, takes_model, warn_of_confidence
from tailpath.pictures.distributions import plot_frontier
from tailpath.pictures.style import Axes
from tailpath.policies.policy import Policy, on_model
from tailpath.risk.measure import Measure, is_cvar
from tailpath.risk.measures import Late, Shortfall, parse
from tailpath.solvers.expectation import solve_expected
from tailpath.solvers.objectives.chords import SAME
from tailpath.solvers.objectives.least_means import VANISHED, RiskNeutral, Trade, least_means
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
        risk += SAME * (abs(risk) + abs(float(self._border.shift)))
        point = int(np.searchsorted(self.risk, risk, side="right")) - 1
        if point < 0 or point + 1 == len(self.corners):
            return math.inf if point < 0 else self.corners[-1].mean
        a, b = self.corners[point], self.corners[point + 1]
        share = min(max((risk - a.risk) / (b.risk - a.risk), 0.0), 1.0)
        return a.mean + (b.before - a.mean) * share

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


@takes_model
@takes_alpha
def frontier(
    ssp: SSP,
    measure: Any,
    *,
    tolerance: float | None = None,
    delta: Any = None,
    progress: Progress | None = None,
) -> Frontier:
    """Find the least mean for every level of a risk: CVaR, lateness or shortfall.

    Parameters
    ----------
    ssp : SSP
        The model.
    measure : Measure or str
        The risk: `tp.CVaR(0.05)`, `tp.Late(35)`, `tp.Shortfall(40)`, or text like `"cvar(0.05)"`.
    tolerance : float, 0 or more, optional
        The search ends when it has enclosed the frontier within this share of its range: means and
        risks from one end to the other. With 0 all corners are found, however close; a large model
        may have thousands. By default it is 0, or 1e-3 where all would take more than a moment.
    delta : number, optional
        Rounds the costs to multiples of it, for models whose costs have no common unit: the corners
        are those for costs rounded up, and `bounds(risk)` brackets the frontier of the costs as
        they are.
    progress : callable, optional
        `progress(tables, pieces)` is called now and then with the number of tables filled and that
        of the pieces of the frontier found.

    Returns
    -------
    Frontier
        A sequence of corners, from the safest policy to the risk-neutral one, each with its policy.

    Raises
    ------
    OptionError
        If the measure has no frontier.
    ModelError
        If the costs have no common unit and no `delta` is given.
    GoalUnreachableError
        If the start cannot reach a goal with probability 1.

    Examples
    --------
    >>> found = tp.frontier(ssp, "cvar(0.1)")
    >>> found
    <Frontier of cvar(0.1): 2 corners, 30 at mean 30 to 60 at 24>
    >>> round(found.least_mean(45), 6)
    27.0
    """
    risk = parse(measure)
    warn_of_confidence(risk.finest_alpha)
    return _prepared(ssp, risk, delta, tolerance=tolerance, progress=progress)


def _prepared(ssp: SSP, risk: Measure, delta: Any, **how: Any) -> Frontier:
    """The border: the model is made one of known, non-negative costs with a unit, and the answer
    one for the model as it is.
    """
    border = Border(ssp)
    if border.uncertain:
        raise OptionError(
            "a frontier needs known probabilities: nature would not be the same for the mean and"
            " for the risk; take model.nominal()"
        )
    ssp, more = border.model, Fraction(0)
    asked, unit = risk, ssp.cost_unit if delta is None else None
    if border.moves:
        if unit is not None and isinstance(risk, Shortfall):
            # That of the reduced costs may be coarser.
            ssp = replace(ssp, exact_unit=border.given.cost_unit)
            unit = ssp.cost_unit
            budget_level(risk, border.given.cost_unit)
        asked, more = risk.moved(border.shift, unit)
        if isinstance(risk, Shortfall):
            asked = Shortfall(float(less(risk.budget, border.shift, unit)))
    floor = None
    if delta is not None:
        ssp, below = rounded_both_ways(ssp, delta)
        floor = _least_means(below, asked, how)
    trade = _least_means(ssp, asked, how)
    of_mean, of_risk = float(ssp.cost_unit or 1), float(trade.axis.unit)
    given = None if ssp is border.given else border.given
    corners = tuple(
        Corner(
            ssp,
            risk,
            border.cost(point.mean * of_mean),
            shifted(point.risk * of_risk, more),
            point.parts,
            border.cost(before * of_mean),
            trade.axis,
            given,
        )
        for point, before in trade.corners()
    )
    return Frontier(corners, risk, trade.gap, trade, floor, given)


def _least_means(ssp: SSP, risk: Measure, how: dict[str, Any]) -> Trade:
    require_unit(ssp)
    risk_neutral = risk(evaluate_for(ssp, solve_expected(ssp).policy, [risk]))
    axis = axis_of(ssp, risk, risk_neutral)
    if axis is None or risk_neutral <= VANISHED:
        return RiskNeutral.of(ssp, risk_neutral)
    return least_means(ssp, axis, **how)


def budget_level(measure: Shortfall, unit: Fraction) -> int:
    """A budget in units; one that is no cost of the model is refused.

    What arithmetic leaves is forgiven, as of 7 * 0.1: a shortfall hardly changes with its budget.
    """
    level = in_units(measure.budget, unit)
    if not math.isclose(level, round(level), rel_tol=8 * sys.float_info.epsilon):
        raise OptionError(
            f"{measure}: for a frontier the budget must be a multiple of the cost unit"
            f" {float(unit):g}"
        )
    return round(level)


def axis_of(ssp: SSP, measure: Measure, most: float) -> Axis | None:
    """How a measure is read off tables, up to some risk; None where no policy has less of it."""
    unit = require_unit(ssp)
    if measure.tail is not None and is_cvar(measure):  # no CVaR is less than its budget
        budgets = range(math.floor(most / float(unit) * (1 + SAME)) + 1)
        return Axis(EXCESS, budgets, 1 / Fraction(measure.tail[1]), 1, unit)
    if isinstance(measure, Late) and measure.curve is not None:
        level, axis = math.floor(in_units(measure.deadline, unit)) + 1, (LATE, Fraction(1))
    elif isinstance(measure, Shortfall):
        level, axis = budget_level(measure, unit), (EXCESS, unit)
    else:
        raise OptionError(
            f"a frontier trades the mean against cvar, late or shortfall, not {measure}"
        )
    return Axis(axis[0], range(level, level + 1), Fraction(1), 0, axis[1]) if level > 0 else None
