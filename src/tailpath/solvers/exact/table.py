"""The table over (state, budget left): filled level by level, kept as small as the answers need.

Values live in a ring that holds no more levels than the largest cost to a state that is no goal, of those that a budget can exceed; only the values
at the start are kept. Decisions are kept for every level, several to a byte, in pieces, until it is known which budget is the largest
one needed; then the rest is dropped, and with it every state that the start cannot reach within that budget. What exceeds the memory allowed
goes to disk (`doors/storage.py`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tailpath.analysis.core import core_of
from tailpath.doors.storage import Pieces, free_disk, zeros
from tailpath.errors import LimitExceededError
from tailpath.kernels.budget import BASE, REST, Aim, cutoff_of, raise_budget
from tailpath.kernels.jit import cores
from tailpath.model.records import Record
from tailpath.model.ssp import SSP, FloatArray
from tailpath.options import Progress
from tailpath.policies.kinds import BudgetPolicy
from tailpath.solvers.exact.layout import Layout

#: A block with fewer outcomes than this is not worth waking the other cores for.
WORTH_THREADS = 100_000
#: A piece of the table of decisions has about this many entries.
PIECE = 2**23
#: A piece with fewer entries than this is small as it is.
WORTH_FOLDING = 2**20
#: The values still needed and the table of decisions may take this much memory; beyond it decisions go to disk, and values are refused.
MAX_BYTES = 4 * 2**30

#: What can be counted (`kernels/budget.py`): E[(Z - w)+], the probability of a cost of w or more, and the expected cost. They may be added up.
EXCESS, LATE, MEAN = np.array([0.0, 1.0, 1.0, 0.0]), np.array([1.0, 0.0, 0.0, 0.0]), np.array([0.0, 0.0, 1.0, 1.0])


@dataclass(frozen=True, eq=False)
class BudgetTable:
    """What the recursion found, in cost units, for budgets w = 0, 1, ..., len(values) - 1.

    `values[w, i]` is the value of the start in account i. `pieces` hold the decisions by level, from level 1 on, and node; those that are narrower
    are folded. `error` bounds the relative error that each level added. `on_disk`: the decisions, unfolded, exceed the memory allowed.
    """

    layout: Layout
    values: FloatArray
    pieces: list[NDArray[Any]]
    error: float
    on_disk: bool

    @property
    def budgets(self) -> NDArray[np.int64]:
        """The budgets of the values."""
        return np.arange(len(self.values))

    @property
    def steps(self) -> NDArray[np.int64]:
        """How many levels of error there are in the value of each budget."""
        return self.budgets


@dataclass(frozen=True, eq=False, repr=False)
class Decisions(Record):
    """The decisions of every budget up to the largest one kept: the arrays that all `BudgetPolicy` of one table share."""

    ssp: SSP
    row: NDArray[np.int32]
    table: NDArray[Any]
    neutral: NDArray[np.int32]
    level: NDArray[np.int64]
    unit: Fraction

    @property
    def budgets(self) -> int:
        """How many budgets there are decisions for, 0 included."""
        return int(self.table.shape[1])

    def policy(self, budget: int) -> BudgetPolicy:
        """The policy that starts with this budget."""
        return BudgetPolicy.trusted(
            ssp=self.ssp, budget=budget, row=self.row, position=self.table, neutral=self.neutral, level=self.level, unit=self.unit
        )

    def counted(self) -> SSP:
        """The model with costs as the policies count them."""
        return counted(self.ssp, self.level, self.unit)

    def __repr__(self) -> str:
        return f"<Decisions for {self.budgets} budgets in {len(self.table)} of {self.ssp.n_states} states>"


def counted(ssp: SSP, level: NDArray[np.int64], unit: Fraction) -> SSP:
    """A model with every cost as a number of units: itself, or what rounding made of it."""
    if ssp.cost_unit == unit and np.array_equal(level, ssp.outcome_level):
        return ssp
    return replace(ssp, outcome_cost=np.asarray(level * float(unit), dtype=np.float64), exact_unit=unit)


def fill_table(
    layout: Layout,
    aim: Aim,
    accounts: FloatArray,
    *,
    loss: FloatArray | None = None,
    keep: bool = True,
    threads: bool | None = None,
    max_bytes: int = MAX_BYTES,
    progress: Progress | None = None,
) -> BudgetTable:
    """Raise the budget until no larger one can matter. `accounts` are the rows of `kernels/budget.py`; without `keep` no decisions are kept.
    `threads` says whether all cores are used, if that is not to be left to the size of the model; the table is the same.

    The smaller the largest budget that may matter, the fewer states the start can reach within it. It is not known before the end; so where it
    pays, it is guessed, and raised if it was too small: a state beyond the guess does not touch the values of the budgets within.
    """
    filling = _Filling(layout, np.atleast_2d(accounts), np.zeros((0, 0)) if loss is None else loss, keep, threads, max_bytes, progress)
    guess = first_guess(layout)
    while aim.weight > 0 and guess < 2 * float(layout.levels.least.max()):
        table, best = filling.run(aim._replace(limit=guess))
        if cutoff_of.plain(aim, best) <= guess:
            return table
        guess = min(cutoff_of.plain(aim, best), 2 * guess)
    return filling.run(aim)[0]


def first_guess(layout: Layout) -> float:
    """A budget beyond which nothing may matter, as far as one can guess: twice the least expected cost. A little less where that spares the values of
    many levels, since a cost that no budget exceeds needs none of them."""
    guess = max(2 * layout.start_value, 16.0)
    reach = layout.reach(guess)
    return float(reach) if reach > 0.75 * guess else guess


@dataclass(frozen=True, eq=False)
class _Filling:
    """What every pass over the levels has in common."""

    layout: Layout
    accounts: FloatArray
    loss: FloatArray
    keep: bool
    threads: bool | None
    max_bytes: int
    progress: Progress | None

    def run(self, aim: Aim) -> tuple[BudgetTable, float]:
        """One pass from budget 1 to the cutoff; also returns the best value at the start."""
        layout, accounts = self.layout, self.accounts
        n, levels, count = layout.n, layout.levels, len(accounts)
        blocks, reached = len(levels.block_joint), int(np.count_nonzero(levels.least <= aim.limit))
        threads = len(levels.target) > WORTH_THREADS * blocks and cores() > 1 if self.threads is None else self.threads
        advance = raise_budget(threads, count > 1, bool(levels.block_joint.any()))
        rows = int(np.clip(PIECE // n, 16, min(4096, max(16.0, aim.limit + 1))))
        reach = layout.reach(aim.limit)
        capacity = min(reach, rows) + 1
        ring = np.zeros((count, capacity * n))
        active, policy = levels.block_start[1:].copy(), levels.node_choices[:-1].copy()
        values = [accounts[None, :, BASE] + accounts[None, :, REST] * layout.start_value]
        folds = in_a_byte(levels.choice_label) if self.keep and n * rows >= WORTH_FOLDING else 1
        room = Pieces(-(-n // folds), levels.choice_label.dtype)
        pieces: list[NDArray[Any]] = []
        best = aim.price * float(values[0][0, 0])
        error, gain_left, w, last, on_disk = 0.0, 0.0, 1, 0, False
        while w > last:
            last = w + rows - 1
            if min(reach, last) >= capacity:
                capacity = min(reach, 2 * last) + 1
                ring = _longer(ring, capacity * n)
            # Pages that are never written take no memory, so only the states within reach count.
            if self.keep or not pieces:
                size = rows * reached * levels.choice_label.itemsize
                folded_on_disk = ring.nbytes + (len(pieces) + 1) * size // folds > self.max_bytes
                on_disk = folded_on_disk or (len(pieces) + 1) * size > self.max_bytes
                self._check_room(ring.nbytes, folded_on_disk * size // folds + on_disk * (len(pieces) + 1) * size, aim, w, best)
                pieces.append(room.take(rows, folded_on_disk))
            value, choice = np.empty((rows, count)), pieces[-1] if folds == 1 else np.zeros((rows, n), dtype=np.uint8)
            end, best, worst, left = advance(
                levels, layout.joint, aim, accounts, self.loss, w, last, best, capacity, ring.ravel(), active, policy, choice, value
            )
            if folds > 1:
                fold(choice, folds, pieces[-1])
            values.append(value[: end - w])
            error, gain_left, w = max(error, worst), max(gain_left, left), end
            if self.progress is not None:
                self.progress(w - 1, best * float(layout.unit))
        per_level = layout.depth * layout.per_block(error, gain_left)
        return BudgetTable(layout, np.concatenate(values), pieces, per_level, on_disk), best

    def _check_room(self, memory: int, disk: int, aim: Aim, w: int, best: float) -> None:
        """Refuse values beyond the memory allowed, and decisions (which are copied once, as they are unfolded) beyond the disk."""
        if memory <= self.max_bytes and disk <= free_disk():
            return
        if aim.weight > 0:
            low = min(best, aim.weight * w + aim.floor)
        else:
            low, best = 0.0, np.inf
        limit = f"{self.max_bytes / 2**30:.3g} GiB" if memory > self.max_bytes else "the disk for temporary files has left"
        raise LimitExceededError(
            f"{self.layout.n} states x {w} cost levels need more than {limit}, and more levels are to come; "
            "a coarser grid (--delta, delta=) or a larger max_bytes would help",
            (low * float(self.layout.unit), best * float(self.layout.unit)),
        )


def in_a_byte(labels: NDArray[Any]) -> int:
    """How many decisions fit a byte: 8, 4, 2 or 1."""
    most = int(labels.max(initial=0))
    return next(folds for folds, end in ((8, 2), (4, 4), (2, 16), (1, math.inf)) if most < end)


def fold(table: NDArray[Any], folds: int, out_folded: NDArray[Any]) -> None:
    """Lay so many equal parts of every row on top of each other, each in its own bits of a byte."""
    width = out_folded.shape[1]
    for part in range(folds):
        columns = table[:, part * width : (part + 1) * width]
        out_folded[:, : columns.shape[1]] |= columns << (part * 8 // folds)


def unfolded(table: NDArray[Any], folds: int, n: int) -> NDArray[Any]:
    """The table of `n` columns that `fold` made one of fewer of."""
    parts = [(table >> (part * 8 // folds)) & (2 ** (8 // folds) - 1) for part in range(folds)]
    return np.concatenate(parts, axis=1)[:, :n]


def _longer(ring: FloatArray, size: int) -> FloatArray:
    """Longer rings. They grow before they ever wrap, so their rows are levels 0, 1, ... in order."""
    longer = np.zeros((len(ring), size))
    longer[:, : ring.shape[1]] = ring
    return longer


def no_decisions(ssp: SSP, neutral: NDArray[np.int32]) -> Decisions:
    """For budget 0 alone: the risk-neutral policy."""
    assert ssp.cost_unit is not None
    row, table = np.full(ssp.n_states, -1, dtype=np.int32), np.zeros((0, 1), dtype=np.uint8)
    return Decisions(ssp, row, table, neutral, ssp.outcome_level, ssp.cost_unit)


def decisions(ssp: SSP, table: BudgetTable, budget: int, neutral: NDArray[np.int32]) -> Decisions:
    """The decisions for budgets up to `budget`, with the risk-neutral choices `neutral`. Empties `table.pieces` on the way, to save memory."""
    layout = table.layout
    nodes = np.flatnonzero(layout.levels.least < budget)
    # By level first: a policy's evaluation goes level by level.
    kept = zeros((budget + 1, len(nodes)), layout.levels.choice_label.dtype, table.on_disk)
    take: Any = slice(0, len(nodes)) if nodes.size and nodes[-1] == len(nodes) - 1 else nodes
    level = 1
    while level <= budget:
        piece = table.pieces.pop(0)
        count = min(len(piece), budget + 1 - level)
        if piece.shape[1] < layout.n:
            piece = unfolded(piece[:count], in_a_byte(layout.levels.choice_label), layout.n)
        kept[level : level + count] = piece[:count, take]
        level += count
    table.pieces.clear()
    row_of_node = np.full(layout.n + 1, -1, dtype=np.int32)
    row_of_node[nodes] = np.arange(len(nodes))
    row = row_of_node[layout.node_of]
    if layout.collapsed[nodes].any():
        row, kept = _spread_components(ssp, layout, row, kept)
    states = np.flatnonzero(row >= 0)
    kept[0, row[states]] = neutral[states] - ssp.state_choices[states]
    kept.flags.writeable = row.flags.writeable = False
    return Decisions(ssp, row, kept.T, neutral, ssp.outcome_level, layout.unit)


def _spread_components(ssp: SSP, layout: Layout, row: NDArray[np.int32], kept: NDArray[Any]) -> tuple[NDArray[np.int32], NDArray[Any]]:
    """Give every state of a free component its own row."""
    states = np.flatnonzero((row >= 0) & layout.collapsed[layout.node_of])
    picked = layout.levels.node_choices[layout.node_of[states]] + kept[:, row[states]].astype(np.int64)
    own = walked(ssp, layout, states, picked)
    row = row.copy()
    row[states] = np.arange(kept.shape[1], kept.shape[1] + len(states))
    return row, np.concatenate([kept, own], axis=1)


def walked(ssp: SSP, layout: Layout, state: NDArray[Any], picked: NDArray[np.int64]) -> NDArray[Any]:
    """What states of free components do, given the choice that leaves theirs (along the last axis): walk, at no cost, to the state that has it.
    Choices are numbered within their state."""
    node = layout.node_of[state]
    own = np.zeros(picked.shape, dtype=np.min_scalar_type(int(np.diff(ssp.state_choices).max())))
    # One walk serves all components at once, so there are as many walks as the most exits that one component uses.
    order = np.argsort(node, kind="stable")
    ends = np.flatnonzero(np.append(np.diff(node[order]) != 0, True)) + 1
    exits = [np.unique(picked[..., members]) for members in np.split(order, ends[:-1])]
    for turn in range(max(len(some) for some in exits)):
        leaving = np.array([some[min(turn, len(some) - 1)] for some in exits])
        walk = core_of(ssp).walks_to(layout.choice[leaving])[state] - ssp.state_choices[state]
        here = np.isin(picked, leaving)
        own[here] = np.broadcast_to(walk, picked.shape)[here]
    return own
