"""Minimise any measure of risk, under limits on others.

| objective | limits | how |
| --- | --- | --- |
| the mean | none | `solve_expected` |
| CVaR, mean and CVaR | none | `solve_cvar_exact` |
| VaR, late | none | `solve_on_time` |
| entropic risk, EVaR | none | the exponential Bellman equation, `entropic.py` |
| any loss | none | the recursion of `losses.py` |
| the mean | one CVaR | `least_means.py`: a point of the frontier |
| any of these | any of these, one CVaR in all | column generation, `limits.py` |

A limit that the best policy without it keeps is not looked at any further. A limit on VaR is one on
the probability of being late: VaR_alpha <= t exactly if P(Z > t) <= alpha.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from functools import cache, partial
from typing import Any

import numpy as np

from tailpath.analysis.reachability import nature_called
from tailpath.certify.budgets import Later
from tailpath.errors import InfeasibleError, LimitExceededError, OptionError, PolicyError
from tailpath.evaluation.evaluate import evaluate_for
from tailpath.model.border import (
    Border,
    prepare,
    require_unit,
    rounded,
    rounded_both_ways,
    shifted,
    shifted_bounds,
    shifted_costs,
)
from tailpath.model.ssp import SSP
from tailpath.options import takes_alpha, takes_model, warn_of_confidence
from tailpath.policies.policy import on_model
from tailpath.risk.measure import Limit, Measure, is_cvar
from tailpath.risk.measures import Late, Mean, VaR, parse, parse_limit
from tailpath.solvers.objectives.answers import RiskSolution
from tailpath.solvers.objectives.frontier import axis_of
from tailpath.solvers.objectives.least_means import least_means
from tailpath.solvers.objectives.limits import SLACK, solve_limited
from tailpath.solvers.objectives.on_time import on_time_until
from tailpath.solvers.objectives.unconstrained import (
    MAX_NODES,
    check_size,
    least_alone,
    solve_robust,
)
from tailpath.solvers.objectives.worst import solve_worst

#: No deadline beyond so many cost units is tried for a VaR.
LATEST = 10**7


@takes_model
@takes_alpha
def solve(
    ssp: Any,
    objective: Any,
    subject_to: Iterable[Any] = (),
    *,
    delta: Any = None,
    nature: str = "adversarial",
    sense: str = "min",
) -> RiskSolution:
    """Find the policy with the least `objective` among all that keep the limits of `subject_to`.

    With `sense="max"` it is the worst policy, which has the largest one.

    Parameters
    ----------
    ssp : SSP or IntervalSSP
        The model.
    objective : Measure or str
        What is minimised: `tp.CVaR(0.05)`, `0.7 * tp.Mean() + 0.3 * tp.CVaR(0.05)`, or the same as
        text, `"cvar(0.05)"`. Measures are `Mean`, `CVaR`, `VaR`, `Late`, `Shortfall`, `Loss` and
        sums of them, `Entropic` and `EVaR`.
    subject_to : iterable of Limit or str, or one of them
        Upper limits: `tp.CVaR(0.01) <= 40`, or `"late(35) <= 0.05"`. At most one CVaR may occur in
        objective and limits together.
    delta : number, optional
        Rounds the costs to multiples of it, for models whose costs have no common unit: the policy
        is the best one for costs rounded up, `value` what it delivers on the costs as they are, and
        `bounds` brackets their optimum.
    nature : {"adversarial", "cooperative"}
        For a model with intervals: whether nature picks the probabilities against us or for us.
    sense : {"min", "max"}
        "max" finds the worst policy of all, for the mean, a CVaR, VaR, `Late` or a loss, without
        limits; for rewards given as costs that is the best one. The value is infinite where a
        policy may stay away from the goals for ever.

    Returns
    -------
    RiskSolution
        `value`, `bounds` on the optimum, `policy`, and what each limit costs (`multipliers`).

    Raises
    ------
    InfeasibleError
        If no policy keeps the limits; `least` is the least attainable value, where a single limit
        is at fault.
    OptionError
        If a measure or a limit is invalid, or no solver supports it.
    ModelError
        If the costs have no common unit, no `delta` is given, and the mean alone is not enough.
    GoalUnreachableError
        If the start cannot reach a goal with probability 1 and the objective needs it.

    Examples
    --------
    >>> best = tp.solve(ssp, "mean", ["cvar(0.1) <= 45"])
    >>> best
    <RiskSolution mean = 27 with cvar(0.1) <= 45, by a mixture of 2 policies>
    >>> round(best.risk("late(30)"), 6)
    0.05
    >>> tp.solve(ssp, tp.CVaR(0.1)).value, tp.solve(ssp, tp.CVaR(0.1), sense="max").value
    (30.0, 60.0)
    """
    if isinstance(subject_to, (str, Limit)):
        subject_to = [subject_to]
    goal, border = parse(objective), prepare(ssp)
    warn_of_confidence(goal.finest_alpha)
    nature_called(nature)
    if sense == "max":
        _check_worst(border, subject_to)
    elif sense != "min":
        raise OptionError(f"sense must be 'min' or 'max', not {sense!r}")
    if border.uncertain:
        return solve_robust(border.given, goal, tuple(subject_to), delta, nature)
    limits = tuple(parse_limit(limit) for limit in subject_to)
    for limit in limits:
        warn_of_confidence(limit.measure.finest_alpha)
    exact, on_grid = (_solve, _bracketed) if sense == "min" else (solve_worst, _worst_on_grid)
    solved = exact if delta is None else partial(on_grid, delta=delta)
    if not border.moves:
        return solved(border.model, goal, limits)
    # Some cost is negative: what is asked moves to costs of 0 or more, and the answer back.
    unit = border.model.cost_unit if delta is None else None
    asked, moved = goal.moved(border.shift, unit)[0], [m.moved(border.shift, unit) for m in limits]
    try:
        found = solved(border.model, asked, tuple(moved))
    except LimitExceededError as error:
        raise border.error(error) from None
    except InfeasibleError as error:
        if len(limits) != 1 or error.least is None:
            raise InfeasibleError(f"no policy keeps {' and '.join(map(str, limits))}") from None
        constant = limits[0].measure.moved(border.shift, unit)[1]
        raise _kept_by_none(limits[0], shifted(error.least, constant)) from None
    return _restored(found, border, goal, limits, unit)


def _restored(
    found: RiskSolution,
    border: Border,
    goal: Measure,
    limits: tuple[Limit, ...],
    unit: Fraction | None,
) -> RiskSolution:
    """What was found for costs of 0 or more, for the model as given."""
    constant = goal.moved(border.shift, unit)[1]

    def possible(*costs: float) -> list[float]:
        moved: list[float] = shifted_costs(np.array(costs), unit, constant).tolist()
        return moved

    if isinstance(goal, VaR) and unit is not None:  # possible costs, which are multiples of it
        value, proof = possible(found.value)[0], Later(lambda: tuple(possible(*found.bounds)))
    else:
        value = shifted(found.value, constant)
        proof = Later(lambda: shifted_bounds(found.bounds, constant, border.exact))
    policy = on_model(found.policy, border.given)
    return replace(
        found,
        ssp=border.given,
        objective=goal,
        limits=limits,
        value=value,
        proof=proof,
        policy=policy,
    )


def _check_worst(border: Border, limits: Any) -> None:
    """Refuse what does not go together with the worst policy."""
    refused = {"limits": bool(limits), "intervals; take model.nominal()": border.uncertain}
    for what, given in refused.items():
        if given:
            raise OptionError(f"the worst policy (sense='max', --maximise) is found without {what}")


def _worst_on_grid(ssp: SSP, goal: Measure, limits: tuple[Limit, ...], delta: Any) -> RiskSolution:
    """The worst policy for costs rounded up, which bound the largest value from above, and what it
    costs as they are.
    """
    _check_rising(goal)
    above = solve_worst(rounded(ssp, delta, up=True), goal, limits)
    worst = replace(above, ssp=ssp, policy=on_model(above.policy, ssp))
    if math.isinf(above.value):
        return worst
    costs = evaluate_for(ssp, worst.policy, [goal], max_nodes=MAX_NODES)
    proof = Later(lambda: (costs.bounds(goal)[0], above.bounds[1]))
    return replace(worst, value=goal(costs), proof=proof)


def _bracketed(ssp: SSP, goal: Measure, limits: tuple[Limit, ...], delta: Any) -> RiskSolution:
    """The optimum on a grid: bounded from below by that of the costs rounded down, from above by
    what the policy for costs rounded up delivers on the costs as they are.
    """
    for measure in (goal, *(limit.measure for limit in limits)):
        _check_rising(measure)
    above, below = rounded_both_ways(ssp, delta)
    lower = _solve(below, goal, limits)
    try:
        upper = _solve(above, goal, limits)
    except InfeasibleError as error:
        raise InfeasibleError(
            f"with costs rounded up to multiples of {delta}, {error}; a finer delta may find one",
            None,
        ) from None
    policy, value, delivered = on_model(upper.policy, ssp), upper.value, None
    with suppress(LimitExceededError):
        delivered = evaluate_for(ssp, policy, [goal], max_nodes=MAX_NODES)
        value = min(goal(delivered), value)

    def bounds() -> tuple[float, float]:
        high = math.inf if delivered is None else delivered.bounds(goal)[1]
        return lower.bounds[0], min(high, upper.bounds[1])

    return replace(upper, ssp=ssp, value=value, proof=Later(bounds), policy=policy)


def _check_rising(measure: Measure) -> None:
    """Refuse a measure that some higher cost makes smaller: rounded costs do not bound it."""
    curve = measure.curve
    if curve is None:
        return
    values = [value for pair in zip(curve.at, curve.after) for value in pair]
    if any(b < a for a, b in itertools.pairwise(values)) or curve.slope < 0:
        raise OptionError(
            f"{measure} falls somewhere as costs rise; delta bounds only measures that never do"
        )


def _solve(ssp: SSP, goal: Measure, limits: tuple[Limit, ...]) -> RiskSolution:
    """On costs of 0 or more: without limits first, and then with as few as matter."""
    if limits:
        require_unit(ssp)
    _check(ssp, goal, limits)
    best = least_alone(ssp, goal)
    if all(_keeps(best, limit) for limit in limits):
        return replace(best, limits=limits, multipliers=(0.0,) * len(limits))
    for limit in limits:  # each must be one that can be kept if it were alone
        alone, most = least_alone(ssp, limit.measure), limit.bound
        most += SLACK * abs(most) if math.isfinite(most) else 0.0
        if alone.value > most and alone.bounds[0] > most:
            raise _kept_by_none(limit, alone.value)
    if isinstance(goal, VaR):
        return _least_var(ssp, goal, limits)
    if isinstance(goal, Mean) and len(limits) == 1 and is_cvar(limits[0].measure):
        return _least_mean(ssp, limits[0])
    tail = next((i for i, limit in enumerate(limits) if limit.measure.tail is not None), None)
    if tail is not None and len(limits) > 1:
        # A limit on CVaR takes a search for each of its budgets, so it is worth to see first
        # whether it matters.
        found = _solve(ssp, goal, limits[:tail] + limits[tail + 1 :])
        if _keeps(found, limits[tail]):
            prices = (*found.multipliers[:tail], 0.0, *found.multipliers[tail:])
            return replace(found, limits=limits, multipliers=prices)
    try:
        return solve_limited(ssp, goal, limits)
    except InfeasibleError as error:
        if error.least is not None or len(limits) < 2:
            raise
        *others, last = limits
        least = _solve(ssp, last.measure, tuple(others)).value
        under = " and ".join(map(str, others))
        raise InfeasibleError(
            f"no policy keeps {last} together with {under}: {last.measure} is then at least"
            f" {least:.6g}",
            least,
        ) from None


def _check(ssp: SSP, goal: Measure, limits: tuple[Limit, ...]) -> None:
    """Refuse what no solver here takes."""
    measures = (goal, *(limit.measure for limit in limits))
    if sum(measure.tail is not None for measure in measures) > 1:
        raise OptionError("at most one CVaR may occur in objective and limits together")
    for limit in limits:
        if isinstance(limit.measure, Late) and math.isinf(limit.measure.deadline):
            raise OptionError(
                f"{limit} limits the probability of never arriving; use given_arrival or give_up to"
                " make the goal certain"
            )
    for measure in measures:
        check_size(ssp, measure)


def _kept_by_none(limit: Limit, least: float) -> InfeasibleError:
    return InfeasibleError(
        f"no policy keeps {limit}: {limit.measure} is at least {least:.6g}", least
    )


def _keeps(found: RiskSolution, limit: Limit) -> bool:
    """Whether a policy surely keeps a limit, as far as can be found out quickly."""
    if limit.bound == math.inf:
        return True
    try:
        costs = evaluate_for(found.ssp, found.policy, [limit.measure], max_nodes=MAX_NODES)
    except (LimitExceededError, PolicyError):  # an end at no cost that is no goal
        return False
    return bool(costs.bounds(limit.measure)[1] <= limit.bound)


def _least_mean(ssp: SSP, limit: Limit) -> RiskSolution:
    """The least mean under one limit on CVaR: a point of the frontier."""
    unit, axis = float(require_unit(ssp)), axis_of(ssp, limit.measure, max(limit.bound, 0.0))
    assert axis is not None
    bound = limit.bound / unit
    found = least_means(ssp, axis, bound)
    point = found.point(bound)
    value, saved = point.mean * unit, found.slope(bound)

    def bounds() -> tuple[float, float]:
        low, high = found.bounds(limit.bound)
        return min(low, value), max(high, value)

    policy = found.tables.mixed(point.parts)
    return RiskSolution(ssp, Mean(), (limit,), value, Later(bounds), policy, (saved,))


def _least_var(ssp: SSP, goal: VaR, limits: tuple[Limit, ...]) -> RiskSolution:
    """The least t for which the lateness can be alpha under the limits. A later deadline is easier
    to keep, so that it can be bisected.
    """
    unit, alpha, prices = require_unit(ssp), goal.alpha, (0.0,) * len(limits)
    alone = on_time_until(ssp, alpha).var(alpha)
    if math.isinf(alone):  # that of every policy
        policy = _solve(ssp, limits[0].measure, limits).policy
        return RiskSolution(ssp, goal, limits, alone, Later(lambda: (alone, alone)), policy, prices)

    @cache
    def lateness(t: int) -> RiskSolution:
        return _solve(ssp, Late(float(t * unit)), limits)

    def first(late: Callable[[RiskSolution], float], most: float, guess: int) -> int:
        low, high = -1, max(guess, 1)
        while late(lateness(high)) > most:
            low, high = high, 2 * high
            if high > LATEST:
                raise InfeasibleError(
                    f"under these limits no VaR at {alpha:g} was found below {float(low * unit):g}"
                )
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if late(lateness(middle)) <= most else (middle, high)
        return high

    found = first(lambda best: best.value, alpha * (1 + SLACK), round(alone / float(unit)))

    def bounds() -> tuple[float, float]:
        low = float(first(lambda best: best.bounds[0], alpha, found) * unit)
        with suppress(InfeasibleError):
            return low, float(first(lambda best: best.bounds[1], alpha, found) * unit)
        return low, math.inf

    t, policy = float(found * unit), lateness(found).policy
    return RiskSolution(ssp, goal, limits, t, Later(bounds), policy, prices)
