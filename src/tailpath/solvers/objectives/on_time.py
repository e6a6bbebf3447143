"""On time: the largest probability of arriving within a deadline, for every deadline at once.

    P(s, t) = max_a sum P(s'|s,a) P(s', t - c),      P(goal, t) = 1 for t >= 0,      P(., t) = 0 for t < 0

What is computed is the probability of being late, 1 - P, so that a lateness of 1e-12 keeps its digits. The time left is all that a policy has to
remember. Choices that are as good, within `SAME_VALUE`, are told apart by the expected cost: a policy that is late, or cannot be late any more,
stops hurrying. VaR*_alpha = min { t : late(start, t) <= alpha } is the least VaR of any policy.

Goals need not be sure (`dead_ends.py`). With an infinite deadline the table ends where the chance of arriving later is negligible, and
`probability(inf)` is the largest probability of arriving at all.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tailpath.dp.budgets import LATE, MEAN
from tailpath.errors import OptionError
from tailpath.kernels.rounding import SAME_MASS, SAME_VALUE
from tailpath.model.cost_units import in_units
from tailpath.model.records import Record
from tailpath.model.ssp import SSP, FloatArray
from tailpath.options import Progress, check_alpha, check_amount
from tailpath.policies.budget import BudgetPolicy
from tailpath.solvers.arrival import solve_arrival
from tailpath.solvers.exact.layout import layout_of
from tailpath.solvers.exact.table import MAX_BYTES, always_neutral, budget_policy, fill_table
from tailpath.solvers.expectation import solve_expected
from tailpath.solvers.objectives.dead_ends import counting_losses, fined
from tailpath.solvers.objectives.rounding import both_ways, check_unit

LATE_THEN_MEAN = np.stack([LATE, MEAN])
#: With an infinite deadline the table ends when the chance of arriving later has fallen to this.
LEFT = 1e-12


@dataclass(frozen=True, eq=False, repr=False)
class OnTimeSolution(Record):
    """The largest probability of arriving within every deadline up to `deadline`.

    `lateness[t]` is the least P(Z > t) for t = 0, 1, ... units, with a relative error of at most `error` for every unit of t. `missed` bounds the
    least probability of never arriving; `latest` is the policy for the last deadline, whose steps are those of all others.
    With `delta`, all this holds for costs rounded up, the unit is delta, and `floor` is the solution for the
    costs rounded down.
    """

    deadline: float
    lateness: FloatArray
    missed: tuple[float, float]
    error: float
    latest: BudgetPolicy
    floor: OnTimeSolution | None = None

    def probability(self, t: float) -> float:
        """The largest probability of a total cost of at most `t`."""
        return 1.0 - self.late(t)

    def late(self, t: float) -> float:
        """The least probability of a total cost above `t`, or of never arriving."""
        level = self._level(t)
        return 1.0 if level < 0 else self.missed[0] if math.isinf(t) else float(self.lateness[min(level, len(self.lateness) - 1)])

    def bounds(self, t: float) -> tuple[float, float]:
        """Proved bounds on `probability(t)`; with `delta`, on the largest probability for the costs as they are."""
        if self.floor is not None:
            return replace(self, floor=None).bounds(t)[0], self.floor.bounds(t)[1]
        level = self._level(t)
        if level < 0:
            return 0.0, 0.0
        known = min(level, len(self.lateness) - 1)
        value, error = float(self.lateness[known]), min((known + 2) * self.error + 4e-16, 1.0)
        low, high = value * (1 - error), min(value / (1 - error) if error < 1 else 1.0, 1.0) + 1e-250
        if level > known:  # beyond the table less may be late, but no less than never arrives
            low = self.missed[0]
        if math.isinf(t):
            low, high = self.missed
        return max(1.0 - high - 2e-16, 0.0), min(1.0 - low + 2e-16, 1.0)

    def var(self, alpha: float) -> float:
        """The least VaR at `alpha` of any policy: the least t with a lateness of at most alpha. Infinite if none will do."""
        a = check_alpha(alpha)
        enough = np.flatnonzero(self.lateness <= a * (1 + SAME_MASS))
        if enough.size:
            return float(int(enough[0]) * self.latest.unit)
        if self.missed[0] > a or math.isinf(self.deadline):
            return math.inf
        raise OptionError(f"the VaR at {a:g} lies beyond the deadline {self.deadline:g}; solve with a later one")

    def policy(self, t: float) -> BudgetPolicy:
        """The policy that arrives within `t` with the largest probability; all of them share one table. For ever: the surest."""
        level = self._level(t)
        if math.isinf(t) and 0 < self.missed[0] < 1:
            return _surest(self.latest)
        return self.latest.with_budget(0 if math.isinf(t) else max(min(level, len(self.lateness) - 1) + 1, 0))

    def _level(self, t: float) -> int:
        """The deadline `t` in whole units, rounded down."""
        if math.isnan(t) or t > self.deadline:
            raise OptionError(f"the table was made for deadlines up to {self.deadline:g}; solve with deadline={t:g}")
        return len(self.lateness) if math.isinf(t) else math.floor(in_units(t, self.latest.unit))

    def __repr__(self) -> str:
        return f"<OnTimeSolution {self.probability(self.deadline):.6g} within {self.deadline:g}>"


def solve_on_time(
    ssp: SSP, deadline: float, *, delta: Any = None, max_bytes: int = MAX_BYTES, progress: Progress | None = None
) -> OnTimeSolution:
    """The largest probability of a total cost of at most t, for every t up to `deadline`, with a policy for each.

    `deadline` may be infinite. Ties are broken by the expected cost, so that a policy that is late stops hurrying. Goals need not be sure.
    `delta` rounds the costs to a grid: the policies are those for costs rounded up, and `bounds` brackets what the costs as they are allow.
    """
    deadline = check_amount(deadline, "a deadline")
    if delta is not None:
        upper, lower = (solve_on_time(model, deadline, max_bytes=max_bytes, progress=progress) for model in both_ways(ssp, delta))
        return replace(upper, latest=upper.latest.on(ssp), floor=lower)
    check_unit(ssp)
    assert ssp.cost_unit is not None
    if math.isinf(deadline):
        return on_time_until(ssp, LEFT, max_bytes, progress)
    return _on_time(ssp, math.floor(in_units(deadline, ssp.cost_unit)), deadline, max_bytes, progress)


def on_time_until(ssp: SSP, alpha: float, max_bytes: int = MAX_BYTES, progress: Progress | None = None) -> OnTimeSolution:
    """The solution for all deadlines, its table ending where no more than `alpha` beyond what must be missed is late."""
    missed = 1 - solve_arrival(ssp).bounds[1]
    units = 64
    while True:
        found = _on_time(ssp, units, math.inf, max_bytes, progress)
        if found.lateness[-1] <= max(alpha, missed + LEFT) * (1 + SAME_MASS):
            return found
        units *= 2


def _on_time(ssp: SSP, units: int, deadline: float, max_bytes: int, progress: Progress | None) -> OnTimeSolution:
    """The table up to a deadline of some units. A cost of t is on time with t left, so the budget is one unit more than the deadline."""
    arrival = solve_arrival(ssp).bounds
    missed = (max(1 - arrival[1], 0.0), max(1 - arrival[0], 0.0))
    model = fined(ssp, units)
    expected = solve_expected(model)
    if ssp.is_goal[ssp.start_index]:
        return OnTimeSolution(deadline, np.zeros(units + 1), missed, 0.0, always_neutral(ssp, expected.choices))
    layout = layout_of(model, expected, "late")
    objective = layout.objective(LATE_THEN_MEAN, limit=float(units + 1), tie=SAME_VALUE)
    table = fill_table(layout, objective, max_bytes=max_bytes, progress=progress)
    policy = budget_policy(model, table, units + 1, expected.choices)
    policy = policy if model is ssp else replace(policy, ssp=ssp, level=ssp.outcome_level)
    return OnTimeSolution(deadline, table.values[1:, 0].copy(), missed, table.error, policy)


def _surest(policy: BudgetPolicy) -> BudgetPolicy:
    """Arrive as surely as possible: the least expected number of dead ends entered."""
    return always_neutral(policy.ssp, solve_expected(counting_losses(policy.ssp)).choices)
