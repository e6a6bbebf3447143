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

from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple, overload

import numpy as np

from tailpath.analysis.reachability import nature_called, reachable_states
from tailpath.certify.budgets import FEW, Later, TableSides
from tailpath.dp.budget_model import EXCESS, MEAN
from tailpath.dp.budgets import Fill, fill
from tailpath.errors import LimitExceededError, OptionError
from tailpath.graph import FloatArray
from tailpath.kernels.rounding import SAME_VALUE
from tailpath.model.border import prepare
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
from tailpath.registers import module_of
from tailpath.solvers.exact.grid import rounded, rounded_down
from tailpath.solvers.exact.layout import ModelLayout, layout_of, require_unit
from tailpath.solvers.exact.pairs import fill_smaller
from tailpath.solvers.exact.robust import RobustSolution, solve_robust_cvar
from tailpath.solvers.exact.solution import ExactSolution, WeightedSolution
from tailpath.solvers.exact.table import MAX_BYTES, always_risk_neutral, budget_policy
from tailpath.solvers.expectation import ExpectedSolution, solve_expected

#: From so many states times levels on it is worth to find out which budgets are sure to be
#: exceeded.
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
    way: Fill = fill

    def layout(self, expected: ExpectedSolution) -> ModelLayout:
        ssp = expected.ssp
        assert ssp.cost_unit is not None
        large = ssp.n_states * expected.cost() / float(ssp.cost_unit) > WORTH_SKIPPING
        return layout_of(ssp, "excess" if (large if self.skip is None else self.skip) else "")

    def solution(self, price: FloatArray, **fields: Any) -> ExactSolution | WeightedSolution:
        """`price` is what is minimised beside the budget."""
        if self.weight == 1:
            return ExactSolution(self.alpha, **fields)
        return WeightedSolution(self.alpha, **fields, weight=self.weight, price=price)


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
    if hasattr(ssp, "on_ranks"):
        found: ExactSolution = ssp.on_ranks(
            "solve_cvar", comm, alpha, max_bytes, progress, **options
        )
        return found
    border = prepare(ssp)
    nature_called(nature)
    if border.uncertain:
        return solve_robust_cvar(border.given, alpha, nature, max_bytes, **options)
    ssp = border.given
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
        task = task._replace(way=filled_on_ranks(comm))
    return solve_task(ssp, task, delta)


def filled_on_ranks(comm: Any) -> Fill:
    """How the ranks of a communicator fill a table together."""
    found: Fill = module_of("tailpath.distributed.fill", "mpi").shared_by(comm)
    return found


def most_steps(ssp: SSP) -> int:
    """The most steps that a run can take, which a discount needs."""
    rows = ssp.by_state
    inside = reachable_states(ssp)[rows.source] & ~ssp.is_goal[rows.target]
    order = rows.only(inside).acyclic_order()
    if order is None:
        raise OptionError(
            "with a discount every step has costs of its own, so a run that may take any number of"
            " steps has no cost unit to count in; limit the steps, within(ssp, n, gamma=gamma)"
            " (--within N), or read the discount as a chance to end, as solve_expected(ssp,"
            " gamma=gamma) (--method expected) does"
        )
    return order[1] + 1


def solve_task(ssp: SSP, task: Task, delta: Any = None) -> ExactSolution | WeightedSolution:
    """`solve_cvar_exact` with everything decided."""
    border = prepare(ssp)
    task = task._replace(progress=border.progress(task.progress))
    try:
        found: ExactSolution | WeightedSolution = border.restore(
            _on_grid(border.model, task, delta)
        )
    except LimitExceededError as error:
        raise border.error(error) from None
    return found


def _on_grid(ssp: SSP, task: Task, delta: Any) -> ExactSolution | WeightedSolution:
    """On the costs as they are, or between those rounded up, whose policy it is, and down."""
    if delta is None:
        require_unit(ssp)
        return _solved(ssp, task)
    above, below = rounded(ssp, delta, up=True), rounded_down(ssp, delta)
    upper = _solved(above, task)
    return replace(
        upper,
        largest=upper.largest.on(ssp),
        floor=None if below is None else _solved(below, task),
        least=solve_expected(ssp).bounds[0],
    )


def _solved(ssp: SSP, task: Task) -> ExactSolution | WeightedSolution:
    assert ssp.cost_unit is not None
    expected, weight = solve_expected(ssp), task.weight
    unit = float(ssp.cost_unit)
    alike = task._replace(lexicographic=False)
    plain = Later(partial(_solved, ssp, alike)) if task.lexicographic else None
    if weight == 0 or ssp.is_goal[ssp.start_index]:
        alone = np.array([expected.cost() / unit])

        def of_mean() -> TableSides:
            low, high = (np.array([side / unit]) for side in expected.bounds)
            return TableSides(low * (1 - FEW), high[:, None] * (1 + FEW))

        return task.solution(
            alone,
            budgets=np.zeros(1, np.int64),
            excess=alone,
            mean_cost=alone if weight < 1 or task.lexicographic else None,
            largest=always_risk_neutral(ssp, expected.choices),
            sides=Later(of_mean),
            plain=plain,
        )
    layout = task.layout(expected)
    criteria, price = [EXCESS], 1 / task.alpha
    if weight < 1:
        criteria, price = [(1 - weight) * MEAN + weight / task.alpha * EXCESS, MEAN, EXCESS], 1.0
    elif task.lexicographic:
        criteria = [EXCESS, MEAN]
    objective = layout.objective(
        np.stack(criteria),
        weight,
        price,
        floor=(1 - weight) * layout.start_value,
        tie=SAME_VALUE if task.lexicographic else 0.0,
    )
    how: Any = {"max_bytes": task.max_bytes, "progress": task.progress, "way": task.way}
    table = fill_smaller(layout, objective, pairs=task.pairs, **how)
    values = table.values.T
    found = task.solution(
        values[0],
        budgets=table.budgets,
        excess=values[0 if weight == 1 else 2],
        mean_cost=values[1] if len(criteria) > 1 else None,
        largest=always_risk_neutral(ssp, expected.choices),
        sides=Later(table.sides),
        plain=plain,
        beyond=weight * (table.limit + 1) + (1 - weight) * expected.bounds[0] / unit,
        method=table.method,
    )
    largest = int(table.budgets[found.best_position(task.alpha)])
    policy = budget_policy(ssp, layout, table.changes, largest, expected.choices)
    return replace(found, largest=policy)
