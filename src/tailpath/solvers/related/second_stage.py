"""The lexicographic second stage (after Rigter, Duckworth, Lacerda and Hawes 2022), fed with the
exact VaR.

A CVaR planner does not care about runs that end below the VaR: they are no part of the tail. So
once a run is certain to end within what remains of the VaR, its remaining decisions may
be changed for the least expected cost, as long as they keep it within:

    M(s, b) = min over choices all of whose outcomes keep M finite of  sum P (c + M(s', b - c)),
    M(goal, b >= 0) = 0.

CVaR = VaR + E[(Z - VaR)+] / alpha does not rise, since such a run has no excess, and the mean
falls. The authors estimate the VaR by simulation; here `evaluate` says it exactly, a use the paper
names for ForPECVaR. From the CVaR optimum the result has the optimal CVaR and a mean between that
of the optimum and that of `solve_cvar_exact(lexicographic=True)`, which also breaks ties among runs
that do exceed the VaR; a test says so.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from tailpath.dp.budgets import node_values
from tailpath.errors import ModelError
from tailpath.evaluation.evaluate import evaluate
from tailpath.graph import IntArray
from tailpath.model.ssp import SSP
from tailpath.policies.budget import BudgetPolicy
from tailpath.policies.kinds import MemoryPolicy
from tailpath.policies.policy import Policy
from tailpath.solvers.exact.layout import layout_of
from tailpath.solvers.exact.table import BudgetTable, budget_policy
from tailpath.solvers.expectation import solve_expected
from tailpath.solvers.related.levels import rising_core_of

#: The expected cost, infinite once the budget is spent (`dp/budget_model.py`).
WITHIN = np.array([np.inf, 0.0, 0.0, 1.0])


def second_stage(ssp: SSP, policy: Policy, alpha: float) -> Policy:
    """The policy, but at the least expected cost from where a run is sure to end within its VaR."""
    var = evaluate(ssp, policy, alpha).var(alpha)
    if not math.isfinite(var):
        raise ModelError(
            "the policy has no finite VaR; the second stage has nothing to keep within"
        )
    _, unit = rising_core_of(ssp, "the second stage")
    budget = round(var / unit)
    enough = np.where(ssp.is_goal, 0, budget + 1)
    if ssp.is_goal[ssp.start_index]:
        return policy
    layout = layout_of(ssp)
    objective = layout.objective(WITHIN, limit=budget + 1.0)
    values, changes = next(node_values(layout, objective, budget + 1))
    states, _ = layout.members
    finite = np.isfinite(values)
    enough[states] = np.where(finite.any(axis=0), finite.argmax(axis=0), budget + 1)
    table = BudgetTable(layout, np.arange(budget + 2), np.arange(budget + 2), values, changes, 0.0)
    within = budget_policy(ssp, table, budget + 1, solve_expected(ssp).choices)
    return _Switched(policy, within, enough, budget).as_policy()


@dataclass(frozen=True, eq=False)
class _Switched:
    """Memory is what the policy remembers and the budget left; or None and the budget, once the run
    is sure to end within it.

    A state needs `enough` of it for that, in units; `within` then has a unit more, since it pays
    for arriving with nothing left.
    """

    policy: Policy
    within: BudgetPolicy
    enough: IntArray
    budget: int

    def as_policy(self) -> MemoryPolicy:
        return MemoryPolicy(self.start, self.action, self.remember)

    def _ends_within(self, state: Any, remaining: int) -> bool:
        return bool(remaining >= self.enough[self.within.ssp.state_index(state)])

    def start(self, state: Any) -> Any:
        return (
            (None, self.budget)
            if self._ends_within(state, self.budget)
            else ((self.policy.start(state),), self.budget)
        )

    def action(self, state: Any, memory: Any) -> Any:
        own, remaining = memory
        if own is None:
            ssp = self.within.ssp
            return ssp.choice_name(self.within.choice_at(ssp.state_index(state), remaining + 1))
        return self.policy.action(state, own[0])

    def remember(self, memory: Any, state: Any, action: Any, cost: float, next_state: Any) -> Any:
        own, remaining = memory
        remaining = max(remaining - round(cost / float(self.within.unit)), -1)
        if own is None or self._ends_within(next_state, remaining):
            return None, remaining
        return (self.policy.remember(own[0], state, action, cost, next_state),), remaining
