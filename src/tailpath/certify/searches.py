"""Bounds on what a forward search found: the same search once more on either side of it.

An engine of `evaluation` has `search(side, until)`, which searches rows scaled to a `side`,
`largest_factor()`, the most that any row is scaled by, `totals(found, side)`, which completes what
is open by the expected cost to go, from below or from above, `dearest(found, side)`, the most that
anything has still to pay, and `sums`: whether mean and probability of never arriving are sums over
what was found.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tailpath.certify.rounding import AFTERWARDS, ROUNDOFF, VANISHED, compounded
from tailpath.certify.totals import Enclosure, outwards
from tailpath.dp.totals import Totals
from tailpath.graph import FloatArray


def enclosure(engine: Any, costs: FloatArray, last: float, until: Any) -> Enclosure:
    """Bounds on the result of a search of `engine` that ended at `until`, whose head has these
    `costs` and ends at X = `last`.
    """
    return _between(engine, costs, last, lambda side: engine.search(side, until, costs))


def early_bounds(engine: Any, found: Any) -> Enclosure:
    """Bounds from a search that stopped early. To search again would take as long once more: what
    all steps together may have rounded is charged at once.
    """
    most = engine.largest_factor() - 1 + AFTERWARDS

    def charged(side: int) -> Any:
        return found.times(compounded(most, found.steps, side))

    return _between(engine, found.costs, found.last, charged)


def _between(
    engine: Any, costs: FloatArray, last: float, searched: Callable[[int], Any]
) -> Enclosure:
    """Bounds from two searches: `searched(side)` is that with too little (-1) or too much (+1)
    probability.
    """

    def one_side(side: int) -> tuple[Totals, float, float]:
        found = searched(side)
        # What was dropped was added up one by one: the sum is more than half of it.
        dropped = 2 * found.dropped
        of_costs, stray = found.roundings * ROUNDOFF, VANISHED + dropped + found.alone
        # A discounted cost is off by roundings of all that was paid, not of what is beyond X, and
        # so is X: twice. No model of the tests tells it from the bounds of the cost to go.
        before = 2 * last * float(np.sum(found.mass)) if engine.request.gamma < 1 else 0.0
        certain = outwards(
            engine.totals(found, side),
            side,
            dropped=dropped,
            dearest=float(np.max(found.overshoot, initial=0.0)) + engine.dearest(found, side),
            paid=float(np.sum(found.mass * np.abs(found.overshoot))) + before,
            of_costs=of_costs,
            proved=not engine.sums,
        )
        return certain.onto(costs, last, side), of_costs, stray

    high, of_costs, stray = one_side(1)
    return Enclosure(one_side(-1)[0], high, of_costs, stray)
