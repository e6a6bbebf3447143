"""What is best on a model in parts: the least mean, and the least CVaR, by the table of
`solvers/exact/table.py` on every rank's own states.

What is found at the start, values and bounds, is known on all ranks; the steps of the policy stay
where their states are, until somebody gathers them. Solvers hand parts over by
`Part.on_ranks("solve_cvar", ...)`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any, cast

import numpy as np

from tailpath.certify.budgets import Ends, Later, table_sides
from tailpath.distributed.expected import PartExpected, solve_part_expected
from tailpath.distributed.fill import fill_part
from tailpath.distributed.layout import PartLayout, lay_out_part
from tailpath.distributed.part import Part
from tailpath.distributed.policies import PartExpectedSolution, PartMarkovPolicy, PartPolicy
from tailpath.distributed.ranks import Job
from tailpath.distributed.search import graph_of
from tailpath.dp.budget_model import EXCESS, Changes, Objective
from tailpath.dp.budgets import Filled
from tailpath.dp.layout_builders import LEFT_OUT
from tailpath.graph import FloatArray, IntArray
from tailpath.options import Progress, check_invertible_alpha
from tailpath.policies.budget import steps_of
from tailpath.solvers.exact.solution import ExactSolution, first_best
from tailpath.solvers.exact.table import BudgetTable, fill_table


@dataclass(frozen=True, eq=False, repr=False)
class PartSolution(ExactSolution):
    """`ExactSolution` of a model in parts, the same on all ranks; `policy(a)` is a `PartPolicy`."""

    def _costs(self, a: float) -> Any:
        policy: Any = self.policy(a)
        return policy.evaluate(a)

    def __repr__(self) -> str:
        return f"<PartSolution for alpha>={self.alpha:g}: CVaR {self.cvar(self.alpha):.6g}>"


@dataclass(frozen=True)
class PartTable:
    """The table of a model in parts, and what it is made of."""

    job: Job
    expected: PartExpected
    table: BudgetTable

    @classmethod
    def filled(
        cls, part: Part, job: Job, alpha: float, max_bytes: int, progress: Progress | None
    ) -> PartTable:
        expected = solve_part_expected(graph_of(job.comm, part))
        layout: Any = lay_out_part(expected, sure_budgets(expected))
        table = fill_table(
            layout,
            layout.objective(EXCESS, weight=1.0, price=1 / alpha),
            max_bytes=max_bytes,
            progress=progress if job.comm.rank == 0 else None,
            sweep=partial(fill_part, checkpoints=job.checkpoints),
        )

        def again(other: Any, what: Objective, loss: FloatArray, held: Changes) -> Filled:
            return fill_part(
                other, what._replace(limit=float(table.limit)), loss, max_bytes, held=held
            )

        return cls(job, expected, replace(table, again=again))

    @property
    def sides(self) -> Later:
        """Bounds on the values at the start: found at once, since all ranks must."""
        graph, table = self.expected.graph, self.table
        unit, layout = float(graph.part.unit), cast("PartLayout", table.layout)
        bounds = self.expected.bounds.map(lambda side: side[layout.place] / unit)
        _, low, high = self.expected.start
        ends = Ends(
            bounds.lower, bounds.upper, (low / unit, high / unit), graph.part.probability_error
        )
        found = table_sides(layout, table.objective, ends, table.again, table.changes)
        return Later(lambda: found)

    def policy(self, budget: int) -> Any:
        """The policy of own states for budgets up to one; steps out of reach are left out."""
        graph, part = self.expected.graph, self.expected.graph.part
        layout = cast("PartLayout", self.table.layout)
        node, from_budget, choice = self.table.changes
        met = np.flatnonzero(from_budget + layout.nodes.cost_from_start[node] <= budget)
        risk_neutral = np.full(len(part.is_goal), -1, dtype=np.int32)
        risk_neutral[graph.state[: graph.own] - part.first] = self.expected.chosen
        state = layout.number[node[met]] - part.first
        steps = steps_of(state, from_budget[met], layout.choice[choice[met]], risk_neutral)
        return PartPolicy(self.job.comm, part, budget, risk_neutral=risk_neutral, **steps)


def sure_budgets(expected: PartExpected) -> IntArray:
    """The budgets, in units, that are left to closed forms of excesses."""
    value = expected.bounds.value / float(expected.graph.part.unit)
    return np.asarray(np.minimum(expected.nearest, LEFT_OUT * value), dtype=np.int64)


def solve_cvar(
    part: Part, job: Job, alpha: float, max_bytes: int, progress: Progress | None
) -> PartSolution:
    """`solve_cvar_exact` of a model in parts."""
    alpha = check_invertible_alpha(alpha)
    found = PartTable.filled(part, job, alpha, max_bytes, progress)
    table, excess = found.table, found.table.values[:, 0]
    best = first_best(table.budgets + excess / alpha)
    return PartSolution(
        alpha,
        table.budgets,
        excess,
        None,
        found.policy(int(table.budgets[best])),
        found.sides,
        beyond=table.limit + 1.0,
        method=table.method,
    )


def solve_mean(part: Part, job: Job) -> PartExpectedSolution:
    """`solve_expected` of a model in parts."""
    found = solve_part_expected(graph_of(job.comm, part))
    here = found.graph.state[: found.graph.own] - part.first
    columns = np.zeros((3, len(part.is_goal)))
    sides = found.bounds.value, found.bounds.lower, found.bounds.upper
    columns[:, here] = [side[: found.graph.own] for side in sides]
    choices = np.full(len(part.is_goal), -1, dtype=np.int32)
    choices[here] = found.chosen
    policy = PartMarkovPolicy(job.comm, part, choices)
    how = found.start, found.bounds.method, found.rounds
    value, lower, upper = columns
    return PartExpectedSolution(value, lower, upper, choices, *how, policy)
