"""What every engine hands over when it stops, and how it becomes a CostDistribution or, if it stopped too early, an error with bounds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tailpath.analysis.absorption import Bracket
from tailpath.errors import BudgetExceededError, EvaluationInterrupted
from tailpath.evaluation.distribution import CostDistribution, FloatArray
from tailpath.evaluation.request import Request


def negligible(alpha: float) -> float:
    """A probability that no engine follows further: at the edge of underflow, and far below anything that could move a result."""
    return min(1e-280, alpha * 1e-60)


@dataclass(frozen=True, eq=False)
class SearchResult:
    """A stopped search: the head, and every open node with the cost so far and its probability.

    All open nodes are certain to cost more than the last cost of the head. `lost` has entered states from which the goal is out of reach.
    """

    costs: FloatArray
    probabilities: FloatArray
    open_cost: FloatArray
    open_mass: FloatArray
    open_node: NDArray[Any]
    lost: float
    relative_error: float
    expanded: int


def nothing_found() -> SearchResult:
    """The start itself is out of reach of the goal."""
    nothing = np.empty(0)
    return SearchResult(nothing, nothing, nothing, nothing, np.empty(0, dtype=np.int64), 1.0, 0.0, 0)


def with_goal(bracket: Bracket) -> Bracket:
    """Per-node values with one entry more for the goal, where nothing is left to pay."""
    return Bracket(np.append(bracket.value, 0.0), np.append(bracket.lower, 0.0), np.append(bracket.upper, 0.0), bracket.method)


def summarise(
    found: SearchResult,
    rest: Bracket,
    *,
    alpha: float,
    mean: tuple[float, float, float],
    std: float,
    unreached: float,
    engine: str,
    stuck: str = "",
) -> CostDistribution:
    """Complete the open nodes by V_mean: E[(Z - X)+] is a sum of non-negative terms over the frontier."""
    last = float(found.costs[-1]) if found.costs.size else 0.0
    node, mass, ahead = found.open_node, found.open_mass, found.open_cost - last
    excess = [float(np.sum(mass * np.maximum(ahead + v[node], 0.0))) for v in (rest.value, rest.lower, rest.upper)]
    # Pairwise summation and one product per term; the relative error of the masses themselves is in `relative_error`.
    rounding = (np.log2(len(mass) + 2) + 6) * 2.0**-52
    # ahead + V may cancel: charge the rounding of its parts.
    parts = float(np.sum(mass * (np.abs(ahead) + np.where(np.isfinite(rest.upper[node]), rest.upper[node], 0.0)))) * 2.0**-51
    low = max(excess[1] * (1 - rounding) - parts, 0.0)
    return CostDistribution(
        costs=found.costs,
        probabilities=found.probabilities,
        tail_mass=float(np.sum(mass)) + found.lost,
        tail_excess=excess[0] if unreached == 0 else float("inf"),
        tail_excess_bounds=(low, excess[2] * (1 + rounding) + parts),
        alpha=alpha,
        mean=mean[0],
        mean_bounds=(mean[1], mean[2]),
        std=std,
        unreached=unreached,
        relative_error=found.relative_error,
        expanded=found.expanded,
        engine=engine,
        stuck=stuck,
    )


def completed(result: CostDistribution, finished: bool, request: Request) -> CostDistribution:
    """The result of a search that came to its end; otherwise an error that carries what is certain so far."""
    stopped = request.watch.stop
    if finished and not stopped:
        return result
    low, high = partial_bounds(result, request.alpha)
    known = f"with {1 - result.tail_mass:.6g} of the probability arrived; CVaR at alpha {request.alpha:g} lies in [{low:.9g}, {high:.9g}]"
    if stopped:
        raise EvaluationInterrupted(f"interrupted {known}", (low, high))
    raise BudgetExceededError(f"the node budget of {request.limit} is used up {known}", (low, high))


def partial_bounds(partial: CostDistribution, alpha: float) -> tuple[float, float]:
    """Sound bounds on CVaR from a search stopped early, at a cost X with P(Z > X) > alpha.

    CVaR_alpha is at least the mean of the whole tail beyond X, and at most X + E[(Z - X)+] / alpha.
    """
    last = float(partial.costs[-1]) if partial.costs.size else 0.0
    low, high = partial.tail_excess_bounds
    doubt = 1 + partial.relative_error + 1e-14
    if partial.unreached > 0:
        return float("inf"), float("inf")
    tail = max(partial.tail_mass, alpha)
    return (last + low / (tail * doubt * doubt)) / doubt, (last + high * doubt / alpha) * doubt
