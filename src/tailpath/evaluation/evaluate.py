"""Exact evaluation of any policy: the distribution of its total cost, VaR and CVaR (ForPECVaR).

`evaluate` unrolls the policy, finds V_mean and V_min of the chain, and lets an engine search
forward until the cheapest 1 - alpha of the probability has arrived (`docs/evaluation.md`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from typing import Any

from tailpath.errors import EvaluationInterrupted, LimitExceededError, OptionError
from tailpath.evaluation.band import evaluate_band
from tailpath.evaluation.budget import budget_engine, without_spare_budget
from tailpath.evaluation.discount import DiscountEngine
from tailpath.evaluation.distribution import CostDistribution
from tailpath.evaluation.engine import (
    MAX_BYTES,
    MAX_NODES,
    NOT_HELD,
    Engine,
    Request,
    SearchMonitor,
)
from tailpath.evaluation.lattice import LatticeEngine, chain_space
from tailpath.evaluation.mixtures import mixed_distribution, reaching
from tailpath.evaluation.queue import LazyEngine, QueueEngine
from tailpath.model.border import Border
from tailpath.model.ssp import SSP, Name
from tailpath.options import Progress, check_alpha, takes_alpha, takes_model
from tailpath.policies.chain import without_zero_cost_cycles
from tailpath.policies.given import as_policy
from tailpath.policies.policy import Policy, known
from tailpath.policies.unrolling import unroll

#: Masses are followed down to a little less.
LEAST_ALPHA = 1e-290
#: Beyond so many levels of budget the rounding of every level adds up, and a policy that reaches
#: few pairs is unrolled.
MAX_LEVELS = 10_000


@takes_model
@takes_alpha
def evaluate(
    ssp: Any,
    policy: Any,
    alpha: float,
    *,
    engine: str = "auto",
    heuristic: str = "min",
    gamma: float = 1.0,
    start: Name | None = None,
    max_nodes: int | None = None,
    max_bytes: int = MAX_BYTES,
    progress: Progress | None = None,
) -> Any:
    """Find the exact distribution of the total cost of a policy (the paper's ForPECVaR).

    One call answers every tail mass from `alpha` up.

    Parameters
    ----------
    ssp : SSP or IntervalSSP
        The model.
    policy : Policy, or anything that `tailpath.policy` takes
        A policy, a solution, `{state: action}`, an array with the action of every state, a matrix
        of probabilities, a function of the state or of the history, an agent. A solution that has a
        policy for every alpha gives the one for `alpha`.
    alpha : float in (0, 1]
        The smallest tail mass for which the result has VaR and CVaR. A smaller one takes longer.
    engine : {"auto", "lattice", "queue"}
        `lattice` counts costs in whole units, compiled; `queue` takes everything: costs without a
        common unit, `gamma` < 1, infinite memories. `auto` takes `lattice` where it applies.
    heuristic : {"min", "zero"}
        What orders the search: `min`, the least cost to go, expands nothing beyond VaR, and `zero`
        orders by cost alone.
    gamma : float in (0, 1]
        The discount: the costs of step t, counted from 0, are multiplied by gamma^t.
    start : state, optional
        The state to start from, by name; by default the start of the model.
    max_nodes : int, optional
        The most (node, cost) pairs to expand.
    max_bytes : int
        The most memory to take, in bytes; by default 4 GiB.
    progress : callable, optional
        `progress(expanded, arrived)` is called now and then with the number of expanded pairs and
        the probability that has arrived.

    Returns
    -------
    CostDistribution or CostBand
        `var(a)`, `cvar(a)` and `bounds(a)` for every a >= `alpha`, the mean, and the probability of
        every cost up to VaR. If the policy may miss the goal, the mean and CVaR are infinite,
        `unreached` is the probability of that, and `stuck` names a state.
        On a model with intervals a `CostBand`: what every nature can make of it.

    Raises
    ------
    OptionError
        If an argument lies outside its range, or the engine cannot run here.
    PolicyError
        If the policy does not fit the model, reaches a state where it has no action, or ends in a
        cycle that costs nothing.
    ModelError
        If the model has no state `start`.
    LimitExceededError
        If `max_nodes` or `max_bytes` is not enough; its `bounds` enclose the CVaR.
    EvaluationInterrupted
        After Ctrl-C: a KeyboardInterrupt whose `bounds` enclose the CVaR.

    See Also
    --------
    simulate : A sample of total costs instead.
    compare : Policies and methods compared with the optimum.

    Examples
    --------
    >>> ssp = tp.SSP.from_outcomes([("home", "road", "work", 0.9, 20),
    ...                             ("home", "road", "work", 0.1, 60),
    ...                             ("home", "train", "work", 1, 30)], "home", ["work"])
    >>> costs = tp.evaluate(ssp, {"home": "road"}, 0.05)
    >>> costs
    <CostDistribution alpha>=0.05: mean 24, VaR 60, CVaR 60>
    >>> costs.cvar(0.5)
    28.0
    """
    border = Border(ssp).starting(start)
    if not isinstance(heuristic, str) or heuristic not in ("min", "zero"):
        raise OptionError(f"unknown heuristic {heuristic!r:.60}; use 'min' or 'zero'")
    if border.uncertain:
        if engine != "auto" or heuristic != "min" or gamma != 1:
            raise OptionError(
                "a model with intervals has an engine of its own, and takes no `engine`,"
                " `heuristic` or `gamma`"
            )
        return evaluate_band(border.given, policy, alpha, max_nodes=max_nodes)
    alpha = check_alpha(alpha)
    if alpha < LEAST_ALPHA:
        raise OptionError(f"alpha = {alpha!r} is too small; the least is {LEAST_ALPHA:g}")
    policy = as_policy(border.given, policy, alpha=alpha)
    if border.moves and gamma < 1:
        raise OptionError(
            "a discount needs costs of 0 or more, and some are negative; within(ssp, n,"
            " gamma=gamma) takes both"
        )
    chosen, reason = _engine(border.model, policy, engine, gamma)
    limit = MAX_NODES[chosen if gamma == 1 else "discount"] if max_nodes is None else max_nodes
    return evaluate_request(
        Request(
            border,
            policy,
            chosen,
            alpha,
            heuristic=heuristic,
            gamma=float(gamma),
            limit=min(limit, 2**62),
            monitor=SearchMonitor(progress),
            max_bytes=max_bytes,
            reason=reason,
        )
    )


def evaluate_inside(ssp: SSP, policy: Any, alpha: float, **options: Any) -> CostDistribution:
    """`evaluate` inside another verb: an interrupt is a plain one, since what is known of these
    costs does not answer what was asked for.
    """
    try:
        found: CostDistribution = evaluate(ssp, policy, alpha, **options)
    except EvaluationInterrupted:
        raise KeyboardInterrupt from None
    return found


def evaluate_for(
    ssp: SSP, policy: Any, measures: Iterable[Any], max_nodes: int | None = None
) -> CostDistribution:
    """The distribution of the total cost, known as far as all the measures ask. Where one asks for
    the probability of a certain cost the tail is cut finer until it is reached.
    """
    wanted = list(measures)
    alpha = min([1.0, *(measure.finest_alpha for measure in wanted)])
    cost = max([-math.inf, *(measure.farthest_cost for measure in wanted)])
    again = partial(evaluate_inside, ssp, policy, max_nodes=max_nodes)
    return reaching(again(alpha=alpha), cost, lambda finer: again(alpha=finer))


def evaluate_request(request: Request) -> CostDistribution:
    """`evaluate` once its arguments are checked; a mixture is evaluated policy by policy."""
    drawn = known(request.policy).drawn
    if not drawn:
        return engine_for(request).evaluated()
    return mixed_distribution(
        request,
        [weight for weight, _ in drawn],
        lambda i, alpha: evaluate_request(replace(request, policy=drawn[i][1], alpha=alpha)),
    )


def engine_for(request: Request) -> Engine:
    """Choose how to evaluate: by budget, lazily, or on the chain that the policy unrolls to."""
    policy = request.policy
    if known(policy).endless:
        return LazyEngine(request)
    by_budget = None
    if known(policy).by_budget and request.engine == "lattice":
        policy = without_spare_budget(known(policy).by_budget)
        if policy.budget > 0:  # else no decision depends on it
            by_budget, why = budget_engine(request, policy)
            if by_budget and policy.budget <= MAX_LEVELS:
                return by_budget
            why = why or f"the budget has more than {MAX_LEVELS} units"
            request = replace(request, reason=f"unrolled: {why}")
    try:
        chain = unroll(request.ssp, policy, max_nodes=request.pairs)
    except LimitExceededError:
        if by_budget:
            return by_budget
        # Perhaps its memory is infinite: it is followed for as long as its probability matters.
        limit = min(request.limit, MAX_NODES["queue"])
        why = f"followed lazily: more than {request.pairs} pairs of state and memory"
        reason = f"{request.reason}; {why}" if request.reason else why
        return LazyEngine(replace(request, limit=limit, engine="queue", reason=reason))
    chain.refuse_zero_cost_traps()
    if request.gamma < 1:
        return DiscountEngine(request, chain)
    searched = without_zero_cost_cycles(chain) if chain.has_zero_cost_edges else chain
    if request.engine == "queue":
        return QueueEngine(request, chain, searched)
    return LatticeEngine(request, chain, chain_space(searched, request.heuristic), chain.start)


def deviation_of(found: CostDistribution) -> float:
    """The standard deviation of a cost that was evaluated without it."""
    assert found.ssp is not None, "what is pickled has its deviation or its policy"
    if not math.isfinite(found.mean):
        return math.inf
    mean = found.totals.mean
    how: Any = {"gamma": found.gamma, "monitor": NOT_HELD}
    request = Request(Border(found.ssp), found.policy, found.engine, 1.0, **how)
    drawn = known(found.policy).drawn
    if drawn:
        members = [evaluate_request(replace(request, policy=member)) for _, member in drawn]
        squares = [costs.std**2 + (costs.totals.mean - mean) ** 2 for costs in members]
        return math.sqrt(sum(weight * square for (weight, _), square in zip(drawn, squares)))
    engine = engine_for(request)
    return math.sqrt(engine.variance(engine.search(0), mean))


def _engine(ssp: SSP, policy: Policy, engine: str, gamma: float) -> tuple[str, str]:
    """The engine to use and, if it is not the fastest one, why."""
    if engine not in ("auto", "lattice", "queue"):
        raise OptionError(f"unknown engine {engine!r}; use 'auto', 'lattice' or 'queue'")
    check_alpha(gamma, "gamma")
    reasons = [
        (gamma < 1, "gamma is below 1"),
        (ssp.cost_unit is None, "the costs have no common unit"),
        (known(policy).endless, "the policy remembers the whole history"),
        (engine == "queue", "the queue engine was requested"),
    ]
    reason = next((why for holds, why in reasons if holds), "")
    if engine == "lattice" and reason:
        raise OptionError(f"the lattice engine cannot run here: {reason}; use the queue engine")
    return ("queue" if reason else "lattice"), reason
