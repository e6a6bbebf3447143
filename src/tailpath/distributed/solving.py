"""What is best on a model in parts: the least mean, the least CVaR, and the least lateness, by the
table of `solvers/exact/table.py` on every rank's own states.

What is found at the start, values and bounds, is known on all ranks; the steps of the policy stay
where their states are, until somebody gathers them. Solvers hand parts over by
`Part.on_ranks("solve_cvar", ...)`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from tailpath.certify.budgets import Ends, Later, table_sides
from tailpath.distributed.expected import PartExpected, solve_part_expected
from tailpath.distributed.fill import fill_part
from tailpath.distributed.layout import lay_out_part
from tailpath.distributed.part import Part
from tailpath.distributed.policies import PartExpectedSolution, PartMarkovPolicy, PartPolicy
from tailpath.distributed.ranks import Job
from tailpath.distributed.search import graph_of
from tailpath.dp.budget_model import EXCESS, Changes, Objective
from tailpath.dp.budgets import Filled
from tailpath.dp.layout_builders import LEFT_OUT
from tailpath.errors import OptionError
from tailpath.graph import FloatArray, IntArray
from tailpath.kernels.rounding import SAME_MASS, SAME_VALUE
from tailpath.model.cost_units import in_units
from tailpath.options import Progress, check_alpha, check_amount, check_invertible_alpha
from tailpath.policies.budget import BudgetPolicy, steps_of
from tailpath.solvers.exact.solution import ExactSolution, first_best
from tailpath.solvers.exact.table import BudgetTable, fill_table
from tailpath.solvers.objectives.on_time import LATE_THEN_MEAN
from tailpath.solvers.objectives.on_time_solution import OnTimeSolution


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
        bounds = self.expected.bounds.map(lambda side: side[layout.place] / unit)
        _, low, high = self.expected.start
        ends = Ends(
            bounds.lower, bounds.upper, (low / unit, high / unit), graph.part.probability_error
        )
        found = table_sides(layout, table.objective, ends, table.again, table.changes)
        return Later(lambda: found)

    def filled(self, unavoidable_cost: IntArray, criteria: FloatArray, **how: Any) -> BudgetTable:
        layout: Any = lay_out_part(self.expected, unavoidable_cost)
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
            **steps,
        )


def solve_cvar(
    part: Part, job: Job, alpha: float, max_bytes: int, progress: Progress | None
) -> PartSolution:
    """`solve_cvar_exact` of a model in parts."""
    alpha = check_invertible_alpha(alpha)
    table = PartTable.of(part, job, max_bytes, progress)
    filled = table.filled(table.sure_budgets, EXCESS, weight=1.0, price=1 / alpha)
    excess = filled.values[:, 0]
    best = first_best(filled.budgets + excess / alpha)
    largest: Any = table.policy(filled, int(filled.budgets[best]))
    return PartSolution(
        alpha,
        filled.budgets,
        excess,
        None,
        largest,
        table.sides(filled),
        beyond=filled.limit + 1.0,
        method=filled.method,
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


@dataclass(frozen=True, eq=False, repr=False)
class PartOnTimeSolution(OnTimeSolution):
    """`OnTimeSolution` of a model in parts, the same on all ranks, with `PartPolicy`s."""

    def var(self, alpha: float) -> float:
        if check_alpha(alpha) > 1 - 3 * SAME_MASS:
            raise _needs_the_whole("the VaR at 1")
        return super().var(alpha)

    def policy(self, t: float | None = None) -> BudgetPolicy:
        if t is not None and math.isinf(t):
            raise _needs_the_whole("the surest policy")
        return super().policy(t)

    def cheapest(self) -> BudgetPolicy:
        raise _needs_the_whole("the cheapest run")


def _needs_the_whole(what: str) -> OptionError:
    return OptionError(f"{what} needs the model on one rank; it is not found in parts")


def solve_late(
    part: Part, job: Job, deadline: float, max_bytes: int, progress: Progress | None
) -> OnTimeSolution:
    """`solve_on_time` of a model in parts, which has no dead ends."""
    units = math.floor(in_units(check_amount(deadline, "a deadline"), part.unit))
    table = PartTable.of(part, job, max_bytes, progress)
    unavoidable_cost = table.expected.nearest.astype(np.int64)
    filled = table.filled(unavoidable_cost, LATE_THEN_MEAN, limit=float(units + 1), tie=SAME_VALUE)
    policy: Any = table.policy(filled, units + 1)
    sides = table.sides(filled)
    return PartOnTimeSolution(deadline, filled.values[1:, 0].copy(), (0.0, 0.0), policy, sides)
