"""The table over only those pairs (state, budget left) that the start can reach, if they are few.

A best budget is a cost at which some policy may arrive, or 0: between two such costs `w + U /
alpha` is concave. So the start needs only these budgets, and every other pair follows from
them. On a chain of 10^5 certain steps there is one such budget and a pair per state, where the full
table has 10^10.

For the sweep (`dp/budgets.py`) pairs are nodes like any other, at level 1: in the order of their
budgets everything that a pair needs is done before it. They take more memory each than an entry of
the full table, and more time, so they are followed only where they are far fewer.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tailpath.analysis.tables import (
    MAX_BYTES,
    BudgetTable,
    ModelLayout,
    fill_table,
    first_guess,
    until_enough,
)
from tailpath.certify.budgets import Ends
from tailpath.dp.budget_model import NEVER, NO_LOSS, NOTHING_HELD, Changes, Nodes, Objective
from tailpath.dp.budgets import Filled, sweep
from tailpath.dp.joint import Joint
from tailpath.dp.layout import Layout
from tailpath.dp.pairs import PairMoves, reach_pairs
from tailpath.errors import LimitExceededError
from tailpath.graph import FloatArray, IntArray, members_of, owners
from tailpath.kernels.jit import frozen
from tailpath.options import Progress

#: Pairs are followed where there are fewer than one for this many entries of the full table.
ENTRIES_PER_PAIR = 1024
#: Full tables of so many entries are filled without looking for pairs.
SURELY_FULL = 2**24
#: What a pair takes beside its outcomes, and what each of these takes, in bytes.
PAIR, OUTCOME = 96, 40


def fill_smaller(
    layout: ModelLayout,
    objective: Objective,
    *,
    pairs: bool | None = None,
    max_bytes: int = MAX_BYTES,
    progress: Progress | None = None,
) -> BudgetTable:
    """The full table (`fill_table`), or the pairs alone where that is smaller or all that fits.
    `pairs` decides which of the two it shall be.
    """

    def few(limit: int) -> int:
        level = 8.0 * layout.n * len(objective.criteria)
        full = layout.entries(limit) + (layout.reach(limit) + 1) * level
        return min(int(full // ENTRIES_PER_PAIR), most) if full >= SURELY_FULL else 0

    each = PAIR + 8 * len(objective.criteria) + OUTCOME * len(layout.target) // layout.n
    most = max_bytes // each

    def search(anyway: bool, why: str) -> BudgetTable | None:
        """The table over pairs; None where they are not few or, `anyway`, do not fit."""

        def run(limit: float) -> tuple[BudgetTable | None, float]:
            some = most if anyway else few(int(limit))
            table = _of_pairs(layout, objective, int(limit), some) if some else None
            if table is None:
                return None, np.inf
            totals = objective.weight * table.budgets + objective.price * table.values[:, 0]
            best = float(np.min(totals))
            if progress is not None:
                progress(int(limit), best * float(layout.unit))
            return replace(table, method=f"{table.method}, {why}"), best

        first = first_guess(layout) if objective.weight > 0 else objective.limit
        return until_enough(objective, first, 2**62 / (len(layout.node_of) + 1), run)

    fewer = "which are fewer than all budgets in all states"
    table = None if pairs is False else search(pairs is True, fewer)
    if table is not None:
        return table
    try:
        return fill_table(layout, objective, max_bytes=max_bytes, progress=progress)
    except LimitExceededError:
        why = f"since all budgets in all states need more than {max_bytes / 2**30:.3g} GiB"
        table = search(True, why) if pairs is None else None
        if table is None:
            raise
        return table


def _of_pairs(
    layout: ModelLayout, objective: Objective, limit: int, most: int
) -> BudgetTable | None:
    """The table for budgets up to a limit, or, without a weight, for the limit alone; None if there
    are more pairs than that.
    """
    width, moves, budgets = layout.n + 1, _moves(layout), np.array([limit])
    if objective.weight > 0:
        at_start = np.zeros(1, dtype=np.int64)
        costs = reach_pairs(moves, layout.start, at_start, 1, 0, limit, most)
        budgets = np.sort(costs[costs % width == layout.n] // width)
        budgets = budgets[budgets > 0]
        if len(costs) > most:
            return None
    key = np.sort(reach_pairs(moves, layout.start, budgets, -1, 1, NEVER, most))
    if len(key) > most:
        return None
    pairs = PairLayout.over(layout, key)
    asked = np.searchsorted(key, budgets * width + layout.start) if len(key) else key

    def again(other: Layout, objective: Objective, loss: FloatArray, held: Changes) -> Filled:
        """The values of the start: with the budget spent, and with those asked for."""
        n, count = len(key), len(objective.criteria)
        changes, out_value = NOTHING_HELD, np.empty((2, count))
        work = other.work(objective._replace(limit=1.0), rows=1)
        alone = objective._replace(start=0, weight=0.0, limit=1.0)
        room = Changes(*(np.empty(other.n, column.dtype) for column in changes))
        sweep(other.up_to(1.0), alone, loss, 0, 1, np.inf, work, room, out_value, held)
        values = work.value.reshape(count, -1)[:, asked].T
        spent = other.spent(objective.criteria)[None, :]
        if n:
            columns = np.arange(n), np.ones(n, dtype=np.int64), work.choice[:n]
            changes = Changes(*(new.astype(old.dtype) for new, old in zip(columns, changes)))
        return Filled(np.concatenate([spent, values]), changes, np.inf, float(work.residual[0]))

    found = again(pairs, objective, NO_LOSS, NOTHING_HELD)
    remaining, node = np.divmod(key, width)
    return BudgetTable(
        layout,
        objective,
        np.append(0, budgets if len(key) else budgets[:0]),
        found.values,
        Changes(node, remaining, pairs.choice[found.changes.choice]),
        limit,
        again,
        method=f"{len(key)} pairs of state and budget that the start can reach",
        swept=(pairs, found.changes),
    )


def _moves(layout: Layout) -> PairMoves:
    nodes, starts = layout.nodes, layout.outcome_start[layout.node_choices]
    block = owners(nodes.block_start)
    joint, here = nodes.block_joint[block], np.arange(layout.n)
    first = np.where(joint, nodes.block_start[block], here)
    end = np.where(joint, nodes.block_start[block + 1], here + 1)
    return PairMoves(*frozen(starts, layout.target, layout.level, first, end))


@dataclass(frozen=True, eq=False)
class PairLayout(Layout):
    """Pairs as nodes of level 1, and behind them those of a layout, worth their closed form: an
    outcome that leaves a budget leads to another pair, one that spends it to such a node.
    """

    of_nodes: ModelLayout

    @classmethod
    def over(cls, layout: ModelLayout, key: IntArray) -> PairLayout:
        width, count, nodes = layout.n + 1, len(key), layout.nodes
        remaining, node = np.divmod(key, width)
        choice, node_choices = members_of(layout.node_choices, node)
        outcome, outcome_start = members_of(layout.outcome_start, choice)
        left = remaining[owners(node_choices)][owners(outcome_start)] - layout.level[outcome]
        target = layout.target[outcome]
        near = (left > 0) & (target >= 0)
        to = np.where(target < 0, -1, count + target)
        to[near] = np.searchsorted(key, left[near] * width + target[near])
        # The members of a joint block with the same budget stand together.
        block = owners(nodes.block_start)[node]
        joint = nodes.block_joint[block]
        other = (np.diff(block) != 0) | (np.diff(remaining) != 0)
        begins = np.append(0, np.flatnonzero((joint[1:] | joint[:-1]) & other) + 1)
        none, behind = np.zeros(count + layout.n, dtype=np.int64), np.full(layout.n, NEVER)
        inner = layout.joint
        if joint.any():
            edges, inner_start = members_of(inner.inner_start, choice)
            columns = inner.inner_target[edges], inner.inner_probability[edges]
            inner = Joint(inner_start, *columns, inner.leave[choice])
        return cls(
            nodes=Nodes(
                np.append(begins, [count, count + layout.n]),
                np.append(joint[begins] if count else False, False),
                none,
                none,
                np.append(none[:count] + 1, behind),
                np.append(np.zeros(count), nodes.value),
            ),
            node_choices=np.append(node_choices, np.full(layout.n, len(choice))),
            choice=choice,
            choice_cost=layout.choice_cost[choice],
            outcome_start=outcome_start,
            target=to.astype(np.int32),
            level=np.where(near, 0, 1 - left),
            probability=layout.probability[outcome],
            joint=inner,
            start=count + layout.start,
            row_size=layout.row_size[choice],
            of_nodes=layout,
        )

    def ends(self) -> Ends:
        """V* of nodes from below and from above; pairs need none."""
        ends, pairs = self.of_nodes.ends(), np.zeros(self.n - self.of_nodes.n)
        low, high = (np.append(pairs, side) for side in (ends.low, ends.high))
        return Ends(low, high, ends.start, ends.error)
