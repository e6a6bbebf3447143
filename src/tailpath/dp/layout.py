"""Decisions laid out for the sweep over budgets (`budgets.py`), and what follows from that: how far
costs reach, and the model that the sweep reads for some budgets.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from tailpath.dp.backup import CERTAIN, NO_SLACK, Rows, Slack
from tailpath.dp.budget_model import (
    BASE,
    TO_GO,
    BudgetModel,
    Nodes,
    Objective,
    TerminalOutcomes,
    Work,
    new_work,
)
from tailpath.dp.joint import Joint
from tailpath.errors import ModelError
from tailpath.graph import BoolArray, FloatArray, IntArray, offsets_of, owners
from tailpath.kernels.jit import Array, frozen

#: A window of about this many bytes stays near the processor.
WINDOW = 2**19
#: At least so many levels are put down before those that later ones need are moved.
LEAST_ROWS = 8


@dataclass(frozen=True, eq=False)
class Layout:
    """The nodes of the sweep in their order, their choices and outcomes.

    `choice[k]` is the caller's choice behind choice k, and `choice_cost[k]` what it costs on
    average. Outcomes are by choice, with their `level`, a cost in units; the target of one that
    arrives is -1, and those inside a joint block are left out. `row_size[k]` is how many outcomes
    choice k has in the model. Where probabilities are intervals, `probability` has the low ones
    and `slack` what `nature` hands out; the goal is then a node like others.
    """

    nodes: Nodes
    node_choices: IntArray
    choice: IntArray
    choice_cost: FloatArray
    outcome_start: IntArray
    target: NDArray[np.int32]
    level: IntArray
    probability: FloatArray
    joint: Joint
    start: int
    row_size: IntArray
    slack: Slack = field(default=NO_SLACK, kw_only=True)
    nature: int = field(default=CERTAIN, kw_only=True)

    @classmethod
    def of(cls, layout: Layout, **more: Any) -> Self:
        """A layout with more fields, or others."""
        return cls(**{**{f.name: getattr(layout, f.name) for f in fields(Layout)}, **more})

    @property
    def n(self) -> int:
        return len(self.nodes.cost_from_start)

    @property
    def start_value(self) -> float:
        """V* of the start in units."""
        return float(self.nodes.value[self.start])

    def spent(self, criteria: FloatArray) -> FloatArray:
        """What the start is worth with the budget spent, by criterion."""
        return criteria[:, BASE] + criteria[:, TO_GO] * self.start_value

    @cached_property
    def arrives(self) -> BoolArray:
        """Whether an outcome ends at a goal."""
        return self.target < 0

    @cached_property
    def costs(self) -> IntArray:
        """The costs, in units, of outcomes that do not arrive, rising."""
        # Costs are integers, most of them small, and outcomes are many.
        level = self.level[~self.arrives]
        if level.max(initial=0) > 2 * len(level):
            return np.unique(level)
        found = np.zeros(level.max(initial=0) + 1, dtype=np.bool_)
        found[level] = True
        return np.flatnonzero(found)

    @cached_property
    def longest(self) -> int:
        """The largest cost, in units, of an outcome that does not end at a goal."""
        return int(self.costs[-1]) if len(self.costs) else 0

    def reach(self, limit: float) -> int:
        """The largest cost, in units, of an outcome that does not end at a goal: of those below
        `limit`, since no budget up to it has others left.
        """
        if self.longest < limit or self.nature != CERTAIN:
            return self.longest
        below = int(np.searchsorted(self.costs, limit))
        return int(self.costs[below - 1]) if below else 0

    @cached_property
    def farthest(self) -> float:
        """The most that it costs at least to get to a node, in units."""
        return float(self.nodes.cost_from_start.max())

    def entries(self, limit: float) -> float:
        """How many entries the table has for budgets up to the limit."""
        nodes = self.nodes
        left = limit - nodes.cost_from_start - nodes.unavoidable_cost
        return float(np.sum(np.maximum(left, 0.0)))

    def objective(
        self,
        criteria: FloatArray,
        weight: float = 0.0,
        price: float = 1.0,
        *,
        prices: FloatArray | None = None,
        floor: float = 0.0,
        limit: float = math.inf,
        tie: float = 0.0,
    ) -> Objective:
        """What the sweep is to minimise at the start."""
        several = np.empty(0) if prices is None else np.asarray(prices, dtype=np.float64)
        return Objective(
            np.atleast_2d(criteria), several, self.start, weight, price, floor, limit, tie
        )

    @cached_property
    def unlimited(self) -> BudgetModel:
        """What the kernel needs for budgets above every cost of an outcome that does not arrive."""
        return self._split(self.arrives)

    def up_to(self, limit: float) -> BudgetModel:
        """What the kernel needs for budgets up to a limit."""
        if self.nature != CERTAIN:
            # What lies beyond every budget gets its share in its turn, like all others. The kernel
            # sorts the outcomes of a row, so it gets copies.
            rows, slack = self.unlimited.rows, self.slack
            rows = rows._replace(target=rows.target.copy(), probability=rows.probability.copy())
            slack = slack._replace(gap=slack.gap[~self.arrives])
            return self.unlimited._replace(rows=rows, slack=slack, nature=self.nature)
        if self.longest < limit:
            return self.unlimited
        return self._split(self.arrives | (self.level >= limit))

    def beyond(self, limit: float) -> Self:
        """The layout; against nature one in which outcomes that cost the limit or more lead, for 1,
        to nodes of their own behind all others.

        No budget up to the limit has any of it left there, so that these have a closed form at
        every level: the levels that others need are fewer.
        """
        if self.nature == CERTAIN or self.level.max(initial=0) < limit:
            return self
        far = np.flatnonzero(self.level >= limit)
        own, of_far = np.unique(
            np.stack([self.target[far], self.level[far]]), axis=1, return_inverse=True
        )
        nodes, count = self.nodes, own.shape[1]
        of_far = of_far.ravel()
        source = owners(self.node_choices)[owners(self.outcome_start)[far]]
        cost_from_start = np.full(count, np.iinfo(np.int64).max)
        np.minimum.at(cost_from_start, of_far, nodes.cost_from_start[source] + 1)
        target, level = self.target.copy(), self.level.copy()
        target[far], level[far] = self.n + of_far, 1
        behind = Nodes(
            np.append(nodes.block_start, self.n + count),
            np.append(nodes.block_joint, False),
            np.append(nodes.cost_from_start, cost_from_start),
            np.append(nodes.unavoidable_cost, np.full(count, np.iinfo(np.int64).max)),
            np.append(nodes.first_level, np.ones(count, dtype=np.int64)),
            np.append(nodes.value, nodes.value[own[0]] + own[1] - 1),
        )
        node_choices = np.append(self.node_choices, np.full(count, self.node_choices[-1]))
        return replace(self, nodes=behind, node_choices=node_choices, target=target, level=level)

    def _split(self, is_terminal: BoolArray) -> BudgetModel:
        """The outcomes that have a row in the table, and those that end at a goal or beyond every
        budget.
        """
        # Arrays by outcome are what takes memory on large models.
        near, far = ~is_terminal, np.flatnonzero(is_terminal)
        offset = self.level[near]
        if max(len(offset), (int(offset.max(initial=0)) + 1) * self.n) >= 2**31:
            raise ModelError(
                f"{self.n} states with costs of up to {offset.max()} units are too many for this"
                " solver; a coarser grid (--delta, delta=) would help"
            )
        offset *= -self.n
        offset += self.target[near]
        before = self.outcome_start - np.searchsorted(far, self.outcome_start)
        rows = before, offset.astype(np.int32), self.probability[near], self.choice_cost
        owner = np.searchsorted(self.outcome_start, far, side="right") - 1
        columns = self.level[far], self.probability[far], costs_to_go(self.nodes, self.target[far])
        return BudgetModel(
            Rows(*frozen(self.node_choices, *rows)),
            terminal_outcomes(self.node_choices, owner, *columns),
            Nodes(*frozen(*self.nodes)),
            Joint(*frozen(*self.joint)),
        )

    def work(
        self, objective: Objective, max_bytes: float = math.inf, rows: int | None = None
    ) -> Work:
        """What a sweep from level 0 on works on: `rows` levels stay before the window moves, or
        about as many as stay near the processor.
        """
        n, count = self.n, len(objective.criteria)
        n_prices = max(len(objective.prices), 1)
        reach, row = self.reach(objective.limit), 8 * n * n_prices * count
        if rows is None:  # twice those needed, and a few more, so that they seldom move
            most = min(max_bytes // row, min(objective.limit, 2**31) + reach)
            rows = int(max(min(max(WINDOW // row, 2 * reach, reach + LEAST_ROWS), most) - reach, 1))
        return new_work(
            self.nodes, (count, len(self.choice_cost)), reach, (reach + rows) * n_prices
        )


def costs_to_go(nodes: Nodes, target: Array) -> FloatArray:
    """V* of some nodes, 0 at goals."""
    return np.where(target < 0, 0.0, nodes.value[target])


def terminal_outcomes(
    node_choices: IntArray,
    choice: IntArray,
    cost: IntArray,
    probability: FloatArray,
    cost_to_go: FloatArray,
) -> TerminalOutcomes:
    """Outcomes that need no stored value, given the choice of each, rising."""
    distinct, of_outcome = np.unique(choice, return_inverse=True)
    node_start = np.searchsorted(distinct, node_choices)
    outcome_start = offsets_of(of_outcome, len(distinct))
    columns = node_start, distinct, outcome_start, cost, probability, cost_to_go
    return TerminalOutcomes(*frozen(*columns))
