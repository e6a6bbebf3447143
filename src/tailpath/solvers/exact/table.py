"""The table over (state, budget left): filled level by level, kept as small as the answers need.

Values live in a ring that holds no more levels than the largest cost to a state that is no goal, of those that a budget can exceed; only the values
at the start are kept. Of the decisions only the budgets are kept at which a state's choice changes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tailpath.analysis.core import core_of
from tailpath.errors import LimitExceededError
from tailpath.kernels.budget import BASE, REST, Aim, Steps, cutoff_of, raise_budget
from tailpath.kernels.jit import cores
from tailpath.model.ragged import members_of, offsets_of, owners
from tailpath.model.ssp import SSP, FloatArray
from tailpath.options import Progress
from tailpath.policies.budget import BudgetPolicy
from tailpath.solvers.exact.layout import Layout

#: A block with fewer outcomes than this to look at, at a level, is not worth waking the other cores for.
WORTH_THREADS = 1_000_000
#: About so many values are computed before the caller is told.
PIECE = 2**23
#: What is kept of values and decisions may take this much memory.
MAX_BYTES = 4 * 2**30

#: What can be counted (`kernels/budget.py`): E[(Z - w)+], the probability of a cost of w or more, and the expected cost. They may be added up.
EXCESS, LATE, MEAN = np.array([0.0, 1.0, 1.0, 0.0]), np.array([1.0, 0.0, 0.0, 0.0]), np.array([0.0, 0.0, 1.0, 1.0])


class Changes(NamedTuple):
    """Where the choice of a node changes, in any order: the node, the first budget with the new choice, and its label."""

    node: NDArray[Any]
    budget: NDArray[np.int64]
    label: NDArray[Any]


@dataclass(frozen=True, eq=False)
class BudgetTable:
    """What the recursion found, in cost units, for budgets w = 0, 1, ..., len(values) - 1.

    `values[w, i]` is the value of the start in account i. `error` bounds the relative error that each level added.
    """

    layout: Layout
    values: FloatArray
    changes: Changes
    error: float

    @property
    def budgets(self) -> NDArray[np.int64]:
        """The budgets of the values."""
        return np.arange(len(self.values))

    @property
    def steps(self) -> NDArray[np.int64]:
        """How many levels of error there are in the value of each budget."""
        return self.budgets


def counted(policy: BudgetPolicy) -> SSP:
    """The model of a policy with every cost as the policy counts it: itself, or what rounding made of it."""
    ssp, level, unit = policy.ssp, policy.level, policy.unit
    if ssp.cost_unit == unit and np.array_equal(level, ssp.outcome_level):
        return ssp
    return replace(ssp, outcome_cost=np.asarray(level * float(unit), dtype=np.float64), exact_unit=unit)


def fill_table(
    layout: Layout,
    aim: Aim,
    accounts: FloatArray,
    *,
    loss: FloatArray | None = None,
    threads: bool | None = None,
    max_bytes: int = MAX_BYTES,
    progress: Progress | None = None,
) -> BudgetTable:
    """Raise the budget until no larger one can matter. `accounts` are the rows of `kernels/budget.py`.
    `threads` says whether all cores are used, if that is not to be left to the size of the model; the table is the same.

    The smaller the largest budget that may matter, the fewer states the start can reach within it. It is not known before the end; so where it
    pays, it is guessed, and raised if it was too small: a state beyond the guess does not touch the values of the budgets within.
    """
    filling = _Filling(layout, np.atleast_2d(accounts), np.zeros((0, 0)) if loss is None else loss, threads, max_bytes, progress)
    guess = first_guess(layout)
    while aim.weight > 0 and guess < 2 * float(layout.levels.least.max()):
        table, best = filling.run(aim._replace(limit=guess))
        if cutoff_of.plain(aim, best) <= guess:
            return table
        guess = min(cutoff_of.plain(aim, best), 2 * guess)
    return filling.run(aim)[0]


def first_guess(layout: Layout) -> float:
    """A budget beyond which nothing may matter, as far as one can guess: twice the least expected cost, or little more than that where budgets are
    left out, since a low guess is cheap there. A little less where that spares the values of many levels: a cost that no budget exceeds needs none
    of them."""
    guess = max((1.25 if layout.levels.sure.any() else 2.0) * layout.start_value, 16.0)
    reach = layout.reach(guess)
    return float(reach) if reach > 0.75 * guess else guess


@dataclass(frozen=True, eq=False)
class _Filling:
    """What every pass over the levels has in common."""

    layout: Layout
    accounts: FloatArray
    loss: FloatArray
    threads: bool | None
    max_bytes: int
    progress: Progress | None

    def run(self, aim: Aim) -> tuple[BudgetTable, float]:
        """One pass from budget 1 to the cutoff; also returns the best value at the start."""
        layout, accounts = self.layout, self.accounts
        n, levels, count = layout.n, layout.levels, len(accounts)
        threads = layout.at_a_time(aim.limit) > WORTH_THREADS and cores() > 1 if self.threads is None else self.threads
        advance = raise_budget(threads, count > 1, bool(levels.block_joint.any()))
        rows = int(np.clip(PIECE // n, 16, min(4096, max(16.0, aim.limit + 1))))
        reach = layout.reach(aim.limit)
        capacity = min(reach, rows) + 1
        ring = np.zeros((count, capacity * n))
        blocks = levels.block_start
        place = np.empty(n, dtype=np.int32), blocks[:-1].copy(), np.zeros(len(blocks) - 1, dtype=np.int64)
        policy, kind = levels.node_choices[:-1].copy(), levels.choice_label.dtype
        label = levels.choice_label[np.minimum(policy, len(levels.choice_label) - 1)]
        found = Steps(np.empty(n, dtype=np.int32), np.empty(n, dtype=np.int64), np.empty(n, dtype=kind), label.copy())
        values = [accounts[None, :, BASE] + accounts[None, :, REST] * layout.start_value]
        best = aim.price * float(values[0][0, 0])
        error, gain_left, w, at, more = 0.0, 0.0, 1, 0, True
        while more:
            last = w + rows - 1
            if min(reach, last) >= capacity:
                capacity = min(reach, 2 * last) + 1
                ring = _longer(ring, capacity * n)
            if at + n > len(found.node):
                found = found._replace(
                    **{name: np.append(old, np.empty(len(old) + n, old.dtype)) for name, old in zip(found._fields, found[:3])}
                )
            self._check_room(ring.nbytes + sum(each.nbytes for each in found), aim, w, best)
            value = np.empty((rows, count))
            end, at, best, worst, left = advance(
                levels,
                layout.joint,
                aim,
                accounts,
                self.loss,
                w,
                last,
                best,
                capacity,
                ring.ravel(),
                *place,
                policy,
                label,
                at,
                found,
                value,
            )
            values.append(value[: end - w])
            more = end > last or at + n > len(found.node)
            error, gain_left, w = max(error, worst), max(gain_left, left), end
            if self.progress is not None:
                self.progress(w - 1, best * float(layout.unit))
        per_level = layout.depth * layout.per_block(error, gain_left)
        return BudgetTable(layout, np.concatenate(values), Changes(*(each[:at] for each in found[:3])), per_level), best

    def _check_room(self, memory: int, aim: Aim, w: int, best: float) -> None:
        """Refuse values and steps beyond the memory allowed."""
        if memory <= self.max_bytes:
            return
        if aim.weight > 0:
            low = min(best, aim.weight * w + aim.floor)
        else:
            low, best = 0.0, np.inf
        raise LimitExceededError(
            f"{self.layout.n} states x {w} cost levels need more than {self.max_bytes / 2**30:.3g} GiB, and more levels are to come; "
            "a coarser grid (--delta, delta=) or a larger max_bytes would help",
            (low * float(self.layout.unit), best * float(self.layout.unit)),
        )


def _longer(ring: FloatArray, size: int) -> FloatArray:
    """Longer rings. They grow before they ever wrap, so their rows are levels 0, 1, ... in order."""
    longer = np.zeros((len(ring), size))
    longer[:, : ring.shape[1]] = ring
    return longer


def always_neutral(ssp: SSP, neutral: NDArray[np.int32]) -> BudgetPolicy:
    """The policy for budget 0 alone: risk-neutral from the start."""
    nothing = np.zeros(0, dtype=np.int64)
    return BudgetPolicy.from_changes(ssp, 0, (nothing, nothing, nothing), neutral, ssp.outcome_level, ssp.cost_unit)


def budget_policy(ssp: SSP, layout: Layout, changes: Changes, budget: int, neutral: NDArray[np.int32]) -> BudgetPolicy:
    """The policy for budgets up to `budget`, with the risk-neutral choices `neutral`; steps that no run from the start can get to are left out."""
    levels = layout.levels
    met = np.flatnonzero(changes.budget + levels.least[changes.node] <= budget)
    # A node of a free component stands for several states.
    states = np.flatnonzero(layout.node_of >= 0)
    states = states[np.argsort(layout.node_of[states], kind="stable")]
    member, of_change = members_of(offsets_of(layout.node_of[states], layout.n), changes.node[met])
    state, change = states[member], met[owners(of_change)]
    choice = ssp.state_choices[state] + changes.label[change]
    spread = np.flatnonzero(layout.collapsed[changes.node[change]])
    if spread.size:
        picked = levels.node_choices[changes.node[change[spread]]] + changes.label[change[spread]]
        choice[spread] = _walked(ssp, layout, state[spread], picked)
    return BudgetPolicy.from_changes(ssp, budget, (state, changes.budget[change], choice), neutral, ssp.outcome_level, layout.unit)


def _walked(ssp: SSP, layout: Layout, state: NDArray[Any], picked: NDArray[np.int64]) -> NDArray[Any]:
    """What states of free components do, given the choice that leaves theirs: walk, at no cost, to the state that has it."""
    node = layout.node_of[state]
    own = np.zeros(len(state), dtype=np.int64)
    # One walk serves all components at once, so there are as many walks as the most exits that one component uses.
    order = np.argsort(node, kind="stable")
    ends = np.flatnonzero(np.append(np.diff(node[order]) != 0, True)) + 1
    exits = [np.unique(picked[members]) for members in np.split(order, ends[:-1])]
    for turn in range(max(len(some) for some in exits)):
        leaving = np.array([some[min(turn, len(some) - 1)] for some in exits])
        here = np.isin(picked, leaving)
        own[here] = core_of(ssp).walks_to(layout.choice[leaving])[state[here]]
    return own
