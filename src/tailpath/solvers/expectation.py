"""The risk-neutral optimum: V*(s) = min of the expected total cost over policies that arrive
with probability 1; and the same for a model with intervals, against or with nature.

The model is first cut to its *core* (`analysis/core.py`), in which V* is the only solution of V =
min (r + P V); `dp/optimum.py` finds it, once for each model, and `certify/values.py` its bounds.
With intervals it is a game (`analysis/robust.py`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tailpath.analysis.core import core_of
from tailpath.analysis.reachability import NATURES, nature_called, surely_zero_cost_states
from tailpath.analysis.robust import robust
from tailpath.certify.values import Bounds, least_total, warn_if_unproved
from tailpath.errors import GoalUnreachableError, ModelError, OptionError
from tailpath.graph import FloatArray
from tailpath.model.border import Border, prepare
from tailpath.model.endings import ended_by_chance
from tailpath.model.interval import IntervalSSP, underlying_ssp
from tailpath.model.records import Record, data_frame, found_once
from tailpath.model.ssp import SSP, Name
from tailpath.options import check_alpha, takes_model
from tailpath.pictures.notebook import card
from tailpath.policies.kinds import MarkovPolicy
from tailpath.texts import Table
from tailpath.verify.distribution import Proof
from tailpath.verify.intervals import check_robust_expected
from tailpath.verify.optimum import check_expected


class ByState(Record):
    """A number for every state of a model: lower[s] <= value[s] <= upper[s]."""

    ssp: Any
    value: FloatArray
    lower: FloatArray
    upper: FloatArray

    def __post_init__(self) -> None:
        self._freeze()

    @property
    def _ssp(self) -> SSP:
        return underlying_ssp(self.ssp)

    @property
    def bounds(self) -> tuple[float, float]:
        """Verified lower and upper bound on the value of the start."""
        start = self._ssp.start_index
        return float(self.lower[start]), float(self.upper[start])

    def _from(self, state: Name | None) -> float:
        ssp = self._ssp
        return float(self.value[ssp.start_index if state is None else ssp.state_index(state)])


Pair = tuple[float, float]


@dataclass(frozen=True, eq=False, repr=False)
class ExpectedSolution(ByState):
    """The least expected cost from every state, with verified bounds.

    Attributes
    ----------
    ssp : SSP or IntervalSSP
        The model.
    value : array of float64, shape (n_states,)
        V*(s): 0 at goals, infinite where no policy arrives with probability 1.
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
    nature : str
        On a model with intervals, whether nature is the "adversarial" or the "cooperative" one.

    Examples
    --------
    >>> best = tp.solve_expected(ssp)
    >>> best.value, best.choices.tolist()
    (array([24.,  0.]), [0, -1])
    >>> tp.solve_expected(tp.IntervalSSP.around(ssp, 0.5)).value.round(6)
    array([26.,  0.])
    """

    ssp: Any
    value: FloatArray
    lower: FloatArray
    upper: FloatArray
    choices: NDArray[np.int32]
    method: str
    iterations: int
    gamma: float = 1.0
    nature: str = ""

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
            0 at goals, infinite where no policy arrives with probability 1.

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

        Examples
        --------
        >>> tp.solve_expected(ssp).to_pandas().head(1)
          state  value  lower  upper action
        0  home   24.0   24.0   24.0   road
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

        Examples
        --------
        >>> print(tp.solve_expected(ssp).verify())
        the least expected cost lies in [...], and likewise from all 2 states
        """
        return check_robust_expected(self) if self.nature else check_expected(self)

    def words(self) -> str:
        """Both sides in one sentence: with the best nature and against the worst.

        Only a model with intervals has them.

        Returns
        -------
        str
            The sentence about the start.

        Raises
        ------
        OptionError
            If the model has no intervals.

        Examples
        --------
        >>> tp.solve_expected(tp.IntervalSSP.around(ssp, 0.5)).words()
        'if all intervals hold the least mean lies in [22, 26], and this policy costs at most 26'
        """
        if not self.nature:
            raise OptionError("only a model with intervals has two natures to compare")
        return both_sides(
            self.ssp,
            "mean",
            self.nature,
            self.bounds,
            lambda: _against(self.ssp, other_nature(self.nature)).bounds,
        )

    def restored(self, border: Border) -> ExpectedSolution:
        """The answer for the model as given, from that for the model that was solved.

        Parameters
        ----------
        border : Border
            The way back.

        Returns
        -------
        ExpectedSolution
            With every value moved.
        """
        moved = Bounds(self.value, self.lower, self.upper).shifted(border.potential)
        columns = {"value": moved.value, "lower": moved.lower, "upper": moved.upper}
        return replace(self, ssp=border.given, **columns)

    def _repr_html_(self) -> str:
        lower, upper = self.bounds
        facts = [
            ("expected cost", self.cost()),
            ("proved to lie in", f"{lower:.12g} to {upper:.12g}"),
            ("from", self.ssp.start),
        ]
        on_map = self._ssp.geometry is not None
        draw = (lambda: self.policy.plot(self._ssp)) if on_map else None
        return card("Least expected cost", [Table((), facts)], draw)

    def __repr__(self) -> str:
        nature = f", {self.nature} nature" if self.nature else ""
        start = f"{self.ssp.start!r}{nature}"
        return f"<ExpectedSolution {self.cost():.6g} from {start}, by {self.method}>"


@takes_model
def solve_expected(
    ssp: Any, *, gamma: float = 1.0, nature: str = "adversarial"
) -> ExpectedSolution:
    """Find the policy of least expected cost (the paper's V*), its values, and verified bounds.

    The result is stored with the model, and found once.

    Parameters
    ----------
    ssp : SSP or IntervalSSP
        The model.
    gamma : float in (0, 1]
        The discount: the costs of step t count gamma^t times. That is the expected cost where every
        step is the last one with probability 1 - gamma, and is solved as such; no goal need be
        reached then, and every value is finite.
    nature : {"adversarial", "cooperative"}
        For a model with intervals: whether nature picks the probabilities against us or for us.

    Returns
    -------
    ExpectedSolution
        `cost()`, `bounds` and `policy`. States from which no policy reaches a goal with
        probability 1, but which can be avoided, have an infinite value.

    Raises
    ------
    GoalUnreachableError
        If the start cannot reach a goal with probability 1 and `gamma` is 1.
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
    border = prepare(ssp)
    nature_called(nature)
    if border.uncertain and gamma != 1:
        raise OptionError("models with intervals are solved without a discount")
    if border.uncertain:
        return _against(border.given, nature)
    if check_alpha(gamma, "gamma") < 1:
        return _discounted(border.given, float(gamma))
    return _solve(border.given)


@found_once
def _solve(ssp: SSP) -> ExpectedSolution:
    border = prepare(ssp)
    found: ExpectedSolution = border.restore(_least(border.model))
    return found


@found_once
def _least(ssp: SSP) -> ExpectedSolution:
    """`solve_expected` where costs are 0 or more."""
    core = core_of(ssp)
    rows = core.transitions
    zero = None if rows.rate.all() else core.to_nodes(surely_zero_cost_states(ssp))
    found = least_total(rows, rows.rate, ssp.probability_error, zero)
    _refuse_infinite(found.bounds)
    warn_if_unproved(found.bounds)
    bounds = found.bounds.positive().map(core.to_states)
    columns = bounds.value, bounds.lower, bounds.upper, core.model_choices(found.chosen)
    return ExpectedSolution(ssp, *columns, bounds.method, found.iterations)


@found_once
def _discounted(ssp: SSP, gamma: float) -> ExpectedSolution:
    found = solve_expected(ended_by_chance(ssp, gamma))
    cut = {
        name: getattr(found, name)[: ssp.n_states]
        for name in ("value", "lower", "upper", "choices")
    }
    return replace(found, ssp=ssp, gamma=gamma, **cut)


# ---------------------------------------------------------------------- with intervals


def other_nature(nature: str) -> str:
    return next(name for name in NATURES if name != nature)


def both_sides(
    model: IntervalSSP,
    what: str,
    nature: str,
    bounds: Pair,
    others: Callable[[], Pair],
    verb: str = "costs",
) -> str:
    """The sentence about the least of something, from its bounds under both natures."""
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


def _against(model: IntervalSSP, nature: str) -> ExpectedSolution:
    problem = robust(model, nature_called(nature))
    found = problem.optimum
    _refuse_infinite(found.bounds)
    bounds = found.bounds.map(problem.to_states)
    columns = bounds.value, bounds.lower, bounds.upper, problem.risk_neutral
    return ExpectedSolution(model, *columns, bounds.method, found.iterations, nature=nature)


def _refuse_infinite(bounds: Bounds) -> None:
    if not np.isfinite(bounds.value).all():
        raise ModelError(
            "the expected costs are too large to compute with; choose another unit of cost"
        )
