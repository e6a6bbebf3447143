"""The policy of a model in parts: each rank has the decisions of its own states."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tailpath.distributed.part import Part, whole_of
from tailpath.distributed.ranks import joined, together
from tailpath.errors import ModelError
from tailpath.evaluation.distribution import CostDistribution
from tailpath.evaluation.evaluate import evaluate
from tailpath.graph import IntArray, offsets_from_lengths
from tailpath.model.ssp import SSP
from tailpath.options import takes_alpha
from tailpath.policies.budget import BudgetPolicy


@takes_alpha
@dataclass(frozen=True, eq=False, repr=False)
class PartPolicy:
    """A `BudgetPolicy` of the states of a part, with the choices of the part."""

    comm: Any
    part: Part
    budget: int
    first: IntArray
    from_budget: IntArray
    choice: NDArray[np.int32]
    risk_neutral: NDArray[np.int32]

    def __repr__(self) -> str:
        return f"<PartPolicy on {self.part}>"

    @property
    def unit(self) -> Fraction:
        return self.part.unit

    @property
    def ssp(self) -> Part:
        return self.part

    def with_budget(self, budget: int) -> PartPolicy:
        return replace(self, budget=budget)

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
            policy = self.gather()
            costs: CostDistribution = evaluate(policy.ssp, policy, alpha)
            return costs

        return together(self.comm, work, str(self.part))

    def gather(self, ssp: SSP | None = None) -> BudgetPolicy:
        """The policy of all states, on every rank; all ranks call this.

        It works like any other policy.

        Parameters
        ----------
        ssp : SSP, optional
            The whole model; by default it is gathered, too, with numbers as names.

        Returns
        -------
        BudgetPolicy
            The policy.
        """
        model = whole_of(self.comm, self.part) if ssp is None else ssp
        if model.n_states != self.part.n_states:
            raise ModelError(f"the parts have {self.part.n_states} states, not {model.n_states}")
        # The choices of the parts before this one are counted first.
        before = sum(self.comm.allgather(len(self.part.choice_action))[: self.comm.rank])
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
