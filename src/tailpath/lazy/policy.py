"""The policy of a lazy solution: by the budget left where states were expanded, and elsewhere by
the bounds alone, one step ahead.

Of a bound that some policy keeps, `surely(s) >= max c + surely(t)` for some action, the action that
is best by it keeps it in turn: from wherever the upper table ended a run, it costs what was counted
there. So the policy needs no state that was not expanded, and remembers by which of the two bounds
it goes on.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from tailpath.errors import PolicyError
from tailpath.lazy.expansion import bounds_at
from tailpath.lazy.sides import by_surely
from tailpath.model.cost_units import as_fraction, in_units
from tailpath.model.implicit import ImplicitSSP, rows_of
from tailpath.model.outcomes import Name
from tailpath.policies.budget import BudgetPolicy
from tailpath.policies.policy import Kind
from tailpath.policies.running import spent
from tailpath.texts import count

UPPER, SURELY = "upper", "surely"


@dataclass(frozen=True, eq=False, repr=False)
class LazyPolicy(Kind):
    """The policy of a lazy solution, which has an action in every state that it may meet.

    The memory is the budget left, in cost units, as long as states were expanded; then it is the
    name of the bound that the policy follows to the end.

    Parameters
    ----------
    model : ImplicitSSP
        The model, with its bounds.
    inside : BudgetPolicy
        The decisions where states were expanded.
    rank : mapping
        The number of each state that was expanded.
    actions : list
        The action of each choice of these.

    Examples
    --------
    >>> policy = tp.solve_cvar_lazy(ssp, 0.1).policy()
    >>> policy.start_run().action("home")
    'train'
    """

    model: ImplicitSSP
    inside: BudgetPolicy
    rank: dict[Name, int]
    actions: list[Name]

    def __repr__(self) -> str:
        budget = f"budget of {count(self.inside.budget, 'unit')} of {self.inside.unit}"
        return f"<LazyPolicy {budget}, {count(len(self.rank), 'state')} expanded>"

    def start(self, state: Name) -> Any:
        return self.inside.budget if state in self.rank else self._bound_at(state)

    def remember(
        self, memory: Any, state: Name, action: Name, cost: float, next_state: Name
    ) -> Any:
        if memory in (UPPER, SURELY):
            return memory
        if next_state not in self.rank and not self.model.is_goal(next_state):
            return self._bound_at(next_state)
        return spent(memory, in_units(cost, self.inside.unit) * self.inside.unit, self.inside.unit)

    def remember_roughly(
        self, memory: Any, state: Name, action: Name, cost: Fraction, next_state: Name
    ) -> Any:
        return memory if isinstance(memory, str) else spent(memory, cost, self.inside.unit)

    def _decision(self, state: Name, memory: Any) -> Name:
        rank = self.rank.get(state)
        if rank is not None and memory not in (UPPER, SURELY):
            choice = self.inside.choice_at(rank, memory)
            if choice >= 0:
                return self.actions[choice]
        bound = memory if memory in (UPPER, SURELY) else self._bound_at(state)
        return self._best_by(bound, state)

    def _bound_at(self, state: Name) -> str:
        _, _, upper, surely = bounds_at(self.model, state)
        if min(upper, surely) == math.inf:
            raise PolicyError(
                f"the state {state!r} was not expanded, and neither upper= nor surely= says how to"
                " go on from it; `after` searches from there"
            )
        return SURELY if by_surely(upper, surely) else UPPER

    def _best_by(self, bound: str, state: Name) -> Name:
        """The action that is best by a bound, one step ahead."""

        def to_go(target: Name) -> float:
            if self.model.is_goal(target):
                return 0.0
            _, _, upper, surely = bounds_at(self.model, target)
            return surely if bound == SURELY else upper

        def needs(outcomes: list[tuple[Any, Name, Any]]) -> float:
            each = [
                (float(as_fraction(share)), float(as_fraction(cost)) + to_go(target))
                for share, target, cost in outcomes
                if share and (cost or target != state)
            ]
            if not each:  # it stays where it is, at no cost
                return math.inf
            if bound == SURELY:
                return max(total for _, total in each)
            return sum(share * total for share, total in each) / sum(share for share, _ in each)

        rows = rows_of(self.model, state)
        if rows is None:
            raise PolicyError(f"the run has arrived in {state!r}; there is nothing left to do")
        return min(rows, key=lambda row: needs(row[1]))[0]
