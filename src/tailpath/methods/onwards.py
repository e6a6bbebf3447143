"""Methods that go on from the policies of another: policy iteration with exact evaluation, and the
lexicographic second stage.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial

from tailpath.methods.method import Method, Plan
from tailpath.methods.published import ALPHA0, ATOMS
from tailpath.methods.register import find_method
from tailpath.model.ssp import SSP
from tailpath.options import Option, Progress
from tailpath.policies.policy import Policy
from tailpath.solvers.improvement import improve
from tailpath.solvers.related.second_stage import second_stage

OPTIONS = (
    Option("base", str, "quantile", "Start from the policies of this method.", "NAME"),
    ATOMS,
    ALPHA0,
)


def plan(
    better: Callable[[SSP, Policy, float], Policy],
    ssp: SSP,
    alpha: float,
    *,
    progress: Progress,
    base: str = "quantile",
    atoms: int = 25,
    alpha0: float | None = None,
) -> Plan:
    """Plan by the base; its policies are bettered one alpha at a time."""

    @cache
    def bettered(a: float) -> Policy:
        return better(ssp, first.policy(a), a)

    first = find_method(base).make(ssp, alpha, {"atoms": atoms, "alpha0": alpha0}, progress)
    bettered(alpha)
    return Plan(bettered, note=f"from {base}: {first.note}", facts={"base": base})


IMPROVED = Method(
    name="improved",
    title="policy iteration",
    summary="what CVaR policy iteration makes of another method's policies",
    plan=partial(plan, lambda ssp, policy, alpha: improve(ssp, policy, alpha).policy),
    options=OPTIONS,
)
SECOND_STAGE = Method(
    name="second-stage",
    title="second stage",
    summary=(
        "Rigter's lexicographic second stage on another method's policies, fed with their exact VaR"
    ),
    plan=partial(plan, second_stage),
    options=OPTIONS,
)
