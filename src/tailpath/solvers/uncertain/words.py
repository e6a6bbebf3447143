"""Both sides of a result in one sentence."""

from __future__ import annotations

import math
from collections.abc import Callable

from tailpath.analysis.nature import NATURES
from tailpath.errors import GoalUnreachableError
from tailpath.model.interval import IntervalSSP

Pair = tuple[float, float]


def other_nature(nature: str) -> str:
    """The name of the one that it is not."""
    return next(name for name in NATURES if name != nature)


def both_sides(
    model: IntervalSSP,
    what: str,
    nature: str,
    bounds: Pair,
    others: Callable[[], Pair],
    verb: str = "costs",
) -> str:
    """The sentence about the least of something, from its bounds under this nature and under the
    other.
    """
    try:
        other = others()
    except GoalUnreachableError:  # some nature keeps every policy away
        other = math.inf, math.inf
    cooperative, adversarial = (other, bounds) if nature == "adversarial" else (bounds, other)
    low, high = cooperative[0], adversarial[1]
    condition = (
        "if all intervals hold"
        if model.confidence is None
        else f"with {100 * model.confidence:g} % confidence"
    )
    promise = f", and this policy {verb} at most {high:.6g}" if nature == "adversarial" else ""
    return f"{condition} the least {what} lies in [{low:.6g}, {high:.6g}]{promise}"
