"""The lexicographic second stage (after Rigter, Duckworth, Lacerda and Hawes 2022), fed with the exact VaR.

A CVaR planner does not care about runs that end below the VaR: they are no part of the tail. So once a run can be brought home for sure within what
is left of the VaR, its remaining decisions may be changed for the least expected cost, as long as they keep it within:

    M(s, b) = min over choices all of whose outcomes keep M finite of  sum P (c + M(s', b - c)),     M(goal, b >= 0) = 0.

CVaR = VaR + E[(Z - VaR)+] / alpha does not rise, since such a run has no excess, and the mean falls. The authors estimate the VaR by simulation; here
`evaluate` says it exactly, a use the paper names for ForPECVaR. From the CVaR optimum the result has the optimal CVaR and a mean between that
of the optimum and that of `solve_cvar_exact(lexicographic=True)`, which also breaks ties among runs that do exceed the VaR; a test says so.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tailpath.errors import ModelError
from tailpath.evaluation.evaluate import evaluate
from tailpath.model.ssp import SSP, FloatArray
from tailpath.policies.kinds import MemoryPolicy, Policy
from tailpath.solvers.related.levels import Levels, levels_of


def second_stage(ssp: SSP, policy: Policy, alpha: float) -> Policy:
    """The policy, but at the least expected cost from where a run is sure to end within its VaR."""
    var = evaluate(ssp, policy, alpha).var(alpha)
    if not math.isfinite(var):
        raise ModelError("the policy has no finite VaR; the second stage has nothing to keep within")
    levels = levels_of(ssp, "the second stage")
    budget = round(var / levels.unit)
    value, picked = _sure(levels, budget)
    return _Switched(ssp, policy, levels, budget, value, picked).as_policy()


def _sure(levels: Levels, budget: int) -> tuple[FloatArray, NDArray[np.int64]]:
    """M(s, b), infinite where no policy surely ends within b, and the choices behind it."""
    ssp = levels.ssp
    value = np.full((budget + 1, ssp.n_states), np.inf)
    value[:, ssp.is_goal] = 0.0
    picked = np.full((budget + 1, ssp.n_states), -1, dtype=np.int64)
    for b in range(budget + 1):
        left = b - levels.level
        after = np.where(left >= 0, value[np.maximum(left, 0), levels.rows.target], np.inf)
        least, best = levels.best(levels.of_choices(after + levels.level))
        value[b, levels.states] = least
        picked[b, levels.states] = levels.choice[best]
    return value, picked


@dataclass(frozen=True, eq=False)
class _Switched:
    """Memory is what the policy remembers and the budget left; or None and the budget, once the run is sure to end within it."""

    ssp: SSP
    policy: Policy
    levels: Levels
    budget: int
    value: FloatArray
    picked: NDArray[np.int64]

    def as_policy(self) -> MemoryPolicy:
        return MemoryPolicy(self.start, self.action, self.remember)

    def _sure(self, state: Any, left: int) -> bool:
        return left >= 0 and bool(np.isfinite(self.value[left, self.ssp.state_index(state)]))

    def start(self, state: Any) -> Any:
        return (None, self.budget) if self._sure(state, self.budget) else ((self.policy.start(state),), self.budget)

    def action(self, state: Any, memory: Any) -> Any:
        kept, left = memory
        if kept is None:
            return self.ssp.choice_name(int(self.picked[left, self.ssp.state_index(state)]))
        return self.policy.action(state, kept[0])

    def remember(self, memory: Any, state: Any, action: Any, cost: float, next_state: Any) -> Any:
        kept, left = memory
        left = max(left - round(cost / self.levels.unit), -1)
        if kept is None or self._sure(next_state, left):
            return None, left
        return (self.policy.remember(kept[0], state, action, cost, next_state),), left
