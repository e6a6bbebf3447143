"""The risk-neutral optimum as a method: one policy for every alpha, and no word about CVaR."""

from __future__ import annotations

from typing import Any

from tailpath.methods.method import GAMMA, Account, Found, Method, Plan
from tailpath.model.ssp import SSP
from tailpath.options import Progress
from tailpath.risk.measures import Mean
from tailpath.solvers.expectation import solve_expected


def plan(
    ssp: SSP, alpha: float | None, *, progress: Progress, gamma: Any = 1, comm: Any = None
) -> Plan:
    solution = solve_expected(ssp, gamma=float(gamma), comm=comm)
    return Plan(
        lambda alpha: solution.policy,
        note="least expected cost",
        gamma=float(gamma),
        solution=solution,
    )


def account(found: Found) -> Account:
    solution = found.plan.solution
    brief = account_in_parts(found)
    what, *others = brief.rows.items()
    discount = f", discounted by {solution.gamma:g}" if solution.gamma < 1 else ""
    return Account(
        {**brief.record, "gamma": solution.gamma, "solver": solution.method},
        {what[0] + discount: what[1], **dict(others), "solved by": solution.method},
    )


def account_in_parts(found: Found) -> Account:
    solution = found.plan.solution
    low, high = solution.bounds
    record = {"expected_cost": solution.cost(), "bounds": [low, high]}
    rows = {
        "least expected cost": f"{solution.cost():.10g}",
        "verified bounds": f"{low:.15g} to {high:.15g}",
    }
    return Account(record, rows)


METHOD = Method(
    name="expected",
    title="risk-neutral optimum",
    summary="the least expected cost",
    plan=plan,
    options=(GAMMA,),
    risk=False,
    account=account,
    objective=lambda alpha: Mean(),
    in_parts=account_in_parts,
)
