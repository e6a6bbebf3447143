"""The distribution of the total cost Z, and the only home of VaR and CVaR.

Costs are minimised. `alpha` in (0, 1] is the mass of the *worst* tail:

    VaR_alpha(Z)  = min { z : P(Z > z) <= alpha }
    CVaR_alpha(Z) = min_w  w + E[(Z - w)+] / alpha,    attained at w = VaR

At alpha = 1 they are the smallest cost that can occur and the mean; for alpha -> 0 both become the
worst cost. Asking P(Z > z) <= alpha instead of F(z) >= 1 - alpha loses no digits for small alpha.

A distribution is known by its *head*, every cost up to X = VaR at the alpha it was evaluated with,
and by two numbers of the rest: its mass P(Z > X) and its excess E[(Z - X)+]. From them every larger
alpha follows with non-negative sums only,

    P(Z > z_k) = P(Z > z_{k+1}) + p_{k+1}
    E[(Z - z_k)+] = E[(Z - z_{k+1})+] + (z_{k+1} - z_k) P(Z > z_k),

so the result keeps its relative accuracy down to alpha = 1e-12 and below; (mean - head) / alpha
would not.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike

from tailpath.errors import OptionError, TailpathError
from tailpath.evaluation.expected_loss import (
    is_linear_beyond,
    loss_bounds_by_lines,
    loss_of_head_and_tail,
)
from tailpath.graph import FloatArray
from tailpath.kernels.rounding import ROUNDOFF, SAME_MASS
from tailpath.model.records import Record, data_frame
from tailpath.model.ssp import SSP
from tailpath.options import alpha_from, takes_alpha, usual_alphas, vectorised
from tailpath.pictures.distributions import plot_distribution
from tailpath.pictures.notebook import card
from tailpath.pictures.style import Axes
from tailpath.texts import Table
from tailpath.verify.distribution import Proof, check_distribution

#: A picture shows all of a tail but a tenth or less; if less is known it is evaluated up to a
#: fiftieth, with no more pairs than this.
SHOWN, IN_TAIL = 10, 50
MAX_DRAWN = 2_000_000


def _evaluation() -> Any:
    """What makes distributions, and is imported after them."""
    from tailpath.evaluation import evaluate

    return evaluate


@takes_alpha
@dataclass(frozen=True, eq=False, repr=False)
class CostDistribution(Record):
    """The distribution of the total cost Z of a policy, as `evaluate` found it.

    It answers every alpha, the mass of the worst tail, from `alpha` up.

    Attributes
    ----------
    costs : array of float64, shape (n,)
        The head: every possible cost up to VaR at `alpha`, rising.
    probabilities : array of float64, shape (n,)
        The probability of each of them.
    tail_mass : float
        P(Z > costs[-1]), the part that never arrives included.
    open_mass : float
        What of `tail_mass` may still arrive.
    tail_excess : float
        E[(Z - costs[-1])+].
    tail_excess_bounds : tuple of float
        Proved bounds on it.
    alpha : float
        The least tail mass that is answered.
    mean : float
        The expected cost; infinite if the goal may be missed.
    mean_bounds : tuple of float
        Proved bounds on it.
    deviation : float or None
        The standard deviation; None where `std` finds it when it is first asked for.
    unreached : float
        The probability of never arriving.
    relative_error : float
        A bound on the relative error of every probability here, but for `dropped`.
    cost_error : float
        A bound on the relative error of every cost.
    dropped : float
        A mass, part of `tail_mass`, that was too small to be followed.
    expanded : int
        The (node, cost) pairs taken from the queue.
    engine : str
        The engine that ran, `lattice` or `queue`.
    reason : str
        Why nothing faster was done, if anything could be.
    stuck : str
        A state from which the goal is out of reach, if the policy gets to one.
    gamma : float
        The discount.
    ssp : SSP or None
        The model that was evaluated. It does not count in comparisons.
    policy : Policy or None
        The policy that was evaluated. It does not count in comparisons, and stays behind when the
        distribution is pickled if it is made of functions.
    unreached_bounds : tuple of float
        Proved bounds on `unreached`.

    Notes
    -----
    VaR_alpha(Z) = min { z : P(Z > z) <= alpha } and CVaR_alpha(Z) = min_w w + E[(Z - w)+] / alpha,
    whose minimum is attained at w = VaR. At alpha = 1 they are the least possible cost and the
    mean; towards 0 both become the worst cost. If the goal may be missed (`unreached` > 0), the
    mean and every CVaR are infinite, and VaR is finite exactly for alpha >= unreached.

    Examples
    --------
    >>> costs = tp.evaluate(ssp, {"home": "road"}, 0.05)
    >>> costs.costs, costs.probabilities
    (array([20., 60.]), array([0.9, 0.1]))
    >>> costs.var(0.1), costs.cvar(0.1), costs.cvar(0.5)
    (20.0, 60.0, 28.0)
    """

    costs: FloatArray
    probabilities: FloatArray
    tail_mass: float
    open_mass: float
    tail_excess: float
    tail_excess_bounds: tuple[float, float]
    alpha: float
    mean: float
    mean_bounds: tuple[float, float]
    deviation: float | None
    unreached: float
    relative_error: float
    cost_error: float
    dropped: float
    expanded: int
    engine: str
    reason: str = ""
    stuck: str = ""
    gamma: float = 1.0
    ssp: SSP | None = field(default=None, compare=False)
    policy: Any = field(default=None, compare=False)
    unreached_bounds: tuple[float, float] = (0.0, 0.0)

    def __post_init__(self) -> None:
        self._freeze()

    # ------------------------------------------------------------------ VaR, CVaR

    @cached_property
    def tails(self) -> FloatArray:
        """P(Z > z) for every cost z of the head: an array of float64, shape (n,)."""
        if self.costs.size == 0:
            return np.empty(0)
        after = np.append(self.probabilities[1:], self.tail_mass)
        return np.cumsum(after[::-1])[::-1]

    def _excesses(
        self, tail_excess: float, error_bound: float = 0.0, dropped: float = 0.0
    ) -> FloatArray:
        """E[(Z - z)+] for every cost z of the head, with masses larger by their error bound."""
        steps = np.append(
            np.diff(self.costs) * np.maximum(self.tails[:-1] * (1 + error_bound) - dropped, 0.0),
            tail_excess,
        )
        return np.cumsum(steps[::-1])[::-1]

    def _var_index(self, alpha: float) -> tuple[float, int]:
        """The alpha that is meant, and where its VaR stands in the head; -1 if it is infinite."""
        a = alpha_from(alpha, self.alpha)
        if a is None:
            asked = f"call evaluate with alpha={float(alpha):g} or less"
            raise OptionError(f"this distribution answers alpha >= {self.alpha:g}; {asked}")
        inside = self.tails - self.dropped <= a * (1 + SAME_MASS)
        return a, int(np.argmax(inside)) if inside.any() else -1

    @vectorised
    def var(self, alpha: float) -> float:
        """Value at risk: the least cost that is exceeded with probability `alpha` at most.

        Parameters
        ----------
        alpha : float, or a list or array (m,) of them
            The mass of the worst tail, in (0, 1] and no less than `self.alpha`.

        Returns
        -------
        float, or array of float64, shape (m,)
            Infinite if `unreached` > alpha.

        Raises
        ------
        OptionError
            If `alpha` is smaller than the distribution answers.

        Examples
        --------
        >>> costs.var(0.1), costs.var(0.05)
        (20.0, 60.0)
        """
        _, position = self._var_index(alpha)
        return float(self.costs[position]) if position >= 0 else math.inf

    @vectorised
    def cvar(self, alpha: float) -> float:
        """Conditional value at risk: the mean of the worst `alpha` of all outcomes.

        Parameters
        ----------
        alpha : float, or a list or array (m,) of them
            The mass of the worst tail, in (0, 1] and no less than `self.alpha`.

        Returns
        -------
        float, or array of float64, shape (m,)
            Infinite if the goal may be missed.

        Raises
        ------
        OptionError
            If `alpha` is smaller than the distribution answers.

        Examples
        --------
        >>> costs.cvar([0.1, 0.5, 1])
        array([60., 28., 24.])
        """
        alpha, position = self._var_index(alpha)
        if position < 0 or self.unreached > 0:
            return math.inf
        value = float(self.costs[position] + self._excesses(self.tail_excess)[position] / alpha)
        low, high = self._cvar_bounds(alpha)
        # No CVaR lies below the mean, and that of all runs is the mean.
        return min(max(self.mean if alpha == 1 else value, low, self.mean), high)

    @vectorised
    def bounds(self, alpha: Any) -> tuple[float, float]:
        """Proved bounds on `cvar(alpha)` of the model's numbers, or on any measure of risk.

        Parameters
        ----------
        alpha : float, a measure of risk, or a list or array (m,) of them
            The mass of the worst tail, in (0, 1] and no less than `self.alpha`, or a measure like
            `tp.Late(30)`.

        Returns
        -------
        tuple (low, high), or array of float64, shape (m, 2)
            The true value of the model as given lies between them, rounding and all.

        Raises
        ------
        OptionError
            If `alpha` is smaller than the distribution answers.

        Examples
        --------
        >>> low, high = costs.bounds(0.1)
        >>> low <= 60 <= high, high - low < 1e-6
        (True, True)
        """
        if hasattr(alpha, "bounds_of"):
            low, high = alpha.bounds_of(self)
            return float(low), float(high)
        return self._cvar_bounds(alpha)

    def _cvar_bounds(self, alpha: float) -> tuple[float, float]:
        """Upper: w + E[(Z - w)+] / alpha at the VaR found; any w gives an upper bound. Lower: the
        minimum of the same over 0 and the head; beyond it cannot fall by more than the error bound
        of the tail mass times its own size, which the last factor takes off. Rounding is charged
        outwards.
        """
        alpha, position = self._var_index(alpha)
        if position < 0 or self.unreached > 0:
            return math.inf, math.inf
        # Of the masses, which the excess of the tail has charged itself, and of the sums.
        of_masses, of_sums = self.relative_error, (len(self.costs) + 20) * 2 * ROUNDOFF
        with np.errstate(over="ignore"):  # infinity is what sums beyond the floats are
            low = self._excesses(self.tail_excess_bounds[0], -of_masses, self.dropped)
            high = self._excesses(self.tail_excess_bounds[1], of_masses)
            upper = self.costs[position] + (1 + of_sums) * high[position] / alpha
            lower = np.min(self.costs + (1 - of_sums) * low / alpha)
            all_of_it = self.costs[0] * (1 - of_masses) * (1 - self.dropped) + low[0]
            at_zero = (1 - of_sums) * all_of_it / alpha
        slack = 4 * max(of_masses + of_sums, SAME_MASS) + self.cost_error
        least = max(float(min(lower, at_zero)) * (1 - slack), self.mean_bounds[0])
        least = min(least, sys.float_info.max)  # every run arrives, so that the CVaR is finite
        most = max(float(upper) * (1 + 8 * ROUNDOFF + self.cost_error), self.mean)
        return least, min(most, self.mean_bounds[1]) if alpha == 1 else most

    def expected_loss(self, loss: Any) -> tuple[float, float, float]:
        """E[h(Z)] of a loss h of the total cost, with proved bounds.

        Beyond its last point h is linear, so mass and excess of the tail say all, once the head
        reaches that far.

        Parameters
        ----------
        loss : Curve
            A piecewise linear loss: the `curve` of a measure, like `tp.Late(30).curve`.

        Returns
        -------
        tuple (value, low, high)
            The expectation and proved bounds on it; infinite if the goal may be missed and h rises
            for ever.

        Raises
        ------
        OptionError
            If the head ends before the last point of h; evaluate with a smaller alpha.

        Examples
        --------
        >>> costs.expected_loss(tp.Shortfall(30).curve)[0]
        3.0
        """
        if not is_linear_beyond(self, loss):
            raise self._beyond_head()
        return loss_of_head_and_tail(self, loss)

    def loss_bounds(self, loss: Any) -> tuple[float, float]:
        """Proved bounds on E[h(Z)], also where h bends beyond the head.

        Parameters
        ----------
        loss : Curve
            A piecewise linear loss: the `curve` of a measure, like `tp.Late(30).curve`.

        Returns
        -------
        tuple (low, high)
            E[h(Z)] lies between them.

        Notes
        -----
        Beyond the head, at x, a line a + c (z - x) below h gives E[h(Z); Z > x] >= a * mass + c *
        excess, and one above h an upper bound. Flat lines, those of the last slope and those
        through x and another point of h are tried: a deadline gives Markov's inequality.

        Examples
        --------
        >>> low, high = costs.loss_bounds(tp.Shortfall(30).curve)
        >>> low <= 3 <= high
        True
        """
        if is_linear_beyond(self, loss):
            return loss_of_head_and_tail(self, loss)[1:]
        return loss_bounds_by_lines(self, loss)

    def envelope(self, alpha: float) -> FloatArray:
        """The worst-case density of the dual form of CVaR, by cost of the head.

        CVaR is the largest mean of Z reweighted by a density xi with 0 <= xi <= 1 / alpha and mean
        1, the risk envelope (the paper's Eqs. 6 and 7). The density that attains it is 0 below the
        VaR and 1 / alpha above it, also for the mass beyond the head; at the VaR it makes the mean
        1.

        Parameters
        ----------
        alpha : float
            The mass of the worst tail, in (0, 1] and no less than `self.alpha`.

        Returns
        -------
        array of float64, shape (n,)
            The density at each of `self.costs`.

        Raises
        ------
        OptionError
            If `alpha` is smaller than the distribution answers.

        Examples
        --------
        >>> xi = costs.envelope(0.5)
        >>> xi, float(xi @ (costs.probabilities * costs.costs)), costs.cvar(0.5)
        (array([0.88888889, 2.        ]), 28.0, 28.0)
        """
        a, position = self._var_index(alpha)
        density = np.full(len(self.costs), 1 / a)
        if position >= 0:
            density[:position] = 0.0
            at_var = max(a - self.tails[position], 0.0) / self.probabilities[position]
            density[position] = at_var / a
        return density

    @property
    def _last_cost(self) -> float:
        """The last cost of the head; below every cost if there is none."""
        return float(self.costs[-1]) if self.costs.size else -math.inf

    @property
    def _tail_never_arrives(self) -> bool:
        """Whether all that is left never arrives, but for what was too small to follow."""
        return self.unreached > 0 and self.open_mass == 0

    def _beyond_head(self) -> OptionError:
        last = f"{self._last_cost:g}" if self.costs.size else "nothing"
        return OptionError(
            f"the distribution is known up to cost {last}; call evaluate with an alpha below"
            f" {self.alpha:g}"
        )

    # ------------------------------------------------------------------ the rest

    @cached_property
    def std(self) -> float:
        """The standard deviation; infinite if the goal may be missed."""
        if self.deviation is not None:
            return self.deviation
        return float(_evaluation().deviation_of(self))

    def cdf(self, x: ArrayLike) -> Any:
        """P(Z <= x), known up to the last cost of the head, VaR at `self.alpha`.

        Where all that is left never arrives, it is known everywhere.

        Parameters
        ----------
        x : float, or array of float of any shape
            Costs.

        Returns
        -------
        float, or array of float64 of the shape of `x`
            The probability of a total cost of at most x.

        Raises
        ------
        OptionError
            If some x lies beyond what is known; evaluate with a smaller alpha.

        Examples
        --------
        >>> costs.cdf([10, 20, 60])
        array([0. , 0.9, 1. ])
        """
        points = np.asarray(x, dtype=np.float64)
        known = self.tail_mass == 0 or self._tail_never_arrives
        if not known and np.any(points > self._last_cost):
            raise self._beyond_head()
        cumulative = np.concatenate(([0.0], np.cumsum(self.probabilities)))
        result = np.minimum(cumulative[np.searchsorted(self.costs, points, side="right")], 1.0)
        return float(result) if np.ndim(x) == 0 else result

    def to_pandas(self) -> Any:
        """The head of the distribution as a DataFrame.

        Returns
        -------
        pandas.DataFrame
            Columns `cost` and `probability`, up to VaR at `self.alpha`.

        Raises
        ------
        OptionError
            If pandas is not installed.

        Examples
        --------
        >>> costs.to_pandas()
           cost  probability
        0  20.0          0.9
        1  60.0          0.1
        """
        return data_frame({"cost": self.costs, "probability": self.probabilities})

    def verify(self) -> Proof:
        """Check every claim made here on the model as given, in exact arithmetic.

        The code shares nothing with the evaluation. Small policies only: every pair of state and
        memory, and every cost up to the last, is followed in Python.

        Returns
        -------
        Proof
            `proved` lists what was proved, one line each; printed, it is that list.

        Raises
        ------
        RefutedError
            If a claim does not hold.
        OptionError
            If the policy stayed behind when the distribution was pickled, or is too large to check.

        Examples
        --------
        >>> print(costs.verify())
        every cost up to 60 (2 in all) and its probability, ...
        """
        if self.ssp is None or self.policy is None:
            raise OptionError(
                "the policy of this distribution stayed behind when it was pickled; evaluate it"
                " again to check it"
            )
        return check_distribution(self, self.ssp, self.policy)

    def __getstate__(self) -> dict[str, Any]:
        state = super().__getstate__()
        if (
            any(callable(part) for part in vars(self.policy).values())
            if hasattr(self.policy, "__dict__")
            else self.policy is not None
        ):
            state["policy"], state["deviation"] = None, self.std
        return state

    def plot(self, alpha: float | None = None, ax: Axes | None = None) -> Axes:
        """Draw the probability of every cost as a bar, with mean, VaR and CVaR marked.

        Parameters
        ----------
        alpha : float, optional
            The tail mass of VaR and CVaR; by default `self.alpha`.
        ax : matplotlib Axes, optional
            Where to draw; by default a new figure, without a window.

        Returns
        -------
        matplotlib Axes
            `.figure.savefig("costs.pdf")` saves it, and a notebook shows it.

        Examples
        --------
        >>> costs.plot(0.1).get_xlabel()
        'total cost'
        """
        asked = self.alpha if alpha is None else alpha
        self.var(asked)  # refuses what was not evaluated
        return plot_distribution(
            self._known_to(asked / IN_TAIL) if self.alpha > asked / SHOWN else self, asked, ax
        )

    def _known_to(self, alpha: float) -> CostDistribution:
        """The same known as far as a smaller alpha needs it, for pictures of the tail, if that is
        to be had.
        """
        if (
            alpha >= self.alpha
            or self.ssp is None
            or self.policy is None
            or self.tail_mass <= self.unreached
            or self.gamma != 1
        ):
            return self
        try:
            found = _evaluation().evaluate(self.ssp, self.policy, alpha, max_nodes=MAX_DRAWN)
        except TailpathError:
            found = self
        return cast(CostDistribution, found)

    def _repr_html_(self) -> str:
        rows = [(a, self.var(a), self.cvar(a)) for a in usual_alphas(self.alpha)]
        facts = [("mean", self.mean), ("never arrives", self.unreached)]
        return card(
            "Distribution of the total cost",
            [Table((), facts), Table(("alpha", "VaR", "CVaR"), rows)],
            self.plot,
        )

    def __repr__(self) -> str:
        return (
            f"<CostDistribution alpha>={self.alpha:g}: mean {self.mean:.6g}, VaR"
            f" {self.var(self.alpha):.6g}, CVaR {self.cvar(self.alpha):.6g}>"
        )
