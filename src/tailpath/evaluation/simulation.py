"""Monte Carlo: runs of a policy. `estimation.py` says what their costs tell.

A run is a walk on the chain of the policy; costs are added up as integers where there is a unit, so
that equal costs come out equal. Each run has its own random numbers, made from the seed and the
run's number: the result depends on neither threads nor blocks, and the first n runs of a longer
simulation are the same runs. A run that can no longer arrive costs infinity.

Walks are compiled: on the model's states with the budget that is left for a `BudgetPolicy`, on the
unrolled chain for another finite memory. A memory that does not end is followed step by step
through the policy's own functions.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np

from tailpath.analysis.reachability import dead_ends
from tailpath.errors import LimitExceededError, OptionError, PolicyError
from tailpath.evaluation.budget import zero_cost_order
from tailpath.graph import Array, BoolArray, FloatArray, IntArray, Transitions
from tailpath.kernels.jit import steps_until_pause
from tailpath.kernels.sampling import Paths, Pause, lay_rows, walk, walker
from tailpath.kernels.steps import NO_STEPS, Steps
from tailpath.model.border import prepare
from tailpath.model.checks import same_numbering
from tailpath.model.cost_units import in_costs
from tailpath.model.ssp import SSP
from tailpath.options import check_integer, processors, takes_model
from tailpath.policies.budget import BudgetPolicy
from tailpath.policies.chain import CostChain
from tailpath.policies.checks import decide, no_action
from tailpath.policies.given import as_policy
from tailpath.policies.policy import Policy, known
from tailpath.policies.unrolling import chain_of_choices, unroll


class RunTuning(NamedTuple):
    """What decides how runs are made, and no number: runs that make a thread worth its while, steps
    between two looks at the user, pairs that a policy of functions may reach before it is walked
    step by step, and steps of one such run before it ends in an error.
    """

    block: int = 4096
    pause: int = 50_000_000
    pairs: int = 100_000
    steps: int = 100_000


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
    estimate : What a sample tells about VaR and CVaR.
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
    task = _budget_task(ssp, kind.by_budget) if kind.by_budget else None
    if task is None:
        try:
            task = _chain_task(unroll(ssp, policy, max_nodes=tuning.pairs))
        except LimitExceededError:
            return _simulate_by_calls(ssp, policy, n, seed, tuning.steps)
    totals = _walk_all(task, n, seed, threads, tuning)
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


class _Task(NamedTuple):
    paths: Paths
    rows: Steps
    start: int
    ssp: SSP


def _laid_out(rows: Transitions, dead_end: BoolArray, spent: IntArray | None = None) -> Paths:
    count = len(rows.target)
    order, cumulative = np.empty(count, dtype=np.int64), np.empty(count)
    lay_rows(rows.row_start, rows.probability, order, cumulative)
    return Paths(
        rows.row_start,
        rows.target[order],
        cumulative,
        (rows.cost if rows.level is None else rows.level)[order],
        np.empty(0, dtype=np.int64) if spent is None else spent[order],
        dead_end,
    )


def _chain_task(chain: CostChain) -> _Task:
    return _Task(_laid_out(chain, ~chain.arrives), NO_STEPS, chain.start, chain.ssp)


def _budget_task(ssp: SSP, policy: BudgetPolicy) -> _Task | None:
    """The model's own states, all goals in one; None where a run might cycle at no cost with budget
    left, or leave the policy's states. A run never arrives exactly where the risk-neutral part
    cannot.
    """
    if (
        not same_numbering(policy.ssp, ssp)
        or zero_cost_order(ssp, policy.level, np.ones(ssp.n_outcomes, dtype=np.bool_)) is None
    ):
        return None
    try:
        risk_neutral = chain_of_choices(ssp, policy.risk_neutral)
    except PolicyError:
        return None
    dead_end = np.zeros(ssp.n_states, dtype=np.bool_)
    dead_end[risk_neutral.state] = ~risk_neutral.arrives
    node = np.where(ssp.is_goal, ssp.n_states, np.arange(ssp.n_states))
    level = None if ssp.cost_unit is None else ssp.outcome_level
    rows = ssp.transitions.renumber(node).replaced(level=level)
    start = int(node[ssp.start_index])
    return _Task(_laid_out(rows, dead_end, policy.level), policy.steps(), start, ssp)


def _walk_all(task: _Task, n: int, seed: int, threads: int, tuning: RunTuning) -> Array:
    """The totals of all runs, block by block on several threads; -1 for what never arrives."""
    totals = np.zeros(n, dtype=task.paths.cost.dtype)
    key = np.random.SeedSequence(seed).generate_state(4, np.uint64)
    workers = max(1, min(threads, n // tuning.block))
    stopped = threading.Event()
    if workers == 1:
        _walk_block(task, key, 0, totals, tuning.pause, stopped)
        return totals
    # Several blocks for each worker, so that all end at about the same time.
    size = max(tuning.block, -(-n // (16 * workers)))
    with ThreadPoolExecutor(workers) as pool:
        try:
            blocks = [
                pool.submit(
                    _walk_block,
                    task,
                    key,
                    first,
                    totals[first : first + size],
                    tuning.pause,
                    stopped,
                )
                for first in range(0, n, size)
            ]
            for block in blocks:
                block.result()
        except BaseException:
            stopped.set()
            raise
    return totals


def _walk_block(
    task: _Task,
    key: Array,
    first: int,
    totals: Array,
    pause: int,
    stopped: threading.Event,
) -> None:
    now = walker()
    while not stopped.is_set():
        steps = steps_until_pause(pause)
        status = walk(task.paths, task.rows, task.start, key, first, steps, now, totals)
        if status == Pause.NO_ACTION:
            raise no_action(task.ssp, int(now.node))
        if status == Pause.FINISHED:
            return


# ---------------------------------------------------------------------- step by step


def _simulate_by_calls(ssp: SSP, policy: Policy, n: int, seed: int, most: int) -> FloatArray:
    unit = ssp.cost_unit
    costs = (ssp.outcome_cost if unit is None else ssp.outcome_level).tolist()
    dead = dead_ends(ssp)
    random = np.random.default_rng(seed)
    totals = [_walk_once(ssp, policy, costs, dead, random, most) for _ in range(n)]
    sums = np.array([np.inf if total is None else total for total in totals], dtype=np.float64)
    return sums if unit is None else in_costs(sums, unit)


def _walk_once(
    ssp: SSP,
    policy: Policy,
    costs: list[Any],
    dead: BoolArray,
    random: np.random.Generator,
    most: int,
) -> Any:
    """The cost of one run, or None if it enters a state from which no policy arrives."""
    state, total = ssp.start_index, 0
    memory = None if ssp.is_goal[state] else policy.start(ssp.start)
    for _ in range(most):
        if ssp.is_goal[state]:
            return total
        if dead[state]:
            return None
        decision = decide(ssp, policy, state, memory)
        choice = decision[_drawn([weight for _, weight in decision], random)][0]
        first, end = int(ssp.choice_outcomes[choice]), int(ssp.choice_outcomes[choice + 1])
        outcome = first + _drawn(ssp.outcome_probability[first:end].tolist(), random)
        total += costs[outcome]
        name, state = ssp.states[state], int(ssp.outcome_target[outcome])
        if not ssp.is_goal[state]:
            memory = policy.remember(
                memory,
                name,
                ssp.choice_name(choice),
                float(ssp.observed[outcome]),
                ssp.states[state],
            )
    raise PolicyError(
        f"a run has not arrived after {most} steps; it is in state {ssp.states[state]!r}. Does the"
        " policy arrive at all?"
    )


def _drawn(weights: list[float], random: np.random.Generator) -> int:
    """A position drawn by its weight; the weights sum to 1 up to rounding."""
    u = random.random()
    for position, weight in enumerate(weights[:-1]):
        u -= weight
        if u < 0:
            return position
    return len(weights) - 1
