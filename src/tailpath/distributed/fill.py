"""The loop over the levels of a budget table on the part of a rank: `dp.budgets.fill`, over ranks.

Every rank sweeps its own nodes (`dp.budgets.sweep`), level by level, and sends the values that
others need. The best value so far, which ends the sweep, comes from the rank of the start. Values
do not depend on how nodes are distributed: each is one sum over the node's own outcomes.
"""

from __future__ import annotations

import math

import numpy as np

from tailpath.distributed.layout import PartLayout
from tailpath.distributed.ranks import largest
from tailpath.dp.budget_model import NO_LOSS, NOTHING_HELD, Changes, Objective, new_changes
from tailpath.dp.budgets import Check, Filled, Progress, cutoff_of, move_window, sweep
from tailpath.dp.layout import WINDOW
from tailpath.graph import FloatArray

#: Levels between two checks of the memory of all ranks.
LOOK = 64


def fill_part(
    part: PartLayout,
    objective: Objective,
    loss: FloatArray = NO_LOSS,
    max_bytes: float = math.inf,
    check: Check = lambda memory, level, best: None,
    progress: Progress = lambda level, best: None,
    held: Changes = NOTHING_HELD,
) -> Filled:
    """One pass from budget 1 to where nothing beyond can matter; changes are those of own nodes, by
    their positions here.
    """
    comm, criteria = part.halo.comm, len(objective.criteria)
    objective = objective._replace(start=part.start)
    reach = part.reach(objective.limit)
    rows = max(1, reach, int(min(WINDOW, max_bytes) // (8 * max(part.n, 1) * criteria)) - reach)
    if math.isfinite(objective.limit):
        rows = max(min(rows, int(objective.limit)), 1)
    model, work = part.up_to(objective.limit), part.work(objective, rows=rows)
    store, out = work.value.reshape(criteria, -1, part.n), new_changes(2 * part.n)
    spent = part.spent(objective.criteria)
    sweep(model, objective, NO_LOSS, 0, 0, np.inf, work, out, np.empty((1, criteria)))
    values, changes = [spent], [new_changes(0)]
    best, w, stored = objective.price * float(spent[0]), 1, 0
    while w <= min(objective.limit, cutoff_of.plain(objective, best)):
        if w % LOOK == 1:
            check(int(largest(comm, work.value.nbytes + 2 * stored)), w, best)
        if w - work.origin[0] >= store.shape[1]:
            move_window(part.n, criteria, work)
        # No cutoff on the way: the start, which knows it, may be on another rank.
        limit = max(cutoff_of.plain(objective, best), float(w))
        fixed, value = objective._replace(weight=0.0, limit=limit), np.zeros((1, criteria))
        _, found, _ = sweep(model, fixed, loss, w, w, np.inf, work, out, value, held)
        if found:
            new = Changes(*(one.copy() for one in out.between(0, found)))
            stored += sum(column.nbytes for column in new)
            changes.append(new)
        part.halo.exchange(store[:, w - int(work.origin[0])])
        if comm.size > 1:
            comm.Bcast(value, part.overall.home)
        values.append(value[0])
        best = min(best, objective.weight * w + objective.price * float(value[0, 0]))
        progress(w, best)
        w += 1
    columns = Changes(*(np.concatenate(column) for column in zip(*changes)))
    return Filled(np.stack(values), columns, best, largest(comm, float(work.residual[0])))
