"""What an engine is asked for, what it hands over when it stops, and what becomes of that: a
CostDistribution or, if it stopped too early, an error with bounds.
"""

from __future__ import annotations

import signal
import sys
import threading
from dataclasses import dataclass, field
from enum import Enum
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from tailpath.dp.bounds import Bounds
from tailpath.dp.forward import open_sums
from tailpath.errors import EvaluationInterrupted, LimitExceededError
from tailpath.evaluation.distribution import CostDistribution
from tailpath.graph import Array, FloatArray
from tailpath.kernels.jit import frozen
from tailpath.kernels.rounding import ROUNDOFF
from tailpath.model.potential import shifted_bounds
from tailpath.model.ssp import SSP
from tailpath.options import Progress
from tailpath.policies.policy import Policy

#: The name of a built-in heuristic, or one value per state.
Heuristic = str | FloatArray
#: What grows with the search may take this much memory.
MAX_BYTES = 4 * 2**30
#: Expanded pairs before an evaluation gives up: some minutes of either engine.
MAX_NODES = {"lattice": 20_000_000_000, "queue": 20_000_000}


class StopReason(Enum):
    FINISHED = "finished"
    NODES = "the limit on nodes is reached"
    MEMORY = "the memory limit is reached"
    STOPPED = "the user stopped it"


class Tuning(NamedTuple):
    """What decides time and memory, and never a number.

    A policy with more than `pairs` pairs of state and memory is followed lazily. An engine looks at
    the user every so many expansions. The ring of the forward search has at most so many cells;
    what jumps over it waits in lists.
    """

    pairs: int = 200_000
    lattice_pause: int = 5_000_000
    queue_pause: int = 20_000
    ring_cells: int = 1 << 22


class SearchMonitor:
    """The user's progress function, and Ctrl-C: `with monitor:` around a search; `stop` ends it.

    While a long search runs, a first Ctrl-C is only noted, and the search stops at the next point
    where its numbers are sound; what it knows then still gives bounds. A second one interrupts at
    once.
    """

    def __init__(self, progress: Progress | None = None) -> None:
        self._progress = progress
        self._previous_handler: Any = None
        self.stop = False

    def report(self, expanded: int, arrived: float) -> None:
        """Call `progress` with how far the search has come; KeyboardInterrupt from it stops it."""
        if self._progress is not None:
            try:
                self._progress(expanded, arrived)
            except KeyboardInterrupt:
                self.stop = True

    def _on_sigint(self, *_: Any) -> None:
        if self.stop:
            raise KeyboardInterrupt
        self.stop = True

    def __enter__(self) -> SearchMonitor:
        # Elsewhere than in the main thread, or under a handler of the user's own, Ctrl-C is not
        # ours.
        plain = signal.getsignal(signal.SIGINT) is signal.default_int_handler
        if plain and threading.current_thread() is threading.main_thread():
            self._previous_handler = signal.signal(signal.SIGINT, self._on_sigint)
        return self

    def __exit__(self, *_: Any) -> None:
        if self._previous_handler is not None:
            signal.signal(signal.SIGINT, self._previous_handler)
            self._previous_handler = None


@dataclass(frozen=True, eq=False)
class Request:
    """One evaluation: of a policy on a model, by an engine, down to a tail mass.

    `limit` is the most expanded pairs, `deviation` whether the standard deviation is found at once,
    `reason` why nothing faster is done, and `shift` what every cost is more than in the model.
    """

    ssp: SSP
    policy: Policy
    engine: str
    alpha: float
    heuristic: Heuristic = "min"
    gamma: float = 1.0
    limit: int = MAX_NODES["lattice"]
    monitor: SearchMonitor = field(default_factory=SearchMonitor)
    max_bytes: int = MAX_BYTES
    tuning: Tuning = field(default_factory=Tuning)
    deviation: bool = False
    reason: str = ""
    shift: Fraction = Fraction(0)


#: Engines count probabilities in units of 2^-SCALE, so that products of tiny ones do not vanish.
SCALE = 1000
#: In these units: what would not be a number with all its digits in others.
SMALL = 2.0 ** (SCALE - 1020)


def truncation_threshold(alpha: float, least_probability: float) -> float:
    """A probability that no engine follows further, in units of 2^-SCALE: far below anything that
    could move a result. The least probability of a transition times it still is a number.
    """
    return max(min(1e-280, alpha * 1e-60) * 2.0**SCALE, 1e-300 / least_probability)


def cost_error(last: int, unit: Fraction) -> float:
    """The relative error of numbers of units as floats: none where every one of them is a float."""
    return 0.0 if unit.denominator == 1 and last * unit.numerator <= 2**53 else 2 * ROUNDOFF


class OpenMass(NamedTuple):
    """What has not arrived: nodes, what was paid beyond the head (negative before its end), and
    masses.
    """

    node: Array
    overshoot: FloatArray
    mass: FloatArray

    def selected(self, mask: Any) -> OpenMass:
        return OpenMass(self.node[mask], self.overshoot[mask], self.mass[mask])

    def joined(self, other: OpenMass) -> OpenMass:
        return (
            OpenMass(*(np.append(a, b) for a, b in zip(self, other))) if other.mass.size else self
        )


NOTHING_OPEN = OpenMass(np.empty(0, dtype=np.int64), np.empty(0), np.empty(0))


@dataclass(frozen=True, eq=False)
class SearchResult:
    """A stopped search: the head, and what has not arrived.

    All `open` nodes are certain to cost more than the last cost of the head. `truncated` was too
    small to be followed; its masses count in units of 2^-SCALE, and `overshoot` is the most that
    was paid on the way. `dead_end_mass` can no longer arrive. `overshoot_error` is what any
    `overshoot` is off by at most, beyond two roundings of its own.
    """

    costs: FloatArray
    probabilities: FloatArray
    open: OpenMass
    truncated: OpenMass
    dead_end_mass: float
    relative_error: float
    cost_error: float
    overshoot_error: float
    expanded: int

    @property
    def last(self) -> float:
        return float(self.costs[-1]) if self.costs.size else 0.0

    def mean(self, cost_to_go: FloatArray) -> float:
        """The mean cost, if what is open has so much to pay; by node."""
        node, overshoot, mass = self.open
        total = self.last + overshoot + cost_to_go[node]
        return float(np.sum(self.probabilities * self.costs) + np.sum(mass * total))


def unscaled(open_nodes: OpenMass, truncated: OpenMass) -> tuple[OpenMass, OpenMass]:
    """What is open, not in units of 2^-SCALE; what would lose digits so is truncated, too."""
    if open_nodes.mass.min(initial=np.inf) < SMALL:
        small = open_nodes.mass < SMALL
        truncated = truncated.joined(open_nodes.selected(small))
        open_nodes = open_nodes.selected(~small)
    return open_nodes._replace(mass=open_nodes.mass * 2.0**-SCALE), truncated


def nothing_found() -> SearchResult:
    """The start itself is out of reach of the goal."""
    nothing = np.empty(0)
    return SearchResult(nothing, nothing, NOTHING_OPEN, NOTHING_OPEN, 1.0, 0.0, 0.0, 0.0, 0)


def truncation_bound(truncated: OpenMass, upper: FloatArray | float) -> float:
    """The sum of mass times `upper` of what was truncated, rounded up; that is never negative."""
    if truncated.mass.size == 0:
        return 0.0
    # It may be as large, and masses as small, as doubles are: bring both to the middle.
    scaled = float(np.sum(truncated.mass * np.ldexp(upper, -80))) * (1 + 1e-12)
    return float(np.ldexp(scaled, 80 - SCALE)) + len(truncated.mass) * 1e-320


class Moments(NamedTuple):
    """What is known of the whole: the mean as (value, low, high), the standard deviation if it was
    asked for, the probability of never arriving with proved bounds, and a state where that happens.
    """

    mean: tuple[float, float, float]
    deviation: float | None
    unreached: float = 0.0
    unreached_bounds: tuple[float, float] = (0.0, 0.0)
    stuck: str = ""


def summarise(
    request: Request,
    found: SearchResult,
    cost_to_go: Bounds,
    moments: Moments,
    stop_reason: StopReason,
) -> CostDistribution:
    """Complete the open nodes by V_mean, the `cost_to_go` of all but the goal. Of a search that did
    not come to its end, an error carries what is certain so far.
    """
    arrays = frozen(*found.open, cost_to_go.value, cost_to_go.lower, cost_to_go.upper)
    mass, value, low, high, parts = open_sums(*arrays)
    # The sums, one product per term, and the masses themselves.
    error_bound = 24 * ROUNDOFF + found.relative_error
    # overshoot + V may cancel: charge the rounding of its parts. Products of the smallest masses
    # may fall below what floats hold with all digits.
    parts = parts * 4 * ROUNDOFF + mass * found.overshoot_error + len(found.open.mass) * 2e-323
    if moments.unreached == 0:
        low = min(low, sys.float_info.max)  # a sum beyond the floats is finite all the same
    more = dropped = 0.0
    if found.truncated.mass.size:
        # Nothing is known of what was truncated but that it costs no more than this.
        upper = np.append(cost_to_go.upper, 0.0)[found.truncated.node]
        paid = np.maximum(found.truncated.overshoot, 0.0) + found.overshoot_error
        more = truncation_bound(found.truncated, paid + upper)
        dropped = truncation_bound(found.truncated, 1.0)
    result = CostDistribution(
        costs=found.costs,
        probabilities=found.probabilities,
        tail_mass=mass + found.dead_end_mass + dropped,
        open_mass=mass,
        tail_excess=value + more if moments.unreached == 0 else float("inf"),
        tail_excess_bounds=(
            max(low * (1 - error_bound) - parts, 0.0),
            high * (1 + error_bound) + parts * (1 + error_bound) + more,
        ),
        alpha=request.alpha,
        mean=moments.mean[0],
        mean_bounds=moments.mean[1:],
        deviation=moments.deviation,
        unreached=moments.unreached,
        relative_error=found.relative_error,
        cost_error=found.cost_error,
        dropped=dropped,
        expanded=found.expanded,
        engine=request.engine,
        reason=request.reason,
        stuck=moments.stuck,
        gamma=request.gamma,
        ssp=request.ssp,
        policy=request.policy,
        unreached_bounds=moments.unreached_bounds,
    )
    if stop_reason is StopReason.FINISHED and not request.monitor.stop:
        return result
    raise _stopped_early(result, stop_reason, request)


def _stopped_early(
    result: CostDistribution, stop_reason: StopReason, request: Request
) -> EvaluationInterrupted | LimitExceededError:
    low, high = shifted_bounds(partial_bounds(result, request.alpha), request.shift)
    known = (
        f"with {1 - result.tail_mass:.6g} of the probability arrived; CVaR at alpha"
        f" {request.alpha:g} lies in [{low:.9g}, {high:.9g}]"
    )
    if request.monitor.stop:
        return EvaluationInterrupted(f"interrupted {known}", (low, high))
    what = (
        f"limit of {request.limit} nodes"
        if stop_reason is StopReason.NODES
        else f"memory limit of {request.max_bytes / 2**30:.3g} GiB"
    )
    return LimitExceededError(f"the {what} is reached {known}", (low, high))


def partial_bounds(partial: CostDistribution, alpha: float) -> tuple[float, float]:
    """Sound bounds on CVaR from a search stopped early, at a cost X: while P(Z > X) > alpha, it is
    at least the mean of the whole tail beyond X, and at most X + E[(Z - X)+] / alpha.
    """
    if partial.unreached > 0:
        return float("inf"), float("inf")
    if partial.costs.size and partial.tail_mass <= alpha:
        return partial.bounds(alpha)
    last = float(partial.costs[-1]) if partial.costs.size else 0.0
    low, high = partial.tail_excess_bounds
    error_bound = 1 + partial.relative_error + partial.cost_error + 1e-14
    return (
        max((last + low / (partial.tail_mass * error_bound)) / error_bound, partial.mean_bounds[0]),
        (last + high / alpha) * error_bound,
    )
