"""Exact evaluation of any policy: the distribution of its total cost, VaR and CVaR (ForPECVaR).

`evaluate` unrolls the policy, finds V_mean and V_min of the chain, and lets an engine search forward until the cheapest 1 - alpha of the
probability has arrived:

| engine | for |
| --- | --- |
| `lattice` | costs with a common unit: compiled, integer levels; a `BudgetPolicy` is followed level by level without building the product |
| `queue` | everything: any costs, gamma < 1, policies whose memory does not end |

`auto` takes `lattice` where it applies. Both hand over the head and the open nodes; `result.summarise` makes the result of either. Three kinds
of evaluation have a module of their own: `budget` (the policies of the exact solver), `discounted` (gamma < 1) and `lazy` (histories); `mixture`
adds up the members of a mixture.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from tailpath.errors import BudgetExceededError, OptionError
from tailpath.evaluation.budget import evaluate_budget
from tailpath.evaluation.discounted import evaluate_discounted
from tailpath.evaluation.distribution import CostDistribution
from tailpath.evaluation.free_cycles import without_free_cycles
from tailpath.evaluation.heuristics import Heuristic, own_heuristic
from tailpath.evaluation.lattice import LatticeSearch, lay_out
from tailpath.evaluation.lazy import evaluate_lazily
from tailpath.evaluation.mixture import mixed_distribution
from tailpath.evaluation.queue import ChainWalk, QueueSearch
from tailpath.evaluation.request import MOST_BYTES, End, Request
from tailpath.evaluation.result import SearchResult, completed, nothing_found, summarise
from tailpath.evaluation.variance import standard_deviation
from tailpath.evaluation.watch import Watch
from tailpath.model.ssp import SSP, Name
from tailpath.options import Progress, check_alpha, check_gamma
from tailpath.policies.budget import BudgetPolicy
from tailpath.policies.chain import CostChain
from tailpath.policies.given import as_policy
from tailpath.policies.kinds import HistoryPolicy, Policy
from tailpath.policies.mixed import MixedPolicy
from tailpath.policies.unrolling import unroll

__all__ = ["evaluate"]

#: Expanded pairs before an evaluation gives up: some minutes of either engine.
MOST_NODES = {"lattice": 20_000_000_000, "queue": 20_000_000}
#: Beyond so many levels of budget the rounding of every level adds up, and a policy that reaches few pairs is unrolled.
MOST_LEVELS = 10_000


def evaluate(
    ssp: SSP,
    policy: Any,
    alpha: float,
    *,
    engine: str = "auto",
    heuristic: Any = "min",
    gamma: float = 1.0,
    start: Name | None = None,
    max_nodes: int | None = None,
    max_bytes: int = MOST_BYTES,
    progress: Progress | None = None,
) -> CostDistribution:
    """The exact distribution of the total cost of a policy, good for every tail mass from `alpha` up.

    `policy` is anything that `tailpath.policy` takes: a policy, a solution, an array of actions, a mapping, a function.
    `engine` is `auto`, `lattice` or `queue`. `heuristic` is `min` (V_min, expands nothing beyond VaR), `zero`, or your own lower bound on the cost
    to go, by state: a mapping, a function, or an array in index order. It is checked to be consistent along the policy, or refused, and searched
    with by the queue engine. `start` is the state to start from, the model's own by default. With `gamma` < 1 costs at stage t are multiplied by
    gamma^t. `max_nodes` limits the expanded (node, cost) pairs and `max_bytes` the memory: beyond them an error carries the bounds reached so
    far.
    `progress(expanded, arrived)` is called now and then with the number of expanded pairs and the probability that has arrived. Ctrl-C in a long
    search raises `tailpath.errors.EvaluationInterrupted`, a KeyboardInterrupt that carries the bounds reached so far.

    If the policy may miss the goal, the mean and CVaR are infinite, `unreached` is the probability of that, and `stuck` names a state.
    """
    alpha = check_alpha(alpha)
    policy = as_policy(ssp, policy, alpha=alpha)
    if start is not None:
        ssp = replace(ssp, start_index=ssp.state_index(start))
    heuristic = heuristic if isinstance(heuristic, str) else own_heuristic(ssp, heuristic)
    chosen = _engine(ssp, policy, engine, heuristic, gamma)
    limit = MOST_NODES[chosen] if max_nodes is None else min(max_nodes, 2**62)
    found = evaluate_as(ssp, policy, chosen, Request(alpha, heuristic, float(gamma), limit, Watch(progress), max_bytes))
    found._become({"gamma": float(gamma), "ssp": ssp, "policy": policy})
    return found


def evaluate_as(ssp: SSP, policy: Policy, engine: str, request: Request) -> CostDistribution:
    """`evaluate` with everything decided."""
    if isinstance(policy, MixedPolicy):
        members = policy.members
        return mixed_distribution(
            policy.weights,
            lambda i, alpha: evaluate_as(ssp, members[i], engine, replace(request, alpha=alpha, deviation=True)),
            request.alpha,
        )
    if isinstance(policy, HistoryPolicy):
        return evaluate_lazily(ssp, policy, request)
    by_budget = policy if isinstance(policy, BudgetPolicy) and engine == "lattice" else None
    if by_budget is not None and by_budget.budget <= MOST_LEVELS:
        short = evaluate_budget(ssp, by_budget, request)
        if short is not None:
            return short
    try:
        chain = unroll(ssp, policy, max_nodes=request.tuning.pairs)
    except BudgetExceededError:
        short = None if by_budget is None else evaluate_budget(ssp, by_budget, request)
        if short is not None:
            return short
        # Perhaps a memory that does not end: it is followed as far as its probability matters.
        return evaluate_lazily(ssp, policy, replace(request, limit=min(request.limit, MOST_NODES["queue"])))
    chain.refuse_free_traps()
    if request.gamma < 1:
        return evaluate_discounted(chain, request)
    searched, cycle_error = without_free_cycles(chain)
    search = _search_levels if engine == "lattice" else _search_costs
    found, end = search(searched, cycle_error, request)
    return completed(_of_chain(chain, found, request, engine), end, request)


def _engine(ssp: SSP, policy: Policy, engine: str, heuristic: Heuristic, gamma: float) -> str:
    if engine not in ("auto", "lattice", "queue"):
        raise OptionError(f"unknown engine {engine!r}; use 'auto', 'lattice' or 'queue'")
    own = not isinstance(heuristic, str)
    if not own and heuristic not in ("min", "zero"):
        raise OptionError(f"unknown heuristic {heuristic!r}; use 'min', 'zero', or give your own by state")
    check_gamma(gamma)
    if own and (gamma < 1 or isinstance(policy, HistoryPolicy)):
        raise OptionError("a heuristic of your own needs gamma = 1 and a policy whose memory ends")
    reasons = [
        (gamma < 1, "gamma is below 1"),
        (ssp.cost_unit is None, "the costs have no common unit"),
        (isinstance(policy, HistoryPolicy), "a history does not end"),
        (own, "the heuristic is your own"),
    ]
    against = [why for holds, why in reasons if holds]
    if engine == "lattice" and against:
        raise OptionError(f"the lattice engine cannot run here: {against[0]}; use the queue engine")
    if engine == "auto":
        return "queue" if against else "lattice"
    return engine


def _search_levels(chain: CostChain, cycle_error: float, request: Request) -> tuple[SearchResult, End]:
    lattice = lay_out(chain, request.heuristic)
    start = int(lattice.place[chain.start])
    if start < 0:
        return nothing_found(), End.FINISHED
    search = LatticeSearch(lattice, start, request)
    end = search.run(request.watch)
    assert chain.unit is not None
    return search.result(chain.unit, cycle_error), end


def _search_costs(chain: CostChain, cycle_error: float, request: Request) -> tuple[SearchResult, End]:
    search = QueueSearch(ChainWalk(chain, request.heuristic, 1.0), request)
    end = search.run(request.watch)
    return search.result(chain.unit, cycle_error), end


def _of_chain(chain: CostChain, found: SearchResult, request: Request, engine: str) -> CostDistribution:
    rest, start = chain.expected_cost, chain.start
    low, mean, high = (float(values[start]) if start < chain.n else 0.0 for values in (rest.lower, rest.value, rest.upper))
    unreached = 0.0 if chain.all_arrive or start == chain.n else float(chain.unreached.value[start])
    deviation = standard_deviation(chain) if request.deviation and unreached == 0 else None
    return summarise(
        found,
        rest,
        alpha=request.alpha,
        mean=(mean, low, high),
        deviation=deviation if unreached == 0 else np.inf,
        unreached=unreached,
        engine=engine,
        stuck=chain.label(int(np.flatnonzero(~chain.arrives)[0])) if unreached > 0 else "",
    )
