"""What the exact solver found for a weighted sum of mean and CVaR."""

from __future__ import annotations

from dataclasses import dataclass, field

from tailpath.errors import OptionError
from tailpath.evaluation.evaluate import evaluate
from tailpath.graph import FloatArray
from tailpath.options import check_invertible_alpha, same_alpha, takes_alpha, vectorised
from tailpath.solvers.exact.solution import ExactSolution


@takes_alpha
@dataclass(frozen=True, eq=False, repr=False)
class WeightedSolution(ExactSolution):
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

    def _repr_html_(self) -> None:
        """Nothing more than `repr` shows: the table belongs to one alpha."""

    def __repr__(self) -> str:
        return (
            f"<WeightedSolution for alpha {self.alpha:g}, weight {self.weight:g}:"
            f" {self.objective(self.alpha):.6g}>"
        )
