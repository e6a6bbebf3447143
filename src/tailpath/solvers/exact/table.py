"""The table over (state, budget left): filled level by level, kept as small as the answers need.

Values live in a ring that holds no more levels than the largest cost to a state that is no goal, of those that a budget can exceed; only the values
at the start are kept. Decisions are kept of the nodes alive at each level, in pieces, until it is known which budget is the largest one needed; then
the rest is dropped, and with it every state that the start cannot reach within that budget. What exceeds the memory allowed goes to disk
(`doors/storage.py`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tailpath.analysis.core import core_of
from tailpath.doors.storage import Pieces, free_disk, zeros
from tailpath.errors import LimitExceededError
from tailpath.kernels.budget import BASE, REST, Aim, cutoff_of, lay_open, raise_budget
from tailpath.kernels.jit import cores
from tailpath.model.records import Record
from tailpath.model.ssp import SSP, FloatArray
from tailpath.options import Progress
from tailpath.policies.kinds import BudgetPolicy
from tailpath.solvers.exact.layout import Layout

#: A block with fewer outcomes than this to look at, at a level, is not worth waking the other cores for.
WORTH_THREADS = 1_000_000
#: A piece of the table of decisions has room for about this many.
PIECE = 2**23
#: The values still needed and the table of decisions may take this much memory; beyond it decisions go to disk, and values are refused.
MAX_BYTES = 4 * 2**30

#: What can be counted (`kernels/budget.py`): E[(Z - w)+], the probability of a cost of w or more, and the expected cost. They may be added up.
EXCESS, LATE, MEAN = np.array([0.0, 1.0, 1.0, 0.0]), np.array([1.0, 0.0, 0.0, 0.0]), np.array([0.0, 0.0, 1.0, 1.0])


class Piece(NamedTuple):
    """The decisions of some levels, from `first` on: one after the other the labels of the nodes alive, and the `room` at each level, which tells
    which these were."""

    first: int
    room: FloatArray
    label: NDArray[Any]


@dataclass(frozen=True, eq=False)
class BudgetTable:
    """What the recursion found, in cost units, for budgets w = 0, 1, ..., len(values) - 1.

    `values[w, i]` is the value of the start in account i. `error` bounds the relative error that each level added. Beyond `max_bytes` decisions go to
    disk.
    """

    layout: Layout
    values: FloatArray
    pieces: list[Piece]
    error: float
    max_bytes: int

    @property
    def budgets(self) -> NDArray[np.int64]:
        """The budgets of the values."""
        return np.arange(len(self.values))

    @property
    def steps(self) -> NDArray[np.int64]:
        """How many levels of error there are in the value of each budget."""
        return self.budgets

    def lay_open(self, budget: int, column: NDArray[np.int64], out_table: NDArray[Any]) -> None:
        """Write the decisions of budgets from 1 to `budget` to `out_table[w - sure(s), column[s]]`. Pieces vanish on the way, to save memory."""
        levels, place = self.layout.levels, nobody(self.layout)
        while self.pieces and self.pieces[0].first <= budget:
            piece = self.pieces.pop(0)
            last = min(piece.first + len(piece.room) - 1, budget)
            lay_open(levels, piece.first, last, piece.room, *place, piece.label, column, out_table)
        self.pieces.clear()


def nobody(layout: Layout) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.int64]]:
    """No node has begun: room for the list of those alive, the first of each block that has not begun, and how many are alive in it."""
    blocks = layout.levels.block_start
    return np.empty(layout.n, dtype=np.int32), blocks[:-1].copy(), np.zeros(len(blocks) - 1, dtype=np.int64)


@dataclass(frozen=True, eq=False, repr=False)
class Decisions(Record):
    """The decisions of every budget up to the largest one kept: the arrays that all `BudgetPolicy` of one table share. There are `budgets` of
    them, 0 included."""

    ssp: SSP
    budgets: int
    row: NDArray[np.int32]
    sure: NDArray[np.int64]
    table: NDArray[Any]
    neutral: NDArray[np.int32]
    level: NDArray[np.int64]
    unit: Fraction

    def policy(self, budget: int) -> BudgetPolicy:
        """The policy that starts with this budget."""
        return BudgetPolicy.trusted(
            ssp=self.ssp,
            budget=budget,
            row=self.row,
            position=self.table,
            neutral=self.neutral,
            level=self.level,
            unit=self.unit,
            sure=self.sure,
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
    """A budget beyond which nothing may matter, as far as one can guess: twice the least expected cost, or little more than that where budgets are
    left out, since a low guess is cheap there. A little less where that spares the values of many levels: a cost that no budget exceeds needs none
    of them."""
    guess = max((1.25 if layout.levels.sure.any() else 2.0) * layout.start_value, 16.0)
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
        threads = layout.at_a_time(aim.limit) > WORTH_THREADS and cores() > 1 if self.threads is None else self.threads
        advance = raise_budget(threads, count > 1, bool(levels.block_joint.any()))
        rows = int(np.clip(PIECE // n, 16, min(4096, max(16.0, aim.limit + 1))))
        reach = layout.reach(aim.limit)
        capacity = min(reach, rows) + 1
        ring = np.zeros((count, capacity * n))
        place, policy = nobody(layout), levels.node_choices[:-1].copy()
        values = [accounts[None, :, BASE] + accounts[None, :, REST] * layout.start_value]
        room, nowhere = Pieces(1, levels.choice_label.dtype), np.empty(0 if self.keep else rows * n, dtype=levels.choice_label.dtype)
        pieces: list[Piece] = []
        best = aim.price * float(values[0][0, 0])
        error, gain_left, w, last, kept = 0.0, 0.0, 1, 0, 0
        while w > last:
            last = w + rows - 1
            if min(reach, last) >= capacity:
                capacity = min(reach, 2 * last) + 1
                ring = _longer(ring, capacity * n)
            # Pages that are never written take no memory, so only the nodes that will be alive count.
            most = rows * int(np.count_nonzero((levels.begin <= last) & (levels.least <= aim.limit - w)))
            on_disk = self.keep and ring.nbytes + (kept + most) * levels.choice_label.itemsize > self.max_bytes
            self._check_room(ring.nbytes, on_disk * most * levels.choice_label.itemsize, aim, w, best)
            label = room.take(rows * n, on_disk).reshape(-1) if self.keep else nowhere
            value, rooms = np.empty((rows, count)), np.empty(rows)
            end, used, best, worst, left = advance(
                levels, layout.joint, aim, accounts, self.loss, w, last, best, capacity, ring.ravel(), *place, policy, label, rooms, value
            )
            if self.keep:
                pieces.append(Piece(w, rooms[: end - w], label[:used]))
                kept += used
            values.append(value[: end - w])
            error, gain_left, w = max(error, worst), max(gain_left, left), end
            if self.progress is not None:
                self.progress(w - 1, best * float(layout.unit))
        per_level = layout.depth * layout.per_block(error, gain_left)
        return BudgetTable(layout, np.concatenate(values), pieces, per_level, self.max_bytes), best

    def _check_room(self, memory: int, disk: int, aim: Aim, w: int, best: float) -> None:
        """Refuse values beyond the memory allowed, and decisions beyond the disk."""
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


def _longer(ring: FloatArray, size: int) -> FloatArray:
    """Longer rings. They grow before they ever wrap, so their rows are levels 0, 1, ... in order."""
    longer = np.zeros((len(ring), size))
    longer[:, : ring.shape[1]] = ring
    return longer


def no_decisions(ssp: SSP, neutral: NDArray[np.int32]) -> Decisions:
    """For budget 0 alone: the risk-neutral policy."""
    assert ssp.cost_unit is not None
    row, table = np.full(ssp.n_states, -1, dtype=np.int32), np.zeros((0, 1), dtype=np.uint8)
    return Decisions(ssp, 1, row, np.zeros(0, dtype=np.int64), table, neutral, ssp.outcome_level, ssp.cost_unit)


def decisions(ssp: SSP, table: BudgetTable, budget: int, neutral: NDArray[np.int32]) -> Decisions:
    """The decisions for budgets up to `budget`, with the risk-neutral choices `neutral`. Empties `table.pieces` on the way, to save memory."""
    layout, levels = table.layout, table.layout.levels
    nodes = np.flatnonzero(levels.least + levels.sure < budget)
    column = np.full(layout.n + 1, -1, dtype=np.int64)
    column[nodes] = np.arange(len(nodes))
    # By level first: a policy's evaluation goes level by level.
    shape = (1 + int(np.max((budget - levels.least - levels.sure)[nodes], initial=0)), len(nodes))
    kept = zeros(shape, levels.choice_label.dtype, shape[0] * shape[1] * levels.choice_label.itemsize > table.max_bytes)
    table.lay_open(budget, column, kept)
    row, sure = column[layout.node_of].astype(np.int32), levels.sure[nodes]
    if layout.collapsed[nodes].any():
        row, sure, kept = _spread_components(ssp, layout, row, sure, kept)
    states = np.flatnonzero(row >= 0)
    kept[0, row[states]] = neutral[states] - ssp.state_choices[states]
    kept.flags.writeable = row.flags.writeable = sure.flags.writeable = False
    return Decisions(ssp, budget + 1, row, sure, kept.T, neutral, ssp.outcome_level, layout.unit)


def _spread_components(
    ssp: SSP, layout: Layout, row: NDArray[np.int32], sure: NDArray[np.int64], kept: NDArray[Any]
) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[Any]]:
    """Give every state of a free component its own row."""
    states = np.flatnonzero((row >= 0) & layout.collapsed[layout.node_of])
    picked = layout.levels.node_choices[layout.node_of[states]] + kept[:, row[states]].astype(np.int64)
    own = walked(ssp, layout, states, picked)
    sure, row = np.append(sure, sure[row[states]]), row.copy()
    row[states] = np.arange(kept.shape[1], kept.shape[1] + len(states))
    return row, sure, np.concatenate([kept, own], axis=1)


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
