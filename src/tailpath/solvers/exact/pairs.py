"""The table over those pairs (state, budget left) alone that the start can reach, where they are few.

A best budget is a cost at which some policy may arrive, or 0: between two such costs `w + U / alpha` is concave, and a straight line for each
policy. So the start is asked for these budgets only, and every other pair follows from them (`kernels/pairs.py`). On a chain of 10^5 sure steps
there is one such budget and a pair per state, where the full table has 10^10; costs of 1 and 1000003 make few pairs and a long table.

The pairs are counted first. They take more memory each than an entry of the full table, and more time; so they are followed only where they are
that much fewer, and nobody looks for them where the full table is small. A short look along the first costs tells which is to be expected.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from tailpath.errors import LimitExceededError
from tailpath.kernels.budget import BASE, REST, Aim, cutoff_of
from tailpath.kernels.pairs import solve_pairs, spread
from tailpath.model.ssp import FloatArray
from tailpath.options import Progress
from tailpath.solvers.exact.layout import IntArray, Layout
from tailpath.solvers.exact.table import MAX_BYTES, BudgetTable, Changes, fill_table, first_guess

#: Up to this many bytes the full table is filled without looking for pairs.
SMALL = 2**24
#: What a pair takes, at least: its number, twice its place in the table, its order, value, length and label.
PAIR = 64
#: Where nothing speaks for pairs, they must be fewer than one for this many bytes of the full table.
UNLIKELY = 1024
#: The cost up to which the start reaches no more pairs of node and cost than this tells how dense they lie.
LOOK = 2**15
#: More than any budget.
FAR = 2**62


@dataclass(frozen=True, eq=False)
class PairTable:
    """What the recursion found, in cost units, for some budgets: `values[i, j]` is the value of the start with budget `budgets[i]` in account j.

    `steps[i]` is the most steps that a run with this budget takes before it is spent; each added `error` to the relative error at most. Every
    pair is listed as a change.
    """

    layout: Layout
    budgets: IntArray
    steps: IntArray
    values: FloatArray
    changes: Changes
    error: float


def fill_smaller(
    layout: Layout,
    aim: Aim,
    accounts: FloatArray,
    *,
    pairs: bool | None = None,
    max_bytes: int = MAX_BYTES,
    progress: Progress | None = None,
) -> BudgetTable | PairTable:
    """The full table (`fill_table`), or the pairs alone where that is smaller, or where the full table is beyond the memory allowed.

    `pairs` says which of the two it shall be: True for the pairs, if they fit the memory allowed, False for the full table.
    """
    accounts = np.atleast_2d(accounts)
    fill = partial(_fill_pairs, layout, aim, accounts, max_bytes, progress)
    table = None if pairs is False else fill(anyway=pairs is True)
    if table is not None:
        return table
    try:
        return fill_table(layout, aim, accounts, max_bytes=max_bytes, progress=progress)
    except LimitExceededError:
        table = fill(anyway=True) if pairs is None else None
        if table is None:
            raise
        return table


def _fill_pairs(
    layout: Layout, aim: Aim, accounts: FloatArray, max_bytes: int, progress: Progress | None, anyway: bool
) -> PairTable | None:
    """The table over pairs, or None where the full one is smaller; `anyway`: as many pairs as fit the memory allowed.

    Without a weight the budget is given, the limit of `aim`, and the start is asked for nothing else.
    """
    limit = first_guess(layout) if aim.weight > 0 else aim.limit
    while limit * (len(layout.node_of) + 1) < 2**62:
        most = max_bytes // PAIR if anyway else _most_pairs(layout, int(limit), accounts, max_bytes)
        found = _found(layout, int(limit), most, len(accounts), aim.weight == 0) if most else None
        if found is None:
            return None
        table, best = _solved(layout, aim, accounts, *found)
        if progress is not None:
            progress(int(limit), best * float(layout.unit))
        if cutoff_of.plain(aim, best) <= limit:
            return table
        limit = min(cutoff_of.plain(aim, best), 2 * limit)
    return None


def _most_pairs(layout: Layout, limit: int, accounts: FloatArray, max_bytes: int) -> int:
    """How many pairs are better than the full table for budgets up to the limit; 0 where that is small."""
    levels = layout.levels
    full = layout.entries(limit) * levels.choice_label.itemsize + 8.0 * (layout.reach(limit) + 1) * layout.n * len(accounts)
    if full < SMALL:
        return 0
    seen, end, ahead = 1, 0, 16
    while end < limit and (pairs := _costs(layout, min(ahead, limit), LOOK)) is not None:
        seen, end, ahead = len(pairs), min(ahead, limit), 2 * ahead
    sparse = seen * PAIR < np.sum(np.maximum(end + 1 - levels.least, 0), dtype=np.float64)
    return int(min(full // (PAIR if sparse else UNLIKELY), max_bytes // PAIR))


def _found(layout: Layout, limit: int, most: int, accounts: int, given: bool) -> tuple[IntArray, NDArray[np.int32], IntArray] | None:
    """The budgets to ask for, the table of the pairs and their numbers; None if there are too many. `given`: the limit is the only budget."""
    most = most * PAIR // (PAIR + 8 * (accounts - 1))
    costs = np.array([limit * (layout.n + 1) + layout.n]) if given else _costs(layout, limit, most)
    if costs is None:
        return None
    budgets = np.sort(costs[costs % (layout.n + 1) == layout.n] // (layout.n + 1))
    budgets = budgets[budgets > 0]
    table, pairs = spread(layout.levels, layout.web, layout.start, budgets, -1, 1, FAR, most)
    return None if len(pairs) > most else (budgets, table, pairs)


def _costs(layout: Layout, limit: int, most: int) -> IntArray | None:
    """The pairs of node and cost so far, by number, with costs up to the limit; None if there are too many."""
    pairs: IntArray = spread(layout.levels, layout.web, layout.start, np.zeros(1, dtype=np.int64), 1, 0, limit, most)[1]
    return None if len(pairs) > most else pairs


def _solved(
    layout: Layout, aim: Aim, accounts: FloatArray, budgets: IntArray, table: NDArray[np.int32], key: IntArray
) -> tuple[PairTable, float]:
    """The recursion over the pairs found; also returns the best value at the start."""
    levels, n = layout.levels, layout.n
    value, steps = np.empty((len(key), len(accounts))), np.zeros(len(key), dtype=np.int64)
    label = np.zeros(len(key), dtype=levels.choice_label.dtype)
    order, policy = np.argsort(key, kind="stable"), levels.node_choices[:-1].copy()
    error, left = solve_pairs(levels, layout.joint, layout.web, accounts, aim.tie, table, key, order, policy, value, label, steps)
    # The budgets asked for were entered first, in their order.
    spent = accounts[None, :, BASE] + accounts[None, :, REST] * layout.start_value
    values = np.concatenate([spent, value[: len(budgets)]])
    asked = np.append(0, budgets)
    best = float(np.min(aim.weight * asked + aim.price * values[:, 0]))
    changes = Changes(key % (n + 1), key // (n + 1), label)
    found = PairTable(layout, asked, np.append(0, steps[: len(budgets)]), values, changes, layout.per_block(error, left))
    return found, best
