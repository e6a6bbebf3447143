"""Evaluation of a `BudgetPolicy` without the product of states and budgets.

At accumulated level g the budget left is w - g, so the pair (state, g) already determines the action: the search runs over the model's
own states, level by level, and each state picks its choice by the level. From g = w on the policy is risk-neutral and Markov, so V_mean
of its Markov part completes every open node. The search therefore goes on to g = w at least.

This needs the model's own cost levels as the policy's memory, free arrows without cycles, an action wherever the policy gets to, and a budget
that is spent before masses are too small to follow; otherwise `None` is returned and the caller unrolls the policy like any other.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tailpath.analysis.absorption import Bracket
from tailpath.analysis.reachability import free_arrow_order
from tailpath.errors import PolicyError
from tailpath.evaluation.distribution import CostDistribution
from tailpath.evaluation.lattice import Lattice, LatticeSearch
from tailpath.evaluation.request import End, Request
from tailpath.evaluation.result import SearchResult, charged, completed, summarise
from tailpath.evaluation.variance import node_variance
from tailpath.kernels.jit import frozen
from tailpath.kernels.lattice_arrays import Arrows
from tailpath.kernels.steps import Steps
from tailpath.model.fingerprint import same_numbering
from tailpath.model.ragged import members_of
from tailpath.model.ssp import SSP, FloatArray
from tailpath.policies.budget import BudgetPolicy
from tailpath.policies.chain import CostChain
from tailpath.policies.unrolling import chain_of_choices


def evaluate_budget(ssp: SSP, policy: BudgetPolicy, request: Request) -> CostDistribution | None:
    """The distribution of the total cost, or None where the short cut does not apply."""
    if ssp.is_goal[ssp.start_index] or not same_numbering(policy.ssp, ssp):
        return None
    if policy.unit != ssp.cost_unit or not np.array_equal(policy.level, ssp.outcome_level):
        return None
    lattice = _lay_out_states(ssp, policy)
    if lattice is None:
        return None
    try:
        neutral = chain_of_choices(ssp, policy.risk_neutral)
    except PolicyError:
        return None
    search = LatticeSearch(lattice, int(lattice.place[ssp.start_index]), request)
    try:
        end = search.run(request.watch)
    except PolicyError:
        return None
    assert ssp.cost_unit is not None
    found = search.result(ssp.cost_unit, 0.0)
    rest = _by_state(ssp, neutral)
    if not np.all(np.isfinite(rest.upper[found.open.node])):
        return None
    if search.bucket < policy.budget:
        # With budget left nobody knows what is still to pay, not even by the little that was too small to follow.
        if end is End.FINISHED and found.aside.mass.size:
            return None
        rest = Bracket(rest.value, np.zeros_like(rest.lower), np.full_like(rest.upper, np.inf), "nothing known")
    return completed(_summary(ssp, neutral, found, rest, request.alpha), end, request)


def free_order(ssp: SSP, level: NDArray[np.int64]) -> tuple[NDArray[np.int64], int] | None:
    """The states in an order that free outcomes follow, and the most of them in a row; None if free outcomes form a cycle."""
    n = ssp.n_states
    free = (level == 0) & ~ssp.is_goal[ssp.outcome_target]
    if not free.any():
        return np.arange(n), 0
    source, target = ssp.choice_state[ssp.outcome_choice[free]], ssp.outcome_target[free]
    ordered = free_arrow_order(source, target, n)
    return None if ordered is None else (np.argsort(-ordered[0], kind="stable"), ordered[1])


def _lay_out_states(ssp: SSP, policy: BudgetPolicy) -> Lattice | None:
    """Every state is a node, goals are the last one, and rows belong to choices. None if free arrows form a cycle."""
    n = ssp.n_states
    ordered = free_order(ssp, ssp.outcome_level)
    if ordered is None:
        return None
    order = ordered[0][~ssp.is_goal[ordered[0]]]
    place = np.full(n + 1, len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    return Lattice(
        arrows=Arrows(
            *frozen(ssp.choice_outcomes, ssp.outcome_target, ssp.outcome_probability, ssp.outcome_level),
            *frozen(np.arange(ssp.n_choices), place, np.empty(0)),
        ),
        node=np.append(order, n),
        place=place,
        free_depth=ordered[1],
        steps=_in_order(policy, order),
        chooser=place[ssp.choice_state],
    )


def _in_order(policy: BudgetPolicy, order: NDArray[np.int64]) -> Steps:
    """The steps of these states, in this order."""
    member, first = members_of(policy.first, order)
    return Steps(policy.budget, *frozen(first, policy.from_budget[member], policy.choice[member], policy.risk_neutral[order]))


def _by_state(ssp: SSP, neutral: CostChain) -> Bracket:
    """V_mean of the risk-neutral part per state, with one entry more for the goal."""
    mean = neutral.expected_cost
    full = [np.full(ssp.n_states + 1, np.inf) for _ in range(3)]
    for array, values in zip(full, (mean.value, mean.lower, mean.upper)):
        array[neutral.state] = values
        array[np.append(ssp.is_goal, True)] = 0.0
    return Bracket(full[0], full[1], full[2], mean.method)


def _summary(ssp: SSP, neutral: CostChain, found: SearchResult, rest: Bracket, alpha: float) -> CostDistribution:
    """Mean and variance from the head and the open nodes, all sums of non-negative terms."""

    def total(values: FloatArray) -> float:
        return float(np.sum(found.probabilities * found.costs) + np.sum(found.open.mass * (found.open.cost + values[found.open.node])))

    slack = found.relative_error + found.cost_error + (len(found.costs) + len(found.open.mass) + 10) * 2.0**-53
    mean = total(rest.value)
    variance = np.zeros(ssp.n_states + 1)
    variance[neutral.state] = node_variance(neutral)
    ahead = (found.open.cost + rest.value[found.open.node] - mean) ** 2 + variance[found.open.node]
    spread = np.sum(found.probabilities * (found.costs - mean) ** 2) + np.sum(found.open.mass * ahead)
    more = charged(found.aside, found.aside.cost + rest.upper[found.aside.node])
    return summarise(
        found,
        rest,
        alpha=alpha,
        mean=(mean + more, total(rest.lower) * (1 - slack), total(rest.upper) * (1 + slack) + more),
        deviation=float(np.sqrt(spread)),
        unreached=0.0,
        engine="lattice",
    )
