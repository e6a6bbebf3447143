"""The least CVaR over all policies, history-dependent ones included, and a policy that attains it:
`solve_cvar_exact` has the recursion, `docs/bounds.md` the proofs.

- The smallest best budget is the VaR of the policy it gives. (Were the VaR smaller, it would be a
  best budget, too.) Budgets that tie within rounding count as equal; where they do, `var` evaluates
  the policy. At budget 0 the policy is the risk-neutral one, and its VaR is its least possible
  cost.
- `lexicographic` (Rigter et al. 2022) breaks ties in U, and in w, by the expected cost. Ties are
  differences below 1e-13, relatively.
- The least (1 - weight) * mean + weight * CVaR_alpha has the same recursion, for (1 - weight) *
  mean + weight / alpha * U in place of U; its table belongs to one alpha.
- With `delta` no CVaR lies below the least expected cost, either.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, overload

import numpy as np

from tailpath.analysis.reachability import nature_called
from tailpath.analysis.tables import MAX_BYTES, BudgetTable
from tailpath.certify.budgets import Later, TableSides
from tailpath.dp.budget_model import EXCESS, MEAN
from tailpath.errors import LimitExceededError
from tailpath.graph import FloatArray
from tailpath.kernels.rounding import SAME_VALUE
from tailpath.model.border import Border, prepare, require_unit
from tailpath.model.interval import IntervalSSP
from tailpath.model.ssp import SSP
from tailpath.options import Progress, check_alpha, takes_alpha, takes_model
from tailpath.policies.budget import BudgetPolicy
from tailpath.registers import module_of
from tailpath.solvers.exact.layout import always_risk_neutral, budget_policy, layout_of
from tailpath.solvers.exact.pairs import fill_smaller
from tailpath.solvers.exact.robust import RobustSolution, solve_robust_cvar
from tailpath.solvers.exact.solution import ExactSolution, first_best
from tailpath.solvers.expectation import solve_expected

#: From so many states times levels on, budgets that are sure to be exceeded are left out; their
#: values are V* - w, where a digit may cancel.
WORTH_SKIPPING = 2**18


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
    ssp: IntervalSSP, alpha: float, *, max_bytes: int = MAX_BYTES, nature: str = "adversarial"
) -> RobustSolution | ExactSolution: ...


@takes_model
@takes_alpha
def solve_cvar_exact(
    ssp: Any,
    alpha: float,
    lexicographic: bool = False,
    *,
    delta: Any = None,
    gamma: Any = 1,
    max_bytes: int = MAX_BYTES,
    progress: Progress | None = None,
    nature: str = "adversarial",
    comm: Any = None,
) -> ExactSolution | RobustSolution:
    """Find the least CVaR over all policies (the paper's Eq. 8), for every `a >= alpha`.

    All policies means all: those that remember the whole history and randomise are included.

    Parameters
    ----------
    ssp : SSP, IntervalSSP or Part
        The model; or, with `comm`, the part of it that this rank has.
    alpha : float in (0, 1]
        The least mass of the worst tail that the result answers.
    lexicographic : bool
        Return, of all policies with the least CVaR, the one with the least expected cost.
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
        For a model with intervals: whether nature picks the probabilities against us or for us.
    comm : communicator of mpi4py, optional
        The ranks over which the model is spread; all of them call this, and all get the result,
        which is that of one process within the proved bounds (`docs/scale.md`).

    Returns
    -------
    ExactSolution
        `cvar(a)`, `var(a)`, `bounds(a)` and `policy(a)`; of a model with intervals a
        `RobustSolution`.

    Raises
    ------
    ModelError
        If the costs have no common unit and no `delta` is given.
    GoalUnreachableError
        If the start cannot reach a goal with probability 1.
    OptionError
        If an argument lies outside its range, or `gamma` < 1 and a run may take any number of
        steps.
    LimitExceededError
        If `max_bytes` is not enough; its `bounds` are those found so far.

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
    options = {"lexicographic": lexicographic, "delta": delta is not None, "gamma": gamma != 1}
    if comm is not None and not hasattr(ssp, "on_ranks"):
        ssp = module_of("tailpath.distributed.part", "mpi").Part.here(ssp, comm)
    if hasattr(ssp, "on_ranks"):
        found: ExactSolution = ssp.on_ranks(comm, alpha, max_bytes, progress, **options)
        return found
    border, alpha = prepare(ssp, delta=delta, gamma=gamma), check_alpha(alpha)
    nature_called(nature)
    if border.uncertain:
        return solve_robust_cvar(border.given, alpha, nature, max_bytes, **options)
    how = {"max_bytes": max_bytes, "progress": border.progress(progress)}
    return solve_prepared(border, alpha, bool(lexicographic), **how)


def solve_prepared(
    border: Border, alpha: float, lexicographic: bool = False, **how: Any
) -> ExactSolution:
    """The answer of the model that is solved, as one of the model as given; `how` is as in
    `_filled`.
    """
    try:
        found = _solved(border.solved, alpha, lexicographic, **how)
    except LimitExceededError as error:
        raise border.error(error) from None
    # With `delta` the policy is that for costs rounded up, and costs rounded down bound it from
    # below.
    below = border.below
    floor = None if below is None else _solved(below, alpha, lexicographic, **how)
    answer: ExactSolution = border.restore(found, floor)
    return answer


def _solved(ssp: SSP, alpha: float, lexicographic: bool, **how: Any) -> ExactSolution:
    """The answer for costs of 0 or more, which have a unit."""
    require_unit(ssp)
    if ssp.is_goal[ssp.start_index]:
        nothing, policy = np.zeros(1), always_risk_neutral(ssp, solve_expected(ssp).choices)
        sides = Later(lambda: TableSides(nothing, nothing[:, None]))
        mean = nothing if lexicographic else None
        return ExactSolution(alpha, np.zeros(1, np.int64), nothing, mean, policy, sides)
    criteria, tie = (np.stack([EXCESS, MEAN]), SAME_VALUE) if lexicographic else (EXCESS, 0.0)
    table = _filled(ssp, criteria, weight=1.0, price=1 / alpha, tie=tie, **how)
    excess, mean = table.values[:, 0], table.values[:, 1] if lexicographic else None
    best = first_best(table.budgets + excess / alpha, mean)
    return ExactSolution(
        alpha,
        table.budgets,
        excess,
        mean,
        budget_policy(table.layout, table.changes, int(table.budgets[best])),
        Later(table.sides),
        beyond=table.limit + 1.0,
        method=table.method,
    )


def _filled(
    ssp: SSP,
    criteria: FloatArray,
    *,
    pairs: bool | None = None,
    skip: bool | None = None,
    max_bytes: int = MAX_BYTES,
    progress: Progress | None = None,
    **objective: Any,
) -> BudgetTable:
    """The table for an objective. `pairs` says whether it is over pairs or over all budgets (None:
    whichever is smaller), `skip` whether budgets that every run exceeds are left out (None: where
    the table is large); neither changes a number.
    """
    levels = solve_expected(ssp).cost() / float(ssp.cost_unit or 1)
    large = ssp.n_states * levels > WORTH_SKIPPING
    layout = layout_of(ssp, "excess" if (large if skip is None else skip) else "")
    what = layout.objective(criteria, **objective)
    return fill_smaller(layout, what, pairs=pairs, max_bytes=max_bytes, progress=progress)


def least_weighted(
    ssp: SSP, alpha: float, weight: float, **how: Any
) -> tuple[float, Callable[[], tuple[float, float]], BudgetPolicy]:
    """The least (1 - weight) * mean + weight * CVaR, bounds on it, and the policy."""
    if weight == 1 or ssp.is_goal[ssp.start_index]:
        best = _solved(ssp, alpha, False, **how)
        return best.cvar(alpha), lambda: best.bounds(alpha), best.policy()
    expected, unit = solve_expected(ssp), float(ssp.cost_unit or 1)
    criterion = (1 - weight) * MEAN + weight / alpha * EXCESS
    floor = (1 - weight) * expected.cost() / unit
    table = _filled(ssp, criterion, weight=weight, floor=floor, **how)
    total = weight * table.budgets + table.values[:, 0]
    position = first_best(total)
    beyond = weight * (table.limit + 1) + (1 - weight) * expected.bounds[0] / unit

    def bounds() -> tuple[float, float]:
        low, high = table.sides().total_bounds(table.budgets, weight, 1.0, beyond, position)
        return low * unit, high * unit

    policy = budget_policy(table.layout, table.changes, int(table.budgets[position]))
    return float(np.min(total)) * unit, bounds, policy
