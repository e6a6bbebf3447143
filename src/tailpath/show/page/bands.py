"""What the page of a model with intervals shows, as plain data: plans side by side, for the
probabilities in the middle, for the worst nature and for the best; both sides in one sentence, the
bands of the three plans, and which probabilities hurt most.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from tailpath.analysis.reachability import NATURES
from tailpath.evaluation.band import CostBand, evaluate_band
from tailpath.methods.comparison import Update
from tailpath.model.interval import IntervalSSP
from tailpath.model.ssp import SSP
from tailpath.policies.budget import BudgetPolicy
from tailpath.solvers.exact.solver import solve_cvar_exact
from tailpath.texts import name as name_in_words

#: Outcomes and choices listed, open choices for which the model is solved again, points of a curve.
MOST, AGAIN = 8, 40
POINTS = 200


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


def band_data(
    model: IntervalSSP, title: str, alphas: Sequence[float], progress: Update
) -> dict[str, Any]:
    """All that `bands.js` needs of a model of which something is open."""
    progress("plans for the worst and the best nature")
    alphas = sorted(alphas, reverse=True)
    lines = planned_lines(model, alphas, {})
    best: Any = solve_cvar_exact(model, alphas[-1])
    last = [line for line in lines if line.alpha == alphas[-1]]
    safe = next(line.band for line in last if line.plan == "adversarial")
    words = [best.words(alpha) for alpha in alphas]
    data = None
    if model.n_uncertain <= AGAIN:
        progress("where more data would help")
        data = [
            (name_in_words(each.state), name_in_words(each.action), each.cvar, each.gain)
            for each in best.more_data(alphas[-1])[:MOST]
        ]
    confidence = (
        ""
        if model.confidence is None
        else f", which hold with {100 * model.confidence:g} % confidence"
    )
    return {
        "name": title,
        "lead": f"{model.n_states} states, {model.n_choices} choices, of which {model.n_uncertain}"
        f" have intervals{confidence}.",
        "alphas": alphas,
        "words": [f"{text[0].upper()}{text[1:]}." for text in words],
        "plans": [
            (each.plan, each.alpha, each.predicted, *each.band.cvar(each.alpha), *each.band.mean)
            for each in lines
        ],
        "tail": _distributions(last),
        "curve": _curves(lines),
        "harms": _harms(safe),
        "data": data,
    }


def _harms(band: CostBand) -> list[tuple[Any, ...]] | None:
    """The outcomes whose probabilities hurt most; None where some nature keeps runs from
    arriving.
    """
    if not all(map(math.isfinite, band.mean)):
        return None
    return [
        (*map(name_in_words, (o.state, o.action, o.next_state)), o.low, o.high, o.worst, o.harm)
        for o in band.nature[:MOST]
    ]


def _distributions(lines: Sequence[PlanLine]) -> dict[str, Any]:
    """The distribution function of every plan as a band: the worst nature at each cost below, the
    best above.
    """
    ends = [end for line in lines for end in line.band.var(line.alpha) if math.isfinite(end)]
    unit = float(lines[0].band.model.cost_unit or 1)
    last = 1.1 * max(ends, default=64 * unit) + unit
    costs = np.unique(np.floor(np.linspace(0.0, last / unit, POINTS))) * unit
    return {line.plan: [(cost, *line.band.cdf(cost)) for cost in costs.tolist()] for line in lines}


def _curves(lines: Sequence[PlanLine]) -> dict[str, Any]:
    """CVaR of every plan over alpha, as a band."""
    found: dict[str, Any] = {}
    for line in lines:
        found.setdefault(line.plan, []).append((line.alpha, *line.band.cvar(line.alpha)))
    return found
