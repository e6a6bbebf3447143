"""Intervals from what was counted: Clopper and Pearson's, all of them at once.

Each is taken at such a level that the errors of all together are no more probable than is allowed
(union bound). What is alone in its choice is sure, and of a choice that was never tried nothing is
known.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from tailpath.errors import ModelError, OptionError
from tailpath.graph import Array, FloatArray, owners
from tailpath.model.builders import where_outcome

Counts = tuple[FloatArray, FloatArray, FloatArray]


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
        where = where_outcome(state, action, next_state)
        raise ModelError(f"{where} has count {count!r}, which is not a whole number of 0 or more")
    return as_integer


def intervals_of_counts(count: FloatArray, row_start: Array, confidence: float) -> Counts:
    """Low and high ends so that all hold at once with this probability, and the frequencies.

    `count` has a number for each outcome, (n_outcomes,), and so has each answer; `row_start` says
    where those of a choice begin, (n_choices + 1,). The frequencies of a choice that was never
    tried are 0.
    """
    from scipy.stats import beta

    try:
        confidence = float(confidence)
    except (TypeError, ValueError, OverflowError):
        raise OptionError(f"confidence must be a number in (0, 1), not {confidence!r}") from None
    if not 0 < confidence < 1:
        raise OptionError(f"confidence must lie in (0, 1), not {confidence!r}")
    row, size = owners(row_start), np.diff(row_start)
    tried = np.bincount(row, count, len(size))[row]
    together = size[row] > 1
    half = (1 - confidence) / max(int(np.count_nonzero(together)), 1) / 2
    low, high = np.where(together, 0.0, 1.0), np.ones(len(count))
    some, less = together & (count > 0), together & (count < tried)
    low[some] = beta.ppf(half, count[some], (tried - count)[some] + 1)
    high[less] = beta.isf(half, count[less] + 1, (tried - count)[less])
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
