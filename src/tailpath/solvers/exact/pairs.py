"""The table over those pairs (state, budget left) alone that the start can reach, where they are
few.

A best budget is a cost at which some policy may arrive, or 0: between two such costs `w + U /
alpha` is concave. So the start is asked for these budgets only, and every other pair follows from
them. On a chain of 10^5 sure steps there is one such budget and a pair per state, where the full
table has 10^10.

To the sweep (`dp/budgets.py`) pairs are nodes like others, at one level: in the order of their
budgets everything that a pair needs is done before it. They take more memory each than an entry of
the full table, and more time; so they are followed only where they are that much fewer, and nobody
looks for them where the full table is small. A short look along the first costs tells which is to
be expected.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from tailpath.dp.budget_model import (
    NEVER,
    NO_LOSS,
    NOTHING_HELD,
    BudgetModel,
    Changes,
    ChoiceTransitions,
    Nodes,
    Objective,
    new_changes,
    new_work,
)
from tailpath.dp.budgets import Fill, Filled, cutoff_of, fill, sweep
from tailpath.dp.joint import Joint
from tailpath.dp.layout import Layout, costs_to_go, terminal_outcomes
from tailpath.dp.pairs import PairMoves, reach_pairs
from tailpath.errors import LimitExceededError
from tailpath.graph import FloatArray, IntArray, members_of, offsets_of, owners
from tailpath.kernels.jit import frozen
from tailpath.options import Progress
from tailpath.solvers.exact.layout import ModelLayout
from tailpath.solvers.exact.table import (
    MAX_BYTES,
    BudgetTable,
    fill_table,
    first_guess,
)

#: Up to this many bytes the full table is filled without looking for pairs.
SMALL = 2**24
#: What a pair takes beside its outcomes, and what each of these takes, in bytes.
PAIR, OUTCOME = 96, 40
#: Where nothing speaks for pairs, they must be fewer than one for this many bytes of the full
#: table.
UNLIKELY = 1024
#: The cost up to which the start reaches no more pairs of node and cost than this tells how dense
#: they lie.
LOOK = 2**15


def fill_smaller(
    layout: ModelLayout,
    objective: Objective,
    *,
    pairs: bool | None = None,
    max_bytes: int = MAX_BYTES,
    progress: Progress | None = None,
    way: Fill = fill,
) -> BudgetTable:
    """The full table (`fill_table`), or the pairs alone where that is smaller or all that fits.
    `pairs` decides which of the two it shall be; `way` is how the full table is filled.
    """
    search = _Pairs(layout, objective, max_bytes, progress)
    table = None if pairs is False else search.run(anyway=pairs is True)
    if table is not None:
        return replace(
            table, method=f"{table.method}, which are fewer than all budgets in all states"
        )
    try:
        return fill_table(layout, objective, max_bytes=max_bytes, progress=progress, way=way)
    except LimitExceededError:
        table = search.run(anyway=True) if pairs is None else None
        if table is None:
            raise
        why = f"since all budgets in all states need more than {max_bytes / 2**30:.3g} GiB"
        return replace(table, method=f"{table.method}, {why}")


class _Pairs:
    def __init__(
        self, layout: ModelLayout, objective: Objective, max_bytes: int, progress: Progress | None
    ) -> None:
        self.layout, self.objective = layout, objective
        self.max_bytes, self.progress = max_bytes, progress
        self.pair_bytes = (
            PAIR + 8 * len(objective.criteria) + OUTCOME * len(layout.target) // layout.n
        )

    def run(self, anyway: bool) -> BudgetTable | None:
        """The table over pairs, or None where the full one is smaller; `anyway`: if they fit at
        all. Without a weight the start is asked for the limit of the objective alone.
        """
        layout, objective = self.layout, self.objective
        limit = first_guess(layout) if objective.weight > 0 else objective.limit
        while limit * (len(layout.node_of) + 1) < 2**62:
            most = self.max_bytes // self.pair_bytes if anyway else self._most(int(limit))
            found = self._found(int(limit), most) if most else None
            if found is None:
                return None
            table = self._solved(int(limit), *found)
            totals = objective.weight * table.budgets + objective.price * table.values[:, 0]
            best = float(np.min(totals))
            if self.progress is not None:
                self.progress(int(limit), best * float(layout.unit))
            if cutoff_of.plain(objective, best) <= limit:
                return table
            limit = min(cutoff_of.plain(objective, best), 2 * limit)
        return None

    def _most(self, limit: int) -> int:
        """How many pairs are better than the full table; 0 where that is small."""
        layout = self.layout
        level = 8.0 * layout.n * len(self.objective.criteria)
        full = layout.entries(limit) + (layout.reach(limit) + 1) * level
        if full < SMALL:
            return 0
        seen, end = 1, 0
        horizon = 16
        while end < limit and (pairs := self._costs(min(horizon, limit), LOOK)) is not None:
            seen, end = len(pairs), min(horizon, limit)
            horizon = 2 * horizon
        entries = np.sum(np.maximum(end + 1 - layout.nodes.cost_from_start, 0), dtype=np.float64)
        sparse = seen * self.pair_bytes < entries
        instead_of_table = full // (self.pair_bytes if sparse else UNLIKELY)
        return int(min(instead_of_table, self.max_bytes // self.pair_bytes))

    @property
    def _moves(self) -> PairMoves:
        layout, nodes = self.layout, self.layout.nodes
        first, end = np.arange(layout.n), np.arange(1, layout.n + 1)
        for block in np.flatnonzero(nodes.block_joint).tolist():
            members = slice(nodes.block_start[block], nodes.block_start[block + 1])
            first[members], end[members] = members.start, members.stop
        return PairMoves(
            *frozen(
                layout.outcome_start[layout.node_choices], layout.target, layout.level, first, end
            )
        )

    def _costs(self, limit: int, most: int) -> IntArray | None:
        """The pairs of node and cost so far, by number, up to the limit; None if there are too
        many.
        """
        pairs: IntArray = reach_pairs(
            self._moves, self.layout.start, np.zeros(1, dtype=np.int64), 1, 0, limit, most
        )
        return None if len(pairs) > most else pairs

    def _found(self, limit: int, most: int) -> tuple[IntArray, IntArray] | None:
        """The budgets to ask for, and the pairs, by number; None if there are too many."""
        layout, budgets = self.layout, np.array([limit])
        if self.objective.weight > 0:
            costs = self._costs(limit, most)
            if costs is None:
                return None
            budgets = np.sort(costs[costs % (layout.n + 1) == layout.n] // (layout.n + 1))
            budgets = budgets[budgets > 0]
        pairs = reach_pairs(self._moves, layout.start, budgets, -1, 1, NEVER, most)
        return None if len(pairs) > most else (budgets, np.sort(pairs))

    def _solved(self, limit: int, budgets: IntArray, key: IntArray) -> BudgetTable:
        budgets = np.append(0, budgets if len(key) else budgets[:0])
        again = partial(_filled, key, budgets)
        found = again(self.layout, self.objective, NO_LOSS, NOTHING_HELD)
        method = f"{len(key)} pairs of state and budget that the start can get to"
        columns = budgets, found.values, found.changes, limit, found.residual
        return BudgetTable(self.layout, self.objective, *columns, again, NO_LOSS, method)


def _filled(
    key: IntArray,
    budgets: IntArray,
    layout: Layout,
    objective: Objective,
    loss: FloatArray,
    held: Changes,
) -> Filled:
    """The values of the start with some budgets, 0 first, from those of all pairs; the choice of
    every pair is a change.
    """
    count, width = len(objective.criteria), layout.n + 1
    spent = layout.spent(objective.criteria)[None, :]
    remaining, node = np.divmod(key, width)
    if not len(key):  # every run arrives at no cost
        return Filled(spent, Changes(node, remaining, remaining), np.inf)
    model, choice = _as_model(layout, key)
    if objective.held:
        own = model.transitions.node_choices[:-1] + held.choice - layout.node_choices[node]
        held = Changes(np.arange(len(key), dtype=np.int32), np.ones_like(key), own.astype(np.int32))
    work = new_work(model.nodes, (count, len(choice)), reach=0, rows=1)
    alone = objective._replace(start=0, weight=0.0, limit=1.0)
    out, out_value = new_changes(len(key)), np.empty((2, count))
    sweep(model, alone, loss, 0, 1, np.inf, work, out, out_value, held)
    asked = np.searchsorted(key, budgets[1:] * width + layout.start)
    values = work.value.reshape(count, len(key))[:, asked].T
    changes = Changes(node, remaining, choice[work.choice])
    return Filled(np.concatenate([spent, values]), changes, np.inf, float(work.residual[0]))


def _as_model(layout: Layout, key: IntArray) -> tuple[BudgetModel, IntArray]:
    """Pairs as the nodes of level 1, and the choice of the layout behind each of theirs. An outcome
    that leaves a budget leads to another pair; where it spends more, it costs that beyond the
    level.
    """
    width, count = layout.n + 1, len(key)
    nodes = layout.nodes
    remaining, node = np.divmod(key, width)
    choice, node_choices = members_of(layout.node_choices, node)
    outcome, outcome_start = members_of(layout.outcome_start, choice)
    owner = owners(outcome_start)
    budget_after = remaining[owners(node_choices)][owner] - layout.level[outcome]
    target, probability = layout.target[outcome], layout.probability[outcome]
    near = np.flatnonzero((budget_after > 0) & (target >= 0))
    spent = np.flatnonzero(budget_after <= 0)
    transitions = ChoiceTransitions(
        node_choices,
        offsets_of(owner[near], len(choice)),
        np.searchsorted(key, budget_after[near] * width + target[near]).astype(np.int32),
        probability[near],
        layout.choice_cost[choice],
    )
    terminal = 1 - budget_after[spent], probability[spent], costs_to_go(nodes, target[spent])
    # The members of a joint block with the same budget stand together.
    block = owners(nodes.block_start)[node]
    joint = nodes.block_joint[block]
    other = (np.diff(block) != 0) | (np.diff(remaining) != 0)
    begins = np.append(0, np.flatnonzero((joint[1:] | joint[:-1]) & other) + 1)
    inner, inner_start = (
        members_of(layout.joint.inner_start, choice)
        if joint.any()
        else (np.zeros(0, dtype=np.int64), np.zeros(1))
    )
    none, one = np.zeros(count, dtype=np.int64), np.ones(count, dtype=np.int64)
    model = BudgetModel(
        ChoiceTransitions(*frozen(*transitions)),
        terminal_outcomes(node_choices, owner[spent], *terminal),
        Nodes(*frozen(np.append(begins, count), joint[begins], none, none, one, np.zeros(count))),
        Joint(
            *frozen(
                inner_start.astype(np.int64),
                layout.joint.inner_target[inner],
                layout.joint.inner_probability[inner],
                layout.joint.leave[choice] if joint.any() else layout.joint.leave,
            )
        ),
    )
    return model, choice
