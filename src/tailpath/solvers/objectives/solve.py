"""Minimise any measure of risk, under limits on others.

| objective | limits | how |
| --- | --- | --- |
| the mean | none | `solve_expected` |
| CVaR, mean and CVaR | none | `solve_cvar_exact` |
| VaR, late | none | `solve_on_time` |
| any loss | none | the recursion of `losses.py` |
| the mean | one CVaR | `price_search.py`: a point of the frontier |
| any of these | any of these, one CVaR in all | column generation, `limits.py` |

A limit that the best policy without it keeps is not looked at any further. A limit on VaR is one on
the probability of being late: VaR_alpha <= t exactly if P(Z > t) <= alpha.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from typing import Any, overload

import numpy as np

from tailpath.analysis.reachability import nature_called
from tailpath.dp.budget_model import EXCESS
from tailpath.errors import InfeasibleError, LimitExceededError, OptionError
from tailpath.evaluation.evaluate import evaluate_for
from tailpath.model.border import Border, prepare
from tailpath.model.interval import IntervalSSP
from tailpath.model.potential import shifted, shifted_bounds, shifted_costs
from tailpath.model.ssp import SSP
from tailpath.options import takes_alpha, takes_model, warn_of_confidence
from tailpath.risk.measure import Limit, Measure, is_cvar
from tailpath.risk.measures import Late, Mean, VaR, parse, parse_limit
from tailpath.solvers.exact.grid import check_rising, on_model, rounded_both_ways
from tailpath.solvers.exact.layout import require_unit
from tailpath.solvers.objectives.answers import RiskSolution
from tailpath.solvers.objectives.limits import SLACK, row_of, solve_limited
from tailpath.solvers.objectives.on_time import on_time_until
from tailpath.solvers.objectives.price_search import MeanRisk, least_means
from tailpath.solvers.objectives.trade import Axis
from tailpath.solvers.objectives.unconstrained import (
    MAX_NODES,
    RobustRisk,
    check_size,
    least_alone,
    solve_robust,
)


@overload
def solve(
    ssp: SSP,
    objective: Any,
    subject_to: Iterable[Any] = (),
    *,
    mix: bool = True,
    delta: Any = None,
    nature: str = "adversarial",
) -> RiskSolution: ...


@overload
def solve(
    ssp: IntervalSSP,
    objective: Any,
    subject_to: Iterable[Any] = (),
    *,
    mix: bool = True,
    delta: Any = None,
    nature: str = "adversarial",
) -> RobustRisk | RiskSolution: ...


@takes_model
@takes_alpha
def solve(
    ssp: Any,
    objective: Any,
    subject_to: Iterable[Any] = (),
    *,
    mix: bool = True,
    delta: Any = None,
    nature: str = "adversarial",
) -> RiskSolution | RobustRisk:
    """Find the policy with the least `objective` among all that keep the limits of `subject_to`.

    Parameters
    ----------
    ssp : SSP or IntervalSSP
        The model.
    objective : Measure or str
        What is minimised: `tp.CVaR(0.05)`, `0.7 * tp.Mean() + 0.3 * tp.CVaR(0.05)`, or the same as
        text, `"cvar(0.05)"`. Measures are `Mean`, `CVaR`, `VaR`, `Late`, `Shortfall`, `Loss` and
        sums of them.
    subject_to : iterable of Limit or str, or one of them
        Upper limits: `tp.CVaR(0.01) <= 40`, or `"late(35) <= 0.05"`. At most one CVaR may occur in
        objective and limits together.
    mix : bool
        Under limits the optimum may need a `MixedPolicy`, which tosses a coin at the start. With
        False the best single policy that was found is returned; `bounds` reaches up to its value,
        and down to what mixtures cannot fall below.
    delta : number, optional
        Rounds the costs to multiples of it, for models whose costs have no common unit: the policy
        is the best one for costs rounded up, `value` what it delivers on the costs as they are, and
        `bounds` brackets their optimum.
    nature : {"adversarial", "cooperative"}
        Of a model with intervals: who picks the probabilities inside them, against us or for us.

    Returns
    -------
    RiskSolution
        `value`, `bounds` on the optimum, `policy`, and what each limit costs (`multipliers`).

    Raises
    ------
    InfeasibleError
        If no policy keeps the limits; `least` is the least value that can be had, where one limit
        alone is at fault.
    OptionError
        If a measure or a limit makes no sense, or no solver here takes it.
    ModelError
        If the costs have no common unit, no `delta` is given, and more than the mean is asked for.
    GoalUnreachableError
        If the start cannot surely reach a goal and the objective needs it.

    Examples
    --------
    >>> best = tp.solve(ssp, "mean", ["cvar(0.1) <= 45"])
    >>> best
    <RiskSolution mean = 27 with cvar(0.1) <= 45, by a coin between 2 policies>
    >>> round(best.risk("late(30)"), 6)
    0.05
    >>> tp.solve(ssp, tp.CVaR(0.1)).value
    30.0
    """
    if isinstance(subject_to, (str, Limit)):
        subject_to = [subject_to]
    goal = parse(objective)
    warn_of_confidence(goal.finest_alpha)
    border = prepare(ssp)
    nature_called(nature)
    if border.uncertain:
        return _with_intervals(border.given, goal, tuple(subject_to), delta, nature)
    ssp = border.given
    limits = tuple(parse_limit(limit) for limit in subject_to)
    for limit in limits:
        warn_of_confidence(limit.measure.finest_alpha)
    if border.moves:
        return _moved(border, goal, limits, mix, delta)
    if delta is not None:
        return _rounded(ssp, goal, limits, mix, delta)
    if limits or not isinstance(goal, Mean):
        require_unit(ssp)
    _check_limits(goal, limits)
    for measure in (goal, *(limit.measure for limit in limits)):
        check_size(ssp, measure)
    best = least_alone(ssp, goal)
    if all(_keeps(best, limit) for limit in limits):
        return replace(best, limits=limits, multipliers=(0.0,) * len(limits))
    _check_each(ssp, limits)
    if isinstance(goal, VaR):
        return _least_var(ssp, goal, limits, mix)
    if isinstance(goal, Mean) and len(limits) == 1 and is_cvar(limits[0].measure):
        return _least_mean(ssp, limits[0], mix)
    tail = next((i for i, limit in enumerate(limits) if limit.measure.tail is not None), None)
    if tail is not None and len(limits) > 1:
        # A limit on CVaR takes a search for each of its budgets, so it is worth to see first
        # whether it matters.
        found: RiskSolution = solve(ssp, goal, limits[:tail] + limits[tail + 1 :], mix=mix)
        if _keeps(found, limits[tail]):
            prices = (*found.multipliers[:tail], 0.0, *found.multipliers[tail:])
            return replace(found, limits=limits, multipliers=prices)
    rows = [row_of(limit.measure, limit.bound) for limit in limits]
    try:
        return solve_limited(ssp, goal, limits, [row_of(goal), *rows], mix)
    except InfeasibleError as error:
        if error.least is not None or len(limits) < 2 or not mix:
            raise
        *others, last = limits
        least = solve(ssp, last.measure, others).value
        under = " and ".join(map(str, others))
        raise InfeasibleError(
            f"no policy keeps {last} with {under}: {last.measure} is then at least {least:.6g}",
            least,
        ) from None


def _moved(
    border: Border, goal: Measure, limits: tuple[Limit, ...], mix: bool, delta: Any
) -> RiskSolution:
    """Where some cost is negative: what is asked moves there, and the answer back."""
    ssp, by = border.given, border.shift
    unit = border.model.cost_unit if delta is None else None
    asked, constant = goal.moved(by, unit)
    moved = [limit.moved(by, unit) for limit in limits]
    try:
        found = solve(border.model, asked, moved, mix=mix, delta=delta)
    except InfeasibleError as error:
        if len(limits) != 1 or error.least is None:
            raise InfeasibleError(f"no policy keeps {' and '.join(map(str, limits))}") from None
        raise _kept_by_none(
            limits[0], shifted(error.least, limits[0].measure.moved(by, unit)[1])
        ) from None
    if isinstance(goal, VaR) and unit is not None:  # possible costs, which are multiples of it
        ends = shifted_costs(np.array([found.value, *found.bounds]), unit, constant)
        value, low, high = ends.tolist()
    else:
        value, rounding = shifted(found.value, constant), _breakpoint_error(goal, asked, by)
        low, high = shifted_bounds(found.bounds, constant, border.exact)
        low, high = low - rounding, high + rounding
    policy = on_model(found.policy, ssp)
    return RiskSolution(ssp, goal, limits, value, (low, high), policy, found.multipliers)


def _breakpoint_error(goal: Measure, asked: Measure, by: Fraction) -> float:
    """What the value may be off by since breakpoints that were moved are the nearest floats: mostly
    nothing."""
    total = 0.0
    for (factor, old), (_, new) in zip(goal.terms, asked.terms):
        if old.curve is not None and new.curve is not None and not isinstance(old, (Late, Mean)):
            pairs = zip(old.curve.breakpoints, new.curve.breakpoints)
            distance = max(abs(float(there - (here - by))) for here, there in pairs)
            total += abs(factor) * distance * old.curve.steepest * 2
    return total


def _with_intervals(
    model: IntervalSSP, objective: Measure, limits: tuple[Any, ...], delta: Any, nature: str
) -> RobustRisk:
    if limits:
        raise OptionError(
            "limits need known probabilities: nature would not be the same for the objective"
            " and for each limit; take model.nominal(), or solve for the measure of the limit"
            " and look at its policy's band"
        )
    if delta is not None:
        raise OptionError(
            "models with intervals need costs with a common unit; delta is not for them"
        )
    return solve_robust(model, objective, nature)


def _rounded(
    ssp: SSP, goal: Measure, limits: tuple[Limit, ...], mix: bool, delta: Any
) -> RiskSolution:
    """The optimum bracketed: from below by that of the costs rounded down, from above by what the
    policy for costs rounded up delivers on the costs as they are.
    """
    for measure in (goal, *(limit.measure for limit in limits)):
        check_rising(measure)
    above, below = rounded_both_ways(ssp, delta)
    lower = solve(below, goal, limits)
    try:
        upper = solve(above, goal, limits, mix=mix)
    except InfeasibleError as error:
        raise InfeasibleError(
            f"with costs rounded up to multiples of {delta}, {error}; a finer delta may find one",
            None,
        ) from None
    policy, value, high = on_model(upper.policy, ssp), upper.value, upper.bounds[1]
    with suppress(LimitExceededError):
        costs = evaluate_for(ssp, policy, [goal], max_nodes=MAX_NODES)
        value, high = min(goal(costs), value), min(costs.bounds(goal)[1], high)
    return replace(upper, ssp=ssp, value=value, bounds=(lower.bounds[0], high), policy=policy)


def _least_mean(ssp: SSP, limit: Limit, mix: bool) -> RiskSolution:
    """The least mean under one limit on CVaR."""
    assert ssp.cost_unit is not None and limit.measure.tail is not None
    unit, alpha = float(ssp.cost_unit), limit.measure.tail[1]
    bound = limit.bound / unit
    most = max(math.floor(bound * (1 + SLACK)), 0)
    tables = MeanRisk(ssp, EXCESS, most)
    found = least_means(tables, Axis(EXCESS, range(most + 1), 1 / alpha, 1.0), bound)
    rounding = found.rounding
    low = found.mean(rounding.above(bound)) * (1 - rounding.share) * unit
    high = found.mean(rounding.below(bound)) * (1 + rounding.share) * unit
    point = found.point(bound) if mix else found.alone(max(bound, found.least_risk))
    value, saved = point.mean * unit, found.slope(bound) if mix else 0.0
    policy = tables.mixed(point.parts)
    return RiskSolution(ssp, Mean(), (limit,), value, (low, max(high, value)), policy, (saved,))


def _check_limits(goal: Measure, limits: tuple[Limit, ...]) -> None:
    """Refuse what no solver here takes."""
    measures = (goal, *(limit.measure for limit in limits))
    if sum(measure.tail is not None for measure in measures) > 1:
        raise OptionError("at most one CVaR may occur in objective and limits together")
    for limit in limits:
        if isinstance(limit.measure, Late) and math.isinf(limit.measure.deadline):
            raise OptionError(
                f"{limit} limits the probability of never arriving; use given_arrival or give_up to"
                " make the goal sure"
            )


def _check_each(ssp: SSP, limits: tuple[Limit, ...]) -> None:
    """Every limit must be one that can be kept if it were alone."""
    for limit in limits:
        least = least_alone(ssp, limit.measure)
        slack = SLACK * abs(limit.bound) if math.isfinite(limit.bound) else 0.0
        if least.bounds[0] > limit.bound + slack and least.value > limit.bound:
            raise _kept_by_none(limit, least.value)


def _kept_by_none(limit: Limit, least: float) -> InfeasibleError:
    return InfeasibleError(
        f"no policy keeps {limit}: {limit.measure} is at least {least:.6g}", least
    )


def _keeps(found: RiskSolution, limit: Limit) -> bool:
    """Whether a policy surely keeps a limit, as far as can be found out quickly."""
    try:
        costs = evaluate_for(found.ssp, found.policy, [limit.measure], max_nodes=MAX_NODES)
    except LimitExceededError:
        return False
    return bool(costs.bounds(limit.measure)[1] <= limit.bound)


def _least_var(ssp: SSP, goal: VaR, limits: tuple[Limit, ...], mix: bool) -> RiskSolution:
    """The least t for which the lateness can be alpha under the limits: bisection over t, since a
    later deadline is easier to keep.
    """
    assert ssp.cost_unit is not None
    unit = ssp.cost_unit

    def lateness(t: int) -> RiskSolution:
        return solve(ssp, Late(float(t * unit)), limits, mix=mix)

    low, high = -1, max(round(on_time_until(ssp, goal.alpha).var(goal.alpha) / float(unit)), 1)
    while lateness(high).value > goal.alpha * (1 + SLACK):
        low, high = high, 2 * high
        if high > 10**7:
            raise InfeasibleError(
                f"under these limits no VaR at {goal.alpha:g} was found below {float(low * unit):g}"
            )
    while high - low > 1:
        middle = (low + high) // 2
        enough = lateness(middle).value <= goal.alpha * (1 + SLACK)
        low, high = (low, middle) if enough else (middle, high)
    policy, t = lateness(high).policy, float(high * unit)
    # What no single policy was found to do a mixture may, and a lower bound holds for that, too.
    least = t if mix else _least_var(ssp, goal, limits, mix=True).value
    return RiskSolution(ssp, goal, limits, t, (min(least, t), t), policy, (0.0,) * len(limits))
