"""The optimum of a model with a cost unit, by one table or by several: of the costs as they are, on
a grid, or of the reduced model.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from tailpath.dp.budget_model import EXCESS, MEAN
from tailpath.dp.fill import Fill, fill
from tailpath.errors import LimitExceededError
from tailpath.kernels.rounding import SAME_VALUE
from tailpath.model.potential import shifted, shifted_bounds
from tailpath.model.ssp import SSP, FloatArray
from tailpath.options import Progress
from tailpath.policies.budget import BudgetPolicy
from tailpath.solvers.exact.error_bound import ErrorBound, error_bound_of
from tailpath.solvers.exact.grid import rounded, rounded_down
from tailpath.solvers.exact.layout import ModelLayout, layout_of, require_unit
from tailpath.solvers.exact.pairs import fill_smaller
from tailpath.solvers.exact.parts import WORTH_SKIPPING
from tailpath.solvers.exact.solution import ExactSolution, WeightedSolution
from tailpath.solvers.exact.table import MAX_BYTES, BudgetTable, always_risk_neutral, budget_policy
from tailpath.solvers.expectation import ExpectedSolution, solve_expected

#: From this alpha down excesses are lifted, by so much; then nothing vanishes that doubles can tell
#: from 0.
TINY_ALPHA, LIFT = 1e-200, 2.0**600
VANISHED = 1e-322


class Task(NamedTuple):
    """What is asked for; and how, which changes no number.

    `pairs` says whether the table is over the pairs of state and budget that the start can reach,
    or over all; None: whichever is smaller. `skip` says whether budgets that every run exceeds are
    left out; None: where the table is large. The full table is filled in the given `way`.
    """

    alpha: float
    weight: float = 1.0
    lexicographic: bool = False
    max_bytes: int = MAX_BYTES
    progress: Progress | None = None
    pairs: bool | None = None
    skip: bool | None = None
    way: Fill = fill

    @property
    def lifted(self) -> float:
        """A power of two by which excesses are multiplied: for a tiny alpha they count where the
        recursion would take them for 0.
        """
        return 1.0 if self.alpha >= TINY_ALPHA else LIFT

    def layout(self, expected: ExpectedSolution) -> ModelLayout:
        """The layout of the model, with what is worth leaving out left out."""
        ssp = expected.ssp
        assert ssp.cost_unit is not None
        large = ssp.n_states * expected.cost() / float(ssp.cost_unit) > WORTH_SKIPPING
        return layout_of(ssp, "excess" if (large if self.skip is None else self.skip) else "")

    def error_bound(self, table: BudgetTable) -> ErrorBound:
        """The error bound of the values of a table."""
        found = error_bound_of(
            table.layout.expected, table.error, table.layout.certain_cost_of_states()
        )
        return found if self.lifted == 1.0 else found._replace(vanished=VANISHED)

    def solution(self, price: FloatArray, **fields: Any) -> ExactSolution | WeightedSolution:
        """The solution with these fields; `price` is what is minimised beside the budget."""
        if self.weight == 1:
            return ExactSolution(self.alpha, **fields)
        return WeightedSolution(self.alpha, **fields, weight=self.weight, price=price)


def solve_task(ssp: SSP, task: Task, delta: Any = None) -> ExactSolution | WeightedSolution:
    """`solve_cvar_exact` with everything decided."""
    if ssp.signed:
        return _of_reduced(ssp, task, delta)
    if delta is None:
        require_unit(ssp)
        return _solved(ssp, task)
    above, below = rounded(ssp, delta, up=True), rounded_down(ssp, delta)
    upper = _solved(above, task)
    return replace(
        upper,
        largest=upper.largest.on(ssp),
        floor=None if below is None else _solved(below, task),
        least=solve_expected(ssp).bounds[0],
    )


def _of_reduced(ssp: SSP, task: Task, delta: Any) -> ExactSolution | WeightedSolution:
    """Where some cost is negative: the solution of the reduced model, with policies for
    this one.
    """
    progress, by = task.progress, ssp.shift
    if progress is not None:
        task = task._replace(progress=lambda budget, best: progress(budget, shifted(best, by)))
    try:
        found = solve_task(ssp.reduced, task, delta)
    except LimitExceededError as error:
        raise LimitExceededError(str(error), shifted_bounds(error.bounds, by)) from None
    return replace(found, largest=found.largest.on(ssp))


def _solved(ssp: SSP, task: Task) -> ExactSolution | WeightedSolution:
    """The optimum of a model with a cost unit."""
    assert ssp.cost_unit is not None
    expected, weight = solve_expected(ssp), task.weight
    nothing = always_risk_neutral(ssp, expected.choices)
    if weight == 0 or ssp.is_goal[ssp.start_index]:
        alone, none = np.array([expected.cost() / float(ssp.cost_unit)]), np.zeros(1, np.int64)
        return task.solution(
            alone,
            budgets=none,
            steps=none,
            excess=alone,
            mean_cost=alone if weight < 1 or task.lexicographic else None,
            plain_mean_cost=alone if weight == 1 and task.lexicographic else None,
            error_bound=error_bound_of(expected, 0.0),
            largest=nothing,
        )
    layout, lifted = task.layout(expected), task.lifted
    if weight == 1:
        less, price = lifted, 1 / task.alpha / lifted
        criteria = [lifted * EXCESS, MEAN] if task.lexicographic else [lifted * EXCESS]
    else:
        # Prices are lifted by less, since they are higher.
        less = 1.0 if lifted == 1.0 else task.alpha * lifted
        price, both = 1 / less, less * (1 - weight) * MEAN + less * weight / task.alpha * EXCESS
        criteria = [both, MEAN, lifted * EXCESS]
    floor = (1 - weight) * layout.start_lower
    objective = layout.objective(np.stack(criteria), weight, price, floor=floor)
    filled = partial(
        fill_smaller,
        layout,
        pairs=task.pairs,
        max_bytes=task.max_bytes,
        progress=task.progress,
        way=task.way,
    )

    def solution(table: BudgetTable, plain: FloatArray | None) -> ExactSolution | WeightedSolution:
        values = table.values.T
        return task.solution(
            values[0] / less,
            budgets=table.budgets,
            steps=table.steps,
            excess=values[0 if weight == 1 else 2] / lifted,
            mean_cost=values[1] if len(criteria) > 1 else None,
            plain_mean_cost=plain,
            error_bound=task.error_bound(table),
            largest=nothing,
            method=table.method,
        )

    table = filled(objective)
    found = solution(table, None)
    if task.lexicographic:
        # What ties give away, the floor has not.
        table = filled(objective._replace(tie=SAME_VALUE))
        found = replace(solution(table, found.mean_cost), floor=found)
    largest = int(table.budgets[found.best_position(task.alpha)])
    return replace(found, largest=budget_policy(ssp, table, largest, expected.choices))


def best_for_budget(ssp: SSP, budget: int, expected: ExpectedSolution) -> BudgetPolicy:
    """The policy with the least E[(Z - budget)+], the budget in cost units: what remains of the
    problem once the budget is given.

    `expected` is the risk-neutral optimum of the model.
    """
    if budget == 0 or ssp.is_goal[ssp.start_index]:
        return always_risk_neutral(ssp, expected.choices).with_budget(budget)
    layout = layout_of(ssp)
    table = fill_smaller(layout, layout.objective(EXCESS, limit=float(budget)))
    return budget_policy(ssp, table, budget, expected.choices)
