"""A policy on its model: all pairs of state and memory that it reaches, or, where these are too
many, runs drawn at random; results are then estimates, and say so.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from tailpath.errors import LimitExceededError
from tailpath.evaluation.distribution import CostDistribution
from tailpath.evaluation.evaluate import evaluate_inside
from tailpath.graph import Array, FloatArray, IntArray
from tailpath.model.ssp import SSP
from tailpath.options import warn_caller
from tailpath.policies.atoms import AtomPolicy
from tailpath.policies.budget import BudgetPolicy
from tailpath.policies.chain import CostChain
from tailpath.policies.checks import decide
from tailpath.policies.given import as_policy
from tailpath.policies.unrolling import unroll
from tailpath.show.sampled import Walks, walks
from tailpath.show.visits import visits_of

#: Pairs of state and memory beyond which a policy is not followed through all of them.
MAX_TABLE_PAIRS = 200_000


class Followed:
    """A policy, and what it does; each part is found when it is first asked for. `alpha` is the
    least that its costs are asked for.
    """

    def __init__(self, ssp: SSP, policy: Any, alpha: float = 1.0) -> None:
        self.ssp, self.policy, self.alpha = ssp, as_policy(ssp, policy, alpha=alpha), alpha
        self.decided: dict[int, list[tuple[int, float]]] = {}

    @cached_property
    def costs(self) -> CostDistribution:
        return evaluate_inside(self.ssp, self.policy, self.alpha)

    @cached_property
    def chain(self) -> CostChain:
        """All pairs; only where nothing is `simulated`."""
        return unroll(self.ssp, self.policy, max_nodes=MAX_TABLE_PAIRS)

    @cached_property
    def seen(self) -> Walks:
        """Simulated runs, with a warning, once, that there are some."""
        found = walks(self.ssp, self.policy)
        warn_caller(
            "the policy reaches too many pairs of state and memory to follow them all: what it"
            f" does is estimated from {found.runs:,} simulated runs"
        )
        return found

    @cached_property
    def simulated(self) -> int:
        """The runs that what follows is estimated from; 0 if it is exact."""
        try:
            self.chain  # noqa: B018
        except LimitExceededError:
            return self.seen.runs
        return 0

    @property
    def counts_budgets(self) -> bool:
        return isinstance(self.policy, BudgetPolicy)

    @cached_property
    def memories(self) -> Array:
        """What is remembered at each node of the chain."""
        found = np.empty(self.chain.n, dtype=object)
        if self.chain.memory is not None:
            if isinstance(self.chain.memory, np.ndarray):
                return self.chain.memory
            for node, memory in enumerate(self.chain.memory):  # tuples would be taken apart
                found[node] = memory
        return found

    def decision(self, node: int) -> list[tuple[int, float]]:
        """The choices at a node of the chain, with their probabilities."""
        if self.sole[node] >= 0:
            return [(int(self.sole[node]), 1.0)]
        if node not in self.decided:
            state = int(self.chain.state[node])
            self.decided[node] = decide(self.ssp, self.policy, state, self.memories[node])
        return self.decided[node]

    @cached_property
    def sole(self) -> IntArray:
        """The choice that is taken at each node of the chain, as its transitions have it; -1 where
        one of several is drawn. To ask the policy takes thirty times as long.
        """
        assert self.chain.outcome is not None
        taken, source = self.ssp.outcome_choice[self.chain.outcome], self.chain.source
        found = np.full(self.chain.n, -1, dtype=np.int64)
        found[source] = taken
        found[source[found[source] != taken]] = -1
        return found

    @cached_property
    def steps(self) -> tuple[Array, Array, Array, Array]:
        """States and memories, how often a run is there with each, and the mean cost from there:
        of the nodes of the chain, or of the steps of simulated runs.
        """
        if self.simulated:
            seen = self.seen
            return seen.state, seen.memory, np.full(len(seen.run), 1 / seen.runs), seen.to_go
        state = self.chain.state.astype(np.int64)
        return state, self.memories, self.expected, self.chain.expected_cost.value

    @cached_property
    def pairs(self) -> tuple[IntArray, IntArray, FloatArray]:
        """Pairs of state and memory, in order, and how often a run is there. Memories that are not
        counted are 0.
        """
        state, memory, often, _ = self.steps
        counted = isinstance(self.policy, (BudgetPolicy, AtomPolicy))
        known = memory.astype(np.int64) if counted else np.zeros_like(state)
        order = np.lexsort((known, state))  # np.unique of pairs takes ten times as long
        state, known = state[order], known[order]
        first = np.flatnonzero(np.diff(state, prepend=-1) | np.diff(known, prepend=-1))
        return state[first], known[first], np.add.reduceat(often[order], first)

    @cached_property
    def expected(self) -> FloatArray:
        """How often a run is at each node of the chain, on average."""
        return visits_of(self.chain) if self.chain.n else np.zeros(0)

    @cached_property
    def flow(self) -> FloatArray:
        """How often each outcome happens in a run, on average."""
        if self.simulated:
            outcome, often = self.seen.outcome, np.full(len(self.seen.run), 1 / self.seen.runs)
        else:
            assert self.chain.outcome is not None
            outcome = self.chain.outcome
            often = self.expected[self.chain.source] * self.chain.probability
        return np.bincount(outcome, often, self.ssp.n_outcomes).astype(np.float64)

    @cached_property
    def usual(self) -> IntArray:
        """For each state the choice that is taken there most often, -1 where none is."""
        used = np.bincount(self.ssp.outcome_choice, self.flow, self.ssp.n_choices)
        order = np.argsort(used, kind="stable")
        taken = order[used[order] > 0]
        choices = np.full(self.ssp.n_states, -1, dtype=np.int64)
        choices[self.ssp.choice_state[taken]] = taken  # the last of each state
        return choices

    @cached_property
    def visits(self) -> FloatArray:
        """How often a run is in each state, or ends there."""
        ssp = self.ssp
        left = np.bincount(ssp.choice_state[ssp.outcome_choice], self.flow, ssp.n_states)
        entered = np.bincount(ssp.outcome_target, self.flow, ssp.n_states)
        return np.where(ssp.is_goal, entered, left).astype(np.float64)
