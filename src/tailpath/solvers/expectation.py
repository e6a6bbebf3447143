"""The risk-neutral optimum: V*(s) = min over policies that surely arrive of the expected total cost.

The model is first cut to its *core* (`analysis.core`). There V* is the only solution of V = min (r + P V), and value iteration and policy
iteration are both sound. V* is found once and kept with the model.

1. *Values*: value iteration in the order in which news travels (`value_iteration`), until only the last bits move.
2. *Bounds*. Where every choice costs something, one look at every choice proves that V* lies within a share d of the values and that the greedy
   policy arrives. Otherwise the *upper* bound is the verified value of that policy, and the *lower* one solves the problem once more with
   every step slightly cheaper: the result L satisfies L <= min (r + P L) with room for rounding, which is checked.

Where news travels too slowly (chains that need 2^50 steps), policy iteration takes over, each policy evaluated by `absorption.expected_total`,
strict gains only, so that every policy on the way is proper. Where floating point then proves no tight lower bound, a small core is solved
again in exact rational arithmetic; otherwise the bounds are sound and wide.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tailpath.analysis.absorption import LARGEST_ELIMINATION, Bracket, by_steps, expected_total, is_wide, proved, shares, swept
from tailpath.analysis.core import Core, core_of
from tailpath.analysis.reachability import fewest_steps
from tailpath.analysis.value_iteration import MOST_ROUNDS, Sweeps, first_sweeps
from tailpath.errors import ModelError
from tailpath.kernels.absorption import Chain
from tailpath.kernels.bellman import best_choices, improve_choices, lower_defect, relative_bounds
from tailpath.kernels.jit import frozen
from tailpath.kernels.rounding import UNIT
from tailpath.model.endings import ended_by_chance
from tailpath.model.ragged import members_of, owners
from tailpath.model.records import Record, data_frame
from tailpath.model.ssp import SSP, FloatArray, Name
from tailpath.options import check_gamma
from tailpath.pictures.notebook import card
from tailpath.policies.kinds import MarkovPolicy
from tailpath.solvers.rational_expectation import solve_core_exactly
from tailpath.verify.distribution import Proof
from tailpath.verify.optimum import check_expected

#: Cores up to this many states may be solved in rationals when floating point cannot prove the lower bound.
LARGEST_EXACT = 400
#: A relative width of the bounds that is good enough for large cores.
FAIR = 1e-9
#: How many policies are tried to narrow bounds further.
SHARPENINGS = 3


@dataclass(frozen=True, eq=False, repr=False)
class ExpectedSolution(Record):
    """The least expected cost from every state, with verified bounds.

    `value[s]`, `lower[s] <= V*(s) <= upper[s]` in index order: 0 at goals, infinite where no policy surely arrives. `choices[s]` is the choice
    of the policy (-1 at goals and where the value is infinite). `method` says how it was found and proved, `iterations` how many rounds of value
    iteration or how many policies that took, `gamma` how costs are discounted.
    """

    ssp: SSP
    value: FloatArray
    lower: FloatArray
    upper: FloatArray
    choices: NDArray[np.int32]
    method: str
    iterations: int
    gamma: float = 1.0

    def __post_init__(self) -> None:
        self._freeze()

    @cached_property
    def policy(self) -> MarkovPolicy:
        return MarkovPolicy.from_choices(self.ssp, self.choices)

    @property
    def bounds(self) -> tuple[float, float]:
        """Verified lower and upper bound on the value of the start."""
        return float(self.lower[self.ssp.start_index]), float(self.upper[self.ssp.start_index])

    def verify(self) -> Proof:
        """Check the bounds of every state on the model as given, in exact arithmetic, with code that shares nothing with the solver."""
        return check_expected(self)

    def cost(self, state: Name | None = None) -> float:
        """The least expected cost from a state, by name; from the start if none is given."""
        index = self.ssp.start_index if state is None else self.ssp.state_index(state)
        return float(self.value[index])

    def to_pandas(self) -> Any:
        """Every state with its least expected cost, verified bounds and the action of the policy."""
        actions = [self.ssp.choice_name(choice) if choice >= 0 else None for choice in self.choices.tolist()]
        return data_frame(
            {"state": list(self.ssp.states), "value": self.value, "lower": self.lower, "upper": self.upper, "action": actions}
        )

    def _repr_html_(self) -> str:
        lower, upper = self.bounds
        facts = [("expected cost", self.cost()), ("proved to lie in", f"{lower:.12g} to {upper:.12g}"), ("from", self.ssp.start)]
        drawn = self.policy.plot(self.ssp) if self.ssp.geometry is not None else None
        return card("Least expected cost", facts, axes=drawn)

    def __repr__(self) -> str:
        return f"<ExpectedSolution {self.cost():.6g} from {self.ssp.start!r}, by {self.method}>"


def solve_expected(ssp: SSP, *, gamma: float = 1.0) -> ExpectedSolution:
    """The policy of least expected cost, its value from every state, and verified bounds.

    Refuses a model whose start cannot surely reach a goal. States that cannot, but can be avoided, get an infinite value.
    With `gamma` < 1 costs at step t count gamma^t times. That is the expected cost where every step is the last one with probability 1 - gamma,
    and is solved as such; no goal need be reached then, and every value is finite.
    """
    if check_gamma(gamma) < 1:
        return ssp.kept(f"expected at {float(gamma)!r}", lambda: _discounted(ssp, float(gamma)))
    return ssp.kept("expected", lambda: _solve(core_of(ssp)))


def sharpened(expected: ExpectedSolution) -> ExpectedSolution:
    """The same with narrower bounds, where they are easily found; for what takes differences of values.

    What the floats of the values have no room for is found by solving the equations of the policy for what is missing in them. Bounds go by the
    expected total of the sizes of all terms, which is what rounding is a share of: a dear step weighs no more than it is likely.
    """
    return expected.ssp.kept("expected, sharpened", lambda: _sharpened(core_of(expected.ssp), expected))


def _sharpened(core: Core, expected: ExpectedSolution) -> ExpectedSolution:
    value = core.gather(expected.value)
    chosen, fine = np.empty(core.n, dtype=np.int64), np.zeros(core.n)
    for _ in range(SHARPENINGS):
        # Another choice may be better by less than the values alone could tell.
        best_choices(core.decisions(), value, fine, chosen)
        chain = _policy_chain(core, chosen)
        solve = _Rough(chain, value)
        if solve.total is None:
            break
        found = proved(chain, value, solve.total, expected.method, solve, 1)
        if found.fine is None:
            break
        fine, below = found.fine, _below_all(core, found)
        if below is not None:
            lower, upper = np.maximum(core.spread(below), expected.lower), np.minimum(core.spread(found.upper), expected.upper)
            # What is exactly 0 stays so.
            finer = np.where(expected.value > 0.0, core.spread(value + fine), 0.0)
            return replace(expected, value=np.clip(finer, lower, upper), lower=lower, upper=upper)
    return expected


def _below_all(core: Core, policy: Bracket) -> FloatArray | None:
    """What proves the policy's own lower bound, with room for rounding, where it holds for all other choices, too; otherwise None."""
    if policy.fine is None or policy.slack is None:
        return None
    below = policy.fine - 2.0 * policy.slack
    if lower_defect(core.decisions(), policy.value, below) > 0.0:
        return None
    return np.maximum(np.nextafter(policy.value + below, -np.inf), 0.0)


class _Rough:
    """Solves x = c + P x for a chain with known values, roughly, by sweeps, which take positive rates: a little of c beside `weight`, the sum of the
    sizes of the terms of a value; `total` is the expected total of these."""

    def __init__(self, chain: Chain, value: FloatArray) -> None:
        n = len(value)
        ahead = np.append(value, 0.0)[np.minimum(chain.target, n)] - value[owners(chain.row_start)]
        weight = chain.rate + np.add.reduceat(chain.probability * np.abs(ahead), chain.row_start[:-1])
        self.chain, self.weight = chain, weight + 1e-3 * weight.mean()
        self.total = self._swept(self.weight, 1e-5)

    def _swept(self, rate: FloatArray, tolerance: float) -> FloatArray | None:
        total, settled = swept(self.chain._replace(rate=next(frozen(rate))), tolerance)
        return total if settled else None

    def __call__(self, gain: FloatArray) -> FloatArray:
        assert self.total is not None
        share = 2.0 * float(np.max(np.abs(gain) / self.weight, initial=0.0))
        total = self._swept(gain + share * self.weight, 1e-4) if share > 0.0 else None
        return np.zeros(len(gain)) if total is None else total - share * self.total


def _discounted(ssp: SSP, gamma: float) -> ExpectedSolution:
    found = solve_expected(ended_by_chance(ssp, gamma))
    n = ssp.n_states
    cut = {name: getattr(found, name)[:n] for name in ("value", "lower", "upper", "choices")}
    return replace(found, ssp=ssp, gamma=gamma, **cut)


def _refuse_infinite(value: FloatArray) -> None:
    if not np.isfinite(value).all():
        raise ModelError("the expected costs are too large to compute with; choose another unit of cost")


def _solve(core: Core) -> ExpectedSolution:
    sweeps, first = first_sweeps(core)
    value, rounds = sweeps.run(sweeps.folded(core.decisions()), first, 4 * UNIT)
    _refuse_infinite(value)
    chosen = np.full(core.n, -1, dtype=np.int64)
    improve_choices(core.decisions(), value, 0.0, chosen)
    found = _proved(core, sweeps, value, chosen, rounds)
    if found is None or _is_poor(found.bracket):
        slow = _policy_iteration(core, sweeps, value, chosen)
        found = slow if found is None or _width(slow.bracket) < _width(found.bracket) else found
    if core.n <= LARGEST_EXACT and is_wide(found.bracket.lower, found.bracket.upper):
        chosen, bracket = solve_core_exactly(core, found.chosen)
        _refuse_infinite(bracket.value)
        found = _Found(chosen, bracket, found.iterations)
    bracket = found.bracket
    return ExpectedSolution(
        ssp=core.ssp,
        # Bounds may be tighter than the value is exact, at the edges of the floats.
        value=core.spread(np.clip(bracket.value, bracket.lower, bracket.upper)),
        lower=core.spread(bracket.lower),
        upper=core.spread(bracket.upper),
        choices=core.model_choices(found.chosen),
        method=bracket.method,
        iterations=found.iterations,
    )


@dataclass(frozen=True, eq=False)
class _Found:
    """A policy of the core, what is proved of V*, and how many iterations it took."""

    chosen: NDArray[np.int64]
    bracket: Bracket
    iterations: int


def _is_poor(bracket: Bracket) -> bool:
    """Whether policy iteration may find better bounds: for larger cores it seldom does, and only where value iteration did not end well."""
    return _width(bracket) > FAIR if len(bracket.value) > LARGEST_ELIMINATION else is_wide(bracket.lower, bracket.upper)


def _width(bracket: Bracket) -> float:
    """The worst relative width; as in `is_wide`, small values are allowed what comes with the rounding of the largest."""
    scale = bracket.value + 1e-3 * bracket.value.max(initial=0.0) + 1e-300
    return float(np.nan_to_num(np.max((bracket.upper - bracket.lower) / scale, initial=0.0), nan=np.inf))


def _proved(core: Core, sweeps: Sweeps, value: FloatArray, chosen: NDArray[np.int64], rounds: int) -> _Found | None:
    """What value iteration found, with bounds; None if it was given up, or leapt below 0, where no proof holds."""
    if rounds > MOST_ROUNDS or value.min(initial=0.0) < 0.0:
        return None
    if core.rate.all():
        bracket = shares(value, relative_bounds(core.decisions(), value, chosen), "value iteration")
        if not _is_poor(bracket):
            return _Found(chosen, bracket, rounds)
    upper = by_steps(_policy_chain(core, chosen), sweeps, value, "value iteration")
    if not np.all(np.isfinite(upper.upper)):
        return None
    return _Found(chosen, _with_lower_bound(core, sweeps, upper), rounds)


def _policy_chain(core: Core, chosen: NDArray[Any]) -> Chain:
    outcome, row_start = members_of(core.choice_outcomes, chosen)
    return Chain(*frozen(row_start, core.target[outcome], core.probability[outcome], core.rate[chosen], np.zeros(core.n)))


def _is_proper(core: Core, chosen: NDArray[Any]) -> bool:
    chain = _policy_chain(core, chosen)
    return bool(np.all(fewest_steps(owners(chain.row_start), chain.target, core.n) >= 0))


def _policy_iteration(core: Core, sweeps: Sweeps, value: FloatArray, greedy: NDArray[np.int64]) -> _Found:
    chosen = greedy if _is_proper(core, greedy) else _nearer_choices(core)
    iterations = 0
    while True:
        chain = _policy_chain(core, chosen)
        bracket = expected_total(chain.row_start, chain.target, chain.probability, chain.rate, value)
        iterations += 1
        better = chosen.copy()
        if improve_choices(core.decisions(), bracket.value, 1e-13, better) == 0 or not _is_proper(core, better):
            break
        chosen = better
    named = replace(bracket, method=f"policy iteration, {bracket.method}")
    return _Found(chosen, _with_lower_bound(core, sweeps, named), iterations)


def _nearer_choices(core: Core) -> NDArray[np.int64]:
    """A proper policy: in every node the first choice that may come one step nearer to a goal."""
    distance = fewest_steps(core.outcome_node(), core.target, core.n)
    nearest = np.append(distance, 0)[core.target]
    least = np.minimum.reduceat(nearest, core.choice_outcomes[:-1])
    node = owners(core.state_choices)
    nearer = np.flatnonzero(least < distance[node])
    chosen = np.full(core.n, -1, dtype=np.int64)
    chosen[node[nearer][::-1]] = nearer[::-1]
    return chosen


def _with_lower_bound(core: Core, sweeps: Sweeps, policy: Bracket) -> Bracket:
    """A policy's bracket, with a lower bound that holds for every proper policy: the best that rounding allows, 0 in the worst case."""
    if len(core.rate) == core.n:  # without a decision the only policy is the best
        return policy
    exactly, below = np.zeros(core.n), _below_all(core, policy)
    if below is not None:
        return Bracket(policy.value, below, policy.upper, policy.method)
    discount = 4 * max(lower_defect(core.decisions(), policy.value, exactly), 0.0)
    # The upper bound exceeds the value by a multiple of the expected steps; as much below is where the cheaper problem's values lie.
    slope = np.where(np.isfinite(policy.upper), policy.upper - policy.value, 0.0)
    for attempt in range(6):
        value = policy.value - 4 * 100.0**attempt * slope
        tolerance = 0.25 * discount / (policy.value.max(initial=0.0) + 1e-300)
        cheaper = core.decisions()._replace(rate=next(frozen(core.rate - discount)))
        value, _ = sweeps.run(sweeps.folded(cheaper), value, tolerance)
        if np.isfinite(value).all() and lower_defect(core.decisions(), value, exactly) <= 0.0:
            return Bracket(policy.value, np.maximum(value, 0.0), policy.upper, policy.method)
        discount *= 100
    return Bracket(policy.value, np.zeros(core.n), policy.upper, policy.method)
