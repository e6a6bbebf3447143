"""The least expected cost of a model with intervals, and the nature that makes it so
(`analysis/robust.py`); and both sides of any result in one sentence.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tailpath.analysis.reachability import NATURES, nature_called
from tailpath.analysis.robust import robust
from tailpath.errors import GoalUnreachableError, ModelError
from tailpath.model.interval import IntervalSSP
from tailpath.model.ssp import SSP, FloatArray
from tailpath.solvers.by_state import LeastCosts
from tailpath.verify.distribution import Proof
from tailpath.verify.intervals import check_robust_expected

Pair = tuple[float, float]


def other_nature(nature: str) -> str:
    """The name of the one that it is not."""
    return next(name for name in NATURES if name != nature)


def both_sides(
    model: IntervalSSP,
    what: str,
    nature: str,
    bounds: Pair,
    others: Callable[[], Pair],
    verb: str = "costs",
) -> str:
    """The sentence about the least of something, from its bounds under this nature and under the
    other.
    """
    try:
        other = others()
    except GoalUnreachableError:  # some nature keeps every policy away
        other = math.inf, math.inf
    cooperative, adversarial = (other, bounds) if nature == "adversarial" else (bounds, other)
    low, high = cooperative[0], adversarial[1]
    condition = (
        "if all intervals hold"
        if model.confidence is None
        else f"with {100 * model.confidence:g} % confidence"
    )
    promise = f", and this policy {verb} at most {high:.6g}" if nature == "adversarial" else ""
    return f"{condition} the least {what} lies in [{low:.6g}, {high:.6g}]{promise}"


@dataclass(frozen=True, eq=False, repr=False)
class RobustExpected(LeastCosts):
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

    @property
    def _ssp(self) -> SSP:
        return self.model.inside

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

    def _checked(self) -> Proof:
        return check_robust_expected(self)

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
        value=problem.to_states(bounds.value),
        lower=problem.to_states(bounds.lower),
        upper=problem.to_states(bounds.upper),
        choices=problem.risk_neutral,
        method=bounds.method,
        iterations=found.iterations,
    )
