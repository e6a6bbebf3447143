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

from tailpath.certify.budgets import Ends, Later, table_sides
from tailpath.distributed.expected import PartExpected, solve_part_expected
from tailpath.distributed.fill import fill_part
from tailpath.distributed.layout import lay_out_part
from tailpath.distributed.part import Part
from tailpath.distributed.ranks import Job
from tailpath.distributed.search import graph_of
from tailpath.dp.budget_model import EXCESS, Changes, Objective
from tailpath.dp.budgets import Filled
from tailpath.graph import FloatArray, IntArray
from tailpath.options import Progress, check_invertible_alpha
from tailpath.policies.budget import steps_of
from tailpath.solvers.exact.budget_solution import TIED
from tailpath.solvers.exact.layout import LEFT_OUT
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
        w, total = self.budget(a), self._total(a)
        if w == 0 or np.count_nonzero(total <= np.min(total) * (1 + TIED)) > 1:
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

    @property
    def sure_budgets(self) -> IntArray:
        """The budgets to leave to closed forms of excesses."""
        expected = self.expected
        value = expected.bounds.value / float(expected.graph.part.unit)
        sure = np.floor(np.minimum(expected.nearest, LEFT_OUT * value))
        return np.asarray(sure, dtype=np.int64)

    def sides(self, table: BudgetTable) -> Later:
        """Bounds on the values at the start: found at once, since all ranks must."""
        graph, unit = self.expected.graph, float(self.expected.graph.part.unit)
        layout: Any = table.layout
        bounds = self.expected.bounds.each(lambda side: side[layout.place] / unit)
        _, low, high = self.expected.start
        ends = Ends(bounds.lower, bounds.upper, (low / unit, high / unit), graph.decisions.error)
        found = table_sides(layout, table.objective, ends, table.again, table.changes)
        return Later(lambda: found)

    def filled(self, certain_cost: IntArray, criteria: FloatArray, **how: Any) -> BudgetTable:
        layout: Any = lay_out_part(self.expected, certain_cost)
        table = fill_table(
            layout,
            layout.objective(criteria, **how),
            max_bytes=self.max_bytes,
            progress=self.progress,
            way=partial(fill_part, checkpoints=self.job.checkpoints),
        )

        def again(other: Any, what: Objective, loss: FloatArray, held: Changes) -> Filled:
            return fill_part(
                other, what._replace(limit=float(table.limit)), loss, self.max_bytes, held=held
            )

        return replace(table, again=again)

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
    certain_cost = table.sure_budgets if large else table.no_budgets
    filled = table.filled(certain_cost, EXCESS, weight=1.0, price=1 / alpha)
    nothing: Any = table.policy(filled, 0)
    solution = PartSolution(
        alpha,
        filled.budgets,
        filled.values[:, 0],
        None,
        nothing,
        table.sides(filled),
        beyond=filled.limit + 1.0,
        method=filled.method,
    )
    largest: Any = table.policy(filled, int(filled.budgets[solution.best_position(alpha)]))
    return replace(solution, largest=largest)
