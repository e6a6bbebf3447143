"""The runs of a chain that cost more than some threshold v: what leads to them, from every node and
with every cost still allowed; and what is to blame for the excess E[(Z - VaR)+].

Costs count in units. At node x with r = v - (cost so far) still allowed, for r >= 0, sums and
maxima over the edges (x, y, p, c):

    chance(x, r)     P(Z > v) = sum p chance(y, r - c); 1 beyond v, 0 at the goal
    excess(x, r)     E[(Z - v)+] = sum p excess(y, r - c); V_mean(x) - r beyond v
    likeliest(x, r)  the most probable way to end with Z > v = max p likeliest(y, r - c); beyond v:
                     of all ways to the goal
    visits(x, r)     the expected number of times a run is there, from the start at r = v forward

A node from which the goal is out of reach ends a run, at infinite cost. Arrays are indexed `[r,
x]`, with the goal as the last x.

Blame is three numbers for every outcome (x, y, p, c), summed over r and, with V_mean, past the
threshold:

    share = visits p ((c - r)+)         where the excess is paid: the part of a cost beyond VaR
    slope = visits p chance(y, r - c)   what one unit of cost more would add to the excess
    setback = visits p chance(y, r - c) (excess(y, r - c) - excess(x, r))
                                        where runs turn bad

The shares sum to the excess; so do setbacks, divided by the probability of not ending beyond VaR. A
setback below 0 is good luck that was not enough.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

import numpy as np

from tailpath.errors import LimitExceededError, ModelError
from tailpath.graph import BoolArray, FloatArray, IntArray
from tailpath.model.ssp import SSP, Name
from tailpath.policies.chain import CostChain
from tailpath.show.sampled import Walks
from tailpath.show.visits import expected_visits, zero_cost_walks

#: Pairs of node and cost beyond which the tables would not fit a small machine, and levels of cost
#: beyond which they take minutes.
MAX_PAIRS, MAX_LEVELS = 40_000_000, 100_000
#: More units than any threshold has, and values that are found at a time.
FAR, AT_A_TIME = 2**40, 2**20


class Beyond:
    """A chain and a threshold, in units; None looks for the runs that never arrive.

    Levels r are done in blocks as wide as the least cost that is not 0: what is behind a step then
    lies in another block.
    """

    def __init__(self, chain: CostChain, threshold: int | None) -> None:
        self.missed_only, threshold = threshold is None, threshold or 0
        if chain.level is None:
            raise ModelError(
                "the costs have no common unit that is coarse enough to count in; round them first"
            )
        if (threshold + 1) * (chain.n + 1) > MAX_PAIRS or threshold > MAX_LEVELS:
            raise LimitExceededError(
                f"{chain.n} pairs of state and memory with {threshold} units of cost are too many"
                " to follow run by run",
                (0.0, math.inf),
            )
        self.chain, self.threshold = chain, threshold
        self.level = chain.level

    @cached_property
    def ends(self) -> BoolArray:
        """Whether a run ends at a node: at the goal, and where the goal is out of reach."""
        return np.append(~self.chain.arrives, True)

    @property
    def blocks(self) -> Iterator[tuple[IntArray, IntArray]]:
        """Levels from 0 up, with the edges of the nodes that runs come to with so much allowed;
        nothing else is ever asked for.
        """
        visits = self.visits[0]
        for rows in self._levels:
            yield rows, self.chain.edges(np.any(visits[rows], axis=0))

    @cached_property
    def _levels(self) -> list[IntArray]:
        least = int(self.level.min(where=self.level > 0, initial=FAR))
        width = max(1, min(least, AT_A_TIME // max(len(self.level), 1)))
        every = np.arange(self.threshold + 1)
        return np.split(every, np.arange(width, self.threshold + 1, width))

    def after(
        self, table: FloatArray, beyond: FloatArray, r: IntArray, edges: IntArray, slope: int = 0
    ) -> FloatArray:
        """The value behind each of some edges, `[r, edge]`, taken with r still allowed: from the
        table, or, past the threshold, from `beyond`, and `slope` for each unit past it.
        """
        remaining, target = r[:, None] - self.level[edges], self.chain.target[edges]
        past = beyond[target] - slope * remaining
        return np.where(remaining >= 0, table[np.maximum(remaining, 0), target], past)

    @property
    def _at_ends(self) -> FloatArray:
        """To end where the goal is out of reach is to cost more than anything, with certainty."""
        table = np.zeros((self.threshold + 1, self.chain.n + 1))
        table[:, np.flatnonzero(~self.chain.arrives)] = 1.0
        return table

    @cached_property
    def chance(self) -> FloatArray:
        return self._table(self._at_ends, np.ones(self.chain.n + 1))

    @cached_property
    def mean(self) -> FloatArray:
        """V_mean in units, with the goal; infinite where the goal may be missed."""
        assert self.chain.unit is not None
        return np.append(self.chain.expected_cost.value, 0.0) / float(self.chain.unit)

    @cached_property
    def excess(self) -> FloatArray:
        """Of a chain that arrives almost surely."""
        return self._table(np.zeros((self.threshold + 1, self.chain.n + 1)), self.mean, slope=1)

    def _table(self, table: FloatArray, beyond: FloatArray, slope: int = 0) -> FloatArray:
        """The mean of what is behind a node, by level, from what it is at ends, which the table
        has, and past the threshold.
        """
        chain, through = self.chain, zero_cost_walks(self.chain)
        for r, met in self.blocks:
            edges = met[(self.level[met] > 0) | self.ends[chain.target[met]]]
            values = chain.probability[edges] * self.after(table, beyond, r, edges, slope)
            found = through(self._by_source(np.add, values, edges).T).T
            table[r, :-1] = np.where(self.ends[:-1], table[r, :-1], found)
        return table

    def _by_source(self, combine: np.ufunc, values: FloatArray, edges: IntArray) -> FloatArray:
        """Sums or maxima over the edges of each node, which stand side by side."""
        source, found = self.chain.source[edges], np.zeros((len(values), self.chain.n))
        if len(edges):
            first = np.flatnonzero(np.diff(source, prepend=-1))
            found[:, source[first]] = combine.reduceat(values, first, axis=1)
        return found

    # ------------------------------------------------------------------ the most probable way

    @cached_property
    def way(self) -> FloatArray:
        """The probability of the most probable way to an end that counts, from every node."""
        chain = self.chain
        wanted = self.ends & ~np.append(chain.arrives, self.missed_only)
        length = chain.replaced(cost=np.maximum(-np.log(chain.probability), 0.0), level=None)
        onwards = length.only(wanted[chain.target] | ~self.ends[chain.target])
        least = (
            onwards.renumber(np.where(wanted, chain.n, np.arange(chain.n + 1))).distances().least
        )
        return np.asarray(np.where(self.ends, 1.0 * wanted, np.exp(-least)))

    @cached_property
    def likeliest(self) -> FloatArray:
        chain, table = self.chain, self._at_ends
        for r, met in self.blocks:
            paying = met[self.level[met] > 0]
            zero_cost = met[(self.level[met] == 0) & (chain.target[met] < chain.n)]
            values = chain.probability[paying] * self.after(table, self.way, r, paying)
            row = np.maximum(table[r, :-1], self._by_source(np.maximum, values, paying))
            while zero_cost.size:
                values = chain.probability[zero_cost] * row[:, chain.target[zero_cost]]
                better = np.maximum(row, self._by_source(np.maximum, values, zero_cost))
                if np.array_equal(better, row):
                    break
                row = better
            table[r, :-1] = row
        return table

    # ------------------------------------------------------------------ from the start forward

    @cached_property
    def visits(self) -> tuple[FloatArray, FloatArray]:
        """The expected visits of every node with r still allowed, and past the threshold; of nodes
        at which a run goes on.
        """
        chain, through = self.chain, zero_cost_walks(self.chain, "T")
        table = np.zeros((self.threshold + 1, chain.n))
        past = np.zeros(chain.n)
        if chain.start < chain.n and not self.ends[chain.start]:
            table[self.threshold, chain.start] = 1.0
        for r in reversed(self._levels):
            table[r] = through(table[r].T).T
            edges = chain.edges(np.any(table[r], axis=0))
            edges = edges[(self.level[edges] > 0) & ~self.ends[chain.target[edges]]]
            flow = table[r][:, chain.source[edges]] * chain.probability[edges]
            remaining = r[:, None] - self.level[edges]
            target = np.broadcast_to(chain.target[edges], flow.shape)
            within = remaining >= 0
            np.add.at(table.reshape(-1), remaining[within] * chain.n + target[within], flow[within])
            past += np.bincount(target[~within], weights=flow[~within], minlength=chain.n)
        if past.any():
            inner = chain.only(~self.ends[chain.source] & ~self.ends[chain.target])
            past = expected_visits(inner, past)
        return table, past


# ---------------------------------------------------------------------- blame


class Blame(NamedTuple):
    """The part of one outcome in the excess; `share` and `setback`, over all outcomes, each sum to
    the excess.
    """

    state: Name
    action: Name
    next_state: Name
    cost: float
    share: float
    slope: float
    setback: float


def blame_of(beyond: Beyond) -> tuple[Blame, ...]:
    """The outcomes that have a part in the excess, the one with the greatest share first. The goal
    must be reached almost surely.
    """
    chain, ssp = beyond.chain, beyond.chain.ssp
    outcome = chain.outcome
    assert outcome is not None
    assert chain.unit is not None
    share, slope, setback = (np.zeros(len(chain.target)) for _ in range(3))
    level, target = beyond.level, chain.target
    source, mean = chain.source, beyond.mean
    visits, past = beyond.visits
    for r, met in beyond.blocks:
        remaining = r[:, None] - level[met]
        flow = visits[r][:, source[met]] * chain.probability[met]
        bad = flow * beyond.after(beyond.chance, np.ones(chain.n + 1), r, met)
        ahead = beyond.after(beyond.excess, mean, r, met, slope=1)
        share[met] += (flow * np.maximum(-remaining, 0)).sum(axis=0)
        slope[met] += bad.sum(axis=0)
        setback[met] += (bad * (ahead - beyond.excess[r][:, source[met]])).sum(axis=0)
    flow = past[source] * chain.probability
    share += flow * level
    slope += flow
    setback += flow * (level + mean[target] - mean[source])
    safe = 1 - beyond.chance[beyond.threshold, chain.start]
    unit = float(chain.unit)

    def by_outcome(values: FloatArray) -> FloatArray:
        found = np.bincount(outcome, weights=values, minlength=ssp.n_outcomes)
        return np.asarray(found, dtype=np.float64)

    return _blamed(
        ssp, by_outcome(share) * unit, by_outcome(slope), by_outcome(setback) * (unit / safe)
    )


def _blamed(
    ssp: SSP, share: FloatArray, slope: FloatArray, setback: FloatArray
) -> tuple[Blame, ...]:
    """Numbers by outcome as rows by names."""
    part = np.flatnonzero(slope > 0)
    part = part[np.argsort(-share[part], kind="stable")]
    return tuple(
        Blame(
            ssp.states[int(ssp.choice_state[ssp.outcome_choice[o]])],
            ssp.choice_name(int(ssp.outcome_choice[o])),
            ssp.states[int(ssp.outcome_target[o])],
            float(ssp.observed[o]),
            *(float(values[o]) for values in (share, slope, setback)),
        )
        for o in part.tolist()
    )


def simulated_blame(ssp: SSP, seen: Walks, bad: BoolArray, var: float) -> tuple[Blame, ...]:
    """Shares and slopes as simulated runs have them; a setback is not known from runs alone."""
    steps = seen.of(np.flatnonzero(bad[seen.run]))
    paid = steps.total[steps.run] - steps.to_go + steps.cost
    own = np.clip(paid - var, 0.0, np.maximum(steps.cost, 0.0)) / seen.runs
    share = np.asarray(np.bincount(steps.outcome, own, ssp.n_outcomes), dtype=np.float64)
    slope = np.bincount(steps.outcome, minlength=ssp.n_outcomes) / seen.runs
    return _blamed(ssp, share, slope, np.full(ssp.n_outcomes, np.nan))
