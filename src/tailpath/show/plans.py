"""Plans for a model with intervals side by side: for the probabilities in the middle, for the worst
nature and for the best.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from tailpath.evaluation.band import CostBand, evaluate_band
from tailpath.model.interval import IntervalSSP
from tailpath.model.ssp import SSP
from tailpath.policies.budget import BudgetPolicy
from tailpath.solvers.exact.solver import solve_cvar_exact

NATURES = ("adversarial", "cooperative")


class PlanLine(NamedTuple):
    """What a plan for one alpha expects, None for a given policy, and what its policy may really
    cost.
    """

    alpha: float
    plan: str
    predicted: float | None
    band: CostBand


def planned_lines(
    model: IntervalSSP, alphas: Sequence[float], given: Mapping[str, Any]
) -> list[PlanLine]:
    """Every plan at every alpha: `nominal`, `adversarial`, `cooperative`, and policies that are
    given.
    """
    least, nominal = min(alphas), model.nominal()
    plain = solve_cvar_exact(nominal, least)
    found: dict[str, Any] = {
        nature: solve_cvar_exact(model, least, nature=nature) for nature in NATURES
    }
    lines = []
    for alpha in alphas:
        plans: list[tuple[str, float | None, Any]] = [
            ("nominal", plain.cvar(alpha), _on(model, nominal, plain.policy(alpha)))
        ]
        plans += [(nature, each.cvar(alpha), each.policy(alpha)) for nature, each in found.items()]
        plans += [(name, None, policy) for name, policy in given.items()]
        lines += [
            PlanLine(alpha, name, predicted, evaluate_band(model, policy, alpha))
            for name, predicted, policy in plans
        ]
    return lines


def _on(model: IntervalSSP, nominal: SSP, policy: Any) -> Any:
    """A policy for the nominal model on the model with intervals, which may have outcomes that were
    never seen.
    """
    inside = model.inside
    if nominal is inside:
        return policy
    steps = policy.budget, policy.first, policy.from_budget, policy.choice, policy.risk_neutral
    return BudgetPolicy(inside, *steps, inside.outcome_level, inside.cost_unit)
