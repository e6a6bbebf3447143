"""From columns of outcomes to a model; and from rewards, as files call them, to costs.
`docs/formats.md` has the sign of each format, and which option wins.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from tailpath.errors import FormatError
from tailpath.formats.registry import Reading
from tailpath.graph import FloatArray, first_of
from tailpath.model.cost_units import as_fraction
from tailpath.model.interval import IntervalSSP
from tailpath.model.interval_builders import interval_model
from tailpath.model.outcomes import CostRule, OutcomeColumns
from tailpath.model.ssp import SSP
from tailpath.options import check_amount


def model_of(
    rows: OutcomeColumns, fields: dict[str, Any], confidence: float | None = None
) -> SSP | IntervalSSP:
    """The model of probabilities or intervals, with the other fields of an `SSP`; with a
    confidence, that of counts, whose intervals all hold with this probability.
    """
    if len(rows.probabilities) > 1 or confidence is not None:
        counted = confidence is not None
        return interval_model(IntervalSSP, rows.fields(fields, counted=counted), confidence)
    return SSP(**rows.fields(fields))


# ---------------------------------------------------------------------- what they cost


def cost_rule(sign: int, reading: Reading) -> CostRule:
    """The options about costs as a rule. `sign` is -1 for formats whose rewards are maximised."""
    finite = partial(check_amount, finite=True, signed=True)
    step = None if reading.step_cost is None else finite(reading.step_cost, "step_cost")
    pairs = {
        finite(reward, "a reward in cost_of"): finite(cost, "cost_of")
        for reward, cost in reading.cost_of.items()
    }
    own = -1 if reading.rewards else sign
    return CostRule(-own if reading.negate_reward else own, step, pairs)


def refuse_improbable(
    probability: FloatArray, location: str, name_outcome: Callable[[int], str]
) -> None:
    """Refuse the first negative probability, before outcomes are merged, which could hide it."""
    for outcome in first_of(~(probability >= 0)):
        raise FormatError(
            f"{location}: {name_outcome(outcome)} has probability {probability[outcome]:g}"
        )


def loop_cost(costs: FloatArray) -> float:
    """What a loop at a dead end costs: a run there never arrives, so the amount does not matter,
    but nothing may be free for ever. The smallest cost of the model keeps its unit.
    """
    paid = np.abs(costs[costs != 0])
    return float(paid.min()) if paid.size else 1.0


def exact_sum(total: FloatArray, *parts: FloatArray | None) -> FloatArray:
    """Add decimals as decimals: 0.1 + 0.2 is 0.3, or the costs would lose their unit."""
    for part in parts:
        if part is None or not part.any():
            continue
        if not total.any():
            total = part
            continue
        left, at_left = np.unique(total, return_inverse=True)
        right, at_right = np.unique(part, return_inverse=True)
        pairs, position = np.unique(at_left * len(right) + at_right, return_inverse=True)
        sums = [_sum(left[pair // len(right)], right[pair % len(right)]) for pair in pairs.tolist()]
        total = np.array(sums)[position]
    return total


def _sum(left: float, right: float) -> float:
    try:
        return float(as_fraction(left) + as_fraction(right))
    except (ValueError, OverflowError):
        # Infinities and sums beyond the floats, which the model will refuse.
        return math.inf
