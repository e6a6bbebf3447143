"""Evaluation by cost layers as a method: the risk-neutral policy, with the CVaR that the layers
find for it.
"""

from __future__ import annotations

from tailpath.methods.method import Method, Plan
from tailpath.model.ssp import SSP
from tailpath.options import Progress
from tailpath.solvers.expectation import solve_expected
from tailpath.solvers.related.layers import cvar_by_layers


def plan(ssp: SSP, alpha: float, *, progress: Progress) -> Plan:
    policy = solve_expected(ssp).policy
    cvar_by_layers(ssp, policy, alpha)  # refuses what it cannot do
    return Plan(
        lambda a: policy,
        lambda a: cvar_by_layers(ssp, policy, a)[0],
        note="least expected cost, evaluated by cost layers",
    )


METHOD = Method(
    name="layers",
    title="cost layers",
    summary="the least expected cost, with its CVaR by Meggendorfer's cost layers",
    plan=plan,
)
