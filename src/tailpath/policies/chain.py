"""Model x policy = chain: the reachable pairs (state, memory) with costs on the arrows, and nothing else.

`unrolling.unroll` builds it. All goals are one node, number n. Evaluation, expected cost, the heuristic and simulation look at the chain and know
neither model nor policy.

    V_mean(x)  expected cost to go      `expected_cost`, with verified bounds; infinite where the goal may be missed
    V_min(x)   cheapest way to the goal `least_cost`, the admissible and consistent heuristic; infinite in traps
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tailpath.analysis.absorption import Bracket, expected_total
from tailpath.analysis.reachability import fewest_steps, strong_components
from tailpath.errors import ModelError, PolicyError
from tailpath.kernels.forward import cheapest_levels, cheapest_way
from tailpath.kernels.jit import frozen
from tailpath.model.ragged import grouped, offsets_of
from tailpath.model.records import Record
from tailpath.model.ssp import SSP, FloatArray

#: Costs in units up to which the cheapest way is found by lists, one for each cost.
LONGEST = 1 << 16


@dataclass(frozen=True, eq=False, repr=False)
class CostChain(Record):
    """A Markov chain with costs on its arrows. Nodes 0 .. n-1 are transient or traps; node n is the goal.

    `state[x]` is the model's state behind node x and `label(x)` names the pair for messages. With a `unit`, `level` holds every cost as a
    whole number of it; without, `level` is None. `start` is n if the start is a goal. `outcome` is the model's outcome behind each arrow; a chain
    whose arrows are walks of several outcomes has none.
    """

    row_start: NDArray[np.int64]
    target: NDArray[np.int32]
    probability: FloatArray
    cost: FloatArray
    level: NDArray[np.int64] | None
    unit: Fraction | None
    start: int
    state: NDArray[np.int32]
    memory: tuple[Any, ...] | NDArray[Any] | None
    ssp: SSP
    outcome: NDArray[np.int64] | None = None

    def __post_init__(self) -> None:
        rising = (
            self.n >= 0 and self.row_start[0] == 0 and self.row_start[-1] == len(self.target) and bool((np.diff(self.row_start) >= 0).all())
        )
        columns = (self.probability, self.cost, *(column for column in (self.level, self.outcome) if column is not None))
        if not rising or any(len(column) != len(self.target) for column in columns) or len(self.state) != self.n:
            raise ModelError("the arrays of a chain must agree: rows rise to the number of arrows, one state per node")
        if not 0 <= self.start <= self.n or (len(self.target) and not 0 <= self.target.min() <= self.target.max() <= self.n):
            raise ModelError(f"a chain of {self.n} nodes has its start and all targets in 0..{self.n}")
        self._freeze()

    def __getattr__(self, name: str) -> Any:
        """Where arrows are outcomes, as `unroll` knows, their costs are looked up when they are first asked for."""
        if name != "cost":
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        self._become({"cost": self.ssp.outcome_cost[self.outcome]})
        return vars(self)["cost"]

    def __repr__(self) -> str:
        unit = "no cost unit" if self.unit is None else f"cost unit {self.unit}"
        return f"<CostChain {self.n} nodes, {len(self.target)} arrows, {unit}>"

    @property
    def n(self) -> int:
        return len(self.row_start) - 1

    @cached_property
    def source(self) -> NDArray[np.int32]:
        """The node each arrow leaves."""
        return np.repeat(np.arange(self.n, dtype=np.int32), np.diff(self.row_start))

    def label(self, node: int) -> str:
        state = repr(self.ssp.states[int(self.state[node])])
        return f"state {state}" if self.memory is None else f"state {state} with memory {self.memory[node]!r}"

    @property
    def least_cost(self) -> FloatArray:
        """V_min per node, n + 1 entries with 0 for the goal, in cost units if there is a unit; infinite where the goal is out of reach."""
        return self._cheapest[0]

    @property
    def falling(self) -> NDArray[np.int64]:
        """The nodes that can reach the goal, by falling V_min, and after them the goal."""
        return self._cheapest[1]

    @property
    def place(self) -> NDArray[np.int64]:
        """Where each node stands among the `falling`, and the goal after them; -1 where the goal is out of reach."""
        return self._cheapest[2]

    @property
    def has_free_arrows(self) -> bool:
        """Whether a step may cost nothing."""
        return self._cheapest[3]

    @property
    def all_arrive(self) -> bool:
        """Whether the goal can be reached from every node."""
        return len(self.falling) > self.n

    @cached_property
    def _cheapest(self) -> tuple[FloatArray, NDArray[np.int64], NDArray[np.int64], bool]:
        least, falling, place = np.empty(self.n + 1), np.empty(self.n + 1, dtype=np.int64), np.empty(self.n + 1, dtype=np.int64)
        begin, shortest = -1, 0.0
        if self.level is not None:
            begin, shortest = cheapest_levels(*frozen(self.row_start, self.target, self.level), LONGEST, least, falling, place)
        if begin < 0:
            into, into_start = grouped(self.target, self.n + 1)
            cost = self.cost if self.level is None else self.level.astype(np.float64)
            least.fill(np.inf)
            cheapest_way(into_start, self.source[into], cost[into], self.n, least)
            begin, shortest = int(np.isinf(least).sum()), self.cost.min(initial=1.0)
            falling = np.append(np.argsort(-least[:-1], kind="stable"), self.n)
            place.fill(-1)
            place[falling[begin:]] = np.arange(self.n + 1 - begin)
        least.flags.writeable = False
        return least, falling[begin:], place, bool(shortest == 0)

    @cached_property
    def arrives(self) -> NDArray[np.bool_]:
        """Whether the goal can be reached from a node at all."""
        return np.isfinite(self.least_cost[: self.n])

    @cached_property
    def proper(self) -> NDArray[np.bool_]:
        """Whether the goal is reached surely from a node: no way leads to where it is out of reach, however small its probability."""
        if self.all_arrive:
            return self.arrives
        arrow = np.flatnonzero(self.target < self.n)
        into_trap = ~self.arrives[self.target[arrow]]
        return fewest_steps(self.source[arrow], np.where(into_trap, self.n, self.target[arrow]), self.n) < 0

    @cached_property
    def unreached(self) -> Bracket:
        """The probability of never arriving, per node: 0 exactly where a node is `proper`, though a float may be too coarse for the rest."""
        if self.all_arrive:
            zero = np.zeros(self.n)
            return Bracket(zero, zero, zero, "graph")
        lost = ~np.append(self.arrives, True)[self.target]
        found = self._total(lost.astype(np.float64), self.arrives, 1.0)
        least = np.where(self.proper, 0.0, np.nextafter(0.0, 1.0))
        return Bracket(np.maximum(found.value, least), found.lower, np.maximum(found.upper, least), found.method)

    @cached_property
    def rate(self) -> FloatArray:
        """The mean cost of a step from every node."""
        return np.bincount(self.source, weights=self.probability * self.cost, minlength=self.n).astype(np.float64)

    @cached_property
    def expected_cost(self) -> Bracket:
        """V_mean per node with verified bounds; infinite where the goal may be missed."""
        if self.all_arrive:
            return expected_total(self.row_start, self.target, self.probability, self.rate, self.least_cost[:-1])
        return self._total(self.cost, self.proper, np.inf)

    def _total(self, price: FloatArray, inside: NDArray[np.bool_], outside: float) -> Bracket:
        """The expected total of a price per arrow, from the nodes inside until they are left; `outside` for all others."""
        count = int(inside.sum())
        position = np.where(inside, np.cumsum(inside) - 1, count)
        arrow = np.flatnonzero(inside[self.source])
        source, probability = position[self.source[arrow]], self.probability[arrow]
        target = np.append(position, count)[self.target[arrow]].astype(np.int32)
        rate = np.bincount(source, weights=probability * price[arrow], minlength=count).astype(np.float64)
        inner = expected_total(offsets_of(source, count), target, probability, rate, self.least_cost[:-1][inside])
        value, lower, upper = (np.full(self.n, outside) for _ in range(3))
        value[inside], lower[inside], upper[inside] = inner.value, inner.lower, inner.upper
        return Bracket(value, lower, upper, inner.method)

    def refuse_free_traps(self) -> None:
        """A trap that costs nothing has no total cost worth the name: an error that names its states."""
        if self.all_arrive:
            return
        trapped = np.flatnonzero(~self.arrives)
        component, count = strong_components(self.row_start, self.target)
        inner = np.append(component, -1)[self.target] == component[self.source]
        leaves = np.bincount(component[self.source[~inner]], minlength=count) > 0
        paying = np.bincount(component[self.source[inner & (self.cost > 0)]], minlength=count) > 0
        bad = trapped[~leaves[component[trapped]] & ~paying[component[trapped]]]
        if bad.size:
            shown = ", ".join(self.label(int(node)) for node in bad[:5])
            raise PolicyError(f"the policy ends in a cycle that costs nothing and never reaches a goal: {shown}")
