"""Exact evaluation of any policy: the distribution of its total cost, VaR and CVaR (ForPECVaR).

`evaluate` unrolls the policy, finds V_mean and V_min of the chain, and lets an engine search forward until the cheapest 1 - alpha of the
probability has arrived:

| engine | for |
| --- | --- |
| `lattice` | costs with a common unit: compiled, integer levels; a `BudgetPolicy` is followed level by level without building the product |
| `queue` | everything: any costs, gamma < 1, policies whose memory does not end |

`auto` takes `lattice` where it applies. Both hand over the head and the open nodes; `search.summarise` makes the result of either.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from tailpath.analysis.absorption import Bracket, expected_total
from tailpath.errors import OptionError, PolicyError
from tailpath.evaluation.budget import evaluate_budget
from tailpath.evaluation.distribution import CostDistribution
from tailpath.evaluation.free_cycles import without_free_cycles
from tailpath.evaluation.lattice import LatticeSearch, in_costs, lay_out
from tailpath.evaluation.queue import ChainWalk, LazyWalk, QueueSearch
from tailpath.evaluation.result import SearchResult, chain_deviation, completed, summarise
from tailpath.evaluation.watch import Watch
from tailpath.model.ssp import SSP, FloatArray
from tailpath.options import Progress, check_alpha, check_gamma
from tailpath.policies.chain import CostChain, unroll
from tailpath.policies.given import as_policy
from tailpath.policies.kinds import BudgetPolicy, HistoryPolicy, Policy

__all__ = ["evaluate"]

#: Expanded pairs before an evaluation gives up: some minutes of either engine.
MOST_NODES = {"lattice": 20_000_000_000, "queue": 20_000_000}
#: A lazily expanded policy is followed until this share of alpha is open.
LAZY_REST = 1e-14


def evaluate(
    ssp: SSP,
    policy: Any,
    alpha: float,
    *,
    engine: str = "auto",
    heuristic: str = "min",
    gamma: float = 1.0,
    max_nodes: int | None = None,
    progress: Progress | None = None,
) -> CostDistribution:
    """The exact distribution of the total cost of a policy, good for every tail mass from `alpha` up.

    `policy` is anything that `tailpath.policy` takes: a policy, a solution, an array of actions, a mapping, a function.
    `engine` is `auto`, `lattice` or `queue`; `heuristic` is `min` (V_min, expands nothing beyond VaR) or `zero`. With `gamma` < 1 costs at
    stage t are multiplied by gamma^t. `max_nodes` limits the expanded (node, cost) pairs: beyond it an error carries the bounds reached
    so far.
    `progress(expanded, arrived)` is called now and then with the number of expanded pairs and the probability that has arrived. Ctrl-C raises
    `tailpath.errors.EvaluationInterrupted`, a KeyboardInterrupt that carries the bounds reached so far.

    If the policy may miss the goal, the mean and CVaR are infinite, `unreached` is the probability of that, and `stuck` names a state.
    """
    alpha = check_alpha(alpha)
    policy = as_policy(ssp, policy, alpha=alpha)
    chosen = _engine(ssp, policy, engine, heuristic, gamma)
    limit = MOST_NODES[chosen] if max_nodes is None else max_nodes
    watch = Watch(progress)
    if isinstance(policy, HistoryPolicy):
        return _evaluate_lazily(ssp, policy, alpha, heuristic, gamma, limit, watch)
    if isinstance(policy, BudgetPolicy) and chosen == "lattice":
        found = evaluate_budget(ssp, policy, alpha, limit, watch)
        if found is not None:
            return found
    chain = unroll(ssp, policy)
    chain.refuse_free_traps()
    if gamma < 1:
        return _evaluate_discounted(chain, alpha, heuristic, gamma, limit, watch)
    searched, cycle_error = without_free_cycles(chain)
    if chosen == "lattice":
        found_nodes, finished = _run_lattice(searched, alpha, heuristic, cycle_error, limit, watch)
    else:
        queue = QueueSearch(ChainWalk(searched, heuristic, 1.0), alpha, 1.0)
        finished = queue.run(limit, watch)
        found_nodes = _queue_result(queue, searched, cycle_error)
    return completed(_of_chain(chain, found_nodes, alpha, chosen), finished, alpha, limit, watch)


def _engine(ssp: SSP, policy: Policy, engine: str, heuristic: str, gamma: float) -> str:
    if engine not in ("auto", "lattice", "queue"):
        raise OptionError(f"unknown engine {engine!r}; use 'auto', 'lattice' or 'queue'")
    if heuristic not in ("min", "zero"):
        raise OptionError(f"unknown heuristic {heuristic!r}; use 'min' or 'zero'")
    check_gamma(gamma)
    reasons = [
        (gamma < 1, "gamma is below 1"),
        (ssp.cost_unit is None, "the costs have no common unit"),
        (isinstance(policy, HistoryPolicy), "a history does not end"),
    ]
    against = [why for holds, why in reasons if holds]
    if engine == "lattice" and against:
        raise OptionError(f"the lattice engine cannot run here: {against[0]}; use the queue engine")
    if engine == "auto":
        return "queue" if against else "lattice"
    return engine


def _run_lattice(chain: CostChain, alpha: float, heuristic: str, cycle_error: float, limit: int, watch: Watch) -> tuple[SearchResult, bool]:
    lattice = lay_out(chain, heuristic)
    start = lattice.place[chain.start]
    if start < 0:
        nothing = np.empty(0)
        return SearchResult(nothing, nothing, nothing, nothing, np.empty(0, dtype=np.int64), 1.0, 0.0, 0), True
    search = LatticeSearch(lattice, alpha, int(start))
    finished = search.run(limit, watch)
    assert chain.unit is not None
    return search.result(chain.unit, cycle_error), finished


def _queue_result(queue: QueueSearch, chain: CostChain | None, cycle_error: float, unit: Any = None) -> SearchResult:
    """The queue's dictionaries as arrays; chain nodes keep their numbers, lazily met ones are numbered as listed."""
    unit = unit if chain is None else chain.unit
    whole = unit is not None and queue.gamma == 1
    items = sorted(queue.head.items())
    nodes = queue.open_nodes()

    def costs(values: list[Any]) -> Any:
        return in_costs(np.array(values, dtype=np.int64), unit) if whole else np.array(values, dtype=np.float64)

    longest = queue.relative_error() * 2.0**53
    return SearchResult(
        costs=costs([cost for cost, _ in items]),
        probabilities=np.array([p for _, p in items], dtype=np.float64),
        open_cost=costs([node.cost for node in nodes]),
        open_mass=np.array([node.probability for node in nodes], dtype=np.float64),
        open_node=np.array([node.x for node in nodes], dtype=np.int64) if chain is not None else np.arange(len(nodes)),
        lost=queue.lost,
        relative_error=queue.relative_error() + longest * cycle_error,
        expanded=queue.expanded,
    )


def _of_chain(chain: CostChain, found: SearchResult, alpha: float, engine: str) -> CostDistribution:
    rest = _with_goal(chain.expected_cost)
    at_start = chain.start
    unreached = float(np.append(chain.unreached.value, 0.0)[at_start])
    stuck = chain.label(int(np.flatnonzero(~chain.arrives)[0])) if unreached > 0 else ""
    return summarise(
        found,
        rest,
        alpha=alpha,
        mean=(float(rest.value[at_start]), float(rest.lower[at_start]), float(rest.upper[at_start])),
        unreached=unreached,
        engine=engine,
        deviation=lambda: chain_deviation(chain),
        stuck=stuck,
    )


def _with_goal(bracket: Bracket) -> Bracket:
    """Per-node values with one entry more for the goal, where nothing is left to pay."""
    return Bracket(np.append(bracket.value, 0.0), np.append(bracket.lower, 0.0), np.append(bracket.upper, 0.0), bracket.method)


def _evaluate_discounted(chain: CostChain, alpha: float, heuristic: str, gamma: float, limit: int, watch: Watch) -> CostDistribution:
    """gamma < 1: absorption at rate 1 - gamma per step makes every expected total finite; open nodes count with gamma^t."""
    missed = float(np.append(chain.unreached.value, 0.0)[chain.start])
    if missed > alpha:
        raise PolicyError(f"the policy misses the goal with probability {missed:.6g}, more than alpha; its discounted costs never end")
    queue = QueueSearch(ChainWalk(chain, heuristic, gamma), alpha, gamma)
    finished = queue.run(limit, watch)
    rest = _with_goal(_discounted_total(chain, chain.cost, gamma))
    found = _queue_result(queue, chain, 0.0)
    weight = np.array([gamma**node.stage for node in queue.open_nodes()], dtype=np.float64)
    low, value, high = (weight * v[found.open_node] for v in (rest.lower, rest.value, rest.upper))
    scaled = Bracket(value, low, high, rest.method)
    renumbered = replace(found, open_node=np.arange(len(weight)))
    start = chain.start
    result = summarise(
        renumbered,
        scaled,
        alpha=alpha,
        mean=(float(rest.value[start]), float(rest.lower[start]), float(rest.upper[start])),
        unreached=0.0,
        engine="queue",
        deviation=lambda: _discounted_deviation(chain, rest.value, gamma),
    )
    return completed(result, finished, alpha, limit, watch)


def _discounted_total(chain: CostChain, price: FloatArray, gamma: float) -> Bracket:
    """The expected discounted sum of a price per arrow."""
    rate = np.bincount(chain.source, weights=chain.probability * price, minlength=chain.n).astype(np.float64)
    distance = np.where(chain.arrives, chain.least_cost[:-1], 0.0)
    return expected_total(chain.row_start, chain.target, gamma * chain.probability, rate, distance, np.full(chain.n, 1 - gamma))


def _discounted_deviation(chain: CostChain, value: FloatArray, gamma: float) -> float:
    """As without discount, the variance is a sum over the steps of (c + gamma V(x') - V(x))^2, each discounted twice."""
    surprise = (chain.cost + gamma * value[chain.target] - value[chain.source]) ** 2
    return float(np.sqrt(np.append(_discounted_total(chain, surprise, gamma**2).value, 0.0)[chain.start]))


def _evaluate_lazily(ssp: SSP, policy: Policy, alpha: float, heuristic: str, gamma: float, limit: int, watch: Watch) -> CostDistribution:
    """A policy whose memory need not end has no V_mean to complete open nodes with, so the search goes on until almost nothing is open.

    What is open then counts with its least cost; `bounds` is exact if nothing is open and otherwise has no upper end.
    """
    walk = LazyWalk(ssp, policy, heuristic, gamma)
    queue = QueueSearch(walk, alpha, gamma)
    finished = queue.run(limit, watch, until=alpha * LAZY_REST)
    unit = None if gamma < 1 else ssp.cost_unit
    found = _queue_result(queue, None, 0.0, unit)
    scale = 1.0 if unit is None else float(unit)
    least = np.array([scale * walk.least(node.x) * gamma**node.stage for node in queue.open_nodes()], dtype=np.float64)
    rest = Bracket(least, least, np.full_like(least, np.inf), "least cost")
    head_mean = float(np.sum(found.costs * found.probabilities))
    tail_mean = float(np.sum(found.open_mass * (found.open_cost + least)))
    settled = found.open_mass.size == 0
    slack = 1 + found.relative_error + 1e-15 * (len(found.costs) + 2)
    mean = head_mean + tail_mean
    result = summarise(
        found,
        rest,
        alpha=alpha,
        mean=(mean if found.lost == 0 else np.inf, mean / slack, mean * slack if settled else np.inf),
        unreached=found.lost,
        engine="queue",
        deviation=lambda: float(np.sqrt(np.sum(found.probabilities * (found.costs - mean) ** 2))),
    )
    return completed(result, finished, alpha, limit, watch)
