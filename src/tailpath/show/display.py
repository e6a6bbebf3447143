"""How a policy is drawn: its decisions on the states of its model, and the card of a notebook."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tailpath.errors import OptionError, kind_of
from tailpath.graph import FloatArray, IntArray
from tailpath.model.ssp import SSP
from tailpath.pictures.notebook import MAX_CELLS, card
from tailpath.pictures.states import plot_states
from tailpath.pictures.style import sheet
from tailpath.policies.budget import BudgetPolicy
from tailpath.policies.policy import Policy
from tailpath.show.decisions import decision_in_words, decision_table
from tailpath.show.followed import Followed
from tailpath.texts import Table
from tailpath.texts import name as name_in_words

#: Decisions on the card of a notebook.
CARD_ROWS = 8
#: States of a graph beyond which a picture is a black square, and those that are drawn of such a
#: graph.
MAX_STATES, MAX_MET = 400, 40


def draw_policy(ssp: SSP, policy: Policy, budget: float | None = None, ax: Any = None) -> Any:
    """The decisions on the map of the model or on a graph; returns the Axes.

    With `budget`, a cost, those of a `BudgetPolicy` with so much left; otherwise in each state
    those with the memory that it most often has there. Where it never comes they are faint.
    """
    followed = Followed(ssp, policy)
    choices, visits = followed.usual, followed.visits
    shown, note = shown_states(ssp, visits)
    strength = np.clip(1 + 0.25 * np.log10(np.maximum(visits, 1e-12)), 0.0, 1.0)
    if budget is not None:
        remaining = _in_units(policy, budget, ssp)
        assert isinstance(policy, BudgetPolicy)
        choices = policy.choices_at(np.arange(ssp.n_states), remaining).astype(np.int64)
        state, memory, _ = followed.pairs
        strength = np.zeros(ssp.n_states)
        strength[state[memory == remaining[state]]] = 1.0
        left = f"{budget:g} left" if budget else "budget spent"
        note = f"{left}, {note}" if note else left
    return plot_states(ssp, choices, strength, ax=ax, title=note, states=shown)


def shown_states(ssp: SSP, weight: FloatArray) -> tuple[list[int] | None, str]:
    """The states that a picture shows, None for all, and a note: of a large graph those of most
    weight.
    """
    if ssp.geometry is not None or ssp.n_states <= MAX_STATES:
        return None, ""
    return met_most(ssp, weight, MAX_MET), f"the states that matter most of {ssp.n_states}"


def met_most(ssp: SSP, visits: FloatArray, most: int) -> list[int]:
    """The start, the goal and the others that are met most, in the order of the model."""
    goals = np.flatnonzero(ssp.is_goal)
    order = np.argsort(-visits, kind="stable")[: most - 2]
    return sorted(
        {ssp.start_index, int(goals[np.argmax(visits[goals])]), *order[visits[order] > 0].tolist()}
    )


def draw_sheet(ssp: SSP, policy: Policy, budgets: Sequence[float]) -> list[Any]:
    if not budgets:
        raise OptionError("a sheet needs at least one budget")
    columns = min(3, len(budgets))
    rows = math.ceil(len(budgets) / columns)
    shape = (ssp.geometry.columns, ssp.geometry.rows) if ssp.geometry is not None else (10, 7)
    width = min(4.0, 12.0 / columns)
    axes = sheet(rows, columns, width * columns, rows * (width * shape[1] / shape[0] + 0.4))
    for ax, budget in zip(axes, budgets):
        draw_policy(ssp, policy, budget, ax)
    for ax in axes[len(budgets) :]:
        ax.remove()
    return axes[: len(budgets)]


def _in_units(policy: Policy, budget: float, ssp: SSP) -> IntArray:
    if not isinstance(policy, BudgetPolicy):
        raise OptionError(
            f"{kind_of(policy)} does not look at the budget left; draw it without one"
        )
    if policy.ssp.signed:
        by_state = (budget - policy.ssp.reduction.values) / float(policy.unit) + policy.deadline
        return np.clip(np.floor(by_state + 1e-6), 0, policy.budget).astype(np.int64)
    units, most = budget / float(policy.unit), policy.budget - policy.deadline
    if not 0 <= round(units) <= most or abs(units - round(units)) > 1e-6:
        unit = float(policy.unit)
        raise OptionError(
            f"the budget must be a multiple of {unit:g} from 0 to {most * unit:g}, not {budget:g}"
        )
    return np.full(ssp.n_states, round(units) + policy.deadline)


def policy_card(policy: Policy) -> str:
    """What a notebook shows of a policy: with its model at hand also a picture."""
    title = repr(policy).strip("<>")
    ssp = getattr(policy, "ssp", None)
    if ssp is None:
        decisions = getattr(policy, "decisions", {})
        named = [
            (name_in_words(state), decision_in_words(decisions[state]))
            for state in list(decisions)[:CARD_ROWS]
        ]
        return card(title, [Table(("state", "action"), named)])
    cells = [
        (name_in_words(state), memory, decision_in_words(action), visits, mean)
        for state, memory, action, visits, mean, *_ in decision_table(ssp, policy, most=CARD_ROWS)
    ]
    fits = ssp.geometry is None or ssp.n_states <= MAX_CELLS
    draw = (lambda: draw_policy(ssp, policy)) if fits else None
    return card(
        title,
        [Table(("state", "memory", "action", "visits", "mean to go"), cells).in_use()],
        draw,
    )
