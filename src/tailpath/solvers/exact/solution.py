"""What the exact solver found: the optimum as a function of alpha, with proved bounds, and the
policies that attain it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from tailpath.errors import OptionError
from tailpath.evaluation.evaluate import evaluate
from tailpath.graph import FloatArray
from tailpath.model.border import prepare
from tailpath.options import (
    alpha_from,
    check_invertible_alpha,
    same_alpha,
    takes_alpha,
    usual_alphas,
    vectorised,
)
from tailpath.pictures.notebook import card
from tailpath.solvers.exact.budget_solution import BudgetSolution
from tailpath.texts import Table
from tailpath.verify.distribution import Proof
from tailpath.verify.optimum import check_border, check_optimum


@takes_alpha
@dataclass(frozen=True, eq=False, repr=False)
class ExactSolution(BudgetSolution):
    """The least CVaR for every `a >= alpha`, with a policy for each.

    Attributes
    ----------
    alpha : float
        The least tail mass that is answered.
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
    plain : Later or None
        With `lexicographic`, the solution without.
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

    @vectorised
    def cvar(self, a: float) -> float:
        """The least CVaR at `a`.

        Parameters
        ----------
        a : float in (0, 1], or a list or array (m,) of them
            The mass of the worst tail, `alpha` or more.

        Returns
        -------
        float, or array of float64, shape (m,)
            The least CVaR of any policy.

        Raises
        ------
        OptionError
            If `a` is smaller than `alpha`.

        Examples
        --------
        >>> tp.solve_cvar_exact(ssp, 0.1).cvar([0.1, 0.5])
        array([30., 28.])
        """
        return self.objective(a)

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

    def _price(self, a: float) -> FloatArray:
        return self.excess / a

    def _check(self, a: float) -> float:
        known = alpha_from(check_invertible_alpha(a), self.alpha)
        if known is None:
            raise OptionError(
                f"the table was made for alpha >= {self.alpha:g}; solve with alpha={a:g}"
            )
        return known

    def _repr_html_(self) -> str:
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


@takes_alpha
@dataclass(frozen=True, eq=False, repr=False)
class WeightedSolution(BudgetSolution):
    """The least `(1 - weight) * mean + weight * CVaR`, for one alpha.

    Attributes
    ----------
    alpha : float
        The tail mass it is for.
    budgets : array of int64, shape (n,)
        Budgets, in cost units, rising; with weight 0 there is budget 0 alone.
    excess, mean_cost : array of float64, shape (n,)
        The excess and the expected cost of the policy of each budget.
    largest : BudgetPolicy
        The policy for `alpha`; its steps are those of all others.
    sides : Later
        Bounds on the weighted sums, found when `bounds` first asks for them.
    beyond : float
        No budget that is not in the table makes the weighted sum less than this, in units.
    plain : Later or None
        With `lexicographic`, the solution without.
    floor : WeightedSolution or None
        With `delta`, the solution for the costs rounded down, as of `ExactSolution`.
    least : float or None
        With `delta`, a proved lower bound on the expected cost of every policy.
    method : str
        Over which budgets it was found, and why.
    weight : float in [0, 1]
        The weight of CVaR.
    price : array of float64, shape (n,)
        (1 - weight) * mean + weight / alpha * excess of each budget, in units.

    Examples
    --------
    >>> tp.solve_cvar_exact(ssp, 0.1, weight=0.1)
    <WeightedSolution for alpha 0.1, weight 0.1: 27.6>
    """

    weight: float = field(kw_only=True)
    price: FloatArray = field(kw_only=True)

    @vectorised
    def cvar(self, a: float) -> float:
        """The CVaR of the policy; with weight 0 the policy is evaluated.

        Parameters
        ----------
        a : float, or a list or array (m,) of them
            The mass of the worst tail: `alpha`.

        Returns
        -------
        float, or array of float64, shape (m,)
            The CVaR.

        Examples
        --------
        >>> tp.solve_cvar_exact(ssp, 0.1, weight=0.1).cvar(0.1)
        60.0
        """
        a = self._check(a)
        if self.weight == 0:
            return evaluate(self.largest.ssp, self.policy(a), a).cvar(a)
        position = self._position(a)
        return self._as_cost(self.budgets[position] + self.excess[position] / a)

    def _var(self, a: float) -> float:
        if self.weight == 0:
            return evaluate(self.largest.ssp, self.policy(a), a).var(a)
        return super()._var(a)

    @property
    def _weight(self) -> float:
        return self.weight

    def _price(self, a: float) -> FloatArray:
        return self.price

    def _check(self, a: float) -> float:
        if not same_alpha(check_invertible_alpha(a), self.alpha):
            raise OptionError(
                f"with weight {self.weight:g} the table belongs to alpha = {self.alpha:g} alone;"
                f" solve with alpha={a:g}"
            )
        return self.alpha

    def __repr__(self) -> str:
        return (
            f"<WeightedSolution for alpha {self.alpha:g}, weight {self.weight:g}:"
            f" {self.objective(self.alpha):.6g}>"
        )
