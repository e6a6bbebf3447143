"""The least expected cost of a model in parts: `solve_expected` of a `Part`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tailpath.distributed.expected import solve_part_expected
from tailpath.distributed.part import Part
from tailpath.distributed.ranks import together
from tailpath.distributed.search import graph_of
from tailpath.model.ssp import FloatArray
from tailpath.solvers.part_policies import PartMarkovPolicy


@dataclass(frozen=True, eq=False)
class PartExpectedSolution:
    """The least expected cost from the states of a part, of n states, with verified bounds.

    Attributes
    ----------
    value : array of float64, shape (n,)
        V*: 0 at goals.
    lower, upper : array of float64, shape (n,)
        lower <= V* <= upper, proved.
    choices : array of int32, shape (n,)
        The choice of the policy, counted in the part; -1 at goals.
    start : tuple of float
        V* of the start, and its lower and upper bound, on every rank.
    method : str
        How it was found.
    iterations : int
        How many rounds of value iteration that took.
    policy : PartMarkovPolicy
        The policy of least expected cost, evaluated and run where it is; `policy.gather()` is the
        whole.
    """

    value: FloatArray
    lower: FloatArray
    upper: FloatArray
    choices: NDArray[np.int32]
    start: tuple[float, float, float]
    method: str
    iterations: int
    policy: PartMarkovPolicy

    def cost(self) -> float:
        """The least expected cost from the start.

        Returns
        -------
        float
            The same on every rank.
        """
        return self.start[0]

    @property
    def bounds(self) -> tuple[float, float]:
        """Verified lower and upper bound on the value of the start."""
        return self.start[1:]


def solve_expected_part(part: Part, comm: Any) -> PartExpectedSolution:
    """`solve_expected` of a model in parts."""

    def work() -> PartExpectedSolution:
        found = solve_part_expected(graph_of(comm, part))
        here = found.graph.state[: found.graph.own] - part.first
        columns = np.zeros((3, len(part.is_goal)))
        sides = found.bounds.value, found.bounds.lower, found.bounds.upper
        columns[:, here] = [side[: found.graph.own] for side in sides]
        choices = np.full(len(part.is_goal), -1, dtype=np.int32)
        choices[here] = found.chosen
        policy = PartMarkovPolicy.from_choices(comm, part, choices)
        how = found.start, found.bounds.method, found.rounds
        value, lower, upper = columns
        return PartExpectedSolution(value, lower, upper, choices, *how, policy)

    return together(comm, work, str(part))
