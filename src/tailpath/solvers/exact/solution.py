"""What the exact solver found: the optimum as a function of alpha, with proved bounds, and the policies that attain it.

*Bounds.* All terms of the recursion are non-negative, so rounding is a relative error: at most k + 8 units for a choice with k outcomes and cost
groups, per step; a budget of w is spent within w steps (times the longest run of free outcomes). To this comes the proved error of V*.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tailpath.errors import OptionError
from tailpath.kernels.forward import cheapest_way
from tailpath.kernels.rounding import SAME_VALUE
from tailpath.model.ragged import offsets_of
from tailpath.model.ssp import SSP, FloatArray
from tailpath.options import check_invertible_alpha
from tailpath.policies.kinds import BudgetPolicy
from tailpath.solvers.expectation import ExpectedSolution


def best_budget(value: FloatArray, mean: FloatArray | None, error: float) -> int:
    """The smallest budget with the least value, or, given means, the smallest with the least mean among those with the least value."""
    slack = 1 + min(max(SAME_VALUE, len(value) * error), 1e-12)
    tied = np.flatnonzero(value <= value.min() * slack)
    if mean is not None:
        tied = tied[mean[tied] <= mean[tied].min() * slack]
    return int(tied[0])


@dataclass(frozen=True, eq=False)
class ExactSolution:
    """The optimum for every `a >= alpha`, or, with a `weight` below 1, for `alpha` alone.

    In cost units, by budget w: `excess[w]` is U(start, w), `mean_cost[w]` the expected cost of the policy behind it and `plain_mean_cost[w]` that of
    the policy without `lexicographic`; both None where they were not asked for. `error` bounds the relative error that each level adds.
    `row` and `table` are those of the policies, for budgets up to the best one for `alpha`.
    With `delta`, all values are those of the costs rounded up, `unit` is delta and `floor` the solution for the costs rounded down.
    """

    ssp: SSP
    alpha: float
    weight: float
    lexicographic: bool
    unit: Fraction
    expected: ExpectedSolution
    excess: FloatArray
    mean_cost: FloatArray | None
    plain_mean_cost: FloatArray | None
    error: float
    row: NDArray[np.int32]
    table: NDArray[Any]
    level: NDArray[np.int64]
    floor: ExactSolution | None = None

    def cvar(self, a: float) -> float:
        """The least CVaR at `a`; with a weight below 1, the CVaR of the policy that minimises the weighted sum."""
        if self.weight == 0:
            raise OptionError("weight 0 asks for the mean alone; evaluate the policy to learn its CVaR")
        w = self.budget(a)
        return float((w + self.excess[w] / a) * float(self.unit))

    def var(self, a: float) -> float:
        """The VaR at `a` of the policy for `a`. With weight 0 it is not known."""
        if self.weight == 0:
            raise OptionError("weight 0 asks for the mean alone; evaluate the policy to learn its VaR")
        w = self.budget(a)
        return float(w * self.unit) if w > 0 else self._least_neutral_cost

    def mean(self, a: float) -> float:
        """The expected cost of the policy for `a`; known with `lexicographic` or a weight below 1."""
        return float(self._known(self.mean_cost)[self.budget(a)]) * float(self.unit)

    def plain_mean(self, a: float) -> float:
        """The expected cost of the policy that the solver would return for `a` without `lexicographic`."""
        self._check(a)
        w = best_budget(self._objective(a), None, self.error)
        return float(self._known(self.plain_mean_cost)[w]) * float(self.unit)

    def objective(self, a: float) -> float:
        """(1 - weight) * mean + weight * CVaR: what is minimised. With weight 1, `cvar(a)`."""
        return float(self._objective(a)[self.budget(a)]) * float(self.unit)

    def curve(self, alphas: ArrayLike) -> FloatArray:
        """The least CVaR at each of `alphas`."""
        return np.array([self.cvar(float(a)) for a in np.asarray(alphas, dtype=np.float64).ravel()])

    def bounds(self, a: float) -> tuple[float, float]:
        """Proved lower and upper bound on the optimum, `objective(a)`; with `delta`, on the optimum of the costs as they are."""
        self._check(a)
        w = np.arange(len(self.excess))
        below, above, more = self._value_error
        lost = np.minimum(w * self.error, 1.0)
        priced = self._objective(a) - self.weight * w
        low = float(np.min(self.weight * w + priced * (1 - below) * (1 - lost)))
        raised = np.where(priced > 0, priced * (1 + above), 0.0) + more / a
        high = float(np.min(self.weight * w + np.where(lost < 1, raised / np.maximum(1 - lost, 1e-300), np.inf)))
        # A few units more for the sums above, and for values so small that they were taken for 0.
        proved = low * float(self.unit) * (1 - 2e-15), high * float(self.unit) * (1 + 2e-15) + 1e-250 / a
        return (self.floor.bounds(a)[0], proved[1]) if self.floor else proved

    def budget(self, a: float) -> int:
        """The budget, in units, that the policy for `a` starts with."""
        self._check(a)
        return self.best_budget(a, self.table.shape[1])

    def best_budget(self, a: float, among: int | None = None) -> int:
        """The best of the first `among` budgets, or of all."""
        if self.weight == 0:
            return 0
        mean = self.mean_cost if self.lexicographic else None
        return best_budget(self._objective(a)[:among], None if mean is None else mean[:among], self.error)

    def policy(self, a: float) -> BudgetPolicy:
        """The policy that attains the optimum for `a`. All share one table; they differ in the budget at the start."""
        return BudgetPolicy(self.ssp, self.budget(a), self.row, self.table, self.expected.choices, self.level, self.unit)

    def _objective(self, a: float) -> FloatArray:
        """What is minimised, in units, for every budget."""
        value: FloatArray = self.weight * np.arange(len(self.excess)) + self.weight / a * self.excess
        return value if self.weight == 1 else value + (1 - self.weight) * self._known(self.mean_cost)

    def _known(self, mean_cost: FloatArray | None) -> FloatArray:
        if mean_cost is None:
            raise OptionError("the expected cost was not computed; solve with lexicographic=True, or evaluate the policy")
        return mean_cost

    def _check(self, a: float) -> None:
        if check_invertible_alpha(a) < self.alpha:
            raise OptionError(f"the table was made for alpha >= {self.alpha:g}; solve with alpha={a:g}")
        if a != self.alpha and self.weight < 1:
            raise OptionError(f"with weight {self.weight:g} the table belongs to alpha = {self.alpha:g} alone; solve with alpha={a:g}")

    @cached_property
    def _value_error(self) -> tuple[float, float, float]:
        """How far V* may lie below and above its value, relatively, and above where the value is 0, in units."""
        found, ssp = self.expected, self.ssp
        positive = (found.value > 0) & np.isfinite(found.value)
        value, zero = found.value[positive], found.value == 0
        below = float(np.max((value - found.lower[positive]) / value, initial=0.0))
        above = float(np.max((found.upper[positive] - value) / value, initial=0.0))
        # A policy that keeps to free outcomes among states of value 0 proves the 0; otherwise their upper bounds count.
        outcome = np.flatnonzero(np.isin(ssp.outcome_choice, found.choices[zero & (found.choices >= 0)]))
        free = (self.level[outcome] == 0) & zero[ssp.outcome_target[outcome]]
        more = 0.0 if free.all() else float(np.max(found.upper[zero])) / float(self.unit)
        return min(below * (1 + 1e-15), 1.0), above * (1 + 1e-15), more

    @cached_property
    def _least_neutral_cost(self) -> float:
        """The least cost at which the risk-neutral policy can arrive."""
        ssp = self.ssp
        outcome = np.flatnonzero(np.isin(ssp.outcome_choice, self.expected.choices))
        least = np.full(ssp.n_states, np.inf)
        row_start = offsets_of(ssp.choice_state[ssp.outcome_choice[outcome]], ssp.n_states)
        cheapest_way(row_start, ssp.outcome_target[outcome], self.level[outcome].astype(np.float64), ssp.start_index, least)
        return float(int(least[ssp.is_goal].min()) * self.unit)
