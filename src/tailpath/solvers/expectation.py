"""The risk-neutral optimum: V*(s) = min over policies that surely arrive of the expected total
cost.

The model is first cut to its *core* (`analysis/core.py`), in which V* is the only solution of V =
min (r + P V); `dp/optimum.py` finds it, with bounds. It is found once and stored with the model.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from tailpath.analysis.core import core_of
from tailpath.analysis.reachability import nature_called, surely_zero_cost_states
from tailpath.distributed.job import Job
from tailpath.distributed.part import Part, plainly
from tailpath.dp.bounds import Bounds
from tailpath.dp.expected import warn_if_unproved
from tailpath.dp.optimum import least_total, sharper
from tailpath.dp.sweeps import Sweeps
from tailpath.errors import ModelError, OptionError
from tailpath.graph import FloatArray
from tailpath.model.endings import ended_by_chance
from tailpath.model.interval import IntervalSSP
from tailpath.model.records import found_once
from tailpath.model.ssp import SSP
from tailpath.options import check_gamma, takes_model
from tailpath.pictures.notebook import card
from tailpath.solvers.by_state import LeastCosts
from tailpath.solvers.part_policies import PartExpectedSolution, solve_expected_part
from tailpath.solvers.uncertain.expected import RobustExpected, solve_robust_expected
from tailpath.texts import Table
from tailpath.verify.distribution import Proof
from tailpath.verify.optimum import check_expected


@dataclass(frozen=True, eq=False, repr=False)
class ExpectedSolution(LeastCosts):
    """The least expected cost from every state, with verified bounds.

    Attributes
    ----------
    ssp : SSP
        The model.
    value : array of float64, shape (n_states,)
        V*(s): 0 at goals, infinite where no policy surely arrives.
    lower, upper : array of float64, shape (n_states,)
        lower[s] <= V*(s) <= upper[s], proved.
    choices : array of int32, shape (n_states,)
        The choice of the policy; -1 at goals and where the value is infinite.
    method : str
        How it was found and proved.
    iterations : int
        How many rounds of value iteration, or how many policies, that took.
    gamma : float
        The discount.
    """

    ssp: SSP
    value: FloatArray
    lower: FloatArray
    upper: FloatArray
    choices: NDArray[np.int32]
    method: str
    iterations: int
    gamma: float = 1.0

    def _checked(self) -> Proof:
        return check_expected(self)

    def _repr_html_(self) -> str:
        lower, upper = self.bounds
        facts = [
            ("expected cost", self.cost()),
            ("proved to lie in", f"{lower:.12g} to {upper:.12g}"),
            ("from", self.ssp.start),
        ]
        drawn = self.policy.plot(self.ssp) if self.ssp.geometry is not None else None
        return card("Least expected cost", [Table((), facts)], drawn)

    def __repr__(self) -> str:
        return f"<ExpectedSolution {self.cost():.6g} from {self.ssp.start!r}, by {self.method}>"


@overload
def solve_expected(
    ssp: SSP, *, gamma: float = 1.0, nature: str = "adversarial", comm: Any = None
) -> ExpectedSolution: ...


@overload
def solve_expected(
    ssp: IntervalSSP, *, gamma: float = 1.0, nature: str = "adversarial", comm: Any = None
) -> RobustExpected | ExpectedSolution: ...


@overload
def solve_expected(ssp: Part, *, comm: Any = None) -> PartExpectedSolution: ...


@takes_model
def solve_expected(
    ssp: Any, *, gamma: float = 1.0, nature: str = "adversarial", comm: Any = None
) -> ExpectedSolution | RobustExpected | PartExpectedSolution:
    """Find the policy of least expected cost, its value from every state, and verified bounds.

    The result is stored with the model, and found once.

    Parameters
    ----------
    ssp : SSP, IntervalSSP or Part
        The model; or, with `comm`, the part of it that this rank has.
    gamma : float in (0, 1]
        The discount: the costs of step t count gamma^t times. That is the expected cost where every
        step is the last one with probability 1 - gamma, and is solved as such; no goal need be
        reached then, and every value is finite.
    nature : {"adversarial", "cooperative"}
        Of a model with intervals: who picks the probabilities inside them, against us or for us.
    comm : communicator of mpi4py, or Job, optional
        The ranks that have the parts; by default one part is all there is. A model that every rank
        has whole is solved by each of them.

    Returns
    -------
    ExpectedSolution
        `cost()`, `bounds` and `policy`. States that cannot surely reach a goal, but can be avoided,
        have an infinite value.

    Raises
    ------
    GoalUnreachableError
        If the start cannot surely reach a goal and `gamma` is 1.
    OptionError
        If `gamma` lies outside its range.
    ModelError
        If the expected costs are too large to compute with.

    Examples
    --------
    >>> best = tp.solve_expected(ssp)
    >>> best.cost(), best.policy.action("home")
    (24.0, 'road')
    """
    if isinstance(ssp, Part):
        plainly(gamma=gamma != 1)
        return solve_expected_part(ssp, Job.of(comm).comm)
    if isinstance(ssp, IntervalSSP):
        nature_called(nature)
        if gamma != 1:
            raise OptionError("models with intervals are solved without a discount")
        return _solve(ssp.inside) if ssp.is_certain else solve_robust_expected(ssp, nature)
    if check_gamma(gamma) < 1:
        return _discounted(ssp, float(gamma))
    return _solve(ssp)


@found_once
def _solve(ssp: SSP) -> ExpectedSolution:
    if ssp.signed:
        of_reduced = _solve(ssp.reduced)
        moved = Bounds(of_reduced.value, of_reduced.lower, of_reduced.upper).shifted(
            ssp.reduction.values
        )
        return replace(of_reduced, ssp=ssp, value=moved.value, lower=moved.lower, upper=moved.upper)
    core = core_of(ssp)
    zero = None if core.rate.all() else core.to_nodes(surely_zero_cost_states(ssp))
    found = least_total(core.decisions(), core.exact_rates, zero)
    if not np.isfinite(found.bounds.value).all():
        raise ModelError(
            "the expected costs are too large to compute with; choose another unit of cost"
        )
    warn_if_unproved(found.bounds)
    lower = np.maximum(found.bounds.lower, 0.0)
    return ExpectedSolution(
        ssp=ssp,
        # Bounds may be tighter than the value is exact, at the edges of the floats.
        value=core.to_states(np.clip(found.bounds.value, lower, found.bounds.upper)),
        lower=core.to_states(lower),
        upper=core.to_states(found.bounds.upper),
        choices=core.model_choices(found.chosen),
        method=found.bounds.method,
        iterations=found.iterations,
    )


@found_once
def _discounted(ssp: SSP, gamma: float) -> ExpectedSolution:
    found = solve_expected(ended_by_chance(ssp, gamma))
    cut = {
        name: getattr(found, name)[: ssp.n_states]
        for name in ("value", "lower", "upper", "choices")
    }
    return replace(found, ssp=ssp, gamma=gamma, **cut)


@found_once
def sharpened(ssp: SSP) -> ExpectedSolution:
    """`solve_expected` with narrower bounds, where they are easily found; for what takes
    differences of values.
    """
    expected, core = solve_expected(ssp), core_of(ssp)
    decisions, found = core.decisions(), Bounds(expected.value, expected.lower, expected.upper)
    sharp = sharper(decisions, Sweeps.outwards(decisions)[0], found.each(core.to_nodes))
    sharp = sharp.each(core.to_states)
    return replace(expected, value=sharp.value, lower=sharp.lower, upper=sharp.upper)
