"""Runs drawn at random, for policies that reach too many pairs of state and memory to follow them
all; results are then estimates, and say so.

All runs take their steps side by side. Policies that look at the state alone or at the budget left
are followed in arrays, all others through their own functions, with fewer runs. The same question
always draws the same runs.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from tailpath.analysis.reachability import dead_ends
from tailpath.errors import PolicyError
from tailpath.graph import Array, FloatArray, IntArray
from tailpath.model.checks import same_numbering
from tailpath.model.ssp import SSP
from tailpath.policies.budget import BudgetPolicy
from tailpath.policies.checks import decide, no_action
from tailpath.policies.kinds import MarkovPolicy

#: Runs drawn at the least and at the most, and steps of all of them: in arrays, and by calls.
FEWEST, MOST_RUNS = 100, 4_000
STEPS, CALLED_STEPS = 4_000_000, 200_000
#: Runs that show how long runs are, and steps after which one is given up.
PILOT, MAX_STEPS = 20, 1_000_000
#: Runs in a tail from which its mean is estimated.
IN_TAIL = 10


class Follower:
    """A policy that is followed in many runs at once."""

    def __init__(self, ssp: SSP, policy: Any, seed: int = 1) -> None:
        self.ssp, self.policy = ssp, policy
        self.random = np.random.default_rng(seed)
        # The choice of every state, where it alone decides and the policy knows the model.
        known = policy.choices_for(ssp) if isinstance(policy, MarkovPolicy) else None
        self.of_state = None if known is None else np.asarray(known, dtype=np.int64)
        budgets = isinstance(policy, BudgetPolicy) and same_numbering(policy.ssp, ssp)
        self.counts, self.by_calls = budgets, self.of_state is None and not budgets
        if budgets:  # as `BudgetPolicy.step_at`, laid out once for all steps of all runs
            self.ranks = np.unique(policy.from_budget)
            state = np.repeat(np.arange(ssp.n_states), np.diff(policy.first))
            self.key = state * (len(self.ranks) + 1) + np.searchsorted(
                self.ranks, policy.from_budget
            )
            self.taken = np.append(policy.choice, -1).astype(np.int64)

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
            rank = np.searchsorted(self.ranks, memory, side="right")
            last = np.searchsorted(self.key, state * (len(self.ranks) + 1) + rank)
            below = last <= self.policy.first[state]
            found = np.where(below, self.policy.risk_neutral[state], self.taken[last - 1])
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

    def __init__(self, ssp: SSP, seed: int = 0) -> None:
        self.first = ssp.choice_outcomes
        self.sums = np.concatenate(([0.0], np.cumsum(ssp.outcome_probability)))
        self.random = np.random.default_rng(seed)

    def outcomes(self, choice: IntArray) -> IntArray:
        begin, end = self.first[choice], self.first[choice + 1]
        low, high = self.sums[begin], self.sums[end]
        at = low + self.random.random(len(choice)) * (high - low)
        drawn = np.searchsorted(self.sums, at, side="right") - 1
        return np.asarray(np.clip(drawn, begin, end - 1), dtype=np.int64)


class Walks(NamedTuple):
    """Steps of runs, one run after the other; `total` is the cost of each run, infinite if it never
    arrives.
    """

    run: IntArray
    state: IntArray
    memory: Array
    outcome: IntArray
    cost: FloatArray
    total: FloatArray

    @property
    def runs(self) -> int:
        return len(self.total)

    def of(self, steps: IntArray) -> Walks:
        """Some of the steps."""
        run, state, memory = self.run[steps], self.state[steps], self.memory[steps]
        return Walks(run, state, memory, self.outcome[steps], self.cost[steps], self.total)

    @property
    def to_go(self) -> FloatArray:
        """The cost from each step on."""
        paid = np.cumsum(self.cost)
        before = np.concatenate(([0.0], paid))[np.searchsorted(self.run, self.run)]
        return np.asarray(self.total[self.run] - (paid - self.cost - before))

    @property
    def last(self) -> IntArray:
        """The last step of each run."""
        return np.flatnonzero(np.diff(self.run, append=-1))


def walks(ssp: SSP, policy: Any, seed: int = 0) -> Walks:
    """As many runs as a second or two allows, and at least `FEWEST`."""
    pilot = _walked(ssp, policy, PILOT, seed)
    steps = CALLED_STEPS if Follower(ssp, policy).by_calls else STEPS
    runs = steps * PILOT // max(len(pilot.run), 1)
    return _walked(ssp, policy, min(max(runs, FEWEST), MOST_RUNS), seed)


def _walked(ssp: SSP, policy: Any, runs: int, seed: int) -> Walks:
    follower, drawing = Follower(ssp, policy, seed + 1), Drawing(ssp, seed)
    state = np.full(runs, ssp.start_index, dtype=np.int64)
    goes_on = not ssp.is_goal[ssp.start_index]
    memory = follower.begin(runs) if goes_on else np.zeros(runs, dtype=np.int64)
    steps = list(_steps(ssp, follower, state, memory, drawing))
    return _in_order(ssp, steps, state)


def _steps(
    ssp: SSP, follower: Follower, state: IntArray, memory: Array, drawing: Drawing
) -> Iterator[tuple[Array, ...]]:
    """One step of all runs that go on, time and again: the runs, states, memories and outcomes.
    States and memories move on in place.
    """
    ends = dead_ends(ssp) | ssp.is_goal
    going: IntArray = np.flatnonzero(~ends[state])
    for _ in range(MAX_STEPS):
        if not going.size:
            return
        here, known = state[going], memory[going]
        outcome = drawing.outcomes(follower.choices(here, known))
        yield going, here, known, outcome
        state[going] = ssp.outcome_target[outcome]
        memory[going] = follower.after(known, here, outcome)
        going = going[~ends[state[going]]]
    raise PolicyError(
        f"a run has not arrived after {MAX_STEPS} steps; it is in state"
        f" {ssp.states[int(state[going[0]])]!r}"
    )


def onwards(
    ssp: SSP, follower: Follower, state: IntArray, memory: Array, drawing: Drawing
) -> FloatArray:
    """The cost to go of runs from these states and memories; infinite if one never arrives."""
    state, cost = state.copy(), np.zeros(len(state))
    for going, _, _, outcome in _steps(ssp, follower, state, memory.copy(), drawing):
        cost[going] += ssp.outcome_cost[outcome]
    cost[~ssp.is_goal[state]] = np.inf
    return cost


def _in_order(ssp: SSP, steps: list[tuple[Array, ...]], last: IntArray) -> Walks:
    none = (np.zeros(0, dtype=np.int64),) * 4
    run, state, memory, outcome = (np.concatenate(each) for each in zip(*(steps or [none])))
    order = np.argsort(run, kind="stable")
    cost = ssp.outcome_cost[outcome[order]].astype(np.float64)
    total = np.asarray(np.bincount(run[order], cost, len(last)), dtype=np.float64)
    total[~ssp.is_goal[last]] = np.inf
    return Walks(run[order], state[order], memory[order], outcome[order], cost, total)


def tail_mean(costs: FloatArray, alpha: float) -> float | None:
    """The mean of the worst `alpha` of some costs; None where these are too few to tell."""
    mass = alpha * len(costs)
    if mass < IN_TAIL:
        return None
    worst = np.sort(costs)[::-1][: int(np.ceil(mass))]
    weight = np.ones(len(worst))
    weight[-1] -= np.ceil(mass) - mass
    return float(weight @ worst / mass) if np.isfinite(worst).all() else np.inf
