"""A policy drawn on the states of its model: at one budget left, or in each state with what is most often remembered there."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tailpath.errors import OptionError
from tailpath.model.ssp import SSP
from tailpath.pictures.notebook import MOST_CELLS, MOST_NODES, card
from tailpath.pictures.schedule import has_schedule, plot_schedule
from tailpath.pictures.states import plot_states
from tailpath.pictures.style import sheet
from tailpath.policies.budget import BudgetPolicy
from tailpath.policies.chain import CostChain
from tailpath.policies.decisions import decide
from tailpath.policies.kinds import Policy
from tailpath.policies.table import decision_table
from tailpath.policies.unrolling import unroll
from tailpath.policies.visits import Visits
from tailpath.policies.words import decision_in_words
from tailpath.texts import name as name_in_words

#: States of a graph beyond which a picture is a black square.
MOST_STATES = 400


def draw_policy(ssp: SSP, policy: Policy, budget: float | None = None, ax: Any = None, title: str = "") -> Any:
    """The decisions of a policy on the map of its model, by place and time, or on a graph; returns the Axes.

    With `budget`, a cost, those of a `BudgetPolicy` with so much left; otherwise in each state those with the memory that it most often has
    there. Where it never comes, or never with this budget, they are faint; of a mixed decision the likeliest action is drawn.
    """
    scheduled = budget is None and has_schedule(ssp)
    if ssp.geometry is None and ssp.n_states > MOST_STATES and not scheduled:
        raise OptionError(f"a graph of {ssp.n_states} states cannot be drawn; the most is {MOST_STATES}. Look at policy.table(ssp) instead")
    chain = unroll(ssp, policy)
    visits = Visits(chain).expected if chain.n else np.zeros(0)
    choices, strength = np.full(ssp.n_states, -1, dtype=np.int64), np.zeros(ssp.n_states)
    if budget is None:
        for node in np.argsort(visits, kind="stable").tolist():
            choices[chain.state[node]] = _choice(ssp, policy, int(chain.state[node]), _memory(chain, node))
        np.add.at(strength, chain.state, visits)
        if scheduled:
            return plot_schedule(ssp, choices, strength, ax, title)
        strength = np.clip(1 + 0.25 * np.log10(np.maximum(strength, 1e-12)), 0.0, 1.0)
    else:
        left = _in_units(policy, budget)
        assert isinstance(policy, BudgetPolicy)
        choices[:] = policy.choices_at(np.arange(ssp.n_states), left)
        strength[[int(chain.state[node]) for node in range(chain.n) if _memory(chain, node) == left]] = 1.0
    return plot_states(
        ssp, choices, strength, ax=ax, title=title or ("" if budget is None else f"{budget:g} left" if budget else "budget spent")
    )


def draw_sheet(ssp: SSP, policy: Policy, budgets: Sequence[float], columns: int = 3) -> list[Any]:
    """A policy at several budgets left, side by side; returns the Axes."""
    if not budgets:
        raise OptionError("a sheet needs at least one budget")
    columns = min(columns, len(budgets))
    rows = math.ceil(len(budgets) / columns)
    shape = (ssp.geometry.columns, ssp.geometry.rows) if ssp.geometry is not None else (10, 7)
    width = min(4.0, 12.0 / columns)
    axes = sheet(rows, columns, width * columns, rows * (width * shape[1] / shape[0] + 0.4))
    for ax, budget in zip(axes, budgets):
        draw_policy(ssp, policy, budget, ax)
    for ax in axes[len(budgets) :]:
        ax.remove()
    return axes[: len(budgets)]


def _memory(chain: CostChain, node: int) -> Any:
    return None if chain.memory is None else chain.memory[node]


def _choice(ssp: SSP, policy: Policy, state: int, memory: Any) -> int:
    """The choice taken with the greatest probability."""
    return max(decide(ssp, policy, state, memory), key=lambda pair: pair[1])[0]


def _in_units(policy: Policy, budget: float) -> int:
    if not isinstance(policy, BudgetPolicy):
        raise OptionError(f"a {type(policy).__name__} does not look at the budget left; draw it without one")
    units = budget / float(policy.unit)
    if not 0 <= round(units) <= policy.budget or abs(units - round(units)) > 1e-6:
        raise OptionError(
            f"the budget must be a multiple of {float(policy.unit):g} from 0 to {policy.budget * float(policy.unit):g}, not {budget:g}"
        )
    return round(units)


def policy_card(policy: Policy, rows: int = 8) -> str:
    """What a notebook shows of a policy: with its model at hand the decisions met most often and a picture, otherwise the first of its names."""
    title = repr(policy).strip("<>")
    ssp = getattr(policy, "ssp", None)
    if ssp is None:
        decisions = getattr(policy, "decisions", {})
        named = [(name_in_words(state), decision_in_words(decisions[state])) for state in list(decisions)[:rows]]
        return card(title, headers=("state", "action") if named else (), rows=named)
    told = [
        (name_in_words(row.state), row.memory, decision_in_words(row.action), row.probability, row.mean)
        for row in decision_table(ssp, policy, most=rows)
    ]
    drawn = draw_policy(ssp, policy) if ssp.n_states <= (MOST_CELLS if ssp.geometry is not None else MOST_NODES) else None
    return card(title, headers=("state", "memory", "action", "probability", "mean to go"), rows=told, axes=drawn)
