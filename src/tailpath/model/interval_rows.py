"""From rows with intervals or counts to the fields of a model, and probabilities from inside the
intervals.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from typing import Any

import numpy as np

from tailpath.errors import ModelError, OptionError
from tailpath.graph import Array, BoolArray, FloatArray, offsets_of, owners
from tailpath.model.builders import (
    Name,
    Numbering,
    checked_rows,
    describe_outcome,
    goal_names,
)
from tailpath.model.checks import ROW_TOLERANCE
from tailpath.model.cost_units import as_fraction
from tailpath.options import check_amount

Fields = dict[str, Any]
Counts = tuple[FloatArray, FloatArray, FloatArray]
#: State, action, next state and cost, and the numbers that stand for the probability.
IntervalRow = tuple[Name, Name, Name, Any, tuple[float, ...]]


def fields_of_rows(
    rows: Iterable[IntervalRow], start: Name, goals: Iterable[Name], width: int
) -> tuple[Fields, FloatArray]:
    """The fields of an `SSP` but for the probabilities, and the `width` numbers that stand for
    each of these, (width, n_outcomes).

    Rows that agree in all else are one outcome, and their numbers are added up.
    """
    numbers = Numbering(goal_names(goals), width)
    for number, (state, action, next_state, cost, ends_or_count) in enumerate(rows):
        try:
            numbers.add(state, action, next_state, 1, cost, ends_or_count)
        except TypeError:
            raise ModelError(
                f"row {number} has a name that cannot be hashed: {(state, action, next_state)!r}"
            ) from None
    fields = numbers.arrays(start)._asdict()
    return fields, fields["outcome_probability"].T


def interval_rows(outcomes: Iterable[Any], goals: Iterable[Name]) -> list[IntervalRow]:
    """Rows `(state, action, next_state, (low, high), cost)` as they are needed here, without those
    that cannot happen.
    """
    rows: list[IntervalRow] = []
    least: dict[tuple[Name, Name], list[float]] = {}
    known = set(goals)
    for state, action, next_state, probability, cost in checked_rows(outcomes, "(low, high)"):
        ends = _low_and_high(probability, state, action, next_state)
        rows.append((state, action, next_state, cost, ends))
        least.setdefault((state, action), []).append(ends[0])
    full = {choice for choice, lows in least.items() if math.fsum(lows) >= 1}
    return [
        row
        for row in rows
        if row[0] in known or row[4][0] > 0 or (row[4][1] > 0 and row[:2] not in full)
    ]


def _low_and_high(
    probability: Any, state: Name, action: Name, next_state: Name
) -> tuple[float, float]:
    outcome = describe_outcome(state, action, next_state)
    try:
        single = isinstance(probability, str) or np.ndim(probability) == 0
        pair = (probability, probability) if single else tuple(probability)
        low, high = (
            float(as_fraction(end)) if isinstance(end, (str, Decimal)) else float(end)
            for end in pair
        )
    except (TypeError, ValueError, ArithmeticError):
        raise ModelError(
            f"{outcome} has probability {probability!r}, which is neither a number nor a pair (low,"
            " high)"
        ) from None
    if not 0 <= low <= high <= 1 + ROW_TOLERANCE:
        raise ModelError(
            f"{outcome} has the interval [{low:g}, {high:g}], which is not one of probabilities"
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


# ---------------------------------------------------------------------- counts


def counted_rows(rows: Iterable[Any]) -> Iterator[tuple[Any, Any, Any, Any, int]]:
    """Rows `(state, action, next_state, cost, count)` of counts, of steps and of runs.

    A row is `(state, action, next_state, count, cost)`, or a run
    `(state, action, cost, state, ..., cost, state)`, of which a step is the shortest.
    """
    for number, row in enumerate(rows):
        try:
            size = len(row)
            if size == 5:
                state, action, next_state, count, cost = row
                yield state, action, next_state, cost, _count(state, action, next_state, count)
                continue
            steps = [(*row[at : at + 4],) for at in range(0, size - 1, 3)]
        except TypeError:
            steps = []
        if not steps or len(steps[-1]) != 4:
            expected = (
                "expected (state, action, next_state, count, cost), or a run (state, action, cost,"
                " next_state, ...)"
            )
            raise ModelError(f"row {number} is {row!r}; {expected}")
        for state, action, cost, next_state in steps:
            yield state, action, next_state, cost, 1


def _count(state: Any, action: Any, next_state: Any, count: Any) -> int:
    try:
        as_integer = int(count)
    except (TypeError, ValueError, OverflowError):
        as_integer = -1
    if as_integer < 0 or as_integer != count:
        outcome = describe_outcome(state, action, next_state)
        raise ModelError(f"{outcome} has count {count!r}, which is not a whole number of 0 or more")
    return as_integer


def intervals_of_counts(count: FloatArray, row_start: Array, confidence: float) -> Counts:
    """Low and high ends so that all hold at once with this probability, and the frequencies.

    `count` has a number for each outcome, (n_outcomes,), and so has each answer; `row_start` says
    where those of a choice begin, (n_choices + 1,). The frequencies of a choice that was never
    tried are 0.
    """
    from scipy.special import betainccinv, betaincinv

    confidence = check_amount(confidence, "confidence", signed=True)
    if not 0 < confidence < 1:
        raise OptionError(f"confidence must lie in (0, 1), not {confidence!r}")
    row, size = owners(row_start), np.diff(row_start)
    tried = np.bincount(row, count, len(size))[row]
    together = size[row] > 1
    half = (1 - confidence) / max(int(np.count_nonzero(together)), 1) / 2
    low, high = np.where(together, 0.0, 1.0), np.ones(len(count))
    some, less = together & (count > 0), together & (count < tried)
    low[some] = betaincinv(count[some], (tried - count)[some] + 1, half)
    high[less] = betainccinv(count[less] + 1, (tried - count)[less], half)
    return low, high, np.where(tried > 0, count / np.maximum(tried, 1), 0.0)


def words_of_counts(fields: Mapping[str, Any], count: FloatArray) -> tuple[str, ...]:
    """What was never seen, and what was never tried, of the fields of an `SSP`."""
    row_start = np.asarray(fields["choice_outcomes"])
    row, size = owners(row_start), np.diff(row_start)
    tried = np.bincount(row, count, len(size))
    state = owners(np.asarray(fields["state_choices"]))

    def choice(k: int) -> str:
        action = fields["actions"][int(fields["choice_action"][k])]
        return f"state {fields['states'][int(state[k])]!r}, action {action!r}"

    words = []
    unseen = np.flatnonzero((count == 0) & (size > 1)[row] & (tried > 0)[row])
    if len(unseen):
        target = fields["states"][int(fields["outcome_target"][unseen[0]])]
        first = f"{choice(int(row[unseen[0]]))} -> {target!r}"
        words.append(_never(len(unseen), "outcome", "seen", first))
    untried = np.flatnonzero((size > 1) & (tried == 0))
    if len(untried):
        words.append(
            _never(len(untried), "choice", "tried and may do anything", choice(int(untried[0])))
        )
    return tuple(words)


def _never(amount: int, noun: str, what: str, first: str) -> str:
    """`1 outcome was never seen: ...`, `2 outcomes were never seen, the first is ...`."""
    if amount == 1:
        return f"1 {noun} was never {what}: {first}"
    return f"{amount} {noun}s were never {what}, the first is {first}"
