"""The risk-neutral optimum as a method: one policy for every alpha, and no word about CVaR."""

from __future__ import annotations

from typing import Any

from tailpath.methods.method import GAMMA, Account, Found, Method, Plan, bounds_row
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
    solution, brief = found.plan.solution, account_in_parts(found)
    record = {**brief.record, "gamma": solution.gamma, "solver": solution.method}
    return Account(record, {**brief.rows, "solved by": solution.method})


def account_in_parts(found: Found) -> Account:
    solution, gamma = found.plan.solution, found.plan.gamma
    discount = f", discounted by {gamma:g}" if gamma < 1 else ""
    rows = {f"least expected cost{discount}": f"{solution.cost():.10g}"}
    record = {"expected_cost": solution.cost(), "bounds": list(solution.bounds)}
    return Account(record, {**rows, **bounds_row(solution.bounds)})


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
