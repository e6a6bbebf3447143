"""The optima as methods: the least CVaR over all policies, whose account includes the mean of its
policy, by exact evaluation; and the least expected cost, one policy for every alpha.
"""

from __future__ import annotations

from typing import Any

from tailpath.methods.method import GAMMA, Account, Method, Plan, bounds_row
from tailpath.model.border import most_steps
from tailpath.model.ssp import SSP
from tailpath.options import Option, Progress
from tailpath.risk.measures import CVaR, Mean
from tailpath.solvers.exact.solver import solve_cvar_exact
from tailpath.solvers.expectation import solve_expected
from tailpath.texts import count

LEXICOGRAPHIC = "Find the policy with the least expected cost among those with the least CVaR."
ROUND = "Round costs to multiples of D; the optimum is then bracketed."
DELTA = Option("delta", str, None, ROUND, "D")
OPTIONS = (
    Option("lexicographic", bool, False, LEXICOGRAPHIC),
    DELTA,
    # Not the discount of other methods: a run must have a bounded number of steps.
    Option("gamma", float, 1.0, "Discount, over a bounded number of steps.", "G"),
)


def plan_cvar(
    ssp: SSP,
    alpha: float,
    *,
    delta: str | None = None,
    gamma: Any = 1,
    **options: Any,
) -> Plan:
    solution = solve_cvar_exact(ssp, alpha, delta=delta, gamma=gamma, **options)
    discounted = {} if gamma == 1 else {"gamma": float(gamma), "steps": most_steps(ssp)}
    return Plan(
        policy=solution.policy,
        predict=solution.cvar,
        bounds=solution.bounds,
        note=count(len(solution.excess), "budget")
        + ("" if delta is None else f", costs rounded up to {delta}"),
        facts={"delta": delta, **discounted},
        solution=solution,
        model=solution.largest.ssp if discounted else None,
    )


def account_of_cvar(plan: Plan, alpha: float, costs: Any, seconds: float) -> Account:
    """What the policy costs, by exact evaluation; nothing where that was given up."""
    assert plan.bounds is not None
    (low, high), delta = plan.bounds(alpha), plan.facts["delta"]
    values: dict[str, float | None] = dict.fromkeys(("cvar", "var", "mean"))
    if costs is not None:
        # The policy costs at most what it does with costs rounded up.
        high = min(high, costs.bounds(alpha)[1]) if delta is not None else high
        values = {"cvar": costs.cvar(alpha), "var": costs.var(alpha), "mean": costs.mean}
    least = "least CVaR" if delta is None else "CVaR"
    names = {"cvar": least, "var": "VaR", "mean": "expected cost"}
    rows = {names[key]: f"{value:.10g}" for key, value in values.items() if value is not None}
    between = bounds_row((low, high), delta)
    rows = {**rows, **between} if delta is None else {**between, **rows}
    record = {"alpha": alpha, **plan.facts, "bounds": [low, high], "seconds": seconds, **values}
    return record, {"alpha": f"{alpha:.6g}", **rows, "time": f"{seconds:.3g} s"}


EXACT = Method(
    name="exact",
    title="optimum",
    summary="the least CVaR over all policies",
    plan=plan_cvar,
    options=OPTIONS,
    shown="optimum",
    doing="budget {steps}, best value so far {reached:.6g}",
    account=account_of_cvar,
    objective=CVaR,
)


def plan_mean(ssp: SSP, alpha: float | None, *, progress: Progress, gamma: Any = 1) -> Plan:
    solution = solve_expected(ssp, gamma=float(gamma))
    return Plan(
        lambda alpha: solution.policy,
        note="least expected cost",
        gamma=float(gamma),
        solution=solution,
    )


def account_of_mean(plan: Plan, alpha: Any, costs: Any, seconds: float) -> Account:
    solution, gamma = plan.solution, plan.gamma
    discount = f", discounted by {gamma:g}" if gamma < 1 else ""
    record = {
        "expected_cost": solution.cost(),
        "bounds": list(solution.bounds),
        "gamma": gamma,
        "solver": solution.method,
    }
    rows = {
        f"least expected cost{discount}": f"{solution.cost():.10g}",
        **bounds_row(solution.bounds),
        "solved by": solution.method,
    }
    return record, rows


EXPECTED = Method(
    name="expected",
    title="risk-neutral optimum",
    summary="the least expected cost",
    plan=plan_mean,
    options=(GAMMA,),
    risk=False,
    account=account_of_mean,
    objective=lambda alpha: Mean(),
)
