"""The border: the change of a model before it is solved, and of the answer afterwards.

`prepare` takes what a verb is given and returns the model to compute with, whose costs are 0 or
more, and the way back. Below it signs, grids and discounts do not exist; without any of them the
two models are the same.

- *Signs.* For every run that arrives, the cost as given is Z = Z' + shift (`potential.py`). Answers
  are moved by the shift, and their bounds are also widened if the costs of Z' are only the nearest
  floats.
- *Grids.* With every cost rounded up and down to multiples of `delta`, Z_down <= Z <= Z_up for
  every run of any policy, and likewise for every measure that rises with the cost. Policies are
  made for costs rounded up; a limit that is kept with these is kept.
- *Discounts.* Steps become a part of the states (`within`).
- Intervals that are points become probabilities.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from tailpath.errors import LimitExceededError, ModelError, OptionError
from tailpath.graph import FloatArray
from tailpath.model.checks import LARGEST_COST
from tailpath.model.cost_units import (
    MAX_UNITS,
    as_fraction,
    exact_cost,
    exact_number,
    float_above,
    in_costs,
    in_levels,
    in_units,
)
from tailpath.model.endings import within
from tailpath.model.interval import IntervalSSP
from tailpath.model.potential import NEAREST
from tailpath.model.ssp import SSP
from tailpath.options import Progress, warn_caller

#: Cycles of steps whose cost was rounded to 0 are solved as they are up to this many states.
MOST_JOINED = 30


@dataclass(frozen=True, eq=False)
class Border:
    """The way between the model as given and the one that is solved; `delta` is the width of the
    grid for its costs, if there is one.
    """

    given: Any
    delta: Any = None

    def starting(self, start: Any) -> Border:
        """The same from another state, by name; None for the model's own."""
        if start is None:
            return self
        inside = self.given.inside if self.uncertain else self.given
        begun = replace(inside, start_index=inside.state_index(start))
        return Border(replace(self.given, inside=begun) if self.uncertain else begun, self.delta)

    @property
    def uncertain(self) -> bool:
        """Whether probabilities are intervals."""
        return isinstance(self.given, IntervalSSP)

    @property
    def moves(self) -> bool:
        """Whether the model that is solved has other costs."""
        return getattr(self.given, "signed", False)

    @property
    def model(self) -> SSP:
        """The model with costs of 0 or more; a cycle of negative cost is refused."""
        model: SSP = self.given.reduction.ssp if self.moves else self.given
        return model

    @property
    def solved(self) -> SSP:
        """The model that is solved: on the grid, with costs rounded up."""
        return self.model if self.delta is None else rounded(self.model, self.delta, up=True)

    @property
    def below(self) -> SSP | None:
        """The model whose answers are lower bounds, if costs are rounded and one is useful."""
        return None if self.delta is None else rounded_down(self.model, self.delta)

    @property
    def shift(self) -> Fraction:
        """What every run costs more in the model as given."""
        return Fraction(self.given.shift) if self.moves else Fraction(0)

    @property
    def exact(self) -> bool:
        """Whether the costs of the model that is solved are exact, not just the nearest floats."""
        return not self.moves or self.given.reduction.exact

    @property
    def cost_error(self) -> float:
        """The relative error of these costs."""
        return 0.0 if self.exact else NEAREST

    @property
    def potential(self) -> FloatArray:
        """What every run from each state costs more: an array of float64, shape (n_states,)."""
        values: FloatArray = self.given.reduction.values
        return values

    # ------------------------------------------------------------------ there

    def loss(self, loss: Any) -> Any:
        """A loss of costs as given, as a loss of the costs that are solved for."""
        return loss.moved(self.shift, self.model.cost_unit) if self.moves else loss

    def units(self, cost: float, unit: Any) -> Fraction:
        """A finite cost as given, in units of the costs that are solved for."""
        if self.moves:
            return (exact_cost(cost, self.given.cost_unit) - self.shift) / as_fraction(unit)
        return Fraction(in_units(cost, unit))

    def progress(self, told: Progress | None) -> Progress | None:
        """A progress callback that turns the best cost so far into one as given."""
        if told is None or not self.moves:
            return told
        return lambda done, best: told(done, self.cost(best))

    # ------------------------------------------------------------------ and back

    def cost(self, value: float) -> float:
        """A cost as given."""
        return shifted(value, self.shift)

    def costs(self, costs: FloatArray) -> FloatArray:
        """Possible total costs as given."""
        return shifted_costs(costs, self.model.cost_unit, self.shift) if self.moves else costs

    def bounds(self, bounds: tuple[float, float]) -> tuple[float, float]:
        """Bounds on a cost as given."""
        return shifted_bounds(bounds, self.shift, self.exact)

    def error(self, error: LimitExceededError) -> LimitExceededError:
        """The error of a limit that was reached, with bounds on the cost as given."""
        return LimitExceededError(str(error), self.bounds(error.bounds))

    def restore(self, answer: Any, below: Any = None) -> Any:
        """An answer for the model that was solved, as one for the model as given; `below` is the
        answer for costs rounded down, if there is one.
        """
        if not self.moves and self.delta is None:
            return answer
        floor = [] if below is None else [below.restored(Border(self.given))]
        return answer.restored(self, *floor)


def prepare(model: SSP | IntervalSSP | None, *, delta: Any = None, gamma: Any = 1) -> Border:
    """The border of a model; intervals that are all points become probabilities."""
    certain = isinstance(model, IntervalSSP) and model.is_certain
    given: Any = model.inside if certain else model  # type: ignore[union-attr]
    if gamma != 1 and not isinstance(given, IntervalSSP):  # verbs refuse those
        given = within(given, most_steps(given), gamma=gamma)
    return Border(given, delta)


def most_steps(ssp: SSP) -> int:
    """The most steps that a run can take; a discount needs a limit."""
    rows = ssp.by_state
    inside = rows.reachable(ssp.start_index)[rows.source] & ~ssp.is_goal[rows.target]
    order = rows.only(inside).acyclic_order()
    if order is None:
        raise OptionError(
            "discounted costs have no common unit if a run may take any number of steps; limit"
            " the steps, within(ssp, n, gamma=gamma) (--within N), or treat the discount as a"
            " probability of ending, as solve_expected(ssp, gamma=gamma) (--method expected) does"
        )
    return order[1] + 1


# ---------------------------------------------------------------------- costs that are moved


def less(cost: Any, by: Fraction, unit: Fraction | None) -> Fraction:
    """A cost as written, less `by`. If all costs are whole units, the float nearest to one of them
    stands for it.
    """
    if unit is None:
        return as_fraction(cost) - by
    fine = _common(unit, by)
    return in_units(cost, fine) * fine - by


def _common(unit: Fraction, by: Fraction) -> Fraction:
    """The largest number of which both are integer multiples."""
    common = math.gcd(unit.numerator * by.denominator, by.numerator * unit.denominator)
    return Fraction(common, unit.denominator * by.denominator)


def shifted(value: float, by: Fraction) -> float:
    """A cost plus `by`, to the nearest float."""
    if by == 0 or not math.isfinite(value):
        return value
    return float(Fraction(value) + by)


def shifted_bounds(
    bounds: tuple[float, float], by: Fraction, exact: bool = True
) -> tuple[float, float]:
    """Bounds plus `by`, rounded outwards, and further if costs are not `exact`."""
    if by == 0 and exact:
        return bounds
    off = 0.0 if exact else NEAREST
    low, high = bounds[0] * (1 - off), bounds[1] * (1 + off)
    return -_above(-low, -by), _above(high, by)


def _above(value: float, by: Fraction) -> float:
    """A cost plus `by`, rounded up."""
    return float_above(Fraction(value) + by) if math.isfinite(value) else value


def shifted_costs(costs: FloatArray, unit: Fraction | None, by: Fraction) -> FloatArray:
    """Costs, whole units if there is a unit, plus `by`, each to the nearest float."""
    if by == 0 or costs.size == 0:
        return costs
    if unit is None:
        return np.array([shifted(cost, by) for cost in costs.tolist()])
    fine = _common(unit, by)
    finite = np.isfinite(costs)
    level: Any = in_levels(np.where(finite, costs, 0.0), unit)
    scale, more = int(unit / fine), int(by / fine)
    if scale * max(int(level.max()), 1) + abs(more) >= 2**62:
        level = level.astype(object)
    return np.where(finite, in_costs(level * scale + more, fine), costs)


# ---------------------------------------------------------------------- costs on a grid


def require_unit(model: SSP | IntervalSSP) -> Fraction:
    unit, remedy = model.cost_unit, "round them to a grid first"
    if unit is None:
        if isinstance(model, SSP):
            width = f"{proposed_delta(model):g}"
            remedy = f"give the width of a grid with --delta D (delta=), such as {width}"
        raise ModelError(
            f"the costs have no common unit that is coarse enough to count in; {remedy}"
        )
    return unit


def proposed_delta(ssp: SSP) -> float:
    """About a thousandth of the largest cost, as a power of ten."""
    return float(10.0 ** (np.floor(np.log10(ssp.outcome_cost.max())) - 3))


def rounded(ssp: SSP, delta: Any, *, up: bool) -> SSP:
    """The model with every cost rounded to a multiple of `delta`, exactly."""
    step = _step(delta)
    exact = ssp.outcome_cost if ssp.cost_unit is None else ssp.outcome_level
    costs, position = np.unique(exact, return_inverse=True)
    unit = Fraction(1) if ssp.cost_unit is None else ssp.cost_unit
    level = [
        (math.ceil if up else math.floor)(as_fraction(cost) * unit / step)
        for cost in costs.tolist()
    ]
    if max(level, default=0) > MAX_UNITS:
        raise OptionError(
            f"delta = {delta} is too fine: the largest cost is {max(level):.6g} units, the limit is"
            f" {MAX_UNITS}"
        )
    return replace(
        ssp, outcome_cost=np.array(level, dtype=np.float64)[position] * float(step), exact_unit=step
    )


def rounded_down(ssp: SSP, delta: Any) -> SSP | None:
    """The same, rounded down; None if this makes long cycles of free steps.

    A grid that is wider than a step makes the step free. If such steps form a cycle, the optimum of
    this model says next to nothing, and states joined by them take long to solve: the least
    expected cost is a lower bound as well.
    """
    below = rounded(ssp, delta, up=False)
    # The number of states in the largest component joined by steps that rounding made free.
    zero_cost = (below.outcome_level == 0) & ~ssp.is_goal[ssp.outcome_target]
    component, size = ssp.by_state.only(zero_cost).components()
    inside = zero_cost & ssp.by_state.within(component) & (ssp.outcome_cost > 0)
    source = ssp.by_state.source[inside]
    joined = int(np.bincount(component, minlength=size)[component[source]].max(initial=0))
    if joined:
        least = float(ssp.outcome_cost[ssp.outcome_cost > 0].min())
        warn_caller(
            f"delta = {delta} is more than the least cost of a step, {least:g}: rounded up, steps"
            f" cost several times as much, and the bounds are wide; a delta of {least:g} or less"
            " gives closer bounds"
        )
    return below if joined <= MOST_JOINED else None


def _step(delta: Any) -> Fraction:
    step = exact_number(delta, "delta", signed=True)
    if step <= 0:
        raise OptionError(f"delta must be positive, not {delta!r}")
    if not 1 / LARGEST_COST <= step <= LARGEST_COST:
        raise OptionError(
            f"delta must lie between {1 / LARGEST_COST:g} and {LARGEST_COST:g}, not {delta}"
        )
    return step


def rounded_both_ways(ssp: SSP, delta: Any) -> tuple[SSP, SSP]:
    """The model with costs rounded up, and with costs rounded down."""
    return rounded(ssp, delta, up=True), rounded_down(ssp, delta) or rounded(ssp, delta, up=False)
