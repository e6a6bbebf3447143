"""Requests, search results, and `Engine`, which turns them into a CostDistribution or, if a search
stopped too early, into an error with bounds.

An `Engine` searches, and gives what the open nodes still have to pay. It does so on the numbers of
the model (`side` 0) and, when somebody asks for bounds, on probabilities and expected costs that
are too small (-1) or too large (+1), up to where the first search stopped (`certify/searches.py`).
"""

from __future__ import annotations

import math
import signal
import threading
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from tailpath.certify.searches import early_bounds, enclosure
from tailpath.certify.totals import Enclosure
from tailpath.certify.values import Bounds
from tailpath.dp.expected import variances
from tailpath.dp.totals import Totals
from tailpath.errors import EvaluationInterrupted, LimitExceededError
from tailpath.evaluation.distribution import CostDistribution
from tailpath.graph import Array, FloatArray, IntArray, Transitions
from tailpath.model.border import Border
from tailpath.model.ssp import SSP
from tailpath.options import Progress
from tailpath.policies.chain import CostChain, zero_cost_cycles
from tailpath.policies.policy import Policy

#: What grows with the search may take this much memory.
MAX_BYTES = 4 * 2**30
#: Expanded pairs before an evaluation gives up: some minutes of either engine. With a discount the
#: number of costs often doubles with every step, and half a minute tells as much as ten.
MAX_NODES = {"lattice": 20_000_000_000, "queue": 20_000_000, "discount": 1_000_000}


class SearchMonitor:
    """The user's progress function, and Ctrl-C: `with monitor:` around a search; `stop` ends it.

    While a long search runs, a first Ctrl-C is only noted, and the search stops at the next point
    where its numbers are sound; what it knows then still gives bounds. A second one interrupts at
    once, and so does the first where nobody asks what is known then (`holds`).
    """

    def __init__(self, progress: Progress | None = None, *, holds: bool = True) -> None:
        self._progress, self._holds = progress, holds
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
        if self._holds and plain and threading.current_thread() is threading.main_thread():
            self._previous_handler = signal.signal(signal.SIGINT, self._on_sigint)
        return self

    def __exit__(self, *_: Any) -> None:
        if self._previous_handler is not None:
            signal.signal(signal.SIGINT, self._previous_handler)
            self._previous_handler = None


NOT_HELD = SearchMonitor(holds=False)


@dataclass(frozen=True, eq=False)
class Request:
    """One evaluation: of a policy on the model behind a border, by an engine, down to a tail mass.

    `limit` is the most expanded pairs, and `reason` why nothing faster is done.

    The rest decides time and memory, and never a number: a policy with more than `pairs` pairs of
    state and memory is followed lazily; a search looks at the user every `pause` expansions, by
    default as its engine likes; the ring of the lattice has at most so many cells.
    """

    border: Border
    policy: Policy
    engine: str
    alpha: float
    heuristic: str = "min"
    gamma: float = 1.0
    limit: int = MAX_NODES["lattice"]
    monitor: SearchMonitor = field(default_factory=SearchMonitor)
    max_bytes: int = MAX_BYTES
    reason: str = ""
    pairs: int = 200_000
    pause: int = 0
    ring_cells: int = 1 << 22

    @property
    def ssp(self) -> SSP:
        """The model that is searched, whose costs are 0 or more."""
        return self.border.model

    @property
    def again(self) -> Request:
        """The request for a search that is repeated for bounds: no limits, no progress, and
        Ctrl-C as ever."""
        return replace(self, alpha=2.0, limit=2**62, max_bytes=2**62, monitor=NOT_HELD)

    @property
    def out_of_memory(self) -> str:
        return f"memory limit of {self.max_bytes / 2**30:.3g} GiB"

    @property
    def out_of_nodes(self) -> str:
        why = "; discounted costs may double in number with every step" if self.gamma < 1 else ""
        return f"limit of {self.limit} nodes (max_nodes{why})"


NO_COSTS = np.empty(0)
#: What a search has of masses.
MASSES = "masses", "mass", "dead_mass", "dropped", "alone"


class Search(NamedTuple):
    """The result of a search: the head, and what is open.

    `costs` and `masses` (H,) are the head. `node`, `overshoot`, `mass` and, with a discount,
    `stage` are by open entry: the node, the cost paid less `last`, the probability. Every open run
    ends at a cost of `last` or more, but for a mass of `alone`, which was not followed. `last` is
    the last cost of the head, or lies beyond it if the search was `stopped` early, for the reason
    given. `dead_mass` never arrives, and `dropped` was too small to follow. Costs are off by
    `roundings` units of roundoff, and no run took more than `steps` steps. `until` is where the
    search ended, for another one to end there. `trapped` is a node in which a policy that has spent
    its budget never arrives, or -1.
    """

    costs: FloatArray = NO_COSTS
    masses: FloatArray = NO_COSTS
    last: float = 0.0
    node: Array = np.empty(0, np.int64)
    overshoot: FloatArray = NO_COSTS
    mass: FloatArray = NO_COSTS
    dead_mass: float = 1.0
    dropped: float = 0.0
    alone: float = 0.0
    expanded: int = 0
    roundings: int = 0
    steps: int = 0
    until: Any = None
    stopped: str = ""
    stage: Array = np.empty(0, np.int64)
    trapped: int = -1

    def times(self, factor: float) -> Search:
        """The same with other masses."""
        masses = {name: getattr(self, name) * factor for name in MASSES}
        return self._replace(**masses)


#: Of a search that begins where the goal is out of reach.
NOTHING_FOUND = Search()


class Engine:
    """A way to evaluate a policy; most search the chain that it unrolls to."""

    request: Request
    chain: CostChain
    #: Whether mean and probability of never arriving are sums over what the search found.
    sums = False

    def search(self, side: int, until: Any = None, head: FloatArray = NO_COSTS) -> Search:
        """Search to the end or, if `until` is given, as far as an earlier search, whose head has
        these costs.
        """
        raise NotImplementedError

    def cycles(self, rows: Transitions) -> tuple[Transitions, IntArray] | None:
        """Where free cycles were solved beforehand: the chain, and the component of its nodes."""
        return None if rows is self.chain else (self.chain, zero_cost_cycles(self.chain)[1])

    def rows(self, side: int) -> Transitions:
        """What is searched, with probabilities too small (-1) or too large (+1)."""
        raise NotImplementedError

    def largest_factor(self) -> float:
        """The most that any row is scaled by."""
        plain, high = self.rows(0).probability, self.rows(1).probability
        return float(np.max(high / plain, initial=1.0))

    def cost_to_go(self, found: Search, side: int) -> FloatArray:
        """The expected cost to go of each open node."""
        return one_side(self.chain.expected_cost, side)[found.node]

    def dearest(self, found: Search, side: int) -> float:
        """The largest expected cost to go of any node."""
        to_go = one_side(self.chain.expected_cost, side)[:-1][self.chain.proper]
        return float(np.max(to_go, initial=0.0))

    def mean(self, side: int) -> float:
        """The expected cost, unless it is a sum over what was found (`sums`)."""
        return float(one_side(self.chain.expected_cost, side)[self.chain.start])

    def missed(self, found: Search, side: int) -> float:
        """The probability of never arriving."""
        return float(one_side(self.chain.unreached, side)[self.chain.start])

    def variance(self, found: Search, mean: float) -> float:
        """The variance of the total cost, where everything arrives."""
        by_node = variances(self.chain, self.chain.expected_cost)
        return float(np.append(by_node, 0.0)[self.chain.start])

    def stuck(self, found: Search) -> str:
        """A state from which the goal is out of reach."""
        return self.chain.label(int(np.flatnonzero(~self.chain.arrives)[0]))

    def totals(self, found: Search, side: int) -> Totals:
        """What was found, with the open nodes completed by their cost to go."""
        missed = self.missed(found, side)
        excess = math.inf
        if missed == 0:
            with np.errstate(over="ignore"):  # infinite beyond the floats
                beyond = np.maximum(found.overshoot + self.cost_to_go(found, side), 0.0)
            # Masses that vanished are charged with what is dearest, which may be infinite.
            open_ = found.mass > 0
            excess = float(np.sum(found.mass[open_] * beyond[open_]))
        rest = float(np.sum(found.mass)), found.dead_mass, excess
        totals = Totals(found.costs, found.masses, found.last, *rest, math.inf, missed)
        if missed > 0:
            return totals
        return replace(totals, mean=totals.sum_of_means if self.sums else self.mean(side))

    def early_bounds(self, found: Search) -> Enclosure:
        """What is proved by a search that stopped early."""
        return early_bounds(self, found)

    def evaluated(self) -> CostDistribution:
        """The distribution of the total cost."""
        request, found = self.request, self.search(0)
        if found.stopped or request.monitor.stop:
            raise self._stopped_early(found)
        totals = self.totals(found, 0)
        return CostDistribution._from_totals(
            totals,
            request.border,
            alpha=request.alpha,
            expanded=found.expanded,
            engine=request.engine,
            reason=request.reason,
            stuck=self.stuck(found) if totals.missed > 0 else "",
            gamma=request.gamma,
            policy=request.policy,
            proof=partial(enclosure, self, found.costs, found.last, found.until),
        )

    def _stopped_early(self, found: Search) -> EvaluationInterrupted | LimitExceededError:
        request = self.request
        low, high = request.border.bounds(self.early_bounds(found).cvar(request.alpha))
        known = (
            f"with {float(np.sum(found.masses)):.6g} of the probability arrived; CVaR at alpha"
            f" {request.alpha:g} lies in [{low:.9g}, {high:.9g}]"
        )
        if request.monitor.stop:
            return EvaluationInterrupted(f"interrupted {known}", (low, high))
        return LimitExceededError(f"the {found.stopped} is reached {known}", (low, high))


def one_side(bounds: Bounds, side: int) -> FloatArray:
    """The value of every node, or a bound on it, and 0 at the goal: (n + 1,)."""
    return np.append((bounds.value, bounds.upper, bounds.lower)[side], 0.0)
