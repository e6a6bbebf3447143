"""The least expected loss, and the losses that come with it.

For a loss h that is linear from W units on, with the budget b = W - (cost so far),

    J(goal, b) = h(W - b),
    J(s, b) = min_a sum P J(s', b - c),
    J(s, b) = h(W) + slope * (V*(s) - b) for b <= 0,

and the optimum over all policies is J(start, W). Losses are shifted to be non-negative, so that
rounding stays a relative error.

A loss that is flat at the end puts a finite price on never arriving, so a policy may take that
risk. Let every *dead end*, a state from which no policy arrives, be a goal at a penalty: then some
policy is certain to end, and all solvers apply. With a penalty beyond the last point of the loss
the value is exactly that of the model as it is; and where two choices tie, the expected cost with
the penalty prefers the surer one. States, choices and outcomes keep their numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple

import numpy as np

from tailpath.analysis.reachability import dead_ends, reachable_states
from tailpath.analysis.tables import (
    MAX_BYTES,
    BudgetTable,
    ModelLayout,
    fill_table,
    too_many_levels,
)
from tailpath.certify.losses import least_from_below, loss_error, terminal_error, with_error
from tailpath.dp.budget_model import BASE, SLOPE, TO_GO, Objective
from tailpath.errors import ModelError, OptionError
from tailpath.graph import BoolArray, FloatArray
from tailpath.model.border import require_unit, shifted_bounds
from tailpath.model.cost_units import MAX_UNITS, as_multiples
from tailpath.model.records import found_once
from tailpath.model.ssp import SSP
from tailpath.policies.budget import BudgetPolicy
from tailpath.risk.curves import Curve
from tailpath.solvers.exact.layout import always_risk_neutral, budget_policy, layout_of
from tailpath.solvers.expectation import solve_expected

#: What one loss takes at a level: what arriving is worth, thrice, and the values at the start,
#: twice.
LOSS_LEVEL_BYTES = 44


class Priced(NamedTuple):
    """A policy that minimises a weighted sum of losses: the sum, and each loss. `weights` find the
    policy again.
    """

    value: float
    losses: FloatArray
    weights: FloatArray


def horizon_of(curves: Sequence[Curve], unit: Fraction) -> int:
    """The number of units from which on all losses are linear; refuses one that falls for ever."""
    if any(curve.slope < 0 for curve in curves):
        raise OptionError(
            "a sum of measures falls without bound as costs grow, so no policy is best; change its"
            " factors"
        )
    return max(curve.units(unit) for curve in curves)


def costs_by_budget(horizon: int, unit: Fraction) -> FloatArray:
    """The cost so far with 0, 1, ... units of the horizon left."""
    return as_multiples(np.arange(horizon, -1.0, -1.0) * float(unit), unit)


class Losses:
    """Several losses over one model. Costs at which a loss of `forbidding` is more than its least
    are forbidden: choices that may lead there are infinitely bad, however seldom that happens.
    """

    def __init__(self, ssp: SSP, curves: Sequence[Curve], forbidding: Sequence[Curve] = ()) -> None:
        self.ssp, self.unit = ssp, require_unit(ssp)
        # With the budget spent a cost is beyond the last breakpoint that forbids.
        beyond = horizon_of(forbidding, self.unit) + 1 if forbidding else 0
        self.horizon = max(horizon_of(curves, self.unit), beyond)
        self.flat = all(curve.slope == 0 for curve in (*curves, *forbidding))
        if LOSS_LEVEL_BYTES * (len(curves) + 1) * self.horizon > MAX_BYTES:
            raise too_many_levels(self.horizon)
        # Rows by the remaining budget: what arriving with it is worth. Row 0 is where the budget is
        # spent.
        costs = costs_by_budget(self.horizon, self.unit)
        self.terminal_loss = np.stack([curve.values(costs) for curve in curves], axis=1)
        self.slope = np.array([curve.slope * float(self.unit) for curve in curves])
        self._forbidden = np.zeros(len(costs))
        for curve in forbidding:
            self._forbidden[curve.values(costs) > curve.least] = np.inf
        dyadic = Fraction(float(self.unit)) == self.unit
        self._exact_costs = dyadic and costs.max() * self.unit.denominator < 2**53
        self._curves, self._costs = curves, costs

    @cached_property
    def model(self) -> SSP:
        """The model, with a penalty at dead ends if no loss goes on rising."""
        return with_penalty(self.ssp, self.horizon + 1) if self.flat else self.ssp

    @cached_property
    def layout(self) -> ModelLayout:
        return layout_of(self.model)

    def price(self, weights: FloatArray) -> Priced:
        """Minimise the sum of the losses with these weights; infinite if every policy does what is
        forbidden.
        """
        loss, shift = self._shifted(weights)
        values = (loss if self._arrived else self._table(weights).values)[-1] + shift
        return Priced(float(values[0]), values[1:], weights)

    def low(self, weights: FloatArray) -> float:
        """The least sum, from below."""
        loss, shift = self._shifted(weights)
        value = float(loss[-1, 0])
        if not self._arrived:
            objective = self._objective(loss, weights)
            objective = objective._replace(criteria=objective.criteria[:1])
            first = np.ascontiguousarray(loss[:, :1])
            value = float(least_from_below(self.layout, objective, first)[-1])
        error = terminal_error(self.terminal_loss, self._loss_error, weights)
        return _moved(with_error(value, -1, loss[:, 0], error), shift[0], -1)

    def high(self, weights: FloatArray) -> FloatArray:
        """Each loss of the policy that minimises a sum, from above."""
        loss, shift = self._shifted(weights)
        found = loss[-1]
        if not self._arrived:
            # Its choices are held, so that nothing is forbidden to it any more.
            allowed, _ = self._shifted(weights, forbid=False)
            objective = self._objective(allowed, weights)
            table = replace(self._table(weights), objective=objective, loss=allowed)
            found = table.sides().high[-1]
        each = enumerate(zip(found.tolist(), shift.tolist()))
        return np.array(
            [
                _moved(with_error(value, 1, loss[:, i], self._loss_error[:, i - 1]), by, 1)
                for i, (value, by) in each
                if i > 0
            ]
        )

    @cached_property
    def _loss_error(self) -> FloatArray:
        """What `terminal_loss` may be off by."""
        each = [loss_error(curve, self._costs, self._exact_costs) for curve in self._curves]
        return np.stack(each, axis=1)

    @property
    def _arrived(self) -> bool:
        return bool(self.ssp.is_goal[self.ssp.start_index])

    def policy(self, weights: FloatArray) -> BudgetPolicy:
        if self._arrived or self.horizon == 0:
            return always_risk_neutral(self.ssp, solve_expected(self.model).choices)
        table = self._table(weights)
        return budget_policy(table.layout, table.changes, self.horizon, ssp=self.ssp)

    def _shifted(self, weights: FloatArray, forbid: bool = True) -> tuple[FloatArray, FloatArray]:
        """What arriving is worth by budget, in the sum and in each loss behind it, shifted to be 0
        at least; and the shifts.
        """
        loss = np.column_stack([self.terminal_loss @ weights, self.terminal_loss])
        if forbid:
            loss[:, 0] += self._forbidden
        shift = np.where(np.isinf(loss.min(axis=0)), 0.0, loss.min(axis=0))
        return loss - shift, shift

    def _objective(self, loss: FloatArray, weights: FloatArray) -> Objective:
        slope = np.append(self.slope @ weights, self.slope)
        criteria = np.zeros((len(slope), 4))
        criteria[:, BASE] = loss[0]
        criteria[:, SLOPE] = criteria[:, TO_GO] = slope
        return self.layout.objective(criteria, limit=float(self.horizon))

    def _table(self, weights: FloatArray) -> BudgetTable:
        loss, _ = self._shifted(weights)
        return fill_table(self.layout, self._objective(loss, weights), loss)


def _moved(bound: float, by: float, side: int) -> float:
    """A bound and so much more, rounded outwards."""
    return shifted_bounds((bound, bound), Fraction(by))[side > 0]


def with_penalty(ssp: SSP, units: int) -> SSP:
    """The model in which entering a dead end ends the run at a cost of at least `units`."""
    dead, unit = _dead(ssp), require_unit(ssp)
    if not dead.any():
        return ssp
    if units >= MAX_UNITS:
        raise ModelError(
            f"{units} cost units are too many for a deadline; the limit is {MAX_UNITS}"
        )
    penalty = min(MAX_UNITS, 1000 * (units + int(ssp.outcome_level.max(initial=0)) + 1))
    level = np.where(dead[ssp.outcome_target], penalty, ssp.outcome_level)
    return _ending(ssp, dead, level * float(unit), unit)


def counting_losses(ssp: SSP) -> SSP:
    """The model in which entering a dead end costs 1, and nothing else anything."""
    dead = _dead(ssp)
    return _ending(ssp, dead, dead[ssp.outcome_target].astype(np.float64), Fraction(1))


@found_once
def _dead(ssp: SSP) -> BoolArray:
    return dead_ends(ssp) & reachable_states(ssp)


def _ending(ssp: SSP, dead: BoolArray, cost: FloatArray, unit: Fraction) -> SSP:
    goal = int(np.flatnonzero(ssp.is_goal)[0])
    target = np.where(dead[ssp.outcome_target], goal, ssp.outcome_target).astype(np.int32)
    return replace(ssp, outcome_target=target, outcome_cost=cost, exact_unit=unit)
