"""On time: the largest probability of arriving within a deadline, for every deadline at once.

    P(s, t) = max_a sum P(s'|s,a) P(s', t - c),
    P(goal, t) = 1 for t >= 0,
    P(., t) = 0 for t < 0

What is computed is the probability of being late, 1 - P, so that a lateness of 1e-12 keeps its
digits. The remaining time is all that a policy has to remember. Choices that are as good, within
`SAME_VALUE`, are told apart by the expected cost: a policy that is late, or cannot be late any
more, stops hurrying. VaR*_alpha = min { t : late(start, t) <= alpha } is the least VaR of any
policy.

At alpha = 1 every cost at which some run can arrive would do, however improbable: the VaR is the
least of them.

Goals need not be sure (`dead_ends.py`). The table ends where nobody can be late any more, or, with
an infinite deadline, where the chance of arriving later is negligible; `probability(inf)` is the
largest probability of arriving at all.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from tailpath.analysis.nature import nature_called
from tailpath.analysis.reachability import almost_sure_states
from tailpath.distributed.fill import way_of
from tailpath.distributed.job import Job
from tailpath.distributed.part import Part, plainly
from tailpath.distributed.ranks import together
from tailpath.dp.budget_model import LATE, MEAN
from tailpath.errors import LimitExceededError, OptionError
from tailpath.kernels.rounding import SAME_MASS, SAME_VALUE, THRICE
from tailpath.kernels.shortest_paths import dijkstra_tree
from tailpath.model.cost_units import as_fraction, in_units
from tailpath.model.interval import IntervalSSP
from tailpath.model.potential import exact_cost
from tailpath.model.records import Record, found_once
from tailpath.model.ssp import SSP, FloatArray
from tailpath.options import Progress, check_alpha, check_amount, takes_alpha, takes_model
from tailpath.policies.budget import BudgetPolicy
from tailpath.solvers.arrival import solve_arrival
from tailpath.solvers.exact.grid import both_ways
from tailpath.solvers.exact.layout import layout_of, require_unit
from tailpath.solvers.exact.parts import PartTable
from tailpath.solvers.exact.table import (
    MAX_BYTES,
    BudgetTable,
    always_risk_neutral,
    budget_policy,
    counted,
    fill_table,
)
from tailpath.solvers.expectation import solve_expected
from tailpath.solvers.objectives.dead_ends import counting_losses, fined
from tailpath.solvers.uncertain.deadlines import robust_lateness

LATE_THEN_MEAN = np.stack([LATE, MEAN])
#: With an infinite deadline the table ends when the chance of arriving later has fallen to this.
LEFT = 1e-12
#: With any other, when so few are late that it cannot be told from nobody.
NOBODY = 1e-250
#: Tables of so many levels are made at once; longer ones only if they are needed, twice as long
#: each time.
SHORT, LONG = 64, 4096
#: What the values of a level take, those at the start alone.
LEVEL_BYTES = 48


@takes_alpha
@dataclass(frozen=True, eq=False, repr=False)
class OnTimeSolution(Record):
    """The largest probability of arriving within every deadline up to `deadline`.

    With `delta`, all values are those of the costs rounded up, and the unit is delta.

    Attributes
    ----------
    deadline : float
        The largest deadline that is answered.
    lateness : array of float64, shape (n,)
        The least P(Z > t) for t = 0, 1, ... units.
    missed : tuple of float
        Bounds on the least probability of never arriving.
    error : float
        A bound on the relative error of the lateness, for every unit of t.
    latest : BudgetPolicy
        The policy for the last deadline; its steps are those of all others.
    floor : OnTimeSolution or None
        Whose lateness is a lower bound: with `delta`, the solution for the costs rounded down;
        where ties gave away more than rounding, the same with ties as they fall.
    """

    deadline: float
    lateness: FloatArray
    missed: tuple[float, float]
    error: float
    latest: BudgetPolicy
    floor: OnTimeSolution | None = None

    def probability(self, t: float) -> float:
        """The largest probability of a total cost of at most `t`.

        Parameters
        ----------
        t : float
            A deadline, `self.deadline` at most.

        Returns
        -------
        float
            1 - `late(t)`.

        Raises
        ------
        OptionError
            If `t` is later than the table answers.
        """
        return 1.0 - self.late(t)

    def late(self, t: float) -> float:
        """The least probability of a total cost above `t`, or of never arriving.

        Parameters
        ----------
        t : float
            A deadline, `self.deadline` at most.

        Returns
        -------
        float
            With all its digits, however small.

        Raises
        ------
        OptionError
            If `t` is later than the table answers.

        Examples
        --------
        >>> tp.solve_on_time(ssp, 60).late(20)
        0.1
        """
        level = self._level(t)
        if level < 0 or math.isinf(t):
            return 1.0 if level < 0 else self.missed[0]
        return float(self.lateness[min(level, len(self.lateness) - 1)])

    def bounds(self, t: float) -> tuple[float, float]:
        """Proved bounds on `probability(t)`.

        Parameters
        ----------
        t : float
            A deadline, `self.deadline` at most.

        Returns
        -------
        tuple (low, high)
            With `delta`, they enclose the largest probability for the costs as they are.
        """
        low, high = self.late_bounds(t)
        return max(1.0 - high - 2e-16, 0.0), min(1.0 - low + 2e-16, 1.0) if low < 1 else 0.0

    def late_bounds(self, t: float) -> tuple[float, float]:
        """Proved bounds on `late(t)`, which keep the digits of a small one.

        Parameters
        ----------
        t : float
            A deadline, `self.deadline` at most.

        Returns
        -------
        tuple (low, high)
            With `delta`, they enclose the least probability for the costs as they are.
        """
        if self.floor is not None:
            return self.floor.late_bounds(t)[0], replace(self, floor=None).late_bounds(t)[1]
        level = self._level(t)
        if level < 0 or math.isinf(t):
            return (1.0, 1.0) if level < 0 else self.missed
        known = min(level, len(self.lateness) - 1)
        value, error = float(self.lateness[known]), min((known + 2) * self.error + 4e-16, 1.0)
        high = min(value / (1 - error) if error < 1 else 1.0, 1.0) + 1e-250
        # Beyond the table less may be late, but no less than never arrives.
        return self.missed[0] if level > known else value * (1 - error), high

    def var(self, alpha: float) -> float:
        """The least VaR of any policy: the least t with a lateness of at most `alpha`.

        Parameters
        ----------
        alpha : float in (0, 1]
            The mass of the worst tail.

        Returns
        -------
        float
            Infinite if no t will do.

        Raises
        ------
        OptionError
            If it lies beyond the deadline.
        """
        a = check_alpha(alpha)
        enough = np.flatnonzero(self.lateness <= a * (1 + SAME_MASS))
        if self.missed[0] > a * (1 + SAME_MASS):
            return math.inf
        if enough.size:
            level = int(enough[0])
            if self.lateness[level] > 1 - SAME_MASS:  # a chance that cannot be told from none
                nearest = cheapest_run(counted(self.latest))[0]
                return math.inf if math.isinf(nearest) else self._cost(max(level, int(nearest)))
            return self._cost(level)
        last = self._cost(len(self.lateness) - 1)
        raise OptionError(
            f"the VaR at {a:g} lies beyond the deadline {last:g}; solve with a later one, or solve"
            f" for var({a:g})"
        )

    def policy(self, t: float | None = None) -> BudgetPolicy:
        """The policy that arrives within `t` with the largest probability.

        Parameters
        ----------
        t : float, optional
            A deadline, `self.deadline` at most, which is the default; for ever (infinite) it is the
            surest policy.

        Returns
        -------
        BudgetPolicy
            All of them share one table.
        """
        t = self.deadline if t is None else t
        if math.isinf(t) and self.missed[0] < 1:
            return _surest(self.latest)
        level = self._level(t)
        return self.latest.with_budget(
            0 if math.isinf(t) else max(min(level, len(self.lateness) - 1) + 1, 0)
        )

    def cheapest(self) -> BudgetPolicy:
        """A policy that may arrive at the least cost at which any run can, however improbable.

        Returns
        -------
        BudgetPolicy
            Elsewhere it is risk-neutral.
        """
        choices = self.latest.risk_neutral.copy()
        model = counted(self.latest)
        for choice in cheapest_run(model)[1]:
            choices[model.choice_state[choice]] = choice
        return self.latest.spent(choices)

    def _level(self, t: float) -> int:
        """The deadline `t` in units, rounded down."""
        if math.isnan(t) or t > self.deadline:
            raise OptionError(
                f"the table was made for deadlines up to {self.deadline:g}; solve with"
                f" deadline={t:g}"
            )
        if math.isinf(t):
            return len(self.lateness)
        ssp, unit = self.latest.ssp, self.latest.unit
        return math.floor(
            (exact_cost(t, ssp) - ssp.shift) / as_fraction(unit)
            if ssp.signed
            else in_units(t, unit)
        )

    def _cost(self, level: int) -> float:
        """A number of units as a cost of the model."""
        return float(level * self.latest.unit + self.latest.ssp.shift)

    def __repr__(self) -> str:
        return f"<OnTimeSolution {self.probability(self.deadline):.6g} within {self.deadline:g}>"


@takes_model
def solve_on_time(
    ssp: SSP | IntervalSSP | Part,
    deadline: float,
    *,
    delta: Any = None,
    max_bytes: int = MAX_BYTES,
    progress: Progress | None = None,
    nature: str = "adversarial",
    comm: Any = None,
) -> OnTimeSolution:
    """Find the largest probability of a total cost of at most t, for every t up to `deadline`.

    Ties between choices go to the least expected cost: a policy that is late, or cannot be late
    any more, stops hurrying. Goals need not be sure.

    Parameters
    ----------
    ssp : SSP, IntervalSSP or Part
        The model; or, with `comm`, the part of it that this rank has.
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
        Of a model with intervals: who picks the probabilities inside them, against us or for us.
    comm : communicator of mpi4py, or Job, optional
        The ranks over which the table is spread (`docs/scale.md`).

    Returns
    -------
    OnTimeSolution
        `probability(t)`, `late(t)` and `policy(t)` for every t up to `deadline`, and the least VaR
        of any policy, `var(alpha)`.

    Raises
    ------
    OptionError
        If the deadline is negative or no number.
    ModelError
        If the costs have no common unit and no `delta` is given.
    LimitExceededError
        If `max_bytes` do not suffice.

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
    if isinstance(ssp, Part):
        plainly(delta=delta is not None, an_infinite_deadline=math.isinf(deadline))
        job = Job.of(comm)
        return together(
            job.comm, partial(_in_parts, ssp, deadline, job, max_bytes, progress), str(ssp)
        )
    if isinstance(ssp, IntervalSSP):
        nature_called(nature)
        if not ssp.is_certain:
            return _against(ssp, deadline, nature, delta, max_bytes)
        ssp = ssp.inside
    deadline = check_amount(deadline, "a deadline", signed=ssp.signed)
    how: Any = {"max_bytes": max_bytes, "progress": progress}
    if ssp.signed:
        finite = math.isfinite(deadline)
        more = max(float(exact_cost(deadline, ssp) - ssp.shift), 0.0) if finite else deadline
        return _on(ssp, solve_on_time(ssp.reduced, more, delta=delta, **how), deadline)
    if delta is not None:
        upper, lower = (
            solve_on_time(model, deadline, comm=comm, **how) for model in both_ways(ssp, delta)
        )
        return replace(upper, latest=upper.latest.on(ssp), floor=lower)
    require_unit(ssp)
    assert ssp.cost_unit is not None
    how["way"] = way_of(comm)
    if math.isinf(deadline):
        return _until(ssp, math.inf, deadline, LEFT + _missed(ssp)[1], **how)
    return _until(ssp, math.floor(in_units(deadline, ssp.cost_unit)), deadline, NOBODY, **how)


def _on(ssp: SSP, found: OnTimeSolution, deadline: float) -> OnTimeSolution:
    """What was found for the reduced model, as that of the model with costs as given."""
    floor = None if found.floor is None else _on(ssp, found.floor, deadline)
    return replace(found, deadline=deadline, latest=found.latest.on(ssp), floor=floor)


def _against(
    model: IntervalSSP, deadline: float, nature: str, delta: Any, max_bytes: int
) -> OnTimeSolution:
    """`solve_on_time` of a model with intervals."""
    deadline = check_amount(deadline, "a deadline")
    if delta is not None or math.isinf(deadline):
        raise OptionError(
            "a model with intervals needs a finite deadline, and costs with a common unit in place"
            " of delta"
        )
    require_unit(model.inside)
    assert model.cost_unit is not None
    units = math.floor(in_units(deadline, model.cost_unit))
    _check_levels(units, max_bytes)
    lateness, error, policy = robust_lateness(model, units, nature, max_bytes)
    return OnTimeSolution(deadline, lateness, (0.0, 1.0), error, policy)


def _in_parts(
    part: Part, deadline: float, job: Job, max_bytes: int, progress: Progress | None
) -> OnTimeSolution:
    """`solve_on_time` of a model in parts, which has no dead ends: nobody misses the
    goal for ever.
    """
    units = math.floor(in_units(check_amount(deadline, "a deadline"), part.unit))
    table = PartTable.of(part, job, max_bytes, progress)
    almost_sure = table.expected.nearest.astype(np.int64)
    filled = partial(table.filled, almost_sure, limit=float(units + 1))
    tied = filled(LATE_THEN_MEAN, tie=SAME_VALUE)
    policy: Any = table.policy(tied, units + 1)
    return _solution(deadline, (0.0, 0.0), tied, policy, partial(filled, LATE))


def on_time_until(ssp: SSP, alpha: float) -> OnTimeSolution:
    """The solution for all deadlines, its table ending where no more than `alpha` is late, if that
    can be.
    """
    least, most = _missed(ssp)
    return _until(ssp, math.inf, math.inf, alpha if alpha >= least else most + LEFT)


@found_once
def _missed(ssp: SSP) -> tuple[float, float]:
    """Bounds on the least probability of never arriving."""
    low, high = solve_arrival(ssp).bounds
    # From 1/2 on the difference from 1 is exact, and so it is at 0.
    least = 1 - high if high >= 0.5 or high == 0 else math.nextafter(1 - high, 0.0)
    most = 1 - low if low >= 0.5 else min(math.nextafter(1 - low, 1.0), 1.0)
    return max(least, 0.0), max(most, 0.0)


def _check_levels(levels: int, max_bytes: int) -> None:
    """Refuse more levels than the memory allowed can take."""
    if LEVEL_BYTES * levels > max_bytes:
        raise LimitExceededError(
            f"{levels} cost levels need more than {max_bytes / 2**30:.3g} GiB of memory",
            (0.0, math.inf),
        )


def _until(
    ssp: SSP, units: float, deadline: float, late: float, max_bytes: int = MAX_BYTES, **how: Any
) -> OnTimeSolution:
    """The table up to a deadline of some units, or until no more than `late` are late, or can be
    prevented from it.
    """
    missed = _missed(ssp)
    if ssp.is_goal[ssp.start_index]:
        policy = always_risk_neutral(ssp, solve_expected(ssp).choices)
        return OnTimeSolution(deadline, np.zeros(1), missed, 0.0, policy)
    some = SHORT if math.isinf(units) else LONG
    while True:
        last = int(min(some, units))
        _check_levels(last, max_bytes)
        # A cost of t is on time with t left, so the budget is one unit more than the deadline.
        model, limit = fined(ssp, last), float(last + 1)
        layout = layout_of(model, "late")
        filled: Any = partial(fill_table, layout, max_bytes=max_bytes, **how)
        table = filled(layout.objective(LATE_THEN_MEAN, limit=limit, tie=SAME_VALUE))
        if last == units or table.values[-1, 0] <= max(late, missed[1]) * (1 + SAME_MASS):
            break
        some *= 2
    policy = budget_policy(model, table, last + 1, solve_expected(model).choices, deadline=True)
    policy = policy if model is ssp else replace(policy, ssp=ssp, level=ssp.outcome_level)
    least = partial(filled, layout.objective(LATE, limit=limit))
    return _solution(deadline, missed, table, policy, least)


def _solution(
    deadline: float,
    missed: tuple[float, float],
    table: BudgetTable,
    policy: BudgetPolicy,
    least: Callable[[], BudgetTable],
) -> OnTimeSolution:
    """The solution of a table that breaks ties. A lateness takes four operations less than the
    rounding of a step has room for; where a tie gave away more, `least` fills the table without.
    """
    lateness = table.values[1:, 0].copy()
    found = OnTimeSolution(deadline, lateness, missed, table.error, policy)
    if table.given_away <= THRICE:
        return found
    table = least()
    floor = replace(found, lateness=table.values[1:, 0].copy(), error=table.error)
    return replace(found, floor=floor)


def cheapest_run(ssp: SSP) -> tuple[float, list[int]]:
    """The least cost at which any run arrives, in units, and the choices along it; infinite if
    there is none.
    """
    rows, level = ssp.by_state, ssp.outcome_level
    least = np.full(ssp.n_states, np.inf)
    order, before = np.full((2, ssp.n_states), -1, dtype=np.int32)
    edges = rows.row_start, rows.target, level.astype(np.float64)
    dijkstra_tree(*edges, ssp.start_index, least, order, before)
    at_goals = np.where(ssp.is_goal, least, np.inf)
    state = int(np.argmin(at_goals))
    cost, choices = float(at_goals[state]), []
    while state != ssp.start_index and cost < np.inf:
        between = np.flatnonzero((rows.source == before[state]) & (rows.target == state))
        choices.append(int(ssp.outcome_choice[between[np.argmin(level[between])]]))
        state = int(before[state])
    return cost, choices


def _surest(policy: BudgetPolicy) -> BudgetPolicy:
    """Arrive as surely as possible: at the least mean if that is sure, else with the least expected
    number of dead ends entered.
    """
    ssp = policy.ssp
    almost_sure = almost_sure_states(ssp)[0][ssp.start_index]
    return policy.spent(solve_expected(ssp if almost_sure else counting_losses(ssp)).choices)
