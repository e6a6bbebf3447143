"""The frontier: the least mean for every level of risk, from the risk-neutral policy to the safest.
Its corners are policies; between two of them lie their mixtures (`trade.py`).
"""

from __future__ import annotations

import math
import sys
from dataclasses import replace
from fractions import Fraction
from time import monotonic
from typing import Any

from tailpath.dp.budget_model import EXCESS, LATE
from tailpath.errors import OptionError
from tailpath.evaluation.evaluate import evaluate_for
from tailpath.model.border import Border
from tailpath.model.cost_units import in_units
from tailpath.model.potential import shifted
from tailpath.model.ssp import SSP
from tailpath.options import Progress, takes_alpha, takes_model, warn_of_confidence
from tailpath.risk.measure import Measure, is_cvar
from tailpath.risk.measures import Late, Shortfall, parse
from tailpath.solvers.exact.grid import rounded_both_ways
from tailpath.solvers.exact.layout import require_unit
from tailpath.solvers.expectation import solve_expected
from tailpath.solvers.objectives.answers import Corner, Frontier
from tailpath.solvers.objectives.price_search import VANISHED, MeanRisk, least_means
from tailpath.solvers.objectives.trade import SAME, Axis, Rounding

#: What a machine does, about; and so many tables of so many levels show a frontier.
UPDATES_PER_SECOND, FEWEST_TABLES, FEWEST_LEVELS = 10**8, 40, 500


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
        The search ends when it has caught the frontier within this share of its range: means and
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
        If a frontier cannot be made of the measure.
    ModelError
        If the costs have no common unit and no `delta` is given.
    GoalUnreachableError
        If the start cannot surely reach a goal.

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


def frontier_within(
    ssp: SSP, measure: Any, seconds: float, *, progress: Progress | None = None
) -> Frontier:
    """The frontier as far as some seconds give it: its `gap` says how exact it is. Costs are taken
    to a coarser grid if a few tables of them as they are would take longer.
    """
    until, unit = monotonic() + seconds, ssp.cost_unit
    delta = None
    if unit is not None:
        levels = (solve_expected(ssp).cost() - float(ssp.shift)) / float(unit)
        updates = FEWEST_TABLES * levels * ssp.n_outcomes
        if updates > seconds * UPDATES_PER_SECOND and levels > FEWEST_LEVELS:
            # Two frontiers, with costs rounded up and down.
            coarser = 2 * updates / max(seconds * UPDATES_PER_SECOND, 1)
            delta = unit * math.ceil(min(coarser, levels / FEWEST_LEVELS))
    return _prepared(ssp, parse(measure), delta, progress=progress, until=until)


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
    if border.moves:
        return _moved(border, risk, delta, how)
    if delta is None:
        return _frontier(ssp, risk, **how)
    above, below = rounded_both_ways(ssp, delta)
    half = (monotonic() + how.get("until", math.inf)) / 2
    floor = _frontier(below, risk, **{**how, "until": half})
    found = _frontier(above, risk, **how)
    corners = tuple(replace(corner, true=ssp) for corner in found.corners)
    return replace(found, corners=corners, floor=floor)


def _moved(border: Border, risk: Measure, delta: Any, how: dict[str, Any]) -> Frontier:
    """Where some cost is negative: what is asked moves there, and the answer back."""
    ssp, by, model = border.given, border.shift, border.model
    if isinstance(risk, Shortfall) and delta is None and ssp.cost_unit is not None:
        budget_level(risk, ssp.cost_unit)
        model = replace(model, exact_unit=ssp.cost_unit)  # that of the reduced costs may be coarser
    asked, more = risk.moved(by, model.cost_unit if delta is None else None)
    found = _prepared(model, asked, delta, **how)
    corners = tuple(
        replace(
            corner,
            mean=border.cost(corner.mean),
            risk=shifted(corner.risk, more),
            before=border.cost(corner.before),
            true=ssp,
        )
        for corner in found.corners
    )
    return replace(found, corners=corners, measure=risk, floor=None, reduced=found)


def _frontier(ssp: SSP, risk: Measure, **how: Any) -> Frontier:
    require_unit(ssp)
    assert ssp.cost_unit is not None
    axis, unit = axis_of(ssp, risk), float(ssp.cost_unit)
    if axis is None:
        expected = solve_expected(ssp)
        mean, (low, high) = expected.cost(), expected.bounds
        value = risk(evaluate_for(ssp, expected.policy, [risk]))
        rounding = Rounding(SAME + ((high - low) / mean if mean else 0.0), VANISHED)
        corner = Corner(ssp, risk, mean, value, ((1.0, 0.0, 0),), mean)
        return Frontier((corner,), risk, 0.0, rounding)
    tables = MeanRisk(ssp, axis.criterion, axis.budgets[-1])
    found = least_means(tables, axis, **how)
    risk_unit = 1.0 if axis.criterion is LATE else unit
    corners = tuple(
        Corner(ssp, risk, point.mean * unit, point.risk * risk_unit, point.parts, before * unit)
        for point, before in found.corners()
    )
    # Corners that are left out lie on the lines between the others, up to `SAME`; and so much for
    # units.
    rounding = Rounding(found.rounding.share + 2 * SAME, found.rounding.slack * risk_unit)
    return Frontier(corners, risk, found.gap, rounding)


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


def axis_of(ssp: SSP, measure: Measure) -> Axis | None:
    """How a measure is read off tables; None where the risk-neutral policy has least of it."""
    assert ssp.cost_unit is not None
    unit = ssp.cost_unit
    deadline = isinstance(measure, Late) and measure.curve is not None
    if not (is_cvar(measure) or deadline or isinstance(measure, Shortfall)):
        raise OptionError(
            f"a frontier is of the mean against cvar, late or shortfall, not {measure}"
        )
    if isinstance(measure, Shortfall):
        budget_level(measure, unit)
    risk_neutral = measure(evaluate_for(ssp, solve_expected(ssp).policy, [measure]))
    if risk_neutral <= VANISHED:
        return None
    if measure.tail is not None:  # no budget beyond the CVaR of the risk-neutral policy can matter
        most = math.floor(risk_neutral / float(unit) * (1 + SAME))
        return Axis(EXCESS, range(most + 1), 1 / measure.tail[1], 1.0)
    if isinstance(measure, Late):
        criterion, level = LATE, math.floor(in_units(measure.deadline, unit)) + 1
    else:
        assert isinstance(measure, Shortfall)
        criterion, level = EXCESS, budget_level(measure, unit)
    return Axis(criterion, range(level, level + 1), 1.0, 0.0) if level > 0 else None
