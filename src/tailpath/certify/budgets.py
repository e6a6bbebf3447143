"""Bounds on tables over budgets, found afterwards: the sweep of `dp/budgets.py` once more, on rows
that are too small and on rows that are too large.

Every value of the sweep is made of non-negative numbers by sums, products and minima, so the lemma
of `rounding.py` holds: on p (1 - d), with V* from below and all choices free, it computes numbers
below the least ones; on p (1 + d), with V* from above and the choices of a table *held*, numbers
above those of its policy. The two ends enclose the optimum, and the upper one holds for the policy.

*Closed forms* subtract: V* - w, where every run exceeds w. The difference of two floats is rounded
relatively to itself, so it is enough that V* comes from below, or from above, and was moved
outwards for what it takes to write it in units (3 roundings), to multiply it by a criterion, which
is rounded itself (4), and to take a budget off (1).

*Joint blocks* are solved by an elimination that divides by row sums, and by policy iteration that
leaves gains below a margin m. Nothing of that needs to be counted: let x be the values found, in
which every backup misses them by at most m x, with rows (1 - e) g and (1 - e) Q in place of g and
Q, e >= m. From below, (1 - e) (g + Q x) >= (1 - m) x for all choices, so that g + Q x >= x, and x
lies below the least values; from above, (1 + e) (g + Q x) <= (1 + m) x for the choices held, so
that x >= g + Q x, and x lies above theirs, since every policy leaves the block. The sweep says by
how much backups missed; where that is more than m, nothing is proved.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple, TypeVar

import numpy as np

from tailpath.certify.rounding import AFTERWARDS, ROUNDOFF, row_error
from tailpath.dp.backup import CERTAIN
from tailpath.dp.budget_model import NO_LOSS, NOTHING_HELD, TO_GO, Changes, Objective
from tailpath.dp.budgets import Filled
from tailpath.dp.joint import MARGIN
from tailpath.dp.layout import Layout
from tailpath.graph import FloatArray, IntArray, owners

#: By how much the rows of joint blocks are scaled more: the residual left, and its own rounding.
JOINTLY = 1.5 * MARGIN
#: More than what may have been taken for 0, in all levels together.
TAKEN_FOR_ZERO = 1e-270
#: Errors of V* count as a share of it up to this, and beyond it as they are.
SHARES_UP_TO = 1e-9

Layouts = TypeVar("Layouts", bound=Layout)


class Ends(NamedTuple):
    """V* of the nodes of a layout from below and from above, and of the start, in units; and how
    far probabilities may be off beside rounding, relatively.
    """

    low: FloatArray
    high: FloatArray
    start: tuple[float, float]
    error: float = 0.0


def scaled_layout(layout: Layouts, side: int, value: FloatArray, error: float) -> Layouts:
    """The layout with rows too small (`side` -1) or too large (+1), and V* of that side."""
    off = _row_errors(layout, error)
    nodes, joint = layout.nodes, layout.joint
    if len(joint.inner_target):
        block = owners(nodes.block_start)
        off = off + JOINTLY * np.repeat(nodes.block_joint[block], np.diff(layout.node_choices))
        more = np.maximum(side * off, -1.0)[owners(joint.inner_start)] * joint.inner_probability
        stays = np.bincount(owners(joint.inner_start), more, len(joint.leave))
        # From above, a row that stays in its block may sum up to more than 1: it leaves with less
        # than nothing.
        joint = joint._replace(
            inner_probability=joint.inner_probability + more, leave=joint.leave - stays
        )
    factor = np.maximum(1 + side * off, 0.0)
    return replace(
        layout,
        nodes=nodes._replace(value=np.maximum(value * (1 + side * AFTERWARDS), 0.0)),
        choice_cost=layout.choice_cost * factor,
        probability=layout.probability * factor[owners(layout.outcome_start)],
        joint=joint,
    )


class TableSides(NamedTuple):
    """Values at the start by budget: from below the least ones of criterion 0 (b,), and from above
    those of a table's policy, by criterion (b, m).
    """

    low: FloatArray
    high: FloatArray

    def total_bounds(
        self, budgets: IntArray, weight: float, price: float, beyond: float, position: int
    ) -> tuple[float, float]:
        """Bounds on the least `weight * w + price * value`, which is at least `beyond` for budgets
        not in the table; the policy with the budget at `position` keeps the upper one.
        """
        low = float(np.min(weight * budgets + price * self.low, initial=beyond)) * (1 - AFTERWARDS)
        high = weight * float(budgets[position]) + price * float(self.high[position, 0])
        return low, high * (1 + AFTERWARDS)


def table_sides(
    layout: Layout,
    objective: Objective,
    ends: Ends,
    fill: Callable[[Layout, Objective, FloatArray, Changes], Filled],
    changes: Changes,
    losses: tuple[FloatArray, FloatArray] = (NO_LOSS, NO_LOSS),
) -> TableSides:
    """Both sides of a table that `fill` filled, with its changes of choice; `losses` are what
    arriving is worth from below and from above.
    """
    proved = np.isfinite(ends.high)
    objective = objective._replace(weight=0.0, tie=0.0)
    below = scaled_layout(layout, -1, ends.low, ends.error)
    alone = objective._replace(criteria=objective.criteria[:1])
    found = fill(below, alone, np.ascontiguousarray(losses[0][:, :1]), NOTHING_HELD)
    low = (
        found.values[:, 0] * (1 - AFTERWARDS)
        if found.residual <= MARGIN
        else 0 * found.values[:, 0]
    )
    above = scaled_layout(layout, 1, np.where(proved, ends.high, layout.nodes.value), ends.error)
    order = np.argsort(changes.budget, kind="stable")
    held = Changes(*(of[order].astype(like.dtype) for of, like in zip(changes, NOTHING_HELD)))
    found = fill(above, objective._replace(held=True), losses[1], held)
    unproved = (objective.criteria[:, TO_GO] > 0) & (not proved.all())
    scale = np.abs(objective.criteria).sum(axis=1) + np.max(losses[1], initial=0.0)
    high = found.values * (1 + AFTERWARDS) + TAKEN_FOR_ZERO * scale
    high[:, unproved | (found.residual > MARGIN)] = np.inf
    return TableSides(low, high)


class Share(NamedTuple):
    """How far the values of a table may be off, for any policy: by a relative `share`, a number or
    one per level, and by `slack`, in units of cost.
    """

    share: Any
    slack: float

    def below(self, value: Any) -> Any:
        return np.maximum(value * np.maximum(1 - self.share, 0.0) - self.slack, 0.0)

    def above(self, value: Any) -> Any:
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(self.share < 1, value / (1 - self.share) + self.slack, np.inf)[()]


def table_share(
    layout: Layout, ends: Ends | None, levels: Any, slope: float = 1.0, marginal: float = 0.0
) -> Share:
    """What is known of every policy of a table without joint blocks after so many levels, without
    another sweep: each block of each level adds a share, and V*, or V* less a budget where criteria
    have a slope, counts once, unless nothing is read of it. Where a share of V* would say nothing,
    its error counts as it is.
    """
    share, slack, error = 0.0, TAKEN_FOR_ZERO, 0.0
    if ends is not None:
        value, error = layout.nodes.value, ends.error
        with np.errstate(invalid="ignore"):
            apart = np.maximum(ends.high - value, value - ends.low) + AFTERWARDS * value
        left = np.maximum(value - layout.nodes.unavoidable_cost if slope else value, 1e-300)
        share = float(np.max(apart / left, where=apart > 0, initial=0.0))
        if share > SHARES_UP_TO:
            share, slack = 0.0, float(np.max(apart)) * (1 + AFTERWARDS)
    each = float(np.max(_row_errors(layout, error))) * (1 + marginal)
    return Share(share + levels * len(layout.nodes.block_joint) * each + AFTERWARDS, slack)


def early_bounds(
    layout: Layout, objective: Objective, ends: Ends, level: int, best: float
) -> tuple[float, float]:
    """Bounds on the least `weight * w + price * U` of all budgets, where a sweep ended before a
    level, with the best value of those before it. No measure here is less than the mean.
    """
    low, high = ends.start
    per_value = objective.price * float(objective.criteria[0, TO_GO])
    low, most = low * (1 - AFTERWARDS), per_value * high * (1 + AFTERWARDS)
    known = table_share(layout, ends, level)
    known = known._replace(slack=known.slack * per_value)
    # `residual` and `marginal` are known only once a sweep has ended.
    if math.isfinite(best) and not len(layout.joint.inner_target) and layout.nature == CERTAIN:
        beyond = objective.weight * level + objective.floor * (1 - AFTERWARDS)
        low, most = max(low, min(known.below(best), beyond)), min(most, known.above(best))
    return min(low, most), most


class Later:
    """A value that is computed on first use and then kept in place of the function; pickling
    computes it.
    """

    def __init__(self, find: Callable[[], Any]) -> None:
        self._find: Callable[[], Any] | None = find

    @property
    def found(self) -> Any:
        if self._find is not None:
            self._found, self._find = self._find(), None
        return self._found

    def __getstate__(self) -> dict[str, Any]:
        return {"_found": self.found, "_find": None}


def _row_errors(layout: Layout, error: float) -> FloatArray:
    """What one step of every row may round. Where loops were divided out, an error of probabilities
    counts in both of what was divided: (1 + e) / (1 - e), times what else is rounded, is no more
    than 1 + 2 e / (1 - 2 e).
    """
    divided = 2 * error / max(1 - 2 * error, ROUNDOFF)
    return np.asarray(row_error(layout.row_size, 0, divided))
