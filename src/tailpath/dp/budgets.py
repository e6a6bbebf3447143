"""The sweep over budgets: least values by (node, remaining budget), one level of integer cost units
after the other.

`U(s, w)` is the least value of node s with budget w, say the least E[(Z - w)+]:

    U(s, w) = min over choices of  sum p U(t, w - c),        and a closed form for w <= 0.

*Criteria* say what is counted; row i is (base, slope, to_go, per_step). With the budget spent, w <=
0, a node is worth

    base + slope * (-w) + to_go * V*(s),        and `per_step` times the expected cost of a choice
                                                is added at every step,

so (0, 1, 1, 0) is the excess E[(Z - w)+], (1, 0, 0, 0) the probability of a cost of w or more, and
(0, 0, 1, 1) the expected cost. Arriving with budget left is worth 0, or what `loss[w, i]` says.
Three backups (`budget_backups.py`):

- *Lexicographic*: the least value of criterion 0; within a relative `tie`, that of criterion 1. All
  others are carried along for the choice taken. Choices may also be held: those of a table.
- *Robust*: the least value of criterion 0, where nature hands out what is not known of the
  probabilities (`Slack`); all others are the least values with what it handed out there. The goal
  is then a node like others, since what arrives gets its share in its turn.
- *Scalarised*: the least `criterion 0 + price * criterion 1`, for several prices side by side.

**Store.** A level w needs the levels w - c, so values live in a window of rows, one for each of the
last levels, more than the largest cost. Those of levels v <= 0 are rows like all others. The index
of node s at level v is `(v - origin) * n + s`, and an outcome is one number, `offset = target -
cost * n`, added to the first index of its level: nothing wraps, and no cost is compared with the
budget. When the window is full, its last rows move to its beginning. Outcomes that arrive, or cost
more than any budget asked, are *terminal* and need no row: they are a `constant` of their choice,
which changes from level to level.

**Order.** Nodes come in blocks such that zero-cost outcomes only lead back. The nodes of a plain
block do not need one another at the same level; those of a joint block do, and are solved together
(`joint.py`). Of a plain block only the nodes *active* are looked at. Up to a budget of
`unavoidable_cost(s)` every run exceeds the budget, the risk-neutral policy is best, and the closed
form of a spent budget still holds, since slope + per_step = to_go: it is put down from
`first_level(s)` on, the first that another node reads. And at level w only nodes with
`cost_from_start + w <= cutoff` can matter, the least cost at which the start can reach them; the
cutoff falls as better values are found.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from tailpath.dp.backup import CERTAIN
from tailpath.dp.budget_backups import (
    backup_joint,
    backup_lexicographic,
    backup_robust,
    backup_scalarised,
    closed_form,
)
from tailpath.dp.budget_model import (
    NEVER,
    NO_LOSS,
    NOTHING_HELD,
    PER_STEP,
    SLOPE,
    BudgetModel,
    Changes,
    Level,
    Nodes,
    Objective,
    Work,
    new_changes,
)
from tailpath.dp.layout import Layout
from tailpath.graph import FloatArray
from tailpath.kernels.jit import Array, kernel, steps_until_pause

#: About so many values are computed before the caller is told.
VALUES_PER_CALL = 2**23
#: What an optimum over budgets takes for each.
TOTAL_BYTES = 24
#: For each node there is room for so many changes of its choice, at first.
CHANGES_PER_NODE = 4
#: Asked before memory is taken, with its bytes, the level reached and the best value so far.
Check = Callable[[int, int, float], None]
#: Told the level reached and the best value so far.
Progress = Callable[[int, float], None]
#: A way to fill a table: `fill`, or the same over several ranks.
Fill = Callable[..., "Filled"]


def begin_sweep(model: BudgetModel, objective: Objective, work: Work, out_value: Array) -> None:
    """Level 0 and all below it, where the budget is spent; every node begins with its first
    choice. `out_value` gets the values of the start, by criterion and price.
    """
    nodes, choices = model.nodes, model.rows.first_row
    n, n_prices = len(nodes.cost_from_start), max(len(objective.prices), 1)
    base, slope, to_go, per_step = objective.criteria.T[:, :, None]
    spent, later = base - slope * np.arange(1 - work.reach, 1), to_go * nodes.value[:n]
    values = work.value.reshape(len(base), -1, n, n_prices)[:, : work.reach]
    np.add(spent[:, :, None, None], later[:, None, :, None], out=values)
    np.multiply(per_step, model.rows.rate, out=work.constant)
    out_value.reshape(-1, n_prices)[:] = base + later[:, objective.start, None]
    work.origin[0] = 1 - work.reach
    work.next_update[:] = 0
    work.n_active[:] = 0
    work.choice[: len(choices) - 1] = choices[:-1]
    work.next_node[:] = nodes.block_start[:-1]


@kernel(inline=True)
def set_constants(
    model: BudgetModel, criteria: Array, loss: Array, w: int, active: Array, work: Work
) -> int:
    """What terminal outcomes, and the steps themselves, add to the choices of active nodes at
    budget w, where that changes; returns the level of the next change.
    """
    node_start, of_choice, outcome_start, cost, probability, cost_to_go = model.terminal
    own, constant = model.rows.rate, work.constant
    next_update = work.next_update
    changes_every_level, earliest = len(loss) > 0, NEVER
    for i in range(len(criteria)):
        changes_every_level |= criteria[i, SLOPE] != 0.0
    for position in range(len(active)):
        node = active[position]
        if next_update[node] <= w:
            then = NEVER
            for e in range(node_start[node], node_start[node + 1]):
                choice = of_choice[e]
                for i in range(len(criteria)):
                    total = criteria[i, PER_STEP] * own[choice]
                    for k in range(outcome_start[e], outcome_start[e + 1]):
                        remaining = w - cost[k]
                        if remaining <= 0:
                            behind = closed_form(criteria, i, remaining, cost_to_go[k])
                            total += probability[k] * behind
                            then = min(then, w + 1 if changes_every_level else cost[k] + 1)
                        elif len(loss) > 0:
                            total += probability[k] * loss[remaining, i]
                            then = w + 1
                    constant[i, choice] = total
            next_update[node] = then
        earliest = min(earliest, next_update[node])
    return earliest


@kernel(inline=True)
def cutoff_of(objective: Objective, best: float) -> float:
    """No level, and no node at a level, beyond this can matter; a little more than the exact bound,
    to be safe from rounding.
    """
    if objective.weight == 0:
        return objective.limit
    return min(objective.limit, (best - objective.floor) / objective.weight * (1 + 1e-12))


@kernel(inline=True)
def update_active(nodes: Nodes, block: int, w: int, room: float, work: Work) -> int:
    """Bring the list of active nodes of a plain block up to date at budget w: the start can reach
    them for `room` or less.

    Those of block b are `active[block_start[b] :][: n_active[b]]`; nodes before `next_node[b]` have
    been active. Returns where they end.
    """
    first, last = nodes.block_start[block], nodes.block_start[block + 1]
    active, cost_from_start = work.active, nodes.cost_from_start
    first_level = nodes.first_level
    end, node = first, work.next_node[block]
    for k in range(first, first + work.n_active[block]):
        if cost_from_start[active[k]] <= room:
            active[end] = active[k]
            end += 1
    while node < last and first_level[node] <= w:
        if cost_from_start[node] <= room:
            active[end] = node
            end += 1
        node += 1
    work.next_node[block], work.n_active[block] = node, end - first
    return int(end)


@kernel
def move_window(n: int, blocks: int, work: Work) -> None:
    """Bring the rows that later levels need to the beginning of the window, of each of some blocks
    of values.
    """
    rows = len(work.value) // (n * blocks)
    for block in range(blocks):
        first = block * rows * n
        for k in range(work.reach * n):
            work.value[first + k] = work.value[first + (rows - work.reach) * n + k]
    work.origin[0] += rows - work.reach


@cache
def _compiled(joints: bool, scalarised: bool, nature: int) -> Any:
    """The flags are constants of the closure: the compiler leaves out the branches not taken, and
    stores each version by its flags.
    """

    def sweep_levels(
        model: BudgetModel,
        objective: Objective,
        loss: Array,
        first_level: int,
        last_level: int,
        best: float,
        held: Changes,
        work: Work,
        out: Changes,
        out_value: Array,
        out_progress: Array,
    ) -> None:
        nodes, criteria = model.nodes, objective.criteria
        n, n_prices = len(nodes.cost_from_start), max(len(objective.prices), 1)
        stride = len(work.value) // (len(criteria) * n_prices)
        block_update = np.zeros(len(nodes.block_joint), dtype=np.int64)
        w, start = max(first_level, 1), objective.start
        n_changes: Any = np.int64(0)
        next_held = np.searchsorted(held.budget, w)
        cutoff = cutoff_of(objective, best)
        while w <= last_level and w <= cutoff and n_changes + n <= len(out.node):
            room = cutoff - w
            if (w - work.origin[0]) * n >= stride:
                move_window(n * n_prices, len(criteria), work)
            level = Level(w, (w - work.origin[0]) * n, stride)
            while next_held < len(held.budget) and held.budget[next_held] == w:
                work.choice[held.node[next_held]] = held.choice[next_held]
                next_held += 1
            for block in range(len(nodes.block_joint)):
                begin, end = nodes.block_start[block], nodes.block_start[block + 1]
                if joints and nodes.block_joint[block]:
                    if nodes.cost_from_start[begin] > room:
                        continue
                    for node in range(begin, end):
                        work.active[node] = node
                    if block_update[block] <= w:
                        block_update[block] = set_constants(
                            model, criteria, loss, w, work.active[begin:end], work
                        )
                    n_changes = backup_joint(model, objective, block, level, work, out, n_changes)
                    continue
                next_node = work.next_node[block]
                end = update_active(nodes, block, w, room, work)
                active = work.active[begin:end]
                if block_update[block] <= w or work.next_node[block] > next_node:
                    block_update[block] = set_constants(model, criteria, loss, w, active, work)
                if nature != CERTAIN:
                    n_changes = backup_robust(
                        model, objective, nature, active, level, work, out, n_changes
                    )
                elif scalarised:
                    backup_scalarised(model, objective, active, level, work)
                else:
                    n_changes = backup_lexicographic(
                        model.rows, nodes, objective, active, level, work, out, n_changes
                    )
            for i in range(len(criteria)):
                for price in range(n_prices):
                    out_value[w - first_level, i * n_prices + price] = work.value[
                        (i * stride + level.start + start) * n_prices + price
                    ]
            best = min(best, objective.weight * w + objective.price * out_value[w - first_level, 0])
            w, cutoff = w + 1, cutoff_of(objective, best)
        out_progress[0], out_progress[1] = w, n_changes
        out_progress[2] = best

    return kernel(sweep_levels)


def _levels_of(model: BudgetModel, objective: Objective) -> Any:
    joints = len(model.joint.inner_target) > 0
    return _compiled(joints, len(objective.prices) > 0, model.nature)


def sweep(
    model: BudgetModel,
    objective: Objective,
    loss: Array,
    first_level: int,
    last_level: int,
    best: float,
    work: Work,
    out: Changes,
    out_value: Array,
    held: Changes = NOTHING_HELD,
) -> tuple[int, int, float]:
    """Raise the budget from one level to another, or until nothing beyond can matter or there is no
    room for more changes. From level 0, where all is a closed form, a table begins. Returns the
    first level not done, how many changes of choice there were, and the best value at the start.

    Changes of choice are put into `out`, and `out_value[w - first_level]` gets the values at the
    start, by criterion and price. Choices to be held come as `held`, by rising budget.
    """
    if first_level == 0:
        begin_sweep(model, objective, work, out_value[0])
        best = min(best, objective.price * out_value[0, 0])
    progress = np.empty(3)
    _levels_of(model, objective)(
        model,
        objective,
        loss,
        first_level,
        last_level,
        best,
        held,
        work,
        out,
        out_value,
        progress,
    )
    return int(progress[0]), int(progress[1]), float(progress[2])


class Filled(NamedTuple):
    """A table: `values` (levels, criteria) or (levels, criteria, prices) of the start, from budget
    0 on; the changes of choice; the least `weight * w + price * U`; and the `residual` and the
    `marginal` factor of `Work`, which the bounds need.
    """

    values: FloatArray
    changes: Changes
    best: float
    residual: float = 0.0
    marginal: float = 0.0


def fill(
    layout: Layout,
    objective: Objective,
    loss: FloatArray = NO_LOSS,
    max_bytes: float = math.inf,
    check: Check = lambda memory, level, best: None,
    progress: Progress = lambda level, best: None,
    held: Changes = NOTHING_HELD,
) -> Filled:
    """One pass from budget 0 to where nothing beyond can matter."""
    n, n_prices = layout.n, max(len(objective.prices), 1)
    size = 8 * (layout.reach(objective.limit) + 1) * n * n_prices * len(objective.criteria)
    check(size, 1, np.inf)
    model, work = layout.up_to(objective.limit), layout.work(objective, max_bytes)
    changes = new_changes(CHANGES_PER_NODE * n)
    columns, values = len(objective.criteria) * n_prices, []
    # The values at the start are copied once, into one array, and an optimum over budgets looks at
    # each.
    level_bytes = 16 * columns + (TOTAL_BYTES if objective.weight > 0 else 0)
    best, more = math.inf, True
    w, n_changes = 0, 0
    while more:
        # An objective without a weight ends at its limit; with one, the sweep does not know
        # beforehand how many levels there are.
        per_call = steps_until_pause(_levels_of(model, objective), VALUES_PER_CALL)
        rows = int(min(max(per_call // n, 16), 4096, max(16.0, objective.limit))) + 1
        last = w + rows - 1
        if n_changes + n > len(changes.node):
            changes = Changes(
                *(np.append(column, np.empty(len(column) + n, column.dtype)) for column in changes)
            )
        check(size + sum(column.nbytes for column in changes) + level_bytes * last, max(w, 1), best)
        value = np.empty((rows, columns))
        free = changes.between(n_changes)
        level, found, best = sweep(model, objective, loss, w, last, best, work, free, value, held)
        values.append(value[: level - w])
        w, n_changes = level, n_changes + found
        more = (w > last and w <= objective.limit) or n_changes + n > len(changes.node)
        progress(w - 1, best)
    table = np.concatenate(values)
    table = table.reshape(len(table), -1, n_prices) if len(objective.prices) else table
    found_changes = changes.between(0, n_changes)
    return Filled(table, found_changes, best, float(work.residual[0]), float(work.marginal[0]))


def node_values(
    layout: Layout, objective: Objective, levels: int, loss: FloatArray = NO_LOSS
) -> Iterator[FloatArray]:
    """The values of all nodes in criterion 0 with budgets 1, 2, ..., up to the limit of the
    objective, as views of shape (levels, n) that the next one overwrites.

    A value is NaN where the start cannot reach the node with that budget left.
    """
    model, work = layout.up_to(objective.limit), layout.work(objective, rows=levels)
    changes = new_changes((levels + 1) * layout.n)
    out_value = np.empty((levels + 1, len(objective.criteria)))
    values = work.value.reshape(len(objective.criteria), -1, layout.n)[0, work.reach :]
    first, w = 0, 1
    while w <= objective.limit:
        last = w + levels - 1
        first, _, _ = sweep(model, objective, loss, first, last, np.inf, work, changes, out_value)
        now = values[: first - w]
        too_late = np.arange(w, first)[:, None] + layout.nodes.cost_from_start > objective.limit
        now[too_late] = np.nan
        w = first
        yield now
