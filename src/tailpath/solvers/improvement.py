"""CVaR policy iteration: make any policy better, a use the paper names for its exact evaluator.

evaluate the policy exactly -> its VaR is the budget -> the best policy for that budget ->
again, until nothing improves.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from tailpath.dp.budget_model import EXCESS
from tailpath.errors import ModelError
from tailpath.evaluation.distribution import CostDistribution
from tailpath.evaluation.evaluate import evaluate
from tailpath.model.border import prepare
from tailpath.model.ssp import SSP
from tailpath.options import check_alpha, takes_alpha, takes_model
from tailpath.policies.budget import BudgetPolicy
from tailpath.policies.given import as_policy
from tailpath.policies.policy import Policy
from tailpath.solvers.exact.grid import on_model
from tailpath.solvers.exact.layout import layout_of
from tailpath.solvers.exact.pairs import fill_smaller
from tailpath.solvers.exact.table import always_risk_neutral, budget_policy
from tailpath.solvers.expectation import ExpectedSolution, solve_expected

#: A new policy must be better by this much, relatively: well above what rounding can feign.
GAIN = 1e-12


@dataclass(frozen=True, eq=False)
class Improvement:
    """What `improve` found.

    Attributes
    ----------
    policy : Policy
        The best policy found.
    costs : CostDistribution
        The distribution of its cost.
    history : tuple of float
        The CVaR of every policy on the way, the one given first.

    Examples
    --------
    >>> tp.improve(ssp, {"home": {"road": 0.5, "train": 0.5}}, 0.1).history
    (45.0, 30.0)
    """

    policy: Policy
    costs: CostDistribution
    history: tuple[float, ...]


@takes_model
@takes_alpha
def improve(ssp: SSP, policy: Any, alpha: float) -> Improvement:
    """Improve a policy's CVaR until neither its budget nor its decisions can be bettered alone.

    Any policy will do, also one that may never arrive. The result may be a local optimum; it is
    never worse than `policy`, which is returned itself where nothing better was found.

    Parameters
    ----------
    ssp : SSP
        The model; its costs need a common unit.
    policy : Policy, or anything that `tailpath.policy` takes
        The policy to begin with.
    alpha : float in (0, 1]
        The mass of the worst tail.

    Returns
    -------
    Improvement
        `policy`, its `costs`, and the `history` of CVaRs.

    Raises
    ------
    ModelError
        If the costs have no common unit.
    GoalUnreachableError
        If the start cannot surely reach a goal.
    PolicyError
        If the policy does not fit the model.

    Notes
    -----
    With w = VaR_alpha(Z) of the policy, CVaR_alpha(Z) = w + E[(Z - w)+] / alpha. The policy with
    the least E[(Z - w)+] for this budget w has no larger CVaR, and its own VaR may be a still
    better budget; and so on. `solve_cvar_exact` looks at all budgets.

    Examples
    --------
    A local optimum: with a budget of 30 the train is best, though the least CVaR is 28.

    >>> tp.improve(ssp, {"home": "train"}, 0.5).history
    (30.0,)
    """
    alpha = check_alpha(alpha)
    policy = as_policy(ssp, policy, alpha=alpha)
    border = prepare(ssp)
    better = _improve(border.model, policy, alpha)
    history = tuple(map(border.cost, better.history))
    return Improvement(on_model(better.policy, ssp), border.restore(better.costs), history)


def _improve(ssp: SSP, policy: Policy, alpha: float) -> Improvement:
    """`improve` on a model with costs of 0 or more."""
    if ssp.cost_unit is None:
        raise ModelError("the costs have no common unit; `improve` counts budgets in units")
    expected = solve_expected(ssp)
    costs = evaluate(ssp, policy, alpha)
    history = [costs.cvar(alpha)]
    while True:
        var = costs.var(alpha)
        # A policy that is not sure to arrive may have no VaR; the risk-neutral one is a fresh
        # start.
        budget = round(var / float(ssp.cost_unit)) if math.isfinite(var) else 0
        candidate = best_for_budget(ssp, budget, expected)
        found = evaluate(ssp, candidate, alpha)
        if not found.cvar(alpha) < history[-1] * (1 - GAIN):
            return Improvement(policy, costs, tuple(history))
        policy, costs = candidate, found
        history.append(costs.cvar(alpha))


def best_for_budget(ssp: SSP, budget: int, expected: ExpectedSolution) -> BudgetPolicy:
    """The policy with the least E[(Z - budget)+], the budget in cost units."""
    if budget == 0 or ssp.is_goal[ssp.start_index]:
        return always_risk_neutral(ssp, expected.choices).with_budget(budget)
    layout = layout_of(ssp)
    table = fill_smaller(layout, layout.objective(EXCESS, limit=float(budget)))
    return budget_policy(ssp, layout, table.changes, budget, expected.choices)
