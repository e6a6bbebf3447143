"""What these algorithms share: a model whose costs are counted in whole units, and one step of a
recursion over the cost left or spent.

They are written down for comparison, in arrays and without the care of the exact solver: every
outcome that does not arrive must cost something.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tailpath.errors import ModelError
from tailpath.graph import FloatArray, IntArray, Transitions
from tailpath.model.potential import refuse_signed
from tailpath.model.ssp import SSP
from tailpath.policies.budget import BudgetPolicy
from tailpath.solvers.expectation import ExpectedSolution, solve_expected


@dataclass(frozen=True, eq=False)
class Levels:
    """The states from which one can surely arrive, with the choices that keep it so, and the
    outcomes of these.

    `choice` are choices of the model, grouped by state: those of `states[k]` are `first[k] :
    first[k + 1]`. Row i of `rows` has the outcomes of `choice[i]`; they lead to states of the
    model.
    """

    ssp: SSP
    expected: ExpectedSolution
    states: IntArray
    first: IntArray
    choice: IntArray
    rows: Transitions

    @property
    def begin(self) -> IntArray:
        """Where the outcomes of each choice begin."""
        return self.rows.row_start[:-1]

    @property
    def level(self) -> IntArray:
        """What each outcome costs, in units."""
        return np.asarray(self.rows.level)

    @property
    def unit(self) -> float:
        return float(self.ssp.cost_unit or 1)

    @property
    def value(self) -> FloatArray:
        """The least expected cost, in units."""
        return self.expected.value / self.unit

    def best(self, values: FloatArray) -> tuple[FloatArray, IntArray]:
        """For each state the least of its choices' values, and the first choice that has it."""
        least = np.minimum.reduceat(values, self.first[:-1])
        hit = np.flatnonzero(values <= np.repeat(least, np.diff(self.first)))
        owner = np.searchsorted(self.first, hit, side="right") - 1
        return least, hit[np.searchsorted(owner, np.arange(len(self.states)))]


def levels_of(ssp: SSP, who: str) -> Levels:
    """The model made ready; refuses costs without a unit, and free outcomes that do not arrive."""
    refuse_signed(ssp, who)
    if ssp.cost_unit is None:
        raise ModelError(f"the costs have no common unit; {who} counts costs in units")
    expected = solve_expected(ssp)
    finite = np.isfinite(expected.value)
    safe = np.logical_and.reduceat(finite[ssp.outcome_target], ssp.choice_outcomes[:-1])
    safe &= finite[ssp.choice_state] & ~ssp.is_goal[ssp.choice_state]
    choice = np.flatnonzero(safe)
    rows = ssp.transitions.replaced(level=ssp.outcome_level).restrict(choice)
    zero_cost = np.flatnonzero((rows.level == 0) & ~ssp.is_goal[rows.target])
    if zero_cost.size:
        state = ssp.states[ssp.choice_state[choice[rows.source[zero_cost[0]]]]]
        raise ModelError(
            f"an outcome of state {state!r} is free and does not arrive; {who} needs costs above 0"
        )
    states, first = np.unique(ssp.choice_state[choice], return_index=True)
    return Levels(
        ssp,
        expected,
        states.astype(np.int64),
        np.append(first, len(choice)).astype(np.int64),
        choice,
        rows,
    )


def policy_of_levels(levels: Levels, budget: int, picked: IntArray) -> BudgetPolicy:
    """The policy that takes `picked[b, k]`, a position in `levels.choice`, with b units left in
    state k; risk-neutral with nothing left.
    """
    ssp = levels.ssp
    table = np.full((ssp.n_states, budget + 1), -1, dtype=np.int64)
    table[levels.states] = levels.choice[picked].T
    return BudgetPolicy.from_table(ssp, table, levels.expected.choices)
