"""The decisions of a policy, in words: one row per state and memory that it reaches.

Budgets left that follow each other and lead to the same decision are one row. A row tells with
which probability a run is ever there, and, from the moment it first is, the expected cost to go and
the CVaR of the cost to go.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from tailpath.graph import FloatArray, IntArray
from tailpath.model.ssp import SSP, Name
from tailpath.options import Progress, check_invertible_alpha
from tailpath.policies.budget import BudgetPolicy
from tailpath.policies.chain import CostChain
from tailpath.policies.decisions import decide
from tailpath.policies.policy import Policy
from tailpath.policies.unrolling import unroll
from tailpath.policies.visits import Visits, cvar_to_go
from tailpath.policies.words import budgets_in_words, memory_in_words

#: Pairs of state and memory beyond which a policy of functions is not listed.
MAX_TABLE_PAIRS = 200_000


class Row(NamedTuple):
    """What a policy does at a state. `action` is a name, or `{name: probability}`; `cvar` is None
    where costs have no unit.
    """

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

    `mean` and `cvar`, the CVaR at `alpha`, are of the cost from there to the goal.
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
    """The row of every node, and what is said of its memory. Nodes of a state on one step of a
    policy by budget share a row.
    """
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
    """Only the groups whose nodes are met most often, in all."""
    total = np.bincount(group, weights=expected)
    mask = np.zeros(len(total), dtype=np.bool_)
    mask[np.argsort(-total, kind="stable")[:most]] = True
    return np.where(mask[group], group, -1)


def _members(group: IntArray) -> Iterator[tuple[int, IntArray]]:
    order = np.argsort(group, kind="stable")
    order = order[group[order] >= 0]
    for members in np.split(order, np.flatnonzero(np.diff(group[order])) + 1) if order.size else ():
        yield int(group[members[0]]), members
