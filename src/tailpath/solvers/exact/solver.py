"""The least CVaR over all policies, history-dependent ones included, and a policy that attains it:
`solve_cvar_exact` has the recursion, `docs/bounds.md` the proofs.

- The smallest best budget is the VaR of the policy it gives. (Were the VaR smaller, it would be a
  best budget, too.) Budgets that tie within rounding count as equal; where they do, `var` evaluates
  the policy. At budget 0 the policy is the risk-neutral one, and its VaR is its least possible
  cost.
- `lexicographic` (Rigter et al. 2022) breaks ties in U, and in w, by the expected cost. Ties are
  differences below 1e-13, relatively.
- `weight` has the recursion for (1 - weight) * mean + weight / alpha * U, which carries the mean
  and U of the same policy along; this table belongs to one alpha.
- With `delta` no CVaR lies below the least expected cost, either.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple, overload

import numpy as np

from tailpath.analysis.reachability import nature_called
from tailpath.analysis.tables import ModelLayout
from tailpath.certify.budgets import Later, TableSides
from tailpath.certify.rounding import AFTERWARDS
from tailpath.dp.budget_model import EXCESS, MEAN, Objective
from tailpath.errors import LimitExceededError, OptionError
from tailpath.kernels.rounding import SAME_VALUE
from tailpath.model.border import Border, prepare
from tailpath.model.interval import IntervalSSP
from tailpath.model.ssp import SSP
from tailpath.options import (
    Progress,
    check_amount,
    check_invertible_alpha,
    takes_alpha,
    takes_model,
)
from tailpath.registers import module_of
from tailpath.solvers.exact.layout import layout_of, require_unit
from tailpath.solvers.exact.pairs import fill_smaller
from tailpath.solvers.exact.robust import RobustSolution, solve_robust_cvar
from tailpath.solvers.exact.solution import ExactSolution, WeightedSolution, first_best
from tailpath.solvers.exact.table import MAX_BYTES, always_risk_neutral, budget_policy
from tailpath.solvers.expectation import ExpectedSolution, solve_expected

#: From so many states times levels on, budgets that are sure to be exceeded are left out; their
#: values are V* - w, where a digit may cancel.
WORTH_SKIPPING = 2**18


class Task(NamedTuple):
    """What is asked for; and how, which changes no number. `pairs` says whether the table is over
    pairs or over all budgets (None: whichever is smaller), `skip` whether budgets that every run
    exceeds are left out (None: where the table is large).
    """

    alpha: float
    weight: float = 1.0
    lexicographic: bool = False
    max_bytes: int = MAX_BYTES
    progress: Progress | None = None
    pairs: bool | None = None
    skip: bool | None = None


@overload
def solve_cvar_exact(
    ssp: SSP,
    alpha: float,
    lexicographic: bool = False,
    *,
    weight: float = 1.0,
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
    weight: float = 1.0,
    delta: Any = None,
    gamma: Any = 1,
    max_bytes: int = MAX_BYTES,
    progress: Progress | None = None,
    nature: str = "adversarial",
    comm: Any = None,
) -> ExactSolution | WeightedSolution | RobustSolution:
    """Find the least CVaR over all policies (the paper's Eq. 8), for every `a >= alpha`.

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
    comm : communicator of mpi4py, optional
        The ranks over which the model is spread; all of them call this, and all get the result,
        which is that of one process within the proved bounds (`docs/scale.md`).

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
    if comm is not None and not hasattr(ssp, "on_ranks"):
        ssp = module_of("tailpath.distributed.part", "mpi").Part.here(ssp, comm)
    if hasattr(ssp, "on_ranks"):
        found: ExactSolution = ssp.on_ranks(comm, alpha, max_bytes, progress, **options)
        return found
    border = prepare(ssp, delta=delta, gamma=gamma)
    nature_called(nature)
    if border.uncertain:
        return solve_robust_cvar(border.given, alpha, nature, max_bytes, **options)
    alpha = check_invertible_alpha(alpha)
    weight = check_amount(weight, "a weight")
    if weight > 1:
        raise OptionError(f"weight must lie in [0, 1], not {weight!r}")
    if weight > 0 and 1 - weight == 1:
        raise OptionError(f"weight = {weight!r} is too small for floating point; take 0")
    how = max_bytes, border.progress(progress)
    return solve_task(border, Task(alpha, float(weight), bool(lexicographic), *how))


def solve_task(border: Border, task: Task) -> ExactSolution:
    """The answer of the model that is solved, as one of the model as given."""
    try:
        found = _solved(border.solved, task)
    except LimitExceededError as error:
        raise border.error(error) from None
    # With `delta` the policy is that for costs rounded up, and costs rounded down bound it from
    # below.
    below = border.below
    answer: ExactSolution = border.restore(found, below and _solved(below, task))
    return answer


def _solved(ssp: SSP, task: Task) -> ExactSolution:
    """The answer for costs of 0 or more, which have a unit."""
    require_unit(ssp)
    expected, weight = solve_expected(ssp), task.weight
    fields: dict[str, Any] = {}
    if task.lexicographic:
        fields["plain"] = Later(partial(_solved, ssp, task._replace(lexicographic=False)))
    means = weight < 1 or task.lexicographic
    if weight == 0 or ssp.is_goal[ssp.start_index]:
        # Nothing is decided by budgets.
        budgets, policy = np.zeros(1, np.int64), always_risk_neutral(ssp, expected.choices)
        values = np.full((3, 1), expected.cost() / float(ssp.cost_unit or 1))
        sides = Later(partial(_mean_alone, expected))
    else:
        large = ssp.n_states * expected.cost() / float(ssp.cost_unit or 1) > WORTH_SKIPPING
        layout = layout_of(ssp, "excess" if (large if task.skip is None else task.skip) else "")
        objective = _objective(layout, task)
        how: Any = {"max_bytes": task.max_bytes, "progress": task.progress}
        table = fill_smaller(layout, objective, pairs=task.pairs, **how)
        budgets, values, sides = table.budgets, table.values.T, Later(table.sides)
        best = first_best(
            weight * budgets + objective.price * values[0],
            values[1] if task.lexicographic and weight == 1 else None,
        )
        policy = budget_policy(ssp, layout, table.changes, int(budgets[best]), expected.choices)
        least = expected.bounds[0] / float(layout.unit)
        fields["beyond"] = weight * (table.limit + 1) + (1 - weight) * least
        fields["method"] = table.method
    if weight < 1:
        fields |= {"weight": weight, "price": values[0]}
    answer = ExactSolution if weight == 1 else WeightedSolution
    excess, mean = values[0 if weight == 1 else 2], values[1] if means else None
    return answer(task.alpha, budgets, excess, mean, policy, sides, **fields)


def _objective(layout: ModelLayout, task: Task) -> Objective:
    """The excess, then, to break ties, the mean; or a weighted sum, with its mean and excess."""
    weight, price = task.weight, 1 / task.alpha
    criteria = [EXCESS, MEAN] if task.lexicographic else [EXCESS]
    if weight < 1:
        criteria, price = [(1 - weight) * MEAN + weight / task.alpha * EXCESS, MEAN, EXCESS], 1.0
    return layout.objective(
        np.stack(criteria),
        weight,
        price,
        floor=(1 - weight) * layout.start_value,
        tie=SAME_VALUE if task.lexicographic else 0.0,
    )


def _mean_alone(expected: ExpectedSolution) -> TableSides:
    """The bounds of the risk-neutral policy as those of a table."""
    unit = float(expected.ssp.cost_unit or 1)
    low, high = (np.array([side / unit]) for side in expected.bounds)
    return TableSides(low * (1 - AFTERWARDS), high[:, None] * (1 + AFTERWARDS))
