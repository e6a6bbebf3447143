"""The frontier: the least mean for every level of risk, from the risk-neutral policy to the safest.

For one budget w it is a convex curve through corners, each the point of one policy (`mean_risk.py`); for lateness and shortfall, whose budget is
given, that is all. For CVaR_alpha every budget w has its curve (w + excess / alpha, mean), and the frontier is the lower envelope of all of
them; where the best budget changes it need not be convex, and the crossing is a corner, too, that a mixture of two policies attains.

A segment between two corners is *settled* when the price that is its slope finds nothing below it. The prices already asked bound each curve
from below, by two lines that meet under the segment; only segments where these lines pass below the envelope found so far are asked again. So in
the end every point of the envelope is proved, and all other budgets have been ruled out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from tailpath.dp.budgets import EXCESS, LATE
from tailpath.errors import OptionError
from tailpath.evaluation.measured import evaluate_for
from tailpath.model.cost_units import in_units
from tailpath.model.records import Record, Series
from tailpath.model.ssp import SSP, FloatArray
from tailpath.options import Progress
from tailpath.pictures.curves import plot_frontier
from tailpath.policies.kinds import Policy
from tailpath.policies.mixed import MixedPolicy
from tailpath.risk.late import Late
from tailpath.risk.measure import Measure
from tailpath.risk.shortfall import Shortfall
from tailpath.risk.text import parse
from tailpath.solvers.expectation import solve_expected
from tailpath.solvers.objectives.curve_points import Curve, envelope, touching
from tailpath.solvers.objectives.mean_risk import MeanRisk
from tailpath.solvers.objectives.rounding import both_ways, check_unit, on_costs_of

#: Differences below this, relatively, are rounding.
SAME = 1e-11
#: Prices asked at first, as multiples of mean over risk; later all are asked at once whose gap is this share of the widest.
FIRST = np.geomspace(1e-3, 1e4, 15)
AT_ONCE = 0.05
#: A frontier that needs more updates of outcomes than this is large, and then this gap, relatively to the mean, is close enough.
LARGE, CLOSE = 10**10, 1e-6


@dataclass(frozen=True, eq=False, repr=False)
class Corner(Record):
    """A corner of the frontier: the least `mean` at this `risk`. `parts` are `(weight, price, budget in units)`, one for a single policy.

    `before` is the least mean just below this risk: larger than `mean` where the frontier falls in a step, otherwise the same.
    With `delta`, `ssp` has the costs rounded up and `true` is the model as it is.
    """

    ssp: SSP
    measure: Measure
    mean: float
    risk: float
    parts: tuple[tuple[float, float, int], ...]
    before: float
    true: SSP | None = None

    @cached_property
    def policy(self) -> Policy:
        """The policy of the corner, found again when it is first asked for."""
        account = LATE if isinstance(self.measure, Late) else EXCESS
        policies = [MeanRisk(self.ssp, account, budget).policy(price, budget) for _, price, budget in self.parts]
        policy = policies[0] if len(policies) == 1 else MixedPolicy(tuple(policies), tuple(weight for weight, _, _ in self.parts))
        return policy if self.true is None else on_costs_of(policy, self.true)

    def __repr__(self) -> str:
        return f"<Corner mean {self.mean:.6g}, {self.measure} {self.risk:.6g}{', mixed' if len(self.parts) > 1 else ''}>"


@dataclass(frozen=True, eq=False, repr=False)
class Frontier(Series[Corner]):
    """The corners, from the safest policy to the risk-neutral one; between two neighbours it is a straight line of mixtures, up to a
    step where the next corner has one (`before`): some risk lets a cheaper kind of policy in.

    All corners are real policies. `gap` bounds how far, relatively to the mean, the frontier can lie below these lines: 0 if all corners were found.
    With `delta`, all this holds for costs rounded up, and `floor` is the frontier for the costs rounded down.
    """

    corners: tuple[Corner, ...]
    measure: Measure
    gap: float
    floor: Frontier | None = None

    @property
    def risk(self) -> FloatArray:
        """The risk of every corner, rising."""
        return np.array([corner.risk for corner in self.corners])

    @property
    def mean(self) -> FloatArray:
        """The mean of every corner, falling."""
        return np.array([corner.mean for corner in self.corners])

    def least_mean(self, risk: float) -> float:
        """The least mean at a given risk; infinite below the safest policy."""
        if risk < self.corners[0].risk * (1 - SAME):
            return math.inf
        place = max(int(np.searchsorted(self.risk, risk * (1 + SAME), side="right")) - 1, 0)
        if place + 1 == len(self.corners):
            return self.corners[-1].mean
        a, b = self.corners[place], self.corners[place + 1]
        return a.mean + (b.before - a.mean) * min(max((risk - a.risk) / (b.risk - a.risk), 0.0), 1.0)

    def spread(self, count: int) -> list[int]:
        """The places of at most so many corners, as evenly along the frontier as they come, with both ends: corners crowd where it bends."""
        if len(self.corners) <= max(count, 2):
            return list(range(len(self.corners)))
        risk, mean = self.risk, self.mean
        steps = np.diff(risk) / (risk[-1] - risk[0]) - np.diff(mean) / (mean[0] - mean[-1])
        way = np.append(0.0, np.cumsum(steps))
        wanted = np.searchsorted(way, np.linspace(0.0, way[-1], max(count, 2))[1:-1])
        return sorted({0, *np.minimum(wanted, len(risk) - 1).tolist(), len(risk) - 1})

    def bounds(self, risk: float) -> tuple[float, float]:
        """Between which means the least mean at a given risk lies: the frontier less its gap, or, with `delta`, that for costs rounded down."""
        below = self.floor or self
        return below.least_mean(risk) * (1 - max(below.gap, SAME)), self.least_mean(risk)

    def plot(self, ax: Any = None) -> Any:
        """The frontier as a picture to choose from; returns the matplotlib Axes."""
        return plot_frontier(self, ax)

    def __repr__(self) -> str:
        ends = (
            f"{self.corners[0].risk:.6g} at mean {self.corners[0].mean:.6g} to {self.corners[-1].risk:.6g} at {self.corners[-1].mean:.6g}"
        )
        return f"<Frontier of {self.measure}: {len(self.corners)} corners, {ends}>"


class _Axis(NamedTuple):
    """How a measure is read off a table: the account, the budgets, and risk = factor * value + shift per unit of budget."""

    account: FloatArray
    budgets: range
    factor: float
    shift: float
    unit: float


def frontier(ssp: SSP, measure: Any, *, tolerance: float | None = None, delta: Any = None, progress: Progress | None = None) -> Frontier:
    """The corners of least mean against a measure: CVaR, late or shortfall; each corner has its policy.

    With `tolerance=0` all of them are found, however close; a large model may have thousands. Otherwise the search ends when the frontier cannot lie
    more than `tolerance` below the corners found, relatively to the mean; unless told, that is 0, or 1e-6 where all would take long (10^10 steps).
    `delta` rounds the costs to a grid: the corners are those for costs rounded up, and `bounds(risk)` brackets the frontier of the costs as they are.
    """
    risk = parse(measure)
    if delta is not None:
        upper, lower = (frontier(model, risk, tolerance=tolerance, progress=progress) for model in both_ways(ssp, delta))
        return replace(upper, corners=tuple(replace(corner, true=ssp) for corner in upper), floor=lower)
    check_unit(ssp)
    assert ssp.cost_unit is not None
    axis = _axis(ssp, risk)
    if ssp.is_goal[ssp.start_index] or not len(axis.budgets):
        expected = solve_expected(ssp)
        value = risk(evaluate_for(ssp, expected.policy, [risk]))
        return Frontier((Corner(ssp, risk, expected.cost(), value, ((1.0, 0.0, 0),), expected.cost()),), risk, 0.0)
    search = MeanRisk(ssp, axis.account, axis.budgets[-1])
    curves, gap = _refine(search, axis, tolerance, progress)
    corners = []
    for line in envelope(curves):
        parts = tuple((weight, price * axis.factor, axis.budgets[curve]) for weight, price, curve in line.parts)
        corners.append(
            Corner(ssp, risk, line.mean * float(ssp.cost_unit), line.risk * axis.unit, parts, line.before * float(ssp.cost_unit))
        )
    return Frontier(tuple(corners), risk, gap)


def _axis(ssp: SSP, measure: Measure) -> _Axis:
    assert ssp.cost_unit is not None
    unit = ssp.cost_unit
    if measure.curve is None and measure.tail is not None and measure.tail[0] == 1:
        # No budget beyond the CVaR of the risk-neutral policy can matter.
        most = measure(evaluate_for(ssp, solve_expected(ssp).policy, [measure])) / float(unit)
        return _Axis(EXCESS, range(math.floor(most * (1 + 1e-12)) + 1), 1 / measure.tail[1], 1.0, float(unit))
    if isinstance(measure, Late) and measure.curve is not None:
        level = math.floor(in_units(measure.deadline, unit)) + 1
        return _Axis(LATE, range(level, level + 1), 1.0, 0.0, 1.0)
    if isinstance(measure, Shortfall):
        if in_units(measure.budget, unit).denominator == 1:
            level = int(in_units(measure.budget, unit))
            return _Axis(EXCESS, range(level, level + (level > 0)), 1.0, 0.0, float(unit))
        raise OptionError(f"{measure}: for a frontier the budget must be a multiple of the cost unit {float(unit):g}")
    raise OptionError(f"a frontier is of the mean against cvar, late or shortfall, not {measure}")


def _refine(search: MeanRisk, axis: _Axis, tolerance: float | None, progress: Progress | None) -> tuple[list[Curve], float]:
    """Ask prices until the envelope of all curves is proved."""
    safest, neutral = search.safest(), tuple(values[0] for values in search.curves([0.0]))
    shift = np.array([axis.shift * w for w in axis.budgets])
    place = np.array(axis.budgets)
    curves = [
        Curve(
            i,
            [(math.inf, axis.factor * safest[0][w] + shift[i], safest[1][w]), (0.0, axis.factor * neutral[0][w] + shift[i], neutral[1][w])],
        )
        for i, w in enumerate(axis.budgets)
    ]
    typical = float(neutral[1][place[0]]) / max(float(np.max(safest[0][place] * axis.factor + shift)), 1e-300)
    prices, alive = list(typical * FIRST), curves
    while True:
        risks, means = search.curves([price * axis.factor for price in prices], axis.budgets[max(curve.number for curve in alive)])
        for price, risk, mean in zip(prices, risks, means):
            for curve in alive:
                w = axis.budgets[curve.number]
                curve.add(price, axis.factor * risk[w] + shift[curve.number], mean[w])
        lines = envelope(curves)
        if progress is not None:
            progress(search.tables, float(len(lines)))
        at = (np.repeat([line.risk for line in lines], 2), np.array([m for line in lines for m in (line.before, line.mean)]))
        wanted = sorted((gap for curve in alive for gap in curve.gaps(*at, tolerance or 0.0)), reverse=True)
        if not wanted:
            return curves, tolerance or 0.0
        if tolerance is None and search.updates >= LARGE and wanted[0][0] <= CLOSE * at[1][-1]:
            return curves, CLOSE
        # Curves that neither touch the envelope nor may still come to do so are done with.
        needed = touching(curves, lines)
        open_ = {number for _, _, number in wanted}
        curves = [curve for curve in curves if curve.number in needed or curve.number in open_]
        alive = [curve for curve in curves if curve.number in open_]
        prices = list(dict.fromkeys(price for gap, price, _ in wanted if gap >= wanted[0][0] * AT_ONCE))
