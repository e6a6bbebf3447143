"""Runs one can look at: one at random, and the most probable ones beyond VaR.

A run is the list of its steps; `trace` draws one, `worst_runs` finds the most probable runs that
cost more than VaR, by best-first search. A run that is not finished yet is worth its probability
times that of the most probable way to finish it beyond VaR, which `beyond.py` tabulates: so the
search steps only on runs that will be among the answers, and their probabilities are products of
the model's own.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from tailpath.errors import LimitExceededError, OptionError
from tailpath.graph import Array, IntArray, members
from tailpath.model.border import shifted
from tailpath.model.ssp import SSP
from tailpath.options import check_alpha, check_integer, takes_alpha, takes_model
from tailpath.policies.checks import decide
from tailpath.policies.given import as_policy
from tailpath.policies.policy import Policy
from tailpath.show.beyond import Beyond, blame_of, simulated_blame
from tailpath.show.decisions import memory_in_words
from tailpath.show.followed import Followed
from tailpath.show.sampled import Walks, walked
from tailpath.show.traces import Step, Trace, WorstRuns

#: Steps of a run drawn at random before it ends in an error.
MAX_STEPS = 100_000
#: Steps after which a run beyond VaR is given up.
MAX_TYPICAL_STEPS = 500_000
#: Steps of all the worst runs together, and beginnings of runs that wait, for which there is
#: memory.
MAX_STORED = 1_000_000
#: The likeliest runs say little if they are a smaller part than this of all runs beyond VaR.
TYPICAL_SHARE = 1e-3


@takes_model
def trace(ssp: SSP, policy: Policy, seed: int) -> Trace:
    """Draw one run of a policy at random.

    It ends at a goal, or in a state from which no policy arrives.

    Parameters
    ----------
    ssp : SSP
        The model.
    policy : Policy, or anything that `tailpath.policy` takes
        The policy.
    seed : int, 0 or more
        The same seed gives the same run.

    Returns
    -------
    Trace
        The sequence of its steps, with `cost` and `probability`.

    Raises
    ------
    PolicyError
        If the policy does not fit the model, or the run does not end.

    Examples
    --------
    >>> run = tp.trace(ssp, {"home": "train"}, seed=0)
    >>> run.cost, run[0].action, run[0].next_state
    (30.0, 'train', 'work')
    """
    policy, seed = as_policy(ssp, policy), check_integer(seed, "the seed")
    return _of_walk(ssp, policy, walked(ssp, policy, 1, seed, MAX_STEPS))


def _of_walk(ssp: SSP, policy: Policy, run: Walks) -> Trace:
    """A run that was drawn, by names."""
    chances = [
        dict(decide(ssp, policy, state, memory))[ssp.outcome_choice[outcome]]
        * ssp.outcome_probability[outcome]
        for state, memory, outcome in zip(run.state, run.memory, run.outcome)
    ]
    arrived = bool(np.isfinite(run.total[run.run[:1]]).all())
    return _trace(ssp, policy, run.state, run.memory, run.outcome, chances, arrived)


def _total(ssp: SSP, outcomes: IntArray) -> float:
    """The cost of a run, added up in units where there is one."""
    if ssp.cost_unit is None:
        return math.fsum(ssp.outcome_cost[outcomes].tolist())
    return float(int(ssp.outcome_level[outcomes].sum()) * ssp.cost_unit)


@takes_model
@takes_alpha
def worst_runs(ssp: SSP, policy: Policy, alpha: float, k: int = 5) -> WorstRuns:
    """Find the most probable runs of a policy that cost more than its VaR, and their causes.

    Exact: no run is drawn. If VaR is infinite, they are the most probable runs that never arrive.
    Where the policy reaches too many pairs of state and memory to look at every run, there is one
    `typical` run of those that were simulated, and blame is estimated from them: a warning says so.

    Parameters
    ----------
    ssp : SSP
        The model.
    policy : Policy, or anything that `tailpath.policy` takes
        The policy.
    alpha : float in (0, 1]
        The mass of the worst tail.
    k : int, 0 or more
        How many runs; fewer are returned if there are fewer.

    Returns
    -------
    WorstRuns
        The runs as a sequence, the likeliest first, and `blame`, the part of every outcome in the
        excess. Where each run is so long that even the likeliest say little, there is a `typical`
        one, too; there are no others where the probability of each is below floating point.

    Raises
    ------
    OptionError
        If `alpha` or `k` lies outside its range.
    PolicyError
        If the policy does not fit the model.

    Examples
    --------
    >>> worst = tp.worst_runs(ssp, {"home": "road"}, 0.2)
    >>> worst
    <WorstRuns at alpha 0.2: 1 run beyond VaR 20, of 0.1 in all>
    >>> worst[0].cost, worst.excess
    (60.0, 4.0)
    """
    alpha, k = check_alpha(alpha), check_integer(k, "the number of runs")
    return bad_runs(Followed(ssp, policy, alpha), alpha, k)


def bad_runs(followed: Followed, alpha: float, k: int) -> WorstRuns:
    """As `worst_runs`, of a policy that is followed already."""
    ssp, costs = followed.ssp, followed.costs
    var, cvar = costs.var(alpha), costs.cvar(alpha)
    if followed.simulated:
        return _simulated(followed, alpha, k)
    try:
        chain = followed.chain.reduced
        threshold = None
        if math.isfinite(var) and chain.unit:
            threshold = round(shifted(var, -ssp.shift) / float(chain.unit))
        beyond = Beyond(chain, threshold)
    except LimitExceededError:
        return _simulated(followed, alpha, k)
    start = min(chain.start, chain.n)
    chance = costs.unreached if math.isinf(var) else float(beyond.chance[beyond.threshold, start])
    blame = blame_of(beyond) if costs.unreached == 0 and chance > 0 else ()
    excess = math.inf if costs.unreached > 0 else math.fsum(row.share for row in blame)
    runs = tuple(_content(followed, edges) for edges in _best_first(beyond, k))
    few = math.fsum(run.probability for run in runs) < TYPICAL_SHARE * chance
    drawn = typical_run(beyond) if k > 0 and few else None
    typical = _content(followed, drawn) if drawn else None
    return WorstRuns(runs, alpha, var, cvar, chance, excess, blame, typical, k)


def _simulated(followed: Followed, alpha: float, k: int) -> WorstRuns:
    """A typical run beyond VaR, and where the excess is paid, from simulated runs. VaR, CVaR and
    the excess are exact, since the distribution is.
    """
    ssp, costs, seen = followed.ssp, followed.costs, followed.seen
    var, cvar = costs.var(alpha), costs.cvar(alpha)
    missed = math.isinf(var)
    bad = np.isinf(seen.total) if missed else seen.total > var * (1 + 1e-12)
    chance = costs.unreached if missed else 1.0 - float(costs.cdf(var))
    excess = math.inf if costs.unreached > 0 else alpha * (cvar - var)
    typical = None
    if k > 0 and bad.any():
        ordered = np.flatnonzero(bad)[np.argsort(seen.total[bad], kind="stable")]
        run = seen.of(np.flatnonzero(seen.run == ordered[len(ordered) // 2]))
        typical = _of_walk(ssp, followed.policy, run)
    blame = simulated_blame(ssp, seen, bad, var) if math.isfinite(excess) else ()
    return WorstRuns((), alpha, var, cvar, chance, excess, blame, typical, k, seen.runs)


def _best_first(beyond: Beyond, k: int) -> Iterator[list[int]]:
    """The edges of the `k` most probable runs past the threshold, the likeliest first."""
    chain, level = beyond.chain, beyond.level

    def finish(node: int, remaining: int) -> float:
        return float(beyond.likeliest[remaining, node] if remaining >= 0 else beyond.way[node])

    # Equal runs differ by rounding; told apart to nine digits of the logarithm, the one that has
    # come farther goes first, and none is put off.
    def rank(probability: float, node: int, remaining: int) -> float:
        return -round(math.log(probability * finish(node, remaining)), 9)

    waiting: list[tuple[float, int, int, int, int, float, Any]] = []
    count = 0

    def wait(node: int, remaining: int, probability: float, steps: int, path: Any) -> None:
        nonlocal count
        if probability * finish(node, remaining) > 0:
            first = rank(probability, node, remaining)
            heapq.heappush(waiting, (first, -steps, count, node, remaining, probability, path))
            count += 1

    if chain.start < chain.n:
        wait(chain.start, beyond.threshold, 1.0, 0, None)
    stored = found = 0
    while waiting and found < k:
        if max(stored, len(waiting)) > MAX_STORED:
            raise OptionError(
                f"the first {found} runs have more than {MAX_STORED} steps together; ask for fewer"
                " (k=)"
            )
        _, steps, _, node, remaining, probability, path = heapq.heappop(waiting)
        if beyond.ends[node]:
            edges = _edges(path)
            stored, found = stored + len(edges), found + 1
            yield edges
            continue
        for edge in members(chain.row_start, node):
            further = probability * float(chain.probability[edge])
            after = remaining - int(level[edge])
            wait(int(chain.target[edge]), after, further, 1 - steps, (edge, path))


def typical_run(beyond: Beyond, seed: int = 0) -> list[int] | None:
    """The edges of a run drawn from the law of those that end beyond the threshold; None where
    there is none, or it takes too long.

    A run of thousands of random steps has a probability below every double, though all runs beyond
    VaR together have one of alpha. So instead of the most probable run one is drawn: at (x, r) of
    `beyond.py` an edge is taken with probability p chance(y, r - c) / chance(x, r), and past the
    threshold with probability p.
    """
    chain, remaining = beyond.chain, beyond.threshold
    node, edges = min(chain.start, chain.n), list[int]()
    if beyond.missed_only or not beyond.chance[remaining, node] > 0:
        return None
    random = np.random.default_rng(seed)
    certain = np.ones(chain.n + 1)
    while not beyond.ends[node]:
        if len(edges) >= MAX_TYPICAL_STEPS:
            return None
        ways = np.arange(chain.row_start[node], chain.row_start[node + 1])
        weight = (
            chain.probability[ways]
            if remaining < 0
            else chain.probability[ways]
            * beyond.after(beyond.chance, certain, np.array([remaining]), ways)[0]
        )
        total = np.cumsum(weight)
        if not total[-1] > 0:  # a chance that is too small to go on with
            return None
        edge = int(ways[np.searchsorted(total, random.random() * total[-1], side="right")])
        edges.append(edge)
        node, remaining = int(chain.target[edge]), remaining - int(beyond.level[edge])
    return edges


def _edges(path: Any) -> list[int]:
    edges = []
    while path is not None:
        edge, path = path
        edges.append(edge)
    return edges[::-1]


def _content(followed: Followed, edges: list[int]) -> Trace:
    """A run of the chain by names."""
    chain = followed.chain
    assert chain.outcome is not None
    nodes = chain.source[edges]
    # A run of no steps is one that starts at a dead end.
    arrived = bool(edges) and int(chain.target[edges[-1]]) == chain.n
    steps = chain.state[nodes], followed.memories[nodes], chain.outcome[edges]
    return _trace(followed.ssp, followed.policy, *steps, chain.probability[edges], arrived)


def _trace(
    ssp: SSP,
    policy: Policy,
    states: Array,
    memories: Array,
    outcomes: IntArray,
    chances: Iterable[float],
    arrived: bool,
) -> Trace:
    each = zip(states.tolist(), memories.tolist(), outcomes.tolist())
    steps = tuple(_step(ssp, policy, *step) for step in each)
    cost = _total(ssp, outcomes) if arrived else math.inf
    return Trace(steps, cost, math.prod(map(float, chances)))


def _step(ssp: SSP, policy: Policy, state: int, memory: Any, outcome: int) -> Step:
    return Step(
        ssp.states[state],
        memory_in_words(policy, memory, state),
        ssp.choice_name(int(ssp.outcome_choice[outcome])),
        float(ssp.outcome_cost[outcome]),
        ssp.states[int(ssp.outcome_target[outcome])],
    )
