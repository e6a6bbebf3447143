"""Evaluation of a `BudgetPolicy` without the product of states and budgets.

At accumulated level g the budget left is w - g, so the pair (state, g) already determines the
action: the search runs over the model's own states, level by level, and each state picks its choice
by the level. From g = w on the policy is risk-neutral and Markov, so V_mean of its Markov part
completes every open node, and what is in a dead end of it never arrives. The search therefore goes
on to g = w at least.

This needs the model's own cost levels as the policy's memory, and no cycle of zero-cost steps.
Otherwise the policy is unrolled like any other.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from tailpath.analysis.reachability import until_goals
from tailpath.certify.values import Bounds
from tailpath.dp.expected import variances
from tailpath.dp.forward import ALWAYS, ONCE_SPENT, Space
from tailpath.errors import PolicyError
from tailpath.evaluation.engine import Request, Search, one_side
from tailpath.evaluation.lattice import LatticeEngine
from tailpath.graph import BoolArray, FloatArray, IntArray, Transitions
from tailpath.model.checks import same_numbering
from tailpath.model.ssp import SSP
from tailpath.policies.budget import BudgetPolicy
from tailpath.policies.unrolling import chain_of_choices


def without_spare_budget(policy: BudgetPolicy) -> BudgetPolicy:
    """The same decisions with as little budget as they need: none below all steps."""
    first = int(np.min(policy.from_budget, initial=policy.budget + 1))
    spare = {"budget": policy.budget - first + 1, "from_budget": policy.from_budget - first + 1}
    return policy if first == 1 else policy.trusted(**policy.__getstate__() | spare)


def budget_engine(request: Request, policy: BudgetPolicy) -> tuple[BudgetEngine | None, str]:
    """What evaluates the policy, or why it cannot be done in this way."""
    ssp = request.ssp
    if not same_numbering(policy.ssp, ssp):
        return None, "the policy was made for another model, and is followed by name"
    if policy.unit != ssp.cost_unit or not np.array_equal(policy.level, ssp.outcome_level):
        return None, "the policy counts its budget in other costs than the model's own"
    states, choices = _reachable(ssp, policy)
    taken = choices[ssp.outcome_choice]
    rank = zero_cost_order(ssp, policy.level, taken)
    if rank is None:
        return None, "steps that cost nothing form a cycle, which is solved in the unrolled chain"
    try:
        risk_neutral = chain_of_choices(ssp, np.where(states, policy.risk_neutral, -1))
    except PolicyError:
        return None, "a state has no action for a budget that is spent"
    trapped = np.zeros(ssp.n_states, dtype=np.uint8)
    if not risk_neutral.all_arrive:
        trapped[risk_neutral.state[~risk_neutral.arrives]] = ONCE_SPENT
        # Mass where nothing leads to a goal that the policy may ever do would go round until the
        # budget is spent, however large it is.
        trapped[until_goals(ssp).only(taken).steps() < 0] = ALWAYS
    # Zero-cost outcomes lead to lower ranks, so higher ranks come first.
    order = np.argsort(-rank, kind="stable")
    order = order[(states & ~ssp.is_goal)[order]]
    position = np.full(ssp.n_states, len(order))  # goals, and what is never reached
    position[order] = np.arange(len(order))
    space = Space(
        ssp.transitions.replaced(level=ssp.outcome_level),
        np.arange(ssp.n_choices),
        np.append(order, ssp.n_states),
        position,
        steps=policy.steps(),
        trapped=trapped[order],
    )
    return BudgetEngine(request, risk_neutral, space, ssp.start_index), ""


class BudgetEngine(LatticeEngine):
    """Evaluates a policy by the chain of its risk-neutral part."""

    sums = True

    def cycles(self, rows: Transitions) -> None:
        return None

    def _spent(self, found: Search) -> bool:
        return bool(found.until >= self.space.steps.budget)

    def _by_state(self, bounds: Bounds, side: int) -> FloatArray:
        """Values of the risk-neutral chain by state, and 0 at the goal."""
        by_state = np.append(np.where(self.request.ssp.is_goal, 0.0, np.inf), 0.0)
        by_state[self.chain.state] = one_side(bounds, side)[:-1]
        return by_state

    def cost_to_go(self, found: Search, side: int) -> FloatArray:
        """With budget left nobody knows what is still to pay."""
        if side != 0 and not self._spent(found):
            return np.full(len(found.node), 0.0 if side < 0 else np.inf)
        return self._by_state(self.chain.expected_cost, side)[found.node]

    def dearest(self, found: Search, side: int) -> float:
        """What was not followed pays until the budget is spent, and then as much as anywhere."""
        most = self.space.steps.budget + int(np.max(self.request.ssp.outcome_level))
        return super().dearest(found, side) + float(most * (self.request.ssp.cost_unit or 1))

    def missed(self, found: Search, side: int) -> float:
        """With budget left nobody knows whether what is open arrives."""
        if not self._spent(found):
            return found.dead_mass + (float(np.sum(found.mass)) if side > 0 else 0.0)
        if self.chain.all_arrive:
            return found.dead_mass
        missed = self._by_state(self.chain.unreached, side)[found.node]
        total = found.dead_mass + float(np.sum(found.mass * missed))
        if side >= 0 and total == 0 and missed.any():
            return math.nextafter(0.0, 1.0)
        return total + (found.dropped if side > 0 else 0.0)

    def variance(self, found: Search, mean: float) -> float:
        value = variances(self.chain, self.chain.expected_cost)
        variance = self._by_state(Bounds(value, value, value), 0)[found.node]
        total = found.last + found.overshoot + self.cost_to_go(found, 0)
        of_head = np.sum(found.masses * (found.costs - mean) ** 2)
        return float(of_head + np.sum(found.mass * ((total - mean) ** 2 + variance)))

    def stuck(self, found: Search) -> str:
        """A state where the goal is out of reach once the budget is spent: one that was entered, or
        ahead of those open.
        """
        chain, states = self.chain, self.request.ssp.states
        if found.trapped >= 0:
            return f"state {states[int(self.space.node[found.trapped])]!r} with memory 0"
        may_miss = found.node[self._by_state(chain.unreached, 0)[found.node] > 0]
        reached = chain.reachable(int(np.flatnonzero(chain.state == may_miss[0])[0]))
        dead = np.flatnonzero(reached & ~chain.arrives)
        return f"state {states[int(chain.state[dead[0]])]!r} with memory 0"


def zero_cost_order(ssp: SSP, level: IntArray, taken: BoolArray) -> NDArray[np.int32] | None:
    """A rank of the states that falls along zero-cost outcomes taken; None if they form a cycle."""
    zero = (level == 0) & taken & ~ssp.is_goal[ssp.outcome_target]
    if not zero.any():
        return np.zeros(ssp.n_states, dtype=np.int32)
    ordered = ssp.by_state.only(zero).acyclic_order()
    return None if ordered is None else ordered[0]


def _reachable(ssp: SSP, policy: BudgetPolicy) -> tuple[BoolArray, BoolArray]:
    """What a policy can do whatever its budget: the states it gets to, and the choices it may take
    there.
    """
    taken = np.zeros(ssp.n_choices + 1, dtype=np.bool_)
    taken[policy.risk_neutral] = True
    taken[policy.choice[policy.from_budget <= policy.budget]] = True
    taken = taken[:-1]  # -1 is no choice
    states = ssp.by_state.only(taken[ssp.outcome_choice]).reachable(ssp.start_index)
    return states, taken & states[ssp.choice_state]
