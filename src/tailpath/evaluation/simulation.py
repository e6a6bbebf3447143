"""Monte Carlo: runs of a policy. `estimation.py` estimates from their costs.

A run is a walk on the chain of the policy; costs are added up as integers where there is a unit, so
that equal costs come out equal. Each run has its own random numbers, made from the seed and the
run's number: the result depends on neither threads nor blocks, and the first n runs of a longer
simulation are the same runs. A run that can no longer arrive costs infinity.

Walks on the unrolled chain are compiled. An infinite memory is followed step by step
through the policy's own functions.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np

from tailpath.errors import LimitExceededError, OptionError
from tailpath.evaluation.following import Drawing, Follower, steps_of_runs
from tailpath.graph import Array, FloatArray
from tailpath.kernels.jit import steps_until_pause
from tailpath.kernels.sampling import Paths, lay_rows, walk, walker
from tailpath.model.border import prepare
from tailpath.model.cost_units import in_costs
from tailpath.model.ssp import SSP
from tailpath.options import check_integer, processors, takes_model
from tailpath.policies.chain import CostChain
from tailpath.policies.given import as_policy
from tailpath.policies.policy import Policy, known
from tailpath.policies.unrolling import MAX_PAIRS, unroll


class RunTuning(NamedTuple):
    """What decides how runs are made, and no number: runs that make a thread worth its while, steps
    between two looks at the user, pairs that a policy of functions may reach before it is walked
    step by step, and steps of one such run before it ends in an error.
    """

    block: int = 4096
    pause: int = 50_000_000
    pairs: int = 100_000
    steps: int = 100_000


#: Runs that are followed side by side through a policy's own functions.
TOGETHER = 64
#: Runs whose costs no machine could hold.
MAX_RUNS = 10**11


@takes_model
def simulate(ssp: SSP, policy: Any, n: int, seed: int, *, threads: int | None = None) -> FloatArray:
    """Draw runs of a policy and add up their costs (the paper's Monte Carlo simulation).

    Parameters
    ----------
    ssp : SSP
        The model.
    policy : Policy, or anything that `tailpath.policy` takes
        The policy.
    n : int, 0 or more
        The number of runs.
    seed : int, 0 or more
        The same seed gives the same costs, and the first runs of a longer simulation.
    threads : int, optional
        By default as many as there are processors; the costs do not depend on it.

    Returns
    -------
    array of float64, shape (n,)
        The total costs; infinite for runs that can no longer arrive.

    Raises
    ------
    OptionError
        If `n` or `seed` lies outside its range.
    PolicyError
        If the policy does not fit the model, or a run of a policy of functions does not end.

    See Also
    --------
    estimate : VaR and CVaR from a sample, with intervals.
    evaluate : The exact distribution.

    Examples
    --------
    >>> sample = tp.simulate(ssp, {"home": "road"}, 1000, seed=0)
    >>> sample.shape, sorted(set(sample.tolist()))
    ((1000,), [20.0, 60.0])
    """
    n, seed = check_integer(n, "the number of runs"), check_integer(seed, "the seed")
    if n > MAX_RUNS:
        raise OptionError(f"{n} runs are too many; the limit is {MAX_RUNS}")
    border = prepare(ssp)
    return border.costs(
        simulate_request(
            border.model, as_policy(ssp, policy), n, seed, threads or processors(), RunTuning()
        )
    )


def simulate_request(
    ssp: SSP, policy: Policy, n: int, seed: int, threads: int, tuning: RunTuning
) -> FloatArray:
    """`simulate` with everything decided."""
    kind = known(policy)
    if kind.drawn:
        return _simulate_mixture(
            kind.drawn,
            n,
            seed,
            lambda member, own: simulate_request(ssp, member, n, own, threads, tuning),
        )
    if kind.endless:
        return _simulate_by_calls(ssp, policy, n, seed, tuning.steps)
    try:
        most = MAX_PAIRS if kind.by_budget else tuning.pairs
        chain = unroll(ssp, policy, max_nodes=most)
    except LimitExceededError:
        return _simulate_by_calls(ssp, policy, n, seed, tuning.steps)
    totals = _walk_all(chain, n, seed, threads, tuning)
    costs = (
        totals
        if ssp.cost_unit is None or totals.dtype != np.int64
        else in_costs(totals, ssp.cost_unit)
    )
    costs[totals < 0] = np.inf
    return costs


def _simulate_mixture(
    drawn: tuple[tuple[float, Policy], ...],
    n: int,
    seed: int,
    runs: Callable[[Policy, int], FloatArray],
) -> FloatArray:
    """One coin per run. Every member makes all runs: a run depends on its number and the seed
    alone.
    """
    coin = np.random.default_rng([seed, len(drawn)]).random(n)
    shares = np.cumsum([weight for weight, _ in drawn])
    side = np.minimum(np.searchsorted(shares, coin, side="right"), len(drawn) - 1)
    costs = np.empty(n)
    for i, (_, member) in enumerate(drawn):
        own = int(np.random.SeedSequence([seed, i]).generate_state(1, np.uint64)[0])
        costs[side == i] = runs(member, own)[side == i]
    return costs


# ---------------------------------------------------------------------- compiled walks


def _laid_out(chain: CostChain) -> Paths:
    count = len(chain.target)
    order, cumulative = np.empty(count, dtype=np.int64), np.empty(count)
    lay_rows(chain.row_start, chain.probability, order, cumulative)
    costs = chain.cost if chain.level is None else chain.level
    return Paths(chain.row_start, chain.target[order], cumulative, costs[order], ~chain.arrives)


def _walk_all(chain: CostChain, n: int, seed: int, threads: int, tuning: RunTuning) -> Array:
    """The totals of all runs, block by block on several threads; -1 for what never arrives."""
    paths = _laid_out(chain)
    totals = np.zeros(n, dtype=paths.cost.dtype)
    key = np.random.SeedSequence(seed).generate_state(4, np.uint64)
    workers = max(1, min(threads, n // tuning.block))
    stopped = threading.Event()
    # Several blocks for each worker, so that all end at about the same time.
    size = max(tuning.block, -(-n // (16 * workers)))

    def walked(first: int) -> None:
        own = totals[first : first + size]
        now, finished = walker(), False
        while not finished and not stopped.is_set():
            pause = steps_until_pause(walk, tuning.pause)
            finished = walk(paths, chain.start, key, first, pause, now, own)

    with ThreadPoolExecutor(workers) as pool:
        try:
            list(pool.map(walked, range(0, n, size)))
        except BaseException:
            stopped.set()
            raise
    return totals


# ---------------------------------------------------------------------- step by step


def _simulate_by_calls(ssp: SSP, policy: Policy, n: int, seed: int, most: int) -> FloatArray:
    unit = ssp.cost_unit
    costs = ssp.outcome_cost if unit is None else ssp.outcome_level
    blocks = -(-n // TOGETHER)
    totals = np.zeros((blocks, TOGETHER))
    for k, total in enumerate(totals):
        follower, drawing = Follower(ssp, policy, [seed, k, 1]), Drawing(ssp, [seed, k])
        state = np.full(TOGETHER, ssp.start_index, dtype=np.int64)
        memory = follower.begin(TOGETHER)
        for going, _, _, outcome in steps_of_runs(ssp, follower, state, memory, drawing, most):
            total[going] += costs[outcome]
        total[~ssp.is_goal[state]] = np.inf
    found = totals.reshape(-1)[:n]
    return found if unit is None else in_costs(found, unit)
