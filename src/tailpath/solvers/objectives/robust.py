"""Any measure of risk on models with intervals, without limits: the table of `solve.py`, against or
with nature.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tailpath.analysis.reachability import nature_called
from tailpath.analysis.robust import robust
from tailpath.errors import LimitExceededError, OptionError
from tailpath.evaluation.band import CostBand, evaluate_band
from tailpath.evaluation.product import LONGEST, SHORT, has_converged
from tailpath.kernels.rounding import SAME_MASS, UNIT
from tailpath.model.cost_units import as_multiples
from tailpath.model.interval import IntervalSSP
from tailpath.model.records import Record
from tailpath.options import takes_alpha
from tailpath.policies.policy import Policy
from tailpath.risk.curves import Curve
from tailpath.risk.measure import Measure
from tailpath.risk.measures import Late, Mean, VaR
from tailpath.solvers.exact.layout import require_unit
from tailpath.solvers.exact.robust import (
    robust_budget_policy,
    robust_with_penalty,
    solve_robust_cvar,
)
from tailpath.solvers.expectation import both_sides, other_nature, solve_robust_expected
from tailpath.solvers.objectives.on_time import solve_on_time


@takes_alpha
@dataclass(frozen=True, eq=False, repr=False)
class RobustRisk(Record):
    """The policy with the least `objective` against, or with, nature, as `solve` found it.

    Attributes
    ----------
    model : IntervalSSP
        The model.
    nature : {"adversarial", "cooperative"}
        Whether nature is the worst or the best.
    objective : Measure
        What is minimised.
    value : float
        What the policy has under that nature.
    bounds : tuple of float
        They enclose the optimum.
    policy : Policy
        The policy.
    """

    model: IntervalSSP
    nature: str
    objective: Measure
    value: float
    bounds: tuple[float, float]
    policy: Policy

    def costs(self, alpha: float) -> CostBand:
        """What the total cost of the policy may be under every nature.

        Parameters
        ----------
        alpha : float
            The least mass of the worst tail that the result answers, in (0, 1].

        Returns
        -------
        CostBand
            What `evaluate` finds.
        """
        return evaluate_band(self.model, self.policy, alpha)

    def words(self) -> str:
        """Both sides in one sentence: with the best nature and against the worst.

        Returns
        -------
        str
            The sentence.
        """
        goal, other = self.objective, other_nature(self.nature)
        if isinstance(goal, Mean):
            return solve_robust_expected(self.model, self.nature).words()
        if goal.tail is not None and goal.tail[0] == 1:
            return solve_robust_cvar(self.model, goal.tail[1], self.nature).words(goal.tail[1])
        return both_sides(
            self.model,
            str(goal),
            self.nature,
            self.bounds,
            lambda: solve_robust(self.model, goal, other).bounds,
            "has",
        )

    def __repr__(self) -> str:
        return f"<RobustRisk {self.objective} = {self.value:.6g}, {self.nature} nature>"


def solve_robust(model: IntervalSSP, goal: Measure, nature: str) -> RobustRisk:
    """`solve` of a model with intervals, without limits."""
    require_unit(model.inside)

    def answer(value: float, bounds: tuple[float, float], policy: Policy) -> RobustRisk:
        return RobustRisk(model, nature, goal, value, bounds, policy)

    if isinstance(goal, Mean):
        expected = solve_robust_expected(model, nature)
        return answer(expected.cost(), expected.bounds, expected.policy)
    if isinstance(goal, VaR):
        return answer(*_least_var(model, goal.alpha, nature))
    if isinstance(goal, Late):
        t, on_time = goal.deadline, solve_on_time(model, goal.deadline, nature=nature)
        return answer(on_time.late(t), on_time.late_bounds(t), on_time.policy(t))
    if goal.tail is None:
        assert goal.curve is not None
        return answer(*_least_loss(model, goal.curve, nature))
    if goal.curve is not None:
        raise OptionError(
            f"{goal} adds to a CVaR what is worst under another nature; on a model with intervals"
            " minimise one of them"
        )
    factor, alpha = goal.tail
    best = solve_robust_cvar(model, alpha, nature)
    low, high = best.bounds(alpha)
    bounds = factor * low * (1 - 2 * UNIT), factor * high * (1 + 2 * UNIT)
    return answer(factor * best.cvar(alpha), bounds, best.policy(alpha))


def _least_var(
    model: IntervalSSP, alpha: float, nature: str
) -> tuple[float, tuple[float, float], Policy]:
    """The least t with a lateness of at most alpha."""
    assert model.cost_unit is not None
    units, before = SHORT, 2.0
    while True:
        found = solve_on_time(model, float(units * model.cost_unit), nature=nature)
        late = float(found.lateness[-1])
        if late <= alpha * (1 + SAME_MASS):
            t = found.var(alpha)
            return t, (t, t), found.policy(t)
        if has_converged(model, units, late, before):
            return math.inf, (math.inf, math.inf), found.policy(found.deadline)
        if units > LONGEST:
            far = float(units * model.cost_unit)
            raise LimitExceededError(
                f"the VaR at {alpha:g} lies beyond {far:g}, more than {LONGEST} cost units away",
                (far, math.inf),
            )
        units, before = 2 * units, late


def _least_loss(
    model: IntervalSSP, curve: Curve, nature: str
) -> tuple[float, tuple[float, float], Policy]:
    """The least expected loss."""
    assert model.cost_unit is not None
    if curve.slope < 0:
        raise OptionError(
            "a sum of measures falls without end for large costs; no policy is best then"
        )
    unit = model.cost_unit
    horizon = curve.units(unit)
    costs = as_multiples(np.arange(horizon, -1.0, -1.0) * float(unit), unit)
    terminal_loss, slope = curve.values(costs), curve.slope * float(unit)
    shift = float(terminal_loss.min())
    error_bound = float(np.max(curve.rounding_error(costs)))
    error_bound += 4 * UNIT * float(np.abs(terminal_loss).max())
    problem = (
        robust(model, nature_called(nature))
        if slope
        else robust_with_penalty(model, nature, horizon)
    )
    if problem.penalty and float(terminal_loss[0]) < float(terminal_loss.max()):
        raise OptionError(
            "a loss that falls somewhere needs a model whose goal is sure whatever nature does"
        )
    found = problem.loss(terminal_loss - shift, slope)
    low, high = problem.enclosed(found, slope)
    value = float(found.values[-1, 0]) + shift
    bounds = float(low[-1]) + shift - error_bound, float(high[-1]) + shift + error_bound
    return value, bounds, robust_budget_policy(problem, found, len(found.values) - 1)
