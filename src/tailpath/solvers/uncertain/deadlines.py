"""Deadlines on models with intervals: the recursion of `objectives/on_time.py`, against or with
nature.
"""

from __future__ import annotations

from tailpath.analysis.nature import almost_sure_under_nature, nature_called
from tailpath.analysis.reachability import reachable_states
from tailpath.analysis.robust import MAX_BYTES, Robust, robust
from tailpath.model.interval import IntervalSSP
from tailpath.model.ssp import FloatArray
from tailpath.policies.budget import BudgetPolicy
from tailpath.solvers.uncertain.cvar import robust_budget_policy


def robust_with_penalty(
    model: IntervalSSP, nature: str, units: int, max_bytes: int = MAX_BYTES
) -> Robust:
    """The problem in which all may be risked: where arriving is not sure, runs may end at a cost
    beyond so many units.
    """
    side = nature_called(nature)
    almost_sure = bool(
        almost_sure_under_nature(model, side)[0][reachable_states(model.inside)].all()
    )
    return robust(model, side, 0 if almost_sure else units + 2, max_bytes=max_bytes)


def robust_lateness(
    model: IntervalSSP, units: int, nature: str, max_bytes: int
) -> tuple[FloatArray, float, BudgetPolicy]:
    """The lateness for deadlines up to some units, its relative error for every unit, and the
    policy for the last deadline.

    Where choices are equally late the one of least expected cost is taken if it is among them.
    """
    problem = robust_with_penalty(model, nature, units, max_bytes)
    found = problem.late(units + 1)
    return (
        found.values[1:, 0].copy(),
        found.error,
        robust_budget_policy(problem, found, units + 1).by_deadline(),
    )
