"""How a policy is shown: its decisions in words, one row per state and memory that it reaches, or
drawn on the states of its model.

Budgets left that follow each other and lead to the same decision are one row. A row tells with
which probability a run is ever there, and, from the moment it first is, the expected cost to go and
the CVaR of the cost to go.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from tailpath.errors import OptionError, kind_of
from tailpath.graph import FloatArray, IntArray
from tailpath.model.ssp import SSP, Name
from tailpath.options import Progress, check_invertible_alpha
from tailpath.pictures.notebook import MAX_CELLS, card
from tailpath.pictures.states import has_schedule, plot_schedule, plot_states
from tailpath.pictures.style import sheet
from tailpath.policies.atoms import AtomPolicy
from tailpath.policies.budget import BudgetPolicy
from tailpath.policies.chain import CostChain
from tailpath.policies.checks import decide
from tailpath.policies.kinds import HistoryPolicy, MarkovPolicy, MixedPolicy
from tailpath.policies.policy import Policy
from tailpath.policies.unrolling import unroll
from tailpath.policies.visits import Visits, cvar_to_go
from tailpath.texts import Table
from tailpath.texts import name as name_in_words

#: Pairs of state and memory beyond which a policy of functions is not listed.
MAX_TABLE_PAIRS = 200_000
#: Decisions on the card of a notebook.
CARD_ROWS = 8
#: States of a graph beyond which a picture is a black square, and those that are drawn of such a
#: graph.
MAX_STATES, MAX_MET = 400, 40


class Row(NamedTuple):
    """What a policy does at a state; `cvar` is None where costs have no unit."""

    state: Name
    memory: str
    action: Any
    probability: float
    mean: float
    cvar: float | None


def decision_table(
    ssp: SSP,
    policy: Policy,
    alpha: float = 0.05,
    most: int | None = None,
    progress: Progress | None = None,
) -> list[Row]:
    """All rows, or the `most` that are met most often; the likeliest first, and of equally likely
    ones the one farther from the goal.
    """
    alpha = check_invertible_alpha(alpha)
    chain = unroll(ssp, policy, max_nodes=MAX_TABLE_PAIRS)
    memory = [None] * chain.n if chain.memory is None else list(chain.memory)
    group, words = _groups(ssp, policy, chain, memory)
    if chain.n == 0:
        return []
    visits = Visits(chain, np.asarray(memory) if isinstance(policy, BudgetPolicy) else None)
    if most is not None and len(words) > most:
        group = _likeliest(visits.expected, group, most)
    if progress is not None:
        progress(0, 0.0)
    entry = visits.first(group, progress)
    shown = np.flatnonzero(group >= 0)
    cvar = cvar_to_go(chain, shown, group[shown], entry[shown], len(words), alpha, progress)
    rows = []
    for number, members in _members(group):
        weight = entry[members]
        total = float(weight.sum())
        first = int(members[0])
        mean = (
            float(weight @ chain.expected_cost.value[members]) / total
            if total > 0
            else float(chain.expected_cost.value[first])
        )
        rows.append(
            Row(
                ssp.states[int(chain.state[first])],
                words[number],
                action_of(ssp, decide(ssp, policy, int(chain.state[first]), memory[first])),
                min(total, 1.0),
                mean,
                None if np.isnan(cvar[number]) else float(cvar[number]),
            )
        )
    return sorted(rows, key=lambda row: (-round(row.probability, 9), -row.mean))


def action_of(ssp: SSP, decision: list[tuple[int, float]]) -> Any:
    """A decision by names: an action, or `{action: probability}`."""
    if len(decision) == 1:
        return ssp.choice_name(decision[0][0])
    return {ssp.choice_name(choice): weight for choice, weight in decision}


def _groups(
    ssp: SSP, policy: Policy, chain: CostChain, memory: list[Any]
) -> tuple[IntArray, list[str]]:
    """The row of every node, and what is said of its memory."""
    if not isinstance(policy, BudgetPolicy) or chain.n == 0:
        return np.arange(chain.n), [
            memory_in_words(policy, each, state)
            for each, state in zip(memory, chain.state.tolist())
        ]
    state = np.array([policy.ssp.state_index(ssp.states[state]) for state in chain.state.tolist()])
    step = policy.step_at(state, memory)
    order = np.lexsort((memory, state))
    ends = np.flatnonzero((np.diff(state[order]) != 0) | (np.diff(step[order]) != 0)) + 1
    group, words = np.zeros(chain.n, dtype=np.int64), []
    for number, run in enumerate(np.split(order, ends)):
        group[run] = number
        words.append(budgets_in_words(policy, int(state[run[0]]), memory[run[0]], memory[run[-1]]))
    return group, words


def _likeliest(expected: FloatArray, group: IntArray, most: int) -> IntArray:
    total = np.bincount(group, weights=expected)
    mask = np.zeros(len(total), dtype=np.bool_)
    mask[np.argsort(-total, kind="stable")[:most]] = True
    return np.where(mask[group], group, -1)


def _members(group: IntArray) -> Iterator[tuple[int, IntArray]]:
    order = np.argsort(group, kind="stable")
    order = order[group[order] >= 0]
    for members in np.split(order, np.flatnonzero(np.diff(group[order])) + 1) if order.size else ():
        yield int(group[members[0]]), members


def decision_in_words(decision: Any) -> str:
    """An action, or a mixture: `go 0.25, jump 0.75`."""
    if isinstance(decision, Mapping):
        return ", ".join(
            f"{name_in_words(action)} {weight:.4g}" for action, weight in decision.items()
        )
    return name_in_words(decision)


def memory_in_words(policy: Any, memory: Any, state: int) -> str:
    """What a policy remembers in a state: nothing, the budget left, the atom, or what it is."""
    if isinstance(policy, MarkovPolicy) or memory is None:
        return ""
    if isinstance(policy, BudgetPolicy):
        return budgets_in_words(policy, state, memory, memory)
    if isinstance(policy, AtomPolicy):
        return f"y = {policy.atoms[memory]:.4g}"
    if isinstance(policy, HistoryPolicy):
        return "after " + ", ".join(map(name_in_words, memory[:-1])) if len(memory) > 1 else ""
    if isinstance(policy, MixedPolicy):
        # Each of the policies that the coin may have chosen, and what it remembers.
        remembered = [
            (f"policy {number + 1}", memory_in_words(policy.members[number], own, state))
            for number, _, own in memory
        ]
        return "; or ".join(", ".join(filter(None, each)) for each in remembered)
    return name_in_words(memory)


def budgets_in_words(policy: BudgetPolicy, state: int, low: int, high: int) -> str:
    """`spent`, `12 left`, `8 to 12 left`; of a deadline what may be spent and still keeps it."""
    if high <= 0:
        return "budget spent"
    least, most = (
        f"{float(policy.left(state, max(units, policy.deadline))):g}" for units in (low, high)
    )
    return f"{most} left" if low == high else f"{least} to {most} left"


def draw_policy(ssp: SSP, policy: Policy, budget: float | None = None, ax: Any = None) -> Any:
    """The decisions on the map of the model, by place and time, or on a graph; returns the Axes.

    With `budget`, a cost, those of a `BudgetPolicy` with so much left; otherwise in each state
    those with the memory that it most often has there. Where it never comes they are faint.
    """
    chain = unroll(ssp, policy)
    choices, visits = usual_choices(ssp, policy, chain)
    shown, note = shown_states(ssp, visits)
    strength = np.clip(1 + 0.25 * np.log10(np.maximum(visits, 1e-12)), 0.0, 1.0)
    if budget is not None:
        remaining = _in_units(policy, budget, ssp)
        assert isinstance(policy, BudgetPolicy)
        choices = policy.choices_at(np.arange(ssp.n_states), remaining).astype(np.int64)
        strength = np.zeros(ssp.n_states)
        strength[chain.state[np.asarray(chain.memory) == remaining[chain.state]]] = 1.0
        left = f"{budget:g} left" if budget else "budget spent"
        note = f"{left}, {note}" if note else left
    elif has_schedule(ssp):
        return plot_schedule(ssp, choices, visits, ax, "")
    return plot_states(ssp, choices, strength, ax=ax, title=note, states=shown)


def usual_choices(ssp: SSP, policy: Policy, chain: CostChain) -> tuple[IntArray, FloatArray]:
    """For each state the choice that is taken there most often, -1 where none is, and how often a
    run is there, or ends there.
    """
    often = Visits(chain).expected if chain.n else np.zeros(0)
    choices, visits = np.full(ssp.n_states, -1, dtype=np.int64), np.zeros(ssp.n_states)
    order = np.argsort(often, kind="stable")
    usual = dict(zip(chain.state[order].tolist(), order.tolist()))  # the last node of each state
    for state, node in usual.items():
        memory = None if chain.memory is None else chain.memory[node]
        decision = decide(ssp, policy, state, memory)
        choices[state] = max(decision, key=lambda pair: pair[1])[0]
    np.add.at(visits, chain.state, often)
    if chain.outcome is not None:
        arrives = np.flatnonzero(chain.target == chain.n)
        np.add.at(
            visits,
            ssp.outcome_target[chain.outcome[arrives]],
            often[chain.source[arrives]] * chain.probability[arrives],
        )
    return choices, visits


def shown_states(ssp: SSP, weight: FloatArray) -> tuple[list[int] | None, str]:
    """The states that a picture shows, None for all, and a note: of a large graph those of most
    weight.
    """
    if ssp.geometry is not None or ssp.n_states <= MAX_STATES or has_schedule(ssp):
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
        (name_in_words(state), memory, decision_in_words(action), probability, mean)
        for state, memory, action, probability, mean, _ in decision_table(
            ssp, policy, most=CARD_ROWS
        )
    ]
    fits = ssp.geometry is None or ssp.n_states <= MAX_CELLS
    draw = (lambda: draw_policy(ssp, policy)) if fits else None
    return card(
        title,
        [Table(("state", "memory", "action", "probability", "mean to go"), cells).in_use()],
        draw,
    )
