"""A policy by remaining budget whose decisions stand for few budgets: those that it can ever have left."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tailpath.model.ragged import members_of, owners
from tailpath.policies.checks import sparse_budget_tables
from tailpath.policies.kinds import BudgetPolicy


@dataclass(frozen=True, eq=False, repr=False)
class SparseBudgetPolicy(BudgetPolicy):
    """A `BudgetPolicy` with decisions for some budgets only, made by `solve_cvar_exact` where few of them can occur.

    Row r of the table has the budgets `left[first[r]:first[r + 1]]`, ascending and from 1 on, and at the same places of `position` the choices, as
    positions among those of the state. A budget in between, which no run on the model has left, counts as the next lower one.
    """

    first: NDArray[np.int64]
    left: NDArray[np.int64]

    def __post_init__(self) -> None:
        tables = (self.row, self.first, self.left, self.position)
        self._become(sparse_budget_tables(self.ssp, self.budget, *tables, self.neutral, self.level, self.unit))

    def __repr__(self) -> str:
        return f"<SparseBudgetPolicy budget of {self.budget} units of {self.unit}, {len(self.left)} decisions>"

    def choice(self, state: int, memory: Any) -> int:
        """The choice index at a state index with this much budget left; a broken unit does not count."""
        begin, end = self._row(state)
        place = begin + int(np.searchsorted(self.left[begin:end], math.floor(memory), side="right")) - 1
        return int(self.neutral[state]) if place < begin else int(self.ssp.state_choices[state]) + int(self.position[place])

    def alike(self, state: int, low: int, high: int) -> bool:
        """Whether the decisions at a state index are the same for all budgets from `low` to `high`."""
        begin, end = self._row(state)
        between = self.left[begin:end]
        return all(
            self.choice(state, budget) == self.choice(state, low) for budget in between[(between > low) & (between <= high)].tolist()
        )

    def _row(self, state: int) -> tuple[int, int]:
        """Where the decisions of a state begin and end."""
        row = int(self.row[state])
        return (int(self.first[row]), int(self.first[row + 1])) if row >= 0 else (0, 0)

    def nodes(self, state: NDArray[Any], left: NDArray[Any]) -> NDArray[np.int64]:
        """The nodes of pairs: the place of the decision, or, with the budget spent, as many more as there are decisions, and the state;
        the one after the last at goals, and -1 where there is no decision."""
        row = self.row.astype(np.int64)[state]
        # Row by row the budgets rise, so that all of them together rise as well.
        wide = int(self.left.max(initial=0)) + 1
        table = owners(self.first) * wide + self.left
        wanted = np.where((row >= 0) & (left < wide), row * wide + left, -1)
        place = np.minimum(np.searchsorted(table, wanted), max(len(table) - 1, 0))
        found = np.where(table[place] == wanted, place, -1) if len(table) else np.full(len(row), -1)
        found = np.where(left <= 0, len(self.left) + state, found)
        return np.where(self.ssp.is_goal[state], len(self.left) + self.ssp.n_states, found)

    def arrows(self) -> tuple[NDArray[np.int64], ...]:
        """What the policy does at all nodes, reachable or not: the source, the outcome and the target of every arrow, sources ascending; then the
        state and the budget left of every node."""
        ssp = self.ssp
        of_row = np.zeros(len(self.first) - 1, dtype=np.int64)
        with_row = np.flatnonzero(self.row >= 0)
        of_row[self.row[with_row]] = with_row
        at = of_row[owners(self.first)]
        state = np.append(at, np.arange(ssp.n_states))
        left = np.append(self.left, np.zeros(ssp.n_states, dtype=np.int64))
        choice = np.append(ssp.state_choices[at] + self.position, self.neutral)
        node = np.flatnonzero(choice >= 0)
        outcome, first = members_of(ssp.choice_outcomes, choice[node])
        source = node[owners(first)]
        after = np.maximum(left[source] - self.level[outcome], 0)
        return source, outcome, self.nodes(ssp.outcome_target[outcome].astype(np.int64), after), state, left
