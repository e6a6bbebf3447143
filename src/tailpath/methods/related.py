"""Other authors' algorithms as methods: nested CVaR, Pareto sets, the surrogate with bounded cost,
and evaluation by cost layers, which find one alpha at a time, and the others when they are asked
for. And methods that go on from the policies of another: policy iteration with exact evaluation,
and the lexicographic second stage.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Any

from tailpath.evaluation.evaluate import evaluate
from tailpath.methods.method import Method, Plan
from tailpath.methods.published import ALPHA0, ATOMS
from tailpath.methods.register import find_method
from tailpath.model.ssp import SSP
from tailpath.options import Option, Progress
from tailpath.policies.policy import Policy
from tailpath.solvers.expectation import solve_expected
from tailpath.solvers.improvement import improve
from tailpath.solvers.related.layers import cvar_by_layers
from tailpath.solvers.related.nested import solve_nested_cvar
from tailpath.solvers.related.pareto import solve_by_pareto_sets
from tailpath.solvers.related.second_stage import second_stage
from tailpath.solvers.related.surrogate import solve_surrogate
from tailpath.texts import count

#: By default costs are counted up to where the risk-neutral policy ends but for this part of alpha.
FEW = 1 / 10
GOING_ON = (
    Option("base", str, "quantile", "Start from the policies of this method.", "NAME"),
    ATOMS,
    ALPHA0,
)


def _by_alpha(
    solve: Callable[[float], tuple[float, Policy]],
    alpha: float,
    note: str,
    facts: Mapping[str, Any] | None = None,
) -> Plan:
    """The plan of a method that finds the value and the policy of one alpha at a time; the first is
    found at once, which refuses what it cannot do.
    """
    solved = cache(solve)
    solved(alpha)
    return Plan(lambda a: solved(a)[1], lambda a: solved(a)[0], note=note, facts=facts or {})


def _nested(ssp: SSP, alpha: float, *, progress: Progress) -> Plan:
    """It predicts its own measure, which is not the CVaR of the total cost."""
    solved = cache(lambda a: solve_nested_cvar(ssp, a, progress))
    sweeps = solved(alpha).sweeps
    return _by_alpha(
        lambda a: (float(solved(a).value[ssp.start_index]), solved(a).policy),
        alpha,
        f"CVaR taken anew at every step, {count(sweeps, 'sweep')}",
        {"sweeps": sweeps},
    )


def _pareto(ssp: SSP, alpha: float, *, progress: Progress) -> Plan:
    return _by_alpha(
        lambda a: solve_by_pareto_sets(ssp, a, progress),
        alpha,
        "the optimum, by value iteration over Pareto sets",
    )


def _surrogate(
    ssp: SSP, alpha: float, *, progress: Progress, threshold: float | None = None
) -> Plan:
    limit = threshold
    if limit is None:
        limit = evaluate(ssp, solve_expected(ssp).policy, FEW * alpha).var(FEW * alpha)
    return _by_alpha(
        lambda a: solve_surrogate(ssp, a, limit, progress),
        alpha,
        f"costs counted up to {limit:g}",
        {"threshold": limit},
    )


def _layers(ssp: SSP, alpha: float, *, progress: Progress) -> Plan:
    """The risk-neutral policy, with the CVaR that the layers find for it."""
    policy = solve_expected(ssp).policy
    return _by_alpha(
        lambda a: (cvar_by_layers(ssp, policy, a)[0], policy),
        alpha,
        "least expected cost, evaluated by cost layers",
    )


NESTED = Method(
    name="nested",
    title="nested CVaR",
    summary="nested CVaR, for contrast: the tail is taken again at every step",
    plan=_nested,
    doing="sweep {steps}, relative change {reached:.3g}",
)
PARETO = Method(
    name="pareto",
    title="Pareto sets",
    summary="the optimum by Meggendorfer's value iteration over Pareto sets",
    plan=_pareto,
    doing="budget {steps}, best value so far {reached:.6g}",
)
SURROGATE = Method(
    name="surrogate",
    title="surrogate",
    summary="Carpin's surrogate, which counts costs up to a threshold",
    plan=_surrogate,
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
LAYERS = Method(
    name="layers",
    title="cost layers",
    summary="the least expected cost, with its CVaR by Meggendorfer's cost layers",
    plan=_layers,
)


def _going_on(
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
    plan=partial(_going_on, lambda ssp, policy, alpha: improve(ssp, policy, alpha).policy),
    options=GOING_ON,
)
SECOND_STAGE = Method(
    name="second-stage",
    title="second stage",
    summary=(
        "Rigter's lexicographic second stage on another method's policies, fed with their exact VaR"
    ),
    plan=partial(_going_on, second_stage),
    options=GOING_ON,
)
