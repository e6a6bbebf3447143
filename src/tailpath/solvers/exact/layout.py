"""A model laid out for the sweep over budgets (`dp/budgets.py`), and what it found
(`analysis/tables.py`) as a policy.

What is laid out: almost sure states, safe choices, and of these what the start can reach; zero-cost
components are one node each, with the choices that leave it. Choices of a node stand with the
risk-neutral one first, then in the model's order, so that ties go to the policy that is also good
on average.

*Budgets that every run exceeds* may be left to their closed form, U(s, w) = V*(s) - w for w <=
nearest(s), the least cost of arriving. Digits cancel in it, so for excesses only budgets up to a
share of V*(s) are left out. Lateness is 1 there, exactly, so that for deadlines all of them are
left out.

*As a policy*: the budgets at which a node's choice changes are steps of all its states.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from tailpath.analysis.core import core_of
from tailpath.analysis.tables import ModelLayout
from tailpath.dp.budget_model import Changes
from tailpath.dp.layout_builders import lay_out, unavoidable_costs
from tailpath.graph import Array, IntArray, members_of, owners
from tailpath.model.border import require_unit
from tailpath.model.records import found_once
from tailpath.model.ssp import SSP
from tailpath.policies.budget import BudgetPolicy, steps_of
from tailpath.solvers.expectation import ExpectedSolution, solve_expected

#: Layouts of up to so many outcomes are stored with their model; larger ones are laid out anew.
LARGEST_STORED = 2**17


def layout_of(ssp: SSP, skip: str = "") -> ModelLayout:
    """Lay out a model that has a cost unit and whose start is no goal. `skip` leaves out budgets
    that are sure to be exceeded: "excess" as far as the error of V* allows, "late" all of them.
    """
    return (_laid_out if ssp.n_outcomes > LARGEST_STORED else _stored)(ssp, skip)


def _laid_out(ssp: SSP, skip: str) -> ModelLayout:
    return lay_out_model(ssp, solve_expected(ssp), skip)


def lay_out_model(ssp: SSP, expected: ExpectedSolution, skip: str = "") -> ModelLayout:
    """The same, with the choices that are best on average and their values given."""
    core, unit = core_of(ssp), require_unit(ssp)
    value = core.to_nodes(expected.value) / float(unit)
    rows = core.transitions.replaced(level=core.level)
    risk_neutral = np.zeros(ssp.n_choices, dtype=np.bool_)
    risk_neutral[expected.choices[expected.choices >= 0]] = True
    layout, position = lay_out(
        rows,
        rows.state_rows,
        value,
        int(core.node_of[ssp.start_index]),
        first=risk_neutral[core.choice],
        unavoidable_cost=unavoidable_costs(rows.joined(rows.state_rows), value, skip == "late")
        if skip
        else None,
    )
    return ModelLayout.of(
        layout,
        ssp=ssp,
        risk_neutral=expected.choices,
        choice=core.choice[layout.choice],
        node_of=position[core.node_of],
        unit=unit,
        lower=expected.lower,
        upper=expected.upper,
        error=ssp.probability_error,
    )


_stored = found_once(_laid_out)


# ---------------------------------------------------------------------- and back


def always_risk_neutral(ssp: SSP, risk_neutral: NDArray[np.int32]) -> BudgetPolicy:
    """The policy for budget 0 alone: risk-neutral from the start."""
    costs = {"level": ssp.outcome_level, "unit": ssp.cost_unit}
    steps = steps_of([], [], [], risk_neutral)
    return BudgetPolicy.trusted(ssp=ssp, budget=0, risk_neutral=risk_neutral, **costs, **steps)


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
    met = np.flatnonzero(from_budget + layout.nodes.cost_from_start[node] <= budget)
    states, of_node = layout.members
    # A node of a zero-cost component stands for several states.
    member, of_change = members_of(of_node, node[met])
    change = met[owners(of_change)]
    state, choice = states[member], layout.choice[choice[change]]
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
        **steps_of(state, from_budget[change], choice, risk_neutral),
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
