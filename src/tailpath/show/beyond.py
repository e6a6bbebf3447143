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
from functools import cached_property
from typing import NamedTuple

import numpy as np

from tailpath.dp.budget_model import EXCESS, LATE
from tailpath.dp.budgets import node_values
from tailpath.dp.layout_builders import chain_layout
from tailpath.errors import LimitExceededError, ModelError
from tailpath.graph import BoolArray, FloatArray, IntArray, Transitions, positions
from tailpath.model.ssp import SSP, Name
from tailpath.policies.chain import CostChain
from tailpath.policies.visits import equations, zero_cost_walks
from tailpath.show.sampled import Walks

#: Pairs of node and cost beyond which the tables would not fit a small machine, and levels of cost
#: beyond which they take minutes.
MAX_PAIRS, MAX_LEVELS = 40_000_000, 100_000
#: More units than any threshold has.
FAR = 2**40


class Beyond:
    """A chain and a threshold, in units; None looks for the runs that never arrive."""

    def __init__(self, chain: CostChain, threshold: int | None) -> None:
        self.missed_only, threshold = threshold is None, threshold or 0
        if chain.level is None:
            raise ModelError(
                "the costs have no common unit that is coarse enough to count in; round them first"
            )
        if (threshold + 1) * (chain.n + 1) > MAX_PAIRS or threshold > MAX_LEVELS:
            raise LimitExceededError(
                f"{chain.n} pairs of state and memory with {threshold} units of cost are too many"
                " to look at run by run",
                (0.0, math.inf),
            )
        self.chain, self.threshold = chain, threshold
        self.level = chain.level

    @cached_property
    def ends(self) -> BoolArray:
        """Whether a run ends at a node: at the goal, and where the goal is out of reach."""
        return np.append(~self.chain.arrives, True)

    @cached_property
    def met(self) -> list[IntArray]:
        """The edges of the nodes that runs come to with r still allowed, by r; nothing else is ever
        asked for.
        """
        return [self.chain.edges(row != 0) for row in self.visits[0]]

    def after(self, table: FloatArray, beyond: FloatArray, r: int, edges: IntArray) -> FloatArray:
        """The value behind each of some edges, taken with r still allowed: from the table, or, past
        the threshold, from `beyond`.
        """
        remaining, target = r - self.level[edges], self.chain.target[edges]
        return np.where(remaining >= 0, table[np.maximum(remaining, 0), target], beyond[target])

    @cached_property
    def chance(self) -> FloatArray:
        # To end where the goal is out of reach is to cost more than anything.
        chain, alive = self.chain, self.chain.arrives
        lost = ~np.append(alive, True)[chain.target]
        rows = chain.replaced(level=np.where(lost, FAR, self.level))
        values = self._by_budget(rows, alive, LATE, np.zeros(chain.n), self.threshold + 1)
        return np.where(self.ends, np.append(np.ones(chain.n), 0.0), values)

    @cached_property
    def mean(self) -> FloatArray:
        """V_mean in units, with the goal; infinite where the goal may be missed."""
        assert self.chain.unit is not None
        return np.append(self.chain.expected_cost.value, 0.0) / float(self.chain.unit)

    @cached_property
    def excess(self) -> FloatArray:
        finite = np.isfinite(self.mean)
        values = self._by_budget(self.chain, finite[:-1], EXCESS, self.mean[:-1], self.threshold)
        return np.where(finite, np.vstack((self.mean, values)), np.inf)

    def _by_budget(
        self,
        rows: Transitions,
        inside: BoolArray,
        criterion: FloatArray,
        value: FloatArray,
        most: int,
    ) -> FloatArray:
        """The table of a criterion for budgets 1 .. most, of the nodes inside, from which one only
        gets to others inside and to goals; 0 elsewhere, and where no run from the start gets to.
        """
        table = np.zeros((most, rows.n + 1))
        start = self.chain.start
        if start == rows.n or not inside[start] or most == 0:
            return table
        position = positions(inside)
        layout, order = chain_layout(
            rows.restrict(inside).renumber(position),
            value[inside],
            self._paid[inside],
            int(position[start]),
        )
        objective = layout.objective(criterion, limit=float(most))
        values, _ = next(node_values(layout, objective, most))
        table[:, np.flatnonzero(inside)[order]] = np.where(np.isnan(values), 0.0, values)
        return table

    @cached_property
    def _paid(self) -> IntArray:
        """The least that a run from the start has paid when it gets to a node."""
        least = self.chain.replaced(level=self.level).costs_from(self.chain.start)[:-1]
        return np.asarray(np.minimum(least, FAR), dtype=np.int64)

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
        chain = self.chain
        table = np.zeros((self.threshold + 1, chain.n + 1))
        # A run that ends where the goal is out of reach costs more than anything.
        table[:, :-1] = ~chain.arrives
        for r in range(self.threshold + 1):
            row, edges = table[r], self.met[r]
            paying = edges[self.level[edges] > 0]
            zero_cost = edges[(self.level[edges] == 0) & (chain.target[edges] < chain.n)]
            np.maximum.at(
                row,
                chain.source[paying],
                chain.probability[paying] * self.after(table, self.way, r, paying),
            )
            while zero_cost.size:
                better = row.copy()
                np.maximum.at(
                    better,
                    chain.source[zero_cost],
                    chain.probability[zero_cost] * row[chain.target[zero_cost]],
                )
                if np.array_equal(better, row):
                    break
                row[:] = better
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
        for r in range(self.threshold, -1, -1):
            table[r] = through(table[r])
            edges = chain.edges(table[r] != 0)
            edges = edges[(self.level[edges] > 0) & ~self.ends[chain.target[edges]]]
            flow, target = (
                table[r, chain.source[edges]] * chain.probability[edges],
                chain.target[edges],
            )
            remaining = r - self.level[edges]
            within = remaining >= 0
            np.add.at(table, (remaining[within], target[within]), flow[within])
            past += np.bincount(target[~within], weights=flow[~within], minlength=chain.n)
        if past.any():
            inner = chain.only(~self.ends[chain.source] & ~self.ends[chain.target])
            past = expected_visits(inner, past)
        return table, past


def expected_visits(inner: Transitions, first: FloatArray) -> FloatArray:
    """The expected visits of every node, once runs start there with these masses."""
    factors = equations(inner.source, inner.target, inner.probability, inner.n)
    found: FloatArray = factors.solve(first, trans="T")
    return found


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
    for r in range(beyond.threshold + 1):
        met = beyond.met[r]
        remaining, after = r - level[met], target[met]
        flow = visits[r, source[met]] * chain.probability[met]
        bad = flow * beyond.after(beyond.chance, np.ones(chain.n + 1), r, met)
        ahead = np.where(
            remaining >= 0, beyond.excess[np.maximum(remaining, 0), after], mean[after] - remaining
        )
        share[met] += flow * np.maximum(-remaining, 0)
        slope[met] += bad
        setback[met] += bad * (ahead - beyond.excess[r, source[met]])
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
