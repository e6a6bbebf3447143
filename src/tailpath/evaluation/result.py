"""What every engine hands over when it stops, and how it becomes a CostDistribution or, if it stopped too early, an error with bounds."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tailpath.analysis.absorption import Bracket
from tailpath.errors import BudgetExceededError, EvaluationInterrupted
from tailpath.evaluation.distribution import CostDistribution, FloatArray
from tailpath.evaluation.request import End, Request
from tailpath.kernels.jit import frozen
from tailpath.kernels.rounding import UNIT
from tailpath.kernels.tails import open_sums

#: Engines count probabilities in units of 2^-SCALE, so that products of tiny ones do not vanish.
SCALE = 1000
#: In these units: what would not be a number with all its digits in others.
SMALL = 2.0 ** (SCALE - 1020)


def negligible(alpha: float, least_probability: float) -> float:
    """A probability that no engine follows further, in units of 2^-SCALE: far below anything that could move a result.

    It is small, but the least probability of an arrow times it still is a number. What is not followed is set aside and charged.
    """
    return max(min(1e-280, alpha * 1e-60) * 2.0**SCALE, 1e-300 / least_probability)


class Left(NamedTuple):
    """What has not arrived: nodes, the cost so far, and the probability."""

    node: NDArray[Any]
    cost: FloatArray
    mass: FloatArray

    def part(self, some: Any) -> Left:
        return Left(self.node[some], self.cost[some], self.mass[some])

    def with_more(self, other: Left) -> Left:
        return Left(*(np.append(a, b) for a, b in zip(self, other))) if other.mass.size else self


@dataclass(frozen=True, eq=False)
class SearchResult:
    """A stopped search: the head, and what has not arrived.

    All `open` nodes are certain to cost more than the last cost of the head. `aside` is what was too small to be followed; its masses count in
    units of 2^-SCALE, and the cost is the most that was paid on the way. `lost` has entered states from which the goal is out of reach.
    `relative_error` bounds that of every other probability, `cost_error` that of every cost.
    """

    costs: FloatArray
    probabilities: FloatArray
    open: Left
    aside: Left
    lost: float
    relative_error: float
    cost_error: float
    expanded: int


def unscaled(found: SearchResult) -> SearchResult:
    """All probabilities but those aside as they are, not in units of 2^-SCALE; what would not be a number with all its digits goes aside, too."""
    small = found.open.mass < SMALL
    aside = found.aside.with_more(found.open.part(small))
    opened = found.open.part(~small)
    return replace(
        found,
        probabilities=found.probabilities * 2.0**-SCALE,
        open=Left(opened.node, opened.cost, opened.mass * 2.0**-SCALE),
        aside=aside,
        lost=found.lost * 2.0**-SCALE,
    )


def nothing_found() -> SearchResult:
    """The start itself is out of reach of the goal."""
    nothing = np.empty(0)
    none = Left(np.empty(0, dtype=np.int64), nothing, nothing)
    return SearchResult(nothing, nothing, none, none, 1.0, 0.0, 0.0, 0)


def charged(aside: Left, price: FloatArray | float) -> float:
    """The sum of mass times price of what was put aside, rounded up; prices are never negative."""
    if aside.mass.size == 0:
        return 0.0
    # Prices may be as large, and masses as small, as doubles are: bring both to the middle.
    scaled = float(np.sum(aside.mass * np.ldexp(price, -80))) * (1 + 1e-12)
    return float(np.ldexp(scaled, 80 - SCALE)) + len(aside.mass) * 1e-320


def with_goal(bracket: Bracket) -> Bracket:
    """Per-node values with one entry more for the goal, where nothing is left to pay."""
    return Bracket(np.append(bracket.value, 0.0), np.append(bracket.lower, 0.0), np.append(bracket.upper, 0.0), bracket.method)


def summarise(
    found: SearchResult,
    rest: Bracket,
    *,
    alpha: float,
    mean: tuple[float, float, float],
    deviation: float | None,
    unreached: float,
    engine: str,
    stuck: str = "",
) -> CostDistribution:
    """Complete the open nodes by V_mean, `rest` of all but the goal: E[(Z - X)+] is a sum of non-negative terms over the frontier."""
    last = float(found.costs[-1]) if found.costs.size else 0.0
    count = len(found.open.mass)
    mass, value, low, high, parts = open_sums(*frozen(*found.open), last, *frozen(rest.value, rest.lower, rest.upper))
    # The sums, and one product per term; the relative error of the masses themselves is in `relative_error`.
    rounding = 24 * UNIT
    # ahead + V may cancel: charge the rounding of its parts. Products of the smallest masses may fall below what floats hold with all digits.
    parts = parts * 4 * UNIT + count * 2e-323
    more = dropped = 0.0
    if found.aside.mass.size:
        # Nothing is known of what was put aside but that it costs no more than this.
        more = charged(found.aside, found.aside.cost + np.append(rest.upper, 0.0)[found.aside.node])
        dropped = charged(found.aside, 1.0)
    return CostDistribution(
        costs=found.costs,
        probabilities=found.probabilities,
        tail_mass=mass + found.lost + dropped,
        tail_excess=value + more if unreached == 0 else float("inf"),
        tail_excess_bounds=(max(low * (1 - rounding) - parts, 0.0), high * (1 + rounding) + parts + more),
        alpha=alpha,
        mean=mean[0],
        mean_bounds=(mean[1], mean[2]),
        deviation=deviation,
        unreached=unreached,
        relative_error=found.relative_error,
        cost_error=found.cost_error,
        dropped=dropped,
        expanded=found.expanded,
        engine=engine,
        stuck=stuck,
    )


def completed(result: CostDistribution, end: End, request: Request) -> CostDistribution:
    """The result of a search that came to its end; otherwise an error that carries what is certain so far."""
    if end is End.FINISHED and not request.watch.stop:
        return result
    low, high = partial_bounds(result, request.alpha)
    known = f"with {1 - result.tail_mass:.6g} of the probability arrived; CVaR at alpha {request.alpha:g} lies in [{low:.9g}, {high:.9g}]"
    if request.watch.stop:
        raise EvaluationInterrupted(f"interrupted {known}", (low, high))
    what = f"limit of {request.limit} nodes" if end is End.NODES else f"memory limit of {request.max_bytes / 2**30:.3g} GiB"
    raise BudgetExceededError(f"the {what} is reached {known}", (low, high))


def partial_bounds(partial: CostDistribution, alpha: float) -> tuple[float, float]:
    """Sound bounds on CVaR from a search stopped early, at a cost X.

    While P(Z > X) > alpha, CVaR_alpha is at least the mean of the whole tail beyond X, and at most X + E[(Z - X)+] / alpha. A search that goes
    on beyond VaR knows the head that CVaR needs.
    """
    if partial.unreached > 0:
        return float("inf"), float("inf")
    if partial.costs.size and partial.tail_mass <= alpha:
        return partial.bounds(alpha)
    last = float(partial.costs[-1]) if partial.costs.size else 0.0
    low, high = partial.tail_excess_bounds
    doubt = 1 + partial.relative_error + partial.cost_error + 1e-14
    return max((last + low / (partial.tail_mass * doubt * doubt)) / doubt, partial.mean_bounds[0]), (last + high * doubt / alpha) * doubt
