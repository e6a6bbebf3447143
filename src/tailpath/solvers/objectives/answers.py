"""What `solve` found."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from tailpath.certify.budgets import Later
from tailpath.evaluation.distribution import CostDistribution
from tailpath.evaluation.evaluate import evaluate_for
from tailpath.model.records import Shown
from tailpath.model.ssp import SSP
from tailpath.options import warn_of_confidence
from tailpath.policies.policy import Policy, known
from tailpath.risk.measure import Limit, Measure
from tailpath.risk.measures import Late, Mean, parse
from tailpath.texts import Content, Table


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
    proof : Later
        Where `bounds` come from.
    policy : Policy
        The policy.
    multipliers : tuple of float
        How much the objective would fall if a limit were one unit larger, for each limit (for a
        small change).
    nature : str
        On a model with intervals, whether nature is the "adversarial" or the "cooperative" one;
        what the policy may cost is then `evaluate(model, found.policy, alpha)`.
    said : Later or None
        The sentence about both natures, there; or where the worst policy stays for ever.
    sense : {"min", "max"}
        Whether the objective is the least or the largest, that of the worst policy.

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
    proof: Later = field(compare=False)
    policy: Policy
    multipliers: tuple[float, ...] = ()
    nature: str = ""
    said: Later | None = field(default=None, compare=False)
    sense: str = "min"

    @property
    def bounds(self) -> tuple[float, float]:
        """Proved bounds on the optimum, found when they are first asked for.

        The lower one holds for all policies, however they remember and randomise; the upper one is
        kept by the policy given. Of the worst policy it is the other way round.
        """
        bounds: tuple[float, float] = self.proof.found
        return bounds

    @property
    def gap(self) -> float:
        """How far the optimum may lie below the value; or above it, for the worst policy."""
        low, high = self.bounds
        off = self.value - low if self.sense == "min" else high - self.value
        return max(off, 0.0) if math.isfinite(self.value) else 0.0

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
        """What each limit costs, in words; with intervals what holds under both natures."""
        if self.said is not None:
            return (self.said.found,)
        return tuple(
            self._price(limit, price) for limit, price in zip(self.limits, self.multipliers)
        )

    def _price(self, limit: Limit, price: float) -> str:
        if price == 0:
            return f"{limit} holds anyway"
        if math.isinf(price):
            return f"{limit} forbids every choice that might break it"
        # A probability cannot be one unit more.
        unit, share = ("percentage point", 0.01) if isinstance(limit.measure, Late) else ("unit", 1)
        return f"one {unit} more in {limit} saves {price * share:.6g} of {self.objective}"

    def _content(self, most: int) -> Content:
        which = "least" if self.sense == "min" else "worst policy:"
        facts: list[tuple[str, Any]] = [
            (f"{which} {self.objective}", self.value),
            ("proved to lie in", "{:.10g} to {:.10g}".format(*self.bounds)),
        ]
        if drawn := known(self.policy).drawn:
            weights = ", ".join(f"{weight:.6g}" for weight, _ in drawn)
            facts.append(("policy", f"mixture of {len(drawn)} policies, weights {weights}"))
        table = Table(("measure", "limit", "value"), self._risks())
        return [Table((), facts), table, *(["\n".join(self.words)] if self.words else [])]

    def _risks(self) -> list[tuple[str, float | None, float]]:
        """The mean, the objective and the limits with what the policy makes of them; with intervals
        the objective alone.
        """
        if self.nature:
            return [(str(self.objective), None, self.value)]
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
        drawn = known(self.policy).drawn
        coin = f", by a mixture of {len(drawn)} policies" if drawn else ""
        nature = f", {self.nature} nature" if self.nature else ""
        worst = "worst policy: " if self.sense == "max" else ""
        return f"<RiskSolution {worst}{self.objective} = {self.value:.6g}{under}{coin}{nature}>"
