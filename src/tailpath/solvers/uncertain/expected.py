"""The least expected cost of a model with intervals, and the nature that makes it so
(`analysis/robust.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tailpath.analysis.nature import nature_called
from tailpath.analysis.robust import robust
from tailpath.errors import ModelError
from tailpath.model.interval import IntervalSSP
from tailpath.model.records import Record, data_frame
from tailpath.model.ssp import FloatArray, Name
from tailpath.policies.kinds import MarkovPolicy
from tailpath.solvers.uncertain.words import both_sides, other_nature
from tailpath.verify.distribution import Proof
from tailpath.verify.intervals import check_robust_expected


@dataclass(frozen=True, eq=False, repr=False)
class RobustExpected(Record):
    """The least expected cost from every state against, or with, nature, with verified bounds.

    Attributes
    ----------
    model : IntervalSSP
        The model.
    nature : {"adversarial", "cooperative"}
        Whether nature is the worst or the best.
    value : array of float64, shape (n_states,)
        V(s): 0 at goals, infinite where no policy surely arrives.
    lower, upper : array of float64, shape (n_states,)
        lower[s] <= V(s) <= upper[s], proved.
    choices : array of int32, shape (n_states,)
        The choice of the policy; -1 at goals and where the value is infinite.
    method : str
        How it was found and proved.
    iterations : int
        How many iterations that took.
    """

    model: IntervalSSP
    nature: str
    value: FloatArray
    lower: FloatArray
    upper: FloatArray
    choices: NDArray[np.int32]
    method: str
    iterations: int

    def __post_init__(self) -> None:
        self._freeze()

    @cached_property
    def policy(self) -> MarkovPolicy:
        """The `MarkovPolicy` of least expected cost against, or with, this nature."""
        return MarkovPolicy.from_choices(self.model.inside, self.choices)

    @property
    def bounds(self) -> tuple[float, float]:
        """Verified lower and upper bound on the value of the start."""
        start = self.model.inside.start_index
        return float(self.lower[start]), float(self.upper[start])

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
        """
        inside = self.model.inside
        return float(self.value[inside.start_index if state is None else inside.state_index(state)])

    def words(self) -> str:
        """Both sides in one sentence: with the best nature and against the worst.

        Returns
        -------
        str
            The sentence about the start.
        """
        other = other_nature(self.nature)
        return both_sides(
            self.model,
            "mean",
            self.nature,
            self.bounds,
            lambda: solve_robust_expected(self.model, other).bounds,
        )

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
            If a claim does not hold.
        """
        return check_robust_expected(self)

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
        inside = self.model.inside
        actions = [
            inside.choice_name(choice) if choice >= 0 else None for choice in self.choices.tolist()
        ]
        return data_frame(
            {
                "state": list(inside.states),
                "value": self.value,
                "lower": self.lower,
                "upper": self.upper,
                "action": actions,
            }
        )

    def __repr__(self) -> str:
        return (
            f"<RobustExpected {self.cost():.6g} from {self.model.start!r}, {self.nature} nature, by"
            f" {self.method}>"
        )


def solve_robust_expected(model: IntervalSSP, nature: str) -> RobustExpected:
    """`solve_expected` of a model with intervals."""
    problem = robust(model, nature_called(nature))
    found = problem.optimum
    if not np.isfinite(found.bounds.value).all():
        raise ModelError(
            "the expected costs are too large to compute with; choose another unit of cost"
        )
    bounds = found.bounds
    return RobustExpected(
        model=model,
        nature=nature,
        value=problem.spread(bounds.value),
        lower=problem.spread(bounds.lower),
        upper=problem.spread(bounds.upper),
        choices=problem.risk_neutral,
        method=bounds.method,
        iterations=found.iterations,
    )
