"""Runs drawn at random, for policies that reach too many pairs of state and memory to follow them
all; results are then estimates, and say so.

Policies that are followed through their own functions get fewer runs than those followed in arrays.
The same question always draws the same runs.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tailpath.evaluation.estimation import estimate
from tailpath.evaluation.following import Drawing, Follower, steps_of_runs
from tailpath.graph import Array, FloatArray, IntArray
from tailpath.model.ssp import SSP

#: Runs drawn at the least and at the most, and steps of all of them: in arrays, and by calls.
FEWEST, MOST_RUNS = 100, 4_000
STEPS, CALLED_STEPS = 4_000_000, 200_000
#: Runs that show how long runs are, and steps after which one is given up.
PILOT, MAX_STEPS = 20, 1_000_000
#: Runs in a tail from which its mean is estimated.
IN_TAIL = 10


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


def walks(ssp: SSP, policy: Any, seed: int = 0) -> Walks:
    """As many runs as a second or two allows, and at least `FEWEST`."""
    pilot = walked(ssp, policy, PILOT, seed)
    steps = CALLED_STEPS if Follower(ssp, policy).by_calls else STEPS
    runs = steps * PILOT // max(len(pilot.run), 1)
    return walked(ssp, policy, min(max(runs, FEWEST), MOST_RUNS), seed)


def walked(ssp: SSP, policy: Any, runs: int, seed: int, most: int = MAX_STEPS) -> Walks:
    follower, drawing = Follower(ssp, policy, seed + 1), Drawing(ssp, seed)
    state = np.full(runs, ssp.start_index, dtype=np.int64)
    goes_on = not ssp.is_goal[ssp.start_index]
    memory = follower.begin(runs) if goes_on else np.zeros(runs, dtype=np.int64)
    return walked_from(ssp, follower, state, memory, drawing, most)


def walked_from(
    ssp: SSP,
    follower: Follower,
    state: IntArray,
    memory: Array,
    drawing: Drawing,
    most: int = MAX_STEPS,
) -> Walks:
    """Runs from these states and memories, which move on in place."""
    steps = list(steps_of_runs(ssp, follower, state, memory, drawing, most))
    none = (np.zeros(0, dtype=np.int64),) * 4
    run, at, known, outcome = (np.concatenate(each) for each in zip(*(steps or [none])))
    order = np.argsort(run, kind="stable")
    cost = ssp.outcome_cost[outcome[order]].astype(np.float64)
    total = np.asarray(np.bincount(run[order], cost, len(state)), dtype=np.float64)
    total[~ssp.is_goal[state]] = np.inf
    return Walks(run[order], at[order], known[order], outcome[order], cost, total)


def tail_mean(costs: FloatArray, alpha: float) -> float | None:
    """The CVaR of some costs; None where those in the tail are too few to tell."""
    return estimate(costs, alpha).cvar if alpha * len(costs) >= IN_TAIL else None
