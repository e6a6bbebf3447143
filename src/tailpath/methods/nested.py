"""Nested CVaR as a method; it plans for one alpha at a time, and predicts its own measure, which is
not the CVaR of the total cost.
"""

from __future__ import annotations

from functools import cache

from tailpath.methods.method import Method, Plan
from tailpath.model.ssp import SSP
from tailpath.options import Progress
from tailpath.solvers.related.nested import NestedSolution, solve_nested_cvar


def plan(ssp: SSP, alpha: float, *, progress: Progress) -> Plan:
    @cache
    def solved(a: float) -> NestedSolution:
        return solve_nested_cvar(ssp, a, progress)

    found = solved(alpha)
    return Plan(
        lambda a: solved(a).policy,
        lambda a: float(solved(a).value[ssp.start_index]),
        note=f"CVaR taken anew at every step, {found.sweeps} sweeps",
        facts={"sweeps": found.sweeps},
    )


METHOD = Method(
    name="nested",
    title="nested CVaR",
    summary="nested CVaR, for contrast: the tail is taken again at every step",
    plan=plan,
    doing="sweep {steps}, relative change {reached:.3g}",
)
