"""The optimum by value iteration over Pareto sets as a method; it plans for one alpha at a time."""

from __future__ import annotations

from functools import cache

from tailpath.methods.method import Method, Plan
from tailpath.model.ssp import SSP
from tailpath.options import Progress
from tailpath.policies.policy import Policy
from tailpath.solvers.related.pareto import solve_by_pareto_sets


def plan(ssp: SSP, alpha: float, *, progress: Progress) -> Plan:
    @cache
    def solved(a: float) -> tuple[float, Policy]:
        return solve_by_pareto_sets(ssp, a, progress)

    solved(alpha)
    return Plan(
        lambda a: solved(a)[1],
        lambda a: solved(a)[0],
        note="the optimum, by value iteration over Pareto sets",
    )


METHOD = Method(
    name="pareto",
    title="Pareto sets",
    summary="the optimum by Meggendorfer's value iteration over Pareto sets",
    plan=plan,
    doing="budget {steps}, best value so far {reached:.6g}",
)
