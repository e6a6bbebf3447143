"""Model x policy = chain: the reachable pairs (state, memory) with costs on the edges, and nothing
else. `unrolling.unroll` builds it; all goals are one node, number n. Evaluation and simulation look
at the chain and know neither model nor policy.

*Cycles of cost 0 that leak* are solved as small linear systems before a search, so that no level is
unrolled for ever. Inside a strong component of zero-cost edges a walker moves at no cost until it
takes an edge out of it. Let Q hold the probabilities inside and R those of leaving, a column for
each target and cost; then (I - Q)^-1 R has the probability of leaving by each of them. Replacing
the rows of the component by these changes neither the distribution of the total cost nor V_mean nor
V_min. Only nodes where the component is entered need a row.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tailpath.certify.exponentials import exponential_bounds
from tailpath.certify.products import expected_product
from tailpath.certify.rounding import AFTERWARDS
from tailpath.certify.values import Bounds, expected_total
from tailpath.dp.elimination import eliminate_dense
from tailpath.errors import ModelError, OptionError, PolicyError
from tailpath.graph import (
    Array,
    BoolArray,
    Distances,
    FloatArray,
    IntArray,
    Transitions,
    offsets_of,
    positions,
)
from tailpath.model.border import prepare
from tailpath.model.outcomes import merge_equal_outcomes
from tailpath.model.records import Record
from tailpath.model.ssp import SSP


@dataclass(frozen=True, eq=False, repr=False)
class CostChain(Record, Transitions):
    """A Markov chain with costs: the pairs (state, memory) that a policy reaches on a model.

    Nodes 0 .. n-1 are transient or traps; node n is the goal. `unroll` makes it; its expected and
    least costs are V_mean and V_min (the paper's MDPPolicyEvaluation).

    Parameters
    ----------
    row_start : array of int64, shape (n + 1,)
        The transitions of node x are row_start[x] .. row_start[x + 1] - 1.
    target : array of int, shape (m,)
        The node that each leads to.
    probability : array of float64, shape (m,)
        Those of a node sum to 1.
    cost : array of float64, shape (m,)
        What each costs, as the model says.
    level : array of int64, shape (m,), or None
        The costs in whole units, if there is a unit.
    unit : Fraction or None
        The cost unit.
    start : int
        The first node; n if the start is a goal.
    state : array of int32, shape (n,)
        The model's state behind each node.
    memory : tuple or array of length n, or None
        What the policy remembers at each node.
    ssp : SSP
        The model.
    outcome : array of int64, shape (m,), or None
        The model's outcome behind each transition; None where they are walks of several outcomes.

    Raises
    ------
    ModelError
        If the arrays do not agree.

    Examples
    --------
    >>> tp.unroll(ssp, {"home": "road"})
    <CostChain 1 nodes, 2 transitions, cost unit 10>
    """

    unit: Fraction | None
    start: int
    state: NDArray[np.int32]
    memory: tuple[Any, ...] | Array | None
    ssp: SSP
    outcome: IntArray | None = None

    def __post_init__(self) -> None:
        count, columns = len(self.target), (self.probability, self.cost, self.level, self.outcome)
        if (
            self.n < 0
            or self.row_start[0] != 0
            or self.row_start[-1] != count
            or (np.diff(self.row_start) < 0).any()
            or any(column is not None and len(column) != count for column in columns)
            or len(self.state) != self.n
        ):
            raise ModelError(
                "the arrays of a chain must agree: rows must rise to the number of transitions,"
                " with one state per node"
            )
        nodes = np.append(self.target, self.start)
        if not 0 <= nodes.min() <= nodes.max() <= self.n:
            raise ModelError(
                f"the start and the targets of a chain of {self.n} nodes must lie in 0..{self.n}"
            )
        super().__post_init__()
        self._freeze()

    def __repr__(self) -> str:
        unit = "no cost unit" if self.unit is None else f"cost unit {self.unit}"
        return f"<CostChain {self.n} nodes, {len(self.target)} transitions, {unit}>"

    def label(self, node: int) -> str:
        """The state and the memory of a node, for messages.

        Parameters
        ----------
        node : int
            The number of a node, 0 .. n-1.

        Returns
        -------
        str
            Words.

        Examples
        --------
        >>> tp.unroll(ssp, {"home": "road"}).label(0)
        "state 'home'"
        """
        state = f"state {self.ssp.states[int(self.state[node])]!r}"
        if self.memory is None:
            return state
        memory = self.memory[node]
        shown = memory.item() if isinstance(memory, np.generic) else memory
        return f"{state} with memory {shown!r}"

    @property
    def reduced(self) -> CostChain:
        """The same steps at costs of 0 or more, for searches; itself where none is negative."""
        border = prepare(self.ssp)
        if not border.moves:
            return self
        model, outcome = border.model, self.outcome
        assert outcome is not None
        unit = model.cost_unit
        level = None if unit is None else model.outcome_level[outcome]
        costs = {"cost": model.outcome_cost[outcome], "level": level, "unit": unit, "ssp": model}
        return self.trusted(**self.__getstate__() | costs)

    @cached_property
    def _nearest(self) -> Distances:
        return self.reduced.distances()

    @property
    def least_cost(self) -> FloatArray:
        """The least cost to go, V_min: an array of float64, shape (n + 1,), 0 at the goal.

        (The paper's PolicyEvaluationDeterminizedMDP.)

        It is in cost units if there is a unit, and infinite where the goal is out of reach. It is
        the admissible and consistent heuristic of `evaluate`. Where some cost is negative, it is
        that of `reduced`.
        """
        return self._nearest.least

    @property
    def farthest_first(self) -> IntArray:
        """The nodes that can reach the goal, by falling V_min, and after them the goal."""
        return self._nearest.farthest_first

    @property
    def position(self) -> IntArray:
        """The position of each node among `farthest_first`; -1 where the goal is out of reach."""
        return self._nearest.position

    @cached_property
    def has_zero_cost_edges(self) -> bool:
        """Whether a step may cost nothing."""
        return bool((self.cost == 0).any())

    @property
    def all_arrive(self) -> bool:
        """Whether the goal can be reached from every node."""
        return len(self.farthest_first) > self.n

    @cached_property
    def arrives(self) -> BoolArray:
        """Whether the goal can be reached from each node at all: an array of bool, shape (n,)."""
        return np.isfinite(self.least_cost[: self.n])

    @cached_property
    def proper(self) -> BoolArray:
        """Whether the goal is reached with probability 1 from each node: an array of bool, (n,).

        False where any path, however improbable, leads to where the goal is out of reach.
        """
        if self.all_arrive:
            return self.arrives
        number = np.append(np.where(self.arrives, np.arange(self.n), self.n), self.n)
        return self.only(self.target < self.n).renumber(number).steps() < 0

    @cached_property
    def unreached(self) -> Bounds:
        """The probability of never arriving, per node, with verified bounds.

        It is 0 exactly where a node is `proper`, though a float may be too coarse for the rest.
        """
        if self.all_arrive:
            zero = np.zeros(self.n)
            return Bounds(zero, zero, zero, "graph")
        to_dead_end = ~np.append(self.arrives, True)[self.target]
        found = self._total(to_dead_end.astype(np.float64), self.arrives, 1.0)
        least = np.where(self.proper, 0.0, np.nextafter(0.0, 1.0))
        value, upper = np.maximum(found.value, least), np.maximum(found.upper, least)
        return replace(found, value=value, upper=upper)

    @cached_property
    def expected_cost(self) -> Bounds:
        """The expected cost to go, V_mean, per node, with verified bounds.

        (The paper's MDPPolicyEvaluation.)

        `value`, `lower` and `upper` are arrays of float64, shape (n,); infinite where the goal may
        be missed.
        """
        border = prepare(self.ssp)
        if border.moves:
            return self.reduced.expected_cost.shifted(border.potential[self.state])
        return self.expected_sum(self.cost)

    def expected_sum(self, price: FloatArray) -> Bounds:
        """The expected sum of a price per transition, by node, with verified bounds.

        Parameters
        ----------
        price : array of float64, shape (n_transitions,)
            What each transition adds, 0 or more.

        Returns
        -------
        Bounds
            `value`, `lower` and `upper`, each (n,); infinite where a run may never arrive.

        Examples
        --------
        >>> chain = tp.unroll(ssp, {"home": "road"})
        >>> chain.expected_sum(chain.cost**2).value
        array([720.])
        """
        return self._total(price, self.proper, np.inf)

    def expected_product(self, factor: FloatArray) -> Bounds:
        """The expected product of a factor per transition, over runs that arrive, by node.

        Parameters
        ----------
        factor : array of float64, shape (n_transitions,)
            What each transition multiplies by, 0 or more.

        Returns
        -------
        Bounds
            `value`, `lower` and `upper`, each (n,). All values are infinite if one of the products
            has no mean, and bounds are 0 and infinite if doubles prove nothing.

        Examples
        --------
        >>> chain = tp.unroll(ssp, {"home": "road"})
        >>> chain.expected_product(2.0 ** (chain.cost / 20)).value
        array([2.6])
        """
        inside = self.arrives
        rows = Transitions(self.row_start, self.target, self.probability * factor, self.cost, None)
        end = rows.sums(np.where(self.target == self.n, rows.probability, 0.0))
        part = rows.restrict(inside).renumber(positions(inside))
        found = expected_product(part, end[inside], self.ssp.probability_error)
        return found.map(lambda values: np.append(values, 0.0)[positions(inside)[:-1]])

    def expected_exponential(self, beta: float) -> Bounds:
        """The logarithm of the expected exponential of the cost to go, ln E[exp(beta Z)], by node.

        Parameters
        ----------
        beta : float
            What costs are multiplied by; more than 0.

        Returns
        -------
        Bounds
            `value`, `lower` and `upper`, each (n,). Values are infinite where there is no mean; so
            are upper ends if doubles prove nothing.

        Examples
        --------
        >>> chain = tp.unroll(ssp, {"home": "road"})
        >>> chain.expected_exponential(0.1).value.round(6)
        array([3.849999])
        """
        mean, proper = self.expected_cost, self.proper
        if not proper.all():
            never = np.where(proper, -np.inf, np.inf)
            return Bounds(np.full(self.n, np.inf), never, np.full(self.n, np.inf))
        with np.errstate(over="ignore"):
            exponent, far = beta * self.cost, beta * mean.value
        if not (np.isfinite(exponent).all() and np.isfinite(far).all()):
            raise OptionError(f"a beta of {beta:g} is too large for these costs")
        least = beta * mean.lower * (1 - np.sign(mean.lower) * AFTERWARDS)
        log, only, off = far, np.arange(self.n), self.ssp.probability_error
        return exponential_bounds(self, exponent, log, only, off, least)[0]

    def _total(self, price: FloatArray, inside: BoolArray, outside: float) -> Bounds:
        """The expected total of a price per edge from nodes inside; `outside` for all others."""
        rate, error = self.sums(self.probability * price), self.ssp.probability_error
        if self.all_arrive:
            return expected_total(self, rate, error, self.farthest_first[-2::-1])
        part = self.restrict(inside).renumber(positions(inside))
        found = expected_total(part, rate[inside], error)
        return found.map(lambda values: np.append(values, outside)[positions(inside)[:-1]])

    def refuse_zero_cost_traps(self) -> None:
        """Raise an error for a trap that costs nothing, which has no meaningful total cost.

        Raises
        ------
        PolicyError
            If there is one; the text names its states.
        """
        if self.all_arrive:
            return
        trapped = np.flatnonzero(~self.arrives)
        component, closed = self.closed()
        paying = np.bincount(component[self.source[self.cost != 0]], minlength=len(closed)) > 0
        bad = trapped[closed[component[trapped]] & ~paying[component[trapped]]]
        if bad.size:
            shown = ", ".join(self.label(int(node)) for node in bad[:5])
            raise PolicyError(
                f"the policy ends in a cycle that costs nothing and never reaches a goal: {shown}"
            )


def zero_cost_cycles(chain: CostChain) -> tuple[BoolArray, IntArray]:
    """The zero-cost edges on cycles that can be left for the goal, (m,), and the component of each
    node among these edges, -1 for one that is on no such cycle: (n,).
    """
    free = (
        (chain.cost == 0) & (chain.target < chain.n) & np.append(chain.arrives, False)[chain.target]
    )
    component, cyclic = chain.only(free).cycles()
    return free & chain.within(component), np.where(cyclic[component], component, -1)


def without_zero_cost_cycles(chain: CostChain) -> CostChain:
    """An equivalent chain whose zero-cost edges have no cycle; itself if they have none."""
    inside, component = zero_cost_cycles(chain)
    if not inside.any():
        return chain
    # A state that may stay at no cost is common, and needs no linear system: its other edges share
    # all of the probability.
    on_cycle = component >= 0
    alone = on_cycle & (np.bincount(component[on_cycle])[component] == 1)
    stays = inside & alone[chain.source]
    others, edge = chain.without_self_loops(stays), np.flatnonzero(~stays)
    outside = (alone | ~on_cycle)[others.source]
    pieces = [(others.source[outside], edge[outside], others.probability[outside])]
    entered = np.zeros(chain.n + 1, dtype=np.bool_)
    entered[chain.start] = True
    entered[chain.target[~inside]] = True
    edges = np.flatnonzero((on_cycle & ~alone)[chain.source])
    label = component[chain.source[edges]]
    edges = edges[np.argsort(label, kind="stable")]
    for of_members in np.split(edges, np.flatnonzero(np.diff(np.sort(label))) + 1):
        if of_members.size:
            pieces.append(_exit_rows(chain, of_members, inside, entered))
    source, edge, probability = (np.concatenate(parts) for parts in zip(*pieces))
    paid: Array = chain.cost if chain.level is None else chain.level
    source, target, probability, paid = merge_equal_outcomes(
        source, chain.target[edge], probability, paid[edge]
    )
    cost, level = (paid, None) if chain.level is None else (paid * float(chain.unit or 1), paid)
    return replace(
        chain,
        row_start=offsets_of(source, chain.n),
        target=target,
        probability=probability,
        cost=cost,
        level=level,
        outcome=None,
    )


def _exit_rows(
    chain: CostChain, of_members: Array, inside: BoolArray, entered: BoolArray
) -> tuple[Array, Array, FloatArray]:
    """New rows for the nodes of one component, given its edges: (node, an old edge of the same
    target and cost, probability) triples.
    """
    inner, outer = of_members[inside[of_members]], of_members[~inside[of_members]]
    # The last goes first: nodes with few neighbours, so that hubs do not fill the matrix early.
    members, degree = np.unique(
        np.concatenate((chain.source[inner], chain.target[inner])), return_counts=True
    )
    order = np.argsort(-degree, kind="stable")
    position = np.argsort(order)

    def number(nodes: Array) -> Array:
        return position[np.searchsorted(members, nodes)]

    exits = np.stack((chain.target[outer].astype(np.float64), chain.cost[outer]))
    _, edge, column = np.unique(exits, axis=1, return_index=True, return_inverse=True)
    m = len(members)
    q, r = np.zeros((m, m)), np.zeros((m, len(edge)))
    np.add.at(
        q, (number(chain.source[inner]), number(chain.target[inner])), chain.probability[inner]
    )
    np.add.at(r, (number(chain.source[outer]), column.ravel()), chain.probability[outer])
    if not eliminate_dense(q, r.sum(axis=1), r):
        raise ModelError(
            f"the cycle at no cost through {chain.label(int(members[0]))} is left with a"
            " probability too small to compute with"
        )
    members = members[order]
    rows, columns = np.nonzero(r * entered[members, None])
    return members[rows], outer[edge[columns]], r[rows, columns]
