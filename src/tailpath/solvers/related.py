"""Other authors' algorithms, written as they describe them, for comparison with ours: in arrays,
and without the care of the exact solver. Costs are counted in units, and mostly every outcome that
does not arrive must cost something.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from tailpath.analysis.core import Core, core_of
from tailpath.analysis.reachability import almost_sure_states
from tailpath.dp.budgets import node_values
from tailpath.errors import ModelError, OptionError
from tailpath.evaluation.evaluate import evaluate
from tailpath.graph import BoolArray, FloatArray, IntArray, first_of
from tailpath.kernels.rounding import SAME_MASS, SAME_VALUE
from tailpath.model.potential import refuse_signed
from tailpath.model.ssp import SSP
from tailpath.options import Progress, check_alpha, check_invertible_alpha
from tailpath.policies.budget import BudgetPolicy
from tailpath.policies.kinds import MarkovPolicy, MemoryPolicy
from tailpath.policies.policy import Policy
from tailpath.solvers.exact.layout import layout_of
from tailpath.solvers.exact.table import always_risk_neutral, budget_policy, fill_table
from tailpath.solvers.expectation import solve_expected

#: Sweeps of nested CVaR end when no value moves by more than this part of it.
SAME_NESTED = 1e-12
MAX_SWEEPS = 1_000_000
#: The expected cost, infinite once the budget is spent (`dp/budget_model.py`).
WITHIN = np.array([np.inf, 0.0, 0.0, 1.0])


def unit_of(ssp: SSP, who: str) -> float:
    """The cost unit; refuses costs without one, and negative ones."""
    refuse_signed(ssp, who)
    if ssp.cost_unit is None:
        raise ModelError(f"the costs have no common unit; {who} counts costs in units")
    return float(ssp.cost_unit)


def rising_core_of(ssp: SSP, who: str) -> tuple[Core, float]:
    """The core, where zero-cost outcomes that do not arrive are refused; and the cost unit."""
    unit = unit_of(ssp, who)
    core, (_, safe) = core_of(ssp), almost_sure_states(ssp)
    zero_cost = (ssp.outcome_level == 0) & ~ssp.is_goal[ssp.outcome_target]
    for outcome in first_of(zero_cost & safe[ssp.outcome_choice]):
        state = ssp.states[ssp.choice_state[ssp.outcome_choice[outcome]]]
        raise ModelError(
            f"an outcome of state {state!r} costs nothing and does not arrive;"
            f" {who} needs costs above 0"
        )
    return core, unit


def best_choices(core: Core, values: FloatArray) -> tuple[FloatArray, IntArray]:
    """For each node the least of its choices' values, and the first choice that has it."""
    begin = core.state_choices[:-1]
    least = np.minimum.reduceat(values, begin)
    hit = np.flatnonzero(values <= np.repeat(least, np.diff(core.state_choices)))
    return least, hit[np.searchsorted(hit, begin)]


@dataclass(frozen=True, eq=False)
class NestedSolution:
    """By state, infinite where nested CVaR is; there the policy takes the risk-neutral choice."""

    value: FloatArray
    policy: MarkovPolicy
    sweeps: int


def solve_nested_cvar(ssp: SSP, alpha: float, progress: Progress | None = None) -> NestedSolution:
    """The least nested (iterated) CVaR from every state, for contrast.

        rho(s) = min over choices of CVaR_alpha( c + rho(s') )

    It is consistent in time, and another question: the adversary has a fresh alpha at every step,
    and may not save some of it for later. So rho is often far above the CVaR of the total cost, but
    may lie below it, too; it is infinite where no choice leads on with a probability above 1 -
    alpha.
    """
    alpha = check_alpha(alpha)
    core, unit = rising_core_of(ssp, "nested CVaR")
    finite = _finite(core, alpha)
    value = np.where(finite, 0.0, np.inf)
    best = core.state_choices[:-1]
    for sweeps in range(1, MAX_SWEEPS + 1):
        least, best = best_choices(core, _tail_means(core, np.append(value, 0.0), alpha))
        new, old = least[finite], value[finite]
        moved = float(np.max(np.abs(new - old) / np.maximum(new, 1.0), initial=0.0))
        value[finite] = new
        if progress is not None:
            progress(sweeps, moved)
        if moved <= SAME_NESTED:
            break
    choices, taken = solve_expected(ssp).choices.copy(), core.choice[best[finite]]
    choices[ssp.choice_state[taken]] = taken
    policy = MarkovPolicy.from_choices(ssp, choices)
    return NestedSolution(core.to_states(value) * unit, policy, sweeps)


def _tail_means(core: Core, value: FloatArray, alpha: float) -> FloatArray:
    """The mean of the worst alpha of `level + value` for every choice."""
    begin, owner = core.choice_outcomes[:-1], core.transitions.source
    q_value = core.level + value[core.target]
    order = np.lexsort((-q_value, owner))
    chance = core.probability[order]
    before = np.cumsum(chance) - chance
    taken = np.clip(alpha - (before - before[begin][owner]), 0.0, chance)
    with np.errstate(invalid="ignore"):
        terms = np.where(taken > 0, taken * q_value[order], 0.0)
    return np.asarray(np.add.reduceat(terms, begin) / np.add.reduceat(taken, begin))


def _finite(core: Core, alpha: float) -> BoolArray:
    """The largest set in which every choice taken stays, and leads on with a probability above 1 -
    alpha. Node n, the goal, is always inside.
    """
    begin, target = core.choice_outcomes[:-1], core.target
    inside = np.ones(core.n + 1, dtype=np.bool_)
    while True:
        stays = np.logical_and.reduceat(inside[target], begin)
        new, reached = np.arange(core.n + 1) == core.n, ~inside
        while (new != reached).any():
            reached = new
            onwards = np.add.reduceat(np.where(reached[target], core.probability, 0.0), begin)
            able = stays & (onwards > (1 - alpha) * (1 + SAME_MASS))
            reaches = np.append(np.logical_or.reduceat(able, core.state_choices[:-1]), True)
            new = reached | (reaches & inside)
        if (reached == inside).all():
            return reached[:-1]
        inside = reached


def solve_surrogate(
    ssp: SSP, alpha: float, threshold: float, progress: Progress | None = None
) -> tuple[float, BudgetPolicy]:
    """The surrogate's CVaR at alpha, with costs counted up to the threshold d, and its policy
    (after Carpin, Chow and Pavone 2016): it pays min(Z, d).

        J_w(s, c) = min_a sum P J_w(s', c + cost),
        J_w(goal, c) = (c - w)+,
        J_w(s, c) = d - w for c >= d

    for every w on the grid of costs, and the least w + J_w(start, 0) / alpha is the answer. It lies
    below the optimum and rises to it with d; beyond d the policy goes on at the least expected
    cost.
    """
    alpha = check_invertible_alpha(alpha)
    unit, expected = unit_of(ssp, "the surrogate"), solve_expected(ssp)
    cap = round(threshold / unit)
    if cap < 1:
        raise OptionError(f"the threshold must be at least the cost unit {unit:g}, not {threshold}")
    if ssp.is_goal[ssp.start_index]:
        return 0.0, always_risk_neutral(ssp, expected.choices)
    layout, remaining = layout_of(ssp), np.arange(cap + 1.0)
    best, decisions = np.inf, None
    for w in range(cap + 1):
        if w >= best:
            break
        # With c spent, cap - c is left: J_w is cap - w with nothing left, and a loss at the goal.
        capped = layout.objective(np.array([cap - w, 0.0, 0.0, 0.0]), limit=float(cap))
        table = fill_table(layout, capped, np.maximum(cap - remaining - w, 0.0)[:, None])
        found = w + float(table.values[-1, 0]) / alpha
        if decisions is None or found < best * (1 - SAME_VALUE):
            best, decisions = found, table
        if progress is not None:
            progress(w, best * unit)
    assert decisions is not None
    return best * unit, budget_policy(ssp, layout, decisions.changes, cap, expected.choices)


def second_stage(ssp: SSP, policy: Policy, alpha: float) -> Policy:
    """The policy, but at the least expected cost from where a run is sure to end within its VaR
    (after Rigter, Duckworth, Lacerda and Hawes 2022, who estimate the VaR; here it is exact).

        M(s, b) = min over choices all of whose outcomes keep M finite of  sum P (c + M(s', b - c)),
        M(goal, b >= 0) = 0

    CVaR = VaR + E[(Z - VaR)+] / alpha does not rise, since such a run has no excess, and the mean
    falls: to no less than that of `solve_cvar_exact(lexicographic=True)`.
    """
    var = evaluate(ssp, policy, alpha).var(alpha)
    if not math.isfinite(var):
        raise ModelError("the second stage needs a policy with a finite VaR")
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
    within = budget_policy(ssp, layout, changes, budget + 1, solve_expected(ssp).choices)
    switched = _Switched(policy, within, enough, budget)
    return MemoryPolicy(switched.start, switched.action, switched.remember)


@dataclass(frozen=True, eq=False)
class _Switched:
    """Memory is what the policy remembers and the budget left; or None and the budget, once that is
    `enough` to end within it. `within` then has a unit more: it pays for arriving with nothing
    left.
    """

    policy: Policy
    within: BudgetPolicy
    enough: IntArray
    budget: int

    def _ends_within(self, state: Any, remaining: int) -> bool:
        return bool(remaining >= self.enough[self.within.ssp.state_index(state)])

    def start(self, state: Any) -> Any:
        own = None if self._ends_within(state, self.budget) else (self.policy.start(state),)
        return own, self.budget

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
