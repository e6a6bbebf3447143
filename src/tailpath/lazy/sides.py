"""The two tables between which the optimum lies: both are tables over budgets of a model whose
states are those expanded, and whose runs end where they leave them.

From s' on the boundary let Z be the cost still to come. Where b is left, and by its
bounds (`bounds_at`):

- *below*, E[(Z - b)+] >= (E Z - b)+ >= (low - b)+: the run ends, and pays low more. Where low is
  infinite no policy surely arrives, and a choice that may lead there is no choice;
- *above*, some policy has Z <= surely, so that E[(Z - b)+] <= (surely - b)+: it pays surely more;
- *above*, where some policy has E Z <= upper, and every run Z >= least: since (Z - b)+ is Z less
  min(Z, b), E[(Z - b)+] <= upper - min(b, least) = (least - b)+ + (upper - least). It pays least
  more, and upper - least beside all budgets, which is a constant of the choice. (least must hold
  for every run: a bound on the mean alone proves nothing here.)
- *above*, where nothing is known: no choice, either.

Costs count in units, so `low` and `least` are rounded down, `surely` is rounded up.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from tailpath.analysis.core import core_of
from tailpath.analysis.tables import BudgetTable, ModelLayout
from tailpath.certify.budgets import TableSides
from tailpath.dp.budget_model import EXCESS, PER_STEP
from tailpath.errors import GoalUnreachableError
from tailpath.graph import FloatArray, IntArray, owners
from tailpath.lazy.expansion import BOUNDARY, TOLERANCE, Snapshot
from tailpath.model.cost_units import in_costs
from tailpath.model.endings import fresh_name
from tailpath.model.outcomes import Name
from tailpath.model.records import hand_over
from tailpath.model.ssp import SSP
from tailpath.policies.budget import BudgetPolicy
from tailpath.solvers.exact.layout import budget_policy, lay_out_model
from tailpath.solvers.exact.pairs import fill_smaller
from tailpath.solvers.exact.solution import first_best
from tailpath.solvers.expectation import solve_expected

LOW, LEAST, UPPER, SURELY = range(4)
#: More than the rounding of a constant of a choice.
CONSTANT = 1 + 2.0**-48


class Asked(NamedTuple):
    """What is minimised: w + E[(Z - w)+] / alpha over all budgets w or, where `budget` is given as
    a cost, the excess over that one.
    """

    alpha: float
    budget: Fraction | None = None


class Laws(NamedTuple):
    """What leaving by an outcome is worth, (n_outcomes,): `level` more units, and a cost beside all
    budgets; `known` is false where neither is known.
    """

    level: IntArray
    beside: FloatArray
    known: FloatArray

    def excess(self, left: IntArray, unit: float) -> FloatArray:
        """E[(Z - b)+] by these laws, in units, for budgets left."""
        return np.asarray(np.maximum(self.level - left, 0) + self.beside / unit)

    def only(self, outcomes: IntArray) -> Laws:
        """Those of some outcomes."""
        return Laws(self.level[outcomes], self.beside[outcomes], self.known[outcomes])


def laws_below(rows: Snapshot) -> Laws:
    leaves = rows.rank[rows.target] == BOUNDARY
    bound = rows.bounds[:, LOW]
    known = ~leaves | np.isfinite(bound)[rows.target]
    low = np.where(leaves & known, _units(bound, rows.unit)[rows.target], 0)
    return Laws(low, np.zeros(len(low)), known)


def laws_above(rows: Snapshot) -> Laws:
    leaves = rows.rank[rows.target] == BOUNDARY
    bounds, unit = rows.bounds[rows.target], float(rows.unit)
    surely = by_surely(bounds[:, UPPER], bounds[:, SURELY])
    known = ~leaves | surely | np.isfinite(bounds[:, UPPER])
    least = _units(bounds[:, LEAST], rows.unit)
    most = -_units(-np.where(surely, bounds[:, SURELY], 0.0), rows.unit)
    beside = np.where(known & ~surely, bounds[:, UPPER], 0.0) - least * unit
    level = np.where(leaves & known, np.where(surely, most, least), 0)
    beside = np.where(leaves & known & ~surely, np.maximum(beside * CONSTANT, 0.0), 0.0)
    return Laws(level, beside, known)


def by_surely(upper: Any, surely: Any) -> Any:
    """Which of the two laws holds above: a certain cost is worth more than a mean, up to twice."""
    return (surely < np.inf) & (surely <= 2 * upper)


def _units(bounds: FloatArray, unit: Any) -> IntArray:
    """Bounds in whole units, rounded down; one that misses a whole number by no more than bounds
    may miss their checks stands for it.
    """
    units = bounds / float(unit)
    units = np.clip(units, -(2.0**40), 2.0**40)  # models refuse costs that large
    return np.floor(units + TOLERANCE * np.maximum(np.abs(units), 1.0)).astype(np.int64)


class Side:
    """A table over budgets for the rows of a snapshot, with the laws of one side."""

    def __init__(
        self, rows: Snapshot, laws: Laws, start: int, asked: Asked, names: Sequence[Name] = ()
    ) -> None:
        self.rows, self.laws, self.asked = rows, laws, asked
        self.ssp = _model(rows, laws, start, np.zeros(len(laws.level)))
        try:
            self.table = self._filled(start)
        except GoalUnreachableError:
            if names:  # the same refusal, by name
                more = [fresh_name(name, names) for name in ("goal", "unknown")]
                states = [*names[: len(rows.state)], *more][: self.ssp.n_states]
                core_of(self.ssp.renamed(states=states))
            raise

    def _filled(self, start: int) -> BudgetTable:
        rows, ssp, beside = self.rows, self.ssp, self.laws.beside
        criterion = EXCESS.copy()
        if beside.any():
            # On average everything counts in full.
            expected = solve_expected(_model(rows, self.laws, start, beside))
            share = rows.probability * beside / float(rows.unit)
            of_choice = np.bincount(owners(rows.choice_outcomes), share, ssp.n_choices)
            layout = _with_constants(lay_out_model(ssp, expected), np.asarray(of_choice, float))
            criterion[PER_STEP] = 1.0
        else:
            layout = lay_out_model(ssp, solve_expected(ssp))
        alpha, budget = self.asked
        if budget is None:
            what = layout.objective(criterion, weight=1.0, price=1 / alpha)
        else:
            what = layout.objective(criterion, limit=float(budget // self.rows.unit))
        return fill_smaller(layout, what)

    def _minimised(self, alpha: float) -> tuple[IntArray, FloatArray, float, float]:
        """Budgets and their values, what each is worth, and what a value is worth."""
        budgets, values = self.table.budgets, self.table.values[:, 0]
        if self.asked.budget is not None:
            return budgets[-1:], values[-1:], 0.0, 1.0
        return budgets, values, 1.0, 1 / alpha

    def budget(self, alpha: float) -> int:
        """The best budget, or the one asked for."""
        budgets, values, weight, price = self._minimised(alpha)
        return int(budgets[first_best(weight * budgets + price * values)])

    def value(self, alpha: float) -> float:
        """The best value found, as a cost."""
        budgets, values, weight, price = self._minimised(alpha)
        return float(np.min(weight * budgets + price * values)) * float(self.rows.unit)

    def bounds(self, alpha: float) -> tuple[float, float]:
        """What is proved of the least value, and of the policy's, as costs."""
        budgets, values, weight, price = self._minimised(alpha)
        sides = TableSides(*(side[-len(budgets) :] for side in self._sides))
        beyond = self.table.limit + 1.0 if weight else math.inf
        best = first_best(weight * budgets + price * values)
        low, high = sides.total_bounds(budgets, weight, price, beyond, best)
        return low * float(self.rows.unit), high * float(self.rows.unit)

    @cached_property
    def _sides(self) -> TableSides:
        return self.table.sides()

    def policy(self, alpha: float) -> BudgetPolicy:
        table = self.table
        return budget_policy(table.layout, table.changes, self.budget(alpha))


def above(rows: Snapshot, start: int, asked: Asked) -> Side | None:
    """The upper side; None while no policy is known that surely arrives."""
    try:
        return Side(rows, laws_above(rows), start, asked)
    except GoalUnreachableError:
        return None


def _model(rows: Snapshot, laws: Laws, start: int, beside: FloatArray) -> SSP:
    """The states expanded, the goal, and a trap for outcomes of which nothing is known."""
    n = len(rows.state)
    outcomes, choices = len(rows.target), len(rows.choice_outcomes) - 1
    traps = not laws.known.all()
    inside = rows.rank[rows.target]
    target = np.where(inside >= 0, inside, np.where(laws.known, n, n + 1))
    cost = in_costs(rows.level + laws.level, rows.unit) + beside
    state_choices = np.append(rows.state_choices, [choices] + [choices + 1] * traps)
    local = np.arange(choices) - rows.state_choices[owners(rows.state_choices)]
    last = [outcomes + 1] * traps
    fields = {
        "state_choices": state_choices,
        "choice_outcomes": np.append(rows.choice_outcomes, last),
        "outcome_target": np.append(target, [n + 1] * traps).astype(np.int32),
        "outcome_probability": np.append(rows.probability, [1.0] * traps),
        "outcome_cost": np.append(cost, [float(rows.unit)] * traps),
        "choice_action": np.append(local, [0] * traps).astype(np.int32),
        "is_goal": np.arange(n + 1 + traps) == n,
    }
    columns: Any = {name: hand_over(array) for name, array in fields.items()}
    return SSP(
        **columns,
        start_index=start,
        states=range(n + 1 + traps),
        actions=range(int(local.max(initial=0)) + 1),
        exact_unit=None if beside.any() else rows.unit,
    )


def _with_constants(layout: ModelLayout, extra: FloatArray) -> ModelLayout:
    """What choices pay beside all budgets in the place of what they cost. Where a loop that costs
    nothing was divided out, it is paid as often as the choice is taken.
    """
    core = core_of(layout.ssp)
    rows, level = core.transitions, core.level
    node = owners(rows.state_rows)
    leaves = rows.sums(
        np.where((level == 0) & (rows.target == node[rows.source]), 0.0, rows.probability)
    )
    of_choice = np.zeros(len(extra))
    of_choice[core.choice] = extra[core.choice] / leaves
    return replace(layout, choice_cost=of_choice[layout.choice] * CONSTANT)
