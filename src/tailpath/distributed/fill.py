"""The loop over the levels of a budget table on the part of a rank: `dp.budgets.fill`, over ranks.

Every rank sweeps its own nodes (`dp.budgets.sweep`), a level or a few at a time, and passes on what
others need of them. The best value so far, which ends the sweep, is that of the rank of the start.
Values do not depend on how nodes are shared out: a node's is one sum over its own outcomes.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from tailpath.distributed.layout import PartLayout, cut, shares
from tailpath.distributed.ranks import Checkpoints, Job, PassCheckpoints, joined, largest, together
from tailpath.dp.budget_model import NO_LOSS, NOTHING_HELD, Changes, Objective, new_changes
from tailpath.dp.budgets import Check, Fill, Filled, Progress, cutoff_of, move_window, sweep
from tailpath.dp.layout import WINDOW, Layout
from tailpath.graph import Array, FloatArray

#: Levels between two looks at the memory of all ranks.
LOOK = 64


class Filling:
    """One pass over the levels on the part of a rank; all that changes is saved and read again."""

    def __init__(self, part: PartLayout, objective: Objective, max_bytes: float) -> None:
        self.part, self.objective = part, objective._replace(start=part.start)
        self.together = part.levels_together(objective.limit)
        reach, row = part.reach(objective.limit), 8 * max(part.n, 1) * len(objective.criteria)
        rows = max(self.together, reach, int(min(WINDOW, max_bytes) // row) - reach)
        if math.isfinite(objective.limit):
            rows = max(min(rows, int(objective.limit)), self.together)
        self.model, self.work = part.up_to(objective.limit), part.work(objective, rows=rows)
        self.out = new_changes((self.together + 1) * part.n)
        criteria = objective.criteria
        spent = part.spent(criteria)
        sweep(
            self.model,
            self.objective,
            NO_LOSS,
            0,
            0,
            np.inf,
            self.work,
            self.out,
            np.empty((1, len(criteria))),
        )
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
        """The next level, or as many as go with one exchange."""
        part, objective = self.part, self.objective
        work, halo = self.work, self.part.halo
        last = int(min(self.w + self.together - 1, objective.limit))
        criteria, n = len(objective.criteria), part.n
        store = work.value.reshape(criteria, -1, n)
        if last - work.origin[0] >= store.shape[1]:
            move_window(n, criteria, work)
        # Nothing ends on the way: the start, which tells, may be on another rank.
        fixed = objective._replace(weight=0.0, limit=cutoff_of.plain(objective, self.best))
        fixed = fixed._replace(limit=max(fixed.limit, float(last)))
        value = np.zeros((last - self.w + 1, criteria))
        first = int(self.w - work.origin[0])
        now, pending = store[:, first : first + len(value)], None
        for stage, model, its in part.staged(self.model, work):
            found = sweep(model, fixed, loss, self.w, last, np.inf, its, self.out, value, held)
            if found.n_changes:
                changes = self.out.between(0, found.n_changes)
                self.changes.append(Changes(*(column.copy() for column in changes)))
            pending = halo.begin(now) if stage.send else pending
            if stage.wait and pending is not None:
                halo.finish(pending, now)
        self._note(value)

    def _note(self, value: FloatArray) -> None:
        """Values at the start, as long as they can matter, and the best of them."""
        objective, comm = self.objective, self.part.halo.comm
        if comm.size > 1:
            comm.Bcast(value, self.part.overall.home)
        for row in value:
            if not self.more:
                break
            self.values.append(row)
            total = objective.weight * self.w + objective.price * float(row[0])
            self.best = min(self.best, total)
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


def shared_fill(job: Job, layout: Layout, objective: Objective, *asked: Any) -> Filled:
    """`dp.budgets.fill`, which takes `asked`, too, for a layout that every rank has: each fills its
    part. The result is that of one process, but for the order of changes.
    """
    comm, rank_of = job.comm, job.rank_of or nearby

    def work() -> Filled:
        part = cut(comm, layout, rank_of(layout, comm.size, objective))
        found = fill_part(part, objective, *asked, checkpoints=job.checkpoints)
        node, budget, choice = found.changes
        mine = part.number[node], budget, part.choice[choice]
        return found._replace(changes=Changes(*(joined(comm, each) for each in mine)))

    return together(comm, work)


def nearby(layout: Layout, ranks: int, objective: Objective) -> Array:
    """The rank of every node: bands around the start, each with about the same work."""
    order = np.argsort(layout.nodes.cost_from_start, kind="stable")
    limit = min(objective.limit, 4.0 * layout.start_value + 16.0)
    effort = np.maximum(limit - layout.nodes.cost_from_start - layout.nodes.certain_cost, 0.0) + 1.0
    owner = np.empty(layout.n, dtype=np.int64)
    owner[order] = shares(effort[order], ranks)
    return owner


def shared_by(comm: Any) -> Fill:
    """How ranks fill a table together."""
    return partial(shared_fill, Job.of(comm))
