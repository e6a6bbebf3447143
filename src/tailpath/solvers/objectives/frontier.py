"""The frontier: the least mean for every level of risk, from the risk-neutral policy to the safest.
Its corners are policies; between two of them lie their mixtures (`least_means.py`).
"""

from __future__ import annotations

import math
import sys
from dataclasses import replace
from fractions import Fraction
from typing import Any

from tailpath.dp.budget_model import EXCESS, LATE
from tailpath.errors import OptionError
from tailpath.evaluation.evaluate import evaluate_for
from tailpath.model.border import Border, less, rounded_both_ways, shifted
from tailpath.model.cost_units import in_units
from tailpath.model.ssp import SSP
from tailpath.options import Progress, takes_alpha, takes_model, warn_of_confidence
from tailpath.risk.measure import Measure, is_cvar
from tailpath.risk.measures import Late, Shortfall, parse
from tailpath.solvers.exact.layout import require_unit
from tailpath.solvers.expectation import solve_expected
from tailpath.solvers.objectives.chords import SAME
from tailpath.solvers.objectives.frontier_answer import Corner, Frontier
from tailpath.solvers.objectives.least_means import VANISHED, RiskNeutral, Trade, least_means
from tailpath.solvers.objectives.tables import Axis


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
    assert ssp.cost_unit is not None
    unit = ssp.cost_unit
    deadline = isinstance(measure, Late) and measure.curve is not None
    if not (is_cvar(measure) or deadline or isinstance(measure, Shortfall)):
        raise OptionError(
            f"a frontier trades the mean against cvar, late or shortfall, not {measure}"
        )
    if measure.tail is not None:  # no CVaR is less than its budget
        budgets = range(math.floor(most / float(unit) * (1 + SAME)) + 1)
        return Axis(EXCESS, budgets, 1 / Fraction(measure.tail[1]), 1, unit)
    if isinstance(measure, Late):
        level, axis = math.floor(in_units(measure.deadline, unit)) + 1, (LATE, Fraction(1))
    else:
        assert isinstance(measure, Shortfall)
        level, axis = budget_level(measure, unit), (EXCESS, unit)
    return Axis(axis[0], range(level, level + 1), Fraction(1), 0, axis[1]) if level > 0 else None
