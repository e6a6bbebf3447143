"""The risk-neutral optimum: V*(s) = min over policies that surely arrive of the expected total cost.

The model is first cut to its *core*: sure states and safe choices only (elsewhere V* is infinite), with every free component, a set of states
that can be walked at no cost for ever, drawn together into one node. In the core every policy that never arrives pays infinitely much, so
V* is the only solution of V = min (r + P V), and value iteration and policy iteration are both sound.

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

from tailpath.absorption import Bracket, expected_total, is_wide
from tailpath.layouts import offsets_of
from tailpath.model import SSP, FloatArray, Name
from tailpath.policies import MarkovPolicy
from tailpath.reachability import free_components, require_sure_start

#: Cores up to this many states may be solved in rationals when floating point cannot prove the lower bound.
LARGEST_EXACT = 400


@dataclass(frozen=True, eq=False, repr=False)
class ExpectedSolution:
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


@dataclass(frozen=True, eq=False)
class Core:
    """The part of a model on which expected costs are finite. Node n and above stand for the goals.

    `node_of[s]` is the node of state s (n at goals, -1 where the value is infinite), `choice[k]` the model's choice behind core choice k.
    """

    node_of: NDArray[np.int32]
    state_choices: NDArray[np.int64]
    choice_outcomes: NDArray[np.int64]
    target: NDArray[np.int32]
    probability: FloatArray
    rate: FloatArray
    choice: NDArray[np.int64]

    @property
    def n(self) -> int:
        return len(self.state_choices) - 1

    def problem(self) -> tuple[Any, ...]:
        return self.state_choices, self.choice_outcomes, self.target, self.probability, self.rate


def solve_expected(ssp: SSP) -> ExpectedSolution:
    """The policy of least expected cost, its value from every state, and verified bounds.

    Refuses a model whose start cannot surely reach a goal. States that cannot, but can be avoided, get an infinite value.
    """
    sure, safe = require_sure_start(ssp)
    free = free_components(ssp, safe)
    core = core_of(ssp, sure, safe, free)
    distance = _distance(core)
    chosen, bracket, iterations = _policy_iteration(core, distance)
    lower = _lower_bound(core, bracket)
    if core.n <= LARGEST_EXACT and is_wide(lower, bracket.upper):
        from tailpath.solvers.exact_expectation import solve_core_exactly

        chosen, bracket = solve_core_exactly(core, chosen)
        lower = bracket.lower
    return ExpectedSolution(
        ssp=ssp,
        value=_spread(core, bracket.value),
        lower=_spread(core, lower),
        upper=_spread(core, bracket.upper),
        choices=model_choices(ssp, core, safe, free, chosen),
        method=bracket.method,
        iterations=iterations,
    )


def core_of(ssp: SSP, sure: NDArray[np.bool_], safe: NDArray[np.bool_], free: NDArray[np.int32]) -> Core:
    """Cut the model to sure states and safe choices and draw free components together."""
    transient = sure & ~ssp.is_goal
    # One representative per node: every state outside free components, and the first member of each component.
    representative = np.arange(ssp.n_states)
    if free.max(initial=-1) >= 0:
        _, first = np.unique(free, return_index=True)
        by_component = first[1:] if (free == -1).any() else first
        representative = np.where(free >= 0, by_component[np.maximum(free, 0)], representative)
    kept = transient & (representative == np.arange(ssp.n_states))
    node_of_kept = np.cumsum(kept) - 1
    n = int(kept.sum())
    node_of = np.where(transient, node_of_kept[representative], np.where(ssp.is_goal, n, -1)).astype(np.int32)

    # A choice is internal, and dropped, if it only walks inside its own free component at no cost.
    home = free[ssp.choice_state][ssp.outcome_choice]
    stays = (home >= 0) & (free[ssp.outcome_target] == home) & (ssp.outcome_cost == 0)
    usable = safe & ~np.logical_and.reduceat(stays, ssp.choice_outcomes[:-1]) if ssp.n_choices else safe
    choice = np.flatnonzero(usable)
    node = node_of[ssp.choice_state[choice]]
    order = np.argsort(node, kind="stable")
    choice, node = choice[order], node[order]
    length = np.diff(ssp.choice_outcomes)[choice]
    choice_outcomes = np.concatenate(([0], np.cumsum(length))).astype(np.int64)
    outcome = np.repeat(ssp.choice_outcomes[choice] - choice_outcomes[:-1], length) + np.arange(choice_outcomes[-1])
    probability, cost = ssp.outcome_probability[outcome], ssp.outcome_cost[outcome]
    rate = np.add.reduceat(probability * cost, choice_outcomes[:-1]) if len(choice) else np.zeros(0)
    return Core(node_of, offsets_of(node, n), choice_outcomes, node_of[ssp.outcome_target[outcome]], probability, rate, choice)


def _spread(core: Core, per_node: FloatArray) -> FloatArray:
    """Node values to states: 0 at goals, infinite where there is no node."""
    values = np.append(per_node, [0.0, np.inf])[core.node_of]
    values.flags.writeable = False
    return values


def _fewest_steps(source: NDArray[Any], target: NDArray[Any], n: int) -> NDArray[np.int32]:
    """The least number of arrows from each of n nodes to any target >= n; -1 where there is no way."""
    from tailpath.kernels.forward import fewest_steps

    bounded = np.minimum(target, n)
    into = np.argsort(bounded, kind="stable")
    steps = np.full(n + 1, -1, dtype=np.int32)
    fewest_steps(offsets_of(bounded, n + 1), source[into], steps)
    return steps[:n]


def _distance(core: Core) -> NDArray[np.int32]:
    """Least number of steps to a goal from every node: the order of the sweeps."""
    source = np.repeat(np.arange(core.n, dtype=np.int32), np.diff(core.state_choices))
    return _fewest_steps(np.repeat(source, np.diff(core.choice_outcomes)), core.target, core.n)


def _policy_chain(core: Core, chosen: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any], FloatArray, FloatArray]:
    length = np.diff(core.choice_outcomes)[chosen]
    row_start = np.concatenate(([0], np.cumsum(length))).astype(np.int64)
    outcome = np.repeat(core.choice_outcomes[chosen] - row_start[:-1], length) + np.arange(row_start[-1])
    return row_start, core.target[outcome], core.probability[outcome], core.rate[chosen]


def _is_proper(core: Core, chosen: NDArray[Any]) -> bool:
    row_start, target, _, _ = _policy_chain(core, chosen)
    source = np.repeat(np.arange(core.n, dtype=np.int32), np.diff(row_start))
    return bool(np.all(_fewest_steps(source, target, core.n) >= 0))


def _policy_iteration(core: Core, distance: NDArray[Any]) -> tuple[NDArray[np.int64], Bracket, int]:
    from tailpath.kernels.bellman import improve_choices, min_sweeps

    chosen = _nearer_choices(core, distance)
    value = _rough_value(core, chosen, distance)
    # From the cost of a policy the values only fall, and news travels from low to high values: sorted by value, few sweeps do.
    for _ in range(50):
        if min_sweeps(np.argsort(value, kind="stable"), *core.problem(), 0.0, 1e-9, 8, value) < 8:
            break
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
    from tailpath.kernels.absorption import sweep_components

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
    from tailpath.kernels.bellman import lower_defect, min_sweeps

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


def model_choices(ssp: SSP, core: Core, safe: NDArray[np.bool_], free: NDArray[np.int32], chosen: NDArray[np.int64]) -> NDArray[np.int32]:
    """Core choices as choices of the model; members of a free component walk, at no cost, to the one that leaves it."""
    choices = np.full(ssp.n_states, -1, dtype=np.int32)
    leaving = core.choice[chosen]
    choices[ssp.choice_state[leaving]] = leaving
    pending = (free >= 0) & (choices < 0)
    if not pending.any():
        return choices
    stays = free[ssp.outcome_target] == free[ssp.choice_state][ssp.outcome_choice]
    internal = safe & np.logical_and.reduceat(stays & (ssp.outcome_cost == 0), ssp.choice_outcomes[:-1])
    # A component is strongly connected: stepping ever nearer to a settled member gets there surely.
    walk = np.flatnonzero(internal[ssp.outcome_choice])
    target = np.where(pending, np.arange(ssp.n_states), ssp.n_states)[ssp.outcome_target]
    steps = np.append(_fewest_steps(ssp.choice_state[ssp.outcome_choice[walk]], target[walk], ssp.n_states), 0)
    nearest = np.minimum.reduceat(np.where(steps[target] < 0, ssp.n_states, steps[target]), ssp.choice_outcomes[:-1])
    ready = np.flatnonzero(internal & pending[ssp.choice_state] & (nearest < steps[ssp.choice_state]))
    choices[ssp.choice_state[ready][::-1]] = ready[::-1]
    return choices
