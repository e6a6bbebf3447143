"""Outcomes by column, to which every way of making a model leads, and the arrays of a model that
are made from them. The SSP checks these arrays.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from tailpath.errors import OptionError
from tailpath.graph import (
    SORTED_BY_NUMPY,
    Array,
    BoolArray,
    FloatArray,
    IntArray,
    Transitions,
    grouped,
    offsets_of,
)
from tailpath.kernels.graph import equal_members
from tailpath.kernels.jit import frozen
from tailpath.model.records import hand_over

Name = Hashable
#: The choice, the target, the probability and the cost of every outcome.
OutcomeArrays = tuple[Array, Array, Array, Array]
#: Up to this many outcomes of a choice are compared one by one, which is faster than sorting all.
SORTED_ABOVE = 64
#: A row of n probabilities may miss 1 by this times n; it is then scaled to 1, with a warning.
ROW_TOLERANCE = 1e-9


class OutcomeColumns(NamedTuple):
    """Outcomes in any order, a row each, by the numbers of states and actions. `probabilities` has
    one column of them, or the low and the high ends of intervals, or counts. Rows with the same
    outcome are added up.
    """

    state: Array
    action: Array
    target: Array
    cost: Array
    probabilities: tuple[Array, ...]

    def only(self, mask: Array) -> OutcomeColumns:
        """The outcomes in a mask, or of some numbers."""
        state, action, target, cost = (column[mask] for column in self[:4])
        shares = tuple(column[mask] for column in self.probabilities)
        return OutcomeColumns(state, action, target, cost, shares)

    def extended(
        self, state: Any, action: int, target: Array, cost: Any, probability: float
    ) -> OutcomeColumns:
        """With one more row for each of some targets."""

        def longer(column: Array, more: Any) -> Array:
            return np.append(column, np.broadcast_to(more, len(target)).astype(column.dtype))

        shares = tuple(longer(column, probability) for column in self.probabilities)
        added = (state, action, target, cost)
        source, chosen, ends, costs = map(longer, self[:4], added)
        return OutcomeColumns(source, chosen, ends, costs, shares)

    def fields(
        self, fields: dict[str, Any], *, counted: bool = False, merge: bool = True
    ) -> dict[str, Any]:
        """The arrays beside the other fields of an `SSP`. Intervals and counts are columns of
        `outcome_probability`, (n_outcomes, k).
        """
        columns = self.probabilities
        return fields | arrays_from_rows(
            *(self.state, self.action, self.target),
            np.stack(columns, axis=1) if counted or len(columns) > 1 else columns[0],
            self.cost,
            len(fields["is_goal"]),
            merge=merge,
        )


@dataclass(frozen=True)
class CostRule:
    """Costs for rewards: these times `sign`, or `step_cost`; `cost_of` has the costs of particular
    rewards.
    """

    sign: int
    step_cost: float | None = None
    cost_of: Mapping[float, float] = field(default_factory=dict)

    @property
    def is_sign(self) -> bool:
        """Whether costs and rewards only differ in sign."""
        return self.step_cost is None and not self.cost_of

    @property
    def ignores_rewards(self) -> bool:
        return self.step_cost is not None and not self.cost_of

    def apply(self, rewards: FloatArray) -> FloatArray:
        costs = self.sign * rewards + 0.0
        if self.step_cost is not None:
            costs = np.full(len(rewards), self.step_cost)
        for reward, cost in self.cost_of.items():
            found = rewards == reward
            if not found.any():
                present = [f"{value:g}" for value in np.unique(rewards)]
                some = ", ".join(present[:8] + ["..."] * (len(present) > 8))
                raise OptionError(
                    f"cost_of has the reward {reward:g}, which no outcome has; the rewards are"
                    f" {some}"
                )
            costs[found] = cost
        return costs


# ---------------------------------------------------------------------- their arrays


def arrays_from_rows(
    state: Array,
    action: Array,
    target: Array,
    probability: Array,
    cost: Array,
    n_states: int,
    *,
    merge: bool,
) -> dict[str, Any]:
    """The arrays of rows that are given as numbers, in any order. Choices stand by state and then
    as they first appear, outcomes as they appear; rows of probability 0 are left out, but their
    choice stays. With `merge`, outcomes of a choice with the same target and the same cost become
    one.

    Instead of a probability, (n,), rows may have several columns, (n, k), such as the ends of an
    interval. So have the outcomes then, and none is left out.
    """
    n_actions = int(action.max(initial=0)) + 1
    choices, of_row = _choices(state.astype(np.int64) * n_actions + action, n_actions)
    rows: OutcomeArrays = (of_row, target, probability, cost)
    if probability.ndim == 1:
        rows = _picked(rows, probability != 0)
    if merge:
        rows = merge_equal_outcomes(*rows)
    elif (np.diff(rows[0]) < 0).any():
        rows = _picked(rows, np.argsort(rows[0], kind="stable"))
    arrays = {
        "state_choices": offsets_of(choices // n_actions, n_states),
        "choice_outcomes": offsets_of(rows[0], len(choices)),
        "outcome_target": rows[1],
        "outcome_probability": rows[2],
        "outcome_cost": rows[3],
        "choice_action": choices % n_actions,
    }
    return {name: hand_over(array) for name, array in arrays.items()}


def outcomes_of_rows(rows: Transitions) -> dict[str, Any]:
    """The fields of an SSP about outcomes, from transitions with a row for each choice."""
    return {
        "choice_outcomes": rows.row_start,
        "outcome_target": rows.target,
        "outcome_probability": rows.probability,
        "outcome_cost": rows.cost,
    }


def _choices(key: IntArray, n_actions: int) -> tuple[IntArray, Array]:
    """The choices `state * n_actions + action` by state and then as they first appear, and the
    index of every row's choice among them.
    """
    # Rows of a choice mostly stand together, so there are fewer runs of them than rows.
    new = np.append(True, np.diff(key) != 0)[: len(key)]
    runs, run_of_row = key[new], np.cumsum(new, dtype=np.int32) - 1
    if (np.diff(runs) > 0).all():
        return runs, run_of_row
    found, first, of_run = np.unique(runs, return_index=True, return_inverse=True)
    order = np.lexsort((first, found // n_actions))
    rank = np.empty(len(order), dtype=np.int32)
    rank[order] = np.arange(len(order), dtype=np.int32)
    return found[order], rank[of_run][run_of_row]


def merge_equal_outcomes(
    choice: Array, target: Array, probability: Array, cost: Array
) -> OutcomeArrays:
    """Sort outcomes by choice, keeping their order within it, and add up those with the same
    choice, target and cost: probabilities (n,), or columns (n, k) in their place.
    """
    rows: OutcomeArrays = (choice, target, probability, cost)
    if len(choice) > SORTED_BY_NUMPY:
        if (np.diff(choice) < 0).any():
            rows = _picked(rows, grouped(choice, int(choice.max()) + 1)[0])
            choice, target, probability, cost = rows
        if equal_members(*frozen(choice, target, cost), SORTED_ABOVE) == 0:
            return rows
    by_content = np.lexsort((cost, target, choice))
    c, t = choice[by_content], target[by_content]
    k = cost[by_content]
    first = np.ones(len(c), dtype=np.bool_)
    first[1:] = (np.diff(c) != 0) | (np.diff(t) != 0) | (k[1:] != k[:-1])
    if first.all():
        return _picked(rows, np.argsort(choice, kind="stable"))
    columns, begin = probability[by_content], np.flatnonzero(first)
    end = np.append(begin[1:], len(columns))
    total = np.add.reduceat(columns, begin, dtype=np.float64)
    # A sum of two rounds once. Those of more are exact but for one rounding, too, since bounds
    # charge an outcome for one decimal (docs/bounds.md).
    for g in np.flatnonzero(end - begin > 2).tolist():
        total[g] = np.apply_along_axis(math.fsum, 0, columns[begin[g] : end[g]])
    # lexsort is stable, so the first of a group is its first appearance; sorting those restores the
    # order given.
    seen = by_content[first]
    order = np.lexsort((seen, choice[seen]))
    return _picked((choice[seen], target[seen], total, cost[seen]), order)


def _picked(rows: OutcomeArrays, order: Array) -> OutcomeArrays:
    choice, target, probability, cost = (column[order] for column in rows)
    return choice, target, probability, cost


def can_happen(row: Array, low: FloatArray, high: FloatArray) -> BoolArray:
    """Which outcomes can have a positive probability inside their intervals; `row` has the number
    of their row, from 0.
    """
    least = np.bincount(row, low)[row]
    return np.asarray((low > 0) | ((high > 0) & (least < 1)))


def describe_outcome(state: Name, action: Name, next_state: Name) -> str:
    return f"state {state!r}, action {action!r} -> {next_state!r}"
