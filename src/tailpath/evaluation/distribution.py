"""The distribution of the total cost Z, and the only home of VaR and CVaR.

Costs are minimised. `alpha` in (0, 1] is the mass of the *worst* tail:

    VaR_alpha(Z)  = min { z : P(Z > z) <= alpha }
    CVaR_alpha(Z) = min_w  w + E[(Z - w)+] / alpha,    attained at w = VaR

At alpha = 1 they are the smallest cost that can occur and the mean; for alpha -> 0 both become the
worst cost. Asking P(Z > z) <= alpha instead of F(z) >= 1 - alpha loses no digits for small alpha.

A distribution is known by its *head*, every cost up to X = VaR at the alpha it was evaluated with,
and by two numbers of the rest: its mass P(Z > X) and its excess E[(Z - X)+]. From them every larger
alpha follows with non-negative sums only (`dp/totals.py`), so the result keeps its relative
accuracy down to alpha = 1e-12 and below; (mean - head) / alpha would not.

Numbers are plain doubles. What is proved about them is an `Enclosure`, found when somebody first
asks for bounds, or pickles the result.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike

from tailpath.certify.losses import loss_bounds
from tailpath.certify.totals import Enclosure
from tailpath.dp.totals import Totals
from tailpath.errors import OptionError, TailpathError
from tailpath.evaluation.dominance import Dominance, dominance
from tailpath.graph import FloatArray
from tailpath.kernels.rounding import SAME_MASS
from tailpath.model.border import Border
from tailpath.model.records import Record, data_frame
from tailpath.model.ssp import SSP
from tailpath.options import alpha_from, takes_alpha, usual_alphas, vectorised
from tailpath.pictures.distributions import plot_distribution
from tailpath.pictures.notebook import card
from tailpath.pictures.style import Axes
from tailpath.policies.chain import CostChain
from tailpath.policies.policy import known
from tailpath.policies.unrolling import unroll
from tailpath.texts import Table
from tailpath.verify.distribution import Proof, check_distribution
from tailpath.verify.optimum import check_border

#: A picture shows all of a tail but a tenth or less; if less is known it is evaluated up to a
#: fiftieth, with no more pairs than this.
SHOWN, IN_TAIL = 10, 50
MAX_DRAWN = 2_000_000
#: What the refusals of a distribution without its policy have in common.
PICKLED = "this distribution was pickled, which drops the policy; evaluate again before"


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
    alpha : float
        The smallest tail mass for which VaR and CVaR are known.
    mean : float
        The expected cost; infinite if the goal may be missed.
    deviation : float or None
        The standard deviation; None where `std` finds it when it is first asked for.
    unreached : float
        The probability of never arriving.
    expanded : int
        The (node, cost) pairs taken from the queue.
    engine : str
        The engine that ran, `lattice` or `queue`.
    reason : str
        Why a faster way was not taken, if there is one.
    stuck : str
        A state from which the goal is out of reach, if the policy gets to one.
    gamma : float
        The discount.
    ssp : SSP or None
        The model that was evaluated. It does not count in comparisons.
    policy : Policy or None
        The policy that was evaluated. It does not count in comparisons, and is dropped when the
        distribution is pickled if it is made of functions.
    proof : Enclosure, or a function that finds it
        What is proved; without it the numbers count as exact.
    totals : Totals
        The plain numbers that everything is found from. Where some cost is negative they are those
        of the reduced model, and so is what is proved.

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
    alpha: float
    mean: float
    deviation: float | None
    unreached: float
    expanded: int
    engine: str
    reason: str = ""
    stuck: str = ""
    gamma: float = 1.0
    ssp: SSP | None = field(default=None, compare=False)
    policy: Any = field(default=None, compare=False)
    proof: Enclosure | Callable[[], Enclosure] | None = field(default=None, compare=False)
    totals: Totals = field(default=None, compare=False)  # type: ignore[assignment]

    def __post_init__(self) -> None:
        if self.totals is None:
            dead_mass = max(self.tail_mass - self.open_mass, 0.0)
            beyond = self.open_mass, dead_mass, self.tail_excess, self.mean, self.unreached
            last = float(self.costs[-1]) if self.costs.size else 0.0
            vars(self)["totals"] = Totals(self.costs, self.probabilities, last, *beyond)
        self._freeze()

    @classmethod
    def _from_totals(cls, totals: Totals, border: Border, **facts: Any) -> CostDistribution:
        """A distribution of costs as given from one of the costs that are computed with; `facts`
        are the other attributes.
        """
        return cls(
            costs=border.costs(totals.costs),
            probabilities=totals.masses,
            tail_mass=totals.tail_mass,
            open_mass=totals.open_mass,
            tail_excess=totals.excess,
            mean=border.cost(totals.mean),
            unreached=totals.missed,
            ssp=border.given,
            deviation=None,
            totals=totals,
            **facts,
        )

    @property
    def _border(self) -> Border:
        """The way from the plain numbers to the costs as given."""
        return Border(self.ssp)

    # ------------------------------------------------------------------ VaR, CVaR

    @cached_property
    def tails(self) -> FloatArray:
        """P(Z > z) for every cost z of the head: an array of float64, shape (n,)."""
        return self.totals.tails

    @property
    def enclosure(self) -> Enclosure:
        """What is proved about all numbers here, found on first use."""
        if not isinstance(self.proof, Enclosure):
            found = Enclosure(self.totals, self.totals) if self.proof is None else self.proof()
            vars(self)["proof"] = found  # and the chain that it was found from is let go
            return found
        return self.proof

    @property
    def mean_bounds(self) -> tuple[float, float]:
        """Proved bounds on the mean: a tuple of float."""
        return self._border.bounds(self.enclosure.mean)

    @property
    def tail_excess_bounds(self) -> tuple[float, float]:
        """Proved bounds on `tail_excess`: a tuple of float."""
        return self.enclosure.excess

    @property
    def unreached_bounds(self) -> tuple[float, float]:
        """Proved bounds on `unreached`: a tuple of float."""
        return self.enclosure.missed

    def _answered(self, alpha: float) -> float:
        """The alpha that is meant, or a refusal."""
        a = alpha_from(alpha, self.alpha)
        if a is None:
            asked = f"call evaluate with alpha={float(alpha):g} or less"
            raise OptionError(f"this distribution is known for alpha >= {self.alpha:g}; {asked}")
        return a

    def _at_var(self, alpha: float) -> tuple[int, float]:
        """Where the VaR stands in the head, -1 if it is infinite, and the excess over it."""
        return self.totals.at_quantile(alpha * (1 + SAME_MASS))

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
            If `alpha` is smaller than `self.alpha`.

        Examples
        --------
        >>> costs.var(0.1), costs.var(0.05)
        (20.0, 60.0)
        """
        position, _ = self._at_var(self._answered(alpha))
        return float(self.costs[position]) if position >= 0 else math.inf

    @vectorised
    def cvar(self, alpha: float) -> float:
        """Conditional value at risk, the mean of the worst `alpha` (the paper's Corollary 1).

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
            If `alpha` is smaller than `self.alpha`.

        Examples
        --------
        >>> costs.cvar([0.1, 0.5, 1])
        array([60., 28., 24.])
        """
        alpha = self._answered(alpha)
        # A tail that cannot be told from alpha counts as equal for VaR alone: CVaR is the least of
        # w + E[(Z - w)+] / alpha, which one of two costs attains.
        position, excess = self.totals.at_quantile(alpha)
        if position < 0:
            position, excess = self._at_var(alpha)
        if position < 0 or self.unreached > 0:
            return math.inf
        if alpha == 1:
            return self.mean
        value = float(self.totals.costs[position] + excess / alpha)
        return self._border.cost(max(value, self.totals.mean))  # no CVaR lies below the mean

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
            If `alpha` is smaller than `self.alpha`.

        Examples
        --------
        >>> low, high = costs.bounds(0.1)
        >>> low <= 60 <= high, high - low < 1e-6
        (True, True)
        """
        if hasattr(alpha, "bounds_of"):
            low, high = alpha.bounds_of(self)
            return float(low), float(high)
        low, high = self.enclosure.cvar(self._answered(alpha))
        return self._border.bounds((low, max(high, self.totals.mean)))

    @vectorised
    def var_bounds(self, alpha: float) -> tuple[float, float]:
        """Proved bounds on `var(alpha)` of the model's numbers.

        A tail mass that floats cannot tell from `alpha` may lie on either side of it: then two
        costs are named, of which one is the VaR.

        Parameters
        ----------
        alpha : float, or a list or array (m,) of them
            The mass of the worst tail, in (0, 1] and no less than `self.alpha`.

        Returns
        -------
        tuple (low, high), or array of float64, shape (m, 2)
            The true VaR of the model as given lies between them.

        Raises
        ------
        OptionError
            If `alpha` is smaller than `self.alpha`.

        Examples
        --------
        >>> costs.var_bounds(0.05), costs.var_bounds(0.1)
        ((60.0, 60.0), (20.0, 60.0))
        """
        return self._border.bounds(self.enclosure.var(self._answered(alpha)))

    def mean_loss(self, loss: Any) -> float:
        """E[h(Z)] of a loss h of the total cost, without bounds.

        Beyond the head, at x, E[h(Z); Z > x] = h(x+) P(Z > x) + slope E[(Z - x)+]. What never
        arrives is worth the limit of h.

        Parameters
        ----------
        loss : Curve
            A piecewise linear loss: the `curve` of a measure, like `tp.Late(30).curve`.

        Returns
        -------
        float
            The expectation; infinite if the goal may be missed and h rises for ever.

        Raises
        ------
        OptionError
            If the head ends before the last point of h; evaluate with a smaller alpha.

        Examples
        --------
        >>> costs.mean_loss(tp.Shortfall(30).curve)
        3.0
        """
        loss, never = self._border.loss(loss), self._tail_never_arrives
        costs = self.totals.costs
        last = float(costs[-1]) if costs.size else -math.inf
        if self.tail_mass > 0 and not never and loss.last > last:
            raise self._beyond_head(loss.last)
        if self.unreached > 0 and loss.slope > 0:
            return math.inf
        head = float(np.sum(self.probabilities * loss.values(costs)))
        if self.tail_mass == 0:
            return head
        if never:
            return head + self.tail_mass * float(loss.at_infinity)
        here = loss.after[-1] + loss.slope * (last - loss.last)
        excess = loss.slope * self.tail_excess if loss.slope > 0 else 0.0
        return float(head + self.tail_mass * here + excess)

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

        Examples
        --------
        >>> low, high = costs.loss_bounds(tp.Shortfall(30).curve)
        >>> low <= 3 <= high
        True
        """
        border = self._border
        moved, error = border.loss(loss), border.cost_error
        return loss_bounds(self.enclosure, moved, self.gamma < 1, error)

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
            If `alpha` is smaller than `self.alpha`.

        Examples
        --------
        >>> xi = costs.envelope(0.5)
        >>> xi, float(xi @ (costs.probabilities * costs.costs)), costs.cvar(0.5)
        (array([0.88888889, 2.        ]), 28.0, 28.0)
        """
        a = self._answered(alpha)
        position, _ = self._at_var(a)
        density = np.full(len(self.costs), 1 / a)
        if position >= 0:
            density[:position] = 0.0
            at_var = max(a - self.tails[position], 0.0) / self.probabilities[position]
            density[position] = at_var / a
        return density

    @cached_property
    def chains(self) -> tuple[tuple[float, CostChain], ...]:
        """What the policy unrolls to, for measures that the head does not decide: a tuple of pairs.

        Each is a weight and a `CostChain`; there are several if the policy is a mixture.

        Raises
        ------
        OptionError
            If costs are discounted, the memory does not end, or the policy was dropped by a pickle.
        PolicyError
            If the policy reaches a state where it has no action.
        LimitExceededError
            If it reaches too many pairs of state and memory.

        Examples
        --------
        >>> [(weight, chain)] = costs.chains
        >>> chain.expected_sum(chain.cost).value
        array([24.])
        """
        if self.ssp is None or self.policy is None:
            raise OptionError(f"{PICKLED} this")
        drawn = known(self.policy).drawn or ((1.0, self.policy),)
        if self.gamma != 1 or any(known(member).endless for _, member in drawn):
            raise OptionError("discounted costs, and policies without end, have no finite chain")
        return tuple((weight, unroll(self.ssp, member)) for weight, member in drawn)

    @property
    def _tail_never_arrives(self) -> bool:
        """Whether all that is left never arrives, but for what was too small to follow."""
        return self.unreached > 0 and self.open_mass == 0

    def _beyond_head(self, cost: float) -> OptionError:
        """Refuse, and name an alpha that reaches a cost: as if the tail fell off evenly."""
        last = float(self.costs[-1]) if self.costs.size else 0.0
        alpha = self.alpha / 2
        if math.isfinite(cost) and math.isfinite(self.mean):
            further = (cost - last) / max(self.cvar(self.alpha) - last, 1e-300)
            alpha *= math.exp(-min(further, 600.0))
        known = f"{last:g}" if self.costs.size else "nothing"
        return OptionError(
            f"the distribution is known up to cost {known}; evaluate with an alpha of about"
            f" {alpha:.1g} reaches {cost:g}"
        )

    # ------------------------------------------------------------------ the rest

    @cached_property
    def std(self) -> float:
        """The standard deviation; infinite if the goal may be missed."""
        if self.deviation is not None:
            return self.deviation
        return float(_evaluation().deviation_of(self))

    def cdf(self, x: ArrayLike) -> Any:
        """P(Z <= x) (the paper's P^X), known up to the last cost of the head, VaR at `self.alpha`.

        It is known everywhere if no run that costs more ever arrives.

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
        if not known and np.any(points > self.costs[-1:].max(initial=-math.inf)):
            raise self._beyond_head(float(points.max()))
        cumulative = np.concatenate(([0.0], np.cumsum(self.probabilities)))
        result = np.minimum(cumulative[np.searchsorted(self.costs, points, side="right")], 1.0)
        return float(result) if np.ndim(x) == 0 else result

    def dominates(self, other: CostDistribution, order: int = 1) -> Dominance:
        """Whether this total cost Z is no worse than another, Z', for everybody.

        In order 1, P(Z > x) <= P(Z' > x) for all x: so says every measure that rises with the cost.
        In order 2, E[(Z - x)+] <= E[(Z' - x)+] for all x: so says everybody who is averse to risk,
        and every CVaR. What never arrives costs more than any x. Numbers that their bounds cannot
        tell apart count as equal.

        Parameters
        ----------
        other : CostDistribution
            Z', of any policy and model, evaluated with any alpha.
        order : int
            1 or 2.

        Returns
        -------
        Dominance
            True or false as `bool` says, with `witness`, where it fails, and `words`. True means
            true but for a tail of mass `up_to`, if neither distribution is known to its end.

        Raises
        ------
        OptionError
            If one of both is known to its end, and a smaller alpha for the other decides; the
            message names one. In order 2, also if bounds are too wide: those of an endless memory
            are infinite.

        Examples
        --------
        >>> train = tp.evaluate(ssp, {"home": "train"}, 0.05)
        >>> costs.dominates(train)
        <Dominance: fails: P(Z > x) is 0.1 and not at most 0 at x = 30>
        >>> tp.evaluate(ssp, {"home": {"road": 0.5, "train": 0.5}}, 0.05).dominates(costs, 2)
        <Dominance: fails: E[(Z - x)+] is 7 and not at most 4 at x = 20>
        """
        return dominance(self, other, order)

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
            If the distribution was pickled without its policy, or is too large to check.

        Examples
        --------
        >>> print(costs.verify())
        every cost up to 60 (2 in all) and its probability, ...
        """
        if self.ssp is None or self.policy is None:
            raise OptionError(f"{PICKLED} verify()")
        border = self._border
        computed = self if not border.moves else self.restored(Border(border.model))
        found = check_distribution(computed, border.model, self.policy)
        alphas = sorted({self.alpha, *(a for a in (1e-3, 0.01, 0.1, 0.5, 1.0) if a > self.alpha)})
        claims = {f"CVaR at alpha {a:g}": (self.bounds(a), computed.bounds(a)) for a in alphas}
        claims = {"the mean": (self.mean_bounds, computed.mean_bounds)} | claims
        return check_border(border, found, claims)

    def restored(self, border: Border) -> CostDistribution:
        """The answer for the model as given, from that for the model that was solved.

        Parameters
        ----------
        border : Border
            The way back.

        Returns
        -------
        CostDistribution
            With every cost moved.
        """
        costs, mean = border.costs(self.totals.costs), border.cost(self.totals.mean)
        return replace(self, costs=costs, mean=mean, ssp=border.given)

    def __getstate__(self) -> dict[str, Any]:
        state = super().__getstate__()
        state["proof"] = self.enclosure
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
