"""Tables over budgets (`analysis/tables.py`) as policies: the budgets at which a node's choice
changes are steps of all its states.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tailpath.analysis.core import core_of
from tailpath.analysis.tables import MAX_BYTES as MAX_BYTES
from tailpath.analysis.tables import BudgetTable as BudgetTable
from tailpath.analysis.tables import ModelLayout
from tailpath.analysis.tables import fill_table as fill_table
from tailpath.analysis.tables import first_guess as first_guess
from tailpath.analysis.tables import too_many_levels as too_many_levels
from tailpath.dp.budget_model import Changes
from tailpath.graph import Array, IntArray, members_of, owners
from tailpath.model.ssp import SSP
from tailpath.policies.budget import BudgetPolicy, steps_of
from tailpath.policies.kinds import MixedPolicy
from tailpath.policies.policy import Policy


def always_risk_neutral(ssp: SSP, risk_neutral: NDArray[np.int32]) -> BudgetPolicy:
    """The policy for budget 0 alone: risk-neutral from the start."""
    no_changes = (np.zeros(0, dtype=np.int64),) * 3
    return BudgetPolicy.from_changes(
        ssp, 0, no_changes, risk_neutral, ssp.outcome_level, ssp.cost_unit
    )


def budget_policy(
    layout: ModelLayout,
    changes: Changes,
    budget: int,
    *,
    deadline: bool = False,
    ssp: SSP | None = None,
) -> BudgetPolicy:
    """The policy for budgets up to `budget`, on the model laid out or another with its choices;
    steps that no run from the start can meet are left out.
    """
    own, risk_neutral = layout.ssp, layout.risk_neutral
    node, from_budget, choice = changes
    met = from_budget + layout.nodes.cost_from_start[node] <= budget
    if not met.all():
        node, from_budget = node[met], from_budget[met]
        choice = choice[met]
    states, of_node = layout.members
    choice = layout.choice[choice]
    if len(states) == layout.n:
        state = states[node]
    else:  # a node of a zero-cost component stands for several states
        member, of_change = members_of(of_node, node)
        change = owners(of_change)
        state, from_budget = states[member], from_budget[change]
        choice = choice[change]
        elsewhere = np.flatnonzero(own.choice_state[choice] != state)
        if elsewhere.size:
            choice[elsewhere] = _way_out(layout, state[elsewhere], choice[elsewhere])
    shown = own if ssp is None else ssp
    return BudgetPolicy.trusted(
        ssp=shown,
        budget=budget,
        risk_neutral=risk_neutral,
        level=shown.outcome_level,
        unit=layout.unit,
        deadline=deadline,
        **steps_of(state, from_budget, choice, risk_neutral),
    )


def _way_out(layout: ModelLayout, state: Array, leaving: IntArray) -> Array:
    """What states of zero-cost components do: walk to the state that has the choice that leaves."""
    node, own = layout.node_of[state], np.empty(len(state), dtype=np.int64)
    # One walk serves all components at once, so there are as many walks as the most exits that one
    # component uses.
    pairs = np.unique(np.stack([node, leaving]), axis=1)
    first = np.searchsorted(pairs[0], pairs[0], side="left")
    turn = np.arange(pairs.shape[1]) - first
    for number in range(int(turn.max()) + 1):
        some = pairs[1, turn == number]
        here = np.isin(leaving, some)
        own[here] = core_of(layout.ssp).walks_to(some)[state[here]]
    return own


def model_as_counted(policy: BudgetPolicy) -> SSP:
    """The model of a policy with every cost as the policy counts it."""
    ssp, level = policy.ssp, policy.level
    unit = policy.unit
    if ssp.cost_unit == unit and np.array_equal(level, ssp.outcome_level):
        return ssp
    return replace(
        ssp, outcome_cost=np.asarray(level * float(unit), dtype=np.float64), exact_unit=unit
    )


def on_model(policy: Any, ssp: SSP) -> Policy:
    """A policy made for rounded costs, on the model as it is; its budget still falls by rounded
    costs.
    """
    if isinstance(policy, MixedPolicy):
        members = tuple(on_model(member, ssp) for member in policy.members)
        return MixedPolicy(members, policy.weights)
    same: Policy = policy.on(ssp) if isinstance(policy, BudgetPolicy) else policy
    return same
