"""The least CVaR of a model in parts: the table of `table.py` on every rank's own states.

What is found at the start, values and bounds, is known on all ranks; the steps of the policy stay
where their states are, until somebody gathers them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from tailpath.distributed.expected import PartExpected, solve_part_expected
from tailpath.distributed.fill import fill_part
from tailpath.distributed.layout import lay_out_part
from tailpath.distributed.part import Part
from tailpath.distributed.ranks import Job
from tailpath.distributed.search import graph_of
from tailpath.dp.budget_model import EXCESS
from tailpath.graph import FloatArray, IntArray, members_of
from tailpath.options import Progress, check_invertible_alpha
from tailpath.policies.budget import steps_of
from tailpath.solvers.exact.layout import ErrorBound, allowed_error, certain_budgets, error_bound_by
from tailpath.solvers.exact.solution import ExactSolution
from tailpath.solvers.exact.table import BudgetTable, fill_table
from tailpath.solvers.part_policies import PartPolicy

#: From so many states times levels on it is worth to find out which budgets are sure to be
#: exceeded.
WORTH_SKIPPING = 2**18


@dataclass(frozen=True, eq=False, repr=False)
class PartSolution(ExactSolution):
    """`ExactSolution` of a model in parts, the same on all ranks; `policy(a)` is a `PartPolicy`.
    Costs are 0 or more, so that nothing is shifted.
    """

    @property
    def _shift(self) -> Fraction:
        return Fraction(0)

    @property
    def _exact(self) -> bool:
        return True

    def _var(self, a: float) -> float:
        low, high = self._enclosed(a)
        w = self.budget(a)
        if w == 0 or np.count_nonzero(low <= np.min(high)) > 1:
            policy: Any = self.policy(a)
            return float(policy.evaluate(a).var(a))
        return float(w * self.largest.unit)

    def __repr__(self) -> str:
        return f"<PartSolution for alpha>={self.alpha:g}: CVaR {self.cvar(self.alpha):.6g}>"


@dataclass(frozen=True)
class PartTable:
    """What sweeps over the budgets of a model in parts have in common."""

    job: Job
    expected: PartExpected
    max_bytes: int
    progress: Progress | None

    @classmethod
    def of(cls, part: Part, job: Job, max_bytes: int, progress: Progress | None) -> PartTable:
        expected = solve_part_expected(graph_of(job.comm, part))
        return cls(job, expected, max_bytes, progress if job.comm.rank == 0 else None)

    @property
    def no_budgets(self) -> IntArray:
        """No budget is left to a closed form."""
        return np.zeros(self.expected.graph.n, dtype=np.int64)

    def error_bound(self, certain_cost: IntArray, per_level: float) -> ErrorBound:
        """As `error_bound_of`, over all ranks."""
        graph, expected = self.expected.graph, self.expected
        given, zero = graph.decisions, np.append(expected.bounds.value == 0.0, True)
        chosen = expected.chosen[zero[: graph.own]]
        outcome, _ = members_of(given.choice_outcomes, chosen)
        proved = bool(np.all((graph.level[outcome] == 0) & zero[given.target[outcome]]))
        across = expected.sweeps.across
        return error_bound_by(
            expected.own_bounds,
            graph.part.unit,
            certain_cost[: graph.own],
            across.every(proved),
            per_level,
            across.most,
        )

    def sharpened(self) -> tuple[PartTable, IntArray]:
        """The same with narrower bounds of V*, and the budgets to leave to closed forms."""
        allowed = allowed_error(self.error_bound(self.no_budgets, 0.0))
        sharp = self.expected.sharpened
        nearest, unit = sharp.nearest, sharp.graph.part.unit
        return replace(self, expected=sharp), certain_budgets(sharp.bounds, unit, nearest, allowed)

    def filled(self, certain_cost: IntArray, criteria: FloatArray, **how: Any) -> BudgetTable:
        layout: Any = lay_out_part(self.expected, certain_cost)
        return fill_table(
            layout,
            layout.objective(criteria, **how),
            max_bytes=self.max_bytes,
            progress=self.progress,
            way=partial(fill_part, checkpoints=self.job.checkpoints),
        )

    def policy(self, table: BudgetTable, budget: int) -> PartPolicy:
        """The policy of own states for budgets up to one; steps out of reach are left out."""
        graph, part = self.expected.graph, self.expected.graph.part
        layout: Any = table.layout
        node, from_budget, choice = table.changes
        met = np.flatnonzero(from_budget + layout.nodes.cost_from_start[node] <= budget)
        risk_neutral = np.full(len(part.is_goal), -1, dtype=np.int32)
        risk_neutral[graph.state[: graph.own] - part.first] = self.expected.chosen
        state = layout.number[node[met]] - part.first
        steps = steps_of(state, from_budget[met], layout.choice[choice[met]], risk_neutral)
        return PartPolicy(
            self.job.comm,
            part,
            budget,
            risk_neutral=risk_neutral,
            expected=self.expected,
            **steps,
        )


def solve_part_cvar(
    part: Part, alpha: float, job: Job, max_bytes: int, progress: Progress | None
) -> PartSolution:
    """`solve_cvar_exact` of a model in parts."""
    alpha = check_invertible_alpha(alpha)
    table = PartTable.of(part, job, max_bytes, progress)
    large = part.n_states * table.expected.start[0] / float(part.unit) > WORTH_SKIPPING
    certain_cost = table.no_budgets
    if large:
        table, certain_cost = table.sharpened()
    filled = table.filled(certain_cost, EXCESS, weight=1.0, price=1 / alpha)
    error_bound = table.error_bound(certain_cost, filled.error)
    nothing: Any = table.policy(filled, 0)
    columns = filled.budgets, filled.steps, filled.values[:, 0], None, None
    solution = PartSolution(alpha, *columns, error_bound, nothing, method=filled.method)
    largest: Any = table.policy(filled, int(filled.budgets[solution.best_position(alpha)]))
    return replace(solution, largest=largest)
