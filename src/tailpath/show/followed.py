"""A policy on its model: all pairs of state and memory that it reaches, or, where these are too
many, runs drawn at random. What is told of such a policy is estimated, and says so.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from tailpath.errors import LimitExceededError
from tailpath.evaluation.distribution import CostDistribution
from tailpath.evaluation.evaluate import evaluate
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
        self._seen: Walks | None = None
        self.decided: dict[int, list[tuple[int, float]]] = {}

    @cached_property
    def costs(self) -> CostDistribution:
        return evaluate(self.ssp, self.policy, self.alpha)

    @cached_property
    def chain(self) -> CostChain | None:
        """All pairs; None where there are too many."""
        try:
            return unroll(self.ssp, self.policy, max_nodes=MAX_TABLE_PAIRS)
        except LimitExceededError:
            return None

    @property
    def seen(self) -> Walks:
        """Simulated runs, with a warning, once, that there are some."""
        if self._seen is None:
            self._seen = walks(self.ssp, self.policy)
            warn_caller(
                "the policy reaches too many pairs of state and memory to follow them all: what it"
                f" does is estimated from {self._seen.runs:,} simulated runs"
            )
        return self._seen

    @property
    def simulated(self) -> int:
        """The runs that what follows is estimated from; 0 if it is exact."""
        return 0 if self.chain is not None else self.seen.runs

    @property
    def counts_budgets(self) -> bool:
        return isinstance(self.policy, BudgetPolicy)

    @cached_property
    def memories(self) -> Array:
        """What is remembered at each node of the chain."""
        assert self.chain is not None
        found = np.empty(self.chain.n, dtype=object)
        if self.chain.memory is not None:
            if isinstance(self.chain.memory, np.ndarray):
                return self.chain.memory
            for node, memory in enumerate(self.chain.memory):  # tuples would be taken apart
                found[node] = memory
        return found

    def decision(self, node: int) -> list[tuple[int, float]]:
        """The choices at a node of the chain, with their probabilities."""
        if node not in self.decided:
            assert self.chain is not None
            state = int(self.chain.state[node])
            self.decided[node] = decide(self.ssp, self.policy, state, self.memories[node])
        return self.decided[node]

    @cached_property
    def pairs(self) -> tuple[IntArray, IntArray, FloatArray]:
        """Pairs of state and memory, in order, and how often a run is there. Memories that are not
        counted are 0.
        """
        counted = isinstance(self.policy, (BudgetPolicy, AtomPolicy))
        if self.chain is None:
            memory = self.seen.memory if counted else np.zeros(len(self.seen.state))
            (state, known), times = np.unique(
                np.stack((self.seen.state, memory.astype(np.int64))), axis=1, return_counts=True
            )
            return state, known, times / self.seen.runs
        known = self.memories.astype(np.int64) if counted else np.zeros(self.chain.n, np.int64)
        order = np.lexsort((known, self.chain.state))
        return self.chain.state[order].astype(np.int64), known[order], self.expected[order]

    @cached_property
    def expected(self) -> FloatArray:
        """How often a run is at each node of the chain (`visits_of`)."""
        assert self.chain is not None
        return visits_of(self.chain) if self.chain.n else np.zeros(0)

    @cached_property
    def usual(self) -> IntArray:
        """For each state the choice that is taken there most often, -1 where none is."""
        choices = np.full(self.ssp.n_states, -1, dtype=np.int64)
        if self.chain is None:
            taken, times = np.unique(self.ssp.outcome_choice[self.seen.outcome], return_counts=True)
            taken = taken[np.argsort(times, kind="stable")]
            choices[self.ssp.choice_state[taken]] = taken
            return choices
        order = np.argsort(self.expected, kind="stable")
        usual = dict(zip(self.chain.state[order].tolist(), order.tolist()))  # the last of each
        for state, node in usual.items():
            choices[state] = max(self.decision(node), key=lambda pair: pair[1])[0]
        return choices

    @cached_property
    def visits(self) -> FloatArray:
        """How often a run is in each state, or ends there."""
        ssp, chain = self.ssp, self.chain
        state, _, often = self.pairs
        visits = np.asarray(np.bincount(state, often, ssp.n_states), dtype=np.float64)
        if chain is None:
            ended = ssp.outcome_target[self.seen.outcome[self.seen.last]]
            arrived = ended[ssp.is_goal[ended]]
            weight = np.full(len(arrived), 1 / self.seen.runs)
        elif chain.outcome is None:
            return visits
        else:
            last = np.flatnonzero(chain.target == chain.n)
            arrived = ssp.outcome_target[chain.outcome[last]]
            weight = self.expected[chain.source[last]] * chain.probability[last]
        np.add.at(visits, arrived, weight)
        return visits
