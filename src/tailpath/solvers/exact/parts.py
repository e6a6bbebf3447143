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
from numpy.typing import NDArray

from tailpath.distributed.expected import PartExpected, solve_part_expected
from tailpath.distributed.fill import fill_part
from tailpath.distributed.forward import NodeSteps, PartCosts, follow
from tailpath.distributed.job import Job
from tailpath.distributed.laid_out import doubts_of, lay_out_part, sure_budgets
from tailpath.distributed.part import Part, whole_of
from tailpath.distributed.ranks import joined, together
from tailpath.distributed.search import graph_of
from tailpath.distributed.walks import walk
from tailpath.dp.budgets import EXCESS
from tailpath.errors import ModelError
from tailpath.graph import offsets_from_lengths
from tailpath.model.ssp import SSP, FloatArray
from tailpath.options import Progress, check_invertible_alpha
from tailpath.policies.budget import BudgetPolicy, steps_of
from tailpath.solvers.exact.error_bound import ErrorBound
from tailpath.solvers.exact.solution import ExactSolution
from tailpath.solvers.exact.table import BudgetTable, fill_table

IntArray = NDArray[np.int64]
#: From so many states times levels on it is worth to find out which budgets are sure to be
#: exceeded.
WORTH_SKIPPING = 2**18


@dataclass(frozen=True, eq=False)
class PartPolicy:
    """Decisions over (state, budget left) of the states of a part, as `BudgetPolicy` has them.

    `first` (n + 1,), `from_budget` and `choice` (steps,) and `risk_neutral` (n,) are by state of
    the part; choices are those of the part.
    """

    comm: Any
    part: Part
    budget: int
    first: IntArray
    from_budget: IntArray
    choice: NDArray[np.int32]
    risk_neutral: NDArray[np.int32]
    expected: PartExpected

    @property
    def unit(self) -> Fraction:
        """What a unit of the budget is."""
        return self.part.unit

    def with_budget(self, budget: int) -> PartPolicy:
        """The same steps with another budget at the start."""
        return replace(self, budget=budget)

    def evaluate(self, alpha: float) -> PartCosts:
        """The exact costs of the policy, without gathering it; all ranks call this.

        Parameters
        ----------
        alpha : float in (0, 1]
            The least mass of the worst tail to answer.

        Returns
        -------
        PartCosts
            `var(a)`, `cvar(a)`, `bounds(a)` and `mean`, the same on every rank.
        """
        checked = check_invertible_alpha(alpha)
        work = partial(follow, self.expected, self._steps, self.budget, checked)
        return together(self.comm, work, str(self.part))

    def simulate(self, n: int, seed: int) -> FloatArray:
        """The total costs of n runs, which walk from rank to rank; all ranks call this.

        Parameters
        ----------
        n : int
            How many runs.
        seed : int
            The same seed gives the same runs, on any number of ranks.

        Returns
        -------
        array of float64, shape (n,)
            Total costs, the same on every rank.
        """
        work = partial(walk, self.expected.graph, self._steps, self.budget, n, seed)
        return together(self.comm, work, str(self.part))

    @property
    def _steps(self) -> NodeSteps:
        """The steps by node of the graph."""
        graph = self.expected.graph
        state = graph.state[: graph.own] - self.part.first
        first, end = self.first[:-1][state], self.first[1:][state]
        neutral = self.risk_neutral[state].astype(np.int64)
        return NodeSteps(first, end, self.from_budget, self.choice, neutral)

    def gather(self, ssp: SSP | None = None) -> BudgetPolicy:
        """The whole policy on every rank, where it fits; all ranks call this.

        Parameters
        ----------
        ssp : SSP, optional
            The whole model; by default it is gathered, too, with numbers for names.

        Returns
        -------
        BudgetPolicy
            The policy.
        """
        model = whole_of(self.comm, self.part) if ssp is None else ssp
        if model.n_states != self.part.n_states:
            raise ModelError(f"the parts have {self.part.n_states} states, not {model.n_states}")
        before = sum(self.comm.allgather(len(self.part.choice_action))[: self.comm.rank])
        neutral = np.where(self.risk_neutral >= 0, self.risk_neutral + before, -1)
        return BudgetPolicy(
            ssp=model,
            budget=self.budget,
            first=offsets_from_lengths(joined(self.comm, np.diff(self.first))),
            from_budget=joined(self.comm, self.from_budget),
            choice=joined(self.comm, self.choice + np.int32(before)),
            risk_neutral=joined(self.comm, neutral.astype(np.int32)),
            level=model.outcome_level,
            unit=self.part.unit,
        )


@dataclass(frozen=True, eq=False, repr=False)
class PartSolution(ExactSolution):
    """The least CVaR of a model in parts, for every `a >= alpha`; see `ExactSolution`.

    Values and bounds are the same on all ranks. `policy(a)` is a `PartPolicy`, of the rank's own
    states, and `policy(a).gather()` the whole. Costs are 0 or more, so that nothing is shifted.
    """

    @property
    def _shift(self) -> Fraction:
        return Fraction(0)

    @property
    def _exact(self) -> bool:
        return True

    def _var(self, a: float) -> float:
        a = self._check(a)
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
        """V* of a model in parts, found."""
        expected = solve_part_expected(graph_of(job.comm, part))
        told = progress if job.comm.rank == 0 else None
        return cls(job, expected, max_bytes, told)

    @property
    def nothing_sure(self) -> IntArray:
        """No budget is left to a closed form."""
        return np.zeros(self.expected.graph.n, dtype=np.int64)

    def filled(self, certain_cost: IntArray, criteria: FloatArray, **aims: Any) -> BudgetTable:
        """The table; the least of `criteria` is minimised at the start with the given aims."""
        layout: Any = lay_out_part(self.expected, certain_cost)
        objective = layout.objective(criteria, **aims)
        way = partial(fill_part, checkpoints=self.job.checkpoints)
        options: Any = {"max_bytes": self.max_bytes, "progress": self.progress, "way": way}
        return fill_table(layout, objective, **options)

    def policy(self, table: BudgetTable, budget: int) -> PartPolicy:
        """The policy of own states for budgets up to one; steps out of reach are left out."""
        graph, layout, part = self.expected.graph, table.layout, self.expected.graph.part
        node, from_budget, choice = table.changes
        met = np.flatnonzero(from_budget + layout.nodes.least[node] <= budget)
        neutral = np.full(len(part.is_goal), -1, dtype=np.int32)
        neutral[graph.state[: graph.own] - part.first] = self.expected.chosen
        number: Any = layout
        state = number.number[node[met]] - part.first
        steps = steps_of(state, from_budget[met], layout.choice[choice[met]], neutral)
        more: Any = {"risk_neutral": neutral, "expected": self.expected, **steps}
        return PartPolicy(self.job.comm, part, budget, **more)


def solve_part_cvar(
    part: Part, alpha: float, job: Job, max_bytes: int, progress: Progress | None
) -> PartSolution:
    """`solve_cvar_exact` of a model in parts."""
    alpha = check_invertible_alpha(alpha)
    table = PartTable.of(part, job, max_bytes, progress)
    large = part.n_states * table.expected.start[0] / float(part.unit) > WORTH_SKIPPING
    certain_cost = sure_budgets(table.expected) if large else table.nothing_sure
    filled = table.filled(certain_cost, EXCESS, weight=1.0, price=1 / alpha)
    error_bound = ErrorBound(
        *doubts_of(table.expected, certain_cost[: table.expected.graph.own]), filled.error
    )
    nothing: Any = table.policy(filled, 0)
    columns = filled.budgets, filled.steps, filled.values[:, 0], None, None
    solution = PartSolution(alpha, *columns, error_bound, nothing, method=filled.method)
    largest: Any = table.policy(filled, int(filled.budgets[solution.best_position(alpha)]))
    return replace(solution, largest=largest)
