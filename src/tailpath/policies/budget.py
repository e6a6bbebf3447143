"""The policy by remaining budget: for each state a step function of the budget left. The choice of
a state changes at few budgets, so that the steps are all there is to store.

    first[s] : first[s + 1]     the steps of state s
    from_budget[k]              the least budget, in cost units, from which step k holds; rising
                                within a state
    choice[k]                   the choice taken there; below the first step it is `risk_neutral[s]`
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tailpath.errors import PolicyError
from tailpath.graph import Array, IntArray, offsets_of
from tailpath.kernels.jit import frozen
from tailpath.kernels.steps import Steps, sort_steps
from tailpath.kernels.unrolling import NO_MEMORIES, Memories
from tailpath.model.checks import same_numbering
from tailpath.model.ssp import SSP, Name
from tailpath.policies import running
from tailpath.policies.checks import MAX_LEVELS, budget_steps, integer
from tailpath.policies.policy import Kind
from tailpath.texts import count


def steps_of(state: Any, from_budget: Any, choice: Any, risk_neutral: Any) -> dict[str, Any]:
    """The arrays `first`, `from_budget` and `choice` of changes in any order."""
    changes = (np.asarray(each, dtype=np.int64) for each in (state, from_budget, choice))
    n, size = len(risk_neutral), len(state)
    below = np.asarray(risk_neutral, dtype=np.int32)
    first, budgets = np.empty(n + 1, dtype=np.int64), np.empty(size, dtype=np.int64)
    choices = np.empty(size, dtype=np.int32)
    size = sort_steps(*frozen(*changes, below), first, budgets, choices)
    return {"first": first, "from_budget": budgets[:size], "choice": choices[:size]}


@dataclass(frozen=True, eq=False, repr=False)
class BudgetPolicy(Kind):
    """Decisions over (state, remaining budget), risk-neutral once the budget is spent.

    The kind of the exact solvers. The memory is the budget left, in cost units; it falls by
    the cost of each outcome and stays at 0 once spent. Where some cost is negative, the budget
    counts what may be paid beyond the least cost to go, and falls by what an outcome costs more.

    Parameters
    ----------
    ssp : SSP
        The model whose numbers of states, choices and outcomes the arrays use.
    budget : int
        The budget at the start, in units.
    first : array of int64, shape (n_states + 1,)
        Where the steps of each state begin.
    from_budget : array of int64, shape (n_steps,)
        The least budget of each step, 1 or more, rising within a state.
    choice : array of int32, shape (n_steps,)
        The choice from that budget on.
    risk_neutral : array of int32, shape (n_states,)
        The choice below the first step; -1 at goals and where there is none.
    level : array of int64, shape (n_outcomes,)
        The cost of each outcome in units: the model's own, on a grid the rounded one, or that of
        its `reduced` model.
    unit : Fraction or float or None
        The cost unit.
    deadline : bool
        Whether the budget is one unit more than may be spent, as that of a deadline, which a run
        that costs exactly as much still keeps.

    Raises
    ------
    PolicyError
        If the arrays do not fit the model.

    Examples
    --------
    >>> policy = tp.solve_cvar_exact(ssp, 0.1).policy(0.1)
    >>> policy.action("home", 3), policy.action("home", 0)
    ('train', 'road')
    """

    ssp: SSP
    budget: int
    first: IntArray
    from_budget: IntArray
    choice: NDArray[np.int32]
    risk_neutral: NDArray[np.int32]
    level: IntArray
    unit: Any
    deadline: bool = False

    def __post_init__(self) -> None:
        self.__setstate__(budget_steps(self))

    @classmethod
    def from_table(
        cls, ssp: SSP, table: Any, risk_neutral: Any, level: Any = None, unit: Any = None
    ) -> BudgetPolicy:
        """Make a policy from the choice at every state and budget.

        Parameters
        ----------
        ssp : SSP
            The model.
        table : array of int, shape (n_states, budget + 1)
            `table[s, b]` is the choice at state s with b units left, -1 for the risk-neutral one.
            The first column is ignored.
        risk_neutral : array of int, shape (n_states,)
            The choice without a budget; -1 at goals.
        level, unit : optional
            As in the class; by default those of the model.

        Returns
        -------
        BudgetPolicy
            It starts with the budget of the last column.

        Raises
        ------
        PolicyError
            If the table does not fit the model.

        Examples
        --------
        >>> policy = tp.BudgetPolicy.from_table(ssp, [[0, 0, 0, 1], [-1] * 4], [0, -1])
        >>> policy
        <BudgetPolicy budget of 3 units of 10, 1 step in 2 states>
        """
        table = np.asarray(table)
        risk_neutral = np.asarray(risk_neutral)
        if (
            table.ndim != 2
            or len(table) != ssp.n_states
            or not table.shape[1]
            or risk_neutral.shape != (ssp.n_states,)
        ):
            raise PolicyError(
                f"table needs a row for each of {ssp.n_states} states and a column for each budget"
                " from 0 on"
            )
        full = np.where(table < 0, risk_neutral[:, None], table)
        full[:, 0] = risk_neutral
        state, before = np.nonzero(full[:, 1:] != full[:, :-1])
        return cls(
            ssp,
            table.shape[1] - 1,
            offsets_of(state, ssp.n_states),
            before + 1,
            full[state, before + 1],
            risk_neutral,
            ssp.outcome_level if level is None else level,
            ssp.cost_unit if level is None else unit,
        )

    def with_budget(self, budget: int) -> BudgetPolicy:
        """The same decisions, started with another budget.

        Parameters
        ----------
        budget : int, 0 or more
            The budget at the start, in units.

        Returns
        -------
        BudgetPolicy
            It shares the arrays.

        Examples
        --------
        >>> tp.solve_cvar_exact(ssp, 0.1).policy().with_budget(2).action("home")
        'road'
        """
        budget = integer(budget, "budget", MAX_LEVELS)
        if budget == self.budget:
            return self
        return self.trusted(**self.__getstate__() | {"budget": budget})

    def spent(self, risk_neutral: Any) -> BudgetPolicy:
        """The policy without any budget, which takes the given choices throughout.

        Parameters
        ----------
        risk_neutral : array of int32, shape (n_states,)
            The choices; -1 where there is none.

        Returns
        -------
        BudgetPolicy
            Costs count as they do here.

        Examples
        --------
        >>> tp.solve_cvar_exact(ssp, 0.1).policy().spent([0, -1]).action("home")
        'road'
        """
        none: dict[str, Any] = steps_of([], [], [], risk_neutral)
        return replace(self, budget=0, risk_neutral=risk_neutral, **none)

    def on(self, ssp: SSP) -> BudgetPolicy:
        """The same decisions on another model.

        Parameters
        ----------
        ssp : SSP
            A model with the same numbers of states, choices and outcomes.

        Returns
        -------
        BudgetPolicy
            The policy.
        """
        return replace(self, ssp=ssp)

    def _moved_to(self, ssp: SSP) -> BudgetPolicy:
        return self.on(ssp)

    def steps(self) -> Steps:
        """The arrays in which kernels look up decisions.

        Returns
        -------
        Steps
            The arrays.
        """
        return Steps(self.budget, self.first, self.from_budget, self.choice, self.risk_neutral)

    def __repr__(self) -> str:
        steps = count(len(self.choice), "step")
        return (
            f"<BudgetPolicy budget of {count(self.budget, 'unit')} of {self.unit}, {steps} in"
            f" {self.ssp.n_states} states>"
        )

    @property
    def by_budget(self) -> BudgetPolicy:
        """The policy itself."""
        return self

    def _choices_on(self, ssp: SSP) -> tuple[Array, int, Memories | None] | None:
        """Of a policy without any budget."""
        if self.budget > 0 or not same_numbering(self.ssp, ssp):
            return None
        return self.risk_neutral, 0, NO_MEMORIES

    def start(self, state: Name) -> int:
        return self.budget

    def choice_at(self, state: int, budget: Any) -> int:
        """The choice at a state with a budget.

        Parameters
        ----------
        state : int
            The index of a state.
        budget : int or Fraction
            The budget left, in units; a fraction of a unit does not count.

        Returns
        -------
        int
            The index of a choice, or -1.

        Examples
        --------
        >>> policy = tp.solve_cvar_exact(ssp, 0.1).policy()
        >>> policy.choice_at(0, 3), policy.choice_at(0, 2)
        (1, 0)
        """
        return int(self.choices_at(state, math.floor(budget)))

    def step_at(self, state: Any, budget: Any) -> IntArray:
        """The number of the step at each of some states with a budget.

        Parameters
        ----------
        state : array of int, shape (n,)
            Indices of states.
        budget : array of int, shape (n,)
            Budgets left, in units.

        Returns
        -------
        array of int64, shape (n,)
            Counted within the state from 1; 0 below the first.
        """
        known, key = self._ranked
        rank = np.searchsorted(known, np.asarray(budget), side="right")
        wanted = np.asarray(state) * (len(known) + 1) + rank
        found: IntArray = np.searchsorted(key, wanted) - self.first[state]
        return found

    @cached_property
    def _ranked(self) -> tuple[IntArray, IntArray]:
        """All budgets of steps, and a key of each step. State by state budgets rise, so that all of
        them together rise as well; their ranks do, and cannot overflow.
        """
        known = np.unique(self.from_budget)
        state = np.repeat(np.arange(self.ssp.n_states), np.diff(self.first))
        return known, state * (len(known) + 1) + np.searchsorted(known, self.from_budget)

    def choices_at(self, state: Any, budget: Any) -> NDArray[np.int32]:
        """`choice_at` for arrays of states and integer budgets.

        Parameters
        ----------
        state : array of int, shape (n,)
            Indices of states.
        budget : array of int, shape (n,)
            Budgets left, in units.

        Returns
        -------
        array of int32, shape (n,)
            Indices of choices, or -1.

        Examples
        --------
        >>> tp.solve_cvar_exact(ssp, 0.1).policy().choices_at([0, 0], [3, 2]).tolist()
        [1, 0]
        """
        step = self.step_at(state, budget)
        taken = np.append(self.choice, np.int32(-1))[np.maximum(self.first[state] + step - 1, 0)]
        return np.asarray(np.where(step > 0, taken, self.risk_neutral[state]), dtype=np.int32)

    def _decision(self, state: Name, memory: Any) -> Name:
        choice = self.choice_at(self.ssp.state_index(state), memory)
        if choice < 0:
            raise PolicyError(f"the policy has no action for state {state!r}")
        return self.ssp.choice_name(choice)

    def remember(
        self, memory: int, state: Name, action: Name, cost: float, next_state: Name
    ) -> int:
        outcome = running.observed_outcome(self.ssp, state, action, cost, next_state)
        return max(0, memory - int(self.level[outcome]))

    def remember_roughly(
        self, memory: Any, state: Name, action: Name, cost: Fraction, next_state: Name
    ) -> Any:
        if self.unit is None:
            return memory
        # Where some cost is negative, a budget counts beyond the least cost to go; states that the
        # model lacks are at 0.
        here, there = (
            self._potential(self.ssp.state_index(name)) if name in self.ssp.states else Fraction(0)
            for name in (state, next_state)
        )
        return running.spent(memory, cost + there - here, self.unit)

    def _potential(self, state: int) -> Fraction:
        """The least cost of any way from a state, where some cost is negative."""
        return self.ssp.reduction.of(state)

    def left(self, state: int, budget: int) -> Fraction:
        """The cost still allowed at a state with a budget.

        Parameters
        ----------
        state : int
            The index of a state.
        budget : int
            The budget left, in units.

        Returns
        -------
        Fraction
            What the rest of the run may cost, in the model's own unit.

        Examples
        --------
        >>> tp.solve_cvar_exact(ssp, 0.1).policy().left(0, 3)
        Fraction(30, 1)
        """
        return (budget - self.deadline) * Fraction(self.unit) + self._potential(state)
