"""Minimise one measure of risk, without limits: each kind by the solver that has its recursion."""

from __future__ import annotations

import math

import numpy as np

from tailpath.analysis.reachability import almost_sure_states
from tailpath.errors import LimitExceededError, OptionError
from tailpath.evaluation.evaluate import evaluate_for
from tailpath.kernels.rounding import UNIT
from tailpath.model.ssp import SSP
from tailpath.risk.curves import Curve
from tailpath.risk.measure import Measure, Sum
from tailpath.risk.measures import Late, Mean, VaR
from tailpath.solvers.exact.solver import solve_cvar_exact
from tailpath.solvers.expectation import solve_expected
from tailpath.solvers.objectives.limits import SLACK, row_of, solve_limited
from tailpath.solvers.objectives.losses import Losses
from tailpath.solvers.objectives.on_time import LONG, NOBODY_LATE, on_time_until, solve_on_time
from tailpath.solvers.objectives.risk_solution import RiskSolution

#: An evaluation that would only spare a search ends after so many nodes.
MAX_NODES = 10**7
#: Values beyond this are too close to the largest float to add them up.
MOST = 1e305


def least_alone(ssp: SSP, goal: Measure) -> RiskSolution:
    if isinstance(goal, Mean):
        expected = solve_expected(ssp)
        return RiskSolution(ssp, goal, (), expected.cost(), expected.bounds, expected.policy)
    if isinstance(goal, VaR):
        on_time = on_time_until(ssp, goal.alpha)
        t = on_time.var(goal.alpha)
        policy = on_time.policy(t) if on_time.late(t) < 1 - SLACK else on_time.cheapest()
        return RiskSolution(ssp, goal, (), t, (t, t), policy)
    if isinstance(goal, Late):
        found = solve_on_time(ssp, max(goal.deadline, 0.0))
        late, bounds = found.late(goal.deadline), found.late_bounds(goal.deadline)
        return RiskSolution(ssp, goal, (), late, bounds, found.policy(goal.deadline))
    row, mean = row_of(goal), _factor_of_mean(goal)
    if row.factor == 0:
        return _risk_neutral_if_enough(ssp, goal) or _least_loss(ssp, goal, row.curve)
    if mean is None:
        return solve_limited(ssp, goal, (), [row], mix=True)
    factor, alpha = row.factor, row.alpha
    scale = mean + factor
    best = solve_cvar_exact(ssp, alpha, weight=factor / scale)
    low, high = best.bounds(alpha)
    if math.isfinite(high) and scale * high > MOST:
        raise _too_large(goal)
    # The weight is rounded, and so is the scale; both factors are positive, and the mean is no more
    # than CVaR.
    rounding = 8 * UNIT if mean else 2 * UNIT if scale != 1 else 0.0
    bounds = (scale * low * (1 - rounding), scale * high * (1 + rounding))
    return RiskSolution(ssp, goal, (), scale * best.objective(alpha), bounds, best.policy(alpha))


def _least_loss(ssp: SSP, goal: Measure, curve: Curve) -> RiskSolution:
    losses, alone = Losses(ssp, [curve]), np.ones(1)
    found, policy = losses.price(alone), losses.policy(alone)
    return RiskSolution(ssp, goal, (), found.value, (found.low, found.high), policy)


def _risk_neutral_if_enough(ssp: SSP, goal: Measure) -> RiskSolution | None:
    """The risk-neutral policy, if it never gets to where the loss, the mean aside, is more than the
    least; a long table is then spared.
    """
    assert ssp.cost_unit is not None
    mean = sum(factor for factor, part in goal.terms if isinstance(part, Mean))
    others = Sum(tuple(term for term in goal.terms if not isinstance(term[1], Mean)))
    curve = others.curve
    if mean < 0 or curve is None or curve.slope < 0 or curve.units(ssp.cost_unit) <= LONG:
        return None
    if not almost_sure_states(ssp)[0][ssp.start_index]:
        return None
    expected, least = solve_expected(ssp), min(*curve.at, *curve.after)
    try:
        costs = evaluate_for(ssp, expected.policy, [others], max_nodes=MAX_NODES)
    except LimitExceededError:
        return None
    high = max(costs.bounds(others)[1], least)
    # What an evaluation cannot tell from nobody may still have its way before it.
    longest = float(np.max(expected.value, where=np.isfinite(expected.value), initial=1.0))
    if high - least > 100 * NOBODY_LATE * (1 + abs(least) + curve.slope * longest):
        return None
    low, up = (mean * bound for bound in expected.bounds)
    rounding = 4 * UNIT * (up + abs(least)) if mean else 0.0
    value, bounds = mean * expected.cost() + least, (low + least - rounding, up + high + rounding)
    return RiskSolution(ssp, goal, (), value, bounds, expected.policy)


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
