"""The least CVaR over all policies, history-dependent ones included, and a policy that attains it.

With Z the total cost, CVaR_alpha = min over w of w + E[(Z - w)+] / alpha, and the two minimisations
may be exchanged. For a fixed budget w

    U(s, w) = min over policies of E[(Z - w)+]
            = V*(s) - w                        for w <= 0: the budget is spent, and the risk-neutral
                                               optimum V* is best
            = min_a sum P U(s', w - c)         for w > 0

so that the budget left is all a policy has to remember (Baeuerle, Ott 2011; Meggendorfer 2022).
Costs are whole numbers of the cost unit, between two of them `w + U / alpha` is concave, and so an
integer budget is best: CVaR*_alpha = min over w = 0, 1, ... of w + U(start, w) / alpha. No w beyond
the best value found can win, which ends the search. Nothing here depends on alpha but its end: one
table serves every a >= alpha.

- The smallest best budget is the VaR of the policy it gives. (Were the VaR smaller, it would be a
  best budget, too.) Budgets that tie within the error bound count as equal; where they do, `var`
  evaluates the policy. At budget 0 the policy is the risk-neutral one, and its VaR is its least
  possible cost.
- `lexicographic`: of all policies with the least CVaR the one with the least expected cost (Rigter
  et al. 2022), by breaking ties in U, and in w, by the expected cost. Ties are differences below
  1e-13, relatively; a second table, with ties as they fall, gives the lower bounds.
- `weight`: minimises (1 - weight) * mean + weight * CVaR_alpha, by the recursion for (1 - weight) *
  mean + weight / alpha * U, which carries the mean and U of the same policy along; this table
  belongs to one alpha.
- Below an alpha of 1e-200 the recursion runs on U times 2^600: it takes values below 1e-280 for 0,
  and such an alpha divides by less.
- `delta`: all costs are rounded up to a grid, which gives a policy and an upper bound, and down,
  which gives a lower bound (`grid.py`): the true costs of any policy lie between the two. And no
  CVaR lies below the least expected cost. The exact value of the policy is `evaluate`'s to say.
"""

from __future__ import annotations

from functools import partial
from typing import Any, overload

import numpy as np

from tailpath.analysis.nature import nature_called
from tailpath.analysis.reachability import reachable_states, zero_cost_edge_order
from tailpath.distributed.fill import way_of
from tailpath.distributed.job import Job
from tailpath.distributed.part import Part, plainly
from tailpath.distributed.ranks import together
from tailpath.errors import OptionError
from tailpath.model.endings import within
from tailpath.model.interval import IntervalSSP
from tailpath.model.ssp import SSP
from tailpath.options import (
    Progress,
    check_amount,
    check_invertible_alpha,
    takes_alpha,
    takes_model,
)
from tailpath.solvers.exact.parts import PartSolution, solve_part_cvar
from tailpath.solvers.exact.solution import ExactSolution, WeightedSolution
from tailpath.solvers.exact.table import MAX_BYTES
from tailpath.solvers.exact.task import Task, solve_task
from tailpath.solvers.uncertain.cvar import RobustSolution, solve_robust_cvar


@overload
def solve_cvar_exact(
    ssp: SSP,
    alpha: float,
    lexicographic: bool = False,
    *,
    delta: Any = None,
    gamma: Any = 1,
    max_bytes: int = MAX_BYTES,
    progress: Progress | None = None,
    comm: Any = None,
) -> ExactSolution: ...


@overload
def solve_cvar_exact(
    ssp: SSP,
    alpha: float,
    lexicographic: bool = False,
    *,
    weight: float,
    delta: Any = None,
    gamma: Any = 1,
    max_bytes: int = MAX_BYTES,
    progress: Progress | None = None,
    comm: Any = None,
) -> ExactSolution | WeightedSolution: ...


@overload
def solve_cvar_exact(
    ssp: IntervalSSP, alpha: float, *, max_bytes: int = MAX_BYTES, nature: str = "adversarial"
) -> RobustSolution | ExactSolution | WeightedSolution: ...


@overload
def solve_cvar_exact(
    ssp: Part,
    alpha: float,
    *,
    comm: Any = None,
    max_bytes: int = MAX_BYTES,
    progress: Progress | None = None,
) -> PartSolution: ...


@takes_model
@takes_alpha
def solve_cvar_exact(
    ssp: Any,
    alpha: float,
    lexicographic: bool = False,
    *,
    weight: float = 1.0,
    delta: Any = None,
    gamma: Any = 1,
    max_bytes: int = MAX_BYTES,
    progress: Progress | None = None,
    nature: str = "adversarial",
    comm: Any = None,
) -> ExactSolution | WeightedSolution | RobustSolution:
    """Find the least CVaR over all policies, for every `a >= alpha`, with a policy for each.

    All policies means all: those that remember the whole history and randomise are included.

    Parameters
    ----------
    ssp : SSP, IntervalSSP or Part
        The model; or, with `comm`, the part of it that this rank has.
    alpha : float in (0, 1]
        The least mass of the worst tail that the result answers.
    lexicographic : bool
        Return, of all policies with the least CVaR, the one with the least expected cost, and
        report both expected costs (`mean`, `plain_mean`).
    weight : float in [0, 1]
        Minimise `(1 - weight) * mean + weight * CVaR`: 0 is the risk-neutral optimum, 1 the
        default. Below 1 the result is a `WeightedSolution`, for `alpha` alone.
    delta : number, optional
        Rounds the costs to multiples of it, for models whose costs have no common unit. The
        policies are those for costs rounded up, and `bounds` brackets the optimum of the costs as
        they are.
    gamma : number in (0, 1]
        The discount: the costs of step t count gamma^t times. Below 1 a run must have a bounded
        number of steps; this is then the solution of `tailpath.within(ssp, steps, gamma=gamma)`, on
        whose pairs (state, steps taken) its policies are.
    max_bytes : int
        The most memory to take, in bytes.
    progress : callable, optional
        `progress(budget, best)` is called now and then with the budget reached, in units, and the
        best value so far.
    nature : {"adversarial", "cooperative"}
        Of a model with intervals: who picks the probabilities inside them, against us or for us.
    comm : communicator of mpi4py, or Job, optional
        The ranks over which the table is spread; all of them call this, and all get the result,
        which is that of one process to the last bit (`docs/scale.md`).

    Returns
    -------
    ExactSolution or WeightedSolution
        `cvar(a)`, `var(a)`, `bounds(a)` and `policy(a)`; the second if `weight` < 1.

    Raises
    ------
    ModelError
        If the costs have no common unit and no `delta` is given.
    GoalUnreachableError
        If the start cannot surely reach a goal.
    OptionError
        If an argument lies outside its range, or `gamma` < 1 and a run may take any number of
        steps.
    LimitExceededError
        If `max_bytes` do not suffice; its `bounds` are those found so far.

    Notes
    -----
    With Z the total cost, CVaR_alpha = min over w of w + E[(Z - w)+] / alpha, and the two
    minimisations may be exchanged. For a fixed budget w

        U(s, w) = min over policies of E[(Z - w)+]
                = V*(s) - w                        for w <= 0: risk-neutral
                = min_a sum P U(s', w - c)         for w > 0

    so that the budget left is all a policy has to remember (Baeuerle, Ott 2011; Meggendorfer 2022).
    A whole number of cost units is best, and CVaR*_alpha = min over w of w + U(start, w) / alpha.
    One table serves every a >= alpha.

    Examples
    --------
    >>> best = tp.solve_cvar_exact(ssp, 0.1)
    >>> best
    <ExactSolution for alpha>=0.1: CVaR 30, VaR 30>
    >>> best.cvar(0.5), best.policy(0.5).action("home", best.budget(0.5))
    (28.0, 'road')
    """
    options = {
        "lexicographic": lexicographic,
        "weight": weight != 1,
        "delta": delta is not None,
        "gamma": gamma != 1,
    }
    if isinstance(ssp, Part):
        plainly(**options)
        job = Job.of(comm)
        return together(
            job.comm, partial(solve_part_cvar, ssp, alpha, job, max_bytes, progress), str(ssp)
        )
    if isinstance(ssp, IntervalSSP):
        nature_called(nature)
        if not ssp.is_certain:
            return solve_robust_cvar(ssp, alpha, nature, max_bytes, **options)
        ssp = ssp.inside
    if gamma != 1:
        ssp = within(ssp, most_steps(ssp), gamma=gamma)
    alpha = check_invertible_alpha(alpha)
    weight = check_amount(weight, "a weight")
    if weight > 1:
        raise OptionError(f"weight must lie in [0, 1], not {weight!r}")
    if weight > 0 and 1 - weight == 1:
        raise OptionError(f"weight = {weight!r} is too small for floating point; take 0")
    task = Task(alpha, float(weight), bool(lexicographic), max_bytes, progress)
    if comm is not None:
        task = task._replace(way=way_of(comm))
    return solve_task(ssp, task, delta)


def most_steps(ssp: SSP) -> int:
    """The most steps that a run can take, or a refusal that says why a discount needs it."""
    source = ssp.choice_state[ssp.outcome_choice]
    inside = np.flatnonzero(reachable_states(ssp)[source] & ~ssp.is_goal[ssp.outcome_target])
    order = zero_cost_edge_order(source[inside], ssp.outcome_target[inside], ssp.n_states)
    if order is None:
        raise OptionError(
            "with a discount every step has costs of its own, so a run that may take any number of"
            " steps has no cost unit to count in; limit the steps, within(ssp, n, gamma=gamma)"
            " (--within N), or read the discount as a chance to end, as solve_expected(ssp,"
            " gamma=gamma) (--method expected) does"
        )
    return order[1] + 1
