"""Policies of a model in parts: each rank has the decisions of its own states.

`gather` makes a policy of the whole model of them, which is evaluated and run as any other.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from tailpath.distributed.part import Part, whole_of
from tailpath.distributed.ranks import joined, together
from tailpath.errors import ModelError
from tailpath.evaluation.distribution import CostDistribution
from tailpath.evaluation.evaluate import evaluate
from tailpath.graph import Array, FloatArray, IntArray, offsets_from_lengths
from tailpath.model.ssp import SSP
from tailpath.options import takes_alpha
from tailpath.policies.budget import BudgetPolicy
from tailpath.policies.kinds import MarkovPolicy

#: What a policy in parts is where one process has it all.
Gathered = TypeVar("Gathered", BudgetPolicy, MarkovPolicy)


@takes_alpha
@dataclass(frozen=True, eq=False, repr=False)
class InParts(Generic[Gathered]):
    """What all policies of a model in parts can do."""

    comm: Any
    part: Part

    def __repr__(self) -> str:
        return f"<{type(self).__name__} on {self.part}>"

    def evaluate(self, alpha: float) -> CostDistribution:
        """The exact costs of the policy, gathered on every rank; all ranks call this.

        Parameters
        ----------
        alpha : float in (0, 1]
            The least mass of the worst tail to answer.

        Returns
        -------
        CostDistribution
            As of `tailpath.evaluate`.
        """

        def work() -> CostDistribution:
            model = whole_of(self.comm, self.part)
            return evaluate(model, self._gathered(model), alpha)

        return together(self.comm, work, str(self.part))

    def gather(self, ssp: SSP | None = None) -> Gathered:
        """The policy of all states on every rank, where it fits; all ranks call this.

        Parameters
        ----------
        ssp : SSP, optional
            The whole model; by default it is gathered, too, with numbers for names.

        Returns
        -------
        BudgetPolicy or MarkovPolicy
            The policy.
        """
        model = whole_of(self.comm, self.part) if ssp is None else ssp
        if model.n_states != self.part.n_states:
            raise ModelError(f"the parts have {self.part.n_states} states, not {model.n_states}")
        return self._gathered(model)

    def _gathered(self, model: SSP) -> Gathered:
        raise NotImplementedError

    def _choices_before(self) -> int:
        """How many choices the parts before this one have."""
        return sum(self.comm.allgather(len(self.part.choice_action))[: self.comm.rank])


@dataclass(frozen=True, eq=False, repr=False)
class PartPolicy(InParts[BudgetPolicy]):
    """A `BudgetPolicy` of the states of a part, with the choices of the part."""

    budget: int
    first: IntArray
    from_budget: IntArray
    choice: NDArray[np.int32]
    risk_neutral: NDArray[np.int32]

    @property
    def unit(self) -> Fraction:
        return self.part.unit

    @property
    def ssp(self) -> Part:
        return self.part

    def with_budget(self, budget: int) -> PartPolicy:
        return replace(self, budget=budget)

    def _gathered(self, model: SSP) -> BudgetPolicy:
        before = self._choices_before()
        risk_neutral = np.where(self.risk_neutral >= 0, self.risk_neutral + before, -1)
        return BudgetPolicy(
            ssp=model,
            budget=self.budget,
            first=offsets_from_lengths(joined(self.comm, np.diff(self.first))),
            from_budget=joined(self.comm, self.from_budget),
            choice=joined(self.comm, self.choice + np.int32(before)),
            risk_neutral=joined(self.comm, risk_neutral.astype(np.int32)),
            level=model.outcome_level,
            unit=self.part.unit,
        )


@dataclass(frozen=True, eq=False, repr=False)
class PartMarkovPolicy(InParts[MarkovPolicy]):
    """One choice for every state of a part, counted in the part; those of goals do not count."""

    choices: Array

    def _gathered(self, model: SSP) -> MarkovPolicy:
        own = self.choices[~self.part.is_goal] + self._choices_before()
        choices = np.full(model.n_states, -1, dtype=np.int32)
        choices[~model.is_goal] = joined(self.comm, own)
        return MarkovPolicy.from_choices(model, choices)


@dataclass(frozen=True, eq=False)
class PartExpectedSolution:
    """The least expected cost from the states of a part, of n states, with verified bounds.

    Attributes
    ----------
    value : array of float64, shape (n,)
        V*: 0 at goals.
    lower, upper : array of float64, shape (n,)
        lower <= V* <= upper, proved.
    choices : array of int32, shape (n,)
        The choice of the policy, counted in the part; -1 at goals.
    start : tuple of float
        V* of the start, and its lower and upper bound, on every rank.
    method : str
        How it was found.
    iterations : int
        How many rounds of value iteration that took.
    policy : PartMarkovPolicy
        The policy of least expected cost; `policy.gather()` is the whole.

    Examples
    --------
    >>> from tailpath.distributed.part import Part
    >>> tp.solve_expected(Part.of(ssp, 0, 1)).value
    array([24.,  0.])
    """

    value: FloatArray
    lower: FloatArray
    upper: FloatArray
    choices: NDArray[np.int32]
    start: tuple[float, float, float]
    method: str
    iterations: int
    policy: PartMarkovPolicy

    def cost(self) -> float:
        """The least expected cost from the start.

        Returns
        -------
        float
            The same on every rank.

        Examples
        --------
        >>> from tailpath.distributed.part import Part
        >>> tp.solve_expected(Part.of(ssp, 0, 1)).cost()
        24.0
        """
        return self.start[0]

    @property
    def bounds(self) -> tuple[float, float]:
        """Verified lower and upper bound on the value of the start."""
        return self.start[1:]
