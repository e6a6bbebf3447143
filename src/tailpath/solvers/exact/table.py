"""The table over (state, budget left): swept level by level, kept as small as the answers need.

Values live in a window of as many levels as the largest cost, to a state that is no goal, that a
budget can exceed; only the values at the start are kept. Of the decisions only the budgets are kept
at which a state's choice changes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tailpath.analysis.core import core_of
from tailpath.certify.budgets import TableSides, early_bounds, table_sides
from tailpath.dp.budget_model import NO_LOSS, Changes, Objective
from tailpath.dp.budgets import Fill, Filled, cutoff_of, fill
from tailpath.errors import LimitExceededError
from tailpath.graph import Array, FloatArray, IntArray, members_of, owners
from tailpath.model.ssp import SSP
from tailpath.options import Progress
from tailpath.policies.budget import BudgetPolicy, steps_of
from tailpath.solvers.exact.layout import ModelLayout

#: What is kept of values and decisions may take this much memory.
MAX_BYTES = 4 * 2**30


#: The table of a layout once more: its objective, what arriving is worth, the choices to hold.
Again = Callable[[Any, Objective, FloatArray, Changes], Filled]


@dataclass(frozen=True, eq=False)
class BudgetTable:
    """What the sweep found, in cost units: `values[j, i]` is the value of the start with budget
    `budgets[j]` in criterion i; with prices `values[j, i, k]`. No budget beyond `limit` was looked
    at; values of joint blocks miss their backup by `residual` at most, relatively; `again` fills
    the same budgets of another layout.
    """

    layout: ModelLayout
    objective: Objective
    budgets: IntArray
    values: FloatArray
    changes: Changes
    limit: int
    residual: float
    again: Again
    loss: FloatArray = field(default_factory=lambda: NO_LOSS)
    method: str = ""

    def sides(self, losses: tuple[FloatArray, FloatArray] | None = None) -> TableSides:
        """Bounds on the values at the start; `losses` are those on what arriving is worth."""
        ends, both = self.layout.ends(), losses or (self.loss, self.loss)
        return table_sides(self.layout, self.objective, ends, self.again, self.changes, both)


def fill_table(
    layout: ModelLayout,
    objective: Objective,
    loss: FloatArray = NO_LOSS,
    *,
    max_bytes: int = MAX_BYTES,
    progress: Progress | None = None,
    way: Fill = fill,
) -> BudgetTable:
    """Raise the budget until no larger one can matter. `loss[w, i]` is what arriving with budget w
    is worth in criterion i.

    The largest budget that may matter is guessed where that pays, and raised if it was too small:
    the smaller it is, the fewer states the start can reach within it, and the fewer levels are
    kept.
    """

    def run(objective: Objective) -> tuple[BudgetTable, float]:
        """One pass from budget 0 to the cutoff, and the best value at the start."""

        def check(memory: int, w: int, best: float) -> None:
            if memory > max_bytes:
                raise _too_large(layout, objective, max_bytes, w, best)

        def report(w: int, best: float) -> None:
            if progress is not None:
                progress(w, best * float(layout.unit))

        found = way(layout, objective, loss, max_bytes, check, report)
        last = len(found.values) - 1

        def again(other: Any, what: Objective, loss: FloatArray, held: Changes) -> Filled:
            return fill(other, what._replace(limit=float(last)), loss, max_bytes, held=held)

        method = f"all budgets up to {last} in all states"
        columns = np.arange(last + 1), found.values, found.changes, last, found.residual
        return BudgetTable(layout, objective, *columns, again, loss, method), found.best

    if objective.weight == 0:
        return run(objective)[0]
    guess = first_guess(layout)
    while guess < max(2 * layout.farthest, layout.longest + 1):
        table, best = run(objective._replace(limit=guess))
        if cutoff_of.plain(objective, best) <= guess:
            return table
        guess = min(cutoff_of.plain(objective, best), 2 * guess)
    return run(objective)[0]


def first_guess(layout: ModelLayout) -> float:
    """A budget beyond which nothing may matter, as far as one can guess: twice the least expected
    cost, or less where a low guess is cheap or spares the values of many levels.
    """
    guess = max((1.25 if layout.skips else 2.0) * layout.start_value, 16.0)
    reach = layout.reach(guess)
    return float(reach) if reach > 0.75 * guess else guess


def _too_large(
    layout: ModelLayout, objective: Objective, max_bytes: int, w: int, best: float
) -> LimitExceededError:
    unit, bounds = float(layout.unit), (0.0, math.inf)
    if objective.weight > 0 and isinstance(layout, ModelLayout):
        bounds = early_bounds(layout, objective, layout.ends(), w, best)
    return LimitExceededError(
        f"{layout.n} states x {w} cost levels need more than {max_bytes / 2**30:.3g}"
        " GiB, and more levels are to come; a coarser grid (--delta, delta=) or a larger"
        " max_bytes would help",
        (bounds[0] * unit, bounds[1] * unit),
    )


def too_many_levels(levels: int, max_bytes: int = MAX_BYTES) -> LimitExceededError:
    return LimitExceededError(
        f"{levels} cost levels need more than {max_bytes / 2**30:.3g} GiB; a coarser grid (--delta,"
        " delta=) would help",
        (0.0, math.inf),
    )


def always_risk_neutral(ssp: SSP, risk_neutral: NDArray[np.int32]) -> BudgetPolicy:
    """The policy for budget 0 alone: risk-neutral from the start."""
    nothing = np.zeros(0, dtype=np.int64)
    return BudgetPolicy.from_changes(
        ssp, 0, (nothing, nothing, nothing), risk_neutral, ssp.outcome_level, ssp.cost_unit
    )


def budget_policy(
    ssp: SSP,
    layout: ModelLayout,
    changes: Changes,
    budget: int,
    risk_neutral: NDArray[np.int32],
    deadline: bool = False,
) -> BudgetPolicy:
    """The policy for budgets up to `budget`; steps that no run from the start can meet are left
    out.
    """
    node, from_budget, choice = changes
    met = from_budget + layout.nodes.cost_from_start[node] <= budget
    if not met.all():
        node, from_budget = node[met], from_budget[met]
        choice = choice[met]
    states, of_node = layout.members
    choice = layout.choice[choice]
    if len(states) == layout.n:
        state = states[node]
    else:  # a node of a zero-cost component stands for several states
        member, of_change = members_of(of_node, node)
        change = owners(of_change)
        state, from_budget = states[member], from_budget[change]
        choice = choice[change]
        elsewhere = np.flatnonzero(ssp.choice_state[choice] != state)
        if elsewhere.size:
            choice[elsewhere] = _way_out(ssp, layout, state[elsewhere], choice[elsewhere])
    return BudgetPolicy.trusted(
        ssp=ssp,
        budget=budget,
        risk_neutral=risk_neutral,
        level=ssp.outcome_level,
        unit=layout.unit,
        deadline=deadline,
        **steps_of(state, from_budget, choice, risk_neutral),
    )


def _way_out(ssp: SSP, layout: ModelLayout, state: Array, leaving: IntArray) -> Array:
    """What states of zero-cost components do: walk to the state that has the choice that leaves."""
    node, own = layout.node_of[state], np.empty(len(state), dtype=np.int64)
    # One walk serves all components at once, so there are as many walks as the most exits that one
    # component uses.
    pairs = np.unique(np.stack([node, leaving]), axis=1)
    first = np.searchsorted(pairs[0], pairs[0], side="left")
    turn = np.arange(pairs.shape[1]) - first
    for number in range(int(turn.max()) + 1):
        some = pairs[1, turn == number]
        here = np.isin(leaving, some)
        own[here] = core_of(ssp).walks_to(some)[state[here]]
    return own


def model_as_counted(policy: BudgetPolicy) -> SSP:
    """The model of a policy with every cost as the policy counts it."""
    ssp, level = policy.ssp, policy.level
    unit = policy.unit
    if ssp.cost_unit == unit and np.array_equal(level, ssp.outcome_level):
        return ssp
    return replace(
        ssp, outcome_cost=np.asarray(level * float(unit), dtype=np.float64), exact_unit=unit
    )
