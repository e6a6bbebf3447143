"""The least CVaR over all policies as a method. Its account also tells its policy's mean, by exact
evaluation.
"""

from __future__ import annotations

from typing import Any

from tailpath.methods.method import Account, Found, Method, Option, Plan
from tailpath.model.ssp import SSP
from tailpath.options import Progress
from tailpath.risk.measures import CVaR
from tailpath.solvers.exact.solver import most_steps, solve_cvar_exact

DELTA = Option(
    "delta", str, None, "Round costs to multiples of D; the optimum is then bracketed.", "D"
)
OPTIONS = (
    Option(
        "lexicographic",
        bool,
        False,
        "Of all policies with the least CVaR, the one with the least expected cost.",
    ),
    Option("weight", float, 1.0, "Minimise (1 - W) * mean + W * CVaR.", "W"),
    DELTA,
    # Not the discount of other methods: a run must have a bounded number of steps.
    Option("gamma", float, 1.0, "Discount, over a bounded number of steps.", "G"),
)


def plan(
    ssp: SSP,
    alpha: float,
    *,
    progress: Progress,
    lexicographic: bool = False,
    weight: float = 1.0,
    delta: str | None = None,
    gamma: Any = 1,
    comm: Any = None,
) -> Plan:
    solution = solve_cvar_exact(
        ssp,
        alpha,
        lexicographic,
        weight=weight,
        delta=delta,
        gamma=gamma,
        progress=progress,
        comm=comm,
    )
    discounted = {} if gamma == 1 else {"gamma": float(gamma), "steps": most_steps(ssp)}
    return Plan(
        policy=solution.policy,
        predict=solution.cvar,
        bounds=solution.bounds,
        note=f"{len(solution.excess)} budgets"
        + ("" if delta is None else f", costs rounded up to {delta}"),
        facts={"weight": weight, "delta": delta, **discounted},
        solution=solution,
        model=solution.largest.ssp if discounted else None,
    )


def account(found: Found) -> Account:
    """What the policy costs, by exact evaluation; nothing where that was given up."""
    plan, alpha = found.plan, found.alpha
    costs = found.costs
    assert alpha is not None and plan.bounds is not None
    weight, bounds = plan.facts["weight"], list(plan.bounds(alpha))
    record: dict[str, Any] = {
        "alpha": alpha,
        **plan.facts,
        "bounds": bounds,
        "seconds": found.seconds,
    }
    record |= dict.fromkeys(("cvar", "var", "mean", "objective"))
    if costs is not None:
        cvar, mean = costs.cvar(alpha), costs.mean
        record |= {
            "cvar": cvar,
            "var": costs.var(alpha),
            "mean": mean,
            "objective": (1 - weight) * mean + weight * cvar,
        }
    if plan.solution.lexicographic and record["delta"] is None:
        record["plain_mean"] = plan.solution.plain_mean(alpha)
    return Account(record, _rows(record))


def account_in_parts(found: Found) -> Account:
    """The least CVaR, whose policy was not evaluated."""
    plan, alpha = found.plan, found.alpha
    assert alpha is not None and plan.bounds is not None
    low, high = plan.bounds(alpha)
    cvar = plan.predict(alpha)
    record = {
        "alpha": alpha,
        "cvar": cvar,
        "bounds": [low, high],
        "budget": plan.solution.budget(alpha),
    }
    rows = {
        "alpha": f"{alpha:.6g}",
        "least CVaR": f"{cvar:.10g}",
        "verified bounds": f"{low:.15g} to {high:.15g}",
    }
    return Account(record, rows)


def _rows(record: dict[str, Any]) -> dict[str, str]:
    low, high = record["bounds"]
    exact, weight = record["delta"] is None, record["weight"]
    rows = {"alpha": f"{record['alpha']:.6g}"}
    if not exact:
        rows["optimum between"] = (
            f"{low:.10g} and {high:.10g}, with costs rounded to {record['delta']}"
        )
    wanted = {
        f"{1 - weight:g} * mean + {weight:g} * CVaR": "objective" if weight != 1 else None,
        "least CVaR" if exact and weight == 1 else "CVaR": "cvar",
        "VaR": "var",
        "expected cost": "mean",
        "  without --lexicographic": "plain_mean",
    }
    rows |= {
        what: f"{record[key]:.10g}"
        for what, key in wanted.items()
        if key is not None and record.get(key) is not None
    }
    if exact:
        rows["verified bounds"] = f"{low:.15g} to {high:.15g}"
    return {**rows, "time": f"{record['seconds']:.3g} s"}


METHOD = Method(
    name="exact",
    title="optimum",
    summary="the least CVaR over all policies",
    plan=plan,
    options=OPTIONS,
    shown="optimum",
    doing="budget {steps}, best value so far {reached:.6g}",
    account=account,
    objective=CVaR,
    in_parts=account_in_parts,
)
