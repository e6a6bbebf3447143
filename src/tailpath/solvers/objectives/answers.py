"""What `solve` found; and what `frontier` found: its corners, and the least mean at every risk
between them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from tailpath.dp.budget_model import EXCESS, LATE
from tailpath.evaluation.distribution import CostDistribution
from tailpath.evaluation.evaluate import evaluate_for
from tailpath.graph import FloatArray
from tailpath.kernels.rounding import ROUNDOFF
from tailpath.model.border import Border
from tailpath.model.potential import shifted
from tailpath.model.records import Record, Series, Shown
from tailpath.model.ssp import SSP
from tailpath.options import warn_of_confidence
from tailpath.pictures.distributions import plot_frontier
from tailpath.pictures.style import Axes
from tailpath.policies.kinds import MixedPolicy
from tailpath.policies.policy import Policy
from tailpath.risk.measure import Limit, Measure
from tailpath.risk.measures import Late, Mean, parse
from tailpath.solvers.exact.grid import on_model
from tailpath.solvers.objectives.price_search import MeanRisk
from tailpath.solvers.objectives.trade import SAME, Member, Rounding
from tailpath.texts import Content, Table, count


@dataclass(frozen=True, eq=False, repr=False)
class RiskSolution(Shown):
    """The policy with the least `objective` that keeps all `limits`, as `solve` found it.

    Attributes
    ----------
    ssp : SSP
        The model.
    objective : Measure
        What was minimised.
    limits : tuple of Limit
        The limits that are kept.
    value : float
        The objective of the policy; with `delta`, too, on the costs as they are.
    bounds : tuple of float
        Proved bounds on the optimum. The lower one holds for all policies, however they remember
        and randomise; the upper one is kept by the policy given.
    policy : Policy
        The policy.
    multipliers : tuple of float
        How much the objective would fall if a limit were one unit larger, for each limit (for a
        small change).

    Examples
    --------
    >>> best = tp.solve(ssp, "mean", ["cvar(0.1) <= 45"])
    >>> best.words
    ('one unit more in cvar(0.1) <= 45 saves 0.2 of mean',)
    """

    ssp: SSP
    objective: Measure
    limits: tuple[Limit, ...]
    value: float
    bounds: tuple[float, float]
    policy: Policy
    multipliers: tuple[float, ...] = ()

    @property
    def gap(self) -> float:
        """How far the optimum may lie below the value."""
        return max(self.value - self.bounds[0], 0.0)

    def risk(self, measure: Any) -> float:
        """Any measure of the policy, by exact evaluation.

        Parameters
        ----------
        measure : Measure or str
            A measure or its text, like `"cvar(0.05)"`.

        Returns
        -------
        float
            Its value for the total cost of the policy.

        Examples
        --------
        >>> tp.solve(ssp, "cvar(0.1)").risk("mean")
        30.0
        """
        asked = parse(measure)
        warn_of_confidence(asked.finest_alpha)
        return asked(self.costs_for(asked))

    def costs_for(self, *measures: Any) -> CostDistribution:
        """The distribution of the policy's total cost, known as far as some measures ask.

        Parameters
        ----------
        *measures : Measure or str
            The measures.

        Returns
        -------
        CostDistribution
            Good for all of them.

        Examples
        --------
        >>> tp.solve(ssp, "cvar(0.1)").costs_for("var(0.1)", tp.Late(30))
        <CostDistribution alpha>=0.1: mean 30, VaR 30, CVaR 30>
        """
        asked = [parse(measure) for measure in measures]
        key = (
            min([1.0, *(m.finest_alpha for m in asked)]),
            max((m.farthest_cost for m in asked), default=-math.inf),
        )
        if key not in self._evaluated:
            self._evaluated[key] = evaluate_for(self.ssp, self.policy, asked)
        return self._evaluated[key]

    @cached_property
    def _evaluated(self) -> dict[tuple[float, float], CostDistribution]:
        return {}

    @property
    def words(self) -> tuple[str, ...]:
        """What each limit costs, in words."""
        return tuple(
            self._price(limit, price) for limit, price in zip(self.limits, self.multipliers)
        )

    def _price(self, limit: Limit, price: float) -> str:
        if price == 0:
            return f"{limit} holds anyway"
        # A probability cannot be one unit more.
        unit, share = ("percentage point", 0.01) if isinstance(limit.measure, Late) else ("unit", 1)
        return f"one {unit} more in {limit} saves {price * share:.6g} of {self.objective}"

    def _content(self, most: int) -> Content:
        facts: list[tuple[str, Any]] = [
            (f"least {self.objective}", self.value),
            ("proved to lie in", "{:.10g} to {:.10g}".format(*self.bounds)),
        ]
        if isinstance(self.policy, MixedPolicy):
            weights = ", ".join(f"{weight:.6g}" for weight in self.policy.weights)
            facts.append(("policy", f"a coin at the start: {weights}"))
        table = Table(("measure", "limit", "value"), self._risks())
        return [Table((), facts), table, *(["\n".join(self.words)] if self.words else [])]

    def _risks(self) -> list[tuple[str, float | None, float]]:
        """The mean, the objective and the limits with what the policy makes of them."""
        limits = {str(limit.measure): limit for limit in self.limits}
        asked = {
            str(measure): measure
            for measure in (self.objective, Mean(), *(limit.measure for limit in self.limits))
        }
        costs = self.costs_for(*asked.values())
        return [
            (text, limits[text].bound if text in limits else None, measure(costs))
            for text, measure in asked.items()
        ]

    def _columns(self) -> Mapping[str, Sequence[Any]]:
        return dict(zip(("measure", "limit", "value"), map(list, zip(*self._risks()))))

    def __repr__(self) -> str:
        under = f" with {', '.join(str(limit) for limit in self.limits)}" if self.limits else ""
        coin = (
            f", by a coin between {len(self.policy.members)} policies"
            if isinstance(self.policy, MixedPolicy)
            else ""
        )
        return f"<RiskSolution {self.objective} = {self.value:.6g}{under}{coin}>"


@dataclass(frozen=True, eq=False, repr=False)
class Corner(Record):
    """A corner of the frontier: the least `mean` at this `risk`.

    Attributes
    ----------
    ssp : SSP
        The model; with `delta`, with the costs rounded up, and reduced where some are negative.
    measure : Measure
        The risk.
    mean, risk : float
        Of the policy. A CVaR is counted with the budget at which the corner was found; where the
        frontier has a `gap`, another one may show a little less.
    parts : tuple of (weight, price, budget in units)
        What the policy is mixed of; one for a single policy.
    before : float
        The least mean just below this risk: larger than `mean` where the frontier falls in a step,
        otherwise the same.
    true : SSP or None
        With `delta`, or where some cost is negative, the model as it is.
    """

    ssp: SSP
    measure: Measure
    mean: float
    risk: float
    parts: tuple[Member, ...]
    before: float
    true: SSP | None = None

    @cached_property
    def policy(self) -> Policy:
        """The policy of the corner, found again when it is first asked for."""
        tables = MeanRisk(
            self.ssp,
            LATE if isinstance(self.measure, Late) else EXCESS,
            max(budget for _, _, budget in self.parts),
        )
        policy = tables.mixed(self.parts)
        return policy if self.true is None else on_model(policy, self.true)

    def __repr__(self) -> str:
        return (
            f"<Corner mean {self.mean:.6g}, {self.measure}"
            f" {self.risk:.6g}{', mixed' if len(self.parts) > 1 else ''}>"
        )


@dataclass(frozen=True, eq=False, repr=False)
class Frontier(Shown, Series[Corner]):
    """The least mean for every level of risk, as a sequence of corners from the safest policy on.

    Between two neighbours it is a straight line of mixtures, up to a step where the next corner has
    one (`before`): some risk lets a cheaper kind of policy in. All corners are real policies.

    Attributes
    ----------
    corners : tuple of Corner
        Each has a `mean`, a `risk` and a `policy`.
    measure : Measure
        The risk.
    gap : float
        How closely the search caught the frontier: its mean lies below these lines by this share
        of the range of means at most, at a risk larger by this share of the range of risks. 0 if
        all corners were found.
    rounding : Rounding
        What risks and means may be off by, since they are sums of floating-point numbers.
    floor : Frontier or None
        With `delta`, the frontier for the costs rounded down; this one is that for costs rounded
        up.
    reduced : Frontier or None
        Where some cost is negative, the frontier of the reduced model.

    Examples
    --------
    >>> found = tp.frontier(ssp, "cvar(0.1)")
    >>> found.risk, found.mean, found[0].policy.action("home")
    (array([30., 60.]), array([30., 24.]), 'train')
    """

    corners: tuple[Corner, ...]
    measure: Measure
    gap: float
    rounding: Rounding
    floor: Frontier | None = None
    reduced: Frontier | None = None

    @property
    def risk(self) -> FloatArray:
        """The risk of every corner, rising: an array of float64, shape (n,)."""
        return np.array([corner.risk for corner in self.corners])

    @property
    def mean(self) -> FloatArray:
        """The mean of every corner, falling: an array of float64, shape (n,)."""
        return np.array([corner.mean for corner in self.corners])

    def least_mean(self, risk: float) -> float:
        """The least mean at a given risk.

        Parameters
        ----------
        risk : float
            A level of the measure; within rounding of a corner's it counts as that.

        Returns
        -------
        float
            Infinite below the safest policy.

        Examples
        --------
        >>> round(tp.frontier(ssp, "cvar(0.1)").least_mean(45), 6)
        27.0
        """
        if self.reduced is not None:
            return shifted(self.reduced.least_mean(self._reduced_risk(risk)[1]), self._moved[1])
        return self._at(risk * (1 + SAME))

    def bounds(self, risk: float) -> tuple[float, float]:
        """Between which means the least mean at a given risk lies.

        Within rounding of a step these are its two sides. The least risk, or one that rounding
        cannot tell from it, can be kept.

        Parameters
        ----------
        risk : float
            A level of the measure.

        Returns
        -------
        tuple (low, high)
            The lower one is the frontier less its gap, or, with `delta`, that for costs rounded
            down.

        Examples
        --------
        >>> low, high = tp.frontier(ssp, "cvar(0.1)").bounds(45)
        >>> low <= 27 <= high
        True
        """
        if self.reduced is not None:
            assert self.corners[0].true is not None
            border = Border(self.corners[0].true)
            least, most = self._reduced_risk(risk)
            safest = self.reduced.corners[0].risk
            low = self.reduced.bounds(most)[0]
            high = self.reduced.bounds(max(least, safest) if most >= safest else least)[1]
            return border.bounds((low, high))
        below, rounding = self.floor or self, self.rounding
        safest, first, last = self.corners[0].risk, below.corners[0], below.corners[-1]
        later, lower = below.gap * (last.risk - first.risk), below.gap * (first.mean - last.mean)
        low = below._at(below.rounding.above(risk) + later) * (1 - below.rounding.share) - lower
        if rounding.above(risk) < safest:
            return low, math.inf
        return low, self._at(max(rounding.below(risk), safest)) * (1 + rounding.share)

    @property
    def _moved(self) -> tuple[Fraction, Fraction]:
        """What risks and means are more than those of the reduced model."""
        true = self.corners[0].true
        assert true is not None
        return self.measure.moved(true.shift, None)[1], true.shift

    def _reduced_risk(self, risk: float) -> tuple[float, float]:
        """Between which risks of the reduced model a risk lies, by its rounding."""
        more = self._moved[0]
        left = shifted(risk, -more)
        rounding = (
            4 * ROUNDOFF * (abs(risk) + abs(float(more))) if more and math.isfinite(risk) else 0.0
        )
        return left - rounding, left + rounding

    def _at(self, risk: float) -> float:
        point = int(np.searchsorted(self.risk, risk, side="right")) - 1
        if point < 0 or point + 1 == len(self.corners):
            return math.inf if point < 0 else self.corners[-1].mean
        a, b = self.corners[point], self.corners[point + 1]
        return a.mean + (b.before - a.mean) * min(
            max((risk - a.risk) / (b.risk - a.risk), 0.0), 1.0
        )

    def spread(self, count: int) -> list[int]:
        """At most so many corners, as evenly along the frontier as they come, with both ends.

        Corners crowd where the frontier bends.

        Parameters
        ----------
        count : int, 2 or more
            How many.

        Returns
        -------
        list of int
            Their indices, rising.

        Examples
        --------
        >>> tp.frontier(ssp, "cvar(0.1)").spread(2)
        [0, 1]
        """
        if len(self.corners) <= max(count, 2):
            return list(range(len(self.corners)))
        risk, mean = self.risk, self.mean
        steps = np.diff(risk) / (risk[-1] - risk[0]) - np.diff(mean) / (mean[0] - mean[-1])
        arc_length = np.append(0.0, np.cumsum(steps))
        wanted = np.searchsorted(arc_length, np.linspace(0.0, arc_length[-1], max(count, 2))[1:-1])
        return sorted({0, *np.minimum(wanted, len(risk) - 1).tolist(), len(risk) - 1})

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the frontier as a picture to choose from.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; by default a new figure, without a window.

        Returns
        -------
        matplotlib Axes
            `.figure.savefig("frontier.pdf")` saves it, and a notebook shows it.

        Examples
        --------
        >>> tp.frontier(ssp, "cvar(0.1)").plot().get_xlabel()
        'cvar(0.1)'
        """
        return plot_frontier(self, ax)

    def _content(self, most: int) -> Content:
        """The corners, spread evenly where there are many."""
        shown, columns = self.spread(most), self._columns()
        every = ("corner", "risk", "mean at least", "mean", "policies")
        used = [key for key in every if key in columns]
        notes = []
        if len(shown) < len(self):
            notes.append(f"{len(shown)} of {count(len(self), 'corner')}, spread evenly")
        if self.gap > 0:
            notes.append(
                f"exact to {100 * self.gap:.3g} % of the range of means and risks; tolerance 0"
                " finds all corners"
            )
        headers = [str(self.measure) if key == "risk" else key for key in used]
        table = Table(headers, [[columns[key][point] for key in used] for point in shown])
        return [table, *(["\n".join(notes)] if notes else [])]

    def _columns(self) -> Mapping[str, Sequence[Any]]:
        each = {
            "corner": list(range(1, len(self) + 1)),
            "risk": self.risk.tolist(),
            "mean": self.mean.tolist(),
            "before": [corner.before for corner in self],
            "policies": [len(corner.parts) for corner in self],
        }
        if self.floor is None:
            return each
        return {**each, "mean at least": [self.bounds(corner.risk)[0] for corner in self]}

    def _drawn(self) -> Any:
        return self.plot()

    def __repr__(self) -> str:
        ends = (
            f"{self.corners[0].risk:.6g} at mean {self.corners[0].mean:.6g} to"
            f" {self.corners[-1].risk:.6g} at {self.corners[-1].mean:.6g}"
        )
        return f"<Frontier of {self.measure}: {count(len(self.corners), 'corner')}, {ends}>"
