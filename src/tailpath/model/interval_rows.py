"""From rows with intervals or counts to the fields of a model, and probabilities from inside the
intervals.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

import numpy as np

from tailpath.errors import ModelError
from tailpath.graph import BoolArray, FloatArray, offsets_of, owners
from tailpath.model.builders import (
    Name,
    Numbering,
    checked_rows,
    goal_names,
    merged_columns,
    where_outcome,
)
from tailpath.model.checks import ROW_TOLERANCE
from tailpath.model.cost_units import as_fraction

Fields = dict[str, Any]
#: State, action, next state and cost, and the numbers that stand for the probability.
Row = tuple[Name, Name, Name, Any, tuple[float, ...]]


def fields_of_rows(
    rows: Iterable[Row], start: Name, goals: Iterable[Name]
) -> tuple[Fields, list[FloatArray]]:
    """The fields of an `SSP` but for the probabilities, and what stands for these, outcome by
    outcome.

    Rows that agree in all else are one outcome, and their numbers are added up.
    """
    numbers = Numbering(goal_names(goals))
    beside: list[tuple[float, ...]] = []
    for number, (state, action, next_state, cost, chances) in enumerate(rows):
        try:
            hash((state, action, next_state, cost))
        except TypeError:
            raise ModelError(
                f"row {number} has a name that cannot be hashed: {(state, action, next_state)!r}"
            ) from None
        # Any probability will do: what stands for it is added up beside it.
        numbers.add(state, action, next_state, 1, cost)
        if state not in numbers.goals:
            beside.append(chances)
    fields = numbers.arrays(start)._asdict()
    source, action_, target, _, paid = numbers.columns()
    columns = list(np.array(beside, dtype=np.float64).reshape(len(beside), -1).T)
    return fields, merged_columns(source, action_, target, paid, columns)


def interval_rows(outcomes: Iterable[Any], goals: Iterable[Name]) -> list[Row]:
    """Rows `(state, action, next_state, (low, high), cost)` as they are needed here, without those
    that cannot happen.
    """
    rows: list[Row] = []
    least: dict[tuple[Name, Name], list[float]] = {}
    known = set(goals)
    for state, action, next_state, chance, cost in checked_rows(outcomes, "(low, high)"):
        ends = _ends(chance, state, action, next_state)
        rows.append((state, action, next_state, cost, ends))
        least.setdefault((state, action), []).append(ends[0])
    full = {choice for choice, lows in least.items() if math.fsum(lows) >= 1}
    return [
        row
        for row in rows
        if row[0] in known or row[4][0] > 0 or (row[4][1] > 0 and row[:2] not in full)
    ]


def _ends(chance: Any, state: Name, action: Name, next_state: Name) -> tuple[float, float]:
    where = where_outcome(state, action, next_state)
    try:
        single = isinstance(chance, str) or np.ndim(chance) == 0
        pair = (chance, chance) if single else tuple(chance)
        low, high = (
            float(as_fraction(end)) if isinstance(end, (str, Decimal)) else float(end)
            for end in pair
        )
    except (TypeError, ValueError, ArithmeticError):
        raise ModelError(
            f"{where} has probability {chance!r}, which is neither a number nor a pair (low, high)"
        ) from None
    if not 0 <= low <= high <= 1 + ROW_TOLERANCE:
        raise ModelError(
            f"{where} has the interval [{low:g}, {high:g}], which is not one of probabilities"
        )
    return low, high


def with_inside(
    fields: Mapping[str, Any], low: FloatArray, high: FloatArray
) -> tuple[Fields, BoolArray]:
    """The fields of an `SSP` with probabilities from inside the intervals, and which outcomes these
    are: those that can happen.

    What is open of a choice is divided alike.
    """
    count = len(fields["choice_action"])
    row = owners(np.asarray(fields["choice_outcomes"]))
    least = np.bincount(row, low, count)[row]
    possible = (low > 0) | ((high > 0) & (least < 1))
    # A choice of which nothing can happen is wrong, which the checks say.
    possible |= np.bincount(row, possible, count)[row] == 0
    columns = {
        name: np.asarray(fields[name])[possible] for name in ("outcome_target", "outcome_cost")
    }
    low, high = low[possible], high[possible]
    row, least = row[possible], least[possible]
    width = np.bincount(row, high - low, count)[row]
    open_ = width > 0
    share = np.where(open_, np.clip((1 - least) / np.where(open_, width, 1.0), 0.0, 1.0), 0.0)
    p, size = low + share * (high - low), np.bincount(row, minlength=count)[row]
    total = np.bincount(row, p, count)[row]
    if not (np.all(p > 0) and np.all(np.abs(total - 1) <= ROW_TOLERANCE * size)):
        p = 1.0 / size  # the checks of intervals say what is wrong
    rows = {"choice_outcomes": offsets_of(row, count), "outcome_probability": p}
    return {**fields, **columns, **rows}, possible
