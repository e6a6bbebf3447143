"""The least CVaR of a model with intervals, for every tail mass, over real budgets, with proved
bounds (`certify/real_budgets.py`).

    CVaR* = min over w of  w + U(start, w) / alpha,
    U(s, w) = min_a ext_p sum p U(s', w - c),
    U(s, w) = V(s) - w for w <= 0

For a fixed policy the laws of the total cost that nature can make are a convex set, so that its
maximum and the minimum over w may be exchanged. Against an adversarial nature the best w need not
be an integer number of cost units; with a cooperative one it is.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

from tailpath.analysis.reachability import nature_called
from tailpath.analysis.robust import Robust, robust
from tailpath.analysis.tables import MAX_BYTES
from tailpath.certify.real_budgets import Least, RealBudgets
from tailpath.errors import OptionError
from tailpath.model.interval import IntervalSSP
from tailpath.model.records import found_once
from tailpath.options import check_alpha, takes_alpha, vectorised
from tailpath.policies.budget import BudgetPolicy
from tailpath.solvers.exact.layout import budget_policy
from tailpath.solvers.exact.solution import ByAlpha
from tailpath.solvers.expectation import both_sides, other_nature, solve_expected
from tailpath.verify.distribution import Proof
from tailpath.verify.intervals import check_robust_cvar

#: How far apart the bounds of an optimum may be, relatively.
TOLERANCE = 1e-6


@takes_alpha
@dataclass(frozen=True, eq=False, repr=False)
class RobustSolution(ByAlpha):
    """The least CVaR for every `a >= alpha` against, or with, nature.

    Attributes
    ----------
    model : IntervalSSP
        The model.
    alpha : float
        The smallest tail mass for which VaR and CVaR are known.
    nature : {"adversarial", "cooperative"}
        Whether nature is the worst or the best.
    tolerance : float
        How far apart, relatively, `bounds` may be; the search over budgets ends there.
    max_bytes : int
        The most memory to take, in bytes.

    Examples
    --------
    >>> tp.solve_cvar_exact(tp.IntervalSSP.around(ssp, 0.5), 0.1)
    <RobustSolution for alpha>=0.1, adversarial nature: CVaR 30>
    """

    model: IntervalSSP
    alpha: float
    nature: str
    tolerance: float = TOLERANCE
    max_bytes: int = MAX_BYTES

    @cached_property
    def _problem(self) -> Robust:
        return robust(self.model, nature_called(self.nature), 0, max_bytes=self.max_bytes)

    @cached_property
    def _budgets(self) -> RealBudgets:
        return self._problem.excess(self.alpha)

    @found_once
    def _best(self, a: float) -> Least:
        return self._budgets.least(self._check(a), self.tolerance)

    @property
    def _unit(self) -> float:
        return float(self.model.cost_unit or 1)

    @vectorised
    def cvar(self, a: float) -> float:
        """The least CVaR: what the policy for `a` costs under the worst (or best) nature.

        Parameters
        ----------
        a : float, or a list or array (m,) of them
            The mass of the worst tail, in (0, 1] and no less than `self.alpha`.

        Returns
        -------
        float, or array of float64, shape (m,)
            The least CVaR at `a`.

        Raises
        ------
        OptionError
            If `a` is smaller than the solution answers.

        Examples
        --------
        >>> tp.solve_cvar_exact(tp.IntervalSSP.around(ssp, 0.5), 0.1).cvar(0.1)
        30.0
        """
        return self._best(a).value * self._unit

    def bounds(self, a: float) -> tuple[float, float]:
        """Proved lower and upper bound on the least CVaR; the upper one holds for the policy.

        Parameters
        ----------
        a : float
            The mass of the worst tail, in (0, 1] and no less than `self.alpha`.

        Returns
        -------
        tuple of float
            The two bounds.

        Raises
        ------
        OptionError
            If `a` is smaller than the solution answers.

        Examples
        --------
        >>> low, high = tp.solve_cvar_exact(tp.IntervalSSP.around(ssp, 0.5), 0.1).bounds(0.1)
        >>> low <= 30 <= high
        True
        """
        found = self._best(a)
        return min(found.low, found.high) * self._unit, found.high * self._unit

    def budget(self, a: float) -> float:
        """The best budget found for the start, a cost.

        It is a VaR of the policy's total cost under the nature that is worst for it.

        Parameters
        ----------
        a : float
            The mass of the worst tail, in (0, 1] and no less than `self.alpha`.

        Returns
        -------
        float
            The budget, 0 or more.

        Raises
        ------
        OptionError
            If `a` is smaller than the solution answers.

        Examples
        --------
        >>> tp.solve_cvar_exact(tp.IntervalSSP.around(ssp, 0.5), 0.1).budget(0.1)
        30.0
        """
        found = self._best(a)
        budget = max(found.table.budget(found.position), 0.0)
        return float(Fraction(budget) * Fraction(self.model.cost_unit or 1))

    def policy(self, a: float | None = None) -> BudgetPolicy:
        """The policy that attains `cvar(a)`.

        It counts the remaining budget in whole units, rounded up.

        Parameters
        ----------
        a : float, optional
            The mass of the worst tail, in (0, 1] and no less than `self.alpha`, which is the
            default.

        Returns
        -------
        BudgetPolicy
            The policy.

        Raises
        ------
        OptionError
            If `a` is smaller than the solution answers.

        Examples
        --------
        >>> tp.solve_cvar_exact(tp.IntervalSSP.around(ssp, 0.5), 0.1).policy(0.1).action("home")
        'train'
        """
        found = self._best(self.alpha if a is None else a)
        return budget_policy(self._problem.layout, found.table.changes, found.position)

    def verify(self, a: float | None = None) -> Proof:
        """Check both bounds and the policy on the model as given, in exact arithmetic.

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
            If the model is too large to be checked, or the checker cannot decide.

        Examples
        --------
        >>> print(tp.solve_cvar_exact(tp.IntervalSSP.around(ssp, 0.5), 0.1).verify())
        no policy has a CVaR below ... at alpha 0.1 against every nature
        the policy given has a CVaR of at most ... at alpha 0.1 under every nature
        """
        expected = solve_expected(self.model, nature=self.nature)
        return check_robust_cvar(self, expected, self.alpha if a is None else a)

    @cached_property
    def other(self) -> RobustSolution:
        """The solution with the other nature."""
        return replace(self, nature=other_nature(self.nature))

    def words(self, a: float) -> str:
        """Both sides in one sentence: with the best nature and against the worst.

        Parameters
        ----------
        a : float
            The mass of the worst tail, in (0, 1] and no less than `self.alpha`.

        Returns
        -------
        str
            The sentence.

        Raises
        ------
        OptionError
            If `a` is smaller than the solution answers.

        Examples
        --------
        >>> tp.solve_cvar_exact(tp.IntervalSSP.around(ssp, 0.5), 0.1).words(1)
        'if all intervals hold the least CVaR at 1 lies in [22, 26], ...'
        """
        return both_sides(
            self.model, f"CVaR at {a:g}", self.nature, self.bounds(a), lambda: self.other.bounds(a)
        )

    def __repr__(self) -> str:
        return (
            f"<RobustSolution for alpha>={self.alpha:g}, {self.nature} nature: CVaR"
            f" {self.cvar(self.alpha):.6g}>"
        )


def solve_robust_cvar(
    model: IntervalSSP, alpha: float, nature: str, max_bytes: int = MAX_BYTES, **refused: Any
) -> RobustSolution:
    """`solve_cvar_exact` of a model with intervals."""
    for name, given in refused.items():
        if given:
            raise OptionError(
                f"{name} does not apply to models with intervals: nature would not be the same for"
                " the mean and for CVaR"
            )
    found = RobustSolution(model, check_alpha(alpha), nature, max_bytes=max_bytes)
    found.cvar(alpha)
    return found
