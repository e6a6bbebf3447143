"""What the total cost of a policy may be on a model with intervals: everything between the best and
the worst that nature can do. Model x policy is a model with one choice in every node
(`product.py`), solved as any model with intervals is (`analysis/robust.py`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property, partial
from typing import Any

import numpy as np

from tailpath.analysis.reachability import almost_sure_under_nature
from tailpath.analysis.robust import robust
from tailpath.certify.real_budgets import Least
from tailpath.dp.backup import ADVERSARIAL, COOPERATIVE
from tailpath.errors import (
    GoalUnreachableError,
    LimitExceededError,
    OptionError,
    PolicyError,
    kind_of,
)
from tailpath.evaluation.product import (
    LONGEST,
    SHORT,
    Lateness,
    UncertainOutcome,
    product_of,
    uncertain_outcomes,
)
from tailpath.graph import IntArray
from tailpath.model.border import require_unit
from tailpath.model.cost_units import in_units
from tailpath.model.interval import IntervalSSP
from tailpath.model.records import Record
from tailpath.options import check_alpha, takes_alpha, vectorised
from tailpath.pictures.distributions import plot_band
from tailpath.pictures.style import Axes
from tailpath.policies.given import as_policy
from tailpath.policies.policy import known
from tailpath.policies.unrolling import MAX_PAIRS, unroll

#: How far apart the proved bounds of a CVaR may be, relatively.
TOLERANCE = 1e-9


@takes_alpha
@dataclass(frozen=True, eq=False, repr=False)
class CostBand(Record):
    """What nature can make of the total cost of a policy on a model with intervals.

    `evaluate` returns it. Its answers are pairs (least, most) over all that nature can do: at every
    visit, and knowing all that has happened, it picks probabilities inside the intervals.

    Attributes
    ----------
    model : IntervalSSP
        The model that was evaluated.
    alpha : float
        The smallest tail mass for which CVaR is known.
    product : IntervalSSP
        The chain of the policy as a model with intervals, with one choice in every node.
    outcome : array of int64, shape (product.n_outcomes,)
        The outcome of `model` behind each outcome of `product`; -1 where the policy draws its
        action.

    Notes
    -----
    The two ends of a pair belong to two natures, which may differ for each alpha and cost.
    Fixed probabilities inside the intervals lie between the two ends of everything here.

    Examples
    --------
    >>> model = tp.IntervalSSP.from_outcomes([("home", "road", "work", (0.8, 0.95), 20),
    ...                                       ("home", "road", "work", (0.05, 0.2), 60),
    ...                                       ("home", "train", "work", 1, 30)], "home", ["work"])
    >>> band = tp.evaluate(model, {"home": "road"}, 0.1)
    >>> band
    <CostBand mean 22 to 28, CVaR at 0.1 40 to 60>
    >>> band.var(0.1), band.cdf(20)
    ((20.0, 60.0), (0.8, 0.95))
    """

    model: IntervalSSP
    alpha: float
    product: IntervalSSP
    outcome: IntArray

    # ------------------------------------------------------------------ mean and CVaR

    @cached_property
    def _natures(self) -> list[tuple[int, bool]]:
        """The best nature and the worst, and whether the policy is certain to arrive with each."""
        start = self.product.inside.start_index
        return [
            (nature, bool(almost_sure_under_nature(self.product, nature)[0][start]))
            for nature in (COOPERATIVE, ADVERSARIAL)
        ]

    @property
    def mean_bounds(self) -> tuple[float, float]:
        """Proved: no nature makes the mean less than the first, or more than the second."""
        (low, _, _), (_, _, high) = self._means
        return low, high

    @property
    def mean(self) -> tuple[float, float]:
        """The least and the most expected cost; infinite where arriving is not sure."""
        (_, least, _), (_, most, _) = self._means
        return least, most

    @cached_property
    def _means(self) -> list[tuple[float, ...]]:
        """Lower bound, value and upper bound with the best nature and the worst."""
        start, found = self.product.inside.start_index, []
        for nature, almost_sure in self._natures:
            sides: tuple[float, ...] = (math.inf, math.inf, math.inf)
            if almost_sure:
                problem = robust(self.product, nature)
                bounds = problem.optimum.bounds.map(problem.to_states)
                sides = tuple(
                    float(side[start]) for side in (bounds.lower, bounds.value, bounds.upper)
                )
            found.append(sides)
        return found

    @cached_property
    def _excess(self) -> list[Callable[[float], Least] | None]:
        """The least CVaRs, in units, found once for each alpha, with the best nature and the worst;
        None where they are infinite.
        """
        return [
            cache(
                partial(robust(self.product, nature).excess(self.alpha).least, tolerance=TOLERANCE)
            )
            if almost_sure
            else None
            for nature, almost_sure in self._natures
        ]

    def _cvars(self, a: float) -> list[Least | None]:
        if check_alpha(a) < self.alpha:
            raise OptionError(
                f"the policy was evaluated for alpha >= {self.alpha:g}; evaluate with alpha={a:g}"
            )
        return [None if least is None else least(a) for least in self._excess]

    @vectorised
    def cvar(self, a: float) -> tuple[float, float]:
        """The least and the most CVaR: the mean of the worst `a` of all runs.

        Parameters
        ----------
        a : float, or a list or array (m,) of them
            The mass of the worst tail, in (0, 1] and no less than `self.alpha`.

        Returns
        -------
        tuple of float, or array of float64, shape (m, 2)
            Infinite where arriving is not sure: the least with the best nature, the most with the
            worst.

        Raises
        ------
        OptionError
            If `a` is smaller than `self.alpha`.
        ModelError
            If the costs have no common unit.

        Examples
        --------
        >>> band = tp.evaluate(tp.IntervalSSP.around(ssp, 0.5), {"home": "road"}, 0.1)
        >>> band.cvar([0.1, 1]).round(6)
        array([[40., 60.],
               [22., 26.]])
        """
        least, most = (
            math.inf if found is None else found.value * self._unit for found in self._cvars(a)
        )
        return least, most

    def bounds(self, a: float) -> tuple[float, float]:
        """Proved: no nature makes the CVaR at `a` less than the first, or more than the second.

        Parameters
        ----------
        a : float
            The mass of the worst tail, in (0, 1] and no less than `self.alpha`.

        Returns
        -------
        tuple of float
            A lower bound on the least CVaR and an upper bound on the most.

        Raises
        ------
        OptionError
            If `a` is smaller than `self.alpha`.
        ModelError
            If the costs have no common unit.

        Examples
        --------
        >>> band = tp.evaluate(tp.IntervalSSP.around(ssp, 0.5), {"home": "road"}, 0.1)
        >>> low, high = band.bounds(0.1)
        >>> low <= 40, high >= 60
        (True, True)
        """
        least, most = self._cvars(a)
        return (
            math.inf if least is None else least.low * self._unit,
            math.inf if most is None else most.high * self._unit,
        )

    @property
    def _unit(self) -> float:
        return float(require_unit(self.product))

    # ------------------------------------------------------------------ the distribution

    @cached_property
    def _lateness(self) -> list[Lateness]:
        """With the best nature for each cost, and the worst."""
        return [
            Lateness(self.product, nature, almost_sure) for nature, almost_sure in self._natures
        ]

    @vectorised
    def cdf(self, x: float) -> tuple[float, float]:
        """The least and the most probability of a total cost of at most `x`.

        Parameters
        ----------
        x : float, or a list or array (m,) of them
            A cost.

        Returns
        -------
        tuple of float, or array of float64, shape (m, 2)
            Of the nature that is worst for `x`, and of the one that is best.

        Raises
        ------
        OptionError
            If `x` is not a number.
        ModelError
            If the costs have no common unit.
        LimitExceededError
            If `x` lies too many cost units away.

        Examples
        --------
        >>> band = tp.evaluate(tp.IntervalSSP.around(ssp, 0.5), {"home": "road"}, 0.1)
        >>> band.cdf([20, 60]).round(6)
        array([[0.85, 0.95],
               [1.  , 1.  ]])
        """
        if not self._unit or math.isnan(x):
            raise OptionError(f"{x!r} is not a cost")
        if x < 0:
            return 0.0, 0.0
        unit = require_unit(self.product)
        level = math.floor(in_units(x, unit)) if x < LONGEST * self._unit else LONGEST
        if level >= LONGEST:
            raise LimitExceededError(f"{x:g} lies more than {LONGEST} cost units away", (0.0, 1.0))
        most, least = (1.0 - lateness.at(level) for lateness in self._lateness)
        return least, max(most, least)

    @vectorised
    def var(self, a: float) -> tuple[float, float]:
        """The least and the most VaR: the least cost exceeded with probability `a` at most.

        Parameters
        ----------
        a : float, or a list or array (m,) of them
            The mass of the worst tail, in (0, 1].

        Returns
        -------
        tuple of float, or array of float64, shape (m, 2)
            Infinite where nature can keep more than `a` from ever arriving, as far as doubles tell.

        Raises
        ------
        ModelError
            If the costs have no common unit.
        LimitExceededError
            If VaR lies too many cost units away.

        Examples
        --------
        >>> band = tp.evaluate(tp.IntervalSSP.around(ssp, 0.5), {"home": "road"}, 0.1)
        >>> band.var(0.1)
        (20.0, 60.0)
        """
        check_alpha(a)
        least, most = (lateness.quantile(a) * self._unit for lateness in self._lateness)
        return least, most

    # ------------------------------------------------------------------ nature

    @cached_property
    def nature(self) -> tuple[UncertainOutcome, ...]:
        """Which probabilities hurt most: what the worst nature for the mean makes of each outcome.

        A tuple by falling harm, each with `state`, `action`, `next_state`, `cost`, `low`, `high`,
        `worst` (the probability that nature picks, on average over its visits) and `harm`. Only
        outcomes of open choices that are visited are listed. `GoalUnreachableError` is raised if
        some nature keeps the policy from arriving.

        The harm of an outcome is (worst - inside) times what it costs from there, over all expected
        visits of the worst chain: over all outcomes of a choice it adds up to how much its
        intervals raise the mean, at the values of the worst nature.
        """
        _, (_, almost_sure) = self._natures
        if not almost_sure:
            raise GoalUnreachableError(
                "nature can keep the policy from arriving for ever, so its mean is unbounded"
            )
        problem = robust(self.product, ADVERSARIAL)
        return uncertain_outcomes(self.model, self.product, self.outcome, problem)

    # ------------------------------------------------------------------ how it shows itself

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the distribution function as a band, with the least and the most CVaR at `alpha`.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; by default on new axes.

        Returns
        -------
        matplotlib Axes
            The axes.

        Examples
        --------
        >>> band = tp.evaluate(tp.IntervalSSP.around(ssp, 0.5), {"home": "road"}, 0.1)
        >>> band.plot().get_ylabel()
        'probability of at most that'
        """
        top = self.var(self.alpha)[1]
        last = top if math.isfinite(top) else SHORT * self._unit
        costs = np.arange(0.0, last * 1.1 + self._unit, self._unit)
        band = np.array([self.cdf(float(x)) for x in costs])
        return plot_band(costs, band, self.cvar(self.alpha), self.alpha, ax)

    def __repr__(self) -> str:
        low, high = self.cvar(self.alpha)
        return (
            f"<CostBand mean {self.mean[0]:.6g} to {self.mean[1]:.6g}, CVaR at {self.alpha:g}"
            f" {low:.6g} to {high:.6g}>"
        )


def evaluate_band(
    model: IntervalSSP, policy: Any, alpha: float, *, max_nodes: int | None = None
) -> CostBand:
    """`evaluate` on a model with intervals."""
    alpha = check_alpha(alpha)
    given = as_policy(model.inside, policy, alpha=alpha)
    if known(given).endless or known(given).drawn:
        raise PolicyError(
            f"{kind_of(given)} may reach infinitely many pairs of state and memory; on a model with"
            " intervals evaluate a policy with a finite memory"
        )
    chain = unroll(model.inside, given, max_nodes=MAX_PAIRS if max_nodes is None else max_nodes)
    assert chain.outcome is not None
    return CostBand(model, alpha, *product_of(model, chain))
