"""The risk-neutral optimum: V*(s) = min over policies that surely arrive of the expected total cost.

The model is first cut to its *core* (`analysis.core`). There V* is the only solution of V = min (r + P V), and value iteration and policy
iteration are both sound. V* is found once and kept with the model.

1. Value iteration (Gauss-Seidel, from the cost of a plain policy downwards) finds good values; its greedy policy starts
2. policy iteration, each policy evaluated by `absorption.expected_total`, strict gains only, so that every policy on the way is proper.
3. The *upper* bound is the verified value of the last policy. The *lower* bound solves the problem once more with every step slightly cheaper;
   the result L satisfies L <= min (r + P L) with room for rounding, which is checked, and hence bounds every policy from below.

The bounds are part of the result. Where no tight lower bound can be proved in floating point (chains that need 2^50 steps), the core is solved
again in exact rational arithmetic if it is small; otherwise the bounds are sound and wide.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tailpath.analysis.absorption import Bracket, expected_total, is_wide
from tailpath.analysis.core import Core, core_of
from tailpath.analysis.reachability import fewest_steps
from tailpath.errors import ModelError
from tailpath.kernels.absorption import sweep_components
from tailpath.kernels.bellman import improve_choices, lower_defect, min_sweeps
from tailpath.model.ragged import members_of, owners
from tailpath.model.records import Record
from tailpath.model.ssp import SSP, FloatArray, Name
from tailpath.policies.kinds import MarkovPolicy
from tailpath.solvers.rational_expectation import solve_core_exactly

#: Cores up to this many states may be solved in rationals when floating point cannot prove the lower bound.
LARGEST_EXACT = 400


@dataclass(frozen=True, eq=False, repr=False)
class ExpectedSolution(Record):
    """The least expected cost from every state, with verified bounds.

    `value[s]`, `lower[s] <= V*(s) <= upper[s]` in index order: 0 at goals, infinite where no policy surely arrives. `choices[s]` is the choice
    of the policy (-1 at goals and where the value is infinite). `method` says how the last policy was evaluated, `iterations` how many
    policies were tried.
    """

    ssp: SSP
    value: FloatArray
    lower: FloatArray
    upper: FloatArray
    choices: NDArray[np.int32]
    method: str
    iterations: int

    def __post_init__(self) -> None:
        self._freeze()

    @cached_property
    def policy(self) -> MarkovPolicy:
        return MarkovPolicy.from_choices(self.ssp, self.choices)

    @property
    def bounds(self) -> tuple[float, float]:
        """Verified lower and upper bound on the value of the start."""
        return float(self.lower[self.ssp.start_index]), float(self.upper[self.ssp.start_index])

    def cost(self, state: Name | None = None) -> float:
        """The least expected cost from a state, by name; from the start if none is given."""
        index = self.ssp.start_index if state is None else self.ssp.state_index(state)
        return float(self.value[index])

    def __repr__(self) -> str:
        return f"<ExpectedSolution {self.cost():.6g} from {self.ssp.start!r}, by {self.method}>"


def solve_expected(ssp: SSP) -> ExpectedSolution:
    """The policy of least expected cost, its value from every state, and verified bounds.

    Refuses a model whose start cannot surely reach a goal. States that cannot, but can be avoided, get an infinite value.
    """
    return ssp.kept("expected", lambda: _solve(core_of(ssp)))


def _solve(core: Core) -> ExpectedSolution:
    distance = _distance(core)
    chosen, bracket, iterations = _policy_iteration(core, distance)
    lower = _lower_bound(core, bracket)
    if core.n <= LARGEST_EXACT and is_wide(lower, bracket.upper):
        chosen, bracket = solve_core_exactly(core, chosen)
        lower = bracket.lower
    return ExpectedSolution(
        ssp=core.ssp,
        value=core.spread(bracket.value),
        lower=core.spread(lower),
        upper=core.spread(bracket.upper),
        choices=core.model_choices(chosen),
        method=bracket.method,
        iterations=iterations,
    )


def _distance(core: Core) -> NDArray[np.int32]:
    """Least number of steps to a goal from every node: the order of the sweeps."""
    return fewest_steps(core.outcome_node(), core.target, core.n)


def _policy_chain(core: Core, chosen: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any], FloatArray, FloatArray]:
    outcome, row_start = members_of(core.choice_outcomes, chosen)
    return row_start, core.target[outcome], core.probability[outcome], core.rate[chosen]


def _is_proper(core: Core, chosen: NDArray[Any]) -> bool:
    row_start, target, _, _ = _policy_chain(core, chosen)
    return bool(np.all(fewest_steps(owners(row_start), target, core.n) >= 0))


def _policy_iteration(core: Core, distance: NDArray[Any]) -> tuple[NDArray[np.int64], Bracket, int]:
    chosen = _nearer_choices(core, distance)
    value = _rough_value(core, chosen, distance)
    # From the cost of a policy the values only fall, and news travels from low to high values: sorted by value, few sweeps do.
    for _ in range(50):
        if min_sweeps(np.argsort(value, kind="stable"), *core.problem(), 0.0, 1e-9, 8, value) < 8:
            break
    if not np.isfinite(value).all():
        raise ModelError("the expected costs are too large to compute with; choose another unit of cost")
    greedy = np.full(core.n, -1, dtype=np.int64)
    improve_choices(*core.problem(), value, 0.0, greedy)
    if _is_proper(core, greedy):
        chosen = greedy
    iterations = 0
    while True:
        bracket = expected_total(*_policy_chain(core, chosen), value)
        iterations += 1
        better = chosen.copy()
        if improve_choices(*core.problem(), bracket.value, 1e-13, better) == 0 or not _is_proper(core, better):
            return chosen, bracket, iterations
        chosen = better


def _rough_value(core: Core, chosen: NDArray[np.int64], distance: NDArray[Any]) -> FloatArray:
    """About the cost of a policy: enough to start value iteration from above."""
    value, steps = np.zeros(core.n), np.zeros(core.n)
    whole = np.array([0, core.n], dtype=np.int64)
    sweep_components(np.argsort(distance, kind="stable"), whole, *_policy_chain(core, chosen), np.zeros(core.n), 40, value, steps)
    return value


def _nearer_choices(core: Core, distance: NDArray[Any]) -> NDArray[np.int64]:
    """A proper policy: in every node the first choice that may come one step nearer to a goal."""
    nearest = np.append(distance, 0)[np.minimum(core.target, core.n)]
    least = np.minimum.reduceat(nearest, core.choice_outcomes[:-1])
    node = np.repeat(np.arange(core.n), np.diff(core.state_choices))
    nearer = np.flatnonzero(least < distance[node])
    chosen = np.full(core.n, -1, dtype=np.int64)
    chosen[node[nearer][::-1]] = nearer[::-1]
    return chosen


def _lower_bound(core: Core, bracket: Bracket) -> FloatArray:
    """Values proved to lie below the cost of every proper policy: the best that rounding allows, 0 in the worst case."""
    order = np.argsort(bracket.value, kind="stable")
    discount = 4 * max(lower_defect(*core.problem(), bracket.value), 0.0)
    # The upper bound exceeds the value by a multiple of the expected steps; as much below is where the cheaper problem's values lie.
    slope = np.where(np.isfinite(bracket.upper), bracket.upper - bracket.value, 0.0)
    # News may need many sweeps through a long row of leaking cycles; small cores can afford them.
    most = 500 + 50_000_000 // (len(core.target) + 1)
    for attempt in range(6):
        value = bracket.value - 4 * 100.0**attempt * slope
        tolerance = 0.25 * discount / (bracket.value.max(initial=0.0) + 1e-300)
        min_sweeps(order, *core.problem(), discount, tolerance, most, value)
        if lower_defect(*core.problem(), value) <= 0.0:
            return np.maximum(value, 0.0)
        discount *= 100
    if np.all(np.diff(core.state_choices) == 1):
        return bracket.lower
    return np.zeros(core.n)
