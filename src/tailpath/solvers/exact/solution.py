"""Answers by budget: what a table over budgets says about the start, with proved bounds, and the
policies that attain it. Here the least CVaR for every alpha; `objectives/on_time_solution.py` has
deadlines.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from tailpath.certify.budgets import Later, TableSides
from tailpath.errors import OptionError
from tailpath.evaluation.distribution import CostDistribution
from tailpath.evaluation.evaluate import evaluate
from tailpath.graph import FloatArray, IntArray
from tailpath.model.border import Border, prepare
from tailpath.model.records import Record, found_once
from tailpath.options import alpha_from, check_alpha, takes_alpha, usual_alphas, vectorised
from tailpath.pictures.notebook import card
from tailpath.policies.budget import BudgetPolicy
from tailpath.solvers.exact.layout import model_as_counted
from tailpath.solvers.expectation import solve_expected
from tailpath.texts import Table
from tailpath.verify.distribution import Proof
from tailpath.verify.optimum import check_border, check_optimum

#: Below this alpha the masses of an evaluation are too small to be followed, and the table alone
#: says where VaR is.
LEAST_EVALUATED = 1e-250
#: Budgets whose values differ by less, relatively, tie.
TIED = 1e-12


class ByBudget(Record):
    """An answer by budget, about the model as given: the policy of the largest budget, whose steps
    are those of all others, and bounds on the table. With `delta` all values are those of the
    costs rounded up, and the bounds of the `floor`, for costs rounded down, are lower bounds.
    """

    largest: BudgetPolicy
    sides: Later
    floor: Any

    @property
    def _border(self) -> Border:
        """The way from what the table counts to the costs as given."""
        return Border(self.largest.ssp)

    def _total_cost(self, level: int) -> float:
        """A number of units that a run may cost, as a cost of the model."""
        return float(level * self.largest.unit + self._border.shift)

    def restored(self, border: Border, floor: Any = None) -> Self:
        """The answer for the model as given, from that for the model that was solved.

        Parameters
        ----------
        border : Border
            The way between the two.
        floor : ByBudget, optional
            With `delta`, the answer for costs rounded down, if that says anything.

        Returns
        -------
        ByBudget
            The answer, whose policies are on the model as given.
        """
        largest = self.largest.on(border.given)
        return replace(self, largest=largest, floor=floor)  # type: ignore[type-var]


def first_best(total: FloatArray, mean: FloatArray | None = None) -> int:
    """The first position with the least total or, given means, the least mean among those."""
    tied = np.flatnonzero(total <= total.min() * (1 + TIED))
    if mean is not None:
        tied = tied[mean[tied] <= mean[tied].min() * (1 + TIED)]
    return int(tied[0])


@takes_alpha
class ByAlpha(Record):
    """The least CVaR for every `a >= alpha`."""

    alpha: float
    cvar: Any

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
        every: Any = np.asarray(alphas, dtype=np.float64).ravel()
        return np.asarray(self.cvar(every))

    def _check(self, a: float) -> float:
        known = alpha_from(check_alpha(a), self.alpha)
        if known is None:
            raise OptionError(
                f"the table was made for alpha >= {self.alpha:g}; solve with alpha={a:g}"
            )
        return known


@takes_alpha
@dataclass(frozen=True, eq=False, repr=False)
class ExactSolution(ByBudget, ByAlpha):
    """The least CVaR for every `a >= alpha`, with a policy for each.

    Attributes
    ----------
    alpha : float
        The smallest tail mass for which VaR and CVaR are known.
    budgets : array of int64, shape (n,)
        Budgets w, in cost units, rising.
    excess : array of float64, shape (n,)
        U(start, w), the least E[(Z - w)+], in units.
    mean_cost : array of float64, shape (n,), or None
        With `lexicographic`, the expected cost of the policy of each budget, in units.
    largest : BudgetPolicy
        The policy for `alpha`, which has the largest budget; its steps are those of all others.
    sides : Later
        Bounds on the excesses, found when `bounds` first asks for them.
    beyond : float
        No budget that is not in the table makes the CVaR less than this, in units.
    floor : ExactSolution or None
        With `delta`, the solution for the costs rounded down, if that says anything; its bounds
        are lower bounds here. All values here are then those of the costs rounded up, and the
        unit is `delta`.
    least : float or None
        With `delta`, a proved lower bound on the expected cost of every policy.
    method : str
        Over which budgets it was found, and why.

    Examples
    --------
    >>> tp.solve_cvar_exact(ssp, 0.1).excess
    array([2.4, 1.4, 0.4, 0. ])
    """

    alpha: float
    budgets: IntArray
    excess: FloatArray
    mean_cost: FloatArray | None
    largest: BudgetPolicy
    sides: Later = field(compare=False)
    beyond: float = math.inf
    floor: Any = None
    least: float | None = None
    method: str = "nothing to decide by budgets"

    @property
    def lexicographic(self) -> bool:
        """Whether ties were broken by the expected cost."""
        return self.mean_cost is not None

    def _total(self, a: float) -> FloatArray:
        """What is minimised, by position."""
        return np.asarray(self.budgets + self.excess / a)

    @vectorised
    def cvar(self, a: float) -> float:
        """The least CVaR of any policy at `a`.

        Of budgets that tie within rounding the policy takes the smallest, whose own CVaR may be a
        little more.

        Parameters
        ----------
        a : float in (0, 1], or a list or array (m,) of them
            The mass of the worst tail, `alpha` or more.

        Returns
        -------
        float, or array of float64, shape (m,)
            The least CVaR.

        Raises
        ------
        OptionError
            If `a` is smaller than `alpha`.

        Examples
        --------
        >>> tp.solve_cvar_exact(ssp, 0.1).cvar([0.1, 0.5])
        array([30., 28.])
        """
        return self._as_cost(np.min(self._total(self._check(a))))

    def verify(self, a: float | None = None) -> Proof:
        """Check the bounds on the least CVaR and the policy that attains it, in exact arithmetic.

        The code shares nothing with the solver.

        Parameters
        ----------
        a : float in (0, 1], optional
            The mass of the worst tail; by default `alpha`.

        Returns
        -------
        Proof
            `proved` lists what was proved; printed, it is that list.

        Raises
        ------
        RefutedError
            If a claim does not hold.
        OptionError
            If the model is too large to check, or the checker cannot decide.

        Examples
        --------
        >>> print(tp.solve_cvar_exact(ssp, 0.1).verify())
        no policy has a CVaR below ... at alpha 0.1
        the policy given has a CVaR of at most ... at alpha 0.1
        """
        alpha, ssp = self.alpha if a is None else self._check(a), self.largest.ssp
        border = prepare(ssp)
        computed = replace(self, largest=self.largest.on(border.model)) if border.moves else self
        found = check_optimum(computed, alpha)
        claim = {f"the least CVaR at alpha {alpha:g}": (self.bounds(alpha), computed.bounds(alpha))}
        return check_border(border, found, claim)

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

    def _position(self, a: float) -> int:
        """The index of the best budget, the largest policy's at most."""
        among = int(np.searchsorted(self.budgets, self.largest.budget, side="right"))
        return first_best(self._total(self._check(a))[:among], self.mean_cost)

    def bounds(self, a: float) -> tuple[float, float]:
        """Proved bounds on `cvar(a)`.

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
        asked = self.budgets, 1.0, 1 / a, self.beyond, self._position(a)
        low, high = (end * float(self.largest.unit) for end in sides.total_bounds(*asked))
        low, high = self._border.bounds((low, high))
        below = self.least, None if self.floor is None else self.floor.bounds(a)[0]
        return max((bound for bound in below if bound is not None), default=low), high

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
        a = self._check(a)
        position, total = self._position(a), self._total(a)
        tied = np.count_nonzero(total <= total[position] * (1 + TIED)) > 1
        w = int(self.budgets[position])
        # The smallest best budget is the VaR; where rounding leaves a question, or no budget is
        # needed, the policy is evaluated.
        if w == 0 or (tied and a >= LEAST_EVALUATED):
            return self._border.cost(self._costs(a).var(a))
        return self._total_cost(w)

    @found_once
    def _costs(self, a: float) -> CostDistribution:
        """The policy for `a` evaluated, with costs as it counts them."""
        costs: CostDistribution = evaluate(model_as_counted(self.largest), self.policy(a), a)
        return costs

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
            return float(evaluate(self.largest.ssp, self.policy(a), 1.0).mean)
        return self._as_cost(self.mean_cost[self._position(a)])

    def _as_cost(self, units: Any) -> float:
        """A number of units of the table as a cost of the model."""
        return self._border.cost(float(units) * float(self.largest.unit))

    def restored(self, border: Border, floor: Any = None) -> Self:
        found = super().restored(border, floor)
        least = None if border.delta is None else solve_expected(border.given).bounds[0]
        return replace(found, least=least)

    def _repr_html_(self) -> str | None:
        ssp = self.largest.ssp
        on_map = ssp.geometry is not None
        draw = (lambda: self.policy(self.alpha).plot(ssp)) if on_map else None
        rows = [(a, self.var(a), self.cvar(a)) for a in usual_alphas(self.alpha)]
        return card(
            f"Least CVaR, for alpha >= {self.alpha:g}",
            [Table(("alpha", "VaR", "CVaR"), rows)],
            draw,
        )

    def __repr__(self) -> str:
        return (
            f"<ExactSolution for alpha>={self.alpha:g}: CVaR {self.cvar(self.alpha):.6g}, VaR"
            f" {self.var(self.alpha):.6g}>"
        )
