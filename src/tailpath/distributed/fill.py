"""The loop over the levels of a budget table on the part of a rank: `dp.budgets.fill`, over ranks.

Every rank sweeps its own nodes (`dp.budgets.sweep`), level by level, and passes on what others need
of them. The best value so far, which ends the sweep, is that of the rank of the start.
Values do not depend on how nodes are shared out: a node's is one sum over its own outcomes.
"""

from __future__ import annotations

import math

import numpy as np

from tailpath.distributed.layout import PartLayout
from tailpath.distributed.ranks import Checkpoints, PassCheckpoints, largest
from tailpath.dp.budget_model import NO_LOSS, NOTHING_HELD, Changes, Objective, new_changes
from tailpath.dp.budgets import Check, Filled, Progress, cutoff_of, move_window, sweep
from tailpath.dp.layout import WINDOW
from tailpath.graph import FloatArray

#: Levels between two looks at the memory of all ranks.
LOOK = 64


class Filling:
    """One pass over the levels on the part of a rank; all that changes is saved and read again."""

    def __init__(self, part: PartLayout, objective: Objective, max_bytes: float) -> None:
        self.part, self.objective = part, objective._replace(start=part.start)
        reach, row = part.reach(objective.limit), 8 * max(part.n, 1) * len(objective.criteria)
        rows = max(1, reach, int(min(WINDOW, max_bytes) // row) - reach)
        if math.isfinite(objective.limit):
            rows = max(min(rows, int(objective.limit)), 1)
        self.model, self.work = part.up_to(objective.limit), part.work(objective, rows=rows)
        self.out = new_changes(2 * part.n)
        spent = part.spent(objective.criteria)
        nothing = np.empty((1, len(spent)))
        columns = self.work, self.out, nothing
        sweep(self.model, self.objective, NO_LOSS, 0, 0, np.inf, *columns)
        self.values: list[FloatArray] = [spent]
        self.changes: list[Changes] = []
        self.best = objective.price * float(spent[0])
        self.w = 1

    @property
    def more(self) -> bool:
        limit = min(self.objective.limit, cutoff_of.plain(self.objective, self.best))
        return bool(self.w <= limit)

    @property
    def nbytes(self) -> int:
        some = sum(each.nbytes for found in self.changes for each in found)
        return int(self.work.value.nbytes + sum(each.nbytes for each in self.out) + 2 * some)

    def advance(self, loss: FloatArray, held: Changes) -> None:
        """The next level."""
        part, work, w = self.part, self.work, self.w
        objective, criteria = self.objective, len(self.objective.criteria)
        store = work.value.reshape(criteria, -1, part.n)
        if w - work.origin[0] >= store.shape[1]:
            move_window(part.n, criteria, work)
        # Nothing ends on the way: the start, which tells, may be on another rank.
        limit = max(cutoff_of.plain(objective, self.best), float(w))
        fixed, value = objective._replace(weight=0.0, limit=limit), np.zeros((1, criteria))
        for model, its in part.staged(self.model, work):
            found = sweep(model, fixed, loss, w, w, np.inf, its, self.out, value, held)
            if found.n_changes:
                changes = self.out.between(0, found.n_changes)
                self.changes.append(Changes(*(column.copy() for column in changes)))
            part.halo.exchange(store[:, w - int(work.origin[0])])
        comm = part.halo.comm
        if comm.size > 1:
            comm.Bcast(value, part.overall.home)
        self.values.append(value[0])
        self.best = min(self.best, objective.weight * w + objective.price * float(value[0, 0]))
        self.w += 1

    def result(self) -> Filled:
        """What was found; changes are those of the own nodes, by their positions here."""
        residual = largest(self.part.halo.comm, float(self.work.residual[0]))
        columns = zip(new_changes(0), *self.changes)
        changes = Changes(*(np.concatenate(column) for column in columns))
        return Filled(np.stack(self.values), changes, self.best, residual)


def fill_part(
    part: PartLayout,
    objective: Objective,
    loss: FloatArray = NO_LOSS,
    max_bytes: float = math.inf,
    check: Check = lambda memory, level, best: None,
    progress: Progress = lambda level, best: None,
    held: Changes = NOTHING_HELD,
    *,
    checkpoints: Checkpoints | None = None,
) -> Filled:
    """One pass from budget 1 to where nothing beyond can matter; changes are those of own nodes."""
    comm = part.halo.comm
    filling = Filling(part, objective, max_bytes)
    saving = None if checkpoints is None else PassCheckpoints(checkpoints, filling)
    rounds = 0
    while filling.more:
        if rounds % LOOK == 0:
            check(int(largest(comm, filling.nbytes)), filling.w, filling.best)
        filling.advance(loss, held)
        rounds += 1
        progress(filling.w - 1, filling.best)
        if saving is not None:
            saving.save_now_and_then()
    if saving is not None:
        saving.save()
    return filling.result()
