"""Minimise one measure of risk, without limits: each kind by the solver that has its recursion; on
models with intervals against or with nature.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from tailpath.analysis.reachability import almost_sure_states, nature_called
from tailpath.analysis.robust import robust, robust_with_penalty
from tailpath.analysis.tables import BudgetTable
from tailpath.certify.budgets import Later
from tailpath.certify.losses import loss_error
from tailpath.certify.rounding import AFTERWARDS
from tailpath.errors import LimitExceededError, OptionError
from tailpath.evaluation.evaluate import evaluate_for
from tailpath.evaluation.product import LONGEST, SHORT, has_converged
from tailpath.model.border import require_unit, shifted_bounds
from tailpath.model.interval import IntervalSSP
from tailpath.model.ssp import SSP
from tailpath.policies.policy import Policy
from tailpath.risk.curves import Curve
from tailpath.risk.measure import Measure, Sum, is_cvar
from tailpath.risk.measures import Late, Mean, VaR
from tailpath.solvers.exact.layout import budget_policy
from tailpath.solvers.exact.robust import solve_robust_cvar
from tailpath.solvers.exact.solver import least_weighted
from tailpath.solvers.expectation import both_sides, other_nature, solve_expected
from tailpath.solvers.objectives.answers import RiskSolution
from tailpath.solvers.objectives.limits import SLACK, row_of, solve_limited
from tailpath.solvers.objectives.losses import Losses, costs_by_budget, horizon_of
from tailpath.solvers.objectives.on_time import LONG, NOBODY_LATE, on_time_until, solve_on_time

#: An optimum, a function that proves bounds on it, and a policy.
Found = tuple[float, Callable[[], tuple[float, float]], Policy]
#: An evaluation that would only spare a search ends after so many nodes.
MAX_NODES = 10**7
#: Values beyond this are too close to the largest float to add them up.
MOST = 1e305


def least_alone(ssp: SSP, goal: Measure) -> RiskSolution:
    """The least of a measure: by the solver that it names, or by its loss and its CVaR."""
    found = goal.solved(ssp) or _by_curve(ssp, goal)
    if found is None:
        return solve_limited(ssp, goal, ())
    value, bounds, policy = found
    return RiskSolution(ssp, goal, (), value, Later(bounds), policy)


def least_mean(ssp: Any, goal: Mean, nature: str = "adversarial") -> Found:
    expected = solve_expected(ssp, nature=nature)
    return expected.cost(), lambda: expected.bounds, expected.policy


def least_var(ssp: SSP, goal: VaR) -> Found:
    require_unit(ssp)
    on_time = on_time_until(ssp, goal.alpha)
    t = on_time.var(goal.alpha)
    policy = on_time.policy(t) if on_time.late(t) < 1 - SLACK else on_time.cheapest()
    return t, lambda: on_time.var_bounds(goal.alpha), policy


def least_lateness(ssp: Any, goal: Late, nature: str = "adversarial") -> Found:
    by, lateness = goal.deadline, solve_on_time(ssp, max(goal.deadline, 0.0), nature=nature)
    return lateness.late(by), lambda: lateness.late_bounds(by), lateness.policy(by)


def _by_curve(ssp: SSP, goal: Measure) -> Found | None:
    """An expected loss, or mean and CVaR; None for a sum of a loss and a CVaR."""
    if goal.curve is None and goal.tail is None:
        raise OptionError(
            f"no solver minimises {goal}: it names none, and is not a sum of losses and CVaRs"
        )
    require_unit(ssp)
    row, mean = row_of(goal), _factor_of_mean(goal)
    if row.factor == 0:
        if spared := _risk_neutral_if_enough(ssp, goal):
            return spared
        losses, alone = Losses(ssp, [row.curve]), np.ones(1)
        value, policy = losses.price(alone).value, losses.policy(alone)
        return value, lambda: (losses.low(alone), float(losses.high(alone)[0])), policy
    if mean is None:
        return None
    alpha, scale = row.alpha, mean + row.factor
    weight = row.factor / scale
    if 1 - weight == 1:
        raise OptionError(f"{goal}: the CVaR weighs too little to be computed with; leave it out")
    least, proved, policy = least_weighted(ssp, alpha, weight)
    value = scale * least
    if math.isfinite(value) and value > MOST:
        raise _too_large(goal)
    # The weight is rounded, and so is the scale; both factors are positive, and the mean is no more
    # than CVaR.
    rounding = AFTERWARDS if mean or scale != 1 else 0.0

    def bounds() -> tuple[float, float]:
        low, high = proved()
        return scale * low * (1 - rounding), scale * high * (1 + rounding)

    return value, bounds, policy


def _risk_neutral_if_enough(ssp: SSP, goal: Measure) -> Found | None:
    """The risk-neutral policy, if it never gets to where the loss, the mean aside, is more than the
    least; a long table is then spared.
    """
    mean = sum(factor for factor, part in goal.terms if isinstance(part, Mean))
    others = Sum(tuple(term for term in goal.terms if not isinstance(term[1], Mean)))
    curve = others.curve
    if mean < 0 or curve is None or curve.slope < 0 or curve.units(require_unit(ssp)) <= LONG:
        return None
    if not almost_sure_states(ssp)[0][ssp.start_index]:
        return None
    expected, least = solve_expected(ssp), curve.least
    try:
        costs = evaluate_for(ssp, expected.policy, [goal, others], max_nodes=MAX_NODES)
    except LimitExceededError:
        return None
    # What an evaluation cannot tell from nobody may still have its way before it.
    longest = float(np.max(expected.value, where=np.isfinite(expected.value), initial=1.0))
    more = costs.bounds(others)[1] - least
    if more > 100 * NOBODY_LATE * (1 + abs(least) + curve.slope * longest):
        return None

    def bounds() -> tuple[float, float]:
        low = Fraction(mean) * Fraction(expected.bounds[0]) + Fraction(least)
        return shifted_bounds((0.0, 0.0), low)[0], costs.bounds(goal)[1]

    return mean * expected.cost() + least, bounds, expected.policy


def _factor_of_mean(measure: Measure) -> float | None:
    """The factor of the mean in a sum of it and CVaR; None if there is anything else."""
    total = 0.0
    for factor, part in measure.terms:
        if isinstance(part, Mean):
            total += factor
        elif part.tail is None:
            return None
    return total if total >= 0 else None


def check_size(ssp: SSP, measure: Measure) -> None:
    """Refuse factors that make values too large of costs that are not."""
    slope = sum(
        abs(factor) * (1.0 if part.curve is None else part.curve.steepest)
        for factor, part in measure.terms
    )
    if slope > 1:
        arrives = bool(almost_sure_states(ssp)[0][ssp.start_index])
        costs = solve_expected(ssp).upper if arrives else ssp.outcome_cost
        if slope * float(np.max(costs, where=np.isfinite(costs), initial=0.0)) > MOST:
            raise _too_large(measure)


def _too_large(measure: Measure) -> OptionError:
    return OptionError(f"{measure} is too large to compute with; take smaller factors")


def solve_robust(
    model: IntervalSSP, goal: Measure, limits: tuple[Any, ...], delta: Any, nature: str
) -> RiskSolution:
    """`solve` of a model with intervals, which takes no limits."""
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
    ssp: Any = model
    value, bounds, policy = least_robust(model, goal, nature)
    proof = Later(bounds)

    def others() -> tuple[float, float]:
        return least_robust(model, goal, other_nature(nature))[1]()

    def sentence() -> str:
        what = f"CVaR at {goal.finest_alpha:g}" if is_cvar(goal) else str(goal)
        verb = "costs" if is_cvar(goal) or isinstance(goal, Mean) else "has"
        return both_sides(model, what, nature, proof.found, others, verb)

    return RiskSolution(ssp, goal, (), value, proof, policy, nature=nature, said=Later(sentence))


def least_robust(model: IntervalSSP, goal: Measure, nature: str) -> Found:
    if isinstance(goal, Mean):
        return least_mean(model, goal, nature)
    if isinstance(goal, VaR):
        return _least_var(model, goal.alpha, nature)
    if isinstance(goal, Late):
        return least_lateness(model, goal, nature)
    if goal.tail is None and goal.curve is not None:
        return _least_loss(model, goal.curve, nature)
    if goal.tail is None:
        raise OptionError(f"{goal} needs known probabilities; take model.nominal()")
    if goal.curve is not None:
        raise OptionError(
            f"{goal} adds terms for which different natures may be worst; on a model with intervals"
            " minimise the CVaR or the rest alone"
        )
    factor, alpha = goal.tail
    best = solve_robust_cvar(model, alpha, nature)

    def bounds() -> tuple[float, float]:
        low, high = best.bounds(alpha)
        return factor * low * (1 - AFTERWARDS), factor * high * (1 + AFTERWARDS)

    return factor * best.cvar(alpha), bounds, best.policy(alpha)


def _least_var(model: IntervalSSP, alpha: float, nature: str) -> Found:
    """The least t with a lateness of at most alpha."""
    units, before, unit = SHORT, 2.0, require_unit(model)
    while True:
        far = float(units * unit)
        found = solve_on_time(model, far, nature=nature)
        late = float(found.lateness[-1])
        if late <= found._most_late(alpha):
            t = found.var(alpha)
            return t, partial(found.var_bounds, alpha), found.policy(t)
        if has_converged(model, units, late, before):
            break
        if units > LONGEST:
            raise LimitExceededError(
                f"the VaR at {alpha:g} lies beyond {far:g}, more than {LONGEST} cost units away",
                (far, math.inf),
            )
        units, before = 2 * units, late
    # Infinite as far as doubles tell; proved is that too many are late at this deadline.
    sure = far if found.late_bounds(far)[0] > alpha else 0.0
    return math.inf, lambda: (sure, math.inf), found.policy(far)


def _least_loss(model: IntervalSSP, curve: Curve, nature: str) -> Found:
    table, value, bounds = robust_loss(model, curve, nature)
    return value, bounds, budget_policy(table.layout, table.changes, table.limit)


def robust_loss(
    model: IntervalSSP, curve: Curve, nature: str
) -> tuple[BudgetTable, float, Callable[[], tuple[float, float]]]:
    """The table of a loss, its least expectation, and bounds."""
    unit = require_unit(model)
    horizon = horizon_of([curve], unit)
    costs = costs_by_budget(horizon, unit)
    terminal_loss, slope = curve.values(costs), curve.slope * float(unit)
    shift = float(terminal_loss.min())
    error_bound = float(np.max(loss_error(curve, costs)))
    error_bound += AFTERWARDS * float(np.abs(terminal_loss).max())
    problem = (
        robust(model, nature_called(nature))
        if slope
        else robust_with_penalty(model, nature, horizon)
    )
    if problem.penalty and float(terminal_loss[0]) < float(terminal_loss.max()):
        raise OptionError(
            "a loss that falls somewhere needs a goal that is certain whatever nature does"
        )
    table = problem.loss(terminal_loss - shift, slope)
    known, values = table.share(), table.values[:, 0]
    low, high = float(known.below(values)[-1]), float(known.above(values)[-1])
    bounds = low + shift - error_bound, high + shift + error_bound
    return table, float(values[-1]) + shift, lambda: bounds
