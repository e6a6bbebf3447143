"""The table over (state, budget left): swept level by level, kept as small as the answers need.

Values live in a window of as many levels as the largest cost, to a state that is no goal, that a budget can exceed; only the values at the start
are kept. Of the decisions only the budgets are kept at which a state's choice changes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tailpath.analysis.core import core_of
from tailpath.dp.budgets import BASE, TO_GO, Changes, Objective, cutoff_of, sweep
from tailpath.dp.layout import NO_LOSS
from tailpath.errors import LimitExceededError
from tailpath.graph import members_of, owners
from tailpath.model.ssp import SSP, FloatArray
from tailpath.options import Progress
from tailpath.policies.budget import BudgetPolicy
from tailpath.solvers.exact.layout import ModelLayout

#: About so many values are computed before the caller is told.
AT_A_TIME = 2**23
#: What it takes to bracket the value of a budget.
BRACKET_BYTES = 72
#: What is kept of values and decisions may take this much memory.
MAX_BYTES = 4 * 2**30
#: For each node there is room for so many changes of its choice, at first.
ROOM = 4


@dataclass(frozen=True, eq=False)
class BudgetTable:
    """What the sweep found, in cost units: `values[j, i]` is the value of the start with budget `budgets[j]` in criterion i.

    With prices, `values[j, i, k]` is that for price k. `steps[j]` counts the levels of error in the values, each of which adds `error` to the
    relative error at most. `changes` are those of the choices of nodes. `method` says what was looked at, and why.
    """

    layout: ModelLayout
    budgets: NDArray[np.int64]
    steps: NDArray[np.int64]
    values: FloatArray
    changes: Changes
    error: float
    method: str = ""


def fill_table(
    layout: ModelLayout,
    objective: Objective,
    loss: FloatArray = NO_LOSS,
    *,
    max_bytes: int = MAX_BYTES,
    progress: Progress | None = None,
) -> BudgetTable:
    """Raise the budget until no larger one can matter. `loss[w, i]` is what arriving with budget w is worth in criterion i.

    The smaller the largest budget that may matter, the fewer states the start can reach within it, and the fewer levels are kept. It is not
    known before the end; so where it pays, it is guessed, and raised if it was too small: a state beyond the guess does not touch the values
    of the budgets within.
    """
    filling = _Filling(layout, loss, max_bytes, progress)
    if objective.weight == 0:
        return filling.run(objective)[0]
    guess = first_guess(layout)
    while guess < max(2 * float(layout.nodes.least.max()), layout.reach() + 1):
        table, best = filling.run(objective._replace(limit=guess))
        if cutoff_of.plain(objective, best) <= guess:
            return table
        guess = min(cutoff_of.plain(objective, best), 2 * guess)
    return filling.run(objective)[0]


def first_guess(layout: ModelLayout) -> float:
    """A budget beyond which nothing may matter, as far as one can guess: twice the least expected cost, or little more than that where budgets are
    left out, since a low guess is cheap there. A little less where that spares the values of many levels: a cost that no budget exceeds needs none
    of them."""
    guess = max((1.25 if layout.nodes.sure.any() else 2.0) * layout.start_value, 16.0)
    reach = layout.reach(guess)
    return float(reach) if reach > 0.75 * guess else guess


@dataclass(frozen=True, eq=False)
class _Filling:
    """What every pass over the levels has in common."""

    layout: ModelLayout
    loss: FloatArray
    max_bytes: int
    progress: Progress | None

    def run(self, objective: Objective) -> tuple[BudgetTable, float]:
        """One pass from budget 1 to the cutoff; also returns the best value at the start."""
        layout, n, lanes = self.layout, self.layout.n, max(len(objective.prices), 1)
        # An objective without a weight ends at its limit; with one, the sweep does not know beforehand how many levels there are.
        rows = int(np.clip(AT_A_TIME // n, 16, min(4096, max(16.0, objective.limit))))
        size = 8 * (layout.reach(objective.limit) + 1) * n * lanes * len(objective.criteria)
        self._check_room(size, objective, 1, np.inf)
        model, work = layout.up_to(objective.limit), layout.work(objective, self.max_bytes)
        found = Changes(*(np.empty(ROOM * n, dtype=kind) for kind in (np.int32, np.int64, np.int32)))
        values = [np.repeat(objective.criteria[:, BASE] + objective.criteria[:, TO_GO] * layout.start_value, lanes)[None, :]]
        best = objective.price * float(values[0][0, 0])
        error, gain_left, w, at, more = 0.0, 0.0, 1, 0, True
        while more:
            last = w + rows - 1
            if at + n > len(found.node):
                found = Changes(*(np.append(each, np.empty(len(each) + n, each.dtype)) for each in found))
            # The values at the start are copied once, into one array, and an optimum over budgets brackets each.
            level = 2 * values[0].nbytes + (BRACKET_BYTES if objective.weight > 0 else 0)
            kept = sum(each.nbytes for each in found) + level * last
            self._check_room(size + kept, objective, w, best)
            value = np.empty((rows, len(objective.criteria) * lanes))
            end, at, best, worst, left = sweep(model, objective, self.loss, (w, last, at), best, work, found, value)
            values.append(value[: end - w])
            more = (end > last and end <= objective.limit) or at + n > len(found.node)
            error, gain_left, w = max(error, worst), max(gain_left, left), end
            if self.progress is not None:
                self.progress(w - 1, best * float(layout.unit))
        table = np.concatenate(values)
        table = table.reshape(len(table), -1, lanes) if len(objective.prices) else table
        budgets, per_level = np.arange(len(table)), layout.depth * layout.per_block(error, gain_left)
        method = f"all budgets up to {len(table) - 1} in all states"
        return BudgetTable(layout, budgets, budgets, table, Changes(*(each[:at] for each in found)), per_level, method), best

    def _check_room(self, memory: int, objective: Objective, w: int, best: float) -> None:
        """Refuse values and steps beyond the memory allowed."""
        if memory <= self.max_bytes:
            return
        low, unit = 0.0, float(self.layout.unit)
        if objective.weight > 0:
            best = min(best, objective.price * self.layout.start_value * float(objective.criteria[0, TO_GO]))
            low = min(best, objective.weight * w + objective.floor)
        raise LimitExceededError(
            f"{self.layout.n} states x {w} cost levels need more than {self.max_bytes / 2**30:.3g} GiB, and more levels are to come; "
            "a coarser grid (--delta, delta=) or a larger max_bytes would help",
            (low * unit, best * unit),
        )


def always_neutral(ssp: SSP, neutral: NDArray[np.int32]) -> BudgetPolicy:
    """The policy for budget 0 alone: risk-neutral from the start."""
    nothing = np.zeros(0, dtype=np.int64)
    return BudgetPolicy.from_changes(ssp, 0, (nothing, nothing, nothing), neutral, ssp.outcome_level, ssp.cost_unit)


def budget_policy(ssp: SSP, table: BudgetTable, budget: int, neutral: NDArray[np.int32]) -> BudgetPolicy:
    """The policy for budgets up to `budget`, with the risk-neutral choices `neutral`; steps that no run from the start can get to are left out."""
    layout, changes = table.layout, table.changes
    met = np.flatnonzero(changes.budget + layout.nodes.least[changes.node] <= budget)
    states, of_node = layout.members
    if len(states) == layout.n:
        state, change = states[changes.node[met]], met
    else:  # a node of a zero-cost component stands for several states
        member, of_change = members_of(of_node, changes.node[met])
        state, change = states[member], met[owners(of_change)]
    choice = layout.choice[changes.choice[change]]
    spread = np.flatnonzero(ssp.choice_state[choice] != state)
    if spread.size:
        choice[spread] = _walked(ssp, layout, state[spread], choice[spread])
    return BudgetPolicy.from_changes(ssp, budget, (state, changes.budget[change], choice), neutral, ssp.outcome_level, layout.unit)


def _walked(ssp: SSP, layout: ModelLayout, state: NDArray[Any], leaving: NDArray[np.int64]) -> NDArray[Any]:
    """What states of zero-cost components do, given the choice that leaves theirs: walk, at no cost, to the state that has it."""
    node, own = layout.node_of[state], np.empty(len(state), dtype=np.int64)
    # One walk serves all components at once, so there are as many walks as the most exits that one component uses.
    pairs = np.unique(np.stack([node, leaving]), axis=1)
    first = np.searchsorted(pairs[0], pairs[0], side="left")
    turn = np.arange(pairs.shape[1]) - first
    for number in range(int(turn.max()) + 1):
        some = pairs[1, turn == number]
        here = np.isin(leaving, some)
        own[here] = core_of(ssp).walks_to(some)[state[here]]
    return own


def counted(policy: BudgetPolicy) -> SSP:
    """The model of a policy with every cost as the policy counts it: itself, or what rounding made of it."""
    ssp, level, unit = policy.ssp, policy.level, policy.unit
    if ssp.cost_unit == unit and np.array_equal(level, ssp.outcome_level):
        return ssp
    return replace(ssp, outcome_cost=np.asarray(level * float(unit), dtype=np.float64), exact_unit=unit)
