"""What results have in common that hold a number for every state, with verified bounds on it."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tailpath.graph import FloatArray
from tailpath.model.records import Record, data_frame
from tailpath.model.ssp import SSP, Name
from tailpath.policies.kinds import MarkovPolicy
from tailpath.verify.distribution import Proof


class ByState(Record):
    """A number for every state of a model: lower[s] <= value[s] <= upper[s]."""

    ssp: SSP
    value: FloatArray
    lower: FloatArray
    upper: FloatArray

    def __post_init__(self) -> None:
        self._freeze()

    @property
    def _ssp(self) -> SSP:
        return self.ssp

    @property
    def bounds(self) -> tuple[float, float]:
        """Verified lower and upper bound on the value of the start."""
        start = self._ssp.start_index
        return float(self.lower[start]), float(self.upper[start])

    def _from(self, state: Name | None) -> float:
        """The value of a state, by default of the start."""
        ssp = self._ssp
        return float(self.value[ssp.start_index if state is None else ssp.state_index(state)])


class LeastCosts(ByState):
    """The least expected cost from every state, and the policy that has it."""

    choices: NDArray[np.int32]

    @cached_property
    def policy(self) -> MarkovPolicy:
        """The `MarkovPolicy` of least expected cost; of a model with intervals, with its nature."""
        return MarkovPolicy.from_choices(self._ssp, self.choices)

    def cost(self, state: Name | None = None) -> float:
        """The least expected cost from a state.

        Parameters
        ----------
        state : hashable, optional
            The name of a state; by default the start.

        Returns
        -------
        float
            0 at goals, infinite where no policy surely arrives.

        Examples
        --------
        >>> tp.solve_expected(ssp).cost("work")
        0.0
        """
        return self._from(state)

    def to_pandas(self) -> Any:
        """Every state with its least expected cost, verified bounds and the action of the policy.

        Returns
        -------
        pandas.DataFrame
            Columns `state`, `value`, `lower`, `upper` and `action`.

        Raises
        ------
        OptionError
            If pandas is not installed.
        """
        ssp = self._ssp
        actions = [ssp.choice_name(k) if k >= 0 else None for k in self.choices.tolist()]
        columns = {"value": self.value, "lower": self.lower, "upper": self.upper}
        return data_frame({"state": list(ssp.states), **columns, "action": actions})

    def verify(self) -> Proof:
        """Check the bounds of every state on the model as given, in exact arithmetic.

        The code shares nothing with the solver.

        Returns
        -------
        Proof
            `proved` lists what was proved; printed, it is that list.

        Raises
        ------
        RefutedError
            If a bound does not hold.
        OptionError
            If the checker cannot prove a bound.
        """
        return self._checked()

    def _checked(self) -> Proof:
        raise NotImplementedError
