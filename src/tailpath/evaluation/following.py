"""Many runs of any policy, drawn side by side, one step of all at a time.

Policies that look at the state alone or at the budget left are followed in arrays, all others
through their own functions.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tailpath.analysis.reachability import dead_ends
from tailpath.errors import PolicyError
from tailpath.graph import Array, IntArray
from tailpath.model.checks import same_numbering
from tailpath.model.ssp import SSP
from tailpath.policies.checks import decide, no_action
from tailpath.policies.policy import known


class Follower:
    """A policy that is followed in many runs at once."""

    def __init__(self, ssp: SSP, policy: Any, seed: Any = 1) -> None:
        self.ssp, self.policy = ssp, policy
        self.random = np.random.default_rng(seed)
        choices = known(policy)._choices_on(ssp)
        #: The choice of every state, where it alone decides.
        self.of_state = choices[0] if choices and np.ndim(choices[0]) == 1 else None
        by_budget = known(policy).by_budget
        self.counts = by_budget is not None and same_numbering(by_budget.ssp, ssp)
        self.by_calls = self.of_state is None and not self.counts

    def begin(self, runs: int) -> Array:
        """What is remembered at the start of each run."""
        if self.of_state is not None:
            return np.zeros(runs, dtype=np.int64)
        memory = np.empty(runs, dtype=np.int64 if self.counts else object)
        start = self.policy.start(self.ssp.start)
        for run in range(runs):  # a tuple, put in as a whole, would be taken apart
            memory[run] = start
        return memory

    def choices(self, state: IntArray, memory: Array) -> IntArray:
        """What is done in each run."""
        if self.of_state is not None:
            found = self.of_state[state]
        elif self.counts:
            found = self.policy.choices_at(state, memory)
        else:
            found = np.array([self._called(s, m) for s, m in zip(state.tolist(), memory)], np.int64)
        if (found < 0).any():
            raise no_action(self.ssp, int(state[np.argmax(found < 0)]))
        return found

    def _called(self, state: int, memory: Any) -> int:
        decision = decide(self.ssp, self.policy, state, memory)
        if len(decision) == 1:
            return decision[0][0]
        choices, weights = zip(*decision)
        return int(self.random.choice(choices, p=np.array(weights) / sum(weights)))

    def after(self, memory: Array, state: IntArray, outcome: IntArray) -> Array:
        """What is remembered after these outcomes."""
        if self.of_state is not None:
            return memory
        if self.counts:
            return np.asarray(np.maximum(memory - self.policy.level[outcome], 0))
        ssp, after = self.ssp, np.empty(len(memory), dtype=object)
        for k, (s, o) in enumerate(zip(state.tolist(), outcome.tolist())):
            action = ssp.choice_name(int(ssp.outcome_choice[o]))
            ends = ssp.states[s], action, float(ssp.observed[o]), ssp.states[ssp.outcome_target[o]]
            after[k] = self.policy.remember(memory[k], *ends)
        return after


class Drawing:
    """Outcomes of choices, drawn for many runs at once."""

    def __init__(self, ssp: SSP, seed: Any = 0) -> None:
        self.first = ssp.choice_outcomes
        self.sums = np.concatenate(([0.0], np.cumsum(ssp.outcome_probability)))
        self.random = np.random.default_rng(seed)

    def outcomes(self, choice: IntArray) -> IntArray:
        begin, end = self.first[choice], self.first[choice + 1]
        low, high = self.sums[begin], self.sums[end]
        at = low + self.random.random(len(choice)) * (high - low)
        drawn = np.searchsorted(self.sums, at, side="right") - 1
        return np.asarray(np.clip(drawn, begin, end - 1), dtype=np.int64)


def steps_of_runs(
    ssp: SSP, follower: Follower, state: IntArray, memory: Array, drawing: Drawing, most: int
) -> Iterator[tuple[Array, ...]]:
    """One step of all runs that go on, time and again: the runs, states, memories and outcomes.
    States and memories move on in place.
    """
    ends = dead_ends(ssp) | ssp.is_goal
    going: IntArray = np.flatnonzero(~ends[state])
    for _ in range(most):
        if not going.size:
            return
        here, known = state[going], memory[going]
        outcome = drawing.outcomes(follower.choices(here, known))
        yield going, here, known, outcome
        state[going] = ssp.outcome_target[outcome]
        memory[going] = follower.after(known, here, outcome)
        going = going[~ends[state[going]]]
    raise PolicyError(
        f"a run has not arrived after {most} steps; it is in state"
        f" {ssp.states[int(state[going[0]])]!r}. Does the policy arrive at all?"
    )
