"""Models laid out as a rectangle, and the tables over budgets that this makes fast (`kernels/padded.py`).

Most models fit: few outcomes to a choice, and no cycles of free moves. Where one does not, `padded_layout` returns None, and the tables of
`solvers/exact` serve. A window of rows moves over the levels: below the level to be done it holds as many as the largest cost needs, and when
it is full these move to its beginning.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tailpath.analysis.core import core_of
from tailpath.kernels.budget import BASE, REST, SLOPE
from tailpath.kernels.jit import cores
from tailpath.kernels.lanes import LANES
from tailpath.kernels.padded import Padded, raise_lexicographic, raise_priced
from tailpath.kernels.rounding import SAME_VALUE
from tailpath.model.ragged import offsets_of, owners
from tailpath.model.ssp import SSP, FloatArray
from tailpath.options import Progress
from tailpath.policies.budget import BudgetPolicy
from tailpath.solvers.exact.layout import Layout, layout_of, nearest_of
from tailpath.solvers.exact.table import MAX_BYTES, BudgetTable, Changes, budget_policy, fill_table
from tailpath.solvers.expectation import ExpectedSolution

#: How many outcomes a choice may have, and how many times as large as its outcomes a rectangle may be.
WIDTHS, MOST_PADDING = (2, 3, 4, 5, 6, 8, 12, 16), 3
#: A window has about this many bytes, so that it stays near the processor, and at least twice the rows that the largest cost needs.
WINDOW, FEWEST_ROWS = 2**19, 8
#: A block with fewer outcomes than this is not worth waking the other cores for.
WORTH_THREADS = 100_000
#: Beyond every cost.
NONE_DEAR = 2**31 - 1


@dataclass(frozen=True, eq=False)
class PaddedLayout:
    """The rectangle, and what it was made of. `reach` is the largest cost in it, `limit` the largest budget it serves.

    `threads`: all cores are used, which changes nothing but the time.
    """

    layout: Layout
    padded: Padded
    reach: int
    limit: int
    threads: bool

    @property
    def width(self) -> int:
        """How many outcomes every choice has."""
        return int(self.padded.offset.shape[1])

    @property
    def per_level(self) -> float:
        """What one level adds to the relative error."""
        return self.layout.depth * self.layout.rounding


def _changes(choices: NDArray[Any]) -> Changes:
    """Where the rows of a table of labels, by level from 0 on, change."""
    level, node = np.nonzero(choices[1:] != choices[:-1])
    return Changes(node.astype(np.int32), level + 1, choices[level + 1, node])


def padded_layout(ssp: SSP, expected: ExpectedSolution, limit: int) -> PaddedLayout | None:
    """The rectangle of a model for budgets up to `limit`; None if it does not fit one. The last one made is kept with the model."""
    kept: dict[str, tuple[int, int, PaddedLayout | None]] = ssp.kept("padded", dict)
    last_limit, last_dear, found = kept.get("last", (-1, -1, None))
    if limit == last_limit:
        return found
    layout = layout_of(ssp, expected, goal_node=True)
    costs = layout.levels.segment_level
    dear = int(np.min(costs, where=costs >= limit, initial=NONE_DEAR))
    if dear == last_dear:
        found = found and replace(found, limit=limit)
    else:
        made = _padded(layout, expected, dear)
        found = made and PaddedLayout(layout, *made, limit, _worth_threads(made[0]))
    kept["last"] = (limit, dear, found)
    return found


def _worth_threads(padded: Padded) -> bool:
    """Whether a block has enough to do for all cores."""
    return padded.offset.size > WORTH_THREADS * len(padded.block_start) and cores() > 1


def _padded(layout: Layout, expected: ExpectedSolution, dear: int) -> tuple[Padded, int] | None:
    """Outcomes that cost `dear` or more are far; also returns the largest cost of the others."""
    levels, n, count = layout.levels, layout.n, len(layout.choice)
    of_segment = owners(levels.choice_segments.astype(np.int64))
    segment = owners(levels.segment_outcomes.astype(np.int64))
    cost = levels.segment_level[segment].astype(np.int64)
    ends, owner = levels.target == n - 1, of_segment[segment]
    last, near = np.flatnonzero(ends & (cost < dear)), np.flatnonzero(~ends & (cost < dear))
    last_choice, last_cost, last_mass = owner[last], cost[last], levels.probability[last]
    owner, cost = owner[near], cost[near]
    sizes = np.bincount(owner, minlength=count)
    width = next((width for width in WIDTHS if width >= sizes.max(initial=0)), 0)
    reach = int(cost.max(initial=0))
    if levels.block_joint.any() or width * count > MOST_PADDING * max(len(segment), 1) or (reach + 1) * n >= 2**31 or not width:
        return None
    place = np.arange(len(owner)) - offsets_of(owner, count)[owner]
    offset = np.full((count, width), -1, dtype=np.int32)
    probability = np.zeros((count, width))
    offset[owner, place] = levels.target[near].astype(np.int64) - cost * n
    probability[owner, place] = levels.probability[near]
    far = levels.segment_level >= dear
    mass = np.where(far, levels.segment_mass, 0.0)
    beyond = mass * np.where(far, levels.segment_level - dear, 0)
    worth = np.zeros(n)
    inside = layout.node_of >= 0
    worth[layout.node_of[inside]] = expected.value[inside] / float(layout.unit)
    padded = Padded(
        block_start=levels.block_start,
        least=levels.least,
        nearest=_nearest(layout),
        worth=worth,
        node_choices=levels.node_choices,
        choice_label=levels.choice_label,
        choice_cost=levels.choice_cost,
        offset=offset,
        probability=probability,
        dear=dear,
        far_mass=np.bincount(of_segment, mass, count),
        far_mean=np.bincount(of_segment, np.where(far, levels.segment_mean, 0.0), count),
        far_excess=np.bincount(of_segment, beyond, count),
        last_choice=last_choice,
        last_cost=last_cost,
        last_mass=last_mass,
    )
    return padded, max(reach, 1)


def _nearest(layout: Layout) -> NDArray[np.int64]:
    """The least cost, in units, at which each node can arrive; 0 for the goals, which are the last one."""
    core = core_of(layout.expected.ssp)
    nearest = np.zeros(layout.n, dtype=np.int64)
    states = np.flatnonzero(layout.node_of >= 0)
    nearest[layout.node_of[states]] = nearest_of(core)[core.node_of[states]]
    return nearest


def _spent(model: PaddedLayout, accounts: FloatArray) -> FloatArray:
    """By account the rows of the levels with the budget spent, from the lowest that is needed up to 0."""
    base, slope, rest = (accounts[:, column, None, None] for column in (BASE, SLOPE, REST))
    rows: FloatArray = base + rest * model.padded.worth
    return rows - slope * np.arange(1 - model.reach, 1)[:, None] if slope.any() else rows


def _rows(model: PaddedLayout, levels: int, lanes: int) -> int:
    """How many levels are done before the window moves."""
    return min(max(WINDOW // (8 * model.layout.n * lanes), 2 * model.reach, FEWEST_ROWS), max(levels, 1))


def _changing(padded: Padded, accounts: FloatArray, levels: int) -> int:
    """The last level at which what is apart from the rectangle changes; level 1 is where it is first summed up."""
    if padded.dear < NONE_DEAR and accounts[:, SLOPE].any():
        return levels
    return 1 + int(padded.last_cost.max(initial=0))


def _common(model: PaddedLayout, padded: Padded, accounts: FloatArray, levels: int) -> tuple[Any, ...]:
    """What both kernels are told first, with room for what every choice is worth apart from the rectangle."""
    own = np.empty((2, len(padded.choice_cost)))
    return padded, accounts, model.layout.start, model.limit, own, _changing(padded, accounts, levels)


def _neutral(model: PaddedLayout, levels: int) -> NDArray[Any]:
    """The decisions by level from 0 on, all risk-neutral: each node's first choice, which stays where no other is looked at."""
    padded = model.padded
    choices = np.zeros((levels + 1, model.layout.n), dtype=padded.choice_label.dtype)
    choices[:, :-1] = padded.choice_label[padded.node_choices[:-2]]
    return choices


def needed_bytes(model: PaddedLayout, levels: int, lanes: int) -> int:
    """The size of the window."""
    return 8 * model.layout.n * lanes * (model.reach + _rows(model, levels, lanes))


def lexicographic_table(
    ssp: SSP,
    expected: ExpectedSolution,
    accounts: FloatArray,
    levels: int,
    max_bytes: int = MAX_BYTES,
    progress: Progress | None = None,
) -> BudgetTable:
    """The table for budgets up to `levels`, with decisions: the least of account 0, and among ties of account 1. In a rectangle if it fits one."""
    model = padded_layout(ssp, expected, levels)
    if model is not None and needed_bytes(model, levels, 2) + levels * model.layout.n * 8 <= max_bytes:
        return fill_lexicographic(model, accounts, levels, progress)
    layout = layout_of(ssp, expected)
    return fill_table(layout, layout.aim(limit=float(levels), tie=SAME_VALUE), accounts, max_bytes=max_bytes, progress=progress)


def fill_lexicographic(
    model: PaddedLayout, accounts: FloatArray, levels: int, progress: Progress | None = None, *, rows: int | None = None
) -> BudgetTable:
    """The table for budgets 1 to `levels`: the least of account 0, and among ties of account 1. The window moves after every `rows` levels."""
    layout, padded = model.layout, model.padded
    rows = rows or _rows(model, levels, 1)
    first, second = tables = np.empty((2, model.reach + rows, layout.n))
    tables[:, : model.reach] = _spent(model, accounts)
    choices = _neutral(model, levels)
    # With the budget sure to be exceeded the excess is V* - w, whose digits may cancel; lateness is 1, at all levels.
    if accounts[0, SLOPE] != 0:
        padded = padded._replace(nearest=np.zeros_like(padded.nearest))
    active, worth = padded.block_start[1:].copy(), np.empty(len(padded.choice_cost))
    values = np.empty((levels + 1, 2))
    values[0] = accounts[:, BASE] + accounts[:, REST] * layout.start_value
    common = _common(model, padded, accounts, levels)
    settle = raise_lexicographic(model.width, model.threads)
    for begin in range(1, levels + 1, rows):
        end = min(begin + rows, levels + 1)
        tables[:, model.reach :] = tables[:, model.reach - 1 : model.reach]
        room = worth, first.ravel(), second.ravel(), choices[begin:end], values[begin:end]
        settle(*common, begin, end, model.reach - begin, active, SAME_VALUE, *room)
        if end <= levels:
            tables[:, : model.reach] = tables[:, rows : rows + model.reach]
        if progress is not None:
            progress(end - 1, float(values[end - 1, 0]) * float(layout.unit))
    return BudgetTable(layout, values, _changes(choices), model.per_level)


def policy_in(ssp: SSP, model: SSP, table: BudgetTable, budget: int, expected: ExpectedSolution) -> BudgetPolicy:
    """The policy of a table made for `model`, the same but for fines, on the model itself."""
    return replace(budget_policy(model, table.layout, table.changes, budget, expected.choices), ssp=ssp, level=ssp.outcome_level)


def fill_priced(model: PaddedLayout, accounts: FloatArray, prices: FloatArray, levels: int, *, keep: bool = False) -> BudgetTable:
    """The table for up to eight prices: `values[w, account, lane]`. With `keep`, the decisions for the first price, too."""
    layout, padded, count = model.layout, model.padded, len(prices)
    prices = np.append(prices, np.full(LANES - count, prices[-1]))
    rows = _rows(model, levels, 2 * LANES)
    table = np.zeros((model.reach + rows, layout.n, 2, LANES))
    table[: model.reach] = _spent(model, accounts).transpose(1, 2, 0)[..., None]
    active = padded.block_start[1:].copy()
    choices = _neutral(model, levels if keep else -1)
    values = np.empty((levels + 1, 2 * LANES))
    values[0] = np.repeat(accounts[:, BASE] + accounts[:, REST] * layout.start_value, LANES)
    common = _common(model, padded, accounts, levels)
    settle = raise_priced(model.width, model.threads)
    for begin in range(1, levels + 1, rows):
        end = min(begin + rows, levels + 1)
        settle(*common, begin, end, model.reach - begin, active, prices, table.reshape(-1), choices[begin:end], values[begin:end])
        table[: model.reach] = table[rows : rows + model.reach]
    return BudgetTable(layout, values.reshape(levels + 1, 2, LANES)[:, :, :count], _changes(choices), model.per_level)
