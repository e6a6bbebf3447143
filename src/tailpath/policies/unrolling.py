"""Unrolling a policy: the chain of the pairs (state, memory) that it reaches on a model.

For `AtomPolicy` this is the paper's CreateExtendedMDP (Algorithm 3), restricted to what can be
reached. Policies made of tables are followed by `kernels/unrolling.py`, all others by calling their
own functions.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tailpath.errors import LimitExceededError, PolicyError
from tailpath.graph import Array, FloatArray, IntArray, members
from tailpath.kernels.jit import frozen
from tailpath.kernels.unrolling import NO_MEMORIES, Memories, follow, follow_budget
from tailpath.model.checks import same_numbering
from tailpath.model.ssp import SSP
from tailpath.options import takes_model, warn_caller
from tailpath.policies.budget import BudgetPolicy
from tailpath.policies.chain import CostChain
from tailpath.policies.checks import decide, no_action
from tailpath.policies.given import as_policy
from tailpath.policies.policy import Policy, known

#: Pairs that `unroll` visits before it gives up on a policy whose memory does not end.
MAX_PAIRS = 5_000_000
#: Pairs that are met one by one before somebody who waits is told why.
MANY_PAIRS = 200_000


@takes_model
def unroll(ssp: SSP, policy: Any, *, max_nodes: int = MAX_PAIRS) -> CostChain:
    """The chain of a policy on a model: the pairs (state, memory) that it reaches.

    (The paper's CreateExtendedMDP.)

    Parameters
    ----------
    ssp : SSP
        The model.
    policy : Policy, or anything that `tailpath.policy` takes
        The policy.
    max_nodes : int
        The largest number of pairs, which stops a policy with an infinite memory.

    Returns
    -------
    CostChain
        The chain.

    Raises
    ------
    PolicyError
        If the policy does not fit the model, or reaches a state where it has no action.
    LimitExceededError
        If there are more than `max_nodes` pairs.

    Examples
    --------
    >>> chain = tp.unroll(ssp, {"home": "road"})
    >>> chain.label(0), chain.expected_cost.value
    ("state 'home'", array([24.]))
    """
    policy = as_policy(ssp, policy)
    kind = known(policy)
    table = kind._choices_on(ssp)
    if table is not None:
        return _unroll_table(ssp, *table)
    if kind.by_budget is not None and _counts(kind.by_budget, ssp):
        return _unroll_budget(ssp, kind.by_budget, max_nodes)
    return _unroll_any(ssp, policy, max_nodes)


def _counts(policy: BudgetPolicy, ssp: SSP) -> bool:
    """Whether pairs of state and budget can be numbered."""
    return same_numbering(policy.ssp, ssp) and (policy.budget + 1) * ssp.n_states < 2**62


def _chain(
    ssp: SSP,
    row_start: Array,
    target: Array,
    probability: FloatArray,
    outcome: Array,
    state: Array,
    memory: Any,
    start: int = 0,
) -> CostChain:
    """The chain of rows whose edges are outcomes and whose nodes a state with a memory."""
    return CostChain.trusted(
        row_start=row_start,
        target=target.astype(np.int32, copy=False),
        probability=probability,
        cost=ssp.outcome_cost[outcome],
        level=None if ssp.cost_unit is None else ssp.outcome_level[outcome],
        unit=ssp.cost_unit,
        start=start,
        state=state.astype(np.int32, copy=False),
        memory=memory,
        ssp=ssp,
        outcome=outcome,
    )


def chain_of_choices(ssp: SSP, choices: Array) -> CostChain:
    """The chain of one choice per state on *every* state that has one, reachable or not; a state
    without (-1) must not be a successor.
    """
    return _follow(ssp, choices, np.flatnonzero(choices >= 0))


def _unroll_budget(ssp: SSP, policy: BudgetPolicy, max_nodes: int) -> CostChain:
    """Only the pairs that are reached are looked at."""
    n = ssp.n_states
    if ssp.is_goal[ssp.start_index]:
        return _unroll_table(ssp, policy.risk_neutral, 0, NO_MEMORIES)
    found = follow_budget(*_rows(ssp), policy.steps(), policy.level, ssp.start_index, max_nodes)
    unknown, pairs = found
    if unknown >= 0:
        raise no_action(ssp, unknown)
    if len(pairs) > max_nodes:
        raise _too_many(max_nodes)
    remaining, state = np.divmod(pairs, n)
    choice = policy.choices_at(state, remaining)
    rows, outcome = ssp.transitions.restrict(choice), ssp.transitions.edges(choice)
    next_pair = np.maximum(remaining[rows.source] - policy.level[outcome], 0) * n + rows.target
    order = np.argsort(pairs)
    number = order[np.minimum(np.searchsorted(pairs, next_pair, sorter=order), len(pairs) - 1)]
    target = np.where(ssp.is_goal[rows.target], len(pairs), number)
    return _chain(ssp, rows.row_start, target, rows.probability, outcome, state, remaining)


def _unroll_table(
    ssp: SSP, choice: Array, first_memory: int, memories: Memories | None
) -> CostChain:
    """A policy with one choice per state and memory 0 .. m - 1 (-1: none), or per state alone."""
    n = 1 if memories is None else memories.n
    ends = ssp.is_goal[ssp.start_index]
    first = np.array([] if ends else [ssp.start_index * n + first_memory], dtype=np.int64)
    return _follow(ssp, choice, first, memories, start=0)


def _follow(
    ssp: SSP,
    choice: Array,
    first: IntArray,
    memories: Memories | None = None,
    start: int | None = None,
) -> CostChain:
    """The chain from these pairs on; without a start it begins at the goal."""
    n, *moves = memories or NO_MEMORIES
    choices = choice.reshape(-1).astype(np.int32, copy=False)
    moving = Memories(n, *frozen(*moves))
    unknown, columns = follow(*_rows(ssp), moving, *frozen(choices, first))
    if unknown >= 0:
        raise no_action(ssp, unknown)
    state, memory, row_start, target, outcome = columns
    probability = ssp.outcome_probability[outcome]
    start = len(state) if start is None else start
    memory = None if memories is None else memory
    return _chain(ssp, row_start, target, probability, outcome, state, memory, start)


def _rows(ssp: SSP) -> Iterator[Array]:
    """Where the outcomes of a choice begin, where each leads, and which states are goals."""
    return frozen(ssp.choice_outcomes, ssp.outcome_target, ssp.is_goal)


def _too_many(most: int, question: str = "") -> LimitExceededError:
    return LimitExceededError(
        f"the policy reaches more than {most} pairs of state and memory{question}",
        (0.0, float("inf")),
    )


def warn_of_growth() -> None:
    warn_caller(
        f"the policy meets more than {MANY_PAIRS} pairs of state and memory, one by one, which may"
        " take minutes: a memory that forgets (MemoryPolicy) takes less time; Ctrl-C stops it"
    )


def successors(
    ssp: SSP, policy: Policy, state: int, memory: Any
) -> Iterator[tuple[int, Any, int, float]]:
    """One step of any policy from a pair: `(next state, next memory, outcome, probability)`."""
    name = ssp.states[state]
    for choice, weight in decide(ssp, policy, state, memory):
        action = ssp.choice_name(choice)
        for outcome in members(ssp.choice_outcomes, choice):
            target = int(ssp.outcome_target[outcome])
            cost = float(ssp.observed[outcome])
            after = (
                None
                if ssp.is_goal[target]
                else policy.remember(memory, name, action, cost, ssp.states[target])
            )
            yield target, after, outcome, weight * float(ssp.outcome_probability[outcome])


def _unroll_any(ssp: SSP, policy: Policy, max_nodes: int) -> CostChain:
    """Breadth-first over (state, memory), calling the policy's own functions."""
    pairs: dict[tuple[int, Any], int] = {}
    if not ssp.is_goal[ssp.start_index]:
        pairs[ssp.start_index, policy.start(ssp.start)] = 0
    edges: list[tuple[int, float, int]] = []
    row_start, queue = [0], list(pairs)
    warned = False
    for state, memory in queue:  # grows while it is read
        for next_state, after, outcome, p in successors(ssp, policy, state, memory):
            to = -1
            if not ssp.is_goal[next_state]:
                pair = (next_state, after)
                try:
                    to = pairs.setdefault(pair, len(pairs))
                except TypeError:
                    raise PolicyError(f"the policy's memory {after!r} cannot be hashed") from None
                if to == len(queue):
                    queue.append(pair)
            edges.append((to, p, outcome))
        if len(pairs) > max_nodes:
            raise _too_many(max_nodes, "; is its memory finite?")
        if not warned and len(pairs) > MANY_PAIRS:
            warned = True
            warn_of_growth()
        row_start.append(len(edges))
    # Goals are one node, the last.
    target = np.array([len(pairs) if to < 0 else to for to, _, _ in edges], dtype=np.int32)
    probability = np.array([p for _, p, _ in edges], dtype=np.float64)
    outcomes = np.array([outcome for _, _, outcome in edges], dtype=np.int64)
    states = np.array([state for state, _ in queue], dtype=np.int32)
    known_memories = tuple(memory for _, memory in queue)
    memories = known_memories if any(m is not None for m in known_memories) else None
    return _chain(ssp, np.array(row_start), target, probability, outcomes, states, memories)
