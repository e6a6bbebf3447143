"""The surrogate with bounded cost as a method; it plans for one alpha at a time."""

from __future__ import annotations

from functools import cache

from tailpath.evaluation.evaluate import evaluate
from tailpath.methods.method import Method, Option, Plan
from tailpath.model.ssp import SSP
from tailpath.options import Progress
from tailpath.policies.policy import Policy
from tailpath.solvers.expectation import solve_expected
from tailpath.solvers.related.surrogate import solve_surrogate

#: By default costs are counted up to where the risk-neutral policy ends but for this part of alpha.
FEW = 1 / 10


def plan(ssp: SSP, alpha: float, *, progress: Progress, threshold: float | None = None) -> Plan:
    @cache
    def solved(a: float) -> tuple[float, Policy]:
        return solve_surrogate(ssp, a, limit, progress)

    limit = (
        evaluate(ssp, solve_expected(ssp).policy, FEW * alpha).var(FEW * alpha)
        if threshold is None
        else threshold
    )
    solved(alpha)
    return Plan(
        lambda a: solved(a)[1],
        lambda a: solved(a)[0],
        note=f"costs counted up to {limit:g}",
        facts={"threshold": limit},
    )


METHOD = Method(
    name="surrogate",
    title="surrogate",
    summary="Carpin's surrogate, which counts costs up to a threshold",
    plan=plan,
    options=(
        Option(
            "threshold",
            float,
            None,
            "Count costs up to D.  [default: VaR of the risk-neutral policy at alpha / 10]",
            "D",
        ),
    ),
    doing="threshold of the tail {steps}, best value so far {reached:.6g}",
)
