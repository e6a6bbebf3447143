"""A policy on a model in parts: the chain that it makes, runs of it, and its costs.

*Chain.* A Markov policy makes a part with one row for every state, so that what it costs is V* of
that part. States that it never gets to need not arrive: they count as goals.

*Runs* walk from rank to rank. The numbers of a step are drawn for all runs from the seed and the
step alone, so that the runs do not depend on how many ranks there are.

*Costs.* A node holds the probability of being there with g cost units paid; g rises, and w - g is
the budget left, which decides. What is pushed onto ghosts is sent to the ranks that have them
before their level is taken up. From g = w on the policy is Markov (one that always is has w = 0),
and its expected cost V, as a rule V*, completes what is still open:

    E[(Z - x)+] = sum over arrivals beyond x of p (cost - x)  +  sum over open of p (paid + V - x).

All terms are non-negative, and every mass is a sum of products: `relative_error` bounds what
rounding did to any of them, as in `evaluation/lattice.py`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from tailpath.distributed.expected import PartExpected
from tailpath.distributed.part import Part
from tailpath.distributed.ranks import anywhere, largest
from tailpath.distributed.search import PartGraph, graph_of, require_arrival
from tailpath.errors import OptionError, PolicyError
from tailpath.graph import (
    Array,
    BoolArray,
    FloatArray,
    IntArray,
    members_of,
    offsets_from_lengths,
    owners,
)
from tailpath.kernels.rounding import (
    NEAR_UNDERFLOW,
    PER_EDGE,
    PER_ROW,
    ROUNDOFF,
    SAME_MASS,
)
from tailpath.kernels.steps import Steps, step_choices
from tailpath.model.checks import ROW_TOLERANCE
from tailpath.options import takes_alpha

NEVER_ARRIVES = "the policy never arrives, and in parts that must not happen; gather it"
#: A sum of what is open is taken anew when so much of it is left.
LEFT = 0.25


def part_chain(comm: Any, part: Part, weight: FloatArray) -> PartGraph:
    """The graph of a policy that takes each choice of a part with probability `weight` (choices,),
    as far as it gets; all ranks call this.
    """
    graph = graph_of(comm, _under(part, weight, part.is_goal))
    ends = part.is_goal.copy()
    own = graph.state[: graph.own]
    ends[own[np.isinf(graph.least()[: graph.own])] - part.first] = True
    if anywhere(comm, ends != part.is_goal):
        graph = graph_of(comm, _under(part, weight, ends))
    require_arrival(graph, graph.nearest(), NEVER_ARRIVES)
    return graph


def _under(part: Part, weight: FloatArray, ends: BoolArray) -> Part:
    """The part with the choices of every state mixed into one row; runs are over where it `ends`,
    a mask of its states.
    """
    state = owners(part.state_choices)
    total = np.bincount(state, weights=weight, minlength=len(ends))
    wrong = ~part.is_goal & ~(np.abs(total - 1.0) <= ROW_TOLERANCE * np.diff(part.state_choices))
    wrong[state[~(weight >= 0.0)]] = True
    for here in np.flatnonzero(wrong)[:1].tolist():
        text = f"the action probabilities of the policy in state {part.first + here}"
        raise PolicyError(f"{text} sum to {total[here]:.12g} or are negative")
    taken = np.flatnonzero((weight > 0.0) & ~ends[state])
    outcome, rows = members_of(part.choice_outcomes, taken)
    share = np.repeat((weight / total[state])[taken], np.diff(rows))
    # The first action of a mixture lends it a name, which nobody asks for.
    first = np.flatnonzero(np.diff(state[taken], prepend=-1))
    return replace(
        part,
        state_choices=offsets_from_lengths(~ends),
        choice_outcomes=np.append(rows[:-1][first], rows[-1]),
        outcome_target=part.outcome_target[outcome],
        outcome_probability=part.outcome_probability[outcome] * share,
        outcome_level=part.outcome_level[outcome],
        choice_action=part.choice_action[taken[first]],
        is_goal=ends,
    )


def walk_runs(graph: PartGraph, steps: Steps, runs: int, seed: int) -> FloatArray:
    """The total costs of so many runs, (runs,), on every rank; all ranks call this."""
    comm, unit = graph.comm, float(graph.part.unit)
    paid = np.zeros(runs, dtype=np.int64)
    run = np.arange(runs if graph.start >= 0 else 0)
    node = np.full(len(run), max(graph.start, 0))
    done, step = np.zeros(runs, dtype=np.int64), 0
    while sum(comm.allgather(len(run))):
        drawn = np.random.default_rng([seed, step]).random(runs)[run]
        outcome = _outcomes(graph, rows_taken(steps, node, steps.budget - paid[run]), drawn)
        paid[run] += graph.level[outcome]
        target = graph.decisions.target[outcome]
        arrived = target == graph.n
        done[run[arrived]] = paid[run[arrived]]
        run, node = _moved(graph, run[~arrived], target[~arrived], paid)
        step += 1
    return np.asarray(np.sum(comm.allgather(done), axis=0) * unit, dtype=np.float64)


def rows_taken(steps: Steps, node: IntArray, budget: IntArray) -> IntArray:
    """What is chosen at own nodes with so much budget."""
    row = np.empty(len(node), dtype=np.int64)
    step_choices(steps, node, budget, row)
    return row


def _outcomes(graph: PartGraph, row: IntArray, drawn: FloatArray) -> IntArray:
    """The outcome of each row that a number in [0, 1) stands for."""
    decisions = graph.decisions
    outcome = decisions.choice_outcomes[row].astype(np.int64)
    last, draw = decisions.choice_outcomes[row + 1] - 1, drawn.copy()
    going = np.arange(len(row))
    while len(going):
        chance = decisions.probability[outcome[going]]
        on = (draw[going] >= chance) & (outcome[going] < last[going])
        draw[going] -= np.where(on, chance, 0.0)
        going = going[on]
        outcome[going] += 1
    return outcome


def _moved(
    graph: PartGraph, run: IntArray, target: Array, paid: IntArray
) -> tuple[IntArray, IntArray]:
    """Runs and their nodes after a step: those that left for another rank are handed over."""
    away, halo = target >= graph.own, graph.halo
    sent: list[Any] = [None] * graph.comm.size
    for rank, ghosts in zip(halo.ranks, halo.receive):
        here = np.flatnonzero(away & np.isin(target, ghosts))
        sent[rank] = run[here], np.searchsorted(ghosts, target[here]), paid[run[here]]
    got = graph.comm.alltoall(sent)
    runs, nodes = [run[~away]], [target[~away].astype(np.int64)]
    for rank, send in zip(halo.ranks, halo.send):
        if got[rank] is not None:
            number, index, cost = got[rank]
            paid[number] = cost
            runs.append(number)
            nodes.append(send[index])
    return np.concatenate(runs), np.concatenate(nodes)


@takes_alpha
@dataclass(frozen=True, eq=False)
class PartCosts:
    """The costs of a policy, known on every rank.

    `probabilities` (h,) are those of arriving at 0, 1, ... units, as far as that was followed;
    for each of these x `tail` (h,) has P(Z > x), and `excess` (3, h) value, lower and upper bound
    of E[(Z - x)+] in units.
    """

    alpha: float
    unit: Fraction
    probabilities: FloatArray
    tail: FloatArray
    excess: FloatArray
    relative_error: float

    def var(self, alpha: float | None = None) -> float:
        """The VaR at a tail mass, `alpha` or more."""
        return float(self._level(alpha)[0] * self.unit)

    def cvar(self, alpha: float | None = None) -> float:
        """The CVaR at a tail mass, `alpha` or more."""
        x, a = self._level(alpha)
        return float(x + self.excess[0, x] / a) * float(self.unit)

    def bounds(self, alpha: float | None = None) -> tuple[float, float]:
        """Proved bounds on the CVaR."""
        x, a = self._level(alpha)
        levels, off = np.arange(self.excess.shape[1]), self.relative_error
        low = float(np.min(levels + self.excess[1] * (1 - off) / a))
        high = x + float(self.excess[2, x]) / (1 - off) / a
        unit = float(self.unit)
        return low * (1 - 4 * ROUNDOFF) * unit, high * (1 + 4 * ROUNDOFF) * unit

    @property
    def mean(self) -> float:
        """The expected cost."""
        return float(self.excess[0, 0]) * float(self.unit)

    def _level(self, alpha: float | None) -> tuple[int, float]:
        a = self.alpha if alpha is None else alpha
        if not self.alpha <= a <= 1:
            raise OptionError(f"the policy was evaluated for alpha >= {self.alpha:g}")
        return int(np.flatnonzero(self.tail <= a * (1 + SAME_MASS))[0]), a


class _Forward:
    """The masses of a rank: `open[g]` are nodes, ghosts among them, and masses that came to level
    g, as often as they did; `head[g]` is what arrived there.
    """

    def __init__(self, graph: PartGraph, steps: Steps) -> None:
        self.graph, self.steps = graph, steps
        inside = (graph.level == 0) & (graph.decisions.target < graph.n)
        self.has_zero_cost = anywhere(graph.comm, inside)
        self.back = graph.halo.reversed()
        self.row, self.head = np.zeros(graph.n), np.zeros(steps.budget + 2)
        self.truncated = 0.0
        self.open: dict[int, list[tuple[Array, FloatArray]]] = {}
        if graph.start >= 0:
            self.open[0] = [(np.array([graph.start]), np.ones(1))]

    def advance(self, g: int) -> None:
        """Send on all that nodes hold at level g."""
        while True:
            for node, mass in self.open.pop(g, ()):
                np.add.at(self.row, node, mass)
            moved = self.back.arrived(self.back.begin(self.row))
            self.row[self.graph.own :] = 0.0
            for node, mass in moved:
                np.add.at(self.row, node, mass)
            self._push(g)
            if not self.has_zero_cost or not anywhere(self.graph.comm, g in self.open):
                return

    def _push(self, g: int) -> None:
        node = np.flatnonzero(self.row)
        mass = self.row[node]
        self.row[node] = 0.0
        small = mass < NEAR_UNDERFLOW
        self.truncated += float(mass[small].sum())
        node, mass = node[~small], mass[~small]
        decisions, level = self.graph.decisions, self.graph.level
        budget = np.full(len(node), self.steps.budget - g)
        outcome, start = members_of(decisions.choice_outcomes, rows_taken(self.steps, node, budget))
        moved = np.repeat(mass, np.diff(start)) * decisions.probability[outcome]
        target, paid = decisions.target[outcome], g + level[outcome].astype(np.int64)
        order = np.argsort(paid, kind="stable")
        levels, first = np.unique(paid[order], return_index=True)
        for there, some in zip(levels.tolist(), np.split(order, first[1:])):
            arrives = target[some] == self.graph.n
            if arrives.any():
                self._arrive(there, float(moved[some[arrives]].sum()))
                some = some[~arrives]
            if len(some):
                self.open.setdefault(there, []).append((target[some], moved[some]))

    def _arrive(self, level: int, mass: float) -> None:
        if level >= len(self.head):
            self.head = np.append(self.head, np.zeros(level))
        self.head[level] += mass

    @property
    def still(self) -> float:
        """All that has not arrived, but for what was truncated."""
        return math.fsum(float(mass.sum()) for some in self.open.values() for _, mass in some)


def evaluate_part(expected: PartExpected, steps: Steps, alpha: float) -> PartCosts:
    """The costs of a policy, with its VaR and CVaR at `alpha` and more; all ranks call this."""
    forward = _Forward(expected.graph, steps)
    comm = expected.graph.comm
    known, arrived = 1.0, 0.0
    g = 0
    while True:
        forward.advance(g)
        here = float(forward.head[g]) if g < len(forward.head) else 0.0
        arrived += sum(comm.allgather(here))
        if known - arrived < LEFT * known:
            still = forward.still + float(forward.head[g + 1 :].sum()) + forward.truncated
            known, arrived = sum(comm.allgather(still)), 0.0
        if g >= steps.budget and known - arrived <= alpha * (1 + SAME_MASS / 2):
            return _summed(expected, forward, g, alpha)
        g += 1


def _summed(expected: PartExpected, forward: _Forward, g: int, alpha: float) -> PartCosts:
    """What arrived and what is open, by rank, to what is known of all."""
    graph, unit = expected.graph, float(expected.graph.part.unit)
    comm = graph.comm
    length = int(largest(comm, max(len(forward.head), g + 2)))
    mine = np.append(forward.head, np.zeros(length - len(forward.head)))
    head: FloatArray = np.sum(comm.allgather(mine), axis=0)
    # What was truncated is anywhere by now, and its budget is spent after a step at most.
    dearest = largest(comm, graph.level.max(initial=0))
    worst = dearest + largest(comm, expected.bounds.upper.max(initial=0.0)) / unit
    every = comm.allgather([*_open_sums(expected, forward, g), forward.truncated])
    mass, *values, lost = (math.fsum(each) for each in zip(*every))
    beyond = np.append(np.cumsum(head[::-1])[::-1][1:], 0.0)  # P(arrived beyond x)
    # Summed up from behind: E[(Z - x)+] of arrivals is the sum of P(arrived beyond y) for y >= x.
    arrivals = np.cumsum(beyond[::-1])[::-1][: g + 1]
    beyond_level = g - np.arange(g + 1)
    excess = np.stack([arrivals + (mass * beyond_level + value) for value in values])
    excess[2] += lost * (beyond_level + worst)
    tail = beyond[: g + 1] + (mass + lost)
    return PartCosts(alpha, graph.part.unit, head[: g + 1], tail, excess, _error(graph, g))


def _open_sums(expected: PartExpected, forward: _Forward, g: int) -> list[float]:
    """Over what is open here: the sum of masses, and those of mass times what is still to pay from
    g on, in units, by value and bounds of V*.
    """
    unit, bounds = float(expected.graph.part.unit), expected.bounds
    sums: list[list[float]] = [[], [], [], []]
    for there, some in forward.open.items():
        for node, mass in some:
            sums[0].append(float(mass.sum()))
            for found, side in zip(sums[1:], (bounds.value, bounds.lower, bounds.upper)):
                # numpy adds up in a tree, so that a sum is off by some ten roundings.
                found.append(float((mass * (there - g + side[node] / unit)).sum()))
    return [math.fsum(each) for each in sums]


def _error(graph: PartGraph, g: int) -> float:
    """A bound on the relative error of every mass: what a step adds, for as many as there are."""
    comm, decisions = graph.comm, graph.decisions
    into = np.bincount(decisions.target, minlength=graph.n + 1)[: graph.n].max(initial=1)
    out = np.diff(decisions.choice_outcomes).max(initial=1)
    least = int(np.min(graph.level, where=graph.level > 0, initial=2**31 - 1))
    depth = float(graph.depth().max(initial=0))
    into, out, deepest = (largest(comm, each) for each in (into, out, depth))
    cheapest = -largest(comm, -least)
    steps = (g / cheapest + 2) * (deepest + 1)
    return (
        float(steps * (into * comm.size + comm.size + PER_EDGE * out + PER_ROW) + 4 * (g + 64))
        * ROUNDOFF
    )
