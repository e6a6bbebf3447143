"""The table over (state, budget left): swept level by level, kept as small as the answers need.

Values live in a window as long as the largest cost that does not lead to a goal and that a budget
can exceed; only the values at the start are kept. Of the decisions only the budgets are kept
at which a state's choice changes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from tailpath.certify.budgets import (
    TAKEN_FOR_ZERO,
    Ends,
    Share,
    TableSides,
    early_bounds,
    table_share,
    table_sides,
)
from tailpath.dp.budget_model import NO_LOSS, SLOPE, TO_GO, Changes, Objective
from tailpath.dp.budgets import Fill, Filled, Progress, cutoff_of, fill
from tailpath.dp.layout import Layout
from tailpath.errors import LimitExceededError
from tailpath.graph import FloatArray, IntArray, offsets_of
from tailpath.model.ssp import SSP

#: What is kept of values and decisions may take this much memory.
MAX_BYTES = 4 * 2**30
#: Where all nodes are nearer to the start, in units, a second pass costs more than levels too many.
ONE_PASS_BELOW = 128

#: The table of a layout once more: its objective, what arriving is worth, the choices to hold.
Again = Callable[[Any, Objective, FloatArray, Changes], Filled]
Found = TypeVar("Found")


@dataclass(frozen=True, eq=False)
class ModelLayout(Layout):
    """A model laid out. Node `node_of[s]` is that of state s, -1 where the start cannot or must not
    go; `choice[k]` is the model's choice behind choice k, `risk_neutral[s]` the choice of least
    expected cost. `lower` and `upper` enclose V* by state, and `error` is how far probabilities
    may be off beside rounding, relatively.
    """

    ssp: SSP
    risk_neutral: NDArray[np.int32]
    node_of: NDArray[np.int32]
    unit: Fraction
    lower: FloatArray
    upper: FloatArray
    error: float = 0.0

    @cached_property
    def members(self) -> tuple[IntArray, IntArray]:
        """The states of every node, one node after the other, and where each begins."""
        states = np.flatnonzero(self.node_of >= 0)
        states = states[np.argsort(self.node_of[states], kind="stable")]
        return states, offsets_of(self.node_of[states], self.n)

    def ends(self) -> Ends:
        """V* of nodes from below and from above."""
        states, first = self.members
        low, high = (
            side[states[first[:-1]]] / float(self.unit) for side in (self.lower, self.upper)
        )
        start = float(low[self.start]), float(high[self.start])
        return Ends(low, high, start, self.error)


@dataclass(frozen=True, eq=False)
class BudgetTable:
    """What the sweep found, in cost units: `values[j, i]` is the value of the start with budget
    `budgets[j]` in criterion i; with prices `values[j, i, k]`. No budget beyond `limit` was looked
    at; `marginal` is that of `Filled`. `again` fills the same budgets of another layout like
    `swept`, where this is not that of the model, with its own changes.
    """

    layout: ModelLayout
    objective: Objective
    budgets: IntArray
    values: FloatArray
    changes: Changes
    limit: int
    again: Again
    loss: FloatArray = field(default_factory=lambda: NO_LOSS)
    method: str = ""
    marginal: float = 0.0
    swept: tuple[Any, Changes] | None = None

    def sides(self) -> TableSides:
        """Bounds on the values at the start."""
        (layout, changes), both = self.swept or (self.layout, self.changes), (self.loss, self.loss)
        return table_sides(layout, self.objective, layout.ends(), self.again, changes, both)

    def share(self) -> Share:
        """How far values at the start may be off against nature, by budget."""
        criteria = self.objective.criteria
        slope, scale = float(criteria[:, SLOPE].max()), float(np.abs(criteria).sum(axis=1).max())
        ends = self.layout.ends() if criteria[:, TO_GO].any() else None
        known = table_share(self.layout, ends, self.budgets, slope, self.marginal)
        vanished = TAKEN_FOR_ZERO * (scale + float(np.max(self.loss, initial=0.0)))
        return known._replace(slack=known.slack * slope + vanished)


def fill_table(
    layout: ModelLayout,
    objective: Objective,
    loss: FloatArray = NO_LOSS,
    *,
    max_bytes: int = MAX_BYTES,
    progress: Progress | None = None,
    sweep: Fill = fill,
) -> BudgetTable:
    """Raise the budget until no larger one can matter. `loss[w, i]` is what arriving with budget w
    is worth in criterion i.

    The largest budget that may matter is guessed where that pays, and raised if it was too small:
    the smaller it is, the fewer states the start can reach within it, and the fewer levels are
    kept.
    """

    def run(limit: float) -> tuple[BudgetTable, float]:
        """One pass from budget 0 to the cutoff, and the best value at the start."""

        def check(memory: int, w: int, best: float) -> None:
            if memory > max_bytes:
                raise _too_large(layout, objective, max_bytes, w, best)

        def report(w: int, best: float) -> None:
            if progress is not None:
                progress(w, best * float(layout.unit))

        limited = objective._replace(limit=limit)
        found = sweep(layout.beyond(limit), limited, loss, max_bytes, check, report)
        last = len(found.values) - 1

        def again(other: Any, what: Objective, loss: FloatArray, held: Changes) -> Filled:
            return sweep(other, what._replace(limit=float(last)), loss, max_bytes, held=held)

        method = f"all budgets up to {last} in all states"
        columns = np.arange(last + 1), found.values, found.changes, last, again, loss, method
        table = BudgetTable(layout, limited, *columns, found.marginal)
        return table, found.best

    limit = objective.limit
    if objective.weight > 0:
        most = min(limit, max(2 * layout.farthest, layout.longest + 1))
        table = until_enough(objective, first_guess(layout), most, run)
        if table is not None:
            return table
    return run(limit)[0]


def until_enough(
    objective: Objective,
    guess: float,
    most: float,
    run: Callable[[float], tuple[Found | None, float]],
) -> Found | None:
    """What `run(limit)` finds, with the best value: for a guess, and for limits that double until
    nothing beyond them can matter. None if it finds nothing, or needs a limit of `most`.
    """
    while guess < most:
        found, best = run(guess)
        cutoff = cutoff_of.plain(objective, best)
        if found is None or cutoff <= guess:
            return found
        guess = min(cutoff, 2 * guess)
    return None


def first_guess(layout: Layout) -> float:
    """A budget beyond which nothing may matter, as far as one can guess: twice the least expected
    cost, or less where a low guess spares many nodes, or the values of many levels.
    """
    guess = max((2.0 if layout.farthest < ONE_PASS_BELOW else 1.25) * layout.start_value, 16.0)
    reach = layout.beyond(guess).reach(guess)
    return float(reach) if reach > 0.75 * guess else guess


def _too_large(
    layout: ModelLayout, objective: Objective, max_bytes: int, w: int, best: float
) -> LimitExceededError:
    unit, bounds = float(layout.unit), (0.0, math.inf)
    if objective.weight > 0 and isinstance(layout, ModelLayout):
        bounds = early_bounds(layout, objective, layout.ends(), w, best)
    return LimitExceededError(
        f"{layout.n} states x {w} cost levels need more than {max_bytes / 2**30:.3g}"
        " GiB, and more levels are to come; a coarser grid (--delta, delta=) or a larger"
        " max_bytes would help",
        (bounds[0] * unit, bounds[1] * unit),
    )


def too_many_levels(levels: int, max_bytes: int = MAX_BYTES) -> LimitExceededError:
    return LimitExceededError(
        f"{levels} cost levels need more than {max_bytes / 2**30:.3g} GiB; a coarser grid (--delta,"
        " delta=) would help",
        (0.0, math.inf),
    )
