"""What both kinds of solution of the exact solver share: a table of budgets at the start, and from
it the best budget, its policy and proved bounds for every alpha.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from tailpath.certify.budgets import Later, TableSides
from tailpath.evaluation.evaluate import evaluate
from tailpath.graph import FloatArray, IntArray
from tailpath.model.border import Border
from tailpath.model.records import Record
from tailpath.options import takes_alpha, vectorised
from tailpath.policies.budget import BudgetPolicy
from tailpath.solvers.exact.table import model_as_counted

#: Below this alpha the masses of an evaluation are too small to be followed, and the table alone
#: says where VaR is.
LEAST_EVALUATED = 1e-250
#: Budgets whose values differ by less, relatively, tie.
TIED = 1e-12


@takes_alpha
@dataclass(frozen=True, eq=False, repr=False)
class BudgetSolution(Record):
    """What both kinds of solution share: a policy for every alpha, by its first budget."""

    alpha: float
    budgets: IntArray
    excess: FloatArray
    mean_cost: FloatArray | None
    largest: BudgetPolicy
    sides: Later = field(compare=False)
    beyond: float = math.inf
    plain: Later | None = field(default=None, compare=False)
    floor: Any = None
    least: float | None = None
    method: str = "nothing to decide by budgets"

    cvar: ClassVar[Any]

    @property
    def lexicographic(self) -> bool:
        """Whether ties were broken by the expected cost."""
        return self.plain is not None

    def _check(self, a: float) -> float:
        raise NotImplementedError

    def _price(self, a: float) -> FloatArray:
        """What is minimised beside the budget, by position."""
        raise NotImplementedError

    @property
    def _weight(self) -> float:
        """What a unit of the budget counts in what is minimised."""
        return 1.0

    def _total(self, a: float) -> FloatArray:
        total: FloatArray = self._weight * self.budgets + self._price(a)
        return total

    def policy(self, a: float | None = None) -> BudgetPolicy:
        """The policy that attains the optimum.

        All share one table; they differ in the budget at the start.

        Parameters
        ----------
        a : float in (0, 1], optional
            The mass of the worst tail, `alpha` or more; by default `alpha`.

        Returns
        -------
        BudgetPolicy
            The policy.

        Raises
        ------
        OptionError
            If the table was not made for `a`.

        Examples
        --------
        >>> tp.solve_cvar_exact(ssp, 0.1).policy(0.1)
        <BudgetPolicy budget of 3 units of 10, 1 step in 2 states>
        """
        return self.largest.with_budget(self.budget(self.alpha if a is None else a))

    def budget(self, a: float) -> int:
        """The budget that the policy for `a` starts with.

        Parameters
        ----------
        a : float in (0, 1]
            The mass of the worst tail.

        Returns
        -------
        int
            In cost units.

        Examples
        --------
        >>> tp.solve_cvar_exact(ssp, 0.1).budget(0.1)
        3
        """
        return int(self.budgets[self._position(a)])

    def best_position(self, a: float, among: int | None = None) -> int:
        """The index in `budgets` of the best budget.

        Parameters
        ----------
        a : float in (0, 1]
            The mass of the worst tail.
        among : int, optional
            Look at so many budgets, from the first on; by default at all.

        Returns
        -------
        int
            The index.
        """
        return self._first(self._total(a), self.mean_cost if self.lexicographic else None, among)

    def _first(self, total: FloatArray, mean: FloatArray | None, among: int | None = None) -> int:
        """The first position with the least value or, given means, the least mean among those."""
        slack = 1 + TIED
        tied = np.flatnonzero(total[:among] <= total[:among].min() * slack)
        if mean is not None:
            tied = tied[mean[tied] <= mean[tied].min() * slack]
        return int(tied[0])

    def _position(self, a: float) -> int:
        among = int(np.searchsorted(self.budgets, self.largest.budget, side="right"))
        return self.best_position(self._check(a), among)

    def bounds(self, a: float) -> tuple[float, float]:
        """Proved bounds on `objective(a)`, the least value of what is minimised.

        Parameters
        ----------
        a : float in (0, 1]
            The mass of the worst tail.

        Returns
        -------
        tuple (low, high)
            With `delta`, they enclose the optimum of the costs as they are.

        Examples
        --------
        >>> low, high = tp.solve_cvar_exact(ssp, 0.1).bounds(0.1)
        >>> low <= 30 <= high
        True
        """
        a = self._check(a)
        sides: TableSides = self.sides.found
        price = 1 / a if self._weight == 1 else 1.0
        asked = self.budgets, self._weight, price, self.beyond, self._position(a)
        low, high = (end * self._unit for end in sides.total_bounds(*asked))
        below = self.least, None if self.floor is None else self.floor.bounds(a)[0]
        low = max((bound for bound in below if bound is not None), default=low)
        return self._border.bounds((low, high))

    def curve(self, alphas: ArrayLike) -> FloatArray:
        """`cvar` at each of some tail masses.

        Parameters
        ----------
        alphas : array of float, shape (m,)
            Masses of the worst tail.

        Returns
        -------
        array of float64, shape (m,)
            The CVaR at each.

        Examples
        --------
        >>> tp.solve_cvar_exact(ssp, 0.1).curve([0.1, 0.5, 1])
        array([30., 28., 24.])
        """
        found: FloatArray = self.cvar(np.asarray(alphas, dtype=np.float64).ravel())
        return found

    @vectorised
    def var(self, a: float) -> float:
        """The VaR at `a` of the policy for `a`.

        Parameters
        ----------
        a : float in (0, 1], or a list or array (m,) of them
            The mass of the worst tail, `alpha` or more.

        Returns
        -------
        float, or array of float64, shape (m,)
            The VaR. That is not the least VaR of any policy, which `solve_on_time` finds.

        Examples
        --------
        >>> tp.solve_cvar_exact(ssp, 0.1).var([0.1, 0.5])
        array([30., 20.])
        """
        return self._var(self._check(a))

    def _var(self, a: float) -> float:
        """The smallest best budget, or the VaR of the policy evaluated where rounding leaves a
        question.
        """
        position, total = self._position(a), self._total(a)
        if LEAST_EVALUATED <= a < 1 and np.count_nonzero(total <= total[position] * (1 + TIED)) > 1:
            if a not in self._evaluated:
                found = evaluate(model_as_counted(self.largest), self.policy(a), a).var(a)
                self._evaluated[a] = self._border.cost(found)
            return self._evaluated[a]
        w = int(self.budgets[position])
        if w == 0:
            return self._border.cost(self._least_risk_neutral_cost)
        return float(w * self.largest.unit + self._border.shift)

    @cached_property
    def _evaluated(self) -> dict[float, float]:
        return {}

    @cached_property
    def _least_risk_neutral_cost(self) -> float:
        """The least cost at which the risk-neutral policy can arrive, as it counts costs."""
        policy, ssp = self.largest, self.largest.ssp
        taken = np.isin(ssp.outcome_choice, policy.risk_neutral)
        rows = ssp.by_state.replaced(level=policy.level).only(taken)
        least = rows.costs_from(ssp.start_index)[:-1]
        return float(int(least[ssp.is_goal].min()) * policy.unit)

    def objective(self, a: float) -> float:
        """The least value of what is minimised.

        Of budgets that tie within rounding the policy takes the smallest, whose own value may be a
        little more.

        Parameters
        ----------
        a : float in (0, 1]
            The mass of the worst tail.

        Returns
        -------
        float
            CVaR, or the weighted sum of mean and CVaR.

        Examples
        --------
        >>> tp.solve_cvar_exact(ssp, 0.1).objective(0.5)
        28.0
        """
        return self._as_cost(np.min(self._total(self._check(a))))

    @vectorised
    def mean(self, a: float) -> float:
        """The expected cost of the policy for `a`.

        If the table does not know it, the policy is evaluated.

        Parameters
        ----------
        a : float in (0, 1], or a list or array (m,) of them
            The mass of the worst tail.

        Returns
        -------
        float, or array of float64, shape (m,)
            The expected cost.

        Examples
        --------
        >>> tp.solve_cvar_exact(ssp, 0.1).mean([0.1, 0.5])
        array([30., 24.])
        """
        if self.mean_cost is None:
            return evaluate(self.largest.ssp, self.policy(a), 1.0).mean
        return self._as_cost(self.mean_cost[self._position(a)])

    def plain_mean(self, a: float) -> float:
        """The expected cost of the policy that the solver would return without `lexicographic`.

        That one is solved for when this is first asked.

        Parameters
        ----------
        a : float in (0, 1]
            The mass of the worst tail.

        Returns
        -------
        float
            The expected cost.
        """
        if self.plain is None:
            return self.mean(a)
        found = self.plain.found
        return found.mean(a) if found._border.moves else self._border.cost(found.mean(a))

    def _as_cost(self, units: Any) -> float:
        """A number of units of the table as a cost of the model."""
        return self._border.cost(float(units) * self._unit)

    @property
    def _unit(self) -> float:
        return float(self.largest.unit)

    @property
    def _border(self) -> Border:
        """The way from what the table counts to the costs as given."""
        return Border(self.largest.ssp)

    def restored(self, border: Border) -> Self:
        """The same of the model as given, from that of the model that was solved.

        Parameters
        ----------
        border : Border
            The way back.

        Returns
        -------
        BudgetSolution
            With policies for the model as given.
        """
        return replace(self, largest=self.largest.on(border.given))
