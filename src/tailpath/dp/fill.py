"""The loop over the levels of a budget table: values at the start, and where choices change."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from tailpath.dp.budget_model import NO_LOSS, Changes, Objective, new_changes
from tailpath.dp.budgets import sweep
from tailpath.dp.layout import Layout
from tailpath.graph import FloatArray

#: About so many values are computed before the caller is told.
AT_A_TIME = 2**23
#: What it takes to bracket the value of a budget.
BRACKET_BYTES = 72
#: For each node there is room for so many changes of its choice, at first.
ROOM = 4
#: Asked before memory is taken, with its bytes, the level reached and the best value so far.
Check = Callable[[int, int, float], None]
#: Told the level reached and the best value so far.
Progress = Callable[[int, float], None]


#: A way to fill a table: `fill`, or the same over several ranks.
Fill = Callable[..., "Filled"]


class Filled(NamedTuple):
    """Values at the start by level, from 0 on, and criterion (and price); changes of choices; the
    error of a level; the best value; the most that a tie gave away.
    """

    values: FloatArray
    changes: Changes
    error: float
    best: float
    given_away: float = 0.0


def fill(
    layout: Layout,
    objective: Objective,
    loss: FloatArray = NO_LOSS,
    max_bytes: float = math.inf,
    check: Check = lambda memory, level, best: None,
    progress: Progress = lambda level, best: None,
) -> Filled:
    """One pass from budget 0 to where nothing beyond can matter; `error` is what each level adds to
    the relative error, at most.
    """
    n, n_prices = layout.n, max(len(objective.prices), 1)
    # An objective without a weight ends at its limit; with one, the sweep does not know beforehand
    # how many levels there are.
    rows = int(min(max(AT_A_TIME // n, 16), 4096, max(16.0, objective.limit))) + 1
    size = 8 * (layout.reach(objective.limit) + 1) * n * n_prices * len(objective.criteria)
    check(size, 1, np.inf)
    model, work = layout.up_to(objective.limit), layout.work(objective, max_bytes)
    changes = new_changes(ROOM * n)
    columns, values = len(objective.criteria) * n_prices, []
    # The values at the start are copied once, into one array, and an optimum over budgets brackets
    # each.
    level = 16 * columns + (BRACKET_BYTES if objective.weight > 0 else 0)
    best, given_away = math.inf, 0.0
    error, residual = 0.0, 0.0
    w, n_changes = 0, 0
    more = True
    while more:
        last = w + rows - 1
        if n_changes + n > len(changes.node):
            changes = Changes(
                *(np.append(column, np.empty(len(column) + n, column.dtype)) for column in changes)
            )
        check(size + sum(column.nbytes for column in changes) + level * last, max(w, 1), best)
        value = np.empty((rows, columns))
        found = sweep(
            model, objective, loss, w, last, best, work, changes.between(n_changes), value
        )
        values.append(value[: found.level - w])
        best, n_changes = found.best, n_changes + found.n_changes
        w = found.level
        more = (w > last and w <= objective.limit) or n_changes + n > len(changes.node)
        error, residual = max(error, found.error), max(residual, found.residual)
        given_away = max(given_away, found.given_away)
        progress(w - 1, best)
    table = np.concatenate(values)
    table = table.reshape(len(table), -1, n_prices) if len(objective.prices) else table
    return Filled(
        table,
        changes.between(0, n_changes),
        layout.per_level(error, residual),
        best,
        given_away,
    )
