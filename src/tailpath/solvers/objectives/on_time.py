"""On time: the largest probability of arriving within a deadline, for every deadline at once.

Choices that are as good, within `SAME_VALUE`, are told apart by the expected cost. VaR*_alpha = min
{ t : late(start, t) <= alpha } is the least VaR of any policy. Goals need not be certain
(`losses.py`). The table ends where nobody can be late any more, or, with an infinite deadline,
where the chance of arriving later is negligible; `probability(inf)` is the largest probability of
arriving at all.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tailpath.analysis.reachability import nature_called
from tailpath.analysis.robust import robust_with_penalty
from tailpath.analysis.tables import MAX_BYTES, fill_table, too_many_levels
from tailpath.certify.budgets import Later, TableSides
from tailpath.dp.budget_model import LATE, MEAN
from tailpath.errors import OptionError
from tailpath.kernels.rounding import SAME_MASS, SAME_VALUE
from tailpath.model.border import Border, prepare, require_unit, rounded_both_ways
from tailpath.model.cost_units import in_units
from tailpath.model.interval import IntervalSSP
from tailpath.model.records import found_once
from tailpath.model.ssp import SSP
from tailpath.options import Progress, check_amount, takes_model
from tailpath.solvers.arrival import solve_arrival
from tailpath.solvers.exact.layout import always_risk_neutral, budget_policy, layout_of
from tailpath.solvers.expectation import solve_expected
from tailpath.solvers.objectives.losses import with_penalty
from tailpath.solvers.objectives.on_time_solution import OnTimeSolution

LATE_THEN_MEAN = np.stack([LATE, MEAN])
#: With an infinite deadline the table ends when the chance of arriving later has fallen to this.
NEGLIGIBLE = 1e-12
#: With any other, when so few are late that it cannot be told from nobody.
NOBODY_LATE = 1e-250
#: Tables of so many levels are made at once; longer ones only if they are needed, twice as long
#: each time.
SHORT, LONG = 64, 4096
#: What the values of a level take, those at the start alone.
LEVEL_BYTES = 48


@takes_model
def solve_on_time(
    ssp: Any,
    deadline: float,
    *,
    delta: Any = None,
    max_bytes: int = MAX_BYTES,
    progress: Progress | None = None,
    nature: str = "adversarial",
) -> OnTimeSolution:
    """Find the largest probability of a total cost of at most t, for every t up to `deadline`.

    Ties between choices go to the least expected cost: a policy that is late, or cannot be late
    any more, stops hurrying. Goals need not be sure.

    Parameters
    ----------
    ssp : SSP or IntervalSSP
        The model.
    deadline : float
        The largest t that is answered; may be infinite, and below 0 only where some cost is.
    delta : number, optional
        Rounds the costs to multiples of it, for models whose costs have no common unit: the
        policies are those for costs rounded up, and `bounds` brackets what the costs as they are
        allow.
    max_bytes : int
        The most memory to take, in bytes.
    progress : callable, optional
        `progress(budget, value)` is called now and then with the level reached, in units.
    nature : {"adversarial", "cooperative"}
        For a model with intervals: whether nature picks the probabilities against us or for us.

    Returns
    -------
    OnTimeSolution
        `probability(t)`, `late(t)` and `policy(t)` for every t up to `deadline`, and the least VaR
        of any policy, `var(alpha)`.

    Raises
    ------
    OptionError
        If the deadline is negative or not a number.
    ModelError
        If the costs have no common unit and no `delta` is given.
    LimitExceededError
        If `max_bytes` is not enough.

    Notes
    -----
    The recursion is ::

        P(s, t) = max_a sum P(s'|s,a) P(s', t - c)
        P(goal, t) = 1 for t >= 0,   P(., t) = 0 for t < 0

    What is computed is the lateness 1 - P, so that one of 1e-12 keeps its digits. The time left is
    all that a policy has to remember.

    Examples
    --------
    >>> on_time = tp.solve_on_time(ssp, 60)
    >>> on_time.probability(20), on_time.probability(30)
    (0.9, 1.0)
    >>> on_time.var(0.05)
    30.0
    """
    border = prepare(ssp, delta=delta)
    nature_called(nature)
    if border.uncertain:
        return _with_intervals(border.given, deadline, nature, delta, max_bytes)
    deadline = check_amount(deadline, "a deadline", signed=border.moves)
    how: Any = {"max_bytes": max_bytes, "progress": progress}
    found, below = _until(border.solved, border, deadline, **how), None
    if delta is not None:
        below = _until(rounded_both_ways(border.model, delta)[1], border, deadline, **how)
    answer: OnTimeSolution = border.restore(found, below)
    return answer


def _until(ssp: SSP, border: Border, deadline: float, **how: Any) -> OnTimeSolution:
    """The table up to a deadline, which is a cost as given."""
    require_unit(ssp)
    if math.isinf(deadline):
        return _solve_until(ssp, math.inf, deadline, NEGLIGIBLE + _missed(ssp)[1], **how)
    units = max(math.floor(border.units(deadline, ssp.cost_unit)), 0)
    return _solve_until(ssp, units, deadline, NOBODY_LATE, **how)


def _with_intervals(
    model: IntervalSSP, deadline: float, nature: str, delta: Any, max_bytes: int
) -> OnTimeSolution:
    deadline = check_amount(deadline, "a deadline")
    if delta is not None or math.isinf(deadline):
        raise OptionError(
            "a model with intervals needs a finite deadline, and costs with a common unit in place"
            " of delta"
        )
    units = math.floor(in_units(deadline, require_unit(model)))
    _check_levels(units, max_bytes)
    problem = robust_with_penalty(model, nature, units, max_bytes)
    table = problem.late(units + 1)
    known, late = table.share(), table.values[:, 0]
    sides = TableSides(known.below(late), known.above(late)[:, None])
    # Where choices are equally late the one of least expected cost is taken, if it is among them.
    policy = budget_policy(problem.layout, table.changes, units + 1, deadline=True)
    proof, never = Later(lambda: sides), (0.0, 1.0)
    return OnTimeSolution(deadline, late[1:].copy(), never, policy, proof, nature=nature)


def on_time_until(ssp: SSP, alpha: float) -> OnTimeSolution:
    """The solution for all deadlines up to where no more than `alpha` is late, if that can be."""
    least, most = _missed(ssp)
    return _solve_until(ssp, math.inf, math.inf, alpha if alpha >= least else most + NEGLIGIBLE)


@found_once
def _missed(ssp: SSP) -> tuple[float, float]:
    """Bounds on the least probability of never arriving."""
    low, high = solve_arrival(ssp).bounds
    # From 1/2 on the difference from 1 is exact, and so it is at 0.
    least = 1 - high if high >= 0.5 or high == 0 else math.nextafter(1 - high, 0.0)
    most = 1 - low if low >= 0.5 else min(math.nextafter(1 - low, 1.0), 1.0)
    return max(least, 0.0), max(most, 0.0)


def _check_levels(levels: int, max_bytes: int) -> None:
    if LEVEL_BYTES * levels > max_bytes:
        raise too_many_levels(levels, max_bytes)


def _solve_until(
    ssp: SSP, units: float, deadline: float, late: float, max_bytes: int = MAX_BYTES, **how: Any
) -> OnTimeSolution:
    """The table up to a deadline, or until no more than `late` are late or can be prevented from
    it.
    """
    missed = _missed(ssp)
    if ssp.is_goal[ssp.start_index]:
        policy = always_risk_neutral(ssp, solve_expected(ssp).choices)
        never = TableSides(np.array([1.0, 0.0]), np.array([[1.0], [0.0]]))
        return OnTimeSolution(deadline, np.zeros(1), missed, policy, Later(lambda: never))
    length = SHORT if math.isinf(units) else LONG
    while True:
        last = int(min(length, units))
        _check_levels(last, max_bytes)
        # A cost of t is on time with t left, so the budget is one unit more than the deadline.
        layout = layout_of(with_penalty(ssp, last), "late")
        objective = layout.objective(LATE_THEN_MEAN, limit=float(last + 1), tie=SAME_VALUE)
        table = fill_table(layout, objective, max_bytes=max_bytes, **how)
        if last == units or table.values[-1, 0] <= max(late, missed[1]) * (1 + SAME_MASS):
            break
        length *= 2
    policy = budget_policy(layout, table.changes, last + 1, deadline=True, ssp=ssp)
    lateness = table.values[1:, 0].copy()
    return OnTimeSolution(deadline, lateness, missed, policy, Later(table.sides))
