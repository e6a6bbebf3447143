"""The least CVaR of a model in parts, by the table of `analysis/tables.py` on every rank's own
states.

Values and bounds at the start are known on all ranks; the steps of the policy stay on the rank of
their states until they are gathered.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tailpath.analysis.tables import fill_table
from tailpath.certify.budgets import Later
from tailpath.distributed.expected import PartExpected, solve_part_expected
from tailpath.distributed.fill import fill_part
from tailpath.distributed.layout import PartLayout, lay_out_part
from tailpath.distributed.part import Part, whole_of
from tailpath.distributed.ranks import joined, together
from tailpath.distributed.search import graph_of
from tailpath.dp.budget_model import EXCESS, Changes
from tailpath.dp.layout_builders import LEFT_OUT
from tailpath.errors import ModelError
from tailpath.evaluation.distribution import CostDistribution
from tailpath.evaluation.evaluate import evaluate
from tailpath.graph import IntArray, offsets_from_lengths
from tailpath.model.ssp import SSP
from tailpath.options import Progress, check_alpha, takes_alpha
from tailpath.policies.budget import BudgetPolicy, steps_of
from tailpath.solvers.exact.solution import ExactSolution, first_best


@takes_alpha
@dataclass(frozen=True, eq=False, repr=False)
class PartPolicy:
    """A `BudgetPolicy` of the states of a part, with the choices of the part."""

    comm: Any
    part: Part
    budget: int
    first: IntArray
    from_budget: IntArray
    choice: NDArray[np.int32]
    risk_neutral: NDArray[np.int32]

    def __repr__(self) -> str:
        return f"<PartPolicy on {self.part}>"

    @property
    def unit(self) -> Fraction:
        return self.part.unit

    @property
    def ssp(self) -> Part:
        return self.part

    def with_budget(self, budget: int) -> PartPolicy:
        return replace(self, budget=budget)

    def evaluate(self, alpha: float) -> CostDistribution:
        """The exact costs of the policy, gathered on every rank; all ranks call this.

        Parameters
        ----------
        alpha : float in (0, 1]
            The least mass of the worst tail to answer.

        Returns
        -------
        CostDistribution
            As of `tailpath.evaluate`.
        """

        def work() -> CostDistribution:
            policy = self.gather()
            costs: CostDistribution = evaluate(policy.ssp, policy, alpha)
            return costs

        return together(self.comm, work, str(self.part))

    def gather(self, ssp: SSP | None = None) -> BudgetPolicy:
        """The policy of all states, on every rank; all ranks call this.

        It works like any other policy.

        Parameters
        ----------
        ssp : SSP, optional
            The whole model; by default it is gathered, too, with numbers as names.

        Returns
        -------
        BudgetPolicy
            The policy.
        """
        model = whole_of(self.comm, self.part) if ssp is None else ssp
        if model.n_states != self.part.n_states:
            raise ModelError(f"the parts have {self.part.n_states} states, not {model.n_states}")
        # The choices of the parts before this one are counted first.
        before = sum(self.comm.allgather(len(self.part.choice_action))[: self.comm.rank])
        risk_neutral = np.where(self.risk_neutral >= 0, self.risk_neutral + before, -1)
        return BudgetPolicy(
            ssp=model,
            budget=self.budget,
            first=offsets_from_lengths(joined(self.comm, np.diff(self.first))),
            from_budget=joined(self.comm, self.from_budget),
            choice=joined(self.comm, self.choice + np.int32(before)),
            risk_neutral=joined(self.comm, risk_neutral.astype(np.int32)),
            level=model.outcome_level,
            unit=self.part.unit,
        )


@dataclass(frozen=True, eq=False, repr=False)
class PartSolution(ExactSolution):
    """`ExactSolution` of a model in parts, the same on all ranks; `policy(a)` is a `PartPolicy`."""

    def _costs(self, a: float) -> Any:
        policy: Any = self.policy(a)
        return policy.evaluate(a)

    def __repr__(self) -> str:
        return f"<PartSolution for alpha>={self.alpha:g}: CVaR {self.cvar(self.alpha):.6g}>"


def solve_cvar(
    part: Part, comm: Any, alpha: float, max_bytes: int, progress: Progress | None
) -> PartSolution:
    """`solve_cvar_exact` of a model in parts."""
    alpha = check_alpha(alpha)
    expected = solve_part_expected(graph_of(comm, part))
    layout: Any = lay_out_part(expected, sure_budgets(expected))
    table = fill_table(
        layout,
        layout.objective(EXCESS, weight=1.0, price=1 / alpha),
        max_bytes=max_bytes,
        progress=progress if comm.rank == 0 else None,
        sweep=fill_part,
    )
    sides = table.sides()  # at once, since all ranks must take part
    excess = table.values[:, 0]
    budget = int(table.budgets[first_best(table.budgets + excess / alpha)])
    policy: Any = _policy(expected, layout, table.changes, budget)
    return PartSolution(
        alpha,
        table.budgets,
        excess,
        None,
        policy,
        Later(lambda: sides),
        beyond=table.limit + 1.0,
        method=table.method,
    )


def _policy(
    expected: PartExpected, layout: PartLayout, changes: Changes, budget: int
) -> PartPolicy:
    """The policy of own states for budgets up to one; steps out of reach are left out."""
    graph, part = expected.graph, expected.graph.part
    node, from_budget, choice = changes
    met = np.flatnonzero(from_budget + layout.nodes.cost_from_start[node] <= budget)
    risk_neutral = np.full(len(part.is_goal), -1, dtype=np.int32)
    risk_neutral[graph.state[: graph.own] - part.first] = expected.chosen
    state = layout.number[node[met]] - part.first
    steps = steps_of(state, from_budget[met], layout.choice[choice[met]], risk_neutral)
    return PartPolicy(graph.comm, part, budget, risk_neutral=risk_neutral, **steps)


def sure_budgets(expected: PartExpected) -> IntArray:
    """The budgets, in units, that are left to closed forms of excesses."""
    value = expected.bounds.value / float(expected.graph.part.unit)
    return np.asarray(np.minimum(expected.nearest, LEFT_OUT * value), dtype=np.int64)
